# SPDX-License-Identifier: Apache-2.0
"""bench_start.py - what it takes to be inside: wall clock and CPU of `true`.

With everything that has to be there before and gone behind it; beside plain
fork and exec, unshare and bubblewrap.
"""
import os
import subprocess
import sys
import time

import kit
from lab import ADDRESSES

POLICY = """\
[policy]
name = bench
[allow bench]
hosts     = *.example.com
addresses = %s
ports     = 4007 4019
protocol  = tcp
owner     = bench
reason    = the lab's origins have addresses of documentation
""" % ADDRESSES


def once(namespace, argv, uid, env):
    """Wall and CPU milliseconds of one command and all that it waited for."""
    enter = namespace.argv(argv, uid)
    # Enter once, outside the clock: a small shell inside takes the time.
    # What a contender leaves behind is waited for, too, and its CPU counted:
    # bwrap does not reap the init of its own sandbox.
    script = ("import ctypes,os,sys,time,resource\n"
              "n=int(sys.argv[1]); argv=sys.argv[2:]\n"
              "assert ctypes.CDLL(None).prctl(36,1,0,0,0)==0  # subreaper\n"
              "null=os.open('/dev/null',os.O_RDWR)\n"
              "for i in range(n):\n"
              "  b=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
              "  t=time.perf_counter()\n"
              "  p=os.posix_spawn(argv[0],argv,os.environ,file_actions=["
              "(os.POSIX_SPAWN_DUP2,null,0),(os.POSIX_SPAWN_DUP2,null,1)])\n"
              "  s=os.waitpid(p,0)[1]\n"
              "  t=time.perf_counter()-t\n"
              "  try:\n"
              "    while True: os.waitpid(-1,0)\n"
              "  except ChildProcessError: pass\n"
              "  a=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
              "  print(s,t*1e3,(a.ru_utime+a.ru_stime-b.ru_utime-b.ru_stime)*1e3)\n")
    at = len(enter) - len(argv)
    done = subprocess.run(
        enter[:at] + ["/usr/bin/python3", "-c", script, "10"] + argv,
        env=env, capture_output=True, text=True, timeout=120, check=True)
    return [list(map(float, line.split())) for line in done.stdout.splitlines()]


class Service:
    """penstockd --config in the lab's host, as a user of its own."""

    def __init__(self, bench):
        self.lab = bench.lab
        bench.service_account()
        where = self.lab.workdir("service", kit.SERVICE_USER)
        self.plug = where + "/plug.sock"
        self.policy = where + "/bench.ini"      # that runs bring
        with open(self.policy, "w", encoding="ascii") as out:
            out.write(POLICY)
        config = where + "/penstockd.ini"
        with open(config, "w", encoding="ascii") as out:
            out.write("[service]\nplug = %s\nlog = %s/audit.jsonl\n"
                      "workers = 1\nuser = %s\n"
                      "[plug]\nallow_policy_uid = 0 %d\n"
                      % (self.plug, where, kit.SERVICE_NAME, kit.USER))
        self.process = self.lab.host.popen(
            [bench.penstockd, "--config", config], env={"PATH": "/usr/bin"},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait(self, argv, env):
        for _ in range(200):
            if self.process.poll() is None and self.lab.host.run(
                    argv, uid=kit.USER, env=env,
                    stderr=subprocess.DEVNULL).returncode == 0:
                return
            time.sleep(0.05)
        sys.exit("the service did not start")

    def close(self):
        self.process.terminate()
        self.process.wait()


def bench_start(bench):
    service = Service(bench)
    try:
        bench_start_beside(bench, service)
    finally:
        service.close()


def bench_start_beside(bench, service):
    home = bench.lab.workdir("home", kit.USER)
    env = {"PATH": "/usr/bin:/bin:/usr/sbin", "HOME": home, "LANG": "C"}
    run = [bench.penstock, "run", "--quiet", "--policy", service.policy]
    private = run + ["--private", "--", "/bin/true"]
    served = run + ["--plug", service.plug, "--", "/bin/true"]
    service.wait(served, env)
    contenders = {
        "fork+exec": (["/bin/true"], kit.USER),
        "unshare": (["/usr/bin/unshare", "-Urnmpiu", "--fork", "/bin/true"],
                    kit.USER),
        "bwrap": (["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/",
                   "/bin/true"], kit.USER),
        "penstock (service, user)": (served, kit.USER),
        "penstock (service, root)": (served, None),
        "penstock (user)": (private, kit.USER),
        "penstock (root)": (private, None),
    }
    for name in list(contenders):
        if not os.path.exists(contenders[name][0][0]):
            bench.missing(name, "bubblewrap" if name == "bwrap"
                          else "util-linux")
            del contenders[name]
    for name in bench.turns(contenders):
        argv, uid = contenders[name]
        for status, wall, cpu in once(bench.lab.host, argv, uid,
                                      dict(env, HOME=home if uid else "/root")):
            if status:
                sys.exit("%s failed with status %d" % (name, status))
            bench.row(measure="start", contender=name, value=wall, cpu=cpu)
    bench.table("start", "ms of wall clock; cpu in ms", "bwrap")

# SPDX-License-Identifier: Apache-2.0
"""penstocks.py - Penstock as a contender: sealed, transparent, as a listener.

Each has a service of its own with one worker, and its records on: sealed and
transparent runs write theirs to a file of each run, the listener to the
service's log.
"""
import subprocess

import kit
import wires
from peers import DESCRIPTORS, Peer
from wires import BYTES, CLIENT_NET, ECHO, GATE, KEPT, PLAIN

# What a peer does without is given in any number, so that nothing is refused.
POLICY = """\
[policy]
name = bench
[allow tunnels]
hosts     = @domains.list
addresses = 203.0.113.0/24
ports     = %d %d %d
protocol  = tcp
owner     = bench
reason    = the origins of the bench have addresses of documentation
[allow plain]
hosts     = @domains.list
addresses = 203.0.113.0/24
ports     = %d
protocol  = http
owner     = bench
reason    = the origins of the bench have addresses of documentation
[limits]
connections = %d
memory      = 4G
names       = 131072
label_bytes = 1G
nxdomain    = 131072
""" % (ECHO, BYTES, KEPT, PLAIN, DESCRIPTORS)

SERVICE = """\
[service]
plug    = %(dir)s/plug.sock
user    = %(user)s
workers = 1
[plug]
allow_policy_uid = 0 %(uid)d
"""
LISTEN = """\
policies = %(dir)s/policies
[listen bench]
http    = %(gate)s:%(port)d
policy  = bench
clients = %(net)s
"""


class Penstock(Peer):
    judges = True
    listens = False

    def __init__(self, wire):
        super().__init__(wire)
        self.bench.service_account()

    def where_is(self):
        return self.bench.lab.workdir("service-" + self.slug(),
                                      kit.SERVICE_USER)

    def configure(self, hosts):
        """Write the policy and the service's configuration."""
        where = self.where_is()
        domains, self.step = wires.listed(hosts)
        policies = self.bench.lab.workdir(where + "/policies")
        with open(policies + "/domains.list", "w", encoding="ascii") as out:
            out.writelines("*.%s\n" % domain for domain in domains)
        self.policy = policies + "/bench.ini"
        with open(self.policy, "w", encoding="ascii") as out:
            out.write(POLICY)
        text = SERVICE
        if self.listens:
            text = text.replace("workers", "log     = %(dir)s/audit.jsonl\n"
                                "workers") + LISTEN
        config = where + "/penstockd.ini"
        with open(config, "w", encoding="ascii") as out:
            out.write(text % {
                "dir": where, "user": kit.SERVICE_NAME, "uid": kit.USER,
                "gate": GATE, "port": self.port, "net": CLIENT_NET})
        return config

    def start(self, hosts, group=None):
        config = self.configure(hosts)
        self.process = wires.on_cpu(
            0, self.bench.lab.host,
            [self.bench.penstockd, "--config", config], group,
            env={"PATH": "/usr/bin:/bin"}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.wait()

    def version(self):
        return subprocess.run([self.bench.penstock, "version"],
                              capture_output=True, text=True).stdout.strip()


class Listener(Penstock):
    """For clients beside the host, as the peers are."""
    name = "penstock (listener)"
    port = 3128
    listens = True


class Sealed(Penstock):
    """From within a sandbox, by CONNECT."""
    name = "penstock (sealed)"

    def where(self, port):
        return ["connect:127.0.0.1:3128", "api.d%%.example:%d" % port]

    def load(self, argv):
        home = self.bench.lab.workdir("home", kit.USER)
        return self.bench.lab.host.popen(
            [self.bench.penstock, "run", "--quiet", "--policy", self.policy,
             "--plug", self.where_is() + "/plug.sock", "--"] +
            kit.pinned(1, [self.bench.load] + argv),
            uid=kit.USER, cwd=home, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.bench.errors,
            env={"PATH": "/usr/bin:/bin", "HOME": home})


class Transparent(Sealed):
    """From within a sandbox, by a program that knows of no proxy."""
    name = "penstock (transparent)"

    def where(self, port):
        return ["direct", "api.d%%.example:%d" % port]


ALL = (Sealed, Transparent, Listener)

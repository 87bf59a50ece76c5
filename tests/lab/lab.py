# SPDX-License-Identifier: Apache-2.0
"""lab.py - three namespaces and a little internet, for tests and the demo.

    internet  ---  host                 sandbox
    origins,       penstock, penstockd  made by `penstock run`
    DNS            /etc of its own

The two made here are joined by one veth pair and have no way out of the
machine.  The internet namespace owns every address (an AnyIP route), so that
whatever the host lets through arrives and is written down, also what should
never have left.  Everything ends with the process that made it: each helper
reads its standard input and stops at its end.

Needs root.  `python3 lab.py COMMAND...` runs a command in the lab's host.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import names

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"

# What the lab's internet is to a policy: documentation ranges are closed.
ADDRESSES = "203.0.113.0/24 2001:db8:3::/48"


class LabError(Exception):
    """The lab could not be built; the message says why."""


class Namespace:
    """A network and mount namespace that lives as long as this process."""

    def __init__(self, name):
        self.name = name
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", "--",
             "sh", "-c", "echo up; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.holder.stdout.readline() != b"up\n":
            raise LabError("cannot make the namespace '%s' (root is needed)" % name)
        self.pid = self.holder.pid

    def argv(self, args, uid=None, cwd="/"):
        enter = ["nsenter", "--target", str(self.pid), "--net", "--mount",
                 "--wd=" + cwd]
        if uid is not None:
            enter += ["setpriv", "--reuid", str(uid), "--regid", str(uid),
                      "--clear-groups", "--"]
        return enter + [str(a) for a in args]

    def popen(self, args, uid=None, cwd="/", **kwargs):
        return subprocess.Popen(self.argv(args, uid, cwd), **kwargs)

    def run(self, args, uid=None, cwd="/", timeout=60, **kwargs):
        return subprocess.run(self.argv(args, uid, cwd), timeout=timeout,
                              **kwargs)

    def sh(self, script):
        done = self.run(["sh", "-ec", script], capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError("%s: %s" % (self.name, done.stderr.strip()))
        return done.stdout

    def path(self, inside):
        """A file of this namespace's mounts, as seen from outside."""
        return "/proc/%d/root%s" % (self.pid, inside)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()


class Lab:
    def __init__(self, parent="/srv"):
        self.dir = tempfile.mkdtemp(prefix="penstock-lab-", dir=parent)
        os.chmod(self.dir, 0o755)
        self.helpers = []
        self.internet = Namespace("internet")
        self.host = Namespace("host")
        try:
            self._link()
            self._etc()
            self._certificates()
            self._servers()
        except BaseException:
            self.close()
            raise

    def _link(self):
        subprocess.run(
            self.internet.argv(
                ["ip", "link", "add", "up0", "type", "veth", "peer", "name",
                 "eth0", "netns", str(self.host.pid)]), check=True)
        self.internet.sh("""
            ip link set lo up
            ip addr add %(gate4)s/24 dev up0
            ip addr add %(gate6)s/64 dev up0 nodad
            ip addr add %(link)s/64 dev up0 nodad
            ip link set up0 up
            # Every address but the link's is this namespace's own.
            ip route add 198.51.100.0/24 dev up0 table local
            ip route add local default dev lo
            ip -6 route add 2001:db8:1::/64 dev up0 table local
            ip -6 route add local default dev lo
            sysctl -qw net.ipv4.conf.all.rp_filter=0 net.core.somaxconn=8192 \
                net.ipv6.ip_nonlocal_bind=1
            """ % {"gate4": names.GATE_V4, "gate6": names.GATE_V6,
                   "link": names.DNS_LINK})
        self.internet.sh("""
            nft -f - <<'RULES'
            table inet lab {
                chain in {
                    type filter hook input priority 0;
                    ip daddr %s tcp dport != 53 reject with tcp reset
                    ip6 daddr 2001:db8:3::11 meta l4proto tcp reject with tcp reset
                    ip daddr %s drop
                }
            }
RULES
            """ % (names.CLOSED_V4, names.SILENT_V4))
        self.host.sh("""
            ip link set lo up
            ip addr add %(host4)s/24 dev eth0
            ip addr add %(host6)s/64 dev eth0 nodad
            ip addr add fe80::2/64 dev eth0 nodad
            ip link set eth0 up
            ip route add default via %(gate4)s
            ip -6 route add default via %(gate6)s
            """ % {"host4": names.HOST_V4, "host6": names.HOST_V6,
                   "gate4": names.GATE_V4, "gate6": names.GATE_V6})

    def _etc(self):
        """An /etc of the host's own, to be changed without harm."""
        self.host.sh("""
            mount -t tmpfs -o mode=755 penstock-lab /mnt
            mkdir -p /mnt/etc/upper /mnt/etc/work /mnt/run
            mount -t overlay -o \
lowerdir=/etc,upperdir=/mnt/etc/upper,workdir=/mnt/etc/work overlay /etc
            mount -t tmpfs -o mode=755 penstock-lab /run
            rm -f /etc/resolv.conf
            """)
        self.set_resolv_conf("nameserver %s\n" % names.DNS_V4)

    def set_resolv_conf(self, text):
        """Replace the host's resolv.conf by rename, as tools do."""
        path = self.host.path("/etc/resolv.conf")
        with open(path + ".new", "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(path + ".new", 0o644)
        os.rename(path + ".new", path)

    def _certificates(self):
        def openssl(*args):
            subprocess.run(("openssl",) + args, check=True, cwd=self.dir,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt",
                "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "ca.key",
                "-out", "ca.pem", "-days", "30", "-subj", "/CN=Penstock lab CA",
                "-addext", "basicConstraints=critical,CA:TRUE",
                "-addext", "keyUsage=critical,keyCertSign")
        for name, alternatives in (
                ("origin", "DNS:*.example.com,DNS:*.example.net,"
                 "DNS:*.clients.example.com,IP:%s,IP:%s"
                 % (names.WEB_V4, names.WEB_V6)),
                ("dns", "DNS:%s,IP:%s,IP:%s"
                 % (names.DNS_NAME, names.DNS_V4, names.DNS_V6))):
            openssl("req", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                    name + ".key", "-out", name + ".csr", "-subj",
                    "/CN=lab " + name)
            with open("%s/%s.ext" % (self.dir, name), "w",
                      encoding="ascii") as ext:
                ext.write("basicConstraints=CA:FALSE\n"
                          "keyUsage=critical,digitalSignature\n"
                          "extendedKeyUsage=serverAuth\n"
                          "subjectAltName=%s\n" % alternatives)
            openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem",
                    "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                    "-extfile", name + ".ext", "-out", name + ".pem")
        os.chmod(self.dir + "/ca.pem", 0o644)
        self.ca = self.dir + "/ca.pem"

    def _serve(self, script, *args):
        helper = self.internet.popen(
            [PYTHON, "-B", os.path.join(HERE, script), *args], cwd=HERE,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.helpers.append(helper)
        if helper.stdout.readline() != b"ready\n":
            raise LabError("%s did not start" % script)

    def _servers(self):
        self.dns_log = self.dir + "/dns.log"
        self.origin_log = self.dir + "/origin.log"
        self._serve("dnsd.py", "--log", self.dns_log,
                    "--cert", self.dir + "/dns.pem",
                    "--key", self.dir + "/dns.key",
                    names.DNS_V4, names.DNS2_V4, names.DNS_V6,
                    names.DNS_LINK + "%up0")
        self.www = self.dir + "/www"       # served below /files/
        os.makedirs(self.www)
        self._serve("origin.py", "--log", self.origin_log, "--www", self.www,
                    "--cert", self.dir + "/origin.pem",
                    "--key", self.dir + "/origin.key")

    @staticmethod
    def _lines(path, skip):
        with open(path, encoding="ascii") as log:
            return [json.loads(line) for line in log.readlines()[skip:]]

    def dns_seen(self, skip=0):
        """Every question that left the host, in order."""
        return self._lines(self.dns_log, skip)

    def origin_seen(self, skip=0):
        """Every connection and request that arrived, in order."""
        return self._lines(self.origin_log, skip)

    def workdir(self, name, uid=None):
        """A directory that a sandboxed command may work in."""
        path = os.path.join(self.dir, name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o755)
        if uid is not None:
            os.chown(path, uid, uid)
        return path

    def close(self):
        for helper in self.helpers:
            helper.stdin.close()
        for helper in self.helpers:
            helper.wait()
            helper.stdout.close()
        self.host.close()
        self.internet.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: lab.py COMMAND [ARGUMENT...]   (in the lab's host)")
    lab = Lab()
    try:
        env = dict(os.environ, LAB_DIR=lab.dir, LAB_CA=lab.ca)
        sys.exit(lab.host.run(sys.argv[1:], timeout=None, env=env,
                              cwd=os.getcwd()).returncode)
    finally:
        lab.close()


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""wires.py - the lab as the measures of tunnels need it.

    clients 192.0.2.2-17 --- 192.0.2.1 host 198.51.100.2 --- internet
    load                     proxies, penstockd              origin, authority

Peers and listeners are reached over the wire from the clients; a sealed sandbox is in
the host, with its own loopback.  Every name has the origin's address, but for
those of the measure `policy`.  Who is measured has the first CPU for itself,
clients and servers share the second.
"""
import os
import subprocess

import kit
import names
from lab import Namespace

GATE = "192.0.2.1"
CLIENTS = "192.0.2.2+16"                # as load takes it
CLIENT_NET = "192.0.2.0/24"
ORIGIN = "203.0.113.10"
AUTHORITY = "203.0.113.77"
ECHO, BYTES, PLAIN, KEPT = 4007, 4019, 4080, 4081
NAMES = 1000                            # that are asked for, of each list

# label -> address: below TRAP_ZONE, which every list has.
TRAP_ZONE = "trap.example"
TRAPS = {"loop4": "127.0.0.1", "loop6": "::1", "mapped": "::ffff:127.0.0.1",
         "zero": "0.0.0.0", "meta": "169.254.169.254"}

# One origin and one outer address have 64 thousand ports.  Left alone, closed
# connections keep them for a minute, and who comes later pays for the search.
KNOBS = """
    ip link set lo up
    sysctl -qw net.ipv4.ip_local_port_range="1024 65535" \
        net.ipv4.tcp_tw_reuse=1 net.ipv4.tcp_max_tw_buckets=4096 \
        net.core.somaxconn=65535 net.ipv4.tcp_max_syn_backlog=65535 \
        net.ipv4.tcp_syncookies=0
"""


def listed(hosts):
    """The domains of a list of @hosts, and how far apart are those asked for."""
    return (["d%06d.example" % number for number in range(1, hosts + 1)] +
            [TRAP_ZONE], max(1, hosts // NAMES))


def on_cpu(cpu, namespace, argv, group=None, uid=None, **kwargs):
    """A program that has one processor, and ends if we are killed."""
    argv = ["setpriv", "--pdeathsig", "TERM", "--"] + kit.pinned(cpu, argv)
    if group:
        argv = group.argv(argv)
    kwargs.setdefault("stdin", subprocess.PIPE)
    kwargs.setdefault("stdout", subprocess.PIPE)
    return namespace.popen(argv, uid=uid, text=True, **kwargs)


class Wires:
    def __init__(self, bench):
        self.bench, self.lab = bench, bench.lab
        self.servers = []
        self.clients = Namespace("clients")
        try:
            self._link()
            self.servers.append(self._serve(
                [bench.origin, "0.0.0.0"], self.lab.internet))
            self.servers.append(self._serve(
                [bench.authority, AUTHORITY, ORIGIN] +
                ["%s=%s" % trap for trap in TRAPS.items()],
                self.lab.internet))
            self.lab.set_resolv_conf("nameserver %s\n" % AUTHORITY)
        except BaseException:
            self.close()
            raise

    def _link(self):
        subprocess.run(self.clients.argv(
            ["ip", "link", "add", "eth0", "type", "veth", "peer", "name",
             "lan0", "netns", str(self.lab.host.pid)]), check=True)
        for namespace in (self.clients, self.lab.host, self.lab.internet):
            namespace.sh(KNOBS)
        self.clients.sh("""
            for i in $(seq 2 17); do ip addr add 192.0.2.$i/24 dev eth0; done
            ip link set eth0 up
            ip route add default via %s
            """ % GATE)
        self.lab.host.sh("""
            ip addr add %s/24 dev lan0
            ip link set lan0 up
            sysctl -qw net.ipv4.ip_forward=1
            """ % GATE)
        self.lab.internet.sh(
            "ip route add %s via 198.51.100.2 table local" % CLIENT_NET)

    def _serve(self, argv, namespace):
        server = on_cpu(1, namespace, argv)
        if server.stdout.readline() != "ready\n":
            raise SystemExit("%s did not start" % os.path.basename(argv[0]))
        return server

    def trap(self):
        """Something that listens wherever the host itself is reached."""
        self.lab.host.sh("ip addr replace 169.254.169.254/32 dev lo")
        return self._serve([self.bench.origin, "[::]"], self.lab.host)

    def load(self, argv):
        """The load, among the clients."""
        return on_cpu(1, self.clients,
                      [self.bench.load] + argv + ["-f", CLIENTS],
                      stderr=self.bench.errors)

    def load_in_host(self, argv):
        """The load, beside the proxy and over loopback."""
        return on_cpu(1, self.lab.host, [self.bench.load] + argv,
                      stderr=self.bench.errors)

    def pids(self):
        return [server.pid for server in self.servers]

    def close(self):
        """The lab is as it was, for the next measure."""
        for server in self.servers:
            kit.end(server)
        self.lab.set_resolv_conf("nameserver %s\n" % names.DNS_V4)
        self.lab.host.sh("""
            sysctl -qw net.ipv4.ip_forward=0
            ip addr flush to 169.254.169.254/32 dev lo
            ip link del lan0 2>/dev/null || true
            """)
        self.lab.internet.sh("ip route del %s table local || true" % CLIENT_NET)
        self.clients.close()

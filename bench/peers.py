# SPDX-License-Identifier: Apache-2.0
"""peers.py - the programs beside which Penstock's tunnels are measured.

All are there with one thread or worker, without a log and without a cache of
content, with time and room enough for what is asked of them, and with a list
of what is allowed wherever they have one for tunnels.  What forwards to one
fixed place (forward, haproxy, nginx) judges and resolves nothing: a limit, not
a peer.
"""
import os
import re
import resource
import subprocess
import time

import kit
import wires
from wires import BYTES, ECHO, GATE, KEPT, ORIGIN

START_S = 40                    # to read a list and listen
DESCRIPTORS = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
CONNECTIONS = max(1000, (DESCRIPTORS - 2000) // 2)


class Direct:
    """No proxy at all: the kernel forwards between clients and origin, which
    share a core."""
    name = "direct"
    needs = ()                  # programs
    package = ""
    judges = False              # has a list of names
    plain = True                # takes requests that are no tunnels
    is_process = False

    def __init__(self, wire):
        self.wire, self.bench = wire, wire.bench
        self.process = None
        self.step = 1

    def slug(self):
        """The name, for files."""
        return re.sub("[^a-z]+", "-", self.name).strip("-")

    def where(self, port):
        """HOW and TARGET of the load."""
        return ["direct", "%s:%d" % (ORIGIN, port)]

    def client(self, mode, port, options, target=None):
        how, usual = self.where(port)
        argv = [mode, how, target or usual]
        if "%" in usual and not target:
            argv += ["-d", "%dx%d" % (wires.NAMES, self.step)]
        return self.load(argv + [str(option) for option in options])

    def load(self, argv):
        return self.wire.load(argv)

    def start(self, hosts, group=None):
        pass

    def pids(self):
        return kit.below(self.process.pid) if self.process else []

    def stop(self):
        if self.process:
            kit.end(self.process)
            self.process = None

    def version(self):
        return ""

    def is_there(self):
        return all(map(os.path.exists, self.needs))


class Peer(Direct):
    """A program that listens on the host's side of the clients' wire."""
    is_process = True
    port = 0

    def where(self, port):
        return ["connect:%s:%d" % (GATE, self.port), "api.d%%.example:%d" % port]

    def file(self, name, text):
        directory = self.bench.lab.workdir("peers/" + self.slug())
        os.chmod(directory, 0o777)
        path = directory + "/" + name
        with open(path, "w", encoding="ascii") as out:
            out.write(text)
        os.chmod(path, 0o644)
        return path

    def argv(self, domains):
        """The command, with its configuration written; @domains are allowed."""
        raise NotImplementedError

    def start(self, hosts, group=None):
        domains, self.step = wires.listed(hosts)
        self.process = wires.on_cpu(
            0, self.bench.lab.host, self.argv(domains), group,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait()

    def wait(self):
        """Until a tunnel (for a forwarder: a connection) carries an echo."""
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            if self.carries():
                return
            time.sleep(0.05)
        self.stop()
        raise SystemExit("%s did not start" % self.name)

    def carries(self, target=None):
        """Does a tunnel to @target, or to what is listed, echo?"""
        client = self.client("tunnels", ECHO, ["-n", 1, "-s", 5], target)
        try:
            client.stdin.write("\n")
            client.stdin.close()
        except BrokenPipeError:         # it never began
            pass
        said = client.stdout.read()
        client.wait()
        client.stdout.close()
        return '"done":1,' in said

    def version(self):
        done = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", self.package.split()[0]],
            capture_output=True, text=True)
        return done.stdout


class Forward(Peer):
    """Ours: accept, connect, splice."""
    name = "forward"
    base = 5000
    at = GATE
    plain = False

    def where(self, port):
        return ["to:%s:%d" % (self.at, self.base + port - 4000),
                "api.d1.example:1"]

    def doors(self):
        return [("%s:%d" % (self.at, self.base + port - 4000),
                 "%s:%d" % (ORIGIN, port)) for port in (ECHO, BYTES, KEPT)]

    def argv(self, domains):
        return [self.bench.forward] + ["=".join(door) for door in self.doors()]

    def version(self):
        return ""


class ForwardLoopback(Forward):
    """For programs on its own host: the limit of a sealed sandbox, which has its
    proxy on its loopback."""
    name = "forward (loopback)"
    base = 5000
    at = "127.0.0.1"

    def load(self, argv):
        return self.wire.load_in_host(argv)


class Haproxy(Forward):
    """With its own choice, which is to copy 16 KB at a time."""
    name = "haproxy"
    needs = ("/usr/sbin/haproxy",)
    package = "haproxy"
    base = 5100
    splice = " option splice-auto\n"
    version = Peer.version

    def argv(self, domains):
        text = ("global\n nbthread 1\n maxconn %d\n maxpipes 300\n"
                "defaults\n mode tcp\n timeout connect 10s\n"
                " timeout client 1h\n timeout server 1h\n maxconn %d\n%s"
                % (CONNECTIONS, CONNECTIONS, self.splice))
        for number, door in enumerate(self.doors()):
            text += ("listen p%d\n bind %s backlog 65535\n server o %s\n"
                     % (number, *door))
        return [self.needs[0], "-db", "-f", self.file("haproxy.cfg", text)]


class HaproxySplice(Haproxy):
    name = "haproxy (splice)"
    base = 5200
    splice = " option splice-request\n option splice-response\n"


class Nginx(Forward):
    name = "nginx (stream)"
    needs = ("/usr/sbin/nginx", "/usr/lib/nginx/modules/ngx_stream_module.so")
    package = "nginx-light libnginx-mod-stream"
    base = 5300
    version = Peer.version

    def argv(self, domains):
        directory = os.path.dirname(self.file("none", ""))
        text = ("load_module %s;\nuser root;\nworker_processes 1;\ndaemon off;\n"
                "pid %s/pid;\nerror_log /dev/null crit;\n"
                "events { worker_connections %d; }\n"
                "stream { proxy_timeout 1h; tcp_nodelay on;\n"
                % (self.needs[1], directory, DESCRIPTORS - 100))
        for at, to in self.doors():
            text += ("server { listen %s backlog=65535; proxy_pass %s; }\n"
                     % (at, to))
        return [self.needs[0], "-c", self.file("nginx.conf", text + "}\n")]


class Squid(Peer):
    name = "squid"
    needs = ("/usr/sbin/squid",)
    package = "squid"
    judges = True
    port = 3130
    more = ""

    def argv(self, domains):
        allowed = self.file("allowed", "".join(
            ".%s\n" % domain for domain in domains))
        return [self.needs[0], "-N", "-f", self.file("squid.conf", (
            "http_port %s:%d\nacl allowed dstdomain \"%s\"\n%s"
            "http_access allow allowed\nhttp_access deny all\n"
            "cache deny all\naccess_log none\ncache_log /dev/null\n"
            "cache_store_log none\npid_filename none\npinger_enable off\n"
            "via off\nforwarded_for delete\nmax_filedescriptors %d\n"
            "cache_effective_user proxy\nshutdown_lifetime 0 seconds\n"
            "visible_hostname bench\ndns_nameservers %s\n"
            % (GATE, self.port, allowed, self.more, DESCRIPTORS,
               wires.AUTHORITY)))]


class SquidAddresses(Squid):
    """With the addresses refused, too, that a name should not lead to."""
    name = "squid (acl dst)"    # of the measure policy alone
    port = 3131
    more = ("acl inside dst 0.0.0.0/8 127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 "
            "192.168.0.0/16 169.254.0.0/16 100.64.0.0/10 ::1 "
            "fc00::/7 fe80::/10\nhttp_access deny inside\n")


class Tinyproxy(Peer):
    name = "tinyproxy"
    needs = ("/usr/bin/tinyproxy",)
    package = "tinyproxy"
    judges = True
    port = 3140

    def argv(self, domains):
        allowed = self.file("allowed", "".join(
            "(^|\\.)%s$\n" % domain.replace(".", "\\.") for domain in domains))
        return [self.needs[0], "-d", "-c", self.file("tinyproxy.conf", (
            "User root\nGroup root\nPort %d\nListen %s\nTimeout 3600\n"
            "MaxClients %d\nLogLevel Critical\nLogFile \"/dev/null\"\n"
            "Filter \"%s\"\nFilterExtended On\nFilterDefaultDeny Yes\n"
            % (self.port, GATE, CONNECTIONS, allowed)))]


class Trafficserver(Peer):
    """Its lists (remap rules) are about plain requests and not about tunnels."""
    name = "trafficserver"
    needs = ("/usr/bin/traffic_server",)
    package = "trafficserver"
    port = 3150
    records = """\
CONFIG proxy.config.http.server_ports STRING %(port)d:ip-in=%(at)s
CONFIG proxy.config.http.connect_ports STRING *
CONFIG proxy.config.url_remap.remap_required INT 0
CONFIG proxy.config.reverse_proxy.enabled INT 0
CONFIG proxy.config.http.cache.http INT 0
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.task_threads INT 1
CONFIG proxy.config.accept_threads INT 0
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.net.connections_throttle INT 100000
CONFIG proxy.config.net.max_connections_in INT 100000
CONFIG proxy.config.net.listen_backlog INT 65535
CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 3600
CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 3600
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 3600
CONFIG proxy.config.http.insert_response_via_str INT 0
CONFIG proxy.config.http.insert_request_via_str INT 0
CONFIG proxy.config.dns.resolv_conf STRING /etc/resolv.conf
"""

    def argv(self, domains):
        self.file("records.config",
                  self.records % {"port": self.port, "at": GATE})
        self.file("ip_allow.yaml",
                  "ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n"
                  "    action: allow\n    methods: ALL\n")
        for name in ("storage.config", "remap.config", "plugin.config"):
            self.file(name, "")
        where = os.path.dirname(self.file("none", ""))
        for name in ("run", "log", "cache"):
            os.makedirs("%s/%s" % (where, name), exist_ok=True)
        runroot = self.file("runroot.yaml", (
            "prefix: %(d)s\nexec_prefix: /usr\nbindir: /usr/bin\n"
            "sbindir: /usr/sbin\nsysconfdir: %(d)s\n"
            "datadir: /usr/share/trafficserver\n"
            "libdir: /usr/lib/trafficserver\n"
            "libexecdir: /usr/lib/trafficserver/modules\n"
            "localstatedir: %(d)s/run\nruntimedir: %(d)s/run\n"
            "logdir: %(d)s/log\ncachedir: %(d)s/cache\n" % {"d": where}))
        return [self.needs[0], "--run-root=" + runroot]


LIMITS = (Direct, Forward, ForwardLoopback, Haproxy, HaproxySplice, Nginx)
PROXIES = (Trafficserver, Squid, Tinyproxy)

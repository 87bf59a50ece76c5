# SPDX-License-Identifier: Apache-2.0
"""docs/clients.md: which clients take which way in, as measured here.

Each client runs once a way, all of them at once in one sandbox, and asks for a name
of its own, one that speaks HTTP for another by http:// as well: then the records say
which way it took, whatever it says itself.
The table is made of that, and must be the one in the manual:

    PENSTOCK_WRITE_CLIENTS=1 sudo -E make e2e       writes it anew
"""
import difflib
import json
import os
import shutil

import pytest

from conftest import ADDRESSES, TESTS, build_dir
from test_clients import mirror, repository     # noqa: F401 (fixtures)

DOC = os.path.join(os.path.dirname(TESTS), "docs/clients.md")
HEAD = ["| client | HTTP proxy | SOCKS proxy | no proxy |", "|---|---|---|---|"]

POLICY = """\
[policy]
name = lab
[allow web]
hosts     = *.clients.example.com
addresses = %s
reason    = the lab's origins
owner     = tests
[allow tcp]
hosts     = nc.clients.example.com socat.clients.example.com
hosts     = ncat.clients.example.com redis.clients.example.com
hosts     = ssh.clients.example.com
ports     = 7 22
protocol  = tcp
addresses = %s
reason    = the lab's origins
owner     = tests
""" % (ADDRESSES, ADDRESSES)

# way -> options of `penstock run`, and how its flows came in.
WAYS = {
    "http": ([], {"connect", "forward"}),
    "socks": (["--socks", "--no-proxy-env"], {"socks"}),
    "none": (["--no-proxy-env"], {"transparent"}),
}

PYTHON, H, S = "/usr/bin/python3", "127.0.0.1:3128", "127.0.0.1:1080"
GET = "lab GET /t host={host}\n"
PING = "ping ping"
APT = """
d=$(mktemp -d); mkdir -p $d/lists/partial $d/cache/archives/partial $d/etc
echo "deb [trusted=yes] http://{host}/files/debian ./" > $d/etc/sources.list
apt-get -qq -o Dir::State=$d -o Dir::State::lists=$d/lists \
    -o Dir::State::status=/dev/null -o Dir::Cache=$d/cache -o Dir::Etc=$d/etc \
    -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::parts=/dev/null \
    -o Dir::Etc::main=/dev/null -o Acquire::Retries=0 \
    -o Acquire::Languages=none -o Acquire::AllowInsecureRepositories=true \
    -o Acquire::GzipIndexes=false {opt} update && grep -h ^Package: $d/lists/*Packages
"""
TLS = ("printf 'GET /t HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n' |"
       " openssl s_client -quiet -verify_return_error -CAfile {ca} {opt}"
       " -connect {host}:443 -servername {host}")
SSH = ("ssh -v -o BatchMode=yes -o ConnectTimeout=50 {opt} git@{host} true"
       " </dev/null; :")
NODE = "env -u NODE_USE_ENV_PROXY node -e \"%s\""


class Client:
    """@command: for the shell; {opt} stands for what @http and @socks add, {plain}
    for a URL of http, {plainopt} for what is added to that.

    An addition is what to add, or a pair of what to show of it and that.
    @plain_http: that of http://, where it is another.
    """

    def __init__(self, name, title, command, *, want=GET, http=None, socks=None,
                 none="", plain_http=None):
        self.name, self.title, self.want = name, title, want
        self.command = command
        self.host = name + ".clients.example.com"
        self.plain_host = None
        if "{plain" in command:
            self.plain_host = name + "-plain.clients.example.com"
        self.added = {"http": http, "socks": socks, "none": none}
        self.plain_added = {**self.added, "http": plain_http or http}

    def add(self, way, plain=False):
        """(what is shown, what is added)"""
        added = (self.plain_added if plain else self.added)[way]
        if isinstance(added, tuple):
            return added
        return added or "", added or self.added["none"]

    def shell(self, way, **values):
        command = self.command.replace("{opt}", self.add(way)[1]).replace(
            "{plainopt}", self.add(way, True)[1])
        values.update(url="https://%s/t" % self.host, host=self.host,
                      plain="http://%s/t" % self.plain_host,
                      plainhost=self.plain_host or "")
        for key, value in values.items():
            command = command.replace("{%s}" % key, value)
        return command


CLIENTS = [
    Client("curl", "curl", "curl -sS {url} {plain}"),
    Client("wget", "wget", "wget -qO- --ca-certificate={ca} {url} {plain}"),
    Client("git", "git", "for u in https://{host} http://{plainhost}; do "
           "git ls-remote $u/files/r.git | while read id ref; do echo $u $ref; done;"
           " done", want="//{host} refs/heads/main\n"),
    Client("apt", "apt-get (http)", APT, want="penstock-lab-demo",
           socks=("`Acquire::http::Proxy`",
                  "-o Acquire::http::Proxy=socks5h://" + S)),
    Client("aria2", "aria2", "d=$(mktemp -d); aria2c -q --ca-certificate={ca} "
           "-d $d -Z {url} {plain} && cat $d/*"),
    Client("urllib", "Python urllib", PYTHON + " -c \"import urllib.request as u;"
           "[print(u.urlopen(x).read().decode()) for x in ('{url}', '{plain}')]\""),
    Client("requests", "Python requests (with PySocks)", PYTHON + " -c \"import "
           "requests;[print(requests.get(x).text) for x in ('{url}', '{plain}')]\""),
    Client("httpx", "Python httpx (without socksio)", PYTHON + " -c \"import "
           "httpx;[print(httpx.get(x).text) for x in ('{url}', '{plain}')]\""),
    Client("aiohttp", "Python aiohttp", PYTHON + """ -c "
import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession({opt}) as s:
        for x in ('{url}', '{plain}'):
            async with s.get(x) as r:
                print(await r.text())
asyncio.run(main())"
""", http=("`trust_env=True`", "trust_env=True"),
           socks=("", "trust_env=True")),
    Client("fetch", "Node fetch (NODE_USE_ENV_PROXY not set)", NODE %
           "for (const u of ['{url}', '{plain}'])"
           " fetch(u).then(r => r.text()).then(console.log)"),
    Client("https", "Node http, https (the same)", NODE %
           "require('https').get('{url}', r => r.pipe(process.stdout));"
           "require('http').get('{plain}', r => r.pipe(process.stdout))"),
    Client("lwp", "Perl LWP", "PERL_LWP_SSL_CA_FILE={ca} perl -MLWP::UserAgent -e "
           "\"print LWP::UserAgent->new({opt})->get(\\$_)->content"
           " for '{url}', '{plain}'\"",
           http=("`env_proxy => 1`", "env_proxy => 1"),
           socks=("", "env_proxy => 1")),
    Client("tiny", "Perl HTTP::Tiny", "perl -MHTTP::Tiny -e "
           "\"print HTTP::Tiny->new->get(\\$_)->{content} for '{url}', '{plain}'\""),
    Client("ruby", "Ruby net/http", "ruby -rnet/http -e "
           "\"%w[{url} {plain}].each { |u| puts Net::HTTP.get(URI(u)) }\""),
    Client("phpcurl", "PHP curl", "php -d curl.cainfo={ca} -r "
           "\"curl_exec(curl_init('{url}')); curl_exec(curl_init('{plain}'));\""),
    Client("php", "PHP streams", "php -d openssl.cafile={ca} -r "
           "\"echo file_get_contents('{url}', false, "
           "stream_context_create(['http' => [{opt}]])),"
           "file_get_contents('{plain}', false, "
           "stream_context_create(['http' => [{plainopt}]]));\"",
           http=("`proxy` of the context", "'proxy' => 'tcp://%s'" % H),
           plain_http=("`proxy` and `request_fulluri`",
                       "'proxy' => 'tcp://%s', 'request_fulluri' => true" % H)),
    Client("w3m", "w3m", "w3m -o ssl_ca_file={ca} -dump_source {url};"
           " w3m -dump_source {plain}"),
    Client("lynx", "lynx", "lynx -source {url}; lynx -source {plain}"),
    Client("openssl", "openssl s_client", TLS,
           http=("`-proxy`", "-proxy " + H)),
    Client("ssh", "ssh", SSH, want="remote software version lab",
           http=("`penstock connect`",
                 "-o ProxyCommand='{penstock} connect %h %p'"),
           socks=("`penstock connect`",
                  "-o ProxyCommand='{penstock} connect %h %p'")),
    Client("nc", "nc (OpenBSD)", "echo ping ping | nc.openbsd -N {opt} {host} 7",
           want=PING, http=("`-X connect`", "-X connect -x " + H),
           socks=("`-X 5`", "-X 5 -x " + S)),
    Client("socat", "socat", "echo ping ping | socat -t 50 - {opt}", want=PING,
           http=("`PROXY:`", "PROXY:127.0.0.1:{host}:7,proxyport=3128"),
           socks=("`SOCKS4A:`", "SOCKS4A:127.0.0.1:{host}:7,socksport=1080"),
           none="TCP:{host}:7"),
    Client("ncat", "ncat", "echo ping ping | ncat {opt} {host} 7", want=PING,
           http=("`--proxy`", "--proxy-type http --proxy " + H),
           socks=("`--proxy`", "--proxy-type socks5 --proxy " + S)),
    Client("redis", "redis-cli", "redis-cli -h {host} -p 7 ECHO 'ping ping'",
           want=PING),
]

# Runs each of {name: command}, all at once: {name: what it said}.
DRIVER = r"""
import json, subprocess, sys, tempfile
running = {}
for name, command in json.load(sys.stdin).items():
    said = tempfile.TemporaryFile("w+", errors="replace")
    running[name] = said, subprocess.Popen(
        ["timeout", "--verbose", "55", "sh", "-c", command], stdin=subprocess.DEVNULL,
        stdout=said, stderr=subprocess.STDOUT)
for name, (said, process) in running.items():
    process.wait()
    said.seek(0)
    running[name] = said.read()
json.dump(running, sys.stdout)
"""


def measure(penstock, way):
    """{client's name: what it said}, {host: how its flows came in}"""
    commands = {c.name: c.shell(way, ca=penstock.lab.ca,
                                penstock=penstock.program) for c in CLIENTS}
    got = penstock.run(PYTHON, "-c", DRIVER, stdin=json.dumps(commands),
                       options=WAYS[way][0], policy=POLICY, timeout=120)
    assert got.code == 0, got.err
    flows = {}
    for flow in got.flows(ev="flow_open"):
        flows.setdefault(flow["host"], set()).add(flow["via"])
    return json.loads(got.out), flows


def way_of(client, way, host, shown, got):
    said, flows = got[way]
    if client.want.replace("{host}", host) not in said[client.name]:
        return "fails"
    via = flows[host]
    if via == {"transparent"}:
        return "yes" if way == "none" else "-"
    assert via <= WAYS[way][1], (host, way, via)
    return shown or "yes"


def cell(client, way, got):
    """What it does, by https first where http is not the same."""
    shown = way_of(client, way, client.host, client.add(way)[0], got)
    if not client.plain_host:
        return shown
    plain = way_of(client, way, client.plain_host, client.add(way, True)[0], got)
    return shown if plain == shown else "%s; http: %s" % (shown, plain)


def in_manual():
    with open(DOC, encoding="ascii") as page:
        lines = page.read().splitlines()
    at = lines.index(HEAD[0])
    end = next(i for i in range(at, len(lines)) if not lines[i].startswith("|"))
    return lines, at, end


def test_the_table_of_clients_is_what_they_do(as_user, repository,  # noqa: F811
                                              mirror):              # noqa: F811
    # SOCKS-04, CLI-01, CLI-07, CLI-14, TUN-14
    missing = [p for p in ("socat", "ncat", "aria2c", "ruby", "php", "redis-cli",
                           "node", "w3m", "lynx") if not shutil.which(p)]
    if missing:
        pytest.skip("not installed: %s (see client_packages in scripts/lib.sh)"
                    % " ".join(missing))
    got = {way: measure(as_user, way) for way in WAYS}
    table = HEAD + ["| %s | %s |" % (c.title, " | ".join(
        cell(c, way, got) for way in WAYS)) for c in CLIENTS]
    out = os.path.join(build_dir(), "tests/e2e")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "clients.txt"), "w", encoding="ascii") as page:
        page.write("\n".join(table) + "\n")
    lines, at, end = in_manual()
    if os.environ.get("PENSTOCK_WRITE_CLIENTS"):
        lines[at:end] = table
        with open(DOC, "w", encoding="ascii") as page:
            page.write("\n".join(lines) + "\n")
        return
    wrong = {(c.name, way): got[way][0][c.name] for way in WAYS for c in CLIENTS
             if "fails" in cell(c, way, got)}
    assert table == lines[at:end], "\n".join(
        list(difflib.unified_diff(lines[at:end], table, "docs/clients.md",
                                  "measured", lineterm="")) +
        ["%s: %s" % pair for pair in wrong.items()])
    # Without a proxy nothing fails, and nothing needs to be told.
    assert all(row.endswith("| yes |") for row in table[2:])

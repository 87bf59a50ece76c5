# SPDX-License-Identifier: Apache-2.0
"""penstock connect: through the proxy on standard input and output."""
from conftest import ADDRESSES

POLICY = """\
[policy]
name = lab
[allow echo]
hosts     = web.example.com
ports     = 7 11
protocol  = tcp
addresses = %s
reason    = the lab's origin
owner     = tests
[allow ssh]
hosts     = git.example.com
ports     = 22
protocol  = ssh
addresses = %s
reason    = the lab's origin
owner     = tests
""" % (ADDRESSES, ADDRESSES)

# Each command's output and exit code, under a name.
SCRIPT = r"""
p=%s
try() { name=$1; shift; echo "[$name]"; "$@" 2>&1; echo "exit $?"; }
banner() {
    ssh -v -o BatchMode=yes -o ConnectTimeout=20 -o ProxyCommand="$*" \
        git@git.example.com true 2>&1 </dev/null | grep 'remote software version'
}
half() { head -c 300000 /dev/zero | "$@" | wc -c; }
try http     banner $p connect %%h %%p
try socks    banner $p connect --proxy socks5h://127.0.0.1:1080 %%h %%p
try bulk     half $p connect web.example.com 7
try login    half $p connect --proxy socks5://u:p@127.0.0.1:1080 web.example.com 7
try service  half $p connect web.example.com echo
try own      env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY \
             $p connect web.example.com 7 </dev/null
try refused  $p connect forbidden.example.net 22
try literal  $p connect --proxy socks5h://127.0.0.1:1080 ::1 22
try outage   $p connect web.example.com 11
try missing  $p connect --proxy http://127.0.0.1:9 web.example.com 7
try usage    $p connect web.example.com:7
"""


def test_ssh_and_others_through_it_with_words_for_each_failure(as_user):
    # CLI-14, TUN-10: by HTTP and by SOCKS, with exact half-closes.
    got = as_user.sh(SCRIPT % as_user.program, policy=POLICY)
    said = {part.split("]")[0]: part.split("]\n")[1].rstrip("\n")
            for part in got.out.split("\n[")}
    said["http"] = said.pop("[http")
    for way in ("http", "socks"):
        assert "remote software version lab" in said[way], said[way]
    for way in ("bulk", "login", "service"):
        assert said[way] == "300000\nexit 0", said[way]
    assert said["own"] == "exit 0", said["own"]
    assert said["refused"].splitlines() == [
        "penstock connect: forbidden.example.net:22 refused: host_not_allowed",
        "  forbidden.example.net:22 is not in this sandbox's policy 'lab'.",
        "  Ask the operator for: host forbidden.example.net port 22, with a "
        "reason.", "exit 1"]
    assert said["literal"].startswith(
        "penstock connect: [::1]:22 refused: the policy does not allow it\n")
    assert said["literal"].endswith("exit 1")
    assert said["outage"].splitlines()[0] == \
        "penstock connect: web.example.com:11 failed: connect_refused"
    assert said["outage"].endswith("exit 125")
    assert said["missing"].splitlines() == [
        "penstock connect: web.example.com:7 failed: no proxy at 127.0.0.1:9",
        "  Connection refused", "exit 125"]
    assert said["usage"].endswith("exit 2")
    assert {r["via"] for r in got.flows(ev="flow_open")} == {"connect", "socks"}
    assert {(r["host"], r["dst_port"]) for r in got.flows(ev="flow_open")} == {
        ("git.example.com", 22), ("web.example.com", 7),
        ("web.example.com", 11)}

# SPDX-License-Identifier: Apache-2.0
"""Real clients, unmodified, with the proxy variables and without (CLI-01)."""
import os
import shutil
import subprocess

import pytest

from conftest import POLICY, USER, Penstock

WAYS = pytest.mark.parametrize("options", [[], ["--no-proxy-env"]],
                               ids=["proxy-variables", "transparent"])


def need(program):
    if not shutil.which(program):
        pytest.skip("%s is not installed" % program)


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_curl(as_user, options, scheme):
    got = as_user.curl(scheme + "://web.example.com/c", options=options)
    assert got.out == "lab GET /c host=web.example.com\n", got.err


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_wget(as_user, lab, options, scheme):
    need("wget")
    got = as_user.run("wget", "-q", "-O", "-", "--ca-certificate=" + lab.ca,
                      scheme + "://web.example.com/w", options=options)
    assert got.out == "lab GET /w host=web.example.com\n", got.err


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_python_urllib(as_user, options, scheme):
    got = as_user.python(
        "import urllib.request as u;"
        "print(u.urlopen('%s://web.example.com/p').read().decode(), end='')"
        % scheme, options=options)
    assert got.out == "lab GET /p host=web.example.com\n", got.err


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_node_fetch(as_user, options, scheme):
    # CLI-02: Node 18 and 20 ignore the proxy variables.
    need("node")
    got = as_user.run(
        shutil.which("node"), "-e",
        "fetch('%s://web.example.com/n').then(r => r.text())"
        ".then(t => process.stdout.write(t))" % scheme, options=options)
    assert got.out == "lab GET /n host=web.example.com\n", got.err


@WAYS
def test_openssl_s_client(as_user, lab, options):
    way = "-proxy 127.0.0.1:3128 " if not options else ""
    got = as_user.sh(
        "printf 'GET /o HTTP/1.1\\r\\nHost: web.example.com\\r\\nConnection: "
        "close\\r\\n\\r\\n' | openssl s_client -quiet -verify_return_error "
        "-CAfile %s %s-connect web.example.com:443 "
        "-servername web.example.com 2>/dev/null" % (lab.ca, way),
        options=options)
    assert "lab GET /o host=web.example.com" in got.out, got.out


@pytest.fixture(scope="module")
def repository(lab):
    """A bare repository with one commit, served as plain files."""
    need("git")
    bare = lab.www + "/r.git"
    if os.path.exists(bare):  # the table of clients has it, too
        return "https://git.example.com/files/r.git"
    subprocess.run(["sh", "-ec", """
        git init -q --bare "$0"
        git -c safe.directory='*' -C "$0" symbolic-ref HEAD refs/heads/main
        work=$(mktemp -d)
        git init -q -b main "$work"
        echo hello > "$work/file"
        git -C "$work" add file
        git -C "$work" -c user.name=lab -c user.email=lab@example.com \
            commit -q -m first
        git -C "$work" push -q "$0" main
        git -C "$0" update-server-info
        rm -rf "$work"
        """, bare], check=True)
    return "https://git.example.com/files/r.git"


@WAYS
def test_git_clones_over_https(as_user, repository, options):
    got = as_user.sh("rm -rf clone; git clone -q %s clone && cat clone/file"
                     % repository, options=options)
    assert got.out == "hello\n", got.err


def test_ssh_needs_no_helper(as_user):
    # CLI-14, CLI-27: a name of git's or ssh's own, on a port that is allowed.
    need("ssh")
    got = as_user.sh("ssh -v -o BatchMode=yes -o ConnectTimeout=20 "
                     "git@git.example.com true 2>&1 </dev/null | "
                     "grep 'remote software version'; ! getent hosts "
                     "ssh.example.net", policy=POLICY + """
[allow ssh]
hosts     = git.example.com
ports     = 22
protocol  = ssh
addresses = 203.0.113.0/24
reason    = the lab's origin
owner     = tests
""")
    assert "remote software version lab" in got.out, got.out + got.err
    assert got.code == 0
    assert {r["dst_port"] for r in got.flows(ev="flow_open")} == {22}


@WAYS
def test_getent_and_dig(as_user, options):
    got = as_user.sh("getent hosts web.example.com; "
                     "dig +short web.example.com", options=options)
    assert len(got.out.split()) == 3, got.out


def test_a_redirect_chain_and_many_small_requests_with_curl(as_user):
    # CLI-30
    got = as_user.sh("curl -sS -o /dev/null -w '%{http_code} ' "
                     "'http://web.example.com/{a,204,304,b}'")
    assert got.out.split() == ["200", "204", "304", "200"]


APT = """
    rm -rf apt; mkdir -p apt/lists/partial apt/cache/archives/partial apt/etc
    echo 'deb [trusted=yes] http://web.example.com/files/debian ./' \
        > apt/etc/sources.list
    apt="apt-get -o Dir::State=$PWD/apt -o Dir::State::lists=$PWD/apt/lists
        -o Dir::State::status=/dev/null -o Dir::Cache=$PWD/apt/cache
        -o Dir::Etc=$PWD/apt/etc -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::parts=/dev/null -o Dir::Etc::main=/dev/null
        -o Acquire::Retries=0 -o Acquire::Languages=none
        -o Acquire::AllowInsecureRepositories=true"
    $apt -q update 2>&1 && cd apt && $apt -q download penstock-lab-demo 2>&1
    ls *.deb; cat /etc/apt/sources.list.d/* >/dev/null 2>&1; true
"""


@pytest.fixture(scope="module")
def mirror(lab):
    """A flat repository with one package."""
    need("apt-get")
    subprocess.run(["sh", "-ec", """
        mkdir -p "$0/tree/DEBIAN"
        printf 'Package: penstock-lab-demo\nVersion: 1\nArchitecture: all\n%s' \
            'Maintainer: lab <lab@example.com>
Description: nothing at all
' > "$0/tree/DEBIAN/control"
        dpkg-deb -b "$0/tree" "$0/demo_1_all.deb" >/dev/null
        cd "$0"
        {
            cat tree/DEBIAN/control
            echo "Filename: ./demo_1_all.deb"
            echo "Size: $(stat -c %s demo_1_all.deb)"
            echo "SHA256: $(sha256sum demo_1_all.deb | cut -d' ' -f1)"
        } > Packages
        """, lab.www + "/debian"], check=True)


@WAYS
def test_apt_reads_a_mirror_as_an_ordinary_user(as_user, mirror, options):
    got = as_user.sh(APT, options=options)
    assert "penstock-lab-demo" in got.out and ".deb" in got.out, got.out


@WAYS
def test_apt_reads_a_mirror_as_mapped_root(as_root, mirror, options):
    # With a mapped range apt can drop to its own user, as it does outside.
    got = as_root.sh("cd /tmp;" + APT, options=options + ["--map-root"])
    assert "penstock-lab-demo" in got.out and ".deb" in got.out, got.out


def test_inherited_proxy_variables_of_the_host_are_not_followed(lab):
    # CLI-05, SBX-29
    user = Penstock(lab, USER)
    got = user.sh("env | grep -i proxy | sort; curl -sS http://web.example.com/",
                  env={"http_proxy": "http://192.0.2.9:3128",
                       "HTTPS_PROXY": "http://192.0.2.9:3128",
                       "NO_PROXY": ".example.com,10.0.0.0/8",
                       "ALL_PROXY": "socks5://192.0.2.9:1080"})
    assert "192.0.2.9" not in got.out
    assert "NO_PROXY=localhost,127.0.0.1,::1\n" in got.out      # CLI-04
    assert "ALL_PROXY" not in got.out                           # CLI-07
    assert got.out.endswith("lab GET / host=web.example.com\n")

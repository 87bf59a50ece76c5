# SPDX-License-Identifier: Apache-2.0
"""Each preset opens the names that it lists, and no neighbour of theirs.

The lab's origins have documentation addresses, which no preset opens: a name
that passes is refused for its address, after it was resolved, and any other
name for itself.
"""
import glob
import os

import names
import pytest

HOSTS = names.preset_hosts()


@pytest.fixture
def lab_mirrors(lab):
    """apt's sources in the lab's own /etc name a mirror of the lab."""
    where = lab.host.path("/etc/apt")
    kept = {}
    for path in [where + "/sources.list"] + \
            glob.glob(where + "/sources.list.d/*"):
        if os.path.isfile(path):
            with open(path, "rb") as text:
                kept[path] = text.read()
            os.unlink(path)
    with open(where + "/sources.list", "w", encoding="ascii") as out:
        out.write("# deb https://old.example.com/debian stable main\n"
                  "deb [arch=amd64] https://mirror.example.com/debian stable "
                  "main\n")
    yield "mirror.example.com"
    os.unlink(where + "/sources.list")
    for path, text in kept.items():
        with open(path, "wb") as out:
            out.write(text)


def refusals(penstock, preset, hosts):
    """name -> why a flow to it was refused"""
    script = "".join("curl -sS --max-time 20 https://%s/ >/dev/null;" % host
                     for host in hosts)
    got = penstock.sh(script, policy="[policy]\nname = p\npreset = %s\n"
                      % preset, options=["--preset-dir", names.PRESETS])
    return {record["host"]: record["reason"] for record in got.records
            if record["ev"] == "flow_deny" and "host" in record}


@pytest.mark.parametrize("preset", sorted(
    set(HOSTS) - {"open", "locked-down", "debian", "ubuntu"}))
def test_a_preset_opens_its_names_alone(penstock, preset):
    wanted = {}
    for host in HOSTS[preset]:
        wanted[host] = "address_documentation"
        wanted[host + ".example.net"] = "host_not_allowed"
    assert len(wanted) >= 2
    assert refusals(penstock, preset, wanted) == wanted


@pytest.mark.parametrize("preset", ["debian", "ubuntu"])
def test_a_preset_follows_the_machines_mirrors(penstock, lab_mirrors, preset):
    wanted = {lab_mirrors: "address_documentation",
              "lab.%s.org" % preset: "host_not_allowed",
              "old.example.com": "host_not_allowed"}
    assert refusals(penstock, preset, wanted) == wanted


@pytest.mark.parametrize("preset, why", [
    ("open", "address_documentation"), ("locked-down", "host_denied")])
def test_all_and_nothing(penstock, preset, why):
    wanted = {"web.example.com": why, "denied.example.net": why}
    assert refusals(penstock, preset, wanted) == wanted

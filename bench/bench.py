# SPDX-License-Identifier: Apache-2.0
"""bench.py - Penstock beside its peers, in one run, on one lab.

usage: bench.py [OPTION...] [MEASURE...]
       bench.py report FILE...

measures of tunnels, beside a bare forwarder, haproxy, nginx, trafficserver, squid
and tinyproxy:
  tunnels   CPU of the proxy for a new tunnel, and for a MB through 1 and 8
  requests  CPU for a 1 KB request over tunnels that stay
  http      CPU for a plain HTTP request
  latency   of a new tunnel while 300 a second are begun
  idle      memory of a tunnel that is open and silent
  policy    is a listed name reached that leads to the host itself?
  table     all of these
other measures:
  many      500 sandboxes of one service: set-up, memory, fairness
  start     wall clock and CPU of `true` inside, beside bubblewrap
  match     nanoseconds of a decision, memory of a list, beside squid, unbound
  dns       CPU for an answer, beside unbound, dnsdist and others
  fair      what a good client waits while another one attacks

Without a measure: all of them.  Contenders take turns, round by round, forwards
and backwards, so that whatever else the machine does meets them alike.  Raw rows
are appended to FILE (--out) as JSON lines; what is printed at the end is made
from them, and `report` makes the tables of tunnels again from any of them.

  make bench BENCH="--rounds 3 table"                 the table of bench/README.md
  make bench BENCH="--rounds 1 --hosts 1000 --only forward,penstock tunnels"
  python3 bench/bench.py report bench.jsonl

A peer that is not installed is left out and named: `make bench-peers` installs them.
"""
import argparse
import os
import resource
import shutil
import signal
import sys

import kit
import report
from bench_dns import bench_dns
from bench_fair import bench_fair
from bench_many import bench_many
from bench_match import bench_match
from bench_start import bench_start
from bench_tunnels import GROUPS, bench_tunnels
from lab import Lab

TUNNELS = (*GROUPS, "idle", "policy")
OTHERS = {"many": bench_many, "start": bench_start, "match": bench_match,
          "dns": bench_dns, "fair": bench_fair}
TOOLS = {"ip": "iproute2", "nft": "nftables", "openssl": "openssl",
         "nsenter": "util-linux", "taskset": "util-linux", "sysctl": "procps",
         "make": "make"}


def numbers(text):
    found = [int(word) for word in text.split(",")]
    if not all(1000 <= number <= 1000000 for number in found):
        raise ValueError
    return found


def options():
    parser = argparse.ArgumentParser(
        usage=argparse.SUPPRESS, description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, metavar="N",
                        help="turns of each contender (5)")
    parser.add_argument("--out", default="bench.jsonl", metavar="FILE",
                        help="where raw rows are appended (bench.jsonl)")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S",
                        help="of each run of tunnels, requests, http (1)")
    parser.add_argument("--hosts", type=numbers, default=[1000, 100000],
                        metavar="N,N",
                        help="sizes of the list of allowed hosts (1000,100000); "
                        "all contenders have the first, those with a list and "
                        "the forwarder the others")
    parser.add_argument("--only", type=lambda text: text.split(","),
                        metavar="WORD,WORD", help="contenders of tunnels whose "
                        "name has one of these words")
    parser.add_argument("--sandboxes", type=int, default=500, metavar="N",
                        help="of the measure many (500)")
    parser.add_argument("--again", type=int, default=2, metavar="N",
                        help="how often a run that others disturbed is made "
                        "again (2)")
    parser.add_argument("--stage", metavar="DIR", help="where `make install "
                        "DESTDIR=DIR` was done already")
    parser.add_argument("measure", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    known = (*TUNNELS, "table", *OTHERS)
    for name in args.measure:
        if name not in known:
            parser.error("no measure '%s'; there are %s"
                         % (name, ", ".join(known)))
    if args.rounds < 1 or args.sandboxes < 3 or args.seconds <= 0 or \
            args.again < 0:
        parser.error("rounds and seconds are positive, sandboxes three or more")
    args.measure = args.measure or ["table", *OTHERS]
    return parser, args


def check_surroundings(parser):
    if not kit.BUILD:
        parser.error("PENSTOCK_BUILD must name a build tree: use `make bench`")
    if os.geteuid() != 0:
        parser.error("root is needed, for namespaces: sudo make bench")
    for tool, package in TOOLS.items():
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin"):
            parser.error("%s is needed: apt-get install %s" % (tool, package))


def main():
    if sys.argv[1:2] == ["report"]:
        if len(sys.argv) < 3:
            sys.exit("usage: bench.py report FILE...")
        rows = report.read(sys.argv[2:])
        if not report.report(rows):
            sys.exit("no rows of tunnels or of many in %d rows" % len(rows))
        return
    parser, args = options()
    check_surroundings(parser)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    tunnels = [name for name in TUNNELS
               if name in args.measure or "table" in args.measure]
    lab = Lab()
    try:
        with open(args.out, "a", encoding="ascii") as out:
            bench = kit.Bench(lab, out, args)
            if tunnels:
                bench_tunnels(bench, tunnels)
            for name, measure in OTHERS.items():
                if name in args.measure:
                    measure(bench)
            bench.say("done; raw rows are in " + os.path.abspath(args.out))
            report.report(bench.rows)
    finally:
        lab.close()


if __name__ == "__main__":
    main()

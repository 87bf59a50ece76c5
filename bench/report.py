# SPDX-License-Identifier: Apache-2.0
"""report.py - Markdown from the raw rows of the measures of tunnels."""
import json
import statistics

import kit

BASE = "forward"
# heading, measure, field
COSTS = (
    ("new tunnel", "new tunnel", "cpu"),
    ("bulk, 1", "bulk through 1", "cpu"),
    ("bulk, 8", "bulk through 8", "cpu"),
    ("kept 1 KB request", "kept request", "cpu"),
    ("KB an idle tunnel", "idle tunnel", "value"),
    ("plain HTTP request", "plain request", "cpu"),
)
RATES = (
    ("tunnels/s", "new tunnel", "value"),
    ("MB/s, 1", "bulk through 1", "value"),
    ("MB/s, 8", "bulk through 8", "value"),
    ("kept requests/s", "kept request", "value"),
    ("plain requests/s", "plain request", "value"),
    ("p50 at 300/s, us", "latency", "p50_us"),
    ("p99 at 300/s, us", "latency", "p99_us"),
)


def read(paths):
    rows = []
    for path in paths:
        with open(path, encoding="ascii") as text:
            for number, line in enumerate(text, 1):
                try:
                    rows.append(json.loads(line))
                except ValueError:
                    raise SystemExit("%s:%d: not a row of JSON"
                                     % (path, number)) from None
    return rows


class Rows:
    """The rows of one size of list."""

    def __init__(self, rows, hosts):
        self.rows = [row for row in rows if row.get("hosts") == hosts]

    def contenders(self, measures):
        """In the order in which they appear."""
        return list(dict.fromkeys(
            row["contender"] for row in self.rows
            if row["measure"] in measures))

    def values(self, measure, contender, field):
        return [row[field] for row in self.rows
                if row["measure"] == measure and row["contender"] == contender
                and row.get(field) is not None]

    def cost(self, measure, contender, field):
        """The median, to the limit's, and the spread."""
        values = self.values(measure, contender, field)
        base = self.values(measure, BASE, field)
        if not values:
            return "-"
        text = kit.spread(values)
        if base and contender != BASE:
            middle, bracket, rest = text.partition(" [")
            text = "%s (%.2f)%s%s" % (
                middle, statistics.median(values) / statistics.median(base),
                bracket, rest)
        return text

    def beyond(self, contender):
        """Milliseconds of the 99th percentile over the limit's, of the same round."""
        base = {row["round"]: row["p99_us"] for row in self.rows
                if row["measure"] == "latency" and row["contender"] == BASE}
        return [(row["p99_us"] - base[row["round"]]) / 1e3 for row in self.rows
                if row["measure"] == "latency" and row["round"] in base and
                row["contender"] == contender]


def table(heads, lines):
    print("| " + " | ".join(heads) + " |")
    print("|---" + "|---:" * (len(heads) - 1) + "|")
    for line in lines:
        print("| " + " | ".join(line) + " |")
    print()


def costs(rows):
    names = rows.contenders({measure for _, measure, _ in COSTS} | {"latency"})
    if not names:
        return
    print("CPU microseconds of the proxy for each, and for each MB; median (to "
          "%s)\n[from..to]:\n" % BASE)
    table([""] + [head for head, _, _ in COSTS] + ["p99 over %s's, ms" % BASE],
          [[name] + [rows.cost(measure, name, field)
                     for _, measure, field in COSTS] +
           [kit.spread(rows.beyond(name))] for name in names
           if name != "direct"])
    print("What came through with one core for the proxy and one for clients and "
          "origin:\n")
    table([""] + [head for head, _, _ in RATES],
          [[name] + [kit.spread(rows.values(measure, name, field), 0)
                     for _, measure, field in RATES] for name in names])
    disturbed = sum(row.get("foreign", 0) >= kit.FOREIGN_MAX
                    for row in rows.rows)
    counted = sum("foreign" in row for row in rows.rows)
    print("In %d of %d runs others used %d %% of a core or more, and again when "
          "it was made\nagain.\n" % (disturbed, counted, 100 * kit.FOREIGN_MAX))
    if any(row.get("kernel_seen") is False for row in rows.rows):
        print("The kernel's memory could not be seen: %.1f KB a tunnel are an "
              "estimate.\n" % kit.KERNEL_KB_ESTIMATE)


def policies(rows):
    found = [row for row in rows.rows if row["measure"] == "policy"]
    if not found:
        return
    print("Is it reached?  A listed name, one that is not, and listed names that "
          "lead to\nthe host of the proxy:\n")
    heads = list(found[0]["reached"])
    table([""] + heads, [
        [row["contender"]] + ["yes" if row["reached"][head] else "no"
                              for head in heads] for row in found])


def many(rows):
    found = [row for row in rows if row["measure"] == "many set-up"]
    if found:
        print("Sandboxes of one service at once; set-up is from the command to the "
              "first line\nof the program inside:\n")
        heads = ("number", "a second", "set-up, ms", "p99", "first 50", "last 50",
                 "service CPU ms", "service KB", "its kernel KB", "sandbox KB",
                 "its kernel KB")
        fields = ("number", "value", "p50_ms", "p99_ms", "first_ms", "last_ms",
                  "service_cpu_ms", "service_kb", "service_kernel_kb",
                  "sandbox_kb", "sandbox_kernel_kb")
        table(heads, [[kit.spread([row[field] for row in found
                                   if row[field] is not None], 1)
                       for field in fields]])
    found = [row for row in rows if row["measure"] == "many fair"]
    if found:
        print("A good sandbox's new tunnels, one after the other, beside a noisy "
              "one, the\nothers silent:\n")
        kinds = list(dict.fromkeys(row["attack"] for row in found))
        table(("beside", "median ms", "p99 ms", "CPU ms of the service for each",
               "not done"),
              [[kind or "nobody"] + [
                  kit.spread([row[field] for row in found
                              if row["attack"] == kind])
                  for field in ("value", "p99_ms", "turn_ms", "failed")]
               for kind in kinds])


def report(rows):
    """Return: there was something to tell."""
    sessions = [row for row in rows if row["measure"] == "session"]
    if not sessions and not any(row["measure"].startswith("many ")
                                for row in rows):
        return False    # other measures print theirs when they end
    for hosts in dict.fromkeys(row["hosts"] for row in sessions):
        mine = [row for row in sessions if row["hosts"] == hosts]
        print("## A list of {:,} hosts\n".format(hosts))
        print("Kernel %s, %d processors, %d rounds.\n" % (
            mine[-1]["kernel"], mine[-1]["cpus"],
            sum(row["rounds"] for row in mine)))
        ours = Rows(rows, hosts)
        costs(ours)
        policies(ours)
        versions = {}
        for row in mine:
            versions.update(row["versions"])
        print("Versions: %s.\n" % ", ".join(
            "%s %s" % (name, version.split("\n")[0])
            for name, version in versions.items()))
    many(rows)
    return True

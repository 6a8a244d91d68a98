# SPDX-License-Identifier: Apache-2.0
"""What was measured, as a person reads it: tables, goals and how far Weft is from each."""

GOALS = (  # key, figure of Weft's over the best of these peers, bound, whether it must be at least that
    ("goodput against the raw UDP ceiling", "goodput_bps", ("raw_udp",), 0.9, True),
    ("goodput against TCP's best", "goodput_bps", ("tcp_1", "tcp_4"), 1.0, True),
    ("8-byte latency against UCX tcp's", "p50_us", ("ucx_tcp",), 1.2, False),
)
HEAD = ("", "goodput Gbit/s", "CPU s/GB", "8 B one way us")


def shown(value, scale, digits):
    return "-" if value is None else "%.*f" % (digits, value * scale)


def rows(entry):
    for one in entry["contestants"]:
        yield (one["title"], shown(one["goodput_bps"], 1e-9, 2), shown(one["cpu_s_per_gb"], 1, 2),
               shown(one["p50_us"], 1, 1))


def plain(entry, options):
    yield ""
    yield "%s, datagrams of %d bytes; medians of %d rounds of %g s" % (
        entry["where"], entry["datagram"], options.rounds, options.seconds)
    for row in (HEAD, *rows(entry)):
        yield "  %-20s %16s %12s %16s" % row


def goals(entry):
    figures = {one["key"]: one for one in entry["contestants"]}
    found = []
    for what, figure, peers, bound, at_least in GOALS:
        ours = figures["weft"][figure]
        theirs = [figures[p][figure] for p in peers if p in figures and figures[p][figure]]
        ratio = None
        if ours is not None and theirs:
            ratio = ours / (max(theirs) if at_least else min(theirs))
        met = None if ratio is None else (ratio >= bound if at_least else ratio <= bound)
        found.append({"place": entry["name"], "what": what, "ratio": ratio, "goal": bound,
                      "at_least": at_least, "met": met})
    return found


def goal_lines(result):
    yield ""
    for goal in result["goals"]:
        verdict = {None: "not measured", True: "met", False: "not met"}[goal["met"]]
        yield "%s: %s: %s, goal %s %.1f: %s" % (
            goal["place"], goal["what"], shown(goal["ratio"], 1, 2),
            "at least" if goal["at_least"] else "at most", goal["goal"], verdict)


def notes(result):
    machine = result["machine"]
    yield ""
    yield ("One machine, %d shared cores, Linux %s, load %s before the run%s: compare ratios within "
           "this run only." % (machine["cores"], machine["kernel"], machine["load"],
                               ", all as SCHED_RR" if result["realtime"] else ""))
    yield ("CPU: user and system time of all processes of both sides, start and end included. Of Weft's "
           "bytes one in 64 is checked, of the others' none. iperf3 runs cubic; UCX and plain "
           "TCP what the system has, %s." % machine["tcp_congestion"])
    for failure in result["failures"]:
        yield "FAILED %s" % failure


def markdown(result):
    titles, cells = [], {}
    for entry in result["places"]:
        for title, *values in rows(entry):
            if title not in titles:
                titles.append(title)
            cells[entry["name"], title] = " / ".join(values)
    names = [entry["name"] for entry in result["places"]]
    yield "Goodput in Gbit/s / CPU seconds per GB / one way of 8 bytes in us; medians of %d rounds of %g s." % (
        result["rounds"], result["seconds"])
    yield ""
    yield "| | %s |" % " | ".join(names)
    yield "|---|%s" % ("---|" * len(names))
    for title in titles:
        yield "| %s | %s |" % (title, " | ".join(cells.get((name, title), "-") for name in names))
    yield ""
    yield "| Weft's ratio | %s | goal |" % " | ".join(names)
    yield "|---|%s---|" % ("---|" * len(names))
    for what, _, _, bound, at_least in GOALS:
        ratios = {goal["place"]: goal["ratio"] for goal in result["goals"] if goal["what"] == what}
        yield "| %s | %s | %s %.1f |" % (
            what, " | ".join(shown(ratios.get(name), 1, 2) for name in names),
            "at least" if at_least else "at most", bound)

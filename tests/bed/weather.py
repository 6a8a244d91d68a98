# SPDX-License-Identifier: Apache-2.0
"""What befalls a bed's network, and what is seen of it. Functions of a Bed; those that change it want
the lock held.

Loss happens in the spines (without spines: where a host receives): after the sending host has cut its
GSO trains, which it does in software while there is loss, and before the receiving host's GRO makes
one packet of several. So packets get lost, and not trains of 44, and each is counted by the firewall.
"""
import json

from bed import HOSTS, call

TABLE = "inet weft_bed"
PARTS = 1_000_000


def kill(bed, k):
    """Silently: no interface goes down, no ICMP is sent, packets just end here."""
    bed.sysctl(bed.spine(k), *bed.forwarding(0))


def revive(bed, k):
    bed.sysctl(bed.spine(k), *bed.forwarding(1))


def loss(bed, percent):
    _cut_trains(bed, True)
    for name in _firewalls(bed):
        _set_rules(bed, name, "losing", [
            "meta l4proto udp %s counter name lost drop" % _by_chance(percent)])


def mark(bed, k, percent):
    _set_rules(bed, bed.spine(k), "marking", [
        "%s ecn != not-ect %s %s ecn set ce counter name marked" %
        (family, _by_chance(percent), family) for family in ("ip", "ip6")])


def clear(bed):
    for name in _firewalls(bed):
        _nft(name, ["table %s {}" % TABLE, "delete table %s" % TABLE])
    _cut_trains(bed, False)


def counters(bed):
    """Packets the firewall lost and marked, and packets or trains that found a queue full."""
    sums = {"lost": 0, "marked": 0, "overflowed": 0}
    for name in _firewalls(bed):
        listed = json.loads(call("ip", "netns", "exec", name, "nft", "-j", "list", "counters"))
        for entry in listed["nftables"]:
            counter = entry.get("counter")
            if counter and counter["name"] in sums:
                sums[counter["name"]] += counter["packets"]
    for name in bed.namespaces():
        sums["overflowed"] += sum(qdisc["drops"] for qdisc in bed.shaped(name))
    return sums


def path(bed, source_port, target_port, source_host=1, ipv6=False):
    """The spine that UDP with these ports takes from a host; 0 on a bed without spines."""
    family, host = list(bed.families())[1 if ipv6 else 0][:2]
    target, source = (host(h).split("/")[0] for h in (3 - source_host, source_host))
    said = call("ip", "-n", bed.host(source_host), family, "route", "get", target, "from", source,
                "ipproto", "udp", "sport", str(source_port), "dport", str(target_port)).split()
    device = said[said.index("dev") + 1]
    return int(device[1:]) if device.startswith("p") else 0


def status(bed):
    yield " ".join("%s=%s" % (key, bed.state[key])
                   for key in ("owner", "spines", "mtu", "rate", "seed", "seeded", "ipv6"))
    for k in bed.spine_numbers:
        forwards = call("ip", "netns", "exec", bed.spine(k), "sysctl", "-n", "net.ipv4.ip_forward")
        rates = {"%gmbit" % (qdisc["options"]["rate"] * 8e-6) for qdisc in bed.shaped(bed.spine(k))}
        yield "spine=%d alive=%s rate=%s" % (k, "yes" if forwards.strip() == "1" else "no",
                                             "/".join(sorted(rates)) or "none")
    yield " ".join("%s=%d" % item for item in counters(bed).items())


def _firewalls(bed):
    return [bed.spine(k) for k in bed.spine_numbers] or [bed.host(h) for h in HOSTS]


def _nft(name, lines):
    call("ip", "netns", "exec", name, "nft", "-f", "-", stdin="\n".join(lines) + "\n")


def _by_chance(percent):
    share = round(percent * PARTS / 100)
    return "numgen random mod %d < %d" % (PARTS, share) if share < PARTS else ""


def _set_rules(bed, name, chain, rules):
    hook = "forward" if bed.spines else "input"
    _nft(name, ["table %s {" % TABLE, "  counter lost {}", "  counter marked {}",
                "  chain %s { type filter hook %s priority filter; }" % (chain, hook), "}",
                "flush chain %s %s" % (TABLE, chain)] +
         ["add rule %s %s %s" % (TABLE, chain, rule) for rule in rules])


def _cut_trains(bed, cut):
    """Whether packets go through the spines one by one; the receiving host then joins them again."""
    trains, joins = ("off", "on") if cut else ("on", "off")
    for h in HOSTS:
        for port in ["p%d" % k for k in bed.spine_numbers] or ["host0"]:
            features = ["tx-udp-segmentation", trains] + (["gro", joins] if bed.spines else [])
            call("ip", "netns", "exec", bed.host(h), "ethtool", "-K", port, *features)
    for k in bed.spine_numbers:
        for h in HOSTS:
            call("ip", "netns", "exec", bed.spine(k), "ethtool", "-K", "h%d" % h, "tso", trains,
                 "tx-udp-segmentation", trains)

# SPDX-License-Identifier: Apache-2.0
"""The bed: two hosts and N spines, as network namespaces joined by veths.

                 p1 .--------. h1   h2
    host0 - h1 ====| s1 ... sN |==== h2 - host0        every ==== is N links, one to each spine
  10.88.1.1      pN `--------'           10.88.2.1     fd88::1:1 and fd88::2:1 beside them

A host's addresses are on host0, which is what Weft is told to use; its packets leave through p1..pN,
chosen by a hash over addresses and ports (ECMP) whose seed is set, so that the same ports always take
the same spines, other ones in each direction. One seed of a namespace serves IPv4 and IPv6 alike.
A spine only forwards; every link has a token bucket at both ends. Spine k's links to host h
are 10.(88+h).k.0/30 and fd(88+h)::k:0/112: .1 the host, .2 the spine. Neighbours are permanent, so
that a full queue never costs an ARP reply.

With no spines host0 of h1 and host0 of h2 are the two ends of one veth.

What befalls the network after that is in weather.py.
"""
import json
import os
import shutil
import subprocess

import owner as owners
from owner import BedError, CannotRun

TOOLS = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables", "ethtool": "ethtool",
         "sysctl": "procps"}
HOSTS = (1, 2)
MAX_SPINES = 64
BURST, BUFFER = "128kb", "2mb"
COMMAND_TIMEOUT_S = 30
CANNOT = ("not supported", "not permitted", "denied", "is unknown", "unknown device type",
          "read-only file system")
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class Stopped(Exception):
    """Whoever builds was asked to end, by this signal."""

    def __init__(self, number):
        super().__init__("signal %d" % number)
        self.number = number


def call(*words, stdin=None):
    """Runs one command; its output, or a BedError that says what it said."""
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True,
                              timeout=COMMAND_TIMEOUT_S, env=dict(os.environ, PATH=_PATH, LC_ALL="C"))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BedError("%s: %s" % (" ".join(words), error)) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BedError("%s: %s" % (" ".join(words), "; ".join(said[:3]) or "failed"))
    return done.stdout


def check_machine():
    if os.geteuid() != 0:
        raise CannotRun("not root: network namespaces need it")
    for tool, package in TOOLS.items():
        if shutil.which(tool, path=_PATH) is None:
            raise CannotRun("%s is missing (package %s)" % (tool, package))


class Bed:
    """A bed by its state. Building needs the lock; so does taking down. Nothing here waits for long."""

    def __init__(self, state):
        self.state = state
        self.owner = state["owner"]
        self.spines = state.get("spines", 0)

    @property
    def spine_numbers(self):
        return range(1, self.spines + 1)

    def host(self, h):
        return "weft-%d-h%d" % (self.owner, h)

    def spine(self, k):
        if not 1 <= k <= self.spines:
            raise BedError("no spine %d: this bed has %d" % (k, self.spines))
        return "weft-%d-s%d" % (self.owner, k)

    def namespaces(self):
        return [self.host(h) for h in HOSTS] + [self.spine(k) for k in self.spine_numbers]

    # --- building ---------------------------------------------------------------------------------

    def build(self, signalled=lambda: None):
        """`signalled` is asked between commands, each of which is let finish: one that is killed or
        left alone half-way may go on making what is being taken down. Should it name a signal,
        nothing is left and Stopped is raised."""
        try:
            for _ in self._steps():
                if (number := signalled()) is not None:
                    raise Stopped(number)
        except (BedError, Stopped) as error:
            self.take_down()
            if any(word in str(error).lower() for word in CANNOT):
                raise CannotRun(str(error)) from error
            raise

    def _steps(self):
        for name in self.namespaces():
            yield call("ip", "netns", "add", name)
        self.has_ipv6 = os.path.isdir("/proc/sys/net/ipv6")
        self.state["ipv6"] = self.has_ipv6
        yield from self._set_up_kernel()
        yield call("ip", "-batch", "-", stdin="\n".join(self._links()) + "\n")
        for h in HOSTS:
            yield self.batch("ip", self.host(h), self._host_lines(h))
        for k in self.spine_numbers:
            yield self.batch("ip", self.spine(k), self._spine_lines(k))
            if self.state["rate"] != "none":
                yield self.shape(k, self.state["rate"])

    def batch(self, tool, name, lines):
        call(tool, "-n", name, "-batch", "-", stdin="\n".join(lines) + "\n")

    def sysctl(self, name, *settings):
        call("ip", "netns", "exec", name, "sysctl", "-qw", *settings)

    def _set_up_kernel(self):
        """Before there are interfaces, which take over the defaults. Steps of build()."""
        common = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
        if self.has_ipv6:
            common += ["net.ipv6.conf.%s.%s=0" % (where, what) for where in ("all", "default")
                       for what in ("disable_ipv6", "accept_dad", "accept_ra")]
        self.state["seeded"] = os.path.exists("/proc/sys/net/ipv4/fib_multipath_hash_seed")
        for h in HOSTS:
            hashing = ["net.ipv4.fib_multipath_hash_policy=1"]
            if self.has_ipv6:
                hashing.append("net.ipv6.fib_multipath_hash_policy=1")
            if self.state["seeded"]:  # Linux 6.11; 0 would ask for a random one
                hashing.append("net.ipv4.fib_multipath_hash_seed=%d" % (2 * self.state["seed"] + h))
            yield self.sysctl(self.host(h), *common, *hashing)
        for k in self.spine_numbers:
            yield self.sysctl(self.spine(k), *common, *self.forwarding(1))

    def forwarding(self, on):
        return ["net.ipv4.ip_forward=%d" % on] + (
            ["net.ipv6.conf.all.forwarding=%d" % on] if self.state["ipv6"] else [])

    @staticmethod
    def _mac(h, k, end):
        return "02:88:%02x:00:%02x:%02x" % (h, k, end)

    def _links(self):
        mtu = self.state["mtu"]

        def link(left, left_ns, left_mac, right, right_ns, right_mac):
            return ("link add %s netns %s address %s mtu %d type veth peer name %s netns %s "
                    "address %s mtu %d" % (left, left_ns, left_mac, mtu, right, right_ns, right_mac, mtu))

        if self.spines == 0:
            yield link("host0", self.host(1), self._mac(1, 0, 1), "host0", self.host(2), self._mac(2, 0, 1))
            return
        for h in HOSTS:
            yield link("host0", self.host(h), self._mac(h, 0, 1),
                       "host0p", self.host(h), self._mac(h, 0, 2))
            for k in self.spine_numbers:
                yield link("p%d" % k, self.host(h), self._mac(h, k, 1),
                           "h%d" % h, self.spine(k), self._mac(h, k, 2))

    def families(self):
        """(option of ip, host address, host end of a link, spine end of a link, prefix of a link)"""
        yield ("-4", lambda h: "10.88.%d.1/32" % h, lambda h, k: "10.%d.%d.1" % (88 + h, k),
               lambda h, k: "10.%d.%d.2" % (88 + h, k), 30)
        if self.state["ipv6"]:
            yield ("-6", lambda h: "fd88::%d:1/128" % h, lambda h, k: "fd%d::%x:1" % (88 + h, k),
                   lambda h, k: "fd%d::%x:2" % (88 + h, k), 112)

    def _host_lines(self, h):
        other = 3 - h
        lines = ["link set lo up", "link set host0 up"]
        lines += ["link set host0p up"] if self.spines else []
        lines += ["link set p%d up" % k for k in self.spine_numbers]
        for _, host, near, far, prefix in self.families():
            nodad = " nodad" if prefix == 112 else ""
            lines.append("addr add %s dev host0%s" % (host(h), nodad))
            source, target = host(h).split("/")[0], host(other)
            if self.spines == 0:
                lines += ["route add %s dev host0 src %s" % (target, source),
                          "neigh add %s lladdr %s dev host0 nud permanent" %
                          (target.split("/")[0], self._mac(other, 0, 1))]
                continue
            hops = []
            for k in self.spine_numbers:
                lines += ["addr add %s/%d dev p%d%s" % (near(h, k), prefix, k, nodad),
                          "neigh add %s lladdr %s dev p%d nud permanent" %
                          (far(h, k), self._mac(h, k, 2), k)]
                hops.append("nexthop via %s dev p%d" % (far(h, k), k))
            lines.append("route add %s src %s %s" % (target, source, " ".join(hops)))
        return lines

    def _spine_lines(self, k):
        lines = ["link set lo up"] + ["link set h%d up" % h for h in HOSTS]
        for _, host, near, far, prefix in self.families():
            nodad = " nodad" if prefix == 112 else ""
            for h in HOSTS:
                lines += ["addr add %s/%d dev h%d%s" % (far(h, k), prefix, h, nodad),
                          "neigh add %s lladdr %s dev h%d nud permanent" %
                          (near(h, k), self._mac(h, k, 1), h),
                          "route add %s via %s" % (host(h), near(h, k))]
        return lines

    # --- taking down ------------------------------------------------------------------------------

    def take_down(self):
        """Also what is left of a bed that was never finished. Processes in its namespaces go with it."""
        left = owners.namespaces_of(self.owner)
        spared = owners.ancestors(os.getpid())
        for name in left:
            for word in call("ip", "netns", "pids", name).split():
                if int(word) not in spared:
                    try:
                        os.kill(int(word), 9)
                    except ProcessLookupError:
                        pass
        for name in left:
            call("ip", "netns", "del", name)
        owners.stop_watcher(self.state)
        owners.forget(self.owner)

    # --- links, while it stands -------------------------------------------------------------------

    def shape(self, k, rate):
        """The token buckets at all four ends of spine k's two links; `none` takes them off."""
        shape = "root" if rate == "none" else "root tbf rate %s burst %s limit %s" % (
            rate, BURST, self.state["buffer"])
        verb = "del" if rate == "none" else "replace"
        for name, ports in [(self.host(h), ["p%d" % k]) for h in HOSTS] + [
                (self.spine(k), ["h%d" % h for h in HOSTS])]:
            if rate != "none" or self.shaped(name, ports[0]):
                self.batch("tc", name, ["qdisc %s dev %s %s" % (verb, port, shape) for port in ports])

    @staticmethod
    def shaped(name, port=None):
        """The token buckets of a namespace, or of one of its interfaces, as tc shows them."""
        return [qdisc for qdisc in json.loads(call("tc", "-n", name, "-s", "-j", "qdisc", "show"))
                if qdisc["kind"] == "tbf" and port in (None, qdisc["dev"])]

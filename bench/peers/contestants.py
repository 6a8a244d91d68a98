# SPDX-License-Identifier: Apache-2.0
"""Who is measured: each has a key, a title, and `goodput` and `latency`, where it has them.

goodput(place, seconds) is {goodput_bps, bytes, cpu_s}: payload of large messages one way, and the
user and system seconds of all processes of both sides, from their start to their end. latency(place,
seconds) is {p50_us}: half a round trip of an 8-byte message. Both raise places.Failed.

Of what Weft carries a 64th is compared with what was sent; nobody else looks at a byte.
"""
import json
import os
import re
import shutil
import socket

from places import Failed, Process, serve

PATIENCE_S = 20  # beyond the time that a measurement should take
SMALL = "8"
UNDER_WAY = 8  # large messages of Weft's
CONGESTION = "cubic"  # of iperf3's TCP


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def allowed_congestion_control():
    """What TCP an ordinary user may choose; everything where the kernel does not say."""
    try:
        with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control", encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return [CONGESTION]


def not_built(path, build):
    """Which command builds it, as it can be typed."""
    if not os.path.exists(os.path.join(build, "build.ninja")):
        return "%s is not built, and %s is no build folder: ./quickstart makes build/" % (path, build)
    return "%s is not built; this builds it: ninja -C %s peers" % (path, os.path.relpath(build))


class Weft:
    key, title = "weft", "Weft on UDP"

    def __init__(self, options):
        self.build = options.build
        self.tool = os.path.join(options.build, "tools", "weft_ncclnet")
        self.plugin = options.plugin or os.path.join(options.build, "plugin", "libnccl-net-weft.so")
        self.bytes = options.bytes

    def missing(self):
        for path in (self.tool, self.plugin):
            if not os.path.exists(path):
                return not_built(path, self.build)
        return None

    def run(self, place, words, seconds, level="warn"):
        command = [self.tool, *words, "--plugin", self.plugin, "--timeout", "%g" % (seconds + PATIENCE_S)]
        command += ["--quiet"] if level == "warn" else ["--verbose"]
        if place.near != place.far:
            command += ["--ranks-in", "%s,%s" % (place.near, place.far)]
        process = Process(place.near if place.near == place.far else None, command,
                          seconds + 2 * PATIENCE_S,
                          {"WEFT_IFNAME": "=" + place.device, "WEFT_FABRIC": "udp", "WEFT_LOG": level})
        last = (process.finish().strip().splitlines() or [""])[-1]
        return dict(re.findall(r"(\w+)=(\S+)", last)), process

    def datagram(self, place):
        """Bytes in a full datagram of Weft's here: its segment, as it says itself, and its header."""
        _, process = self.run(place, ["latency", "--bytes", SMALL, "--iterations", "1"], 1, "info")
        said = re.search(r"fabric udp.* segment (\d+)", process.text(process.err))
        if not said:
            raise Failed("the plugin's log does not name its segment size")
        return int(said.group(1)) + 64

    def goodput(self, place, seconds):
        got, process = self.run(place, ["stream", "--bytes", self.bytes, "--seconds", "%g" % seconds,
                                        "--check", "sample"],
                                seconds)
        return {"goodput_bps": float(got["goodput_bps"]), "bytes": int(got["bytes"]),
                "cpu_s": process.cpu_s, "retransmitted": got["retransmitted"]}

    def latency(self, place, seconds):
        got, _ = self.run(place, ["latency", "--bytes", SMALL, "--seconds", "%g" % seconds], seconds)
        return {"p50_us": float(got["p50_us"]), "p99_us": float(got["p99_us"])}


class Plain:
    """Our own small programs on plain sockets."""
    protocol = "udp"

    def __init__(self, options):
        self.build = options.build
        self.folder = os.path.join(options.build, "bench", "peers")

    def missing(self):
        for name in ("udp_ceiling", "ping_pong"):
            path = os.path.join(self.folder, name)
            if not os.path.exists(path):
                return not_built(path, self.build)
        return None

    def pair(self, place, name, server, client, seconds, extra):
        kind = socket.SOCK_STREAM if self.protocol == "tcp" else socket.SOCK_DGRAM
        port = free_port(kind)
        at = ["--at", "%s:%d" % (place.address, port)] + (["--tcp"] if self.protocol == "tcp" else [])
        limit = seconds + PATIENCE_S
        program = os.path.join(self.folder, name)
        far, near, cpu_s = serve(
            place, self.protocol, port, [program, server, *at, "--timeout", "%g" % limit],
            [program, client, *at, "--seconds", "%g" % seconds, *extra], limit)
        return json.loads(far), json.loads(near), cpu_s

    def latency(self, place, seconds):
        _, near, _ = self.pair(place, "ping_pong", "pong", "ping", seconds, ["--bytes", SMALL])
        return {"p50_us": near["p50_us"], "p99_us": near["p99_us"]}


class RawUdp(Plain):
    key, title = "raw_udp", "raw UDP ceiling"

    def __init__(self, options):
        super().__init__(options)
        self.bytes = options.message_bytes

    def goodput(self, place, seconds):
        extra = ["--payload", str(place.datagram), "--source", str(UNDER_WAY * self.bytes)]
        far, near, cpu_s = self.pair(place, "udp_ceiling", "receive", "send", seconds, extra)
        return {"goodput_bps": far["goodput_bps"], "bytes": far["bytes"], "cpu_s": cpu_s,
                "lost": 1 - far["bytes"] / max(1, near["bytes"])}


class PlainTcp(Plain):
    key, title, protocol = "tcp_ping_pong", "TCP, plain sockets", "tcp"
    goodput = None


class Iperf:
    latency = None

    def __init__(self, options, streams):
        self.streams = streams
        self.key = "tcp_%d" % streams
        self.title = "TCP, %d stream%s" % (streams, "s" if streams > 1 else "")
        self.program = shutil.which("iperf3")
        del options

    def missing(self):
        if not self.program:
            return "iperf3 is not installed"
        if os.geteuid() != 0 and CONGESTION not in allowed_congestion_control():
            return "only root may have %s here (net.ipv4.tcp_allowed_congestion_control: %s)" % (
                CONGESTION, " ".join(allowed_congestion_control()))
        return None

    @staticmethod
    def read(printed):
        """Its JSON's sum; when something went wrong it says so there, and its exit code may be 0."""
        said = json.loads(printed)
        if "error" in said:
            raise Failed("iperf3: %s" % said["error"])
        return said["end"]["sum_received"]

    def goodput(self, place, seconds):
        port = free_port(socket.SOCK_STREAM)
        whole = max(1, round(seconds))  # it counts in whole seconds
        _, near, cpu_s = serve(
            place, "tcp", port, [self.program, "-s", "-1", "-p", str(port)],
            [self.program, "-c", place.address, "-p", str(port), "-t", str(whole), "-P",
             str(self.streams), "-C", CONGESTION, "-J"], whole + PATIENCE_S, check=self.read)
        end = self.read(near)
        return {"goodput_bps": end["bits_per_second"], "bytes": end["bytes"], "cpu_s": cpu_s}


class Ucx:
    key, title = "ucx_tcp", "UCX tcp"

    def __init__(self, options):
        self.program = shutil.which("ucx_perftest")
        self.bytes = options.message_bytes
        self.pace = {}  # seconds an iteration, as last seen: it counts iterations, not time

    def missing(self):
        return None if self.program else "ucx_perftest (ucx-utils) is not installed"

    def run(self, place, test, size, iterations, warm_up, seconds):
        port = free_port(socket.SOCK_STREAM)
        environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": place.device, "UCX_WARN_UNUSED_ENV_VARS": "n"}
        _, near, cpu_s = serve(
            place, "tcp", port, [self.program, "-p", str(port)],
            [self.program, place.address, "-p", str(port), "-t", test, "-s", str(size), "-n",
             str(iterations), "-w", str(warm_up), "-f", "-v"], 10 * seconds + PATIENCE_S, environment)
        names, values = [line.split(",") for line in near.strip().splitlines()[-2:]]
        return dict(zip((n.strip() for n in names), map(float, values))), cpu_s

    def timed(self, place, test, size, first, warm_up, seconds):
        which = (place.name, test)
        if which not in self.pace:
            got, _ = self.run(place, test, size, first, warm_up, seconds)
            self.pace[which] = got["overall_lat"] * 1e-6
        iterations = min(max(first, int(seconds / self.pace[which])), 10_000_000)
        got, cpu_s = self.run(place, test, size, iterations, warm_up, seconds)
        # A pace seen on a machine that was busy for a moment must not make the next run ten times as long.
        self.pace[which] = max(got["overall_lat"] * 1e-6, self.pace[which] / 3)
        return got, (iterations + warm_up) * size, cpu_s

    def goodput(self, place, seconds):
        got, moved, cpu_s = self.timed(place, "tag_bw", self.bytes, 20, 5, seconds)
        return {"goodput_bps": self.bytes * 8e6 / got["overall_lat"], "bytes": moved, "cpu_s": cpu_s}

    def latency(self, place, seconds):
        # A round trip is two of its latencies.
        got, _, _ = self.timed(place, "tag_lat", int(SMALL), 1000, 100, seconds / 2)
        return {"p50_us": next(v for n, v in got.items() if n.startswith("50.0"))}


def everyone(options):
    return [Weft(options), RawUdp(options), Iperf(options, 1), Iperf(options, 4), PlainTcp(options),
            Ucx(options)]

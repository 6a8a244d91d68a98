# SPDX-License-Identifier: Apache-2.0
"""Watches what crosses the interfaces of a bed's hosts, every few milliseconds, from outside them.

A thread enters each namespace once, only to open its /proc/net/dev: an open file keeps the namespace
it was opened in, so reading it again costs two system calls. Counted is what arrives at h2 on p1..pN
(the progress of a stream from h1 to h2, as finely as it can be seen without asking the receiver) and
what h1 sends on each. Trains that cross a veth whole count one header for all: compare figures of one
run with each other, not with a link's rate.
"""
import ctypes
import os
import threading
import time

PERIOD_S = 0.003
BIN_S = 0.010
CLONE_NEWNET = 0x40000000


def inside(namespace, function):
    """Calls a function in a thread that has entered the namespace; what it opens stays in there."""
    result = []

    def enter():
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            handle = os.open("/run/netns/" + namespace, os.O_RDONLY)
            try:
                if libc.setns(handle, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns " + namespace)
            finally:
                os.close(handle)
            result.append(function())
        except Exception as error:  # raised again where it can be seen
            result.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


def open_counters(namespace):
    """The interface counters of a namespace, as a file that can be read again and again."""
    return inside(namespace, lambda: os.open("/proc/thread-self/net/dev", os.O_RDONLY))


def read_counters(file):
    """{interface: (received bytes, sent bytes)}"""
    found = {}
    text = os.pread(file, 65536, 0).decode()
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        found[name.strip()] = (int(fields[0]), int(fields[8]))
    return found


def udp6_datagrams(namespace):
    """Datagrams that have been sent over IPv6 from a namespace."""
    def read():
        with open("/proc/thread-self/net/snmp6", encoding="ascii") as file:
            return dict(line.split() for line in file)
    return int(inside(namespace, read)["Udp6OutDatagrams"])


class Sampler:
    """with Sampler(h1, h2, spines) as s: ...; then the figures. Times are time.monotonic()."""

    def __init__(self, h1, h2, spines):
        self._files = [open_counters(h1), open_counters(h2)]
        self._ports = ["p%d" % k for k in range(1, spines + 1)] or ["host0"]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.samples = []  # (time, bytes arrived at h2)
        self._sent_before = self._sent()

    def _sent(self):
        counters = read_counters(self._files[0])
        return [counters[port][1] for port in self._ports]

    def _arrived(self):
        counters = read_counters(self._files[1])
        return sum(counters[port][0] for port in self._ports)

    def _watch(self):
        while not self._stop.is_set():
            self.samples.append((time.monotonic(), self._arrived()))
            time.sleep(PERIOD_S)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        after = self._sent()
        self.sent_by_spine = [b - a for a, b in zip(self._sent_before, after)]
        for file in self._files:
            os.close(file)

    def wait_for_traffic(self, enough=2_000_000, timeout=20):
        """Returns when data has begun to flow; None if it does not."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if self.samples and self.samples[-1][1] - self.samples[0][1] >= enough:
                return time.monotonic()
            time.sleep(PERIOD_S)
        return None

    def bytes_at(self, when):
        """Interpolated between two samples."""
        samples = self.samples
        if not samples or when <= samples[0][0]:
            return samples[0][1] if samples else 0
        low, high = 0, len(samples) - 1
        if when >= samples[high][0]:
            return samples[high][1]
        while high - low > 1:
            middle = (low + high) // 2
            if samples[middle][0] <= when:
                low = middle
            else:
                high = middle
        (t0, b0), (t1, b1) = samples[low], samples[high]
        return b0 + (b1 - b0) * (when - t0) / (t1 - t0)

    def rate(self, begin, end):
        """Bytes a second between two times."""
        return (self.bytes_at(end) - self.bytes_at(begin)) / (end - begin) if end > begin else 0.0

    def longest_below(self, rate, begin, end):
        """Seconds of the longest stretch of 10 ms bins that all stay below a rate."""
        longest = current = 0.0
        when = begin
        while when + BIN_S <= end:
            current = current + BIN_S if self.rate(when, when + BIN_S) < rate else 0.0
            longest = max(longest, current)
            when += BIN_S
        return longest

    def first_above(self, rate, begin, end, window=0.2):
        """Seconds after begin when a window first keeps up a rate; None if none does."""
        when = begin
        while when + window <= end:
            if self.rate(when, when + window) >= rate:
                return when - begin
            when += BIN_S
        return None

    def last_traffic(self):
        """When the last bulk of data arrived."""
        total = self.samples[-1][1]
        for when, count in reversed(self.samples):
            if total - count > 200_000:
                return when
        return self.samples[0][0]

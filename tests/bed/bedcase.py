# SPDX-License-Identifier: Apache-2.0
"""What the tests of the bed itself share: calling `spines`, sockets that live in a namespace, a bed for
the tests of a class, and counting results. Each datagram is one of ours, so that all can be counted.
"""
import contextlib
import os
import socket
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bed  # noqa: E402
import owner as owners  # noqa: E402
import sampler  # noqa: E402
import weather  # noqa: E402

SPINES = os.path.join(HERE, "spines")
PATIENCE_S = 15     # for what happens in a fraction of it
SO_RCVBUFFORCE = 33  # Python's socket module lacks it
ADDRESS = {False: {1: "10.88.1.1", 2: "10.88.2.1"}, True: {1: "fd88::1:1", 2: "fd88::2:1"}}
PORT = 7000         # where datagrams are sent to
SOURCES = range(20000, 20024)


def spines(*words, code=0, **more):
    done = subprocess.run([SPINES, *map(str, words)], capture_output=True, text=True, timeout=60, **more)
    if done.returncode != code:
        raise AssertionError("spines %s: exit code %d, not %d: %s" % (
            " ".join(map(str, words)), done.returncode, code, done.stdout + done.stderr))
    return done.stdout


def words_of(text):
    return dict(word.split("=", 1) for word in text.split())


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


def udp(namespace, ipv6, address, port):
    """A bound socket of a namespace."""
    def make():
        made = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, port))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        made.settimeout(0.3)
        return made
    return sampler.inside(namespace, make)


def receive_all(receiver):
    """What has arrived, and what still does within the time-out."""
    got = []
    with contextlib.suppress(TimeoutError):
        while True:
            got.append(receiver.recv(65536))
    return got


class BedCase(unittest.TestCase):
    """A bed of this process, for all tests of a class."""
    ARGUMENTS = ()

    @classmethod
    def setUpClass(cls):
        cls.names = words_of(spines("up", "--owner", os.getpid(), *cls.ARGUMENTS))
        cls.addClassCleanup(spines, "down", "--owner", os.getpid())

    def setUp(self):
        self.sockets = contextlib.ExitStack()
        self.addCleanup(self.sockets.close)

    def socket(self, host, port, ipv6=False):
        return self.sockets.enter_context(
            udp(self.names["h%d" % host], ipv6, ADDRESS[ipv6][host], port))

    def path(self, port, ipv6=False, host=1):
        """As `spines path` says it, without starting a program each time."""
        return weather.path(bed.Bed(owners.load(os.getpid())), port, PORT, host, ipv6)

    def port_of_spine(self, k, ipv6=False):
        return next(port for port in SOURCES if self.path(port, ipv6) == k)

    def port_of_others(self, k, ipv6=False):
        return next(port for port in SOURCES if self.path(port, ipv6) != k)

    def arrives(self, port, ipv6=False):
        """Whether a datagram from h1 reaches h2, from a socket that would hear of an error."""
        with udp(self.names["h2"], ipv6, ADDRESS[ipv6][2], PORT) as receiver, \
                udp(self.names["h1"], ipv6, ADDRESS[ipv6][1], port) as sender:
            sender.connect((ADDRESS[ipv6][2], PORT))
            sender.send(b"x" * 100)
            got = receive_all(receiver)
            self.assertEqual(sender.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), 0)
            return len(got) == 1


def main():
    probe = subprocess.run([SPINES, "run", "--", "true"], capture_output=True, text=True, timeout=60)
    if probe.returncode == 77:
        print(probe.stderr.strip())
        return 77
    program = unittest.main(exit=False, testRunner=unittest.TextTestRunner(sys.stdout, verbosity=2))
    result = program.result
    failed = len(result.failures) + len(result.errors)
    for test, _ in result.failures + result.errors:
        print("again: (cd %s && ./%s %s)" % (
            os.path.relpath(HERE), os.path.basename(sys.argv[0]), test.id().replace("__main__.", "")))
    print("%d passed, %d failed, %d skipped" % (
        result.testsRun - failed - len(result.skipped), failed, len(result.skipped)))
    return 1 if failed else 0


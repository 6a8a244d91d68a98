# SPDX-License-Identifier: Apache-2.0
"""Where peers are measured, and how their processes are run there.

A place is a pair of hosts: the same host twice (loopback), or the two ends of a veth made by
tests/bed/spines, which belongs to this process and goes with it however it ends. As root the
loopback is that of a namespace of our own, so that nobody else's traffic is on it.

Every process is started here: in its namespace, on the same CPUs and at the same priority as all
others, in a session of its own, with a time after which it is killed; what it used is asked of the
kernel when it ends (user and system time, with that of its children). It is killed when we are.
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPINES = os.path.join(ROOT, "tests", "bed", "spines")
NAMES = ("loopback", "veth1500", "veth9000")
POLL_S = 0.005
BED_TIMEOUT_S = 30
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)  # loaded before any fork


class Failed(Exception):
    """A process ended badly or not in time; the words say which and how."""


class CannotRun(Failed):
    """This machine, or this user, cannot have such a place."""


class Place:
    """Two hosts; `near` sends, `far` serves."""

    def __init__(self, name, near, far, address, device, mtu):
        self.name, self.near, self.far = name, near, far
        self.address, self.device, self.mtu = address, device, mtu

    def describe(self):
        if self.name == "loopback":
            where = "a namespace of its own" if self.near else "this host's"
            return "%s, %s, MTU %d" % (self.name, where, self.mtu)
        return "a veth between two namespaces, MTU %d" % self.mtu


def spines(*words):
    try:
        done = subprocess.run([SPINES, *words, "--owner", str(os.getpid())], capture_output=True,
                              text=True, timeout=BED_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise Failed("tests/bed/spines %s: not done after %d s" % (words[0], BED_TIMEOUT_S)) from error
    if done.returncode != 0:
        raise (CannotRun if done.returncode == 77 else Failed)(
            "tests/bed/spines %s: exit %d: %s" % (words[0], done.returncode, done.stderr.strip()))
    return done.stdout


def make(name):
    """Without namespaces the loopback is the host's, and the other places cannot be had."""
    hosts_own = Place("loopback", None, None, "127.0.0.1", "lo", 65536)
    if os.geteuid() != 0 and name == "loopback":
        return hosts_own
    mtu = 1500 if name == "loopback" else int(name[len("veth"):])
    try:
        said = spines("up", "--spines", "0", "--mtu", str(mtu), "--rate", "none")
    except CannotRun:
        if name == "loopback":
            return hosts_own
        raise
    hosts = dict(re.findall(r"\b(h[12])=(\S+)", said))
    if name == "loopback":
        return Place(name, hosts["h1"], hosts["h1"], "127.0.0.1", "lo", 65536)
    return Place(name, hosts["h1"], hosts["h2"], "10.88.2.1", "host0", mtu)


def remove(_place):
    if os.geteuid() == 0:
        with contextlib.suppress(Failed):  # what cannot be taken down now goes when we end
            spines("down")


class Process:
    """One program at a place. `cpu_s` is known once it has been waited for."""

    running = []
    cpus = sorted(os.sched_getaffinity(0))
    realtime = False  # before everything else on the machine

    def __init__(self, host, words, timeout_s, environment=None):
        self.words = words
        self.deadline = time.monotonic() + timeout_s
        self.timeout_s = timeout_s
        self.cpu_s = 0.0
        self.code = None
        self.out = tempfile.TemporaryFile()
        self.err = tempfile.TemporaryFile()
        command = (["ip", "netns", "exec", host] if host else []) + words
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
            env=dict(os.environ, **(environment or {})), start_new_session=True,
            preexec_fn=self.prepare)
        Process.running.append(self)

    @staticmethod
    def prepare():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.sched_setaffinity(0, Process.cpus)
        if Process.realtime:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    def poll(self):
        if self.code is None:
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.code = self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = used.ru_utime + used.ru_stime
                Process.running.remove(self)
        return self.code

    def kill(self):
        if self.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            while self.poll() is None:
                time.sleep(POLL_S)

    def failed(self, how):
        said = (self.text(self.err) + self.text(self.out)).strip().splitlines()[-3:]
        with contextlib.suppress(ValueError, LookupError, TypeError):  # iperf3's JSON has it in there
            said = [json.loads(self.text(self.out))["error"]]
        return Failed("%s %s: %s" % (os.path.basename(self.words[0]), how, " | ".join(said)))

    def finish(self):
        """Standard output, once it has ended well."""
        while self.poll() is None:
            if time.monotonic() > self.deadline:
                self.kill()
                raise self.failed("was not done after %g s" % self.timeout_s)
            time.sleep(POLL_S)
        if self.code != 0:
            raise self.failed("ended with %d" % self.code)
        return self.text(self.out)

    def listens(self, port, protocol):
        """Whether a socket of the process's namespace is bound to the port."""
        for table in (protocol, protocol + "6"):
            try:
                with open("/proc/%d/net/%s" % (self.process.pid, table), encoding="ascii") as file:
                    if re.search(r"^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 " % port, file.read(), re.M):
                        return True
            except OSError:
                pass
        return False

    def wait_listening(self, port, protocol):
        while not self.listens(port, protocol):
            if self.poll() is not None:
                raise self.failed("ended with %d before it listened" % self.code)
            if time.monotonic() > self.deadline:
                self.kill()
                raise self.failed("did not listen after %g s" % self.timeout_s)
            time.sleep(POLL_S)

    @staticmethod
    def text(file):
        file.seek(0)
        return file.read().decode(errors="replace")


def kill_all():
    for process in list(Process.running):
        process.kill()


def serve(place, protocol, port, server, client, timeout_s, environment=None, check=None):
    """A server at the far host and its client at the near one: what both printed, CPU of both.
    `check` looks at what the client printed before the server is waited for."""
    far = Process(place.far, server, timeout_s, environment)
    try:
        far.wait_listening(port, protocol)
        near = Process(place.near, client, timeout_s, environment)
        printed = near.finish()
        if check:
            check(printed)
        return far.finish(), printed, far.cpu_s + near.cpu_s
    finally:
        kill_all()


def end_on_signals():
    def leave(number, _frame):
        sys.exit(128 + number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)

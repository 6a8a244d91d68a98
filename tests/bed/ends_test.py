#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However a bed's owner ends, nothing is left of the bed; and what `spines` answers to wrong words.

  tests/bed/ends_test.py [Ends.test_name ...]
"""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import bedcase  # noqa: E402
import command_line  # noqa: E402
import owner as owners  # noqa: E402
from bedcase import ADDRESS, PATIENCE_S, PORT, SPINES, spines, udp, wait_until, words_of  # noqa: E402


def processes():
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


class Owners(unittest.TestCase):
    """What both kinds of owners are asked afterwards."""

    def setUp(self):
        self.before = processes()

    def left_of(self, owner):
        left = owners.namespaces_of(owner) + ([owner] if owners.load(owner) else [])
        for pid in processes() - self.before:
            with contextlib.suppress(OSError), open("/proc/%d/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
                if b"watch" in words and b"%d" % owner in words:
                    left.append("watcher %d" % pid)
        return left


class Ends(Owners):
    def owner(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_down_leaves_nothing_and_can_be_said_twice(self):
        pid = self.owner().pid
        spines("up", "--owner", pid)
        self.assertEqual(len(owners.namespaces_of(pid)), 6)
        spines("down", "--owner", pid)
        self.assertTrue(wait_until(lambda: not self.left_of(pid)), self.left_of(pid))
        spines("down", "--owner", pid)

    def test_an_owner_killed_with_9_leaves_nothing_not_even_what_ran_inside(self):
        owner = self.owner()
        names = words_of(spines("up", "--owner", owner.pid))
        inside = subprocess.Popen(["ip", "netns", "exec", names["h1"], "sleep", "1000"])
        self.assertTrue(wait_until(lambda: str(inside.pid) in subprocess.run(
            ["ip", "netns", "pids", names["h1"]], capture_output=True, text=True).stdout.split()))
        owner.kill()
        owner.wait()
        self.assertTrue(wait_until(lambda: not self.left_of(owner.pid)), self.left_of(owner.pid))
        self.assertEqual(inside.wait(PATIENCE_S), -signal.SIGKILL)

    def test_what_a_killed_watcher_could_not_do_the_next_bed_does(self):
        first, second = self.owner(), self.owner()
        spines("up", "--owner", first.pid)
        os.kill(owners.load(first.pid)["watcher"][0], signal.SIGKILL)
        first.kill()
        first.wait()
        self.assertTrue(owners.namespaces_of(first.pid))
        spines("up", "--owner", second.pid)
        self.assertFalse(self.left_of(first.pid))
        spines("down", "--owner", second.pid)

    def test_a_bed_whose_owners_id_was_used_again_is_nobodys(self):
        first, second = self.owner(), self.owner()
        spines("up", "--owner", first.pid)
        state = owners.load(first.pid)
        os.kill(state["watcher"][0], signal.SIGKILL)
        owners.save(dict(state, start=state["start"] - 1))
        spines("up", "--owner", second.pid)
        self.assertFalse(self.left_of(first.pid))
        spines("down", "--owner", second.pid)

    def test_what_a_killed_up_has_left_the_next_up_replaces(self):
        owner = self.owner()
        self.assertEqual(self.ended_half_way(owner.pid, 3, signal.SIGKILL), -signal.SIGKILL)
        self.assertTrue(owners.namespaces_of(owner.pid))
        names = words_of(spines("up", "--owner", owner.pid, "--spines", 2))
        self.assertEqual(len(owners.namespaces_of(owner.pid)), 4)
        self.assertIn("spine=2 alive=yes", spines("status", "--owner", names["owner"]))
        spines("up", "--owner", owner.pid, code=1)
        spines("down", "--owner", owner.pid)
        self.assertTrue(wait_until(lambda: not self.left_of(owner.pid)), self.left_of(owner.pid))

    def test_an_up_that_is_asked_to_end_leaves_nothing_wherever_it_is(self):
        owner = self.owner()
        for number, made in ((signal.SIGTERM, 1), (signal.SIGHUP, 2), (signal.SIGINT, 4),
                             (signal.SIGTERM, 7), (signal.SIGTERM, 10), (signal.SIGTERM, 14)):
            self.assertEqual(self.ended_half_way(owner.pid, made, number), 128 + number)
            self.assertTrue(wait_until(lambda: not self.left_of(owner.pid)), self.left_of(owner.pid))

    def ended_half_way(self, owner, made, number):
        """The exit code of an `up` that gets a signal when it has made so many namespaces."""
        up = subprocess.Popen([SPINES, "up", "--owner", str(owner), "--spines", "12"],
                              stdout=subprocess.DEVNULL)
        self.addCleanup(up.wait)
        self.addCleanup(up.kill)
        self.assertTrue(wait_until(lambda: len(owners.namespaces_of(owner)) >= made))
        up.send_signal(number)
        return up.wait(PATIENCE_S)

    def test_a_state_that_is_not_ours_is_no_bed_and_does_not_last(self):
        first, second = self.owner(), self.owner()
        spines("up", "--owner", first.pid)
        watcher = owners.load(first.pid)["watcher"][0]
        for text in ("", "[]", '{"owner": 1}'):
            with open(owners.state_file(first.pid), "w", encoding="ascii") as file:
                file.write(text)
            spines("status", "--owner", first.pid, code=1)
        first.kill()
        first.wait()
        self.assertTrue(wait_until(lambda: owners.start_time(watcher) is None))
        spines("up", "--owner", second.pid)
        self.assertFalse(self.left_of(first.pid))
        spines("down", "--owner", second.pid)

    def test_two_beds_at_once_do_not_disturb_each_other(self):
        pids = [self.owner().pid for _ in range(2)]
        names = [words_of(spines("up", "--owner", pid, "--seed", 1)) for pid in pids]
        spines("kill", 1, "--owner", pids[0])
        self.assertIn("spine=1 alive=no", spines("status", "--owner", pids[0]))
        self.assertIn("spine=1 alive=yes", spines("status", "--owner", pids[1]))
        spines("down", "--owner", pids[0])
        with udp(names[1]["h2"], False, ADDRESS[False][2], PORT) as receiver, \
                udp(names[1]["h1"], False, ADDRESS[False][1], PORT) as sender:
            sender.sendto(b"x", (ADDRESS[False][2], PORT))
            self.assertEqual(receiver.recv(10), b"x")
        spines("down", "--owner", pids[1])

    def test_run_hands_over_names_and_the_exit_code(self):
        run = subprocess.run([SPINES, "run", "--spines", "2", "--", "sh", "-c",
                              'echo $BED_H1; ip netns exec $BED_H2 true && exit 7'],
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 7, run.stderr)
        pid = int(run.stdout.split("-")[1])
        self.assertFalse(self.left_of(pid))

    def test_run_takes_down_on_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = subprocess.Popen([SPINES, "run", "--", "sh", "-c", "echo up; exec sleep 1000"],
                                   stdout=subprocess.PIPE)
            self.assertEqual(run.stdout.readline(), b"up\n")
            self.assertEqual(len(owners.namespaces_of(run.pid)), 6)
            run.send_signal(number)
            self.assertEqual(run.wait(PATIENCE_S), 128 + number)
            run.stdout.close()
            self.assertTrue(wait_until(lambda: not self.left_of(run.pid)), self.left_of(run.pid))

    def test_a_shell_owns_what_its_substitution_built(self):
        script = 'eval "$(%s up)"; echo $$ $h1 $(%s path 1 2); %s down' % ((SPINES,) * 3)
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
        pid, name, spine = said.stdout.split()
        self.assertEqual(name, "weft-%s-h1" % pid, said.stderr)
        self.assertIn(spine, "1234")
        self.assertTrue(wait_until(lambda: not self.left_of(int(pid))))

    def test_without_root_it_says_that_it_cannot_run_here(self):
        if not os.access(SPINES, os.X_OK) or subprocess.run(
                ["test", "-r", SPINES], user=65534, group=65534, extra_groups=[]).returncode != 0:
            self.skipTest("nobody may not read %s" % SPINES)
        done = subprocess.run([SPINES, "up"], user=65534, group=65534, extra_groups=[],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (77, ""))
        self.assertIn("not root", done.stderr)

    def test_wrong_words_are_usage(self):
        for words, said in (
                (("up", "--spines", "65"), "from 0 to 64"), (("kill", "x"), "from 1 to 64"),
                (("slow", "1", "fast"), "200mbit"), (("slow", "1", "1bit"), "10kbit"),
                (("loss", "101"), "from 0 to 100"), (("loss", "nan"), "from 0 to 100"),
                ((), "what shall it do? up, down"), (("sideways",), "there are up, down"),
                (("up", "--mtu", "100"), "from 1280"), (("up", "--buffer", "2b"), "10kb"),
                (("up", "--owner", "me"), "a whole number"), (("kill",), "SPINE"),
                (("run",), "needs a command"), (("run", "--"), "needs a command"),
                (("run", "--", "/no/such"), "no such program"), (("run", "--up", "--", "true"), "--up")):
            done = subprocess.run([SPINES, *words], capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            for each in (said, "usage: spines", "spines --help"):
                self.assertIn(each, done.stderr, words)
        spines("kill", 1, "--owner", os.getpid(), code=1)

    def test_help_names_every_command_and_option(self):
        said = spines("--help")
        for command in (*command_line.COMMANDS, "watch"):
            self.assertIn("spines %s" % command if command != "revive" else "revive K", said)
            self.assertIn("usage: spines %s" % command, spines(command, "--help"))
        for option in ("--spines", "--mtu", "--rate", "--buffer", "--seed", "--owner", "--from", "-6"):
            self.assertIn(option, said)


class Scenarios(Owners):
    """The programs that run scenarios are owners too; a tool that never ends stands in for ours."""
    FAKE_TOOL = ("#!/bin/sh\n"
                 "while [ \"$1\" != --ranks-in ]; do shift; done\n"
                 "exec ip netns exec ${2%%,*} sleep 1000\n")

    def test_killed_in_the_middle_they_leave_neither_bed_nor_file_nor_job(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            with tempfile.TemporaryDirectory() as programs, tempfile.TemporaryDirectory() as scratch:
                tool = os.path.join(programs, "tool")
                with open(tool, "w", encoding="ascii") as file:
                    file.write(self.FAKE_TOOL)
                os.chmod(tool, 0o755)
                for name in ("speed_test.py", "side_by_side.py"):
                    test = subprocess.Popen([os.path.join(os.path.dirname(SPINES), name), "--tool", tool],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            env=dict(os.environ, TMPDIR=scratch))
                    self.addCleanup(test.wait)
                    self.addCleanup(test.kill)
                    self.assertTrue(wait_until(lambda: self.jobs_of(test.pid)), name)
                    jobs = self.jobs_of(test.pid)
                    test.send_signal(number)
                    test.wait(PATIENCE_S)
                    self.assertTrue(wait_until(lambda: not self.left_of(test.pid)), self.left_of(test.pid))
                    self.assertTrue(wait_until(lambda: not set(jobs) & processes()), jobs)
                    self.assertEqual(os.listdir(scratch), [], "%s, signal %d" % (name, number))

    @staticmethod
    def jobs_of(owner):
        name = "weft-%d-h1" % owner
        if name not in owners.namespaces_of(owner):
            return []
        done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, timeout=60)
        jobs = []
        for pid in done.stdout.split():
            with contextlib.suppress(OSError), open("/proc/%s/cmdline" % pid, "rb") as file:
                jobs += [int(pid)] if file.read().split(b"\0")[0] == b"sleep" else []
        return jobs

    def test_wrong_words_are_usage(self):
        for words, said in ((("--seeds", "0"), "from 1"), (("--seeds", "-1"), "from 1"),
                            (("--seed", "x"), "from 0"), (("--only", "nothing"), "many_paths"),
                            (("--only", ""), "many_paths"), (("--seconds", "nan"), "from 0.1"),
                            (("--tries", "0"), "from 1"), (("--tool", "/no/such"), "no such program"),
                            (("--plugin", "/no/such"), "no such file")):
            done = subprocess.run([os.path.join(os.path.dirname(SPINES), "speed_test.py"), *words],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    sys.exit(bedcase.main())

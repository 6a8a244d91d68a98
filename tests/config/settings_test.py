#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weft_config as a user runs it; and the README's table of settings, row by row against the code's.

  tests/config/settings_test.py WEFT_CONFIG README.md

The last line is `N passed, N failed, N skipped`.
"""
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

ROW = re.compile(r"^\| `(WEFT_\w+)`")
NOBODY = 65534
TOOL = README = ""


def run(*arguments, tool=None, **environment):
    """weft_config with this environment and nothing else."""
    return subprocess.run([tool or TOOL, *arguments], capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", **environment})


def rows_of(markdown):
    """The rows of settings in a text, as (name, row), in order."""
    rows = [(ROW.match(line), line) for line in markdown.splitlines()]
    return [(match.group(1), line) for match, line in rows if match]


def differences(documented, actual):
    """What a README says otherwise than the tool does; empty: nothing. Both are texts."""
    ours, theirs = rows_of(actual), rows_of(documented)
    found = []
    for name, row in ours:
        there = [line for other, line in theirs if other == name]
        if not there:
            found.append("%s has no row; it would be\n  %s" % (name, row))
        elif len(there) > 1:
            found.append("%s has %d rows" % (name, len(there)))
        elif there[0] != row:
            found.append("%s differs: the README says\n  %s\nand the code says\n  %s"
                         % (name, there[0], row))
    known = [name for name, _ in ours]
    found += ["%s is not a setting, and has the row\n  %s" % (name, row)
              for name, row in theirs if name not in known]
    order = [name for name, _ in theirs]
    if not found and order != known:
        found.append("the rows stand in another order: %s" % " ".join(order))
    if found:
        found.append("`build/tools/weft_config --markdown` prints the table as it should be.")
    return found


class TheReadme(unittest.TestCase):
    def setUp(self):
        self.table = run("--markdown").stdout

    def test_agrees_with_the_table(self):
        self.assertGreater(len(rows_of(self.table)), 10)
        with open(README, encoding="utf-8") as readme:
            found = differences(readme.read(), self.table)
        self.assertFalse(found, "\n" + "\n".join(found))

    def wrong(self, old, new):
        self.assertIn(old, self.table)
        found = differences(self.table.replace(old, new), self.table)
        self.assertIn("weft_config --markdown", "".join(found))
        return "".join(found)

    def test_that_is_wrong_is_caught(self):
        self.assertEqual(differences(self.table, self.table), [])
        self.assertIn("WEFT_PATHS differs", self.wrong("| 1 to 256 |", "| 1 to 255 |"))
        self.assertIn("WEFT_PATHS differs", self.wrong("how many paths", "how much paths"))
        self.assertIn("WEFT_LOG has no row", self.wrong("| `WEFT_LOG` |", "| WEFT_LOG |"))
        self.assertIn("WEFT_LGO is not a setting", self.wrong("| `WEFT_LOG` |", "| `WEFT_LGO` |"))
        lines = self.table.splitlines()
        self.assertIn("2 rows", "".join(differences("\n".join(lines + lines[-1:]), self.table)))
        self.assertIn("order", "".join(differences("\n".join(reversed(lines)), self.table)))
        self.assertIn("has no row", "".join(differences("", self.table)))


class TheTool(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="weft-settings-")
        self.addCleanup(shutil.rmtree, self.home)

    def write(self, text):
        with open(os.path.join(self.home, ".weft.conf"), "w", encoding="utf-8") as file:
            file.write(text)

    def test_shows_value_default_origin_and_what_is_allowed(self):
        self.write("\nWEFT_SEGMENT=1408\n")
        result = run(HOME=self.home, WEFT_PATHS="8")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"(?m)^WEFT_PATHS +8 +32 +the environment +1 to 256$")
        self.assertRegex(result.stdout, r"(?m)^WEFT_SEGMENT +1408 +0 +%s:2 +0 to 65280, a multiple"
                         % re.escape(os.path.join(self.home, ".weft.conf")))
        self.assertIn("how many paths a connection spreads its packets over", result.stdout)
        self.assertIn(self.home + "/.weft.conf, /etc/weft.conf", result.stdout)

    def test_says_the_same_as_json(self):
        self.write("WEFT_LOG=info\nWEFT_PATH=8\n")
        result = run("--json", HOME=self.home, WEFT_PATHS="8")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        told = json.loads(result.stdout)
        settings = {row["name"]: row for row in told["settings"]}
        self.assertEqual(list(settings), [name for name, _ in rows_of(run("--markdown").stdout)])
        self.assertEqual((settings["WEFT_PATHS"]["value"], settings["WEFT_PATHS"]["default"]),
                         ("8", "32"))
        self.assertEqual(settings["WEFT_PATHS"]["from"], "the environment")
        self.assertEqual(settings["WEFT_PATHS"]["allowed"], "1 to 256")
        self.assertTrue(settings["WEFT_LOG"]["from"].endswith("/.weft.conf:1"))
        self.assertEqual([row["set"] for row in told["settings"]].count(True), 2)
        self.assertIn("did you mean WEFT_PATHS?", told["warnings"][0])

    def test_warns_of_unknown_names(self):
        result = run(HOME=self.home, WEFT_PATH="8")
        self.assertEqual(result.returncode, 0)
        self.assertIn("warning: WEFT_PATH (from the environment)", result.stderr)

    def test_refuses_what_the_plugin_would_refuse(self):
        self.write("WEFT_PATHS=300\n")
        result = run(HOME=self.home)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("WEFT_PATHS=300 (from %s/.weft.conf:1) is out of range" % self.home,
                      result.stderr)
        self.assertIn("from 1 to 256", result.stderr)
        told = run("--json", HOME=self.home)
        self.assertEqual(told.returncode, 2)
        self.assertIn("WEFT_PATHS=300", json.loads(told.stdout)["error"])

    def test_prints_the_same_table_for_the_readme_whatever_is_set(self):
        self.write("WEFT_PATHS=300\n")
        self.assertEqual(run("--markdown", HOME=self.home, WEFT_LOG="loud").stdout,
                         run("--markdown").stdout)

    def test_refuses_an_option_that_there_is_not(self):
        self.assertEqual(run("--jsno").returncode, 2)
        self.assertEqual(run("--json", "--markdown").returncode, 2)
        self.assertEqual(run("--help").returncode, 0)

    def test_with_rights_that_its_caller_lacks_ignores_what_the_caller_sets(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make a program that runs as somebody else")
        if os.statvfs(self.home).f_flag & os.ST_NOSUID:
            self.skipTest("no set-user-ID programs in the temporary folder")
        copy = os.path.join(self.home, "weft_config")
        shutil.copy(TOOL, copy)
        os.chmod(self.home, 0o755)
        os.chown(copy, NOBODY, NOBODY)
        os.chmod(copy, 0o755 | stat.S_ISUID)
        self.write("WEFT_PATHS=7\n")
        told = json.loads(run("--json", tool=copy, HOME=self.home, WEFT_WINDOW_KB="77").stdout)
        values = {row["name"]: row["from"] for row in told["settings"]}
        self.assertNotIn("environment", values["WEFT_WINDOW_KB"])
        self.assertNotIn(self.home, values["WEFT_PATHS"])
        self.assertIn("rights that its caller lacks", told["warnings"][0])


def main():
    global TOOL, README
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    TOOL, README = map(os.path.abspath, sys.argv[1:])
    result = unittest.TextTestRunner(stream=sys.stdout).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    if bad:
        print("To run it again: %s" % " ".join(sys.argv))
    print("%d passed, %d failed, %d skipped"
          % (result.testsRun - bad - len(result.skipped), bad, len(result.skipped)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

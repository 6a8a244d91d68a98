#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tree and says where it breaks a rule that no compiler checks (tables.py has them).

  tests/tidy/check.py [FOLDER]

One line a finding, FILE:LINE: what is wrong. The last line is `N passed, N failed, 0 skipped`, a
rule counting as one.
"""
import os
import sys

sys.dont_write_bytecode = True  # the tree is left as it was

import arrows
import listed
import rules
import tables
import tree

RULES = [
    ("arrows of includes", arrows.check_includes),
    ("arrows of links", arrows.check_links),
    ("headers of the pure core", arrows.check_pure),
    ("banned words", rules.check_bans),
    ("lengths of files and functions", rules.check_sizes),
    ("columns", rules.check_columns),
    ("first lines", rules.check_beginnings),
    ("paths of one machine", rules.check_paths),
    ("Python that parses", rules.check_python),
    ("settings that exist", rules.check_variables),
    ("sources that are built", listed.check_sources),
    ("tests that are run", listed.check_tests),
]


def findings(top, with_tables=tables):
    """(rule, file, line, words) of all that is wrong."""
    files = tree.read_tree(top)
    return [(rule, *finding) for rule, check in RULES for finding in check(files, with_tables)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
    found = findings(top)
    for _, name, line, words in found:
        print("%s:%d: %s" % (name, line, words))
    for words in rules.slack(tree.read_tree(top), tables):
        print("remark: " + words)
    broken = {rule for rule, *_ in found}
    print("%d passed, %d failed, 0 skipped" % (len(RULES) - len(broken), len(broken)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

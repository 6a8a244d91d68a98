#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what a shared object needs and shows, by reading it with readelf and nm.

  check_link.py needed  LIBRARY            NEEDED names glibc's own libraries and the loader only,
                                           and there is no RPATH or RUNPATH
  check_link.py glibc   LIBRARY            no symbol version above GLIBC_2.34
  check_link.py exports LIBRARY SYMBOL...  the defined dynamic symbols are exactly these

With --must-fail the verdict is turned round: a check that finds nothing in a library made wrong on
purpose is itself wrong. Exit codes: 0 good, 1 not, 2 usage, 77 cannot run here.
"""
import argparse
import os
import platform
import re
import shutil
import subprocess
import sys

ALLOWED = re.compile(
    r"^(lib(c|m)\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux[-\w]*\.so\.\d+)$")
NEWEST_GLIBC = (2, 34)
# The release is built with Debian 12's glibc. A newer one may give old functions new versions
# behind our back, so that a build against it cannot be held to the limit.
RELEASE_GLIBC = (2, 36)


def run(*command):
    environment = dict(os.environ, LC_ALL="C")
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment,
                          universal_newlines=True).stdout


def numbers(version):
    return tuple(int(part) for part in version.split("."))


def check_needed(library, _):
    dynamic = run("readelf", "--dynamic", "--wide", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    print("needs:", " ".join(needed))
    faults = ["needs %s, which is not a part of glibc" % name
              for name in needed if not ALLOWED.match(name)]
    faults += ["has %s: it would look for libraries on the build machine" % tag
               for tag in re.findall(r"\((RPATH|RUNPATH)\)", dynamic)]
    if not needed:
        faults.append("names no library at all: is it a shared object?")
    return faults


def check_glibc(library, _):
    symbols = re.findall(r"(\S+)@@?GLIBC_([0-9.]+)",
                         run("readelf", "--dyn-syms", "--wide", library))
    if not symbols:
        return ["has no versioned symbol: is it a shared object?"]
    highest = max(numbers(version) for _, version in symbols)
    print("highest symbol version: GLIBC_%d.%d of %d symbols" % (*highest[:2], len(symbols)))
    return ["needs %s of GLIBC_%s, above GLIBC_%d.%d" % (name, version, *NEWEST_GLIBC)
            for name, version in symbols if numbers(version) > NEWEST_GLIBC]


def check_exports(library, wanted):
    if not wanted:
        sys.exit("exports: which symbols? none were given")
    lines = run("nm", "--dynamic", "--defined-only", library).splitlines()
    # A version script with a name would show as an absolute symbol, and counts as an export.
    found = {line.split()[-1] for line in lines if line.strip()}
    print("exports:", " ".join(sorted(found)[:20]))
    return (["exports %s, which it should not" % name for name in sorted(found - set(wanted))] +
            ["does not export %s" % name for name in sorted(set(wanted) - found)])


def main():
    checks = {"needed": check_needed, "glibc": check_glibc, "exports": check_exports}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--must-fail", action="store_true")
    parser.add_argument("check", choices=sorted(checks))
    parser.add_argument("library")
    parser.add_argument("symbols", nargs="*")
    arguments = parser.parse_args()

    for tool in ("readelf", "nm"):
        if shutil.which(tool) is None:
            print("SKIP: %s is missing (package binutils)" % tool)
            return 77
    faults = checks[arguments.check](arguments.library, arguments.symbols)
    for fault in faults[:20]:
        print("%s %s" % (arguments.library, fault))
    here = numbers(platform.libc_ver()[1] or "0.0")
    if arguments.must_fail:
        if not faults and arguments.check == "glibc" and here < RELEASE_GLIBC:
            print("SKIP: glibc %d.%d has nothing above the limit to link to" % here[:2])
            return 77
        print("found %d faults, as it should" % len(faults) if faults else "FAIL: found no fault")
        return 0 if faults else 1
    if faults and arguments.check == "glibc" and here > RELEASE_GLIBC:
        print("SKIP: built against glibc %d.%d; releases are built against %d.%d" %
              (*here[:2], *RELEASE_GLIBC))
        return 77
    print("FAIL" if faults else "PASS")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

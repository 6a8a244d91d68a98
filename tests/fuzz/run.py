#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes one target for some seconds, beginning with its committed inputs.

  run.py [--caught] [--seconds N] TARGET CORPUS

Inputs that are found go to a folder of the build and are not kept. A failure prints the input as
text that can be pasted, where it lies, and how to run it again. With --caught the target is wrong
on purpose, and the failure is that nothing was found.
"""
import argparse
import base64
import os
import shutil
import subprocess
import sys

SEED = 20261207
LONGEST = 4096  # bytes of an input


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--caught", action="store_true")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("target")
    parser.add_argument("corpus")
    return parser.parse_args()


def newest_artifact(folder):
    files = [os.path.join(folder, name) for name in os.listdir(folder)]
    return max(files, key=os.path.getmtime, default=None)


def explain(target, artifact):
    print("\nThe input that did it: %s" % os.path.relpath(artifact))
    with open(artifact, "rb") as file:
        content = file.read()
    print("(%d bytes; base64 -d of: %s)" % (len(content), base64.b64encode(content).decode()))
    print("To run it again:\n  %s %s" % (os.path.relpath(target), os.path.relpath(artifact)))


def main():
    arguments = parse_arguments()
    target = os.path.abspath(arguments.target)
    found, artifacts = target + ".found", target + ".failed"
    for folder in (found, artifacts):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    command = [target, "-max_total_time=%d" % arguments.seconds, "-seed=%d" % SEED,
               "-max_len=%d" % LONGEST, "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
               "-verbosity=0", "-artifact_prefix=%s/" % artifacts, found, arguments.corpus]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         errors="replace", timeout=arguments.seconds + 300, check=False)
    print(run.stdout)
    artifact = newest_artifact(artifacts)
    if artifact:
        explain(target, artifact)
    if not arguments.caught:
        return 1 if run.returncode != 0 else 0
    report = "AddressSanitizer: heap-buffer-overflow"
    caught = run.returncode != 0 and artifact and report in run.stdout
    print("the planted mistake was %s" %
          ("found" if caught else "NOT found: fuzzing proves nothing"))
    return 0 if caught else 1


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, and C++ without its comments and strings."""
import os
import re
import subprocess

CXX = (".cc", ".h", ".c")

# In the order in which one of them can begin: raw strings before strings. A quote between digits
# separates them and begins nothing.
_TOKEN = re.compile(
    r'R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'"
    r"|//[^\n]*"
    r"|/\*.*?\*/",
    re.DOTALL)


def without_comments(text):
    """The same text, line by line, with blanks for comments and for what is inside quotes."""
    def blank(match):
        token = match.group(0)
        inside = re.sub(r"[^\n]", " ", token)
        return '"' + inside[1:-1] + '"' if token[0] in "\"R" and len(inside) > 1 else inside
    return _TOKEN.sub(blank, text)


class File:
    def __init__(self, top, name):
        self.top = top
        self.name = name
        self.folder = os.path.dirname(name)
        with open(os.path.join(top, name), encoding="utf-8", errors="replace") as file:
            self.text = file.read()
        self.lines = self.text.split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.is_cxx = name.endswith(CXX)
        self.is_meson = os.path.basename(name) in ("meson.build", "meson_options.txt")
        self.is_python = name.endswith(".py") or (not self.is_cxx and bool(self.lines) and
                                                  self.lines[0].startswith("#!") and
                                                  "python" in self.lines[0])
        self.is_script = bool(self.lines) and self.lines[0].startswith("#!")
        self.code = without_comments(self.text) if self.is_cxx else ""

    def is_in_tree(self, name):
        return os.path.isfile(os.path.join(self.top, name))

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def _names(top):
    if os.path.exists(os.path.join(top, ".git")):
        git = subprocess.run(["git", "-C", top, "ls-files", "-z"], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=False)
        if git.returncode == 0 and git.stdout:
            return [os.fsdecode(name) for name in git.stdout.split(b"\0") if name]
    names = []
    for folder, folders, files in os.walk(top):
        folders[:] = [f for f in folders
                      if not f.startswith("build") and f not in (".git", "__pycache__", ".cache")]
        names += [os.path.relpath(os.path.join(folder, name), top) for name in files]
    return names


def read_tree(top):
    """Every text file that git knows (all files where there is no git), recorded data aside."""
    data = ("tests/traces/", "tests/fuzz/corpus/")
    names = [name for name in sorted(_names(top)) if not name.startswith(data)]
    return [File(top, name) for name in names if os.path.isfile(os.path.join(top, name))]

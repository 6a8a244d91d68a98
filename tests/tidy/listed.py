# SPDX-License-Identifier: Apache-2.0
"""Nothing lies about unbuilt and no test untested: what the meson.build files have to name."""
import os
import re


def _meson_above(file, meson):
    """(names said, the file's name from there) for its folder and for those above it."""
    folder = file.folder
    while True:
        if folder in meson:
            yield meson[folder], os.path.relpath(file.name, folder or ".")
        if not folder:
            return
        folder = os.path.dirname(folder)


def _quoted(text):
    return set(re.findall(r"'([^'\n]*)'", text))


def check_sources(files, _):
    meson = {file.folder: _quoted(file.text) for file in files if file.is_meson}
    for file in files:
        if not file.name.endswith((".cc", ".c")):
            continue
        base = os.path.basename(file.name)
        stem = base.rsplit(".", 1)[0]
        # Loops over names say 'data' for data.cc or data_test.cc.
        names = {stem, re.sub(r"_test$", "", stem)}
        if not any((names | {path}) & quoted for quoted, path in _meson_above(file, meson)):
            yield file.name, 1, "no meson.build names %s: it is not built" % base


def _calls(text, function):
    """(offset, text) of each call of a function, up to its closing bracket."""
    for match in re.finditer(r"\b%s\(" % function, text):
        depth = 0
        for at in range(match.end() - 1, len(text)):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            if depth == 0:
                yield match.start(), text[match.start():at + 1]
                break


def check_tests(files, _):
    """A program made of *_test.cc, and every *_test.py, is in the call of some test()."""
    scripts = {}
    for file in files:
        if not file.is_meson:
            continue
        text = re.sub(r"#[^\n]*", "", file.text)
        tests = [(at, call) for at, call in _calls(text, "test")]
        scripts[file.folder] = (" ".join(call for _, call in tests), _quoted(text))
        for at, call in _calls(text, "executable"):
            if not re.search(r"_test\.cc?'|'_test\.cc?'", call):
                continue
            inside = any(start < at < start + len(whole) for start, whole in tests)
            variable = re.search(r"(\w+)\s*=\s*$", text[:at])
            if not inside and not (variable and any(
                    re.search(r"\b%s\b" % variable.group(1), whole) for _, whole in tests)):
                yield (file.name, text.count("\n", 0, at) + 1,
                       "a program of tests that no test() runs")
    for file in files:
        base = os.path.basename(file.name)
        if not base.endswith("_test.py"):
            continue
        stem = base[:-len("_test.py")]
        calls, quoted = scripts.get(file.folder, ("", set()))
        in_loop = "'_test.py'" in calls and stem in quoted
        if "'%s'" % base not in calls and not in_loop:
            yield file.name, 1, "no test() runs it"

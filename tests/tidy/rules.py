# SPDX-License-Identifier: Apache-2.0
"""What single files must keep: words, sizes, first lines, names."""
import ast
import re
from collections import Counter

import functions


def under(folder, tops):
    return any(folder == top or folder.startswith(top + "/") for top in tops)


def check_bans(files, tables):
    used = Counter()
    for file in files:
        if not file.is_cxx:
            continue
        for tops, pattern, why in tables.BANS:
            if not under(file.folder, tops):
                continue
            for match in re.finditer(pattern, file.code):
                key = (file.name, re.sub(r"\s+", "", match.group(0)))
                used[key] += 1
                if used[key] > tables.BAN_EXCEPTIONS.get(key, (0, ""))[0]:
                    yield file.name, file.line_of(match.start()), "%s: %s" % (key[1], why)


def ceiling(name, count, limit, table, what, line=1):
    """A count against its limit or, where a table has one, its own ceiling."""
    own = table.get(name)
    if own is None:
        if count > limit:
            yield name, line, "%s, at most %d are allowed" % (what % count, limit)
    elif count > own:
        yield name, line, "%s, more than its ceiling of %d, which may only fall" % (
            what % count, own)


def check_sizes(files, tables):
    for file in files:
        if file.is_cxx or file.is_python:
            yield from ceiling(file.name, len(file.lines), tables.MAX_FILE_LINES,
                               tables.LONG_FILES, "%d lines")
        if file.is_cxx:
            found = functions.functions_in(file.code)
        elif file.is_python:
            found = functions.python_functions_in(file.text)
        else:
            continue
        for name, line, length in found:
            key = file.name + ":" + name
            for _, _, words in ceiling(key, length, tables.MAX_FUNCTION_LINES,
                                       tables.LONG_FUNCTIONS, name + " has %d lines"):
                yield file.name, line, words


def slack(files, tables):
    """Remarks on ceilings and exceptions that could be lower, or are not needed any more."""
    by_name = {file.name: file for file in files}
    for name, own in tables.LONG_FILES.items():
        have = len(by_name[name].lines) if name in by_name else 0
        if have < own:
            yield "%s has %d lines: lower its ceiling of %d" % (name, have, own)
    for (folder, kind), own in tables.LONG_LINES.items():
        have = len([1 for file in files for line in file.lines
                    if (file.folder, kind_of(file)) == (folder, kind)
                    and len(line) > tables.MAX_COLUMNS and "http" not in line])
        if have < own:
            yield "%s has %d long lines of %s: lower the ceiling of %d" % (folder, have, kind, own)
    for name, text in tables.BAN_EXCEPTIONS:
        code = re.sub(r"\s+", "", by_name[name].code) if name in by_name else ""
        if text not in code:
            yield "%s holds no %s any more: take its exception away" % (name, text)


def kind_of(file):
    return "C++" if file.is_cxx else "Python" if file.is_python else None


def check_columns(files, tables):
    by_group = {}
    for file in files:
        kind = kind_of(file)
        for number, line in enumerate(file.lines, 1):
            if kind and len(line) > tables.MAX_COLUMNS and "http" not in line:
                by_group.setdefault((file.folder, kind), []).append((file.name, number, len(line)))
    for group, found in by_group.items():
        allowed = tables.LONG_LINES.get(group, 0)
        for name, number, columns in found if len(found) > allowed else []:
            yield name, number, "%d columns, at most %d are allowed%s" % (
                columns, tables.MAX_COLUMNS,
                " (%d such lines in %s, whose ceiling is %d)"
                % (len(found), group[0], allowed) if allowed else "")


def check_beginnings(files, _):
    for file in files:
        if not (file.is_cxx or file.is_python or file.is_script or file.is_meson):
            continue
        lines = file.lines[1:] if file.is_script else file.lines
        mark = "//" if file.is_cxx else "#"
        at = 2 if file.is_script else 1
        licence = mark + " SPDX-License-Identifier: Apache-2.0"
        if not lines or lines[0] != licence:
            yield file.name, at, "the first line is not '%s'" % licence
            continue
        rest = [line for line in lines[1:4] if line.strip() not in ("", mark)]
        comment = rest and rest[0].startswith((mark, '"""', "option("))
        if not comment:
            yield file.name, at + 1, "no comment says what this file is"


def check_paths(files, tables):
    for file in files:
        if file.name in tables.MACHINE_PATH_EXCEPTIONS or file.folder == "tests/tidy":
            continue
        for match in re.finditer(tables.MACHINE_PATH, file.text):
            yield (file.name, file.line_of(match.start()),
                   "%s is a path of one machine" % match.group(0))


def check_python(files, _):
    for file in files:
        if not file.is_python:
            continue
        try:
            ast.parse(file.text)
        except SyntaxError as error:
            yield file.name, error.lineno or 1, "is no Python: %s" % error.msg


def setting_names(files):
    for file in files:
        if file.name == "transport/system/config.cc":
            return set(re.findall(r'\{Setting::k\w+,\s*"(WEFT_\w+)"', file.text))
    return set()


def defined_names(files):
    """WEFT_ names that are macros, or that a meson.build gives to the compiler."""
    names = set()
    for file in files:
        names.update(re.findall(r"#\s*define\s+(WEFT_\w+)", file.text))
        if file.is_meson:
            names.update(re.findall(r"-D(WEFT_\w+)", file.text))
    return names


def check_variables(files, tables):
    known = setting_names(files) | defined_names(files) | set(tables.TEST_VARIABLES)
    for file in files:
        if under(file.folder, tables.WRONG_NAMES_ALLOWED):
            continue
        for match in re.finditer(r"(?<![\w-])WEFT_[A-Z0-9_]*[A-Z0-9](?![\w*])", file.text):
            name = match.group(0)
            if name in known or name.startswith(tables.TEST_VARIABLE_PREFIX):
                continue
            yield (file.name, file.line_of(match.start()),
                   "%s is no setting (the table is in transport/system/config.cc)" % name)

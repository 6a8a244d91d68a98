# SPDX-License-Identifier: Apache-2.0
"""Who includes and links whom: the arrows of ARCHITECTURE.md, in #include lines and meson.build."""
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
SYSTEM_INCLUDE = re.compile(r"^\s*#\s*include\s+<([^>]+)>", re.MULTILINE)


def check_includes(files, tables):
    for file in files:
        if not file.is_cxx:
            continue
        if file.folder not in tables.ARROWS:
            yield (file.name, 1, "the folder %s stands in no row of ARROWS: say what it may include"
                   % file.folder)
            continue
        for match in INCLUDE.finditer(file.text):
            wanted = match.group(1)
            line = file.line_of(match.start(1))
            folder = wanted.rpartition("/")[0]
            if folder not in tables.ARROWS or not file.is_in_tree(wanted):
                yield (file.name, line, '"%s" is no file of ours, seen from the root' % wanted)
                continue
            only = tables.ONLY_FILES.get((file.folder, folder))
            allowed = folder == file.folder or folder in tables.ARROWS[file.folder]
            if not allowed or (only is not None and wanted not in only):
                yield (file.name, line, "%s may not include %s: arrows run down only"
                       % (file.folder, wanted))


def check_pure(files, tables):
    for file in files:
        if not file.is_cxx or file.folder not in tables.PURE:
            continue
        allowed = tables.PURE_HEADERS | set(tables.PURE_EXCEPTIONS.get(file.name, []))
        for match in SYSTEM_INCLUDE.finditer(file.text):
            if match.group(1) not in allowed:
                yield (file.name, file.line_of(match.start(1)),
                       "%s is pure: <%s> is not among the headers that it needs"
                       % (file.folder, match.group(1)))


def check_links(files, tables):
    """What the libraries and tests of a folder link, by the names of the dependencies."""
    word = re.compile(r"\b(%s)\b" % "|".join(tables.MESON_FOLDERS))
    for file in files:
        if not file.name.endswith("/meson.build"):
            continue
        folder = tables.MESON_HOME.get(file.folder, file.folder)
        if folder not in tables.ARROWS:
            continue  # holds folders only
        for number, line in enumerate(file.lines, 1):
            line = line.split("#")[0]
            for name in word.findall(line):
                if re.match(r"\s*%s\s*=" % name, line):
                    continue  # its own
                target = tables.MESON_FOLDERS[name]
                if target not in {folder, file.folder, *tables.ARROWS[folder]}:
                    yield (file.name, number, "%s may not link %s (%s): arrows run down only"
                           % (folder, target, name))

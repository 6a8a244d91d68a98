# SPDX-License-Identifier: Apache-2.0
"""Functions and their lengths: C++ by its braces, Python by its own parser.

A brace at the level of namespaces and classes opens a function's body when what stands before it,
back to the last ';', '{' or '}', has a parameter list; else it opens a namespace, a class or an
initializer. What is nested in a body belongs to it. Lengths are from the first line of the head to
the closing brace.
"""
import ast
import re

CONTAINER = re.compile(r"\b(?:namespace|class|struct|union|enum)\b(?![^;{}]*\)\s*(?:const|noexcept|"
                       r"override|final|->|$))|\bextern\s*\"\s*\"\s*$")
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
NAME = re.compile(r"([~\w:]+|operator\s*\S+)\s*\(")


def _is_function(head):
    head = head.strip()
    if not head or head.endswith("=") or CONTAINER.search(head):
        return False
    return ")" in head


def _name_of(head):
    match = NAME.search(head)
    if not match:
        return "a function"
    if match.group(1).startswith("TEST"):  # TEST(Suite, Name)
        inside = head[match.end():].split(")")[0]
        return ".".join(word.strip() for word in inside.split(","))
    return match.group(1)


def functions_in(code):
    """(name, line, lines) of each function in code whose comments and strings are blank."""
    code = PREPROCESSOR.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), code)
    found = []
    depth = 0       # of braces inside a body, 0 outside of any
    head_from = 0
    begin = name = None
    for match in re.finditer(r"[;{}]", code):
        mark, at = match.group(0), match.start()
        if depth > 0:
            depth += {"{": 1, "}": -1, ";": 0}[mark]
            if depth == 0 and begin is not None:
                first = code.count("\n", 0, begin) + 1
                found.append((name, first, code.count("\n", 0, at) + 2 - first))
                begin = None
        elif mark == "{":
            head = code[head_from:at]
            if _is_function(head):
                begin = head_from + len(head) - len(head.lstrip())
                name = _name_of(head)
                depth = 1
            elif head.rstrip().endswith(("=", ",", "(", "]")) or not CONTAINER.search(head):
                depth = 1  # an initializer, which is measured by nobody
        head_from = at + 1
    return found


def python_functions_in(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return []  # another rule says so
    return [(node.name, node.lineno, node.end_lineno - node.lineno + 1) for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

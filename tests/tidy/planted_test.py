#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule refuses what it is there for: a small tree that is good, with one thing wrong in it."""
import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import check  # noqa: E402
import tables  # noqa: E402

CXX = "// SPDX-License-Identifier: Apache-2.0\n// What it is.\n"
MESON = "# SPDX-License-Identifier: Apache-2.0\n# What it is.\n"
GOOD = {
    "transport/base/post.h": CXX + "#pragma once\n#include <cstdint>\n",
    "transport/system/config.cc": CXX + '    {Setting::kPaths, "WEFT_PATHS", Kind::kWhole},\n',
    "transport/system/meson.build": MESON + "l = static_library('s', 'config.cc',\n"
                                            "  dependencies: [base_dep])\n",
    "multipath/path/path.h": CXX + '#include "transport/base/post.h"\n#include <vector>\n',
    "multipath/connection/sender.cc": CXX + '#include "multipath/path/path.h"\n'
                                            "int f(int a) {\n  return a;  // never abort()\n}\n",
    "multipath/connection/meson.build": MESON + "static_library('c', 'sender.cc',\n"
                                                "  dependencies: [path_dep])\n",
    "tests/unit/path/path_test.cc": CXX + '#include "multipath/path/path.h"\n',
    "tests/unit/path/meson.build": MESON + "test('p', executable('p', 'path_test.cc'))\n",
    "tests/config/settings_test.py": '# SPDX-License-Identifier: Apache-2.0\n"""What it is."""\n',
    "tests/config/meson.build": MESON + "test('s', find_program('settings_test.py'))\n",
    "README.md": "`WEFT_PATHS` and WEFT_TEST_SEED\n",
}


class Planted(unittest.TestCase):
    def findings(self, changes, **other_tables):
        with tempfile.TemporaryDirectory() as top:
            for name, text in {**GOOD, **changes}.items():
                if text is None:
                    continue
                os.makedirs(os.path.dirname(os.path.join(top, name)) or top, exist_ok=True)
                with open(os.path.join(top, name), "w", encoding="utf-8") as file:
                    file.write(text)
            before = {name: getattr(tables, name) for name in other_tables}
            for name, value in other_tables.items():
                setattr(tables, name, value)
            try:
                return check.findings(top)
            finally:
                for name, value in before.items():
                    setattr(tables, name, value)

    def refused(self, rule, name, line, words, text, **other_tables):
        """`text` in `name` is refused, and nothing else is."""
        found = self.findings({name: text}, **other_tables)
        self.assertEqual([finding[:3] for finding in found], [(rule, name, line)], found)
        self.assertIn(words, found[0][3])

    def test_a_good_tree_is_let_be(self):
        self.assertEqual(self.findings({}), [])

    def test_an_arrow_up(self):
        self.refused("arrows of includes", "transport/base/post.h", 4, "arrows run down only",
                     CXX + '#pragma once\n#include "multipath/path/path.h"\n')

    def test_an_arrow_between_fabrics(self):
        found = self.findings({"transport/sim/y.h": CXX,
                               "transport/udp/x.h": CXX + '#include "transport/sim/y.h"\n'})
        self.assertEqual([finding[1:3] for finding in found], [("transport/udp/x.h", 3)], found)
        self.assertIn("transport/udp may not include transport/sim/y.h", found[0][3])

    def test_a_file_that_is_not_there(self):
        self.refused("arrows of includes", "multipath/path/path.h", 3, "no file of ours",
                     CXX + '#include "path.h"\n')

    def test_a_folder_without_a_row(self):
        self.refused("arrows of includes", "multipath/new/x.h", 1, "no row of ARROWS", CXX)

    def test_a_link_up(self):
        self.refused("arrows of links", "multipath/connection/meson.build", 4, "(engine_dep)",
                     MESON + "static_library('c', 'sender.cc',\n  dependencies: [engine_dep])\n")

    def test_a_test_that_links_more_than_it_may(self):
        self.refused("arrows of links", "tests/unit/path/meson.build", 3, "(udp_dep)",
                     MESON + "test('p', executable('p', 'path_test.cc', dependencies: udp_dep))\n")

    def test_a_header_in_the_core(self):
        for header in ("chrono", "thread", "random", "unistd.h", "sys/socket.h", "iostream"):
            self.refused("headers of the pure core", "multipath/path/path.h", 3, header,
                         CXX + "#include <%s>\n" % header)

    def test_words_that_are_banned(self):
        cases = {
            "abort();": "never takes the process down", "std::exit(1);": "never takes",
            "assert(x);": "never takes", "std::terminate();": "never takes", "throw 1;": "throws",
            'printf("x");': "printed", "std::cerr << x;": "printed", 'system("ls");': "process",
            'getenv("X");': "environment", "std::thread t;": "threads live",
            "std::random_device d;": "seeds", "auto t = std::chrono::seconds(1);": "no clock",
            "::clock_gettime(0, &t);": "no clock", "std::mutex m;": "no threads",
            'log_warn("x");': "no log", "rand();": "bounded or seeded",
        }
        for text, words in cases.items():
            with self.subTest(text):
                self.refused("banned words", "multipath/connection/sender.cc", 3, words,
                             CXX + text + "\n")

    def test_words_in_comments_and_strings_are_let_be(self):
        text = CXX + 'const char* s = "abort()";  // abort()\n'
        text += '/* exit(1);\n throw */ char c = \'"\';\n'
        text += 'const char* raw = R"(abort() ")";\nint big = 1\'000; int t = x.abort();\n'
        self.assertEqual(self.findings({"multipath/connection/sender.cc": text}), [])

    def test_a_word_that_is_excepted_once_and_there_twice(self):
        self.refused("banned words", "transport/system/config.cc", 5, "environ",
                     GOOD["transport/system/config.cc"] + "f(environ);\nf(environ);\n",
                     BAN_EXCEPTIONS={("transport/system/config.cc", "environ"): (1, "why")})

    def test_a_long_file(self):
        self.refused("lengths of files and functions", "multipath/path/path.h", 1,
                     "301 lines, at most 300", CXX + "// x\n" * 299)

    def test_a_file_above_its_own_ceiling(self):
        self.refused("lengths of files and functions", "multipath/path/path.h", 1,
                     "its ceiling of 302", CXX + "// x\n" * 301,
                     LONG_FILES={"multipath/path/path.h": 302})

    def test_a_long_function(self):
        body = "struct S {\n  int a = {};\n  int get() const {\n" + "    f();\n" * 69 + "  }\n};\n"
        self.refused("lengths of files and functions", "multipath/path/path.h", 5,
                     "get has 71 lines", CXX + body)
        body = body.replace("    f();\n", "", 1)
        self.assertEqual(self.findings({"multipath/path/path.h": CXX + body}), [])

    def test_a_long_test_case(self):
        text = CXX + "namespace {\nTEST(Paths, Live) {\n" + "  f();\n" * 70 + "}\n}\n"
        self.refused("lengths of files and functions", "tests/unit/path/path_test.cc", 4,
                     "Paths.Live has 72 lines", text)

    def test_a_long_python_function(self):
        text = GOOD["tests/config/settings_test.py"] + "def f():\n" + "    g()\n" * 70
        self.refused("lengths of files and functions", "tests/config/settings_test.py", 3,
                     "f has 71 lines", text)

    def test_a_wide_line(self):
        self.refused("columns", "multipath/path/path.h", 3, "101 columns", CXX + "/" * 101 + "\n")
        wide = CXX + ("/" * 101 + "\n") * 2
        found = self.findings({"multipath/path/path.h": wide},
                              LONG_LINES={("multipath/path", "C++"): 1})
        self.assertEqual(len(found), 2, found)

    def test_no_licence(self):
        self.refused("first lines", "multipath/path/path.h", 1, "SPDX", "// What it is.\n")
        self.refused("first lines", "tests/unit/path/meson.build", 1, "SPDX",
                     "#SPDX\n" + GOOD["tests/unit/path/meson.build"])

    def test_no_word_on_what_it_is(self):
        self.refused("first lines", "multipath/path/path.h", 2, "no comment",
                     CXX.splitlines()[0] + "\n#pragma once\n")

    def test_a_path_of_one_machine(self):
        self.refused("paths of one machine", "README.md", 2, "/home/me",
                     "line\nsee /home/me/weft\n")

    def test_python_that_does_not_parse(self):
        self.refused("Python that parses", "tests/config/settings_test.py", 3, "is no Python",
                     GOOD["tests/config/settings_test.py"] + "def f(:\n")

    def test_a_setting_that_there_is_not(self):
        self.refused("settings that exist", "README.md", 1, "WEFT_PATH is no setting",
                     "`WEFT_PATH=8`\n")

    def test_a_source_that_is_not_built(self):
        self.refused("sources that are built", "multipath/connection/lost.cc", 1, "not built", CXX)

    def test_a_test_that_does_not_run(self):
        self.refused("tests that are run", "tests/unit/path/meson.build", 3, "no test() runs",
                     MESON + "executable('p', 'path_test.cc')\n")
        self.refused("tests that are run", "tests/config/other_test.py", 1, "no test() runs",
                     GOOD["tests/config/settings_test.py"])

    def test_the_command_fails_and_says_where(self):
        with tempfile.TemporaryDirectory() as top, io.StringIO() as out:
            with open(os.path.join(top, "x.h"), "w", encoding="utf-8") as file:
                file.write("int x;\n")
            with contextlib.redirect_stdout(out):
                sys.argv = ["check.py", top]
                self.assertEqual(check.main(), 1)
            self.assertIn("x.h:1: the first line is not", out.getvalue())
            self.assertIn("10 passed, 2 failed, 0 skipped", out.getvalue())


if __name__ == "__main__":
    result = unittest.TextTestRunner(stream=sys.stdout).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad, bad, len(result.skipped)))
    sys.exit(1 if bad else 0)

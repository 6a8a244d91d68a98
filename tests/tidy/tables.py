# SPDX-License-Identifier: Apache-2.0
"""What the tree must keep, as tables. A rule changes here and in ARCHITECTURE.md, or not at all.

Every exception carries its reason, and a ceiling where there is something to count: lower it when
the code gets better, as the check remarks when it could be.
"""

# --- Arrows. Which folder may include which, and link which. A folder may always include itself.

BASE = ["transport/base"]
WIRE = BASE + ["transport/wire"]
FABRIC = WIRE + ["transport"]
CORE = WIRE + ["multipath/path", "multipath/congestion", "multipath/connection"]
ENGINE = CORE + ["transport", "transport/system", "multipath/engine"]
ENDPOINT = ENGINE + ["multipath/endpoint"]
PLUGIN = ENDPOINT + ["transport/udp", "plugin", "plugin/nccl"]
NCCLNET = ["tools/common", "tools/ncclnet", "plugin/nccl"]  # drives any plugin, and knows none
SIMTOOL = ENGINE + ["transport/sim", "transport/sim/cluster", "tools/common", "tools/sim"]

ARROWS = {
    "transport": WIRE,
    "transport/base": [],
    "transport/wire": BASE,
    "transport/system": BASE,
    "transport/udp": FABRIC + ["transport/system"],
    "transport/sim": FABRIC + ["transport/sim/cluster"],
    "transport/sim/cluster": FABRIC + ["transport/sim"],
    "multipath/path": WIRE,
    "multipath/congestion": WIRE,
    "multipath/connection": CORE,
    "multipath/engine": ENGINE,
    "multipath/endpoint": ENDPOINT,
    "plugin": PLUGIN,
    "plugin/link": [],
    "plugin/nccl": [],
    "plugin/tables": ["plugin", "plugin/nccl"],
    "tools": SIMTOOL + ["transport/system"],  # links what its folders declare
    "tools/common": [],
    "tools/config": ["tools/common", "transport/system"],
    "tools/ncclnet": NCCLNET,
    "tools/sim": SIMTOOL,
    "bench": CORE + ["transport"],
    "bench/peers": NCCLNET,
    # A test of one folder sees that folder and what it may include.
    "tests/unit/base": BASE + ["transport"],
    "tests/unit/wire": WIRE,
    "tests/unit/system": BASE + ["transport/system"],
    "tests/unit/udp": FABRIC + ["transport/system", "transport/udp"],
    "tests/unit/sim": FABRIC + ["transport/sim", "transport/sim/cluster"],
    "tests/unit/path": WIRE + ["multipath/path"],
    "tests/unit/congestion": WIRE + ["multipath/congestion"],
    "tests/unit/connection": CORE,
    "tests/unit/engine": ENGINE + ["transport/sim"],
    "tests/unit/endpoint": ENDPOINT + ["transport/udp"],
    "tests/sim": CORE + ["transport", "transport/sim"],
    "tests/simtool": SIMTOOL,
    "tests/fabric": FABRIC + ["transport/system", "transport/udp", "transport/sim"],
    "tests/bed": ENDPOINT + ["transport/udp"],
    # Through NCCL's ABI only.
    "tests/abi": [],
    "tests/plugin": ["plugin/nccl", "plugin", "tools/ncclnet"],
    "tests/faulty": ["plugin/nccl"],
    "tests/race": [],
    "tests/tools": NCCLNET,
    "tests/fuzz": ENDPOINT + ["transport/udp", "transport/sim", "tests/unit/wire"],
    "tests/fuzz/targets": ENDPOINT + NCCLNET + ["transport/udp", "transport/sim", "tests/fuzz"],
}

# Of whole folders, single files that may be included although the folder may not.
ONLY_FILES = {
    ("tests/plugin", "plugin"): ["plugin/hints.h"],  # plain values of the interface
}

# What a dependency of a meson.build stands for.
MESON_FOLDERS = {
    "base_dep": "transport/base", "wire_dep": "transport/wire", "system_dep": "transport/system",
    "transport_dep": "transport", "udp_dep": "transport/udp", "sim_dep": "transport/sim",
    "path_dep": "multipath/path", "congestion_dep": "multipath/congestion",
    "connection_dep": "multipath/connection", "engine_dep": "multipath/engine",
    "endpoint_dep": "multipath/endpoint", "tools_common": "tools/common",
    "sim_tool": "tools/sim",
}
# Where a folder's programs are declared, if not in itself.
MESON_HOME = {"tests/fuzz": "tests/fuzz/targets"}

# --- Purity. The core is a function of what it is given: it includes these and its own, no more.

PURE = ["transport/base", "transport/wire", "multipath/path", "multipath/congestion",
        "multipath/connection"]
PURE_HEADERS = set("""algorithm array bit bitset cmath compare concepts cstddef cstdint cstring
    deque functional initializer_list iterator limits memory numeric optional span string
    string_view tuple type_traits utility variant vector""".split())
PURE_EXCEPTIONS = {
    "transport/base/ip_address.h": ["arpa/inet.h", "cstdio"],  # writes an address as text
    "transport/base/spsc_ring.h": ["atomic"],  # is what two threads share
}

# --- Words that a folder may not hold, in code (comments and strings do not count).

LIBRARY = ["transport", "multipath", "plugin"]
CALL = r"(?<![\w.>])(?:std::|::)?(?:%s)\s*\("
BANS = [
    # (where, pattern, why)
    (LIBRARY, CALL % "abort|exit|_exit|_Exit|quick_exit|terminate|raise",
     "a library never takes the process down: return Status"),
    (LIBRARY, r"\bassert\s*\(", "a library never takes the process down: check and return Status"),
    (LIBRARY, r"\bthrow\b", "nothing throws: return Status or Result"),
    (LIBRARY, CALL % "printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|fwrite|psignal",
     "nothing is printed but through transport/system/log"),
    (LIBRARY, r"\bstd::(?:cout|cerr|clog)\b",
     "nothing is printed but through transport/system/log"),
    (LIBRARY, CALL % "system|popen|fork|vfork|execv\\w*|execl\\w*",
     "a library starts no process"),
    (LIBRARY, CALL % "getenv|secure_getenv|setenv|putenv|unsetenv",
     "the environment is read by transport/system/config alone"),
    (LIBRARY, r"\benviron\b", "the environment is read by transport/system/config alone"),
    (LIBRARY, r"\bstd::j?thread\b|\bpthread_create\b|\bstd::async\b",
     "threads live in multipath/engine alone"),
    (LIBRARY + ["tools"], CALL % "rand|srand|drand48|atoi|atol|atof|gets|strcpy|strcat|sprintf",
     "there is a bounded or seeded way to do this"),
    (["transport", "multipath", "plugin"], r"\bstd::(?:random_device|mt19937(?:_64)?)\b",
     "seeds come in as arguments, from transport/system/random"),
    (PURE, r"\bstd::chrono\b|\b(?:clock_gettime|gettimeofday|time|sleep|usleep|nanosleep)\s*\(",
     "the core reads no clock: time is an argument"),
    (PURE, r"\bstd::(?:mutex|shared_mutex|condition_variable|lock_guard|unique_lock)\b",
     "the core knows no threads"),
    (PURE, r"\blog_(?:error|warn|info|trace)\s*\(|\bWEFT_\w+_LIMITED\s*\(",
     "the core writes no log"),
]
BAN_EXCEPTIONS = {
    # (file, text that the pattern matched): (how often, why)
    ("transport/system/log.cc", "std::fprintf("): (1, "the log's own last resort: stderr"),
    ("transport/system/config_sources.cc", "environ"): (1, "is where the environment is read"),
    ("multipath/engine/progress_thread.cc", "std::thread"): (1, "the engine's thread"),
    ("multipath/engine/progress_thread.h", "std::thread"): (1, "the engine's thread"),
    ("tools/ncclnet/plugin.cc", "std::atoi("): (1, "what it reads was checked as an option"),
    ("tools/ncclnet/rank.cc", "std::strcat("): (1, "one character, and room was left for it"),
}

# --- Sizes.

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

LONG_FILES = {
    "multipath/connection/ledger.cc": 310,      # one class, whose loss and control stand apart
    "transport/wire/control.cc": 349,           # sixteen statements, each written beside its reader
    "transport/wire/handshake.cc": 316,         # likewise, frames
    "tests/plugin/strangers_test.cc": 310,
    "tests/sim/world.cc": 305,
    "tests/unit/connection/delivery_test.cc": 383,
    "tests/unit/endpoint/mend_test.cc": 331,
}
LONG_FUNCTIONS = {}  # FILE:FUNCTION: lines
# How many lines are over MAX_COLUMNS, by folder and kind of file. C++ has none.
LONG_LINES = {
    ("bench/peers", "Python"): 35,
    ("tests", "Python"): 1,
    ("tests/bed", "Python"): 87,
}

# --- Paths of one machine.

MACHINE_PATH = r"(?<![\w.])/(?:home|root|work|tmp|Users)/[\w.<>-]+"
MACHINE_PATH_EXCEPTIONS = {
    "tests/unit/system/config_sources_test.cc": "homes that are words to the code under test",
    "tests/unit/system/config_test.cc": "a value that is never opened",
    "tests/plugin/process_test.cc": "a template for mkstemp",
}

# --- Variables. WEFT_ names that are no settings.

TEST_VARIABLES = {
    "WEFT_NCCLNET": "tests: where weft_ncclnet lies",
    "WEFT_FAULTY": "tests: where the faulty plugins lie",
    "WEFT_TRACES": "tests: where the recorded runs lie",
    "WEFT_SCENARIOS": "tests: where the scenarios lie",
    "WEFT_FAULT_AT": "tests/faulty: which call goes wrong",
    "WEFT_CONFIG": "the name of an argument",
}
TEST_VARIABLE_PREFIX = "WEFT_TEST_"  # let be by the configuration itself
# Here names are wrong on purpose.
WRONG_NAMES_ALLOWED = ["tests/unit/system", "tests/config", "tests/fuzz", "tests/tidy"]

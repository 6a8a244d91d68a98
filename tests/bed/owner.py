# SPDX-License-Identifier: Apache-2.0
"""Who a bed belongs to, and how it ends with them.

A bed belongs to one process, named by its id and its start time, so that an id used again is never
mistaken for it. What is known of a bed is a JSON file in /run/weft-bed, written before its first
namespace exists and removed after its last is gone: whatever ends half-way can be cleaned up later.
Building and taking down hold one lock, the folder itself, which the kernel releases with its holder.

A watcher, in a session of its own so that no signal meant for the owner reaches it, sleeps until
the owner has ended, kill -9 included, and takes the bed down. Should the watcher be killed too, the
next `up` of anyone reaps what has no owner.
"""
import contextlib
import fcntl
import json
import os
import re
import secrets
import select
import signal
import subprocess
import sys

STATE = "/run/weft-bed"
NAMESPACES = "/run/netns"
NAME = re.compile(r"weft-(\d+)-(?:h|s)\d+$")
POLL_MS = 500


class BedError(Exception):
    """Something went wrong; the words say what."""


class CannotRun(Exception):
    """This machine, or this user, cannot have a bed; exit code 77."""


def start_time(pid):
    """When a process started, in ticks since boot; None if it has ended (a zombie has)."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def parent_of(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def ancestors(pid):
    found = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = parent_of(pid)
        except OSError:
            break
    return found


def same_program(pid, other):
    """Whether one looks like a fork of the other that has not become another program."""
    try:
        pair = []
        for each in (pid, other):
            with open("/proc/%d/cmdline" % each, "rb") as file:
                pair.append((os.readlink("/proc/%d/exe" % each), file.read()))
    except OSError:
        return False
    return pair[0] == pair[1]


def caller():
    """Who a new bed belongs to: our parent, or its shell if it is but a subshell, as in `$(...)`."""
    pid = os.getppid()
    while pid > 1 and same_program(pid, parent_of(pid)):
        pid = parent_of(pid)
    return pid


def nearest():
    """Whose bed is meant: that of the nearest of our forebears to have one."""
    pid = os.getppid()
    while pid > 0:
        state = load(pid)
        if state is not None and state["start"] == start_time(pid):
            return pid
        pid = parent_of(pid)
    return caller()


@contextlib.contextmanager
def lock():
    os.makedirs(STATE, mode=0o755, exist_ok=True)
    handle = os.open(STATE, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def state_file(owner):
    return os.path.join(STATE, "%d.json" % owner)


def load(owner):
    """What is known of a bed; None if there is none."""
    try:
        with open(state_file(owner), encoding="utf-8") as file:
            state = json.load(file)
        if not isinstance(state, dict) or state.get("owner") != owner or not {"start", "token"} <= set(state):
            raise ValueError("not what save() writes")
        return state
    except FileNotFoundError:
        return None
    except ValueError:  # its writer was killed in the middle, or it is somebody else's
        return {"owner": owner, "start": -1, "token": "", "watcher": None}


def save(state):
    temporary = state_file(state["owner"]) + ".new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(temporary, state_file(state["owner"]))


def forget(owner):
    for path in (state_file(owner), state_file(owner) + ".new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def new_state(owner):
    start = start_time(owner)
    if owner <= 0 or start is None:
        raise BedError("--owner %d: no such process; a bed ends with its owner" % owner)
    return {"owner": owner, "start": start, "token": secrets.token_hex(8), "watcher": None}


def namespaces_of(owner=None):
    """The names of a bed's namespaces; of all beds without an owner given."""
    try:
        names = sorted(os.listdir(NAMESPACES))
    except FileNotFoundError:
        return []
    matches = [(name, NAME.match(name)) for name in names]
    return [name for name, match in matches
            if match and (owner is None or int(match.group(1)) == owner)]


def abandoned():
    """Owners of beds that have ended. Call it with the lock held."""
    owners = {int(NAME.match(name).group(1)) for name in namespaces_of()}
    with contextlib.suppress(FileNotFoundError):
        owners |= {int(name.split(".")[0]) for name in os.listdir(STATE)
                   if re.match(r"\d+\.json$", name)}
    dead = []
    for owner in sorted(owners):
        state = load(owner)
        alive = start_time(owner)
        if alive is None or (state and state["start"] != alive):
            dead.append(owner)
    return dead


def start_watcher(program, state):
    """Nothing of the caller's is left open in it: `$(spines up)` must not wait for it."""
    watcher = subprocess.Popen(
        [sys.executable, program, "watch", "--owner", str(state["owner"]), state["token"]],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, cwd="/")
    state["watcher"] = [watcher.pid, start_time(watcher.pid)]
    watcher.returncode = 0  # it outlives us: nobody here waits for it


def stop_watcher(state):
    if not state.get("watcher"):
        return
    pid, start = state["watcher"]
    if pid != os.getpid() and start is not None and start_time(pid) == start:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def wait_for_end(owner, token):
    """Returns True when the owner has ended, False when its bed was taken down before."""
    state = load(owner)
    if state is None or state["token"] != token:
        return False
    handle, poller = None, select.poll()
    with contextlib.suppress(OSError):
        handle = os.pidfd_open(owner)
        poller.register(handle, select.POLLIN)
    while start_time(owner) == state["start"]:
        poller.poll(POLL_MS)
        now = load(owner)
        if now is None or now["token"] != token:
            return False
    return True

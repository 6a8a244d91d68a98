# SPDX-License-Identifier: Apache-2.0
"""What may be typed after `spines`, and what is said of the rest: which word, what it must be, and where
to read on. Kinds of values (functions from text, for argparse) serve the programs *_test.py as well.
"""
import argparse
import re
import shutil
import sys

import bed as beds


def wrong(text, wanted):
    return argparse.ArgumentTypeError("%r: %s" % (text, wanted))


SCALE = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}


def amount(unit, low, high, wanted):
    """A number with a unit, as tc takes it; what tc cannot make use of is out of bounds."""
    def check(text):
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([kmg]?)" + unit, text, re.ASCII)
        if not match or not low <= float(match.group(1)) * SCALE[match.group(2)] <= high:
            raise wrong(text, wanted)
        return text
    return check


def rate(text):
    within_bounds = amount("bit", 1e4, 1e12, "a rate is 200mbit, 1gbit ... (10kbit to 1000gbit) or none")
    return text if text == "none" else within_bounds(text)


buffer_size = amount("b", 1e4, 1e9, "a size is 2mb, 512kb ... (10kb to 1gb)")


def percentage(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 100:  # nor a NaN
        raise wrong(text, "a number from 0 to 100")
    return value


def within(low, high):
    def check(text):
        if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or not low <= int(text) <= high:
            raise wrong(text, "a whole number from %d to %d" % (low, high))
        return int(text)
    return check


class Parser(argparse.ArgumentParser):
    """Says what to do next."""

    def error(self, message):
        self.print_usage(sys.stderr)
        if message.endswith("required: COMMAND"):
            message = "what shall it do? %s" % ", ".join(COMMANDS)
        elif message.startswith("argument COMMAND: invalid choice: "):
            message = "%s is no command; there are %s" % (
                message.split("invalid choice: ")[1].split(" (choose")[0], ", ".join(COMMANDS))
        self.exit(2, "spines: %s\nspines --help explains all of it\n" % message)


COMMANDS = ("up", "down", "kill", "revive", "slow", "loss", "mark", "clear", "counters", "path", "status",
            "run")


def add_building(sub):
    sub.add_argument("--spines", type=within(0, beds.MAX_SPINES), default=4, metavar="N",
                     help="0 to %d; 0: one plain veth (default: %%(default)s)" % beds.MAX_SPINES)
    sub.add_argument("--mtu", type=within(1280, 65535), default=1500, metavar="BYTES",
                     help="1280 to 65535 (default: %(default)s)")
    sub.add_argument("--rate", type=rate, default="200mbit", metavar="RATE",
                     help="of each link, or none (default: %(default)s)")
    sub.add_argument("--buffer", type=buffer_size, default=beds.BUFFER, metavar="SIZE",
                     help="of each link's token bucket (default: %(default)s)")
    sub.add_argument("--seed", type=within(0, 1 << 30), default=1, metavar="N",
                     help="of the hash that gives each pair of ports its spine (default: %(default)s)")


def parse(manual):
    """The words of the command line, all of them checked; ends the program where they are wrong."""
    parser = Parser(prog="spines", description=manual, allow_abbrev=False, usage="spines COMMAND ...",
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", prog="spines",
                                     help=argparse.SUPPRESS)

    def add(name, what, *arguments, building=False):
        sub = commands.add_parser(name, allow_abbrev=False, description=what)
        for argument, kind, words in arguments:
            sub.add_argument(argument.lower(), type=kind, metavar=argument, help=words)
        if building:
            add_building(sub)
        if name != "run":
            sub.add_argument("--owner", type=within(1, 1 << 22), metavar="PID",
                             help="whose bed (default: the caller's)")
        return sub

    spine = ("SPINE", within(1, beds.MAX_SPINES), "its number, from 1")
    percent = ("PERCENT", percentage, "0 to 100")
    port = within(1, 65535)
    add("up", "Builds a bed and prints its names, for eval in a shell.", building=True)
    run = add("run", "Builds a bed, runs COMMAND with BED_H1 and BED_H2 set, takes it down.", building=True)
    run.usage = "spines run [--spines N] [--mtu BYTES] [--rate RATE] [--buffer SIZE] [--seed N] -- COMMAND..."
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND...", help="with its arguments")
    add("down", "Takes the bed down; not having one is no error.")
    add("clear", "No loss, no marks, counters at 0.")
    add("counters", "Packets lost, marked and overflowed.")
    add("status", "What was asked for, each spine, and the counters.")
    add("kill", "The spine swallows everything, silently.", spine)
    add("revive", "The spine forwards again.", spine)
    add("slow", "Another rate for a spine, both ways.", spine, ("RATE", rate, "200mbit, 1gbit ... or none"))
    add("loss", "UDP packets lost at random, both ways.", percent)
    add("mark", "ECN marks on packets of a spine that allow it.", spine, percent)
    path = add("path", "Which spine UDP with these ports takes.", ("SPORT", port, "source port"),
               ("DPORT", port, "destination port"))
    path.add_argument("--from", dest="host", type=within(1, 2), default=1, metavar="HOST",
                      help="1 or 2 (default: %(default)s)")
    path.add_argument("-6", dest="ipv6", action="store_true", help="over IPv6")
    add("watch", "Started by `up`; sleeps until the owner has ended, then takes the bed down.",
        ("TOKEN", str, "names the bed"))
    options = parser.parse_args()
    if options.command == "run":
        check_words(run, options)
    return options


def check_words(parser, options):
    """Before a bed is built for them."""
    marked = options.words[:1] == ["--"]
    options.words = options.words[marked:]
    if not options.words:
        parser.error("run needs a command: spines run --spines 4 -- COMMAND")
    if not marked and options.words[0].startswith("-"):
        parser.error("run has no option %s; what is to be run stands after --" % options.words[0])
    if shutil.which(options.words[0]) is None:
        parser.error("cannot run %s: no such program" % options.words[0])

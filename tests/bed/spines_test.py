#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bed itself: what `spines` says of paths, deaths, speeds, loss and marks is so.

  tests/bed/spines_test.py [Class.test_name ...]
"""
import os
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
import bedcase  # noqa: E402
import sampler  # noqa: E402
from bedcase import ADDRESS, PORT, SOURCES, BedCase, receive_all, spines, udp, words_of  # noqa: E402

UDP_SEGMENT, IP_RECVTOS = 103, 13  # Python's socket module lacks them


class Paths(BedCase):
    ARGUMENTS = ("--seed", 3)

    def sent(self, host):
        file = sampler.open_counters(self.names["h%d" % host])
        try:
            counters = sampler.read_counters(file)
        finally:
            os.close(file)
        return [counters["p%d" % k][1] for k in range(1, 5)]

    def test_each_source_port_takes_the_spine_that_path_says(self):
        for ipv6 in (False, True):
            for host in (1, 2):
                seen = set()
                for port in SOURCES[:12]:
                    sender = self.socket(host, port, ipv6)
                    before = self.sent(host)
                    for _ in range(20):
                        sender.sendto(b"x" * 1000, (ADDRESS[ipv6][3 - host], PORT))
                    grown = [b - a > 20_000 for a, b in zip(before, self.sent(host))]
                    said = self.path(port, ipv6, host)
                    self.assertEqual(grown, [k == said for k in range(1, 5)], (ipv6, host, port))
                    seen.add(said)
                self.assertGreaterEqual(len(seen), 3, "twelve ports on so few spines")

    def mapping(self):
        return [[self.path(port, ipv6, host) for port in SOURCES[:10]]
                for ipv6 in (False, True) for host in (1, 2)]

    def test_seeds_make_the_mapping_and_each_direction_has_its_own(self):
        if words_of(spines("status").splitlines()[0])["seeded"] != "True":
            self.skipTest("this kernel hashes with a seed of its own")
        first = self.mapping()
        self.assertNotEqual(first[0], first[1], "both directions alike")
        for seed, same in ((4, False), (3, True)):
            spines("down")
            spines("up", "--owner", os.getpid(), "--seed", seed)
            for a, b in zip(first, self.mapping()):
                (self.assertEqual if same else self.assertNotEqual)(a, b)

    def test_a_killed_spine_swallows_silently_and_forwards_when_revived(self):
        for ipv6 in (False, True):
            on, off = self.port_of_spine(2, ipv6), self.port_of_others(2, ipv6)
            self.assertTrue(self.arrives(on, ipv6))
            spines("kill", 2)
            self.assertFalse(self.arrives(on, ipv6))
            self.assertTrue(self.arrives(off, ipv6))
            self.assertIn("spine=2 alive=no", spines("status"))
            spines("revive", 2)
            self.assertTrue(self.arrives(on, ipv6))

    def test_what_is_slowed_is_slowed_at_both_ends_both_ways(self):
        spines("slow", 3, "50mbit")
        said = spines("status")
        self.assertIn("spine=3 alive=yes rate=50mbit", said)
        self.assertIn("spine=1 alive=yes rate=200mbit", said)
        for name, port in ((self.names["h1"], "p3"), (self.names["h2"], "p3")):
            shown = subprocess.run(["tc", "-n", name, "qdisc", "show", "dev", port],
                                   capture_output=True, text=True, check=True).stdout
            self.assertIn("rate 50Mbit", shown)
        spines("slow", 3, "200mbit")
        self.assertIn("spine=3 alive=yes rate=200mbit", spines("status"))


class Weather(BedCase):
    """Without rates, so that the firewall is all that loses anything."""
    ARGUMENTS = ("--rate", "none")

    def tearDown(self):
        spines("clear")

    def exchange(self, ipv6, train):
        """Sends 4,000 datagrams of 1,000 bytes each way, in trains where asked; how many arrived."""
        arrived = 0
        for host in (1, 2):
            with udp(self.names["h%d" % (3 - host)], ipv6, ADDRESS[ipv6][3 - host], PORT) as receiver, \
                    udp(self.names["h%d" % host], ipv6, ADDRESS[ipv6][host], SOURCES[0]) as sender:
                if train > 1:
                    sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 1000)
                for _ in range(4000 // train):
                    sender.sendto(b"x" * 1000 * train, (ADDRESS[ipv6][3 - host], PORT))
                arrived += len(receive_all(receiver))
        return arrived

    def test_lost_packets_are_counted_one_by_one_whether_or_not_they_left_as_trains(self):
        for ipv6, train in ((False, 1), (False, 40), (True, 40)):
            spines("loss", 10)
            arrived = self.exchange(ipv6, train)
            lost = int(words_of(spines("counters"))["lost"])
            self.assertEqual(arrived + lost, 8000, "ipv6=%s train=%d" % (ipv6, train))
            self.assertTrue(600 <= lost <= 1000, "%d of 8,000 lost at 10%%" % lost)
            spines("clear")
            self.assertEqual(self.exchange(ipv6, train), 8000)
            self.assertEqual(words_of(spines("counters"))["lost"], "0")

    def test_nothing_but_udp_is_lost(self):
        spines("loss", 100)
        ping = subprocess.run(["ip", "netns", "exec", self.names["h1"], sys.executable, "-c",
                               "import socket; s = socket.socket(); s.settimeout(5)\n"
                               "try: s.connect(('10.88.2.1', 9))\n"
                               "except ConnectionRefusedError: raise SystemExit(0)\n"
                               "raise SystemExit(1)"], timeout=30)
        self.assertEqual(ping.returncode, 0)
        self.assertFalse(self.arrives(SOURCES[0]))

    def marked(self, ipv6, port):
        """How many of 500 datagrams that allow it came marked."""
        receiver, sender = self.socket(2, PORT, ipv6), self.socket(1, port, ipv6)
        level, wants, field = ((socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, socket.IPV6_TCLASS) if ipv6
                               else (socket.IPPROTO_IP, IP_RECVTOS, socket.IP_TOS))
        receiver.setsockopt(level, wants, 1)
        sender.setsockopt(level, field, 2)  # ECT(0)
        count = 0
        for _ in range(500):
            sender.sendto(b"x", (ADDRESS[ipv6][2], PORT))
            _, said, _, _ = receiver.recvmsg(100, 100)
            count += said[0][2][0] & 3 == 3
        receiver.close()
        sender.close()
        return count

    def test_marks_are_set_on_one_spine_and_counted(self):
        spines("mark", 2, 20)
        sum_seen = 0
        for ipv6 in (False, True):
            self.assertEqual(self.marked(ipv6, self.port_of_others(2, ipv6)), 0)
            seen = self.marked(ipv6, self.port_of_spine(2, ipv6))
            self.assertTrue(50 <= seen <= 150, "%d of 500 marked at 20%%" % seen)
            sum_seen += seen
            self.assertEqual(int(words_of(spines("counters"))["marked"]), sum_seen)


class PlainVeth(BedCase):
    ARGUMENTS = ("--spines", 0, "--mtu", 9000, "--rate", "none")

    def test_no_spines_are_one_veth_with_the_same_names_and_addresses(self):
        self.assertEqual(self.names["h1"], "weft-%d-h1" % os.getpid())
        for ipv6 in (False, True):
            receiver, sender = self.socket(2, PORT, ipv6), self.socket(1, SOURCES[0], ipv6)
            sender.sendto(b"x" * 8900, (ADDRESS[ipv6][2], PORT))
            self.assertEqual(len(receiver.recv(9000)), 8900)
        self.assertEqual(self.path(SOURCES[0]), 0)


if __name__ == "__main__":
    sys.exit(bedcase.main())

"""The node that measures links: it broadcasts numbered probes, and reports which probes of its neighbors arrived.

Theory of operation
    Trickle (RFC 6206) paces the probes. A node sends one probe in each interval, at a random time in its second half.
    The interval doubles from ``shortest_interval_s`` to ``longest_interval_s``. It is the shortest one again when the
    node hears a new neighbor, or a neighbor that has restarted. Trickle's suppression is not used (its redundancy
    constant is infinite): every probe is a sample of all links of its sender.

    For each probe that arrives, the node reports the event ProbeHeard. Its value is a history of the last HISTORY
    probes of this neighbor, so a later report contains an earlier one that was lost on the way to the host.

Frame (little-endian, packed)
    type u8 (always 0x50, "P"), origin u32, number u32: 9 bytes; then zeros up to ``size_B``, since long frames are lost
    more often than short ones.

This file runs on a mote too (MicroPython's subset of Python). A mote loads it for a measurement only.
"""

from collections import namedtuple
from struct import pack, unpack_from

from workbench.protocols.contract import FIELDS, NOBODY, NUMBERS_PER_BOOT, Node

TYPE = 0x50
HEADER = "<BII"
HEADER_B = 9
HISTORY = 30  # so many bits are a small integer of MicroPython on 32 bits
MOST_NEIGHBORS = 128  # bounds the memory of a node

# A probe arrived. sequence: the largest number heard of the neighbor's probes; value: bit k is set if probe
# sequence - k arrived.
ProbeHeard = namedtuple("ProbeHeard", FIELDS)


class ProbeNode(Node):
    """A node that measures the links from its neighbors; `workbench.motes.measuring.LinkProbes` has its settings."""

    EVENTS = (ProbeHeard,)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self._shortest_us = int(settings.shortest_interval_s * 1000000)
        self._longest_us = int(settings.longest_interval_s * 1000000)
        self._until_us = int(settings.until_s * 1000000)
        self._heard = {}  # neighbor -> (largest number heard, history as in ProbeHeard)

    @staticmethod
    def describe(frame, broadcast=True):
        """Return (message name, origin, number) of a probe, for traces."""
        _, origin, number = unpack_from(HEADER, frame, 0)
        return "probe", origin, number

    def start(self, now, boot=0):
        """Start this node, and begin Trickle's first interval."""
        Node.start(self, now, boot)
        self._number = self.first_number
        self._begin_interval(now, self._shortest_us)

    def publish(self, attributes, now, payload=b""):
        """Discard a reading, because the node publishes nothing; return a sequence number, as other nodes do.

        A mote with a sensor that publishes by itself calls this method during a measurement.
        """
        return self.first_number

    def wake(self, now):
        """Send a probe, and begin the next interval; after ``until_s`` send nothing more."""
        if now >= self._until_us:
            self.next_wake = None
            return
        header = pack(HEADER, TYPE, self.address, self._number)
        self.outbox.append((None, header + bytes(self.settings.size_B - HEADER_B)))
        self._number += 1
        # A mote that woke up late must not set a time in the past.
        self._begin_interval(max(now, self._end_us), min(2 * self._interval_us, self._longest_us))

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Record a neighbor's probe, and report ProbeHeard; malformed frames and repeated probes are dropped."""
        if len(frame) < HEADER_B or frame[0] != TYPE or unpack_from(HEADER, frame, 0)[1] != previous_hop:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        number = unpack_from(HEADER, frame, 0)[2]
        known = self._heard.get(previous_hop)
        if known is None and len(self._heard) >= MOST_NEIGHBORS:
            self.drop(previous_hop, "probe", previous_hop, number, "neighbors")
            return
        newest, history = (-NUMBERS_PER_BOOT, 0) if known is None else known
        is_new_start = number // NUMBERS_PER_BOOT != newest // NUMBERS_PER_BOOT
        ahead = number - newest
        if is_new_start or ahead >= HISTORY:
            newest, history = number, 1
        elif ahead > 0:
            newest, history = number, (history << ahead | 1) & ((1 << HISTORY) - 1)
        elif ahead <= -HISTORY or history >> -ahead & 1:
            self.drop(previous_hop, "probe", previous_hop, number, "duplicate")
            return
        else:
            history |= 1 << -ahead
        self._heard[previous_hop] = newest, history
        self.events.append(ProbeHeard(previous_hop, "probe", previous_hop, newest, history, ""))
        if is_new_start and self.next_wake is not None and self._interval_us > self._shortest_us:
            self._begin_interval(now, self._shortest_us)  # This is Trickle's reaction to an inconsistency.

    def _begin_interval(self, start_us, interval_us):
        half_us = interval_us // 2
        self._interval_us = interval_us
        self._end_us = start_us + interval_us
        self.next_wake = start_us + half_us + self.random.below(half_us)

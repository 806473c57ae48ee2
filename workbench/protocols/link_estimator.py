"""Estimates of a node's link qualities from beacons, which nodes broadcast at random times.

Theory of operation
    A sender numbers its beacons, so a gap between two received numbers shows how many beacons were lost. The share of
    WINDOW beacons that arrived is a sample of the link's inbound delivery ratio. The estimate is the exponentially
    weighted mean of the samples. A beacon also lists its sender's inbound estimates, from which a receiver learns the
    outbound ratio of its own link.

    A new neighbor is reported with the ratio UNKNOWN, as protocols that wait for a first sample find no neighbors for
    minutes. The first estimate is a single sample, so it is rough: with WINDOW = 10 its standard deviation is up to
    .16, later .06. If a neighbor's beacons still do not list this node after twice WINDOW beacons, the neighbor is
    assumed to receive none of this node's beacons, and the outbound ratio is 0.

    Two other sources of estimates were tried. The first was gaps in the numbers of all broadcasts. As floods collide,
    good links looked poor, and Diffusion put them on its black list. The second was acknowledgements of unicasts. They
    collide, too, so links of 80 % looked like 65 %, and DPS gave them up again and again. Beacons are spread over time
    and seldom collide.

Wire format, little-endian
    u8 MARK, u16 number, then for each listed neighbor u32 address and u8 ratio, in steps of 1/255. A node with more
    than MAX_LISTED neighbors lists them in turn.

The fast engine and the simulator's channel share the functions of this file (`workbench.sim.fast.beacons`).

Source
    The exchange of link estimates is that of LEEP, TinyOS TEP 124 (O. Gnawali, 2007).

This file runs on a mote too (MicroPython's subset of Python).
"""

MARK = 0xBE
UNKNOWN = 1.0  # the ratio of a new neighbor until the first sample
WINDOW = 10  # number of beacons in a sample
WEIGHT = 0.25  # weight of a new sample in the mean
MAX_LISTED = 20  # largest number of neighbors in a beacon
NUMBERS = 65536  # beacons are counted modulo this, as their number has two bytes
HEADER_B, ENTRY_B = 3, 5
MAX_NEIGHBORS = 64
# Beacons are sent in the second half of an interval, which doubles with each beacon, as in Trickle (RFC 6206). Radios
# that sleep send them rarely in the end, as each one occupies the channel for a whole wake-up interval.
FIRST_INTERVAL_US, LONGEST_INTERVAL_US, LONGEST_ASLEEP_US = 1000000, 16000000, 128000000
_RESTART = 256  # a larger gap is not counted as loss: the neighbor has restarted, or was out of reach for long
_UNSAMPLED = -1.0  # value of a ratio without a sample


def half_interval_us(earlier, longest_us):
    """Return half of the current interval (µs) between a node's beacons.

    ``earlier``: number of beacons that the node has sent. The interval doubles with each beacon, up to ``longest_us``.
    The next beacon is sent at a random time in the second half of the interval.
    """
    return min(FIRST_INTERVAL_US << min(earlier, 16), longest_us) >> 1


class LinkEstimator:
    """The estimated delivery ratios of one node's links, for up to ``max_neighbors`` neighbors."""

    def __init__(self, address, max_neighbors=MAX_NEIGHBORS):
        self.address = address
        self.max_neighbors = max_neighbors
        self.number = 0  # number of this node's latest beacon
        self._neighbors = {}  # address -> _Link
        self._next_listed = 0

    def make_beacon(self):
        """Return the next beacon (bytes), which lists the inbound ratios of at most MAX_LISTED neighbors."""
        self.number = (self.number + 1) % NUMBERS
        frame = bytearray((MARK, self.number & 255, self.number >> 8))
        sampled_ratios = [(address, link.inbound) for address, link in self._neighbors.items() if link.inbound >= 0]
        if len(sampled_ratios) > MAX_LISTED:
            first_listed = self._next_listed % len(sampled_ratios)
            self._next_listed = first_listed + MAX_LISTED
            sampled_ratios = (sampled_ratios[first_listed:] + sampled_ratios[:first_listed])[:MAX_LISTED]
        for address, ratio in sampled_ratios:
            frame += address.to_bytes(4, "little")
            frame.append(byte_of(ratio))
        return bytes(frame)

    def cancel_beacon(self):
        """Give the number of the latest beacon to the next one, because the latest beacon was not sent."""
        self.number = (self.number - 1) % NUMBERS

    def receive(self, neighbor, frame):
        """Update a neighbor's link from ``frame``, a beacon; return the link's new (inbound, outbound) delivery ratios.

        Returns None if the ratios are unchanged, if the frame is not a beacon, or if the neighbor is new and
        ``max_neighbors`` other neighbors are known already.
        """
        if len(frame) < HEADER_B or (len(frame) - HEADER_B) % ENTRY_B or frame[0] != MARK:
            return None
        number = frame[1] | frame[2] << 8
        link = self._neighbors.get(neighbor)
        if link is None:
            if len(self._neighbors) >= self.max_neighbors:
                return None
            link = self._neighbors[neighbor] = _Link(number)
        else:
            count_beacon(link, number)
        update_outbound(link, self._find_own_ratio(frame), (len(frame) - HEADER_B) // ENTRY_B, self.number)
        return (link.reported_inbound, link.reported_outbound) if has_changed(link) else None

    def ratios(self, neighbor):
        """Return the estimated (inbound, outbound) delivery ratios of a link, 0 to 1; None for an unknown neighbor."""
        link = self._neighbors.get(neighbor)
        return None if link is None else ratios_of(link)

    def known_ratios(self):
        """Return [(neighbor, (inbound, outbound)), ...] of all neighbors."""
        return [(neighbor, ratios_of(link)) for neighbor, link in self._neighbors.items()]

    def _find_own_ratio(self, frame):
        """Return the ratio that a beacon lists for this node, as a byte (0 to 255); -1 if the node is not listed."""
        for entry_start in range(HEADER_B, len(frame), ENTRY_B):
            if int.from_bytes(frame[entry_start : entry_start + 4], "little") == self.address:
                return frame[entry_start + 4]
        return -1


class _Link:
    """The state of the link to a neighbor: counters of its beacons, and the delivery ratios computed from them."""

    def __init__(self, number):
        self.number = number  # number of the neighbor's latest beacon
        self.beacon_count = 1  # number of beacons received in total
        self.expected = 0  # beacons that the neighbor sent in the current window
        self.received = 0  # beacons of these that this node received
        self.inbound = self.outbound = _UNSAMPLED
        self.reported_inbound = self.reported_outbound = _UNSAMPLED


# Functions of a `_Link`, or of a record with the same fields.


def count_beacon(link, number):
    """Count a neighbor's beacon, which carries ``number``; if a window is complete, update the inbound ratio.

    A window is complete after WINDOW beacons, received or missing. If the number repeats or a long gap precedes it, the
    neighbor has restarted or was out of reach, and a new window begins.
    """
    gap = (number - link.number) % NUMBERS
    link.number = number
    link.beacon_count += 1
    if gap == 0 or gap > _RESTART:
        # A neighbor that has restarted has heard no beacons yet: it must not be taken for deaf at once.
        link.beacon_count = 1
        link.expected = 0
        link.received = 0
        return
    link.expected += gap
    link.received += 1
    if link.expected >= WINDOW:
        sampled_ratio = link.received / link.expected
        link.inbound = sampled_ratio if link.inbound < 0 else link.inbound + WEIGHT * (sampled_ratio - link.inbound)
        link.expected = 0
        link.received = 0


def update_outbound(link, listed, entries, own_number):
    """Update the outbound ratio of a link from a neighbor's beacon.

    If the beacon lists this node, the listed ratio is the new ratio. Otherwise the ratio becomes 0 if the neighbor
    should list this node by now: the list is not full, this node has sent more than twice WINDOW beacons, and more than
    twice WINDOW beacons of the neighbor have arrived.

    ``listed``: the ratio that the beacon lists for this node (0 to 255), or -1 if the beacon does not list the node;
    ``entries``: the number of neighbors that the beacon lists; ``own_number``: the number of this node's latest beacon.
    """
    if listed >= 0:
        link.outbound = listed / 255
    elif entries < MAX_LISTED and link.beacon_count > 2 * WINDOW and own_number > 2 * WINDOW:
        link.outbound = 0.0


def ratios_of(link):
    """Return the estimated (inbound, outbound) delivery ratios of a link, 0 to 1.

    An inbound ratio without an estimate is UNKNOWN; an outbound ratio without an estimate equals the inbound ratio.
    """
    inbound = UNKNOWN if link.inbound < 0 else link.inbound
    return inbound, inbound if link.outbound < 0 else link.outbound


def has_changed(link):
    """Return whether a link's ratios differ from those reported last; mark the current ratios as reported."""
    inbound, outbound = ratios_of(link)
    if inbound == link.reported_inbound and outbound == link.reported_outbound:
        return False
    link.reported_inbound = inbound
    link.reported_outbound = outbound
    return True


def byte_of(ratio):
    """Return a delivery ratio (0 to 1) as the byte that stands for it in a beacon, in steps of 1/255."""
    return int(ratio * 255 + 0.5)

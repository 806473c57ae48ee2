"""The estimation of a node's link qualities from beacons, which nodes broadcast at random times.

Theory of operation
    A beacon carries a number that its sender counts, so a gap between two numbers is the number of beacons that were
    lost. The mean over WINDOW beacons is a sample of the link's inbound delivery ratio; estimates are exponentially
    weighted means of samples. A beacon also lists its sender's inbound estimates, from which a receiver learns the
    outbound ratio of its own link.

    A new neighbor is reported with the ratio UNKNOWN, as protocols that wait for a first sample find no neighbors for
    minutes. The first sample stands alone, so an early estimate is rough: with WINDOW = 10 its standard deviation is up
    to .16, later .06. A neighbor that does not list this node after 2 WINDOW beacons does not hear it: ratio 0.

    Two other sources were tried. Gaps among all broadcasts: floods collide, so good links looked poor and Diffusion put
    them on its black list. Acknowledgements of unicasts: they collide too, so links of 80 % looked like 65 %, and DPS
    gave them up again and again. Beacons are spread over time and seldom collide.

Wire format, little-endian
    u8 MARK, u16 number, then for each listed neighbor u32 address and u8 ratio, in steps of 1/255. A node with more
    than MAX_LISTED neighbors lists them in turn.

Source
    The exchange of link estimates is that of LEEP, TinyOS TEP 124 (O. Gnawali, 2007).

This file runs on a mote too (MicroPython's subset of Python).
"""

MARK = 0xBE
UNKNOWN = 1.0  # the ratio of a new neighbor until the first sample
WINDOW = 10  # beacons of a sample
WEIGHT = 0.25  # of a new sample
MAX_LISTED = 20  # neighbors in a beacon
NUMBERS = 65536  # the number of a beacon has two bytes
_RESTART = 256  # a larger gap does not count: the neighbor has restarted, or was out of reach for long
_HEADER_B, _ENTRY_B = 3, 5


class LinkEstimator:
    """The estimated delivery ratios of one node's links, for up to ``max_neighbors`` neighbors."""

    def __init__(self, address, max_neighbors=64):
        self.address = address
        self.max_neighbors = max_neighbors
        self.number = 0  # of the latest beacon
        self._neighbors = {}  # address -> _Link
        self._next_listed = 0

    def make_beacon(self):
        """Return the next beacon's bytes: at most 3 + 5 * MAX_LISTED."""
        self.number = (self.number + 1) % NUMBERS
        frame = bytearray((MARK, self.number & 255, self.number >> 8))
        sampled = [(address, link.inbound) for address, link in self._neighbors.items() if link.inbound is not None]
        if len(sampled) > MAX_LISTED:
            first = self._next_listed % len(sampled)
            self._next_listed = first + MAX_LISTED
            sampled = (sampled[first:] + sampled[:first])[:MAX_LISTED]
        for address, ratio in sampled:
            frame += address.to_bytes(4, "little")
            frame.append(int(ratio * 255 + 0.5))
        return bytes(frame)

    def cancel_beacon(self):
        """Take back the number of the latest beacon, which was not sent."""
        self.number = (self.number - 1) % NUMBERS

    def receive(self, neighbor, frame):
        """Receive a beacon; return the link's new (inbound, outbound) delivery ratios, or None if they are unchanged.

        Frames that are not beacons, and neighbors beyond ``max_neighbors``, are ignored.
        """
        if len(frame) < _HEADER_B or (len(frame) - _HEADER_B) % _ENTRY_B or frame[0] != MARK:
            return None
        number = frame[1] | frame[2] << 8
        link = self._neighbors.get(neighbor)
        if link is None:
            if len(self._neighbors) >= self.max_neighbors:
                return None
            link = self._neighbors[neighbor] = _Link(number)
        else:
            link.count(number)
        self._read_list(link, frame)
        ratios = self.ratios(neighbor)
        if ratios == link.reported:
            return None
        link.reported = ratios
        return ratios

    def ratios(self, neighbor):
        """Return the estimated (inbound, outbound) delivery ratios of a link, 0 to 1; None for an unknown neighbor."""
        link = self._neighbors.get(neighbor)
        if link is None:
            return None
        inbound = UNKNOWN if link.inbound is None else link.inbound
        return inbound, inbound if link.outbound is None else link.outbound

    def _read_list(self, link, frame):
        """Find this node's address in a beacon's list of ratios."""
        for start in range(_HEADER_B, len(frame), _ENTRY_B):
            if int.from_bytes(frame[start : start + 4], "little") == self.address:
                link.outbound = frame[start + 4] / 255
                return
        is_complete = len(frame) < _HEADER_B + _ENTRY_B * MAX_LISTED
        if is_complete and link.beacons > 2 * WINDOW and self.number > 2 * WINDOW:
            link.outbound = 0.0


class _Link:
    """The beacons of one neighbor, and the ratios that follow from them."""

    def __init__(self, number):
        self.number = number  # of the latest beacon
        self.beacons = 1  # received
        self.expected = 0  # in this window
        self.received = 0
        self.inbound = None
        self.outbound = None
        self.reported = None

    def count(self, number):
        """Count a beacon; after a whole window, update the inbound ratio."""
        gap = (number - self.number) % NUMBERS
        self.number = number
        self.beacons += 1
        if gap == 0 or gap > _RESTART:
            self.expected = self.received = 0
            return
        self.expected += gap
        self.received += 1
        if self.expected >= WINDOW:
            sample = self.received / self.expected
            self.inbound = sample if self.inbound is None else self.inbound + WEIGHT * (sample - self.inbound)
            self.expected = self.received = 0

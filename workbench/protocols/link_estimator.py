"""The estimation of a node's link qualities from the frames that it receives and sends.

Theory of operation
    Each broadcast carries a number that its sender counts. A gap between two numbers from a neighbor is the number of
    its broadcasts that were lost. The mean over WINDOW broadcasts is a sample of the link's inbound delivery ratio, and
    estimates are exponentially weighted means of samples. The outcomes of unicast frames give the outbound ratio: the
    share of acknowledged transmissions is the product of both directions, so it is divided by the inbound ratio.
    Without unicasts to a neighbor, the outbound estimate is the inbound one.

    A new neighbor is reported with the ratio UNKNOWN, as protocols that wait for a first sample find no neighbors for
    minutes. The first sample stands alone, so an early estimate is rough: with WINDOW = 10 its standard deviation is up
    to .16, later .06. Frames that collided count as lost, so busy links look worse than their losses.

Source
    R. Fonseca et al., Four-Bit Wireless Link Estimation, HotNets 2007: windows of beacons and of unicasts.

This file runs on a mote too (MicroPython's subset of Python).
"""

UNKNOWN = 1.0  # the ratio of a new neighbor until the first sample
WINDOW = 10  # broadcasts, or unicasts, of a sample
WEIGHT = 0.25  # of a new sample
NUMBERS = 65536  # the number of a broadcast has two bytes
_RESTART = 256  # a larger gap does not count: the neighbor has restarted, or was out of reach for long


class LinkEstimator:
    """The estimated delivery ratios of one node's links, for up to ``max_neighbors`` neighbors."""

    def __init__(self, max_neighbors=64):
        self.max_neighbors = max_neighbors
        self._inbound = {}  # neighbor -> [latest number, expected, received, estimate or None]
        self._outbound = {}  # neighbor -> [sent, acknowledged, estimate of both directions or None]

    def heard(self, neighbor, number):
        """Count a broadcast from a neighbor; return the new (inbound, outbound) ratios, or None if nothing changed.

        Further neighbors than ``max_neighbors`` are ignored.
        """
        state = self._inbound.get(neighbor)
        if state is None:
            if len(self._inbound) >= self.max_neighbors:
                return None
            self._inbound[neighbor] = [number, 0, 0, None]
            return UNKNOWN, UNKNOWN
        gap = (number - state[0]) % NUMBERS
        state[0] = number
        if gap == 0 or gap > _RESTART:
            state[1] = state[2] = 0
            return None
        state[1] += gap
        state[2] += 1
        if state[1] < WINDOW:
            return None
        state[3] = _mean(state[3], state[2] / state[1])
        state[1] = state[2] = 0
        return self.ratios(neighbor)

    def sent(self, neighbor, ok):
        """Count a unicast transmission and whether it was acknowledged; return as `heard` does."""
        state = self._outbound.get(neighbor)
        if state is None:
            if neighbor not in self._inbound:
                return None  # the neighbor is not known, or not one of ``max_neighbors``
            state = self._outbound[neighbor] = [0, 0, None]
        state[0] += 1
        state[1] += 1 if ok else 0
        if state[0] < WINDOW:
            return None
        state[2] = _mean(state[2], state[1] / state[0])
        state[0] = state[1] = 0
        return self.ratios(neighbor)

    def ratios(self, neighbor):
        """Return the estimated (inbound, outbound) delivery ratios of a link, 0 to 1, or None if they are unknown."""
        inbound = self._inbound[neighbor][3] if neighbor in self._inbound else None
        both = self._outbound[neighbor][2] if neighbor in self._outbound else None
        if inbound is None:
            return None
        if both is None or not inbound:
            return inbound, inbound
        return inbound, min(1.0, both / inbound)


def _mean(estimate, sample):
    return sample if estimate is None else estimate + WEIGHT * (sample - estimate)

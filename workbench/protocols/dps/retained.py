"""The publications that a DPS node keeps for as long as they live, to give them to whoever asks later.

This file is written in MicroPython's subset of Python.
"""

from heapq import heappop, heappush

SECOND_US = 1000000


class Kept:
    """One of them. ``neighbor``: where it came from, None: it is this node's own."""

    __slots__ = ("expires_us", "message", "neighbor")

    def __init__(self, message, neighbor, expires_us):
        self.message = message
        self.neighbor = neighbor
        self.expires_us = expires_us

    def left_s(self, now):
        """Seconds that are left, rounded up."""
        return -((now - self.expires_us) // SECOND_US)


class Retained:
    """Publication id -> Kept, for at most ``size`` of them."""

    def __init__(self, size):
        self.size = size
        self._kept = {}
        self._ends = []  # a heap of (expires_us, counter, publication id); what was replaced stays in it until then
        self._counter = 0

    def __len__(self):
        return len(self._kept)

    def get(self, publication_id):
        """The publication kept under an id, or None."""
        return self._kept.get(publication_id)

    def values(self):
        """All of them, oldest first."""
        return list(self._kept.values())

    def put(self, message, neighbor, expires_us):
        """Keep one, in place of an older one of its series; returns what had to go for it, or None."""
        evicted = None
        self._kept.pop(message.publication_id, None)
        if len(self._kept) >= self.size:
            evicted = self._pop_next_to_end()
        self._kept[message.publication_id] = Kept(message, neighbor, expires_us)
        self._counter += 1
        heappush(self._ends, (expires_us, self._counter, message.publication_id))
        if len(self._ends) > 2 * len(self._kept) + 64:
            self._rebuild()
        return evicted

    def remove(self, publication_id):
        """Keep it no longer; returns it, or None."""
        return self._kept.pop(publication_id, None)

    def pop_over(self, now):
        """Take out those whose time is over."""
        over = []
        while self._ends and self._ends[0][0] <= now:
            kept = self._pop_current()
            if kept is not None:
                over.append(kept)
        return over

    def next_end_us(self):
        """When the next one is over, None if nothing is kept."""
        while self._ends:
            expires_us, _, publication_id = self._ends[0]
            kept = self._kept.get(publication_id)
            if kept is not None and kept.expires_us == expires_us:
                return expires_us
            heappop(self._ends)
        return None

    def _pop_next_to_end(self):
        while self._ends:
            kept = self._pop_current()
            if kept is not None:
                return kept
        return None

    def _pop_current(self):
        """Take the first of the heap; what it stands for, None if that has been replaced since."""
        expires_us, _, publication_id = heappop(self._ends)
        kept = self._kept.get(publication_id)
        if kept is None or kept.expires_us != expires_us:
            return None
        return self._kept.pop(publication_id)

    def _rebuild(self):
        self._ends = []
        for publication_id, kept in self._kept.items():
            self._counter += 1
            heappush(self._ends, (kept.expires_us, self._counter, publication_id))

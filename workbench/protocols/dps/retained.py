"""The publications that a DPS node keeps for as long as they live, to give them to whoever asks later.

Bounds
    ``max_retained`` of them, each as large as a datagram can be: 64 MB with 1000. Others' cannot push out this node's
    own.

This file is written in MicroPython's subset of Python.
"""

from heapq import heappop, heappush

from workbench.protocols.dps import rules


class Kept:
    """One of them. ``neighbor``: where it came from, None: it is this node's own."""

    __slots__ = ("expires_us", "message", "neighbor")

    def __init__(self, message, neighbor, expires_us):
        self.message = message
        self.neighbor = neighbor
        self.expires_us = expires_us

    @property
    def is_own(self):
        """Whether it was published here."""
        return self.neighbor is None

    def left_s(self, now):
        """Seconds that are left, rounded up; no more than when it came, though the clock is set back."""
        return min(rules.left_s(self.expires_us, now), self.message.ttl_s)


class Retained:
    """Publication id -> Kept, for at most ``size`` of them."""

    def __init__(self, size):
        self.size = size
        self._kept = {}
        # Heaps of (expires_us, counter, publication id), of others' and of this node's own; what was replaced stays in
        # them until then.
        self._ends = ([], [])
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
        """Keep one, in place of an older one of its series; returns what had to go for it, or None.

        Of others' the one that ends first goes. If all are this node's own, one of theirs is not kept, and returned.
        """
        evicted = None
        self._kept.pop(message.publication_id, None)
        kept = Kept(message, neighbor, expires_us)
        if len(self._kept) >= self.size:
            evicted = self._pop_next_to_end(False)
            if evicted is None and not kept.is_own:
                return kept
            evicted = evicted or self._pop_next_to_end(True)
        self._kept[message.publication_id] = kept
        self._push(kept)
        if sum([len(ends) for ends in self._ends]) > 2 * len(self._kept) + 64:
            self._rebuild()
        return evicted

    def remove(self, publication_id):
        """Keep it no longer; returns it, or None."""
        return self._kept.pop(publication_id, None)

    def pop_over(self, now):
        """Take out those whose time is over."""
        over = []
        for is_own in (False, True):
            ends = self._ends[is_own]
            while ends and ends[0][0] <= now:
                kept = self._pop_current(is_own)
                if kept is not None:
                    over.append(kept)
        return over

    def next_end_us(self):
        """When the next one is over, None if nothing is kept."""
        times = [self._next_end_us(is_own) for is_own in (False, True)]
        times = [time for time in times if time is not None]
        return min(times) if times else None

    def _next_end_us(self, is_own):
        ends = self._ends[is_own]
        while ends:
            if self._current(ends[0], is_own) is not None:
                return ends[0][0]
            heappop(ends)
        return None

    def _pop_next_to_end(self, is_own):
        while self._ends[is_own]:
            kept = self._pop_current(is_own)
            if kept is not None:
                return kept
        return None

    def _pop_current(self, is_own):
        """Take the first of a heap; what it stands for, None if that has been replaced since."""
        kept = self._current(heappop(self._ends[is_own]), is_own)
        return None if kept is None else self._kept.pop(kept.message.publication_id)

    def _current(self, end, is_own):
        """What an entry of a heap stands for, None if that has been replaced since."""
        expires_us, _, publication_id = end
        kept = self._kept.get(publication_id)
        is_current = kept is not None and kept.expires_us == expires_us and kept.is_own == is_own
        return kept if is_current else None

    def _push(self, kept):
        self._counter += 1
        heappush(self._ends[kept.is_own], (kept.expires_us, self._counter, kept.message.publication_id))

    def _rebuild(self):
        self._ends = ([], [])
        for kept in self._kept.values():
            self._push(kept)

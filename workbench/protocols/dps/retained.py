"""The publications that a DPS node keeps for as long as they live, to send them to neighbors that ask later.

Theory of operation
    When a neighbor's interests change, it is sent the retained publications that may meet them: at once, but not more
    often than every ``update_s`` (`Resending`). A later change is answered when that time is over. Without this a
    neighbor, or anybody who can forge its address, could have everything sent again with each small message. The time
    holds for an address, so a link that is ended and made anew is no way round it.

    The reference sends to all neighbors whenever a neighbor sends its interests, even the same as before, and those
    that have the publications drop them. Here they go to that neighbor alone, as nothing has changed for the others.

Bounds
    ``max_retained`` publications, each as large as a datagram can be: 64 MB with 1000. Others' cannot push out this
    node's own. Of `Resending` the times of the last 2 ``max_links`` addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from workbench.protocols.dps import rules
from workbench.protocols.dps.remotes import Neighbor, Remote
from workbench.protocols.dps.wire import Publication

End: TypeAlias = tuple[int, int, bytes]  # expires_us, counter, publication id


@dataclass(slots=True, eq=False)
class Kept:
    """A retained publication. ``neighbor``: where it came from, None: it is this node's own."""

    message: Publication
    neighbor: Neighbor | None
    expires_us: int

    @property
    def is_own(self) -> bool:
        """Whether it was published here."""
        return self.neighbor is None

    def left_s(self, now: int) -> int:
        """Seconds that are left, rounded up; no more than when it came, though the clock is set back."""
        return min(rules.left_s(self.expires_us, now), self.message.ttl_s)


class Retained:
    """Publication id -> Kept, for at most ``size`` of them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._kept: dict[bytes, Kept] = {}
        # Heaps of others' and of this node's own; an entry that was replaced stays until its time.
        self._ends: tuple[list[End], list[End]] = ([], [])
        self._counter = 0

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, publication_id: bytes) -> Kept | None:
        """The publication kept under an id, or None."""
        return self._kept.get(publication_id)

    def values(self) -> list[Kept]:
        """All of them, oldest first."""
        return list(self._kept.values())

    def put(self, message: Publication, neighbor: Neighbor | None, expires_us: int) -> Kept | None:
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
        if sum(map(len, self._ends)) > 2 * len(self._kept) + 64:
            self._rebuild()
        return evicted

    def remove(self, publication_id: bytes) -> Kept | None:
        """Keep it no longer; returns it, or None."""
        return self._kept.pop(publication_id, None)

    def pop_over(self, now: int) -> list[Kept]:
        """Take out those whose time is over."""
        over = []
        for is_own in (False, True):
            ends = self._ends[is_own]
            while ends and ends[0][0] <= now:
                kept = self._pop_current(is_own)
                if kept is not None:
                    over.append(kept)
        return over

    def next_end_us(self) -> int | None:
        """When the next one is over, None if nothing is kept."""
        times = []
        for is_own in (False, True):
            ends = self._ends[is_own]
            while ends and self._current(ends[0], is_own) is None:
                heappop(ends)
            if ends:
                times.append(ends[0][0])
        return min(times, default=None)

    def _pop_next_to_end(self, is_own: bool) -> Kept | None:
        while self._ends[is_own]:
            kept = self._pop_current(is_own)
            if kept is not None:
                return kept
        return None

    def _pop_current(self, is_own: bool) -> Kept | None:
        """Take the first of a heap; what it stands for, None if that has been replaced since."""
        kept = self._current(heappop(self._ends[is_own]), is_own)
        return None if kept is None else self._kept.pop(kept.message.publication_id)

    def _current(self, end: End, is_own: bool) -> Kept | None:
        """What an entry of a heap stands for, None if that has been replaced since."""
        expires_us, _, publication_id = end
        kept = self._kept.get(publication_id)
        is_current = kept is not None and kept.expires_us == expires_us and kept.is_own == is_own
        return kept if is_current else None

    def _push(self, kept: Kept) -> None:
        self._counter += 1
        heappush(self._ends[kept.is_own], (kept.expires_us, self._counter, kept.message.publication_id))

    def _rebuild(self) -> None:
        self._ends = ([], [])
        for kept in self._kept.values():
            self._push(kept)


class Resending:
    """The turns of the neighbors of one node; ``send(remote, now)`` sends what is retained."""

    def __init__(
        self, remotes: Mapping[Neighbor, Remote], send: Callable[[Remote, int], None], wait_us: int, most: int
    ) -> None:
        self._remotes = remotes
        self._send = send
        self._wait_us = wait_us
        self._most = most
        self._next_us: dict[Neighbor, int] = {}  # when a neighbor may be sent to again, the last one at the end

    def ask(self, remote: Remote, now: int) -> None:
        """Send to a neighbor whose interests have changed, now or when its turn comes."""
        next_us = self._next_us.get(remote.address)
        if next_us is not None and now < next_us:
            remote.resend_us = next_us
            return
        remote.resend_us = None
        self._next_us.pop(remote.address, None)
        while len(self._next_us) >= self._most:
            del self._next_us[next(iter(self._next_us))]
        self._next_us[remote.address] = now + self._wait_us
        self._send(remote, now)

    def wake(self, now: int) -> None:
        """Send to the neighbors whose turn has come."""
        for remote in list(self._remotes.values()):
            if remote.resend_us is not None and remote.resend_us <= now:
                remote.resend_us = None
                if remote.takes_publications():
                    self.ask(remote, now)

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
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.remotes import Remote
from workbench.protocols.dps.wire import Publication

End: TypeAlias = tuple[int, bytes]  # expires_us, publication id


@dataclass(slots=True, eq=False)
class RetainedPublication:
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
        self._kept: dict[bytes, RetainedPublication] = {}
        self._ends: list[End] = []  # a heap; the entry of a publication that was replaced stays until its time

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, publication_id: bytes) -> RetainedPublication | None:
        """Return the publication kept under an id, or None."""
        return self._kept.get(publication_id)

    def values(self) -> list[RetainedPublication]:
        """Return all of them, oldest first."""
        return list(self._kept.values())

    def put(self, message: Publication, neighbor: Neighbor | None, expires_us: int) -> RetainedPublication | None:
        """Keep one, in place of an older one of its series; returns what had to go for it, or None.

        Of others' the one that ends first goes. If all are this node's own, one of theirs is not kept, and returned.
        """
        evicted = None
        self._kept.pop(message.publication_id, None)
        retained = RetainedPublication(message, neighbor, expires_us)
        if len(self._kept) >= self.size:
            evicted = min(self._kept.values(), key=lambda other: (other.is_own, other.expires_us))
            if evicted.is_own and not retained.is_own:
                return retained
            del self._kept[evicted.message.publication_id]
        self._kept[message.publication_id] = retained
        heappush(self._ends, (expires_us, message.publication_id))
        if len(self._ends) > 2 * len(self._kept) + 64:
            self._ends = sorted((other.expires_us, name) for name, other in self._kept.items())
        return evicted

    def remove(self, publication_id: bytes) -> None:
        """Keep a publication no longer; nothing if it is not kept."""
        self._kept.pop(publication_id, None)

    def pop_over(self, now: int) -> list[RetainedPublication]:
        """Take out those whose time is over."""
        over = []
        while (end_us := self.next_end_us()) is not None and end_us <= now:
            over.append(self._kept.pop(heappop(self._ends)[1]))
        return over

    def next_end_us(self) -> int | None:
        """Return when the next one is over, None if nothing is kept."""
        while self._ends:
            expires_us, publication_id = self._ends[0]
            retained = self._kept.get(publication_id)
            if retained is not None and retained.expires_us == expires_us:
                return expires_us
            heappop(self._ends)
        return None


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

"""Retained publications: a DPS node keeps publications with a lifetime, and sends them to later subscribers.

Theory of operation
    When a neighbor's interests change, the node sends it the retained publications that may match them: at once, but
    not more often than every ``update_s`` (`Resending`). If interests change again before that, the next transfer is
    delayed. Without this limit a neighbor, or a sender that forges its address, could trigger a full transfer with each
    small message. The limit belongs to the neighbor's address, so it still applies if the neighbor ends its link and
    links again.

    The reference sends its retained publications to all neighbors whenever one neighbor sends interests, even unchanged
    ones; neighbors that have the publications drop them. Here a node sends them only to the neighbor whose interests
    changed.

Bounds
    ``max_retained`` publications, each at most as large as a datagram: 64 MB with 1000. Publications of other nodes
    cannot evict this node's own. `Resending` stores times for the last 2 ``max_links`` addresses.
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

Expiry: TypeAlias = tuple[int, bytes]  # expires_us, publication id


@dataclass(slots=True, eq=False)
class RetainedPublication:
    """A retained publication: its message, its sender ``neighbor`` (None: this node), and the time of its expiry."""

    message: Publication
    neighbor: Neighbor | None
    expires_us: int

    @property
    def is_own(self) -> bool:
        """True if this node published the publication."""
        return self.neighbor is None

    def left_s(self, now: int) -> int:
        """Return the remaining lifetime in seconds, rounded up.

        The result never exceeds the initial lifetime, even if the clock is set back."""
        return min(rules.left_s(self.expires_us, now), self.message.ttl_s)


class Retained:
    """The publications that a node retains for later subscribers: the last of each series, at most ``size`` in all."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._publications: dict[bytes, RetainedPublication] = {}
        self._expiries: list[Expiry] = []  # a heap; entries of replaced publications stay until their time

    def __len__(self) -> int:
        return len(self._publications)

    def get(self, publication_id: bytes) -> RetainedPublication | None:
        """Return the retained publication with this id, or None if no such publication is retained."""
        return self._publications.get(publication_id)

    def values(self) -> list[RetainedPublication]:
        """Return all retained publications, in the order in which they were retained."""
        return list(self._publications.values())

    def put(self, message: Publication, neighbor: Neighbor | None, expires_us: int) -> RetainedPublication | None:
        """Retain a publication, in place of an older one of its series; return the evicted publication, or None.

        If ``size`` publications are retained, one of them is evicted: the one from another node that expires first. If
        this node published all of them, a new publication from another node is not retained, and is returned instead.
        """
        evicted_publication = None
        self._publications.pop(message.publication_id, None)
        new_publication = RetainedPublication(message, neighbor, expires_us)
        if len(self._publications) >= self.size:
            evicted_publication = min(self._publications.values(), key=lambda other: (other.is_own, other.expires_us))
            if evicted_publication.is_own and not new_publication.is_own:
                return new_publication
            del self._publications[evicted_publication.message.publication_id]
        self._publications[message.publication_id] = new_publication
        heappush(self._expiries, (expires_us, message.publication_id))
        if len(self._expiries) > 2 * len(self._publications) + 64:
            self._expiries = sorted(
                (publication.expires_us, publication_id) for publication_id, publication in self._publications.items()
            )
        return evicted_publication

    def remove(self, publication_id: bytes) -> None:
        """Remove a publication if it is retained."""
        self._publications.pop(publication_id, None)

    def pop_expired(self, now: int) -> list[RetainedPublication]:
        """Remove and return the expired publications."""
        expired_publications = []
        while (expiry_us := self.next_expiry_us()) is not None and expiry_us <= now:
            expired_publications.append(self._publications.pop(heappop(self._expiries)[1]))
        return expired_publications

    def next_expiry_us(self) -> int | None:
        """Return the time at which the next publication expires, or None if no publication is retained."""
        while self._expiries:
            expires_us, publication_id = self._expiries[0]
            publication = self._publications.get(publication_id)
            if publication is not None and publication.expires_us == expires_us:
                return expires_us
            heappop(self._expiries)
        return None


class Resending:
    """A rate limit: retained publications are sent to each neighbor at most once every ``wait_us`` (µs).

    ``send(remote, now)`` sends a neighbor all retained publications that match its interests. ``limit``: the times of
    transfers are stored for at most this many neighbors; beyond that, the time of the oldest transfer is discarded. A
    neighbor without a stored time is served at once.
    """

    def __init__(
        self, remotes: Mapping[Neighbor, Remote], send: Callable[[Remote, int], None], wait_us: int, limit: int
    ) -> None:
        self._remotes = remotes
        self._send = send
        self._wait_us = wait_us
        self._most_neighbors = limit
        self._next_transfer_us: dict[Neighbor, int] = {}  # neighbor -> earliest time of its next transfer, latest last

    def request(self, remote: Remote, now: int) -> None:
        """Send matching retained publications to a neighbor whose interests changed: now, or when the limit allows."""
        next_transfer_us = self._next_transfer_us.get(remote.address)
        if next_transfer_us is not None and now < next_transfer_us:
            remote.resend_us = next_transfer_us
            return
        remote.resend_us = None
        self._next_transfer_us.pop(remote.address, None)
        while len(self._next_transfer_us) >= self._most_neighbors:
            del self._next_transfer_us[next(iter(self._next_transfer_us))]
        self._next_transfer_us[remote.address] = now + self._wait_us
        self._send(remote, now)

    def wake(self, now: int) -> None:
        """Send retained publications to neighbors whose `request` was delayed and is due now."""
        for remote in list(self._remotes.values()):
            if remote.resend_us is not None and remote.resend_us <= now:
                remote.resend_us = None
                if remote.takes_publications():
                    self.request(remote, now)

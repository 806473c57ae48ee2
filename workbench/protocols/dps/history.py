"""Which publications a DPS node has seen, how new, and from whom: against duplicates, and as the way back.

Theory of operation
    An entry for each publication id: its highest sequence number, whether acknowledgements are wanted, and for each
    neighbor that it came from the highest number, and the fewest hops with that number. The way back goes by the
    highest number, and among equals by hops: who brought earlier ones may have lost its own way since. An entry is kept
    for at least the publication's lifetime and ``history_s`` more. When the memory has doubled since it was last
    cleared, what is over is cleared away, which costs constant time per publication; and beyond ``max_history`` entries
    the one that has not been renewed for longest goes. The reference never clears its history, and grows for as long as
    it runs.

Bounds
    Neighbors with a link are noted, others only while fewer than 16 are: an address costs nothing to name. Each takes
    some 250 bytes, and the entry 600: strangers can make 5000 entries 23 MB, and each link that they take adds 1.3 MB.

Limits
    A publication that comes back after its entry has gone is taken for new.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.protocols.dps import rules
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.wire import Publication


@dataclass(slots=True)
class Seen:
    """The entry of one publication id. ``neighbors``: address -> (highest sequence, fewest hops with that)."""

    sequence: int = 0
    acknowledge: bool = False
    neighbors: dict[Neighbor, tuple[int, int]] = field(default_factory=dict)
    expires_us: int = 0


class History:
    """Publication id -> Seen, for at most ``size`` of them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: dict[bytes, Seen] = {}
        self._clear_at = rules.FEWEST_TO_CLEAR
        self._since_cleared = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, publication_id: bytes) -> Seen | None:
        """The entry, or None."""
        return self._entries.get(publication_id)

    def note(
        self, publication: Publication, neighbor: Neighbor | None, is_linked: bool, expires_us: int, now: int
    ) -> None:
        """Note a publication from a neighbor (None: it is this node's own) with a link or without one."""
        publication_id, sequence, hops = publication.publication_id, publication.sequence, publication.hops
        seen = self._entries.pop(publication_id, None)
        if seen is None:
            self._make_room(now)
            seen = Seen()
        self._entries[publication_id] = seen  # behind all others: the first of them is the oldest
        if sequence >= seen.sequence:
            seen.sequence = sequence
            seen.acknowledge = publication.acknowledge
        seen.expires_us = max(seen.expires_us, expires_us)
        if neighbor is not None:
            known = seen.neighbors.get(neighbor)
            if known is None:
                if rules.records_sender(is_linked, len(seen.neighbors)):
                    seen.neighbors[neighbor] = (sequence, hops)
            elif sequence > known[0] or (sequence == known[0] and hops < known[1]):
                seen.neighbors[neighbor] = (sequence, hops)

    def came_from(self, publication_id: bytes, neighbor: Neighbor, sequence: int) -> bool:
        """Whether a neighbor has sent this publication, with this sequence number or a later one."""
        seen = self._entries.get(publication_id)
        known = None if seen is None else seen.neighbors.get(neighbor)
        return known is not None and known[0] >= sequence

    def way_back(self, publication_id: bytes) -> Neighbor | None:
        """Return the neighbor that brought the newest with the fewest hops, the first of several; or None."""
        seen = self._entries.get(publication_id)
        neighbors = {} if seen is None else seen.neighbors
        return min(neighbors, key=lambda neighbor: (-neighbors[neighbor][0], neighbors[neighbor][1]), default=None)

    def _make_room(self, now: int) -> None:
        entries = self._entries
        self._since_cleared += 1
        if rules.clears_history(len(entries), self._clear_at, self._since_cleared, self.size):
            for publication_id in [one for one, seen in entries.items() if seen.expires_us <= now]:
                del entries[publication_id]
            self._clear_at = rules.next_clearing_size(len(entries))
            self._since_cleared = 0
        while len(entries) >= self.size:
            del entries[next(iter(entries))]

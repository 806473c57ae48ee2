"""Record of the publications that a DPS node has seen and of the neighbors that sent them.

The record serves to drop duplicates, and to find the reverse path.

Theory of operation
    Each publication id has an entry: the highest sequence number of its publications, and whether the publication with
    this number requests acknowledgements. For each neighbor that sent publications with this id, the entry has the
    highest sequence number from this neighbor, and the fewest hops with that number. The reverse path leads to the
    neighbor with the highest sequence number; of several, to the neighbor with the fewest hops. A neighbor that sent
    only lower sequence numbers may have lost its own path.

    An entry lasts for at least the publication's lifetime plus ``history_s``. Expired entries are not removed at once,
    but in searches. The next search begins when the history has twice as many entries as after the last search, or
    after many new entries. So the average cost of a publication is constant. Beyond ``max_history`` entries, the entry
    that was not renewed for the longest time is removed. The history of the reference implementation is never cleared.

Bounds
    An entry records all neighbors with a link, but at most 16 neighbors without a link, as addresses are easily forged.
    Each neighbor takes about 250 bytes, and the entry itself 600. Attackers can fill 23 MB with 5000 entries, and 1.3
    MB more for each link that the node accepts from them.

Limits
    A publication that comes again after its entry was removed counts as new.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from workbench.protocols.dps import rules
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.wire import Publication


@dataclass(slots=True)
class HistoryEntry:
    """The record of one publication id in a `History`.

    ``neighbors`` is {neighbor: (highest sequence number that it sent, fewest hops of its messages with this number)}.
    """

    sequence: int = 0  # the highest sequence number seen
    acknowledge: bool = False  # whether that publication requests acknowledgements
    neighbors: dict[Neighbor, tuple[int, int]] = field(default_factory=dict)
    expires_us: int = 0  # time from which the entry may be removed
    forwarded_answers: int = 0  # number of acknowledgements that the node has forwarded


class History:
    """The publications that one node has seen: a HistoryEntry for each of at most ``size`` publication ids."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: dict[bytes, HistoryEntry] = {}
        self._clearing_size = rules.FEWEST_TO_CLEAR
        self._added_since_clearing = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, publication_id: bytes) -> HistoryEntry | None:
        """Return the HistoryEntry of a publication id, or None if the id has no entry."""
        return self._entries.get(publication_id)

    def record(
        self, publication: Publication, neighbor: Neighbor | None, is_linked: bool, expires_us: int, now: int
    ) -> None:
        """Record a publication that a neighbor sent, or that this node published (``neighbor`` None).

        ``is_linked``: whether this node has a link with the neighbor. ``expires_us``: time from which the entry of this
        publication id may be removed.
        """
        publication_id, sequence, hops = publication.publication_id, publication.sequence, publication.hops
        history_entry = self._entries.pop(publication_id, None)
        if history_entry is None:
            self._make_room(now)
            history_entry = HistoryEntry()
        self._entries[publication_id] = history_entry  # at the end: the first entry is the oldest
        if sequence >= history_entry.sequence:
            history_entry.sequence = sequence
            history_entry.acknowledge = publication.acknowledge
        history_entry.expires_us = max(history_entry.expires_us, expires_us)
        if neighbor is not None:
            best_copy = history_entry.neighbors.get(neighbor)
            if best_copy is None:
                if rules.records_sender(is_linked, len(history_entry.neighbors)):
                    history_entry.neighbors[neighbor] = (sequence, hops)
            elif sequence > best_copy[0] or (sequence == best_copy[0] and hops < best_copy[1]):
                history_entry.neighbors[neighbor] = (sequence, hops)

    def came_from(self, publication_id: bytes, neighbor: Neighbor, sequence: int) -> bool:
        """Return whether a neighbor sent a publication with this id and this sequence number, or a higher one."""
        entry = self._entries.get(publication_id)
        best_copy = None if entry is None else entry.neighbors.get(neighbor)
        return best_copy is not None and best_copy[0] >= sequence

    def reverse_hop(self, publication_id: bytes) -> Neighbor | None:
        """Return the next hop on the reverse path of a publication, or None if no neighbor sent it.

        Among the neighbors that sent the highest sequence number, the next hop is the one with the fewest hops.
        """
        entry = self._entries.get(publication_id)
        copies = {} if entry is None else entry.neighbors
        return min(copies, key=lambda neighbor: (-copies[neighbor][0], copies[neighbor][1]), default=None)

    def _make_room(self, now: int) -> None:
        entries = self._entries
        self._added_since_clearing += 1
        if rules.clears_history(len(entries), self._clearing_size, self._added_since_clearing, self.size):
            for publication_id in [
                entry_id for entry_id, history_entry in entries.items() if history_entry.expires_us <= now
            ]:
                del entries[publication_id]
            self._clearing_size = rules.next_clearing_size(len(entries))
            self._added_since_clearing = 0
        while len(entries) >= self.size:
            del entries[next(iter(entries))]

"""Mesh ids: by which a DPS node sees that two of its neighbors are joined elsewhere.

Theory of operation
    Each node has an id of its own, and tells a neighbor the lowest that it knows of, leaving out what that neighbor
    told. Where the links are a tree, two neighbors cannot tell the same: it would have come to one of them through
    this node. So the same lowest id from two of them is a loop.

    In a loop of active links the id of a node that is no longer behind any of them would go round for ever: each node
    takes it for the lowest of the one before it, and muted links compare it to no end. So the lowest byte of an id
    counts its hops. An id that only goes round comes from farther each time; when it has done so `MOST_RISES` times in
    turn over a link, it counts for nothing there, and so it does after `MOST_ID_HOPS`. The other bytes are the owner's:
    two ids of one owner show a loop, however far they have come.

    A C node's id has a random byte there, and C nodes pass an id on unchanged and compare all of it. So ids that count
    hops have a mark, bytes 1 and 2, and all others are compared whole and pass unchanged. A C node is told an id
    without its hops, else it would take one id that came two ways for two; the flag COUNTS_HOPS of a message shows
    which neighbors are not C nodes. The last byte of an id, which counts most, is 0 if it has the mark: so the lowest
    id in a mesh is one that counts its hops, if any node makes such.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.draws import Stream
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.remotes import NO_MESH_ID, Remote, owner_of
from workbench.protocols.dps.rules import MARK, hop_to_add, joins, takes_publications

_MARKED_BITS = 24  # hops and mark
_UNNUMBERED_BITS = 65  # 63 are left
_TOP = 1 << 120  # ids of this project's nodes are below this, and nearly all others above


def number_of(mesh_id: bytes) -> int:
    """A mesh id as ids are compared: the last of its bytes counts most."""
    return int.from_bytes(mesh_id, "little")


def owner_number(mesh_id: int) -> int:
    """Return the number of a mesh id's owner in events, -1 for NO_MESH_ID: the leading bits, which hops never reach."""
    return -1 if mesh_id >= NO_MESH_ID else mesh_id >> _UNNUMBERED_BITS


def marked(mesh_id: int) -> int:
    """Return a mesh id with the mark of this project's nodes, no hops, and 0 in the byte that counts most."""
    return mesh_id % _TOP >> _MARKED_BITS << _MARKED_BITS | MARK


class MeshIds:
    """The ids that one node knows; ``remotes``: neighbor -> Remote. ``own`` is a number, as all of them are here."""

    def __init__(self, remotes: Mapping[Neighbor, Remote]) -> None:
        self.own = 0
        self._remotes = remotes
        self._lowest_seen = NO_MESH_ID

    def heard(self, mesh_id: int) -> None:
        """An id has come; one that is made later will be below it."""
        self._lowest_seen = min(self._lowest_seen, mesh_id)

    def lowest_but(self, remote: Remote) -> int:
        """The lowest id on this side of a link."""
        lowest = self.own
        for other in self._remotes.values():
            if other is not remote and joins(other.state):
                lowest = min(lowest, other.mesh_id_here())
        return lowest

    def shows_loop(self, mesh_id: int, remote: Remote) -> bool:
        """Return whether a neighbor's id has the owner of this node's own, or of the lowest of other neighbors."""
        if hop_to_add(mesh_id) < 0:
            return False
        return owner_of(mesh_id) in (owner_of(self.own), owner_of(self.lowest_but(remote)))

    def told_otherwise(self) -> list[Remote]:
        """The active remotes that were told another id than they would be told now."""
        lowest = second = NO_MESH_ID
        source = None
        for remote in self._remotes.values():
            if not joins(remote.state):
                continue
            mesh_id = remote.mesh_id_here()
            if mesh_id < lowest:
                lowest, second, source = mesh_id, lowest, remote
            elif mesh_id < second:
                second = mesh_id
        return [
            remote
            for remote in self._remotes.values()
            if takes_publications(remote.state)
            and remote.sent_mesh_id != remote.mesh_id_there(min(self.own, second if remote is source else lowest))
        ]

    def apart(self) -> list[Remote]:
        """Return the muted remotes that told a lower id than all that are known here, and are not asked just now.

        Its owner is behind the other end, and not here: what showed the loop was on its way, or has been cut since.
        """
        apart = []
        for remote in self._remotes.values():
            if remote.state == MUTED and remote.pending is None and hop_to_add(remote.inbound_mesh_id) >= 0:
                mesh_id, lowest = remote.inbound_mesh_id, self.lowest_but(remote)
                if mesh_id < lowest and owner_of(mesh_id) != owner_of(lowest):
                    apart.append(remote)
        return apart

    def go_below(self, random: Stream) -> None:
        """Take an own id below all that were seen, by 64 random bits: nobody can take it for an old one."""
        below = (min(self._lowest_seen, self.own) >> _MARKED_BITS) - random.bits() - 1
        if below < 0:
            # Only a forged one is so low. Two that both took 0 would see a loop between them for ever.
            self._lowest_seen = self.own = marked(random.bits() << 64 | random.bits())
            return
        self.own = below << _MARKED_BITS | MARK
        self.heard(self.own)

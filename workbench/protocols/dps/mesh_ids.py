"""Mesh ids, by which a DPS node detects that another path connects two of its neighbors, so that a link closes a loop.

Theory of operation
    Each node has an id of its own. It sends each neighbor the lowest id that it knows, except ids from that neighbor.
    Where the links are a tree, two neighbors cannot send the same id: the id would have reached one of them through
    this node. So the same lowest id from two neighbors shows a loop.

    In a loop of active links the id of a node that left the mesh would circulate for ever, as each node gets it from
    the node before. So the lowest byte of an id counts its hops. The hops of an id that only circulates increase with
    each lap. An id is ignored if it came over a link with `MOST_RISES` increases in a row, or with more than
    `MOST_ID_HOPS` hops. The other bytes identify the owner: two ids of one owner show a loop, whatever their hops.

    The lowest byte is random in the id of a C node (a node of the reference implementation). C nodes forward an id
    unchanged and compare all of its bytes. So ids that count hops have a mark in bytes 1 and 2; all others are compared
    whole and forwarded unchanged. A C node gets ids without hops, as it would take an id that came over two paths for
    two ids. The flag COUNTS_HOPS of a message shows which neighbors are not C nodes. The last, most significant byte of
    a marked id is 0. So the lowest id in a mesh counts its hops, if any node's id does.

    All ids in this module are integers.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.draws import Stream
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.remotes import NO_MESH_ID, Remote, owner_of
from workbench.protocols.dps.rules import MARK, hop_to_add, is_connecting, takes_publications

_LOW_BITS = 24  # hops and mark
_DROPPED_BITS = 65  # of an id in an event, which has 63 bits for its owner
_MARKED_ID_LIMIT = 1 << 120  # marked ids are below this, and nearly all others above


def mesh_id_number(mesh_id: bytes) -> int:
    """Return a mesh id as an integer (little-endian), the order in which ids compare."""
    return int.from_bytes(mesh_id, "little")


def owner_number(mesh_id: int) -> int:
    """Return the number that stands for the owner of a mesh id in the events that nodes report.

    It is the highest 63 bits of the id, or -1 for NO_MESH_ID.
    """
    return -1 if mesh_id >= NO_MESH_ID else mesh_id >> _DROPPED_BITS


def add_mark(mesh_id: int) -> int:
    """Return a mesh id with the mark of this project's nodes, 0 hops, and 0 in the most significant byte."""
    return mesh_id % _MARKED_ID_LIMIT >> _LOW_BITS << _LOW_BITS | MARK


class MeshIds:
    """The mesh ids that one node knows: its own, and those of its neighbors (``remotes``: neighbor -> Remote)."""

    def __init__(self, remotes: Mapping[Neighbor, Remote]) -> None:
        self.own = 0
        self._remotes = remotes
        self._lowest_seen = NO_MESH_ID

    def note_seen(self, mesh_id: int) -> None:
        """Record a received id, so that `choose_lower_id` chooses an id below it."""
        self._lowest_seen = min(self._lowest_seen, mesh_id)

    def lowest_except(self, remote: Remote) -> int:
        """Return the lowest id on this side of a link: of this node and all neighbors except ``remote``."""
        lowest = self.own
        for other in self._remotes.values():
            if other is not remote and is_connecting(other.state):
                lowest = min(lowest, other.effective_mesh_id())
        return lowest

    def shows_loop(self, mesh_id: int, remote: Remote) -> bool:
        """Return whether an id from a neighbor shows a loop.

        The id shows a loop if its owner is this node, or is also the owner of the lowest id on this side of the link.
        """
        if hop_to_add(mesh_id) < 0:
            return False
        return owner_of(mesh_id) in (owner_of(self.own), owner_of(self.lowest_except(remote)))

    def outdated_remotes(self) -> list[Remote]:
        """Return the neighbors with an active link that were last sent another mesh id than they would be sent now."""
        lowest = second_lowest = NO_MESH_ID
        lowest_sender = None
        for remote in self._remotes.values():
            if not is_connecting(remote.state):
                continue
            mesh_id = remote.effective_mesh_id()
            if mesh_id < lowest:
                lowest, second_lowest, lowest_sender = mesh_id, lowest, remote
            elif mesh_id < second_lowest:
                second_lowest = mesh_id
        return [
            remote
            for remote in self._remotes.values()
            if takes_publications(remote.state)
            and remote.sent_mesh_id
            != remote.outbound_mesh_id(min(self.own, second_lowest if remote is lowest_sender else lowest))
        ]

    def separated_remotes(self) -> list[Remote]:
        """Return the muted remotes that seem to be in another part of the mesh.

        Such a neighbor sent a lower id than all others that this node knows. So the owner of that id is connected to
        the neighbor, but not to this node: the loop never existed, or it was cut. Remotes with an outstanding message
        are left out.
        """
        separated = []
        for remote in self._remotes.values():
            if remote.state == MUTED and remote.pending is None and hop_to_add(remote.inbound_mesh_id) >= 0:
                mesh_id, lowest = remote.inbound_mesh_id, self.lowest_except(remote)
                if mesh_id < lowest and owner_of(mesh_id) != owner_of(lowest):
                    separated.append(remote)
        return separated

    def choose_lower_id(self, random: Stream) -> None:
        """Choose a new id, a random 64-bit distance below all ids seen; if none is so low, choose a random id."""
        new_upper_bits = (min(self._lowest_seen, self.own) >> _LOW_BITS) - random.bits() - 1
        if new_upper_bits < 0:
            # Only a forged id is so low. If two nodes both took 0, they would detect a loop between them for ever.
            self._lowest_seen = self.own = add_mark(random.bits() << 64 | random.bits())
            return
        self.own = new_upper_bits << _LOW_BITS | MARK
        self.note_seen(self.own)

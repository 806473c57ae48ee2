"""Mesh ids, by which a DPS node detects that another path connects two of its neighbors, so that a link closes a loop.

Theory of operation
    Each node has an id of its own. It sends each neighbor the lowest id that it knows, except ids from that neighbor.
    Where the links are a tree, two neighbors cannot send the same id: the id would have reached one of them through
    this node. So the same lowest id from two neighbors shows a loop.

    In a loop of active links, the id of a node that left the mesh would circulate for ever: each node receives it from
    the previous node of the loop. So the ids of this project's nodes count their hops. If an id circulates, its hops
    increase with each lap. An id from a neighbor is ignored if its hops increased `MOST_RISES` times in a row, or
    exceed `MOST_ID_HOPS`.

Layout
    An id is an integer of 16 bytes, byte 0 being the least significant. In the id of a C node (a node of the reference
    implementation), all bytes are random. An id of this project's nodes, a *marked* id, has these bytes:

    byte 0          number of hops
    bytes 1 and 2   `MARK`, which shows that byte 0 counts hops
    bytes 3 to 14   identify the node that created the id, its *owner*; random at first
    byte 15         0

    Byte 15 decides which id is lower. It is 0 in marked ids and seldom 0 in others, so marked ids are almost always the
    lowest ids of a mesh. Two ids of one owner show a loop, whatever their hops.

    C nodes forward an id unchanged and compare all of its bytes. So ids without the mark are compared whole, and
    forwarded unchanged. Marked ids are sent to a C node with hop count 0: with different hop counts, a C node would
    treat the same id from two paths as two ids. The flag COUNTS_HOPS of a message shows which neighbors are not C
    nodes.
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
    """Return the bytes of a mesh id as an integer (little-endian), by which ids are compared."""
    return int.from_bytes(mesh_id, "little")


def owner_number(mesh_id: int) -> int:
    """Return the number by which events identify the node that created a mesh id: the highest 63 bits of the id.

    The result is -1 for NO_MESH_ID, which means that no id has come yet.
    """
    return -1 if mesh_id >= NO_MESH_ID else mesh_id >> _DROPPED_BITS


def add_mark(mesh_id: int) -> int:
    """Return ``mesh_id`` with its hop count and top byte set to 0, and bytes 1 and 2 to the mark of this project."""
    return mesh_id % _MARKED_ID_LIMIT >> _LOW_BITS << _LOW_BITS | MARK


class MeshIds:
    """The mesh ids (ids that show loops) that one node knows: its own id, and the ids that its neighbors sent.

    ``remotes`` is the node's {neighbor: Remote}, which has the ids of the neighbors.
    """

    def __init__(self, remotes: Mapping[Neighbor, Remote]) -> None:
        self.own = 0
        self._remotes = remotes
        self._lowest_seen = NO_MESH_ID

    def note_seen(self, mesh_id: int) -> None:
        """Record a received mesh id: `choose_lower_id` chooses an id below all recorded ids."""
        self._lowest_seen = min(self._lowest_seen, mesh_id)

    def lowest_except(self, remote: Remote) -> int:
        """Return the lowest of the mesh ids of this node and of its neighbors except ``remote``.

        Only neighbors with an active link, or a link that is being established, are considered.
        """
        lowest_id = self.own
        for other_remote in self._remotes.values():
            if other_remote is not remote and is_connecting(other_remote.state):
                lowest_id = min(lowest_id, other_remote.effective_mesh_id())
        return lowest_id

    def shows_loop(self, mesh_id: int, remote: Remote) -> bool:
        """Return whether a mesh id that came from ``remote`` shows that the link closes a loop.

        The result is True if this node created the id, or if one node created both this id and the lowest id on this
        side of the link.
        """
        if hop_to_add(mesh_id) < 0:
            return False
        return owner_of(mesh_id) in (owner_of(self.own), owner_of(self.lowest_except(remote)))

    def outdated_remotes(self) -> list[Remote]:
        """Return the neighbors with an active link to which this node must send a changed mesh id."""
        lowest_id = second_lowest_id = NO_MESH_ID
        lowest_sender = None
        for remote in self._remotes.values():
            if not is_connecting(remote.state):
                continue
            mesh_id = remote.effective_mesh_id()
            if mesh_id < lowest_id:
                lowest_id, second_lowest_id, lowest_sender = mesh_id, lowest_id, remote
            elif mesh_id < second_lowest_id:
                second_lowest_id = mesh_id
        return [
            remote
            for remote in self._remotes.values()
            if takes_publications(remote.state)
            and remote.sent_mesh_id
            != remote.outbound_mesh_id(min(self.own, second_lowest_id if remote is lowest_sender else lowest_id))
        ]

    def separated_remotes(self) -> list[Remote]:
        """Return the neighbors with a muted link that seem to be in another, unconnected part of the mesh.

        A link is muted because it seemed to close a loop. A neighbor is in the result if its mesh id is lower than all
        other ids that this node knows. So the creator of this id is connected to the neighbor, but not to this node,
        and the link closes no loop. Neighbors that must still answer a message are left out.
        """
        separated_remotes = []
        for remote in self._remotes.values():
            if remote.state == MUTED and remote.pending is None and hop_to_add(remote.inbound_mesh_id) >= 0:
                mesh_id, lowest_id = remote.inbound_mesh_id, self.lowest_except(remote)
                if mesh_id < lowest_id and owner_of(mesh_id) != owner_of(lowest_id):
                    separated_remotes.append(remote)
        return separated_remotes

    def choose_lower_id(self, random: Stream) -> None:
        """Replace this node's mesh id by an id that is lower than all recorded ids (`note_seen`).

        The lowest 24 bits of the new id are the hop count 0 and the mark. Its other bits form a number: the number in
        the lowest recorded id, minus a random number of 64 bits, minus 1. If the difference would be negative, the new
        id is random.
        """
        new_upper_bits = (min(self._lowest_seen, self.own) >> _LOW_BITS) - random.bits() - 1
        if new_upper_bits < 0:
            # Only a forged id is so low. If two nodes both took 0, they would detect a loop between them for ever.
            self._lowest_seen = self.own = add_mark(random.bits() << 64 | random.bits())
            return
        self.own = new_upper_bits << _LOW_BITS | MARK
        self.note_seen(self.own)

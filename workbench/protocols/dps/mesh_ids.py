"""Mesh ids: by which a DPS node sees that two of its neighbors are joined elsewhere.

Theory of operation
    Each node has an id of its own, and tells a neighbor the lowest that it knows of, leaving out what that neighbor
    told. Where the links are a tree, two neighbors cannot tell the same: it would have come to one of them through
    this node. So the same lowest id from two of them is a loop.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps.remotes import NO_MESH_ID
from workbench.protocols.dps.rules import joins
from workbench.protocols.dps.wire.fields import ID_B


def number_of(mesh_id):
    """A mesh id as ids are compared: the last of its bytes counts most."""
    return int.from_bytes(mesh_id, "little")


class MeshIds:
    """The ids that one node knows; ``remotes``: neighbor -> Remote. ``own`` is a number, as all of them are here."""

    def __init__(self, remotes):
        self.own = 0
        self._remotes = remotes
        self._lowest_seen = NO_MESH_ID

    def heard(self, mesh_id):
        """An id has come; one that is made later will be below it."""
        self._lowest_seen = min(self._lowest_seen, mesh_id)

    def lowest_but(self, remote):
        """The lowest id on this side of a link."""
        lowest = self.own
        for other in self._remotes.values():
            if other is not remote and joins(other.state) and other.inbound_mesh_id < lowest:
                lowest = other.inbound_mesh_id
        return lowest

    @staticmethod
    def as_told(mesh_id):
        """An id as it goes to a neighbor: 16 bytes."""
        return mesh_id.to_bytes(ID_B, "little")

    def go_below(self, random):
        """Take an own id below all that were seen, by 64 random bits: nobody can take it for an old one."""
        self.own = max(0, min(self._lowest_seen, self.own) - random.bits() - 1)
        self.heard(self.own)

"""What a DPS node knows of one neighbor that it has a link with: what was sent to it last, and what came from it.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.rules import goes_round, hop_to_add, hops_of, rises_after, takes_publications

NO_NEEDS = bytes(FUZZY_HASH_B)
# Above every mesh id: what a neighbor is taken to have sent before it has sent anything.
NO_MESH_ID = 1 << 128

# Bits and needs of no interests, as events have them.
NOTHING_ANNOUNCED = 0, "0"

# What an answer is outstanding to.
SUBSCRIPTION, ACKNOWLEDGEMENT = 1, 2


def owner_of(mesh_id):
    """Return a mesh id as its owner made it, before any hop; equal for two ids of one owner."""
    return mesh_id - hops_of(mesh_id)


class Remote:
    """One neighbor. ``pending`` is what waits for its acknowledgement, None if nothing does."""

    __slots__ = (
        "address",
        "announced",
        "announced_owner",
        "asked",
        "counts_hops",
        "has_news",
        "inbound",
        "inbound_mesh_id",
        "inbound_revision",
        "interests",
        "is_behind",
        "is_delta",
        "keep_alive_us",
        "needs",
        "owes_all",
        "pending",
        "resend_us",
        "revision",
        "rises",
        "state",
        "tick_us",
        "ticks",
        "told_mesh_id",
        "unlinks",
        "vector",
    )

    def __init__(self, address, asked, revision):
        self.address = address
        self.state = GONE
        self.asked = asked  # whether it was this node that asked for the link
        self.revision = revision
        self.interests = None  # sent last, with ``needs``; None: nothing so far
        self.needs = NO_NEEDS
        self.vector = None  # what goes, or went, into the message: the interests, or what changed in them
        self.is_delta = False
        self.is_behind = False  # its interests may have changed while something was pending
        self.owes_all = False  # the next acknowledgement brings all interests
        self.unlinks = False  # to be unlinked when nothing is pending any more
        self.pending = None
        self.ticks = 0
        self.tick_us = None
        self.keep_alive_us = None
        self.resend_us = None  # when it is sent what is retained, None if its interests have not changed since
        self.told_mesh_id = NO_MESH_ID  # with what was sent last
        self.inbound = None  # (interests, needs), None if there are no interests
        self.inbound_mesh_id = NO_MESH_ID
        self.inbound_revision = 0
        self.announced = NOTHING_ANNOUNCED  # bits and needs of its interests, as events have them
        self.announced_owner = -1
        self.has_news = False  # whether events may have to report others
        self.counts_hops = False  # whether it counts hops in mesh ids, as its last message has shown
        self.rises = 0  # how often in turn its mesh id has come from farther

    def takes_publications(self):
        """Whether publications go to this neighbor, if it asks for them."""
        return takes_publications(self.state) and self.inbound is not None

    def note_mesh_id(self, mesh_id):
        """Note a mesh id that has come from this neighbor, and whether it has come from farther than before."""
        before = self.inbound_mesh_id
        is_same = owner_of(mesh_id) == owner_of(before)
        self.rises = rises_after(self.rises, is_same, hops_of(mesh_id), hops_of(before))
        self.inbound_mesh_id = mesh_id

    def mesh_id_there(self, mesh_id):
        """Return a mesh id as this neighbor is told it: without hops, if it would pass on and compare these, too."""
        return mesh_id if self.counts_hops else owner_of(mesh_id)

    def mesh_id_here(self):
        """Return what this neighbor's mesh id counts for here: one hop more, or NO_MESH_ID if it only goes round."""
        more = hop_to_add(self.inbound_mesh_id)
        return NO_MESH_ID if more < 0 or goes_round(self.rises) else self.inbound_mesh_id + more

    def sends_all(self):
        """Return whether a subscription with all interests is outstanding."""
        return self.pending == SUBSCRIPTION and not self.is_delta

    def forget_outbound(self, length):
        """From now on what goes out is told against no interests at all."""
        self.interests = BitVector(length)
        self.needs = NO_NEEDS
        self.vector = None
        self.is_delta = True
        self.is_behind = False

    def await_answer(self, pending, tick_us):
        """A message went out that asks for an answer; the first to be answered keeps its clock."""
        if self.pending is None:
            self.ticks = 0
            self.tick_us = tick_us
        self.pending = pending
        self.keep_alive_us = None

    def settle(self, keep_alive_us):
        """Nothing is outstanding any more."""
        self.pending = None
        self.tick_us = None
        self.keep_alive_us = keep_alive_us

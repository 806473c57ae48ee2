"""What a DPS node knows of one neighbor that it has a link with: what was sent to it last, and what came from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from workbench.protocols.dps.automaton import GONE, State
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.rules import goes_round, hop_to_add, hops_of, rises_after, takes_publications

NO_NEEDS = bytes(FUZZY_HASH_B)
# Above every mesh id: what a neighbor is taken to have sent before it has sent anything.
NO_MESH_ID = 1 << 128

# What an answer is outstanding to.
SUBSCRIPTION, ACKNOWLEDGEMENT = 1, 2


def owner_of(mesh_id: int) -> int:
    """Return a mesh id as its owner made it, before any hop; equal for two ids of one owner."""
    return mesh_id - hops_of(mesh_id)


class Announced(NamedTuple):
    """The interests and the mesh id's owner that events reported last, of a neighbor or of all together."""

    interests: tuple[int, str] = (0, "0")  # bits, and bits of the needs
    owner: int = -1


NOTHING_ANNOUNCED = Announced()


@dataclass(slots=True, eq=False)
class Remote:
    """A neighbor with a link."""

    address: Neighbor
    asked: bool  # whether this node asked for the link
    revision: int
    state: State = GONE
    interests: BitVector | None = None  # sent last, with ``needs``; None: nothing so far
    needs: bytes = NO_NEEDS
    vector: BitVector | None = None  # in the message sent last or next: the interests, or what changed in them
    is_delta: bool = False
    is_behind: bool = False  # its interests may have changed while something was pending
    owes_all: bool = False  # the next acknowledgement brings all interests
    unlinks: bool = False  # the link ends when nothing is pending any more
    pending: int | None = None  # SUBSCRIPTION or ACKNOWLEDGEMENT while an answer to it is outstanding
    ticks: int = 0
    tick_us: int | None = None
    keep_alive_us: int | None = None
    again_us: int | None = None  # when to send again what the radio gave up
    repeated: int = 0  # how often that was done since the radio last reached the neighbor
    owes_answer: bool = False  # an acknowledgement without interests was given up
    resend_us: int | None = None  # when it is sent what is retained, None if its interests have not changed since
    sent_mesh_id: int = NO_MESH_ID  # sent last
    inbound: tuple[BitVector, bytes] | None = None  # its interests and needs, None if there are no interests
    inbound_mesh_id: int = NO_MESH_ID
    inbound_revision: int = 0
    announced: Announced = NOTHING_ANNOUNCED
    has_news: bool = False  # whether events may have to report others
    counts_hops: bool = False  # whether it counts hops in mesh ids, as its last message has shown
    rises: int = 0  # how often in turn its mesh id has come from farther

    def takes_publications(self) -> bool:
        """Whether publications go to this neighbor, if it asks for them."""
        return takes_publications(self.state) and self.inbound is not None

    def note_mesh_id(self, mesh_id: int) -> None:
        """Note a mesh id that has come from this neighbor, and whether it has come from farther than before."""
        before = self.inbound_mesh_id
        is_same = owner_of(mesh_id) == owner_of(before)
        self.rises = rises_after(self.rises, is_same, hops_of(mesh_id), hops_of(before))
        self.inbound_mesh_id = mesh_id

    def mesh_id_there(self, mesh_id: int) -> int:
        """Return a mesh id as this neighbor is told it: without hops, if it would pass on and compare these, too."""
        return mesh_id if self.counts_hops else owner_of(mesh_id)

    def mesh_id_here(self) -> int:
        """Return what this neighbor's mesh id counts for here: one hop more, or NO_MESH_ID if it only goes round."""
        more = hop_to_add(self.inbound_mesh_id)
        return NO_MESH_ID if more < 0 or goes_round(self.rises) else self.inbound_mesh_id + more

    def sends_all(self) -> bool:
        """Return whether a subscription with all interests is outstanding."""
        return self.pending == SUBSCRIPTION and not self.is_delta

    def forget_outbound(self, length: int) -> None:
        """From now on what goes out is told against no interests at all."""
        self.interests = BitVector(length)
        self.needs = NO_NEEDS
        self.vector = None
        self.is_delta = True
        self.is_behind = False

    def await_answer(self, pending: int, tick_us: int) -> None:
        """A message went out that asks for an answer; the first to be answered keeps its clock."""
        if self.pending is None:
            self.ticks = 0
            self.tick_us = tick_us
        self.pending = pending
        self.keep_alive_us = None

    def settle(self, keep_alive_us: int | None) -> None:
        """Nothing is outstanding any more."""
        self.pending = None
        self.tick_us = None
        self.keep_alive_us = keep_alive_us

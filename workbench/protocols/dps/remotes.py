"""State of one link of a DPS node: the interests and mesh ids last sent to the neighbor and received from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from workbench.protocols.dps.automaton import GONE, State
from workbench.protocols.dps.bloom import FUZZY_HASH_B, BitVector
from workbench.protocols.dps.context import Neighbor
from workbench.protocols.dps.rules import hop_to_add, hops_of, is_circulating, rises_after, takes_publications

NO_NEEDS = bytes(FUZZY_HASH_B)
# Above every mesh id; it stands for an id before the first one is sent or received.
NO_MESH_ID = 1 << 128

# Kinds of messages that wait for an answer (`Remote.pending`).
SUBSCRIPTION, ACKNOWLEDGEMENT = 1, 2


def owner_of(mesh_id: int) -> int:
    """Return a mesh id with its hop count set to 0, which identifies the node that created the id."""
    return mesh_id - hops_of(mesh_id)


class LinkReport(NamedTuple):
    """Values that a node last logged for one neighbor, or for itself; it logs an event when a value changes.

    interests  (number of set bits in the interests, number of set bits in the needs); the second number is a text, such
               as "7". Needs are the bits that the fuzzy hashes of all subscriptions share
    owner      number of the node that created the mesh id (`mesh_ids.owner_number`); -1 before the first mesh id
    """

    interests: tuple[int, str] = (0, "0")
    owner: int = -1


EMPTY_REPORT = LinkReport()


@dataclass(slots=True, eq=False)
class Remote:
    """The state of the link with one neighbor, as this end of the link sees it.

    Interests are the union of the Bloom filters of subscriptions, needs the bits that all their fuzzy hashes share.
    ``interests``, ``needs`` and ``vector`` are values that this node sends to the neighbor. Fields that begin with
    ``inbound`` are values that came from the neighbor.
    """

    address: Neighbor
    is_requester: bool  # whether this node requested the link
    revision: int
    state: State = GONE
    interests: BitVector | None = None  # sent last, with ``needs``; None: not sent yet
    needs: bytes = NO_NEEDS
    vector: BitVector | None = None  # in the last or next message: the interests, or the change of them
    is_delta: bool = False  # whether ``vector`` is a change
    is_behind: bool = False  # whether its interests may have changed while an answer was outstanding
    answers_in_full: bool = False  # whether the next acknowledgement carries all interests
    ends_later: bool = False  # whether the link ends when no answer is outstanding any more
    pending: int | None = None  # SUBSCRIPTION or ACKNOWLEDGEMENT while an answer to it is outstanding
    ticks: int = 0  # number of ticks since the unanswered message was first sent
    tick_us: int | None = None  # time of the next tick
    keep_alive_us: int | None = None  # time of the next keep-alive
    retry_us: int | None = None  # when to send again the messages that the radio gave up
    repeated: int = 0  # retries since the radio last reached the neighbor
    answers_again: bool = False  # whether the radio gave up an acknowledgement, which is to be sent again
    resend_us: int | None = None  # when the rate limit lets retained publications be sent to it; None: none wait
    sent_mesh_id: int = NO_MESH_ID
    inbound: tuple[BitVector, bytes] | None = None  # its interests and needs, None if its interests are empty
    inbound_mesh_id: int = NO_MESH_ID
    inbound_revision: int = 0
    last_report: LinkReport = EMPTY_REPORT
    has_changes: bool = False  # whether ``last_report`` may be outdated
    counts_hops: bool = False  # whether it counts hops in mesh ids (flag of its last message)
    rises: int = 0  # increases in a row of its mesh id's hops

    def takes_publications(self) -> bool:
        """Return whether this node sends publications to the neighbor: the link is active and interests have come."""
        return takes_publications(self.state) and self.inbound is not None

    def note_mesh_id(self, mesh_id: int) -> None:
        """Store a mesh id that came from this neighbor, and update ``rises``.

        ``rises`` counts how many times in a row the hop count of the neighbor's mesh ids increased.
        """
        previous_mesh_id = self.inbound_mesh_id
        is_same_owner = owner_of(mesh_id) == owner_of(previous_mesh_id)
        self.rises = rises_after(self.rises, is_same_owner, hops_of(mesh_id), hops_of(previous_mesh_id))
        self.inbound_mesh_id = mesh_id

    def outbound_mesh_id(self, mesh_id: int) -> int:
        """Return a mesh id as this neighbor gets it: with hop count 0 if the neighbor does not count hops."""
        return mesh_id if self.counts_hops else owner_of(mesh_id)

    def effective_mesh_id(self) -> int:
        """Return the mesh id that came from this neighbor, with one more hop if the id counts hops.

        If the id has too many hops or circulates in a loop, return NO_MESH_ID, which is higher than all ids.
        """
        hops = hop_to_add(self.inbound_mesh_id)
        return NO_MESH_ID if hops < 0 or is_circulating(self.rises) else self.inbound_mesh_id + hops

    def sends_all(self) -> bool:
        """Return whether this node has sent all its interests (not a change of them), and the answer is outstanding."""
        return self.pending == SUBSCRIPTION and not self.is_delta

    def forget_outbound(self, length: int) -> None:
        """Record that the interests sent last to the neighbor were empty, whatever was sent.

        So the next message contains the change from empty interests to the current ones. ``length``: number of bits of
        a filter.
        """
        self.interests = BitVector(length)
        self.needs = NO_NEEDS
        self.vector = None
        self.is_delta = True
        self.is_behind = False

    def await_answer(self, pending: int, tick_us: int) -> None:
        """Record that this node sent a message and waits for the neighbor's answer; start the timer of the link.

        ``pending``: kind of message, SUBSCRIPTION or ACKNOWLEDGEMENT. ``tick_us``: time of the timer's first tick. If
        an earlier message is still unanswered, the timer already runs and is not changed.
        """
        if self.pending is None:
            self.ticks = 0
            self.tick_us = tick_us
        self.pending = pending
        self.keep_alive_us = None

    def settle(self, keep_alive_us: int | None) -> None:
        """Record that this node waits for no answer from the neighbor any more.

        ``keep_alive_us``: time of the next keep-alive; None: never.
        """
        self.pending = None
        self.tick_us = None
        self.keep_alive_us = keep_alive_us

"""Interests of a DPS node: the sums of what is asked for at the node and behind its links, and their messages.

Theory of operation
    Each subscription has a filter and its fuzzy hash, its needs; each neighbor has told the union of the filters behind
    it and the needs that they have in common. All these pairs are entries of two counting vectors. A neighbor is told
    the union and the intersection of all entries but its own, and to leave out one entry costs no more than some
    operations on long integers, however many entries there are. `Outgoing` finds what has changed for each neighbor,
    and writes the messages of links.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.protocols.dps import wire
from workbench.protocols.dps.bloom import FUZZY_HASH_BITS, BitVector, CountingVector
from workbench.protocols.dps.context import Context
from workbench.protocols.dps.mesh_ids import MeshIds
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION, Remote
from workbench.protocols.dps.rules import acknowledgement_flags, hop_to_add, subscription_flags
from workbench.protocols.dps.wire.fields import ID_B

Pair: TypeAlias = tuple[BitVector, bytes]  # interests and needs


class Interests:
    """The entries of one node: pairs of interests (BitVector) and needs (32 bytes)."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._filters = CountingVector(length)
        self._needs = CountingVector(FUZZY_HASH_BITS)

    def add(self, pair: Pair) -> None:
        """One pair more."""
        interests, needs = pair
        self._filters.add(interests)
        self._needs.add(BitVector.from_bytes(needs))

    def remove(self, pair: Pair) -> None:
        """One pair less, which was added before."""
        interests, needs = pair
        self._filters.remove(interests)
        self._needs.remove(BitVector.from_bytes(needs))

    def all_but(self, pair: Pair | None) -> Pair:
        """(union, common needs) of all entries but this one; None leaves none out."""
        filters, needs = self._filters, self._needs
        if pair is not None:
            filters = filters.without(pair[0])
            needs = needs.without(BitVector.from_bytes(pair[1]))
        return filters.union(), needs.intersection().to_bytes()


_NO_INTERESTS = None, None


class Outgoing:
    """Writes the messages of links into the node's outbox, and notes in a Remote what it has been told."""

    def __init__(self, context: Context, interests: Interests, mesh_ids: MeshIds) -> None:
        self._context = context
        self._interests = interests
        self._mesh_ids = mesh_ids

    def find_changes(self, remote: Remote) -> bool:
        """Work out what to tell a neighbor; whether that is another thing than the last time."""
        interests, needs = self._interests.all_but(remote.inbound)
        before = remote.interests
        is_changed = interests != before or needs != remote.needs
        remote.is_delta = before is not None
        remote.vector = interests if before is None else before ^ interests
        if is_changed:
            remote.revision += 1
        remote.interests, remote.needs = interests, needs
        remote.is_behind = False
        return is_changed

    def subscription(self, remote: Remote, now: int) -> None:
        """Send what `find_changes` found, or send it again."""
        flags = subscription_flags(remote.is_delta, remote.state, self._context.times.recheck_s)
        self._send(remote, wire.Subscription, flags, (remote.needs, remote.vector))
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def unlink(self, remote: Remote, now: int) -> None:
        """Send that the link ends."""
        self._send(remote, wire.Subscription, wire.SAK_REQUESTED | wire.UNLINK, _NO_INTERESTS)
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def acknowledgement(self, remote: Remote, with_interests: bool, now: int) -> None:
        """Acknowledge what came, perhaps with what `find_changes` found."""
        remote.owes_answer = False
        flags = acknowledgement_flags(remote.is_delta, remote.state, with_interests)
        contents = (remote.needs, remote.vector) if with_interests else _NO_INTERESTS
        self._send(remote, wire.SubscriptionAcknowledgement, flags, (*contents, remote.inbound_revision))
        if with_interests and remote.pending is None:
            remote.await_answer(ACKNOWLEDGEMENT, now + self._context.times.tick_us)

    def _send(self, remote: Remote, kind: Callable[..., wire.LinkMessage], flags: int, rest: tuple[Any, ...]) -> None:
        """Send a message of a link; ``rest``: its fields behind the mesh id, which is noted in the remote."""
        remote.sent_mesh_id = remote.mesh_id_there(self._mesh_ids.lowest_but(remote))
        mesh_id = remote.sent_mesh_id.to_bytes(ID_B, "little")
        if hop_to_add(self._mesh_ids.own):  # other nodes count the hops of a marked id
            flags |= wire.COUNTS_HOPS
        message = kind(self._context.port, None, remote.revision, flags, mesh_id, *rest)
        self._context.send(remote.address, wire.encode(message))

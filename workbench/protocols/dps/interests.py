"""Interests of a DPS node: the union of the filters at the node and behind its links, and the messages with it.

Theory of operation
    A subscription adds its filter (interests) and the filter's fuzzy hash (needs). A neighbor adds the interests and
    needs that it sent: the union of the filters behind it, and the bits that all their fuzzy hashes share. All these
    pairs are entries of two counting vectors. A neighbor gets the union of the interests and the intersection of the
    needs of all entries except its own. Leaving out one entry takes some operations on long integers, however many
    entries exist. `LinkSender` finds the change for each neighbor, and writes the messages of links.
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
    """The pairs of interests (BitVector) and needs (32 bytes) of a node's subscriptions and neighbors, as counts."""

    def __init__(self, length: int) -> None:
        self.length = length
        self._filters = CountingVector(length)
        self._needs = CountingVector(FUZZY_HASH_BITS)

    def add(self, pair: Pair) -> None:
        """Add the interests and needs of a subscription or a neighbor."""
        interests, needs = pair
        self._filters.add(interests)
        self._needs.add(BitVector.from_bytes(needs))

    def remove(self, pair: Pair) -> None:
        """Remove a pair of interests and needs that was added before."""
        interests, needs = pair
        self._filters.remove(interests)
        self._needs.remove(BitVector.from_bytes(needs))

    def combine(self, excluded: Pair | None) -> Pair:
        """Return the union of the interests and the intersection of the needs of all pairs.

        If ``excluded`` is a pair, it is left out once.
        """
        filters, needs = self._filters, self._needs
        if excluded is not None:
            filters = filters.without(excluded[0])
            needs = needs.without(BitVector.from_bytes(excluded[1]))
        return filters.union(), needs.intersection().to_bytes()


_NO_INTERESTS = None, None


class LinkSender:
    """Writer of link messages to the node's outbox; it records in each Remote what was sent."""

    def __init__(self, context: Context, interests: Interests, mesh_ids: MeshIds) -> None:
        self._context = context
        self._interests = interests
        self._mesh_ids = mesh_ids

    def find_changes(self, remote: Remote) -> bool:
        """Compute the interests and needs for a neighbor, and store them in ``remote``.

        Return whether they differ from those that the neighbor was sent last.
        """
        interests, needs = self._interests.combine(remote.inbound)
        previous_interests = remote.interests
        is_changed = interests != previous_interests or needs != remote.needs
        remote.is_delta = previous_interests is not None
        remote.vector = interests if previous_interests is None else previous_interests ^ interests
        if is_changed:
            remote.revision += 1
        remote.interests, remote.needs = interests, needs
        remote.is_behind = False
        return is_changed

    def send_subscription(self, remote: Remote, now: int) -> None:
        """Send the interests that `find_changes` stored, for the first time or again."""
        flags = subscription_flags(remote.is_delta, remote.state, self._context.times.recheck_s)
        self._send(remote, wire.Subscription, flags, (remote.needs, remote.vector))
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def send_unlink(self, remote: Remote, now: int) -> None:
        """Send a subscription with the flag "unlink", which ends the link."""
        self._send(remote, wire.Subscription, wire.SAK_REQUESTED | wire.UNLINK, _NO_INTERESTS)
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def send_acknowledgement(self, remote: Remote, with_interests: bool, now: int) -> None:
        """Acknowledge the neighbor's last subscription message.

        If ``with_interests``, the message carries the interests that `find_changes` stored."""
        remote.answers_again = False
        flags = acknowledgement_flags(remote.is_delta, remote.state, with_interests)
        contents = (remote.needs, remote.vector) if with_interests else _NO_INTERESTS
        self._send(remote, wire.SubscriptionAcknowledgement, flags, (*contents, remote.inbound_revision))
        if with_interests and remote.pending is None:
            remote.await_answer(ACKNOWLEDGEMENT, now + self._context.times.tick_us)

    def _send(
        self, remote: Remote, message_class: Callable[..., wire.LinkMessage], flags: int, last_fields: tuple[Any, ...]
    ) -> None:
        """Send a link message, and store its mesh id in the remote; ``last_fields`` follow the mesh id."""
        remote.sent_mesh_id = remote.outbound_mesh_id(self._mesh_ids.lowest_except(remote))
        mesh_id = remote.sent_mesh_id.to_bytes(ID_B, "little")
        if hop_to_add(self._mesh_ids.own):  # this node's id has the mark, so it counts hops
            flags |= wire.COUNTS_HOPS
        message = message_class(self._context.port, None, remote.revision, flags, mesh_id, *last_fields)
        self._context.send(remote.address, wire.encode(message))

"""Interests of a DPS node, which combine the filters of its subscriptions and neighbors; and the link messages.

Theory of operation
    A subscription adds a pair: its Bloom filter (interests) and the filter's fuzzy hash (needs). A neighbor adds the
    pair that it sent: the union of the filters behind it, and the bits that all their fuzzy hashes share. `Interests`
    counts how many pairs set each bit, in two counting vectors. The node sends a neighbor the union of the interests,
    and the intersection of the needs, of all pairs except the neighbor's own. To leave out one pair takes a few
    operations on long integers, however many pairs there are. `LinkSender` determines what changed for each neighbor,
    and sends the link messages (subscriptions and their acknowledgements). Each link message also contains a mesh id,
    by which nodes detect loops of links (mesh_ids.py).
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
    """Counters for the pairs of all subscriptions and neighbors of a node: how many pairs set each bit.

    A pair is (interests, needs). Interests are a union of Bloom filters, a BitVector of ``length`` bits; needs are the
    bits that the fuzzy hashes of these filters share, in 32 bytes.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._filters = CountingVector(length)
        self._needs = CountingVector(FUZZY_HASH_BITS)

    def add(self, pair: Pair) -> None:
        """Add the pair (interests, needs) of a subscription or a neighbor."""
        interests, needs = pair
        self._filters.add(interests)
        self._needs.add(BitVector.from_bytes(needs))

    def remove(self, pair: Pair) -> None:
        """Remove a pair (interests, needs) that was added before."""
        interests, needs = pair
        self._filters.remove(interests)
        self._needs.remove(BitVector.from_bytes(needs))

    def combine(self, excluded: Pair | None) -> Pair:
        """Return the pair (union of all interests, intersection of all needs) over all added pairs.

        ``excluded``: an added pair to leave out, usually that of the neighbor to which the result is sent. If it was
        added several times, it is left out once. None: leave out nothing.
        """
        filter_counts, needs_counts = self._filters, self._needs
        if excluded is not None:
            filter_counts = filter_counts.without(excluded[0])
            needs_counts = needs_counts.without(BitVector.from_bytes(excluded[1]))
        return filter_counts.union(), needs_counts.intersection().to_bytes()


_NO_INTERESTS = None, None


class LinkSender:
    """A sender of link messages: subscriptions and their acknowledgements. It updates the link's `Remote`."""

    def __init__(self, context: Context, interests: Interests, mesh_ids: MeshIds) -> None:
        self._context = context
        self._interests = interests
        self._mesh_ids = mesh_ids

    def find_changes(self, remote: Remote) -> bool:
        """Compute the interests and needs to send to the neighbor ``remote``, and store them in ``remote``.

        Return whether they differ from the interests and needs stored before; if so, ``remote.revision`` increases by
        1. ``remote.vector`` becomes the filter for the next message: the bits that changed, or all interests if none
        were stored.
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
        """Send a neighbor a subscription message with the interests that `find_changes` stored in ``remote``."""
        flags = subscription_flags(remote.is_delta, remote.state, self._context.times.recheck_s)
        self._send(remote, wire.Subscription, flags, (remote.needs, remote.vector))
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def send_unlink(self, remote: Remote, now: int) -> None:
        """Send a subscription message with the flag UNLINK, which ends the link."""
        self._send(remote, wire.Subscription, wire.SAK_REQUESTED | wire.UNLINK, _NO_INTERESTS)
        remote.await_answer(SUBSCRIPTION, now + self._context.times.tick_us)

    def send_acknowledgement(self, remote: Remote, with_interests: bool, now: int) -> None:
        """Acknowledge the neighbor's last subscription message.

        If ``with_interests``, the acknowledgement has the interests that `find_changes` stored in ``remote``."""
        remote.answers_again = False
        flags = acknowledgement_flags(remote.is_delta, remote.state, with_interests)
        needs_and_vector = (remote.needs, remote.vector) if with_interests else _NO_INTERESTS
        self._send(remote, wire.SubscriptionAcknowledgement, flags, (*needs_and_vector, remote.inbound_revision))
        if with_interests and remote.pending is None:
            remote.await_answer(ACKNOWLEDGEMENT, now + self._context.times.tick_us)

    def _send(
        self, remote: Remote, message_class: Callable[..., wire.LinkMessage], flags: int, last_fields: tuple[Any, ...]
    ) -> None:
        """Send a link message to the neighbor ``remote``, and store the mesh id that it contains in ``remote``.

        ``message_class``: class of the message. ``flags``: its flags. ``last_fields``: values of its fields after the
        mesh id.
        """
        remote.sent_mesh_id = remote.outbound_mesh_id(self._mesh_ids.lowest_except(remote))
        mesh_id = remote.sent_mesh_id.to_bytes(ID_B, "little")
        if hop_to_add(self._mesh_ids.own):  # this node's id has the mark, so it counts hops
            flags |= wire.COUNTS_HOPS
        link_message = message_class(self._context.port, None, remote.revision, flags, mesh_id, *last_fields)
        self._context.send(remote.address, wire.encode(link_message))

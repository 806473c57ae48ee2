"""What a DPS node tells its neighbors of interests: what has changed for each, and the messages that say so.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps import wire
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION
from workbench.protocols.dps.rules import acknowledgement_flags, subscription_flags
from workbench.protocols.dps.wire.fields import ID_B


class Outgoing:
    """Writes the messages of links into the node's outbox, and notes in a Remote what it has been told."""

    def __init__(self, node, interests, mesh_ids):
        self._node = node
        self._interests = interests
        self._mesh_ids = mesh_ids

    def find_changes(self, remote):
        """Work out what to tell a neighbor; whether that is another thing than the last time."""
        interests, needs = self._interests.all_but(remote.inbound)
        remote.is_delta = remote.interests is not None
        if remote.is_delta:
            is_changed = interests != remote.interests or needs != remote.needs
            remote.vector = remote.interests ^ interests
        else:
            is_changed = True
            remote.vector = interests
        if is_changed:
            remote.revision += 1
        remote.interests, remote.needs = interests, needs
        remote.is_behind = False
        return is_changed

    def tell_in_full(self, remote, now):
        """Tell a neighbor all interests, as if it had been told none."""
        remote.interests = None
        self.find_changes(remote)
        self.subscription(remote, now)

    def tell_nothing(self, remote, length, now):
        """Tell a neighbor that nothing is asked for here, as if it had been told nothing; the rest is for later."""
        remote.forget_outbound(length)
        remote.vector = remote.interests
        remote.is_delta = False
        remote.is_behind = True
        remote.revision += 1
        self.subscription(remote, now)

    def subscription(self, remote, now):
        """Send what `find_changes` found, or send it again."""
        flags = subscription_flags(remote.is_delta, remote.state, self._node.times.recheck_s)
        self._send(remote, wire.Subscription, flags, remote.needs, remote.vector, ())
        remote.await_answer(SUBSCRIPTION, now + self._node.times.tick_us)

    def acknowledgement(self, remote, with_interests, now):
        """Acknowledge what came, perhaps with what `find_changes` found."""
        flags = acknowledgement_flags(remote.is_delta, remote.state, with_interests)
        needs, vector = (remote.needs, remote.vector) if with_interests else (None, None)
        self._send(remote, wire.SubscriptionAcknowledgement, flags, needs, vector, (remote.inbound_revision,))
        if with_interests and remote.pending is None:
            remote.await_answer(ACKNOWLEDGEMENT, now + self._node.times.tick_us)

    def unlink(self, remote, now):
        """Say that the link ends."""
        self._send(remote, wire.Subscription, wire.SAK_REQUESTED | wire.UNLINK, None, None, ())
        remote.await_answer(SUBSCRIPTION, now + self._node.times.tick_us)

    def again(self, remote, now):
        """Repeat what was not answered."""
        if remote.pending == ACKNOWLEDGEMENT:
            self.acknowledgement(remote, True, now)
        else:
            self.subscription(remote, now)

    def _send(self, remote, kind, flags, needs, vector, rest):
        remote.told_mesh_id = remote.mesh_id_there(self._mesh_ids.lowest_but(remote))
        mesh_id = remote.told_mesh_id.to_bytes(ID_B, "little")
        if self._mesh_ids.counts_hops():
            flags |= wire.COUNTS_HOPS
        message = kind(self._node.port, None, remote.revision, flags, mesh_id, needs, vector, *rest)
        self._node.outbox.append((remote.address, wire.encode(message)))

"""The links of a DPS node: how they come to be, tell interests, notice loops, and end.

Theory of operation
    A subscription (SUB) tells a neighbor the union of what everybody else asks for, in full the first time and then as
    what has changed in it (the exclusive or), and asks for an acknowledgement (SAK). Until that comes nothing else is
    told to this neighbor, as a change says nothing without what it changes; the message is repeated instead, and in the
    end the neighbor is given up. The first acknowledgement of a link brings interests the other way, and is
    acknowledged in turn.

    Each message carries a mesh id, the lowest that is known on this side of the link. The same lowest id from two
    neighbors means that they are joined elsewhere: the link it came over second is *muted* at both ends. It carries no
    publications and no interests, and waits. When an active link is given up, a muted one is *unmuted*, with a new
    mesh id below all others, so that the loop that was there is not seen again. And every ``recheck_s`` the one that
    asked for a muted link asks again: ids that are late may have shown a loop that was none. That also ends what
    either side has told the other before.

    An own change is told at once, one that was learnt after ``update_s``, with whatever else has changed by then.
    A link that had nothing to tell for ``link_loss_s`` says so, as a sign of life, and wants its acknowledgement.

This file is written in MicroPython's subset of Python.
"""

from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.dps import wire
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.events import InterestsSet, LinkSet
from workbench.protocols.dps.interests import Interests
from workbench.protocols.dps.mesh_ids import MeshIds, number_of
from workbench.protocols.dps.outgoing import Outgoing
from workbench.protocols.dps.remotes import (
    ACKNOWLEDGEMENT,
    ACTIVE,
    GONE,
    LINKING,
    MUTED,
    NO_MESH_ID,
    STATE_NAMES,
    UNLINKING,
    UNMUTING,
    Remote,
)

SECOND_US = 1000000


class Links:
    """All links of one node. ``remotes``: neighbor -> Remote."""

    def __init__(self, node):
        settings = node.settings
        self.node = node
        self.settings = settings
        self.remotes = {}
        self.interests = Interests(settings.filter_bits)
        self.mesh_ids = MeshIds(self.remotes)
        self._last_revisions = {}  # of neighbors that were given up: what is told them next must not look old
        self._update_us = None
        self._update_after_us = int(settings.update_s * SECOND_US)
        self._keep_alive_after_us = int((settings.link_loss_s + settings.update_s) * SECOND_US)
        self._out = Outgoing(node, self.interests, self.mesh_ids, self._update_after_us)

    def start(self, mesh_id):
        """Begin with a mesh id of this node's own: 16 bytes, as they go over the wire."""
        self.mesh_ids.own = number_of(mesh_id)

    def active(self):
        """The remotes that get publications."""
        return [one for one in self.remotes.values() if one.takes_publications()]

    # What the application and the node ask for

    def link(self, neighbor, now):
        """Ask a neighbor for a link; nothing if there is one, but that it is not ended after all."""
        remote = self.remotes.get(neighbor)
        if remote is not None:
            remote.unlinks = False
            return
        if len(self.remotes) >= self.settings.max_links:
            raise ParameterError("the node has %d links already, which is max_links" % len(self.remotes))
        remote = self._add(neighbor, LINKING, True)
        self._out.find_changes(remote)
        self._out.subscription(remote, now)

    def unlink(self, neighbor, now):
        """End a link, as soon as nothing is outstanding; without one, nothing happens."""
        remote = self.remotes.get(neighbor)
        if remote is None or remote.state == UNLINKING:
            return
        if remote.pending is None:
            self._end(remote, now)
        else:
            remote.unlinks = True

    def subscribed(self, pair, now):
        """A subscription of this node's own begins: interests and needs."""
        self.interests.add(pair)
        self._tell_sum()
        self.update(now)

    def unsubscribed(self, pair, now):
        """One of them ends."""
        self.interests.remove(pair)
        self._tell_sum()
        self.update(now)

    # Messages

    def take_subscription(self, neighbor, message, now):
        """A SUB from a neighbor."""
        remote = self.remotes.get(neighbor)
        flags = message.flags
        if flags & wire.UNLINK:
            self._take_unlink(remote, neighbor, message, now)
            return
        is_full = not flags & wire.DELTA
        is_new = remote is None
        if is_new:
            # Without an answer the neighbor gives this link up, and begins anew.
            if not is_full and not flags & wire.UNMUTE:
                self._drop(neighbor, "subscription", message, "no_base")
                return
            if len(self.remotes) >= self.settings.max_links:
                self._drop(neighbor, "subscription", message, "full")
                return
            remote = self._add(neighbor, ACTIVE, False)
            if not remote.revision:
                remote.forget_outbound(self.settings.filter_bits)
        elif is_full and remote.inbound_revision and not flags & wire.UNMUTE and not self._stays_muted(remote, message):
            # It has given this link up, or started again. Its interests are all here, and it has none of ours.
            is_repeated = message.sequence == remote.inbound_revision and remote.pending == ACKNOWLEDGEMENT
            if not is_repeated:
                remote.inbound_revision = 0
                remote.inbound_mesh_id = NO_MESH_ID
                self._begin_anew(remote)
                is_new = True
        self._take(remote, message, None, is_new, now)
        if remote.state == ACTIVE and remote.pending is None and remote.keep_alive_us is None:
            remote.keep_alive_us = self._next_sign_us(remote, now)
        self._go_on(remote, now)

    def _stays_muted(self, remote, message):
        return remote.state == MUTED and number_of(message.mesh_id) == self.mesh_ids.lowest_but(remote)

    def _begin_anew(self, remote):
        """The other side has forgotten what was told both ways; so does this one."""
        self._set_inbound(remote, None)
        remote.interests = None
        remote.settle(None)
        remote.unlinks = remote.unlinks or remote.state == UNLINKING
        self._set_state(remote, ACTIVE)

    def take_acknowledgement(self, neighbor, message, now):
        """A SAK from a neighbor."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            self._drop(neighbor, "subscription ack", message, "unknown")
            return
        lacks_interests = message.flags & wire.SAK_REQUESTED and message.interests is None
        if message.flags & wire.UNMUTE or lacks_interests:
            self._drop(neighbor, "subscription ack", message, "malformed")
            return
        # A number that is old says nothing of what it acknowledges.
        acknowledged = message.acknowledged == remote.revision and remote.pending is not None
        self._take(remote, message, message.acknowledged, False, now)
        if not acknowledged:
            if not message.flags & wire.SAK_REQUESTED:
                self._drop(neighbor, "subscription ack", message, "stale")
            return
        if remote.state == UNLINKING:
            self._remove(remote, now)
            self.update(now)
            return
        remote.settle(self._next_sign_us(remote, now))
        if remote.state in (LINKING, UNMUTING):
            self._set_state(remote, ACTIVE)
            self._tell_changed(remote, now)
        self._go_on(remote, now)

    def _go_on(self, remote, now):
        """Do what had to wait, if nothing is outstanding any more."""
        if remote.pending is not None:
            return
        if remote.unlinks:
            self._end(remote, now)
        elif remote.is_behind:
            self._update_later(now)

    def _take(self, remote, message, acknowledged, is_new, now):
        """What SUB and SAK have in common."""
        name = "subscription" if acknowledged is None else "subscription ack"
        if message.sequence < remote.inbound_revision:
            self._drop(remote.address, name, message, "stale")
            return
        is_duplicate = message.sequence == remote.inbound_revision
        if message.flags & wire.SAK_REQUESTED:
            if self._lacks_base(remote, message):
                self._drop(remote.address, name, message, "no_base")
                return
            remote.inbound_revision = message.sequence
        mesh_id = number_of(message.mesh_id)
        self.mesh_ids.heard(mesh_id)
        answers_in_full = is_new
        if message.flags & wire.UNMUTE:
            if not is_duplicate and remote.state != UNMUTING:
                if remote.state == MUTED:
                    self._unmute(remote, now)
                else:
                    self._begin_anew(remote)
                answers_in_full = True
        elif remote.state == MUTED:
            if acknowledged is not None and remote.pending is not None:
                self._recheck(remote, message, now)
        elif remote.state not in (UNMUTING, UNLINKING) and (
            message.flags & wire.MUTE or self.mesh_ids.is_loop(remote, mesh_id)
        ):
            self._mute(remote, now)
        remote.inbound_mesh_id = mesh_id
        if message.flags & wire.SAK_REQUESTED:
            is_changed = not is_duplicate and self._apply(remote, message)
            self._answer(remote, answers_in_full, now)
            if is_changed:
                self._tell_changed(remote, now)
            if not is_duplicate:
                self._update_later(now)

    def _lacks_base(self, remote, message):
        """Whether it tells what has changed in interests that never came here; they would be taken for all of them."""
        is_change = message.flags & wire.DELTA and not message.flags & wire.UNMUTE and remote.state != UNMUTING
        return is_change and message.sequence > remote.inbound_revision + 1

    def _tell_changed(self, remote, now):
        if remote.takes_publications():
            self.node.interests_changed(remote, now)

    def _apply(self, remote, message):
        """Take the interests of a message for those of its sender; whether they are others than before."""
        if remote.state == MUTED and not self.settings.count_muted:
            return False
        interests = message.interests
        if message.flags & wire.DELTA and remote.inbound is not None:
            interests = interests ^ remote.inbound[0]
        before = remote.inbound
        self._set_inbound(remote, None if interests.is_empty else (interests, message.needs))
        if self.node.tells_all:
            self.node.events.append(
                InterestsSet(
                    remote.address, "subscription", NOBODY, message.sequence, interests.popcount, _count(message.needs)
                )
            )
            self._tell_sum()
        return remote.inbound != before

    def _answer(self, remote, in_full, now):
        """Acknowledge what came, with interests where the other side has none of ours or has not had them yet."""
        if remote.state == MUTED:
            self._out.acknowledgement(remote, False, now)
        elif in_full:
            # After unmuting they are on their way already; this is the same message as an answer.
            is_told = remote.state == UNMUTING or self._out.find_changes(remote)
            self._out.acknowledgement(remote, is_told, now)
        else:
            self._out.acknowledgement(remote, remote.pending == ACKNOWLEDGEMENT, now)

    def _take_unlink(self, remote, neighbor, message, now):
        if remote is None:
            self._drop(neighbor, "subscription", message, "unknown")
            return
        remote.inbound_revision = message.sequence
        self._out.acknowledgement(remote, False, now)
        self._remove(remote, now)
        self.update(now)

    # Interests that go out

    def update(self, now):
        """Tell every neighbor at once what has changed for it."""
        for remote in list(self.remotes.values()):
            if remote.state in (MUTED, UNLINKING):
                continue
            if remote.pending is not None:
                remote.is_behind = True
            elif self._out.find_changes(remote):
                self._out.subscription(remote, now)

    def _update_later(self, now):
        if self._update_us is None:
            self._update_us = now + self._update_after_us

    # Loops

    def _mute(self, remote, now):
        remote.forget_outbound(self.settings.filter_bits)
        remote.is_delta = False
        if not self.settings.count_muted:
            self._set_inbound(remote, None)
        self._set_state(remote, MUTED)
        remote.settle(self._next_sign_us(remote, now))

    def _recheck(self, remote, message, now):
        if message.flags & wire.MUTE or self._stays_muted(remote, message):
            self._mute(remote, now)
        else:
            self._set_inbound(remote, None)
            self._set_state(remote, ACTIVE)

    def _unmute(self, remote, now):
        """Take a link into use again: this side forgets what was told both ways, and tells its interests in full."""
        self.mesh_ids.go_below(self.node.random)
        self._set_inbound(remote, None)
        remote.settle(None)
        self._set_state(remote, UNMUTING)
        self._out.tell_in_full(remote, now)

    def _replace(self, mesh_id, now):
        """An active link with this mesh id behind it has ended: take a muted one in its place, if need be."""
        others = self.remotes.values()
        if any([one.state in (ACTIVE, UNMUTING) and one.inbound_mesh_id == mesh_id for one in others]):
            return
        muted = [one for one in others if one.state == MUTED]
        alike = [one for one in muted if one.inbound_mesh_id == mesh_id]
        for remote in (alike or muted)[:1]:
            self._unmute(remote, now)

    # Beginning and end

    def _add(self, neighbor, state, asked):
        remote = self.remotes[neighbor] = Remote(neighbor, state, asked)
        remote.revision = self._last_revisions.pop(neighbor, 0)
        self._tell_state(remote)
        return remote

    def _remove(self, remote, now):
        del self.remotes[remote.address]
        self._set_inbound(remote, None)
        was_active = remote.state == ACTIVE
        self._set_state(remote, GONE)
        if was_active:
            self._replace(remote.inbound_mesh_id, now)
        self.node.link_ended(remote, now)

    def _end(self, remote, now):
        """Say that the link ends, which it has when that is answered."""
        was_active = remote.state == ACTIVE
        remote.unlinks = False
        remote.revision += 1
        self._set_state(remote, UNLINKING)
        self._out.unlink(remote, now)
        if was_active:
            self._replace(remote.inbound_mesh_id, now)

    def _set_inbound(self, remote, pair):
        if remote.inbound is not None:
            self.interests.remove(remote.inbound)
        remote.inbound = pair
        if pair is not None:
            self.interests.add(pair)

    # Time

    def wake(self, now):
        """Tell what is due, repeat what was not answered, give signs of life."""
        if self._update_us is not None and self._update_us <= now:
            self._update_us = None
            self.update(now)
        lost = False
        for remote in list(self.remotes.values()):
            if remote.tick_us is not None and remote.tick_us <= now:
                lost = self._tick(remote, now) or lost
            elif remote.keep_alive_us is not None and remote.keep_alive_us <= now:
                self._give_sign(remote, now)
        if lost:
            self._update_later(now)

    def _tick(self, remote, now):
        """A unit of waiting for an answer is over; whether the neighbor was given up."""
        settings = self.settings
        remote.ticks += 1
        remote.tick_us = now + self._update_after_us
        if remote.ticks < settings.retry_ticks:
            return False
        if remote.ticks >= settings.retry_ticks + settings.retries:
            self._last_revisions[remote.address] = remote.revision
            while len(self._last_revisions) > settings.max_links:
                del self._last_revisions[next(iter(self._last_revisions))]
            self._remove(remote, now)
            return True
        self._out.again(remote, now)
        return False

    def _give_sign(self, remote, now):
        """A link was silent. A muted one is asked for as if there were none: if the loop is gone, so is the muting.

        It tells of no interests yet, nor keeps those of the other side, which may have restarted and number from the
        first again.
        """
        if remote.state == MUTED:
            self._set_inbound(remote, None)
            remote.inbound_revision = 0
            self._out.tell_nothing(remote, self.settings.filter_bits, now)
        else:
            self._out.find_changes(remote)
            self._out.subscription(remote, now)

    def _next_sign_us(self, remote, now):
        """When a link that is silent has to be heard of again, None for never."""
        if remote.state != MUTED:
            return now + self._keep_alive_after_us
        if not (remote.asked and self.settings.recheck_s):
            return None
        # Not with all others that were muted when this one was.
        return now + int(self.settings.recheck_s * SECOND_US * (0.5 + self.node.random.uniform()))

    def next_due_us(self):
        """When `wake` is next to be called, None for never."""
        due = self._update_us
        for remote in self.remotes.values():
            for time_us in (remote.tick_us, remote.keep_alive_us, remote.resend_us):
                if time_us is not None and (due is None or time_us < due):
                    due = time_us
        return due

    # What is told

    def _set_state(self, remote, state):
        if remote.state != state:
            remote.state = state
            self._tell_state(remote)

    def _tell_state(self, remote):
        name = STATE_NAMES[remote.state]
        self.node.events.append(LinkSet(remote.address, "", NOBODY, remote.revision, remote.state, name))

    def _tell_sum(self):
        """What is asked for here and behind all links together."""
        if self.node.tells_all:
            interests, needs = self.interests.all_but(None)
            self.node.events.append(InterestsSet(NOBODY, "", NOBODY, 0, interests.popcount, _count(needs)))

    def _drop(self, neighbor, name, message, reason):
        self.node.drop(neighbor, name, NOBODY, message.sequence, reason)


def _count(needs):
    """How many bits of the needs are set, as a text."""
    return str(BitVector.from_bytes(needs).popcount)

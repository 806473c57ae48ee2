"""The links of a DPS node: what comes to each, and what is done about it by the table in `automaton.py`.

Theory of operation
    A subscription (SUB) tells a neighbor the union of what everybody else asks for, in full the first time and then as
    what has changed in it (the exclusive or), and asks for an acknowledgement (SAK). Until that comes nothing else is
    told to this neighbor, as a change says nothing without what it changes; the message is repeated instead, and in the
    end the neighbor is given up. The first acknowledgement of a link brings interests the other way, and is
    acknowledged in turn.

    Each message carries a mesh id, the lowest that is known on this side of the link. An id of the same owner from two
    neighbors means that they are joined elsewhere: the link it came over second is *muted* at both ends. It carries no
    publications and no interests, and waits. An id that has changed is told soon, by a sign of life: while it is on its
    way links change, and it may come where it means nothing any more. When an active link is given up, a muted one is
    *unmuted*, with a new mesh id below all others, so that the loop that was there is not seen again. And every
    ``recheck_s``, or ``link_loss_s`` if that is less, the one that asked for a muted link asks again: ids that are late
    may have shown a loop that was none. Either end asks within ``update_s`` if the neighbor's id is lower than all that
    are known here: as a rule the two are then in different parts of the mesh. Asking also ends what either side has
    told the other before. The other one asks if that does not come, so both find out when their neighbor has gone.

    An own change is told at once, one that was learnt after ``update_s`` (on a radio sooner, `rules.times_of`), with
    whatever else has changed by then. A message that the radio gave up is repeated soon, up to three times until it
    reaches the neighbor again.
    A link that had nothing to tell for ``link_loss_s`` says so, as a sign of life, and wants its acknowledgement.

    What comes (a message, a time, a wish of the application) is named here, by `rules.py` where it takes a decision.
    `Links._come` looks it up in the table, which has the next state of the link and the actions.
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.errors import ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.dps import rules, wire
from workbench.protocols.dps.automaton import (
    ACTIVE,
    ANSWERED,
    ASKED,
    BEGUN,
    CHANGED,
    END,
    END_WAITS,
    GONE,
    LINKING,
    MUTED,
    NEEDED,
    NOTHING,
    OVERDUE,
    QUIET,
    RESTARTED,
    TABLE,
    UNLINKED,
    UNMUTED,
    UNMUTING,
    Action,
    Input,
)
from workbench.protocols.dps.bloom import BitVector
from workbench.protocols.dps.context import Context, Neighbor
from workbench.protocols.dps.events import InterestsSet, LinkSet, MeshIdSet
from workbench.protocols.dps.interests import Interests, Outgoing, Pair
from workbench.protocols.dps.mesh_ids import MeshIds, number_of, owner_number
from workbench.protocols.dps.remotes import (
    ACKNOWLEDGEMENT,
    NO_MESH_ID,
    NO_NEEDS,
    NOTHING_ANNOUNCED,
    SUBSCRIPTION,
    Announced,
    Remote,
    owner_of,
)

_SUB, _SAK = wire.NAMES[wire.SUBSCRIPTION], wire.NAMES[wire.SUBSCRIPTION_ACKNOWLEDGEMENT]


class Links:
    """All links of one node.

    remotes            neighbor -> Remote
    interests_changed  called with a Remote whose interests have changed, or came for the first time
    ended              called with the neighbor of a link that has ended; the node sets it, as its value needs the links
    """

    ended: Callable[[Neighbor, int], None]

    def __init__(
        self,
        context: Context,
        remotes: dict[Neighbor, Remote],
        interests_changed: Callable[[Remote, int], None],
    ) -> None:
        self.settings = context.settings
        self.remotes = remotes
        self.interests = Interests(self.settings.filter_bits)
        self.mesh_ids = MeshIds(remotes)
        self._context = context
        self._interests_changed = interests_changed
        # Of neighbors that were given up: what is sent to them next must not look old.
        self._last_revisions: dict[Neighbor, int] = {}
        self._update_us: int | None = None
        self._ids_us: int | None = None  # when neighbors are told ids that have changed
        self._ids_wait = False  # whether one of them is told when what is outstanding there has been answered
        self._has_news = False  # whether events may have to report something
        self._announced = NOTHING_ANNOUNCED
        self._out = Outgoing(context, self.interests, self.mesh_ids)

    def start(self, mesh_id: bytes) -> None:
        """Begin with a mesh id of this node's own: 16 bytes, as they go over the wire."""
        self.mesh_ids.own = number_of(mesh_id)
        self._has_news = True

    # What the application and the node ask for

    def link(self, neighbor: Neighbor, now: int) -> None:
        """Ask a neighbor for a link; nothing if there is one, but that it is not ended after all."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            if self._is_full():
                raise ParameterError(f"the node has {len(self.remotes)} links already, which is max_links")
            remote = self._add(neighbor, True)
        self._come(remote, ASKED, now)

    def unlink(self, neighbor: Neighbor, now: int) -> None:
        """End a link, as soon as nothing is outstanding; without one, nothing happens."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            return
        if remote.pending is None:
            self._end(remote, now)
        else:
            self._come(remote, END_WAITS, now)

    def subscribed(self, pair: Pair, now: int) -> None:
        """A subscription of this node's own begins: interests and needs."""
        self.interests.add(pair)
        self._has_news = True
        self.update(now)

    def unsubscribed(self, pair: Pair, now: int) -> None:
        """One of them ends."""
        self.interests.remove(pair)
        self._has_news = True
        self.update(now)

    def update(self, now: int) -> None:
        """Tell every neighbor at once what has changed for it."""
        for remote in list(self.remotes.values()):
            self._come(remote, CHANGED, now)

    def _plan_update(self, now: int) -> None:
        if self._update_us is None:
            self._update_us = now + self._context.times.learnt_us

    def _tell_ids_later(self, now: int) -> None:
        if self._ids_us is None:
            self._ids_us = now + self._context.times.ids_us

    def _is_full(self) -> bool:
        return len(self.remotes) >= self.settings.max_links

    def _add(self, neighbor: Neighbor, asked: bool) -> Remote:
        """A remote for a neighbor without a link, which ASKED or BEGUN makes one."""
        remote = self.remotes[neighbor] = Remote(neighbor, asked, self._last_revisions.pop(neighbor, 0))
        return remote

    def _end(self, remote: Remote, now: int) -> None:
        remote.revision += 1  # of the message that says so, which the event tells of
        self._come(remote, END, now)

    # Messages

    def take_subscription(self, neighbor: Neighbor, message: wire.Subscription, now: int) -> None:
        """A SUB from a neighbor."""
        remote = self.remotes.get(neighbor)
        if message.flags & wire.UNLINK:
            self._take_unlink(remote, neighbor, message, now)
            return
        if remote is None:
            if not rules.opens_link(message.flags):
                self._drop(neighbor, _SUB, message, "no_base")
                return
            if self._is_full():
                self._drop(neighbor, _SUB, message, "full")
                return
            remote = self._add(neighbor, False)
            self._come(remote, BEGUN, now)
        elif self._has_begun_anew(remote, message):
            self._come(remote, BEGUN, now)
        if remote.state == LINKING:
            # The neighbor is there, so it is not given up for what it missed before it was.
            remote.ticks = rules.ticks_when_heard(remote.ticks, self.settings.retry_ticks)
        self._take(remote, message, None, now)
        if remote.pending is None:
            if remote.state == MUTED or remote.keep_alive_us is None:
                remote.keep_alive_us = self._next_sign_us(remote, now)
            elif self._context.is_crowded:
                # The neighbor gives signs of life, and this side only if it stops: half of them are enough.
                remote.keep_alive_us = self._next_sign_us(remote, now) + self._context.times.update_us
        self._go_on(remote, now)

    def _has_begun_anew(self, remote: Remote, message: wire.Subscription) -> bool:
        return rules.has_begun_anew(
            message.flags,
            message.sequence,
            remote.inbound_revision,
            remote.pending == ACKNOWLEDGEMENT,
            remote.state == MUTED and self.mesh_ids.shows_loop(_mesh_id_of(message), remote),
            rules.is_settled(remote.state, remote.sends_all()),
        )

    def _take_unlink(self, remote: Remote | None, neighbor: Neighbor, message: wire.Subscription, now: int) -> None:
        if remote is None:
            self._drop(neighbor, _SUB, message, "unknown")
            return
        remote.inbound_revision = message.sequence
        self._out.acknowledgement(remote, False, now)
        self._come(remote, UNLINKED, now)

    def take_acknowledgement(self, neighbor: Neighbor, message: wire.SubscriptionAcknowledgement, now: int) -> None:
        """A SAK from a neighbor."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            self._drop(neighbor, _SAK, message, "unknown")
            return
        lacks_interests = message.flags & wire.SAK_REQUESTED and message.interests is None
        if message.flags & wire.UNMUTE or lacks_interests:
            self._drop(neighbor, _SAK, message, "malformed")
            return
        # A number that is old says nothing of what it acknowledges.
        is_answer = message.acknowledged == remote.revision and remote.pending is not None
        has_restarted = is_answer and self._has_restarted(remote, message)
        if has_restarted:
            self._come(remote, RESTARTED, now)
        is_taken = self._take(remote, message, message.acknowledged, now)
        if has_restarted or not is_taken:
            return
        if is_answer:
            self._come(remote, ANSWERED, now)
            self._go_on(remote, now)
        elif not message.flags & wire.SAK_REQUESTED:
            self._drop(neighbor, _SAK, message, "stale")

    def _has_restarted(self, remote: Remote, message: wire.SubscriptionAcknowledgement) -> bool:
        if remote.state != ACTIVE or remote.pending != SUBSCRIPTION:
            return False
        return rules.has_restarted(
            message.flags,
            message.sequence,
            remote.inbound_revision,
            remote.is_delta and remote.vector is not None and remote.vector.is_empty,
            owner_of(_mesh_id_of(message)) != owner_of(remote.inbound_mesh_id),
        )

    def _take(self, remote: Remote, message: wire.LinkMessage, acknowledged: int | None, now: int) -> bool:
        """What SUB and SAK have in common; ``acknowledged``: the revision that a SAK acknowledges, None in a SUB.

        Returns False if both sides tell each other everything anew, and the rest of the message says nothing.
        """
        name = _SUB if acknowledged is None else _SAK
        newest = remote.inbound_revision
        if rules.is_stale(message.sequence, newest):
            self._drop(remote.address, name, message, "stale")
            return True
        is_known = rules.is_duplicate(message.sequence, newest)
        if message.flags & wire.SAK_REQUESTED:
            if rules.lacks_base(message.flags, remote.state, message.sequence, newest):
                self._drop(remote.address, name, message, "no_base")
                if rules.is_settled(remote.state, remote.sends_all()):
                    self._come(remote, RESTARTED, now)
                    return False
                return True
            if rules.has_lost_base(message.flags, remote.state, self._asks_nothing(remote, message, is_known)):
                self._drop(remote.address, name, message, "no_base")
                self._come(remote, RESTARTED, now)
                return False
            remote.inbound_revision = message.sequence
        mesh_id = _mesh_id_of(message)
        remote.counts_hops = bool(message.flags & wire.COUNTS_HOPS)
        self.mesh_ids.heard(mesh_id)
        was_muted = remote.state == MUTED
        if not message.flags & wire.UNMUTE:
            self._look_for_loop(remote, message.flags, mesh_id, acknowledged is not None, now)
        elif not is_known:
            self._come(remote, UNMUTED, now)
        if mesh_id != remote.inbound_mesh_id:
            remote.note_mesh_id(mesh_id)
            self._note_news(remote)
            self._tell_ids_later(now)
        if rules.tells_mute(self._context.is_crowded, was_muted, remote.state, message.flags):
            self._out.acknowledgement(remote, False, now)
        if message.flags & wire.SAK_REQUESTED:
            self._take_interests(remote, message, is_known, now)
        return True

    def _asks_nothing(self, remote: Remote, message: wire.LinkMessage, is_known: bool) -> bool:
        """Return whether a neighbor has needs, and by this message asks for nothing."""
        if message.needs == NO_NEEDS:
            return False
        # A repeated change must not be applied twice: that would take it back.
        return (remote.inbound if is_known else self._pair_by(remote, message)) is None

    def _look_for_loop(self, remote: Remote, flags: int, mesh_id: int, is_acknowledgement: bool, now: int) -> None:
        is_lowest = self.mesh_ids.shows_loop(mesh_id, remote)
        is_news = owner_of(mesh_id) != owner_of(remote.inbound_mesh_id)
        is_reply = is_acknowledgement and remote.pending is not None
        what = rules.loop_shown(flags, remote.state, is_reply, is_lowest, is_news)
        if what != NOTHING:
            self._come(remote, _INPUTS[what], now)

    def _take_interests(self, remote: Remote, message: wire.LinkMessage, is_known: bool, now: int) -> None:
        before = remote.inbound
        if not is_known and (remote.state != MUTED or self._counts_muted()):
            self._set_inbound(remote, self._pair_by(remote, message))
        self._acknowledge(remote, now)
        if remote.inbound != before:
            self._send_retained(remote, now)
        if not is_known:
            self._plan_update(now)

    @staticmethod
    def _pair_by(remote: Remote, message: wire.LinkMessage) -> Pair | None:
        """Return interests and needs of a neighbor after this message, None if it asks for nothing."""
        interests, needs = message.interests, message.needs
        assert interests is not None and needs is not None, "the flag SAK_REQUESTED comes with both"
        if message.flags & wire.DELTA and remote.inbound is not None:
            interests = interests ^ remote.inbound[0]
        return None if interests.is_empty else (interests, needs)

    def _acknowledge(self, remote: Remote, now: int) -> None:
        """Acknowledge what came, with interests where the other side has none of ours or has not had them yet."""
        if remote.state == MUTED:
            is_told = False
        elif remote.owes_all:
            # After unmuting they are on their way already; this is the same message as an answer.
            is_told = remote.state == UNMUTING or self._out.find_changes(remote)
        else:
            is_told = remote.pending == ACKNOWLEDGEMENT
        remote.owes_all = False
        self._out.acknowledgement(remote, is_told, now)

    def _go_on(self, remote: Remote, now: int) -> None:
        """Do what had to wait, if nothing is outstanding any more."""
        if remote.pending is not None or remote.state == GONE:
            return
        if self._ids_wait:
            self._ids_wait = False
            self._tell_ids_later(now)
        if remote.unlinks:
            self._end(remote, now)
        elif remote.is_behind:
            self._plan_update(now)

    # Time

    def wake(self, now: int) -> None:
        """Tell what is due, repeat what was not answered, give signs of life."""
        if self._update_us is not None and self._update_us <= now:
            self._update_us = None
            self.update(now)
        if self._ids_us is not None and self._ids_us <= now:
            self._ids_us = None
            self._tell_ids(now)
        for remote in list(self.remotes.values()):
            if remote.again_us is not None and remote.again_us <= now:
                self._send_again(remote, now)
            if remote.tick_us is not None and remote.tick_us <= now:
                self._tick(remote, now)
            elif remote.keep_alive_us is not None and remote.keep_alive_us <= now:
                self._come(remote, QUIET, now)

    def reached(self, neighbor: Neighbor) -> None:
        """Note that the radio of a neighbor has acknowledged a frame."""
        remote = self.remotes.get(neighbor)
        if remote is not None:
            remote.repeated = 0

    def give_up(self, neighbor: Neighbor, is_answer: bool, now: int) -> None:
        """Plan to send a message of a link again that the radio gave up; ``is_answer``: one that asks for no answer."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            return
        remote.owes_answer = remote.owes_answer or is_answer
        if remote.again_us is None and remote.repeated < rules.MOST_REPEATS:
            remote.again_us = now + 1 + self._context.random.below(rules.repeat_within_us(remote.repeated))
            remote.repeated += 1

    def _send_again(self, remote: Remote, now: int) -> None:
        """Repeat what the radio gave up, as far as it is still to be answered."""
        remote.again_us = None
        if remote.owes_answer:
            self._out.acknowledgement(remote, False, now)
        if remote.pending is not None:
            self._come(remote, OVERDUE, now)

    def _tell_ids(self, now: int) -> None:
        """Who was told another mesh id than it would be told now is given a sign of life, which has it."""
        for remote in self.mesh_ids.told_otherwise():
            if remote.pending is None:
                self._come(remote, QUIET, now)
            else:
                self._ids_wait = True
        if self._context.times.recheck_s > 0 and not self._context.is_crowded:
            self._ask_soon(self.mesh_ids.apart(), now)

    def _ask_soon(self, remotes: list[Remote], now: int) -> None:
        """Ask muted links whether they still close a loop, as they seem to lead to another part of the network."""
        update_us = self._context.times.update_us
        for remote in remotes:
            # Spread, as the first that joins the parts closes the loop for the others.
            if remote.keep_alive_us is not None and remote.keep_alive_us > now + update_us:
                remote.keep_alive_us = now + 1 + self._context.random.below(update_us)

    def _tick(self, remote: Remote, now: int) -> None:
        """A unit of waiting for an answer is over."""
        remote.ticks += 1
        remote.tick_us = now + self._context.times.tick_us
        what = rules.after_tick(remote.ticks, self.settings.retry_ticks, self.settings.retries)
        if what != NOTHING:
            self._come(remote, _INPUTS[what], now)

    def _next_sign_us(self, remote: Remote, now: int) -> int:
        """When a link that is silent has to be heard of again."""
        times = self._context.times
        if remote.state != MUTED:
            return now + times.sign_us
        uniform = self._context.random.uniform()
        return now + rules.ask_muted_after_us(remote.asked, times.recheck_s, times.sign_us, uniform)

    def next_due_us(self) -> int | None:
        """When `wake` is next to be called, None for never."""
        due = self._update_us
        if self._ids_us is not None and (due is None or self._ids_us < due):
            due = self._ids_us
        for remote in self.remotes.values():
            for time_us in (remote.tick_us, remote.keep_alive_us, remote.resend_us, remote.again_us):
                if time_us is not None and (due is None or time_us < due):
                    due = time_us
        return due

    # The automaton, and its actions

    def _come(self, remote: Remote, what: Input, now: int) -> None:
        """Change a link's state and act as the table has it for this input."""
        entry = TABLE[remote.state][what]
        assert entry.state is not None, "an input that never comes in this state"
        if entry.state is not remote.state:
            remote.state = entry.state
            number, name = int(remote.state), remote.state.label
            self._context.report(LinkSet, remote.address, "", NOBODY, remote.revision, number, name)
            self._tell_ids_later(now)
        for action in entry.does:
            _ACTIONS[action](self, remote, now)

    def _tell(self, remote: Remote, now: int) -> None:
        self._out.find_changes(remote)
        self._out.subscription(remote, now)

    def _tell_changes(self, remote: Remote, now: int) -> None:
        if remote.pending is not None:
            remote.is_behind = True
        elif self._out.find_changes(remote):
            self._out.subscription(remote, now)

    def _tell_in_full(self, remote: Remote, now: int) -> None:
        remote.interests = None
        self._tell(remote, now)

    def _tell_nothing(self, remote: Remote, now: int) -> None:
        self._forget_told(remote, now)
        remote.vector = remote.interests
        remote.is_behind = True
        remote.revision += 1
        self._out.subscription(remote, now)

    def _repeat(self, remote: Remote, now: int) -> None:
        if remote.pending == ACKNOWLEDGEMENT:
            self._out.acknowledgement(remote, True, now)
        else:
            self._out.subscription(remote, now)

    def _say_end(self, remote: Remote, now: int) -> None:
        remote.unlinks = False
        self._out.unlink(remote, now)

    def _end_later(self, remote: Remote, now: int) -> None:
        remote.unlinks = True

    def _keep(self, remote: Remote, now: int) -> None:
        remote.unlinks = False

    def _answer_in_full(self, remote: Remote, now: int) -> None:
        remote.owes_all = True

    def _tell_against_nothing(self, remote: Remote, now: int) -> None:
        if not remote.revision:
            remote.forget_outbound(self.settings.filter_bits)

    def _forget_sent(self, remote: Remote, now: int) -> None:
        remote.interests = None

    def _forget_told(self, remote: Remote, now: int) -> None:
        remote.forget_outbound(self.settings.filter_bits)
        remote.is_delta = False

    def _forget_heard(self, remote: Remote, now: int) -> None:
        self._set_inbound(remote, None)

    def _forget_muted(self, remote: Remote, now: int) -> None:
        if not self._counts_muted() and remote.inbound is not None:
            self._set_inbound(remote, None)
            # The message that shows the loop may bring nothing new, and then nothing else would forward this.
            self._plan_update(now)

    def _counts_muted(self) -> bool:
        """Whether what a muted neighbor told stays in the sum: in a crowd it would draw publications to most nodes."""
        return self.settings.count_muted and not self._context.is_crowded

    def _forget_revision(self, remote: Remote, now: int) -> None:
        remote.inbound_revision = 0

    def _forget_mesh_id(self, remote: Remote, now: int) -> None:
        remote.inbound_mesh_id = NO_MESH_ID
        self._note_news(remote)

    def _stop_waiting(self, remote: Remote, now: int) -> None:
        remote.settle(None)

    def _settle(self, remote: Remote, now: int) -> None:
        remote.settle(self._next_sign_us(remote, now))

    def _new_mesh_id(self, remote: Remote, now: int) -> None:
        self.mesh_ids.go_below(self._context.random)
        self._has_news = True

    def _send_retained(self, remote: Remote, now: int) -> None:
        if remote.takes_publications():
            self._interests_changed(remote, now)

    def _note_revision(self, remote: Remote, now: int) -> None:
        self._last_revisions[remote.address] = remote.revision
        while len(self._last_revisions) > self.settings.max_links:
            del self._last_revisions[next(iter(self._last_revisions))]

    def _remove(self, remote: Remote, now: int) -> None:
        del self.remotes[remote.address]
        self._set_inbound(remote, None)

    def _replace(self, remote: Remote, now: int) -> None:
        """Take a muted link in place of one that has ended: one whose mesh id has the same owner if there is one.

        Another active link with that id joins what this one joined, and nothing is needed.
        """
        owner = owner_of(remote.inbound_mesh_id)
        others = self.remotes.values()
        if any(one.state in (ACTIVE, UNMUTING) and owner_of(one.inbound_mesh_id) == owner for one in others):
            return
        muted = [one for one in others if one.state == MUTED]
        alike = [one for one in muted if owner_of(one.inbound_mesh_id) == owner]
        for other in (alike or muted)[:1]:
            self._come(other, NEEDED, now)

    def _ask_later(self, remote: Remote, now: int) -> None:
        self.ended(remote.address, now)

    def _update(self, remote: Remote, now: int) -> None:
        self.update(now)

    def _update_later(self, remote: Remote, now: int) -> None:
        self._plan_update(now)

    def _set_inbound(self, remote: Remote, pair: Pair | None) -> None:
        if remote.inbound is not None:
            self.interests.remove(remote.inbound)
        remote.inbound = pair
        if pair is not None:
            self.interests.add(pair)
        self._note_news(remote)

    def _note_news(self, remote: Remote) -> None:
        self._has_news = remote.has_news = True

    # Events

    def announce(self) -> None:
        """Report what has changed since the last report of interests and of owners of mesh ids, by events."""
        if not self._has_news:
            return
        self._has_news = False
        if not self._context.reports_details:
            return
        for remote in self.remotes.values():
            if remote.has_news:
                remote.has_news = False
                announced = _announced(remote.inbound, remote.inbound_mesh_id)
                self._report(remote.address, _SUB, remote.inbound_revision, remote.announced, announced)
                remote.announced = announced
        announced = _announced(self.interests.all_but(None), self.mesh_ids.own)
        self._report(NOBODY, "", 0, self._announced, announced)
        self._announced = announced

    def _report(self, peer: Neighbor, message: str, revision: int, before: Announced, after: Announced) -> None:
        if after.interests != before.interests:
            self._context.report(InterestsSet, peer, message, NOBODY, revision, *after.interests)
        if after.owner != before.owner:
            self._context.report(MeshIdSet, peer, "", NOBODY, 0, after.owner, "")

    def _drop(self, neighbor: Neighbor, name: str, message: wire.LinkMessage, reason: str) -> None:
        self._context.drop(neighbor, name, (NOBODY, message.sequence), reason)


_INPUTS = tuple(Input)  # by number, as rules return them
_ACTIONS = [getattr(Links, "_" + action.name.lower()) for action in Action]


def _mesh_id_of(message: wire.LinkMessage) -> int:
    """The mesh id of a message; without hops if its sender counts none, as that passes ids on as they came."""
    mesh_id = number_of(message.mesh_id)
    return mesh_id if message.flags & wire.COUNTS_HOPS else owner_of(mesh_id)


def _announced(pair: Pair | None, mesh_id: int) -> Announced:
    bits, needs = (0, 0) if pair is None else (pair[0].popcount, BitVector.from_bytes(pair[1]).popcount)
    return Announced((bits, str(needs)), owner_number(mesh_id))

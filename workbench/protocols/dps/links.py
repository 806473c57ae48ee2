"""The links of a DPS node: their messages and timeouts, and the actions that the table in `automaton.py` prescribes.

Interests are the union of the Bloom filters of subscriptions, and needs the bits that all their fuzzy hashes share.

Theory of operation
    A subscription message (SUB) carries to a neighbor the union of the interests of all other neighbors and of this
    node: in full the first time, then as a change (the exclusive or with the previous union). It requests an
    acknowledgement (SAK). Until the SAK comes, no other SUB is sent to this neighbor: the neighbor cannot apply a
    change if it lacks the previous union. The unanswered message is repeated, and after some retries the neighbor is
    given up. The first acknowledgement of a link carries interests in the other direction, and is acknowledged in turn.

    Each message carries a mesh id: the lowest of the ids of this node and of its neighbors, except the receiver. The
    node that created an id is its owner. If two neighbors send ids of the same owner, another path connects them. Then
    the link over which the second id came is *muted* at both ends: it carries neither publications nor interests. A
    changed id is sent soon, in a keep-alive, because an id that arrives after links have changed may show no loop. When
    an active link is given up, a muted link is *unmuted*, with a new mesh id below all others, so that the former loop
    is not detected again.

    Every ``recheck_s``, or ``link_loss_s`` if that is less, the end that requested a muted link *rechecks* it: an id
    that arrived late may have shown a loop that does not exist. Either end rechecks within ``update_s`` if the
    neighbor's id is lower than all ids that this node knows: usually the two ends are then in unconnected parts of the
    mesh. A recheck makes the interests invalid that the two ends sent each other before. If the end that requested the
    link sends no recheck, the other end does. So each end detects when its neighbor is gone.

    A node sends a change of its own subscriptions at once. A change that came from a neighbor waits for ``update_s``
    (less on a radio, `rules.times_of`), and is sent together with all later changes in this time. If the radio fails to
    deliver a message, the message is sent again soon, at most three times; a frame that reaches the neighbor sets this
    count to 0. On a link without messages for ``link_loss_s``, a keep-alive is sent: a subscription with an empty
    change, which must be acknowledged.

    This module maps each message, timeout or request of the application to an input, with `rules.py` for decisions.
    `Links._apply` looks the input up in the table, which has the next state of the link and the actions. As in the
    reference implementation, a ``remote`` is a node's record of one neighbor (`Remote`): the state of the link with it.
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
from workbench.protocols.dps.interests import Interests, LinkSender, Pair
from workbench.protocols.dps.mesh_ids import MeshIds, mesh_id_number, owner_number
from workbench.protocols.dps.remotes import (
    ACKNOWLEDGEMENT,
    EMPTY_REPORT,
    NO_MESH_ID,
    NO_NEEDS,
    SUBSCRIPTION,
    LinkReport,
    Remote,
    owner_of,
)

_SUB, _SAK = wire.NAMES[wire.SUBSCRIPTION], wire.NAMES[wire.SUBSCRIPTION_ACKNOWLEDGEMENT]


class Links:
    """All links of one node. The parameter ``now`` of its methods is the time in µs.

    remotes            {neighbor: Remote}; a Remote is the state of the link with a neighbor
    interests_changed  callback (remote, now): the neighbor's interests changed, or came for the first time
    ended              callback (neighbor, now): the link with the neighbor ended; set by the node after construction
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
        # Of neighbors that were given up: the next message to them must not look old.
        self._last_revisions: dict[Neighbor, int] = {}
        self._update_at_us: int | None = None
        self._send_ids_at_us: int | None = None  # when changed mesh ids are sent to neighbors
        self._ids_wait_for_answer = False  # whether a changed id waits for an outstanding answer
        self._has_changes = False  # whether interests or mesh ids may have changed since the last events
        self._last_report = EMPTY_REPORT
        self._sender = LinkSender(context, self.interests, self.mesh_ids)

    def start(self, mesh_id: bytes) -> None:
        """Set the mesh id that this node created for itself: 16 bytes, little-endian as in messages."""
        self.mesh_ids.own = mesh_id_number(mesh_id)
        self._has_changes = True

    # Requests of the application and the node

    def link(self, neighbor: Neighbor, now: int) -> None:
        """Request a link with a neighbor; if a link exists, cancel its planned end.

        Raises ParameterError if the node already has ``max_links`` links."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            if self._is_full():
                raise ParameterError(
                    f"the node has {len(self.remotes)} links, as many as max_links; end a link, or raise max_links"
                )
            remote = self._add(neighbor, True)
        self._apply(remote, ASKED, now)

    def unlink(self, neighbor: Neighbor, now: int) -> None:
        """End the link with a neighbor as soon as no answer is outstanding; do nothing if no link exists."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            return
        if remote.pending is None:
            self._end(remote, now)
        else:
            self._apply(remote, END_WAITS, now)

    def add_subscription(self, pair: Pair, now: int) -> None:
        """Add the pair (interests, needs) of a new subscription of this node, and send the change to the neighbors."""
        self.interests.add(pair)
        self._has_changes = True
        self.update(now)

    def remove_subscription(self, pair: Pair, now: int) -> None:
        """Remove the pair (interests, needs) of an ended subscription, and send the change to the neighbors."""
        self.interests.remove(pair)
        self._has_changes = True
        self.update(now)

    def update(self, now: int) -> None:
        """Send the current interests to each neighbor for which they have changed since they were last sent.

        If an answer of the neighbor is outstanding, the interests are sent after the answer.
        """
        for remote in list(self.remotes.values()):
            self._apply(remote, CHANGED, now)

    def _plan_update(self, now: int) -> None:
        if self._update_at_us is None:
            self._update_at_us = now + self._context.times.forward_interests_us

    def _plan_mesh_ids(self, now: int) -> None:
        if self._send_ids_at_us is None:
            self._send_ids_at_us = now + self._context.times.ids_us

    def _is_full(self) -> bool:
        return len(self.remotes) >= self.settings.max_links

    def _add(self, neighbor: Neighbor, is_requester: bool) -> Remote:
        """Create, store and return the Remote of a new link with ``neighbor``, in the state GONE (no link).

        The caller must then apply an input that changes this state.
        """
        remote = self.remotes[neighbor] = Remote(neighbor, is_requester, self._last_revisions.pop(neighbor, 0))
        return remote

    def _end(self, remote: Remote, now: int) -> None:
        remote.revision += 1  # of the unlink message, which the event reports
        self._apply(remote, END, now)

    # Messages

    def receive_subscription(self, neighbor: Neighbor, message: wire.Subscription, now: int) -> None:
        """Handle a subscription message from a neighbor."""
        remote = self.remotes.get(neighbor)
        if message.flags & wire.UNLINK:
            self._handle_unlink(remote, neighbor, message, now)
            return
        if remote is None:
            if not rules.opens_link(message.flags):
                self._drop(neighbor, _SUB, message, "no_base")
                return
            if self._is_full():
                self._drop(neighbor, _SUB, message, "full")
                return
            remote = self._add(neighbor, False)
            self._apply(remote, BEGUN, now)
        elif self._is_link_restart(remote, message):
            self._apply(remote, BEGUN, now)
        if remote.state == LINKING:
            # The neighbor is up, so the messages that it missed before do not count towards giving it up.
            remote.ticks = rules.cap_ticks(remote.ticks, self.settings.retry_ticks)
        self._process_common_fields(remote, message, None, now)
        if remote.pending is None:
            if remote.state == MUTED or remote.keep_alive_us is None:
                remote.keep_alive_us = self._next_keep_alive_us(remote, now)
            elif self._context.is_crowded:
                # The neighbor sends keep-alives, and this end only if they stop: half of the messages are enough.
                remote.keep_alive_us = self._next_keep_alive_us(remote, now) + self._context.times.update_us
        self._run_postponed_work(remote, now)

    def _is_link_restart(self, remote: Remote, message: wire.Subscription) -> bool:
        return rules.has_begun_anew(
            message.flags,
            message.sequence,
            remote.inbound_revision,
            remote.pending == ACKNOWLEDGEMENT,
            remote.state == MUTED and self.mesh_ids.shows_loop(_mesh_id_of(message), remote),
            rules.is_settled(remote.state, remote.sends_all()),
        )

    def _handle_unlink(self, remote: Remote | None, neighbor: Neighbor, message: wire.Subscription, now: int) -> None:
        if remote is None:
            self._drop(neighbor, _SUB, message, "unknown")
            return
        remote.inbound_revision = message.sequence
        self._sender.send_acknowledgement(remote, False, now)
        self._apply(remote, UNLINKED, now)

    def receive_acknowledgement(self, neighbor: Neighbor, message: wire.SubscriptionAcknowledgement, now: int) -> None:
        """Handle an acknowledgement of a subscription message from a neighbor."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            self._drop(neighbor, _SAK, message, "unknown")
            return
        lacks_interests = message.flags & wire.SAK_REQUESTED and message.interests is None
        if message.flags & wire.UNMUTE or lacks_interests:
            self._drop(neighbor, _SAK, message, "malformed")
            return
        # An acknowledgement of an old revision answers no outstanding message.
        is_answer = message.acknowledged == remote.revision and remote.pending is not None
        has_restarted = is_answer and self._has_restarted(remote, message)
        if has_restarted:
            self._apply(remote, RESTARTED, now)
        is_valid = self._process_common_fields(remote, message, message.acknowledged, now)
        if has_restarted or not is_valid:
            return
        if is_answer:
            self._apply(remote, ANSWERED, now)
            self._run_postponed_work(remote, now)
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

    def _process_common_fields(
        self, remote: Remote, message: wire.LinkMessage, acknowledged: int | None, now: int
    ) -> bool:
        """Process the fields that subscription messages (SUB) and their acknowledgements (SAK) have in common.

        ``acknowledged`` is the revision (sequence number) that a SAK acknowledges, and None for a SUB. Return False if
        both ends must send all interests again, so that the caller must ignore the rest of the message; else True.
        """
        message_name = _SUB if acknowledged is None else _SAK
        newest_revision = remote.inbound_revision
        if rules.is_older_revision(message.sequence, newest_revision):
            self._drop(remote.address, message_name, message, "stale")
            return True
        is_repetition = rules.is_duplicate(message.sequence, newest_revision)
        if message.flags & wire.SAK_REQUESTED:
            if rules.lacks_base(message.flags, remote.state, message.sequence, newest_revision):
                self._drop(remote.address, message_name, message, "no_base")
                if rules.is_settled(remote.state, remote.sends_all()):
                    self._apply(remote, RESTARTED, now)
                    return False
                return True
            if rules.has_lost_base(message.flags, remote.state, self._is_contradictory(remote, message, is_repetition)):
                self._drop(remote.address, message_name, message, "no_base")
                self._apply(remote, RESTARTED, now)
                return False
            remote.inbound_revision = message.sequence
        mesh_id = _mesh_id_of(message)
        remote.counts_hops = bool(message.flags & wire.COUNTS_HOPS)
        self.mesh_ids.note_seen(mesh_id)
        was_muted = remote.state == MUTED
        if not message.flags & wire.UNMUTE:
            self._detect_loop(remote, message.flags, mesh_id, acknowledged is not None, now)
        elif not is_repetition:
            self._apply(remote, UNMUTED, now)
        if mesh_id != remote.inbound_mesh_id:
            remote.note_mesh_id(mesh_id)
            self._mark_changed(remote)
            self._plan_mesh_ids(now)
        if rules.announces_mute(self._context.is_crowded, was_muted, remote.state, message.flags):
            self._sender.send_acknowledgement(remote, False, now)
        if message.flags & wire.SAK_REQUESTED:
            self._handle_interests(remote, message, is_repetition, now)
        return True

    def _is_contradictory(self, remote: Remote, message: wire.LinkMessage, is_repetition: bool) -> bool:
        """Return whether a message contradicts itself: it has needs, but its change empties the neighbor's interests.

        Only a node with interests has needs. ``is_repetition``: whether the message was received before; the stored
        interests then already include its change.
        """
        if message.needs == NO_NEEDS:
            return False
        # A repeated change must not be applied twice: the second time would undo it.
        return (remote.inbound if is_repetition else self._compute_interests(remote, message)) is None

    def _detect_loop(self, remote: Remote, flags: int, mesh_id: int, is_acknowledgement: bool, now: int) -> None:
        is_lowest = self.mesh_ids.shows_loop(mesh_id, remote)
        is_new_owner = owner_of(mesh_id) != owner_of(remote.inbound_mesh_id)
        is_reply = is_acknowledgement and remote.pending is not None
        input_index = rules.classify_loop(flags, remote.state, is_reply, is_lowest, is_new_owner)
        if input_index != NOTHING:
            self._apply(remote, _INPUTS[input_index], now)

    def _handle_interests(self, remote: Remote, message: wire.LinkMessage, is_repetition: bool, now: int) -> None:
        previous_pair = remote.inbound
        if not is_repetition and (remote.state != MUTED or self._includes_muted()):
            self._set_inbound(remote, self._compute_interests(remote, message))
        self._acknowledge(remote, now)
        if remote.inbound != previous_pair:
            self._send_retained(remote, now)
        if not is_repetition:
            self._plan_update(now)

    @staticmethod
    def _compute_interests(remote: Remote, message: wire.LinkMessage) -> Pair | None:
        """Return the neighbor's pair (interests, needs) after ``message`` is applied; None if the interests are empty.

        The message contains all interests, or the change of the interests that ``remote`` stores.
        """
        interests, needs = message.interests, message.needs
        assert interests is not None and needs is not None, "a message with SAK_REQUESTED has both"
        if message.flags & wire.DELTA and remote.inbound is not None:
            interests = interests ^ remote.inbound[0]
        return None if interests.is_empty else (interests, needs)

    def _acknowledge(self, remote: Remote, now: int) -> None:
        """Acknowledge the last subscription message of the neighbor ``remote``.

        The acknowledgement contains this node's interests if the neighbor may lack their current value.
        """
        if remote.state == MUTED:
            with_interests = False
        elif remote.answers_in_full:
            # After unmuting they are in flight already; this is the same message as an answer.
            with_interests = remote.state == UNMUTING or self._sender.find_changes(remote)
        else:
            with_interests = remote.pending == ACKNOWLEDGEMENT
        remote.answers_in_full = False
        self._sender.send_acknowledgement(remote, with_interests, now)

    def _run_postponed_work(self, remote: Remote, now: int) -> None:
        """Do the work that waited for the neighbor's answer: end the link, or plan to send mesh ids and interests.

        Do nothing if another answer of this neighbor is still outstanding.
        """
        if remote.pending is not None or remote.state == GONE:
            return
        if self._ids_wait_for_answer:
            self._ids_wait_for_answer = False
            self._plan_mesh_ids(now)
        if remote.ends_later:
            self._end(remote, now)
        elif remote.is_behind:
            self._plan_update(now)

    # Time

    def wake(self, now: int) -> None:
        """Send changed interests and mesh ids that are due, repeat unanswered messages, and send keep-alives."""
        if self._update_at_us is not None and self._update_at_us <= now:
            self._update_at_us = None
            self.update(now)
        if self._send_ids_at_us is not None and self._send_ids_at_us <= now:
            self._send_ids_at_us = None
            self._send_mesh_ids(now)
        for remote in list(self.remotes.values()):
            if remote.retry_us is not None and remote.retry_us <= now:
                self._resend_undelivered(remote, now)
            if remote.tick_us is not None and remote.tick_us <= now:
                self._count_tick(remote, now)
            elif remote.keep_alive_us is not None and remote.keep_alive_us <= now:
                self._apply(remote, QUIET, now)

    def note_reached(self, neighbor: Neighbor) -> None:
        """Set the number of retries to a neighbor to 0, because its radio acknowledged a frame."""
        remote = self.remotes.get(neighbor)
        if remote is not None:
            remote.repeated = 0

    def plan_retry(self, neighbor: Neighbor, is_answer: bool, now: int) -> None:
        """Plan to repeat a link message that the radio failed to deliver to a neighbor.

        ``is_answer``: whether the message is an acknowledgement without interests. Nothing is planned after
        MOST_REPEATS retries."""
        remote = self.remotes.get(neighbor)
        if remote is None:
            return
        remote.answers_again = remote.answers_again or is_answer
        if remote.retry_us is None and remote.repeated < rules.MOST_REPEATS:
            remote.retry_us = now + 1 + self._context.random.below(rules.repeat_within_us(remote.repeated))
            remote.repeated += 1

    def _resend_undelivered(self, remote: Remote, now: int) -> None:
        """Send a neighbor again the messages that the radio failed to deliver.

        These are an acknowledgement, if the radio failed to deliver one, and the unanswered message, if any.
        """
        remote.retry_us = None
        if remote.answers_again:
            self._sender.send_acknowledgement(remote, False, now)
        if remote.pending is not None:
            self._apply(remote, OVERDUE, now)

    def _send_mesh_ids(self, now: int) -> None:
        """Send a keep-alive to each neighbor to which a changed mesh id must be sent.

        Outside of a dense neighborhood, also plan early rechecks of muted links (links that closed a loop) whose loop
        may be gone."""
        for remote in self.mesh_ids.outdated_remotes():
            if remote.pending is None:
                self._apply(remote, QUIET, now)
            else:
                self._ids_wait_for_answer = True
        if self._context.times.recheck_s > 0 and not self._context.is_crowded:
            self._plan_early_rechecks(self.mesh_ids.separated_remotes(), now)

    def _plan_early_rechecks(self, remotes: list[Remote], now: int) -> None:
        """Plan early rechecks of the muted links with ``remotes``, which may be in an unconnected part of the mesh.

        A recheck finds out whether a muted link still closes a loop.
        """
        update_us = self._context.times.update_us
        for remote in remotes:
            # At random times: after the first has connected the parts, the others do close a loop.
            if remote.keep_alive_us is not None and remote.keep_alive_us > now + update_us:
                remote.keep_alive_us = now + 1 + self._context.random.below(update_us)

    def _count_tick(self, remote: Remote, now: int) -> None:
        """Count a timer tick without an answer; after enough ticks, repeat the message or give the neighbor up."""
        remote.ticks += 1
        remote.tick_us = now + self._context.times.tick_us
        input_index = rules.tick_input(remote.ticks, self.settings.retry_ticks, self.settings.retries)
        if input_index != NOTHING:
            self._apply(remote, _INPUTS[input_index], now)

    def _next_keep_alive_us(self, remote: Remote, now: int) -> int:
        """Return the time of the next keep-alive of a link or, if the link is muted, of its next check for a loop."""
        times = self._context.times
        if remote.state != MUTED:
            return now + times.silence_us
        random_fraction = self._context.random.uniform()
        return now + rules.recheck_after_us(remote.is_requester, times.recheck_s, times.silence_us, random_fraction)

    def next_due_us(self) -> int | None:
        """Return the time at which to call `wake` next, or None if nothing is planned."""
        due_us = self._update_at_us
        if self._send_ids_at_us is not None and (due_us is None or self._send_ids_at_us < due_us):
            due_us = self._send_ids_at_us
        for remote in self.remotes.values():
            for time_us in (remote.tick_us, remote.keep_alive_us, remote.resend_us, remote.retry_us):
                if time_us is not None and (due_us is None or time_us < due_us):
                    due_us = time_us
        return due_us

    # The automaton, and its actions

    def _apply(self, remote: Remote, link_input: Input, now: int) -> None:
        """Apply an input to a link: enter the next state that `automaton.TABLE` gives, and run the actions."""
        table_entry = TABLE[remote.state][link_input]
        assert table_entry.state is not None, "an input that never comes in this state"
        if table_entry.state is not remote.state:
            remote.state = table_entry.state
            state_number, state_label = int(remote.state), remote.state.label
            self._context.report(LinkSet, remote.address, "", NOBODY, remote.revision, state_number, state_label)
            self._plan_mesh_ids(now)
        for action in table_entry.actions:
            _ACTIONS[action](self, remote, now)

    def _send_change(self, remote: Remote, now: int) -> None:
        self._sender.find_changes(remote)
        self._sender.send_subscription(remote, now)

    def _send_if_changed(self, remote: Remote, now: int) -> None:
        if remote.pending is not None:
            remote.is_behind = True
        elif self._sender.find_changes(remote):
            self._sender.send_subscription(remote, now)

    def _send_all(self, remote: Remote, now: int) -> None:
        remote.interests = None
        self._send_change(remote, now)

    def _send_probe(self, remote: Remote, now: int) -> None:
        self._forget_outbound(remote, now)
        remote.vector = remote.interests
        remote.is_behind = True
        remote.revision += 1
        self._sender.send_subscription(remote, now)

    def _repeat(self, remote: Remote, now: int) -> None:
        if remote.pending == ACKNOWLEDGEMENT:
            self._sender.send_acknowledgement(remote, True, now)
        else:
            self._sender.send_subscription(remote, now)

    def _send_unlink(self, remote: Remote, now: int) -> None:
        remote.ends_later = False
        self._sender.send_unlink(remote, now)

    def _end_later(self, remote: Remote, now: int) -> None:
        remote.ends_later = True

    def _cancel_end(self, remote: Remote, now: int) -> None:
        remote.ends_later = False

    def _answer_in_full(self, remote: Remote, now: int) -> None:
        remote.answers_in_full = True

    def _start_from_empty(self, remote: Remote, now: int) -> None:
        if not remote.revision:
            remote.forget_outbound(self.settings.filter_bits)

    def _forget_sent(self, remote: Remote, now: int) -> None:
        remote.interests = None

    def _forget_outbound(self, remote: Remote, now: int) -> None:
        remote.forget_outbound(self.settings.filter_bits)
        remote.is_delta = False

    def _forget_inbound(self, remote: Remote, now: int) -> None:
        self._set_inbound(remote, None)

    def _forget_muted(self, remote: Remote, now: int) -> None:
        if not self._includes_muted() and remote.inbound is not None:
            self._set_inbound(remote, None)
            # If the message that shows the loop carries no change, no other step would forward this one.
            self._plan_update(now)

    def _includes_muted(self) -> bool:
        """Return whether this node still counts the interests of a neighbor after the link was muted.

        Such interests attract publications that a muted link does not carry. So in a dense neighborhood the result is
        always False.
        """
        return self.settings.count_muted and not self._context.is_crowded

    def _forget_revision(self, remote: Remote, now: int) -> None:
        remote.inbound_revision = 0

    def _forget_mesh_id(self, remote: Remote, now: int) -> None:
        remote.inbound_mesh_id = NO_MESH_ID
        self._mark_changed(remote)

    def _stop_waiting(self, remote: Remote, now: int) -> None:
        remote.settle(None)

    def _settle(self, remote: Remote, now: int) -> None:
        remote.settle(self._next_keep_alive_us(remote, now))

    def _new_mesh_id(self, remote: Remote, now: int) -> None:
        self.mesh_ids.choose_lower_id(self._context.random)
        self._has_changes = True

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
        """Unmute one muted link, if there is one, to replace the ended link of ``remote``.

        The owner of a mesh id is the node that created it. If an active link has an id with the same owner as the ended
        link, do nothing: the active link leads to the same part of the mesh. Otherwise prefer a muted link whose id has
        the same owner as the ended link.
        """
        owner = owner_of(remote.inbound_mesh_id)
        linked_remotes = self.remotes.values()
        if any(
            candidate.state in (ACTIVE, UNMUTING) and owner_of(candidate.inbound_mesh_id) == owner
            for candidate in linked_remotes
        ):
            return
        muted_links = [candidate for candidate in linked_remotes if candidate.state == MUTED]
        same_owner_links = [candidate for candidate in muted_links if owner_of(candidate.inbound_mesh_id) == owner]
        for candidate in (same_owner_links or muted_links)[:1]:
            self._apply(candidate, NEEDED, now)

    def _report_end(self, remote: Remote, now: int) -> None:
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
        self._mark_changed(remote)

    def _mark_changed(self, remote: Remote) -> None:
        self._has_changes = remote.has_changes = True

    # Events

    def report_changes(self) -> None:
        """Log an event for each change of interests, and of the owner of a mesh id, since the last call."""
        if not self._has_changes:
            return
        self._has_changes = False
        if not self._context.reports_details:
            return
        for remote in self.remotes.values():
            if remote.has_changes:
                remote.has_changes = False
                link_report = _make_link_report(remote.inbound, remote.inbound_mesh_id)
                self._report_differences(remote.address, _SUB, remote.inbound_revision, remote.last_report, link_report)
                remote.last_report = link_report
        link_report = _make_link_report(self.interests.combine(None), self.mesh_ids.own)
        self._report_differences(NOBODY, "", 0, self._last_report, link_report)
        self._last_report = link_report

    def _report_differences(
        self, peer: Neighbor, message: str, revision: int, previous_report: LinkReport, current_report: LinkReport
    ) -> None:
        if current_report.interests != previous_report.interests:
            self._context.report(InterestsSet, peer, message, NOBODY, revision, *current_report.interests)
        if current_report.owner != previous_report.owner:
            self._context.report(MeshIdSet, peer, "", NOBODY, 0, current_report.owner, "")

    def _drop(self, neighbor: Neighbor, name: str, message: wire.LinkMessage, reason: str) -> None:
        self._context.drop(neighbor, name, (NOBODY, message.sequence), reason)


_INPUTS = tuple(Input)  # by number, as rules return them
_ACTIONS = [getattr(Links, "_" + action.name.lower()) for action in Action]


def _mesh_id_of(message: wire.LinkMessage) -> int:
    """Return the mesh id of a message as an integer, with hop count 0 if the message lacks the flag COUNTS_HOPS."""
    mesh_id = mesh_id_number(message.mesh_id)
    return mesh_id if message.flags & wire.COUNTS_HOPS else owner_of(mesh_id)


def _make_link_report(pair: Pair | None, mesh_id: int) -> LinkReport:
    interest_bits, needs_bits = (0, 0) if pair is None else (pair[0].popcount, BitVector.from_bytes(pair[1]).popcount)
    return LinkReport((interest_bits, str(needs_bits)), owner_number(mesh_id))

"""The links of DPS's fast twin (its compiled version): the state machine of `workbench.protocols.dps.links`.

This module leaves out cases that cannot happen in a run of a scenario: more neighbors than ``max_links``, and malformed
messages.
"""

import numpy as np

from workbench.protocols.dps import rules
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
    UNLINKED,
    UNMUTED,
    UNMUTING,
    Action,
    Input,
)
from workbench.protocols.dps.fast.filters import EMPTY, change_between
from workbench.protocols.dps.fast.mesh_ids import (
    choose_lower_id,
    forget_mesh,
    is_apart,
    is_same_owner,
    lowest_two_ids,
    must_send_id,
    note_lowest,
    note_mesh_id,
    shows_loop,
)
from workbench.protocols.dps.fast.neighborhood import link_ended
from workbench.protocols.dps.fast.outgoing import (
    find_changes,
    mark_changed,
    send_acknowledgement,
    send_again,
    send_all_interests,
    send_no_interests,
    send_subscription,
    send_unlink,
)
from workbench.protocols.dps.fast.publications import send_retained
from workbench.protocols.dps.fast.remotes import add_link, address_of, forget_outbound, set_state, settle
from workbench.protocols.dps.fast.state import Reason
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, SUBSCRIPTION
from workbench.protocols.dps.rules import MOST_REPEATS
from workbench.protocols.dps.wire import DELTA, SAK_REQUESTED, UNLINK, UNMUTE
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

_INPUTS = len(Input)
# In a run of a scenario, links are not requested while they exist.
ACTIONS_LEFT_OUT = (Action.CANCEL_END,)

# The automaton, and its actions


@compiled
def apply_input(core, state, i, link, link_input, now):
    """Apply an input (`automaton.Input`) to a link: change its state, and execute the transition table's actions."""
    table_entry = _change_state(core, state, i, link, link_input, now)
    for k in range(state.first_actions[table_entry], state.first_actions[table_entry + 1]):
        action = state.actions[k]
        if action == Action.UPDATE:
            update(core, state, i, now)
        elif action == Action.REPLACE:
            replacement_link = _find_replacement(state, i, link)
            if replacement_link != NONE:
                _apply_nested_input(core, state, i, replacement_link, NEEDED, now)
        else:
            _execute(core, state, i, link, action, now)


@compiled
def _apply_nested_input(core, state, i, link, link_input, now):
    """Apply an input of a link's state machine while the actions of another input are executed.

    Only the inputs NEEDED and CHANGED are allowed. They do not cause the actions REPLACE and UPDATE, which apply
    further inputs, so this function needs no recursion. Numba does not support recursion here.
    """
    table_entry = _change_state(core, state, i, link, link_input, now)
    for k in range(state.first_actions[table_entry], state.first_actions[table_entry + 1]):
        _execute(core, state, i, link, state.actions[k], now)


@compiled
def _change_state(core, state, i, link, link_input, now):
    """Change the state of a link as the transition table prescribes for an input.

    Return the index of the table's entry for the former state and the input (see `state.automaton_arrays`).
    """
    former_state = np.int64(state.links[link].state)
    table_entry = former_state * _INPUTS + link_input
    set_state(core, state, i, link, now, np.int64(state.next_states[table_entry]))
    if state.next_states[table_entry] != former_state:
        _send_mesh_ids_later(state, i, now)
    return table_entry


@compiled
def _execute(core, state, i, link, action, now):
    """Execute an action (`automaton.Action`) for a link.

    Actions that only change the stored data about the neighbor are passed on to `_update_neighbor`.
    """
    remote = state.links[link]
    if action == Action.SEND_CHANGE:
        find_changes(state, i, link)
        send_subscription(core, state, i, link, now)
    elif action == Action.SEND_IF_CHANGED:
        _send_changes(core, state, i, link, now)
    elif action == Action.SEND_ALL:
        send_all_interests(core, state, i, link, now)
    elif action == Action.SEND_PROBE:
        send_no_interests(core, state, i, link, now)
    elif action == Action.SEND_UNLINK:
        remote.unlinks = 0
        send_unlink(core, state, i, link, now)
    elif action == Action.REPEAT:
        send_again(core, state, i, link, now)
    elif action == Action.SEND_RETAINED:
        send_retained(core, state, i, link, now)
    elif action == Action.SETTLE:
        settle(remote, _next_keep_alive_us(core, state, i, link, now))
    elif action == Action.NEW_MESH_ID:
        choose_lower_id(core, state, i)
        state.nodes[i].has_changes = 1
    elif action == Action.REMOVE:
        twin.remove(state.nodes[i].links, state.links, link)
        _set_inbound(state, i, link, NONE, EMPTY)
    elif action == Action.REPORT_END:
        link_ended(core, state, i, link, now)
    elif action == Action.UPDATE_LATER:
        _update_later(state, i, now)
    elif action == Action.FORGET_MUTED:
        if not _includes_muted(state, i) and remote.inbound != NONE:
            _set_inbound(state, i, link, NONE, EMPTY)
            _update_later(state, i, now)
    else:
        _update_neighbor(state, i, link, action)


@compiled
def _update_neighbor(state, i, link, action):
    """Execute an action (`automaton.Action`) that only changes the stored data about a link's neighbor."""
    remote = state.links[link]
    if action == Action.ANSWER_IN_FULL:
        remote.sends_all_next = 1
    elif action == Action.START_FROM_EMPTY:
        if not remote.revision:
            forget_outbound(remote)
    elif action == Action.FORGET_SENT:
        remote.interests = NONE
    elif action == Action.FORGET_OUTBOUND:
        forget_outbound(remote)
        remote.is_delta = 0
    elif action == Action.FORGET_INBOUND:
        _set_inbound(state, i, link, NONE, EMPTY)
    elif action == Action.FORGET_REVISION:
        remote.inbound_revision = 0
    elif action == Action.FORGET_MESH_ID:
        forget_mesh(remote)
        mark_changed(state, i, link)
    elif action == Action.STOP_WAITING:
        settle(remote, NONE)
    elif action == Action.END_LATER:
        remote.unlinks = 1
    elif action == Action.NOTE_REVISION:
        remote.noted_revision = remote.revision


@compiled
def _includes_muted(state, i):
    """Return whether the interests of muted neighbors stay in the sum of interests of node ``i``.

    The result is always False in a dense neighborhood.
    """
    return state.count_muted and not state.nodes[i].is_crowded


@compiled
def _send_changes(core, state, i, link, now):
    """Send a neighbor the interests of node ``i``, if they have changed since they were sent to this neighbor.

    If an answer of the neighbor is outstanding, send nothing, and set ``is_behind`` to check for changes later.
    """
    remote = state.links[link]
    if remote.pending:
        remote.is_behind = 1
    elif find_changes(state, i, link):
        send_subscription(core, state, i, link, now)


@compiled
def _find_replacement(state, i, link):
    """Return the muted link to unmute in place of ``link``, which has ended, or NONE.

    The owner of a mesh id is the node that created it. If an active link has an id with the same owner as the id of the
    ended link, no replacement is needed. Otherwise a muted link whose id has this owner is preferred to other muted
    links. The result is NONE if no link is muted or no replacement is needed.
    """
    ended_remote = state.links[link]
    replacement_link = NONE
    replacement_has_same_owner = False
    candidate_link = np.int64(state.nodes[i].links.first)
    while candidate_link != NONE:
        remote = state.links[candidate_link]
        has_same_owner = is_same_owner(remote.mesh_high, remote.mesh_low, ended_remote.mesh_high, ended_remote.mesh_low)
        if has_same_owner and (remote.state == ACTIVE or remote.state == UNMUTING):
            return NONE
        if remote.state == MUTED and (replacement_link == NONE or (has_same_owner and not replacement_has_same_owner)):
            replacement_link = candidate_link
            replacement_has_same_owner = has_same_owner
        candidate_link = np.int64(remote.next)
    return replacement_link


@compiled
def _set_inbound(state, i, link, interests, needs):
    """Store the interests and needs that a neighbor has sent, and mark them as changed for the trace.

    ``interests``: index of the filter in ``state.filters``, or NONE to remove the stored interests. ``needs``: index of
    the needs (a fuzzy hash) in ``state.needs``.
    """
    state.links[link].inbound = interests
    state.links[link].inbound_needs = needs
    mark_changed(state, i, link)


# Links and interests of the node


@compiled
def request_link(core, state, i, link, now):
    """Request a link with a neighbor to which node ``i`` has no link.

    ``link``: index in ``state.links`` of the data about this neighbor.
    """
    add_link(state, i, link, 1)
    apply_input(core, state, i, link, ASKED, now)


@compiled
def end_link(core, state, i, link, now):
    """End a link for which no answer is outstanding."""
    state.links[link].revision += 1
    apply_input(core, state, i, link, END, now)


@compiled
def unlink(core, state, i, link, now):
    """End a link now or, if an answer from the neighbor is outstanding, when the answer arrives."""
    if state.links[link].pending:
        apply_input(core, state, i, link, END_WAITS, now)
    else:
        end_link(core, state, i, link, now)


@compiled
def update(core, state, i, now):
    """Send the current interests of node ``i`` to each neighbor for which they have changed since they were last sent.

    If an answer of the neighbor is outstanding, the interests are sent after the answer.
    """
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        _apply_nested_input(core, state, i, link, CHANGED, now)
        link = np.int64(state.links[link].next)


@compiled
def _update_later(state, i, now):
    """Schedule the sending of changed interests to the neighbors (`update`), unless it is scheduled already."""
    if state.nodes[i].update_us == NONE:
        state.nodes[i].update_us = now + state.nodes[i].learnt_after_us


@compiled
def _send_mesh_ids_later(state, i, now):
    """Schedule the sending of mesh ids to the neighbors (`_send_mesh_ids`), unless it is scheduled already."""
    if state.nodes[i].ids_us == NONE:
        state.nodes[i].ids_us = now + state.nodes[i].ids_after_us


# Messages


@compiled
def receive_subscription(core, state, i, link, message, now):
    """Process a subscription message from a neighbor."""
    remote = state.links[link]
    if state.headers[message].flags & UNLINK:
        _receive_unlink(core, state, i, link, message, now)
        return
    if remote.state == GONE:
        if not rules.opens_link(state.headers[message].flags):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            return
        add_link(state, i, link, 0)
        apply_input(core, state, i, link, BEGUN, now)
    elif _is_link_restart(core, state, i, link, message):
        apply_input(core, state, i, link, BEGUN, now)
    if remote.state == LINKING:
        remote.ticks = rules.cap_ticks(remote.ticks, state.retry_ticks)
    _process_common_fields(core, state, i, link, message, False, now)
    if not remote.pending:
        if remote.state == MUTED or remote.keep_alive_us == NONE:
            remote.keep_alive_us = _next_keep_alive_us(core, state, i, link, now)
        elif state.nodes[i].is_crowded:
            remote.keep_alive_us = _next_keep_alive_us(core, state, i, link, now) + state.update_after_us
    _run_postponed_work(core, state, i, link, now)


@compiled
def _receive_unlink(core, state, i, link, message, now):
    remote = state.links[link]
    if remote.state == GONE:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.UNKNOWN)
        return
    remote.inbound_revision = core.messages[message].sequence
    send_acknowledgement(core, state, i, link, now, False)
    apply_input(core, state, i, link, UNLINKED, now)


@compiled
def _is_link_restart(core, state, i, link, message):
    """Return whether a subscription message shows that its sender had given the link up or had been restarted."""
    remote, revision = state.links[link], core.messages[message].sequence
    stays_muted = remote.state == MUTED and shows_loop(state, i, link, message)
    flags, is_acknowledging = state.headers[message].flags, remote.pending == ACKNOWLEDGEMENT
    is_settled = rules.is_settled(remote.state, _sends_all(remote))
    return rules.has_begun_anew(flags, revision, remote.inbound_revision, is_acknowledging, stays_muted, is_settled)


@compiled
def _sends_all(remote):
    """Return whether the outstanding message is a subscription that carries all interests, not a change of them."""
    return remote.pending == SUBSCRIPTION and not remote.is_delta


@compiled
def receive_acknowledgement(core, state, i, link, message, now):
    """Process an acknowledgement of a subscription message from a neighbor."""
    remote, header = state.links[link], state.headers[message]
    if remote.state == GONE:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.UNKNOWN)
        return
    # An acknowledgement of an older revision does not confirm the outstanding message.
    is_answer = header.acknowledged == remote.revision and remote.pending != 0
    has_restarted = is_answer and _has_restarted(core, state, link, message)
    if has_restarted:
        apply_input(core, state, i, link, RESTARTED, now)
    is_processed = _process_common_fields(core, state, i, link, message, True, now)
    if has_restarted or not is_processed:
        return
    if is_answer:
        apply_input(core, state, i, link, ANSWERED, now)
        _run_postponed_work(core, state, i, link, now)
    elif not header.flags & SAK_REQUESTED:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.STALE)


@compiled
def _has_restarted(core, state, link, message):
    """Return whether an acknowledgement shows that the neighbor has restarted and lost the state of the link."""
    remote, header = state.links[link], state.headers[message]
    if remote.state != ACTIVE or remote.pending != SUBSCRIPTION:
        return False
    is_keep_alive = remote.is_delta != 0 and remote.vector == EMPTY
    is_other_owner = not is_same_owner(header.mesh_high, header.mesh_low, remote.mesh_high, remote.mesh_low)
    return rules.has_restarted(
        header.flags, core.messages[message].sequence, remote.inbound_revision, is_keep_alive, is_other_owner
    )


@compiled
def _process_common_fields(core, state, i, link, message, is_acknowledgement, now):
    """Process the fields that a subscription and its acknowledgement have in common.

    ``is_acknowledgement``: whether the message is an acknowledgement. The result is False if both ends have to send all
    interests again; the caller must then ignore the rest of the message. Otherwise it is True.
    """
    remote, header = state.links[link], state.headers[message]
    revision, newest_revision, flags = core.messages[message].sequence, np.int64(remote.inbound_revision), header.flags
    if rules.is_older_revision(revision, newest_revision):
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.STALE)
        return True
    is_duplicate = rules.is_duplicate(revision, newest_revision)
    if flags & SAK_REQUESTED:
        if rules.lacks_base(flags, remote.state, revision, newest_revision):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            if rules.is_settled(remote.state, _sends_all(remote)):
                apply_input(core, state, i, link, RESTARTED, now)
                return False
            return True
        base_interests = np.int64(remote.inbound) if flags & DELTA and remote.inbound != NONE else EMPTY
        # Applying a repeated change a second time would undo it.
        gives_no_interests = remote.inbound == NONE if is_duplicate else header.vector == base_interests
        if rules.has_lost_base(flags, remote.state, header.needs != EMPTY and gives_no_interests):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            apply_input(core, state, i, link, RESTARTED, now)
            return False
        remote.inbound_revision = revision
    remote.counts_hops = 1
    note_lowest(state, i, header.mesh_high, header.mesh_low)
    is_crowded, was_muted = state.nodes[i].is_crowded != 0, remote.state == MUTED
    if not flags & UNMUTE:
        _detect_loop(core, state, i, link, message, is_acknowledgement, now)
    elif not is_duplicate:
        apply_input(core, state, i, link, UNMUTED, now)
    if header.mesh_high != remote.mesh_high or header.mesh_low != remote.mesh_low:
        note_mesh_id(remote, header.mesh_high, header.mesh_low)
        mark_changed(state, i, link)
        _send_mesh_ids_later(state, i, now)
    if rules.announces_mute(is_crowded, was_muted, remote.state, flags):
        send_acknowledgement(core, state, i, link, now, False)
    if flags & SAK_REQUESTED:
        _process_interests(core, state, i, link, message, is_duplicate, now)
    return True


@compiled
def _detect_loop(core, state, i, link, message, is_acknowledgement, now):
    """Check the mesh id and the flags of a received message for a loop, and change the state of the link accordingly.

    The link's state machine gets the input LOOP or NO_LOOP, or no input if the message does not show whether the link
    closes a loop. ``is_acknowledgement``: whether the message acknowledges a subscription.
    """
    remote, header = state.links[link], state.headers[message]
    is_other_owner = not is_same_owner(header.mesh_high, header.mesh_low, remote.mesh_high, remote.mesh_low)
    is_reply = is_acknowledgement and remote.pending != 0
    link_input = rules.classify_loop(
        header.flags, remote.state, is_reply, shows_loop(state, i, link, message), is_other_owner
    )
    if link_input != NOTHING:
        apply_input(core, state, i, link, np.int64(link_input), now)


@compiled
def _process_interests(core, state, i, link, message, is_repetition, now):
    """Store the interests in a neighbor's message, and acknowledge the message.

    ``is_repetition``: whether the message repeats an earlier one, whose interests are already stored.
    """
    has_new_interests = not is_repetition and _store_interests(state, i, link, message)
    _acknowledge(core, state, i, link, now)
    if has_new_interests:
        send_retained(core, state, i, link, now)
    if not is_repetition:
        _update_later(state, i, now)


@compiled
def _store_interests(state, i, link, message):
    """Store the interests in a message as the interests of its sender; return whether they have changed."""
    remote, header = state.links[link], state.headers[message]
    if remote.state == MUTED and not _includes_muted(state, i):
        return False
    former_interests, former_needs = remote.inbound, remote.inbound_needs
    new_interests = np.int64(header.vector)
    if header.flags & DELTA and remote.inbound != NONE:
        new_interests = change_between(state, new_interests, np.int64(remote.inbound))
    _set_inbound(state, i, link, NONE if new_interests == EMPTY else new_interests, header.needs)
    return remote.inbound != former_interests or (former_interests != NONE and remote.inbound_needs != former_needs)


@compiled
def _acknowledge(core, state, i, link, now):
    """Acknowledge a neighbor's message, with the interests of node ``i`` if the neighbor may lack the current ones."""
    remote = state.links[link]
    sends_interests = remote.pending == ACKNOWLEDGEMENT
    if remote.state == MUTED:
        sends_interests = False
    elif remote.sends_all_next:
        # After unmuting, the interests were sent already; the acknowledgement repeats that message.
        sends_interests = remote.state == UNMUTING or find_changes(state, i, link)
    remote.sends_all_next = 0
    send_acknowledgement(core, state, i, link, now, sends_interests)


@compiled
def _run_postponed_work(core, state, i, link, now):
    """Do the postponed work of a link after an answer: schedule the sending of ids or interests, or end the link.

    Do nothing if an answer is still outstanding.
    """
    remote = state.links[link]
    if remote.pending or remote.state == GONE:
        return
    if state.nodes[i].ids_wait:
        state.nodes[i].ids_wait = 0
        _send_mesh_ids_later(state, i, now)
    if remote.unlinks:
        end_link(core, state, i, link, now)
    elif remote.is_behind:
        _update_later(state, i, now)


# Time


@compiled
def wake_links(core, state, i, now):
    """Send interests, mesh ids and keep-alives of node ``i`` that are due, and repeat unanswered messages."""
    node = state.nodes[i]
    if node.update_us != NONE and node.update_us <= now:
        node.update_us = NONE
        update(core, state, i, now)
    if node.ids_us != NONE and node.ids_us <= now:
        node.ids_us = NONE
        _send_mesh_ids(core, state, i, now)
    link = np.int64(node.links.first)
    while link != NONE:
        remote = state.links[link]
        next_link = np.int64(remote.next)
        if remote.retry_us != NONE and remote.retry_us <= now:
            _resend_undelivered(core, state, i, link, now)
        if remote.tick_us != NONE and remote.tick_us <= now:
            _count_tick(core, state, i, link, now)
        elif remote.keep_alive_us != NONE and remote.keep_alive_us <= now:
            apply_input(core, state, i, link, QUIET, now)
        link = next_link


@compiled
def retry_link_message(core, state, i, link, is_answer, now):
    """Schedule a retry of a link's message that the radio failed to deliver.

    ``is_answer``: whether the message is an acknowledgement that itself requests no answer.
    """
    remote = state.links[link]
    if remote.state == GONE:
        return
    if is_answer:
        remote.acknowledges_next = 1
    if remote.retry_us == NONE and remote.repeated < MOST_REPEATS:
        remote.retry_us = now + 1 + twin.stream_below(core, i, rules.repeat_within_us(remote.repeated))
        remote.repeated += 1


@compiled
def _resend_undelivered(core, state, i, link, now):
    """Send again the messages to the neighbor that the radio failed to deliver, if they are still needed."""
    remote = state.links[link]
    remote.retry_us = NONE
    if remote.acknowledges_next:
        send_acknowledgement(core, state, i, link, now, False)
    if remote.pending:
        apply_input(core, state, i, link, OVERDUE, now)


@compiled
def _send_mesh_ids(core, state, i, now):
    """Send a keep-alive with the current mesh id to each neighbor that has an outdated mesh id of node ``i``.

    Outside of dense neighborhoods, also schedule early probes of muted links whose neighbors seem to be in another part
    of the network (`is_apart`).
    """
    lowest_ids = lowest_two_ids(state, i)
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        if must_send_id(state, i, link, lowest_ids):
            if state.links[link].pending:
                state.nodes[i].ids_wait = 1
            else:
                apply_input(core, state, i, link, QUIET, now)
        link = np.int64(state.links[link].next)
    if state.nodes[i].recheck_s > 0 and not state.nodes[i].is_crowded:
        link = np.int64(state.nodes[i].links.first)
        while link != NONE:
            if is_apart(state, i, link):
                _plan_early_recheck(core, state, i, link, now)
            link = np.int64(state.links[link].next)


@compiled
def _plan_early_recheck(core, state, i, link, now):
    """Schedule an early probe of a muted link whose neighbor seems to be in another part of the network.

    A probe is a message that checks whether the link still closes a loop.
    """
    remote = state.links[link]
    if remote.keep_alive_us > now + state.update_after_us:
        remote.keep_alive_us = now + 1 + twin.stream_below(core, i, state.update_after_us)


@compiled
def _count_tick(core, state, i, link, now):
    """Count a tick (a period of a link's timer without an answer), and schedule the next tick.

    After ``state.retry_ticks`` ticks the message is repeated at each tick; after the last retry the neighbor is given
    up.
    """
    remote = state.links[link]
    remote.ticks += 1
    remote.tick_us = now + state.nodes[i].tick_us
    link_input = rules.tick_input(remote.ticks, state.retry_ticks, state.retries)
    if link_input != NOTHING:
        apply_input(core, state, i, link, np.int64(link_input), now)


@compiled
def _next_keep_alive_us(core, state, i, link, now):
    """Return the time (µs) of a link's next keep-alive or, if the link is muted, of its next check for a loop."""
    remote = state.links[link]
    if remote.state != MUTED:
        return now + state.nodes[i].silence_us
    random_share, node = twin.stream_uniform(core, i), state.nodes[i]
    return now + rules.recheck_after_us(remote.is_requester != 0, node.recheck_s, node.silence_us, random_share)

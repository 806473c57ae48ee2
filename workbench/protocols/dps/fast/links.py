"""The links of DPS's twin: `workbench.protocols.dps.links`, whose page says what they do, by the same table.

Of the definition this leaves out what cannot happen in a run of a scenario: links that are ended while an answer is
outstanding, more neighbors than ``max_links``, messages that are malformed.
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
    forget_mesh,
    go_below,
    heard,
    is_apart,
    is_same_owner,
    lowest_two,
    note_mesh_id,
    shows_loop,
    was_told_otherwise,
)
from workbench.protocols.dps.fast.neighborhood import link_ended
from workbench.protocols.dps.fast.outgoing import (
    find_changes,
    note_news,
    send_acknowledgement,
    send_again,
    send_subscription,
    send_unlink,
    tell_in_full,
    tell_nothing,
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
# What no run of a scenario has: links are ended only when nothing is outstanding, and not asked for while they stand.
INPUTS_LEFT_OUT = (END_WAITS,)
ACTIONS_LEFT_OUT = (Action.CANCEL_END,)

# The automaton, and its actions


@compiled
def come(core, state, i, link, what, now):
    """Something has come to a link: it changes its state and acts as the table says."""
    entry = _enter(core, state, i, link, what, now)
    for k in range(state.first_actions[entry], state.first_actions[entry + 1]):
        action = state.actions[k]
        if action == Action.UPDATE:
            update(core, state, i, now)
        elif action == Action.REPLACE:
            other = _to_replace(state, i, link)
            if other != NONE:
                _come_in_turn(core, state, i, other, NEEDED, now)
        else:
            _do(core, state, i, link, action, now)


@compiled
def _come_in_turn(core, state, i, link, what, now):
    """`come`, of NEEDED or CHANGED: these replace and update nothing, and numba has no function that calls itself."""
    entry = _enter(core, state, i, link, what, now)
    for k in range(state.first_actions[entry], state.first_actions[entry + 1]):
        _do(core, state, i, link, state.actions[k], now)


@compiled
def _enter(core, state, i, link, what, now):
    """Change a link's state; returns the number of the table's entry."""
    before = np.int64(state.links[link].state)
    entry = before * _INPUTS + what
    set_state(core, state, i, link, now, np.int64(state.next_states[entry]))
    if state.next_states[entry] != before:
        _tell_ids_later(state, i, now)
    return entry


@compiled
def _do(core, state, i, link, action, now):
    """Do an action: those that send something or concern the node are here."""
    it = state.links[link]
    if action == Action.SEND_CHANGE:
        find_changes(state, i, link)
        send_subscription(core, state, i, link, now)
    elif action == Action.SEND_IF_CHANGED:
        _tell_changes(core, state, i, link, now)
    elif action == Action.SEND_ALL:
        tell_in_full(core, state, i, link, now)
    elif action == Action.SEND_PROBE:
        tell_nothing(core, state, i, link, now)
    elif action == Action.SEND_UNLINK:
        it.unlinks = 0
        send_unlink(core, state, i, link, now)
    elif action == Action.REPEAT:
        send_again(core, state, i, link, now)
    elif action == Action.SEND_RETAINED:
        send_retained(core, state, i, link, now)
    elif action == Action.SETTLE:
        settle(it, _next_sign_us(core, state, i, link, now))
    elif action == Action.NEW_MESH_ID:
        go_below(core, state, i)
        state.nodes[i].has_news = 1
    elif action == Action.REMOVE:
        twin.remove(state.nodes[i].links, state.links, link)
        _set_inbound(state, i, link, NONE, EMPTY)
    elif action == Action.REPORT_END:
        link_ended(core, state, i, link, now)
    elif action == Action.UPDATE_LATER:
        _update_later(state, i, now)
    elif action == Action.FORGET_MUTED:
        if not _counts_muted(state, i) and it.inbound != NONE:
            _set_inbound(state, i, link, NONE, EMPTY)
            _update_later(state, i, now)
    else:
        _note(state, i, link, action)


@compiled
def _note(state, i, link, action):
    """Do an action that changes what is known of the neighbor."""
    it = state.links[link]
    if action == Action.ANSWER_IN_FULL:
        it.owes_all = 1
    elif action == Action.START_FROM_EMPTY:
        if not it.revision:
            forget_outbound(it)
    elif action == Action.FORGET_SENT:
        it.interests = NONE
    elif action == Action.FORGET_OUTBOUND:
        forget_outbound(it)
        it.is_delta = 0
    elif action == Action.FORGET_INBOUND:
        _set_inbound(state, i, link, NONE, EMPTY)
    elif action == Action.FORGET_REVISION:
        it.inbound_revision = 0
    elif action == Action.FORGET_MESH_ID:
        forget_mesh(it)
        note_news(state, i, link)
    elif action == Action.STOP_WAITING:
        settle(it, NONE)
    elif action == Action.END_LATER:
        it.unlinks = 1
    elif action == Action.NOTE_REVISION:
        it.noted_revision = it.revision


@compiled
def _counts_muted(state, i):
    return state.count_muted and not state.nodes[i].is_crowded


@compiled
def _tell_changes(core, state, i, link, now):
    it = state.links[link]
    if it.pending:
        it.is_behind = 1
    elif find_changes(state, i, link):
        send_subscription(core, state, i, link, now)


@compiled
def _to_replace(state, i, link):
    """The muted link that takes the place of one that has ended, NONE if none is there or needed."""
    ended = state.links[link]
    chosen = NONE
    is_alike = False
    other = np.int64(state.nodes[i].links.first)
    while other != NONE:
        it = state.links[other]
        alike = is_same_owner(it.mesh_high, it.mesh_low, ended.mesh_high, ended.mesh_low)
        if alike and (it.state == ACTIVE or it.state == UNMUTING):
            return NONE
        if it.state == MUTED and (chosen == NONE or (alike and not is_alike)):
            chosen = other
            is_alike = alike
        other = np.int64(it.next)
    return chosen


@compiled
def _set_inbound(state, i, link, interests, needs):
    state.links[link].inbound = interests
    state.links[link].inbound_needs = needs
    note_news(state, i, link)


# What the node asks for


@compiled
def ask(core, state, i, link, now):
    """Ask a neighbor for a link; there is none."""
    add_link(state, i, link, 1)
    come(core, state, i, link, ASKED, now)


@compiled
def end(core, state, i, link, now):
    """End a link; nothing is outstanding."""
    state.links[link].revision += 1
    come(core, state, i, link, END, now)


@compiled
def update(core, state, i, now):
    """Tell every neighbor at once what has changed for it."""
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        _come_in_turn(core, state, i, link, CHANGED, now)
        link = np.int64(state.links[link].next)


@compiled
def _update_later(state, i, now):
    if state.nodes[i].update_us == NONE:
        state.nodes[i].update_us = now + state.nodes[i].learnt_after_us


@compiled
def _tell_ids_later(state, i, now):
    if state.nodes[i].ids_us == NONE:
        state.nodes[i].ids_us = now + state.nodes[i].ids_after_us


# Messages


@compiled
def take_subscription(core, state, i, link, message, now):
    """A SUB from a neighbor."""
    it = state.links[link]
    if state.letters[message].flags & UNLINK:
        _take_unlink(core, state, i, link, message, now)
        return
    if it.state == GONE:
        if not rules.opens_link(state.letters[message].flags):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            return
        add_link(state, i, link, 0)
        come(core, state, i, link, BEGUN, now)
    elif _has_begun_anew(core, state, i, link, message):
        come(core, state, i, link, BEGUN, now)
    if it.state == LINKING:
        it.ticks = rules.cap_ticks(it.ticks, state.retry_ticks)
    _take(core, state, i, link, message, False, now)
    if not it.pending:
        if it.state == MUTED or it.keep_alive_us == NONE:
            it.keep_alive_us = _next_sign_us(core, state, i, link, now)
        elif state.nodes[i].is_crowded:
            it.keep_alive_us = _next_sign_us(core, state, i, link, now) + state.update_after_us
    _go_on(core, state, i, link, now)


@compiled
def _take_unlink(core, state, i, link, message, now):
    it = state.links[link]
    if it.state == GONE:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.UNKNOWN)
        return
    it.inbound_revision = core.messages[message].sequence
    send_acknowledgement(core, state, i, link, now, False)
    come(core, state, i, link, UNLINKED, now)


@compiled
def _has_begun_anew(core, state, i, link, message):
    it, revision = state.links[link], core.messages[message].sequence
    stays_muted = it.state == MUTED and shows_loop(state, i, link, message)
    flags, is_acknowledging = state.letters[message].flags, it.pending == ACKNOWLEDGEMENT
    settled = rules.is_settled(it.state, _sends_all(it))
    return rules.has_begun_anew(flags, revision, it.inbound_revision, is_acknowledging, stays_muted, settled)


@compiled
def _sends_all(it):
    return it.pending == SUBSCRIPTION and not it.is_delta


@compiled
def take_acknowledgement(core, state, i, link, message, now):
    """A SAK from a neighbor."""
    it, letter = state.links[link], state.letters[message]
    if it.state == GONE:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.UNKNOWN)
        return
    # A number that is old says nothing of what it acknowledges.
    is_answer = letter.acknowledged == it.revision and it.pending != 0
    restarted = is_answer and _has_restarted(core, state, link, message)
    if restarted:
        come(core, state, i, link, RESTARTED, now)
    is_taken = _take(core, state, i, link, message, True, now)
    if restarted or not is_taken:
        return
    if is_answer:
        come(core, state, i, link, ANSWERED, now)
        _go_on(core, state, i, link, now)
    elif not letter.flags & SAK_REQUESTED:
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.STALE)


@compiled
def _has_restarted(core, state, link, message):
    it, letter = state.links[link], state.letters[message]
    if it.state != ACTIVE or it.pending != SUBSCRIPTION:
        return False
    is_sign = it.is_delta != 0 and it.vector == EMPTY
    is_news = not is_same_owner(letter.mesh_high, letter.mesh_low, it.mesh_high, it.mesh_low)
    return rules.has_restarted(letter.flags, core.messages[message].sequence, it.inbound_revision, is_sign, is_news)


@compiled
def _take(core, state, i, link, message, is_acknowledgement, now):
    """What SUB and SAK have in common; False if both sides tell each other everything anew."""
    it, letter = state.links[link], state.letters[message]
    revision, newest, flags = core.messages[message].sequence, np.int64(it.inbound_revision), letter.flags
    if rules.is_stale(revision, newest):
        twin.drop(core, now, i, address_of(core, state, link), message, Reason.STALE)
        return True
    is_known = rules.is_duplicate(revision, newest)
    if flags & SAK_REQUESTED:
        if rules.lacks_base(flags, it.state, revision, newest):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            if rules.is_settled(it.state, _sends_all(it)):
                come(core, state, i, link, RESTARTED, now)
                return False
            return True
        base = np.int64(it.inbound) if flags & DELTA and it.inbound != NONE else EMPTY
        # A repeated change must not be applied twice: that would take it back.
        asks_nothing = it.inbound == NONE if is_known else letter.vector == base
        if rules.has_lost_base(flags, it.state, letter.needs != EMPTY and asks_nothing):
            twin.drop(core, now, i, address_of(core, state, link), message, Reason.NO_BASE)
            come(core, state, i, link, RESTARTED, now)
            return False
        it.inbound_revision = revision
    it.counts_hops = 1
    heard(state, i, letter.mesh_high, letter.mesh_low)
    is_crowded, was_muted = state.nodes[i].is_crowded != 0, it.state == MUTED
    if not flags & UNMUTE:
        _look_for_loop(core, state, i, link, message, is_acknowledgement, now)
    elif not is_known:
        come(core, state, i, link, UNMUTED, now)
    if letter.mesh_high != it.mesh_high or letter.mesh_low != it.mesh_low:
        note_mesh_id(it, letter.mesh_high, letter.mesh_low)
        note_news(state, i, link)
        _tell_ids_later(state, i, now)
    if rules.announces_mute(is_crowded, was_muted, it.state, flags):
        send_acknowledgement(core, state, i, link, now, False)
    if flags & SAK_REQUESTED:
        _take_interests(core, state, i, link, message, is_known, now)
    return True


@compiled
def _look_for_loop(core, state, i, link, message, is_acknowledgement, now):
    it, letter = state.links[link], state.letters[message]
    is_news = not is_same_owner(letter.mesh_high, letter.mesh_low, it.mesh_high, it.mesh_low)
    is_reply = is_acknowledgement and it.pending != 0
    what = rules.classify_loop(letter.flags, it.state, is_reply, shows_loop(state, i, link, message), is_news)
    if what != NOTHING:
        come(core, state, i, link, np.int64(what), now)


@compiled
def _take_interests(core, state, i, link, message, is_known, now):
    is_changed = not is_known and _apply(state, i, link, message)
    _acknowledge(core, state, i, link, now)
    if is_changed:
        send_retained(core, state, i, link, now)
    if not is_known:
        _update_later(state, i, now)


@compiled
def _apply(state, i, link, message):
    """Take the interests of a message for those of its sender; whether they are others than before."""
    it, letter = state.links[link], state.letters[message]
    if it.state == MUTED and not _counts_muted(state, i):
        return False
    before, before_needs = it.inbound, it.inbound_needs
    interests = np.int64(letter.vector)
    if letter.flags & DELTA and it.inbound != NONE:
        interests = change_between(state, interests, np.int64(it.inbound))
    _set_inbound(state, i, link, NONE if interests == EMPTY else interests, letter.needs)
    return it.inbound != before or (before != NONE and it.inbound_needs != before_needs)


@compiled
def _acknowledge(core, state, i, link, now):
    """Acknowledge what came, with interests where the other side has none of ours or has not had them yet."""
    it = state.links[link]
    is_told = it.pending == ACKNOWLEDGEMENT
    if it.state == MUTED:
        is_told = False
    elif it.owes_all:
        # After unmuting they are on their way already; this is the same message as an answer.
        is_told = it.state == UNMUTING or find_changes(state, i, link)
    it.owes_all = 0
    send_acknowledgement(core, state, i, link, now, is_told)


@compiled
def _go_on(core, state, i, link, now):
    """Do what had to wait, if nothing is outstanding any more."""
    it = state.links[link]
    if it.pending or it.state == GONE:
        return
    if state.nodes[i].ids_wait:
        state.nodes[i].ids_wait = 0
        _tell_ids_later(state, i, now)
    if it.unlinks:
        end(core, state, i, link, now)
    elif it.is_behind:
        _update_later(state, i, now)


# Time


@compiled
def wake_links(core, state, i, now):
    """Tell what is due, repeat what was not answered, give signs of life."""
    node = state.nodes[i]
    if node.update_us != NONE and node.update_us <= now:
        node.update_us = NONE
        update(core, state, i, now)
    if node.ids_us != NONE and node.ids_us <= now:
        node.ids_us = NONE
        _tell_ids(core, state, i, now)
    link = np.int64(node.links.first)
    while link != NONE:
        it = state.links[link]
        behind = np.int64(it.next)
        if it.again_us != NONE and it.again_us <= now:
            _send_again(core, state, i, link, now)
        if it.tick_us != NONE and it.tick_us <= now:
            _tick(core, state, i, link, now)
        elif it.keep_alive_us != NONE and it.keep_alive_us <= now:
            come(core, state, i, link, QUIET, now)
        link = behind


@compiled
def give_link_up(core, state, i, link, is_answer, now):
    """Plan to send a message of a link again that the radio gave up."""
    it = state.links[link]
    if it.state == GONE:
        return
    if is_answer:
        it.owes_answer = 1
    if it.again_us == NONE and it.repeated < MOST_REPEATS:
        it.again_us = now + 1 + twin.stream_below(core, i, rules.repeat_within_us(it.repeated))
        it.repeated += 1


@compiled
def _send_again(core, state, i, link, now):
    """Repeat what the radio gave up, as far as it is still to be answered."""
    it = state.links[link]
    it.again_us = NONE
    if it.owes_answer:
        send_acknowledgement(core, state, i, link, now, False)
    if it.pending:
        come(core, state, i, link, OVERDUE, now)


@compiled
def _tell_ids(core, state, i, now):
    """Who was told another mesh id than it would be told now is given a sign of life, which has it."""
    ids = lowest_two(state, i)
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        if was_told_otherwise(state, i, link, ids):
            if state.links[link].pending:
                state.nodes[i].ids_wait = 1
            else:
                come(core, state, i, link, QUIET, now)
        link = np.int64(state.links[link].next)
    if state.nodes[i].recheck_s > 0 and not state.nodes[i].is_crowded:
        link = np.int64(state.nodes[i].links.first)
        while link != NONE:
            if is_apart(state, i, link):
                _ask_soon(core, state, i, link, now)
            link = np.int64(state.links[link].next)


@compiled
def _ask_soon(core, state, i, link, now):
    """Ask a muted link whether it still closes a loop, as it seems to lead to another part of the network."""
    it = state.links[link]
    if it.keep_alive_us > now + state.update_after_us:
        it.keep_alive_us = now + 1 + twin.stream_below(core, i, state.update_after_us)


@compiled
def _tick(core, state, i, link, now):
    """A unit of waiting for an answer is over."""
    it = state.links[link]
    it.ticks += 1
    it.tick_us = now + state.nodes[i].tick_us
    what = rules.tick_input(it.ticks, state.retry_ticks, state.retries)
    if what != NOTHING:
        come(core, state, i, link, np.int64(what), now)


@compiled
def _next_sign_us(core, state, i, link, now):
    """When a link that is silent has to be heard of again."""
    it = state.links[link]
    if it.state != MUTED:
        return now + state.nodes[i].silence_us
    uniform, node = twin.stream_uniform(core, i), state.nodes[i]
    return now + rules.recheck_after_us(it.asked != 0, node.recheck_s, node.silence_us, uniform)

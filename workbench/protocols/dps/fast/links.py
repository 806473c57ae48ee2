"""The links of DPS's twin: `workbench.protocols.dps.links`, whose page says what they do.

Of the definition this leaves out what cannot happen in a run of a scenario: links that are ended on purpose, more
neighbors than ``max_links``, messages that are malformed.
"""

import numpy as np

from workbench.protocols.dps.fast.filters import EMPTY, change_between
from workbench.protocols.dps.fast.mesh_ids import forget_mesh, go_below, heard, is_loop, lowest_but
from workbench.protocols.dps.fast.names import INTERESTS_SET, NO_BASE, STALE, UNKNOWN
from workbench.protocols.dps.fast.outgoing import (
    find_changes,
    send_acknowledgement,
    send_again,
    send_subscription,
    tell_in_full,
    tell_nothing,
    tell_sum,
)
from workbench.protocols.dps.fast.publications import send_retained
from workbench.protocols.dps.fast.remotes import (
    add_link,
    address_of,
    ask_at,
    forget_outbound,
    set_state,
    settle,
    take_out_link,
)
from workbench.protocols.dps.fast.state import SECOND_US, SUBSCRIPTION_MESSAGE
from workbench.protocols.dps.remotes import ACKNOWLEDGEMENT, ACTIVE, GONE, LINKING, MUTED, UNMUTING
from workbench.protocols.dps.wire import DELTA, MUTE, SAK_REQUESTED, UNMUTE
from workbench.sim.fast.draws import stream_uniform
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.record import add_row, drop
from workbench.sim.fast.reference import inlined, outlined

# Interests that go out


@outlined
def update(core, state, i, now):
    """Tell every neighbor at once what has changed for it."""
    link = np.int64(state.nodes[i].first_link)
    while link != NONE:
        it = state.links[link]
        if it.state != MUTED:
            if it.pending:
                it.is_behind = 1
            elif find_changes(state, i, link):
                send_subscription(core, state, i, link, now)
        link = np.int64(it.next)


@inlined
def _update_later(state, i, now):
    if state.nodes[i].update_us == NONE:
        state.nodes[i].update_us = now + state.update_after_us


# Loops


@inlined
def _stays_muted(state, i, link, message):
    if state.links[link].state != MUTED:
        return False
    letter = state.letters[message]
    high, low = lowest_but(state, i, link)
    return letter.mesh_high == high and letter.mesh_low == low


@outlined
def _mute(core, state, i, link, now):
    it = state.links[link]
    forget_outbound(it)
    it.is_delta = 0
    if not state.count_muted:
        _set_inbound(it, NONE, EMPTY)
    set_state(core, state, i, link, now, MUTED)
    settle(it, _next_sign_us(core, state, i, link, now))


@inlined
def _recheck(core, state, i, link, message, now):
    if (state.letters[message].flags & MUTE) != 0 or _stays_muted(state, i, link, message):
        _mute(core, state, i, link, now)
    else:
        _set_inbound(state.links[link], NONE, EMPTY)
        set_state(core, state, i, link, now, ACTIVE)


@outlined
def _unmute(core, state, i, link, now):
    """Take a link into use again: this side forgets what was told both ways, and tells its interests in full."""
    it = state.links[link]
    go_below(core, state, i)
    _set_inbound(it, NONE, EMPTY)
    settle(it, NONE)
    set_state(core, state, i, link, now, UNMUTING)
    tell_in_full(core, state, i, link, now)


@outlined
def _replace(core, state, i, high, low, now):
    """An active link with this mesh id behind it has ended: take a muted one in its place, if need be."""
    chosen = np.int64(NONE)
    is_alike = False
    link = np.int64(state.nodes[i].first_link)
    while link != NONE:
        it = state.links[link]
        alike = it.mesh_high == high and it.mesh_low == low
        if alike and (it.state == ACTIVE or it.state == UNMUTING):
            return
        if it.state == MUTED and (chosen == NONE or (alike and not is_alike)):
            chosen = link
            is_alike = alike
        link = np.int64(it.next)
    if chosen != NONE:
        _unmute(core, state, i, chosen, now)


# Beginning and end


@outlined
def ask(core, state, i, link, now):
    """Ask a neighbor for a link; there is none."""
    add_link(core, state, i, link, now, LINKING, 1)
    find_changes(state, i, link)
    send_subscription(core, state, i, link, now)


@outlined
def _give_up(core, state, i, link, now):
    """A neighbor does not answer."""
    it = state.links[link]
    take_out_link(state, i, link)
    _set_inbound(it, NONE, EMPTY)
    was_active = it.state == ACTIVE
    set_state(core, state, i, link, now, GONE)
    if was_active:
        _replace(core, state, i, it.mesh_high, it.mesh_low, now)
    if it.wanted:
        spread = 0.5 + stream_uniform(core, i)
        ask_at(state, i, link, now + np.int64(state.relink_s * spread * SECOND_US))


@inlined
def _set_inbound(it, interests, needs):
    it.inbound = interests
    it.inbound_needs = needs


@inlined
def _begin_anew(core, state, i, link, now):
    """The other side has forgotten what was told both ways; so does this one."""
    it = state.links[link]
    _set_inbound(it, NONE, EMPTY)
    it.interests = NONE
    settle(it, NONE)
    set_state(core, state, i, link, now, ACTIVE)


# Messages


@inlined
def _has_begun_anew(core, state, i, link, message):
    """Whether a neighbor that sends its interests in full has given this link up, or started again."""
    it = state.links[link]
    if it.inbound_revision == 0 or _stays_muted(state, i, link, message):
        return False
    return core.messages[message].sequence != it.inbound_revision or it.pending != ACKNOWLEDGEMENT


@outlined
def take_subscription(core, state, i, link, message, now):
    """A SUB from a neighbor."""
    it, letter = state.links[link], state.letters[message]
    is_full, unmutes = (letter.flags & DELTA) == 0, (letter.flags & UNMUTE) != 0
    is_new = it.state == GONE
    if is_new:
        # Without an answer the neighbor gives this link up, and begins anew.
        if not is_full and not unmutes:
            drop(core, now, i, address_of(core, state, link), message, NO_BASE)
            return
        add_link(core, state, i, link, now, ACTIVE, 0)
        if not it.revision:
            forget_outbound(it)
    elif is_full and not unmutes and _has_begun_anew(core, state, i, link, message):
        # Its interests are all here, and it has none of ours.
        it.inbound_revision = 0
        forget_mesh(it)
        _begin_anew(core, state, i, link, now)
        is_new = True
    _take(core, state, i, link, message, is_new, False, now)
    if it.state == ACTIVE and not it.pending and it.keep_alive_us == NONE:
        it.keep_alive_us = _next_sign_us(core, state, i, link, now)
    _go_on(state, i, link, now)


@outlined
def take_acknowledgement(core, state, i, link, message, now):
    """A SAK from a neighbor."""
    it, letter = state.links[link], state.letters[message]
    if it.state == GONE:
        drop(core, now, i, address_of(core, state, link), message, UNKNOWN)
        return
    # A number that is old says nothing of what it acknowledges.
    acknowledged = letter.acknowledged == it.revision and it.pending != 0
    _take(core, state, i, link, message, False, True, now)
    if not acknowledged:
        if not letter.flags & SAK_REQUESTED:
            drop(core, now, i, address_of(core, state, link), message, STALE)
        return
    settle(it, _next_sign_us(core, state, i, link, now))
    if it.state == LINKING or it.state == UNMUTING:
        set_state(core, state, i, link, now, ACTIVE)
        send_retained(core, state, i, link, now)
    _go_on(state, i, link, now)


@inlined
def _go_on(state, i, link, now):
    """Do what had to wait, if nothing is outstanding any more."""
    it = state.links[link]
    if not it.pending and it.is_behind:
        _update_later(state, i, now)


@inlined
def _lacks_base(it, flags, revision):
    """Whether it tells what has changed in interests that never came here; they would be taken for all of them."""
    is_change = (flags & DELTA) != 0 and (flags & UNMUTE) == 0 and it.state != UNMUTING
    return is_change and revision > it.inbound_revision + 1


@outlined
def _take(core, state, i, link, message, is_new, is_acknowledgement, now):
    """What SUB and SAK have in common."""
    it, letter = state.links[link], state.letters[message]
    revision = core.messages[message].sequence
    flags, high, low = letter.flags, letter.mesh_high, letter.mesh_low
    if revision < it.inbound_revision:
        drop(core, now, i, address_of(core, state, link), message, STALE)
        return
    is_duplicate = revision == it.inbound_revision
    if flags & SAK_REQUESTED:
        if _lacks_base(it, flags, revision):
            drop(core, now, i, address_of(core, state, link), message, NO_BASE)
            return
        it.inbound_revision = revision
    heard(state, i, high, low)
    answers_in_full = is_new
    if flags & UNMUTE:
        if not is_duplicate and it.state != UNMUTING:
            if it.state == MUTED:
                _unmute(core, state, i, link, now)
            else:
                _begin_anew(core, state, i, link, now)
            answers_in_full = True
    elif it.state == MUTED:
        if is_acknowledgement and it.pending:
            _recheck(core, state, i, link, message, now)
    elif it.state != UNMUTING and ((flags & MUTE) != 0 or is_loop(state, i, link, high, low)):
        _mute(core, state, i, link, now)
    it.mesh_high, it.mesh_low = high, low
    if flags & SAK_REQUESTED:
        is_changed = not is_duplicate and _apply(core, state, i, link, message, now)
        _answer(core, state, i, link, answers_in_full, now)
        if is_changed:
            send_retained(core, state, i, link, now)
        if not is_duplicate:
            _update_later(state, i, now)


@outlined
def _apply(core, state, i, link, message, now):
    """Take the interests of a message for those of its sender; whether they are others than before."""
    it, letter = state.links[link], state.letters[message]
    if it.state == MUTED and not state.count_muted:
        return False
    before, before_needs = it.inbound, it.inbound_needs
    interests = np.int64(letter.vector)
    if letter.flags & DELTA and it.inbound != NONE:
        interests = change_between(state, interests, np.int64(it.inbound))
    _set_inbound(it, NONE if interests == EMPTY else interests, letter.needs)
    if core.traces:
        peer, revision = address_of(core, state, link), core.messages[message].sequence
        value, detail = state.filter_ones[interests], state.first_text + state.needs_ones[letter.needs]
        add_row(core, now, i, INTERESTS_SET, peer, SUBSCRIPTION_MESSAGE, NONE, revision, 0, value, detail)
        tell_sum(core, state, i, now)
    return it.inbound != before or (before != NONE and it.inbound_needs != before_needs)


@inlined
def _answer(core, state, i, link, in_full, now):
    """Acknowledge what came, with interests where the other side has none of ours or has not had them yet."""
    it = state.links[link]
    with_interests = it.pending == ACKNOWLEDGEMENT
    if it.state == MUTED:
        with_interests = False
    elif in_full:
        # After unmuting they are on their way already; this is the same message as an answer.
        with_interests = it.state == UNMUTING or find_changes(state, i, link)
    send_acknowledgement(core, state, i, link, now, with_interests)


# Time


@inlined
def _next_sign_us(core, state, i, link, now):
    """When a link that is silent has to be heard of again, NONE for never."""
    it = state.links[link]
    if it.state != MUTED:
        return now + state.keep_alive_after_us
    if not it.asked or state.recheck_s == 0.0:
        return np.int64(NONE)
    return now + np.int64(state.recheck_s * SECOND_US * (0.5 + stream_uniform(core, i)))


@outlined
def wake_links(core, state, i, now):
    """Tell what is due, repeat what was not answered, give signs of life."""
    node = state.nodes[i]
    if node.update_us != NONE and node.update_us <= now:
        node.update_us = NONE
        update(core, state, i, now)
    lost = False
    link = np.int64(node.first_link)
    while link != NONE:
        it = state.links[link]
        behind = np.int64(it.next)
        if it.tick_us != NONE and it.tick_us <= now:
            lost = _tick(core, state, i, link, now) or lost
        elif it.keep_alive_us != NONE and it.keep_alive_us <= now:
            _give_sign(core, state, i, link, now)
        link = behind
    if lost:
        _update_later(state, i, now)


@inlined
def _give_sign(core, state, i, link, now):
    """A link was silent. A muted one is asked for as if there were none, and tells of no interests yet."""
    it = state.links[link]
    if it.state == MUTED:
        _set_inbound(it, NONE, EMPTY)
        it.inbound_revision = 0
        tell_nothing(core, state, i, link, now)
    else:
        find_changes(state, i, link)
        send_subscription(core, state, i, link, now)


@outlined
def _tick(core, state, i, link, now):
    """A unit of waiting for an answer is over; whether the neighbor was given up."""
    it = state.links[link]
    it.ticks += 1
    it.tick_us = now + state.update_after_us
    if it.ticks < state.retry_ticks:
        return False
    if it.ticks >= state.retry_ticks + state.retries:
        _give_up(core, state, i, link, now)
        return True
    send_again(core, state, i, link, now)
    return False

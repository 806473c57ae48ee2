"""Publications at a node of DPS's twin: `workbench.protocols.dps.publications` and its history.

A series has one publication here, as it has in a scenario: so what a node knows of one is whether it has seen it, and
from whom. What a node has seen is in the order in which it was noted last, which is that of its ends: what is over is
always at the front.
"""

import numpy as np

from workbench.attributes import IS, TOPIC
from workbench.protocols.dps.history import _FEWEST_TO_CLEAR as FEWEST_TO_CLEAR
from workbench.protocols.dps.publications import MOST_HOPS
from workbench.protocols.dps.remotes import ACTIVE
from workbench.sim.compiled.air import let_go, make_message, send, take_message
from workbench.sim.compiled.dps_filters import PUBLISHED, more_B, routes
from workbench.sim.compiled.dps_remotes import link_of
from workbench.sim.compiled.dps_state import PUBLICATION_MESSAGE
from workbench.sim.compiled.dps_topics import MAYBE, NO, YES
from workbench.sim.compiled.layout import DEAD_END, DUPLICATE, HOPS, NO_MATCH, NONE, OUT_OF_RANGE
from workbench.sim.compiled.matching import satisfies
from workbench.sim.compiled.record import drop, tell_delivered, tell_forwarded, tell_held, tell_originated
from workbench.sim.compiled.reference import inlined, outlined

_ONE, _NOTHING = np.uint64(1), np.uint64(0)


# History


@inlined
def _take_out(state, i, publication):  # type: ignore[no-untyped-def]
    node, pair = state.nodes[i], state.pairs[publication, i]
    if pair.previous == 0:
        node.first_seen = pair.next
    else:
        state.pairs[pair.previous - 1, i].next = pair.next
    if pair.next == 0:
        node.last_seen = pair.previous
    else:
        state.pairs[pair.next - 1, i].previous = pair.previous
    node.seen -= 1


@inlined
def _append(state, i, publication, now):  # type: ignore[no-untyped-def]
    node, pair = state.nodes[i], state.pairs[publication, i]
    pair.noted_us = now
    pair.next = 0
    pair.previous = node.last_seen
    if node.last_seen == 0:
        node.first_seen = publication + 1
    else:
        state.pairs[node.last_seen - 1, i].next = publication + 1
    node.last_seen = publication + 1
    node.seen += 1


@inlined
def _forget_first(state, i):  # type: ignore[no-untyped-def]
    publication = np.int64(state.nodes[i].first_seen) - 1
    _take_out(state, i, publication)
    state.pairs[publication, i].is_seen = 0
    for k in range(state.came_from.shape[2]):
        state.came_from[publication, i, k] = _NOTHING


@inlined
def _make_room(state, i, now):  # type: ignore[no-untyped-def]
    node = state.nodes[i]
    node.since_cleared += 1
    if node.seen >= node.clear_at or node.since_cleared > max(FEWEST_TO_CLEAR, state.max_history // 2):
        while node.seen and state.pairs[node.first_seen - 1, i].noted_us + state.history_us <= now:
            _forget_first(state, i)
        node.clear_at = max(FEWEST_TO_CLEAR, 2 * node.seen)
        node.since_cleared = 0
    while node.seen >= state.max_history:
        _forget_first(state, i)


@inlined
def _note(state, i, publication, now):  # type: ignore[no-untyped-def]
    """A publication was here; whether it is known already."""
    pair = state.pairs[publication, i]
    if pair.is_seen:
        _take_out(state, i, publication)
        _append(state, i, publication, now)
        return True
    _make_room(state, i, now)
    pair.is_seen = 1
    _append(state, i, publication, now)
    return False


@inlined
def _note_neighbor(state, i, publication, link):  # type: ignore[no-untyped-def]
    place = link - state.link_first[i]
    state.came_from[publication, i, place >> 6] |= _ONE << np.uint64(place & 63)


@inlined
def _came_from(state, i, publication, link):  # type: ignore[no-untyped-def]
    place = link - state.link_first[i]
    return (state.came_from[publication, i, place >> 6] >> np.uint64(place & 63)) & _ONE != _NOTHING


# Own publications, and those that come


@inlined
def publish_content(core, state, i, content, number, now):  # type: ignore[no-untyped-def]
    """A publication of the node's own, the first and only one of its series."""
    publication = state.numbers[PUBLISHED]
    state.numbers[PUBLISHED] = publication + 1
    core.drawn[i] += 1  # For its id, which nobody looks at.
    sequence = (np.int64(number) << 32) | 1
    message = make_message(core, PUBLICATION_MESSAGE, core.addresses[i], sequence, content)
    state.letters[message].publication = publication
    tell_originated(core, now, i, message, number)
    _note(state, i, publication, now)
    _hold(core, state, i, NONE, message, publication, 0, now)
    _deliver(core, state, i, NONE, message, now)
    _send(core, state, i, NONE, message, publication, 0, now)
    let_go(core, message)


@inlined
def take_publication(core, state, i, sender, message, hops, now):  # type: ignore[no-untyped-def]
    """A publication from a neighbor, which has come over so many links before this one."""
    peer = core.addresses[sender]
    if hops >= MOST_HOPS:
        drop(core, now, i, peer, message, HOPS)
        return
    publication = np.int64(state.letters[message].publication)
    link = link_of(state, i, sender)
    is_known = _note(state, i, publication, now)
    _note_neighbor(state, i, publication, link)
    if is_known:
        drop(core, now, i, peer, message, DUPLICATE)
        return
    _hold(core, state, i, peer, message, publication, hops + 1, now)
    is_delivered = _deliver(core, state, i, peer, message, now)
    count = _send(core, state, i, peer, message, publication, hops + 1, now)
    if not is_delivered and count == 0:
        drop(core, now, i, peer, message, DEAD_END)


@inlined
def _hold(core, state, i, peer, message, publication, hops, now):  # type: ignore[no-untyped-def]
    pair = state.pairs[publication, i]
    is_first = pair.held == 0
    pair.held = 1
    tell_held(core, now, i, peer, message, hops, is_first)


@inlined
def _carried(core, state, message, hops):  # type: ignore[no-untyped-def]
    """The message as it is after so many hops: another one where their number takes more bytes. The caller holds it."""
    larger_B = more_B(hops) - more_B(hops - 1) if hops else 0
    if larger_B == 0:
        core.messages[message].holders += 1
        return np.int64(message)
    it = core.messages[message]
    size_B = it.size_B + larger_B
    larger = take_message(core, it.name, it.origin, it.sequence, it.content, size_B, state.airtimes_us[size_B])
    state.letters[larger].publication = state.letters[message].publication
    return np.int64(larger)


@outlined
def _send(core, state, i, peer, message, publication, hops, now):  # type: ignore[no-untyped-def]
    """Send a publication to everybody whose interests it may meet; returns to how many."""
    count = 0
    carried = np.int64(NONE)
    topics = np.int64(state.topics_of[core.messages[message].content])
    link = np.int64(state.nodes[i].first_link)
    while link != NONE:
        it = state.links[link]
        lacks_it = it.state == ACTIVE and it.inbound != NONE and not _came_from(state, i, publication, link)
        if lacks_it and routes(state, topics, np.int64(it.inbound), np.int64(it.inbound_needs)):
            if count == 0:
                carried = _carried(core, state, message, hops)
            send(core, now, i, state.neighbors[link], carried, hops)
            count += 1
        link = np.int64(it.next)
    if count:
        let_go(core, carried)
        if peer != NONE:
            tell_forwarded(core, now, i, peer, message, count)
    return count


# To the application


@inlined
def _is_in_force(core, state, what, now):  # type: ignore[no-untyped-def]
    expires_us = core.subscriptions[what].expires_us
    return state.asks[what] and (expires_us < 0 or now < expires_us)


@outlined
def _deliver(core, state, i, peer, message, now):  # type: ignore[no-untyped-def]
    """Hand a publication to the subscriptions that it matches; whether there are any."""
    if state.nodes[i].entries == 0:
        return False
    content = core.contents[core.messages[message].content]
    topics = state.topics_of[core.messages[message].content]
    best = NO
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        if _is_in_force(core, state, what, now):
            best = max(best, int(state.met[topics, state.asked_of[what]]))
        what = np.int64(core.subscriptions[what].next)
    if best == MAYBE:
        drop(core, now, i, peer, message, NO_MATCH)
    if best != YES:
        return False
    count = 0
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        if _is_in_force(core, state, what, now) and state.met[topics, state.asked_of[what]] == YES:
            matched = 0
            for sample in range(content.first_sample, content.last_sample):
                if _matches(core, state, what, sample):
                    subscription = core.subscriptions[what]
                    tell_delivered(core, now, i, peer, message, subscription.number, core.samples[sample].detail)
                    matched += 1
            if matched == 0:
                drop(core, now, i, peer, message, OUT_OF_RANGE)
            count += matched
        what = np.int64(core.subscriptions[what].next)
    return count > 0


@inlined
def _matches(core, state, what, sample):  # type: ignore[no-untyped-def]
    """`mapping.samples`: whether a subscription is handed a sample."""
    texts = state.texts_of[what]
    if texts != NONE and not state.text_met[texts, sample]:
        return False
    it, attributes = core.samples[sample], core.attributes
    for a in range(core.subscriptions[what].first, core.subscriptions[what].last):
        key, operator = attributes[a, 0], attributes[a, 1]
        if operator == IS or (texts != NONE and key == TOPIC):
            continue
        is_met = False
        for b in range(it.first, it.last):
            if attributes[b, 0] == key and attributes[b, 1] == IS:
                is_met = is_met or satisfies(attributes[b, 2], operator, attributes[a, 2])
        if not is_met:
            return False
    return True

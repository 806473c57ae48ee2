"""Publications at a node of DPS's twin: `workbench.protocols.dps.publications`.

A publication's message is known by its number, its size, and the word of its frames, which has the hops and the seconds
that are left of its life: where one of these takes another number of bytes, it is another message.
"""

import numpy as np

from workbench.attributes.model import IS, TOPIC
from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.acknowledgements import acknowledge
from workbench.protocols.dps.fast.filters import Number, more_B, routes
from workbench.protocols.dps.fast.history import came_from, note, note_neighbor
from workbench.protocols.dps.fast.remotes import address_of, link_of
from workbench.protocols.dps.fast.retained import is_kept, left_s, next_to_end, next_to_go, put, remove
from workbench.protocols.dps.fast.state import Message, Reason
from workbench.protocols.dps.fast.topics import MAYBE, NO, YES
from workbench.protocols.dps.rules import FORWARD_US, MOST_HOPS
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

HOPS_BITS = 16


# Own publications, and those that come


@compiled
def publish_content(core, state, i, content, number, now):
    """A publication of the node's own, the first and only one of its series."""
    publication = state.numbers[Number.PUBLISHED]
    state.numbers[Number.PUBLISHED] = publication + 1
    core.drawn[i] += 1  # For its id, which nobody looks at.
    sequence = (np.int64(number) << 32) | 1
    it = state.publications[publication]
    it.origin = core.addresses[i]
    it.sequence = sequence
    it.content = content
    message = twin.make_message(core, Message.PUBLICATION, core.addresses[i], sequence, content)
    state.letters[message].publication = publication
    twin.report_originated(core, now, i, message, number)
    note(state, i, publication, now)
    _hold(core, state, i, NONE, message, publication, 0, now)
    _keep(core, state, i, NONE, publication, 0, state.ttl_s, now)
    _deliver(core, state, i, NONE, message, NONE, now)
    _send(core, state, i, NONE, message, publication, 0, state.ttl_s, now)
    twin.let_go(core, message)


@compiled
def take_publication(core, state, i, sender, message, word, now):
    """A publication from a neighbor, with the hops before this one and the life that is left."""
    peer = core.addresses[sender]
    hops, ttl_s = np.int64(word) & MOST_HOPS, np.int64(word) >> HOPS_BITS
    if hops >= MOST_HOPS:
        twin.drop(core, now, i, peer, message, Reason.HOPS)
        return
    publication = np.int64(state.letters[message].publication)
    link = link_of(state, i, sender)
    was_kept = is_kept(state, i, publication)
    is_known = note(state, i, publication, now)
    note_neighbor(state, i, publication, link, hops)
    if is_known or was_kept:
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    _hold(core, state, i, peer, message, publication, hops + 1, now)
    _keep(core, state, i, link, publication, hops, ttl_s, now)
    is_told = _deliver(core, state, i, peer, message, NONE, now)
    node = state.nodes[i]
    if rules.delays_forwarding(node.is_crowded != 0, node.waiting.count):
        _wait(core, state, i, link, publication, hops + 1, ttl_s, is_told, now)
        return
    count = _send(core, state, i, link, message, publication, hops + 1, ttl_s, now)
    if not is_told and count == 0:
        twin.drop(core, now, i, peer, message, Reason.DEAD_END)


@compiled
def _wait(core, state, i, link, publication, hops, ttl_s, is_told, now):
    """A publication is to be forwarded later."""
    it = state.waitings[publication, i]
    it.due_us = now + 1 + twin.stream_below(core, i, FORWARD_US)
    it.link = link
    it.hops = hops
    it.ttl_s = ttl_s
    it.is_told = is_told
    if not it.is_waiting:
        it.is_waiting = 1
        twin.append(state.nodes[i].waiting, state.waitings[:, i], publication)


@compiled
def wake_waiting(core, state, i, now):
    """Forward the publications that have waited."""
    publication = np.int64(state.nodes[i].waiting.first)
    while publication != NONE:
        it = state.waitings[publication, i]
        behind = np.int64(it.next)
        if it.due_us <= now:
            it.is_waiting = 0
            twin.remove(state.nodes[i].waiting, state.waitings[:, i], publication)
            link = np.int64(it.link)
            count = _send(core, state, i, link, NONE, publication, np.int64(it.hops), np.int64(it.ttl_s), now)
            if not it.is_told and count == 0:
                message = message_of(core, state, publication, 0, 1)
                twin.drop(core, now, i, address_of(core, state, link), message, Reason.DEAD_END)
                twin.let_go(core, message)
        publication = behind


@compiled
def _hold(core, state, i, peer, message, publication, hops, now):
    pair = state.pairs[publication, i]
    is_first = pair.held == 0
    pair.held = 1
    twin.report_held(core, now, i, peer, message, hops, is_first)


@compiled
def _keep(core, state, i, link, publication, hops, ttl_s, now):
    if not state.retains:
        return
    evicted = NONE
    if state.nodes[i].kept.count >= state.max_retained:
        evicted = next_to_go(state, i)
        if evicted == NONE:
            evicted = next_to_end(state, i) if link == NONE else np.int64(publication)
    came_over = np.int64(link)
    if evicted != publication:
        if evicted != NONE:
            came_over = np.int64(state.kept[evicted, i].link)
            remove(state, i, evicted)
        put(state, i, publication, link, hops, rules.end_us(now, ttl_s))
    if evicted != NONE:
        message = message_of(core, state, evicted, 0, 1)
        twin.drop(core, now, i, _peer_of(core, state, came_over), message, Reason.FULL)
        twin.let_go(core, message)


@compiled
def _peer_of(core, state, link):
    return NONE if link == NONE else np.int64(address_of(core, state, link))


# Out


@compiled
def _size_B(core, state, publication, hops, ttl_s):
    content = core.contents[state.publications[publication].content]
    return content.size_B + more_B(hops) + more_B(ttl_s) - more_B(state.ttl_s)


@compiled
def message_of(core, state, publication, hops, ttl_s):
    """A message of a publication, which the caller holds."""
    it = state.publications[publication]
    size_B = _size_B(core, state, publication, hops, ttl_s)
    airtime_us = state.airtimes_us[size_B]
    message = twin.take_message(core, Message.PUBLICATION, it.origin, it.sequence, it.content, size_B, airtime_us)
    state.letters[message].publication = publication
    return np.int64(message)


@compiled
def takes_publications(state, link):
    """Whether publications go to this neighbor, if it asks for them."""
    return rules.takes_publications(state.links[link].state) and state.links[link].inbound != NONE


@compiled
def _is_for(state, i, sender, link, publication):
    """Whether a publication goes to a neighbor: it may ask for it, and it did not come from there."""
    if link == sender or came_from(state, i, publication, link):
        return False
    it = state.links[link]
    topics = np.int64(state.topics_of[state.publications[publication].content])
    return routes(state, topics, np.int64(it.inbound), np.int64(it.inbound_needs))


@compiled
def _send(core, state, i, sender, message, publication, hops, ttl_s, now):
    """Send a publication to everybody whose interests it may meet; returns to how many.

    ``sender``: the link it came over, NONE if it was published here. ``message``: one of its messages, or NONE.
    """
    count = 0
    carried = NONE
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        if takes_publications(state, link) and _is_for(state, i, sender, link, publication):
            if count == 0:
                carried = _carried(core, state, message, publication, hops, ttl_s)
            twin.send(core, now, i, state.neighbors[link], carried, (ttl_s << HOPS_BITS) | hops)
            count += 1
        link = np.int64(state.links[link].next)
    if count:
        if sender != NONE:
            twin.report_forwarded(core, now, i, address_of(core, state, sender), carried, count)
        twin.let_go(core, carried)
    return count


@compiled
def _carried(core, state, message, publication, hops, ttl_s):
    if message != NONE and core.messages[message].size_B == _size_B(core, state, publication, hops, ttl_s):
        core.messages[message].holders += 1
        return np.int64(message)
    return message_of(core, state, publication, hops, ttl_s)


@compiled
def send_retained(core, state, i, link, now):
    """A neighbor asks for something else: send it what is kept and may matter to it, now or when its turn comes."""
    if not takes_publications(state, link) or state.nodes[i].kept.count == 0:
        return
    remote = state.links[link]
    if now < remote.next_resend_us:
        remote.resend_us = remote.next_resend_us
        return
    remote.resend_us = NONE
    remote.next_resend_us = now + state.update_after_us
    publication = np.int64(state.nodes[i].kept.first)
    while publication != NONE:
        it = state.kept[publication, i]
        ttl_s = left_s(state, i, publication, now)
        sender = np.int64(it.link)
        if ttl_s > 0 and _is_for(state, i, sender, link, publication):
            hops = np.int64(it.hops) if sender == NONE else np.int64(it.hops) + 1
            message = message_of(core, state, publication, hops, ttl_s)
            twin.send(core, now, i, state.neighbors[link], message, (ttl_s << HOPS_BITS) | hops)
            if sender != NONE:
                twin.report_forwarded(core, now, i, address_of(core, state, sender), message, 1)
            twin.let_go(core, message)
        publication = np.int64(it.next)


@compiled
def wake_resending(core, state, i, now):
    """The turn of some neighbors has come to be sent what is kept."""
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        it = state.links[link]
        if it.resend_us != NONE and it.resend_us <= now:
            it.resend_us = NONE
            if takes_publications(state, link):
                send_retained(core, state, i, link, now)
        link = np.int64(it.next)


# To the application


@compiled
def give_retained(core, state, i, what, now):
    """A new subscription of this node's own: hand it what is kept here."""
    publication = np.int64(state.nodes[i].kept.first)
    while publication != NONE:
        it = state.kept[publication, i]
        if left_s(state, i, publication, now) > 0:
            message = message_of(core, state, publication, 0, 1)
            _deliver(core, state, i, _peer_of(core, state, np.int64(it.link)), message, np.int64(what), now)
            twin.let_go(core, message)
        publication = np.int64(it.next)


@compiled
def _finds(core, state, topics, what, only, now):
    """What a subscription says to a publication on these topics; ``only``: the others say no, NONE if none is alone."""
    expires_us = core.subscriptions[what].expires_us
    if (only != NONE and what != only) or not state.asks[what] or (expires_us >= 0 and now >= expires_us):
        return NO
    return int(state.met[topics, state.asked_of[what]])


@compiled
def _deliver(core, state, i, peer, message, only, now):
    """Hand a publication to the subscriptions that it matches; whether what became of it here is told."""
    if state.nodes[i].entries == 0:
        return False
    topics = state.topics_of[core.messages[message].content]
    best = NO
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        best = max(best, _finds(core, state, topics, what, only, now))
        what = np.int64(core.subscriptions[what].next)
    if best == MAYBE:
        twin.drop(core, now, i, peer, message, Reason.NO_MATCH)
    if best != YES:
        return best == MAYBE
    count = 0
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        if _finds(core, state, topics, what, only, now) == YES:
            count += _deliver_samples(core, state, i, peer, message, what, now)
        what = np.int64(core.subscriptions[what].next)
    if count and state.acknowledges:
        acknowledge(core, state, i, peer, np.int64(state.letters[message].publication), now)
    return True


@compiled
def _deliver_samples(core, state, i, peer, message, what, now):
    content = core.contents[core.messages[message].content]
    matched = 0
    for sample in range(content.first_sample, content.last_sample):
        if _matches(core, state, what, sample):
            subscription = core.subscriptions[what]
            twin.report_delivered(core, now, i, peer, message, subscription.number, core.samples[sample].detail)
            matched += 1
    if matched == 0:
        twin.drop(core, now, i, peer, message, Reason.OUT_OF_RANGE)
    return matched


@compiled
def _matches(core, state, what, sample):
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
                is_met = is_met or twin.satisfies(attributes[b, 2], operator, attributes[a, 2])
        if not is_met:
            return False
    return True

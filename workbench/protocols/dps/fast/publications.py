"""Publications at a node of DPS's fast twin (its compiled version), as in `workbench.protocols.dps.publications`.

The header field of a publication's frame contains the publication's hops and its remaining lifetime in seconds. Both
numbers are part of the encoded message and can change its size. So the frames of a publication share one message (row
of ``core.messages``) only as long as their sizes are equal.
"""

import numpy as np

from workbench.attributes.model import IS, TOPIC
from workbench.protocols.dps import rules
from workbench.protocols.dps.fast.acknowledgements import acknowledge
from workbench.protocols.dps.fast.filters import Number, more_B, routes
from workbench.protocols.dps.fast.history import note, note_neighbor, was_received_from
from workbench.protocols.dps.fast.remotes import address_of, link_of
from workbench.protocols.dps.fast.retained import add, find_evictable, find_first_to_end, is_retained, left_s, remove
from workbench.protocols.dps.fast.state import Message, Reason
from workbench.protocols.dps.fast.topics import MAYBE, NO, YES
from workbench.protocols.dps.rules import FORWARD_US, MOST_HOPS
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

HOPS_BITS = 16


# Own and received publications


@compiled
def publish_content(core, state, i, content, number, now):
    """Publish reading ``number`` of node ``i`` as the first and only publication of its series.

    ``content``: index of the reading's attributes in ``core.contents``. ``number``: the reading's number at this node.
    """
    publication = state.numbers[Number.PUBLISHED]
    state.numbers[Number.PUBLISHED] = publication + 1
    core.drawn[i] += 1  # The definition draws a number for the publication's id.
    sequence = (np.int64(number) << 32) | 1
    publication_row = state.publications[publication]
    publication_row.origin = core.addresses[i]
    publication_row.sequence = sequence
    publication_row.content = content
    message = twin.make_message(core, Message.PUBLICATION, core.addresses[i], sequence, content)
    state.headers[message].publication = publication
    twin.report_originated(core, now, i, message, number)
    note(state, i, publication, now)
    _record_held(core, state, i, NONE, message, publication, 0, now)
    _retain(core, state, i, NONE, publication, 0, state.ttl_s, now)
    _deliver(core, state, i, NONE, message, NONE, now)
    _send(core, state, i, NONE, message, publication, 0, state.ttl_s, now)
    twin.let_go(core, message)


@compiled
def receive_publication(core, state, i, sender, message, hops_and_ttl, now):
    """Process a publication from a neighbor, the node ``sender``.

    ``hops_and_ttl``: the header field of the frame; it contains the publication's hops up to the sender, and its
    remaining lifetime in seconds.
    """
    peer = core.addresses[sender]
    hops, ttl_s = np.int64(hops_and_ttl) & MOST_HOPS, np.int64(hops_and_ttl) >> HOPS_BITS
    if hops >= MOST_HOPS:
        twin.drop(core, now, i, peer, message, Reason.HOPS)
        return
    publication = np.int64(state.headers[message].publication)
    link = link_of(state, i, sender)
    was_retained = is_retained(state, i, publication)
    was_in_history = note(state, i, publication, now)
    note_neighbor(state, i, publication, link, hops)
    if was_in_history or was_retained:
        twin.drop(core, now, i, peer, message, twin.Reason.DUPLICATE)
        return
    _record_held(core, state, i, peer, message, publication, hops + 1, now)
    _retain(core, state, i, link, publication, hops, ttl_s, now)
    is_reported = _deliver(core, state, i, peer, message, NONE, now)
    node = state.nodes[i]
    if rules.delays_forwarding(node.is_crowded != 0, node.waiting.count):
        _postpone_forwarding(core, state, i, link, publication, hops + 1, ttl_s, is_reported, now)
        return
    receiver_count = _send(core, state, i, link, message, publication, hops + 1, ttl_s, now)
    if not is_reported and receiver_count == 0:
        twin.drop(core, now, i, peer, message, Reason.DEAD_END)


@compiled
def _postpone_forwarding(core, state, i, link, publication, hops, ttl_s, is_reported, now):
    """Schedule the forwarding of a publication after a random time up to `FORWARD_US`.

    ``link``: the link over which the publication came; ``is_reported``: whether a trace event has reported its delivery
    or drop at node ``i``.
    """
    postponed = state.waitings[publication, i]
    postponed.due_us = now + 1 + twin.stream_below(core, i, FORWARD_US)
    postponed.link = link
    postponed.hops = hops
    postponed.ttl_s = ttl_s
    postponed.is_reported = is_reported
    if not postponed.is_waiting:
        postponed.is_waiting = 1
        twin.append(state.nodes[i].waiting, state.waitings[:, i], publication)


@compiled
def wake_waiting(core, state, i, now):
    """Forward the postponed publications of node ``i`` that are due."""
    publication = np.int64(state.nodes[i].waiting.first)
    while publication != NONE:
        postponed = state.waitings[publication, i]
        next_publication = np.int64(postponed.next)
        if postponed.due_us <= now:
            postponed.is_waiting = 0
            twin.remove(state.nodes[i].waiting, state.waitings[:, i], publication)
            link = np.int64(postponed.link)
            receiver_count = _send(
                core, state, i, link, NONE, publication, np.int64(postponed.hops), np.int64(postponed.ttl_s), now
            )
            if not postponed.is_reported and receiver_count == 0:
                message = message_of(core, state, publication, 0, 1)
                twin.drop(core, now, i, address_of(core, state, link), message, Reason.DEAD_END)
                twin.let_go(core, message)
        publication = next_publication


@compiled
def _record_held(core, state, i, peer, message, publication, hops, now):
    """Record that node ``i`` has received or published a publication, and write the trace event.

    ``peer``: address of the neighbor that sent it; NONE: node ``i`` published it. ``hops``: hops from the publisher.
    """
    pair = state.pairs[publication, i]
    is_first_copy = pair.is_held == 0
    pair.is_held = 1
    twin.report_held(core, now, i, peer, message, hops, is_first_copy)


@compiled
def _retain(core, state, i, link, publication, hops, ttl_s, now):
    """Retain a publication if the publications of this run have a lifetime.

    ``link``: the link over which the publication came; NONE: node ``i`` published it.

    If node ``i`` already retains ``max_retained`` publications, it drops the publication of another node that expires
    first. If it retains only publications of its own, it drops a new publication that came from another node. For a new
    publication of its own, it drops the retained publication that expires first.
    """
    if not state.retains:
        return
    evicted_publication = NONE
    if state.nodes[i].retained.count >= state.max_retained:
        evicted_publication = find_evictable(state, i)
        if evicted_publication == NONE:
            evicted_publication = find_first_to_end(state, i) if link == NONE else np.int64(publication)
    evicted_link = np.int64(link)
    if evicted_publication != publication:
        if evicted_publication != NONE:
            evicted_link = np.int64(state.retained[evicted_publication, i].link)
            remove(state, i, evicted_publication)
        add(state, i, publication, link, hops, rules.end_us(now, ttl_s))
    if evicted_publication != NONE:
        message = message_of(core, state, evicted_publication, 0, 1)
        twin.drop(core, now, i, _peer_of(core, state, evicted_link), message, Reason.FULL)
        twin.let_go(core, message)


@compiled
def _peer_of(core, state, link):
    return NONE if link == NONE else np.int64(address_of(core, state, link))


# Sending


@compiled
def _size_B(core, state, publication, hops, ttl_s):
    content = core.contents[state.publications[publication].content]
    return content.size_B + more_B(hops) + more_B(ttl_s) - more_B(state.ttl_s)


@compiled
def message_of(core, state, publication, hops, ttl_s):
    """Return the row of a new message that carries a publication; the caller must release it with `twin.let_go`.

    ``hops``, ``ttl_s``: hops and remaining lifetime in seconds that the message contains; they influence its size.
    """
    publication_row = state.publications[publication]
    size_B = _size_B(core, state, publication, hops, ttl_s)
    airtime_us = state.airtimes_us[size_B]
    message = twin.take_message(
        core,
        Message.PUBLICATION,
        publication_row.origin,
        publication_row.sequence,
        publication_row.content,
        size_B,
        airtime_us,
    )
    state.headers[message].publication = publication
    return np.int64(message)


@compiled
def takes_publications(state, link):
    """Return whether publications are sent over a link: its state allows them, and the neighbor has interests."""
    return rules.takes_publications(state.links[link].state) and state.links[link].inbound != NONE


@compiled
def _should_send(state, i, source_link, link, publication):
    """Return whether to send a publication over ``link``.

    The interests of the link's neighbor must match the publication, and this neighbor must not have sent the
    publication itself. ``source_link``: the link over which the publication came; NONE: the node published it.
    """
    if link == source_link or was_received_from(state, i, publication, link):
        return False
    remote = state.links[link]
    topic_set = np.int64(state.published_set[state.publications[publication].content])
    return routes(state, topic_set, np.int64(remote.inbound), np.int64(remote.inbound_needs))


@compiled
def _send(core, state, i, source_link, message, publication, hops, ttl_s, now):
    """Send a publication to all neighbors with matching interests; return the number of these neighbors.

    ``source_link``: the link over which the publication came; NONE: node ``i`` published it. ``message``: an existing
    message with the publication, which is sent if its size fits; NONE: create a message.
    """
    receiver_count = 0
    sent_message = NONE
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        if takes_publications(state, link) and _should_send(state, i, source_link, link, publication):
            if receiver_count == 0:
                sent_message = _reuse_message(core, state, message, publication, hops, ttl_s)
            twin.send(core, now, i, state.neighbors[link], sent_message, (ttl_s << HOPS_BITS) | hops)
            receiver_count += 1
        link = np.int64(state.links[link].next)
    if receiver_count:
        if source_link != NONE:
            twin.report_forwarded(core, now, i, address_of(core, state, source_link), sent_message, receiver_count)
        twin.let_go(core, sent_message)
    return receiver_count


@compiled
def _reuse_message(core, state, message, publication, hops, ttl_s):
    """Return ``message`` if its size fits a publication with these hops and this lifetime, else a new message.

    The caller must release the returned message with `twin.let_go`.
    """
    if message != NONE and core.messages[message].size_B == _size_B(core, state, publication, hops, ttl_s):
        core.messages[message].holders += 1
        return np.int64(message)
    return message_of(core, state, publication, hops, ttl_s)


@compiled
def send_retained(core, state, i, link, now):
    """Send a neighbor the retained publications that match its interests, because the interests have changed.

    If the last such transfer to this neighbor was less than ``update_after_us`` ago, only schedule a later transfer.
    """
    if not takes_publications(state, link) or state.nodes[i].retained.count == 0:
        return
    remote = state.links[link]
    if now < remote.next_resend_us:
        remote.resend_us = remote.next_resend_us
        return
    remote.resend_us = NONE
    remote.next_resend_us = now + state.update_after_us
    publication = np.int64(state.nodes[i].retained.first)
    while publication != NONE:
        retained_entry = state.retained[publication, i]
        ttl_s = left_s(state, i, publication, now)
        source_link = np.int64(retained_entry.link)
        if ttl_s > 0 and _should_send(state, i, source_link, link, publication):
            hops = np.int64(retained_entry.hops) if source_link == NONE else np.int64(retained_entry.hops) + 1
            message = message_of(core, state, publication, hops, ttl_s)
            twin.send(core, now, i, state.neighbors[link], message, (ttl_s << HOPS_BITS) | hops)
            if source_link != NONE:
                twin.report_forwarded(core, now, i, address_of(core, state, source_link), message, 1)
            twin.let_go(core, message)
        publication = np.int64(retained_entry.next)


@compiled
def wake_resending(core, state, i, now):
    """Do the transfers of retained publications that `send_retained` has scheduled and that are now due."""
    link = np.int64(state.nodes[i].links.first)
    while link != NONE:
        remote = state.links[link]
        if remote.resend_us != NONE and remote.resend_us <= now:
            remote.resend_us = NONE
            if takes_publications(state, link):
                send_retained(core, state, i, link, now)
        link = np.int64(remote.next)


# To the application


@compiled
def deliver_retained(core, state, i, subscription, now):
    """Deliver matching retained publications to a new subscription of this node."""
    publication = np.int64(state.nodes[i].retained.first)
    while publication != NONE:
        retained_entry = state.retained[publication, i]
        if left_s(state, i, publication, now) > 0:
            message = message_of(core, state, publication, 0, 1)
            _deliver(
                core,
                state,
                i,
                _peer_of(core, state, np.int64(retained_entry.link)),
                message,
                np.int64(subscription),
                now,
            )
            twin.let_go(core, message)
        publication = np.int64(retained_entry.next)


@compiled
def _compare_topics(core, state, topics, subscription, only_subscription, now):
    """Return NO, MAYBE (only the filters match) or YES: whether a subscription matches published topics.

    ``topics``: index of the publication's set of topics (see `topics.Workload`). A subscription that is not in force
    never matches. If ``only_subscription`` is not NONE, all other subscriptions never match either.
    """
    expires_us = core.subscriptions[subscription].expires_us
    if (
        (only_subscription != NONE and subscription != only_subscription)
        or not state.in_force[subscription]
        or (expires_us >= 0 and now >= expires_us)
    ):
        return NO
    return int(state.set_matches[topics, state.subscribed_set[subscription]])


@compiled
def _deliver(core, state, i, peer, message, only_subscription, now):
    """Deliver a publication to the matching subscriptions of node ``i``; return whether a trace event was written.

    The event is a delivery, or a drop because topics or values do not match although the filters do. ``peer``: address
    of the neighbor that sent the publication, NONE for the node's own. ``only_subscription``: the only subscription
    that may get the publication, NONE for all.
    """
    if state.nodes[i].own_count == 0:
        return False
    topic_set = state.published_set[core.messages[message].content]
    best_match = NO
    subscription = np.int64(core.nodes[i].first_subscription)
    while subscription != NONE:
        best_match = max(best_match, _compare_topics(core, state, topic_set, subscription, only_subscription, now))
        subscription = np.int64(core.subscriptions[subscription].next)
    if best_match == MAYBE:
        twin.drop(core, now, i, peer, message, Reason.NO_MATCH)
    if best_match != YES:
        return best_match == MAYBE
    delivered_count = 0
    subscription = np.int64(core.nodes[i].first_subscription)
    while subscription != NONE:
        if _compare_topics(core, state, topic_set, subscription, only_subscription, now) == YES:
            delivered_count += _deliver_samples(core, state, i, peer, message, subscription, now)
        subscription = np.int64(core.subscriptions[subscription].next)
    if delivered_count and state.acknowledges:
        acknowledge(core, state, i, peer, np.int64(state.headers[message].publication), now)
    return True


@compiled
def _deliver_samples(core, state, i, peer, message, subscription, now):
    """Deliver the samples (single readings) of a publication that match a subscription; return their number.

    If no sample matches, write a drop to the trace.
    """
    content = core.contents[core.messages[message].content]
    delivered_count = 0
    for sample in range(content.first_sample, content.last_sample):
        if _matches(core, state, subscription, sample):
            subscription_number = core.subscriptions[subscription].number
            twin.report_delivered(core, now, i, peer, message, subscription_number, core.samples[sample].detail)
            delivered_count += 1
    if delivered_count == 0:
        twin.drop(core, now, i, peer, message, Reason.OUT_OF_RANGE)
    return delivered_count


@compiled
def _matches(core, state, subscription, sample):
    """Return whether the attributes of a sample meet all constraints of a subscription.

    ``sample``: a single reading, a row of ``core.samples``.
    """
    text_row = state.text_set[subscription]
    if text_row != NONE and not state.text_matches[text_row, sample]:
        return False
    sample_row, attributes = core.samples[sample], core.attributes
    for constraint_row in range(core.subscriptions[subscription].first, core.subscriptions[subscription].last):
        constraint_key, constraint_operator = attributes[constraint_row, 0], attributes[constraint_row, 1]
        if constraint_operator == IS or (text_row != NONE and constraint_key == TOPIC):
            continue
        is_met = False
        for value_row in range(sample_row.first, sample_row.last):
            if attributes[value_row, 0] == constraint_key and attributes[value_row, 1] == IS:
                is_met = is_met or twin.satisfies(
                    attributes[value_row, 2], constraint_operator, attributes[constraint_row, 2]
                )
        if not is_met:
            return False
    return True

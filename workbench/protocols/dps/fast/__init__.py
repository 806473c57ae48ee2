"""The fast twin of `workbench.protocols.dps`: the same protocol as compiled functions on arrays, for large runs.

The *definition* is the protocol's node in Python. Its *twin* gives the same traces in the fast engine
(`workbench.sim.fast`).

Theory of operation
    `state.py` defines the memory of nodes, `links.py` the exchange of interests over links, `publications.py` the
    forwarding of publications, and `filters.py` the operations on filters. Topics are hashed and compared before the
    run (`topics.py`). A frame contains a link message or a publication. The hops and the remaining lifetime of a
    publication are in the header field of its frame.

    The state machine of a link is the definition's table (`automaton.py`), stored as arrays in the state. Decisions are
    the definition's functions (`rules.py`), compiled unchanged.

Parameters of the functions
    core                                the engine's arrays (`workbench.sim.fast.layout.Core`)
    state                               the arrays of this twin (`state.py`)
    i                                   index of the node that acts
    link                                row of ``state.links``: the data of node ``i`` about one neighbor
    remote                              the record in this row, with the fields of `state.LINK`
    message, publication, subscription  rows of the arrays with these names (in plural)
    now                                 the time in µs

    A time, a row or an address that does not exist is NONE (-1).

Cost
    To process a link message, a node reads the filters of all its links; to forward a publication, it reads a few words
    of each link's filter. Memory: 32 bytes for each pair of node and publication; 200 bytes for each neighbor; each
    different filter once.

Limits
    Networks whose nodes have more than 256 neighbors run in the reference engine.
"""

from __future__ import annotations

import numpy as np

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import GONE, MUTED
from workbench.protocols.dps.fast import state
from workbench.protocols.dps.fast.acknowledgements import receive_answer
from workbench.protocols.dps.fast.filters import EMPTY, Number, add_to_sum, clear_sum, intern_filter, intern_needs
from workbench.protocols.dps.fast.links import (
    end_link,
    receive_acknowledgement,
    receive_subscription,
    request_link,
    retry_link_message,
    unlink,
    update,
    wake_links,
)
from workbench.protocols.dps.fast.mesh_ids import OWN_HIGH, set_mark, stream_bits, swap_bytes
from workbench.protocols.dps.fast.neighborhood import choose, next_neighbor, report_quality
from workbench.protocols.dps.fast.outgoing import announce
from workbench.protocols.dps.fast.publications import (
    deliver_retained,
    publish_content,
    receive_publication,
    wake_resending,
    wake_waiting,
)
from workbench.protocols.dps.fast.remotes import link_of
from workbench.protocols.dps.fast.repeats import retry_publication, wake_repeats
from workbench.protocols.dps.fast.retained import remove_ended
from workbench.protocols.dps.fast.state import Message
from workbench.protocols.dps.wire import SAK_REQUESTED
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

twin.compiled_rules(rules)

PARTS = (state,)
WAKES = True


@compiled
def has_room(core, state):
    """Return whether the arrays of filters and of needs have enough free rows for any single event at a node.

    Needs are fuzzy hashes of filters. An event adds at most ``state.most_new`` filters, and as many needs.
    """
    most_filters = state.numbers[Number.FILTERS] + state.most_new
    most_needs = state.numbers[Number.NEEDS] + state.most_new
    return most_filters < len(state.filters) and most_needs < len(state.needs)


@compiled
def start(core, state, i, now):
    """Choose a random mesh id for node ``i``, and schedule its first wake-up."""
    i = np.int64(i)
    node = state.nodes[i]
    node.mesh_low = set_mark(swap_bytes(stream_bits(core, i)))
    node.mesh_high = swap_bytes(stream_bits(core, i)) & OWN_HIGH
    node.has_changes = 1
    _announce_and_plan_wake(core, state, i, now)


@compiled
def link_quality(core, state, i, neighbor, inbound, outbound, now):
    """Store the measured quality of a radio link, and request or end the DPS link with this neighbor.

    ``neighbor``: the neighbor's index; ``inbound``, ``outbound``: delivery ratios (0 to 1) of frames from and to it.
    """
    i = np.int64(i)
    link = link_of(state, i, neighbor)
    if report_quality(core, state, i, link, min(inbound, outbound), now) and state.links[link].state != GONE:
        unlink(core, state, i, link, now)
    _announce_and_plan_wake(core, state, i, now)


@compiled
def _announce_and_plan_wake(core, state, i, now):
    """Write trace events for changed interests and mesh ids, and schedule the next wake-up of node ``i``."""
    announce(core, state, i, now)
    _plan_wake(core, state, i)


@compiled
def _plan_wake(core, state, i):
    """Schedule the next wake-up of node ``i`` at the earliest time at which any of its work is due."""
    node = state.nodes[i]
    earliest_us = _earlier_us(_earlier_us(node.update_us, node.ids_us), node.next_end_us)
    earliest_us = _earlier_us(earliest_us, _earlier_us(node.choose_us, node.scout_us))
    earliest_us = _earlier_us(earliest_us, node.repeat_us)
    link = np.int64(node.links.first)
    while link != NONE:
        remote = state.links[link]
        earliest_us = _earlier_us(
            _earlier_us(_earlier_us(earliest_us, remote.tick_us), remote.keep_alive_us), remote.resend_us
        )
        earliest_us = _earlier_us(earliest_us, remote.retry_us)
        link = np.int64(remote.next)
    link = np.int64(node.planned_requests.first)
    while link != NONE:
        earliest_us = _earlier_us(earliest_us, state.link_requests[link].request_us)
        link = np.int64(state.link_requests[link].next)
    publication = np.int64(node.waiting.first)
    while publication != NONE:
        earliest_us = _earlier_us(earliest_us, state.waitings[publication, i].due_us)
        publication = np.int64(state.waitings[publication, i].next)
    if node.own_count:
        subscription = np.int64(core.nodes[i].first_subscription)
        while subscription != NONE:
            if state.in_force[subscription]:
                earliest_us = _earlier_us(earliest_us, core.subscriptions[subscription].expires_us)
            subscription = np.int64(core.subscriptions[subscription].next)
    core.next_wake[i] = earliest_us


@compiled
def _earlier_us(first_us, second_us):
    """Return the earlier of two times in µs; a time may be NONE, which means never."""
    if second_us == NONE:
        return first_us
    return second_us if first_us == NONE else min(first_us, second_us)


# Own subscriptions


@compiled
def _change_own_subscription(core, state, i, subscription, in_force, now):
    """Begin or end a subscription of node ``i``, and send the changed interests to the neighbors.

    ``in_force``: 1 to begin the subscription, 0 to end it. The union of the filters of the node's own subscriptions,
    which is part of its interests, is computed again.
    """
    state.in_force[subscription] = in_force
    node = state.nodes[i]
    node.own_count += 1 if in_force else -1
    node.own_interests = EMPTY
    node.own_needs = EMPTY
    if node.own_count:
        clear_sum(state)
        own_subscription = np.int64(core.nodes[i].first_subscription)
        while own_subscription != NONE:
            if state.in_force[own_subscription]:
                topic_set = state.subscribed_set[own_subscription]
                add_to_sum(state, state.subscribed_filter[topic_set], state.subscribed_needs[topic_set])
            own_subscription = np.int64(core.subscriptions[own_subscription].next)
        node.own_interests = intern_filter(state)
        node.own_needs = intern_needs(state)
    node.has_changes = 1
    update(core, state, i, now)


@compiled
def subscribe(core, state, i, subscription, now):
    """Begin a subscription of node ``i``, and deliver to it the retained publications that match it."""
    i = np.int64(i)
    _change_own_subscription(core, state, i, subscription, 1, now)
    deliver_retained(core, state, i, subscription, now)
    _announce_and_plan_wake(core, state, i, now)


@compiled
def unsubscribe(core, state, i, subscription, now):
    """End a subscription of node ``i`` if it has not ended already."""
    i = np.int64(i)
    if state.in_force[subscription]:
        _change_own_subscription(core, state, i, subscription, 0, now)
    _announce_and_plan_wake(core, state, i, now)


# Messages


@compiled
def publish(core, state, i, content, number, now):
    """Publish a reading of node ``i``.

    ``content``: index of the reading's attributes in ``core.contents``. ``number``: the reading's number at this node.
    """
    i = np.int64(i)
    publish_content(core, state, i, content, number, now)
    if state.retains:
        _plan_wake(core, state, i)


@compiled
def receive(core, state, i, sender, message, header_field, broadcast, now):
    """Process a message from a neighbor, the node ``sender``.

    ``header_field`` contains the hops and the remaining lifetime of a publication; other messages do not use it.
    ``broadcast``, whether the frame was broadcast, makes no difference.
    """
    i, sender = np.int64(i), np.int64(sender)
    message_kind = core.messages[message].name
    if message_kind == Message.PUBLICATION:
        receive_publication(core, state, i, sender, message, header_field, now)
        if state.retains or state.nodes[i].is_crowded:
            _plan_wake(core, state, i)
        return
    link = link_of(state, i, sender)
    if message_kind == Message.ACKNOWLEDGEMENT:
        receive_answer(core, state, i, link, message, now)
        return
    if message_kind == Message.SUBSCRIPTION:
        receive_subscription(core, state, i, link, message, now)
    else:
        receive_acknowledgement(core, state, i, link, message, now)
    _announce_and_plan_wake(core, state, i, now)


@compiled
def sent(core, state, i, receiver, message, header_field, ok, now):
    """Process the outcome of a unicast message to the node ``receiver``: ``ok`` is whether it was delivered.

    If the message was not delivered, schedule a retry, except for acknowledgements of publications.
    """
    message_kind, link = core.messages[message].name, link_of(state, i, np.int64(receiver))
    if ok:
        state.links[link].repeated = 0
        return
    if message_kind == Message.PUBLICATION:
        retry_publication(core, state, i, link, np.int64(state.headers[message].publication), header_field, now)
    elif message_kind != Message.ACKNOWLEDGEMENT:
        is_answer = message_kind != Message.SUBSCRIPTION and not state.headers[message].flags & SAK_REQUESTED
        retry_link_message(core, state, i, link, is_answer, now)
    _plan_wake(core, state, i)


# Time


@compiled
def wake(core, state, i, now):
    """Do the work due by ``now``: end subscriptions, send messages of links and publications, request links."""
    i = np.int64(i)
    if state.nodes[i].own_count:
        subscription = np.int64(core.nodes[i].first_subscription)
        while subscription != NONE:
            expires_us = core.subscriptions[subscription].expires_us
            if state.in_force[subscription] and expires_us != NONE and expires_us <= now:
                _change_own_subscription(core, state, i, subscription, 0, now)
            subscription = np.int64(core.subscriptions[subscription].next)
    wake_links(core, state, i, now)
    wake_waiting(core, state, i, now)
    remove_ended(state, i, now)
    wake_resending(core, state, i, now)
    wake_repeats(core, state, i, now)
    node = state.nodes[i]
    if node.choose_us != NONE and node.choose_us <= now:
        choose(core, state, i, now)
    if node.scout_us != NONE and node.scout_us <= now:
        _send_scout(core, state, i, now)
    _send_requests(core, state, i, now)
    _announce_and_plan_wake(core, state, i, now)


@compiled
def _send_scout(core, state, i, now):
    """Request a link with the next scout, after ending the link to the current scout if that link is muted.

    Besides the links with its best neighbors, a node has a trial link with one other neighbor, the *scout*, which may
    be in another part of the network. A muted trial link seems to close a loop, so the scout is in the same part.
    The link also stays while an answer is outstanding.
    """
    node = state.nodes[i]
    scout_link = np.int64(node.scout)
    if scout_link != NONE:
        remote = state.links[scout_link]
        if remote.state == MUTED and not remote.pending and not remote.is_chosen:
            end_link(core, state, i, scout_link, now)
    scout_link = next_neighbor(core, state, i)
    node.scout = scout_link
    if scout_link != NONE:
        request_link(core, state, i, scout_link, now)
    node.scout_us = now + rules.scout_after_us(node.recheck_s, twin.stream_uniform(core, i))


@compiled
def _send_requests(core, state, i, now):
    """Request the links of node ``i`` whose scheduled times have come."""
    planned_requests, previous_link = state.nodes[i].planned_requests, NONE
    link = np.int64(planned_requests.first)
    while link != NONE:
        request = state.link_requests[link]
        next_link = np.int64(request.next)
        if request.request_us <= now:
            request.is_planned = 0
            twin.remove_behind(planned_requests, state.link_requests, previous_link, link)
            if state.links[link].state == GONE:
                request_link(core, state, i, link, now)
        else:
            previous_link = link
        link = next_link

"""The fast twin of TinyMQ and of PUB-2-SUB+: the fast engine's version of their nodes, compiled, over arrays.

Most of its modules are named after the modules of `tinymq` that they replace: `overlay`, `positions` (in trees), `keys`
(zones and regions), `routing`, `queries`, `node` (queries, events and notifications), `unicast`, `messages`, `recent`.
`memory` defines the arrays of the nodes' state, and `state` creates them. The rules are those of `tinymq.rules`,
compiled.

The header of a unicast frame is one integer (`unicast`). Queries are identified by their subscriptions, events by their
publications. The twin does not handle malformed frames, nor frames of a network with other settings, because neither
occurs in the run of a scenario.

Parameters of many functions
    core, state   the engine's arrays (`workbench.sim.fast.layout.Core`), and the arrays of this protocol
    i             index of the node that acts
    now           current time (µs)

Limits
    The twin rejects scenarios with ``literal=True``, with ``key_bits`` above 62, or with more subscriptions at a node
    than ``max_queries``. It stops runs in which a key grows beyond 4096 bits, or the region of a message is cut into
    more than 32 intervals.
"""

from __future__ import annotations

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast import memory, state
from workbench.protocols.tinymq.fast.memory import END, RENEW, Message, Number, Problem, Reason
from workbench.protocols.tinymq.fast.messages import (
    copy_message,
    drop_message,
    has_room_for,
    make_event,
    measure,
    reserve_room,
)
from workbench.protocols.tinymq.fast.node import (
    hold_event,
    reroute_pending,
    route,
    send_query,
    send_to_trees,
    send_waiting,
    write_hull,
)
from workbench.protocols.tinymq.fast.overlay import (
    earlier_time,
    log_zones,
    lose,
    next_due_us,
    note_answer,
    note_heard,
    plan_info,
    take_grant,
    take_info,
    take_join,
)
from workbench.protocols.tinymq.fast.overlay import start as start_overlay
from workbench.protocols.tinymq.fast.overlay import wake as wake_overlay
from workbench.protocols.tinymq.fast.positions import is_attached, link_from
from workbench.protocols.tinymq.fast.queries import end_leases
from workbench.protocols.tinymq.fast.routing import is_misdirected
from workbench.protocols.tinymq.fast.unicast import (
    acknowledge,
    begin,
    direction_of,
    free_pending,
    is_new,
    number_of,
    refuse,
    repeat,
    take,
    take_acknowledgement,
    take_refusal,
    take_report,
    wants_ack,
)
from workbench.protocols.tinymq.unicast import REFUSAL as WAITS_FOR_REFUSAL
from workbench.protocols.tinymq.wire import OPEN, U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

twin.compiled_rules(rules)

PARTS = memory, state
WAKES = True


@compiled
def has_room(core, state):
    """Return whether the run can continue: no `Problem` has occurred, and the arrays have enough free rows.

    The function also sets ``state.numbers[Number.NEEDED]`` to the number of rows that the next step of the simulation
    may need in each array.
    """
    needed_rows = state.least_room + core.numbers[twin.Number.MORE]
    state.numbers[Number.NEEDED] = needed_rows
    return state.numbers[Number.PROBLEM] == Problem.FINE and has_room_for(core, state, needed_rows)


# The event loop calls these functions. They pass numbers on as int64, so that each is compiled for one set of types.


@compiled
def start(core, state, i, now):
    """Start node ``i``. If the node is a root, it takes the root's position in its tree."""
    _start(core, state, np.int64(i), np.int64(now))


@compiled
def publish(core, state, i, content, number, now):
    """Send a new event of node ``i`` to its rendezvous nodes.

    ``content``: row of the event's content in ``core.contents``; ``number``: the event's sequence number at the node.
    """
    _publish(core, state, np.int64(i), np.int64(content), np.int64(number), now)


@compiled
def subscribe(core, state, i, subscription, now):
    """Send the query of a subscription of node ``i`` to all trees; ``subscription``: row of ``core.subscriptions``."""
    _subscribe(core, state, np.int64(i), np.int64(subscription), now)


@compiled
def unsubscribe(core, state, i, subscription, now):
    """End a subscription: send its query again, with lease 0. Do nothing if the subscription has already ended."""
    _unsubscribe(core, state, np.int64(i), np.int64(subscription), now)


@compiled
def receive(core, state, i, sender, message, header, broadcast, now):
    """Process a frame that node ``i`` receives from node ``sender``.

    ``message``: row of the frame's message in ``core.messages``; ``header``: one integer with the frame's sequence
    number, its direction (`unicast.direction_of`) and whether it requests an ack; ``broadcast``: whether the frame is a
    broadcast.
    """
    _receive(core, state, np.int64(i), np.int64(sender), np.int64(message), np.int64(header), now)


@compiled
def sent(core, state, i, receiver, message, header, ok, now):
    """Process the radio's report about a unicast frame of node ``i``.

    ``ok``: whether the radio of ``receiver`` acknowledged the frame; ``message``: row of the frame's message in
    ``core.messages``; ``header``: one integer with the frame's sequence number, its direction (`unicast.direction_of`)
    and whether it requests an ack.
    """
    if state.uses_reports:
        _sent(core, state, np.int64(i), np.int64(receiver), np.int64(message), np.int64(header), np.int64(ok), now)


@compiled
def wake(core, state, i, now):
    """Do the work of node ``i`` that is due: send frames again, give up silent neighbors, join, refresh queries."""
    _wake(core, state, np.int64(i), now)


@compiled
def _start(core, state, i, now):
    if state.numbers[Number.ACKNOWLEDGEMENT] == NONE:
        message = twin.take_message(core, Message.ACK, NONE, 0, NONE, 0, 0)
        measure(core, state, message)
        state.numbers[Number.ACKNOWLEDGEMENT] = message
    state.nodes[i].first_number = (core.boots[i] & 3) << 14 | twin.stream_below(core, i, U16 + 1) & 0x3FFF
    begin(core, state, i, now)
    start_overlay(core, state, i, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _publish(core, state, i, content, number, now):
    publication = state.numbers[Number.PUBLISHED]
    state.numbers[Number.PUBLISHED] = publication + 1
    begin(core, state, i, now)
    event = make_event(core, state, i, content, number, publication)
    write_hull(state, state.fields[event].box, event)
    twin.report_originated(core, now, i, event, number)
    hold_event(core, state, i, NONE, event, now)
    send_to_trees(core, state, i, event, now)
    twin.let_go(core, event)
    _plan_wake_up(core, state, i, now)


@compiled
def _subscribe(core, state, i, subscription, now):
    own_query = state.own_queries[subscription]
    own_query.is_open = 1
    own_query.round = NONE
    own_query.refresh_us = NONE
    begin(core, state, i, now)
    state.nodes[i].own += 1
    if is_attached(state, i) and state.nodes[i].queries_due_us == NONE:
        send_query(core, state, i, subscription, RENEW, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _unsubscribe(core, state, i, subscription, now):
    own_query = state.own_queries[subscription]
    begin(core, state, i, now)
    if own_query.is_open:
        own_query.is_open = 0
        state.nodes[i].own -= 1
        if own_query.round >= 0:
            send_query(core, state, i, subscription, END, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _receive(core, state, i, sender, message, header, now):
    link = link_from(state, i, sender)
    begin(core, state, i, now)
    note_heard(state, link, now)
    message_name = core.messages[message].name
    if message_name == Message.INFO:
        take_info(core, state, i, sender, link, message, now)
        reroute_pending(core, state, i, now)
    else:
        note_answer(core, state, i, sender, link, now)
        if message_name == Message.ACK:
            take_acknowledgement(core, state, i, sender, header, now)
        elif message_name == Message.REFUSAL:
            take_refusal(core, state, i, sender, header, now)
        else:
            _process_unicast(core, state, i, sender, link, message, header, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _sent(core, state, i, receiver, message, header, ok, now):
    message_name = core.messages[message].name
    if message_name in (Message.ACK, Message.REFUSAL):
        return
    take_report(core, state, i, receiver, number_of(header), ok, now)
    if ok:
        link = link_from(state, i, receiver)
        if link != NONE:
            note_heard(state, link, now)
            note_answer(core, state, i, receiver, link, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _process_unicast(core, state, i, sender, link, message, header, now):
    frame_number, direction = number_of(header), direction_of(header)
    if not is_new(state, i, link, frame_number):
        acknowledge(core, state, i, sender, frame_number, header, now)
        drop_message(core, state, i, sender, message, Reason.REPEATED, now)
    elif wants_ack(header) and not _has_room_for(core, state, i, message):
        refuse(core, state, i, sender, frame_number, now)
    elif direction != OPEN and is_misdirected(core, state, i, message, direction, sender):
        drop_message(core, state, i, sender, message, Reason.ASTRAY, now)
        if not wants_ack(header):
            refuse(core, state, i, sender, frame_number, now)
        plan_info(core, state, i, now)
    else:
        take(core, state, i, sender, link, frame_number, header, now)
        _process_message(core, state, i, sender, message, now)


@compiled
def _has_room_for(core, state, i, message):
    """Return whether node ``i`` accepts a message.

    An event, or a notification for another node, is accepted only if enough of the node's memory of pending frames is
    free (`rules.has_room_to_forward`).
    """
    name = core.messages[message].name
    if name != Message.EVENT and (name != Message.NOTIFICATION or state.fields[message].sink == i):
        return True
    return rules.has_room_to_forward(state.nodes[i].pending.count, state.max_known, name == Message.EVENT)


@compiled
def _process_message(core, state, i, sender, message, now):
    message_name = core.messages[message].name
    if message_name == Message.JOIN:
        if not take_join(core, state, i, sender, state.fields[message].tree, now):
            drop_message(core, state, i, sender, message, Reason.NO_PLACE, now)
        reroute_pending(core, state, i, now)
    elif message_name == Message.GRANT:
        if not take_grant(core, state, i, sender, message, now):
            drop_message(core, state, i, sender, message, Reason.UNASKED, now)
        reroute_pending(core, state, i, now)
    elif message_name == Message.PROBE:
        return
    elif state.fields[message].hops >= state.max_hops:
        drop_message(core, state, i, sender, message, twin.Reason.TTL, now)
    else:
        message_copy = copy_message(core, state, message)
        state.fields[message_copy].hops += 1
        route(core, state, i, message_copy, sender, now)
        twin.let_go(core, message_copy)


@compiled
def _wake(core, state, i, now):
    begin(core, state, i, now)
    _retransmit_or_give_up(core, state, i, now)
    wake_overlay(core, state, i, now)
    reroute_pending(core, state, i, now)
    end_leases(core, state, i, now)
    first_waiting = state.nodes[i].waiting.first
    if first_waiting != NONE and rules.is_too_old(state.waitings[first_waiting].since_us, now, state.lost_after_us):
        send_waiting(core, state, i, now)
    _send_due_queries(core, state, i, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _retransmit_or_give_up(core, state, i, now):
    """Retransmit due frames of node ``i``, and remove the neighbors that no longer answer.

    Messages that were pending for a removed neighbor are routed anew.
    """
    repeat(core, state, i, now, state.given_up[0])
    lost_neighbor, pending_row = NONE, np.int64(state.given_up[0].first)
    while pending_row != NONE:
        pending = state.pendings[pending_row]
        next_row, neighbor, message = pending.next, pending.neighbor, pending.message
        if neighbor != lost_neighbor:
            lost_neighbor = neighbor
            lose(core, state, i, neighbor, now)
        message_name = core.messages[message].name
        if pending.waits_for != WAITS_FOR_REFUSAL and message_name in (
            Message.QUERY,
            Message.EVENT,
            Message.NOTIFICATION,
        ):
            route(core, state, i, message, NONE, now)
        free_pending(core, state, pending_row)
        pending_row = next_row


@compiled
def _send_due_queries(core, state, i, now):
    node = state.nodes[i]
    if node.own == 0 and node.queries_due_us == NONE:
        return
    subscription = np.int64(core.nodes[i].first_subscription)
    while subscription != NONE:
        own_query, subscription_record = state.own_queries[subscription], core.subscriptions[subscription]
        if own_query.is_open and subscription_record.expires_us != NONE and subscription_record.expires_us <= now:
            own_query.is_open = 0
            node.own -= 1
        subscription = np.int64(subscription_record.next)
    if not is_attached(state, i):
        return
    are_all_due = node.queries_due_us != NONE and node.queries_due_us <= now
    if are_all_due:
        node.queries_due_us = NONE
    subscription = np.int64(core.nodes[i].first_subscription)
    while subscription != NONE:
        own_query = state.own_queries[subscription]
        if own_query.is_open and (are_all_due or (own_query.refresh_us != NONE and own_query.refresh_us <= now)):
            send_query(core, state, i, subscription, RENEW, now)
        subscription = np.int64(core.subscriptions[subscription].next)


@compiled
def _plan_wake_up(core, state, i, now):
    """End the processing of an input of node ``i``: log changed zones, and set the time of the next wake-up.

    Also raise the number of free rows that the arrays must have (`messages.reserve_room`).
    """
    node = state.nodes[i]
    if node.is_changed:
        log_zones(core, state, i, now)
    due_us = earlier_time(next_due_us(state, i), node.next_expiry_us)
    pending = node.pending.first
    while pending != NONE:
        due_us = earlier_time(due_us, state.pendings[pending].due_us)
        pending = state.pendings[pending].next
    if node.queries_due_us != NONE or node.own:
        has_key = is_attached(state, i)
        if has_key:
            due_us = earlier_time(due_us, node.queries_due_us)
        if node.own:
            subscription = np.int64(core.nodes[i].first_subscription)
            while subscription != NONE:
                own_query = state.own_queries[subscription]
                if own_query.is_open:
                    due_us = earlier_time(due_us, core.subscriptions[subscription].expires_us)
                    if has_key:
                        due_us = earlier_time(due_us, own_query.refresh_us)
                subscription = np.int64(core.subscriptions[subscription].next)
    core.next_wake[i] = due_us
    reserve_room(core, state, i)

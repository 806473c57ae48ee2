"""The fast twin of TinyMQ and of PUB-2-SUB+: the fast engine's version of their nodes, compiled, over arrays.

Its modules have the names of the node's: `overlay`, `positions` (in trees), `keys` (zones and regions), `routing`,
`queries`, `node` (queries, events and notifications), `unicast`, `messages`, `recent`. `memory` defines the arrays of
the nodes' state, and `state` creates them. The rules are those of `tinymq.rules`, compiled.

The header of a unicast frame is a number (`unicast`); queries are identified by their subscriptions, events by their
publications. The twin leaves out what cannot happen in a scenario's run: malformed frames, and frames of a network with
other settings.

Limits
    The twin refuses ``literal=True``, key spaces of more than 62 bits and more subscriptions at a node than
    ``max_queries``. It also refuses runs in which a key grows beyond 4096 bits or a message's region is cut into more
    than 32 intervals.
"""

from __future__ import annotations

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast import memory, state
from workbench.protocols.tinymq.fast.memory import END, RENEW, Message, Number, Problem, Reason
from workbench.protocols.tinymq.fast.messages import (
    copy_message,
    drop_message,
    foresee,
    has_room_for,
    make_event,
    measure,
)
from workbench.protocols.tinymq.fast.node import (
    ask,
    hold_event,
    route,
    send_elsewhere,
    send_to_trees,
    send_what_waits,
    write_hull,
)
from workbench.protocols.tinymq.fast.overlay import (
    answered,
    heard,
    info_soon,
    log_zones,
    lose,
    next_due_us,
    sooner,
    take_grant,
    take_info,
    take_join,
)
from workbench.protocols.tinymq.fast.overlay import start as start_overlay
from workbench.protocols.tinymq.fast.overlay import wake as wake_overlay
from workbench.protocols.tinymq.fast.places import is_attached, link_from
from workbench.protocols.tinymq.fast.queries import end_leases
from workbench.protocols.tinymq.fast.routing import is_astray
from workbench.protocols.tinymq.fast.unicast import (
    acknowledge,
    acknowledged,
    begin,
    free_pending,
    is_new,
    number_of,
    refuse,
    refused,
    repeat,
    reported,
    take,
    wants_ack,
    way_of,
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
    """Return whether the pools have room for the next event of the run, and no problem has occurred."""
    most = state.least_room + core.numbers[twin.Number.MORE]
    state.numbers[Number.WANTED] = most
    return state.numbers[Number.WRONG] == Problem.FINE and has_room_for(core, state, most)


# The event loop calls these functions. They pass numbers on as int64, so that each is compiled for one set of types.


@compiled
def start(core, state, i, now):
    """Begin at node ``i``; a root takes its position."""
    _start(core, state, np.int64(i), np.int64(now))


@compiled
def publish(core, state, i, content, number, now):
    """Send an event of node ``i`` to its rendezvous nodes."""
    _publish(core, state, np.int64(i), np.int64(content), np.int64(number), now)


@compiled
def subscribe(core, state, i, what, now):
    """Send the query of a subscription of node ``i`` to all trees."""
    _subscribe(core, state, np.int64(i), np.int64(what), now)


@compiled
def unsubscribe(core, state, i, what, now):
    """End a subscription: its query is sent again with lease 0. Has no effect if it has already ended."""
    _unsubscribe(core, state, np.int64(i), np.int64(what), now)


@compiled
def receive(core, state, i, sender, message, word, broadcast, now):
    """Take a neighbor's frame; ``header`` is its number, its direction and whether it requests an ack."""
    _receive(core, state, np.int64(i), np.int64(sender), np.int64(message), np.int64(word), now)


@compiled
def sent(core, state, i, receiver, message, word, ok, now):
    """Take the radio's report of a unicast frame."""
    if state.uses_reports:
        _sent(core, state, np.int64(i), np.int64(receiver), np.int64(message), np.int64(word), np.int64(ok), now)


@compiled
def wake(core, state, i, now):
    """Do what is due: send frames again, give neighbors up, join, refresh queries."""
    _wake(core, state, np.int64(i), now)


@compiled
def _start(core, state, i, now):
    if state.numbers[Number.ACKNOWLEDGEMENT] == NONE:
        message = twin.take_message(core, Message.ACK, NONE, 0, NONE, 0, 0)
        measure(core, state, message)
        state.numbers[Number.ACKNOWLEDGEMENT] = message
    state.nodes[i].first_number = twin.stream_below(core, i, U16 + 1)
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
    twin.tell_originated(core, now, i, event, number)
    hold_event(core, state, i, NONE, event, now)
    send_to_trees(core, state, i, event, now)
    twin.let_go(core, event)
    _plan_wake_up(core, state, i, now)


@compiled
def _subscribe(core, state, i, what, now):
    own = state.own_queries[what]
    own.is_asked = 1
    own.round = NONE
    own.refresh_us = NONE
    begin(core, state, i, now)
    state.nodes[i].own += 1
    if is_attached(state, i) and state.nodes[i].ask_again_us == NONE:
        ask(core, state, i, what, RENEW, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _unsubscribe(core, state, i, what, now):
    own = state.own_queries[what]
    begin(core, state, i, now)
    if own.is_asked:
        own.is_asked = 0
        state.nodes[i].own -= 1
        if own.round >= 0:
            ask(core, state, i, what, END, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _receive(core, state, i, sender, message, word, now):
    link = link_from(state, i, sender)
    begin(core, state, i, now)
    heard(state, link, now)
    name = core.messages[message].name
    if name == Message.INFO:
        take_info(core, state, i, sender, link, message, now)
        send_elsewhere(core, state, i, now)
    else:
        answered(core, state, i, sender, link, now)
        if name == Message.ACK:
            acknowledged(core, state, i, sender, word, now)
        elif name == Message.REFUSAL:
            refused(core, state, i, sender, word, now)
        else:
            _take_unicast(core, state, i, sender, link, message, word, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _sent(core, state, i, receiver, message, word, ok, now):
    name = core.messages[message].name
    if name in (Message.ACK, Message.REFUSAL):
        return
    reported(core, state, i, receiver, number_of(word), ok, now)
    if ok:
        link = link_from(state, i, receiver)
        if link != NONE:
            heard(state, link, now)
            answered(core, state, i, receiver, link, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _take_unicast(core, state, i, sender, link, message, word, now):
    number, way = number_of(word), way_of(word)
    if not is_new(state, i, link, number):
        acknowledge(core, state, i, sender, number, word, now)
        drop_message(core, state, i, sender, message, Reason.REPEATED, now)
    elif wants_ack(word) and not _has_room_for(core, state, i, message):
        refuse(core, state, i, sender, number, now)
    elif way != OPEN and is_astray(core, state, i, message, way, sender):
        drop_message(core, state, i, sender, message, Reason.ASTRAY, now)
        if not wants_ack(word):
            refuse(core, state, i, sender, number, now)
        info_soon(core, state, i, now)
    else:
        take(core, state, i, sender, link, number, word, now)
        _take(core, state, i, sender, message, now)


@compiled
def _has_room_for(core, state, i, message):
    """Return whether the pending frames leave room for a message that must be forwarded."""
    name = core.messages[message].name
    if name != Message.EVENT and (name != Message.NOTIFICATION or state.fields[message].sink == i):
        return True
    return rules.may_take_more(state.nodes[i].pending.count, state.max_known, name == Message.EVENT)


@compiled
def _take(core, state, i, sender, message, now):
    name = core.messages[message].name
    if name == Message.JOIN:
        if not take_join(core, state, i, sender, state.fields[message].tree, now):
            drop_message(core, state, i, sender, message, Reason.NO_PLACE, now)
        send_elsewhere(core, state, i, now)
    elif name == Message.GRANT:
        if not take_grant(core, state, i, sender, message, now):
            drop_message(core, state, i, sender, message, Reason.UNASKED, now)
        send_elsewhere(core, state, i, now)
    elif name == Message.PROBE:
        return
    elif state.fields[message].hops >= state.max_hops:
        drop_message(core, state, i, sender, message, twin.Reason.TTL, now)
    else:
        copy = copy_message(core, state, message)
        state.fields[copy].hops += 1
        route(core, state, i, copy, sender, now)
        twin.let_go(core, copy)


@compiled
def _wake(core, state, i, now):
    begin(core, state, i, now)
    _give_up_silent(core, state, i, now)
    wake_overlay(core, state, i, now)
    send_elsewhere(core, state, i, now)
    end_leases(core, state, i, now)
    first = state.nodes[i].waiting.first
    if first != NONE and rules.is_too_old(state.waitings[first].since_us, now, state.lost_after_us):
        send_what_waits(core, state, i, now)
    _ask_what_is_due(core, state, i, now)
    _plan_wake_up(core, state, i, now)


@compiled
def _give_up_silent(core, state, i, now):
    """Send due frames again.

    Neighbors that no longer answer are lost, and the messages to them are routed anew.
    """
    repeat(core, state, i, now, state.given_up[0])
    lost, row = NONE, np.int64(state.given_up[0].first)
    while row != NONE:
        it = state.pendings[row]
        behind, neighbor, message = it.next, it.neighbor, it.message
        if neighbor != lost:
            lost = neighbor
            lose(core, state, i, neighbor, now)
        name = core.messages[message].name
        if it.waits_for != WAITS_FOR_REFUSAL and name in (Message.QUERY, Message.EVENT, Message.NOTIFICATION):
            route(core, state, i, message, NONE, now)
        free_pending(core, state, row)
        row = behind


@compiled
def _ask_what_is_due(core, state, i, now):
    node = state.nodes[i]
    if node.own == 0 and node.ask_again_us == NONE:
        return
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        own, subscription = state.own_queries[what], core.subscriptions[what]
        if own.is_asked and subscription.expires_us != NONE and subscription.expires_us <= now:
            own.is_asked = 0
            node.own -= 1
        what = np.int64(subscription.next)
    if not is_attached(state, i):
        return
    everything = node.ask_again_us != NONE and node.ask_again_us <= now
    if everything:
        node.ask_again_us = NONE
    what = np.int64(core.nodes[i].first_subscription)
    while what != NONE:
        own = state.own_queries[what]
        if own.is_asked and (everything or (own.refresh_us != NONE and own.refresh_us <= now)):
            ask(core, state, i, what, RENEW, now)
        what = np.int64(core.subscriptions[what].next)


@compiled
def _plan_wake_up(core, state, i, now):
    """End a call: log the zones that it changed, and note the next wake-up and the room that it may need."""
    node = state.nodes[i]
    if node.is_changed:
        log_zones(core, state, i, now)
    due_us = sooner(next_due_us(state, i), node.next_expiry_us)
    pending = node.pending.first
    while pending != NONE:
        due_us = sooner(due_us, state.pendings[pending].due_us)
        pending = state.pendings[pending].next
    if node.ask_again_us != NONE or node.own:
        attached = is_attached(state, i)
        if attached:
            due_us = sooner(due_us, node.ask_again_us)
        if node.own:
            what = np.int64(core.nodes[i].first_subscription)
            while what != NONE:
                own = state.own_queries[what]
                if own.is_asked:
                    due_us = sooner(due_us, core.subscriptions[what].expires_us)
                    if attached:
                        due_us = sooner(due_us, own.refresh_us)
                what = np.int64(core.subscriptions[what].next)
    core.next_wake[i] = due_us
    foresee(core, state, i)

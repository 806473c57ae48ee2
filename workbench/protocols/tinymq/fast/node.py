"""Processing of queries, events and notifications: compiled versions of `tinymq.node` and `tinymq.rendezvous`.

A message's *region* is the set of strings (of the key space) that the message has still to reach. A node's *position*
in a tree is its parent, its key and its children there.
"""

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.keys import clip, has_universe, intersect, last_in_universe, load, save, subtract
from workbench.protocols.tinymq.fast.memory import (
    END,
    FIRST_PART,
    INSIDE,
    NO_KEY,
    NO_TREE,
    REST,
    ROOT_KEY,
    Event,
    Message,
    Number,
    Reason,
)
from workbench.protocols.tinymq.fast.messages import (
    address_of,
    copy_message,
    copy_without_region,
    drop_message,
    lacks_room,
    make_notification,
    make_query,
)
from workbench.protocols.tinymq.fast.positions import (
    is_attached,
    is_known_tree,
    keyed_position_in,
    link_from,
    next_hop_to,
    own_tree,
    position_in,
)
from workbench.protocols.tinymq.fast.queries import forget, has_ended, message_to_move, note_path, path, store
from workbench.protocols.tinymq.fast.recent import event_id, find, put
from workbench.protocols.tinymq.fast.routing import NO_NODE, direction_to, is_still_next_hop, next_hop_to_key, split
from workbench.protocols.tinymq.fast.unicast import free_pending, send_to
from workbench.protocols.tinymq.unicast import REFUSAL
from workbench.protocols.tinymq.wire import DOWN, OPEN
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Messages that wait for a position or a path


@compiled
def _keep_for_later(core, state, i, message, previous_hop, now):
    """Append a message to node ``i``'s list of waiting messages; if ``max_waiting`` wait already, drop the oldest."""
    waiting_list = state.nodes[i].waiting
    if waiting_list.count >= state.max_waiting:
        oldest_row = np.int64(waiting_list.first)
        waiting_record = state.waitings[oldest_row]
        drop_message(core, state, i, waiting_record.previous_hop, waiting_record.message, Reason.FULL, now)
        twin.let_go(core, waiting_record.message)
        twin.remove_behind(waiting_list, state.waitings, NONE, oldest_row)
        twin.give_back(state.waitings, state.numbers, Number.FREE_WAITING, oldest_row)
    waiting_row = twin.take_free(state.waitings, state.numbers, Number.FREE_WAITING)
    waiting_record = state.waitings[waiting_row]
    waiting_record.message = message
    waiting_record.previous_hop = previous_hop
    waiting_record.since_us = now
    twin.hold_message(core, message)
    twin.append_behind(waiting_list, state.waitings, waiting_list.last, waiting_row)


@compiled
def send_waiting(core, state, i, now):
    """Route each waiting message of node ``i`` again, and drop those that have waited for too long.

    A message that must still wait is appended to the list again, and the time when its wait began is kept.
    """
    waiting_list = state.nodes[i].waiting
    waiting_row = np.int64(waiting_list.first)
    twin.clear(waiting_list)
    while waiting_row != NONE:
        waiting_record = state.waitings[waiting_row]
        message, previous_hop, since_us, next_row = (
            waiting_record.message,
            waiting_record.previous_hop,
            waiting_record.since_us,
            waiting_record.next,
        )
        twin.give_back(state.waitings, state.numbers, Number.FREE_WAITING, waiting_row)
        if rules.is_too_old(since_us, now, state.lost_after_us):
            drop_message(core, state, i, previous_hop, message, Reason.WAITED, now)
        elif state.fields[message].tree == NO_TREE:
            send_to_trees(core, state, i, message, now)
        else:
            route(core, state, i, message, previous_hop, now)
        if waiting_list.last != NONE and state.waitings[waiting_list.last].message == message:
            # A message that must keep waiting keeps its original time.
            state.waitings[waiting_list.last].since_us = since_us
        twin.let_go(core, message)
        waiting_row = next_row


# Events


@compiled
def hold_event(core, state, i, peer, message, now):
    """Log that node ``i`` holds an event, unless the node remembers that this was logged before.

    ``peer``: the neighbor from which the event came.
    """
    event_fields, node = state.fields[message], state.nodes[i]
    id = event_id(i, event_fields.publication)
    id_row = find(state.recents, id)
    if twin.is_recent(state.recents[id_row].ordinal, node.events, state.max_known):
        return
    is_first = state.recents[id_row].id == 0
    node.events += 1
    put(state, state.recents, Number.RECENTS, id_row, id, node.events, 0)
    twin.report_held(core, now, i, address_of(core, peer), message, event_fields.hops, is_first)


@compiled
def deliver(core, state, i, peer, message, now):
    """Deliver an event to the matching subscriptions of node ``i``, or drop the event if it was delivered before.

    ``peer``: the node from which the event came.
    """
    id = event_id(i, state.fields[message].publication)
    id_row = find(state.recents, id)
    recent_record = state.recents[id_row]
    if twin.is_recent(recent_record.ordinal, state.nodes[i].events, state.max_known) and recent_record.value:
        drop_message(core, state, i, peer, message, twin.Reason.DUPLICATE, now)
        return
    hold_event(core, state, i, peer, message, now)
    recent_record.value = 1
    twin.deliver(core, now, i, address_of(core, peer), message)


@compiled
def _matches(core, query, content):
    subscription, publication = core.subscriptions[query], core.contents[content]
    for sample_row in range(publication.first_sample, publication.last_sample):
        sample = core.samples[sample_row]
        if twin.one_way_match(core.attributes, subscription.first, subscription.last, sample.first, sample.last):
            return True
    return False


@compiled
def _match_event(core, state, i, event, previous_hop, now):
    """Match an event with the queries that node ``i`` stores for the event's tree.

    Send each sink with a matching query one notification; if node ``i`` itself is the sink, deliver the event instead.
    """
    hold_event(core, state, i, previous_hop, event, now)
    tree, content = state.fields[event].tree, core.messages[event].content
    twin.report(core, now, i, Event.EVENT_MATCHED, address_of(core, previous_hop), event, tree, twin.NO_REASON)
    notified_sink = NONE
    stored_row = state.nodes[i].stored.first
    while stored_row != NONE:
        stored_record = state.storeds[stored_row]
        query = state.fields[stored_record.message]
        if query.tree > tree:
            break
        if (
            query.tree == tree
            and query.sink != notified_sink
            and not has_ended(stored_record, now)
            and _matches(core, query.subscription, content)
        ):
            notified_sink = query.sink
            if notified_sink == i:
                deliver(core, state, i, previous_hop, event, now)
            else:
                notification = make_notification(core, state, event, stored_record.message)
                _route_or_keep(core, state, i, notification, NONE, now)
                twin.let_go(core, notification)
        stored_row = stored_record.next


# Routing


@compiled
def _send_or_keep(core, state, i, neighbor, message, direction, previous_hop, now):
    if neighbor == NONE:
        _keep_for_later(core, state, i, message, previous_hop, now)
        return
    twin.report_forwarded(core, now, i, address_of(core, previous_hop), message, 1)
    send_to(core, state, i, neighbor, message, direction, now)


@compiled
def _must_wait(core, state, i, message):
    fields = state.fields[message]
    tree = fields.sink_tree if core.messages[message].name == Message.NOTIFICATION else fields.tree
    position = position_in(state, i, tree)
    return (position != NONE and state.positions[position].key == NO_KEY) or not is_attached(state, i)


@compiled
def _route_notification(core, state, i, message, previous_hop, now):
    notification_fields = state.fields[message]
    if notification_fields.sink == i:
        deliver(core, state, i, previous_hop, message, now)
        return
    if not notification_fields.by_key:
        neighbor = path(state, i, message, previous_hop)
        link = NONE if neighbor == NONE else link_from(state, i, neighbor)
        if link != NONE and state.neighbors[link].is_known:
            _send_or_keep(core, state, i, neighbor, message, OPEN, previous_hop, now)
            return
        message = copy_without_region(core, state, message)
        notification_fields = state.fields[message]
        notification_fields.by_key = 1
    else:
        twin.hold_message(core, message)
    own_position = keyed_position_in(state, i, notification_fields.sink_tree)
    if own_position == NONE:
        neighbor = next_hop_to(state, i, notification_fields.sink_tree)
        _send_or_keep(core, state, i, neighbor, message, OPEN, previous_hop, now)
    else:
        neighbor = next_hop_to_key(state, i, own_position, notification_fields.sink_key)
        if neighbor in (NONE, NO_NODE):
            drop_message(core, state, i, previous_hop, message, Reason.NO_SINK, now)
        else:
            _send_or_keep(
                core, state, i, neighbor, message, direction_to(state, own_position, neighbor), previous_hop, now
            )
    twin.let_go(core, message)


@compiled
def _route_or_keep(core, state, i, message, previous_hop, now):
    """Route a notification, or keep the notification until it can be routed.

    When `route` matches an event, it makes notifications that must be routed too. A compiled function cannot call
    itself, so `route` calls this function for them.
    """
    if lacks_room(core, state, i):
        return
    if _must_wait(core, state, i, message):
        _keep_for_later(core, state, i, message, previous_hop, now)
    else:
        _route_notification(core, state, i, message, previous_hop, now)


@compiled
def route(core, state, i, message, previous_hop, now):
    """Send a query, event or notification to its next hops, or keep the message until it can be routed."""
    if lacks_room(core, state, i):
        return
    message_name = core.messages[message].name
    if message_name == Message.NOTIFICATION:
        _route_or_keep(core, state, i, message, previous_hop, now)
        return
    if _must_wait(core, state, i, message):
        _keep_for_later(core, state, i, message, previous_hop, now)
        return
    if message_name == Message.QUERY and not note_path(state, i, message, previous_hop):
        drop_message(core, state, i, previous_hop, message, Reason.STALE, now)
        return
    tree = state.fields[message].tree
    own_position = keyed_position_in(state, i, tree)
    if own_position == NONE:
        _send_or_keep(core, state, i, next_hop_to(state, i, tree), message, OPEN, previous_hop, now)
        return
    part_count = split(core, state, i, own_position, message)
    if part_count == 0:
        drop_message(core, state, i, previous_hop, message, Reason.NO_ZONE, now)
    else:
        _send_parts(core, state, i, own_position, message, previous_hop, part_count, now)


@compiled
def reroute_pending(core, state, i, now):
    """Remove the pending frames of node ``i`` whose next hops have changed, and route their messages again."""
    pending_list, withdrawn_frames = state.nodes[i].pending, state.given_up[0]
    twin.clear(withdrawn_frames)
    previous_row, pending_row = NONE, np.int64(pending_list.first)
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        if (
            frame.direction == OPEN
            or frame.waits_for == REFUSAL
            or is_still_next_hop(core, state, i, frame.message, frame.direction, frame.neighbor)
        ):
            previous_row, pending_row = pending_row, np.int64(frame.next)
            continue
        next_row = twin.remove_behind(pending_list, state.pendings, previous_row, pending_row)
        twin.append_behind(withdrawn_frames, state.pendings, withdrawn_frames.last, pending_row)
        pending_row = np.int64(next_row)
    pending_row = np.int64(withdrawn_frames.first)
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        next_row, message = frame.next, frame.message
        route(core, state, i, message, NONE, now)
        free_pending(core, state, pending_row)
        pending_row = np.int64(next_row)


@compiled
def _send_parts(core, state, i, position, message, previous_hop, count, now):
    """Send each part of a query or an event to its next hop, in a copy of the message.

    Before the call, `split` must have divided the message into ``count`` parts. If a part is for node ``i`` itself, the
    node stores the query, or matches the event. ``position``: row of the node's position in the tree.
    """
    neighbor_count = 0
    for k in range(count):
        neighbor_count += state.part_hops[k] != NONE
    if neighbor_count:
        twin.report_forwarded(core, now, i, address_of(core, previous_hop), message, neighbor_count)
    for k in range(count):
        if state.part_hops[k] != NONE:
            partial_message = copy_without_region(core, state, message)
            save(state, FIRST_PART + k, partial_message)
            send_to(
                core,
                state,
                i,
                state.part_hops[k],
                partial_message,
                direction_to(state, position, state.part_hops[k]),
                now,
            )
            twin.let_go(core, partial_message)
        elif core.messages[message].name == Message.QUERY:
            intersect(state, FIRST_PART + k, INSIDE, 0, (1 << state.key_bits) - 1)
            store(core, state, i, message, previous_hop, now)
        else:
            _match_event(core, state, i, message, previous_hop, now)


@compiled
def send_to_trees(core, state, i, event, now):
    """Send an event that node ``i`` has published to all trees that can be reached.

    If the protocol's setting ``publish`` is "own", send it only to the tree of the node's nearest root.
    """
    if not is_attached(state, i):
        _keep_for_later(core, state, i, event, NONE, now)
        return
    nearest_tree = own_tree(state, i)
    for tree in range(state.trees):
        if is_known_tree(state, i, tree) if state.publishes_to_all else tree == nearest_tree:
            event_copy = copy_message(core, state, event)
            state.fields[event_copy].tree = tree
            route(core, state, i, event_copy, NONE, now)
            twin.let_go(core, event_copy)


# Own queries


@compiled
def write_hull(state, box, message):
    """Set a message's region to one interval, from the lowest to the highest string in a box.

    ``box``: a row of ``boxes``: in each dimension, the lowest and the highest cell (quantized value). A string consists
    of the bits of one cell in each dimension.
    """
    lowest_string, highest_string = 0, 0
    for dimension in range(len(state.dimension_bits)):
        lowest_string |= state.boxes[box, dimension, 0] << state.dimension_shifts[dimension]
        highest_string |= state.boxes[box, dimension, 1] << state.dimension_shifts[dimension]
    state.regions[message, 0, 0] = lowest_string
    state.regions[message, 0, 1] = highest_string
    state.fields[message].intervals = 1


@compiled
def _lease_s(core, state, subscription, now):
    expires_us = core.subscriptions[subscription].expires_us
    if expires_us == NONE:
        return state.longest_lease_s
    return rules.asked_lease_s(state.longest_lease_s, expires_us, now)


@compiled
def send_query(core, state, i, subscription, end, now):
    """Send the query of a subscription of node ``i`` to every tree that can be reached.

    ``end``: RENEW to renew the query's lease, or END to end it.
    """
    own_query = state.own_queries[subscription]
    own_query.round = rules.next_round(own_query.round)
    lease_s = 0 if end == END else _lease_s(core, state, subscription, now)
    for tree in range(state.trees):
        if not is_known_tree(state, i, tree):
            continue
        sink_tree = tree if keyed_position_in(state, i, tree) != NONE else own_tree(state, i)
        sink_position = NONE if sink_tree == NO_TREE else keyed_position_in(state, i, sink_tree)
        sink_key = ROOT_KEY if sink_position == NONE else state.positions[sink_position].key
        query = make_query(core, state, i, subscription, tree, lease_s, max(sink_tree, 0), sink_key)
        write_hull(state, subscription, query)
        route(core, state, i, query, NONE, now)
        twin.let_go(core, query)
    own_query.refresh_us = now + state.refresh_us if state.refresh_us else NONE


@compiled
def plan_queries(state, i, now):
    """Plan to send all queries of node ``i`` after a short delay, because keys and trees often change together."""
    if state.nodes[i].queries_due_us == NONE:
        state.nodes[i].queries_due_us = now + state.settle_us


# Changes of the overlay


@compiled
def tree_found(core, state, i, now):
    """Send node ``i``'s waiting messages, and plan to send its queries, because it has found a path to a tree."""
    send_waiting(core, state, i, now)
    plan_queries(state, i, now)


@compiled
def child_added(core, state, i, position, child, key, now):
    """Send a new child of node ``i`` those parts of stored queries whose strings begin with the child's key.

    The parts are then removed from node ``i``'s stored queries. ``position``: row of node ``i``'s position in the tree;
    ``key``: row of the child's key.
    """
    tree = state.positions[position].tree
    key_length, lowest_string = state.keys[key].length, state.keys[key].low
    if not has_universe(state, key_length):
        return
    highest_string = last_in_universe(state, lowest_string, key_length)
    previous_row, stored_row = NONE, state.nodes[i].stored.first
    while stored_row != NONE:
        next_row = state.storeds[stored_row].next
        if lacks_room(core, state, i):
            return
        if state.fields[state.storeds[stored_row].message].tree == tree:
            query = message_to_move(core, state, stored_row, now)
            box_row = state.fields[query].box
            load(state, query, REST)
            intersect(state, REST, INSIDE, lowest_string, highest_string)
            clip(state, box_row, INSIDE)
            if state.scratch_counts[INSIDE]:
                save(state, INSIDE, query)
                send_to(core, state, i, child, query, DOWN, now)
                subtract(state, REST, lowest_string, highest_string)
                clip(state, box_row, REST)
                if state.scratch_counts[REST]:
                    save(state, REST, state.storeds[stored_row].message)
                else:
                    forget(core, state, i, previous_row, stored_row, now)
                    stored_row = previous_row
            twin.let_go(core, query)
        previous_row, stored_row = stored_row, next_row


@compiled
def key_changed(core, state, i, position, now):
    """Send waiting messages and route stored queries again, because node ``i`` has a new key in a tree.

    Also plan to send the node's own queries. ``position``: row of the node's position in the tree.
    """
    send_waiting(core, state, i, now)
    tree = state.positions[position].tree
    stored_row = state.nodes[i].stored.first
    while stored_row != NONE:
        if lacks_room(core, state, i):
            return
        next_row = state.storeds[stored_row].next
        query_tree = state.fields[state.storeds[stored_row].message].tree
        if query_tree == tree or keyed_position_in(state, i, query_tree) == NONE:
            query = message_to_move(core, state, stored_row, now)
            forget(core, state, i, _previous_row(state, i, stored_row), stored_row, now)
            route(core, state, i, query, NONE, now)
            twin.let_go(core, query)
        stored_row = next_row
    plan_queries(state, i, now)


@compiled
def _previous_row(state, i, stored):
    """Return the row before row ``stored`` in node ``i``'s list of stored queries; NONE if the row is the first."""
    previous_row, row = NONE, state.nodes[i].stored.first
    while row != stored:
        previous_row, row = row, state.storeds[row].next
    return previous_row

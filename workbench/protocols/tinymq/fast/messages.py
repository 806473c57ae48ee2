"""TinyMQ's messages, compiled: functions that create and copy their rows and compute the sizes of their frames.

The fast engine encodes no frames; it needs only their sizes. Messages that differ in any field have rows of their own.
Each function that makes or copies a message returns its row, with one reference that the caller releases.

A message's *region* is the set of strings (of the key space) that the message has still to reach, as intervals.
"""

import numpy as np

from workbench.protocols.tinymq.fast.keys import has_universe, is_prefix, is_region_within
from workbench.protocols.tinymq.fast.memory import NO_TREE, Message, Number, Problem
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def has_room_for(core, state, needed):
    """Return whether each array of frames, messages, queries, keys and recent ids has ``needed`` free rows."""
    counters = state.numbers
    return (
        counters[Number.FREE_PENDINGS] >= needed
        and counters[Number.FREE_WAITINGS] >= needed
        and counters[Number.FREE_STOREDS] >= needed
        and counters[Number.KEYS] + needed <= len(state.keys)
        and 2 * (counters[Number.RECENTS] + needed) <= len(state.recents)
        and 2 * (counters[Number.PATHS] + needed) <= len(state.paths)
    )


@compiled
def lacks_room(core, state, i):
    """Return whether the arrays may have too few free rows for node ``i`` to process one more message.

    If the result is True, set the problem TOO_LITTLE_ROOM (see `Problem`), which ends the run.
    """
    node = state.nodes[i]
    needed = state.most_parts + node.stored.count + 8
    counters = core.numbers
    if (
        counters[twin.Number.FREE_FRAMES] >= needed
        and counters[twin.Number.FREE_MESSAGES] >= 2 * needed
        and counters[twin.Number.ROWS] + needed + state.most_deliveries <= len(core.rows)
        and has_room_for(core, state, needed)
    ):
        return False
    state.numbers[Number.PROBLEM] = Problem.TOO_LITTLE_ROOM
    return True


@compiled
def address_of(core, i):
    """Return the address of node ``i``, or NONE if ``i`` is negative and stands for no node."""
    return NONE if i < 0 else core.addresses[i]


@compiled
def make_join(core, state, tree):
    """Make a join, which requests a position in a tree; return its row of ``messages``."""
    message = twin.take_message(core, Message.JOIN, NONE, 0, NONE, 0, 0)
    state.fields[message].tree = tree
    return message


@compiled
def make_probe(core):
    """Make a probe, a message that only requests an acknowledgement; return its row of ``messages``."""
    return twin.take_message(core, Message.PROBE, NONE, 0, NONE, 0, 0)


@compiled
def make_refusal(core, state):
    """Make a refusal, the answer to a frame that a node does not accept; return its row of ``messages``.

    The sender of the refused frame sends the frame again later.
    """
    message = twin.take_message(core, Message.REFUSAL, NONE, 0, NONE, 0, 0)
    measure(core, state, message)
    return message


@compiled
def make_grant(core, state, tree, epoch, key):
    """Make a grant, which gives a child its key in a tree; return its row of ``messages``.

    ``epoch``: the newest value of the root's counter; ``key``: the row of the child's key in ``keys``.
    """
    message = twin.take_message(core, Message.GRANT, NONE, 0, NONE, 0, 0)
    fields = state.fields[message]
    fields.tree = tree
    fields.epoch = epoch
    fields.key = key
    return message


@compiled
def make_query(core, state, i, subscription, tree, lease_s, sink_tree, sink_key):
    """Make the query of a subscription of node ``i`` for a tree; return its row of ``messages``.

    The caller writes the query's region. ``lease_s``: seconds until the query expires; ``sink_tree``, ``sink_key``: the
    sink's tree and its key there, to which notifications are routed.
    """
    query_number = core.subscriptions[subscription].number
    message = twin.take_message(core, Message.QUERY, core.addresses[i], query_number, NONE, 0, 0)
    query_fields = state.fields[message]
    query_fields.tree = tree
    query_fields.sink = i
    query_fields.subscription = subscription
    query_fields.round = state.own_queries[subscription].round
    query_fields.lease_s = lease_s
    query_fields.hops = 0
    query_fields.sink_tree = sink_tree
    query_fields.sink_key = sink_key
    query_fields.box = subscription
    query_fields.intervals = 0
    return message


@compiled
def make_event(core, state, i, content, number, publication):
    """Make the event of a publication of node ``i``; return its row of ``messages``.

    The caller writes the event's tree and region. ``content``: row of the publication's content; ``number``: the
    event's sequence number; ``publication``: number of the publication in the run.
    """
    message = twin.take_message(core, Message.EVENT, core.addresses[i], number, content, 0, 0)
    event_fields = state.fields[message]
    event_fields.tree = NO_TREE
    event_fields.hops = 0
    event_fields.publication = publication
    event_fields.box = state.first_content_box + content
    event_fields.intervals = 0
    return message


@compiled
def make_notification(core, state, event, query):
    """Make the notification of ``event`` for the sink of the stored query ``query``; return its row of ``messages``."""
    event_message = core.messages[event]
    message = twin.take_message(
        core, Message.NOTIFICATION, event_message.origin, event_message.sequence, event_message.content, 0, 0
    )
    notification_fields, event_fields, query_fields = state.fields[message], state.fields[event], state.fields[query]
    notification_fields.tree = event_fields.tree
    notification_fields.hops = event_fields.hops
    notification_fields.publication = event_fields.publication
    notification_fields.sink = query_fields.sink
    notification_fields.subscription = query_fields.subscription
    notification_fields.sink_tree = query_fields.sink_tree
    notification_fields.sink_key = query_fields.sink_key
    notification_fields.by_key = 0
    notification_fields.intervals = 0
    return message


@compiled
def copy_without_region(core, state, message):
    """Copy a message without its region, which the caller writes; return the copy's row."""
    message_record = core.messages[message]
    copy = twin.take_message(
        core, message_record.name, message_record.origin, message_record.sequence, message_record.content, 0, 0
    )
    state.fields[copy] = state.fields[message]
    state.fields[copy].intervals = 0
    return copy


@compiled
def copy_message(core, state, message):
    """Copy a message with its region; return the copy's row."""
    copy = copy_without_region(core, state, message)
    interval_count = state.fields[message].intervals
    for k in range(interval_count):
        state.regions[copy, k, 0] = state.regions[message, k, 0]
        state.regions[copy, k, 1] = state.regions[message, k, 1]
    state.fields[copy].intervals = interval_count
    return copy


@compiled
def tree_of(core, state, message):
    """Return the tree in which a query, an event or a notification is routed."""
    fields = state.fields[message]
    return fields.sink_tree if core.messages[message].name == Message.NOTIFICATION else fields.tree


@compiled
def is_within(core, state, message, key):
    """Return whether a message is only for one node of a tree and for the nodes below it.

    ``key``: row of this node's key in ``keys``.
    """
    if core.messages[message].name == Message.NOTIFICATION:
        return is_prefix(state, key, state.fields[message].sink_key)
    return has_universe(state, state.keys[key].length) and is_region_within(state, message, key)


@compiled
def key_B(state, key):
    """Return the number of bytes that a key's bits occupy in a frame; ``key``: the key's row in ``keys``."""
    return (state.keys[key].length + 7) >> 3


@compiled
def measure(core, state, message):
    """Set the size and the airtime of a message's frame, computed from the message's fields."""
    message_record, message_fields = core.messages[message], state.fields[message]
    size_B = state.base_B[message_record.name]
    if message_record.name == Message.GRANT:
        size_B += key_B(state, message_fields.key)
    elif message_record.name == Message.QUERY:
        size_B += key_B(state, message_fields.sink_key) + message_fields.intervals * state.interval_B
        size_B += state.query_attributes_B[message_fields.subscription]
    elif message_record.name == Message.EVENT:
        size_B += message_fields.intervals * state.interval_B + state.event_attributes_B[message_record.content]
    elif message_record.name == Message.NOTIFICATION:
        size_B += key_B(state, message_fields.sink_key) + state.event_attributes_B[message_record.content]
    set_size(core, state, message, size_B)


@compiled
def set_size(core, state, message, size_B):
    """Set the size of a message's frame, and the airtime that follows from it."""
    core.messages[message].size_B = size_B
    core.messages[message].airtime_us = state.airtimes_us[min(size_B, len(state.airtimes_us) - 1)]


@compiled
def drop_message(core, state, i, previous_hop, message, reason, now):
    """Log that node ``i`` dropped a message from ``previous_hop``; ``reason``: a value of `Reason`."""
    _drop(core, i, previous_hop, message, np.int64(reason), now)


@compiled
def _drop(core, i, previous_hop, message, reason, now):
    twin.drop(core, now, i, address_of(core, previous_hop), message, reason)


@compiled
def reserve_room(core, state, i):
    """Raise the number of free rows that the engine keeps, so that node ``i`` can process its next input.

    The number is ``core.numbers[twin.Number.MORE]``: enough rows for all messages that the node and its neighbors may
    send then. It is never lowered here.
    """
    node = state.nodes[i]
    parts_per_message, trees, positions_per_node = state.most_parts + 1, state.trees, state.positions_per_node
    stored_count, pending_count = node.stored.count, node.pending.count
    message_count = stored_count + node.waiting.count
    most_matches = stored_count + state.most_deliveries
    waiting_rows_needed = node.waiting.count * (trees + positions_per_node * most_matches)
    node_rows_needed = parts_per_message * (message_count + pending_count + trees * node.own + 1)
    node_rows_needed += waiting_rows_needed + (pending_count + positions_per_node) * most_matches
    neighbor_rows_needed = (parts_per_message * message_count + waiting_rows_needed) * state.most_neighbors
    core.numbers[twin.Number.MORE] = max(core.numbers[twin.Number.MORE], node_rows_needed, neighbor_rows_needed)

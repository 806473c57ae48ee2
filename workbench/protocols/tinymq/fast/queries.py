"""Stored queries and the reverse paths of queries: the compiled version of `tinymq.queries` for the fast engine.

A node's stored queries are a linked list, sorted by (tree, sink, number). Each entry, a row of ``storeds``, refers to
the query's message, whose *region* is the set of strings (of the key space) for which the node stores the query.
"""

import numpy as np

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.keys import load, save, unite
from workbench.protocols.tinymq.fast.memory import INSIDE, REST, Event, Number, Reason
from workbench.protocols.tinymq.fast.messages import address_of, copy_message, copy_without_region, drop_message
from workbench.protocols.tinymq.fast.recent import find, path_id, put
from workbench.protocols.tinymq.rules import SECOND_US
from workbench.protocols.tinymq.wire import LEASE_FOREVER_S
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# The value of a reverse path packs the round, the previous hop, and the previous hop in the round before. Hops are
# stored plus 1, so that 0 stands for a missing hop.

_HOP, _HOP_BEFORE = 8, 36  # lowest bit of each hop in a value; the round is in bits 0 to 7
_HOPS = (1 << (_HOP_BEFORE - _HOP)) - 1


@compiled
def note_path(state, i, message, previous_hop):
    """Record ``previous_hop`` as the reverse path of a query at node ``i``; return whether the query is up to date.

    The sink sends a query repeatedly, each time with a higher number, its round. The first neighbor that sends the node
    a round becomes the reverse path. If the node has already received a newer round, the result is False, and nothing
    is recorded. ``message``: row of the query.
    """
    query_fields, node = state.fields[message], state.nodes[i]
    id = path_id(i, query_fields.subscription * state.trees + query_fields.tree)
    path_row = find(state.paths, id)
    packed_path = ((previous_hop + 1) << _HOP) | query_fields.round
    if not twin.is_recent(state.paths[path_row].ordinal, node.paths, state.max_known):
        node.paths += 1
        put(state, state.paths, Number.PATHS, path_row, id, node.paths, packed_path)
        return True
    known_round = state.paths[path_row].value & 0xFF
    if rules.is_newer_round(known_round, query_fields.round):
        return False
    if rules.is_newer_round(query_fields.round, known_round):
        earlier_hop = (state.paths[path_row].value >> _HOP) & _HOPS
        state.paths[path_row].value = (earlier_hop << _HOP_BEFORE) | packed_path
    return True


@compiled
def path(state, i, message, previous_hop):
    """Return the next hop of a notification on its query's reverse path, or NONE if node ``i`` has no such path.

    ``message``: row of the notification; ``previous_hop``: the neighbor that sent it. A path that leads back to this
    neighbor is not used; the reverse path of the query's previous round is tried instead. A round is one transmission
    of the query by its sink.
    """
    notification_fields = state.fields[message]
    path_row = find(state.paths, path_id(i, notification_fields.subscription * state.trees + notification_fields.tree))
    if not twin.is_recent(state.paths[path_row].ordinal, state.nodes[i].paths, state.max_known):
        return NONE
    packed_path = state.paths[path_row].value
    hop = ((packed_path >> _HOP) & _HOPS) - 1
    if hop == previous_hop:
        hop = (packed_path >> _HOP_BEFORE) - 1
    return NONE if hop == previous_hop else hop


# Stored queries


@compiled
def _is_before(core, state, first, second):
    first_fields, second_fields = state.fields[first], state.fields[second]
    if first_fields.tree != second_fields.tree:
        return first_fields.tree < second_fields.tree
    if first_fields.sink != second_fields.sink:
        return first_fields.sink < second_fields.sink
    return core.messages[first].sequence < core.messages[second].sequence


@compiled
def _expiry(query, now):
    return NONE if query.lease_s == LEASE_FOREVER_S else now + query.lease_s * SECOND_US


@compiled
def store(core, state, i, query, previous_hop, now):
    """Store or renew a query at node ``i``; if the query's lease is 0, remove the stored query.

    A new query is dropped with the reason FULL if the node stores ``max_queries`` queries already. Before the call, row
    INSIDE of ``scratch``, the array in which regions are computed, must contain the part of the query's region that the
    node stores.
    """
    node, query_fields = state.nodes[i], state.fields[query]
    previous_row, stored_row = NONE, np.int64(node.stored.first)
    while stored_row != NONE and _is_before(core, state, state.storeds[stored_row].message, query):
        previous_row, stored_row = stored_row, state.storeds[stored_row].next
    is_known = stored_row != NONE and not _is_before(core, state, query, state.storeds[stored_row].message)
    if query_fields.lease_s == 0:
        if is_known:
            forget(core, state, i, previous_row, stored_row, now)
        return
    if not is_known and node.stored.count >= state.max_queries:
        drop_message(core, state, i, previous_hop, query, Reason.FULL, now)
        return
    query_copy = copy_without_region(core, state, query)
    expires_us = _expiry(query_fields, now)
    if is_known:
        _extend_stored_region(core, state, state.storeds[stored_row].message, query_copy)
    else:
        save(state, INSIDE, query_copy)
        text_code = core.subscriptions[query_fields.subscription].detail
        twin.report(
            core, now, i, Event.QUERY_STORED, address_of(core, previous_hop), query, query_fields.tree + 1, text_code
        )
        stored_row = twin.take_free(state.storeds, state.numbers, Number.FREE_STORED)
        twin.append_behind(node.stored, state.storeds, previous_row, stored_row)
    state.storeds[stored_row].message = query_copy
    state.storeds[stored_row].expires_us = expires_us
    if expires_us != NONE and (node.next_expiry_us == NONE or expires_us < node.next_expiry_us):
        node.next_expiry_us = expires_us


@compiled
def _extend_stored_region(core, state, stored_message, copy):
    """Set the region of the message ``copy`` to the union of the regions of a stored message and of row INSIDE.

    INSIDE is a row of ``scratch``. The stored message is released, because the caller stores ``copy`` instead of it.
    """
    load(state, stored_message, REST)
    save(state, REST, copy)
    unite(state, copy, INSIDE)
    twin.let_go(core, stored_message)


@compiled
def forget(core, state, i, previous, row, now):
    """Remove a stored query of node ``i``.

    ``row``: the query's row of ``storeds``; ``previous``: the row before it in the node's list, NONE for the first row.
    """
    stored_record = state.storeds[row]
    text_code = core.subscriptions[state.fields[stored_record.message].subscription].detail
    twin.report(
        core,
        now,
        i,
        Event.QUERY_STORED,
        NONE,
        stored_record.message,
        -1 - state.fields[stored_record.message].tree,
        text_code,
    )
    twin.let_go(core, stored_record.message)
    twin.remove_behind(state.nodes[i].stored, state.storeds, previous, row)
    twin.give_back(state.storeds, state.numbers, Number.FREE_STORED, row)


@compiled
def has_ended(stored, now):
    """Return whether the lease of ``stored``, a row of ``storeds``, has ended."""
    return stored.expires_us != NONE and stored.expires_us <= now


@compiled
def message_to_move(core, state, row, now):
    """Return a copy of a stored query's message, with the remaining lease, to send to another node.

    ``row``: the stored query's row of ``storeds``.
    """
    stored_record = state.storeds[row]
    query_copy = copy_message(core, state, stored_record.message)
    if stored_record.expires_us != NONE:
        state.fields[query_copy].lease_s = rules.lease_left_s(stored_record.expires_us, now)
    return query_copy


@compiled
def end_leases(core, state, i, now):
    """Remove the stored queries of node ``i`` whose leases have ended."""
    node = state.nodes[i]
    if node.next_expiry_us == NONE or node.next_expiry_us > now:
        return
    earliest_us = NONE
    previous_row, stored_row = NONE, np.int64(node.stored.first)
    while stored_row != NONE:
        stored_record = state.storeds[stored_row]
        next_row, expires_us = stored_record.next, stored_record.expires_us
        if has_ended(stored_record, now):
            forget(core, state, i, previous_row, stored_row, now)
        else:
            previous_row = stored_row
            if expires_us != NONE and (earliest_us == NONE or expires_us < earliest_us):
                earliest_us = expires_us
        stored_row = next_row
    node.next_expiry_us = earliest_us

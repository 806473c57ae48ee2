"""Stored queries and the reverse paths of queries, compiled: `tinymq.queries`.

A node's stored queries are a linked list, sorted by (tree, sink, number); each entry refers to its message.
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

# Reverse paths: the round, the previous hop, and that of the round before. A hop is stored plus 1.

_HOP, _HOP_BEFORE = 8, 36  # where the hops begin in a value
_HOPS = (1 << (_HOP_BEFORE - _HOP)) - 1


@compiled
def note_path(state, i, message, previous_hop):
    """Note the neighbor from which a query came; returns False if a newer round is known already."""
    it, node = state.fields[message], state.nodes[i]
    id = path_id(i, it.what * state.trees + it.tree)
    row = find(state.paths, id)
    value = ((previous_hop + 1) << _HOP) | it.round
    if not twin.is_recent(state.paths[row].ordinal, node.paths, state.max_known):
        node.paths += 1
        put(state, state.paths, Number.PATHS, row, id, node.paths, value)
        return True
    known = state.paths[row].value & 0xFF
    if rules.is_newer_round(known, it.round):
        return False
    if rules.is_newer_round(it.round, known):
        before = (state.paths[row].value >> _HOP) & _HOPS
        state.paths[row].value = (before << _HOP_BEFORE) | value
    return True


@compiled
def path(state, i, message, previous_hop):
    """Return the next hop of a notification on its query's reverse path, or NONE: `QueryStore.path`."""
    it = state.fields[message]
    row = find(state.paths, path_id(i, it.what * state.trees + it.tree))
    if not twin.is_recent(state.paths[row].ordinal, state.nodes[i].paths, state.max_known):
        return NONE
    value = state.paths[row].value
    hop = ((value >> _HOP) & _HOPS) - 1
    if hop == previous_hop:
        hop = (value >> _HOP_BEFORE) - 1
    return NONE if hop == previous_hop else hop


# Stored queries


@compiled
def _is_before(core, state, one, other):
    a, b = state.fields[one], state.fields[other]
    if a.tree != b.tree:
        return a.tree < b.tree
    if a.sink != b.sink:
        return a.sink < b.sink
    return core.messages[one].sequence < core.messages[other].sequence


@compiled
def _expiry(query, now):
    return NONE if query.lease_s == LEASE_FOREVER_S else now + query.lease_s * SECOND_US


@compiled
def store(core, state, i, query, previous_hop, now):
    """Store or renew a query with the region in INSIDE; remove it if its lease is 0."""
    node, it = state.nodes[i], state.fields[query]
    before, row = NONE, np.int64(node.stored.first)
    while row != NONE and _is_before(core, state, state.storeds[row].message, query):
        before, row = row, state.storeds[row].next
    is_known = row != NONE and not _is_before(core, state, query, state.storeds[row].message)
    if it.lease_s == 0:
        if is_known:
            forget(core, state, i, before, row, now)
        return
    if not is_known and node.stored.count >= state.max_queries:
        drop_message(core, state, i, previous_hop, query, Reason.FULL, now)
        return
    copy = copy_without_region(core, state, query)
    expires_us = _expiry(it, now)
    if is_known:
        _unite_with_inside(core, state, state.storeds[row].message, copy)
    else:
        save(state, INSIDE, copy)
        detail = core.subscriptions[it.what].detail
        twin.tell(core, now, i, Event.QUERY_STORED, address_of(core, previous_hop), query, it.tree + 1, detail)
        row = twin.take_free(state.storeds, state.numbers, Number.FREE_STORED)
        twin.append_behind(node.stored, state.storeds, before, row)
    state.storeds[row].message = copy
    state.storeds[row].expires_us = expires_us
    if expires_us != NONE and (node.next_expiry_us == NONE or expires_us < node.next_expiry_us):
        node.next_expiry_us = expires_us


@compiled
def _unite_with_inside(core, state, old, copy):
    """Set a copy's region to the union of the old message's region and INSIDE, and release the old message."""
    load(state, old, REST)
    save(state, REST, copy)
    unite(state, copy, INSIDE)
    twin.let_go(core, old)


@compiled
def forget(core, state, i, before, row, now):
    """Remove a stored query; ``previous``: the row before it in the list, or NONE."""
    it = state.storeds[row]
    detail = core.subscriptions[state.fields[it.message].what].detail
    twin.tell(core, now, i, Event.QUERY_STORED, NONE, it.message, -1 - state.fields[it.message].tree, detail)
    twin.let_go(core, it.message)
    twin.remove_behind(state.nodes[i].stored, state.storeds, before, row)
    twin.give_back(state.storeds, state.numbers, Number.FREE_STORED, row)


@compiled
def is_over(stored, now):
    """Return whether a stored query's lease has ended."""
    return stored.expires_us != NONE and stored.expires_us <= now


@compiled
def take_out(core, state, row, now):
    """Copy a stored query into a message with the rest of its lease; it stays stored."""
    it = state.storeds[row]
    copy = copy_message(core, state, it.message)
    if it.expires_us != NONE:
        state.fields[copy].lease_s = rules.lease_left_s(it.expires_us, now)
    return copy


@compiled
def end_leases(core, state, i, now):
    """Remove the queries whose leases have ended."""
    node = state.nodes[i]
    if node.next_expiry_us == NONE or node.next_expiry_us > now:
        return
    earliest = NONE
    before, row = NONE, np.int64(node.stored.first)
    while row != NONE:
        it = state.storeds[row]
        behind, expires_us = it.next, it.expires_us
        if is_over(it, now):
            forget(core, state, i, before, row, now)
        else:
            before = row
            if expires_us != NONE and (earliest == NONE or expires_us < earliest):
                earliest = expires_us
        row = behind
    node.next_expiry_us = earliest

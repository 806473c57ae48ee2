"""Stored queries and the ways that queries came, in the kernel: `tinymq.queries`.

A node's stored queries are a list in the order of (tree, sink, number); each holds its message.
"""

from workbench.protocols.tinymq.fast.keys import load, save, unite
from workbench.protocols.tinymq.fast.memory import FREE_STORED, FREE_STOREDS, INSIDE, NOBODY, PATHS, REST
from workbench.protocols.tinymq.fast.messages import address_of, copy_message, copy_without_region, drop_message
from workbench.protocols.tinymq.fast.names import FULL, QUERY_STORED
from workbench.protocols.tinymq.fast.recent import find, is_recent, path_id, put
from workbench.protocols.tinymq.wire import LEASE_FOREVER_S
from workbench.sim.fast.air import let_go
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.record import tell
from workbench.sim.fast.reference import inlined, outlined

SECOND_US = 1_000_000


# The ways that queries came


@inlined
def _is_newer(one, known):
    return 0 < (one - known) & 0xFF < 128


@outlined
def note_path(state, i, message, previous_hop):
    """Note where a query came from; False for one of an older round than is known already."""
    it, node = state.fields[message], state.nodes[i]
    id = path_id(i, it.what * state.trees + it.tree)
    place = find(state.paths, id)
    value = ((previous_hop + 1) << 8) | it.round
    if not is_recent(state, state.paths, place, node.paths):
        node.paths += 1
        put(state, state.paths, PATHS, place, id, node.paths, value)
        return True
    known = state.paths[place].value & 0xFF
    if _is_newer(known, it.round):
        return False
    if _is_newer(it.round, known):
        state.paths[place].value = value
    return True


@outlined
def path(state, i, message):
    """The neighbor that the query which a notification answers came from, or NONE."""
    it = state.fields[message]
    place = find(state.paths, path_id(i, it.what * state.trees + it.tree))
    if not is_recent(state, state.paths, place, state.nodes[i].paths):
        return NONE
    return (state.paths[place].value >> 8) - 1


# What is stored


@inlined
def _is_before(core, state, one, other):
    a, b = state.fields[one], state.fields[other]
    if a.tree != b.tree:
        return a.tree < b.tree
    if a.sink != b.sink:
        return a.sink < b.sink
    return core.messages[one].sequence < core.messages[other].sequence


@inlined
def _expiry(query, now):
    return NONE if query.lease_s == LEASE_FOREVER_S else now + query.lease_s * SECOND_US


@outlined
def store(core, state, i, query, previous_hop, now):
    """Store a query's part in INSIDE, renew it, or with lease 0 forget it."""
    node, it = state.nodes[i], state.fields[query]
    before, place = NOBODY, node.first_stored
    while place != NONE and _is_before(core, state, state.storeds[place].message, query):
        before, place = place, state.storeds[place].next
    known = place if place != NONE and not _is_before(core, state, query, state.storeds[place].message) else NONE
    if it.lease_s == 0:
        if known != NONE:
            forget(core, state, i, before, known, now)
        return
    if known == NONE and node.stored >= state.max_queries:
        drop_message(core, state, i, previous_hop, query, FULL, now)
        return
    copy = copy_without_region(core, state, query)
    expires_us = _expiry(it, now)
    if known == NONE:
        save(state, INSIDE, copy)
        tell(core, now, i, QUERY_STORED, address_of(core, previous_hop), query, 1, core.subscriptions[it.what].detail)
        known = state.numbers[FREE_STORED]
        state.numbers[FREE_STORED] = state.storeds[known].next
        state.numbers[FREE_STOREDS] -= 1
        state.storeds[known].next = place
        if before == NONE:
            node.first_stored = known
        else:
            state.storeds[before].next = known
        node.stored += 1
    else:
        old = state.storeds[known].message
        load(state, old, REST)
        save(state, REST, copy)
        unite(state, copy, INSIDE)
        let_go(core, old)
    state.storeds[known].message = copy
    state.storeds[known].expires_us = expires_us
    if expires_us != NONE and (node.next_expiry_us == NONE or expires_us < node.next_expiry_us):
        node.next_expiry_us = expires_us


@outlined
def forget(core, state, i, before, place, now):
    """Remove a stored query; ``before``: the one in front of it, or NONE."""
    node, it = state.nodes[i], state.storeds[place]
    detail = core.subscriptions[state.fields[it.message].what].detail
    tell(core, now, i, QUERY_STORED, NONE, it.message, 0, detail)
    let_go(core, it.message)
    if before == NONE:
        node.first_stored = it.next
    else:
        state.storeds[before].next = it.next
    node.stored -= 1
    it.next = state.numbers[FREE_STORED]
    state.numbers[FREE_STORED] = place
    state.numbers[FREE_STOREDS] += 1


@inlined
def is_over(stored, now):
    """Whether a stored query's lease has ended."""
    return stored.expires_us != NONE and stored.expires_us <= now


@outlined
def take_out(core, state, place, now):
    """The stored query as a message of its own, with what is left of its lease; it stays stored."""
    it = state.storeds[place]
    copy = copy_message(core, state, it.message)
    if it.expires_us != NONE:
        state.fields[copy].lease_s = max(1, -((now - it.expires_us) // SECOND_US))
    return copy


@outlined
def end_leases(core, state, i, now):
    """Forget the queries whose lease is over."""
    node = state.nodes[i]
    if node.next_expiry_us == NONE or node.next_expiry_us > now:
        return
    earliest = NONE
    before, place = NOBODY, node.first_stored
    while place != NONE:
        it = state.storeds[place]
        behind, expires_us = it.next, it.expires_us
        if is_over(it, now):
            forget(core, state, i, before, place, now)
        else:
            before = place
            if expires_us != NONE and (earliest == NONE or expires_us < earliest):
                earliest = expires_us
        place = behind
    node.next_expiry_us = earliest

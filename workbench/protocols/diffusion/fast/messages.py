"""Messages of TinyDiffusion's twin: what is sent, what has been seen, whom a node does not listen to."""

from workbench.protocols.diffusion.fast.memory import Message
from workbench.protocols.diffusion.rules import may_explore
from workbench.protocols.diffusion.wire import DATA_HEADER_B, INTEREST_HEADER_B, U32
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def take_sequence(state, i):
    """The next sequence number of node ``i``'s messages."""
    state.nodes[i].messages += 1
    return (state.nodes[i].messages - 1) & U32


@compiled
def make(core, state, name, origin, sequence, number, round_, expiration_s):
    """A message from the node at place ``origin`` with the attributes of a list; whoever makes it lets it go."""
    header_B = 1 + (DATA_HEADER_B if name == Message.DATA else INTEREST_HEADER_B)
    size_B = header_B + state.lists[number].size_B
    airtime_us = state.airtimes_us[size_B]
    message = twin.take_message(core, name, core.addresses[origin], sequence, number, size_B, airtime_us)
    fields = state.interest_fields[message]
    fields.origin = origin
    fields.round = round_
    fields.expiration_s = expiration_s
    fields.is_aggregate = 0
    fields.others = 0
    return message


@compiled
def changed(core, state, message, number):
    """The same message with other attributes."""
    it = core.messages[message]
    fields = state.interest_fields[message]
    other = make(core, state, it.name, fields.origin, it.sequence, number, fields.round, fields.expiration_s)
    state.interest_fields[other].is_aggregate = state.interest_fields[message].is_aggregate
    return other


@compiled
def copied(core, state, message):
    """Return the same data message without a list of sinks; whoever makes it lets it go."""
    it, fields = core.messages[message], state.interest_fields[message]
    copy = make(core, state, it.name, fields.origin, it.sequence, it.content, 0, 0)
    state.interest_fields[copy].is_aggregate = state.interest_fields[message].is_aggregate
    return copy


# What has been seen


@compiled
def id_of(origin, sequence):
    """A message's id: its origin's place and its number there."""
    return (origin << 32) | sequence


@compiled
def seen_data_index(state, i, id):
    """Return the index of an id among the data that node ``i`` remembers, or NONE."""
    return twin.find_newest_first(state.seen_data[i], state.nodes[i].seen_data, id)


@compiled
def note_data(state, i, id, sender, ttl, now):
    """Remember an id that node ``i`` does not know, in place of the oldest if there is no room; return its index."""
    index = twin.remember(state.seen_data[i], state.nodes[i].seen_data, id)
    it = state.seen_data_more[i, index]
    it.time_us = now
    it.sender = sender
    it.ttl = ttl
    it.retries = 0
    it.is_settled = 0
    for word in range(state.served.shape[2]):
        state.served[i, index, word] = 0
    return index


@compiled
def gradients_to_try(state, i, now):
    """How many gradients of a sink carry new data: one alone if its copies might be back when it is forgotten."""
    most = state.exploratory_gradients
    if most > 1:
        ring = state.nodes[i].seen_data
        is_full = ring.count >= state.max_data
        if not may_explore(is_full, state.seen_data_more[i, ring.oldest].time_us, now):
            most = 1
    return most


@compiled
def _index_of_interest(state, i, id):
    for index in range(state.nodes[i].seen_interests):
        if state.seen_interests[i, index].id == id:
            return index
    return NONE


@compiled
def known_round(state, i, id, now):
    """The round under which node ``i`` knows an interest, NONE if it does not or has not heard it for too long."""
    index = _index_of_interest(state, i, id)
    if index == NONE or now - state.seen_interests[i, index].time_us >= state.known_for_us:
        return NONE
    return state.seen_interests[i, index].round


@compiled
def note_interest(state, i, id, round_, now):
    """Node ``i`` remembers an interest's round, in place of the one not heard for longest if its memory is full."""
    node, seen = state.nodes[i], state.seen_interests[i]
    index = _index_of_interest(state, i, id)
    if index == NONE and node.seen_interests < len(seen):
        index = node.seen_interests
        node.seen_interests += 1
    elif index == NONE:
        index = 0
        for other in range(1, len(seen)):
            first, it = seen[index], seen[other]
            if it.time_us < first.time_us or (it.time_us == first.time_us and it.id < first.id):
                index = other
    it = seen[index]
    it.id = id
    it.round = round_
    it.time_us = now


@compiled
def is_black(state, i, neighbor):
    """Whether a neighbor is on node ``i``'s black list."""
    found = False
    for place in range(state.black_first[i], state.black_first[i + 1]):
        found = found or (state.black[place] == neighbor)
    return found

"""Messages in the fast engine: create, copy and remember messages; look up black lists."""

from workbench.protocols.diffusion.fast.memory import Message
from workbench.protocols.diffusion.rules import may_explore
from workbench.protocols.diffusion.wire import DATA_HEADER_B, INTEREST_HEADER_B, U32
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def take_sequence(state, i):
    """Return the sequence number for a new message of node ``i``, and count the message."""
    state.nodes[i].messages += 1
    return (state.nodes[i].messages - 1) & U32


@compiled
def make_message(core, state, name, origin, sequence, list_id, round_, expiration_s):
    """Return a new message of node ``origin`` with the attribute list ``list_id``.

    ``name``: the kind of message (`memory.Message`). The caller releases the message with `let_go`.
    """
    header_B = 1 + (DATA_HEADER_B if name == Message.DATA else INTEREST_HEADER_B)
    size_B = header_B + state.lists[list_id].size_B
    airtime_us = state.airtimes_us[size_B]
    message = twin.take_message(core, name, core.addresses[origin], sequence, list_id, size_B, airtime_us)
    fields = state.message_fields[message]
    fields.origin = origin
    fields.round = round_
    fields.expiration_s = expiration_s
    fields.is_aggregate = 0
    fields.listed_sinks = 0
    return message


@compiled
def with_attributes(core, state, message, list_id):
    """Return a copy of a message with the attribute list ``list_id``; the caller releases the copy with `let_go`."""
    message_record = core.messages[message]
    fields = state.message_fields[message]
    new_message = make_message(
        core,
        state,
        message_record.name,
        fields.origin,
        message_record.sequence,
        list_id,
        fields.round,
        fields.expiration_s,
    )
    state.message_fields[new_message].is_aggregate = state.message_fields[message].is_aggregate
    return new_message


@compiled
def copy_data(core, state, message):
    """Return a copy of a data message without its list of sinks; the caller releases the copy with `let_go`."""
    message_record, fields = core.messages[message], state.message_fields[message]
    copied_message = make_message(
        core, state, message_record.name, fields.origin, message_record.sequence, message_record.content, 0, 0
    )
    state.message_fields[copied_message].is_aggregate = state.message_fields[message].is_aggregate
    return copied_message


# Messages already seen


@compiled
def id_of(origin, sequence):
    """Return a message's id: the index of its source or sink (high bits) and its sequence number (low 32 bits)."""
    return (origin << 32) | sequence


@compiled
def seen_data_index(state, i, id):
    """Return the index of a message, given by its id, in the data that node ``i`` remembers, or NONE."""
    return twin.find_newest_first(state.seen_data[i], state.nodes[i].seen_data, id)


@compiled
def note_data(state, i, id, sender, ttl, now):
    """Remember a data message that is new to node ``i``, in place of the oldest if memory is full; return its index."""
    index = twin.remember(state.seen_data[i], state.nodes[i].seen_data, id)
    seen_message = state.seen_data_more[i, index]
    seen_message.time_us = now
    seen_message.sender = sender
    seen_message.ttl = ttl
    seen_message.retries = 0
    seen_message.is_settled = 0
    for word_index in range(state.served.shape[2]):
        state.served[i, index, word_index] = 0
    return index


@compiled
def count_gradients_to_use(state, i, now):
    """Return the number of gradients per sink along which node ``i`` sends new data: 1 or ``exploratory_gradients``.

    The result is 1 if the node's list of seen data is full and reaches back only a short time (`may_explore`). Then the
    node might not recognize copies that come back.
    """
    max_gradients = state.exploratory_gradients
    if max_gradients > 1:
        seen_messages = state.nodes[i].seen_data
        is_full = seen_messages.count >= state.max_data
        if not may_explore(is_full, state.seen_data_more[i, seen_messages.oldest].time_us, now):
            max_gradients = 1
    return max_gradients


@compiled
def _index_of_interest(state, i, id):
    for index in range(state.nodes[i].seen_interests):
        if state.seen_interests[i, index].id == id:
            return index
    return NONE


@compiled
def known_round(state, i, id, now):
    """Return the round in which node ``i`` last heard the interest ``id``, or NONE.

    The result is NONE if the node never heard the interest, or too long ago to compare its round with a new round.
    """
    index = _index_of_interest(state, i, id)
    if index == NONE or now - state.seen_interests[i, index].time_us >= state.known_for_us:
        return NONE
    return state.seen_interests[i, index].round


@compiled
def note_interest(state, i, id, round_, now):
    """Record that node ``i`` heard the interest ``id`` now in round ``round_``.

    If the node's memory is full, it forgets the interest that it has not heard for the longest time.
    """
    node, seen_interests = state.nodes[i], state.seen_interests[i]
    index = _index_of_interest(state, i, id)
    if index == NONE and node.seen_interests < len(seen_interests):
        index = node.seen_interests
        node.seen_interests += 1
    elif index == NONE:
        index = 0
        for other_index in range(1, len(seen_interests)):
            oldest_interest, interest_record = seen_interests[index], seen_interests[other_index]
            if interest_record.time_us < oldest_interest.time_us or (
                interest_record.time_us == oldest_interest.time_us and interest_record.id < oldest_interest.id
            ):
                index = other_index
    interest_record = seen_interests[index]
    interest_record.id = id
    interest_record.round = round_
    interest_record.time_us = now


@compiled
def find_in_black_list(state, i, neighbor):
    """Return the index in ``state.black`` of a neighbor that is on node ``i``'s black list; NONE if it is not."""
    first_index = state.black_first[i]
    for index in range(first_index, first_index + state.black_counts[i]):
        if state.black[index] == neighbor:
            return index
    return NONE

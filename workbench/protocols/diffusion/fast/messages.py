"""Messages of TinyDiffusion's twin: what is sent, what has been seen, whom a node does not listen to."""

from workbench.protocols.diffusion.fast.memory import DATA_NAME
from workbench.protocols.diffusion.wire import DATA_HEADER_B, INTEREST_HEADER_B, U32
from workbench.sim.fast.air import take_message
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.recent import find_newest_first, note
from workbench.sim.fast.reference import inlined, outlined


@inlined
def take_sequence(state, i):
    """The next sequence number of node ``i``'s messages."""
    state.nodes[i].messages += 1
    return (state.nodes[i].messages - 1) & U32


@outlined
def make(core, state, name, origin, sequence, number, round_, expiration_s):
    """A message from the node at place ``origin`` with the attributes of a list; whoever makes it lets it go."""
    header_B = 1 + (DATA_HEADER_B if name == DATA_NAME else INTEREST_HEADER_B)
    size_B = header_B + state.lists[number].size_B
    airtime_us = state.airtimes_us[size_B]
    message = take_message(core, name, core.addresses[origin], sequence, number, size_B, airtime_us)
    fields = state.interest_fields[message]
    fields.origin = origin
    fields.round = round_
    fields.expiration_s = expiration_s
    return message


@inlined
def changed(core, state, message, number):
    """The same message with other attributes."""
    it = core.messages[message]
    fields = state.interest_fields[message]
    return make(core, state, it.name, fields.origin, it.sequence, number, fields.round, fields.expiration_s)


# What has been seen


@inlined
def id_of(origin, sequence):
    """A message's id: its origin's place and its number there."""
    return (origin << 32) | sequence


@inlined
def has_seen_data(state, i, id):
    """Whether an id is among the data that node ``i`` remembers."""
    return find_newest_first(state.seen_data[i], state.nodes[i].seen_data, id) != NONE


@outlined
def note_data(state, i, id):
    """Node ``i`` remembers an id that it does not know, in place of the oldest if its memory is full."""
    note(state.seen_data[i], state.nodes[i].seen_data, id)


@inlined
def known_round(state, i, id):
    """The round under which node ``i`` knows an interest or a reinforcement, NONE if it does not."""
    place = find_newest_first(state.seen_interests[i], state.nodes[i].seen_interests, id)
    return NONE if place == NONE else state.seen_rounds[i, place]


@outlined
def note_interest(state, i, id, round_):
    """Node ``i`` remembers an interest's round, in place of the oldest id if its memory is full."""
    ids, ring = state.seen_interests[i], state.nodes[i].seen_interests
    place = find_newest_first(ids, ring, id)
    if place == NONE:
        place = note(ids, ring, id)
    state.seen_rounds[i, place] = round_


@inlined
def is_black(state, i, neighbor):
    """Whether a neighbor is on node ``i``'s black list."""
    found = False
    for place in range(state.black_first[i], state.black_first[i + 1]):
        found = found or (state.black[place] == neighbor)
    return found

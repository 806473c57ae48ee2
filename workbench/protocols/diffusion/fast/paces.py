"""How often a source sends readings to each sink, in the fast engine; `diffusion.pacing` has the same rules.

A pace is an element of ``state.paces[i]``, a FIFO of node ``i``. It belongs to an entry of the node's interest cache
and to a sink. It has the INTERVAL of the sink's interest (the shortest time between readings), and the time of the last
reading that was sent to the sink.
"""

from workbench.protocols.diffusion import pacing
from workbench.protocols.diffusion.fast.attributes import interval_us, matches
from workbench.protocols.diffusion.fast.memory import Event, Message, Number
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

is_due = compiled(pacing.is_due)


@compiled
def set_pace(state, i, entry, sink, list_id):
    """Store how often node ``i`` sends readings to a sink: the INTERVAL of the sink's interest or reinforcement.

    ``entry``: the interest's entry in the node's interest cache; ``list_id``: the attribute list of the interest or
    reinforcement.
    """
    sink_interval_us = interval_us(state, list_id)
    index = _find(state, i, entry, sink)
    paces = state.paces[i]
    if index == NONE:
        if sink_interval_us == 0:
            return
        if state.nodes[i].paces == len(paces):
            _remove(state, i, 0)
        index = state.nodes[i].paces
        state.nodes[i].paces += 1
        paces[index].entry = entry
        paces[index].sink = sink
        paces[index].last_us = NONE
    paces[index].interval_us = sink_interval_us


@compiled
def _find(state, i, entry, sink):
    for index in range(state.nodes[i].paces):
        if state.paces[i, index].entry == entry and state.paces[i, index].sink == sink:
            return index
    return NONE


@compiled
def remove_paces(state, i, entry):
    """Remove the stored INTERVALs (paces) of a cache entry that leaves node ``i``'s interest cache."""
    index = 0
    while index < state.nodes[i].paces:
        if state.paces[i, index].entry == entry:
            _remove(state, i, index)
        else:
            index += 1


@compiled
def _remove(state, i, index):
    state.nodes[i].paces -= 1
    for position in range(index, state.nodes[i].paces):
        state.paces[i, position] = state.paces[i, position + 1]


@compiled
def find_early_sinks(core, state, i, sample_index, published_us, now):
    """Find the sinks that must not get a sample yet, because their INTERVAL has not passed; report each as an event.

    Return whether the sample is due for any other sink. ``sample_index``: index of the sample in ``state.wanted``, the
    samples that match an interest. The sinks found are stored in row ``sample_index`` of ``state.early_sinks``.
    ``published_us``: when the sample was published (µs).
    """
    sample = state.wanted[sample_index]
    # Sinks that are due have this stamp in ``skip_stamp``, sinks for which it is too early in ``sink_stamp``.
    stamp = state.numbers[Number.STAMP] + 1
    state.numbers[Number.STAMP] = stamp
    is_due_now = False
    early_count = 0
    for index in range(state.nodes[i].entries):
        entry = state.order[i, index]
        if not matches(state, state.entries[entry].list, sample.list):
            continue
        for gradient_index in range(state.entries[entry].gradients):
            sink = state.gradients[entry, gradient_index].sink
            if _is_first_gradient(state, entry, gradient_index):
                pace = _find(state, i, entry, sink)
                if pace == NONE:
                    is_early = False
                else:
                    pace_record = state.paces[i, pace]
                    is_early = not is_due(published_us, pace_record.last_us, pace_record.interval_us)
                    if not is_early:
                        pace_record.last_us = published_us
                if not is_early:
                    state.skip_stamp[sink] = stamp
                    is_due_now = True
                elif state.sink_stamp[sink] != stamp:
                    state.sink_stamp[sink] = stamp
                    state.early_sinks[sample_index, early_count] = sink
                    early_count += 1
    # Keep the sinks that are not due for another interest, in the order of their addresses, which is that of nodes.
    for index in range(early_count):
        sink = state.early_sinks[sample_index, index]
        if state.skip_stamp[sink] != stamp:
            position = sample.early
            while position > 0 and state.early_sinks[sample_index, position - 1] > sink:
                state.early_sinks[sample_index, position] = state.early_sinks[sample_index, position - 1]
                position -= 1
            state.early_sinks[sample_index, position] = sink
            sample.early += 1
    origin = core.addresses[i]
    for index in range(sample.early):
        peer = core.addresses[state.early_sinks[sample_index, index]]
        twin.add_row(core, now, i, Event.WITHHELD, peer, Message.DATA, origin, 0, 0, sample.number, twin.NO_REASON)
    return is_due_now


@compiled
def _is_first_gradient(state, entry, index):
    """Return whether the gradient at ``index`` of a cache entry is the first gradient of its sink."""
    is_first = True
    for earlier_index in range(index):
        is_first = is_first and state.gradients[entry, earlier_index].sink != state.gradients[entry, index].sink
    return is_first


@compiled
def are_early_for_same_sinks(state, sample_index, other_index):
    """Return whether two samples come too early for the same sinks.

    ``sample_index``, ``other_index``: their indices in ``state.wanted``, the samples that match an interest.
    """
    count = state.wanted[sample_index].early
    if state.wanted[other_index].early != count:
        return False
    is_same = True
    for index in range(count):
        is_same = is_same and state.early_sinks[sample_index, index] == state.early_sinks[other_index, index]
    return is_same

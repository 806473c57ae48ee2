"""Data gradients in the fast engine: for each source, the neighbor that first brought the newest data.

Data gradients are stored in blocks, one for each entry of the interest caches and for each own interest. A block has
room for ``max_reinforcements`` data gradients, and ``index`` is the position of a data gradient in its block. Block e
belongs to entry e; the blocks of own interests follow. The sinks for which a data gradient is reinforced are a linked
list of elements of ``state.marks``.
"""

from workbench.protocols.diffusion.fast.memory import Event, Number
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def clear_data_gradients(state, block):
    """Remove all data gradients in row ``block`` of ``state.data_gradients``."""
    for index in range(state.data_gradient_counts[block]):
        _free_marks(state, block, index)
    state.data_gradient_counts[block] = 0


@compiled
def update_data_gradient(core, state, now, i, block, message, source, neighbor, list_id):
    """Record that new data of a source came from a neighbor; return the index of the source's data gradient.

    ``block``: row of ``state.data_gradients`` with the data gradients of one interest, one for each source. The result
    is an index into this row. If the row is full, its oldest data gradient is dropped. ``list_id``: the attribute list
    of the data.
    """
    index = _index_of_source(state, block, source)
    gradient_count = state.data_gradient_counts[block]
    is_changed = True
    if index != NONE:
        is_changed = state.data_gradients[block, index].neighbor != neighbor
    else:
        if gradient_count >= state.max_reinforcements:
            _free_marks(state, block, 0)
            gradient_count -= 1
            for position in range(gradient_count):
                state.data_gradients[block, position] = state.data_gradients[block, position + 1]
        index = gradient_count
        state.data_gradient_counts[block] = gradient_count + 1
        state.data_gradients[block, index].source = source
        state.data_gradients[block, index].messages = 0
        state.data_gradients[block, index].marks = NONE
    gradient = state.data_gradients[block, index]
    gradient.neighbor = neighbor
    gradient.list = list_id
    gradient.messages += 1
    if is_changed:
        twin.report(core, now, i, Event.DATA_GRADIENT_SET, core.addresses[neighbor], message, 0, 0)
    return index


@compiled
def _index_of_source(state, block, source):
    for index in range(state.data_gradient_counts[block]):
        if state.data_gradients[block, index].source == source:
            return index
    return NONE


# Marks


@compiled
def is_reinforced_for(state, block, index, sink):
    """Return whether a data gradient is marked as reinforced for a sink.

    ``block``, ``index``: row and column of the data gradient in ``state.data_gradients``.
    """
    mark = state.data_gradients[block, index].marks
    while mark != NONE:
        if state.marks[mark].sink == sink:
            return True
        mark = state.marks[mark].next
    return False


@compiled
def has_room_for_sink(state, block, index):
    """Return whether fewer than ``max_sinks`` sinks have reinforced a data gradient, so that another sink can.

    ``block``, ``index``: row and column of the data gradient in ``state.data_gradients``.
    """
    mark_count, mark = 0, state.data_gradients[block, index].marks
    while mark != NONE:
        mark_count += 1
        mark = state.marks[mark].next
    return mark_count < state.max_sinks


@compiled
def mark_reinforced(state, block, index, sink):
    """Mark the data gradient ``state.data_gradients[block, index]`` as reinforced for a sink."""
    mark = twin.take_free(state.marks, state.numbers, Number.FREE_MARK)
    state.marks[mark].sink = sink
    state.marks[mark].next = state.data_gradients[block, index].marks
    state.data_gradients[block, index].marks = mark


@compiled
def _free_marks(state, block, index):
    mark = state.data_gradients[block, index].marks
    while mark != NONE:
        next_mark = state.marks[mark].next
        twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
        mark = next_mark
    state.data_gradients[block, index].marks = NONE


@compiled
def forget_reinforcements(state, block, sink):
    """Record that no data gradient in row ``block`` of ``state.data_gradients`` is reinforced for a sink any more.

    Called when a new round of the sink's interest begins.
    """
    for index in range(state.data_gradient_counts[block]):
        previous_mark, mark = NONE, state.data_gradients[block, index].marks
        while mark != NONE:
            next_mark = state.marks[mark].next
            if state.marks[mark].sink != sink:
                previous_mark = mark
            elif previous_mark == NONE:
                state.data_gradients[block, index].marks = next_mark
                twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
            else:
                state.marks[previous_mark].next = next_mark
                twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
            mark = next_mark

"""Data gradients in the kernel: per source, the neighbor that brought its newest data first.

They come in blocks of ``max_reinforcements``: block e belongs to entry e of the interest caches, and the blocks behind
those to own interests. The sinks that a data gradient is reinforced for are a linked list of marks.
"""

from workbench.protocols.diffusion.fast.memory import Event, Number
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled


@compiled
def clear_data_gradients(state, block):
    """Forget all data gradients of a block."""
    for place in range(state.data_gradient_counts[block]):
        _forget_marks(state, block, place)
    state.data_gradient_counts[block] = 0


@compiled
def update_data_gradient(core, state, now, i, block, message, source, neighbor, number):
    """Note new data of a source from a neighbor; returns the place of the source's data gradient."""
    place = _of_source(state, block, source)
    count = state.data_gradient_counts[block]
    changed = True
    if place != NONE:
        changed = state.data_gradients[block, place].neighbor != neighbor
    else:
        if count >= state.max_reinforcements:
            _forget_marks(state, block, 0)
            count -= 1
            for later in range(count):
                state.data_gradients[block, later] = state.data_gradients[block, later + 1]
        place = count
        state.data_gradient_counts[block] = count + 1
        state.data_gradients[block, place].source = source
        state.data_gradients[block, place].messages = 0
        state.data_gradients[block, place].marks = NONE
    it = state.data_gradients[block, place]
    it.neighbor = neighbor
    it.list = number
    it.messages += 1
    if changed:
        twin.report(core, now, i, Event.DATA_GRADIENT_SET, core.addresses[neighbor], message, 0, 0)
    return place


@compiled
def _of_source(state, block, source):
    for place in range(state.data_gradient_counts[block]):
        if state.data_gradients[block, place].source == source:
            return place
    return NONE


# Marks


@compiled
def is_reinforced_for(state, block, place, sink):
    """Whether a sink's reinforcement went along a data gradient."""
    mark = state.data_gradients[block, place].marks
    while mark != NONE:
        if state.marks[mark].sink == sink:
            return True
        mark = state.marks[mark].next
    return False


@compiled
def has_room_for_sink(state, block, place):
    """Whether one more sink's reinforcement can be noted."""
    count, mark = 0, state.data_gradients[block, place].marks
    while mark != NONE:
        count += 1
        mark = state.marks[mark].next
    return count < state.max_sinks


@compiled
def mark_reinforced(state, block, place, sink):
    """A sink's reinforcement goes along a data gradient."""
    mark = twin.take_free(state.marks, state.numbers, Number.FREE_MARK)
    state.marks[mark].sink = sink
    state.marks[mark].next = state.data_gradients[block, place].marks
    state.data_gradients[block, place].marks = mark


@compiled
def _forget_marks(state, block, place):
    mark = state.data_gradients[block, place].marks
    while mark != NONE:
        behind = state.marks[mark].next
        twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
        mark = behind
    state.data_gradients[block, place].marks = NONE


@compiled
def forget_reinforcements(state, block, sink):
    """A new round of a sink's interest begins: its paths are open again."""
    for place in range(state.data_gradient_counts[block]):
        before, mark = NONE, state.data_gradients[block, place].marks
        while mark != NONE:
            behind = state.marks[mark].next
            if state.marks[mark].sink != sink:
                before = mark
            elif before == NONE:
                state.data_gradients[block, place].marks = behind
                twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
            else:
                state.marks[before].next = behind
                twin.give_back(state.marks, state.numbers, Number.FREE_MARK, mark)
            mark = behind

"""One hop, reliably, in the kernel: `tinymq.unicast` over a list per node of the frames that wait for an answer."""

from workbench.protocols.tinymq.fast.memory import ACKNOWLEDGEMENT, FREE_PENDING, FREE_PENDINGS, NOBODY, RECENTS
from workbench.protocols.tinymq.fast.messages import drop_message, measure
from workbench.protocols.tinymq.fast.names import FULL
from workbench.protocols.tinymq.fast.places import link_from
from workbench.protocols.tinymq.fast.recent import find, heard_id, is_recent, put
from workbench.sim.fast.air import hold_message, let_go, send
from workbench.sim.fast.draws import stream_below
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.reference import inlined, outlined

_SHIFTS = 3  # the longest wait is retry_ms << 3
_PATIENCE = 3
_NUMBERS = 0xFFFF


@outlined
def send_to(core, state, i, neighbor, message, now):
    """Send a message to a neighbor; with ``max_known`` frames that wait for an answer, one more is dropped."""
    node = state.nodes[i]
    if node.pending >= state.max_known:
        drop_message(core, state, i, NOBODY, message, FULL, now)
        return
    link = state.neighbors[link_from(state, i, neighbor)]
    link.numbered += 1
    number = (node.first_number + link.numbered) & _NUMBERS
    measure(core, state, message)
    if state.retries == 0:
        send(core, now, i, neighbor, message, number)
        return
    place = state.numbers[FREE_PENDING]
    it = state.pendings[place]
    state.numbers[FREE_PENDING] = it.next
    state.numbers[FREE_PENDINGS] -= 1
    it.neighbor = neighbor
    it.number = number
    it.message = message
    it.first_us = now
    it.sent = 0
    it.next = NONE
    hold_message(core, message)
    if node.last_pending == NONE:
        node.first_pending = place
    else:
        state.pendings[node.last_pending].next = place
    node.last_pending = place
    node.pending += 1
    _send(core, state, i, place, now)


@inlined
def _send(core, state, i, place, now):
    it = state.pendings[place]
    send(core, now, i, it.neighbor, it.message, it.number)
    wait_us = state.retry_us << min(it.sent, _SHIFTS)
    it.due_us = now + wait_us + stream_below(core, i, wait_us // 2 + 1)
    it.sent += 1


@inlined
def take(core, state, i, neighbor, link, number, now):
    """Acknowledge a neighbor's frame; returns whether it is new."""
    if state.retries == 0:
        return True
    send(core, now, i, neighbor, state.numbers[ACKNOWLEDGEMENT], number)
    id = heard_id(link, number)
    place = find(state.recents, id)
    if is_recent(state, state.recents, place, state.nodes[i].heard):
        return False
    state.nodes[i].heard += 1
    put(state, state.recents, RECENTS, place, id, state.nodes[i].heard, 0)
    return True


@inlined
def _unlink(state, i, before, place):
    node = state.nodes[i]
    behind = state.pendings[place].next
    if before == NONE:
        node.first_pending = behind
    else:
        state.pendings[before].next = behind
    if node.last_pending == place:
        node.last_pending = before
    node.pending -= 1
    return behind


@inlined
def free_pending(core, state, place):
    """The entry of a frame that waits no longer."""
    let_go(core, state.pendings[place].message)
    state.pendings[place].next = state.numbers[FREE_PENDING]
    state.numbers[FREE_PENDING] = place
    state.numbers[FREE_PENDINGS] += 1


@inlined
def acknowledged(core, state, i, neighbor, number):
    """An acknowledgement came."""
    before, place = NONE, state.nodes[i].first_pending
    while place != NONE:
        it = state.pendings[place]
        if it.neighbor == neighbor and it.number == number:
            _unlink(state, i, before, place)
            free_pending(core, state, place)
            return
        before, place = place, it.next


@inlined
def is_waiting_for(state, i, neighbor):
    """Whether a neighbor has yet to acknowledge something."""
    place = state.nodes[i].first_pending
    while place != NONE:
        if state.pendings[place].neighbor == neighbor:
            return True
        place = state.pendings[place].next
    return False


@inlined
def _is_heard(state, i, pending):
    it = state.neighbors[link_from(state, i, pending.neighbor)]
    return it.is_known and it.heard_us > pending.first_us


@outlined
def repeat(core, state, i, now):
    """Send again what is due; returns the first of the frames that are given up, by the order of their neighbors.

    They are linked; whoever asks frees them.
    """
    first, last = NONE, NONE
    place = state.nodes[i].first_pending
    while place != NONE:
        it = state.pendings[place]
        behind = it.next
        if it.due_us <= now:
            frames = state.retries * (_PATIENCE if _is_heard(state, i, it) else 1)
            if it.sent <= frames:
                _send(core, state, i, place, now)
            else:
                # A mark; what else this neighbor was sent may have to be sent again first.
                it.due_us = NONE
        place = behind
    while True:
        silent = NONE
        place = state.nodes[i].first_pending
        while place != NONE and silent == NONE:
            if state.pendings[place].due_us == NONE:
                silent = state.pendings[place].neighbor
            place = state.pendings[place].next
        if silent == NONE:
            return first
        before, place = NONE, state.nodes[i].first_pending
        while place != NONE:
            if state.pendings[place].neighbor != silent:
                before, place = place, state.pendings[place].next
                continue
            behind = _unlink(state, i, before, place)
            state.pendings[place].next = NONE
            if last == NONE:
                first = place
            else:
                state.pendings[last].next = place
            last = place
            place = behind

"""One hop, reliably, in the kernel: `tinymq.unicast` over a list per node of the frames that wait for an answer."""

from workbench.protocols.tinymq.fast.memory import ACKNOWLEDGEMENT, FREE_PENDING, GRANT, NOBODY, RECENTS
from workbench.protocols.tinymq.fast.messages import drop_message, measure
from workbench.protocols.tinymq.fast.names import FULL
from workbench.protocols.tinymq.fast.places import link_from
from workbench.protocols.tinymq.fast.recent import find, heard_id, put
from workbench.protocols.tinymq.fast.rules import is_given_up, retry_wait_us
from workbench.protocols.tinymq.rules import MOST_AT_ONCE, PACE_US
from workbench.protocols.tinymq.wire import U16
from workbench.sim.fast.air import hold_message, let_go, send
from workbench.sim.fast.draws import stream_below
from workbench.sim.fast.layout import NONE
from workbench.sim.fast.recent import is_recent
from workbench.sim.fast.reference import inlined, outlined
from workbench.sim.fast.rows import append_behind, clear, give_back, remove_behind, take_free

_WAY = 16  # first bit of a frame's way in its word; its number is in those before


@inlined
def number_of(word):
    """The number of a frame, out of its word."""
    return word & U16


@inlined
def way_of(word):
    """The way of a frame, out of its word."""
    return word >> _WAY


@inlined
def begin(state, i):
    """A node is called: what it sends counts from here."""
    state.nodes[i].may_send = MOST_AT_ONCE


@outlined
def send_to(core, state, i, neighbor, message, way, now):
    """Send a message to a neighbor; with ``max_known`` frames that wait for an answer, one more is dropped."""
    node = state.nodes[i]
    if node.pending.count >= state.max_known:
        drop_message(core, state, i, NOBODY, message, FULL, now)
        return
    link = state.neighbors[link_from(state, i, neighbor)]
    link.numbered += 1
    number = (node.first_number + link.numbered) & U16
    measure(core, state, message)
    if state.retries == 0 and node.may_send:
        node.may_send -= 1
        send(core, now, i, neighbor, message, number | (way << _WAY))
        return
    row = take_free(state.pendings, state.numbers, FREE_PENDING)
    it = state.pendings[row]
    it.neighbor = neighbor
    it.number = number
    it.message = message
    it.way = way
    it.first_us = now
    it.sent = 0
    hold_message(core, message)
    append_behind(node.pending, state.pendings, node.pending.last, row)
    _send_or_wait(core, state, i, row, now)


@outlined
def _send_or_wait(core, state, i, row, now):
    it = state.pendings[row]
    if state.nodes[i].may_send == 0:
        it.due_us = now + PACE_US
        return
    state.nodes[i].may_send -= 1
    send(core, now, i, it.neighbor, it.message, it.number | (it.way << _WAY))
    if state.retries == 0:
        return
    if it.sent == 0:
        it.first_us = now
    wait_us = retry_wait_us(state.retry_us, it.sent)
    it.due_us = now + wait_us + stream_below(core, i, wait_us // 2 + 1)
    it.sent += 1


@inlined
def is_new(state, i, link, number):
    """Whether a neighbor's frame has not been taken yet."""
    if state.retries == 0:
        return True
    row = find(state.recents, heard_id(link, number))
    return not is_recent(state.recents[row].ordinal, state.nodes[i].heard, state.max_known)


@inlined
def acknowledge(core, state, i, neighbor, number, now):
    """Acknowledge a neighbor's frame."""
    if state.retries:
        send(core, now, i, neighbor, state.numbers[ACKNOWLEDGEMENT], number)


@inlined
def take(core, state, i, neighbor, link, number, now):
    """Acknowledge a neighbor's frame that is new."""
    if state.retries == 0:
        return
    acknowledge(core, state, i, neighbor, number, now)
    node, id = state.nodes[i], heard_id(link, number)
    node.heard += 1
    put(state, state.recents, RECENTS, find(state.recents, id), id, node.heard, 0)


@inlined
def free_pending(core, state, row):
    """Free the entry of a frame that waits no longer."""
    let_go(core, state.pendings[row].message)
    give_back(state.pendings, state.numbers, FREE_PENDING, row)


@inlined
def acknowledged(core, state, i, neighbor, number):
    """An acknowledgement came."""
    before, row = NONE, state.nodes[i].pending.first
    while row != NONE:
        it = state.pendings[row]
        if it.neighbor == neighbor and it.number == number:
            remove_behind(state.nodes[i].pending, state.pendings, before, row)
            free_pending(core, state, row)
            return
        before, row = row, it.next


@inlined
def is_waiting_for(state, i, neighbor):
    """Whether a neighbor has yet to acknowledge something."""
    row = state.nodes[i].pending.first
    while row != NONE:
        if state.pendings[row].neighbor == neighbor:
            return True
        row = state.pendings[row].next
    return False


@inlined
def is_granting(core, state, i, neighbor, tree):
    """Whether a neighbor has yet to acknowledge a key in a tree."""
    row = state.nodes[i].pending.first
    while row != NONE:
        it = state.pendings[row]
        is_grant = core.messages[it.message].name == GRANT
        if is_grant and it.neighbor == neighbor and state.fields[it.message].tree == tree:
            return True
        row = it.next
    return False


@inlined
def _is_heard(state, i, pending):
    it = state.neighbors[link_from(state, i, pending.neighbor)]
    return it.is_known and it.heard_us > pending.first_us


@outlined
def repeat(core, state, i, now, given_up):
    """Send again what is due; ``given_up`` becomes the list of the frames that are given up, neighbor by neighbor.

    Whoever goes through that list frees its rows.
    """
    row = state.nodes[i].pending.first
    while row != NONE:
        it = state.pendings[row]
        behind = it.next
        if it.due_us <= now:
            if it.sent and is_given_up(it.sent, state.retries, _is_heard(state, i, it)):
                # A mark; what else this neighbor was sent may have to be sent again first.
                it.due_us = NONE
            else:
                _send_or_wait(core, state, i, row, now)
        row = behind
    clear(given_up)
    if state.retries == 0:
        _forget_what_was_sent(core, state, i, now)
    silent = _first_silent(state, i)
    while silent != NONE:
        _give_up(state, i, silent, given_up)
        silent = _first_silent(state, i)


@outlined
def _forget_what_was_sent(core, state, i, now):
    """Without acknowledgements a frame that has been sent waits for nothing."""
    pending = state.nodes[i].pending
    before, row = NONE, pending.first
    while row != NONE:
        if state.pendings[row].due_us > now:
            before, row = row, state.pendings[row].next
            continue
        behind = remove_behind(pending, state.pendings, before, row)
        free_pending(core, state, row)
        row = behind


@inlined
def _first_silent(state, i):
    """The neighbor of the first frame that is marked, or NONE."""
    row = state.nodes[i].pending.first
    while row != NONE:
        if state.pendings[row].due_us == NONE:
            return state.pendings[row].neighbor
        row = state.pendings[row].next
    return NONE


@inlined
def _give_up(state, i, neighbor, given_up):
    """Move all frames to a neighbor to the list of those that are given up."""
    pending = state.nodes[i].pending
    before, row = NONE, pending.first
    while row != NONE:
        if state.pendings[row].neighbor != neighbor:
            before, row = row, state.pendings[row].next
            continue
        behind = remove_behind(pending, state.pendings, before, row)
        append_behind(given_up, state.pendings, given_up.last, row)
        row = behind

"""Reliable unicast over one hop, compiled: `tinymq.unicast`, with a linked list of pending frames for each node."""

from workbench.protocols.tinymq import rules
from workbench.protocols.tinymq.fast.memory import Message, Number, Reason
from workbench.protocols.tinymq.fast.messages import drop_message, make_refusal, measure
from workbench.protocols.tinymq.fast.positions import link_from
from workbench.protocols.tinymq.fast.recent import find, heard_id, put
from workbench.protocols.tinymq.rules import MOST_IN_FLIGHT, PACE_US
from workbench.protocols.tinymq.unicast import ACK, REFUSAL, REPORT, TURN
from workbench.protocols.tinymq.wire import OPEN, U16
from workbench.sim.fast import twin
from workbench.sim.fast.twin import NONE, compiled

# Lowest bits of two fields of a frame's header: the direction, and the flag "requests no ack". Its number is in bits 0
# to 15.
_DIRECTION, _NO_ACK = 16, 18


@compiled
def number_of(header):
    """Return the number in a frame's header."""
    return header & U16


@compiled
def direction_of(header):
    """Return the direction in a frame's header."""
    return (header >> _DIRECTION) & 3


@compiled
def wants_ack(header):
    """Return whether a frame's header requests an ack."""
    return header >> _NO_ACK == 0


@compiled
def begin(core, state, i, now):
    """Begin a call of node ``i``: count its frames in flight, and set how many more frames the call may send."""
    node, in_flight = state.nodes[i], 0
    node.counts += 1
    row = node.pending.first
    while row != NONE:
        frame = state.pendings[row]
        if frame.waits_for == REPORT:
            in_flight += 1
        elif frame.sent and frame.waits_for != REFUSAL:
            _count(core, state, i, row)
            in_flight += node.reports == 0 and frame.sent == 1 and frame.due_us > now
        row = frame.next
    node.frames_left = rules.most_frames(node.reports, in_flight)


@compiled
def _count(core, state, i, row):
    """Add a pending frame to its neighbor's count of unacknowledged frames; events have a count of their own."""
    frame = state.pendings[row]
    record, count = state.neighbors[frame.link], state.nodes[i].counts
    if record.counted != count:
        record.counted = count
        record.unacknowledged = 0
        record.unacknowledged_events = 0
    if core.messages[frame.message].name == Message.EVENT:
        record.unacknowledged_events += 1
    else:
        record.unacknowledged += 1


@compiled
def _has_room(core, state, i, row):
    """Return whether the window of a pending frame's neighbor has room for one more unacknowledged frame."""
    frame = state.pendings[row]
    record = state.neighbors[frame.link]
    is_event = core.messages[frame.message].name == Message.EVENT
    count = record.unacknowledged_events if is_event else record.unacknowledged
    return record.counted != state.nodes[i].counts or count < MOST_IN_FLIGHT


@compiled
def send_to(core, state, i, neighbor, message, direction, now):
    """Send a message to a neighbor, or drop it as "full" if ``max_known`` frames are pending already."""
    node = state.nodes[i]
    if node.pending.count >= state.max_known:
        drop_message(core, state, i, NONE, message, Reason.FULL, now)
        return
    link = link_from(state, i, neighbor)
    record = state.neighbors[link]
    record.numbered += 1
    number = (node.first_number + record.numbered) & U16
    measure(core, state, message)
    if state.retries == 0 and node.frames_left:
        node.frames_left -= 1
        twin.send(core, now, i, neighbor, message, number | (direction << _DIRECTION))
        return
    row = twin.take_free(state.pendings, state.numbers, Number.FREE_PENDING)
    frame = state.pendings[row]
    frame.neighbor = neighbor
    frame.link = link
    frame.number = number
    frame.message = message
    frame.direction = direction
    frame.first_us = now
    frame.sent = 0
    twin.hold_message(core, message)
    twin.append_behind(node.pending, state.pendings, node.pending.last, row)
    _send_or_wait(core, state, i, row, now)


@compiled
def _may_send(core, state, i, row):
    """Return whether a pending frame may be sent now.

    A retransmission needs no room in its neighbor's window, because it is already counted there.
    """
    frame, node = state.pendings[row], state.nodes[i]
    if node.frames_left == 0:
        return False
    return node.reports or frame.sent or _has_room(core, state, i, row)


@compiled
def _send_or_wait(core, state, i, row, now):
    frame = state.pendings[row]
    if _may_send(core, state, i, row):
        _send(core, state, i, row, now)
    else:
        frame.waits_for = TURN
        frame.due_us = now + PACE_US


@compiled
def _send(core, state, i, row, now):
    frame, node = state.pendings[row], state.nodes[i]
    node.frames_left -= 1
    twin.send(
        core,
        now,
        i,
        frame.neighbor,
        frame.message,
        frame.number | (frame.direction << _DIRECTION) | (node.reports << _NO_ACK),
    )
    if state.retries == 0:
        return
    if frame.sent == 0:
        frame.first_us = now
        _count(core, state, i, row)
    frame.sent += 1
    if node.reports:
        _wait_for(core, state, i, row, REPORT, rules.longest_wait_us(state.retry_us), now)
    else:
        _wait_for(core, state, i, row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)


@compiled
def _wait_for(core, state, i, row, waits_for, wait_us, now):
    frame = state.pendings[row]
    frame.waits_for = waits_for
    frame.due_us = now + wait_us + twin.stream_below(core, i, wait_us // 2 + 1)


@compiled
def take_report(core, state, i, neighbor, number, ok, now):
    """Process the radio's report of whether a frame was acknowledged (``ok``), and send frames that wait for a turn."""
    node = state.nodes[i]
    node.reports |= ok
    previous, row = _find(state, i, neighbor, number)
    if row != NONE and state.pendings[row].waits_for == REPORT:
        frame = state.pendings[row]
        if not ok:
            _wait_for(core, state, i, row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)
        elif frame.direction == OPEN:
            twin.remove_behind(node.pending, state.pendings, previous, row)
            free_pending(core, state, row)
        else:
            _wait_for(core, state, i, row, REFUSAL, rules.longest_wait_us(state.retry_us), now)
    _send_next(core, state, i, now)


@compiled
def _send_next(core, state, i, now):
    """Send as many as allowed of the frames that wait for their turn."""
    begin(core, state, i, now)
    row = state.nodes[i].pending.first
    while row != NONE and state.nodes[i].frames_left:
        if state.pendings[row].waits_for == TURN and _may_send(core, state, i, row):
            _send(core, state, i, row, now)
        row = state.pendings[row].next


@compiled
def take_refusal(core, state, i, neighbor, number, now):
    """Plan to send a refused frame again, or drop it if it is too old.

    A neighbor refuses a frame if it has no room now, or if the frame is misdirected.
    """
    previous, row = _find(state, i, neighbor, number)
    if row == NONE:
        return
    frame, node = state.pendings[row], state.nodes[i]
    if frame.waits_for == REPORT or frame.waits_for == REFUSAL:
        _wait_for(core, state, i, row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)
    elif rules.is_too_old(frame.first_us, now, state.lost_after_us):
        twin.remove_behind(node.pending, state.pendings, previous, row)
        drop_message(core, state, i, NONE, frame.message, Reason.FULL, now)
        free_pending(core, state, row)
    elif frame.waits_for == ACK and node.reports == 0:
        frame.sent = 2
        _wait_for(core, state, i, row, ACK, rules.longest_wait_us(state.retry_us), now)


@compiled
def _find(state, i, neighbor, number):
    """Return (previous row, row) of the pending frame with a number to a neighbor; NONE for a missing row."""
    previous, row = NONE, state.nodes[i].pending.first
    while row != NONE:
        frame = state.pendings[row]
        if frame.neighbor == neighbor and frame.number == number:
            break
        previous, row = row, frame.next
    return previous, row


@compiled
def is_new(state, i, link, number):
    """Return whether the frame with a number from a neighbor has not been accepted before."""
    if state.retries == 0:
        return True
    row = find(state.recents, heard_id(link, number))
    return not twin.is_recent(state.recents[row].ordinal, state.nodes[i].heard, state.max_known)


@compiled
def acknowledge(core, state, i, neighbor, number, header, now):
    """Acknowledge a neighbor's frame if its header requests that."""
    if state.retries and wants_ack(header):
        twin.send(core, now, i, neighbor, state.numbers[Number.ACKNOWLEDGEMENT], number)


@compiled
def refuse(core, state, i, neighbor, number, now):
    """Send a neighbor the refusal of its frame."""
    refusal = make_refusal(core, state)
    twin.send(core, now, i, neighbor, refusal, number)
    twin.let_go(core, refusal)


@compiled
def take(core, state, i, neighbor, link, number, header, now):
    """Remember the number of a neighbor's frame as accepted, and acknowledge the frame if its header requests that."""
    if state.retries == 0:
        return
    acknowledge(core, state, i, neighbor, number, header, now)
    node, id = state.nodes[i], heard_id(link, number)
    node.heard += 1
    put(state, state.recents, Number.RECENTS, find(state.recents, id), id, node.heard, 0)


@compiled
def free_pending(core, state, row):
    """Free the entry of a frame that is no longer pending."""
    twin.let_go(core, state.pendings[row].message)
    twin.give_back(state.pendings, state.numbers, Number.FREE_PENDING, row)


@compiled
def take_acknowledgement(core, state, i, neighbor, number, now):
    """Remove an acknowledged frame, and send frames that wait for their turn."""
    previous, row = _find(state, i, neighbor, number)
    if row != NONE:
        twin.remove_behind(state.nodes[i].pending, state.pendings, previous, row)
        free_pending(core, state, row)
        _send_next(core, state, i, now)


@compiled
def is_waiting_for(state, i, neighbor):
    """Return whether a frame to a neighbor still waits for its turn, its report or its acknowledgement."""
    row = state.nodes[i].pending.first
    while row != NONE:
        frame = state.pendings[row]
        if frame.neighbor == neighbor and frame.waits_for != REFUSAL:
            return True
        row = frame.next
    return False


@compiled
def is_granting(core, state, i, neighbor, tree):
    """Return whether a grant in a tree to a neighbor is still pending."""
    row = state.nodes[i].pending.first
    while row != NONE:
        frame = state.pendings[row]
        is_grant = core.messages[frame.message].name == Message.GRANT
        if is_grant and frame.neighbor == neighbor and state.fields[frame.message].tree == tree:
            return True
        row = frame.next
    return False


@compiled
def _is_heard(state, i, pending):
    neighbor = state.neighbors[link_from(state, i, pending.neighbor)]
    return neighbor.is_known and neighbor.hears_us and neighbor.heard_us > pending.first_us


@compiled
def repeat(core, state, i, now, given_up):
    """Retransmit due frames, and move the pending frames of silent neighbors to the list ``given_up``.

    A neighbor is silent if `rules.is_given_up` applies to one of its frames. The list is ordered by neighbor; the
    caller frees its rows.
    """
    _free_taken(core, state, i, now)
    row = state.nodes[i].pending.first
    while row != NONE:
        frame = state.pendings[row]
        next_row = frame.next
        if frame.due_us <= now:
            if frame.sent and rules.is_given_up(frame.sent, state.retries, _is_heard(state, i, frame)):
                # NONE marks the frame. Other frames to this neighbor may have to be sent again before it is lost.
                frame.due_us = NONE
            else:
                _send_or_wait(core, state, i, row, now)
        row = next_row
    twin.clear(given_up)
    if state.retries == 0:
        _free_sent(core, state, i, now)
    silent = _first_silent(state, i)
    while silent != NONE:
        _give_up(state, i, silent, given_up)
        silent = _first_silent(state, i)


@compiled
def _free_taken(core, state, i, now):
    """Free the frames that arrived and can no longer be refused."""
    pending = state.nodes[i].pending
    previous, row = NONE, pending.first
    while row != NONE:
        frame = state.pendings[row]
        if frame.waits_for != REFUSAL or frame.due_us > now:
            previous, row = row, frame.next
            continue
        next_row = twin.remove_behind(pending, state.pendings, previous, row)
        free_pending(core, state, row)
        row = next_row


@compiled
def _free_sent(core, state, i, now):
    """Free the frames that have been sent. They need no longer be stored if ``retries`` is 0."""
    pending = state.nodes[i].pending
    previous, row = NONE, pending.first
    while row != NONE:
        if state.pendings[row].due_us > now:
            previous, row = row, state.pendings[row].next
            continue
        next_row = twin.remove_behind(pending, state.pendings, previous, row)
        free_pending(core, state, row)
        row = next_row


@compiled
def _first_silent(state, i):
    """Return the neighbor of the first frame that is marked as given up, or NONE."""
    row = state.nodes[i].pending.first
    while row != NONE:
        if state.pendings[row].due_us == NONE:
            return state.pendings[row].neighbor
        row = state.pendings[row].next
    return NONE


@compiled
def _give_up(state, i, neighbor, given_up):
    """Move all pending frames of a neighbor from the node's list to the list ``given_up``."""
    pending = state.nodes[i].pending
    previous, row = NONE, pending.first
    while row != NONE:
        if state.pendings[row].neighbor != neighbor:
            previous, row = row, state.pendings[row].next
            continue
        next_row = twin.remove_behind(pending, state.pendings, previous, row)
        twin.append_behind(given_up, state.pendings, given_up.last, row)
        row = next_row

"""Reliable unicast over one hop: the compiled version of `tinymq.unicast`. Each node has a list of pending frames."""

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
    """Return the sequence number in a unicast frame's header (one integer)."""
    return header & U16


@compiled
def direction_of(header):
    """Return the direction in a frame's header: OPEN, UP or DOWN.

    UP: the sender addresses the receiver as its parent; DOWN: as a node whose key is a prefix of the message's target;
    OPEN: neither.
    """
    return (header >> _DIRECTION) & 3


@compiled
def wants_ack(header):
    """Return whether a frame's header requests an ack."""
    return header >> _NO_ACK == 0


@compiled
def begin(core, state, i, now):
    """Count node ``i``'s frames in flight, and set how many more frames the node may send for the current input.

    An input is a received frame, a radio's report, a wake-up or a request of the application.
    """
    node, in_flight = state.nodes[i], 0
    node.counts += 1
    pending_row = node.pending.first
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        if frame.waits_for == REPORT:
            in_flight += 1
        elif frame.sent and frame.waits_for != REFUSAL:
            _count_unacknowledged(core, state, i, pending_row)
            in_flight += node.reports == 0 and frame.sent == 1 and frame.due_us > now
        pending_row = frame.next
    node.frames_left = rules.most_frames(node.reports, in_flight)


@compiled
def _count_unacknowledged(core, state, i, row):
    """Add 1 to the number of frames that a frame's receiver has yet to acknowledge.

    Each receiver has one such number for frames with events, and one for all other frames. `begin` computes both anew.
    ``row``: the frame's row of ``pendings``.
    """
    frame = state.pendings[row]
    neighbor_record, call_number = state.neighbors[frame.link], state.nodes[i].counts
    if neighbor_record.counted != call_number:
        neighbor_record.counted = call_number
        neighbor_record.unacknowledged = 0
        neighbor_record.unacknowledged_events = 0
    if core.messages[frame.message].name == Message.EVENT:
        neighbor_record.unacknowledged_events += 1
    else:
        neighbor_record.unacknowledged += 1


@compiled
def _has_room(core, state, i, row):
    """Return whether a frame's receiver has fewer than MOST_IN_FLIGHT frames of node ``i`` to acknowledge.

    If the frame carries an event, only frames with events count; otherwise, only other frames. ``row``: the frame's row
    of ``pendings``.
    """
    frame = state.pendings[row]
    neighbor_record = state.neighbors[frame.link]
    is_event = core.messages[frame.message].name == Message.EVENT
    unacknowledged_count = neighbor_record.unacknowledged_events if is_event else neighbor_record.unacknowledged
    return neighbor_record.counted != state.nodes[i].counts or unacknowledged_count < MOST_IN_FLIGHT


@compiled
def send_to(core, state, i, neighbor, message, direction, now):
    """Send a message to a neighbor, now or when its turn comes.

    If ``max_known`` frames of node ``i`` are pending already, drop the message with the reason "full". ``direction``:
    UP to the parent, DOWN to a node whose key is a prefix of the target, OPEN to any other neighbor.
    """
    node = state.nodes[i]
    if node.pending.count >= state.max_known:
        drop_message(core, state, i, NONE, message, Reason.FULL, now)
        return
    link = link_from(state, i, neighbor)
    neighbor_record = state.neighbors[link]
    neighbor_record.numbered += 1
    frame_number = (node.first_number + neighbor_record.numbered) & U16
    measure(core, state, message)
    if state.retries == 0 and node.frames_left:
        node.frames_left -= 1
        twin.send(core, now, i, neighbor, message, frame_number | (direction << _DIRECTION))
        return
    pending_row = twin.take_free(state.pendings, state.numbers, Number.FREE_PENDING)
    frame = state.pendings[pending_row]
    frame.neighbor = neighbor
    frame.link = link
    frame.number = frame_number
    frame.message = message
    frame.direction = direction
    frame.first_us = now
    frame.sent = 0
    twin.hold_message(core, message)
    twin.append_behind(node.pending, state.pendings, node.pending.last, pending_row)
    _send_or_wait(core, state, i, pending_row, now)


@compiled
def _may_send(core, state, i, row):
    """Return whether a pending frame of node ``i`` may be sent now; ``row``: the frame's row of ``pendings``.

    A node sends a limited number of frames for each input that it processes. If its radio does not report whether
    frames arrived, a new frame also waits while its receiver has MOST_IN_FLIGHT or more frames to acknowledge.
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
        _count_unacknowledged(core, state, i, row)
    frame.sent += 1
    if node.reports:
        _set_wait(core, state, i, row, REPORT, rules.longest_wait_us(state.retry_us), now)
    else:
        _set_wait(core, state, i, row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)


@compiled
def _set_wait(core, state, i, row, waits_for, wait_us, now):
    frame = state.pendings[row]
    frame.waits_for = waits_for
    frame.due_us = now + wait_us + twin.stream_below(core, i, wait_us // 2 + 1)


@compiled
def take_report(core, state, i, neighbor, number, ok, now):
    """Process the radio's report about a frame of node ``i``, and send waiting frames that may be sent now.

    ``ok``: whether the radio of ``neighbor`` acknowledged the frame with this number.
    """
    node = state.nodes[i]
    node.reports |= ok
    previous_row, pending_row = _find_pending(state, i, neighbor, number)
    if pending_row != NONE and state.pendings[pending_row].waits_for == REPORT:
        frame = state.pendings[pending_row]
        if not ok:
            _set_wait(core, state, i, pending_row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)
        elif frame.direction == OPEN:
            twin.remove_behind(node.pending, state.pendings, previous_row, pending_row)
            free_pending(core, state, pending_row)
        else:
            _set_wait(core, state, i, pending_row, REFUSAL, rules.longest_wait_us(state.retry_us), now)
    _send_next(core, state, i, now)


@compiled
def _send_next(core, state, i, now):
    """Send frames of node ``i`` that wait for their turn, up to the limit for the input that it processes."""
    begin(core, state, i, now)
    row = state.nodes[i].pending.first
    while row != NONE and state.nodes[i].frames_left:
        if state.pendings[row].waits_for == TURN and _may_send(core, state, i, row):
            _send(core, state, i, row, now)
        row = state.pendings[row].next


@compiled
def take_refusal(core, state, i, neighbor, number, now):
    """Plan another transmission of a frame that a neighbor refused, or drop the frame if it is too old.

    ``number``: the frame's sequence number. A neighbor refuses a frame if it has no room now, or if the frame is
    misdirected (`routing.is_misdirected`).
    """
    previous_row, pending_row = _find_pending(state, i, neighbor, number)
    if pending_row == NONE:
        return
    frame, node = state.pendings[pending_row], state.nodes[i]
    if frame.waits_for == REPORT or frame.waits_for == REFUSAL:
        _set_wait(core, state, i, pending_row, ACK, rules.retry_wait_us(state.retry_us, frame.sent - 1), now)
    elif rules.is_too_old(frame.first_us, now, state.lost_after_us):
        twin.remove_behind(node.pending, state.pendings, previous_row, pending_row)
        drop_message(core, state, i, NONE, frame.message, Reason.FULL, now)
        free_pending(core, state, pending_row)
    elif frame.waits_for == ACK and node.reports == 0:
        frame.sent = 2
        _set_wait(core, state, i, pending_row, ACK, rules.longest_wait_us(state.retry_us), now)


@compiled
def _find_pending(state, i, neighbor, number):
    """Return (previous row, row) for node ``i``'s pending frame with the sequence number ``number`` to a neighbor.

    The row is that of the frame in ``pendings``, or NONE if no such frame is pending. The previous row is that of the
    frame before it in the node's list, or NONE if the frame is the first.
    """
    previous_row, pending_row = NONE, state.nodes[i].pending.first
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        if frame.neighbor == neighbor and frame.number == number:
            break
        previous_row, pending_row = pending_row, frame.next
    return previous_row, pending_row


@compiled
def is_new(state, i, link, number):
    """Return whether node ``i`` has not yet accepted a frame with the sequence number ``number`` on a link.

    Without repetition (``retries=0``) every frame is new.
    """
    if state.retries == 0:
        return True
    row = find(state.recents, heard_id(link, number))
    return not twin.is_recent(state.recents[row].ordinal, state.nodes[i].heard, state.max_known)


@compiled
def acknowledge(core, state, i, neighbor, number, header, now):
    """Acknowledge a neighbor's frame with the sequence number ``number`` if the frame's ``header`` requests an ack."""
    if state.retries and wants_ack(header):
        twin.send(core, now, i, neighbor, state.numbers[Number.ACKNOWLEDGEMENT], number)


@compiled
def refuse(core, state, i, neighbor, number, now):
    """Send a neighbor a refusal of its frame with the sequence number ``number``."""
    refusal = make_refusal(core, state)
    twin.send(core, now, i, neighbor, refusal, number)
    twin.let_go(core, refusal)


@compiled
def take(core, state, i, neighbor, link, number, header, now):
    """Remember the number of a neighbor's frame as accepted; acknowledge the frame if its ``header`` requests that.

    ``number``: the frame's sequence number; ``link``: the link on which the frame arrived.
    """
    if state.retries == 0:
        return
    acknowledge(core, state, i, neighbor, number, header, now)
    node, id = state.nodes[i], heard_id(link, number)
    node.heard += 1
    put(state, state.recents, Number.RECENTS, find(state.recents, id), id, node.heard, 0)


@compiled
def free_pending(core, state, row):
    """Release the message of a frame that was removed from its node's list, and free its row of ``pendings``."""
    twin.let_go(core, state.pendings[row].message)
    twin.give_back(state.pendings, state.numbers, Number.FREE_PENDING, row)


@compiled
def take_acknowledgement(core, state, i, neighbor, number, now):
    """Remove the pending frame that a neighbor has acknowledged, and send waiting frames that may be sent now.

    ``number``: the frame's sequence number, from the acknowledgement. Do nothing if the frame is not pending.
    """
    previous_row, row = _find_pending(state, i, neighbor, number)
    if row != NONE:
        twin.remove_behind(state.nodes[i].pending, state.pendings, previous_row, row)
        free_pending(core, state, row)
        _send_next(core, state, i, now)


@compiled
def is_waiting_for(state, i, neighbor):
    """Return whether a frame of node ``i`` to a neighbor still waits to be sent, reported or acknowledged."""
    row = state.nodes[i].pending.first
    while row != NONE:
        frame = state.pendings[row]
        if frame.neighbor == neighbor and frame.waits_for != REFUSAL:
            return True
        row = frame.next
    return False


@compiled
def is_granting(core, state, i, neighbor, tree):
    """Return whether a pending frame of node ``i`` grants a neighbor a key in a tree.

    A frame is pending while it waits to be sent or answered.
    """
    pending_row = state.nodes[i].pending.first
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        is_grant = core.messages[frame.message].name == Message.GRANT
        if is_grant and frame.neighbor == neighbor and state.fields[frame.message].tree == tree:
            return True
        pending_row = frame.next
    return False


@compiled
def _has_heard_receiver(state, i, pending):
    neighbor = state.neighbors[link_from(state, i, pending.neighbor)]
    return neighbor.is_known and neighbor.hears_us and neighbor.heard_us > pending.first_us


@compiled
def repeat(core, state, i, now, given_up):
    """Send due frames of node ``i`` again; move the frames for lost neighbors to the list ``given_up``.

    A neighbor counts as lost if a frame to it has been sent too often (`rules.is_given_up`); then all frames for this
    neighbor are moved. ``given_up`` is emptied first. Like the node's list, it consists of rows of ``pendings``. Frames
    for the same neighbor are adjacent in ``given_up``; the caller frees them.
    """
    _free_accepted_frames(core, state, i, now)
    pending_row = state.nodes[i].pending.first
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        next_row = frame.next
        if frame.due_us <= now:
            if frame.sent and rules.is_given_up(frame.sent, state.retries, _has_heard_receiver(state, i, frame)):
                # NONE marks the frame. Other frames to this neighbor may have to be sent again before it is lost.
                frame.due_us = NONE
            else:
                _send_or_wait(core, state, i, pending_row, now)
        pending_row = next_row
    twin.clear(given_up)
    if state.retries == 0:
        _free_sent_frames(core, state, i, now)
    silent_neighbor = _first_silent_receiver(state, i)
    while silent_neighbor != NONE:
        _give_up_frames(state, i, silent_neighbor, given_up)
        silent_neighbor = _first_silent_receiver(state, i)


@compiled
def _free_accepted_frames(core, state, i, now):
    """Remove node ``i``'s frames that have arrived and whose wait for a refusal has ended; free their rows."""
    pending_list = state.nodes[i].pending
    previous_row, pending_row = NONE, pending_list.first
    while pending_row != NONE:
        frame = state.pendings[pending_row]
        if frame.waits_for != REFUSAL or frame.due_us > now:
            previous_row, pending_row = pending_row, frame.next
            continue
        next_row = twin.remove_behind(pending_list, state.pendings, previous_row, pending_row)
        free_pending(core, state, pending_row)
        pending_row = next_row


@compiled
def _free_sent_frames(core, state, i, now):
    """Remove the frames that node ``i`` has sent, and free their rows; for runs without repetition (``retries=0``)."""
    pending_list = state.nodes[i].pending
    previous_row, pending_row = NONE, pending_list.first
    while pending_row != NONE:
        if state.pendings[pending_row].due_us > now:
            previous_row, pending_row = pending_row, state.pendings[pending_row].next
            continue
        next_row = twin.remove_behind(pending_list, state.pendings, previous_row, pending_row)
        free_pending(core, state, pending_row)
        pending_row = next_row


@compiled
def _first_silent_receiver(state, i):
    """Return the receiver of the first frame in node ``i``'s list that is marked as given up, or NONE.

    `repeat` marks such a frame by the time NONE in ``due_us``.
    """
    row = state.nodes[i].pending.first
    while row != NONE:
        if state.pendings[row].due_us == NONE:
            return state.pendings[row].neighbor
        row = state.pendings[row].next
    return NONE


@compiled
def _give_up_frames(state, i, neighbor, given_up):
    """Move all pending frames for a neighbor from node ``i``'s list into the list ``given_up``."""
    pending_list = state.nodes[i].pending
    previous_row, pending_row = NONE, pending_list.first
    while pending_row != NONE:
        if state.pendings[pending_row].neighbor != neighbor:
            previous_row, pending_row = pending_row, state.pendings[pending_row].next
            continue
        next_row = twin.remove_behind(pending_list, state.pendings, previous_row, pending_row)
        twin.append_behind(given_up, state.pendings, given_up.last, pending_row)
        pending_row = next_row

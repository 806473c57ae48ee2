"""Reliable unicast over one hop: frames to a neighbor are numbered, and retransmitted until acknowledged.

Theory of operation
    A frame that is not acknowledged is sent again, up to ``retries`` times. The wait is ``retry_ms``, then twice that,
    four times and eight times, each plus a random part of up to one half, so that two frames that collided do not
    collide again. If no acknowledgement has come when the last wait ends, the neighbor counts as lost. But if another
    frame from it was heard meanwhile, the link is only poor, and up to 3 * ``retries`` retransmissions are allowed.
    A receiver that gets a frame a second time acknowledges it and otherwise ignores it. With ``retries=0`` nothing is
    acknowledged.

    A *call* of a node is one reception, report, wake-up or request of its application. One call sends at most
    `rules.MOST_AT_ONCE` of these frames. A new key, an event for many sinks or a burst of events creates hundreds of
    frames at once, which the radio could only queue, and a frame in that queue would be sent again before it has left.
    So at most `rules.MOST_IN_FLIGHT` frames of a node are in flight. For each neighbor there are two limits of the
    same number: for the events that it has yet to acknowledge, and for all other frames. Further frames wait for their
    turn, which comes with an acknowledgement or with the next wake-up after `rules.PACE_US`. A frame that must be sent
    again is not in flight meanwhile, so a neighbor that is gone does not hold up the others.

    A node whose memory of pending frames fills up refuses events, and soon notifications as well, instead of
    acknowledging them (`rules.has_room_to_forward`). The sender sends a refused frame again after the longest wait, and
    does not count its neighbor as lost. A message that is still refused after the time in which neighbors count as lost
    is dropped as "full": two nodes may both be full of notifications to each other. Events are counted apart from other
    frames. If they were counted together, refused events would hold up notifications, which the neighbor still accepts,
    and two nodes that are full of events for each other would send nothing else.

Radios that report
    A radio may report whether a unicast frame was acknowledged by the neighbor's radio (`Node.sent`). From its first
    report of an acknowledgement on, with ``acks="radio"``, frames request no ack of TinyMQ's own. The radio holds
    `rules.MOST_IN_RADIO` of a node's unicast frames at a time. The next one follows its report, so that a node sends no
    faster than a busy channel takes its frames, and never repeats a frame that its radio still has. A frame that the
    radio gave up waits like an unacknowledged one, and counts as one of the ``retries``. A frame that arrived is
    removed. Only a frame that a neighbor may refuse (its direction in the tree is UP or DOWN) is kept until a refusal
    can no longer come. A report that does not come within the longest wait (the node was down meanwhile) counts as a
    failure.

    Each neighbor has its own frame numbers. With one counter for all neighbors, the numbers of a busy node would wrap
    while a neighbor that receives few frames still remembers old ones; it would take a new frame for a repeated one.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.rules import (
    MOST_IN_FLIGHT,
    PACE_US,
    is_given_up,
    is_too_old,
    longest_wait_us,
    most_frames,
    retry_wait_us,
)

MOST_NEIGHBORS = 1000  # number of neighbors whose frame numbers are kept
# A pending frame waits for its turn, for the radio's report, for an ack (else it is sent again), or for a refusal.
TURN, REPORT, ACK, REFUSAL = range(4)


class Pending:
    """A frame that waits to be sent or answered.

    waits_for: TURN, REPORT, ACK or REFUSAL (`Unicast._set_wait` explains them); direction: UP to the parent, DOWN to a
    node whose key is a prefix of the target, else OPEN; sent: how often the frame was sent; first_us: time in µs of the
    first transmission; due_us: time in µs at which the wait ends.
    """

    def __init__(self, neighbor, number, message, direction, frame, now):
        self.neighbor = neighbor
        self.number = number
        self.message = message
        self.direction = direction
        self.frame = frame
        self.first_us = now
        self.sent = 0
        self.due_us = 0
        self.waits_for = TURN


class Unicast:
    """The unicast link layer of a node: it numbers, acknowledges and retransmits frames."""

    def __init__(self, node):
        self.node = node
        self.pending = []
        self._retries = node.settings.retries
        self.uses_reports = bool(self._retries) and node.settings.acks == "radio"
        self._has_reported = False  # whether the radio has reported an acknowledgement
        self._frames_left = most_frames(False, 0)  # number of frames that this call may still send
        self._unacknowledged = {}  # (neighbor, whether these are events) -> number of frames yet to be acknowledged
        self._retry_us = node.settings.times.retry_us
        self._accepted = RecentIds(node.settings.max_known)  # (neighbor, number) of the frames accepted last
        self._first_number = node.random.below(wire.U16 + 1)
        self._numbers = RecentIds(MOST_NEIGHBORS)  # neighbor -> the number of the last frame to it

    def start(self, boot):
        """Choose the sequence number of the first frame; ``boot``: the number of earlier starts of the node.

        Neighbors may remember frame numbers from before a restart. So the numbers of four successive starts begin in
        different quarters of the 16-bit range, at a random number there.
        """
        self._first_number = (boot & 3) << 14 | self._first_number & 0x3FFF

    def begin(self, now):
        """Count the node's frames in flight, and set how many more frames it may send for the current input.

        An input is a received frame, a radio's report, a wake-up or a request of the application.
        """
        in_flight = 0
        unacknowledged = {}
        for pending in self.pending:
            if pending.waits_for == REPORT:
                in_flight += 1
            elif pending.sent and pending.waits_for != REFUSAL:
                unacknowledged[_counter_key(pending)] = unacknowledged.get(_counter_key(pending), 0) + 1
                if not self._has_reported and pending.sent == 1 and pending.due_us > now:
                    in_flight += 1
        self._unacknowledged = unacknowledged
        self._frames_left = most_frames(self._has_reported, in_flight)

    def send(self, neighbor, message, now, direction=wire.OPEN):
        """Send a message to a neighbor, now or when its turn comes.

        If ``max_known`` frames are pending already, drop the message with the reason "full". ``direction``: UP to
        the parent, DOWN to a node whose key is a prefix of the target, OPEN to any other neighbor.
        """
        if len(self.pending) >= self.node.settings.max_known:
            self.node.drop_message(message, NOBODY, "full")
            return
        last_number = self._numbers.get(neighbor)
        frame_number = ((self._first_number if last_number is None else last_number) + 1) & wire.U16
        self._numbers.put(neighbor, frame_number)
        pending = Pending(
            neighbor, frame_number, message, direction, wire.encode(frame_number, message, direction), now
        )
        if self._frames_left and not self._retries:
            self._send(pending, now)
            return
        self.pending.append(pending)
        self._send_or_wait(pending, now)

    def _may_send(self, pending):
        """Return whether a pending frame may be sent now.

        A node sends a limited number of frames for each input that it processes. If its radio does not report whether
        frames arrived, a new frame also waits while its receiver has `rules.MOST_IN_FLIGHT` or more frames to
        acknowledge. Events and other frames are counted separately.
        """
        if not self._frames_left:
            return False
        return self._has_reported or pending.sent or self._unacknowledged.get(_counter_key(pending), 0) < MOST_IN_FLIGHT

    def _send_or_wait(self, pending, now):
        if self._may_send(pending):
            self._send(pending, now)
        else:
            pending.waits_for = TURN
            pending.due_us = now + PACE_US

    def _send(self, pending, now):
        self._frames_left -= 1
        frame_bytes = wire.without_ack(pending.frame) if self._has_reported else pending.frame
        self.node.outbox.append((pending.neighbor, frame_bytes))
        if not self._retries:
            return
        if not pending.sent:
            pending.first_us = now
            self._unacknowledged[_counter_key(pending)] = self._unacknowledged.get(_counter_key(pending), 0) + 1
        pending.sent += 1
        if self._has_reported:
            self._set_wait(REPORT, pending, longest_wait_us(self._retry_us), now)
        else:
            self._set_wait(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)

    def _set_wait(self, state, pending, wait_us, now):
        """Set what a pending frame waits for, and when the wait ends: 1 to 1.5 times ``wait_us`` from now, at random.

        ``state``: TURN, its turn to be sent; REPORT, the radio's report; ACK, an acknowledgement; REFUSAL, a refusal,
        which can come until the end of the wait.
        """
        pending.waits_for = state
        pending.due_us = now + wait_us + self.node.random.below(wait_us // 2 + 1)

    def take_report(self, neighbor, number, ok, now):
        """Process the radio's report about a frame, and send waiting frames that may be sent now.

        ``number``: the frame's sequence number; ``ok``: whether the radio of ``neighbor`` acknowledged the frame.
        """
        # A radio without acknowledgements reports only failures.
        self._has_reported = self._has_reported or ok
        pending = self._find_pending(neighbor, number)
        if pending is not None and pending.waits_for == REPORT:
            if not ok:
                self._set_wait(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)
            elif pending.direction == wire.OPEN:
                self.pending.remove(pending)
            else:
                self._set_wait(REFUSAL, pending, longest_wait_us(self._retry_us), now)
        self._send_next(now)

    def _send_next(self, now):
        """Send frames that wait for their turn, at most as many as `begin` permits."""
        self.begin(now)
        for pending in self.pending:
            if not self._frames_left:
                return
            if pending.waits_for == TURN and self._may_send(pending):
                self._send(pending, now)

    def take_refusal(self, neighbor, number, now):
        """Plan another transmission of a frame that a neighbor refused, or drop the frame if it is too old.

        ``number``: the frame's sequence number. A neighbor refuses a frame if it has no room now, or if the frame is
        misdirected (`routing.is_misdirected`). In the latter case the neighbor's next status broadcast may change the
        message's next hop before the frame is sent again.
        """
        pending = self._find_pending(neighbor, number)
        if pending is None:
            return
        if pending.waits_for in (REPORT, REFUSAL):
            self._set_wait(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)
        elif is_too_old(pending.first_us, now, self.node.settings.times.lost_after_us):
            # Two neighbors may refuse each other's frames for ever.
            self.pending.remove(pending)
            self.node.drop_message(pending.message, NOBODY, "full")
        elif pending.waits_for == ACK and not self._has_reported:
            # The neighbor answers, so it is not lost. A frame that was sent twice is no longer in flight.
            pending.sent = 2
            self._set_wait(ACK, pending, longest_wait_us(self._retry_us), now)

    def _find_pending(self, neighbor, number):
        for pending in self.pending:
            if pending.neighbor == neighbor and pending.number == number:
                return pending
        return None

    def is_new(self, neighbor, number):
        """Return whether this node has not yet accepted a frame with the sequence number ``number`` from a neighbor.

        Without repetition (``retries=0``) every frame is new.
        """
        return not self._retries or (neighbor, number) not in self._accepted

    def take(self, neighbor, number, wants_ack):
        """Remember the sequence number of a neighbor's frame as accepted; if ``wants_ack``, acknowledge the frame.

        Do nothing without repetition (``retries=0``).
        """
        if self._retries:
            if wants_ack:
                self.node.outbox.append((neighbor, wire.encode_ack(number)))
            self._accepted.put((neighbor, number))

    def refuse(self, neighbor, number):
        """Send a neighbor a refusal of its frame with the sequence number ``number``."""
        self.node.outbox.append((neighbor, wire.encode_refusal(number)))

    def take_acknowledgement(self, neighbor, number, now):
        """Remove the pending frame that a neighbor has acknowledged, and send waiting frames that may be sent now.

        ``number``: the frame's sequence number, from the acknowledgement. Do nothing if the frame is not pending.
        """
        pending = self._find_pending(neighbor, number)
        if pending is not None:
            self.pending.remove(pending)
            self._send_next(now)

    def is_waiting_for(self, neighbor):
        """Return whether a frame to a neighbor still waits to be sent, reported or acknowledged."""
        return any([pending.neighbor == neighbor and pending.waits_for != REFUSAL for pending in self.pending])

    def is_granting(self, neighbor, tree):
        """Return whether a pending frame grants a neighbor a key in a tree."""
        return any(
            [
                frame.neighbor == neighbor and isinstance(frame.message, wire.Grant) and frame.message.tree == tree
                for frame in self.pending
            ]
        )

    def withdraw(self, is_wrong):
        """Remove the pending frames for which ``is_wrong(pending)`` is true, and return a list of their messages.

        Frames that have arrived, and only wait for a possible refusal, stay.
        """
        withdrawn_frames = [pending for pending in self.pending if pending.waits_for != REFUSAL and is_wrong(pending)]
        if withdrawn_frames:
            self.pending = [pending for pending in self.pending if pending not in withdrawn_frames]
        return [pending.message for pending in withdrawn_frames]

    def next_due_us(self):
        """Return the earliest time in µs at which a pending frame is due, or None if no frame is pending."""
        return min([pending.due_us for pending in self.pending]) if self.pending else None

    def wake(self, now):
        """Send due frames again, and remove all frames to neighbors that no longer answer.

        Returns [(neighbor, list of the messages that it has not acknowledged)] for the neighbors that no longer answer:
        a frame to them has been sent too often (`rules.is_given_up`).
        """
        silent_neighbors = []
        self.pending = [
            pending_frame
            for pending_frame in self.pending
            if pending_frame.waits_for != REFUSAL or pending_frame.due_us > now
        ]
        for pending in self.pending:
            if pending.due_us > now:
                continue
            is_heard = self.node.overlay.was_heard_since(pending.neighbor, pending.first_us)
            if not pending.sent or not is_given_up(pending.sent, self._retries, is_heard):
                self._send_or_wait(pending, now)
            elif pending.neighbor not in silent_neighbors:
                silent_neighbors.append(pending.neighbor)
        if not self._retries:
            self.pending = [pending for pending in self.pending if pending.due_us > now]
        return [(neighbor, self._give_up_frames(neighbor)) for neighbor in silent_neighbors]

    def _give_up_frames(self, neighbor):
        """Remove all frames to a neighbor; return a list of the messages that the neighbor has not acknowledged."""
        given_up_messages = [
            pending.message for pending in self.pending if pending.neighbor == neighbor and pending.waits_for != REFUSAL
        ]
        self.pending = [pending for pending in self.pending if pending.neighbor != neighbor]
        return given_up_messages


def _counter_key(pending):
    """Return the key of the counter that counts a pending frame while it is unacknowledged.

    The key is (neighbor, whether the frame carries an event). Events are counted separately, so a refused event delays
    only other events.
    """
    return pending.neighbor, isinstance(pending.message, wire.Event)

"""One hop, reliably: frames to a neighbor are numbered, acknowledged, and sent again until they are.

Theory of operation
    A frame that is not acknowledged is sent again, up to ``retries`` times, after ``retry_ms``, twice that, four times
    that and so on to eight times, each with a random half of it more: two that collided shall not do so again. Then the
    neighbor counts as lost, unless something else was heard of it meanwhile: it is asked up to three times as often
    then, for it is the link that is bad. Who gets a frame a second time acknowledges it again and does nothing else
    with it. With ``retries=0`` nothing is acknowledged.

    One call of a node sends no more than `rules.MOST_AT_ONCE` of these frames: a key that changes, an event that many
    ask for, or a burst of events makes hundreds of frames at once, which the radio could only queue. A frame in that
    queue would be sent again before it has left. So no more than `rules.MOST_ON_WAY` frames of a node are on their way,
    and a neighbor has no more than as many events and as many other frames to acknowledge. Further frames wait for
    their turn, which an acknowledgement gives them, or the next wake-up after `rules.PACE_US`. A frame that has to be
    sent again is no longer on its way: a neighbor that is gone does not keep others waiting.

    A node whose memory of pending frames fills refuses events, and soon notifications as well, in place of
    acknowledging them (`rules.may_take_more`). The sender sends a refused frame again after the longest wait, and does
    not count its neighbor as lost. A message that is still refused after the time in which neighbors count as lost is
    dropped as "full": two nodes may both be full of notifications to each other. Events are counted apart from other
    frames, because refused events would keep the notifications waiting that the neighbor takes: two nodes full of
    events to each other would send nothing else.

Radios that report
    A radio may report whether a unicast frame was acknowledged by the neighbor's radio (`Node.sent`). From its first
    report of an acknowledgement on, with ``acks="radio"``, frames ask for no ack of TinyMQ's own. The radio holds
    `rules.MOST_IN_RADIO` of a node's unicast frames at a time. The next one follows its report, so that a node sends no
    faster than a busy channel takes its frames, and never repeats a frame that its radio still has. A frame that the
    radio gave up waits as one that is not acknowledged, and counts as sent. A frame that arrived is done with; if it
    went UP or DOWN, it is kept until a refusal can no longer come. A report that does not come within the longest wait
    (the node was down meanwhile) counts as a failure.

    The frames to each neighbor are numbered by themselves. In one row of numbers for all, a busy node's would come
    round while a neighbor that is sent few of them still remembers them, and takes a new frame for one it has had.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.rules import (
    MOST_ON_WAY,
    PACE_US,
    is_given_up,
    is_too_old,
    longest_wait_us,
    most_frames,
    retry_wait_us,
)

MOST_NEIGHBORS = 1000  # whose numbers are kept
# What a frame waits for: its turn; the radio's report; an ack, or the time to be sent again; a refusal.
TURN, REPORT, ACK, REFUSAL = range(4)


class Pending:
    """A frame that waits; for: TURN, REPORT, ACK or REFUSAL; way: what it takes the neighbor for."""

    def __init__(self, neighbor, number, message, way, frame, now):
        self.neighbor = neighbor
        self.number = number
        self.message = message
        self.way = way
        self.frame = frame
        self.first_us = now
        self.sent = 0
        self.due_us = 0
        self.waits_for = TURN


class Unicast:
    """The unicast frames of a node, to and from its neighbors."""

    def __init__(self, node):
        self.node = node
        self.pending = []
        self._retries = node.settings.retries
        self.uses_reports = bool(self._retries) and node.settings.acks == "radio"
        self._reports = False  # whether the radio has reported an acknowledgement
        self._left = most_frames(False, 0)  # of the frames of this call
        self._unacknowledged = {}  # (neighbor, whether these are events) -> number of frames yet to be acknowledged
        self._retry_us = node.settings.times.retry_us
        self._heard = RecentIds(node.settings.max_known)
        # Not from 0: neighbors may remember the numbers before a restart.
        self._first_number = node.random.below(wire.U16 + 1)
        self._numbers = RecentIds(MOST_NEIGHBORS)  # neighbor -> the number of the last frame to it

    def begin(self, now):
        """Count the frames that are on their way, and with them those that this call may send."""
        on_way = 0
        unacknowledged = {}
        for pending in self.pending:
            if pending.waits_for == REPORT:
                on_way += 1
            elif pending.sent and pending.waits_for != REFUSAL:
                unacknowledged[_window(pending)] = unacknowledged.get(_window(pending), 0) + 1
                if not self._reports and pending.sent == 1 and pending.due_us > now:
                    on_way += 1
        self._unacknowledged = unacknowledged
        self._left = most_frames(self._reports, on_way)

    def send(self, neighbor, message, now, way=wire.OPEN):
        """Send a message to a neighbor; with ``max_known`` frames that wait for an answer, one more is dropped."""
        if len(self.pending) >= self.node.settings.max_known:
            self.node.drop_message(message, NOBODY, "full")
            return
        last = self._numbers.get(neighbor)
        number = ((self._first_number if last is None else last) + 1) & wire.U16
        self._numbers.put(neighbor, number)
        pending = Pending(neighbor, number, message, way, wire.encode(number, message, way), now)
        if self._left and not self._retries:
            self._send(pending, now)
            return
        self.pending.append(pending)
        self._send_or_wait(pending, now)

    def _may_send(self, pending):
        """Return whether a frame may go now. A frame that is sent again has its place with its neighbor already."""
        if not self._left:
            return False
        return self._reports or pending.sent or self._unacknowledged.get(_window(pending), 0) < MOST_ON_WAY

    def _send_or_wait(self, pending, now):
        if self._may_send(pending):
            self._send(pending, now)
        else:
            pending.waits_for = TURN
            pending.due_us = now + PACE_US

    def _send(self, pending, now):
        self._left -= 1
        frame = wire.without_ack(pending.frame) if self._reports else pending.frame
        self.node.outbox.append((pending.neighbor, frame))
        if not self._retries:
            return
        if not pending.sent:
            pending.first_us = now
            self._unacknowledged[_window(pending)] = self._unacknowledged.get(_window(pending), 0) + 1
        pending.sent += 1
        if self._reports:
            self._wait_for(REPORT, pending, longest_wait_us(self._retry_us), now)
        else:
            self._wait_for(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)

    def _wait_for(self, what, pending, wait_us, now):
        pending.waits_for = what
        pending.due_us = now + wait_us + self.node.random.below(wait_us // 2 + 1)

    def reported(self, neighbor, number, ok, now):
        """Note the radio's report of a frame, and send what waits for its turn."""
        # A radio that asks for no acknowledgements reports failures alone.
        self._reports = self._reports or ok
        pending = self._find(neighbor, number)
        if pending is not None and pending.waits_for == REPORT:
            if not ok:
                self._wait_for(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)
            elif pending.way == wire.OPEN:
                self.pending.remove(pending)
            else:
                self._wait_for(REFUSAL, pending, longest_wait_us(self._retry_us), now)
        self._send_next(now)

    def _send_next(self, now):
        """Send the frames whose turn it is by now."""
        self.begin(now)
        for pending in self.pending:
            if not self._left:
                return
            if pending.waits_for == TURN and self._may_send(pending):
                self._send(pending, now)

    def refused(self, neighbor, number, now):
        """Send a frame again later: its neighbor has no room now, or is not what the frame took it for.

        In the latter case its infos may change the way of the message before.
        """
        pending = self._find(neighbor, number)
        if pending is None:
            return
        if pending.waits_for in (REPORT, REFUSAL):
            self._wait_for(ACK, pending, retry_wait_us(self._retry_us, pending.sent - 1), now)
        elif is_too_old(pending.first_us, now, self.node.settings.times.lost_after_us):
            # Two neighbors may both be full of frames to each other.
            self.pending.remove(pending)
            self.node.drop_message(pending.message, NOBODY, "full")
        elif pending.waits_for == ACK and not self._reports:
            # A neighbor that answers is not given up, and the frame is no longer on its way.
            pending.sent = 2
            self._wait_for(ACK, pending, longest_wait_us(self._retry_us), now)

    def _find(self, neighbor, number):
        """Return the frame of that number to a neighbor if it still waits, else None."""
        for pending in self.pending:
            if pending.neighbor == neighbor and pending.number == number:
                return pending
        return None

    def is_new(self, neighbor, number):
        """Whether a neighbor's frame has not been taken yet."""
        return not self._retries or (neighbor, number) not in self._heard

    def take(self, neighbor, number, wants_ack):
        """Remember a neighbor's frame, and acknowledge it if that is wanted."""
        if self._retries:
            if wants_ack:
                self.node.outbox.append((neighbor, wire.encode_ack(number)))
            self._heard.put((neighbor, number))

    def refuse(self, neighbor, number):
        """Report to a neighbor that its frame, which wants no ack, was not taken."""
        self.node.outbox.append((neighbor, wire.encode_refusal(number)))

    def acknowledged(self, neighbor, number, now):
        """Forget the frame that an acknowledgement is for, and send what waits for its turn."""
        pending = self._find(neighbor, number)
        if pending is not None:
            self.pending.remove(pending)
            self._send_next(now)

    def is_waiting_for(self, neighbor):
        """Whether a neighbor has yet to acknowledge something."""
        return any([pending.neighbor == neighbor and pending.waits_for != REFUSAL for pending in self.pending])

    def is_granting(self, neighbor, tree):
        """Whether a neighbor has yet to acknowledge a key in a tree."""
        return any(
            [
                p.neighbor == neighbor and isinstance(p.message, wire.Grant) and p.message.tree == tree
                for p in self.pending
            ]
        )

    def take_back(self, is_wrong):
        """Wait for some frames no longer; returns their messages. ``is_wrong`` is asked of each `Pending`."""
        wrong = [pending for pending in self.pending if pending.waits_for != REFUSAL and is_wrong(pending)]
        if wrong:
            self.pending = [pending for pending in self.pending if pending not in wrong]
        return [pending.message for pending in wrong]

    def next_due_us(self):
        """When something has to be sent again, or None."""
        return min([pending.due_us for pending in self.pending]) if self.pending else None

    def wake(self, now):
        """Send again what is due; returns (neighbor, messages) of the neighbors that do not answer any more."""
        silent = []
        self.pending = [p for p in self.pending if p.waits_for != REFUSAL or p.due_us > now]
        for pending in self.pending:
            if pending.due_us > now:
                continue
            is_heard = self.node.overlay.is_there(pending.neighbor, pending.first_us)
            if not pending.sent or not is_given_up(pending.sent, self._retries, is_heard):
                self._send_or_wait(pending, now)
            elif pending.neighbor not in silent:
                silent.append(pending.neighbor)
        if not self._retries:
            self.pending = [pending for pending in self.pending if pending.due_us > now]
        return [(neighbor, self._give_up(neighbor)) for neighbor in silent]

    def _give_up(self, neighbor):
        given_up = [
            pending.message for pending in self.pending if pending.neighbor == neighbor and pending.waits_for != REFUSAL
        ]
        self.pending = [pending for pending in self.pending if pending.neighbor != neighbor]
        return given_up


def _window(pending):
    """Return (neighbor, whether the frame is an event): an event that is refused keeps only events waiting."""
    return pending.neighbor, isinstance(pending.message, wire.Event)

"""One hop, reliably: frames to a neighbor are numbered, acknowledged, and sent again until they are.

Theory of operation
    A frame that is not acknowledged is sent again, up to ``retries`` times, after ``retry_ms``, twice that, four times
    that and so on to eight times, each with a random half of it more: two that collided shall not do so again. Then the
    neighbor counts as lost, unless something else was heard of it meanwhile: it is asked up to three times as often
    then, for it is the link that is bad. Who gets a frame a second time acknowledges it again and does nothing else
    with it. With ``retries=0`` nothing is acknowledged.

    The frames to each neighbor are numbered by themselves. In one row of numbers for all, a busy node's would come
    round while a neighbor that is sent few of them still remembers them, and takes a new frame for one it has had.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.rules import is_given_up, retry_wait_us

MOST_NEIGHBORS = 1000  # whose numbers are kept


class Pending:
    """A frame that waits for its acknowledgement."""

    def __init__(self, neighbor, number, message, frame, now):
        self.neighbor = neighbor
        self.number = number
        self.message = message
        self.frame = frame
        self.first_us = now
        self.sent = 0
        self.due_us = 0


class Unicast:
    """The unicast frames of a node, to and from its neighbors."""

    def __init__(self, node):
        self.node = node
        self.pending = []
        self._retries = node.settings.retries
        self._retry_us = node.settings.times.retry_us
        self._heard = RecentIds(node.settings.max_known)
        # Not from 0: neighbors may remember the numbers before a restart.
        self._first_number = node.random.below(wire.U16 + 1)
        self._numbers = RecentIds(MOST_NEIGHBORS)  # neighbor -> the number of the last frame to it

    def send(self, neighbor, message, now):
        """Send a message to a neighbor; with ``max_known`` frames that wait for an answer, one more is dropped."""
        if len(self.pending) >= self.node.settings.max_known:
            self.node.drop_message(message, NOBODY, "full")
            return
        last = self._numbers.get(neighbor)
        number = ((self._first_number if last is None else last) + 1) & wire.U16
        self._numbers.put(neighbor, number)
        frame = wire.encode(number, message)
        if not self._retries:
            self.node.outbox.append((neighbor, frame))
            return
        pending = Pending(neighbor, number, message, frame, now)
        self.pending.append(pending)
        self._send(pending, now)

    def _send(self, pending, now):
        self.node.outbox.append((pending.neighbor, pending.frame))
        wait_us = retry_wait_us(self._retry_us, pending.sent)
        pending.due_us = now + wait_us + self.node.random.below(wait_us // 2 + 1)
        pending.sent += 1

    def take(self, neighbor, number):
        """A frame came from a neighbor: acknowledge it. Returns whether it is new."""
        if not self._retries:
            return True
        self.node.outbox.append((neighbor, wire.encode_ack(number)))
        is_new = (neighbor, number) not in self._heard
        self._heard.put((neighbor, number))
        return is_new

    def acknowledged(self, neighbor, number):
        """An acknowledgement came; returns the message that it is for, None if nothing waits for it."""
        for pending in self.pending:
            if pending.neighbor == neighbor and pending.number == number:
                self.pending.remove(pending)
                return pending.message
        return None

    def is_waiting_for(self, neighbor):
        """Whether a neighbor has yet to acknowledge something."""
        return any([pending.neighbor == neighbor for pending in self.pending])

    def next_due_us(self):
        """When something has to be sent again, or None."""
        return min([pending.due_us for pending in self.pending]) if self.pending else None

    def wake(self, now):
        """Send again what is due; returns (neighbor, messages) of the neighbors that do not answer any more."""
        silent = []
        for pending in self.pending:
            if pending.due_us > now:
                continue
            heard_us = self.node.overlay.heard_us(pending.neighbor)
            is_heard = heard_us is not None and heard_us > pending.first_us
            if not is_given_up(pending.sent, self._retries, is_heard):
                self._send(pending, now)
            elif pending.neighbor not in silent:
                silent.append(pending.neighbor)
        return [(neighbor, self._give_up(neighbor)) for neighbor in silent]

    def _give_up(self, neighbor):
        given_up = [pending.message for pending in self.pending if pending.neighbor == neighbor]
        self.pending = [pending for pending in self.pending if pending.neighbor != neighbor]
        return given_up

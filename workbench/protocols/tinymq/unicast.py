"""One hop, reliably: frames to a neighbor are numbered, acknowledged, and sent again until they are.

Theory of operation
    A frame that is not acknowledged is sent again, up to ``retries`` times, after ``retry_ms``, twice that, four times
    that and so on to eight times, each with a random half of it more: two that collided shall not do so again. Then the
    neighbor counts as lost, unless something else was heard of it meanwhile: it is asked up to three times as often
    then, for it is the link that is bad. Who gets a frame a second time acknowledges it again and does nothing else
    with it. With ``retries=0`` nothing is acknowledged.

    One call of a node sends no more than `rules.MOST_AT_ONCE` of these frames. What is more waits `rules.PACE_US`, and
    goes when the node is woken: a key that changes, or an event that many ask for, makes hundreds of frames at once,
    which the radio could only queue.

    The frames to each neighbor are numbered by themselves. In one row of numbers for all, a busy node's would come
    round while a neighbor that is sent few of them still remembers them, and takes a new frame for one it has had.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.contract import NOBODY
from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.rules import MOST_AT_ONCE, PACE_US, is_given_up, retry_wait_us

MOST_NEIGHBORS = 1000  # whose numbers are kept


class Pending:
    """A frame that waits to be sent, or for its acknowledgement; way: what it takes the neighbor for."""

    def __init__(self, neighbor, number, message, way, frame, now):
        self.neighbor = neighbor
        self.number = number
        self.message = message
        self.way = way
        self.frame = frame
        self.first_us = now
        self.sent = 0
        self.due_us = 0


class Unicast:
    """The unicast frames of a node, to and from its neighbors."""

    def __init__(self, node):
        self.node = node
        self.pending = []
        self._left = MOST_AT_ONCE  # of the frames of this call
        self._retries = node.settings.retries
        self._retry_us = node.settings.times.retry_us
        self._heard = RecentIds(node.settings.max_known)
        # Not from 0: neighbors may remember the numbers before a restart.
        self._first_number = node.random.below(wire.U16 + 1)
        self._numbers = RecentIds(MOST_NEIGHBORS)  # neighbor -> the number of the last frame to it

    def begin(self):
        """The node is called: what it sends counts from here."""
        self._left = MOST_AT_ONCE

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

    def _send_or_wait(self, pending, now):
        if self._left:
            self._send(pending, now)
        else:
            pending.due_us = now + PACE_US

    def _send(self, pending, now):
        self._left -= 1
        self.node.outbox.append((pending.neighbor, pending.frame))
        if not self._retries:
            return
        if not pending.sent:
            pending.first_us = now
        wait_us = retry_wait_us(self._retry_us, pending.sent)
        pending.due_us = now + wait_us + self.node.random.below(wait_us // 2 + 1)
        pending.sent += 1

    def is_new(self, neighbor, number):
        """Whether a neighbor's frame has not been taken yet."""
        return not self._retries or (neighbor, number) not in self._heard

    def take(self, neighbor, number):
        """Acknowledge a neighbor's frame."""
        if self._retries:
            self.node.outbox.append((neighbor, wire.encode_ack(number)))
            self._heard.put((neighbor, number))

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
        wrong = [pending for pending in self.pending if is_wrong(pending)]
        if wrong:
            self.pending = [pending for pending in self.pending if pending not in wrong]
        return [pending.message for pending in wrong]

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
            if not pending.sent or not is_given_up(pending.sent, self._retries, is_heard):
                self._send_or_wait(pending, now)
            elif pending.neighbor not in silent:
                silent.append(pending.neighbor)
        if not self._retries:
            self.pending = [pending for pending in self.pending if pending.due_us > now]
        return [(neighbor, self._give_up(neighbor)) for neighbor in silent]

    def _give_up(self, neighbor):
        given_up = [pending.message for pending in self.pending if pending.neighbor == neighbor]
        self.pending = [pending for pending in self.pending if pending.neighbor != neighbor]
        return given_up

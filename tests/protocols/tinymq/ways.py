"""The way of each copy of a message through a run, for tests: which nodes have had it before this one.

A frame has the sender's address and a number, so what comes out of it goes on with the way that the frame had. A copy
that waits, or is sent elsewhere as a neighbor does not answer, keeps its way. What a rendezvous node makes of an event,
and a stored query that is handed on, begin a new one.
"""

from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.node import TinyMQNode
from workbench.protocols.tinymq.rendezvous import Rendezvous
from workbench.protocols.tinymq.unicast import Unicast

ROUTED = (wire.Query, wire.Event, wire.Notification)
NEW_WAYS = ("_notify", "child_added", "key_changed")


class Ways:
    """Follows all messages of the runs that come; ``returned`` has the ways that lead to a node twice."""

    def __init__(self, monkeypatch):
        self.returned = []
        self.seen = 0
        self._of_frames = {}  # (sender, receiver, number) -> way
        self._of_messages = {}  # id of a message -> (the message, node, way)
        self._now = None  # the way of what a node has in its hands
        self._number = None
        for owner, name in ((TinyMQNode, "_take"), (TinyMQNode, "route"), (TinyMQNode, "wake"), (Unicast, "is_new")):
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name), getattr(self, name)))
        monkeypatch.setattr(Unicast, "send", self._around(Unicast.send, self.send))
        for name in NEW_WAYS:
            monkeypatch.setattr(Rendezvous, name, self._around(getattr(Rendezvous, name), self.begin))

    def _around(self, method, note):
        def wrapped(part, *arguments):
            before = self._now
            note(part, *arguments)
            try:
                return method(part, *arguments)
            finally:
                self._now = before

        return wrapped

    def is_new(self, unicast, neighbor, number):
        self._number = number

    def _take(self, node, message, previous_hop, now):
        if not isinstance(message, ROUTED):
            self._now = (node.address,)
            return
        way = self._of_frames.get((previous_hop, node.address, self._number), (previous_hop,))
        self._now = (*way, node.address)
        self.seen += 1
        if node.address in way:
            self.returned.append((now, message, self._now))

    def route(self, node, message, previous_hop, now):
        kept = self._of_messages.get(id(message))
        if kept is not None and kept[0] is message and kept[1] == node.address:
            self._now = kept[2]
        self._now = self._now or (node.address,)
        self._of_messages[id(message)] = message, node.address, self._now

    def wake(self, node, now):
        self._now = None

    def begin(self, rendezvous, *arguments):
        self._now = (rendezvous.node.address,)

    def send(self, unicast, neighbor, message, *arguments):
        own = unicast.node.address
        way = self._now or (own,)
        last = unicast._numbers.get(neighbor)
        number = ((unicast._first_number if last is None else last) + 1) & wire.U16
        self._of_frames[own, neighbor, number] = way
        self._of_messages[id(message)] = message, own, way

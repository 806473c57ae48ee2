"""The paths of message copies through a run, for tests: the nodes that have had a copy before.

A frame is identified by sender address and number, and messages that result from it continue its path. A copy that
waits, or is sent elsewhere because a neighbor does not answer, keeps its path. A notification for an event and a
stored query that is handed over start new paths."""

from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.node import TinyMQNode
from workbench.protocols.tinymq.rendezvous import Rendezvous
from workbench.protocols.tinymq.unicast import Unicast

ROUTED = (wire.Query, wire.Event, wire.Notification)
NEW_PATHS = ("_notify", "child_added", "key_changed")


class MessagePaths:
    """Recorder of the paths of all messages in later runs; `returned` lists the paths that lead to a node twice."""

    def __init__(self, monkeypatch):
        self.returned = []
        self.count = 0
        self._of_frames = {}  # (sender, receiver, number) -> path
        self._of_messages = {}  # id of a message -> (the message, node, path)
        self._now = None  # the path of the message that a node is processing
        self._number = None
        for owner, name in (
            (TinyMQNode, "_process_message"),
            (TinyMQNode, "route"),
            (TinyMQNode, "wake"),
            (Unicast, "is_new"),
        ):
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name), getattr(self, name)))
        monkeypatch.setattr(Unicast, "send", self._around(Unicast.send, self.send))
        for name in NEW_PATHS:
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

    def _process_message(self, node, message, previous_hop, now):
        if not isinstance(message, ROUTED):
            self._now = (node.address,)
            return
        path = self._of_frames.get((previous_hop, node.address, self._number), (previous_hop,))
        self._now = (*path, node.address)
        self.count += 1
        if node.address in path:
            self.returned.append((now, message, self._now))

    def route(self, node, message, previous_hop, now):
        known = self._of_messages.get(id(message))
        if known is not None and known[0] is message and known[1] == node.address:
            self._now = known[2]
        self._now = self._now or (node.address,)
        self._of_messages[id(message)] = message, node.address, self._now

    def wake(self, node, now):
        self._now = None

    def begin(self, rendezvous, *arguments):
        self._now = (rendezvous.node.address,)

    def send(self, unicast, neighbor, message, *arguments):
        own = unicast.node.address
        path = self._now or (own,)
        last = unicast._numbers.get(neighbor)
        number = ((unicast._first_number if last is None else last) + 1) & wire.U16
        self._of_frames[own, neighbor, number] = path
        self._of_messages[id(message)] = message, own, path

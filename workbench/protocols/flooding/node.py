"""The node of the flooding protocol.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import check_publication, with_payload
from workbench.errors import DecodeError
from workbench.protocols.contract import NOBODY, Forwarded, Held, Node, Originated
from workbench.protocols.flooding import wire
from workbench.protocols.flooding.rules import hops_taken
from workbench.protocols.recent import RecentIds


class FloodingNode(Node):
    """A node of the flooding protocol: it forwards each publication the first time that it receives it."""

    describe = staticmethod(wire.describe)

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.ttl = settings.ttl
        self._published = 0
        self._known = RecentIds(settings.max_events)

    def publish(self, attributes, now, payload=b""):
        """Flood a new publication and return its sequence number at this node.

        ``payload``: bytes that are added to the attributes, see `with_payload`.
        """
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        sequence = self.first_number + self._published
        frame = wire.encode(wire.Flood(self.address, sequence, self.ttl, attributes))
        self._published += 1
        self.events.append(Originated(NOBODY, "flood", self.address, sequence, sequence, ""))
        self._record_event((self.address, sequence), NOBODY, 0)
        self.deliver_to(self.subscriptions.open, attributes, NOBODY, "flood", self.address, sequence, now)
        self.outbox.append((None, frame))
        return sequence

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Record, deliver and forward a publication at its first reception; drop duplicates and malformed frames.

        A publication with a ttl of at most 1 is not forwarded. ``broadcast`` has no effect.
        """
        try:
            event_id, ttl = wire.decode_header(frame)
            if event_id in self._known.values:
                self.drop(previous_hop, "flood", event_id[0], event_id[1], "duplicate")
                return
            origin, sequence = event_id
            attributes = ()
            if self.subscriptions.open:
                attributes = wire.decode_body(frame)
            else:
                wire.check_body(frame)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        self._record_event(event_id, previous_hop, hops_taken(self.ttl, ttl))
        if attributes:
            self.deliver_to(self.subscriptions.open, attributes, previous_hop, "flood", origin, sequence, now)
        if ttl <= 1:
            self.drop(previous_hop, "flood", origin, sequence, "ttl")
            return
        self.outbox.append((None, wire.with_ttl(frame, ttl - 1)))
        if self.tells_all:
            self.events.append(Forwarded(previous_hop, "flood", origin, sequence, 0, ""))

    def _record_event(self, event_id, previous_hop, hops):
        self._known.put(event_id)
        self.events.append(Held(previous_hop, "flood", event_id[0], event_id[1], hops, ""))

"""The node that gossips whole publications.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.errors import DecodeError
from workbench.protocols.contract import NOBODY, Forwarded
from workbench.protocols.flooding import node as flooding
from workbench.protocols.flooding import wire
from workbench.protocols.flooding.rules import hops_taken


class GossipNode(flooding.FloodingNode):
    """A flooding node that forwards a publication with a probability."""

    def __init__(self, address, settings, random):
        flooding.FloodingNode.__init__(self, address, settings, random)
        self.forwarding_probability = settings.forwarding_probability

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Record and deliver a new publication, and forward it with ``forwarding_probability``.

        A publication with a ttl of at most 1 is not forwarded. Duplicates and malformed frames are dropped.
        ``broadcast`` has no effect.
        """
        try:
            event_id, ttl = wire.decode_header(frame)
            origin, sequence = event_id
            if event_id in self._known.values:
                self.drop(previous_hop, "flood", origin, sequence, "duplicate")
                return
            attributes = wire.decode_body(frame)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        self._record_event(event_id, previous_hop, hops_taken(self.ttl, ttl))
        self.deliver_to(self.subscriptions.open, attributes, previous_hop, "flood", origin, sequence, now)
        if ttl <= 1:
            self.drop(previous_hop, "flood", origin, sequence, "ttl")
        elif self.random.uniform() >= self.forwarding_probability:
            self.drop(previous_hop, "flood", origin, sequence, "chance")
        else:
            self.outbox.append((None, wire.with_ttl(frame, ttl - 1)))
            if self.tells_all:
                self.events.append(Forwarded(previous_hop, "flood", origin, sequence, 0, ""))

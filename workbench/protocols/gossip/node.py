"""Gossip: flooding in which a node passes a publication on with a probability, so that it costs fewer frames.

Theory of operation
    A publisher always broadcasts its publication. A node that hears it for the first time holds it, hands it to its own
    subscriptions that match, and tosses a coin: with ``forwarding_probability`` it broadcasts it again with one hop
    less to live. Above a threshold that depends on the topology nearly all nodes get it, below it dies out near its
    source; 1 is flooding.

    With ``pieces`` above 1 a publication is cut into so many, and each is gossiped for itself
    (protocols/gossip_pieces.py); with 1 it goes whole, in one frame, as flooding's does.

Messages
    flood    origin, sequence, ttl, attributes (wire/flooding.py)
    piece    origin, sequence, ttl, pieces, number, event length, a piece of the event (wire/pieces.py)

Limits
    Those of flooding. Nobody asks for what did not come.

Reference
    Z. Haas, J. Halpern, L. Li: Gossip-based ad hoc routing, INFOCOM 2002 (its GOSSIP1 with k = 0 hops of flooding).

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.errors import DecodeError
from workbench.protocols import flooding
from workbench.protocols.contract import NOBODY, Forwarded, Parameter, Protocol
from workbench.wire import flooding as wire
from workbench.wire import pieces as wire_pieces

PARAMETERS = (
    Parameter(
        "forwarding_probability", 0.7, 0.0, 1.0, "share", "most of a grid's nodes get most events from about there on"
    ),
    Parameter("pieces", 1, 1, wire_pieces.MOST_PIECES, "pieces", "the publication as a whole, as gossip has it"),
    Parameter("max_partial", 50, 1, None, "publications", "being put together: as coded diffusion's max_events"),
) + flooding.PARAMETERS


class GossipNode(flooding.FloodingNode):
    """One node that gossips: what it subscribes to and publishes is as in flooding."""

    def __init__(self, address, settings, random):
        flooding.FloodingNode.__init__(self, address, settings, random)
        self.forwarding_probability = settings.forwarding_probability

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Hold and deliver a publication heard for the first time; pass it on if chance has it."""
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
        self._hold(event_id, previous_hop, self.ttl - ttl + 1)
        self._deliver(attributes, origin, sequence, previous_hop, now)
        if ttl <= 1:
            self.drop(previous_hop, "flood", origin, sequence, "ttl")
        elif self.random.uniform() >= self.forwarding_probability:
            self.drop(previous_hop, "flood", origin, sequence, "chance")
        else:
            self.outbox.append((None, wire.with_ttl(frame, ttl - 1)))
            if self.tells_all:
                self.events.append(Forwarded(previous_hop, "flood", origin, sequence, 0, ""))


def describe(frame, broadcast=True):
    """(message name, origin, sequence) of a flood or of a piece, for traces."""
    module = wire_pieces if frame[0] == wire_pieces.TYPE else wire
    return module.describe(frame, broadcast)


class Gossip(Protocol):
    """Gossip and its settings: ``Gossip(forwarding_probability=..., pieces=..., ttl=..., max_events=...)``."""

    node = GossipNode
    parameters = PARAMETERS
    disseminates = True
    describe = staticmethod(describe)

    @property
    def variant(self):
        """Which of the two kinds of node, for who has a twin of each: "" or " in pieces"."""
        return "" if self.pieces == 1 else " in pieces"

    def make_node(self, address, random):
        """A fresh node: of one kind for whole publications, of another for pieces."""
        if self.pieces == 1:
            return GossipNode(address, self, random)
        from workbench.protocols.gossip_pieces import PiecesGossipNode

        return PiecesGossipNode(address, self, random)

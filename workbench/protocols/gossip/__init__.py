"""Gossip: flooding in which a node passes a publication on with a probability, so that it costs fewer frames.

Theory of operation
    A publisher always broadcasts its publication. A node that hears it for the first time holds it, hands it to its own
    subscriptions that match, and tosses a coin: with ``forwarding_probability`` it broadcasts it again with one hop
    less to live. Above a threshold that depends on the topology nearly all nodes get it, below it dies out near its
    source; 1 is flooding.

    With ``pieces`` above 1 a publication is cut into so many, and each is gossiped for itself
    (protocols/gossip/pieces.py); with 1 it goes whole, in one frame, as flooding's does.

Messages
    flood    origin, sequence, ttl, attributes (protocols/flooding/wire.py)
    piece    origin, sequence, ttl, pieces, number, event length, a piece of the event (protocols/gossip/wire.py)

Limits
    Those of flooding. Nobody asks for what did not come.

Reference
    Z. Haas, J. Halpern, L. Li: Gossip-based ad hoc routing, INFOCOM 2002 (its GOSSIP1 with k = 0 hops of flooding).

The node runs on a mote too (`node.py`); this file, which says what the protocol is, stays with the host.
"""

from workbench.protocols import flooding
from workbench.protocols.gossip import wire
from workbench.protocols.gossip.node import GossipNode
from workbench.protocols.gossip.pieces import PiecesGossipNode
from workbench.protocols.protocol import Parameter, Protocol

# Gossip may import flooding; no other protocol imports another.
KIND_OF = "flooding"

PARAMETERS = (
    Parameter(
        "forwarding_probability", 0.7, 0.0, 1.0, "share", "most of a grid's nodes get most events from about there on"
    ),
    Parameter("pieces", 1, 1, wire.MOST_PIECES, "pieces", "the publication as a whole, as gossip has it"),
    Parameter("max_partial", 50, 1, None, "publications", "being put together: as coded diffusion's max_events"),
) + flooding.PARAMETERS


# What notebooks/papers/network-coding.ipynb compares coding with.
PRESETS = {
    "beside network coding, FP = 1": {"forwarding_probability": 1.0},
    "beside network coding, halves": {"forwarding_probability": 1.0, "pieces": 2},
}


class Gossip(Protocol):
    """Gossip and its settings: ``Gossip(forwarding_probability=..., pieces=..., ttl=..., max_events=...)``."""

    node = GossipNode
    parameters = PARAMETERS
    disseminates = True
    dissector = "workbench.protocols.gossip.dissector"
    explain = "workbench.protocols.gossip.explain"
    presets = PRESETS

    @property
    def fast(self):
        """Each of the two kinds of node has its own twin: whole publications have flooding's."""
        return "workbench.protocols.flooding.fast" if self.pieces == 1 else "workbench.protocols.gossip.fast"

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """In pieces, a publication costs five times what a flood does."""
        return readings if self.pieces == 1 else 5 * readings

    @classmethod
    def mote_modules(cls):
        """One of them for each kind of node."""
        return (GossipNode.__module__, PiecesGossipNode.__module__)

    def kind_of_node(self):
        """Nodes of one kind for whole publications, of another for pieces."""
        return GossipNode if self.pieces == 1 else PiecesGossipNode

"""Gossip: flooding in which each node forwards a publication with a probability, which costs fewer frames.

Theory of operation
    A publisher always broadcasts its publication. A node that hears it for the first time holds it, delivers it to its
    own matching subscriptions and, with ``forwarding_probability``, broadcasts it again with a ttl that is one lower.
    Above a probability that depends on the topology, nearly all nodes get the publication; below, it dies out near
    its source. A probability of 1 is flooding.

    With ``pieces`` above 1 a publication is split into that many pieces, and each piece is gossiped independently
    (protocols/gossip/pieces.py). With 1 it is sent whole, in flooding's frame.

Messages
    flood    origin, sequence, ttl, attributes (protocols/flooding/wire.py)
    piece    origin, sequence, ttl, pieces, number, event length, a piece of the event (protocols/gossip/wire.py)

Limits
    The limits of flooding. A missing publication or piece is never requested again.

Reference
    Z. Haas, J. Halpern, L. Li: Gossip-based ad hoc routing, INFOCOM 2002 (its GOSSIP1 with k = 0 hops of flooding).

The node (`node.py`) also runs on a mote; this file, which describes the protocol, is used on the host only.
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
        "forwarding_probability",
        0.7,
        0.0,
        1.0,
        "share",
        "from about 0.7 on, most nodes of a grid get most events",
    ),
    Parameter("pieces", 1, 1, wire.MOST_PIECES, "pieces", "of a publication; 1: it is sent whole, as in plain gossip"),
    Parameter(
        "max_partial",
        50,
        1,
        None,
        "publications",
        "that a node reassembles at a time; as in coded diffusion",
    ),
) + flooding.PARAMETERS


# The settings with which notebooks/papers/network-coding.ipynb compares network coding.
PRESETS = {
    "compared with network coding: FP = 1": {"forwarding_probability": 1.0},
    "compared with network coding: two pieces": {"forwarding_probability": 1.0, "pieces": 2},
}


class Gossip(Protocol):
    """Gossip with its parameters: ``Gossip(forwarding_probability=..., pieces=..., ttl=..., max_events=...)``."""

    node = GossipNode
    parameters = PARAMETERS
    disseminates = True
    max_fragments = 16
    dissector = "workbench.protocols.gossip.dissector"
    explain = "workbench.protocols.gossip.explain"
    presets = PRESETS
    known_already = ("duplicate",)

    @property
    def fast(self):
        """The name of the module for the fast engine: flooding's if publications are sent whole, else gossip's own."""
        return "workbench.protocols.flooding.fast" if self.pieces == 1 else "workbench.protocols.gossip.fast"

    def receptions_on_an_arc(self, readings, subscriptions, duration_s):
        """Estimate how many frames are received on each arc (directed link) of the network during a run.

        The estimate is one for each of the ``readings``, or five if they are sent in pieces. The other arguments have
        no effect.
        """
        return readings if self.pieces == 1 else 5 * readings

    @classmethod
    def mote_modules(cls):
        """Return the names of the modules that a mote needs: those of GossipNode and of PiecesGossipNode.

        The setting ``pieces`` decides which of the two classes the mote uses.
        """
        return (GossipNode.__module__, PiecesGossipNode.__module__)

    def kind_of_node(self):
        """Return the class of nodes: GossipNode if publications are sent whole, else PiecesGossipNode."""
        return GossipNode if self.pieces == 1 else PiecesGossipNode

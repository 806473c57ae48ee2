"""Flooding: every node broadcasts every publication once, and delivers it to its matching subscriptions.

Theory of operation
    A publisher broadcasts its publication. A node that hears it for the first time holds it, delivers it to its own
    matching subscriptions, and broadcasts it again with a ttl that is one lower. Subscriptions are never sent.
    Flooding is the simplest protocol that delivers, the yardstick for the others, and the template for a new one.

Messages
    flood    origin, sequence, ttl, attributes (protocols/flooding/wire.py)

Limits
    A node remembers the last ``max_events`` publications. A publication that returns after a node forgot it is
    flooded again, until its ttl runs out.

The node (`node.py`) also runs on a mote; this file, which describes the protocol, is used on the host only.
"""

from workbench.protocols.flooding import wire
from workbench.protocols.flooding.node import FloodingNode
from workbench.protocols.protocol import Parameter, Protocol

PARAMETERS = (
    Parameter(
        "ttl",
        wire.LONGEST_TTL,
        1,
        wire.LONGEST_TTL,
        "hops",
        "the largest value: a flood then ends because nodes drop duplicates, not by its ttl",
    ),
    Parameter("max_events", 1000, 1, None, "publications", "number that a node remembers; diffusion3's"),
)

PRESETS = {"at most three hops, Meshtastic's default": {"ttl": 3}}


class Flooding(Protocol):
    """The flooding protocol with its parameters: ``Flooding(ttl=..., max_events=...)``."""

    node = FloodingNode
    parameters = PARAMETERS
    presets = PRESETS
    known_already = ("duplicate",)
    disseminates = True
    max_fragments = 16
    fast = "workbench.protocols.flooding.fast"
    dissector = "workbench.protocols.flooding.dissector"
    explain = "workbench.protocols.flooding.explain"

    def sizes_in_c(self):
        """Return {name in C: number}, the constants that set the sizes of the tables of the node in C (``c/``)."""
        return {"MAX_EVENTS": self.max_events}

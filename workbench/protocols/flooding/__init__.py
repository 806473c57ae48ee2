"""Flooding: every publication is broadcast once by every node, and subscribers keep what matches.

Theory of operation
    A publisher broadcasts its publication. A node that hears it for the first time holds it, hands it to its own
    subscriptions that match, and broadcasts it again with one hop less to live. Subscriptions are never sent. It is
    the simplest protocol that delivers, the yardstick for the others, and the template for adding one.

Messages
    flood    origin, sequence, ttl, attributes (protocols/flooding/wire.py)

Limits
    A node remembers the last ``max_events`` publications. One that comes back after it was forgotten is flooded
    again, until its ttl runs out.

The node runs on a mote too (`node.py`); this file, which says what the protocol is, stays with the host.
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
        "the widest the frame allows: floods stop by duplicates, not by hops",
    ),
    Parameter("max_events", 1000, 1, None, "publications", "as many as diffusion3's duplicate table remembers"),
)


class Flooding(Protocol):
    """Flooding and its settings: ``Flooding(ttl=..., max_events=...)``."""

    node = FloodingNode
    parameters = PARAMETERS
    disseminates = True
    fast = "workbench.protocols.flooding.fast"
    dissector = "workbench.protocols.flooding.dissector"
    explain = "workbench.protocols.flooding.explain"

    def sizes_in_c(self):
        """How much a node remembers."""
        return {"MAX_EVENTS": self.max_events}

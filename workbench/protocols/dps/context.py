"""The settings, draws, pace of the channel and outputs that the modules of a DPS node share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.draws import Stream
from workbench.protocols.contract import NOBODY, Node
from workbench.protocols.dps.rules import times_of

# What a driver takes for a neighbor's address: in simulation an integer, on a network a tuple. It can be hashed.
Neighbor: TypeAlias = Any


class Context:
    """Settings, draws and outputs that the parts of a node share; no part needs the node itself.

    times, is_crowded  set by `Neighborhood`: a crowded node links with the best of its neighbors alone
    port               port number that this node puts into its messages
    security           a `workbench.protocols.dps.cose.Security`, or what seals, opens and answers like one; or None
    """

    def __init__(self, node: Node, port: int) -> None:
        self._node = node
        self.settings: Any = node.settings
        self.random: Stream = node.random
        self.times = times_of(node.settings)
        self.is_crowded = False
        self.port = port
        self.security: Any = None

    @property
    def reports_details(self) -> bool:
        """Whether the driver wants optional events too (see `contract.Node`)."""
        return bool(self._node.tells_all)

    def send(self, neighbor: Neighbor | None, frame: bytes) -> None:
        """Send a frame to a neighbor; None: to everybody."""
        self._node.outbox.append((neighbor, frame))

    def report(self, event: Callable[..., Any], *fields: Any) -> None:
        """Log an event of this kind."""
        self._node.events.append(event(*fields))

    def drop(self, neighbor: Neighbor | None, message: str, label: tuple[int, int], reason: str) -> None:
        """Count a message that ends here, and log it. ``label``: its origin and sequence number in events."""
        self._node.drop(NOBODY if neighbor is None else neighbor, message, *label, reason)

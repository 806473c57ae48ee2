"""The context that the modules of a DPS node share: its settings, random numbers, times, outbox and log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from workbench.draws import Stream
from workbench.protocols.contract import NOBODY, Node
from workbench.protocols.dps.rules import times_of

# A neighbor's address, in the driver's form: an integer in simulation, a tuple on a network. It is hashable.
Neighbor: TypeAlias = Any


class Context:
    """The properties of one node that its modules use: settings, random numbers, times, outbox and log.

    times              times derived from the settings (`rules.Times`); set by `Neighborhood`
    is_crowded         whether the node is in a dense neighborhood; set by `Neighborhood`
    port               port number in this node's messages
    security           a `workbench.protocols.dps.cose.Security` or an object with its methods; None without encryption
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
        """True if the node also logs optional events (see `contract.Node`)."""
        return bool(self._node.tells_all)

    def send(self, neighbor: Neighbor | None, frame: bytes) -> None:
        """Put a frame for a neighbor into the outbox; ``neighbor`` None means one multicast to all nodes in reach."""
        self._node.outbox.append((neighbor, frame))

    def report(self, event: Callable[..., Any], *fields: Any) -> None:
        """Log an event of the class ``event``, with the values ``fields`` of its fields."""
        self._node.events.append(event(*fields))

    def drop(self, neighbor: Neighbor | None, message: str, label: tuple[int, int], reason: str) -> None:
        """Count and log that this node dropped a message.

        ``neighbor`` sent the message; None: this node created it. ``message`` is the name of the message type, and
        ``label`` the pair (origin, sequence number) that identifies the message in the log.
        """
        self._node.drop(NOBODY if neighbor is None else neighbor, message, *label, reason)

"""What an application holds of a DPS node on the network: subscriptions, what they receive, and series of publications.

Made by `workbench.protocols.dps.udp.UDPNode`; all of it belongs to the node's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from workbench.protocols.dps.udp.mailbox import Mailbox

if TYPE_CHECKING:
    from workbench.protocols.dps.series import Answer, Arrival
    from workbench.protocols.dps.udp import UDPNode

MOST_WAITING_B = 1 << 24  # of one subscription or series
_ITEM_B = 64
Item = TypeVar("Item")


class Acknowledger(Protocol):
    """What sends an acknowledgement: the node, or what leads to it from another thread."""

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """Answer a publication."""


class ReceivedPublication:
    """A publication as a subscription received it.

    topics        its topics, texts
    data          its payload, bytes; ``text`` is that as a text
    publication_id, sequence   its series (16 bytes), and its number in there
    ttl_s         seconds that were left, 0 if it is not retained
    is_expiry     it says that the retained publication has ended, and has no payload
    wants_answer  the publisher has asked for acknowledgements
    hops          links that it came over; neighbor: the address of the last one, None if it was published here
    sender        the identifier of the key that signed it, None if none did or the signature is not right
    way           how it was encrypted ("A256KW", ...), None if it was not: without a sender anybody may have written it
    """

    __slots__ = ("_node", "arrival")

    def __init__(self, node: Acknowledger, arrival: Arrival) -> None:
        self._node = node
        self.arrival = arrival

    def __getattr__(self, name: str) -> Any:
        if name == "arrival":  # It is not there yet, as when this is being unpickled.
            raise AttributeError(name)
        return getattr(self.arrival, name)

    def __repr__(self) -> str:
        return f"<publication {self.sequence} on {', '.join(self.topics)}, {len(self.data)} bytes>"

    @property
    def way(self) -> str | None:
        """How it was encrypted, None if it was not."""
        opened = self.arrival.opened
        return None if opened is None else opened.way

    @property
    def text(self) -> str:
        """The payload as a text; bytes that are no UTF-8 are shown as such."""
        return bytes(self.arrival.data).decode("utf-8", "backslashreplace")

    def acknowledge(self, payload: bytes | str = b"") -> None:
        """Answer the publisher; ParameterError if it has not asked for that, EncodeError if it is too long."""
        self._node.acknowledge(self.arrival, payload)


def tell_of(error: Exception, handler: Callable[[Any], None]) -> None:
    """A handler has raised: the event loop is told, which logs it unless set otherwise, and the node goes on."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"{handler!r}, a handler of a DPS node, has raised an exception", "exception": error}
    )


def _size_B(item: Any) -> int:
    """About the memory that a publication or an answer takes."""
    return _ITEM_B + len(item.data) + sum(_ITEM_B + len(topic) for topic in getattr(item, "topics", ()))


class _Receiver(Generic[Item]):
    """A mailbox that is filled from what the protocol's node holds, or a handler in its place."""

    def __init__(self, handler: Callable[[Item], None] | None, most: int) -> None:
        self._handler = handler
        self._mailbox: Mailbox[Item] = Mailbox(most, MOST_WAITING_B, _size_B)

    def _put(self, items: list[Item]) -> None:
        if self._handler is None:
            self._mailbox.put(items)
            return
        for item in items:
            try:
                self._handler(item)
            except Exception as error:
                tell_of(error, self._handler)

    @property
    def lost(self) -> int:
        """How many were lost, as too many were waiting."""
        return self._mailbox.lost

    @property
    def waiting(self) -> int:
        """How many wait to be taken."""
        return len(self._mailbox)

    def pop(self) -> Item | None:
        """The oldest that waits, None if there is none."""
        return self._mailbox.pop()

    async def next(self, timeout_s: float | None = None) -> Item | None:
        """The next one; None if none has come within ``timeout_s``, or the node has been closed."""
        return await self._mailbox.next(timeout_s)

    def __aiter__(self) -> AsyncIterator[Item]:
        return self._mailbox

    def close(self) -> None:
        """Nothing more will come; what waits can be taken."""
        self._mailbox.close()


class DPSSubscription(_Receiver[ReceivedPublication]):
    """A subscription: ``async for publication in subscription``, until it is ended or the node is closed."""

    def __init__(
        self, node: UDPNode, core: Any, handler: Callable[[ReceivedPublication], None] | None, most: int
    ) -> None:
        super().__init__(handler, most)
        self.node = node
        self.core = core
        self.topics: tuple[str, ...] = core.topics

    def hand_over(self) -> None:
        """Take what the protocol's node has got for it (called by the node)."""
        node = self.node
        self._put([ReceivedPublication(node, arrival) for arrival in self.core.take()])

    async def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self.node.end_subscription(self)
        self.close()


class DPSSeries(_Receiver["Answer"]):
    """Publications on the same topics, under one id: ``async for answer in series`` takes the acknowledgements.

    An answer has ``sequence``, the number of the publication that it is to, ``data``, bytes, ``sender``, the
    identifier of the key that signed it or None, and ``way``, how it was encrypted or None.
    """

    def __init__(self, node: UDPNode, core: Any, handler: Callable[[Answer], None] | None, most: int) -> None:
        super().__init__(handler, most)
        self.node = node
        self.core = core
        self.topics: tuple[str, ...] = core.topics
        self.publication_id: bytes = core.publication_id

    @property
    def sequence(self) -> int:
        """The number of the last publication."""
        return int(self.core.sequence)

    def hand_over(self) -> None:
        """Take the answers that the protocol's node has got (called by the node)."""
        self._put(self.core.take())

    async def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish the next one of the series; returns its number."""
        number = self.node.publish_next(self, payload, ttl_s)
        await self.node.drained()
        return number

    async def expire(self) -> None:
        """Have everybody forget the publication that is retained; ParameterError if there is none."""
        self.node.expire(self)
        await self.node.drained()

"""What an application holds of a DPS node on the network: subscriptions, what they receive, and series of publications.

Made by `workbench.protocols.dps.udp.UDPNode`; all of it belongs to the node's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from workbench.protocols.dps.udp.addresses import Address, as_text
from workbench.protocols.dps.udp.mailbox import Mailbox

if TYPE_CHECKING:
    from workbench.protocols.dps.series import Answer, Arrival
    from workbench.protocols.dps.udp import UDPNode

MOST_WAITING_B = 1 << 24  # of one subscription or series
_ITEM_B = 64
_MOST_SHOWN = 40
Item = TypeVar("Item")


class Acknowledger(Protocol):
    """What sends an acknowledgement: the node, or what leads to it from another thread."""

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """Answer a publication."""


class ReceivedPublication:
    """A publication as a subscription received it; ``arrival`` is what the protocol's node has given."""

    __slots__ = ("_node", "arrival")

    def __init__(self, node: Acknowledger, arrival: Arrival) -> None:
        self._node = node
        self.arrival = arrival

    def __repr__(self) -> str:
        what = "its end" if self.is_expiry else shown(self.data)
        where = "from here" if self.neighbor is None else f"{count(self.hops, 'hop')}, from {as_text(self.neighbor)}"
        return f"<publication {self.sequence} on {_listed(self.topics)}: {what}; {where}>"

    @property
    def topics(self) -> tuple[str, ...]:
        """Its topics."""
        return tuple(self.arrival.topics)

    @property
    def data(self) -> bytes:
        """Its payload."""
        return bytes(self.arrival.data)

    @property
    def text(self) -> str:
        """The payload as a text; bytes that are no UTF-8 are shown as such."""
        return self.data.decode("utf-8", "backslashreplace")

    @property
    def publication_id(self) -> bytes:
        """Its series, 16 bytes."""
        return bytes(self.arrival.publication_id)

    @property
    def sequence(self) -> int:
        """Its number in the series, from 1."""
        return int(self.arrival.sequence)

    @property
    def ttl_s(self) -> int:
        """Seconds that were left, 0 if it is not retained."""
        return int(self.arrival.ttl_s)

    @property
    def is_expiry(self) -> bool:
        """Whether it says that the retained publication has ended, and has no payload."""
        return bool(self.arrival.is_expiry)

    @property
    def wants_answer(self) -> bool:
        """Whether the publisher has asked for acknowledgements."""
        return bool(self.arrival.wants_answer)

    @property
    def hops(self) -> int:
        """Links that it came over."""
        return int(self.arrival.hops)

    @property
    def neighbor(self) -> Address | None:
        """The address that it came from at last, None if it was published here."""
        neighbor: Address | None = self.arrival.neighbor
        return neighbor

    @property
    def sender(self) -> bytes | None:
        """The identifier of the key that signed it, None if none did or the signature is not right."""
        sender: bytes | None = self.arrival.sender
        return sender

    @property
    def opened(self) -> Any:
        """How it was secured (`workbench.protocols.dps.cose`), None if it was not."""
        return self.arrival.opened

    @property
    def way(self) -> str | None:
        """How it was encrypted ("A256KW", ...), None if it was not: without a sender anybody may have written it."""
        return None if self.opened is None else self.opened.way

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


def shown(data: bytes) -> str:
    """A payload in few characters: its text if it can be printed, else hexadecimal digits."""
    text = data.decode("utf-8", "surrogateescape")  # What is no UTF-8 becomes half characters: not printable.
    found = repr(text) if text.isprintable() else data.hex()
    return found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}... ({len(data)} bytes)"


def count(number: int, what: str) -> str:
    """``1 hop``, ``2 hops``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(topics: tuple[str, ...]) -> str:
    """Topics in few characters; they may be anybody's, and not all characters can be printed."""
    text = ", ".join(one if one.isprintable() else ascii(one) for one in topics)
    return text if len(text) <= 2 * _MOST_SHOWN else f"{text[: 2 * _MOST_SHOWN]}..."


class Receiver(Generic[Item]):
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

    def _waiting(self) -> str:
        lost = f", {self.lost} lost" if self.lost else ""
        return f"{self.waiting} waiting{lost}"

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


class DPSSubscription(Receiver[ReceivedPublication]):
    """A subscription: ``async for publication in subscription``, until it is ended or the node is closed.

    ``async with await node.subscribe("a/+") as subscription:`` ends it. ``topics``: what it asks for.
    """

    def __init__(
        self, node: UDPNode, core: Any, handler: Callable[[ReceivedPublication], None] | None, most: int
    ) -> None:
        super().__init__(handler, most)
        self.node = node
        self.core = core
        self.topics: tuple[str, ...] = core.topics

    def __repr__(self) -> str:
        return f"<subscription to {_listed(self.topics)} at {self.node}: {self._waiting()}>"

    async def __aenter__(self) -> DPSSubscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.unsubscribe()

    def hand_over(self) -> None:
        """Take what the protocol's node has got for it (called by the node)."""
        node = self.node
        self._put([ReceivedPublication(node, arrival) for arrival in self.core.take()])

    async def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self.node.end_subscription(self)
        self.close()


class DPSSeries(Receiver["Answer"]):
    """Publications on the same topics, under one id: ``async for answer in series`` takes the acknowledgements.

    An answer has ``sequence``, the number of the publication that it is to, ``data``, bytes, ``sender``, the
    identifier of the key that signed it or None, ``way``, how it was encrypted or None, and ``neighbor``, the address
    that it came from or None. ``topics`` and ``publication_id`` (16 bytes) are those of the series.
    """

    def __init__(self, node: UDPNode, core: Any, handler: Callable[[Answer], None] | None, most: int) -> None:
        super().__init__(handler, most)
        self.node = node
        self.core = core
        self.topics: tuple[str, ...] = core.topics
        self.publication_id: bytes = core.publication_id

    def __repr__(self) -> str:
        return f"<series on {_listed(self.topics)} at {self.node}: {self.sequence} published, {self._waiting()}>"

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

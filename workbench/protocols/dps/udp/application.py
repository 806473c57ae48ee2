"""What an application holds of a DPS node on the network: subscriptions, what they receive, and series of publications.

Made by `workbench.protocols.dps.udp.UDPNode`; all of it belongs to the node's event loop.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from workbench.protocols.dps.series import Arrival
from workbench.protocols.dps.udp.addresses import as_text
from workbench.protocols.dps.udp.link_keeper import now_us

if TYPE_CHECKING:
    from workbench.protocols.dps.series import Answer
    from workbench.protocols.dps.udp import UDPNode
    from workbench.protocols.dps.udp.blocking import BlockingNode

MOST_WAITING_B = 1 << 24  # of one subscription or series
_ITEM_B = 64
_MOST_SHOWN = 40
Item = TypeVar("Item")


class ReceivedPublication(Arrival):
    """A publication as a subscription received it: an `Arrival` that can be acknowledged."""

    def __new__(cls, node: UDPNode | BlockingNode, arrival: Arrival) -> Self:
        """Make one of what the protocol's node has given."""
        publication = cls._make(arrival)
        publication._node, publication.arrival = node, arrival
        return publication

    _node: UDPNode | BlockingNode
    arrival: Arrival

    def __repr__(self) -> str:
        payload = "its end" if self.is_expiry else shown(self.data)
        where = "from here" if self.neighbor is None else f"{count(self.hops, 'hop')}, from {as_text(self.neighbor)}"
        return f"<publication {self.sequence} on {_listed(self.topics)}: {payload}; {where}>"

    @property
    def text(self) -> str:
        """The payload as a text; bytes that are not UTF-8 are shown as such."""
        return self.data.decode("utf-8", "backslashreplace")

    @property
    def way(self) -> str | None:
        """How it was encrypted ("A256KW", ...), None if it was not: without a sender anybody may have written it."""
        return None if self.opened is None else self.opened.way

    def acknowledge(self, payload: bytes | str = b"") -> None:
        """Answer the publisher; ParameterError if it has not asked for that, EncodeError if it is too long."""
        self._node.acknowledge(self, payload)


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
    payload = repr(text) if text.isprintable() else data.hex()
    return payload if len(payload) <= _MOST_SHOWN else f"{payload[:_MOST_SHOWN]}... ({len(data)} bytes)"


def count(number: int, what: str) -> str:
    """``1 hop``, ``2 hops``."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(topics: Sequence[str]) -> str:
    """Topics in few characters; they may be anybody's, and not all characters can be printed."""
    text = ", ".join(one if one.isprintable() else ascii(one) for one in topics)
    return text if len(text) <= 2 * _MOST_SHOWN else f"{text[: 2 * _MOST_SHOWN]}..."


class Mailbox(Generic[Item]):
    """``async for item in mailbox`` takes what comes, until it is closed and empty.

    Callbacks fill it, which cannot wait: beyond ``most`` items the oldest is lost, and counted in ``lost``.
    ``most_B``, with ``size_B`` of an item: beyond so many bytes in all the oldest are lost, too, but for the last one.
    """

    def __init__(self, most: int, most_B: int | None = None, size_B: Callable[[Item], int] = lambda _: 0) -> None:
        self.lost = 0
        self._items: deque[Item] = deque()
        self._most = most
        self._most_B = most_B
        self._size_B = size_B
        self._held_B = 0
        self._closed = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def waiting(self) -> int:
        """How many items wait to be taken."""
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Append items, from within the event loop."""
        for item in items:
            self._items.append(item)
            self._held_B += self._size_B(item)
            while len(self._items) > self._most or (self._is_heavy() and len(self._items) > 1):
                self._take()
                self.lost += 1
        self._wake()

    def _is_heavy(self) -> bool:
        return self._most_B is not None and self._held_B > self._most_B

    def _take(self) -> Item:
        item = self._items.popleft()
        self._held_B -= self._size_B(item)
        return item

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def pop(self) -> Item | None:
        """The oldest item, None if there is none."""
        return self._take() if self._items else None

    async def next(self, timeout_s: float | None = None) -> Item | None:
        """The oldest item; None if none has come within ``timeout_s``, or the mailbox is closed and empty."""
        if not self._items and not self._closed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._wait()
            except TimeoutError:
                return None
        return self.pop()

    async def _wait(self) -> None:
        while not self._items and not self._closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if not self._items:
            await self._wait()
        if not self._items:
            raise StopAsyncIteration
        return self._take()


class Receiver(Mailbox[Item]):
    """A mailbox that is filled from what the protocol's node holds, or a handler in its place."""

    def __init__(self, handler: Callable[[Item], None] | None, most: int) -> None:
        super().__init__(most, MOST_WAITING_B, _size_B)
        self._handler = handler

    def put(self, items: Iterable[Item]) -> None:
        """Call the handler with each item, or append the items."""
        if self._handler is None:
            super().put(items)
            return
        for item in items:
            try:
                self._handler(item)
            except Exception as error:
                tell_of(error, self._handler)

    def _waiting(self) -> str:
        lost = f", {self.lost} lost" if self.lost else ""
        return f"{self.waiting} waiting{lost}"


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
        self.put([ReceivedPublication(node, arrival) for arrival in self.core.take()])

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
        self.put(self.core.take())

    async def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish the next one of the series; returns its number."""
        number = self.node.publish_next(self, payload, ttl_s)
        await self.node.drained()
        return number

    async def expire(self) -> None:
        """Have everybody forget the publication that is retained; ParameterError if there is none."""
        self.node.check_open()
        self.core.expire(now_us())
        self.node.settle()
        await self.node.drained()


# For `wb.pipelines.stream`


def now_s() -> float:
    """Unix time."""
    return time.time_ns() / 1e9


def reading_of(topics: Sequence[str], text: str, series: str, sequence: int, at_s: float) -> dict[str, Any]:
    """The fields of a reading that was measured when it came.

    The first topic's last part is the key, what is before it the region. No publication names its node: the beginning
    of its series' id (hex digits) stands for it. The value is NaN if the text is no number.
    """
    region, _, key = topics[0].rpartition("/")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    node = int(series[:8], 16)
    return {"time_s": at_s, "node": node, "key": key, "value": value, "region": region, "sequence": sequence}

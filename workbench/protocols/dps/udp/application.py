"""Objects of a DPS node on UDP for its application: subscriptions, received publications, series of publications.

`workbench.protocols.dps.udp.UDPNode` returns them. They must be used in the thread of the node's event loop.
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

MOST_WAITING_B = 1 << 24  # per subscription or series
_ITEM_OVERHEAD_B = 64
_MOST_SHOWN = 40
Item = TypeVar("Item")


class ReceivedPublication(Arrival):
    """A publication that a subscription of a node on UDP received: an `Arrival` with the method `acknowledge`."""

    def __new__(cls, node: UDPNode | BlockingNode, arrival: Arrival) -> Self:
        """Create a ReceivedPublication from ``arrival``; its `acknowledge` sends through ``node``."""
        publication = cls._make(arrival)
        publication._node, publication.arrival = node, arrival
        return publication

    _node: UDPNode | BlockingNode
    arrival: Arrival

    def __repr__(self) -> str:
        payload = "its end" if self.is_expiry else payload_text(self.data)
        sender = "from here" if self.neighbor is None else f"{count(self.hops, 'hop')}, from {as_text(self.neighbor)}"
        return f"<publication {self.sequence} on {_topics_text(self.topics)}: {payload}; {sender}>"

    @property
    def text(self) -> str:
        """The payload as a text; bytes that are not UTF-8 are escaped."""
        return self.data.decode("utf-8", "backslashreplace")

    @property
    def way(self) -> str | None:
        """Key management algorithm of the publication's encryption ("A256KW", ...), or None if it is not encrypted.

        If ``sender`` is None, any host may have sent the publication.
        """
        return None if self.opened is None else self.opened.way

    def acknowledge(self, payload: bytes | str = b"") -> None:
        """Send an acknowledgement with a payload to the publisher.

        Raises ParameterError if the publisher did not request acknowledgements, EncodeError if the payload is too long.
        """
        self._node.acknowledge(self, payload)


def report_error(error: Exception, handler: Callable[[Any], None]) -> None:
    """Pass an exception that a handler raised to the event loop's exception handler, which logs it by default."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": f"{handler!r}, a handler of a DPS node, raised an exception", "exception": error}
    )


def _size_B(item: Any) -> int:
    """Return the approximate memory use of a publication or an answer, in bytes."""
    return (
        _ITEM_OVERHEAD_B + len(item.data) + sum(_ITEM_OVERHEAD_B + len(topic) for topic in getattr(item, "topics", ()))
    )


def payload_text(data: bytes) -> str:
    """Return a payload as a short text: a quoted string if it is printable UTF-8, else hexadecimal digits."""
    text = data.decode("utf-8", "surrogateescape")  # Invalid UTF-8 becomes surrogates, which are not printable.
    shown_payload = repr(text) if text.isprintable() else data.hex()
    return (
        shown_payload if len(shown_payload) <= _MOST_SHOWN else f"{shown_payload[:_MOST_SHOWN]}... ({len(data)} bytes)"
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun in singular or plural, as in ``1 hop`` and ``2 hops``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _topics_text(topics: Sequence[str]) -> str:
    """Return topics as a short text in which unprintable characters are escaped."""
    joined_topics = ", ".join(topic if topic.isprintable() else ascii(topic) for topic in topics)
    return joined_topics if len(joined_topics) <= 2 * _MOST_SHOWN else f"{joined_topics[: 2 * _MOST_SHOWN]}..."


class Mailbox(Generic[Item]):
    """A bounded queue: ``async for item in mailbox`` takes items until the mailbox is closed and empty.

    Callbacks, which cannot wait, put items into the queue. If there are more than ``most`` items, or more than
    ``most_B`` bytes (None: no limit), the oldest items are discarded and counted in ``lost``. The newest item is never
    discarded because of its size. ``size_B(item)`` returns the size of an item in bytes.
    """

    def __init__(self, most: int, most_B: int | None = None, size_B: Callable[[Item], int] = lambda _: 0) -> None:
        self.lost = 0
        self._items: deque[Item] = deque()
        self._most = most
        self._most_B = most_B
        self._size_B = size_B
        self._waiting_B = 0
        self._is_closed = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def waiting(self) -> int:
        """Number of items in the mailbox."""
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Append items, and discard the oldest while a limit is exceeded; call only in the event loop's thread."""
        for item in items:
            self._items.append(item)
            self._waiting_B += self._size_B(item)
            while len(self._items) > self._most or (self._exceeds_memory_limit() and len(self._items) > 1):
                self._pop_item()
                self.lost += 1
        self._wake_waiters()

    def _exceeds_memory_limit(self) -> bool:
        return self._most_B is not None and self._waiting_B > self._most_B

    def _pop_item(self) -> Item:
        item = self._items.popleft()
        self._waiting_B -= self._size_B(item)
        return item

    def close(self) -> None:
        """Close the mailbox: calls that wait for an item return. Items in the mailbox can still be taken."""
        self._is_closed = True
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def pop(self) -> Item | None:
        """Remove and return the oldest item; None if the mailbox is empty."""
        return self._pop_item() if self._items else None

    async def next(self, timeout_s: float | None = None) -> Item | None:
        """Return the oldest item, waiting for it up to ``timeout_s`` seconds (None: without limit).

        Return None after the timeout, or if the mailbox is closed and empty.
        """
        if not self._items and not self._is_closed:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._wait_for_item()
            except TimeoutError:
                return None
        return self.pop()

    async def _wait_for_item(self) -> None:
        while not self._items and not self._is_closed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        if not self._items:
            await self._wait_for_item()
        if not self._items:
            raise StopAsyncIteration
        return self._pop_item()


class Receiver(Mailbox[Item]):
    """A mailbox for received items, such as publications, which can pass them to a function instead.

    If there is a ``handler``, this function is called with each item, and the mailbox stores no items.
    """

    def __init__(self, handler: Callable[[Item], None] | None, most: int) -> None:
        super().__init__(most, MOST_WAITING_B, _size_B)
        self._handler = handler

    def put(self, items: Iterable[Item]) -> None:
        """Call the handler with each item; without a handler, store the items until they are taken."""
        if self._handler is None:
            super().put(items)
            return
        for item in items:
            try:
                self._handler(item)
            except Exception as error:
                report_error(error, self._handler)

    def _waiting_text(self) -> str:
        lost_text = f", {self.lost} lost" if self.lost else ""
        return f"{self.waiting} waiting{lost_text}"


class DPSSubscription(Receiver[ReceivedPublication]):
    """A subscription: ``async for publication in subscription`` yields publications until the subscription ends.

    The subscription ends with a call of `unsubscribe`, at the end of a block ``async with await node.subscribe("a/+")
    as subscription:``, or when the node is closed. ``topics``: the topics, all of which a publication must match.
    """

    def __init__(
        self,
        node: UDPNode,
        protocol_subscription: Any,
        handler: Callable[[ReceivedPublication], None] | None,
        most: int,
    ) -> None:
        super().__init__(handler, most)
        self.node = node
        self.protocol_subscription = protocol_subscription
        self.topics: tuple[str, ...] = protocol_subscription.topics

    def __repr__(self) -> str:
        return f"<subscription to {_topics_text(self.topics)} at {self.node}: {self._waiting_text()}>"

    async def __aenter__(self) -> DPSSubscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.unsubscribe()

    def collect(self) -> None:
        """Move received publications from the protocol's state machine to this mailbox or its handler."""
        node = self.node
        self.put([ReceivedPublication(node, arrival) for arrival in self.protocol_subscription.take()])

    async def unsubscribe(self) -> None:
        """End the subscription; publications received before remain available."""
        self.node.end_subscription(self)
        self.close()


class DPSSeries(Receiver["Answer"]):
    """A series of publications on the same topics with one publication id.

    ``async for answer in series`` yields the acknowledgements, each a `series.Answer`.

    topics          topics of all publications in the series
    publication_id  id of the series, 16 bytes

    Fields of an Answer:

    sequence  sequence number of the acknowledged publication
    data      payload of the acknowledgement
    sender    identifier of the key that signed the acknowledgement, or None
    way       key management of its encryption, or None
    neighbor  address of the neighbor that sent it; None: this node itself
    """

    def __init__(
        self, node: UDPNode, protocol_series: Any, handler: Callable[[Answer], None] | None, most: int
    ) -> None:
        super().__init__(handler, most)
        self.node = node
        self.protocol_series = protocol_series
        self.topics: tuple[str, ...] = protocol_series.topics
        self.publication_id: bytes = protocol_series.publication_id

    def __repr__(self) -> str:
        return (
            f"<series on {_topics_text(self.topics)} at {self.node}: {self.sequence} published, {self._waiting_text()}>"
        )

    @property
    def sequence(self) -> int:
        """Sequence number of the last publication in the series."""
        return int(self.protocol_series.sequence)

    def collect(self) -> None:
        """Move received acknowledgements from the protocol's state machine to this mailbox or its handler."""
        self.put(self.protocol_series.take())

    async def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish a payload as the next publication of the series; return the publication's sequence number.

        ``ttl_s``: seconds for which nodes retain the publication; 0: they do not retain it.
        """
        sequence_number = self.node.publish_next(self, payload, ttl_s)
        await self.node.drained()
        return sequence_number

    async def expire(self) -> None:
        """End the retained publication of the series in the whole mesh.

        Raises ParameterError if the series has no retained publication.
        """
        self.node.check_open()
        self.protocol_series.expire(now_us())
        self.node.settle()
        await self.node.drained()


# For `wb.pipelines.stream`


def now_s() -> float:
    """Return the Unix time in seconds."""
    return time.time_ns() / 1e9


def reading_of(topics: Sequence[str], text: str, series: str, sequence: int, at_s: float) -> dict[str, Any]:
    """Return a publication as a reading: a dict with time_s, node, key, value, region and sequence.

    ``time_s``, the time of measurement, is ``at_s``, the time of the publication's arrival. ``key`` is the last level
    of the first topic, and ``region`` the levels before it. Publications do not name their node, so ``node`` is the
    number in the first 8 hex digits of ``series``, the publication id. The value is NaN if ``text`` is not a number.
    """
    region, _, reading_key = topics[0].rpartition("/")
    try:
        reading_value = float(text)
    except ValueError:
        reading_value = math.nan
    node_number = int(series[:8], 16)
    return {
        "time_s": at_s,
        "node": node_number,
        "key": reading_key,
        "value": reading_value,
        "region": region,
        "sequence": sequence,
    }

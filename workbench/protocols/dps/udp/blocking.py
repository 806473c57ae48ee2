"""A DPS node for programs without asyncio: the same node in a thread of its own, and calls that wait.

Theory of operation
    ``with wb.dps_node() as node:`` runs an event loop in a thread; each call is handed to it and waited for. What is
    received waits in the mailboxes of `application.py` until it is asked for. Handlers are called in that thread.

Cost
    A call costs two changes of threads, some 50 to 100 µs.

Limits
    A call waits for as long as what it calls: give `link` and `next` a ``timeout_s``. A handler must not call the
    node: LinkError.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from inspect import signature
from operator import attrgetter
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from workbench.errors import LinkError
from workbench.protocols.dps.udp import UDPNode
from workbench.protocols.dps.udp.application import DPSSeries, ReceivedPublication, Receiver, now_s, reading_of
from workbench.protocols.dps.udp.discovery import DiscoveredNode

Result = TypeVar("Result")
Item = TypeVar("Item")
Held = TypeVar("Held")
Parameters = ParamSpec("Parameters")


def _waiting(
    method: Callable[Concatenate[UDPNode, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[BlockingNode, Parameters], Result]:
    """Return a method of `BlockingNode` that waits for this coroutine of its node."""

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        return self.call(method(self.node, *arguments, **keywords))

    return call


def _running(
    method: Callable[Concatenate[UDPNode, Parameters], Result],
) -> Callable[Concatenate[BlockingNode, Parameters], Result]:
    """Return a method of `BlockingNode` that runs this function of its node in the node's thread."""

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        async def work() -> Result:
            return method(self.node, *arguments, **keywords)

        return self.call(work())

    return call


def _reading(name: str) -> Any:
    """Return a property of `BlockingNode` that reads this property of its node, in the node's thread."""
    return property(_running(attrgetter(name)), doc=getattr(UDPNode, name).__doc__)


def _holding(
    held: Callable[[BlockingNode, Any], Held], method: Callable[Concatenate[BlockingNode, Parameters], Any]
) -> Callable[Concatenate[BlockingNode, Parameters], Held]:
    """Return the same method, with its result in an object that waits: a subscription, a series, a receiver."""

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Held:
        return held(self, method(self, *arguments, **keywords))

    shown = signature(method).replace(return_annotation=getattr(held, "__name__", "Any"))
    call.__signature__ = shown  # type: ignore[attr-defined]
    return call


class BlockingReceiver(Generic[Item]):
    """Iterating over it waits for each item, until the node is closed."""

    def __init__(self, node: BlockingNode, receiver: Receiver[Item]) -> None:
        self.node = node
        self._items: Any = receiver
        self._is_ended = False

    def __repr__(self) -> str:
        return repr(self._items)

    lost = property(attrgetter("_items.lost"), doc="Number of items that were lost, as too many were waiting.")
    waiting = property(attrgetter("_items.waiting"), doc=Receiver.waiting.__doc__)

    def next(self, timeout_s: float | None = None) -> Item | None:
        """The next one; None if none has come within ``timeout_s``, or nothing more will come."""
        if self.node.is_ended:
            return self._items.pop()
        return self.node.call(self._items.next(timeout_s))

    def __iter__(self) -> Iterator[Item]:
        while (item := self.next()) is not None:
            yield item


class BlockingSubscription(BlockingReceiver[ReceivedPublication]):
    """See `DPSSubscription`; ``with node.subscribe("a/+") as subscription:`` ends it."""

    topics = property(attrgetter("_items.topics"), doc="The topics that it asks for.")

    def __enter__(self) -> BlockingSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.node.is_ended:
            self.unsubscribe()

    def next(self, timeout_s: float | None = None) -> ReceivedPublication | None:
        """The next publication; None if none has come within ``timeout_s``, or nothing more will come."""
        publication = super().next(timeout_s)
        # To be acknowledged by way of the thread.
        return None if publication is None else ReceivedPublication(self.node, publication.arrival)

    def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self.node.call(self._items.unsubscribe())
        self._is_ended = True

    # For `wb.pipelines.stream`

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come, and all that came is taken."""
        return (self._is_ended or self.node.is_ended) and not self.waiting

    def next_reading(self, timeout_s: float) -> dict[str, Any] | None:
        """The next publication as `application.reading_of` has it; None if none has come within ``timeout_s``."""
        try:
            publication = self.next(timeout_s)
            while publication is not None and publication.is_expiry:
                publication = self.next(0.0)
        except LinkError:  # It has been closed meanwhile: what waits is taken by the next call.
            return None
        if publication is None:
            return None
        series = publication.publication_id.hex()
        return reading_of(publication.topics, publication.text, series, publication.sequence, now_s())


class BlockingSeries(BlockingReceiver[Any]):
    """See `DPSSeries`."""

    topics = property(attrgetter("_items.topics"), doc="The topics that it publishes on.")
    publication_id = property(attrgetter("_items.publication_id"), doc="Its id, 16 bytes.")
    sequence = property(attrgetter("_items.sequence"), doc=DPSSeries.sequence.__doc__)

    def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish the next one of the series; returns its number."""
        number: int = self.node.call(self._items.publish(payload, ttl_s))
        return number

    def expire(self) -> None:
        """Have everybody forget the publication that is retained."""
        self.node.call(self._items.expire())


class BlockingNode:
    """A `UDPNode` whose calls wait; ``node`` is that node."""

    def __init__(self, node: UDPNode) -> None:
        self.node = node
        self.is_ended = False
        self._ending = threading.Lock()  # no call begins once the end has
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="DPS node", daemon=True)
        self._thread.start()
        try:
            self.call(node.open())
        except BaseException:
            self._end()
            raise

    def __str__(self) -> str:
        return str(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Have the node's thread do something; what it returns or raises. LinkError in that thread itself."""
        if threading.current_thread() is self._thread:
            work.close()
            raise LinkError("a handler must not call the node, which waits for the handler; hand it to another thread")
        with self._ending:
            if self.is_ended:
                work.close()
                raise LinkError("the node is closed; use it inside 'with wb.dps_node(...) as node:'")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C, while this thread was waiting.
            raise

    def close(self) -> None:
        """End all links and the thread; who waits in another thread is let go."""
        if threading.current_thread() is self._thread:
            raise LinkError("a handler must not close the node, which waits for the handler")
        if not self.is_ended:
            try:
                self.call(self.node.close())
            finally:
                self._end()

    def _end(self) -> None:
        with self._ending:
            self.is_ended = True
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        """Nothing waits for a node that is closed, so all that was called comes to its end."""
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    address = property(attrgetter("node.address"), doc="Where it listens.")
    sent = property(attrgetter("node.sent"), doc=UDPNode.sent.__doc__)
    received = property(attrgetter("node.received"), doc=UDPNode.received.__doc__)
    links = _reading("links")
    drops = _reading("drops")
    discovered = _reading("discovered")

    link = _waiting(UDPNode.link)
    keep_linked = _waiting(UDPNode.keep_linked)
    unlink = _waiting(UDPNode.unlink)
    register = _waiting(UDPNode.register)
    lookup = _waiting(UDPNode.lookup)
    will_publish = _running(UDPNode.will_publish)
    acknowledge = _running(UDPNode.acknowledge)
    subscribe = _holding(BlockingSubscription, _waiting(UDPNode.subscribe))
    publish = _holding(BlockingSeries, _waiting(UDPNode.publish))
    discover = _holding(BlockingReceiver[DiscoveredNode], _running(UDPNode.discover))

"""A DPS node for programs without asyncio: a UDPNode in a background thread, with blocking calls.

Theory of operation
    ``with wb.dps_node() as node:`` runs an event loop in a thread. Each call runs in this thread, and the caller waits
    for the result. Received items wait in the mailboxes of `application.py` until the application takes them. Handlers
    are called in the background thread.

Cost
    A call costs two thread switches, some 50 to 100 µs.

Limits
    A call blocks until its coroutine ends: give `link` and `next` a ``timeout_s``. A handler that calls the node gets a
    LinkError.
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
Wrapper = TypeVar("Wrapper")
Parameters = ParamSpec("Parameters")


def _blocking_method(
    method: Callable[Concatenate[UDPNode, Parameters], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[BlockingNode, Parameters], Result]:
    """Return a method of `BlockingNode` that runs a coroutine method of UDPNode and waits for its result."""

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        return self.call(method(self.node, *arguments, **keywords))

    return call


def _threaded_method(
    method: Callable[Concatenate[UDPNode, Parameters], Result],
) -> Callable[Concatenate[BlockingNode, Parameters], Result]:
    """Return a method of `BlockingNode` that runs ``method``, a method of UDPNode, in the node's thread."""

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        async def call_method() -> Result:
            return method(self.node, *arguments, **keywords)

        return self.call(call_method())

    return call


def _threaded_property(name: str) -> Any:
    """Return a property of `BlockingNode` that reads the UDPNode's property ``name`` in the node's thread."""
    return property(_threaded_method(attrgetter(name)), doc=getattr(UDPNode, name).__doc__)


def _wrapping_method(
    wrapper: Callable[[BlockingNode, Any], Wrapper], method: Callable[Concatenate[BlockingNode, Parameters], Any]
) -> Callable[Concatenate[BlockingNode, Parameters], Wrapper]:
    """Return a method of `BlockingNode` that calls ``method`` and wraps its result.

    ``wrapper``: a class such as BlockingSeries, called with the node and the result.
    """

    @wraps(method)
    def call(self: BlockingNode, /, *arguments: Parameters.args, **keywords: Parameters.kwargs) -> Wrapper:
        return wrapper(self, method(self, *arguments, **keywords))

    public_signature = signature(method).replace(return_annotation=getattr(wrapper, "__name__", "Any"))
    call.__signature__ = public_signature  # type: ignore[attr-defined]
    return call


class BlockingReceiver(Generic[Item]):
    """A blocking iterator over the items of a `Receiver`, such as publications; it ends when the node is closed."""

    def __init__(self, node: BlockingNode, receiver: Receiver[Item]) -> None:
        self.node = node
        self._items: Any = receiver
        self._is_ended = False

    def __repr__(self) -> str:
        return repr(self._items)

    lost = property(attrgetter("_items.lost"), doc="Number of items that were lost because too many were waiting.")
    waiting = property(attrgetter("_items.waiting"), doc=Receiver.waiting.__doc__)

    def next(self, timeout_s: float | None = None) -> Item | None:
        """Return the next item.

        Return None if no item arrives within ``timeout_s`` seconds (None: no limit), or if the node is closed.
        """
        if self.node.is_ended:
            return self._items.pop()
        return self.node.call(self._items.next(timeout_s))

    def __iter__(self) -> Iterator[Item]:
        while (item := self.next()) is not None:
            yield item


class BlockingSubscription(BlockingReceiver[ReceivedPublication]):
    """A `DPSSubscription` with blocking calls; leaving ``with node.subscribe("a/+") as subscription:`` unsubscribes."""

    topics = property(attrgetter("_items.topics"), doc="Topics of this subscription.")

    def __enter__(self) -> BlockingSubscription:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.node.is_ended:
            self.unsubscribe()

    def next(self, timeout_s: float | None = None) -> ReceivedPublication | None:
        """Return the next publication.

        Return None if no publication arrives within ``timeout_s`` seconds (None: no limit), or if the subscription has
        ended.
        """
        publication = super().next(timeout_s)
        # With the blocking node, the publication's `acknowledge` runs in the node's thread.
        return None if publication is None else ReceivedPublication(self.node, publication.arrival)

    def unsubscribe(self) -> None:
        """End the subscription; publications received before remain available."""
        self.node.call(self._items.unsubscribe())
        self._is_ended = True

    # For `wb.pipelines.stream`

    @property
    def is_over(self) -> bool:
        """True if the subscription has ended and all its publications are taken."""
        return (self._is_ended or self.node.is_ended) and not self.waiting

    def next_reading(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next publication as a reading (see `application.reading_of`).

        Ends of retained publications are skipped. Return None if no publication arrives within ``timeout_s``.
        """
        try:
            publication = self.next(timeout_s)
            while publication is not None and publication.is_expiry:
                publication = self.next(0.0)
        except LinkError:  # The node was closed meanwhile; the next call takes the waiting publications.
            return None
        if publication is None:
            return None
        series_id = publication.publication_id.hex()
        return reading_of(publication.topics, publication.text, series_id, publication.sequence, now_s())


class BlockingSeries(BlockingReceiver[Any]):
    """A `DPSSeries` with blocking calls: a series of publications, and an iterator over their acknowledgements."""

    topics = property(attrgetter("_items.topics"), doc="Topics of the publications of this series.")
    publication_id = property(attrgetter("_items.publication_id"), doc="Id of the series, 16 bytes.")
    sequence = property(attrgetter("_items.sequence"), doc=DPSSeries.sequence.__doc__)

    def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish a payload as the next publication of the series; return the publication's sequence number.

        ``ttl_s``: seconds for which nodes retain the publication; 0: they do not retain it.
        """
        sequence_number: int = self.node.call(self._items.publish(payload, ttl_s))
        return sequence_number

    def expire(self) -> None:
        """End the retained publication of the series in the whole mesh; see `DPSSeries.expire`."""
        self.node.call(self._items.expire())


class BlockingNode:
    """A DPS node for programs without asyncio: its methods run those of ``node``, a `UDPNode`, in a background thread.

    Each method blocks until the UDPNode's method has returned.
    """

    def __init__(self, node: UDPNode) -> None:
        self.node = node
        self.is_ended = False
        self._end_lock = threading.Lock()  # prevents a call from starting after the end
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="DPS node", daemon=True)
        self._thread.start()
        try:
            self.call(node.open())
        except BaseException:
            self._stop_loop()
            raise

    def __str__(self) -> str:
        return str(self.node)

    def __repr__(self) -> str:
        return repr(self.node)

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the node's thread and return its result.

        Raises LinkError if the node is closed, or if the caller is a handler, which runs in the node's thread itself.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise LinkError(
                "a handler must not call the node, which waits for the handler; call it from another thread"
            )
        with self._end_lock:
            if self.is_ended:
                work.close()
                raise LinkError("the node is closed; use it inside 'with wb.dps_node(...) as node:'")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # After Ctrl-C the coroutine is still running.
            raise

    def close(self) -> None:
        """End all links and the node's thread; waiting calls in other threads return."""
        if threading.current_thread() is self._thread:
            raise LinkError(
                "a handler must not close the node, which waits for the handler; close it from another thread"
            )
        if not self.is_ended:
            try:
                self.call(self.node.close())
            finally:
                self._stop_loop()

    def _stop_loop(self) -> None:
        with self._end_lock:
            self.is_ended = True
        asyncio.run_coroutine_threadsafe(self._wait_for_calls(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _wait_for_calls(self) -> None:
        """Wait until all calls of the node's methods, in any thread, have returned.

        The node must be closed before, so that no call waits for an item or a link any longer.
        """
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)

    address = property(attrgetter("node.address"), doc="Address on which the node listens.")
    sent = property(attrgetter("node.sent"), doc=UDPNode.sent.__doc__)
    received = property(attrgetter("node.received"), doc=UDPNode.received.__doc__)
    links = _threaded_property("links")
    drops = _threaded_property("drops")
    discovered = _threaded_property("discovered")

    link = _blocking_method(UDPNode.link)
    keep_linked = _blocking_method(UDPNode.keep_linked)
    unlink = _blocking_method(UDPNode.unlink)
    register = _blocking_method(UDPNode.register)
    lookup = _blocking_method(UDPNode.lookup)
    will_publish = _threaded_method(UDPNode.will_publish)
    acknowledge = _threaded_method(UDPNode.acknowledge)
    subscribe = _wrapping_method(BlockingSubscription, _blocking_method(UDPNode.subscribe))
    publish = _wrapping_method(BlockingSeries, _blocking_method(UDPNode.publish))
    discover = _wrapping_method(BlockingReceiver[DiscoveredNode], _threaded_method(UDPNode.discover))

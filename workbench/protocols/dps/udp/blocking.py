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
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.errors import LinkError
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.udp.application import ReceivedPublication

if TYPE_CHECKING:
    from workbench.protocols.dps.udp import UDPNode

Result = TypeVar("Result")


class BlockingNode:
    """What `UDPNode` offers, as calls that wait; ``node`` is that node."""

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

    @property
    def address(self) -> Address:
        """Where it listens."""
        return self.node.address

    @property
    def links(self) -> dict[str, str]:
        """Neighbor -> state of the link."""
        return self.call(self._links())

    async def _links(self) -> dict[str, str]:
        return self.node.links

    @property
    def drops(self) -> dict[str, int]:
        """Reason -> number of messages and datagrams that ended here."""
        return self.call(self._drops())

    async def _drops(self) -> dict[str, int]:
        return self.node.drops

    @property
    def sent(self) -> int:
        """Datagrams sent, multicasts included."""
        return self.node.sent

    @property
    def received(self) -> int:
        """Datagrams received, multicasts included."""
        return self.node.received

    def link(self, address: str | int | Address, keep: bool = True, timeout_s: float | None = None) -> Address:
        """See `UDPNode.link`."""
        return self.call(self.node.link(address, keep, timeout_s))

    def keep_linked(self, address: str | int | Address) -> Address:
        """See `UDPNode.keep_linked`."""
        return self.call(self.node.keep_linked(address))

    def unlink(self, address: str | int | Address) -> None:
        """See `UDPNode.unlink`."""
        self.call(self.node.unlink(address))

    def subscribe(self, *topics: str, **options: Any) -> BlockingSubscription:
        """See `UDPNode.subscribe`."""
        return BlockingSubscription(self, self.call(self.node.subscribe(*topics, **options)))

    def publish(self, topics: Any, payload: bytes | str = b"", **options: Any) -> BlockingSeries:
        """See `UDPNode.publish`."""
        return BlockingSeries(self, self.call(self.node.publish(topics, payload, **options)))

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """What `ReceivedPublication.acknowledge` does."""
        self.call(self._acknowledge(arrival, payload))

    async def _acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        self.node.acknowledge(arrival, payload)


class _BlockingReceiver:
    """Iterating over it waits for each item, until the node is closed."""

    def __init__(self, node: BlockingNode, receiver: Any) -> None:
        self._node = node
        self._receiver = receiver

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._receiver, name)  # topics, sequence, lost, ...

    def next(self, timeout_s: float | None = None) -> Any:
        """The next one; None if none has come within ``timeout_s``, or nothing more will come."""
        if self._node.is_ended:
            return self._receiver.pop()
        return self._node.call(self._receiver.next(timeout_s))

    def __iter__(self) -> Iterator[Any]:
        while (item := self.next()) is not None:
            yield item


class BlockingSubscription(_BlockingReceiver):
    """See `DPSSubscription`."""

    def next(self, timeout_s: float | None = None) -> ReceivedPublication | None:
        """The next publication; None if none has come within ``timeout_s``, or nothing more will come."""
        publication = super().next(timeout_s)
        # To be acknowledged by way of the thread.
        return None if publication is None else ReceivedPublication(self._node, publication.arrival)

    def unsubscribe(self) -> None:
        """End it; what has come can still be taken."""
        self._node.call(self._receiver.unsubscribe())


class BlockingSeries(_BlockingReceiver):
    """See `DPSSeries`."""

    def publish(self, payload: bytes | str = b"", ttl_s: int = 0) -> int:
        """Publish the next one of the series; returns its number."""
        return self._node.call(self._receiver.publish(payload, ttl_s))

    def expire(self) -> None:
        """Have everybody forget the publication that is retained."""
        self._node.call(self._receiver.expire())

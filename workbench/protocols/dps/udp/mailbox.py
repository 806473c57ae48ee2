"""A mailbox between callbacks and a coroutine: what came and was not taken yet, bounded.

Theory of operation
    Callbacks put, a coroutine waits and takes, oldest first. Beyond ``most`` items the oldest is lost, and counted: the
    one who puts cannot wait, and memory has to have a bound. Where items differ in size there is one in bytes, too.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """``async for item in mailbox`` takes what comes, until it is closed and empty.

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

    def __len__(self) -> int:
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

    def __aiter__(self) -> Mailbox[Item]:
        return self

    async def __anext__(self) -> Item:
        if not self._items:
            await self._wait()
        if not self._items:
            raise StopAsyncIteration
        return self._take()

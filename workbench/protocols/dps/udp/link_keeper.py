"""The links that a DPS node on the network has been asked for: waited for, and asked for again when they are lost.

Theory of operation
    The protocol's node asks for a link, repeats its question some times, and tells of each state that the link comes
    to. Whoever waits for a link waits for such a word. A link that is *kept* is asked for again, about ``relink_s``
    after it is gone; neighbors that lose each other at once do not ask at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import LinkError, ParameterError
from workbench.protocols.dps.automaton import ACTIVE, GONE, LINKING, MUTED, UNMUTING
from workbench.protocols.dps.udp import addresses
from workbench.protocols.dps.udp.addresses import Address

if TYPE_CHECKING:
    from workbench.protocols.dps.udp import UDPNode


class LinkKeeper:
    """The links of one node, which is open for as long as this is used."""

    def __init__(self, node: UDPNode) -> None:
        self.node = node
        self.core = node.core
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._kept: set[Address] = set()
        self._relinks: dict[Address, asyncio.TimerHandle] = {}
        self._waits: dict[Address, list[asyncio.Future[None]]] = {}

    def ask(self, neighbor: Address, keep: bool) -> None:
        """Ask for a link; LinkError if nothing can be sent there, ParameterError if there are ``max_links``."""
        if keep:
            self._kept.add(neighbor)
        try:
            self.core.link(neighbor, now_us())
        except ParameterError:
            self._kept.discard(neighbor)
            raise
        error = self.node.settle(neighbor)
        if error is not None:
            self.end(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} cannot be reached from {self.node}: {error.strerror}; listen on an "
                "address of the network that leads there"
            )

    async def link(self, neighbor: Address, keep: bool, timeout_s: float | None) -> None:
        """Ask for a link and wait for it; LinkError if there is none in the end."""
        try:
            async with asyncio.timeout(timeout_s):
                # One that is just being ended has to end first.
                await self._state_within(neighbor, (ACTIVE, MUTED, GONE, LINKING, UNMUTING))
                self.ask(neighbor, keep)
                state = await self._state_within(neighbor, (ACTIVE, MUTED, GONE))
        except TimeoutError:
            state = GONE
        if self._is_open and state == GONE:
            self.end(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} does not answer: nothing listens there, or the node there is full (it "
                f"has its max_links), or its filters have other than {self.node.protocol.filter_bits} bits"
            )

    def end(self, neighbor: Address) -> None:
        """End a link, and ask for it no longer."""
        self._kept.discard(neighbor)
        relink = self._relinks.pop(neighbor, None)
        if relink is not None:
            relink.cancel()
        self.core.unlink(neighbor, now_us())
        self.node.settle()

    async def end_all(self, patience_s: float) -> None:
        """End all links, and wait ``patience_s`` at most for the neighbors' word."""
        self._kept.clear()
        for neighbor in list(self.core.links.remotes):
            self.core.unlink(neighbor, now_us())
        self.node.settle()
        end_s = self._loop.time() + patience_s
        while (left := self._linked()) and self._loop.time() < end_s:
            changes = [self._state_change(neighbor) for neighbor in left]
            await asyncio.wait(changes, timeout=end_s - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """Ask for nothing any more; whoever waits is let go."""
        self._is_open = False
        self._kept.clear()
        for handle in self._relinks.values():
            handle.cancel()
        self._relinks.clear()
        for neighbor in list(self._waits):
            self._end_waits(neighbor)

    def changed(self, event: Any) -> None:
        """A LinkSet of the protocol's node."""
        self._end_waits(event.peer)
        if event.value == GONE:
            self._relink_later(event.peer)

    def _linked(self) -> list[Address]:
        return [one for one, remote in self.core.links.remotes.items() if remote.state != LINKING]

    async def _state_within(self, neighbor: Address, states: Sequence[int]) -> int:
        while (state := self._state(neighbor)) not in states and self._is_open:
            await self._state_change(neighbor)
        return state

    def _state(self, neighbor: Address) -> int:
        remote = self.core.links.remotes.get(neighbor)
        return GONE if remote is None else remote.state

    def _state_change(self, neighbor: Address) -> asyncio.Future[None]:
        future = self._loop.create_future()
        self._waits.setdefault(neighbor, []).append(future)
        return future

    def _end_waits(self, neighbor: Address) -> None:
        for future in self._waits.pop(neighbor, ()):
            if not future.done():
                future.set_result(None)

    def _relink_later(self, neighbor: Address) -> None:
        if neighbor in self._kept and neighbor not in self._relinks:
            delay_s = self.node.protocol.relink_s * (0.5 + self.core.random.uniform())
            self._relinks[neighbor] = self._loop.call_later(delay_s, self._relink, neighbor)

    def _relink(self, neighbor: Address) -> None:
        self._relinks.pop(neighbor, None)
        if neighbor not in self._kept:
            return
        try:
            self.core.link(neighbor, now_us())
        except ParameterError:  # There are max_links just now.
            self._relink_later(neighbor)
        self.node.settle()


def now_us() -> int:
    """The time of a node: microseconds of the clock that the event loop goes by."""
    return time.monotonic_ns() // 1000

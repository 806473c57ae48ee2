"""The class that manages the links that an application requested: it waits until they exist, and restores lost links.

Theory of operation
    The protocol's state machine requests a link, repeats the request a few times, and reports each state that the link
    reaches. A call that establishes a link waits for these reports. A *kept* link is requested again about ``relink_s``
    seconds after it has ended. That delay is random, so that two neighbors do not send requests at the same time.
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
    """The manager of the links that an application requested: it requests, awaits and restores the links of a node."""

    def __init__(self, node: UDPNode) -> None:
        self.node = node
        self.core = node.core
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._neighbors_to_relink: set[Address] = set()
        self._relink_timers: dict[Address, asyncio.TimerHandle] = {}
        self._waiting_futures: dict[Address, list[asyncio.Future[None]]] = {}

    def request(self, neighbor: Address, keep: bool) -> None:
        """Request a link, without waiting for it.

        ``keep``: whether to request the link again after each loss. Raises LinkError if sending fails, ParameterError
        if the link would exceed ``max_links``.
        """
        if keep:
            self._neighbors_to_relink.add(neighbor)
        try:
            self.core.link(neighbor, now_us())
        except ParameterError:
            self._neighbors_to_relink.discard(neighbor)
            raise
        send_error = self.node.settle(neighbor)
        if send_error is not None:
            self.end(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} cannot be reached from {self.node}: {send_error.strerror}; "
                "let this node listen on an address from which that host can be reached"
            )

    async def link(self, neighbor: Address, keep: bool, timeout_s: float | None) -> None:
        """Request a link and wait until it is established. Raises LinkError if the neighbor does not answer.

        ``keep``: whether to request the link again after each loss. ``timeout_s``: longest wait in seconds; None: wait
        as long as the protocol repeats its request.
        """
        try:
            async with asyncio.timeout(timeout_s):
                # A link in the state UNLINKING has to end first.
                await self._wait_for_state(neighbor, (ACTIVE, MUTED, GONE, LINKING, UNMUTING))
                self.request(neighbor, keep)
                link_state = await self._wait_for_state(neighbor, (ACTIVE, MUTED, GONE))
        except TimeoutError:
            link_state = GONE
        if self._is_open and link_state == GONE:
            self.end(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} does not answer; check that a DPS node listens there, that it has "
                f"fewer links than its max_links, and that its filter_bits is {self.node.protocol.filter_bits}"
            )

    def end(self, neighbor: Address) -> None:
        """End the link with a neighbor, and do not request it again."""
        self._neighbors_to_relink.discard(neighbor)
        relink_timer = self._relink_timers.pop(neighbor, None)
        if relink_timer is not None:
            relink_timer.cancel()
        self.core.unlink(neighbor, now_us())
        self.node.settle()

    async def end_all(self, patience_s: float) -> None:
        """End all links and wait at most ``patience_s`` for the neighbors to confirm."""
        self._neighbors_to_relink.clear()
        for neighbor in list(self.core.links.remotes):
            self.core.unlink(neighbor, now_us())
        self.node.settle()
        end_s = self._loop.time() + patience_s
        while (linked_neighbors := self._linked_neighbors()) and self._loop.time() < end_s:
            state_changes = [self._next_state_change(neighbor) for neighbor in linked_neighbors]
            await asyncio.wait(state_changes, timeout=end_s - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)

    def close(self) -> None:
        """Stop requesting links and wake all callers that wait for a link."""
        self._is_open = False
        self._neighbors_to_relink.clear()
        for relink_timer in self._relink_timers.values():
            relink_timer.cancel()
        self._relink_timers.clear()
        for neighbor in list(self._waiting_futures):
            self._wake_waiters(neighbor)

    def link_changed(self, event: Any) -> None:
        """Process a LinkSet event, which reports a link's new state: wake the callers that wait for this link.

        If the link has ended, and the application wants to keep it, plan to request it again.
        """
        self._wake_waiters(event.peer)
        if event.value == GONE:
            self._relink_later(event.peer)

    def _linked_neighbors(self) -> list[Address]:
        return [neighbor for neighbor, remote in self.core.links.remotes.items() if remote.state != LINKING]

    async def _wait_for_state(self, neighbor: Address, states: Sequence[int]) -> int:
        while (state := self._state(neighbor)) not in states and self._is_open:
            await self._next_state_change(neighbor)
        return state

    def _state(self, neighbor: Address) -> int:
        remote = self.core.links.remotes.get(neighbor)
        return GONE if remote is None else remote.state

    def _next_state_change(self, neighbor: Address) -> asyncio.Future[None]:
        future = self._loop.create_future()
        self._waiting_futures.setdefault(neighbor, []).append(future)
        return future

    def _wake_waiters(self, neighbor: Address) -> None:
        for future in self._waiting_futures.pop(neighbor, ()):
            if not future.done():
                future.set_result(None)

    def _relink_later(self, neighbor: Address) -> None:
        if neighbor in self._neighbors_to_relink and neighbor not in self._relink_timers:
            delay_s = self.node.protocol.relink_s * (0.5 + self.core.random.uniform())
            self._relink_timers[neighbor] = self._loop.call_later(delay_s, self._relink, neighbor)

    def _relink(self, neighbor: Address) -> None:
        self._relink_timers.pop(neighbor, None)
        if neighbor not in self._neighbors_to_relink:
            return
        try:
            self.core.link(neighbor, now_us())
        except ParameterError:  # All max_links are in use at the moment.
            self._relink_later(neighbor)
        self.node.settle()


def now_us() -> int:
    """Return the time in whole µs of the monotonic clock, which the event loop uses too."""
    return time.monotonic_ns() // 1000

"""A DPS node on the network: the protocol's own node over UDP, for asyncio.

Theory of operation
    `workbench.protocols.dps` is a state machine without input and output. Here it gets a socket, a clock and a timer:
    what comes in is handed to it at once, with what it answers sent before the next datagram is read; it is woken when
    it asks to be. Beyond that this file knows what an application holds on to: subscriptions and series of publications
    with mailboxes, links that are waited for and, when they are lost, asked for again.

    A neighbor is its IP address and the port that it names in its messages, whichever port they came from. The node
    binds to the loopback interface unless told otherwise, and multicasts only when asked (`dps_multicast.py`).

Bounds
    Links, history, retained publications: the protocol's parameters. Per subscription and series ``max_waiting``
    items, of which the oldest are lost and counted (``lost``). What the kernel's send buffer has no room for waits,
    at most ``MOST_UNSENT`` datagrams; publishing waits for it. At most ``_BURST`` datagrams are read before timers and
    tasks get their turn. What is dropped is counted by its reason in ``drops``.

Cost
    Some 100 µs of processor time for a publication and its acknowledgement, at each end.

Limits
    One message in one datagram: 65,507 bytes (EncodeError above). No DTLS. One thread, one event loop, one of the
    kind that can watch sockets, as they do on Linux and macOS.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from workbench import draws
from workbench.errors import LinkError, ParameterError
from workbench.links import dps_addresses as addresses
from workbench.links.dps_addresses import Address
from workbench.links.dps_application import DPSSeries, DPSSubscription, ReceivedPublication
from workbench.protocols.contract import Acknowledged, Delivered, LinkSet
from workbench.protocols.dps import DPS
from workbench.protocols.dps.links import SECOND_US
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.remotes import ACTIVE, GONE, LINKING, MUTED, STATE_NAMES, UNMUTING
from workbench.wire import dps as wire

LOOPBACK = "127.0.0.1:0"
MOST_UNSENT = 1000
MAX_WAITING = 10_000
_LARGEST_READ_B = 65_536  # above what UDP can carry: nothing is cut short
_BURST = 64
_RECEIVE_BUFFER_B = 1 << 20  # the kernel gives what it allows
_NOBODY = -1  # publication ids are then 16 drawn bytes
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_SEND_REASONS = {errno.EMSGSIZE: "too_long", errno.ECONNREFUSED: "refused"}


class UDPNode:
    """One node of a mesh, in this process: an asynchronous context manager. Made by `dps_node`.

    address   where it listens; ``str(node)`` is its text
    core      the protocol's node, for looking into; with ``core.tells_all = True`` drops are told one by one, too
    drops     reason -> number, of messages and datagrams that ended here
    sent, received   datagrams
    """

    def __init__(
        self,
        protocol: DPS,
        listen: str | int | Address,
        security: Any = None,
        multicast: Any = None,
        tell: Callable[[Any], None] | None = None,
        max_waiting: int = MAX_WAITING,
    ) -> None:
        self.protocol = protocol
        self.address: Address = ()
        self.sent = 0
        self.received = 0
        self._listen = listen
        self._tell = tell
        self._multicast = multicast
        self._max_waiting = max_waiting
        self._is_open = False
        self._unsent: deque[tuple[Address, bytes]] = deque()
        self._room: asyncio.Event | None = None
        self._errors: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._subscriptions: dict[int, DPSSubscription] = {}
        # By what an event tells of a publication id. The protocol keeps the series that may still be answered.
        self._series: WeakValueDictionary[tuple[int, int], DPSSeries] = WeakValueDictionary()
        self._kept: set[Address] = set()
        self._relinks: dict[Address, asyncio.TimerHandle] = {}
        self._waiting_for_links: dict[Address, list[asyncio.Future[None]]] = {}
        self.core: DPSNode = protocol.make_node(_NOBODY, draws.Stream(int.from_bytes(os.urandom(8), "big")))
        self.core.tells_all = False
        self.core.neighbor_of = self._neighbor_of
        self.core.security = security

    def __str__(self) -> str:
        return addresses.as_text(self.address) if self.address else "closed"

    # Beginning and end

    async def __aenter__(self) -> UDPNode:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Bind the socket and begin; LinkError if that address cannot be had."""
        loop = asyncio.get_running_loop()
        host, _ = addresses.split(self._listen, "127.0.0.1")
        self._family = socket.AF_INET6 if ":" in host else socket.AF_INET
        wanted = await addresses.look_up(self._listen, "127.0.0.1", self._family, passive=True)
        self._loop = loop
        self._socket = bound_socket(wanted, self._family)
        self.address = addresses.normal(self._socket.getsockname())
        self._is_open = True
        self.core.port = self.address[1]
        self.core.start(_now_us())
        loop.add_reader(self._socket, self._read)
        if self._multicast is not None:
            try:
                self._multicast.open(self.address, self._family, self._take_multicast)
            except BaseException:
                self._shut()
                raise
            self.core.multicasts = self._multicast.sends

    async def close(self, patience_s: float = 0.5) -> None:
        """End all links, wait ``patience_s`` at most for the neighbors' word, and close the socket."""
        if not self._is_open:
            return
        try:
            self._kept.clear()
            for neighbor in list(self.core.links.remotes):
                self.core.unlink(neighbor, _now_us())
            self._settle()
            end_s = self._loop.time() + patience_s
            while (left := self._linked()) and self._loop.time() < end_s:
                changes = [self._state_change(neighbor) for neighbor in left]
                await asyncio.wait(changes, timeout=end_s - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._shut()

    def _linked(self) -> list[Address]:
        return [one for one, remote in self.core.links.remotes.items() if remote.state != LINKING]

    def _shut(self) -> None:
        self._is_open = False
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        if self._multicast is not None:
            self._multicast.close()
        for handle in (self._timer, *self._relinks.values()):
            if handle is not None:
                handle.cancel()
        self._relinks.clear()
        if self._room is not None:
            self._room.set()
        for neighbor in list(self._waiting_for_links):
            self._end_waits(neighbor)
        for subscription in self._subscriptions.values():
            subscription.close()
        for series in list(self._series.values()):
            series.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise LinkError("the node is closed; use it inside 'async with wb.dps_node(...) as node:'")

    # Links

    @property
    def links(self) -> dict[str, str]:
        """Neighbor -> state of the link: linking, active, muted, unmuting, unlinking."""
        return {addresses.as_text(one): STATE_NAMES[remote.state] for one, remote in self.core.links.remotes.items()}

    async def link(self, address: str | int | Address, keep: bool = True, timeout_s: float | None = None) -> Address:
        """Ask a node for a link, and wait until there is one; returns its address.

        ``keep``: if it is lost later, it is asked for again every ``relink_s`` or so. LinkError if the node cannot be
        reached, or has not answered in ``timeout_s`` (None: as long as the protocol repeats its question).
        """
        neighbor = await self.resolve(address)
        try:
            async with asyncio.timeout(timeout_s):
                await self._state_within(neighbor, (ACTIVE, MUTED, GONE, LINKING, UNMUTING))
                self._ask(neighbor)
                if keep:
                    self._kept.add(neighbor)
                state = await self._state_within(neighbor, (ACTIVE, MUTED, GONE))
        except TimeoutError:
            state = GONE
        self._check_open()
        if state == GONE:
            self._stop_asking(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} does not answer; is a node listening there, with filters of "
                f"{self.protocol.filter_bits} bits?"
            )
        return neighbor

    async def keep_linked(self, address: str | int | Address) -> Address:
        """Ask a node for a link now, and again whenever there is none, without waiting; returns its address."""
        neighbor = await self.resolve(address)
        self._kept.add(neighbor)
        self._ask(neighbor)
        return neighbor

    async def unlink(self, address: str | int | Address) -> None:
        """End a link, and ask for it no longer; nothing if there is none."""
        self._stop_asking(await self.resolve(address))

    async def resolve(self, address: str | int | Address) -> Address:
        """The address in the form that the node uses; LinkError if it cannot be one of a neighbor."""
        self._check_open()
        host = self.address[0]
        family = socket.AF_UNSPEC if host == "::" else socket.AF_INET6 if ":" in host else socket.AF_INET
        found = await addresses.look_up(address, "127.0.0.1" if host in ("::", "0.0.0.0") else host, family)
        if not found[1]:
            raise LinkError(f"{address!r} has port 0; name the port that the other node listens on")
        if found == self.address:
            raise LinkError(f"{addresses.as_text(found)} is where this node listens; it cannot be linked to itself")
        return found

    def _ask(self, neighbor: Address) -> None:
        self.core.link(neighbor, _now_us())
        error = self._settle(neighbor)
        if error is not None:
            self._stop_asking(neighbor)
            raise LinkError(
                f"{addresses.as_text(neighbor)} cannot be reached from {self}: {error.strerror}; listen on an address "
                "of the network that leads there"
            )

    def _stop_asking(self, neighbor: Address) -> None:
        self._kept.discard(neighbor)
        relink = self._relinks.pop(neighbor, None)
        if relink is not None:
            relink.cancel()
        self.core.unlink(neighbor, _now_us())
        self._settle()

    async def _state_within(self, neighbor: Address, states: Sequence[int]) -> int:
        """Wait until a link is in one of these states, or the node closed; the state."""
        while (state := self._state(neighbor)) not in states and self._is_open:
            await self._state_change(neighbor)
        return state

    def _state(self, neighbor: Address) -> int:
        remote = self.core.links.remotes.get(neighbor)
        return GONE if remote is None else remote.state

    def _state_change(self, neighbor: Address) -> asyncio.Future[None]:
        future = self._loop.create_future()
        self._waiting_for_links.setdefault(neighbor, []).append(future)
        return future

    def _link_set(self, event: Any) -> None:
        self._end_waits(event.peer)
        if event.value == GONE:
            self._relink_later(event.peer)

    def _end_waits(self, neighbor: Address) -> None:
        for future in self._waiting_for_links.pop(neighbor, ()):
            if not future.done():
                future.set_result(None)

    def _relink_later(self, neighbor: Address) -> None:
        if neighbor in self._kept and neighbor not in self._relinks:
            delay_s = self.protocol.relink_s * (0.5 + self.core.random.uniform())
            self._relinks[neighbor] = self._loop.call_later(delay_s, self._relink, neighbor)

    def _relink(self, neighbor: Address) -> None:
        self._relinks.pop(neighbor, None)
        if neighbor not in self._kept:
            return
        try:
            self.core.link(neighbor, _now_us())
        except ParameterError:  # There are max_links just now.
            self._relink_later(neighbor)
        self._settle()

    # Subscriptions and publications

    async def subscribe(
        self,
        *topics: str,
        expired: bool = False,
        handler: Callable[[ReceivedPublication], None] | None = None,
    ) -> DPSSubscription:
        """Ask for publications that match all these topics; ``async for`` over what is returned takes them.

        ``expired``: also be told when a retained one is ended. ``handler`` is called with each as it comes, from within
        the event loop, and the subscription stays empty then. AttributeFormatError for a topic that is none.
        """
        self._check_open()
        core = self.core.subscribe_topics(topics, _now_us(), expired)
        subscription = DPSSubscription(self, core, handler, self._max_waiting)
        self._subscriptions[core.number] = subscription
        self._settle()
        return subscription

    def end_subscription(self, subscription: DPSSubscription) -> None:
        """What `DPSSubscription.unsubscribe` does."""
        if self._subscriptions.pop(subscription.core.number, None) is not None and self._is_open:
            self.core.unsubscribe(subscription.core, _now_us())
            self._settle()

    async def publish(
        self,
        topics: str | Sequence[str],
        payload: bytes | str = b"",
        ttl_s: int = 0,
        acknowledge: bool = False,
        wildcards: bool = True,
        handler: Callable[[Any], None] | None = None,
    ) -> DPSSeries:
        """Publish on a topic, or on several at once; returns the series, with which to publish again.

        payload      bytes, or a text for its UTF-8
        ttl_s        for so many seconds it is kept, for those who ask later
        acknowledge  subscribers may answer: ``async for answer in series``, or ``handler``, called with each
        wildcards    False: only subscriptions that spell a topic out are sent it

        AttributeFormatError for a topic that is none, EncodeError if it does not fit a datagram.
        """
        self._check_open()
        core = self.core.publish_topics(topics, as_bytes(payload), _now_us(), ttl_s, acknowledge, wildcards)
        series = DPSSeries(self, core, handler, self._max_waiting)
        if acknowledge:
            self._series[wire.origin_of(core.publication_id)] = series
        self._settle()
        await self.drained()
        return series

    def publish_next(self, series: DPSSeries, payload: bytes | str, ttl_s: int) -> int:
        """What `DPSSeries.publish` does before it waits."""
        self._check_open()
        number: int = series.core.publish(as_bytes(payload), _now_us(), ttl_s)
        self._settle()
        return number

    def expire(self, series: DPSSeries) -> None:
        """What `DPSSeries.expire` does."""
        self._check_open()
        series.core.expire(_now_us())
        self._settle()

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """What `ReceivedPublication.acknowledge` does."""
        self._check_open()
        self.core.acknowledge(arrival, as_bytes(payload), _now_us())
        self._settle()

    async def drained(self) -> None:
        """Let others have their turn, and wait while much is unsent."""
        await asyncio.sleep(0)
        while self._room is not None:
            await self._room.wait()

    # Datagrams

    @property
    def drops(self) -> dict[str, int]:
        """Reason -> number of messages and datagrams that ended here."""
        return dict(Counter(self.core.drops) + self._errors + Counter(self._multicast.drops if self._multicast else {}))

    def _neighbor_of(self, source: Address, port: int | None) -> Address | None:
        """Who sent a message, by where it came from and the port it names; None if that cannot be a neighbor."""
        neighbor = source if len(source) == 2 else addresses.normal(source)
        if port is not None and port != neighbor[1]:
            neighbor = addresses.with_port(neighbor, port)
        return None if neighbor[1] == 0 or neighbor == self.address else neighbor

    def _read(self) -> None:
        for _ in range(_BURST):
            try:
                datagram, source = self._socket.recvfrom(_LARGEST_READ_B)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # What became of a datagram that was sent: ICMP's word for it.
                self._errors["refused"] += 1
                continue
            self.received += 1
            self.core.receive(datagram, source, time.monotonic_ns() // 1000, False)
            self._settle()
            if not self._is_open:
                return

    def _take_multicast(self, frame: bytes, source: Address) -> None:
        self.received += 1
        self.core.receive(frame, source, _now_us(), True)
        self._settle()

    def _settle(self, watched: Address | None = None) -> OSError | None:
        """After each call of the protocol's node: send, hand over, plan to wake; an error of sending to ``watched``."""
        core = self.core
        error = None
        while core.outbox or core.events:
            if core.outbox:
                for neighbor, frame in core.take_frames():
                    failure = self._send(neighbor, frame)
                    if failure is not None and neighbor == watched:
                        error = failure
            if core.events:
                self._hand_over(core.take_events())
        due_us = core.next_wake
        if due_us is not None and (self._timer is None or due_us < self._due_us):
            self._plan(due_us)
        return error

    def _send(self, neighbor: Address | None, frame: bytes) -> OSError | None:
        if neighbor is None:
            self.sent += self._multicast.send(frame)
            return None
        if self._unsent:
            self._put_off(neighbor, frame)
            return None
        return self._send_now(neighbor, frame)

    def _send_now(self, neighbor: Address, frame: bytes) -> OSError | None:
        try:
            self._socket.sendto(frame, addresses.for_socket(neighbor, self._family))
        except OSError as error:
            if error.errno in _FULL:
                self._put_off(neighbor, frame)
                return None
            self._errors[_SEND_REASONS.get(error.errno or 0, "unreachable")] += 1
            return error
        self.sent += 1
        return None

    def _put_off(self, neighbor: Address, frame: bytes) -> None:
        if len(self._unsent) >= MOST_UNSENT:
            self._errors["unsent"] += 1
            return
        if not self._unsent:
            self._loop.add_writer(self._socket, self._send_rest)
        self._unsent.append((neighbor, frame))
        if self._room is None:
            self._room = asyncio.Event()

    def _send_rest(self) -> None:
        rest, self._unsent = self._unsent, deque()
        self._loop.remove_writer(self._socket)
        while rest and not self._unsent:
            self._send_now(*rest.popleft())
        self._unsent.extend(rest)
        if not self._unsent and self._room is not None:
            room, self._room = self._room, None
            room.set()

    # What the protocol's node tells

    def _hand_over(self, events: Iterable[Any]) -> None:
        for event in events:
            kind = type(event)
            if kind is Delivered:
                subscription = self._subscriptions.get(event.value)
                if subscription is not None:
                    subscription.hand_over()
            elif kind is Acknowledged:
                series = self._series.get((event.origin, event.sequence >> 32))
                if series is not None:
                    series.hand_over()
            elif kind is LinkSet:
                self._link_set(event)
            if self._tell is not None:
                self._tell(event)

    # Time

    def _plan(self, due_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_us = due_us
        self._timer = self._loop.call_at(due_us / SECOND_US, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = _now_us()
        due_us = self.core.next_wake
        if due_us is not None and due_us <= now:
            self.core.wake(now)
        self._settle()


def dps_node(
    listen: str | int | Address = LOOPBACK,
    *,
    security: Any = None,
    multicast: Any = None,
    tell: Callable[[Any], None] | None = None,
    max_waiting: int = MAX_WAITING,
    **settings: Any,
) -> UDPNode:
    """A DPS node on UDP, to be entered: ``async with wb.dps_node() as node: ...``.

    listen     ``"127.0.0.1:0"``: this machine alone, any port. ``"0.0.0.0:0"`` or ``"[::]:0"``: everybody.
    security   a `workbench.cose.Security`: what is encrypted and signed, and with which keys; None: nothing is
    multicast  a `workbench.links.dps_multicast.Multicast`; None: publications go over links alone
    tell       called with each event of the protocol's node (`workbench.protocols.contract`)
    settings   parameters of `workbench.DPS`: ``filter_bits``, ``separators``, ``update_s``, ``link_loss_s``, ...
    """
    return UDPNode(DPS(**settings), listen, security, multicast, tell, max_waiting)


def bound_socket(address: Address, family: int) -> socket.socket:
    """A socket for datagrams at an address, that never blocks; LinkError if the address cannot be had."""
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_B)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(addresses.for_socket(address, family))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            advice = "listen on another port, or on port 0 for any that is free"
        else:
            advice = "listen on an address of this machine"
        raise LinkError(f"cannot listen on {addresses.as_text(address)}: {error.strerror}; {advice}") from None
    return sock


def as_bytes(payload: bytes | str) -> bytes:
    """A payload as bytes: a text as UTF-8; ParameterError for what is neither."""
    if isinstance(payload, str):
        return payload.encode()
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    raise ParameterError(f"the payload is of type {type(payload).__name__}; it must be bytes or a text")


def _now_us() -> int:
    return time.monotonic_ns() // 1000

"""A DPS node on the network: the protocol's own node over UDP, for asyncio.

Theory of operation
    `workbench.protocols.dps` is a state machine without input and output. Here it gets a socket (`endpoint.py`), a
    clock and a timer: what comes in is handed to it at once, with what it answers sent before the next datagram is
    read; it is woken when it asks to be. Beyond that there is what an application holds on to: subscriptions and series
    of publications with mailboxes (`application.py`), and links that are waited for and, when they are lost, asked
    for again (`link_keeper.py`). Nodes find each other by `discovery.py`, and addresses are kept by `registry.py`.

    A neighbor is its IP address and the port that it names in its messages. That has to be the port they came from,
    else they are dropped as "port": other processes of its machine could speak for it. Multicasts are exempt, which
    are sent from another socket. The node binds to the loopback interface unless told otherwise, and multicasts only
    when asked (`multicast.py`).

Bounds
    Links, history, retained publications: the protocol's parameters. Per subscription and series ``max_waiting``
    items and 16 MB, of which the oldest are lost and counted (``lost``). Datagrams that could not be sent yet: 16 MB.
    With the defaults strangers can fill 23 MB of history and 64 MB of retained publications. What is dropped is counted
    by its reason in ``drops``.

Who may reach the port
    On loopback, the processes of this machine; on ``0.0.0.0`` or ``[::]`` everybody that the network lets through, and
    links have no keys, as in the reference. Who can send to the port can link; ask for everything, with a filter of
    ones, and read what is plain; publish; take all ``max_links``; and with hops 0 have acknowledgements sent its way.
    Who can forge a neighbor's address can end or mute its link and change what it asks for. Keys
    (`workbench.protocols.dps.cose`) protect what is in publications and acknowledgements, not filters, links or who
    talks to whom. With discovery, who can multicast here can make the node ask anybody for a link. So let a firewall
    or a VPN say who may reach the port, and listen on the address of that network alone.

Cost
    An acknowledged publication takes some 60 µs of processor time at each end, a third of it in system calls.

Limits
    One message in one datagram: 65,507 bytes (EncodeError above). No DTLS. One event loop, of the kind that can watch
    sockets, as on Linux and macOS.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427.
"""

from __future__ import annotations

import asyncio
import os
import socket
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from workbench import draws
from workbench.errors import LinkError, ParameterError
from workbench.protocols.contract import NOBODY, Delivered
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.events import Acknowledged, LinkSet
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.rules import SECOND_US
from workbench.protocols.dps.topics import warning_of_wildcards
from workbench.protocols.dps.udp import addresses, registry
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.udp.application import DPSSeries, DPSSubscription, ReceivedPublication, count, tell_of
from workbench.protocols.dps.udp.discovery import DiscoveredNode, Discoveries, Discovery
from workbench.protocols.dps.udp.endpoint import DatagramSocket
from workbench.protocols.dps.udp.link_keeper import LinkKeeper, now_us
from workbench.protocols.dps.udp.multicast import Multicast, loopback_interfaces
from workbench.suggestion import meant

if TYPE_CHECKING:
    from workbench.protocols.dps.udp.blocking import BlockingNode

LOOPBACK = "127.0.0.1:0"
MAX_WAITING = 10_000
_LOOPBACK_HOST = "127.0.0.1"
_EVERYBODY = ("::", "0.0.0.0")


class UDPNode:
    """One node of a mesh, in this process, made by `dps_node`: to be entered with ``async with``.

    ``with`` gives a `workbench.protocols.dps.udp.blocking.BlockingNode`, for programs without asyncio.

    address   where it listens, once it is open; ``str(node)`` is its text
    core      the protocol's node, for looking into; with ``core.tells_all = True`` drops are told one by one, too
    """

    def __init__(
        self,
        protocol: DPS,
        listen: str | int | Address,
        security: Any = None,
        multicast: Multicast | None = None,
        tell: Callable[[Any], None] | None = None,
        max_waiting: int = MAX_WAITING,
        discover: str | None = None,
        announce: bytes | str = b"",
    ) -> None:
        self.protocol = protocol
        self._listen = listen
        self._tell = tell
        self._multicast = multicast
        self._max_waiting = max_waiting
        self._discovery = None if discover is None else self._made_discovery(discover, announce)
        self.address: Address = ()
        self._is_open = False
        self._timer: asyncio.TimerHandle | None = None
        self._subscriptions: dict[int, DPSSubscription] = {}
        # By what an event tells of a publication id. The protocol keeps the series that may still be answered.
        self._series: WeakValueDictionary[tuple[int, int], DPSSeries] = WeakValueDictionary()
        # Those with a handler, which are there for it though nobody else holds them; the one made last at the end.
        self._handled: dict[tuple[int, int], DPSSeries] = {}
        # An address of nobody makes publication ids of 16 drawn bytes.
        self.core: DPSNode = protocol.make_node(NOBODY, draws.Stream(int.from_bytes(os.urandom(8), "big")))
        self.core.tells_all = False
        self.core.neighbor_of = self._neighbor_of
        self.core.may_speak_for = self._may_speak_for
        self.core.security = security
        self.refused: Counter[str] = Counter()  # of registrations

    def _made_discovery(self, service: str, data: bytes | str) -> Discovery:
        if self._multicast is None:  # within this machine, and for discovery alone
            self._multicast = Multicast(interfaces=loopback_interfaces(), publications=False)
        elif not (self._multicast.sends and self._multicast.receives):
            raise ParameterError("discovery needs a Multicast that sends and receives")
        return Discovery(self, service, as_bytes(data))

    def __str__(self) -> str:
        return addresses.as_text(self.address) if self._is_open else "closed"

    def __repr__(self) -> str:
        if not self._is_open:
            return "<DPS node, closed>"
        asked = len(self._subscriptions) - (self._discovery is not None)
        return f"<DPS node at {self}: {count(len(self.links), 'link')}, {count(asked, 'subscription')}>"

    # Beginning and end

    async def __aenter__(self) -> UDPNode:
        await self.open()
        return self

    def __enter__(self) -> BlockingNode:
        from workbench.protocols.dps.udp.blocking import BlockingNode

        self._blocking = BlockingNode(self)
        return self._blocking

    def __exit__(self, *_: object) -> None:
        self._blocking.close()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Bind the socket and begin, once; LinkError if that address cannot be had."""
        if self.address:
            raise LinkError("the node has been opened before; make another one")
        host, _ = addresses.split(self._listen, _LOOPBACK_HOST)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        wanted = await addresses.look_up(self._listen, _LOOPBACK_HOST, family, passive=True)
        self._loop = asyncio.get_running_loop()
        self._socket = DatagramSocket(wanted, family, self._take)
        self.keeper = LinkKeeper(self)
        self.address = self._socket.address
        self._is_open = True
        self.core.port = self.address[1]
        self.core.start(now_us())
        if self._multicast is not None:
            try:
                self._multicast.open(self.address, family, partial(self._take, broadcast=True))
            except BaseException:
                self._shut()
                raise
            self.core.multicasts = self._multicast.sends and self._multicast.publications
        if self._discovery is not None:
            self._discovery.open()

    async def close(self, patience_s: float = 0.5) -> None:
        """End all links, wait ``patience_s`` at most for the neighbors' word, and close the socket."""
        if not self._is_open:
            return
        if self._discovery is not None:
            self._discovery.say_goodbye()
        try:
            await self.keeper.end_all(patience_s)
        finally:
            self._shut()

    def _shut(self) -> None:
        self._is_open = False
        self._socket.close()
        if self._multicast is not None:
            self._multicast.close()
        if self._timer is not None:
            self._timer.cancel()
        self.keeper.close()
        if self._discovery is not None:
            self._discovery.close()
        for subscription in self._subscriptions.values():
            subscription.close()
        for series in list(self._series.values()):
            series.close()
        self._handled.clear()

    def check_open(self) -> None:
        """LinkError unless the node is open."""
        if not self._is_open:
            raise LinkError("the node is closed; use it inside 'async with wb.dps_node(...) as node:'")

    # Links

    @property
    def links(self) -> dict[str, str]:
        """Neighbor -> state of the link: linking, active, muted, unmuting, unlinking."""
        return {addresses.as_text(one): remote.state.label for one, remote in self.core.links.remotes.items()}

    async def link(self, address: str | int | Address, keep: bool = True, timeout_s: float | None = None) -> Address:
        """Ask a node for a link, and wait until there is one; returns its address.

        ``keep``: if it is lost later, it is asked for again every ``relink_s`` or so. LinkError if the node cannot be
        reached, or has not answered in ``timeout_s`` (None: as long as the protocol repeats its question).
        """
        neighbor = await self.resolve(address)
        await self.keeper.link(neighbor, keep, timeout_s)
        self.check_open()
        return neighbor

    async def keep_linked(self, address: str | int | Address) -> Address:
        """Ask a node for a link now, and again whenever there is none, without waiting; returns its address."""
        neighbor = await self.resolve(address)
        self.keeper.ask(neighbor, keep=True)
        return neighbor

    async def unlink(self, address: str | int | Address) -> None:
        """End a link, and ask for it no longer; nothing if there is none."""
        self.keeper.end(await self.resolve(address))

    async def resolve(self, address: str | int | Address) -> Address:
        """The address in the form that the node uses; LinkError if it cannot be one of a neighbor."""
        self.check_open()
        host = self.address[0]
        family = socket.AF_UNSPEC if host == "::" else socket.AF_INET6 if ":" in host else socket.AF_INET
        neighbor = await addresses.look_up(address, _LOOPBACK_HOST if host in _EVERYBODY else host, family)
        if not neighbor[1]:
            raise LinkError(f"{address!r} has port 0; name the port that the other node listens on")
        if self.is_own(neighbor):
            raise LinkError(f"{addresses.as_text(neighbor)} is where this node listens; it cannot be linked to itself")
        return neighbor

    # Subscriptions and publications

    async def subscribe(
        self,
        *topics: str,
        expired: bool = False,
        handler: Callable[[ReceivedPublication], None] | None = None,
    ) -> DPSSubscription:
        """Ask for publications that match all these topics; ``async for`` over what is returned takes them.

        ``expired``: also be told when a retained one is ended. ``handler`` is called with each as it comes, from within
        the event loop, and the subscription stays empty then; if it raises, the event loop's exception handler is told
        and all goes on. AttributeFormatError for a topic that is none. Of wildcards alone, ``#`` or ``+``, no neighbor
        can be told: a UserWarning says so, unless the node receives multicasts, which are matched here.
        """
        self.check_open()
        core = self.core.subscribe_topics(topics, now_us(), expired)
        said = warning_of_wildcards(topics, self.protocol.separators)
        if said and not (self._multicast and self._multicast.receives):
            warnings.warn(said, stacklevel=2)
        subscription = self.hold_subscription(core, handler)
        if self._discovery is not None:
            self._discovery.announce_soon()
        return subscription

    def hold_subscription(self, core: Any, handler: Callable[[ReceivedPublication], None] | None) -> DPSSubscription:
        """A subscription of the protocol's node, with a mailbox or a handler; see `subscribe`."""
        subscription = DPSSubscription(self, core, handler, self._max_waiting)
        self._subscriptions[core.number] = subscription
        self.settle()
        return subscription

    def end_subscription(self, subscription: DPSSubscription) -> None:
        """What `DPSSubscription.unsubscribe` does."""
        if self._subscriptions.pop(subscription.core.number, None) is not None and self._is_open:
            self.core.unsubscribe(subscription.core, now_us())
            self.settle()
            if self._discovery is not None:
                self._discovery.announce_soon()

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
        acknowledge  subscribers may answer: ``async for answer in series``, or ``handler``, called with each for as
                     long as ``max_history`` later series have none; see `subscribe`
        wildcards    False: only subscriptions that spell a topic out are sent it

        AttributeFormatError for a topic that is none, EncodeError if it does not fit a datagram.
        """
        self.check_open()
        core = self.core.publish_topics(topics, as_bytes(payload), now_us(), ttl_s, acknowledge, wildcards)
        series = self.hold_series(core, handler)
        self.settle()
        if self._discovery is not None:
            self._discovery.published(core.topics, wildcards)
        await self.drained()
        return series

    def hold_series(self, core: Any, handler: Callable[[Any], None] | None) -> DPSSeries:
        """A series of the protocol's node, with a mailbox or a handler for its answers; see `publish`."""
        series = DPSSeries(self, core, handler, self._max_waiting)
        if core.acknowledge:
            name = wire.origin_of(core.publication_id)
            self._series[name] = series
            if handler is not None:
                while len(self._handled) >= self.protocol.max_history:
                    del self._handled[next(iter(self._handled))]
                self._handled[name] = series
        return series

    def publish_next(self, series: DPSSeries, payload: bytes | str, ttl_s: int) -> int:
        """What `DPSSeries.publish` does before it waits."""
        self.check_open()
        number: int = series.core.publish(as_bytes(payload), now_us(), ttl_s)
        self.settle()
        return number

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """What `ReceivedPublication.acknowledge` does."""
        self.check_open()
        self.core.acknowledge(arrival, as_bytes(payload), now_us())
        self.settle()

    # Others

    @property
    def discovered(self) -> list[DiscoveredNode]:
        """The nodes that discovery has found and that are still there, those heard last at the end."""
        return self._discovering().found

    def discover(self) -> Discoveries:
        """The nodes that are there, and then those that come, change or go: ``async for found in node.discover()``.

        ParameterError unless the node was made with ``discover="a service"``.
        """
        self.check_open()
        return self._discovering().discoveries(self._max_waiting)

    def will_publish(self, *topics: str, wildcards: bool = True) -> None:
        """Have discovery link to those who may ask for a publication on these topics, before there is one.

        Once something is published, it does so without being told. ParameterError without discovery,
        AttributeFormatError for a topic that is none.
        """
        self.check_open()
        self._discovering().published(topics, wildcards)

    def _discovering(self) -> Discovery:
        if self._discovery is None:
            raise ParameterError("the node does not discover others; make it with wb.dps_node(discover='a service')")
        return self._discovery

    register = registry.register
    lookup = registry.lookup

    def beside(self) -> UDPNode:
        """Another node, not opened yet, with this one's settings and keys, on another port of its address."""
        return UDPNode(self.protocol, (self.address[0], 0), self.core.security)

    async def drained(self) -> None:
        """Let others have their turn, and wait while much is unsent."""
        await asyncio.sleep(0)
        await self._socket.drained()

    # Datagrams

    @property
    def sent(self) -> int:
        """Datagrams sent, multicasts included."""
        return self._socket.sent + (self._multicast.sent if self._multicast else 0)

    @property
    def received(self) -> int:
        """Datagrams received, multicasts included."""
        return self._socket.received + (self._multicast.received if self._multicast else 0)

    @property
    def drops(self) -> dict[str, int]:
        """Reason -> number of messages and datagrams that ended here."""
        others = [part.drops for part in (self._multicast, self._discovery) if part is not None]
        return dict(sum(others, Counter(self.core.drops) + self._socket.errors + self.refused))

    def _neighbor_of(self, source: Address, port: int | None) -> Address | None:
        """Who sent a message, by where it came from and the port it names; None if that cannot be a neighbor."""
        neighbor = source if len(source) == 2 else addresses.normal(source)
        if port is not None and port != neighbor[1]:
            neighbor = addresses.with_port(neighbor, port)
        if neighbor[1] == 0 or (neighbor[1] == self.address[1] and self.is_own(neighbor)):
            return None
        return neighbor

    def _may_speak_for(self, source: Address, port: int) -> bool:
        return source[1] == port

    def is_own(self, address: Address) -> bool:
        """Whether an address is where this node listens."""
        if self.address[0] not in _EVERYBODY:
            return address == self.address
        return address[1] == self.address[1] and addresses.is_of_this_machine(address)

    def _take(self, frame: bytes, source: Address, broadcast: bool = False) -> None:
        self.core.receive(frame, source, now_us(), broadcast)
        self.settle()

    def settle(self, watched: Address | None = None) -> OSError | None:
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
            assert self._multicast is not None  # Without one nothing is multicast.
            self._multicast.send(frame)
            return None
        return self._socket.send(neighbor, frame)

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
                self.keeper.changed(event)
                if event.value == GONE and self._discovery is not None:
                    self._discovery.link_ended(event.peer)
            if self._tell is not None:
                try:
                    self._tell(event)
                except Exception as error:
                    tell_of(error, self._tell)

    # Time

    def _plan(self, due_us: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_us = due_us
        self._timer = self._loop.call_at(due_us / SECOND_US, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = now_us()
        due_us = self.core.next_wake
        if due_us is not None and due_us <= now:
            self.core.wake(now)
        self.settle()


def dps_node(
    listen: str | int | Address = LOOPBACK,
    protocol: DPS | None = None,
    *,
    security: Any = None,
    multicast: Multicast | None = None,
    tell: Callable[[Any], None] | None = None,
    max_waiting: int = MAX_WAITING,
    discover: str | None = None,
    announce: bytes | str = b"",
    **settings: Any,
) -> UDPNode:
    """A DPS node on UDP, to be entered: ``async with wb.dps_node() as node: ...``; without asyncio, ``with``.

    listen       ``"127.0.0.1:0"``: this machine alone, any port. ``"0.0.0.0:0"`` or ``"[::]:0"``: everybody;
                 what that means says the page of `workbench.protocols.dps.udp`, *Who may reach the port*
    protocol     a `workbench.DPS`, whose parameters have the reason for each default; None: ``DPS()``. The nodes of a
                 mesh must agree in ``filter_bits``, ``hashes`` and ``separators`` ("/"; ``workbench dps`` has "/.").
                 ``wildcards``, ``ttl_s`` and ``acknowledge`` are for readings of attributes; `UDPNode.publish` has its
                 own
    security     a `dps.cose.Security`: what is encrypted and signed, and with which keys; None: nothing is
    multicast    a `workbench.protocols.dps.udp.multicast.Multicast`; None: publications go over links alone
    tell         called with each event of the protocol's node (`workbench.protocols.contract`)
    max_waiting  how many items a subscription, or a series, holds that nobody has taken
    discover     a service: nodes of the same one find each other (`discovery.py`), by ``multicast``, or without it
                 within this machine
    announce     data of the application's own, which those who find this node are given

    ``settings``, parameters of `workbench.DPS` as keywords, are deprecated: ``protocol`` has them.
    """
    if settings:
        protocol = _protocol_of(protocol, settings)
    elif not isinstance(protocol, DPS | None):
        raise ParameterError(f"dps_node: protocol is {protocol!r}; it must be a wb.DPS")
    return UDPNode(protocol or DPS(), listen, security, multicast, tell, max_waiting, discover, announce)


def _protocol_of(protocol: DPS | None, settings: dict[str, Any]) -> DPS:
    """Return the protocol of settings that were passed as keywords, with a DeprecationWarning."""
    own = [name for name in signature(dps_node).parameters if name != "settings"]
    known = [parameter.name for parameter in DPS.parameters]
    for name in settings:
        if name not in known:
            raise ParameterError(
                f"dps_node has no parameter {name!r}{meant(name, [*own, *known])}; it has: {', '.join(own)}"
            )
    shown = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    if protocol is not None:
        raise ParameterError(f"dps_node: {shown} beside a protocol; pass DPS({shown}) as the protocol")
    warnings.warn(
        f"settings of DPS as keywords of dps_node are deprecated; use dps_node(protocol=wb.DPS({shown}))",
        DeprecationWarning,
        stacklevel=3,
    )
    return DPS(**settings)


def as_bytes(payload: bytes | str) -> bytes:
    """A payload as bytes: a text as UTF-8; ParameterError for what is neither."""
    if isinstance(payload, str):
        try:
            return payload.encode("utf-8", "surrogateescape")  # As the command line has what is no UTF-8.
        except UnicodeEncodeError:
            raise ParameterError("the payload has half of a character in it, which UTF-8 cannot hold") from None
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    raise ParameterError(f"the payload is of type {type(payload).__name__}; it must be bytes or a text")

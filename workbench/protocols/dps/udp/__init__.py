"""A DPS node on UDP for asyncio: the protocol's state machine with a socket, a clock and a timer.

Theory of operation
    `workbench.protocols.dps` is a state machine without input and output. This package adds a socket (`endpoint.py`), a
    clock and a timer. A received datagram goes to the state machine at once, and its replies are sent before the next
    datagram is read. The timer wakes the state machine at the time that it requests. Subscriptions and series of
    publications store received items in mailboxes until the application takes them (`application.py`). Links that the
    application requests are restored after a loss (`link_keeper.py`). Nodes find each other by multicast
    (`discovery.py`) or by a registry (`registry.py`).

    A neighbor is identified by its IP address and the port that its messages name. A message that was sent from a
    different port is dropped with the reason "port", since another process of the neighbor's machine could have sent
    it. Multicasts are exempt, because they are sent from another socket. By default the node binds to the loopback
    interface and does not multicast (`multicast.py`).

Bounds
    The protocol's parameters limit links, history and retained publications. Each subscription and series holds at most
    ``max_waiting`` items and 16 MB; beyond that the oldest items are discarded and counted in ``lost``. Unsent
    datagrams take at most 16 MB. With the defaults strangers can fill 23 MB of history and 64 MB of retained
    publications. ``drops`` counts dropped messages and datagrams by reason.

Access to the port
    On loopback, only processes of this machine can send to the port; on ``0.0.0.0`` or ``[::]``, every host that the
    network lets through. Links have no keys, as in the reference. A host that can send to the port can

    - link to the node, and use up ``max_links``
    - subscribe to everything, with a filter whose bits are all 1, and read unencrypted publications
    - publish
    - receive the acknowledgements of a publication, by sending a copy of the publication with a hop count of 0: an
      acknowledgement goes to the neighbor whose copy has the fewest hops

    A host that can forge a neighbor's address can end or mute that neighbor's link and change its subscriptions. Keys
    (`workbench.protocols.dps.cose`) protect the payloads of publications and acknowledgements, but not filters, links
    or the identity of the communicating nodes. With discovery, a host that can multicast to the node can make it
    request a link to any address. Therefore restrict access to the port with a firewall or a VPN, and listen only on
    the address of that network.

Cost
    An acknowledged publication takes about 60 µs of processor time at each end, a third of that time in system calls.

Limits
    A message must fit in one datagram, 65,507 bytes; a longer one raises EncodeError. DTLS is not supported. A node
    uses one event loop, which must be able to watch sockets, as on Linux and macOS.

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
from workbench.keywords import checked
from workbench.protocols.contract import NOBODY, Delivered
from workbench.protocols.dps import DPS, wire
from workbench.protocols.dps.automaton import GONE
from workbench.protocols.dps.events import Acknowledged, LinkSet
from workbench.protocols.dps.node import DPSNode
from workbench.protocols.dps.rules import SECOND_US
from workbench.protocols.dps.topics import warning_of_wildcards
from workbench.protocols.dps.udp import addresses, registry
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.udp.application import DPSSeries, DPSSubscription, ReceivedPublication, count, report_error
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
_WILDCARD_HOSTS = ("::", "0.0.0.0")


class UDPNode:
    """A DPS node on UDP, made by `dps_node`; ``async with`` opens and closes it.

    ``with`` returns a `workbench.protocols.dps.udp.blocking.BlockingNode`, for programs without asyncio.

    address   the address on which the open node listens; ``str(node)`` is its text
    core      the protocol's state machine, a `DPSNode`, for inspection; with ``core.tells_all = True`` it also reports
              each dropped message as an event
    """

    def __init__(
        self,
        protocol: DPS,
        listen: str | int | Address,
        security: Any = None,
        multicast: Multicast | None = None,
        on_event: Callable[[Any], None] | None = None,
        max_waiting: int = MAX_WAITING,
        discover: str | None = None,
        announce: bytes | str = b"",
    ) -> None:
        self.protocol = protocol
        self._listen = listen
        self._on_event = on_event
        self._multicast = multicast
        self._max_waiting = max_waiting
        self._discovery = None if discover is None else self._make_discovery(discover, announce)
        self.address: Address = ()
        self._is_open = False
        self._timer: asyncio.TimerHandle | None = None
        self._subscriptions: dict[int, DPSSubscription] = {}
        # The keys are the part of a publication id that events contain. The protocol's node holds the only strong
        # references to series that may still be acknowledged.
        self._series: WeakValueDictionary[tuple[int, int], DPSSeries] = WeakValueDictionary()
        # Keeps series with a handler alive when the application does not; the newest is last.
        self._series_with_handler: dict[tuple[int, int], DPSSeries] = {}
        # Without an address, the protocol's node draws publication ids of 16 random bytes.
        self.core: DPSNode = protocol.make_node(NOBODY, draws.Stream(int.from_bytes(os.urandom(8), "big")))
        self.core.tells_all = False
        self.core.neighbor_of = self._neighbor_of
        self.core.may_speak_for = self._may_speak_for
        self.core.security = security
        self.registry_drops: Counter[str] = Counter()  # malformed addresses in registrations

    def _make_discovery(self, service: str, data: bytes | str) -> Discovery:
        if self._multicast is None:  # Multicast only announcements, and only within this machine.
            self._multicast = Multicast(interfaces=loopback_interfaces(), publications=False)
        elif not (self._multicast.sends and self._multicast.receives):
            raise ParameterError(
                f"the argument `multicast` has sends={self._multicast.sends} and receives={self._multicast.receives}; "
                "discovery needs both to be True"
            )
        return Discovery(self, service, as_bytes(data))

    def __str__(self) -> str:
        return addresses.as_text(self.address) if self._is_open else "closed"

    def __repr__(self) -> str:
        if not self._is_open:
            return "<DPS node, closed>"
        subscription_count = len(self._subscriptions) - (self._discovery is not None)
        return f"<DPS node at {self}: {count(len(self.links), 'link')}, {count(subscription_count, 'subscription')}>"

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
        """Bind the socket and start the node.

        Raises LinkError if the address cannot be bound, or if the node has been opened before.
        """
        if self.address:
            raise LinkError("the node has been opened before; create a new one with wb.dps_node(...)")
        host, _ = addresses.split(self._listen, _LOOPBACK_HOST)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bind_address = await addresses.look_up(self._listen, _LOOPBACK_HOST, family, passive=True)
        self._loop = asyncio.get_running_loop()
        self._socket = DatagramSocket(bind_address, family, self._receive)
        self.keeper = LinkKeeper(self)
        self.address = self._socket.address
        self._is_open = True
        self.core.port = self.address[1]
        self.core.start(now_us())
        if self._multicast is not None:
            try:
                self._multicast.open(self.address, family, partial(self._receive, broadcast=True))
            except BaseException:
                self._release_resources()
                raise
            self.core.multicasts = self._multicast.sends and self._multicast.publications
        if self._discovery is not None:
            self._discovery.open()

    async def close(self, patience_s: float = 0.5) -> None:
        """End all links, wait at most ``patience_s`` for the neighbors to confirm, and close the socket."""
        if not self._is_open:
            return
        if self._discovery is not None:
            self._discovery.send_goodbye()
        try:
            await self.keeper.end_all(patience_s)
        finally:
            self._release_resources()

    def _release_resources(self) -> None:
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
        self._series_with_handler.clear()

    def check_open(self) -> None:
        """Raise LinkError unless the node is open."""
        if not self._is_open:
            raise LinkError("the node is closed; use it inside 'async with wb.dps_node(...) as node:'")

    # Links

    @property
    def links(self) -> dict[str, str]:
        """Dict {neighbor's address: link's state}: linking, active, muted (closes a loop), unmuting or unlinking."""
        return {addresses.as_text(neighbor): remote.state.label for neighbor, remote in self.core.links.remotes.items()}

    async def link(self, address: str | int | Address, keep: bool = True, timeout_s: float | None = None) -> Address:
        """Link to the node at an address, wait until the link is established, and return the neighbor's address.

        ``keep``: whether to request the link again, about every ``relink_s`` seconds, if it is lost. ``timeout_s``: how
        long to wait; None: as long as the protocol repeats its request. Raises LinkError if the node cannot be reached
        or does not answer.
        """
        neighbor = await self.resolve(address)
        await self.keeper.link(neighbor, keep, timeout_s)
        self.check_open()
        return neighbor

    async def keep_linked(self, address: str | int | Address) -> Address:
        """Request a link at once and again after each loss; return the neighbor's address without waiting."""
        neighbor = await self.resolve(address)
        self.keeper.request(neighbor, keep=True)
        return neighbor

    async def unlink(self, address: str | int | Address) -> None:
        """End the link to the node at an address, if a link exists, and stop requesting it."""
        self.keeper.end(await self.resolve(address))

    async def resolve(self, address: str | int | Address) -> Address:
        """Return the normalized IP address and port of an address; see `addresses.split` for its forms.

        Raises LinkError if a neighbor cannot have this address.
        """
        self.check_open()
        host = self.address[0]
        family = socket.AF_UNSPEC if host == "::" else socket.AF_INET6 if ":" in host else socket.AF_INET
        neighbor = await addresses.look_up(address, _LOOPBACK_HOST if host in _WILDCARD_HOSTS else host, family)
        if not neighbor[1]:
            raise LinkError(f"{address!r} has port 0; name the port that the other node listens on")
        if self.is_own(neighbor):
            raise LinkError(f"{addresses.as_text(neighbor)} is this node's own address; a node cannot link to itself")
        return neighbor

    # Subscriptions and publications

    async def subscribe(
        self,
        *topics: str,
        expired: bool = False,
        handler: Callable[[ReceivedPublication], None] | None = None,
    ) -> DPSSubscription:
        """Subscribe to publications that match all these topics; iterate over the result with ``async for``.

        ``expired``: whether to be notified also when a retained publication ends. ``handler``: a function that the
        event loop calls with each publication. The publication is then not stored in the subscription, and an exception
        of the handler goes to the event loop's exception handler. A subscription to ``#`` or ``+`` alone cannot be sent
        to neighbors; it causes a UserWarning unless the node receives multicasts. Raises AttributeFormatError for an
        invalid topic.
        """
        self.check_open()
        protocol_subscription = self.core.subscribe_topics(topics, now_us(), expired)
        wildcard_warning = warning_of_wildcards(topics, self.protocol.separators)
        if wildcard_warning and not (self._multicast and self._multicast.receives):
            warnings.warn(wildcard_warning, stacklevel=2)
        subscription = self.hold_subscription(protocol_subscription, handler)
        if self._discovery is not None:
            self._discovery.announce_soon()
        return subscription

    def hold_subscription(
        self, protocol_subscription: Any, handler: Callable[[ReceivedPublication], None] | None
    ) -> DPSSubscription:
        """Create, store and return a DPSSubscription, by which the application receives publications.

        ``protocol_subscription``: the subscription of the protocol's state machine. Publications that it has already
        received are delivered at once. ``handler``: see `subscribe`.
        """
        subscription = DPSSubscription(self, protocol_subscription, handler, self._max_waiting)
        self._subscriptions[protocol_subscription.number] = subscription
        self.settle()
        return subscription

    def end_subscription(self, subscription: DPSSubscription) -> None:
        """End a subscription in the node's protocol state machine, unless it has ended before."""
        if self._subscriptions.pop(subscription.protocol_subscription.number, None) is not None and self._is_open:
            self.core.unsubscribe(subscription.protocol_subscription, now_us())
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
        """Publish on one or more topics, and return the series, whose `publish` sends further publications on them.

        topics       a topic, or several topics of the same publication
        payload      bytes, or a text that is sent as UTF-8
        ttl_s        seconds for which the publication is retained for later subscribers; 0: it is not retained
        acknowledge  request acknowledgements: iterate over the series with ``async for``, or pass a ``handler``
        wildcards    False: only subscriptions without wildcards receive the publication
        handler      function called with each acknowledgement (see `subscribe`); only the last ``max_history`` series
                     keep their handlers

        Raises AttributeFormatError for an invalid topic, EncodeError if the message does not fit in a datagram.
        """
        self.check_open()
        protocol_series = self.core.publish_topics(topics, as_bytes(payload), now_us(), ttl_s, acknowledge, wildcards)
        series = self.hold_series(protocol_series, handler)
        self.settle()
        if self._discovery is not None:
            self._discovery.link_subscribers(protocol_series.topics, wildcards)
        await self.drained()
        return series

    def hold_series(self, protocol_series: Any, handler: Callable[[Any], None] | None) -> DPSSeries:
        """Create and return a DPSSeries, by which the application publishes in a series.

        ``protocol_series``: the series of the protocol's state machine. If it requests acknowledgements, the DPSSeries
        receives them. ``handler``: see `publish`.
        """
        series = DPSSeries(self, protocol_series, handler, self._max_waiting)
        if protocol_series.acknowledge:
            series_key = wire.origin_of(protocol_series.publication_id)
            self._series[series_key] = series
            if handler is not None:
                while len(self._series_with_handler) >= self.protocol.max_history:
                    del self._series_with_handler[next(iter(self._series_with_handler))]
                self._series_with_handler[series_key] = series
        return series

    def publish_next(self, series: DPSSeries, payload: bytes | str, ttl_s: int) -> int:
        """Publish a payload as the next publication of a series, without waiting until the socket has sent it.

        Return the publication's sequence number. ``ttl_s``: seconds for which nodes retain the publication; 0: they do
        not retain it.
        """
        self.check_open()
        sequence_number: int = series.protocol_series.publish(as_bytes(payload), now_us(), ttl_s)
        self.settle()
        return sequence_number

    def acknowledge(self, arrival: Any, payload: bytes | str) -> None:
        """Send an acknowledgement with a payload to the publisher of ``arrival``, a received publication.

        Raises ParameterError if the publisher did not request acknowledgements, EncodeError if the payload is too long.
        """
        self.check_open()
        self.core.acknowledge(arrival, as_bytes(payload), now_us())
        self.settle()

    # Discovery and registry

    @property
    def discovered(self) -> list[DiscoveredNode]:
        """Discovered nodes, in the order of their last announcements, without nodes that closed or fell silent.

        Raises ParameterError unless the node was made with ``discover="a service"``.
        """
        return self._require_discovery().nodes

    def discover(self) -> Discoveries:
        """Return an iterator over the discovered nodes and later changes: ``async for other in node.discover()``.

        Raises ParameterError unless the node was made with ``discover="a service"``.
        """
        self.check_open()
        return self._require_discovery().discoveries(self._max_waiting)

    def will_publish(self, *topics: str, wildcards: bool = True) -> None:
        """Link to discovered nodes that may subscribe to these topics, before the first publication on them.

        Discovery also links to such nodes when this node publishes. ``wildcards``: as in `publish`. Raises
        ParameterError without discovery, AttributeFormatError for an invalid topic.
        """
        self.check_open()
        self._require_discovery().link_subscribers(topics, wildcards)

    def _require_discovery(self) -> Discovery:
        if self._discovery is None:
            raise ParameterError("the node has no discovery; create it with wb.dps_node(discover='a service')")
        return self._discovery

    register = registry.register
    lookup = registry.lookup

    def make_sibling(self) -> UDPNode:
        """Return a new, unopened node with the same protocol and keys, for another port of the same host."""
        return UDPNode(self.protocol, (self.address[0], 0), self.core.security)

    async def drained(self) -> None:
        """Let other tasks of the event loop run, then wait until the socket has sent all queued datagrams."""
        await asyncio.sleep(0)
        await self._socket.drained()

    # Datagrams

    @property
    def sent(self) -> int:
        """Number of datagrams sent, multicasts included."""
        return self._socket.sent + (self._multicast.sent if self._multicast else 0)

    @property
    def received(self) -> int:
        """Number of datagrams received, multicasts included."""
        return self._socket.received + (self._multicast.received if self._multicast else 0)

    @property
    def drops(self) -> dict[str, int]:
        """Number of messages and datagrams that this node dropped, by reason."""
        optional_drops = [source.drops for source in (self._multicast, self._discovery) if source is not None]
        return dict(sum(optional_drops, Counter(self.core.drops) + self._socket.errors + self.registry_drops))

    def _neighbor_of(self, source: Address, port: int | None) -> Address | None:
        """Return the address of the neighbor that sent a message from the address ``source``.

        The address has the port that the message names (``port``), or the port of ``source`` if ``port`` is None.
        Return None if the port is 0, or if the address is this node's own.
        """
        neighbor = source if len(source) == 2 else addresses.normal(source)
        if port is not None and port != neighbor[1]:
            neighbor = addresses.with_port(neighbor, port)
        if neighbor[1] == 0 or (neighbor[1] == self.address[1] and self.is_own(neighbor)):
            return None
        return neighbor

    def _may_speak_for(self, source: Address, port: int) -> bool:
        return source[1] == port

    def is_own(self, address: Address) -> bool:
        """Return whether this node itself listens on an address."""
        if self.address[0] not in _WILDCARD_HOSTS:
            return address == self.address
        return address[1] == self.address[1] and addresses.is_of_this_machine(address)

    def _receive(self, frame: bytes, source: Address, broadcast: bool = False) -> None:
        self.core.receive(frame, source, now_us(), broadcast)
        self.settle()

    def settle(self, watched: Address | None = None) -> OSError | None:
        """Send the frames that the protocol's state machine produced, process its events and set its timer.

        Call this method after each call of the state machine. Return the OSError if sending to the neighbor ``watched``
        failed, else None.
        """
        state_machine = self.core
        watched_error = None
        while state_machine.outbox or state_machine.events:
            if state_machine.outbox:
                for neighbor, frame in state_machine.take_frames():
                    send_error = self._send(neighbor, frame)
                    if send_error is not None and neighbor == watched:
                        watched_error = send_error
            if state_machine.events:
                self._deliver(state_machine.take_events())
        due_us = state_machine.next_wake
        if due_us is not None and (self._timer is None or due_us < self._due_us):
            self._set_timer(due_us)
        return watched_error

    def _send(self, neighbor: Address | None, frame: bytes) -> OSError | None:
        if neighbor is None:
            assert self._multicast is not None  # The protocol multicasts only if there is one.
            self._multicast.send(frame)
            return None
        return self._socket.send(neighbor, frame)

    # Events of the protocol's node

    def _deliver(self, events: Iterable[Any]) -> None:
        for event in events:
            event_class = type(event)
            if event_class is Delivered:
                subscription = self._subscriptions.get(event.value)
                if subscription is not None:
                    subscription.collect()
            elif event_class is Acknowledged:
                series = self._series.get((event.origin, event.sequence >> 32))
                if series is not None:
                    series.collect()
            elif event_class is LinkSet:
                self.keeper.link_changed(event)
                if event.value == GONE and self._discovery is not None:
                    self._discovery.link_ended(event.peer)
            if self._on_event is not None:
                try:
                    self._on_event(event)
                except Exception as error:
                    report_error(error, self._on_event)

    # Time

    def _set_timer(self, due_us: int) -> None:
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


@checked
def dps_node(
    listen: str | int | Address = LOOPBACK,
    protocol: DPS | None = None,
    *,
    security: Any = None,
    multicast: Multicast | None = None,
    on_event: Callable[[Any], None] | None = None,
    max_waiting: int = MAX_WAITING,
    discover: str | None = None,
    announce: bytes | str = b"",
    **settings: Any,
) -> UDPNode:
    """Create a DPS node on UDP: ``async with wb.dps_node() as node: ...``; without asyncio, ``with``.

    listen       ``"127.0.0.1:0"``: only this machine, any free port. ``"0.0.0.0:0"`` or ``"[::]:0"``: all interfaces;
                 for the risks see *Access to the port* in the docstring of `workbench.protocols.dps.udp`
    protocol     a `workbench.DPS`, whose ``parameters`` explain each default; None: ``DPS()``. The nodes of a
                 mesh must have the same ``filter_bits``, ``hashes`` and ``separators`` (default "/"; "/." in the
                 command ``workbench dps``). The protocol's ``wildcards``, ``ttl_s`` and ``acknowledge`` apply only
                 to publications made of attributes; `UDPNode.publish` has parameters of its own
    security     a `workbench.protocols.dps.cose.Security`, which encrypts and signs; None: do not encrypt or sign
    multicast    a `workbench.protocols.dps.udp.multicast.Multicast`; None: send publications only over links
    on_event     function called with each event of the state machine (`workbench.protocols.contract`)
    max_waiting  number of items that a subscription or a series holds until the application takes them
    discover     name of a service; nodes with the same name find each other (`discovery.py`), by ``multicast``. Without
                 ``multicast`` they find only nodes on this machine. None: no discovery
    announce     data of the application, which nodes that discover this node receive

    ``settings``, parameters of `workbench.DPS` as keywords, are deprecated: pass ``protocol`` instead.
    """
    if settings:
        protocol = _protocol_of(protocol, settings)
    elif not isinstance(protocol, DPS | None):
        raise ParameterError(f"the argument `protocol` of dps_node is {protocol!r}; it must be a wb.DPS")
    return UDPNode(protocol or DPS(), listen, security, multicast, on_event, max_waiting, discover, announce)


def _protocol_of(protocol: DPS | None, settings: dict[str, Any]) -> DPS:
    """Return a DPS with ``settings``, which were passed to `dps_node` as keywords, and warn that this is deprecated.

    Raises ParameterError for an unknown keyword, and if ``protocol`` is not None.
    """
    parameter_names = [name for name in signature(dps_node).parameters if name != "settings"]
    setting_names = [parameter.name for parameter in DPS.parameters]
    for name in settings:
        if name not in setting_names:
            raise ParameterError(
                f"dps_node has no parameter {name!r}{meant(name, [*parameter_names, *setting_names])}; "
                f"it has: {', '.join(parameter_names)}"
            )
    settings_text = ", ".join(f"{name}={setting_value!r}" for name, setting_value in settings.items())
    if protocol is not None:
        raise ParameterError(
            f"dps_node: {settings_text} cannot be given with `protocol`; pass protocol=wb.DPS({settings_text})"
        )
    warnings.warn(
        f"settings of DPS as keywords of dps_node are deprecated; use dps_node(protocol=wb.DPS({settings_text}))",
        DeprecationWarning,
        stacklevel=4,  # the caller of dps_node, which `checked` wraps
    )
    return DPS(**settings)


def as_bytes(payload: bytes | str) -> bytes:
    """Return a payload as bytes; a text is encoded as UTF-8.

    Raises ParameterError for any other type, and for a text that UTF-8 cannot encode.
    """
    if isinstance(payload, str):
        try:
            # Python decodes invalid UTF-8 on the command line to surrogates.
            return payload.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ParameterError(
                "the payload has an unpaired surrogate, which UTF-8 cannot encode; pass the payload as bytes"
            ) from None
    if isinstance(payload, bytes | bytearray | memoryview):
        return bytes(payload)
    raise ParameterError(f"the payload is of type {type(payload).__name__}; it must be bytes or str")

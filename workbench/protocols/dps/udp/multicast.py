"""Multicast of DPS publications: to whoever listens on the network, without a link.

Theory of operation
    Only publications are multicast, in a CoAP envelope (`workbench.protocols.dps.wire.coap`), to 224.0.1.187 and, from
    a node that listens on IPv6, ff02::fd, port 5683, on each interface but loopback ones. They are sent from a socket
    for each interface, and the message names the port that the node listens on: acknowledgements come there, and what
    is received by multicast is acknowledged there. A node does not take its own multicasts: it knows them by the
    address of the socket that sent them. What came by multicast goes on over links, and is not multicast again.

    The receiving sockets, one for each interface, share the port with other nodes of this machine, and are bound to the
    group, so that nothing but multicasts comes in by them.

Limits
    Interfaces are looked at once, when the node is opened. An interface that cannot multicast is left out; it is an
    error if there is none at all.

Reference
    https://github.com/intel/dps-for-iot, commit b92a83660427; RFC 7252.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from workbench.errors import DecodeError, LinkError, ParameterError
from workbench.protocols.dps.udp import addresses
from workbench.protocols.dps.udp.addresses import Address
from workbench.protocols.dps.udp.endpoint import BURST, LARGEST_READ_B
from workbench.protocols.dps.wire import coap

PORT = 5683
GROUPS: dict[int, str] = {socket.AF_INET: "224.0.1.187", socket.AF_INET6: "ff02::fd"}
# Linux gives a socket the multicasts of all groups that any process has joined, unless this is 0.
_IP_MULTICAST_ALL, _IPV6_MULTICAST_ALL = 49, 29

Take = Callable[[bytes, Address], None]  # (frame, source)


class Multicast:
    """How one node multicasts: give it to `dps_node`.

    sends, receives  which of both
    interfaces       their names; None: all but loopback ones
    port             of the group, the same for all nodes
    publications     False: of what the node publishes, discovery alone is multicast

    ``drops`` counts datagrams that were no CoAP message, and multicasts that could not be sent.
    """

    def __init__(
        self,
        sends: bool = True,
        receives: bool = True,
        interfaces: Sequence[str] | None = None,
        port: int = PORT,
        publications: bool = True,
    ) -> None:
        if not (sends or receives):
            raise ParameterError("a Multicast that neither sends nor receives; leave it out")
        self.sends = sends
        self.receives = receives
        self.interfaces = interfaces
        self.port = port
        self.publications = publications
        self.sent = 0
        self.received = 0
        self.drops: Counter[str] = Counter()
        self._outgoing: list[socket.socket] = []
        self._incoming: list[socket.socket] = []
        self._own: set[Address] = set()
        self._message_id = 0
        self._take: Take | None = None

    def open(self, listens_on: Address, family: int, take: Take) -> None:
        """Open the sockets of a node; LinkError if no interface can multicast, or the port cannot be shared."""
        self._take = take
        interfaces = self._numbered()
        if addresses.is_loopback(listens_on) and any(not _is_loopback(name) for _, name in interfaces):
            raise LinkError(
                f"the node listens on {addresses.as_text(listens_on)}, where answers to multicasts do not come; "
                "let it listen on 0.0.0.0:0 or [::]:0"
            )
        families = [socket.AF_INET] if family == socket.AF_INET else [socket.AF_INET6]
        if listens_on[0] == "::":
            families.append(socket.AF_INET)
        try:
            for one in families:
                self._open_family(one, interfaces)
        except OSError as error:
            self.close()
            raise LinkError(f"multicast on port {self.port} is not to be had here: {error.strerror}") from None
        if (self.sends and not self._outgoing) or (self.receives and not self._incoming):
            self.close()
            names = ", ".join(name for _, name in interfaces) or "none but loopback ones"
            raise LinkError(f"no interface here can multicast; there are: {names}")
        for incoming in self._incoming:
            asyncio.get_running_loop().add_reader(incoming, self._read, incoming)

    def close(self) -> None:
        """Close all sockets."""
        with suppress(RuntimeError):  # There is no loop any more, and nothing to remove then.
            for incoming in self._incoming:
                asyncio.get_running_loop().remove_reader(incoming)
        for sock in (*self._incoming, *self._outgoing):
            sock.close()
        self._incoming, self._outgoing, self._own = [], [], set()

    def send(self, frame: bytes) -> None:
        """Multicast a frame on all interfaces."""
        self._message_id = self._message_id + 1 & 0xFFFF
        datagram = coap.wrap(frame, self._message_id)
        for outgoing in self._outgoing:
            try:
                outgoing.send(datagram)
                self.sent += 1
            except OSError:
                self.drops["unreachable"] += 1

    def _numbered(self) -> list[tuple[int, str]]:
        known = socket.if_nameindex()
        if self.interfaces is None:
            return [(number, name) for number, name in known if not _is_loopback(name)]
        names = [name for _, name in known]
        for name in self.interfaces:
            if name not in names:
                raise LinkError(f"there is no interface {name!r} here; there are {', '.join(names)}")
        return [(number, name) for number, name in known if name in self.interfaces]

    def _open_family(self, family: int, interfaces: list[tuple[int, str]]) -> None:
        for number, name in interfaces:
            incoming = _receiver(family, number, self.port) if self.receives else None
            if incoming is not None:
                self._incoming.append(incoming)
            outgoing = _sender(family, number, name, self.port) if self.sends else None
            if outgoing is not None:
                self._outgoing.append(outgoing)
                self._own.add(addresses.normal(outgoing.getsockname()))

    def _read(self, incoming: socket.socket) -> None:
        assert self._take is not None
        for _ in range(BURST):
            try:
                datagram, source = incoming.recvfrom(LARGEST_READ_B)
            except OSError:  # Nothing more, for now.
                return
            if addresses.normal(source) in self._own:
                continue
            self.received += 1
            try:
                frame = coap.unwrap(datagram)
            except DecodeError:
                self.drops["malformed"] += 1
                continue
            self._take(frame, source)


def loopback_interfaces() -> list[str]:
    """The names of this machine's loopback interfaces."""
    return [name for _, name in socket.if_nameindex() if _is_loopback(name)]


def _is_loopback(name: str) -> bool:
    return name.rstrip("0123456789") == "lo"


def _membership(family: int, interface: int) -> bytes:
    group = socket.inet_pton(family, GROUPS[family])
    if family == socket.AF_INET6:
        return group + struct.pack("@I", interface)
    return group + struct.pack("=4si", b"", interface)


def _receiver(family: int, interface: int, port: int) -> socket.socket | None:
    """A socket for what comes to the group by an interface; None if that has no such address."""
    level, join = socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP
    if family == socket.AF_INET6:
        level, join = socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "darwin":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sys.platform == "linux":
            with suppress(OSError):  # Of a kernel before 4.20, for IPv6.
                option = _IPV6_MULTICAST_ALL if family == socket.AF_INET6 else _IP_MULTICAST_ALL
                sock.setsockopt(level, option, 0)
        sock.bind(_group(family, interface, port))
        sock.setsockopt(level, join, _membership(family, interface))
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None
    return sock


def _sender(family: int, interface: int, name: str, port: int) -> socket.socket | None:
    """A socket that sends to the group on an interface; None if that has no such address."""
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
        else:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _membership(family, interface))
            if _is_loopback(name):  # No route leads multicasts there, which would tell the address to send from.
                sock.bind(("127.0.0.1", 0))
        # Connected, so that the address it sends from is known.
        sock.connect(_group(family, interface, port))
    except OSError:
        sock.close()
        return None
    return sock


def _group(family: int, interface: int, port: int) -> Address:
    if family == socket.AF_INET6:
        return GROUPS[family], port, 0, interface
    return GROUPS[family], port

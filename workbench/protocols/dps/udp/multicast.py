"""Multicast of DPS publications to all listening nodes of the network, without links.

Theory of operation
    Only publications are multicast, in a CoAP envelope (`workbench.protocols.dps.wire.coap`). They are sent to port
    5683 of the group 224.0.1.187 and, if the node listens on IPv6, of ff02::fd. Each interface except loopback has its
    own sending socket. The message names the port on which the node listens, and acknowledgements are sent to that
    port. A node ignores its own multicasts, which it recognizes by the address of the sending socket. A received
    multicast publication is forwarded over links, and not multicast again.

    The receiving sockets, one for each interface, share the port with other nodes of this machine. They are bound to
    the group's address, so they receive only multicasts.

Limits
    The list of interfaces is read once, when the node is opened. An interface that cannot multicast is skipped. If no
    interface can, opening the node raises LinkError.

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
# Unless this option is 0, Linux gives a socket the multicasts of all groups that any process has joined.
_IP_MULTICAST_ALL, _IPV6_MULTICAST_ALL = 49, 29

Receive = Callable[[bytes, Address], None]  # of (frame, source)


class Multicast:
    """The multicast settings and sockets of one node; pass it to `dps_node` as ``multicast``.

    sends         whether the node sends multicasts
    receives      whether the node receives multicasts
    interfaces    names of network interfaces; None: all except loopback
    port          UDP port of the multicast group, the same for all nodes
    publications  False: multicast only discovery's announcements, not the application's publications

    ``drops`` counts received datagrams that are not CoAP messages (malformed) and failed sends (unreachable).
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
            raise ParameterError(
                "the arguments `sends` and `receives` are both False; set one, or create the node without multicast"
            )
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
        self._own_addresses: set[Address] = set()
        self._message_id = 0
        self._receive: Receive | None = None

    def open(self, listens_on: Address, family: int, receive: Receive) -> None:
        """Open the multicast sockets; ``receive(frame, source)`` is then called for each received frame.

        ``listens_on``: address of the node's own socket; ``family``: its address family. Raises LinkError if no
        interface can multicast, if the port is taken, or if other hosts cannot reach ``listens_on``.
        """
        self._receive = receive
        interfaces = self._selected_interfaces()
        if addresses.is_loopback(listens_on) and any(
            not _is_loopback(interface_name) for _, interface_name in interfaces
        ):
            raise LinkError(
                f"this node listens on {addresses.as_text(listens_on)}, which other machines cannot reach to answer "
                "its multicasts; listen on 0.0.0.0:0 or [::]:0 instead"
            )
        families = [socket.AF_INET] if family == socket.AF_INET else [socket.AF_INET6]
        if listens_on[0] == "::":
            families.append(socket.AF_INET)
        try:
            for address_family in families:
                self._open_family(address_family, interfaces)
        except OSError as error:
            self.close()
            raise LinkError(
                f"cannot multicast on port {self.port}: {error.strerror}; use "
                "another port, or stop the program that occupies it"
            ) from None
        if (self.sends and not self._outgoing) or (self.receives and not self._incoming):
            self.close()
            interface_names = ", ".join(interface_name for _, interface_name in interfaces)
            used_text = f"on {interface_names}" if interface_names else "without a network interface besides loopback"
            raise LinkError(f"cannot multicast {used_text}; name other network interfaces, as in interfaces=['eth0']")
        for receiving_socket in self._incoming:
            asyncio.get_running_loop().add_reader(receiving_socket, self._read, receiving_socket)

    def close(self) -> None:
        """Close all sockets."""
        with suppress(RuntimeError):  # The event loop has ended, and its readers with it.
            for receiving_socket in self._incoming:
                asyncio.get_running_loop().remove_reader(receiving_socket)
        for open_socket in (*self._incoming, *self._outgoing):
            open_socket.close()
        self._incoming, self._outgoing, self._own_addresses = [], [], set()

    def send(self, frame: bytes) -> None:
        """Send a frame to the multicast group on all selected interfaces; count failures in ``drops``."""
        self._message_id = self._message_id + 1 & 0xFFFF
        datagram = coap.wrap(frame, self._message_id)
        for sending_socket in self._outgoing:
            try:
                sending_socket.send(datagram)
                self.sent += 1
            except OSError:
                self.drops["unreachable"] += 1

    def _selected_interfaces(self) -> list[tuple[int, str]]:
        all_interfaces = socket.if_nameindex()
        if self.interfaces is None:
            return [
                (interface_index, interface_name)
                for interface_index, interface_name in all_interfaces
                if not _is_loopback(interface_name)
            ]
        interface_names = [interface_name for _, interface_name in all_interfaces]
        for interface_name in self.interfaces:
            if interface_name not in interface_names:
                raise LinkError(
                    f"in `interfaces`, {interface_name!r} is not a network interface of this machine, which has "
                    f"{', '.join(interface_names)}"
                )
        return [
            (interface_index, interface_name)
            for interface_index, interface_name in all_interfaces
            if interface_name in self.interfaces
        ]

    def _open_family(self, family: int, interfaces: list[tuple[int, str]]) -> None:
        for interface_index, interface_name in interfaces:
            receiving_socket = _open_receiver(family, interface_index, self.port) if self.receives else None
            if receiving_socket is not None:
                self._incoming.append(receiving_socket)
            sending_socket = _open_sender(family, interface_index, interface_name, self.port) if self.sends else None
            if sending_socket is not None:
                self._outgoing.append(sending_socket)
                self._own_addresses.add(addresses.normal(sending_socket.getsockname()))

    def _read(self, incoming: socket.socket) -> None:
        assert self._receive is not None
        for _ in range(BURST):
            try:
                datagram, source = incoming.recvfrom(LARGEST_READ_B)
            except OSError:  # All waiting datagrams are read.
                return
            if addresses.normal(source) in self._own_addresses:
                continue
            self.received += 1
            try:
                unwrapped_frame = coap.unwrap(datagram)
            except DecodeError:
                self.drops["malformed"] += 1
                continue
            self._receive(unwrapped_frame, source)


def loopback_interfaces() -> list[str]:
    """Return the names of this machine's loopback interfaces."""
    return [name for _, name in socket.if_nameindex() if _is_loopback(name)]


def _is_loopback(name: str) -> bool:
    return name.rstrip("0123456789") == "lo"


def _membership_request(family: int, interface: int) -> bytes:
    group_bytes = socket.inet_pton(family, GROUPS[family])
    if family == socket.AF_INET6:
        return group_bytes + struct.pack("@I", interface)
    return group_bytes + struct.pack("=4si", b"", interface)


def _open_receiver(family: int, interface: int, port: int) -> socket.socket | None:
    """Return a socket that receives the multicast group's datagrams on an interface, or None if it cannot join.

    ``family``: address family; ``interface``: index of the network interface. Raises OSError if another program
    occupies the port.
    """
    option_level, join_option = socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP
    if family == socket.AF_INET6:
        option_level, join_option = socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP
    receiving_socket = socket.socket(family, socket.SOCK_DGRAM)
    try:
        receiving_socket.setblocking(False)
        receiving_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sys.platform == "darwin":
            receiving_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if sys.platform == "linux":
            with suppress(OSError):  # Kernels before 4.20 do not have the option for IPv6.
                multicast_all_option = _IPV6_MULTICAST_ALL if family == socket.AF_INET6 else _IP_MULTICAST_ALL
                receiving_socket.setsockopt(option_level, multicast_all_option, 0)
        receiving_socket.bind(_group_address(family, interface, port))
        receiving_socket.setsockopt(option_level, join_option, _membership_request(family, interface))
    except OSError as error:
        receiving_socket.close()
        if error.errno == errno.EADDRINUSE:
            raise
        return None
    return receiving_socket


def _open_sender(family: int, interface: int, name: str, port: int) -> socket.socket | None:
    """Return a socket that sends to the multicast group on an interface, or None if the interface cannot do so.

    ``family``: address family; ``interface``, ``name``: index and name of the network interface.
    """
    sending_socket = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sending_socket.setblocking(False)
        if family == socket.AF_INET6:
            sending_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
        else:
            sending_socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _membership_request(family, interface))
            if _is_loopback(name):  # No multicast route leads there, so the kernel would not choose a source address.
                sending_socket.bind(("127.0.0.1", 0))
        # Connecting fixes the source address, by which `_read` recognizes this node's own multicasts.
        sending_socket.connect(_group_address(family, interface, port))
    except OSError:
        sending_socket.close()
        return None
    return sending_socket


def _group_address(family: int, interface: int, port: int) -> Address:
    if family == socket.AF_INET6:
        return GROUPS[family], port, 0, interface
    return GROUPS[family], port

"""Addresses of DPS nodes on UDP: parse, look up and format them, and convert them to a normalized form.

Theory of operation
    A node is identified by its IP address and the port that it listens on, in the form of Python's sockets:
    ``(host, port)`` for IPv4, ``(host, port, 0, scope)`` for IPv6. An IPv6 socket shows an IPv4 address as
    ``::ffff:127.0.0.1``; it is converted to the IPv4 address, so a neighbor has only one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any

from workbench.errors import LinkError

Address = tuple[Any, ...]

ANY_PORT = 0
_IPV4_MAPPED = "::ffff:"
_LARGEST_PORT = 0xFFFF
_ADVICE = "an address is host:port, as in 127.0.0.1:4000 or [::1]:4000, or a port alone"


def split(text: str | int | Address, default_host: str) -> tuple[str, int]:
    """Return (host, port) of an address that a user wrote; raise LinkError if it is invalid.

    Forms: ``"127.0.0.1:4000"``, ``"[::1]:4000"``, ``("127.0.0.1", 4000)``. ``4000``, ``"4000"`` and ``":4000"`` mean
    port 4000 of ``default_host``.
    """
    if isinstance(text, tuple) and len(text) >= 2:
        host, port = str(text[0]), str(text[1])
    elif isinstance(text, int) and not isinstance(text, bool):
        host, port = "", str(text)
    elif isinstance(text, str):
        host, colon, port = text.strip().rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host or host.startswith("[") or (colon and not port):
            raise LinkError(f"{text!r} is not an address; {_ADVICE}")
    else:
        raise LinkError(f"{text!r} is not an address; {_ADVICE}")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LARGEST_PORT):
        raise LinkError(f"{text!r} is not an address: {port!r} is not a port from 0 to {_LARGEST_PORT}; {_ADVICE}")
    return host or default_host, int(port)


def normal(address: Address) -> Address:
    """Return the normalized form of an address from a socket.

    An IPv4-mapped IPv6 address becomes an IPv4 address. From an IPv6 address, the zone name and the flow label are
    removed.
    """
    if len(address) == 2:
        return address
    host, port, _, scope = address
    if host.startswith(_IPV4_MAPPED) and "." in host:
        return host[len(_IPV4_MAPPED) :], port
    return host.partition("%")[0], port, 0, scope


def for_socket(address: Address, family: int) -> Address:
    """Return a normalized address in the form that a socket of an address family takes.

    For an IPv6 socket, an IPv4 address becomes an IPv4-mapped IPv6 address.
    """
    if family == socket.AF_INET6 and len(address) == 2:
        return _IPV4_MAPPED + address[0], address[1], 0, 0
    return address


def with_port(address: Address, port: int) -> Address:
    """Return an address with the same host and another port."""
    return (address[0], port, *address[2:])


def as_text(address: Address) -> str:
    """Return an address as a text: ``127.0.0.1:4000``, ``[::1]:4000``, ``[fe80::1%eth0]:4000``."""
    host, port = address[:2]
    if len(address) == 2:
        return f"{host}:{port}"
    scope = f"%{_interface_name(address[3])}" if address[3] else ""
    return f"[{host}{scope}]:{port}"


def is_loopback(address: Address) -> bool:
    """Return whether an address is a loopback address, which only this machine can use."""
    return ipaddress.ip_address(address[0].partition("%")[0]).is_loopback


def is_of_this_machine(address: Address) -> bool:
    """Return whether an address is one of this machine's own addresses."""
    # Datagrams to an address of the same machine have that address as their source.
    source_address = source_towards(address)
    return source_address is not None and source_address[0] == address[0]


def source_towards(address: Address) -> Address | None:
    """Return the source address, with an arbitrary port, of datagrams sent to ``address``; None without a route."""
    with socket.socket(socket.AF_INET if len(address) == 2 else socket.AF_INET6, socket.SOCK_DGRAM) as probe_socket:
        try:
            probe_socket.connect(address)  # A datagram socket sends nothing when it connects.
        except OSError:
            return None
        return normal(probe_socket.getsockname())


async def look_up(text: str | int | Address, default_host: str, family: int, passive: bool = False) -> Address:
    """Look up the host of an address, and return its IP address and port in normalized form.

    ``text``, ``default_host``: see `split`; ``family``: address family, such as AF_INET. ``passive``: whether the
    address is for binding a socket. Raises LinkError if the host cannot be found, or if a socket of ``family`` cannot
    use the address.
    """
    host, port = split(text, default_host)
    flags = socket.AI_PASSIVE if passive else 0
    try:
        # The event loop's look-up runs in a thread, which the usual numeric host does not need.
        address_infos = socket.getaddrinfo(
            host, port, family, socket.SOCK_DGRAM, flags=flags | socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except (socket.gaierror, UnicodeError):
        address_infos = await _look_up_name(text, host, port, family, flags)
    return normal(address_infos[0][4])


async def _look_up_name(text: Any, host: str, port: int, family: int, flags: int) -> list[Any]:
    loop = asyncio.get_running_loop()
    try:
        return await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM, flags=flags)
    except (socket.gaierror, UnicodeError) as error:
        if family == socket.AF_INET and ":" in host:
            raise LinkError(
                f"{text!r} is an IPv6 address, but the node listens on IPv4; let it listen on [::]:0"
            ) from None
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LinkError(
            f"the host in {text!r} cannot be found ({reason}); name a host that this machine knows"
        ) from None


def _interface_name(scope: int) -> str:
    try:
        return socket.if_indextoname(scope)
    except OSError:
        return str(scope)

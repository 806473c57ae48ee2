"""Addresses of DPS nodes over UDP: their text, their look-up, and one form for each, whichever way it was written.

Theory of operation
    A node is known by its IP address and the port that it listens on. Here that is what Python's sockets take and
    give: ``(host, port)`` of IPv4, ``(host, port, 0, scope)`` of IPv6. An IPv4 address that a socket of IPv6 gives as
    ``::ffff:127.0.0.1`` is the IPv4 address, so one neighbor has one address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any

from workbench.errors import LinkError

Address = tuple[Any, ...]

ANY_PORT = 0
_MAPPED = "::ffff:"
_LARGEST_PORT = 0xFFFF
_ADVICE = "an address is host:port, as in 127.0.0.1:4000 or [::1]:4000, or a port alone"


def split(text: str | int | Address, default_host: str) -> tuple[str, int]:
    """(host, port) of an address as it is written; LinkError if it is none.

    ``4000``, ``"4000"`` and ``":4000"`` are that port of ``default_host``, ``("127.0.0.1", 4000)`` is what it says.
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
            raise LinkError(f"{text!r} is no address; {_ADVICE}")
    else:
        raise LinkError(f"{text!r} is no address; {_ADVICE}")
    if not (port.isascii() and port.isdecimal() and int(port) <= _LARGEST_PORT):
        raise LinkError(f"{text!r} is no address, for {port!r} is no port from 0 to {_LARGEST_PORT}; {_ADVICE}")
    return host or default_host, int(port)


def normal(address: Address) -> Address:
    """The one form of an address that a socket gave."""
    if len(address) == 2:
        return address
    host, port, _, scope = address
    if host.startswith(_MAPPED) and "." in host:
        return host[len(_MAPPED) :], port
    return host.partition("%")[0], port, 0, scope


def for_socket(address: Address, family: int) -> Address:
    """The address as a socket of a family takes it: one of IPv6 takes IPv4 addresses mapped."""
    if family == socket.AF_INET6 and len(address) == 2:
        return _MAPPED + address[0], address[1], 0, 0
    return address


def with_port(address: Address, port: int) -> Address:
    """The same host and another port."""
    return (address[0], port, *address[2:])


def as_text(address: Address) -> str:
    """``127.0.0.1:4000``, ``[::1]:4000``, ``[fe80::1%eth0]:4000``."""
    host, port = address[:2]
    if len(address) == 2:
        return f"{host}:{port}"
    scope = f"%{_interface(address[3])}" if address[3] else ""
    return f"[{host}{scope}]:{port}"


def is_loopback(address: Address) -> bool:
    """Whether nobody else than this machine can use it."""
    return ipaddress.ip_address(address[0].partition("%")[0]).is_loopback


def is_of_this_machine(address: Address) -> bool:
    """Whether an address is one of this machine's own: then it is also the one to reach it from."""
    source = source_towards(address)
    return source is not None and source[0] == address[0]


def source_towards(address: Address) -> Address | None:
    """The address of this machine that datagrams to another one are sent from, and some port; None without a way."""
    with socket.socket(socket.AF_INET if len(address) == 2 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(address)  # Of a datagram socket: nothing is sent.
        except OSError:
            return None
        return normal(probe.getsockname())


async def look_up(text: str | int | Address, default_host: str, family: int, passive: bool = False) -> Address:
    """The address in its one form, names looked up; LinkError if there is none that a socket of ``family`` can use.

    ``passive``: it is to be bound to.
    """
    host, port = split(text, default_host)
    flags = socket.AI_PASSIVE if passive else 0
    try:
        # The loop's look-up is a thread's. A numeric host needs none, and most are.
        candidates = socket.getaddrinfo(
            host, port, family, socket.SOCK_DGRAM, flags=flags | socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        )
    except (socket.gaierror, UnicodeError):
        candidates = await _by_name(text, host, port, family, flags)
    return normal(candidates[0][4])


async def _by_name(text: Any, host: str, port: int, family: int, flags: int) -> list[Any]:
    loop = asyncio.get_running_loop()
    try:
        return await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_DGRAM, flags=flags)
    except (socket.gaierror, UnicodeError) as error:
        if family == socket.AF_INET and ":" in host:
            raise LinkError(
                f"{text!r} is an address of IPv6 and the node listens on IPv4; let it listen on [::]:0"
            ) from None
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LinkError(f"there is no address for {text!r} ({reason}); name a host that this machine knows") from None


def _interface(scope: int) -> str:
    try:
        return socket.if_indextoname(scope)
    except OSError:
        return str(scope)

"""The socket of a DPS node: datagrams in and out, without ever blocking, and with bounds.

Theory of operation
    Watched by the event loop itself: a datagram costs one callback and one system call, where asyncio's transport adds
    a layer. What the kernel's send buffer has no room for waits here, at most ``MOST_UNSENT`` datagrams with
    ``MOST_UNSENT_B`` bytes together, and is sent in order when there is room; publishers wait for that (`drained`). At
    most ``BURST`` datagrams are read before timers and tasks have their turn.

    Nothing that the network does is an exception: what could not be sent or read is counted in ``errors``.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter, deque
from collections.abc import Callable

from workbench.errors import LinkError
from workbench.protocols.dps.udp import addresses
from workbench.protocols.dps.udp.addresses import Address

MOST_UNSENT, MOST_UNSENT_B = 1000, 1 << 24
LARGEST_READ_B = 65_536  # above what UDP can carry: nothing is cut short
BURST = 64
_RECEIVE_BUFFER_B = 1 << 20  # the kernel gives what it allows
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_REASONS = {errno.EMSGSIZE: "too_long", errno.ECONNREFUSED: "refused"}


class DatagramSocket:
    """A socket bound to an address; LinkError if that cannot be had.

    ``take(datagram, source)`` is called with each datagram. ``address``: where it is bound, in its one form.
    """

    def __init__(self, address: Address, family: int, take: Callable[[bytes, Address], None]) -> None:
        self.sent = 0
        self.received = 0
        self.errors: Counter[str] = Counter()
        self._family = family
        self._take = take
        self._unsent: deque[tuple[Address, bytes]] = deque()
        self._unsent_B = 0
        self._room: asyncio.Event | None = None
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        self._socket = _bound(address, family)
        self.address = addresses.normal(self._socket.getsockname())
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Close it; what was not sent yet is not."""
        self._is_open = False
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._unsent.clear()
        self._make_room()

    def _read(self) -> None:
        for _ in range(BURST):
            try:
                datagram, source = self._socket.recvfrom(LARGEST_READ_B)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # What became of a datagram that was sent: ICMP's word for it.
                self.errors["refused"] += 1
                continue
            self.received += 1
            self._take(datagram, source)
            if not self._is_open:
                return

    def send(self, neighbor: Address, frame: bytes) -> OSError | None:
        """Send a frame, now or when there is room; the error if it cannot be."""
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
            self.errors[_REASONS.get(error.errno or 0, "unreachable")] += 1
            return error
        self.sent += 1
        return None

    def _put_off(self, neighbor: Address, frame: bytes) -> None:
        if len(self._unsent) >= MOST_UNSENT or self._unsent_B + len(frame) > MOST_UNSENT_B:
            self.errors["unsent"] += 1
            return
        if not self._unsent:
            self._loop.add_writer(self._socket, self._send_rest)
        self._unsent.append((neighbor, frame))
        self._unsent_B += len(frame)
        if self._room is None:
            self._room = asyncio.Event()

    def _send_rest(self) -> None:
        rest, self._unsent = self._unsent, deque()
        self._loop.remove_writer(self._socket)
        while rest and not self._unsent:
            self._send_now(*rest.popleft())
        self._unsent.extend(rest)
        self._unsent_B = sum(len(frame) for _, frame in self._unsent)
        if not self._unsent:
            self._make_room()

    def _make_room(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.set()

    async def drained(self) -> None:
        """Wait until nothing is unsent."""
        while self._room is not None:
            await self._room.wait()


def _bound(address: Address, family: int) -> socket.socket:
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

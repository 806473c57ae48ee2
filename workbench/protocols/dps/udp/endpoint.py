"""The UDP socket of a DPS node: sends and receives datagrams without blocking, with bounded memory.

Theory of operation
    The event loop watches the socket directly, so a datagram costs one callback and one system call, without the extra
    layer of an asyncio transport. A datagram that does not fit in the kernel's send buffer waits in a queue of at most
    ``MOST_UNSENT`` datagrams and ``MOST_UNSENT_B`` bytes, and is sent later in order. Publishers wait until that queue
    is empty (`drained`). At most ``BURST`` datagrams are read before timers and other tasks run.

    Network failures do not raise exceptions: ``errors`` counts failed sends and reads by reason.
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
LARGEST_READ_B = 65_536  # more than a UDP datagram can hold, so no datagram is truncated
BURST = 64
_RECEIVE_BUFFER_B = 1 << 20  # requested; the kernel may grant less
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_REASONS = {errno.EMSGSIZE: "too_long", errno.ECONNREFUSED: "refused"}


class DatagramSocket:
    """A UDP socket that is bound to an address and calls ``receive(datagram, source)`` for each received datagram.

    The attribute ``address`` is the bound address in normalized form; ``errors`` counts failures by reason. The
    constructor raises LinkError if the address cannot be bound.
    """

    def __init__(self, address: Address, family: int, receive: Callable[[bytes, Address], None]) -> None:
        self.sent = 0
        self.received = 0
        self.errors: Counter[str] = Counter()
        self._family = family
        self._receive = receive
        self._unsent: deque[tuple[Address, bytes]] = deque()
        self._unsent_B = 0
        self._queue_empty: asyncio.Event | None = None
        self._is_open = True
        self._loop = asyncio.get_running_loop()
        self._socket = _bind_socket(address, family)
        self.address = addresses.normal(self._socket.getsockname())
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Close the socket and discard unsent datagrams."""
        self._is_open = False
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._unsent.clear()
        self._notify_queue_empty()

    def _read(self) -> None:
        for _ in range(BURST):
            try:
                datagram, source = self._socket.recvfrom(LARGEST_READ_B)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # ICMP reports that an earlier datagram was not delivered.
                self.errors["refused"] += 1
                continue
            self.received += 1
            self._receive(datagram, source)
            if not self._is_open:
                return

    def send(self, neighbor: Address, frame: bytes) -> OSError | None:
        """Send a frame; queue it if the send buffer is full. Return the OSError if sending fails, otherwise None."""
        if self._unsent:
            self._enqueue(neighbor, frame)
            return None
        return self._send_now(neighbor, frame)

    def _send_now(self, neighbor: Address, frame: bytes) -> OSError | None:
        try:
            self._socket.sendto(frame, addresses.for_socket(neighbor, self._family))
        except OSError as error:
            if error.errno in _FULL:
                self._enqueue(neighbor, frame)
                return None
            self.errors[_REASONS.get(error.errno or 0, "unreachable")] += 1
            return error
        self.sent += 1
        return None

    def _enqueue(self, neighbor: Address, frame: bytes) -> None:
        if len(self._unsent) >= MOST_UNSENT or self._unsent_B + len(frame) > MOST_UNSENT_B:
            self.errors["unsent"] += 1
            return
        if not self._unsent:
            self._loop.add_writer(self._socket, self._send_queue)
        self._unsent.append((neighbor, frame))
        self._unsent_B += len(frame)
        if self._queue_empty is None:
            self._queue_empty = asyncio.Event()

    def _send_queue(self) -> None:
        unsent_datagrams, self._unsent = self._unsent, deque()
        self._loop.remove_writer(self._socket)
        while unsent_datagrams and not self._unsent:
            self._send_now(*unsent_datagrams.popleft())
        self._unsent.extend(unsent_datagrams)
        self._unsent_B = sum(len(unsent_frame) for _, unsent_frame in self._unsent)
        if not self._unsent:
            self._notify_queue_empty()

    def _notify_queue_empty(self) -> None:
        empty_event, self._queue_empty = self._queue_empty, None
        if empty_event is not None:
            empty_event.set()

    async def drained(self) -> None:
        """Wait until the queue of unsent datagrams is empty, or the socket is closed."""
        while self._queue_empty is not None:
            await self._queue_empty.wait()


def _bind_socket(address: Address, family: int) -> socket.socket:
    udp_socket = socket.socket(family, socket.SOCK_DGRAM)
    try:
        udp_socket.setblocking(False)
        udp_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_B)
        if family == socket.AF_INET6:
            udp_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        udp_socket.bind(addresses.for_socket(address, family))
    except OSError as error:
        udp_socket.close()
        if error.errno == errno.EADDRINUSE:
            advice = "listen on another port, or on port 0 for any free port"
        else:
            advice = "listen on an address of this machine"
        raise LinkError(f"cannot listen on {addresses.as_text(address)}: {error.strerror}; {advice}") from None
    return udp_socket

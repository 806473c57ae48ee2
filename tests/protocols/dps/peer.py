"""Helpers for tests of DPS on sockets: a time limit, and a neighbor that is a plain socket."""

import asyncio
import socket

from workbench.protocols.dps import wire

WITHIN_S = 60  # long enough for a busy machine


def run(test):
    """Run a coroutine with a time limit."""

    async def bounded():
        async with asyncio.timeout(WITHIN_S):
            return await test

    return asyncio.run(bounded())


async def until(is_so):
    """Wait until `is_so()` is true; the time limit is that of `run`."""
    while not is_so():
        await asyncio.sleep(0.005)


class Peer:
    """A neighbor that is a socket on the loopback interface: tests send its messages and read those it receives."""

    def __init__(self, family=socket.AF_INET):
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(("127.0.0.1", 0) if family == socket.AF_INET else ("::1", 0))
        self.address = self.socket.getsockname()
        self.port = self.address[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, message, node):
        """Send a message, or bytes, to a node."""
        frame = message if isinstance(message, bytes) else wire.encode(message)
        self.socket.sendto(frame, node.address)

    async def receive(self):
        """Return the next received message."""
        return wire.decode(await self.receive_frame())

    async def receive_frame(self):
        """Return the bytes of the next datagram."""
        return await asyncio.get_running_loop().sock_recv(self.socket, 65_536)

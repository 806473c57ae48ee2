"""A fake of the module socket: sockets of this machine whose datagrams are lost, duplicated or refused.

Without a connection to the access point, `sendto` raises an error and nothing is received.

Faults
    send_refused    from this `sendto` on, it raises ENOMEM
    udp_silent      from this received datagram on, nothing is received
    A restart of the Wi-Fi hardware ends both.
"""

import fake
import network
import usocket
from usocket import AF_INET, SO_BROADCAST, SO_REUSEADDR, SOCK_DGRAM, SOL_SOCKET, getaddrinfo  # noqa: F401

ENOMEM, EHOSTUNREACH, EAGAIN = 12, 113, 11


class socket:
    """A socket for datagrams."""

    def __init__(self, family, kind):
        self._socket = usocket.socket(family, kind)
        self._again = []  # datagrams that are received twice

    def __getattr__(self, name):
        return getattr(self._socket, name)

    def sendto(self, data, address):
        """Send a datagram."""
        if not network.WLAN(0).isconnected():
            raise OSError(EHOSTUNREACH)
        if fake.occurs("send_refused"):
            raise OSError(ENOMEM)
        return self._socket.sendto(data, address)

    def recvfrom(self, size):
        """Return the next datagram and its sender; raise EAGAIN if none has arrived."""
        if self._again:
            return self._again.pop()
        while True:
            received = self._socket.recvfrom(size)
            count = fake.copies()
            if count and network.WLAN(0).isconnected() and not fake.occurs("udp_silent"):
                self._again = [received] * (count - 1)
                return received

"""A stub of the module socket: UDP sockets that receive the datagrams of the inbox."""

from inbox import datagrams

AF_INET, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, SO_REUSEADDR = 2, 2, 1, 1, 2


def getaddrinfo(host, port):
    """Return a list with one address, as MicroPython does."""
    return [(AF_INET, SOCK_DGRAM, 0, "", bytes(8))]


class socket:
    """A UDP socket."""

    def __init__(self, family, kind):
        pass

    def setsockopt(self, level, option, value):
        """Do nothing."""

    def bind(self, address):
        """Do nothing."""

    def setblocking(self, is_blocking):
        """Do nothing."""

    def sendto(self, data, address):
        """Return the number of bytes in ``data``, as if all were sent."""
        return len(data)

    def recvfrom(self, size):
        """Return (datagram, address), or raise OSError if nothing has arrived."""
        if not datagrams:
            raise OSError(11)
        return datagrams.pop(0), None

    def close(self):
        """Do nothing."""

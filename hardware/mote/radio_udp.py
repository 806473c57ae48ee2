"""A radio made of UDP broadcasts: motes with WiFi, or processes on one machine, that share a port.

Datagram (little-endian)
    magic "WR", run u32, sender u32, destination i32 (-1: everybody), then the frame

    Each run has its own number and port. Motes of two runs may share a network and, by chance, a port. Datagrams with
    another run's number are counted (``foreign``) and dropped.

    Every datagram goes to the broadcast address, as a radio's frame reaches all nodes in range. Datagrams to other
    nodes are dropped.
    A broadcast waits for a random time first, so that neighbors that heard the same frame do not answer at once.
    Datagrams are not acknowledged, so this radio reports no outcomes of unicast frames.

Settings (of the configuration's ``radio``)
    to           destination address; 127.255.255.255 (default) stays on this machine, 255.255.255.255 is the network
    run          number of the run, default 0; the host gives each run another number
    port         UDP port, default 47700; the host gives each run another port
    jitter_ms    longest random delay of a broadcast, default 5
    neighbors    nodes in range; frames of others are dropped; default: all nodes
"""

import socket
import struct

from workbench.protocols.contract import NOBODY

_HEADER = "<2sIIi"
_HEADER_B = 14
_MAGIC = b"WR"
_LONGEST = 1500


class UdpRadio:
    """A radio that sends frames as datagrams; ``random`` is a `draws.Stream` for the delays."""

    is_serial = False

    def __init__(self, address, settings, random):
        self.address = address
        self.next_us = None
        self.foreign = 0  # datagrams of other runs
        self._random = random
        self._run = settings.get("run", 0)
        self._jitter_us = int(1000 * settings.get("jitter_ms", 5))
        self._neighbors = settings.get("neighbors")
        self._waiting = []
        port = settings.get("port", 47700)
        to = settings.get("to", "127.255.255.255")
        self._to = socket.getaddrinfo(to, port)[0][-1]
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_BROADCAST", 0x20), 1)
        # A socket that is bound to one address does not get broadcasts. Bound to the broadcast address itself, it
        # gets those alone, and loopback's only from this machine.
        self._socket.bind(socket.getaddrinfo(to if to.startswith("127.") else "0.0.0.0", port)[0][-1])
        self._socket.setblocking(False)

    def fileno(self):
        """Return the socket, for boards that wait on sockets."""
        return self._socket

    def send(self, destination, frame, now):
        """Send a frame, a broadcast after a random delay."""
        delay_us = self._random.below(self._jitter_us + 1) if destination is None else 0
        head = struct.pack(_HEADER, _MAGIC, self._run, self.address, NOBODY if destination is None else destination)
        self._waiting.append((now + delay_us, head + frame))
        self._send_due(now)

    def poll(self, now):
        """Send the frames that are due; return [(frame, previous hop, broadcast), ...] received since the last call."""
        self._send_due(now)
        heard = []
        while True:
            try:
                datagram = self._socket.recvfrom(_LONGEST)[0]
            except OSError:
                return heard
            if len(datagram) < _HEADER_B or datagram[:2] != _MAGIC:
                continue
            _, run, sender, destination = struct.unpack_from(_HEADER, datagram, 0)
            if run != self._run:
                self.foreign += 1
                continue
            if sender == self.address or destination not in (NOBODY, self.address):
                continue
            if self._neighbors is None or sender in self._neighbors:
                heard.append((datagram[_HEADER_B:], sender, destination == NOBODY))

    def close(self):
        """Close the socket."""
        self._socket.close()

    def _send_due(self, now):
        waiting = []
        for due, datagram in self._waiting:
            if due > now:
                waiting.append((due, datagram))
                continue
            try:
                self._socket.sendto(datagram, self._to)
            except OSError:
                pass  # Without a network the frame is lost, as if no node were in range.
        self._waiting = waiting
        self.next_us = min([due for due, _ in waiting]) if waiting else None

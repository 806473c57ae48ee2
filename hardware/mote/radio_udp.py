"""A radio made of UDP broadcasts: motes with Wi-Fi, or processes on one machine, that share a port.

Every datagram goes to the broadcast address, as a radio's frame reaches all nodes in range. datagrams.py has the layout
of a datagram, the repetitions and the counts of faults. Datagrams are not acknowledged, so this radio reports no
outcomes of unicast frames. It measures no RSSI: an IP stack does not report the RSSI of a datagram.

Settings (of the configuration's ``radio``), in addition to those of datagrams.py
    to           destination address; 127.255.255.255 (default) stays on this machine, 255.255.255.255 is the network
    port         UDP port, default 47700; the host gives each run another port
"""

import socket

from datagrams import DatagramRadio


class UdpRadio(DatagramRadio):
    """A radio that sends frames as UDP broadcasts; ``network`` is the board's `Wifi`, or None on a process."""

    def __init__(self, address, settings, random, network=None):
        DatagramRadio.__init__(self, address, settings, random)
        if network is None and "quiet_s" not in settings:
            self._quiet_us = 0  # A process has no radio that can fall silent.
        self._network = network
        self._socket = None
        self._port = settings.get("port", 47700)
        self._target = settings.get("to", "127.255.255.255")
        self._to = socket.getaddrinfo(self._target, self._port)[0][-1]
        self._open_socket()

    def _open_socket(self):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_BROADCAST", 0x20), 1)
        # A socket that is bound to one address does not get broadcasts. Bound to the broadcast address itself, it
        # gets those alone, and loopback's only from this machine.
        own = self._target if self._target.startswith("127.") else "0.0.0.0"
        self._socket.bind(socket.getaddrinfo(own, self._port)[0][-1])
        self._socket.setblocking(False)

    def fileno(self):
        """Return the socket, for boards that wait on sockets."""
        return self._socket

    def poll(self, now):
        """Check the Wi-Fi connection, then send and receive as `DatagramRadio.poll` does."""
        if self._network is not None:
            fault = self._network.check(now)
            if fault is not None:
                self.count(fault)
            if not self._network.is_connected:
                self._received_us = now  # A restart would end the attempt to connect.
        return DatagramRadio.poll(self, now)

    def transmit(self, destination, datagram):
        """Send a datagram to the broadcast address; raise OSError if the network does not accept it.

        Without a connection to the access point the frame is lost, as if no node were in range.
        """
        if self._network is not None and not self._network.is_connected:
            self.count("lost")
            return
        self._socket.sendto(datagram, self._to)

    def receive(self):
        """Return (datagram, 0), or None if no datagram has arrived. RSSI is not measured."""
        try:
            return self._socket.recvfrom(self.longest_B)[0], 0
        except OSError:
            return None

    def restart(self):
        """Restart the Wi-Fi connection, if the board has one, and open a new socket."""
        self._socket.close()
        try:
            if self._network is not None:
                self._network.restart()
        finally:
            self._open_socket()

    def close(self):
        """Close the socket."""
        self._socket.close()

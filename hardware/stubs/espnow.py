"""A stub of the module espnow. Its receive buffer is in the heap, as on an ESP32."""

from inbox import datagrams

MAX_TOTAL_PEER_NUM = 20


class ESPNow:
    """ESP-NOW whose received frames are the datagrams in the inbox; each unicast counts as acknowledged."""

    def __init__(self):
        self.peers_table = {}
        self._counts = [0, 0, 0, 0, 0]
        self._rxbuf = 526
        self._buffer = None
        self._received = [None, bytearray(250)]

    def config(self, rxbuf):
        """Set the size of the receive buffer to ``rxbuf`` bytes."""
        self._rxbuf = rxbuf

    def active(self, is_active):
        """Reserve the receive buffer if ``is_active`` is true, else release it."""
        self._buffer = bytearray(self._rxbuf) if is_active else None

    def add_peer(self, mac):
        """Do nothing: frames can be sent to any peer."""

    def del_peer(self, mac):
        """Do nothing."""

    def send(self, mac, data, is_sync=True):
        """Return True: the frame was acknowledged."""
        return True

    def irecv(self, timeout_ms=0):
        """Return [MAC address, data] of the next datagram, or (None, None); the next call overwrites the buffers."""
        if not datagrams:
            return None, None
        data = datagrams.pop(0)
        mac = b"\x02\x00" + data[6:10]  # the sender in the datagram's header
        self.peers_table[mac] = [-40, 0]
        self._counts[3] += 1
        self._received[0] = mac
        self._received[1][:] = data
        return self._received

    def stats(self):
        """Return the numbers of frames (sent, answered, failed, received, dropped)."""
        return tuple(self._counts)

"""A fake of the module espnow: its frames are UDP datagrams on loopback. See fake.py for its configuration.

A datagram has the sender's MAC address, the receiver's, the channel, 0 for data or 1 for an acknowledgement, then data.

Faults
    irecv_silent    from this received frame on, `irecv` returns nothing and `stats` counts nothing
    irecv_stuck     from this received frame on, `irecv` returns nothing although `stats` counts
    no_mem          from this broadcast on, `send` raises NO_MEM
    no_mem_once     this broadcast raises NO_MEM, the next does not
    memory_error    `irecv` raises MemoryError once, and the frame is lost
    buffer_error    `irecv` raises ValueError once
    A restart of the Wi-Fi hardware ends the first three.
"""

import time

import fake
import network

MAX_DATA_LEN = 250
MAX_TOTAL_PEER_NUM = 20
BROADCAST = b"\xff" * 6
ACK_MS = 150
HEADER_B = 14


class ESPNow:
    """The fake; like the original, all objects are one."""

    peers_table = {}
    _state = {"is_active": False, "rxbuf": 526, "queue": [], "peers": [], "acks": []}
    _counts = [0, 0, 0, 0, 0]
    _medium = []

    def config(self, rxbuf=None):
        """Set the size of the receive buffer."""
        if rxbuf is not None:
            self._state["rxbuf"] = rxbuf

    def active(self, is_active):
        """Switch ESP-NOW on or off; off removes all peers."""
        if is_active and not network.WLAN(network.STA_IF).active():
            raise OSError(-12389, "ESP_ERR_ESPNOW_IF")
        self._state["is_active"] = is_active
        self._state["queue"] = []
        self._state["peers"] = []
        if is_active and not self._medium:
            self._medium.append(fake.open_medium())

    def add_peer(self, mac):
        """Register a peer."""
        self._require_active()
        if mac in self._state["peers"]:
            raise OSError(-12395, "ESP_ERR_ESPNOW_EXIST")
        if len(self._state["peers"]) >= MAX_TOTAL_PEER_NUM:
            raise OSError(-12392, "ESP_ERR_ESPNOW_FULL")
        self._state["peers"].append(mac)

    def del_peer(self, mac):
        """Remove a peer."""
        if mac not in self._state["peers"]:
            raise OSError(-12393, "ESP_ERR_ESPNOW_NOT_FOUND")
        self._state["peers"].remove(mac)

    def send(self, mac, data, is_sync=True):
        """Send a frame to a registered peer; return False if ``is_sync`` and the peer did not acknowledge it."""
        self._require_active()
        if mac not in self._state["peers"]:
            raise OSError(-12393, "ESP_ERR_ESPNOW_NOT_FOUND")
        if not 1 <= len(data) <= MAX_DATA_LEN:
            raise OSError(-12390, "ESP_ERR_ESPNOW_ARG")
        if mac == BROADCAST and (fake.occurs_once("no_mem_once") or fake.occurs("no_mem")):
            raise OSError(-12391, "ESP_ERR_ESPNOW_NO_MEM")
        self._counts[0] += 1
        self._state["acks"] = []
        self._transmit(mac, 0, data)
        if mac == BROADCAST or not is_sync:
            self._counts[1] += 1
            return True
        end = time.ticks_add(time.ticks_ms(), ACK_MS)
        while mac not in self._state["acks"]:
            if time.ticks_diff(end, time.ticks_ms()) <= 0:
                self._counts[2] += 1
                return False
            time.sleep_ms(1)
            self._pump()
        self._counts[1] += 1
        return True

    def irecv(self, timeout_ms=0):
        """Return [MAC address, data] of the next frame, in buffers that the next call overwrites, or (None, None)."""
        self._require_active()
        self._pump()
        if not self._state["queue"] or "irecv_stuck" in self._begun():
            return None, None
        sender, data, rssi = self._state["queue"].pop(0)
        if fake.occurs_once("memory_error"):
            raise MemoryError("memory allocation failed")
        if fake.occurs_once("buffer_error"):
            raise ValueError("ESPNow.recv(): buffer error")
        self.peers_table[sender] = [rssi, time.ticks_ms()]
        _buffer[:] = data
        return [sender, _buffer]

    def stats(self):
        """Return (sent, answered, failed, received, dropped) frames."""
        self._pump()
        return tuple(self._counts)

    def _begun(self):
        return [name for name in ("irecv_stuck",) if fake.FAULTS.get(name, 1 << 30) <= self._counts[3]]

    def _require_active(self):
        if not self._state["is_active"] or not network.WLAN(network.STA_IF).active():
            raise OSError(-12389, "ESP_ERR_ESPNOW_NOT_INIT")

    def _transmit(self, mac, kind, data):
        channel = network.WLAN(network.STA_IF).config("channel")
        self._medium[0].sendto(fake.MAC + mac + bytes((channel, kind)) + data, fake.medium_address())

    def _pump(self):
        """Process the datagrams that have arrived, as the hardware does between calls."""
        while self._medium:
            try:
                datagram = self._medium[0].recvfrom(400)[0]
            except OSError:
                return
            sender, receiver, channel, kind = datagram[:6], datagram[6:12], datagram[12], datagram[13]
            if sender == fake.MAC or receiver not in (BROADCAST, fake.MAC):
                continue
            if not self._state["is_active"] or channel != network.WLAN(network.STA_IF).config("channel"):
                continue
            if kind:
                self._state["acks"].append(sender)
                continue
            for _ in range(fake.copies()):
                self._queue(sender, receiver, datagram[HEADER_B:])

    def _queue(self, sender, receiver, data):
        if receiver == fake.MAC:
            self._transmit(sender, 1, b"")
        if fake.occurs("irecv_silent"):
            return
        fake.occurs("irecv_stuck")
        size = sum(len(waiting[1]) + 20 for waiting in self._state["queue"])
        if size + len(data) + 20 > self._state["rxbuf"]:
            self._counts[4] += 1
            return
        self._counts[3] += 1
        self._state["queue"].append((sender, data, -40 - (sender[5] + fake.MAC[5]) % 50))


_buffer = bytearray(MAX_DATA_LEN)

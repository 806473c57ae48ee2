"""A radio by ESP-NOW, the connectionless protocol of the ESP32's Wi-Fi hardware, without an access point.

A broadcast goes to the broadcast peer. A unicast goes to the MAC address from which frames of that node have come, and
is acknowledged and repeated by the hardware, so this radio reports outcomes. To a node that was never heard, a unicast
goes as a broadcast that other nodes drop. A peer must be registered before a unicast. The hardware registers few, so
the peer that was not used for the longest time is removed. RSSI comes from ESP-NOW's ``peers_table``.

Known faults, and what this radio does; datagrams.py counts each one
    * `irecv` stops returning frames without an error when memory is fragmented (micropython issue 18224). If ESP-NOW
      counts received frames that `irecv` did not return ("stuck"), or after ``quiet_s`` without a frame ("silent"), the
      Wi-Fi hardware is restarted.
    * After many broadcasts, `send` raises NO_MEM until the Wi-Fi hardware is restarted (esp-idf issue 18682). The frame
      is sent again with growing delays. After several refusals the hardware is restarted ("restarts").
    * The receive buffer overflows ("overrun"), loses its structure ("damaged", then a restart), or a frame finds no
      memory ("no_heap").

    These remedies were tried against fakes of these faults only. Nothing in this file was tried on hardware.

Limits
    A datagram has at most 250 bytes, so a frame at most 236. All boards must use the same channel.

Settings (of the configuration's ``radio``), in addition to those of datagrams.py
    rxbuf        bytes of the receive buffer, default 4096: about 15 of the longest frames

This file runs under MicroPython.
"""

import espnow
import network
from datagrams import DatagramRadio

BROADCAST = b"\xff\xff\xff\xff\xff\xff"
STUCK_US = 2000000
MOST_KNOWN = 64  # nodes whose MAC addresses are remembered


class EspNowRadio(DatagramRadio):
    """A radio by ESP-NOW. ``channel`` is the Wi-Fi channel; ``wifi`` is the board's `Wifi` if it also uses UDP."""

    longest_B = 250

    def __init__(self, address, settings, random, channel=1, wifi=None):
        DatagramRadio.__init__(self, address, settings, random)
        self._channel = channel
        self._wifi = wifi
        self._rxbuf = settings.get("rxbuf", 4096)
        self._mac = None  # of the datagram that was received last
        self._macs = {}  # node -> MAC address
        self._peers = []  # registered MAC addresses, the least recently used first
        self._counted = 0  # received frames according to ESP-NOW, when the last one was returned
        self._dropped = 0
        self._checked_us = None
        self._esp = espnow.ESPNow()
        self._start_radio()

    def _start_radio(self):
        if self._wifi is None:
            station = network.WLAN(network.STA_IF)
            station.active(True)
            station.disconnect()  # else it changes channels in search of an access point
            station.config(channel=self._channel)
            try:
                station.config(pm=0)  # In power save mode the hardware misses broadcasts.
            except (OSError, ValueError):
                pass  # firmware before 1.21
        self._esp.config(rxbuf=self._rxbuf)
        self._esp.active(True)
        self._peers = []
        self._add_peer(BROADCAST)
        counts = self._esp.stats()
        self._counted, self._dropped = counts[3], counts[4]

    def meet(self, sender):
        """Store the MAC address of the last received datagram as that of the node ``sender``."""
        if sender in self._macs or len(self._macs) < MOST_KNOWN:
            self._macs[sender] = self._mac

    def transmit(self, destination, datagram):
        """Send a datagram. Return whether the destination's radio acknowledged it; None if it was sent as a broadcast.

        Raises OSError if the Wi-Fi hardware does not accept it.
        """
        mac = None if destination is None else self._macs.get(destination)
        if mac is None:
            self._esp.send(BROADCAST, datagram, False)
            return None
        self._register_peer(mac)
        try:
            return self._esp.send(mac, datagram, True)
        except OSError as error:
            if "NOT_FOUND" in str(error):
                self._peers.remove(mac)  # It is registered again for the next try.
            raise

    def _register_peer(self, mac):
        if mac in self._peers:
            self._peers.remove(mac)
        else:
            if len(self._peers) >= espnow.MAX_TOTAL_PEER_NUM - 1:  # one is the broadcast peer
                self._esp.del_peer(self._peers.pop(0))
            self._add_peer(mac)
        self._peers.append(mac)

    def _add_peer(self, mac):
        try:
            self._esp.add_peer(mac)
        except OSError as error:
            if "EXIST" not in str(error):
                raise

    def receive(self):
        """Return (datagram, RSSI in dBm), or None. Raises ValueError if the receive buffer lost its structure."""
        mac, data = self._esp.irecv(0)
        if mac is None:
            return None
        self._mac = bytes(mac)
        entry = self._esp.peers_table.get(self._mac)
        # irecv returns the same buffers each time, so the datagram is copied.
        return bytes(data), 0 if entry is None else entry[0]

    def poll(self, now):
        """Send and receive as `DatagramRadio.poll` does; restart the Wi-Fi hardware if received frames are stuck in it.

        Frames are stuck if ESP-NOW counts received frames but returns none.
        """
        before_us = self._received_us
        heard = DatagramRadio.poll(self, now)
        counts = self._esp.stats()
        if counts[4] > self._dropped:
            self.count("overrun", counts[4] - self._dropped)
            self._dropped = counts[4]
        if self._received_us != before_us or counts[3] == self._counted:
            self._counted = counts[3]
            self._checked_us = now
        elif now - (self._checked_us or now) > STUCK_US:
            self.count("stuck")
            self._restart_radio(now)
            self._checked_us = now
        return heard

    def restart(self):
        """Restart ESP-NOW and the Wi-Fi hardware, which is the only known remedy for NO_MEM."""
        self._esp.active(False)
        if self._wifi is None:
            network.WLAN(network.STA_IF).active(False)
        else:
            self._wifi.restart()
        self._start_radio()

    def close(self):
        """End ESP-NOW. The Wi-Fi hardware keeps running."""
        self._esp.active(False)

"""A radio whose node learns link qualities from beacons: the board's own radio, and `LinkEstimator` beside it.

A board's ``make_radio`` returns this radio if the settings of the configuration's ``radio`` have ``link_quality:
"learned"``; other motes do not load this file. The radio sends and receives beacons. It reports changed delivery ratios
to the node, and the beacons' frames to the host.

This file runs under MicroPython.
"""

from workbench.motes import messages as link
from workbench.protocols.contract import NOBODY
from workbench.protocols.link_estimator import LONGEST_INTERVAL_US, MARK, LinkEstimator, half_interval_us


class LearningRadio:
    """A board's radio that also sends and receives beacons.

    Its other attributes, such as ``foreign``, are the radio's.
    """

    is_serial = False

    def __init__(self, mote, radio, address):
        self._mote = mote
        self._radio = radio
        self._estimator = LinkEstimator(address)
        self._sent = 0  # beacons
        self._beacon_us = self._draw_next_beacon_us(mote.now())
        self.next_us = self._beacon_us

    def __getattr__(self, name):
        return getattr(self._radio, name)

    def send(self, destination, frame, now):
        """Send a frame of the node."""
        self._radio.send(destination, frame, now)

    def close(self):
        """Close the board's radio."""
        self._radio.close()

    def poll(self, now):
        """Send a beacon if one is due, process received beacons, and return all other frames that were received."""
        if self._beacon_us <= now:
            frame = self._estimator.make_beacon()
            self._report_beacon("sent", NOBODY, frame)
            self._radio.send(None, frame, now)
            self._sent += 1
            self._beacon_us = self._draw_next_beacon_us(now)
        frames = []
        for received in self._radio.poll(now):
            frame, neighbor = received[:2]
            if frame[:1] == bytes((MARK,)):  # No protocol's frame begins with this byte.
                self._receive_beacon(neighbor, frame, now, received[3] if len(received) > 3 else 0)
            else:
                frames.append(received)
        earlier = self._radio.next_us
        self.next_us = self._beacon_us if earlier is None else min(earlier, self._beacon_us)
        return frames

    def _draw_next_beacon_us(self, now):
        half_us = half_interval_us(self._sent, LONGEST_INTERVAL_US)
        return now + half_us + self._mote.random.below(half_us)

    def _receive_beacon(self, neighbor, frame, now, rssi):
        self._report_beacon("received", neighbor, frame, rssi)
        ratios = self._estimator.receive(neighbor, frame)
        if ratios is not None:
            self._mote.node.link_quality(neighbor, ratios[0], ratios[1], now)
            self._mote._forward_output()

    def _report_beacon(self, name, peer, frame, rssi=0):
        mote = self._mote
        origin = mote.node.address if peer == NOBODY else peer
        number = frame[1] | frame[2] << 8
        mote.write(link.encode_own_event(mote.now(), name, peer, "beacon", origin, number, len(frame), rssi, ""))

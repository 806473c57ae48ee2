"""The base class of radios that carry a node's frames as datagrams, `DatagramRadio`: of UDP, ESP-NOW and UART.

Datagram (little-endian)
    magic "WR", run u32, sender u32, destination i32 (-1: everybody), then the frame

    Each run has its own number. Motes of two runs may share a network. Datagrams with another run's number are dropped
    and counted (``foreign``). Datagrams to other nodes are dropped and not counted.

Sending
    A broadcast waits for a random time first, so that neighbors that received the same frame do not answer at the same
    time. A datagram that the radio refuses is sent again after RETRY_US, TRIES times in all. After REFUSALS refusals
    without a success the radio is restarted.

Receiving
    A radio that has received nothing for ``quiet_s`` after it had received something is restarted: some radios fall
    silent without an error.

Faults
    ``faults`` is {name of a fault: count}, with the names in FAULTS. The mote reports each change to its host, as the
    event "radio_fault". No fault ends the program.

Settings (of the configuration's ``radio``)
    run          number of the run, default 0; the host gives each run another number
    jitter_ms    longest random delay of a broadcast, default 5
    neighbors    nodes in range; frames of others are dropped; default: all nodes
    quiet_s      time without a datagram after which the radio is restarted, default 60; 0: never

This file runs under MicroPython.
"""

import gc
import struct

from workbench.protocols.contract import NOBODY

HEADER = "<2sIIi"
HEADER_B = 14
MAGIC = b"WR"
TRIES = 4
RETRY_US = 20000
REFUSALS = 8
MOST_WAITING = 32  # datagrams; more would fill the memory while the radio refuses them
MOST_RECEIVED = 16  # datagrams in one call of `poll`, so that a flood does not keep the mote from its other work

FAULTS = {
    "refused": "the radio refused a frame; it is sent again",
    "no_mem": "the radio has no memory to send a frame (NO_MEM); it is sent again",
    "lost": "a frame was given up: refused several times, too many waiting, or no connection",
    "too_long": "a frame is longer than the radio can send, and was dropped",
    "silent": "the radio received nothing for a long time and was restarted",
    "stuck": "the radio counts received frames but returns none, and was restarted",
    "restarts": "the radio was restarted",
    "restart_failed": "the radio could not be restarted; it is tried again",
    "overrun": "the radio's receive buffer was full, and it dropped frames",
    "no_heap": "the heap had no memory for a received frame",
    "damaged": "the radio returned a frame that is not whole",
    "no_network": "the board is not connected to the access point",
    "wrong_key": "the access point refuses the Wi-Fi key; provision the board with the right one",
    "no_access_point": "no access point has the name wifi.name of settings.json",
}


class DatagramRadio:
    """The base class of radios that carry frames as datagrams; ``random`` is a `draws.Stream` for the delays.

    A subclass has

    ``longest_B``               the largest size of a datagram in bytes
    ``transmit(destination, datagram)``  send a datagram, or raise OSError. Return True or False if the destination's
                                radio did or did not acknowledge it, or None if that is not known
    ``receive()``               return (datagram, RSSI in dBm, 0 if it is not measured), or None; it does not wait. It
                                may raise OSError, ValueError or MemoryError
    ``restart()``               restart the radio; it may raise OSError
    ``close()``                 release the radio's resources
    """

    is_serial = False
    longest_B = 1500

    def __init__(self, address, settings, random):
        self.address = address
        self.next_us = None
        self.foreign = 0  # datagrams of other runs
        self.faults = {}
        self.reported = {}  # the counts of faults as last reported
        self._random = random
        self._run = settings.get("run", 0)
        self._jitter_us = int(1000 * settings.get("jitter_ms", 5))
        self._neighbors = settings.get("neighbors")
        self._quiet_us = int(1000000 * settings.get("quiet_s", 60))
        self._waiting = []  # (due time in µs, earlier tries, destination, datagram)
        self._outcomes = []
        self._refusals = 0  # since the last success
        self._received_us = None  # time of the last datagram, or of the last restart

    def fileno(self):
        """Return an object that `select` can wait for, or None if the radio must be polled."""
        return None

    def count(self, fault, number=1):
        """Add ``number`` to the count of a fault, one of FAULTS."""
        self.faults[fault] = self.faults.get(fault, 0) + number

    def send(self, destination, frame, now):
        """Send a frame: a unicast at once, a broadcast (``destination`` None) after a random delay.

        ``now`` is the time in µs. A frame that is too long is dropped and counted as a fault. If too many frames wait,
        the oldest one is dropped.
        """
        delay_us = self._random.below(self._jitter_us + 1) if destination is None else 0
        receiver = NOBODY if destination is None else destination
        datagram = struct.pack(HEADER, MAGIC, self._run, self.address, receiver) + frame
        if len(datagram) > self.longest_B:
            self.count("too_long")
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.pop(0)
            self.count("lost")
        self._waiting.append((now + delay_us, 0, destination, datagram))
        self._send_due(now)

    def poll(self, now):
        """Send the frames that are due at ``now`` µs, and return the received frames; do not wait.

        Each is (frame, previous hop, whether it was a broadcast, RSSI in dBm or 0 if it is not measured).
        """
        self._send_due(now)
        if self._received_us is None:
            self._received_us = now
        heard = []
        for _ in range(MOST_RECEIVED):
            try:
                received = self.receive()
            except MemoryError:
                gc.collect()
                self.count("no_heap")
                break
            except (OSError, ValueError):
                self.count("damaged")
                self._restart_radio(now)
                break
            if received is None:
                break
            self._received_us = now
            self._process_datagram(received[0], received[1], heard)
        if self._quiet_us and now - self._received_us > self._quiet_us:
            self.count("silent")
            self._restart_radio(now)
        return heard

    def outcomes(self):
        """Return the outcomes of unicasts since the last call: [(destination, frame, is acknowledged), ...]."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def report(self, tell):
        """Report each fault whose count has changed to the host.

        ``tell(name, sequence, value, detail)`` is the mote's method that sends an event.
        """
        report_faults(self, tell)

    def _process_datagram(self, datagram, rssi, heard):
        """Append (frame, sender, whether it was a broadcast, RSSI) of a datagram to ``heard`` if it is for this node.

        Datagrams of another run, of nodes out of range, and to other nodes are dropped.
        """
        if len(datagram) < HEADER_B or datagram[:2] != MAGIC:
            return
        _, run, sender, destination = struct.unpack_from(HEADER, datagram, 0)
        if run != self._run:
            self.foreign += 1
        elif sender != self.address and (self._neighbors is None or sender in self._neighbors):
            self.meet(sender)
            if destination in (NOBODY, self.address):
                heard.append((datagram[HEADER_B:], sender, destination == NOBODY, rssi))

    def meet(self, sender):
        """Store what a subclass must know to send to ``sender``, which has sent the last received datagram.

        The default does nothing.
        """

    def _send_due(self, now):
        due = [item for item in self._waiting if item[0] <= now]
        self._waiting = [item for item in self._waiting if item[0] > now]
        for _, tries, destination, datagram in due:
            try:
                is_acknowledged = self.transmit(destination, datagram)
            except (OSError, MemoryError) as error:
                self._handle_refusal(error, tries, destination, datagram, now)
                continue
            self._refusals = 0
            if destination is not None and is_acknowledged is not None:
                self._outcomes.append((destination, datagram[HEADER_B:], is_acknowledged))
        self.next_us = min([item[0] for item in self._waiting]) if self._waiting else None

    def _handle_refusal(self, error, tries, destination, datagram, now):
        self.count("no_mem" if "NO_MEM" in str(error) or isinstance(error, MemoryError) else "refused")
        gc.collect()
        if tries + 1 < TRIES:
            self._waiting.append((now + (RETRY_US << tries), tries + 1, destination, datagram))
        else:
            self.count("lost")
        self._refusals += 1
        if self._refusals >= REFUSALS:
            self._refusals = 0
            self._restart_radio(now)

    def _restart_radio(self, now):
        self._received_us = now
        gc.collect()
        try:
            self.restart()
            self.count("restarts")
        except OSError:
            self.count("restart_failed")


def report_faults(radio, tell):
    """Send an event for each fault of a radio whose count has changed since the last report.

    ``tell(name, sequence, value, detail)`` is the mote's method that sends an event.
    """
    faults = radio.faults
    if faults == radio.reported:
        return
    for fault, count in faults.items():
        if radio.reported.get(fault) != count:
            tell("radio_fault", 0, count, "%s: %s" % (fault, FAULTS[fault]))
    radio.reported = dict(faults)

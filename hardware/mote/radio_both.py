"""Two radios of a board that act as one: ESP-NOW and UDP, so that the nodes of both are in one network.

A broadcast goes out by both radios, and a unicast by the radio on which its destination was heard last, or by both if
it was never heard. Not tried on hardware.

This file runs under MicroPython.
"""

from datagrams import report_faults


class BothRadios:
    """Two radios of one node that act as one radio; both are `DatagramRadio`."""

    is_serial = False

    def __init__(self, first, second):
        self._radios = (first, second)
        self._heard_on = {}  # node -> radio
        self.next_us = None
        self.reported = {}

    @property
    def foreign(self):
        """The number of datagrams of other runs that the two radios received."""
        return self._radios[0].foreign + self._radios[1].foreign

    @property
    def faults(self):
        """The faults of both radios, {name: sum of their counts}."""
        faults = dict(self._radios[0].faults)
        for name, count in self._radios[1].faults.items():
            faults[name] = faults.get(name, 0) + count
        return faults

    def fileno(self):
        """Return None, because `select` cannot wait for ESP-NOW: the radios must be polled."""
        return None

    def send(self, destination, frame, now):
        """Send a frame to ``destination`` by the radio that last heard it; by both if it is None or was never heard."""
        known = self._heard_on.get(destination)
        for radio in self._radios if known is None else (known,):
            radio.send(destination, frame, now)
        self._update_next_us()

    def poll(self, now):
        """Return the frames that both radios received, as `DatagramRadio.poll` does."""
        heard = []
        for radio in self._radios:
            for received in radio.poll(now):
                self._heard_on[received[1]] = radio
                heard.append(received)
        self._update_next_us()
        return heard

    def outcomes(self):
        """Return the outcomes of unicasts on both radios."""
        return self._radios[0].outcomes() + self._radios[1].outcomes()

    def report(self, tell):
        """Report each fault whose count has changed to the host.

        ``tell(name, sequence, value, detail)`` is the mote's method that sends an event.
        """
        report_faults(self, tell)

    def close(self):
        """Close both radios."""
        for radio in self._radios:
            radio.close()

    def _update_next_us(self):
        times = [radio.next_us for radio in self._radios if radio.next_us is not None]
        self.next_us = min(times) if times else None

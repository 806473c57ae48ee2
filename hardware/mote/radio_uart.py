"""A transparent radio at a UART, such as HC-12 or XBee modules, a wire, or a bus: every byte reaches all boards.

A datagram (datagrams.py) is framed as on the host link: COBS and a CRC, between zeros. Two boards that send at the same
time damage each other's datagrams, which the CRC detects ("damaged"). It has neither acknowledgements nor RSSI. Not
tried on hardware.

Settings (of the configuration's ``radio``): those of datagrams.py. The default of ``quiet_s`` is 0, as the module at
the UART cannot be restarted.

This file runs under MicroPython.
"""

from datagrams import DatagramRadio

from workbench.motes import framing


class UartRadio(DatagramRadio):
    """A radio at a UART. ``uart`` has the methods `read`, `write` and `any` of machine.UART."""

    def __init__(self, address, settings, random, uart):
        DatagramRadio.__init__(self, address, settings, random)
        self._quiet_us = int(1000000 * settings.get("quiet_s", 0))
        self._uart = uart
        self._deframer = framing.Deframer()
        self._spoilt = 0
        self._bodies = []

    def transmit(self, destination, datagram):
        """Write a datagram to the UART; raise OSError if the UART does not accept all of it."""
        data = framing.encode(datagram)
        if self._uart.write(data) != len(data):
            raise OSError("the UART did not accept the datagram")

    def receive(self):
        """Return (datagram, 0), or None if no complete datagram has arrived. RSSI is not measured."""
        if not self._bodies and self._uart.any():
            self._bodies = self._deframer.feed(self._uart.read() or b"")
            if self._deframer.spoilt != self._spoilt:
                self.count("damaged", self._deframer.spoilt - self._spoilt)
                self._spoilt = self._deframer.spoilt
        return (self._bodies.pop(0), 0) if self._bodies else None

    def restart(self):
        """Discard partly received datagrams. The module at the UART itself cannot be restarted."""
        self._deframer = framing.Deframer()
        self._spoilt = 0

    def close(self):
        """Discard what has arrived; the UART stays open for the next radio."""
        self._bodies = []

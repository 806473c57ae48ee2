"""A fake of the module machine: pins, converters, buses and UARTs, and a reset that ends the process.

A UART at the pins of a serial radio carries its bytes over the medium of fake.py. An I2C bus answers as a BME280 with
the calibration and the raw values of the data sheet's example.

Faults
    noise    at this write to a UART, a byte is changed
"""

import sys

import fake

_POINTS = bytes((112, 107, 67, 103, 24, 252, 125, 142, 67, 214, 208, 11, 39, 11, 140, 0, 249, 255, 140, 60, 248, 198))
_REGISTERS = {
    0x88: _POINTS + bytes((112, 23, 0, 75)),
    0xD0: b"\x60",
    0xE1: bytes((114, 1, 0, 19, 41, 3, 30)),
    0xF3: b"\x00",
    0xF7: bytes((0x65, 0x5A, 0xC0, 0x7E, 0xED, 0x00, 0x75, 0x30)),
}


def reset():
    """End the process, as a reset ends the program."""
    sys.exit(0)


class Pin:
    """A pin."""

    def __init__(self, number):
        self.number = number


class ADC:
    """A converter; the one of the RP2040's thermometer shows 27 °C, others the number of their pin times 1000."""

    def __init__(self, pin):
        self._pin = pin

    def read_u16(self):
        """Return the voltage, 0 to 65535."""
        return round(0.706 * 65535 / 3.3) if self._pin == 4 else 1000 * self._pin.number


class I2C:
    """A bus with a BME280 at its second address."""

    def __init__(self, number, sda, scl):
        pass

    def readfrom_mem(self, address, register, size):
        """Return the contents of registers; raise OSError if no chip answers."""
        if address != 0x77:
            raise OSError(5)
        return _REGISTERS[register][:size]

    def writeto_mem(self, address, register, data):
        """Write a register."""
        if address != 0x77:
            raise OSError(5)


class UART:
    """A UART with a transparent radio: what one board writes, all others read."""

    def __init__(self, number, baud, tx, rx, rxbuf=256):
        self._medium = fake.open_medium()
        self._received = b""

    def any(self):
        """Return the number of bytes that can be read."""
        while True:
            try:
                datagram = self._medium.recvfrom(3000)[0]
            except OSError:
                return len(self._received)
            if datagram[:6] != fake.MAC and fake.copies():
                self._received += datagram[6:]

    def read(self):
        """Return all received bytes, or None."""
        self.any()
        data, self._received = self._received, b""
        return data or None

    def write(self, data):
        """Send bytes; return their number."""
        sent = bytearray(data)
        if fake.occurs_once("noise"):
            sent[len(sent) // 2] ^= 0x55
        self._medium.sendto(fake.MAC + bytes(sent), fake.medium_address())
        return len(data)

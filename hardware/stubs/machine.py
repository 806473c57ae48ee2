"""A stub of the module machine: pins, a UART whose buffer is in the heap, an I2C bus with a BME280.

The BME280 has the calibration and the raw values of the data sheet's example. The analog-to-digital converter returns
the value that an RP2040's thermometer gives at 27 °C.
"""

from inbox import datagrams

_REGISTERS = {
    0x88: b"pkCg\x18\xfc}\x8eC\xd6\xd0\x0b'\x0b\x8c\x00\xf9\xff\x8c<\xf8\xc6p\x17\x00K",
    0xD0: b"\x60",
    0xE1: b"r\x01\x00\x13)\x03\x1e",
    0xF3: b"\x00",
    0xF7: b"eZ\xc0~\xed\x00u0",
}


def reset():
    """Do nothing."""


class Pin:
    """A pin."""

    def __init__(self, number):
        pass


class ADC:
    """An analog-to-digital converter."""

    def __init__(self, pin):
        pass

    def read_u16(self):
        """Return the measured voltage as a number from 0 to 65535."""
        return 14021


class I2C:
    """An I2C bus with a BME280."""

    def __init__(self, number, sda, scl):
        pass

    def readfrom_mem(self, address, register, size):
        """Return the bytes of ``size`` registers of the BME280, beginning with ``register``."""
        return _REGISTERS[register][:size]

    def writeto_mem(self, address, register, data):
        """Do nothing."""


class UART:
    """A UART whose received bytes are the datagrams in the inbox."""

    def __init__(self, number, baud, tx, rx, rxbuf=256):
        self._buffer = bytearray(rxbuf)

    def any(self):
        """Return the number of bytes that can be read."""
        return len(datagrams[0]) if datagrams else 0

    def read(self):
        """Return the next received bytes, or None if no bytes have arrived."""
        return datagrams.pop(0) if datagrams else None

    def write(self, data):
        """Return the number of bytes in ``data``, as if all were written."""
        return len(data)

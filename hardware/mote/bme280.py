"""A driver of Bosch's BME280 at an I2C bus: temperature, relative humidity, pressure.

Registers and formulas are those of the data sheet (BST-BME280-DS002, sections 4.2 and 5). Not tried on hardware; the
formulas are tested with the data sheet's example values.

This file runs under MicroPython.
"""

import struct
import time

ADDRESSES = (0x76, 0x77)
CHIP_ID = 0x60
_CALIBRATION, _ID, _CALIBRATION_2, _CTRL_HUM, _STATUS, _CTRL_MEAS, _DATA = 0x88, 0xD0, 0xE1, 0xF2, 0xF3, 0xF4, 0xF7
_FORCED_ONCE = 0b00100101  # temperature and pressure once each, then sleep
_LONGEST_MS = 20


class Bme280:
    """A BME280 on ``bus``, a machine.I2C. Raises OSError if neither of its two addresses answers as a BME280."""

    def __init__(self, bus):
        self._bus = bus
        self._address = self._find_address()
        first = bus.readfrom_mem(self._address, _CALIBRATION, 26)
        second = bus.readfrom_mem(self._address, _CALIBRATION_2, 7)
        self.calibration = parse_calibration(first, second)

    def _find_address(self):
        for address in ADDRESSES:
            try:
                if self._bus.readfrom_mem(address, _ID, 1)[0] == CHIP_ID:
                    return address
            except OSError:
                pass
        raise OSError("no BME280 answers on the I2C bus")

    def measure(self):
        """Return (temperature in °C, relative humidity in %, pressure in hPa).

        Raises OSError if the sensor does not answer.
        """
        self._bus.writeto_mem(self._address, _CTRL_HUM, b"\x01")
        self._bus.writeto_mem(self._address, _CTRL_MEAS, bytes((_FORCED_ONCE,)))
        for _ in range(_LONGEST_MS):
            time.sleep_ms(1)
            if not self._bus.readfrom_mem(self._address, _STATUS, 1)[0] & 8:
                break
        data = self._bus.readfrom_mem(self._address, _DATA, 8)
        raw_pressure = data[0] << 12 | data[1] << 4 | data[2] >> 4
        raw_temperature = data[3] << 12 | data[4] << 4 | data[5] >> 4
        return compensate(self.calibration, raw_temperature, data[6] << 8 | data[7], raw_pressure)


def parse_calibration(first, second):
    """Return (constants of temperature, of pressure, of humidity) from the sensor's calibration registers.

    ``first`` is the bytes of the registers 0x88 to 0xA1, ``second`` of 0xE1 to 0xE7.
    """
    values = struct.unpack_from("<HhhHhhhhhhhh", first, 0)
    h2, h3, e4, e5, e6, h6 = struct.unpack_from("<hBbBbb", second, 0)
    humidity = (first[25], h2, h3, e4 * 16 + (e5 & 15), e6 * 16 + (e5 >> 4), h6)
    return values[:3], values[3:], humidity


def compensate(calibration, raw_temperature, raw_humidity, raw_pressure):
    """Return (temperature in °C, relative humidity in %, pressure in hPa) for raw values of the sensor's converters.

    ``calibration`` is the result of `parse_calibration`.
    """
    (t1, t2, t3), (p1, p2, p3, p4, p5, p6, p7, p8, p9), (h1, h2, h3, h4, h5, h6) = calibration
    fine = (raw_temperature / 16384 - t1 / 1024) * t2 + (raw_temperature / 131072 - t1 / 8192) ** 2 * t3
    a = fine / 2 - 64000
    b = a * a * p6 / 32768 + a * p5 * 2
    b = b / 4 + p4 * 65536
    a = (1 + (p3 * a * a / 524288 + p2 * a) / 524288 / 32768) * p1
    pressure = 0.0
    if a:
        pressure = (1048576 - raw_pressure - b / 4096) * 6250 / a
        pressure += (p9 * pressure * pressure / 2147483648 + pressure * p8 / 32768 + p7) / 16
    h = fine - 76800
    h = (raw_humidity - (h4 * 64 + h5 / 16384 * h)) * (h2 / 65536 * (1 + h6 / 67108864 * h * (1 + h3 / 67108864 * h)))
    h = h * (1 - h1 * h / 524288)
    return fine / 5120, max(0.0, min(100.0, h)), pressure / 100

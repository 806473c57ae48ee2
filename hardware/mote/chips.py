"""Readers of the sensors on a physical board, by the ``sensor`` of settings.json.

Settings
    kind        "chip"    the chip's own thermometer (ESP32, RP2040, RP2350); it shows the chip's temperature, which is
                          several degrees above the room's
                "adc"     a voltage at the pin "adc": reading = offset + scale * (0 to 65535)
                "log"     recorded readings: ``values``, or the integers of a ``file`` on the board, one in each line
                "dht22"   a DHT22 at the pin "data"; ``quantity`` is "temperature" or "humidity"
                "bme280"  a BME280 at the pins "sda" and "scl"; ``quantity`` is "temperature", "humidity" or "pressure"
    per_unit    wire units in a unit of the reading (°C, %, hPa), default 100: 26.5 °C are 2650
    scale, offset   of "adc", in wire units, defaults 1 and 0
    key, every_ms   if both are given, the board publishes readings by itself, as sensors.py describes

Nothing in this file was tried on hardware.

This file runs under MicroPython.
"""

import machine

from workbench.errors import ParameterError

CHIP_ADC = 4  # the input of the RP2040 to which its thermometer is connected


def make_reader(settings, pins):
    """Return a function that reads the sensor: it takes the number of the reading and returns its value in wire units.

    ``settings`` is the ``sensor`` of settings.json, ``pins`` its ``pins``. Raises ParameterError if the settings are
    not valid. The function raises OSError if the sensor does not answer.
    """
    kind = settings["kind"]
    if kind == "log":
        return _read_log(settings)
    if kind == "adc":
        scale, offset = settings.get("scale", 1), settings.get("offset", 0)
        converter = machine.ADC(machine.Pin(pins["adc"]))
        return lambda number: round(offset + scale * converter.read_u16())
    measure = {"chip": _read_chip, "dht22": _read_dht22, "bme280": _read_bme280}[kind](settings, pins)
    per_unit = settings.get("per_unit", 100)
    return lambda number: round(per_unit * measure())


def _read_log(settings):
    values = settings.get("values")
    if values is None and "file" in settings:
        try:
            with open(settings["file"]) as file:
                values = [int(line) for line in file if line.strip()]
        except (OSError, ValueError):
            raise ParameterError(
                "sensor.file is %r; it must be a file of integers, one in each line" % settings["file"]
            ) from None
    if not values:
        raise ParameterError("a sensor of kind log has no values; give values or file")
    return lambda number: values[number % len(values)]


def _read_chip(settings, pins):
    try:
        import esp32
    except ImportError:
        converter = machine.ADC(getattr(machine.ADC, "CORE_TEMP", CHIP_ADC))
        # The RP2040's data sheet: 0.706 V at 27 °C, 1.721 mV less for each °C more.
        return lambda: 27 - (converter.read_u16() * 3.3 / 65535 - 0.706) / 0.001721
    if hasattr(esp32, "mcu_temperature"):
        return esp32.mcu_temperature
    return lambda: (esp32.raw_temperature() - 32) / 1.8  # The first ESP32 measures in °F.


def _read_dht22(settings, pins):
    quantity = _check_quantity(settings, ("temperature", "humidity"))
    import dht

    sensor = dht.DHT22(machine.Pin(pins["data"]))

    def measure():
        sensor.measure()  # at most every 2 s; an OSError if the sensor does not answer
        return sensor.temperature() if quantity == "temperature" else sensor.humidity()

    return measure


def _read_bme280(settings, pins):
    quantity = _check_quantity(settings, ("temperature", "humidity", "pressure"))
    from bme280 import Bme280

    sensor = Bme280(machine.I2C(0, sda=machine.Pin(pins["sda"]), scl=machine.Pin(pins["scl"])))
    return lambda: sensor.measure()[("temperature", "humidity", "pressure").index(quantity)]


def _check_quantity(settings, quantities):
    quantity = settings.get("quantity", "temperature")
    if quantity not in quantities:
        raise ParameterError("sensor.quantity is %r; it must be one of %s" % (quantity, ", ".join(quantities)))
    return quantity

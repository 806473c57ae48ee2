"""Sensors of a mote: the board's own sensor, or a simulated one (a constant, a ramp, a replayed log).

Settings (of the configuration's ``sensor``); values are in wire units (2650 is "TEMP IS 26.5")
    key          the attribute's key
    every_ms     time between two readings; the first reading comes after that time
    kind         "constant" (value), "ramp" (start, step, stop; repeats), "log" (values; repeats),
                 or "board" (the board's read_sensor)
"""

from workbench.attributes.model import IS, Attribute
from workbench.errors import ParameterError


class Sensor:
    """A sensor with periodic readings. ``value(number)`` returns the value of reading ``number``, counted from 0."""

    def __init__(self, key, every_us, value, now):
        self.next_us = now + every_us
        self._every_us = every_us
        self._key = key
        self._value = value
        self._readings = 0

    def read(self, now):
        """Return the attributes of the reading that is due, and set the time of the next reading.

        ``now`` is in µs. Readings that were missed are skipped.
        """
        value = self._value(self._readings)
        self._readings += 1
        self.next_us += self._every_us
        if self.next_us <= now:
            # The mote was busy, or its clock was set: missed readings are skipped.
            self.next_us = now + self._every_us
        return (Attribute(self._key, IS, value),)


def make_sensor(settings, now, board):
    """Return the sensor for the settings that the module's docstring lists.

    ``now`` is the time in µs, ``board`` the driver module. Raises ParameterError if the settings are not valid.
    """
    kind = settings.get("kind")
    every_us = int(1000 * settings["every_ms"])
    if every_us < 1:
        raise ParameterError("a sensor's every_ms is %r; it must be above 0" % settings["every_ms"])
    if kind == "constant":
        value = _make_constant(settings["value"])
    elif kind == "ramp":
        value = _make_ramp(settings["start"], settings["step"], settings["stop"])
    elif kind == "log":
        value = _make_log(settings["values"])
    elif kind == "board" and hasattr(board, "read_sensor"):
        value = board.read_sensor
    else:
        raise ParameterError("a sensor's kind is %r; it must be constant, ramp, log, or (if it has one) board" % kind)
    return Sensor(settings["key"], every_us, value, now)


def _make_constant(value):
    return lambda number: value


def _make_ramp(start, step, stop):
    if step == 0 or (stop - start) * step < 0:
        raise ParameterError("a ramp from %r does not reach %r in steps of %r; change the step" % (start, stop, step))
    count = (stop - start) // step + 1
    return lambda number: start + number % count * step


def _make_log(values):
    if not values:
        raise ParameterError("a sensor of kind log has no values; it needs at least one")
    return lambda number: values[number % len(values)]

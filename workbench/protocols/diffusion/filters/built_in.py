"""The built-in filters.

A built-in filter is a class with a table of parameters. Each node that carries the filter has its own instance, which
is created with the settings of all parameters. Its ``decide(attributes, origin, now)`` returns the attributes to
forward, or None to drop the message. A message without a value of the filter's key passes unchanged.

A filter may also send the content of dropped messages later. It sets its attribute ``emits_at_us`` to a time (µs); then
the node calls ``emit(now)``, which returns the attributes of a sample, a list of several samples, or None. The node
sends these samples to all sinks in place of the data message that this filter dropped last. ``emit`` sets
``emits_at_us`` to None or a later time.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.keys import BLOB, key_of
from workbench.attributes.model import IS, Attribute
from workbench.errors import ParameterError
from workbench.protocols.parameter import Parameter

# Users' filters, and functions that built-in filters call: name -> function or class. Empty on a mote.
registered = {}


def _value_of(attributes, key):
    """Return the value of the first attribute with this key and operator IS, or None."""
    for attribute in attributes:
        if attribute.key == key and attribute.operator == IS:
            return attribute.value
    return None


def _with_value(attributes, key, value):
    """Return a copy of ``attributes`` in which the first attribute with this key and operator IS has a new value."""
    new_attributes = []
    for attribute in attributes:
        if attribute.key == key and attribute.operator == IS and value is not None:
            attribute, value = Attribute(key, IS, value), None
        new_attributes.append(attribute)
    return tuple(new_attributes)


def _number_key(settings):
    """Return the attribute key that the setting "of" names. Raises ParameterError if the key's values are blobs."""
    key = key_of(settings["of"])
    if key.type == BLOB:
        raise ParameterError(
            "a filter has of=%r, but %s is a blob; name a key whose values are numbers" % (settings["of"], key.name)
        )
    return key


def _to_steps(key, amount):
    # Round the result, as 1.1 * 100 is 110.00000000000001 and a reading of 1.1 must not lie below that.
    return round(amount * key.steps, 6)


_OF = Parameter("of", "TEMP", None, None, "key", "what most motes measure")


class SuppressUnchanged:
    """A filter that drops a reading if its value is within ``tolerance`` of the last value that passed from its source.

    A reading that comes at least ``heartbeat_s`` after the last passed reading is passed in any case.
    """

    parameters = (
        _OF,
        Parameter(
            "tolerance",
            0.0,
            0,
            None,
            "units of the key",
            "smallest change that passes is larger; 0 drops repetitions and nothing else",
        ),
        Parameter(
            "heartbeat_s", 60.0, 0, None, "s", "after this time an unchanged reading passes too, as a sign of life"
        ),
    )

    def __init__(self, settings):
        key = _number_key(settings)
        self.key = key.number
        self.tolerance = _to_steps(key, settings["tolerance"])
        self.heartbeat_us = int(settings["heartbeat_s"] * 1000000)
        self.last_passed = {}

    def decide(self, attributes, origin, now):
        value = _value_of(attributes, self.key)
        if value is None:
            return attributes
        last_value, passed_us = self.last_passed.get(origin, (None, 0))
        if last_value is not None and abs(value - last_value) <= self.tolerance and now - passed_us < self.heartbeat_us:
            return None
        self.last_passed[origin] = (value, now)
        return attributes


class RunningWindow:
    """The base class of filters that replace each reading by a summary of its source's last ``window`` readings."""

    parameters = (
        _OF,
        Parameter(
            "window",
            5,
            1,
            100,
            "readings",
            "number of readings that are summarized; five smooth noise, and follow a change soon",
        ),
    )

    def __init__(self, settings):
        self.key = _number_key(settings).number
        self.window = settings["window"]
        self.recent = {}

    def decide(self, attributes, origin, now):
        value = _value_of(attributes, self.key)
        if value is None:
            return attributes
        recent = self.recent.setdefault(origin, [])
        recent.append(value)
        if len(recent) > self.window:
            recent.pop(0)
        return _with_value(attributes, self.key, self.summary(recent))


def _mean(values):
    """Return the mean of integers, rounded to the nearest (half up).

    The calculation uses integers only, so that the result is equal on every machine.
    """
    return (2 * sum(values) + len(values)) // (2 * len(values))


class RunningMean(RunningWindow):
    """A filter that replaces each reading by the mean of its source's last ``window`` readings."""

    def summary(self, values):
        return _mean(values)


class RunningMinimum(RunningWindow):
    """A filter that replaces each reading by the smallest of its source's last ``window`` readings."""

    def summary(self, values):
        return min(values)


class RunningMaximum(RunningWindow):
    """A filter that replaces each reading by the largest of its source's last ``window`` readings."""

    def summary(self, values):
        return max(values)


class NeighborhoodAverage:
    """A filter that replaces all readings of a period (``period_s``) by one, the mean of all sources' latest readings.

    Sources without a reading in the period are left out of the mean. With ``flush`` the filter sends the mean when the
    period ends. Without ``flush`` the mean replaces the first reading after the period, so the mean of the last period
    is never sent.
    """

    parameters = (
        _OF,
        Parameter(
            "period_s",
            5.0,
            0.001,
            None,
            "s",
            "time over which readings are averaged; the default is a usual period of publications",
        ),
        Parameter("flush", False, (False, True), None, "", "whether the mean is sent when the period ends"),
    )

    def __init__(self, settings):
        self.key = _number_key(settings).number
        self.period_us = int(settings["period_s"] * 1000000)
        self.flush = settings["flush"]
        self.latest = {}
        self.next_us = None
        self.emits_at_us = None
        self.last_attributes = ()  # of the last reading

    def decide(self, attributes, origin, now):
        value = _value_of(attributes, self.key)
        if value is None:
            return attributes
        if self.flush:
            self.latest[origin] = value
            self.last_attributes = attributes
            if self.emits_at_us is None:
                self.emits_at_us = now + self.period_us
            return None
        if self.next_us is None:
            self.next_us = now + self.period_us
        self.latest[origin] = value
        if now < self.next_us:
            return None
        self.next_us = now + self.period_us
        return self._replace_by_mean(attributes)

    def emit(self, now):
        """End the period; return the attributes of the last reading, with the mean of the period as value."""
        self.emits_at_us = None
        return self._replace_by_mean(self.last_attributes)

    def _replace_by_mean(self, attributes):
        mean = _mean(list(self.latest.values()))
        self.latest = {}
        return _with_value(attributes, self.key, mean)


class RateLimit:
    """A filter that passes at most one message of each source per ``interval_s``, and drops the others."""

    parameters = (
        Parameter("interval_s", 10.0, 0.001, None, "s", "shortest time between two messages of a source that pass"),
    )

    def __init__(self, settings):
        self.interval_us = int(settings["interval_s"] * 1000000)
        self.passed_us = {}

    def decide(self, attributes, origin, now):
        last_passed_us = self.passed_us.get(origin)
        if last_passed_us is not None and now - last_passed_us < self.interval_us:
            return None
        self.passed_us[origin] = now
        return attributes


class ThresholdAlarm:
    """A filter that passes, alternately, a source's first reading above ``high`` and its next reading below ``low``.

    All other readings are dropped.
    """

    parameters = (
        _OF,
        Parameter("high", 30.0, None, None, "units of the key", "the alarm begins above it"),
        Parameter(
            "low",
            28.0,
            None,
            None,
            "units of the key",
            "the alarm ends below it; the difference keeps noise from causing alarms",
        ),
    )

    def __init__(self, settings):
        key = _number_key(settings)
        if settings["low"] > settings["high"]:
            raise ParameterError(
                "filter threshold_alarm: low is %s and high is %s; low must not be above high"
                % (settings["low"], settings["high"])
            )
        self.key = key.number
        self.high = _to_steps(key, settings["high"])
        self.low = _to_steps(key, settings["low"])
        self.alarmed = {}

    def decide(self, attributes, origin, now):
        value = _value_of(attributes, self.key)
        if value is None:
            return attributes
        is_alarmed = self.alarmed.get(origin, False)
        is_crossing = value < self.low if is_alarmed else value > self.high
        if not is_crossing:
            return None
        self.alarmed[origin] = not is_alarmed
        return attributes


class BlobFusion:
    """A filter that replaces every ``count`` messages with blobs by one message with a new blob.

    The filter drops the first ``count`` - 1 messages. When the last message arrives, a user's function gets the list of
    all their blobs and returns the new blob of the last message. If the function returns None, the last message is
    dropped, too.
    """

    parameters = (
        Parameter("of", "PAYLOAD", None, None, "key", "where publish() puts a payload"),
        Parameter("count", 2, 1, 100, "blobs", "number that is fused into one; 2 is the smallest that fuses anything"),
        Parameter(
            "function", "", None, None, "name", "of the function that fuses, registered with register_filter; required"
        ),
    )

    def __init__(self, settings):
        key = key_of(settings["of"])
        if key.type != BLOB:
            raise ParameterError(
                "filter blob_fusion has of=%r, but %s is not a blob; name a key of type blob"
                % (settings["of"], key.name)
            )
        self.key = key.number
        self.count = settings["count"]
        self.fuse = registered.get(settings["function"])
        if self.fuse is None:
            raise ParameterError(
                "filter blob_fusion has function=%r, which is not registered; register a function with register_filter "
                "and give its name" % settings["function"]
            )
        self.blobs = []

    def decide(self, attributes, origin, now):
        blob = _value_of(attributes, self.key)
        if blob is None:
            return attributes
        self.blobs.append(blob)
        if len(self.blobs) < self.count:
            return None
        fused_blob, self.blobs = self.fuse(self.blobs), []
        return None if fused_blob is None else _with_value(attributes, self.key, fused_blob)


BUILT_IN = {
    "suppress_unchanged": SuppressUnchanged,
    "running_mean": RunningMean,
    "running_minimum": RunningMinimum,
    "running_maximum": RunningMaximum,
    "neighborhood_average": NeighborhoodAverage,
    "rate_limit": RateLimit,
    "threshold_alarm": ThresholdAlarm,
    "blob_fusion": BlobFusion,
}

"""Conversion of the times of a mote's clock to times of the host's clock.

Theory of operation
    The host requests the mote's time and stores its own times of request and answer. The mote read its clock in
    between, so the mean of the host's two times has an error of at most half the round trip. The answer with the
    shortest round trip is the most accurate. Clocks drift by some ten µs per second. Two accurate answers, one old and
    one new, give the rate of the drift if they are far enough apart.

Reference
    D. Mills: Internet time synchronization: the network time protocol, IEEE Trans. Communications 39(10), 1991.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_MOST_READINGS = 32
_FAR_US = 5_000_000
_LARGEST_DRIFT = 5e-4  # drift of a bad crystal; a larger estimate is noise


class Reading(NamedTuple):
    """A reading of a mote's clock: the clock showed ``mote_us`` at the host's time ``host_us``, ± ``error_us``."""

    host_us: float
    mote_us: int
    error_us: float


class Clock:
    """A converter of a mote's times to the host's times."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=_MOST_READINGS)

    def add(self, asked_us: float, answered_us: float, mote_us: int) -> None:
        """Add a reading of the mote's clock: ``mote_us``.

        ``asked_us`` and ``answered_us`` are the host's times of the request and of the answer, in µs.
        """
        self._readings.append(Reading((asked_us + answered_us) / 2, mote_us, (answered_us - asked_us) / 2))

    def forget(self) -> None:
        """Discard all readings, because the mote's clock was set or restarted."""
        self._readings.clear()

    @property
    def error_us(self) -> float:
        """The error bound of the most accurate reading, in µs; infinite if no reading was added yet."""
        return min((reading.error_us for reading in list(self._readings)), default=float("inf"))

    def to_host_us(self, mote_us: int) -> int:
        """Convert a mote's time to the host's time, both in µs.

        Returns ``mote_us`` if no reading of the mote's clock was added yet.
        """
        readings = list(self._readings)  # a copy, as another thread may clear them
        if not readings:
            return mote_us
        half_count = len(readings) // 2
        new_reading = min(readings[half_count:], key=lambda reading: reading.error_us)
        rate = 1.0
        if half_count:
            old_reading = min(readings[:half_count], key=lambda reading: reading.error_us)
            span_us = new_reading.mote_us - old_reading.mote_us
            if span_us >= _FAR_US:
                rate = (new_reading.host_us - old_reading.host_us) / span_us
                rate = min(max(rate, 1 - _LARGEST_DRIFT), 1 + _LARGEST_DRIFT)
        return round(new_reading.host_us + (mote_us - new_reading.mote_us) * rate)

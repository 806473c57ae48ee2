"""A mote's clock as seen from the host: which of the host's times a time of the mote's is.

Theory of operation
    The host asks for the time and notes when it asked and when it was answered. The mote read its clock in between, so
    the middle of the two is right to half the way there and back. Of several questions the one answered fastest says
    most. Clocks drift, some ten µs in a second: an old and a new good answer that are far enough apart give the rate.

Reference
    D. Mills: Internet time synchronization: the network time protocol, IEEE Trans. Communications 39(10), 1991.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_KEPT = 32
_FAR_US = 5_000_000
_LARGEST_DRIFT = 5e-4  # what a bad crystal does; more is noise


class Reading(NamedTuple):
    """The mote's clock showed ``mote_us`` at ``host_us``, give or take ``error_us``."""

    host_us: float
    mote_us: int
    error_us: float


class Clock:
    """Maps a mote's times to the host's."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=_KEPT)

    def add(self, asked_us: float, answered_us: float, mote_us: int) -> None:
        """Note an answer: when it was asked for, when it came, what it said."""
        self._readings.append(Reading((asked_us + answered_us) / 2, mote_us, (answered_us - asked_us) / 2))

    def forget(self) -> None:
        """The mote's clock was set, or begins again."""
        self._readings.clear()

    @property
    def error_us(self) -> float:
        """How far off a time may be; infinite if the clock was never read."""
        return min((reading.error_us for reading in list(self._readings)), default=float("inf"))

    def to_host_us(self, mote_us: int) -> int:
        """The host's time of a time of the mote's; the same, if its clock was never read."""
        readings = list(self._readings)  # Another thread may forget them.
        if not readings:
            return mote_us
        half = len(readings) // 2
        new = min(readings[half:], key=lambda reading: reading.error_us)
        rate = 1.0
        if half:
            old = min(readings[:half], key=lambda reading: reading.error_us)
            span_us = new.mote_us - old.mote_us
            if span_us >= _FAR_US:
                rate = (new.host_us - old.host_us) / span_us
                rate = min(max(rate, 1 - _LARGEST_DRIFT), 1 + _LARGEST_DRIFT)
        return round(new.host_us + (mote_us - new.mote_us) * rate)

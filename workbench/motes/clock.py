"""A mote's clock as seen from the host: conversion of the mote's times to the host's.

Theory of operation
    The host requests the mote's time and notes the times of request and answer. The mote read its clock in between, so
    the middle of the two is right to half the round trip. The fastest answer is the most exact. Clocks drift by some
    ten µs per second: an old and a new good answer that are far enough apart give the rate.

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
    """An observation: the mote's clock showed ``mote_us`` at ``host_us``, with an error of up to ``error_us``."""

    host_us: float
    mote_us: int
    error_us: float


class Clock:
    """The conversion from a mote's times to the host's."""

    def __init__(self) -> None:
        self._readings: deque[Reading] = deque(maxlen=_MOST_READINGS)

    def add(self, asked_us: float, answered_us: float, mote_us: int) -> None:
        """Add an answer: the host's times of request and answer, and the mote's time."""
        self._readings.append(Reading((asked_us + answered_us) / 2, mote_us, (answered_us - asked_us) / 2))

    def forget(self) -> None:
        """Discard all readings, because the mote's clock was set or restarted."""
        self._readings.clear()

    @property
    def error_us(self) -> float:
        """The largest error of a converted time; infinite if the clock was never read."""
        return min((reading.error_us for reading in list(self._readings)), default=float("inf"))

    def to_host_us(self, mote_us: int) -> int:
        """Convert a mote's time to the host's; if the clock was never read, return it unchanged."""
        readings = list(self._readings)  # a copy, as another thread may clear them
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

"""The playback clock, which slows down while frames are being sent and speeds up in silence.

Theory of operation
    A frame lasts about a millisecond, a run lasts minutes. At a constant speed, a message would cross the network
    within one picture, and then nothing would happen for seconds. So a gap of g µs between two successive begins or
    ends of frames gets log(1 + g / frame) units of playback time, where ``frame`` is the median duration of a frame.
    Short gaps keep their proportions and long gaps are shortened. Under continuous traffic all gaps are short and
    playback is even. The displayed time is always the simulated time.

    A frame is shown while it is being sent, and at least for ``VISIBLE_S`` of playback time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

VISIBLE_S = 0.3
SHORTEST_S, LONGEST_S = 8.0, 75.0
SECONDS_PER_UNIT = 0.12
MAX_KNOTS = 20_000


@dataclass(frozen=True)
class PlaybackClock:
    """A monotone map between simulated time and playback time, linear between given points (knots).

    knots_us, knots_s: the simulated and the playback time of each knot, float64, shape (knots,). They rise from 0 to
    the duration of the run and to the length of playback.
    """

    knots_us: np.ndarray
    knots_s: np.ndarray

    @property
    def length_s(self) -> float:
        """The length of the whole playback in s, at speed 1."""
        return float(self.knots_s[-1])

    def at(self, time_us: np.ndarray) -> np.ndarray:
        """Convert simulated times in µs to playback times in s."""
        return np.interp(time_us, self.knots_us, self.knots_s)

    def time_us(self, playback_s: np.ndarray) -> np.ndarray:
        """Convert playback times in s to simulated times in µs."""
        return np.interp(playback_s, self.knots_s, self.knots_us)

    def thinned(self, most: int) -> PlaybackClock:
        """Return this clock reduced to at most ``most`` evenly chosen knots; their times become float32."""
        if len(self.knots_us) > most:
            knots = np.unique(np.linspace(0, len(self.knots_us) - 1, most).astype(np.int64))
        else:
            knots = np.arange(len(self.knots_us))
        return PlaybackClock(self.knots_us[knots].astype(np.float32), self.knots_s[knots].astype(np.float32))

    def visible_until(self, from_us: np.ndarray, until_us: np.ndarray) -> np.ndarray:
        """Return the times in µs at which the marks of frames disappear.

        Each mark is visible for ``VISIBLE_S`` of playback time or longer. ``from_us``, ``until_us``: begin and end of
        the transmission of each frame.
        """
        shown_until_us = self.time_us(self.at(from_us) + VISIBLE_S)
        return np.maximum(np.maximum(until_us, shown_until_us), from_us + 1)


def make_clock(start_us: np.ndarray, end_us: np.ndarray, duration_us: int) -> PlaybackClock:
    """Return the playback clock of a run, which maps simulated time to playback time.

    start_us, end_us: begin and end of the transmission of each frame, arrays of shape (frames,).
    duration_us: duration of the run.
    """
    frame_us = max(float(np.median(end_us - start_us)) if len(start_us) else 1000.0, 1.0)
    event_times_us = np.concatenate([[0.0, float(duration_us)], start_us, end_us])
    event_times_us = np.sort(np.clip(event_times_us, 0, duration_us), kind="stable")
    event_times_us = event_times_us[np.append(True, event_times_us[1:] > event_times_us[:-1])]
    gap = np.diff(event_times_us)
    units = np.concatenate([[0.0], np.cumsum(np.log1p(gap / frame_us))])
    if units[-1] <= 0:
        return PlaybackClock(np.array([0.0, 1.0]), np.array([0.0, SHORTEST_S]))
    within_us, within_units = _knots_in_gaps(event_times_us, gap, units, frame_us)
    event_times_us, units = np.concatenate([event_times_us, within_us]), np.concatenate([units, within_units])
    by_time = np.argsort(event_times_us, kind="stable")
    if len(by_time) > MAX_KNOTS:
        by_time = by_time[np.unique(np.linspace(0, len(by_time) - 1, MAX_KNOTS).astype(np.int64))]
    length_s = min(max(units.max() * SECONDS_PER_UNIT, SHORTEST_S), LONGEST_S)
    return PlaybackClock(event_times_us[by_time], units[by_time] / units.max() * length_s)


def _knots_in_gaps(
    times: np.ndarray, gap: np.ndarray, units: np.ndarray, frame_us: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return additional knots inside long gaps between frames, as (simulated times in µs, playback times in units).

    A knot assigns a playback time to a simulated time. In a gap, knots are added 4, 16, 64, ... frame durations after
    its begin.
    Units are those of the module's docstring: a gap of g µs lasts log(1 + g / frame_us) units.

    times, units: the knots at the begins and ends of frames: their simulated times in µs, and their playback times in
    units. gap: the interval in µs from each of these knots to the next one; one entry less than ``times``.
    frame_us: the median duration of a frame in µs.
    """
    elapsed = frame_us * 4.0 ** np.arange(1, 16)
    long = np.flatnonzero(gap > elapsed[0])
    index, step = np.nonzero(elapsed < gap[long, None])
    index = long[index]
    return times[index] + elapsed[step], units[index] + np.log1p(elapsed[step] / frame_us)

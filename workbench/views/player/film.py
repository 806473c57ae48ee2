"""Film time: a clock that slows down where frames are in the air and hurries through silence.

Theory of operation
    A frame lasts about a millisecond, a run lasts minutes: played evenly, an interest crosses the network within
    one picture and then nothing happens for seconds. So a gap of g µs between two happenings is given
    log(1 + g / frame) units of film, where ``frame`` is the median airtime: short gaps keep their proportions,
    long ones are shortened. Under continuous traffic all gaps are short and the film runs evenly. The real time is
    always what is written on the clock.

    A frame in flight is shown for its airtime, and at least for ``VISIBLE_S`` of film.
"""

from dataclasses import dataclass

import numpy as np

VISIBLE_S = 0.3
SHORTEST_S, LONGEST_S = 8.0, 75.0
SECONDS_PER_UNIT = 0.12
MAX_KNOTS = 20_000


@dataclass(frozen=True)
class Film:
    """A monotone map between time and film time, linear between knots.

    knots_us, knots_s: float64, shape (knots,), from 0 to the run's duration and to the film's length.
    """

    knots_us: np.ndarray
    knots_s: np.ndarray

    @property
    def length_s(self) -> float:
        """How long the film lasts at speed 1."""
        return float(self.knots_s[-1])

    def at(self, time_us: np.ndarray) -> np.ndarray:
        """Film seconds of some times."""
        return np.interp(time_us, self.knots_us, self.knots_s)

    def time_us(self, film_s: np.ndarray) -> np.ndarray:
        """Times of some film seconds."""
        return np.interp(film_s, self.knots_s, self.knots_us)

    def visible_until(self, from_us: np.ndarray, until_us: np.ndarray) -> np.ndarray:
        """When something that lasts [from, until] may disappear, so that it is seen for ``VISIBLE_S`` of film."""
        shown = self.time_us(self.at(from_us) + VISIBLE_S)
        return np.maximum(np.maximum(until_us, shown), from_us + 1)


def shoot(start_us: np.ndarray, end_us: np.ndarray, duration_us: int) -> Film:
    """The film of a run whose frames were in the air during [start, end], each shape (frames,)."""
    frame_us = max(float(np.median(end_us - start_us)) if len(start_us) else 1000.0, 1.0)
    times = np.concatenate([[0.0, float(duration_us)], start_us, end_us])
    times = np.sort(np.clip(times, 0, duration_us), kind="stable")
    times = times[np.append(True, times[1:] > times[:-1])]
    gap = np.diff(times)
    units = np.concatenate([[0.0], np.cumsum(np.log1p(gap / frame_us))])
    if units[-1] <= 0:
        return Film(np.array([0.0, 1.0]), np.array([0.0, SHORTEST_S]))
    within_us, within = _within(times, gap, units, frame_us)
    times, units = np.concatenate([times, within_us]), np.concatenate([units, within])
    order = np.argsort(times, kind="stable")
    if len(order) > MAX_KNOTS:
        order = order[np.unique(np.linspace(0, len(order) - 1, MAX_KNOTS).astype(np.int64))]
    length_s = min(max(units.max() * SECONDS_PER_UNIT, SHORTEST_S), LONGEST_S)
    return Film(times[order], units[order] / units.max() * length_s)


def _within(times: np.ndarray, gap: np.ndarray, units: np.ndarray, frame_us: float) -> tuple[np.ndarray, np.ndarray]:
    """Knots on the logarithm within long gaps, 4, 16, 64, ... frames after they began: (times, units)."""
    passed = frame_us * 4.0 ** np.arange(1, 16)
    long = np.flatnonzero(gap > passed[0])
    which, step = np.nonzero(passed < gap[long, None])
    which = long[which]
    return times[which] + passed[step], units[which] + np.log1p(passed[step] / frame_us)

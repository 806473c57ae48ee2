"""Tracks: the paths of nodes that move, piecewise linear in time.

Every mobility model and every movement file gives tracks. Times are whole microseconds, as in a trace. Positions are
multiples of 0.1 mm, as in a topology, so that a node that never moves is exactly at its position in the topology.

Reproducibility
    A position is computed by one subtraction, one multiplication, one division and one addition of IEEE 754, each
    rounded once, and is then rounded to 0.1 mm. These operations give the same result on every machine.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from workbench.topology.graphs import round_positions

LONGEST_S = 1e9  # the largest time of a track: thirty years; a float still distinguishes its microseconds


class Track(NamedTuple):
    """The path of a node: straight lines between vertices, each with constant speed.

    ``times_us`` (k,) int64 has the times of the vertices in µs, strictly ascending. ``positions_m`` (k, 2) float64 has
    their coordinates in m, multiples of 0.1 mm. Before the first vertex and after the last, the node stands still.
    """

    times_us: np.ndarray
    positions_m: np.ndarray


def positions(track: Track, times_us: npt.ArrayLike) -> np.ndarray:
    """Return the positions (t, 2) in m of a node at ``times_us`` (t,) in µs, rounded to 0.1 mm.

    The times may be in any order. Between two vertices the position is interpolated linearly; see `Track`.
    """
    times_us = np.atleast_1d(np.asarray(times_us, dtype=np.int64))
    if len(track.times_us) == 1:
        return np.repeat(round_positions(track.positions_m), len(times_us), axis=0)
    start = np.clip(np.searchsorted(track.times_us, times_us, side="right") - 1, 0, len(track.times_us) - 2)
    start_us, start_m = track.times_us[start], track.positions_m[start]
    # Clipped times are those before the first vertex and after the last.
    shares = np.clip((times_us - start_us) / (track.times_us[start + 1] - start_us), 0.0, 1.0)
    return round_positions(start_m + shares[:, None] * (track.positions_m[start + 1] - start_m))


def to_us(times_s: npt.ArrayLike) -> np.ndarray:
    """Return times in s as int64 microseconds, rounded to the nearest."""
    return np.rint(np.asarray(times_s, dtype=float) * 1e6).astype(np.int64)

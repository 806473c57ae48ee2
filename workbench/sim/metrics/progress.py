"""Metrics of time: deadlines, latencies with undelivered samples, and the times to first and to steady delivery.

Theory of operation
    A latency over all expected samples counts an undelivered sample as infinitely late. So a protocol that delivers
    only easy samples does not look fast.

    Delivery is *steady* from publication i on if, for each j >= i, publication j and all later publications together
    reach the share `STEADY`: at least this share of their expected samples arrive. The last ``LEFT - 1`` publications
    are not checked as j: among so few, a single loss would be a large share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.sim.changes.items import list_change_times
from workbench.sim.rows import Columns

NOT_A_NUMBER = float("nan")
STEADY = 0.9
LEFT = 10
DEADLINES_S = (1, 10)
_US = 1_000_000
_NEVER_US = int(np.iinfo(np.int64).max)


class Progress(NamedTuple):
    """The number of samples of each publication (p,), in order of time, and the times of the deliveries (d,).

    time_us               time of each publication (p,)
    expected, delivered   number of its samples that were expected, and that were delivered (p,)
    delivered_us          times of the deliveries of expected samples (d,), ascending
    """

    time_us: np.ndarray
    expected: np.ndarray
    delivered: np.ndarray
    delivered_us: np.ndarray

    def times(self, changes_us: np.ndarray) -> dict[str, float]:
        """Return the metrics time_to_first_s, time_to_steady_s and recovery_s, which `workbench.sim.metrics` defines.

        ``changes_us``: times at which the network changed, ascending. A time is infinite if the delivery never
        begins or never gets steady, and NaN if nothing is expected.
        """
        expected_indices = np.flatnonzero(self.expected)
        if not len(expected_indices):
            return {"time_to_first_s": NOT_A_NUMBER, "time_to_steady_s": NOT_A_NUMBER, "recovery_s": NOT_A_NUMBER}
        begin_us = self.time_us[expected_indices[0]]
        time_to_first_s = (self.delivered_us[0] - begin_us) / _US if len(self.delivered_us) else math.inf
        return {
            "time_to_first_s": float(time_to_first_s),
            "time_to_steady_s": self._steady_after_s(expected_indices, begin_us),
            "recovery_s": self._recovery_s(expected_indices, changes_us),
        }

    def _steady_after_s(self, rows: np.ndarray, begin_us: int) -> float:
        """Return the time in s from ``begin_us`` to the publication from which on the delivery is steady.

        ``rows``: the indices of the publications to consider. Returns infinity if the delivery never gets steady. The
        docstring of the module defines "steady".
        """
        steady_index = first_steady(self.expected[rows], self.delivered[rows])
        return math.inf if steady_index is None else float(self.time_us[rows[steady_index]] - begin_us) / _US

    def _recovery_s(self, rows: np.ndarray, changes_us: np.ndarray) -> float:
        """Return the longest time in s from a change of the network until the delivery is steady.

        ``rows``: the indices of the publications to consider. ``changes_us``: the times of the changes. For each
        change, only publications before the next change are considered. A change without such publications is skipped;
        the result is NaN if all changes are skipped.
        """
        times_s = []
        for change_us, end_us in pairwise([*changes_us.tolist(), _NEVER_US]):
            rows_until_next = rows[(self.time_us[rows] >= change_us) & (self.time_us[rows] < end_us)]
            if len(rows_until_next):
                times_s.append(self._steady_after_s(rows_until_next, change_us))
        return max(times_s, default=NOT_A_NUMBER)


def first_steady(expected: np.ndarray, delivered: np.ndarray) -> int | None:
    """Return the index of the first publication from which on the delivery is steady, or None.

    The docstring of the module defines "steady". ``expected``, ``delivered`` (p,): for each publication, the number of
    its samples that were expected, at least 1, and the number that were delivered.
    """
    ratios = np.cumsum(delivered[::-1])[::-1] / np.cumsum(expected[::-1])[::-1]
    is_good = ratios[: max(1, len(ratios) - LEFT + 1)] >= STEADY
    if not is_good[-1]:
        return None
    bad_indices = np.flatnonzero(~is_good)
    return int(bad_indices[-1]) + 1 if len(bad_indices) else 0


def change_times_us(rows: Columns, items: Iterable[Any]) -> np.ndarray:
    """Return the times in µs at which the network changed, ascending, each once.

    The network changes when a node fails or recovers, when a partition begins or ends, and when jamming begins or ends.
    ``rows``: the trace. ``items``: the workload.
    """
    times_us = [rows.columns(event, "time_us")[0] for event in ("failed", "recovered")]
    return np.unique(np.concatenate([*times_us, np.array(list_change_times(items), np.int64)]))


def timeliness(latencies_us: np.ndarray, expected: int) -> dict[str, float]:
    """Return the metrics within_*_ratio and latency_all_ms_*; undelivered samples count as infinitely late.

    ``latencies_us``: latencies of the delivered samples, ascending. ``expected``: number of expected samples.
    """
    counts_in_time = {
        f"within_{deadline}s_ratio": np.searchsorted(latencies_us, deadline * _US, "right") for deadline in DEADLINES_S
    }
    ratios = {name: float(count) / expected if expected else NOT_A_NUMBER for name, count in counts_in_time.items()}
    undelivered_us = np.full(expected - len(latencies_us), math.inf)
    all_us = np.concatenate([latencies_us.astype(float), undelivered_us])
    shares = {"p50": 0.5, "p95": 0.95, "max": 1.0}
    return ratios | {f"latency_all_ms_{name}": percentile(all_us, share) / 1000 for name, share in shares.items()}


def percentile(ordered: np.ndarray, share: float) -> float:
    """Return the smallest number x in ``ordered`` such that at least the fraction ``share`` of the numbers is <= x.

    ``ordered`` (n,): the numbers, ascending. Returns NaN if it is empty.
    """
    if not len(ordered):
        return NOT_A_NUMBER
    return float(ordered[min(len(ordered) - 1, max(0, -(-round(share * 100) * len(ordered) // 100) - 1))])

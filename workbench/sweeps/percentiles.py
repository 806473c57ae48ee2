"""Statistics without an assumed distribution: bounds of percentiles, trends, and necessary numbers of runs.

Theory of operation
    A percentile of a metric over all possible runs is bounded by order statistics of the available runs. Of n
    independent runs, the number of runs below the percentile p has the binomial distribution B(n, p), whatever the
    distribution of the metric. So a bound needs a minimum of runs: at 95 % confidence 5 runs for a median, 29 runs for
    a 90th percentile.

    A trend in a series is the Theil-Sen slope: the median of the slopes of all pairs of points. A few outliers do not
    change it. A series has converged from a point on if the interval of its slope over the rest allows only a small
    relative change. The points before are the warm-up, whose length is therefore not fixed.

Reference
    R. Jacob, M. Zimmerling, C. Boano, L. Vanbever, L. Thiele: Designing replicable networking experiments with
    TriScale, Journal of Systems Research 1(1), 2021; P. Sen: Estimates of the regression coefficient based on
    Kendall's tau, Journal of the American Statistical Association 63, 1968.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import ParameterError
from workbench.topology.graphs import is_number

_STEPS = 10  # a warm-up is a multiple of a tenth of the series
_FEWEST = 10  # points that a trend needs


class Trend(NamedTuple):
    """The relative change of a series, ``change``, from the point with the index ``first`` to the end of the series.

    ``low`` and ``high`` are the ends of the change's 95 % interval.
    """

    first: int
    change: float
    low: float
    high: float


def runs_needed(percentile: float = 50, confidence: float = 0.95) -> int:
    """Return how many runs are needed for an upper bound, or a lower bound, of a percentile of a metric.

    The upper bound is the largest value of the runs, the lower bound the smallest. With the returned number of runs,
    each bound by itself is correct with at least the probability ``confidence``. Raises ParameterError unless
    ``percentile`` is in (0, 100) and ``confidence`` in (0, 1).

    >>> runs_needed(50), runs_needed(90)
    (5, 29)
    """
    share = _to_share("percentile", percentile, 100)
    confidence = _to_share("confidence", confidence, 1)
    return math.ceil(math.log(1 - confidence) / math.log(max(share, 1 - share)))


def percentile_bounds(values: Sequence[float], percentile: float = 50, confidence: float = 0.95) -> tuple[float, float]:
    """Return (low, high), an interval that contains a percentile of a metric with the probability ``confidence``.

    The percentile is that over all possible runs; ``values`` are the metric's values in the available runs. A bound
    is NaN if there are too few values for it. Infinite values, such as latencies of undelivered samples, count as
    large. NaN values are left out.
    """
    from scipy.stats import binom

    share = _to_share("percentile", percentile, 100)
    tail_probability = (1 - _to_share("confidence", confidence, 1)) / 2
    sorted_values = np.sort([value for value in values if not math.isnan(value)])
    runs = len(sorted_values)
    probabilities = binom.cdf(np.arange(runs), runs, share)  # [k]: at most k values are below the percentile
    low_index = int(np.count_nonzero(probabilities <= tail_probability)) - 1
    high_index = (
        int(np.argmax(probabilities >= 1 - tail_probability))
        if runs and probabilities[-1] >= 1 - tail_probability
        else runs
    )
    return (
        float(sorted_values[low_index]) if low_index >= 0 else math.nan,
        float(sorted_values[high_index]) if high_index < runs else math.nan,
    )


def trend(times: Sequence[float], values: Sequence[float], first: int = 0) -> Trend:
    """Return the relative change of a series from index ``first`` to its end, by the Theil-Sen slope.

    The series has the ``values`` at the ``times``, in any unit. The change is relative to the median of the values from
    ``first`` on: 0.1 means 10 % more at the end. Raises ParameterError for fewer than ten points.
    """
    from scipy.stats import theilslopes

    series_times, series_values = np.asarray(times, dtype=float)[first:], np.asarray(values, dtype=float)[first:]
    if len(series_times) != len(series_values) or len(series_times) < _FEWEST:
        raise ParameterError(
            f"the argument `times` has {len(series_times)} and `values` has {len(series_values)} "
            f"points from index {first} on; "
            f"a trend needs equally many of both, at least {_FEWEST}"
        )
    slope, _, low_slope, high_slope = theilslopes(series_values, series_times, alpha=0.95)
    median = abs(float(np.median(series_values)))
    scale = (series_times[-1] - series_times[0]) / median if median else 0.0
    return Trend(first, float(slope * scale), float(low_slope * scale), float(high_slope * scale))


def converged(times: Sequence[float], values: Sequence[float], tolerance: float = 0.1) -> Trend | None:
    """Return the trend of a series after its warm-up, or None if the series does not converge.

    The series has the ``values`` at the ``times``, in any unit. The warm-up is 0, 10, 20, 30, 40 or 50 % of the points.
    It is the shortest one after which the 95 % interval of the relative change of the remaining points is within
    ±``tolerance``. ``first`` of the result is the index of the first point after the warm-up.
    """
    for step in range(_STEPS // 2 + 1):
        first_index = step * len(times) // _STEPS
        if len(times) - first_index < _FEWEST:
            return None
        trend_of_rest = trend(times, values, first_index)
        if -tolerance <= trend_of_rest.low and trend_of_rest.high <= tolerance:
            return trend_of_rest
    return None


def pairs_needed(differences: Sequence[float], power: float = 0.8) -> int:
    """Return the number of pairs of runs that are needed to show that a mean difference is not 0.

    ``differences`` are the paired differences of a first experiment, for example of ten seeds. With the returned number
    of pairs, the 95 % interval of the mean excludes 0 with probability ``power``. This assumes that the mean and the
    standard deviation of ``differences`` hold for all possible pairs. Raises ParameterError if fewer than two
    differences are given, or if their mean is 0.
    """
    from scipy.stats import norm

    present_differences = np.array([value for value in differences if not math.isnan(value)])
    if len(present_differences) < 2 or not np.isfinite(present_differences).all() or present_differences.mean() == 0:
        raise ParameterError(
            f"the argument `differences` has {len(present_differences)} values; "
            "it needs two or more finite values whose mean is not 0"
        )
    quantiles = float(norm.ppf(0.975) + norm.ppf(_to_share("power", power, 1)))
    return max(
        2, math.ceil((quantiles * float(present_differences.std(ddof=1)) / float(present_differences.mean())) ** 2)
    )


def _to_share(name: str, value: float, limit: float) -> float:
    if not is_number(value) or not 0 < value < limit:
        raise ParameterError(f"{name} is {value!r:.60}; it must be a number between 0 and {limit}")
    return value / limit

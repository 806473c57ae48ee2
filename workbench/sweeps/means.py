"""Means over runs with their 95 % confidence intervals.

The interval of a mean over n runs is mean ± t s / √n. Here s is the standard deviation of the runs (n - 1 in its
denominator), and t is Student's quantile for n - 1 degrees of freedom. The interval is clipped to the range of the
metric: at least 0 unless a run has a negative value, and for a share at most 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Student's t, 97.5 %, for 1, 2, ... 30 degrees of freedom (any statistics textbook has the table).
_T_975 = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
_Z_975 = 1.959964

# Last words of the names of metrics that are shares, from 0 to 1.
_SHARES = ("ratio", "coverage", "share")


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t for ``freedom`` degrees of freedom.

    Up to 30 degrees the quantile is read from a table. For more degrees it is the sum of the first terms of a
    series in 1 / ``freedom``.
    Source: M. Abramowitz, I. Stegun: Handbook of mathematical functions, 26.7.5.
    """
    if freedom <= len(_T_975):
        return _T_975[freedom - 1]
    z = _Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def summary(frame: pd.DataFrame, x: str, y: str, by: str | None) -> pd.DataFrame:
    """Return a table with the mean of the metric ``y`` for each combination of values of the columns ``by`` and ``x``.

    ``frame`` has a row for each run. Columns of the result: by (if given), x, mean, low, high (the 95 % interval), runs
    (their number). Rows are sorted by the columns ``by`` and ``x``: numbers ascending, other values in the order of the
    plan. Runs in which ``y`` is NaN do not count.
    """
    import pandas as pd

    group_columns = [by, x] if by is not None else [x]
    is_a_share = is_share(y, frame[y])
    summary_rows = []
    for group_labels, metric_values in frame.groupby(group_columns, sort=False, observed=True)[y]:
        present_values = [float(value) for value in metric_values.dropna()]
        summary_rows.append((*group_labels, *clipped_interval(present_values, is_a_share), len(present_values)))
    summary_table = pd.DataFrame(summary_rows, columns=[*group_columns, "mean", "low", "high", "runs"])
    for group_column in reversed(group_columns):
        if pd.api.types.is_numeric_dtype(summary_table[group_column]):
            summary_table = summary_table.sort_values(group_column, kind="stable")
        elif group_column == by:
            summary_table = summary_table.sort_values(
                group_column, kind="stable", key=_make_sort_key(summary_table[group_column])
            )
    return summary_table.reset_index(drop=True)


def is_share(metric: str, values: pd.Series) -> bool:
    """Return whether a metric is a share (0 to 1), judged by the last word of its name and by its values.

    Names of shares are, for example, delivery_ratio, coverage and zone_share. A metric with a value above 1 is not a
    share, whatever its name: a user's own ratio may have another range.
    """
    return metric.rpartition("_")[2] in _SHARES and not (values > 1).any()


def _make_sort_key(column: pd.Series) -> Any:
    """Return a sort key for pandas: the order in which values first occur in the column."""
    position_by_value = {value: index for index, value in enumerate(column.unique())}
    return lambda values: values.map(position_by_value)


def interval(values: list[float]) -> tuple[float, float, int]:
    """Return (mean, half the width of its 95 % confidence interval, number of values).

    Without values the mean is NaN. With fewer than two values the half-width is NaN.
    """
    runs = len(values)
    if runs == 0:
        return math.nan, math.nan, 0
    mean = math.fsum(values) / runs
    if runs == 1:
        return mean, math.nan, 1
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (runs - 1))
    return mean, student_t(runs - 1) * deviation / math.sqrt(runs), runs


def clipped_interval(values: list[float], is_a_share: bool) -> tuple[float, float, float]:
    """Return (mean, low, high); low and high bound the mean with 95 % confidence, clipped to the metric's range.

    With ``is_a_share`` the range is [0, 1]. Otherwise the range is [0, infinity), or all numbers if a value is
    negative. The bounds are NaN for fewer than two values.
    """
    mean, half_width, _ = interval(values)
    low, high = mean - half_width, mean + half_width
    if low < 0 and (is_a_share or min(values) >= 0):
        low = 0.0
    return mean, low, 1.0 if is_a_share and high > 1 else high


def share_interval(values: list[float]) -> tuple[float, float, float]:
    """Return (mean, low, high) of values from 0 to 1; low and high are the mean's 95 % interval, clipped to [0, 1]."""
    return clipped_interval(values, True)

"""Figures of TinyMQ's evaluation: metrics against the number of trees, and checks of the paper's trends.

    trees_chart(table, y)            means over networks in 95 % confidence bands, a line for each value of ``by``
    trend_table(table, metrics)      change of each metric from the fewest trees to the most, paired by network
    trend_sentences(trends)          the rows of a trend table as sentences
    printed_losses(table)            shares of matching events that are lost, and of event copies that run in circles

A table is the result of a sweep over "protocol.roots" as {"1": (0,), "4": (0, 1, 2, 3), ...}: the labels are the
numbers of trees. It may be a list of such results, for example if one protocol was run with fewer numbers of trees.

Theory of operation
    A trend is paired: for each network, the metric with the fewest trees is subtracted from the metric with the most.
    The table has the mean of these differences and its 95 % interval (Student's t). If the interval lies below 0, the
    metric "falls"; above 0, it "rises"; if it contains 0, or with a single network, the question is "open".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError
from workbench.sweeps.table import chart_lines
from workbench.views.carried import carries_sweep
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

ROOTS, TREES = "protocol.roots", "trees"
Only = Mapping[str, Any] | None
_TREND = ("from_trees", "to_trees", "fewest", "most", "change", "low", "high", "networks", "lower", "verdict")

# Labels of metrics at an axis.
_LABELS = {
    "stored_per_tree": "nodes storing a query, per tree",
    "stored_per_query": "nodes storing a query, all trees",
    "hops_own_tree": "hops to the nodes that store a query",
    "hops_all_trees": "hops to the nodes that store a query, all trees",
    "stretch": "hops of the first notification / shortest path",
    "event_hops": "frames sent for an event",
    "notification_hops": "notifications' frames for an event",
    "relays_busiest": "relays for an event, busiest node",
    "traffic_busiest": "frames for an event, busiest node",
    "rekeyed_nodes": "nodes with another key",
    "moved_nodes": "nodes with other distances",
    "affected_nodes": "nodes with another key or distance",
    "wall_s": "time of a run (s)",
}


def trees_chart(
    table: Any,
    y: str,
    by: str | None = "protocol",
    only: Only = None,
    paper: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    **labels: Any,
) -> Drawing:
    """Chart a metric against the number of trees, with a line for each value of ``by``.

    ``only`` selects rows by the value of a column: {"protocol": "TinyMQ"}. ``paper`` adds lines without a band as
    {name: [(trees, value), ...]}. ``labels``: titles and axis labels, the keywords of `line_chart`. Raises
    ParameterError for a column that the sweep does not have.
    """
    from workbench.sweeps import means

    frame = _frame(table, only, (y, *([by] if by else [])))
    summary = means.summary(frame, TREES, y, by)
    series = chart_lines(summary, TREES, by)
    for name, points in (paper or {}).items():
        series.append({"name": name, "x": [x for x, _ in points], "y": [value for _, value in points]})
    note = f"mean and 95 % confidence interval over {int(summary['runs'].min())} networks"
    note += min((sweep.radio_note for sweep in _tables(table)), key=len)  # "" if any of them has another radio
    usual = {"x_label": "trees", "y_label": _LABELS.get(y, y.replace("_", " ")), "note": note}
    return carries_sweep(table, line_chart(series, **{**usual, **labels}), y)


def trend_table(table: Any, metrics: Sequence[str], by: str | None = None, only: Only = None) -> pd.DataFrame:
    """Tabulate the change of each metric from the fewest trees to the most, for each value of ``by``.

    A row has the columns metric, by (if given), from_trees and to_trees. The columns fewest and most are the means at
    these two numbers of trees. The column change is the mean difference, and low and high are its 95 % interval. The
    column networks is the number of networks, and lower the number of those in which the metric falls. The column
    verdict is "falls", "rises" or "open". Networks without both values are left out.
    """
    import pandas as pd

    from workbench.sweeps.means import interval

    frame = _frame(table, only, (*metrics, *([by] if by else [])))
    others = [axis for axis in _tables(table)[0].axes if axis not in (ROOTS, by)]
    rows = []
    for metric in metrics:
        for name, rows_of_name in frame.groupby(by, sort=False) if by else [(None, frame)]:
            wide = rows_of_name.pivot_table(index=others or "seed", columns=TREES, values=metric, observed=True)
            trees = wide.columns.min(), wide.columns.max()
            ends = wide[list(trees)].dropna()
            change = (ends.iloc[:, 1] - ends.iloc[:, 0]).tolist()
            mean, half, networks = interval(change)
            low, high = mean - half, mean + half
            lower = sum(difference < 0 for difference in change)
            values = (*trees, *ends.mean().tolist(), mean, low, high, networks, lower, _verdict(low, high))
            rows.append((metric, *([name] if by else []), *values))
    return pd.DataFrame(rows, columns=["metric", *([by] if by else []), *_TREND])


def trend_sentences(trends: pd.DataFrame) -> list[str]:
    """Return a sentence for each row of a `trend_table`: "stretch (TinyMQ) falls from 2.10 with 1 to 1.40 with 10 trees
    (95 % interval of the change: -0.80 to -0.60)"."""
    names = [column for column in trends.columns if column not in ("metric", *_TREND)]
    sentences = []
    for row in trends.to_dict("records"):
        subject = " ".join([row["metric"].replace("_", " "), *(f"({row[name]})" for name in names)])
        trend = (
            f"is open: {row['fewest']:.2f}"
            if row["verdict"] == "open"
            else f"{row['verdict']} from {row['fewest']:.2f}"
        )
        trees = f"with {row['from_trees']} to {row['most']:.2f} with {row['to_trees']} trees"
        spread = f"95 % interval of the change: {row['low']:+.2f} to {row['high']:+.2f}"
        sentences.append(f"{subject} {trend} {trees} ({spread})")
    return sentences


def _verdict(low: float, high: float) -> str:
    if high < 0:
        return "falls"
    return "rises" if low > 0 else "open"


def printed_losses(table: Any, by: str = "protocol") -> pd.DataFrame:
    """Tabulate the shares of lost and of looping events: mean, smallest and largest over the networks.

    The sweep needs ``measure=load_metrics``. Columns: by, trees, lost, lost_least, lost_most (shares of the expected
    deliveries), looping, looping_least, looping_most (shares of the event copies, one copy for each tree).
    """
    frame = _frame(table, None, ("events_published", "delivery_ratio", by))
    frame["lost"] = 1 - frame["delivery_ratio"]
    frame["looping"] = frame.get("dropped_loop", 0.0) / (frame["events_published"] * frame[TREES])
    shares = frame.groupby([by, TREES], sort=False)[["lost", "looping"]].agg(["mean", "min", "max"])
    suffixes = {"mean": "", "min": "_least", "max": "_most"}
    shares.columns = [name + suffixes[statistic] for name, statistic in shares.columns]
    return shares.reset_index()


def _tables(table: Any) -> list[Any]:
    return list(table) if isinstance(table, (list, tuple)) else [table]


def _frame(table: Any, only: Only, columns: Sequence[str]) -> pd.DataFrame:
    """Return the selected rows of the sweeps, with the number of trees as an integer column."""
    import pandas as pd

    frame = pd.concat([sweep.to_pandas() for sweep in _tables(table)], ignore_index=True)
    for column in (ROOTS, *columns, *(only or {})):
        if column not in frame:
            raise ParameterError(
                f"the sweep has no column {column!r}; its columns are {', '.join(map(str, frame.columns))}"
            )
    for column, value in (only or {}).items():
        frame = frame[frame[column] == value]
    if frame.empty:
        raise ParameterError(f"`only` is {only}; no row of the sweep has these values")
    try:
        return frame.assign(**{TREES: [int(label) for label in frame[ROOTS]]})
    except ValueError:
        raise ParameterError(
            f"{ROOTS} has the value {frame[ROOTS].iloc[0]!r}; label each value with its number of roots, as in "
            'over={"protocol.roots": {"1": (0,), "2": (0, 1)}}'
        ) from None

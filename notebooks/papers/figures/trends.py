"""Figures of TinyMQ's evaluation: metrics against the number of trees, and whether what is said of them holds.

    trees_chart(table, y)            means over networks in 95 % confidence bands, a line for each value of ``by``
    trend_table(table, metrics)      what becomes of a metric from the fewest trees to the most, network by network
    trend_sentences(trends)          the same in words
    printed_losses(table)            matching events that are lost, and copies of events that run in circles

A table is a sweep's, over "protocol.roots" as {"1": (0,), "4": (0, 1, 2, 3), ...}: the labels are the numbers of trees.
Several sweeps that vary the same may be given as a list, as when one protocol was run with fewer numbers of trees.

Theory of operation
    A trend is paired: in each network the metric with the most trees minus that with the fewest. Of these differences
    there are the mean and its 95 % interval (Student's t). Where the interval lies below 0 the metric "falls", above 0
    it "rises"; where it has 0 in it the question is "open", as it is with a single network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError
from workbench.sweeps.table import chart_lines
from workbench.views.carried import carries_sweep
from workbench.views.chart import line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

ROOTS, TREES = "protocol.roots", "trees"
Only = Mapping[str, Any] | None
_TREND = ("from_trees", "to_trees", "fewest", "most", "change", "low", "high", "networks", "lower", "verdict")

# What metrics are called at an axis.
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
    **look: Any,
) -> Drawing:
    """A metric against the number of trees, a line for each value of ``by``.

    ``only`` keeps the rows in which a column has a value: {"protocol": "TinyMQ"}. ``paper`` adds lines without a band,
    name -> [(trees, value)]; ``look``: titles and labels as `line_chart` takes them. Raises ParameterError for a column
    that the sweep does not have.
    """
    from workbench.sweeps import means

    frame = _frame(table, only, (y, *([by] if by else [])))
    summary = means.summary(frame, TREES, y, by)
    series = chart_lines(summary, TREES, by)
    for name, points in (paper or {}).items():
        series.append({"name": name, "x": [x for x, _ in points], "y": [value for _, value in points]})
    note = f"mean and 95 % confidence interval over {int(summary['runs'].min())} networks"
    note += min((one.radio_note for one in _tables(table)), key=len)  # "" if any of them has another radio
    usual = {"x_label": "trees", "y_label": _LABELS.get(y, y.replace("_", " ")), "note": note}
    return carries_sweep(table, line_chart(series, **{**usual, **look}), y)


def trend_table(table: Any, metrics: Sequence[str], by: str | None = None, only: Only = None) -> pd.DataFrame:
    """From the fewest trees to the most: how each metric changes, for each value of ``by``.

    Columns: metric, by (if given), from_trees, to_trees, fewest, most (means at these two), change, low, high (of the
    mean difference), networks, lower (in how many of them the metric falls), verdict ("falls", "rises" or "open").
    Networks that lack one of the two values are left out.
    """
    import pandas as pd

    from workbench.sweeps.means import interval

    frame = _frame(table, only, (*metrics, *([by] if by else [])))
    others = [axis for axis in _tables(table)[0].axes if axis not in (ROOTS, by)]
    rows = []
    for metric in metrics:
        for names, some in frame.groupby(by, sort=False) if by else [(None, frame)]:
            wide = some.pivot_table(index=others or "seed", columns=TREES, values=metric, observed=True)
            trees = wide.columns.min(), wide.columns.max()
            ends = wide[list(trees)].dropna()
            change = (ends.iloc[:, 1] - ends.iloc[:, 0]).tolist()
            mean, half, networks = interval(change)
            low, high = mean - half, mean + half
            lower = sum(one < 0 for one in change)
            told = (*trees, *ends.mean().tolist(), mean, low, high, networks, lower, _verdict(low, high))
            rows.append((metric, *([names] if by else []), *told))
    return pd.DataFrame(rows, columns=["metric", *([by] if by else []), *_TREND])


def trend_sentences(trends: pd.DataFrame) -> list[str]:
    """A `trend_table` in words, a sentence for each row: "stretch (TinyMQ) falls from 2.10 with 1 to 1.40 with 10 trees
    (95 % interval of the change: -0.80 to -0.60)"."""
    names = [column for column in trends.columns if column not in ("metric", *_TREND)]
    sentences = []
    for row in trends.to_dict("records"):
        what = " ".join([row["metric"].replace("_", " "), *(f"({row[name]})" for name in names)])
        how = (
            f"is open: {row['fewest']:.2f}"
            if row["verdict"] == "open"
            else f"{row['verdict']} from {row['fewest']:.2f}"
        )
        trees = f"with {row['from_trees']} to {row['most']:.2f} with {row['to_trees']} trees"
        spread = f"95 % interval of the change: {row['low']:+.2f} to {row['high']:+.2f}"
        sentences.append(f"{what} {how} {trees} ({spread})")
    return sentences


def _verdict(low: float, high: float) -> str:
    if high < 0:
        return "falls"
    return "rises" if low > 0 else "open"


def printed_losses(table: Any, by: str = "protocol") -> pd.DataFrame:
    """What is lost and what runs in circles: mean, smallest and largest share over networks.

    The sweep needs ``measure=load_metrics``. Columns: by, trees, lost, lost_least, lost_most (of what should have come
    to the sinks), looping, looping_least, looping_most (of the copies of events, one for each tree).
    """
    frame = _frame(table, None, ("events_published", "delivery_ratio", by))
    frame["lost"] = 1 - frame["delivery_ratio"]
    frame["looping"] = frame.get("dropped_loop", 0.0) / (frame["events_published"] * frame[TREES])
    shares = frame.groupby([by, TREES], sort=False)[["lost", "looping"]].agg(["mean", "min", "max"])
    words = {"mean": "", "min": "_least", "max": "_most"}
    shares.columns = [name + words[which] for name, which in shares.columns]
    return shares.reset_index()


def _tables(table: Any) -> list[Any]:
    return list(table) if isinstance(table, (list, tuple)) else [table]


def _frame(table: Any, only: Only, columns: Sequence[str]) -> pd.DataFrame:
    """The sweep's rows with the number of trees as a column of numbers."""
    import pandas as pd

    frame = pd.concat([one.to_pandas() for one in _tables(table)], ignore_index=True)
    for column in (ROOTS, *columns, *(only or {})):
        if column not in frame:
            raise ParameterError(f"the sweep has no {column}; it has {', '.join(map(str, frame.columns))}")
    for column, value in (only or {}).items():
        frame = frame[frame[column] == value]
    if frame.empty:
        raise ParameterError(f"the sweep has no row in which {only}")
    try:
        return frame.assign(**{TREES: [int(label) for label in frame[ROOTS]]})
    except ValueError:
        raise ParameterError(
            f"{ROOTS} has the value {frame[ROOTS].iloc[0]!r}; name its values by how many they are, as in "
            'over={"protocol.roots": {"1": (0,), "2": (0, 1)}}'
        ) from None

"""The table of a sweep's results: one row per point, in the order of the plan."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.errors import ParameterError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.sim.metrics import COMMON
from workbench.sim.radio import is_ideal, knows_links, own_retries
from workbench.sim.runner import run
from workbench.suggestion import meant
from workbench.sweeps import means
from workbench.sweeps.plan import Plan
from workbench.sweeps.store.stored_rows import PointRows, rows_of_list
from workbench.sweeps.work import Row, version_in

if TYPE_CHECKING:
    import pandas as pd

    from workbench.sim.run import Run

_ROWS_SHOWN = 10


@extensible
@checked
class SweepTable:
    """A table of a sweep's results, one row per point.

    Its methods are ``to_pandas()``, ``summary(x, y)`` and ``plot(x, y)``; ``failed`` has the points that failed.
    """

    def __init__(self, plan: Plan, rows: Sequence[Row]) -> None:
        self.plan = plan
        self.rows = rows if isinstance(rows, PointRows) else rows_of_list(plan, rows)

    @property
    def axes(self) -> tuple[str, ...]:
        """The paths of the varied parameters, such as "protocol.ttl"."""
        return self.plan.paths

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The names of all metrics: first those that every run has, in the order of `COMMON`, then others by name."""
        names = self.rows.metric_names
        return (*(name for name in COMMON if name in names), *sorted(names - set(COMMON)))

    @cached_property
    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        # All points at once are faster than each by itself.
        numbers = None if self.rows.numbers == range(len(self.plan)) else self.rows.numbers
        columns: dict[str, Any] = {
            "point": self.plan.point_keys(numbers),
            **self.plan.design.label_columns(numbers),
            "seed": self.rows.seeds(),
            "scenario": self.rows.cells("scenario"),
            "engine": self.rows.cells("engine"),
            "version": [version_in(versions) for versions in self.rows.cells("versions")],
            "wall_s": np.array(self.rows.cells("wall_s"), float),
            "error": self.rows.cells("error"),
            **{name: self.rows.metric(name) for name in self.metrics},
        }
        return pd.DataFrame(columns)

    @property
    def varied(self) -> list[str]:
        """The paths of the parameters that have more than one value in this table."""
        return [path for path in self.axes if self._frame[path].nunique(dropna=False) > 1]

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame with one row per point.

        Columns: point, each axis, seed, scenario (hash), engine, version, wall_s, error, each metric. ``version`` is
        the version of the workbench that ran the point. ``error`` is None, or the reason for a failure; then metrics
        are NaN.
        """
        return self._frame.copy()

    @property
    def failed(self) -> pd.DataFrame:
        """A pandas DataFrame of the points that failed: their point key, axes, seed and error."""
        frame = self._frame
        return frame.loc[frame["error"].notna(), ["point", *dict.fromkeys((*self.axes, "seed")), "error"]]

    def summary(self, x: str, y: str = "delivery_ratio", by: str | None = None) -> pd.DataFrame:
        """Return the mean of the metric ``y`` for each value of ``x`` (and ``by``), with its 95 % interval.

        ``x`` and ``by`` are varied parameters, by their paths ("radio.loss") or by their names in a folder of results
        ("radio_loss"); the mean is over all other parameters.
        Columns: by (if given), x, mean, low, high, runs. The interval of a single run is NaN.
        """
        x, by = self.path_of(x), None if by is None else self.path_of(by)
        self._check_axes(x, y, by)
        return means.summary(self._frame, x, y, by)

    @cached_property
    def digest(self) -> str:
        """A digest (16 hex digits) of the keys of this table's points: equal for tables of the same points."""
        return hashlib.sha256("".join(self._frame["point"]).encode()).hexdigest()[:16]

    def averaged_rows(self, groups: pd.DataFrame, columns: Sequence[str]) -> list[list[int]]:
        """Return a list with, for each row of ``groups``, the indices (from 0) of this table's rows that belong to it.

        ``groups`` is a table such as a summary, with a row for each combination of values of the parameters
        ``columns``. The rows of this table with the same combination belong to it.
        """
        rows_by_key = self._frame.groupby(list(columns), sort=False, observed=True, dropna=False).indices
        keys = groups[list(columns)].itertuples(index=False, name=None)
        return [rows_by_key[key if len(columns) > 1 else key[0]].tolist() for key in keys]

    def run(self, row: int) -> Run:
        """Repeat the run of row number ``row`` (from 0) of this table, and return the run with its trace.

        Raises ParameterError if the table has no such row, and the error of the scenario if the scenario is invalid.
        """
        if not 0 <= row < len(self.rows):
            raise ParameterError(f"the argument `row` is {row!r:.60}; it must be from 0 to {len(self.rows) - 1}")
        return run(self.plan.scenario_of(self.rows[row].number), self.plan.engine)

    def path_of(self, name: str) -> str:
        """Return the path of the varied parameter that has the column ``name`` in a folder of results.

        Returns ``name`` itself if no varied parameter has this column.
        """
        paths = {path.replace(".", "_"): path for path in self.axes}
        return paths.get(name, name)

    def name_of(self, column: str) -> str:
        """Return the name that charts show for an axis or metric, with its unit: "protocol.ttl" -> "ttl (hops)"."""
        return name_of(column, self.plan)

    @cached_property
    def radio_note(self) -> str:
        """The remarks on radio, link qualities and retries that a chart adds to its note; "" without remarks."""
        return radio_note(self.plan)

    def _check_axes(self, x: str, y: str, by: str | None) -> None:
        varied_paths = tuple(dict.fromkeys((*self.axes, "seed")))
        for axis_path in (x,) if by is None else (x, by):
            if axis_path not in varied_paths:
                raise ParameterError(
                    f"{axis_path!r} was not varied in this sweep{meant(axis_path, varied_paths)}; "
                    f"its axes are {', '.join(varied_paths)}"
                )
        if x == by:
            raise ParameterError(f"the arguments `x` and `by` are both {x!r}; they must be different")
        metric_names = ("wall_s", *self.metrics)
        if y not in metric_names:
            raise ParameterError(
                f"{y!r} is not a metric of this sweep{meant(y, metric_names)}; "
                f"its metrics are {', '.join(metric_names)}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        failed_points = int(self.rows.is_failed.sum())
        text = f"SweepTable({len(self)} points over {', '.join(self.axes)}; {len(self.metrics)} metrics"
        return (
            text + (f"; {failed_points} failed)" if failed_points else ")") + ": to_pandas(), summary(x, y), plot(x, y)"
        )

    def _repr_html_(self) -> str:
        hidden_columns = [name for name in ("point", "scenario", "engine", "version", "wall_s") if name in self._frame]
        if not len(self.failed):
            hidden_columns.append("error")
        table = self._frame.drop(columns=hidden_columns).head(_ROWS_SHOWN).to_html(index=False, border=0, na_rep="–")
        shown_note = f", the first {_ROWS_SHOWN} of them here" if len(self) > _ROWS_SHOWN else ""
        return f"<p>{escape(repr(self))}{shown_note}</p>{table}"


_UNITS = (
    ("_uJ_per_B", "µJ/B"),
    ("_bps", "bit/s"),
    ("_mJ", "mJ"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_s", "s"),
    ("_B", "B"),
    ("_m", "m"),
)
_NAMES = {
    "radio.loss": "loss (share of frames)",
    "latency_ms_p50": "median latency (ms)",
    "latency_ms_p95": "95th percentile of latency (ms)",
    "bytes_sent": "sent (B)",
    "wall_s": "wall time of a run (s)",
}


class Texts(NamedTuple):
    """The texts of a chart: names of the axes, title of the legend ("" without one), and note under the title."""

    x: str
    y: str
    by: str
    note: str


def chart_texts(plan: Plan, varied: Iterable[str], x: str, y: str, by: str | None) -> Texts:
    """Return the texts of a chart of means of ``y`` over ``x``, with a line for each value of ``by``.

    ``varied`` has the paths of the parameters that have more than one value in the sweep of ``plan``. The note names
    the paths over which the means are computed: all of ``varied`` except ``x`` and ``by``.
    """
    averaged_paths = [path for path in varied if path not in (x, by)]
    averaged_text = " and ".join(path.rpartition(".")[2].replace("_", " ") for path in averaged_paths)
    note = (
        f"mean and 95 % confidence interval over {averaged_text}" if averaged_paths else "one run each"
    ) + radio_note(plan)
    return Texts(name_of(x, plan), name_of(y, plan), "" if by is None else name_of(by, plan), note)


def radio_note(plan: Plan) -> str:
    """Return remarks on the conditions of the runs for a chart's note; "" if no remark applies.

    One remark states that the radio is ideal. Another names the protocols that read the true link qualities, as no
    real node can. The last one states how often each protocol itself repeats a frame.
    """
    paths = [path for path in plan.paths if path.partition(".")[0] in ("protocol", "radio", "topology")]
    point_numbers = plan.design.probes() if paths else [0]
    # One point for each radio, network and protocol, because building a scenario takes time.
    distinct_points = {tuple(str(plan.labels(number)[path]) for path in paths): number for number in point_numbers}
    scenarios = [plan.scenario_of(number) for number in distinct_points.values()]
    has_ideal_radio = all(
        is_ideal(scenario.radio, other_scenario.topology) for scenario in scenarios for other_scenario in scenarios
    )
    oracle_names = {
        type(scenario.protocol).__name__
        for scenario in scenarios
        if knows_links(scenario.radio, scenario.protocol, scenario.topology)
    }
    oracle_text = f"; {' and '.join(sorted(oracle_names))}: link qualities known (an oracle)" if oracle_names else ""
    names_and_retries = {(type(scenario.protocol).__name__, own_retries(scenario.protocol)) for scenario in scenarios}
    retries_text = ", ".join(f"{name} {count}" for name, count in sorted(names_and_retries) if count)
    return (
        ("; ideal radio (no loss, no collision)" if has_ideal_radio else "")
        + oracle_text
        + (f"; own retries: {retries_text}" if retries_text else "")
    )


def name_of(column: str, plan: Plan) -> str:
    """Return a column's name for a chart's axis, with its unit if known: "protocol.ttl" -> "ttl (hops)"."""
    if column in _NAMES:
        return _NAMES[column]
    plain_name = column.rpartition(".")[2]
    unit = _parameter_unit(column, plan)
    for suffix, meaning in _UNITS:
        if plain_name.endswith(suffix):
            plain_name, unit = plain_name.removesuffix(suffix), meaning
            break
    name_text = plain_name.replace("_", " ")
    return f"{name_text} ({unit})" if unit else name_text


def _parameter_unit(column: str, plan: Plan) -> str:
    section, _, name = column.partition(".")
    if section != "protocol":
        return ""
    for protocol in (plan.scenario.protocol, *plan.protocols):
        units: dict[str, str] = {parameter.name: parameter.unit for parameter in protocol.parameters}
        if name in units:
            return units[name]
    return ""


def chart_lines(
    summary: pd.DataFrame, x: str, by: str | None, run_numbers: Sequence[Sequence[int]] = ()
) -> list[dict[str, Any]]:
    """Return the lines of a chart, one per value of ``by``: dicts with name, x, y, low and high for `views.line_chart`.

    ``summary`` is a table that `SweepTable.summary` returned. ``run_numbers`` is the result of
    `SweepTable.averaged_rows`; only charts in which a click on a point opens a run need it.

    Raises ParameterError if ``x`` is not numeric.
    """
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(summary[x]) or pd.api.types.is_bool_dtype(summary[x]):
        raise ParameterError(
            f"{x} has the value {summary[x][0]!r}; lines need numbers on the x axis, so use plot() instead"
        )
    columns = {"x": x, "y": "mean", "low": "low", "high": "high"}
    numbers = dict(zip(summary.index, run_numbers, strict=False))
    return [
        {
            "name": str(name),
            **{key: rows[column].tolist() for key, column in columns.items()},
            "ids": {"runs": [numbers[row] for row in rows.index]} if numbers else {},
        }
        for name, rows in (summary.groupby(by, sort=False) if by is not None else [("", summary)])
    ]

"""What a chart of a sweep's summary is called, and its lines. Numbers are worked out by `workbench.sweeps.means`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.errors import ParameterError
from workbench.sim.radio import is_ideal
from workbench.sweeps.plan import Plan

if TYPE_CHECKING:
    import pandas as pd

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
    """What stands at the axes, over the legend ("" without one) and under the title."""

    x: str
    y: str
    by: str
    note: str


def texts(plan: Plan, varied: Iterable[str], x: str, y: str, by: str | None) -> Texts:
    """The words of a chart of ``summary``; ``varied``: the paths that have more than one value."""
    others = [path for path in varied if path not in (x, by)]
    over = " and ".join(path.rpartition(".")[2].replace("_", " ") for path in others)
    note = (f"mean and 95 % confidence interval over {over}" if others else "one run each") + radio_note(plan)
    return Texts(name_of(x, plan), name_of(y, plan), "" if by is None else name_of(by, plan), note)


def radio_note(plan: Plan) -> str:
    """Return the text to add to a chart's note if all runs have an ideal radio, or ""."""
    paths = [path for path in plan.paths if path.partition(".")[0] in ("radio", "topology")]
    numbers = plan.design.probes() if paths else [0]
    # Each choice of a radio and a network once: a point's scenario takes time to build.
    chosen = {tuple(str(plan.labels(number)[path]) for path in paths): number for number in numbers}
    scenarios = [plan.scenario_of(number) for number in chosen.values()]
    ideal = all(is_ideal(one.radio, other.topology) for one in scenarios for other in scenarios)
    return "; ideal radio (no loss, no collision)" if ideal else ""


def name_of(column: str, plan: Plan) -> str:
    """A column's name for an axis, with its unit where it is known: "protocol.ttl" -> "ttl (hops)"."""
    if column in _NAMES:
        return _NAMES[column]
    name = column.rpartition(".")[2]
    unit = _parameter_unit(column, plan)
    for suffix, meaning in _UNITS:
        if name.endswith(suffix):
            name, unit = name.removesuffix(suffix), meaning
            break
    text = name.replace("_", " ")
    return f"{text} ({unit})" if unit else text


def _parameter_unit(column: str, plan: Plan) -> str:
    head, _, name = column.partition(".")
    if head != "protocol":
        return ""
    for protocol in (plan.scenario.protocol, *plan.protocols):
        units: dict[str, str] = {parameter.name: parameter.unit for parameter in protocol.parameters}
        if name in units:
            return units[name]
    return ""


def series(summary: pd.DataFrame, x: str, by: str | None) -> list[dict[str, Any]]:
    """Lines (name, x, y, low, high) of a summary, for `views.line_chart`; ParameterError if ``x`` is no number."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(summary[x]) or pd.api.types.is_bool_dtype(summary[x]):
        raise ParameterError(f"a line needs numbers along x and {x} has others, such as {summary[x][0]!r}; plot() can")
    columns = {"x": x, "y": "mean", "low": "low", "high": "high"}
    return [
        {"name": str(name), **{key: rows[column].tolist() for key, column in columns.items()}}
        for name, rows in (summary.groupby(by, sort=False) if by is not None else [("", summary)])
    ]

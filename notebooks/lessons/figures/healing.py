"""Healing after faults: readings that arrived or were lost over time, the time to heal, and what healing costs.

    readings(run)                            when each expected reading was published, and whether it arrived
    healing_s(run, from_s, until_s)          the time from a fault, or from its end, to steady readings
    healing_table(runs, intervals_s)         the healing times of several runs
    arrival_rows(runs, faults_s)             a row for each run: a mark for each reading, arrived or lost
    frames_per_reading(matrix),
    charge_per_reading(matrix)               frames and charge per delivered reading, by protocol and fault
    reasons(matrix, cells)                   why readings were lost, as wrapped text
    trade_off(matrix, fault)                 readings lost in a fault, against frames per reading without a fault

Theory of operation
    A *gap* is a series of at least `GAP` successive readings that were all lost. A frame that is lost in a collision
    rarely causes a gap. The healing time ends with the first reading after the last gap. It is 0 without a gap, and
    infinite if the last gap lasts to the end of the interval.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from workbench.analysis.expected import NEVER, expected
from workbench.errors import ParameterError
from workbench.sim.rows import Columns
from workbench.sim.run import Run
from workbench.sweeps.faults import FaultMatrix
from workbench.views import palette
from workbench.views.carried import carries_record, carries_sweep
from workbench.views.charts.description import Series
from workbench.views.charts.static import Chart, line_chart
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

GAP = 3  # readings

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW = 860, 96, 20, 62, 26
_TICKS_S = 20
_COLUMNS = 110  # of a line of text
_PERIOD_OF_FAULT = "during"


def readings(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return (published_s, has_arrived): arrays with an element for each expected reading, in order of time."""
    expectations = expected(run.scenario, Columns(run.trace))
    pairs = expectations.pairs
    is_expected = pairs.hops >= 0
    published_s = expectations.publications.time_us[pairs.publication[is_expected]] / 1e6
    has_arrived = pairs.delivery[is_expected] != NEVER
    order = np.argsort(published_s, kind="stable")
    return published_s[order], has_arrived[order]


def healing_s(run: Run, from_s: float, until_s: float | None = None) -> float:
    """Return the time in s from ``from_s`` to the end of the last gap, as the docstring of this module defines it.

    Only readings published before ``until_s`` count (None: all until the end of the run).
    """
    published_s, has_arrived = readings(run)
    is_in = (published_s >= from_s) & (published_s < (math.inf if until_s is None else until_s))
    published_s, is_lost = published_s[is_in], ~has_arrived[is_in]
    steps = np.diff(is_lost.astype(int), prepend=0, append=0)
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    ends = ends[ends - starts >= GAP]
    if not len(ends):
        return 0.0
    return math.inf if ends[-1] == len(is_lost) else float(published_s[ends[-1]] - from_s)


def healing_table(runs: Mapping[str, list[Run]], intervals_s: Mapping[str, tuple[float, float | None]]) -> pd.DataFrame:
    """Return a row for each protocol with its healing times in s, and a column for each interval.

    ``runs``: {protocol: its runs}. ``intervals_s``: {name of the column: (from_s, until_s)}. A cell lists the healing
    times of the runs, in ascending order.
    """
    import pandas as pd

    cells = {
        name: {
            protocol: ", ".join(f"{time_s:.0f}" for time_s in sorted(healing_s(run, *interval) for run in runs_of))
            for protocol, runs_of in runs.items()
        }
        for name, interval in intervals_s.items()
    }
    return pd.DataFrame(cells)


@carries_record
def arrival_rows(runs: Mapping[str, Run], faults_s: Mapping[str, tuple[float, float]]) -> Drawing:
    """Draw a row for each run, with a mark for each expected reading at the time of its publication.

    ``runs``: {name of the row: run}; all runs have the same duration. ``faults_s``: {label: (begin, end)}.
    """
    if not runs:
        raise ParameterError("runs is empty; it must have at least one run")
    duration_s = next(iter(runs.values())).scenario.duration_s
    bottom = _TOP + _ROW * len(runs)
    drawing = Drawing(_WIDTH, bottom + 44, title="Readings that arrived, and readings that were lost")

    def x_of(time_s: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * time_s / duration_s

    drawing.text(12, 22, drawing.title, size=13, bold=True)
    for label, (begin_s, end_s) in faults_s.items():
        left, right = x_of(begin_s), x_of(end_s)
        drawing.rectangle(left, _TOP - 4, right - left, bottom - _TOP + 4, fill=palette.GRID, stroke=palette.GRID)
        drawing.text((left + right) / 2, _TOP - 10, label, size=10.5, anchor="middle", colour=palette.FAINT_TEXT)
    for number, (name, run) in enumerate(runs.items()):
        top = _TOP + _ROW * number
        drawing.text(_LEFT - 8, top + 15, name, size=11.5, anchor="end")
        for time_s, has_arrived in zip(*(column.tolist() for column in readings(run)), strict=True):
            colour, height = (palette.DELIVERED, 8) if has_arrived else (palette.LOST, 16)
            x, middle = x_of(time_s), top + 11
            drawing.segment(x, middle - height / 2, x, middle + height / 2, colour=colour, width=2)
    for time_s in range(0, int(duration_s) + 1, _TICKS_S):
        drawing.text(x_of(time_s), bottom + 14, f"{time_s}", size=9.5, anchor="middle", colour=palette.FAINT_TEXT)
    center_x = (_LEFT + _WIDTH - _RIGHT) / 2
    drawing.text(center_x, bottom + 32, "published at (s)", size=10.5, anchor="middle", colour=palette.FAINT_TEXT)
    _draw_legend(drawing)
    return drawing


def _draw_legend(drawing: Drawing) -> None:
    for x, label, colour, height in ((640, "arrived", palette.DELIVERED, 8), (722, "lost", palette.LOST, 16)):
        drawing.segment(x, 18 - height / 2, x, 18 + height / 2, colour=colour, width=2)
        drawing.text(x + 8, 22, label, size=10.5, colour=palette.FAINT_TEXT)


def frames_per_reading(matrix: FaultMatrix) -> pd.DataFrame:
    """Return the frames sent for each delivered reading: a row for each protocol, a column for each fault."""
    return _per_reading(matrix, "transmissions")


def charge_per_reading(matrix: FaultMatrix) -> pd.DataFrame:
    """Return the mean charge of a node in mC for each delivered reading: rows are protocols, columns are faults."""
    return _per_reading(matrix, "charge_mC")


def _per_reading(matrix: FaultMatrix, metric: str) -> pd.DataFrame:
    """Return a metric's sum over all seeds, divided by the readings delivered: rows are protocols, columns faults."""
    totals = matrix.runs.to_pandas().groupby(["protocol", "workload"], sort=False)[[metric, "delivered"]].sum()
    per_reading = (totals[metric] / totals["delivered"]).unstack("workload").loc[matrix.protocols, matrix.faults]
    return per_reading.rename_axis(index=None, columns=None)


def reasons(matrix: FaultMatrix, cells: Iterable[tuple[str, str]]) -> str:
    """Return a text with the most frequent reason for readings lost after the fault, for each (fault, protocol)."""
    paragraphs = []
    for fault, protocol in cells:
        sentences = matrix.why(fault, protocol, most=1) or ["no reading was lost after the fault"]
        text = textwrap.fill(sentences[0], _COLUMNS, initial_indent="    ", subsequent_indent="    ")
        paragraphs.append(f"{protocol}, {fault}:\n{text}")
    return "\n".join(paragraphs)


def trade_off(matrix: FaultMatrix, fault: str) -> Chart:
    """Draw the share of readings lost during ``fault`` against the frames per reading without a fault.

    The matrix's protocols have names of two parts, ``NAME VALUE``, such as "Diffusion 30 s". A line joins the protocols
    with the same NAME.
    """
    frames = frames_per_reading(matrix)["none"]
    points: dict[str, list[tuple[float, float, str]]] = {}
    for protocol in matrix.protocols:
        lost = 100 * (1 - float(matrix.cell(fault, protocol)[_PERIOD_OF_FAULT]))
        tooltip = f"{protocol}: {frames[protocol]:.1f} frames, {lost:.0f} % lost"
        points.setdefault(protocol.split()[0], []).append((float(frames[protocol]), lost, tooltip))
    series = []
    for name, points_of_name in points.items():
        x, y, tooltips = zip(*sorted(points_of_name), strict=True)
        series.append(Series(name, x, y, tooltips=tooltips))
    chart = line_chart(
        series,
        title=f"{fault}: what healing costs",
        x_label="frames for a delivered reading, without a fault",
        y_label="readings lost during the fault (%)",
        width=600,
    )
    return carries_sweep(matrix.runs, chart, _PERIOD_OF_FAULT, "transmissions", "delivered")

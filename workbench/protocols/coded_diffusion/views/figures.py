"""Static figures of how an event spread: maps at several times, coverage against age.

    decoding_maps(run)                     the network colored by rank, at several times side by side
    coverage_chart({"name": run, ...})     share of nodes that hold the event, against its age

Both take an ``event``, (origin, sequence); None means the first event of the run. The data come from `ranks.progress`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.protocols.coded_diffusion.views.ranks import Progress, progress
from workbench.views import palette
from workbench.views.carried import carries_record
from workbench.views.changing_layout import lay_out_scenario
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing, text_width
from workbench.views.event import Event
from workbench.views.layout import Layout

WIDTH = 900
MARGIN = 12.0
GUTTER = 26.0
SMALL = 11.0
MAPS = 8
POINTS = 120


@carries_record
def decoding_maps(
    run: Any,
    times_s: Sequence[float] | None = None,
    event: Event | None = None,
    columns: int = 4,
    width: int = WIDTH,
) -> Drawing:
    """Draw maps of the network at several times of the run, side by side, with nodes colored by rank.

    ``times_s``: the times; None: eight times, from the event's publication to the time when the last node began to hold
    it. ``event``: its (origin, sequence); None: the first event of the run. ``columns``: the largest number of maps in
    a row. ``width``: in pixels. Raises ParameterError if the run has no such event.
    """
    spread, plan = progress(run.trace, event), lay_out_scenario(run.scenario)
    if times_s is None:
        last_us = max(spread.held_us.values(), default=spread.made_us)
        times_s = (np.linspace(spread.made_us, last_us, MAPS) / 1e6).tolist()
    columns = min(columns, len(times_s))
    side_px = (width - 2 * MARGIN - GUTTER * (columns - 1)) / columns
    x0, y0, x1, y1 = plan.box_m
    scale = (side_px - 16) / max(x1 - x0, y1 - y0)
    row_height = scale * (y1 - y0) + 36 + GUTTER
    row_count = -(-len(times_s) // columns)
    drawing = Drawing(width, row_count * row_height + 36, title=f"event {spread.event} spreading")
    for map_index, time_s in enumerate(times_s):
        x, y = MARGIN + (map_index % columns) * (side_px + GUTTER), (map_index // columns) * row_height
        holding_share = len(spread.holders(round(time_s * 1e6))) / max(len(plan.ids), 1)
        age_ms = (time_s - spread.made_us / 1e6) * 1e3
        drawing.text(x, y + 18, f"{age_ms:,.0f} ms", size=SMALL + 1, bold=True)
        drawing.text(
            x + side_px, y + 18, f"{holding_share:.0%} hold it", size=SMALL, anchor="end", colour=palette.FAINT_TEXT
        )
        _draw_map(drawing, plan.at(round(time_s * 1e6)), spread, round(time_s * 1e6), x + 8, y + 34, scale)
    _draw_legend(drawing, spread, row_count * row_height + 18)
    return drawing


def _draw_map(
    drawing: Drawing, plan: Layout, spread: Progress, time_us: int, left: float, top: float, scale: float
) -> None:
    x0, _, _, y1 = plan.box_m
    radius = float(np.clip(0.36 * plan.spacing_m * scale, 1.5, 7))
    ranks, holders = spread.at(time_us), spread.holders(time_us)
    xs, ys = left + scale * (plan.x_m - x0), top + scale * (y1 - plan.y_m)
    for node_a, node_b in zip(plan.links["a"].tolist(), plan.links["b"].tolist(), strict=True):
        drawing.segment(xs[node_a], ys[node_a], xs[node_b], ys[node_b], colour=palette.LINK_POOR, width=0.8)
    for node, x, y in zip(plan.ids.tolist(), xs.tolist(), ys.tolist(), strict=True):
        if node == spread.event[0]:
            drawing.marker("triangle", x, y, 1.3 * radius, palette.SOURCE, palette.OUTLINE, 0.6)
        else:
            drawing.circle(
                x, y, radius, fill=_node_colour(node, spread, ranks, holders), stroke=palette.OUTLINE, width=0.5
            )


def _node_colour(node: int, spread: Progress, ranks: Mapping[int, Any], holders: set[int]) -> str:
    if node in holders:
        return palette.HOLDS
    return palette.rank_colour(ranks[node].value / spread.generation_size) if node in ranks else palette.NODE


def _draw_legend(drawing: Drawing, spread: Progress, y: float) -> None:
    generation_size = spread.generation_size
    ranks = range(1, generation_size) if generation_size <= 5 else (1, generation_size // 2, generation_size - 1)
    entries = [("rank 0", palette.NODE)]
    entries += [(f"rank {rank} of {generation_size}", palette.rank_colour(rank / generation_size)) for rank in ranks]
    entries += [("holds the event", palette.HOLDS)]
    x = MARGIN + 6
    drawing.marker("triangle", x, y - 4, 5.5, palette.SOURCE, palette.OUTLINE, 0.6)
    drawing.text(x + 11, y, "source", size=SMALL)
    x += 30 + text_width("source", SMALL)
    for name, fill in entries:
        drawing.circle(x, y - 4, 5, fill=fill, stroke=palette.OUTLINE, width=0.6)
        drawing.text(x + 11, y, name, size=SMALL)
        x += 30 + 1.06 * text_width(name, SMALL)


@carries_record
def coverage_chart(
    runs: Mapping[str, Any], event: Event | None = None, until_s: float | None = None, width: int = 620
) -> Drawing:
    """Draw the share of nodes that hold an event against its age, with a line for each name.

    ``runs``: name -> a run, or a list of runs (seeds), drawn as their mean with its 95 % confidence band. ``event``:
    its (origin, sequence); None: the first event of each run. ``until_s``: largest age on the axis; None: the largest
    age at which a node first held the event. ``width``: in pixels. Raises ParameterError for a run without such an
    event.
    """
    from workbench.sweeps.means import share_interval

    spreads = {
        name: [(progress(run.trace, event), run.scenario.topology.number_of_nodes()) for run in _as_list(runs_of_name)]
        for name, runs_of_name in runs.items()
    }
    if until_s is None:
        ages = [_duration_s(spread) for runs_of_line in spreads.values() for spread, _ in runs_of_line]
        until_s = max(ages, default=1.0) or 1.0
    ages_s = np.linspace(0, until_s, POINTS).tolist()
    series = []
    for name, runs_of_line in spreads.items():
        shares = np.array([spread.coverage(nodes, ages_s) for spread, nodes in runs_of_line])
        means, low, high = (list(values) for values in zip(*map(share_interval, shares.T.tolist()), strict=True))
        band = {"low": low, "high": high} if len(runs_of_line) > 1 else {}
        series.append({"name": name, "x": ages_s, "y": means, **band})
    has_bands = any("low" in curve for curve in series)
    return line_chart(
        series,
        x_label="age of the event (s)",
        y_label="share of nodes that hold it",
        note="mean and 95 % confidence interval over runs" if has_bands else "",
        y_range=(0.0, 1.0),
        width=width,
    )


def _as_list(runs: Any) -> Sequence[Any]:
    return runs if isinstance(runs, (list, tuple)) else [runs]


def _duration_s(spread: Progress) -> float:
    return (max(spread.held_us.values(), default=spread.made_us) - spread.made_us) / 1e6

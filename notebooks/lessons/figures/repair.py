"""Repair over time: the number of nodes without a key or with a new key after a failure, and the samples delivered.

    arrivals(run)                        the expected samples: when each was published, and whether it was delivered
    repair_chart(run, from_s, until_s)   node counts and shares of delivered samples in one figure over time

Theory of operation
    The intervals of `overlay.Overlay` give the numbers of nodes that are down, orphaned or have a new key. A sample is
    expected by a subscription if the subscription is open and its sink is up when a matching reading is published. The
    sample counts as delivered at any later time. A share covers the samples published within a step of ``every_s``
    seconds; the chart draws it at the middle of the step.

Limits
    A step without expected samples has no share and interrupts the line. `arrivals` compares each reading with each
    subscription.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import matching_samples
from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.layers import COUNTS, repair_steps
from workbench.protocols.tinymq.views.overlay import overlay_of
from workbench.sim.rows import Columns
from workbench.views import caption
from workbench.views.carried import carries_record
from workbench.views.charts.description import Series
from workbench.views.charts.static import line_chart
from workbench.views.drawing import Drawing
from workbench.views.figure import time_us_of
from workbench.views.layers import tuples
from workbench.views.nodes import failing, subscribed

WIDTH = 760
STEPS = 30


class Arrival(NamedTuple):
    """A sample that a subscription should get, and whether it was delivered."""

    sink: int
    number: int
    publisher: int
    reading: int
    published_us: int
    is_delivered: bool


def arrivals(run: Any) -> list[Arrival]:
    """Return all expected samples, in order of publication."""
    columns = Columns(run.trace)
    duration_us = round(run.scenario.duration_s * 1e6)
    down: dict[int, list[tuple[int, int]]] = {}
    for node, start_us, end_us in tuples(failing(columns, duration_us), "node", "from_us", "until_us"):
        down.setdefault(node, []).append((start_us, end_us))
    subscriptions, texts = subscribed(columns, duration_us)
    intervals = tuples(subscriptions, "node", "sequence", "from_us", "until_us", "text")
    requests = [(*interval, parse(texts[text])) for *interval, text in intervals]
    delivered = _delivered_readings(columns)
    expected = []
    rows = columns.where(event="published")
    for time_us, node, reading, text in columns.tuples(rows, "time_us", "node", "sequence", "detail"):
        attributes = parse(text)
        for sink, number, from_us, until_us, constraints in requests:
            is_up = not any(start <= time_us < end for start, end in down.get(sink, ()))
            if from_us <= time_us < until_us and is_up and matching_samples(constraints, attributes):
                is_delivered = (sink, number, node, reading) in delivered
                expected.append(Arrival(sink, number, node, reading, time_us, is_delivered))
    return expected


def _delivered_readings(columns: Columns) -> set[tuple[int, int, int, int]]:
    rows = columns.where(event="delivered")
    return set(columns.tuples(rows, "node", "value", "origin", "sequence"))


@carries_record
def repair_chart(
    run: Any, from_s: float = 0.0, until_s: float | None = None, every_s: float | None = None, width: int = WIDTH
) -> Drawing:
    """Chart the node counts over time, and below them the share of expected samples that were delivered.

    ``every_s``: seconds per step of the shares (None: a thirtieth of the interval). Raises ParameterError for times
    outside of the run, or a run without an overlay.
    """
    end_s = time_us_of(run, until_s, "repair_chart") / 1e6
    if not 0 <= from_s < end_s:
        raise ParameterError(f"repair_chart: from_s is {from_s!r}; it must be a time from 0 to before {end_s:g} s")
    every_s = (end_s - from_s) / STEPS if every_s is None else every_s
    if not every_s > 0:
        raise ParameterError(f"repair_chart: every_s is {every_s!r}; it must be a time above 0")
    counts = _counts(repair_steps(overlay_of(run)), from_s, end_s)
    shares = _shares(arrivals(run), from_s, end_s, every_s)
    x_label = "time (s)"
    title = f"{caption.title(run)}: repair"
    upper = line_chart(counts, title=title, y_label="nodes", x_label=x_label, width=width, height=270)
    note = f"by when it was published, in steps of {every_s:.3g} s"
    lower = line_chart(
        [shares], y_label="share of what was due", y_range=(0, 1), x_label=x_label, width=width, height=230, note=note
    )
    drawing = Drawing(width, upper.height + lower.height, title=title)
    drawing.add(upper, 0, 0)
    drawing.add(lower, 0, upper.height)
    return drawing


def _counts(steps: dict[str, np.ndarray], from_s: float, end_s: float) -> list[Series]:
    """Return the node counts as series of points, two at each change, so that lines are horizontal or vertical."""
    times_s = steps["time_us"] / 1e6
    first = max(int(np.searchsorted(times_s, from_s, "right")) - 1, 0)
    last = int(np.searchsorted(times_s, end_s, "right"))
    series = []
    for name, label in COUNTS.items():
        xs, ys = [from_s], [float(steps[name][first])]
        for time_s, count in zip(
            times_s[first + 1 : last].tolist(), steps[name][first + 1 : last].tolist(), strict=True
        ):
            if count != ys[-1]:
                xs += [time_s, time_s]
                ys += [ys[-1], float(count)]
        series.append(Series(label, [*xs, end_s], [*ys, ys[-1]]))
    return series


def _shares(arrived: list[Arrival], from_s: float, end_s: float, every_s: float) -> Series:
    count = max(1, math.ceil((end_s - from_s) / every_s - 1e-9))
    edges = [from_s + every_s * index for index in range(count + 1)]
    times = np.array([arrival.published_us / 1e6 for arrival in arrived])
    delivered = np.array([arrival.is_delivered for arrival in arrived], dtype=float)
    shares = []
    for start, end in pairwise(edges):
        in_step = (times >= start) & (times < end) if len(arrived) else np.zeros(0, dtype=bool)
        shares.append(float(delivered[in_step].mean()) if in_step.any() else math.nan)
    middles = [(start + end) / 2 for start, end in pairwise(edges)]
    # The points without a value at both ends give this axis the same range as the upper chart.
    return Series("delivered", [from_s, *middles, end_s], [math.nan, *shares, math.nan])

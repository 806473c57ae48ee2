"""False positives by filter length and hash count: measured, and expected by theory.

    false_positive_table(lengths, ...)      random topics, filters and routing decisions, without a network
    false_positive_chart(table)             measured points, and lines of theory for one filter; logarithmic axes
    vain_table(scenario, lengths, hashes)   one workload with filters of several lengths: the frames sent in vain
    vain_chart(table)                       frames of publications against the length: needed, repeated, in vain

Theory of operation
    *A filter.* A publication of n items in a filter of m bits with k hashes leaves a share of (1 - 1/m)^(k n) of the
    bits 0; p is the share of ones. A subscription with j bits appears to be in the filter by chance with probability
    p^j. The random topics here never match, so each hit is a false positive.

    *A link.* Many subscriptions lie behind a link. The neighbor announces their union and their common needs, which a
    publication must share with the union (`workbench.protocols.dps.bloom.routes`). Links have no line of theory. The
    needs are filters folded to 256 bits, and their common bits depend on the number of subscriptions. A formula that
    ignores the needs is up to ten times too high, or half of the true value.

    *Uncertainty.* All publications are tested against the same filters, so the pairs are not independent trials. The
    table has the mean over the filters or links, and its standard error from their differences. If no false positive
    occurred, the share need not be 0: the chart draws a hollow point at one divided by the number of pairs.

    *A workload.* For each publication the table counts the frames that led to no delivery, and separately the frames
    that a loop duplicated. Not all frames in vain are due to Bloom filters. "a/+" accepts "a/b/c", and "TEMP GE 25"
    accepts TEMP 20, at any length; the needs cover all subscriptions behind a link; muted links stay in the interests.
    The part due to Bloom filters is the excess over the same run with the longest filter.

Cost
    The table: publications x subscriptions bit comparisons for each length, in compiled loops.

Reference
    B. Bloom: Space/time trade-offs in hash coding with allowable errors, CACM 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ParameterError
from workbench.protocols.dps.bloom import HASHES, BitVector
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.dps.views.looks import IN_VAIN, REPEATED, USEFUL
from workbench.protocols.dps.views.mesh import protocol_of
from workbench.protocols.dps.views.paths import MOST_PATHS, paths
from workbench.sim import runner
from workbench.views import palette
from workbench.views.charts.description import ticks
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
LEVELS = 3
# The parts of a bar, from below: column, color, label.
_PARTS = (
    ("needed", USEFUL, "led to a delivery"),
    ("repeated", REPEATED, "repeated by a loop"),
    ("in_vain", IN_VAIN, "in vain"),
)
_SIZE = 11.0
_LOWEST = 1e-7
_HOW_TO_READ = "points: measured, with 2 standard errors; hollow: never seen; lines: theory"


def false_positive_table(
    lengths: Sequence[int] = LENGTHS,
    hashes: Sequence[int] = (HASHES,),
    subscriptions: Sequence[int] = (1, 30),
    publications: int = 500,
    links: int = 100,
    wildcard: bool = True,
    seed: int = 1,
) -> pd.DataFrame:
    """Tabulate the shares of publications that are false positives, measured and by theory.

    ``subscriptions``: numbers of subscriptions behind each of the ``links``; 1 tests a single filter. ``wildcard``:
    whether subscriptions have the form "s/+/t", with two filter items, or are complete topics. Columns: filter_bits,
    hashes, subscriptions, measured, error (standard error of the mean over filters or links), theory (for one filter,
    NaN for links), publications, filters (number of filters or links). Raises ParameterError for lengths or hash counts
    that DPS does not support, and for empty sequences or numbers below 1.
    """
    import pandas as pd

    from workbench.protocols.dps.bloom import arrays as bloom_arrays

    if not lengths or not hashes or not subscriptions or min(*subscriptions, publications, links, 1) < 1:
        raise ParameterError(
            "false_positive_table: lengths, hashes or subscriptions is empty, or a number is below 1; give one or more "
            "values of each, and numbers of subscriptions, publications and links from 1"
        )
    published = [_topic("p", seed, number) for number in range(publications)]
    topics = [_subscription(_topic("s", seed, number), wildcard) for number in range(links * max(subscriptions))]
    rows = []
    for length in lengths:
        for count in hashes:
            sent = bloom_arrays.publication_filters(published, length, count)
            filters = bloom_arrays.subscription_filters(topics, length, count)
            for behind in subscriptions:
                if behind == 1:
                    is_hit = bloom_arrays.includes(sent, filters)
                else:
                    is_hit = _test_links(sent, filters[: links * behind], behind)
                items = len(subscription_items(topics[0]))
                theory = expected(length, count, items) if behind == 1 else math.nan
                row = {"filter_bits": length, "hashes": count, "subscriptions": behind}
                rows.append({**row, **_summarize(is_hit), "theory": theory})
    return pd.DataFrame(rows)


def _summarize(is_hit: np.ndarray) -> dict[str, Any]:
    """Return the mean of an array (publications, filters), and its standard error over the independent filters."""
    publications, filters = is_hit.shape
    shares = is_hit.mean(axis=0)
    error = float(shares.std(ddof=1)) / math.sqrt(filters) if filters > 1 else math.nan
    return {"measured": float(shares.mean()), "error": error, "publications": publications, "filters": filters}


def _topic(side: str, seed: int, number: int) -> str:
    """Return a topic of three levels. Topics with another ``side``, ``seed`` or ``number`` have no item in common."""
    return "/".join(f"{side}-{seed}-{number}-{level}" for level in range(LEVELS))


def _subscription(topic: str, wildcard: bool) -> str:
    first, _, last = topic.split("/")
    return f"{first}/+/{last}" if wildcard else topic


def _test_links(sent: np.ndarray, filters: np.ndarray, behind: int) -> np.ndarray:
    """Return a Boolean array (publications, links): whether each publication is forwarded over each link.

    ``sent`` has the publications' filters, ``filters`` those of the subscriptions; each link has ``behind`` of them.
    """
    from workbench.protocols.dps.bloom import arrays as bloom_arrays

    links = len(filters) // behind
    interests = np.bitwise_or.reduce(filters.reshape(links, behind, -1), axis=1)
    hashes = bloom_arrays.fuzzy_hashes(filters).reshape(links, behind, 4)
    return bloom_arrays.routes(sent, interests, np.bitwise_and.reduce(hashes, axis=1))


def expected(length: int, hashes: int, items: int = 1) -> float:
    """Return the probability that a three-level topic's filter accepts a random subscription with ``items`` items."""
    BitVector(length)  # raises ParameterError for an invalid length
    n = len(publication_items("/".join("abc")))
    p = 1 - (1 - 1 / length) ** (hashes * n)
    return float(p ** (hashes * items))


# Charts


def false_positive_chart(table: Any, width: int = 620, height: int = 400) -> Drawing:
    """Chart the shares against the length, with a color for each hash count and number of subscriptions."""
    lines = []
    for (hashes, behind), rows in table.groupby(["hashes", "subscriptions"], sort=True):
        name = f"{hashes} {'hash' if hashes == 1 else 'hashes'}, "
        name += "one subscription" if behind == 1 else f"a link to {behind}"
        ordered = rows.sort_values("filter_bits")
        lines.append((name, ordered.to_dict("records")))
    drawing = Drawing(width, height, title="False positives")
    drawing.text(14, 22, "How often a filter says yes in vain", size=14, bold=True)
    drawing.text(14, 40, _HOW_TO_READ, size=_SIZE, colour=palette.FAINT_TEXT)
    lengths = sorted(table["filter_bits"].unique().tolist())
    lowest = max(_LOWEST, min([_plotted_share(row) for _, rows in lines for row in rows], default=_LOWEST))
    axes = _Axes(lengths, lowest, width, height, 64 + 17 * len(lines))
    axes.draw(drawing, "filter length (bits)", "share of publications")
    for index, (name, rows) in enumerate(lines):
        colour = palette.SERIES[index % len(palette.SERIES)]
        marker = palette.SERIES_MARKERS[index % len(palette.SERIES_MARKERS)]
        points = [(axes.x(row["filter_bits"]), axes.y(row["theory"])) for row in rows if row["theory"] >= axes.lowest]
        if len(points) > 1:
            drawing.polyline(points, colour=colour, width=1.6, opacity=0.75)
        for row in rows:
            _draw_measured(drawing, axes, row, marker, colour)
        at = 60 + 17 * index
        if points:
            drawing.segment(14, at - 4, 40, at - 4, colour=colour, width=1.6)
        drawing.marker(marker, 27, at - 4, 4.2, colour, palette.BACKGROUND, 0.8)
        drawing.text(46, at, name, size=_SIZE)
    return drawing


def _draw_measured(drawing: Drawing, axes: _Axes, row: dict[str, Any], marker: str, colour: str) -> None:
    x, share, error = axes.x(row["filter_bits"]), row["measured"], 2 * row["error"]
    if share == 0:
        hollow = "circle" if marker == "x" else marker
        drawing.marker(hollow, x, axes.y(max(_plotted_share(row), axes.lowest)), 4.2, palette.BACKGROUND, colour, 1.2)
    elif share >= axes.lowest:
        if error > 0:
            low, high = max(share - error, axes.lowest), min(share + error, 1.0)
            drawing.segment(x, axes.y(low), x, axes.y(high), colour=colour, width=1.2)
        drawing.marker(marker, x, axes.y(share), 4.2, colour, palette.BACKGROUND, 0.8)


def _plotted_share(row: dict[str, Any]) -> float:
    """Return the measured share, or one divided by the number of trials if no false positive occurred."""
    return float(row["measured"]) or 1 / (row["publications"] * row["filters"])


class _Axes:
    """Two logarithmic axes: lengths from left to right in powers of 2, shares from 1 downwards in powers of 10."""

    def __init__(self, lengths: list[int], lowest: float, width: int, height: int, top: float) -> None:
        self.lengths = lengths
        self.lowest = 10.0 ** math.floor(math.log10(lowest) + 1e-9)
        self.left, self.right, self.top, self.bottom = 76.0, width - 24.0, top, height - 44.0
        self._low, self._high = math.log2(min(lengths)), math.log2(max(lengths))

    def x(self, length: float) -> float:
        """Return the position of a length in the drawing."""
        span = self._high - self._low or 1.0
        return self.left + 8 + (math.log2(length) - self._low) / span * (self.right - self.left - 16)

    def y(self, share: float) -> float:
        """Return the position of a share in the drawing."""
        return self.top + math.log10(share) / math.log10(self.lowest) * (self.bottom - self.top)

    def draw(self, drawing: Drawing, x_label: str, y_label: str) -> None:
        """Draw ticks, grid and labels."""
        decades = round(-math.log10(self.lowest))
        for decade in range(decades + 1):
            y = self.y(10.0**-decade)
            drawing.segment(self.left, y, self.right, y, colour=palette.GRID, width=1)
            label = f"{100 * 10.0**-decade:g} %"
            drawing.text(self.left - 6, y + 0.36 * _SIZE, label, size=_SIZE, anchor="end")
        drawing.segment(self.left, self.bottom, self.right, self.bottom, colour=palette.OUTLINE, width=1)
        for length in self.lengths:
            drawing.segment(self.x(length), self.bottom, self.x(length), self.bottom + 4, colour=palette.OUTLINE)
            drawing.text(self.x(length), self.bottom + 17, f"{length:,}", size=_SIZE, anchor="middle")
        drawing.text((self.left + self.right) / 2, self.bottom + 36, x_label, size=_SIZE + 1, anchor="middle")
        drawing.text(20, (self.top + self.bottom) / 2, y_label, size=_SIZE + 1, anchor="middle", turn=90)


# In a network


def vain_table(scenario: Any, lengths: Sequence[int] = LENGTHS, hashes: Sequence[int] = (HASHES,)) -> pd.DataFrame:
    """Run a scenario of DPS with filters of several lengths and hash counts, and tabulate the frames sent.

    Columns: filter_bits, hashes; needed (frames of publications that led to a delivery), in_vain (frames that did not),
    repeated (frames that a loop duplicated); delivery_ratio, fill (of the fullest filter), filter_bytes (sent in
    subscriptions and their acknowledgements). Only the first 200 publications count. Raises ParameterError for a
    scenario of another protocol.
    """
    import pandas as pd

    from workbench.protocols.dps import DPS
    from workbench.protocols.dps.views.mesh import mesh_of

    protocol_of(SimpleNamespace(scenario=scenario))
    rows = []
    for length in lengths:
        for count in hashes:
            protocol = DPS(**{**scenario.protocol.settings, "filter_bits": length, "hashes": count})
            run = runner.play(scenario.replace(protocol=protocol))
            mesh = mesh_of(run)
            publication_paths = paths(run, MOST_PATHS)
            trace = run.trace.select(["event", "message", "size_B"]).to_pandas()
            announcements = trace[(trace.event == "sent") & trace.message.isin(("subscription", "subscription ack"))]
            rows.append(
                {
                    "filter_bits": length,
                    "hashes": count,
                    "needed": sum(path.count("useful") for path in publication_paths),
                    "in_vain": sum(path.count("in vain") for path in publication_paths),
                    "repeated": sum(path.count("repeated") for path in publication_paths),
                    "delivery_ratio": float(run.metrics["delivery_ratio"]),
                    "fill": mesh.fill(mesh.most_bits),
                    "filter_bytes": int(announcements.size_B.sum()),
                }
            )
    return pd.DataFrame(rows)


def vain_chart(table: Any, width: int = 620, height: int = 340) -> Drawing:
    """Chart the frames of publications by filter length as stacked bars: needed, repeated and in vain."""
    drawing = Drawing(width, height, title="Frames in vain")
    drawing.text(14, 22, "Frames of publications, by filter length", size=14, bold=True)
    rows = table.sort_values(["filter_bits", "hashes"]).to_dict("records")
    shows_hashes = table["hashes"].nunique() > 1
    left, right, top, bottom = 60.0, width - 20.0, 62.0, height - 56.0
    highest = max([sum(row[column] for column, *_ in _PARTS) for row in rows], default=1) or 1
    step = (right - left) / max(len(rows), 1)
    levels = ticks(0, highest, 6)
    highest = levels[-1]
    for level in levels:
        y = bottom - level / highest * (bottom - top)
        drawing.segment(left, y, right, y, colour=palette.GRID, width=1)
        drawing.text(left - 6, y + 4, f"{level:,.0f}", size=_SIZE, anchor="end")
    for index, row in enumerate(rows):
        x, wide = left + (index + 0.18) * step, 0.64 * step
        base = bottom
        for column, colour, _ in _PARTS:
            high = row[column] / highest * (bottom - top)
            drawing.rectangle(x, base - high, wide, high, fill=colour)
            base -= high
        drawing.text(x + wide / 2, base - 4, f"{row['in_vain']:,}", size=_SIZE, anchor="middle", colour=palette.LOST)
        name = f"{row['filter_bits']:,}" + (f" / {row['hashes']}" if shows_hashes else "")
        drawing.text(x + wide / 2, bottom + 16, name, size=_SIZE, anchor="middle")
    label = "filter length (bits)" + (" / hashes" if shows_hashes else "")
    drawing.text((left + right) / 2, bottom + 38, label, size=_SIZE + 1, anchor="middle")
    x = 14.0
    for _, colour, label in _PARTS:
        drawing.rectangle(x, 36, 14, 10, fill=colour)
        drawing.text(x + 20, 45, label, size=_SIZE)
        x += 150
    return drawing

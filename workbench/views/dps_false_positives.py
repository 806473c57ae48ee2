"""Filter length and hash count against false positives: measured, beside what theory says.

    false_positive_table(lengths, ...)      random topics, filters and routing decisions, without a network
    false_positive_chart(table)             points are measured, lines are theory; both axes logarithmic
    vain_table(scenario, lengths, hashes)   a workload run with filters of several lengths: what went out in vain
    vain_chart(table)                       frames of publications, needed and in vain, against the length

Theory of operation
    *A filter.* A publication of n items in a filter of m bits with k hashes leaves a share of (1 - 1/m)^(k n) of the
    bits 0; p is the rest. A subscription with j bits that is not in it is found nevertheless with the probability p^j.
    Of the random topics here none matches, so whatever is found is a false positive.

    *A link.* Behind a link are many subscriptions. It is told their union, of fill q, and the needs that they have in
    common, above all a number of bits: as many as the smallest subscription has, j, a publication must share with the
    union. A publication sets about p m bits, so theory says: the chance that of p m draws, each of which hits with the
    probability q, j or more do (binomial). It leaves the rest of the needs aside, which rules out a little more, and
    that two bits of a subscription may be one, which rules out a little less. Four of the nine items of a topic with
    three levels are the same in all such topics, so links differ much; theory is of their mean.

    *A workload.* Of each publication the frames that led to no delivery are counted, by `dps_publications`. Where a
    mesh has loops some of them are not the filters' fault; those remain however long the filter is.

Cost
    The table: publications x subscriptions bit comparisons for each length, in compiled loops.

Reference
    B. Bloom: Space/time trade-offs in hash coding with allowable errors, CACM 1970.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.bloom import HASHES, BitVector
from workbench.errors import ParameterError
from workbench.topics import publication_items, subscription_items
from workbench.views import palette
from workbench.views.chart import ticks
from workbench.views.dps import protocol_of
from workbench.views.dps_publications import MOST_PATHS, paths
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
LEVELS = 3
_SIZE = 11.0
_LOWEST = 1e-5


def false_positive_table(
    lengths: Sequence[int] = LENGTHS,
    hashes: Sequence[int] = (HASHES,),
    subscriptions: Sequence[int] = (1, 30),
    publications: int = 500,
    links: int = 100,
    wildcard: bool = True,
    seed: int = 1,
) -> pd.DataFrame:
    """Shares of publications for which a filter says yes in vain, measured and by theory.

    ``subscriptions``: how many are behind each of so many ``links``; 1 is a filter alone. ``wildcard``: "s/+/t", which
    is two items, or the topic spelled out. Columns: filter_bits, hashes, subscriptions, measured, theory, trials.
    Raises ParameterError for lengths or hashes that DPS has not, or none of what is wanted.
    """
    import pandas as pd

    from workbench import bloom_arrays

    if not lengths or not hashes or not subscriptions or min(*subscriptions, publications, links, 1) < 1:
        raise ParameterError("false_positive_table: some lengths, hashes, subscriptions and publications are wanted")
    published = [_topic("p", seed, number) for number in range(publications)]
    asked = [_asked(_topic("s", seed, number), wildcard) for number in range(links * max(subscriptions))]
    rows = []
    for length in lengths:
        for count in hashes:
            sent = bloom_arrays.publication_filters(published, length, count)
            wanted = bloom_arrays.subscription_filters(asked, length, count)
            for behind in subscriptions:
                if behind == 1:
                    said_yes = bloom_arrays.includes(sent, wanted)
                else:
                    said_yes = _routed(sent, wanted[: links * behind], behind)
                items = len(subscription_items(asked[0]))
                theory = expected(length, count, behind, items)
                row = {"filter_bits": length, "hashes": count, "subscriptions": behind}
                rows.append({**row, "measured": float(said_yes.mean()), "theory": theory, "trials": said_yes.size})
    return pd.DataFrame(rows)


def _topic(side: str, seed: int, number: int) -> str:
    """A topic of three levels. Those of the two sides have no item in common; SHA-256 makes their bits random."""
    return "/".join(f"{side}-{seed}-{number}-{place}" for place in range(LEVELS))


def _asked(topic: str, wildcard: bool) -> str:
    first, _, last = topic.split("/")
    return f"{first}/+/{last}" if wildcard else topic


def _routed(sent: np.ndarray, wanted: np.ndarray, behind: int) -> np.ndarray:
    """Whether publications go over links with so many subscriptions behind each: (publications, links)."""
    from workbench import bloom_arrays

    links = len(wanted) // behind
    interests = np.bitwise_or.reduce(wanted.reshape(links, behind, -1), axis=1)
    hashes = bloom_arrays.fuzzy_hashes(wanted).reshape(links, behind, 4)
    return bloom_arrays.routes(sent, interests, np.bitwise_and.reduce(hashes, axis=1))


def expected(length: int, hashes: int, subscriptions: int = 1, items: int = 1) -> float:
    """The probability of a false positive by theory, for subscriptions of so many items and topics of three levels."""
    BitVector(length)  # It says what is wrong with a length.
    n = len(publication_items("/".join("abc")))
    p = 1 - (1 - 1 / length) ** (hashes * n)
    if subscriptions == 1:
        return p ** (hashes * items)
    q = 1 - (1 - 1 / length) ** (hashes * items * subscriptions)
    drawn = max(1, round(p * length))
    least = hashes * items
    below = sum(math.comb(drawn, hits) * q**hits * (1 - q) ** (drawn - hits) for hits in range(min(least, drawn + 1)))
    return min(1.0, max(0.0, 1 - below))


# Charts


def false_positive_chart(table: Any, width: int = 620, height: int = 400) -> Drawing:
    """The table's shares against the length: a color for each hash count and number of subscriptions."""
    lines = []
    for (hashes, behind), rows in table.groupby(["hashes", "subscriptions"], sort=True):
        name = f"{hashes} {'hash' if hashes == 1 else 'hashes'}, "
        name += "one subscription" if behind == 1 else f"a link to {behind}"
        ordered = rows.sort_values("filter_bits")
        columns = [ordered[column].tolist() for column in ("filter_bits", "measured", "theory")]
        lines.append((name, *columns))
    drawing = Drawing(width, height, title="False positives")
    drawing.text(14, 22, "How often a filter says yes in vain", size=14, bold=True)
    drawing.text(width - 24, 44, "points: measured; lines: theory", size=_SIZE, anchor="end", colour=palette.FAINT_TEXT)
    lengths = sorted(table["filter_bits"].unique().tolist())
    lowest = max(_LOWEST, min([y for line in lines for y in line[3] + line[2] if y > 0], default=_LOWEST))
    axes = _Axes(lengths, lowest, width, height, 46 + 17 * len(lines))
    axes.draw(drawing, "filter length (bits)", "share of publications")
    for which, (name, xs, measured, theory) in enumerate(lines):
        colour = palette.SERIES[which % len(palette.SERIES)]
        marker = palette.SERIES_MARKERS[which % len(palette.SERIES_MARKERS)]
        points = [(axes.x(x), axes.y(y)) for x, y in zip(xs, theory, strict=True) if y >= axes.lowest]
        if len(points) > 1:
            drawing.polyline(points, colour=colour, width=1.6, opacity=0.75)
        for x, y in zip(xs, measured, strict=True):
            if y >= axes.lowest:
                drawing.marker(marker, axes.x(x), axes.y(y), 4.2, colour, palette.BACKGROUND, 0.8)
        at = 44 + 17 * which
        drawing.segment(14, at - 4, 40, at - 4, colour=colour, width=1.6)
        drawing.marker(marker, 27, at - 4, 4.2, colour, palette.BACKGROUND, 0.8)
        drawing.text(46, at, name, size=_SIZE)
    return drawing


class _Axes:
    """Two logarithmic axes: lengths by twos from left to right, shares by tens from 1 down."""

    def __init__(self, lengths: list[int], lowest: float, width: int, height: int, top: float) -> None:
        self.lengths = lengths
        self.lowest = 10.0 ** math.floor(math.log10(lowest) + 1e-9)
        self.left, self.right, self.top, self.bottom = 76.0, width - 24.0, top, height - 44.0
        self._low, self._high = math.log2(min(lengths)), math.log2(max(lengths))

    def x(self, length: float) -> float:
        """Where a length is."""
        span = self._high - self._low or 1.0
        return self.left + 8 + (math.log2(length) - self._low) / span * (self.right - self.left - 16)

    def y(self, share: float) -> float:
        """Where a share is."""
        return self.top + math.log10(share) / math.log10(self.lowest) * (self.bottom - self.top)

    def draw(self, drawing: Drawing, x_label: str, y_label: str) -> None:
        """Ticks, grid and labels."""
        decades = round(-math.log10(self.lowest))
        for decade in range(decades + 1):
            y = self.y(10.0**-decade)
            drawing.segment(self.left, y, self.right, y, colour=palette.GRID, width=1)
            said = f"{100 * 10.0**-decade:g} %"
            drawing.text(self.left - 6, y + 0.36 * _SIZE, said, size=_SIZE, anchor="end")
        drawing.segment(self.left, self.bottom, self.right, self.bottom, colour=palette.OUTLINE, width=1)
        for length in self.lengths:
            drawing.segment(self.x(length), self.bottom, self.x(length), self.bottom + 4, colour=palette.OUTLINE)
            drawing.text(self.x(length), self.bottom + 17, f"{length:,}", size=_SIZE, anchor="middle")
        drawing.text((self.left + self.right) / 2, self.bottom + 36, x_label, size=_SIZE + 1, anchor="middle")
        drawing.text(20, (self.top + self.bottom) / 2, y_label, size=_SIZE + 1, anchor="middle", turn=90)


# In a network


def vain_table(scenario: Any, lengths: Sequence[int] = LENGTHS, hashes: Sequence[int] = (HASHES,)) -> pd.DataFrame:
    """A scenario of DPS, run with filters of several lengths and hash counts.

    Columns: filter_bits, hashes, needed and in_vain (frames of publications that led to a delivery, and that did not),
    delivery_ratio, fill (of the fullest filter), filter_bytes (sent in subscriptions and their acknowledgements). Looks
    at the first 200 publications. ParameterError for a scenario of another protocol.
    """
    import pandas as pd

    from workbench.protocols.dps import DPS
    from workbench.views.dps import mesh_of

    protocol_of(_Scenario(scenario))
    rows = []
    for length in lengths:
        for count in hashes:
            protocol = DPS(**{**scenario.protocol.settings, "filter_bits": length, "hashes": count})
            run = scenario.replace(protocol=protocol).run()
            seen = mesh_of(run)
            ways = paths(run, MOST_PATHS)
            trace = run.trace.select(["event", "message", "size_B"]).to_pandas()
            told = trace[(trace.event == "sent") & trace.message.isin(("subscription", "subscription ack"))]
            rows.append(
                {
                    "filter_bits": length,
                    "hashes": count,
                    "needed": sum(way.count("useful") for way in ways),
                    "in_vain": sum(way.count("in vain") + way.count("repeated") for way in ways),
                    "delivery_ratio": float(run.metrics["delivery_ratio"]),
                    "fill": max((seen.fill(one.bits) for one in seen.filters), default=0.0),
                    "filter_bytes": int(told.size_B.sum()),
                }
            )
    return pd.DataFrame(rows)


class _Scenario:
    """What `protocol_of` looks at."""

    def __init__(self, scenario: Any) -> None:
        self.scenario = scenario


def vain_chart(table: Any, width: int = 620, height: int = 340) -> Drawing:
    """Frames of publications against the filter length, as bars: needed, and above them in vain."""
    drawing = Drawing(width, height, title="Frames in vain")
    drawing.text(14, 22, "Frames of publications, by filter length", size=14, bold=True)
    rows = table.sort_values(["filter_bits", "hashes"]).to_dict("records")
    shows_hashes = table["hashes"].nunique() > 1
    left, right, top, bottom = 60.0, width - 20.0, 62.0, height - 56.0
    highest = max([row["needed"] + row["in_vain"] for row in rows], default=1) or 1
    step = (right - left) / max(len(rows), 1)
    levels = ticks(0, highest, 6)
    highest = levels[-1]
    for level in levels:
        y = bottom - level / highest * (bottom - top)
        drawing.segment(left, y, right, y, colour=palette.GRID, width=1)
        drawing.text(left - 6, y + 4, f"{level:,.0f}", size=_SIZE, anchor="end")
    for place, row in enumerate(rows):
        x, wide = left + (place + 0.18) * step, 0.64 * step
        base = bottom
        for column, colour in (("needed", palette.DELIVERED), ("in_vain", palette.LOST)):
            high = row[column] / highest * (bottom - top)
            drawing.rectangle(x, base - high, wide, high, fill=colour)
            base -= high
        drawing.text(x + wide / 2, base - 4, f"{row['in_vain']:,}", size=_SIZE, anchor="middle", colour=palette.LOST)
        name = f"{row['filter_bits']:,}" + (f" / {row['hashes']}" if shows_hashes else "")
        drawing.text(x + wide / 2, bottom + 16, name, size=_SIZE, anchor="middle")
    label = "filter length (bits)" + (" / hashes" if shows_hashes else "")
    drawing.text((left + right) / 2, bottom + 38, label, size=_SIZE + 1, anchor="middle")
    x = 14.0
    for said, colour in (("led to a delivery", palette.DELIVERED), ("in vain", palette.LOST)):
        drawing.rectangle(x, 36, 14, 10, fill=colour)
        drawing.text(x + 20, 45, said, size=_SIZE)
        x += 150
    return drawing

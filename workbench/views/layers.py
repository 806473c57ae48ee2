"""Layers: the visible state of a run, as intervals of time with a visual style.

    Layer          a name, a table of intervals, looks, whether it is on at first, a section of the inspector
    Look           the style of one kind of rows, and its label in the legend
    Scale          colours by a share, for rows that have a ``weight``
    Section        a table of the inspector
    Curves         counts over the whole run, as lines over time
    MessagePaths   the messages whose paths can be shown

The player in the browser and the static figures draw these and nothing else. A protocol supplies its own layers by a
function ``layers(recorded)`` in the module ``layers`` of its package ``views`` (see `views.protocols`).

Tables
    A table is a dictionary of numpy arrays of equal length. Each row is an interval, in order of ``from_us``. A view
    draws the rows with from_us <= t < until_us. All other columns are optional:

    from_us    int64     begin of the interval, in µs
    until_us   int64     end of the interval
    node       int32     node; -1 none
    peer       int32     node at the other end
    look       int16     index of one of the layer's looks; 0 if left out
    weight     float32   0 to 1 if the layer has a scale. Otherwise it widens lines (arrow), is the share of the link
                         that a frame crosses (packet), or marks the addressee of a unicast frame (loss)
    text       int32     index into the layer's ``words``, for labels and sections
    path       int32     index of the message in `MessagePaths`; -1 none
    origin, sequence, value   int64   numbers for sections
    size       int32     bytes of a frame
    row        int64     row of the trace; -1 none
    low, high, lane      float64   of a strip: its ends, and its lane

Marks
    The mark of a row's look decides how the row is drawn; a look without a mark takes its layer's.

    node     the node itself; of several rows of a node, the one with the lowest rank
    disc     a disc or square under the node           ring    a ring around it
    cross    a cross at the node                       label   a text beside it
    line     a line to its peer                        half    the half of that line next to the node
    arrow    an arrow to its peer, shifted to the right if it has a ``lane``
    packet   a dot that moves to its peer, with a tail wave    a ring that widens around the node
    loss     a cross on the link from its peer         strip   a bar in a panel of lanes below the map
    ""       nothing: the table is for the inspector only
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.columns import argsort

if TYPE_CHECKING:
    from workbench.sim.rows import Columns
    from workbench.views.layout import Layout
    from workbench.views.player.playback import PlaybackClock

Table = dict[str, np.ndarray]

# Type of each column of a table, and its value where a table leaves it out.
COLUMNS: dict[str, tuple[type, int | float]] = {
    "node": (np.int32, -1),
    "peer": (np.int32, -1),
    "origin": (np.int64, -1),
    "sequence": (np.int64, 0),
    "from_us": (np.int64, 0),
    "until_us": (np.int64, 0),
    "look": (np.int16, 0),
    "value": (np.int64, 0),
    "weight": (np.float32, 0.0),
    "text": (np.int32, -1),
    "path": (np.int32, -1),
    "size": (np.int32, 0),
    "row": (np.int64, -1),
    "low": (np.float64, 0.0),
    "high": (np.float64, 0.0),
    "lane": (np.float64, 0.0),
}
# The order in which marks are drawn, lowest first.
LEVELS = {
    "line": 10,
    "half": 12,
    "disc": 20,
    "arrow": 30,
    "node": 40,
    "ring": 50,
    "cross": 52,
    "label": 60,
    "wave": 70,
    "packet": 72,
    "loss": 74,
    "strip": 80,
}


class Look(NamedTuple):
    """The style of one kind of rows.

    label: text in the legend; "" keeps the look out of the legend.
    colour: ``#rrggbb`` on a light background; a dark page shows `palette.in_dark` of it.
    size, least: a length as a multiple of a node's diameter, and its minimum in px. The length is the diameter of a
    node,
    disc, ring, cross or packet, or the width of a line, half, arrow or tail. For a label it is the distance from the
    node,
    below it if negative. width: px of outlines and crosses.
    marker: of nodes and discs: circle, square, triangle, diamond, x.
    rank: of nodes: the lowest is drawn. lane: of arrows: distance to the right, as a multiple of a node's diameter.
    head: of arrows: position of the head, 0 to 1; 0: no head. mark, chip: replace the layer's mark and name.
    """

    label: str = ""
    colour: str = "#5D6875"
    size: float = 1.0
    least: float = 1.0
    width: float = 1.0
    alpha: float = 1.0
    marker: str = "circle"
    is_dashed: bool = False
    rank: int = 9
    lane: float = 0.0
    head: float = 0.62
    mark: str = ""
    chip: str = ""


class Scale(NamedTuple):
    """Colours for weights from 0 to 1 in equal steps. low and high: the texts at the ends of the legend."""

    label: str
    colours: tuple[str, ...]
    low: str = "0"
    high: str = ""


class Section(NamedTuple):
    """A table of the inspector: the rows of a layer that are alive at the selected node.

    columns: (heading, column of the layer's table, format). Formats: number; node ("–" for -1); until (µs as a time, or
    "never"); time (µs); use (a usage class as 1+, 4+, 16+); word (for ``look`` the look's label, for ``text`` its
    text);
    percent (of ``weight``); echelon (a matrix: the text lists its pivots, ``value / weight`` is its size).
    """

    title: str
    columns: tuple[tuple[str, str, str], ...]


class Panel(NamedTuple):
    """A panel of lanes below the map, for strips.

    low, high: range of the x axis. lanes: their names, from the top. bits: number of binary digits in which values are
    written; 0: decimal.
    """

    title: str
    low: float
    high: float
    lanes: tuple[str, ...]
    bits: int = 0


@dataclass(frozen=True)
class Layer:
    """Intervals that are shown and hidden together. Layers with the same ``name`` share one button in the player.

    table, looks, words, mark: see the module. is_detail: drawn only if there is space between nodes. level: drawing
    order,
    None for that of its mark (`LEVELS`). of_path: only rows of the selected message are drawn. notes: sentences about
    omitted rows. add_texts: a function that returns the layer with its texts, if these take long to compute and are not
    drawn; None: the texts are present.
    """

    name: str
    table: Table
    looks: tuple[Look, ...] = ()
    mark: str = ""
    is_on: bool = True
    scale: Scale | None = None
    section: Section | None = None
    words: Sequence[str] = ()
    panel: Panel | None = None
    is_detail: bool = False
    of_path: bool = False
    level: int | None = None
    notes: tuple[str, ...] = ()
    add_texts: Callable[[], Layer] | None = None

    def __len__(self) -> int:
        return len(self.table["from_us"])

    def whole(self) -> Layer:
        """Return the layer with all its texts."""
        return self if self.add_texts is None else self.add_texts()

    def column(self, name: str) -> np.ndarray:
        """Return a column of the table, shape (rows,), filled with its neutral value if the table lacks it."""
        kind, neutral = COLUMNS[name]
        values = self.table.get(name)
        return np.full(len(self), neutral, kind) if values is None else np.asarray(values, kind)

    def alive(self, time_us: int) -> np.ndarray:
        """Return the rows that are alive at a time, ascending."""
        return alive(self.table, time_us)


class Line(NamedTuple):
    """A line of `Curves`: its label, its colour, and values that each hold until the next time."""

    label: str
    colour: str
    times_us: np.ndarray
    values: np.ndarray


class Curves(NamedTuple):
    """Counts over the whole run, drawn in steps over the player's time."""

    name: str
    y_label: str
    lines: tuple[Line, ...]


class MessagePath(NamedTuple):
    """A message whose path can be shown: its label, the time of its first frame, and its frames in the trace.

    frames: (origin, sequence, name of the message in the trace). description: its path in a sentence.
    """

    label: str
    from_us: int
    frames: tuple[tuple[int, int, str], ...]
    description: str = ""


class MessagePaths(NamedTuple):
    """The messages whose paths can be shown; the column ``path`` of a table refers to them.

    is_newest: if no message is selected, the newest one is shown; otherwise none is. notes: sentences about omitted
    messages.
    """

    paths: tuple[MessagePath, ...]
    is_newest: bool = True
    notes: tuple[str, ...] = ()


Part = Layer | Curves | MessagePaths
NO_PATHS = MessagePaths(())


@dataclass(frozen=True)
class Recorded:
    """The input of layers: a run and its trace as columns. ``columns`` may be a part of the trace."""

    run: Any
    columns: Columns
    plan: Layout
    clock: PlaybackClock
    colours: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def duration_us(self) -> int:
        """The length of the run in µs."""
        return round(self.run.scenario.duration_s * 1e6)


def table(rows: int = 0, /, **columns: Any) -> Table:
    """Make a table from some of its columns: convert them to their types and sort by ``from_us``."""
    result = {name: np.asarray(column, COLUMNS[name][0]) for name, column in columns.items()}
    for name in ("from_us", "until_us"):
        result.setdefault(name, np.zeros(rows, np.int64))
    start = result["from_us"]
    if len(start) > 1 and (start[1:] < start[:-1]).any():
        order = argsort(start)
        result = {name: column[order] for name, column in result.items()}
    return result


def select(source: Table, rows: np.ndarray) -> Table:
    """Return some rows of a table; ``rows``: indices or a mask."""
    return {name: column[rows] for name, column in source.items()}


def alive(source: Table, time_us: int) -> np.ndarray:
    """Return the rows of a table that are alive at a time, ascending."""
    return np.flatnonzero((source["from_us"] <= time_us) & (source["until_us"] > time_us))


def tuples(source: Table, *names: str, rows: np.ndarray | slice = slice(None)) -> Iterator[tuple[Any, ...]]:
    """Yield a tuple of Python numbers from some columns for each row of a table."""
    return zip(*(source[name][rows].tolist() for name in names), strict=True)


def as_spans(kind: Any, source: Table, words: Sequence[str] = (), rows: np.ndarray | slice = slice(None)) -> list[Any]:
    """Return rows of a table as named tuples; columns ``key`` and ``text`` are indices into ``words``."""
    listed = []
    for name in kind._fields:
        values = source[name][rows].tolist()
        listed.append([words[code] for code in values] if name in ("key", "text") else values)
    return list(map(kind._make, zip(*listed, strict=True)))


@dataclass(frozen=True)
class RunView:
    """The visible state of a run over time: `views.seeing.see` makes it, and every view draws it.

    layers: in the order of their buttons. notes: sentences about omitted rows and estimated data. trace: the whole
    trace
    as columns.
    """

    run: Any
    plan: Layout
    clock: PlaybackClock
    duration_us: int
    layers: tuple[Layer, ...]
    curves: tuple[Curves, ...] = ()
    paths: MessagePaths = NO_PATHS
    notes: tuple[str, ...] = ()
    trace: Columns | None = None

    def layer(self, name: str, mark: str | None = None) -> Layer:
        """Return the first layer with a name (and mark). Raises KeyError if none matches."""
        for candidate in self.layers:
            if candidate.name == name and mark in (None, candidate.mark):
                return candidate
        raise KeyError(name)

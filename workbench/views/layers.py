"""Layers: the visible state of a run, as intervals of time with a visual style.

    Layer          intervals that share a button in the player: a table, and the looks of its rows
    Look           the style of one kind of rows, and its label in the legend
    Scale          the colours of rows that have a ``weight`` from 0 to 1
    Section        a table of the inspector, which shows the state of the selected node
    Curves         counts over the whole run, as lines over time
    MessagePaths   the messages whose paths through the network can be drawn

The player in the browser and the static figures draw layers and nothing else. A protocol adds its own layers with a
function ``layers(recorded)`` in the module ``layers`` of its package ``views`` (see `views.protocols`).

Tables
    A table is a dictionary of numpy arrays of equal length. Each row is an interval, in order of ``from_us``. A view
    draws the rows with from_us <= t < until_us. All other columns are optional:

    from_us    int64     begin of the interval, in µs
    until_us   int64     end of the interval, in µs
    node       int32     node; -1 for no node
    peer       int32     node at the other end of a link; -1 for no node
    look       int16     index of one of the layer's looks; 0 if left out
    weight     float32   if the layer has a scale: the place of the row's colour on it, 0 to 1. Without a scale, the
                         weight of an arrow makes its line wider; the weight of a packet is the share of the link
                         after which its dot stops; the weight of a loss is 1 at the addressee of a unicast frame
    text       int32     index into the layer's ``words``, for labels and sections
    path       int32     index of a message in `MessagePaths`; -1 for no message
    origin, sequence, value   int64   numbers for sections
    size       int32     length of a frame in bytes
    row        int64     row of the trace; -1 for no row
    low, high, lane      float64   for strips: both ends of the bar on the x axis, and its lane in the panel
    x_m, y_m, radius_m   float64   for areas: center and radius in m

Marks
    The mark of a row's look decides how the row is drawn; a look without a mark has the mark of its layer.

    node     the node itself; of several rows about a node, only the row with the lowest rank is drawn
    disc     a disc or square under the node           ring    a ring around it
    cross    a cross at the node                       label   a text beside it
    line     a line to its peer                        half    the half of that line next to the node
    arrow    an arrow to its peer, shifted to the right if it has a ``lane``
    packet   a dot that moves to its peer, with a tail wave    a ring that widens around the node
    loss     a cross on the link from its peer         strip   a bar in a panel of lanes below the map
    track    the track of a moving node                area    a large disc with a small symbol in its center
    ""       not drawn: the table is for the inspector only
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
    "x_m": (np.float64, 0.0),
    "y_m": (np.float64, 0.0),
    "radius_m": (np.float64, 0.0),
}
# The order in which marks are drawn, lowest first.
LEVELS = {
    "area": 4,
    "track": 6,
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
    """The style in which rows of one kind are drawn.

    label: text in the legend; "" means no entry in the legend.
    colour: ``#rrggbb`` on a light background; on a dark one, `palette.in_dark` replaces this colour.
    size: as a multiple of a node's diameter: for nodes, discs, rings, crosses and packets their diameter; for lines,
        halves, arrows and tails their width; for a label its distance from the node. A label with a negative size is
        below the node.
    least: the minimum of ``size`` in px.
    width: width of outlines and crosses in px.
    marker: shape of nodes and discs: circle, square, triangle, diamond or x.
    is_dashed: whether lines and rings are dashed; a dashed node is only an outline.
    rank: of several looks of one node, the look with the lowest rank is drawn.
    lane: distance by which arrows are shifted to the right, as a multiple of a node's diameter.
    head: position of the head along an arrow, 0 to 1; 0 means no head.
    mark: the mark of these rows; "" means the layer's mark.
    chip: the name of the player's button that shows and hides these rows; "" means the layer's name.
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
    """The colours in which rows with a ``weight`` from 0 to 1 are drawn.

    colours: for equal steps of the weight, from 0 to 1.
    low, high: the texts at the two ends of the colour bar in the legend.
    """

    label: str
    colours: tuple[str, ...]
    low: str = "0"
    high: str = ""


class Section(NamedTuple):
    """A table of the inspector, the panel beside the player that shows the state of the selected node.

    The table has a line for each interval of the layer that belongs to this node and contains the selected time.

    columns: for each column (heading, name of the column in the layer's table, format). The formats are:
        number
        node      the node's number, or "–" for -1
        time      µs as a time in s
        until     µs as a time in s, or "never"
        use       a count in coarse classes: 1+, 4+, 16+, ...
        word      for the column ``look`` the label of the row's look (style), for ``text`` the text itself
        percent   a ``weight`` in percent
        echelon   a decoding matrix: ``text`` lists the columns of its pivots, ``value`` is its rank, and ``weight`` the
                  rank divided by the number of columns
    """

    title: str
    columns: tuple[tuple[str, str, str], ...]


class Panel(NamedTuple):
    """A diagram with horizontal lanes, drawn below the map. Each row whose mark is "strip" is a bar in a lane.

    low, high: range of the x axis.
    lanes: names of the lanes, from the top.
    bits: number of binary digits with which the x axis labels its values; 0 means decimal labels.
    """

    title: str
    low: float
    high: float
    lanes: tuple[str, ...]
    bits: int = 0


@dataclass(frozen=True)
class Layer:
    """Intervals that are shown and hidden together. Layers with the same ``name`` share one button in the player.

    table: the intervals as columns of equal length, sorted by ``from_us``.
    looks: the styles of the rows. words: texts, to which the table refers by index.
    mark: how rows are drawn, such as "disc" or "arrow", unless their look has a mark of its own.
    is_detail: whether the layer is left out on a map that has too little space between nodes.
    level: position in the order of drawing; None: the position of the layer's mark in `LEVELS`.
    of_path: whether only rows about the selected message are drawn.
    notes: sentences about omitted rows.
    add_texts: a function that returns this layer with the texts of its rows, for texts that take long to compute and
        are not on the map. None: the layer has its texts already.
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
        """Return this layer with the texts of its rows; if they are not computed yet, `add_texts` computes them."""
        return self if self.add_texts is None else self.add_texts()

    def column(self, name: str) -> np.ndarray:
        """Return a column, shape (rows,). If the table lacks it, all values are the column's default in `COLUMNS`."""
        kind, default_value = COLUMNS[name]
        values = self.table.get(name)
        return np.full(len(self), default_value, kind) if values is None else np.asarray(values, kind)

    def alive(self, time_us: int) -> np.ndarray:
        """Return the indices of the layer's rows whose interval contains ``time_us``, ascending."""
        return alive(self.table, time_us)


class Line(NamedTuple):
    """A line of a chart (`Curves`): its label, its colour, and its values over time.

    Each value holds from its own time until the next time.
    """

    label: str
    colour: str
    times_us: np.ndarray
    values: np.ndarray


class Curves(NamedTuple):
    """A chart below the map of the network: values over the whole run, such as counts, drawn as step lines."""

    name: str
    y_label: str
    lines: tuple[Line, ...]


class MessagePath(NamedTuple):
    """A message whose path through the network can be drawn.

    from_us: begin of the message in µs, such as the time of publishing.
    frames: which frames of the trace carry the message: those whose origin, sequence and name of the message are equal
        to one of these tuples.
    description: the path in one sentence.
    """

    label: str
    from_us: int
    frames: tuple[tuple[int, int, str], ...]
    description: str = ""


class MessagePaths(NamedTuple):
    """All messages of a run whose paths through the network can be drawn.

    paths: the messages. The column ``path`` of a layer's table contains indices of this sequence.
    is_newest: whether the path of the newest message is drawn while the user has selected no message. If False, no path
        is drawn without a selection.
    notes: sentences about omitted messages.
    """

    paths: tuple[MessagePath, ...]
    is_newest: bool = True
    notes: tuple[str, ...] = ()


Part = Layer | Curves | MessagePaths
NO_PATHS = MessagePaths(())


@dataclass(frozen=True)
class Recorded:
    """The input of a protocol's function ``layers``: a run, and its trace as columns.

    columns: the trace, or only its rows about one event.
    plan: the layout of the network.
    clock: the playback clock, which converts times of the run to times of its playback.
    colours: name of a message -> its colour.
    """

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
    """Return a layer's table with these columns, each converted to its type in `COLUMNS`, sorted by ``from_us``.

    If ``from_us`` or ``until_us`` is not given, it is 0 in all rows; ``rows`` must then be the number of rows.
    """
    arrays = {name: np.asarray(column, COLUMNS[name][0]) for name, column in columns.items()}
    for name in ("from_us", "until_us"):
        arrays.setdefault(name, np.zeros(rows, np.int64))
    start_us = arrays["from_us"]
    if len(start_us) > 1 and (start_us[1:] < start_us[:-1]).any():
        by_time = argsort(start_us)
        arrays = {name: column[by_time] for name, column in arrays.items()}
    return arrays


def select(source: Table, rows: np.ndarray) -> Table:
    """Return the table with only the given rows. ``rows``: their indices, or a boolean mask."""
    return {name: column[rows] for name, column in source.items()}


def alive(source: Table, time_us: int) -> np.ndarray:
    """Return the indices of the table's rows whose interval contains ``time_us``, ascending."""
    return np.flatnonzero((source["from_us"] <= time_us) & (source["until_us"] > time_us))


def tuples(source: Table, *names: str, rows: np.ndarray | slice = slice(None)) -> Iterator[tuple[Any, ...]]:
    """Yield for each row of a table a tuple of its values in the columns ``names``, as Python numbers.

    ``rows``: indices, a mask or a slice of the rows; by default all rows.
    """
    return zip(*(source[name][rows].tolist() for name in names), strict=True)


def as_spans(kind: Any, source: Table, words: Sequence[str] = (), rows: np.ndarray | slice = slice(None)) -> list[Any]:
    """Return rows of a table as named tuples of the type ``kind``, whose fields are names of columns.

    rows: indices, a mask or a slice of the rows; by default all rows.
    words: a list of texts. The columns ``key`` and ``text`` contain indices into this list; the tuples contain the
        texts themselves.
    """
    column_values = []
    for name in kind._fields:
        values = source[name][rows].tolist()
        column_values.append([words[code] for code in values] if name in ("key", "text") else values)
    return list(map(kind._make, zip(*column_values, strict=True)))


@dataclass(frozen=True)
class RunView:
    """All data of a run that views draw, from the begin to the end of the run. `views.seeing.see` returns it.

    layers: in the order of their buttons.
    notes: sentences about omitted rows and estimated data.
    trace: the whole trace as columns.
    is_compact: whether times are rounded, for a page with many runs (see `player.payload.pack`).
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
    is_compact: bool = False

    def layer(self, name: str, mark: str | None = None) -> Layer:
        """Return the first layer with this name and, if given, this mark. Raises KeyError if no layer matches."""
        for candidate in self.layers:
            if candidate.name == name and mark in (None, candidate.mark):
                return candidate
        raise KeyError(name)

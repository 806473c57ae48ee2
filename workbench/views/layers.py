"""Layers: what there is to see of a run, each as intervals of time with the way they look.

    Layer       a name, a table of intervals, looks, whether it is on at first, a section of the inspector
    Look        how the rows of one kind look, and what the legend says
    Scale       colours by a share, for rows that have a ``weight``
    Section     a table of the inspector
    Curves      counts over the whole run, as lines over time
    Ways        the messages that can be followed

The player in the browser and the static figures draw these, and know nothing else. A protocol brings its layers in a
function ``layers(recorded)`` of the module ``layers`` of its package ``views`` (see `views.protocols`).

Tables
    A table is a dictionary of numpy arrays of equal length, a row for each interval, in order of ``from_us``. A view
    draws the rows with from_us <= t < until_us. All columns but these two may be left out:

    from_us    int64     when it begins, in µs
    until_us   int64     when it ends
    node       int32     where; -1 nowhere
    peer       int32     the node at the other end
    look       int16     which of the layer's looks; 0 if left out
    weight     float32   0 to 1 where there is a scale; else it widens lines (arrow), says how far a frame gets (packet)
                         or that it was sent to this node alone (loss)
    text       int32     which of the layer's ``words``: what a label says, or a section writes
    way        int32     which of the messages that can be followed (`Ways`); -1 none
    origin, sequence, value   int64   what sections write
    size       int32     bytes of a frame
    row        int64     which row of the trace it is; -1 none
    low, high, lane      float64   of a strip: from where to where, and in which lane

Marks
    A row's look says how it is drawn: with the mark of its look, or else of its layer.

    node     the node itself; of several rows of a node that with the lowest rank is drawn
    disc     a disc or square under the node           ring    a ring around it
    cross    a cross at the node                       label   a text beside it
    line     a line to its peer                        half    the half of that line that is next to the node
    arrow    an arrow to its peer, on the right of its way if it has a ``lane``
    packet   a dot on its way to its peer, with a tail wave    a ring that widens around the node
    loss     a cross on the way from its peer          strip   a bar in a panel of lanes below the map
    ""       nothing: the table is for the inspector
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
    from workbench.views.player.film import Film

Table = dict[str, np.ndarray]

# What each column of a table is, and its value where a table leaves it out.
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
    "way": (np.int32, -1),
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
    """How rows of one kind look.

    said: the legend's words; "" keeps it out of the legend.
    colour: ``#rrggbb`` on a light ground; on a dark one it is `palette.in_dark` of it.
    size, least: a length as a multiple of a node's diameter, and at least so many px: the diameter of a node, disc,
    ring, cross or packet, the width of a line, half, arrow or tail; of a label its distance from the node, below it if
    negative. width: px of outlines and crosses.
    marker: of nodes and discs: circle, square, triangle, diamond, x.
    rank: of nodes: the lowest is drawn. lane: of arrows, how far on the right, as a multiple of a node's diameter.
    head: of arrows, where the head is on the way; 0: none. mark, chip: in place of the layer's mark and name.
    """

    said: str = ""
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
    """Colours by weight, from 0 to 1 in equal steps; low and high: what the legend says at its ends."""

    said: str
    colours: tuple[str, ...]
    low: str = "0"
    high: str = ""


class Section(NamedTuple):
    """A table of the inspector: the rows of a layer that are alive at the node that is looked at.

    columns: (heading, column of the layer's table, how it is written): number, node ("–" for -1), until (µs as a time,
    "never"), time (µs), use (a class of use as 1+, 4+, 16+), word (of ``look``: what its look says; of ``text``: its
    word), percent (of ``weight``), echelon (the word's numbers are pivots, ``value / weight`` is the size: a matrix).
    """

    title: str
    columns: tuple[tuple[str, str, str], ...]


class Panel(NamedTuple):
    """A panel of lanes below the map, for strips.

    low, high: what it spans; lanes: their names, from above; bits: its numbers are written in binary, with so many
    digits; 0: as they are.
    """

    title: str
    low: float
    high: float
    lanes: tuple[str, ...]
    bits: int = 0


@dataclass(frozen=True)
class Layer:
    """Intervals that are shown and hidden together. ``name`` is that of its chip: layers of one name share it.

    table, looks, words, mark: see above. is_detail: drawn only where there is room between nodes. level: the order of
    drawing, None for that of its mark (`LEVELS`). of_way: only rows of the message that is followed are drawn. notes:
    what was left out, in sentences. told: makes the layer with what is told of it in words, where that takes long and
    nothing of it is drawn; None: it is there.
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
    of_way: bool = False
    level: int | None = None
    notes: tuple[str, ...] = ()
    told: Callable[[], Layer] | None = None

    def __len__(self) -> int:
        return len(self.table["from_us"])

    def whole(self) -> Layer:
        """The layer with all that is told of it."""
        return self if self.told is None else self.told()

    def column(self, name: str) -> np.ndarray:
        """A column of the table, shape (rows,); its neutral value where the table has none."""
        kind, neutral = COLUMNS[name]
        found = self.table.get(name)
        return np.full(len(self), neutral, kind) if found is None else np.asarray(found, kind)

    def alive(self, time_us: int) -> np.ndarray:
        """The rows that are alive at a time, ascending."""
        return alive(self.table, time_us)


class Line(NamedTuple):
    """A line of `Curves`: what the legend says, its colour, and its value from each time to the next."""

    said: str
    colour: str
    times_us: np.ndarray
    values: np.ndarray


class Curves(NamedTuple):
    """Counts over the whole run, drawn in steps over the player's time."""

    name: str
    y_label: str
    lines: tuple[Line, ...]


class Way(NamedTuple):
    """A message that can be followed: what it is called, when it began, and which frames of the trace are its own.

    frames: (origin, sequence, name of the message in the trace) of these. told: its way in a sentence.
    """

    said: str
    from_us: int
    frames: tuple[tuple[int, int, str], ...]
    told: str = ""


class Ways(NamedTuple):
    """The messages that can be followed; a row's column ``way`` says which of them it is about.

    is_newest: unless a message is chosen, the newest one is followed, else none. notes: what was left out.
    """

    ways: tuple[Way, ...]
    is_newest: bool = True
    notes: tuple[str, ...] = ()


Part = Layer | Curves | Ways
NO_WAYS = Ways(())


@dataclass(frozen=True)
class Recorded:
    """What layers are made of: a run and its trace as columns. ``columns`` may be a part of the trace."""

    run: Any
    columns: Columns
    plan: Layout
    film: Film
    colours: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def duration_us(self) -> int:
        """The length of the run in µs."""
        return round(self.run.scenario.duration_s * 1e6)


def table(rows: int = 0, /, **columns: Any) -> Table:
    """A table from some of its columns, as arrays of their types, in order of ``from_us``."""
    made = {name: np.asarray(column, COLUMNS[name][0]) for name, column in columns.items()}
    for name in ("from_us", "until_us"):
        made.setdefault(name, np.zeros(rows, np.int64))
    start = made["from_us"]
    if len(start) > 1 and (start[1:] < start[:-1]).any():
        order = argsort(start)
        made = {name: column[order] for name, column in made.items()}
    return made


def select(some: Table, rows: np.ndarray) -> Table:
    """Some rows of a table; ``rows``: their numbers, or a mask."""
    return {name: column[rows] for name, column in some.items()}


def alive(some: Table, time_us: int) -> np.ndarray:
    """Return the rows of a table that are alive at a time, ascending."""
    return np.flatnonzero((some["from_us"] <= time_us) & (some["until_us"] > time_us))


def tuples(some: Table, *names: str, rows: np.ndarray | slice = slice(None)) -> Iterator[tuple[Any, ...]]:
    """Yield a tuple of Python's numbers from some columns for each row of a table."""
    return zip(*(some[name][rows].tolist() for name in names), strict=True)


def as_spans(kind: Any, some: Table, words: Sequence[str] = (), rows: np.ndarray | slice = slice(None)) -> list[Any]:
    """Return rows of a table as named tuples; columns ``key`` and ``text`` are indices into ``words``."""
    listed = []
    for name in kind._fields:
        values = some[name][rows].tolist()
        listed.append([words[code] for code in values] if name in ("key", "text") else values)
    return list(map(kind._make, zip(*listed, strict=True)))


@dataclass(frozen=True)
class Seen:
    """All that there is to see of a run: `views.seeing.see` makes it, every view draws it.

    layers: in the order of their chips; notes: what was left out, or is not as it seems, in sentences. trace: all of
    the run's, as columns.
    """

    run: Any
    plan: Layout
    film: Film
    duration_us: int
    layers: tuple[Layer, ...]
    curves: tuple[Curves, ...] = ()
    ways: Ways = NO_WAYS
    notes: tuple[str, ...] = ()
    trace: Columns | None = None

    def layer(self, name: str, mark: str | None = None) -> Layer:
        """The first layer of a name (and mark). KeyError if there is none."""
        for one in self.layers:
            if one.name == name and mark in (None, one.mark):
                return one
        raise KeyError(name)

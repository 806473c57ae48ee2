"""A decoder step by step, for teaching: each packet, and the decoding matrix before and after it, with coefficients.

    decoding_matrices(run, nodes)    the matrices of some nodes of a run, after each innovative packet

    steps = decoding_steps(3, 257, {"P1": ([1, 2, 3], [6]), "P2": ([3, 2, 4], [9])})
    steps[0].is_innovative, steps[0].pivot
    step_through(steps)      a slider over the drawings of the steps; without a kernel, the drawing of the last step

The packets are decoded by `workbench.coding.rlnc.Decoder`, and the drawings show its matrix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.coding.fields import Field
from workbench.coding.rlnc import Decoder
from workbench.errors import ParameterError
from workbench.protocols.coded_diffusion.views.ranks import Progress, progress
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing, text_width
from workbench.views.event import Event, of_event
from workbench.views.stepper import Stepper

MOST_SYMBOLS = 4
MARGIN = 16.0
NARROW = 12.0  # margin of the matrices of several nodes
GUTTER = 26.0
SMALL = 11.0
ARROW = 56.0
HEADER = 20.0

Row = tuple[tuple[int, ...], tuple[int, ...]]
PIVOT, ZERO, OTHER, INFORMATION, EMPTY = "pivot", "zero", "other", "information", "empty"
_FILLS = {
    PIVOT: palette.RANK_HIGH,
    ZERO: palette.BACKGROUND,
    OTHER: palette.RANK_LOW,
    INFORMATION: palette.HOLDS,
    EMPTY: palette.BACKGROUND,
}
_INKS = {PIVOT: palette.BACKGROUND, ZERO: palette.FAINT_TEXT}


@dataclass(frozen=True)
class Cell:
    """One symbol of a matrix: its text ("" for an empty cell) and its style."""

    text: str
    style: str


@dataclass(frozen=True)
class Sizes:
    """Sizes of cells in pixels; ``gap`` separates the coefficients from the information vector."""

    width: float
    height: float
    text: float
    gap: float = 7.0

    @staticmethod
    def of(texts: Sequence[str], text: float = 12.0, minimum: float = 24.0) -> Sizes:
        """Return cell sizes that have room for each of these texts."""
        widest = max((text_width(cell, text) for cell in texts), default=0.0)
        return Sizes(max(minimum, widest + 10), max(minimum, 2 * text), text)

    def block(self, rows: int, columns: int, symbols: int) -> tuple[float, float]:
        """Return the width and height of a matrix with these numbers of rows, coefficients and information symbols."""
        return (columns + symbols) * self.width + (self.gap if symbols else 0), rows * self.height


def draw_matrix(
    drawing: Drawing, x: float, y: float, rows: Sequence[Sequence[Cell]], sizes: Sizes, columns: int, fresh: int = -1
) -> None:
    """Draw rows of cells with the upper left corner at (x, y).

    The first ``columns`` cells of a row are coefficients. Row ``fresh`` gets a frame (-1: no row).
    """
    for index, row in enumerate(rows):
        top = y + index * sizes.height
        for column, cell in enumerate(row):
            left = x + column * sizes.width + (sizes.gap if column >= columns else 0)
            style = {"fill": _FILLS[cell.style], "stroke": palette.GRID if cell.style == EMPTY else palette.LINK_GOOD}
            drawing.polygon(_corners(left, top, sizes.width, sizes.height), width=0.8, **style)
            ink = _INKS.get(cell.style, palette.TEXT)
            at = left + sizes.width / 2, top + sizes.height / 2 + 0.36 * sizes.text
            drawing.text(*at, cell.text, size=sizes.text, anchor="middle", colour=ink, bold=cell.style == PIVOT)
    if fresh >= 0:  # drawn last, or the next row would cover the frame's lower edge
        width, _ = sizes.block(1, columns, len(rows[fresh]) - columns)
        corners = _corners(x - 1, y + fresh * sizes.height, width + 2, sizes.height)
        drawing.polygon(corners, stroke=palette.LOST, width=2)


def _corners(x: float, y: float, width: float, height: float) -> tuple[tuple[float, float], ...]:
    return (x, y), (x + width, y), (x + width, y + height), (x, y + height)


def empty_rows(count: int, columns: int) -> list[list[Cell]]:
    """Return rows of empty cells, for packets that are still missing."""
    return [[Cell("", EMPTY)] * columns for _ in range(count)]


def matrix_cells(generation_size: int, pivots: Sequence[int]) -> list[list[str]]:
    """Return the cells of a matrix in reduced row echelon form of which only the ``pivots`` are known.

    A cell is "1" or "0" if the pivots determine it, else "".
    """
    others = set(pivots)
    return [
        [
            "1" if column == pivot else "0" if column < pivot or column in others else ""
            for column in range(generation_size)
        ]
        for pivot in sorted(pivots)
    ]


@dataclass(frozen=True)
class Step:
    """The effect of one packet on a decoder.

    packet: the packet's (encoding vector, information vector) as symbols; before, after: the decoder's rows in the same
    form, in the order of their pivots; pivot: the column of the new row's pivot, None if the packet is not innovative.
    number, of: the position of the packet in the sequence, from 1, and the length of the sequence.
    """

    name: str
    number: int
    of: int
    field: Field
    generation_size: int
    packet: Row
    before: tuple[Row, ...]
    after: tuple[Row, ...]
    pivot: int | None

    @property
    def is_innovative(self) -> bool:
        """Whether the packet raised the rank."""
        return self.pivot is not None

    @property
    def is_complete(self) -> bool:
        """Whether the decoder has all chunks afterwards."""
        return len(self.after) == self.generation_size

    def verdict(self) -> str:
        """Return a sentence on the effect of the packet."""
        if not self.is_innovative:
            why = (
                "the event is decoded already" if len(self.before) == self.generation_size else "it depends on the rows"
            )
            return f"{self.name} is not innovative: {why}, and it is dropped."
        rank = f"rank {len(self.after)} of {self.generation_size}"
        done = "; the matrix is the identity, the event is decoded." if self.is_complete else "."
        return f"{self.name} is innovative: a pivot in column {(self.pivot or 0) + 1}, {rank}{done}"

    def drawing(self) -> Drawing:
        """Draw the packet, and the matrix before and after it."""
        return _draw(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {**self.drawing()._repr_mimebundle_(), "text/plain": self.verdict()}


def decoding_steps(
    generation_size: int, field: int, packets: Mapping[str, tuple[Sequence[int], Sequence[int] | bytes]]
) -> tuple[Step, ...]:
    """Decode named packets one by one and return a `Step` for each.

    A packet is a `CodedPacket`, or (encoding vector, information vector) in symbols. Raises DecodeError for a vector
    that does not fit the generation size or the field, ParameterError for an empty mapping.
    """
    if not packets:
        raise ParameterError("decoding_steps: packets is empty; it must map names to (encoding vector, information)")
    decoder = Decoder(generation_size, field, bulk=False)
    steps = []
    before: tuple[Row, ...] = ()
    for number, (name, packet) in enumerate(packets.items(), 1):
        vector, information = _symbols(decoder.field, packet)
        is_innovative = decoder.add(vector, information)
        after = tuple(_row(decoder, pivot, len(information)) for pivot in decoder.pivots)
        new_pivot = decoder.arrivals[-1] if is_innovative else None
        row = (vector, information)
        steps.append(Step(name, number, len(packets), decoder.field, generation_size, row, before, after, new_pivot))
        before = after
    return tuple(steps)


def _symbols(field: Field, packet: tuple[Sequence[int], Sequence[int] | bytes]) -> Row:
    vector, information = packet
    symbols = field.unpack(information) if isinstance(information, bytes) else information
    return tuple(map(int, vector)), tuple(map(int, symbols))


def _row(decoder: Decoder, pivot: int, symbols: int) -> Row:
    packet = decoder.row(pivot)
    return tuple(packet.encoding_vector), tuple(decoder.field.unpack(packet.information_vector, symbols))


# Drawing


def _draw(step: Step) -> Drawing:
    size = step.generation_size
    symbols = min(len(step.packet[1]), MOST_SYMBOLS)
    cells = [_cells(row, symbols) for row in (step.packet, *step.before, *step.after)]
    sizes = Sizes.of([cell.text for row in cells for cell in row])
    wide, high = sizes.block(size, size, symbols)
    verdict, title = step.verdict(), f"Packet {step.number} of {step.of} over {step.field!r}"
    width = max(2 * wide + ARROW + 2 * MARGIN, 1.08 * text_width(verdict, 12) + 2 * MARGIN, 420)
    top = 78 + HEADER + sizes.height + 34
    drawing = Drawing(width, top + high + MARGIN, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    drawing.text(MARGIN, 48, verdict, size=12, colour=palette.TEXT if step.is_innovative else palette.LOST)
    after = MARGIN + wide + ARROW
    left = MARGIN
    drawing.text(left, 72, step.name, size=12, bold=True)
    _header(drawing, left, 78, sizes, size, symbols)
    draw_matrix(drawing, left, 78 + HEADER, [_cells(step.packet, symbols)], sizes, size)
    for x, name, rows in ((left, "before", step.before), (after, "after", step.after)):
        drawing.text(x, top - 8, name, size=12, bold=True)
        matrix = [_cells(row, symbols, pivots=True) for row in rows] + empty_rows(size - len(rows), size + symbols)
        fresh = _fresh(step) if name == "after" else -1
        draw_matrix(drawing, x, top, matrix, sizes, size, fresh)
    middle = top + high / 2
    drawing.arrow(left + wide + 12, middle, after - 12, middle, head=10, colour=palette.OUTLINE, width=1.6)
    return drawing


def _header(drawing: Drawing, x: float, y: float, sizes: Sizes, size: int, symbols: int) -> None:
    style = {"size": 11.0, "anchor": "middle", "colour": palette.FAINT_TEXT}
    for column in range(size):
        drawing.text(x + (column + 0.5) * sizes.width, y + 14, f"x{column + 1}", **style)
    start = x + size * sizes.width + sizes.gap
    drawing.text(start + symbols * sizes.width / 2, y + 14, "y", **style)


def _fresh(step: Step) -> int:
    if step.pivot is None:
        return -1
    return [next(i for i, symbol in enumerate(vector) if symbol) for vector, _ in step.after].index(step.pivot)


def _cells(row: Row, symbols: int, pivots: bool = False) -> list[Cell]:
    vector, information = row
    first = next((index for index, symbol in enumerate(vector) if symbol), None) if pivots else None
    styles = [PIVOT if index == first else OTHER if symbol else ZERO for index, symbol in enumerate(vector)]
    cells = [Cell(str(symbol), style) for symbol, style in zip(vector, styles, strict=True)]
    texts = [str(symbol) for symbol in information[:symbols]]
    if len(information) > symbols:
        texts[-1] = "…"
    return cells + [Cell(text, INFORMATION) for text in texts]


# Stepping


def step_through(steps: Sequence[Step]) -> Stepper:
    """Return a `Stepper`: a slider over the drawings of these steps."""
    return Stepper([step.drawing() for step in steps], [step.name for step in steps], "packet")


@carries_record
def decoding_matrices(run: Any, nodes: Sequence[int], event: Event | None = None) -> Drawing:
    """Draw the decoding matrix of each node after each innovative packet, as far as the trace determines it.

    Dark cells are pivots, light cells are coefficients that the trace does not contain, and white cells are 0. A node
    that heard the event itself has no matrix. Raises ParameterError for an event that is not in the run or was not
    coded, or a node that is not in the network.
    """
    spread = progress(run.trace, event)
    size = spread.generation_size
    unknown = [node for node in nodes if node not in run.scenario.topology]
    if unknown or not nodes:
        raise ParameterError(f"decoding_matrices: nodes is {list(nodes)!r}; it must list nodes of this network")
    if not size:
        raise ParameterError(f"decoding_matrices: event {spread.event} of this run was not coded")
    side = float(np.clip(150 / size, 7, 20))
    sizes = Sizes(side, side, 0.62 * side)
    wide, high = sizes.block(size, size, 0)
    label = max(text_width(f"node {node}", SMALL + 1) for node in nodes) + 26
    drawing = Drawing(label + size * (wide + GUTTER) + NARROW, 8, title=f"decoding of event {spread.event}")
    for node in nodes:
        top, matrices = drawing.height, _innovative_packets(run.trace, spread, node)
        drawing.height += high + 40 if matrices else 36
        middle = top + (26 + high / 2 if matrices else 22)
        drawing.text(NARROW, middle, f"node {node}", size=SMALL + 1, bold=True)
        if not matrices:
            note = "heard the event itself" if node in spread.held_us else "got no packet"
            drawing.text(label, middle, note, size=SMALL, colour=palette.FAINT_TEXT)
        for column, (time_us, pivots) in enumerate(matrices):
            x, age_ms = label + column * (wide + GUTTER), (time_us - spread.made_us) / 1e3
            drawing.text(x, top + 16, f"{age_ms:,.0f} ms", size=SMALL, colour=palette.FAINT_TEXT)
            _matrix(drawing, x, top + 22, size, pivots, sizes)
    return drawing


def _matrix(drawing: Drawing, x: float, y: float, size: int, pivots: Sequence[int], sizes: Sizes) -> None:
    styles = {"1": PIVOT, "0": ZERO, "": OTHER}
    rows = [[Cell(cell, styles[cell]) for cell in row] for row in matrix_cells(size, pivots)]
    fresh = sorted(pivots).index(pivots[-1])
    draw_matrix(drawing, x, y, rows + empty_rows(size - len(rows), size), sizes, size, fresh)


def _innovative_packets(trace: Any, spread: Progress, node: int) -> list[tuple[int, tuple[int, ...]]]:
    """Return [(time in µs, pivots up to then), ...] for the innovative packets of a node, all in order of arrival."""
    columns = of_event(Columns(trace), spread.event)
    rows = columns.where(event="innovative")
    rows = rows[columns["node"][rows] == node]
    packets: list[tuple[int, tuple[int, ...]]] = []
    for time_us, rank, pivot in columns.tuples(rows, "time_us", "value", "detail"):
        before = packets[-1][1] if packets and rank > 1 else ()
        packets = packets if before else []  # a rank of 1 begins a new decoder
        packets.append((time_us, (*before, int(pivot))))
    return packets

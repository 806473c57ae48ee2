"""A decoder step by step, for a class: each packet, the matrix before it and after it, with all coefficients.

    steps = decoding_steps(3, 257, {"P1": ([1, 2, 3], [6]), "P2": ([3, 2, 4], [9])})
    steps[0].is_innovative, steps[0].pivot
    step_through(steps)      a slider over their drawings; where there is no kernel, the last of them

Packets go through `workbench.coding.rlnc.Decoder` itself: what is drawn is what it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.coding.fields import Field
from workbench.coding.rlnc import Decoder
from workbench.errors import ParameterError
from workbench.protocols.coded_diffusion.views.matrix import (
    INFORMATION,
    OTHER,
    PIVOT,
    ZERO,
    Cell,
    Sizes,
    draw_matrix,
    empty_rows,
)
from workbench.views import palette
from workbench.views.drawing import Drawing, text_width
from workbench.views.stepper import Stepper

MOST_SYMBOLS = 4
MARGIN = 16.0
ARROW = 56.0
HEADER = 20.0

Row = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Step:
    """What a packet did to a decoder.

    packet: its (encoding vector, information vector) as symbols; before, after: the decoder's rows in the same form, in
    the order of their pivots; pivot: the column of the new row's pivot, None for a packet that was not innovative.
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
        """What happened, in a sentence."""
        if not self.is_innovative:
            why = (
                "the event is decoded already" if len(self.before) == self.generation_size else "it depends on the rows"
            )
            return f"{self.name} is not innovative: {why}, and it is dropped."
        rank = f"rank {len(self.after)} of {self.generation_size}"
        done = "; the matrix is the identity, the event is decoded." if self.is_complete else "."
        return f"{self.name} is innovative: a pivot in column {(self.pivot or 0) + 1}, {rank}{done}"

    def drawing(self) -> Drawing:
        """The packet, and the matrix before and after it."""
        return _draw(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {**self.drawing()._repr_mimebundle_(), "text/plain": self.verdict()}


def decoding_steps(
    generation_size: int, field: int, packets: Mapping[str, tuple[Sequence[int], Sequence[int] | bytes]]
) -> tuple[Step, ...]:
    """Put named packets into a decoder, and tell each step.

    A packet is a `CodedPacket`, or (encoding vector, information vector) in symbols. Raises DecodeError for a vector
    that is not of this generation or field, ParameterError if there are no packets.
    """
    if not packets:
        raise ParameterError("decoding_steps: there are no packets; a name and (encoding vector, information) are one")
    decoder = Decoder(generation_size, field, bulk=False)
    steps = []
    before: tuple[Row, ...] = ()
    for number, (name, packet) in enumerate(packets.items(), 1):
        vector, information = _symbols(decoder.field, packet)
        is_innovative = decoder.add(vector, information)
        after = tuple(_row(decoder, one, len(information)) for one in decoder.pivots)
        pivot = decoder.arrivals[-1] if is_innovative else None
        row = (vector, information)
        steps.append(Step(name, number, len(packets), decoder.field, generation_size, row, before, after, pivot))
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
    shown = min(len(step.packet[1]), MOST_SYMBOLS)
    cells = [_cells(row, shown) for row in (step.packet, *step.before, *step.after)]
    sizes = Sizes.of([cell.text for row in cells for cell in row])
    wide, high = sizes.block(size, size, shown)
    verdict, title = step.verdict(), f"Packet {step.number} of {step.of} over {step.field!r}"
    width = max(2 * wide + ARROW + 2 * MARGIN, 1.08 * text_width(verdict, 12) + 2 * MARGIN, 420)
    top = 78 + HEADER + sizes.height + 34
    drawing = Drawing(width, top + high + MARGIN, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    drawing.text(MARGIN, 48, verdict, size=12, colour=palette.TEXT if step.is_innovative else palette.LOST)
    after = MARGIN + wide + ARROW
    left = MARGIN
    drawing.text(left, 72, step.name, size=12, bold=True)
    _header(drawing, left, 78, sizes, size, shown)
    draw_matrix(drawing, left, 78 + HEADER, [_cells(step.packet, shown)], sizes, size)
    for x, name, rows in ((left, "before", step.before), (after, "after", step.after)):
        drawing.text(x, top - 8, name, size=12, bold=True)
        matrix = [_cells(row, shown, pivots=True) for row in rows] + empty_rows(size - len(rows), size + shown)
        fresh = _fresh(step) if name == "after" else -1
        draw_matrix(drawing, x, top, matrix, sizes, size, fresh)
    middle = top + high / 2
    drawing.arrow(left + wide + 12, middle, after - 12, middle, head=10, colour=palette.OUTLINE, width=1.6)
    return drawing


def _header(drawing: Drawing, x: float, y: float, sizes: Sizes, size: int, symbols: int) -> None:
    look = {"size": 11.0, "anchor": "middle", "colour": palette.FAINT_TEXT}
    for column in range(size):
        drawing.text(x + (column + 0.5) * sizes.width, y + 14, f"x{column + 1}", **look)
    start = x + size * sizes.width + sizes.gap
    drawing.text(start + symbols * sizes.width / 2, y + 14, "y", **look)


def _fresh(step: Step) -> int:
    if step.pivot is None:
        return -1
    return [next(i for i, one in enumerate(vector) if one) for vector, _ in step.after].index(step.pivot)


def _cells(row: Row, symbols: int, pivots: bool = False) -> list[Cell]:
    vector, information = row
    first = next((index for index, one in enumerate(vector) if one), None) if pivots else None
    looks = [PIVOT if index == first else OTHER if one else ZERO for index, one in enumerate(vector)]
    cells = [Cell(str(one), look) for one, look in zip(vector, looks, strict=True)]
    texts = [str(one) for one in information[:symbols]]
    if len(information) > symbols:
        texts[-1] = "…"
    return cells + [Cell(text, INFORMATION) for text in texts]


# Stepping


def step_through(steps: Sequence[Step]) -> Stepper:
    """A `Stepper` over the drawings of some steps."""
    return Stepper([step.drawing() for step in steps], [step.name for step in steps], "packet")

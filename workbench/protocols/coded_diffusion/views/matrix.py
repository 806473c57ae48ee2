"""Decoding matrices as drawings: cells with what is in them, pivots marked."""

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.views import palette
from workbench.views.drawing import Drawing, text_width

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
    """One symbol of a matrix: what is written in it ("" for nothing) and what it is."""

    text: str
    look: str


@dataclass(frozen=True)
class Sizes:
    """Cells in px; between the coefficients and the information vector lies a gap."""

    width: float
    height: float
    text: float
    gap: float = 7.0

    @staticmethod
    def of(texts: Sequence[str], text: float = 12.0, least: float = 24.0) -> "Sizes":
        """Sizes that hold all of these texts."""
        widest = max((text_width(one, text) for one in texts), default=0.0)
        return Sizes(max(least, widest + 10), max(least, 2 * text), text)

    def block(self, rows: int, columns: int, symbols: int) -> tuple[float, float]:
        """Width and height of a matrix of so many rows, coefficients, and symbols of information."""
        return (columns + symbols) * self.width + (self.gap if symbols else 0), rows * self.height


def draw_matrix(
    drawing: Drawing, x: float, y: float, rows: Sequence[Sequence[Cell]], sizes: Sizes, columns: int, fresh: int = -1
) -> None:
    """Draw rows of cells from an upper left corner; the first ``columns`` are coefficients, row ``fresh`` is framed."""
    for index, row in enumerate(rows):
        top = y + index * sizes.height
        for place, cell in enumerate(row):
            left = x + place * sizes.width + (sizes.gap if place >= columns else 0)
            look = {"fill": _FILLS[cell.look], "stroke": palette.GRID if cell.look == EMPTY else palette.LINK_GOOD}
            drawing.polygon(_corners(left, top, sizes.width, sizes.height), width=0.8, **look)
            ink = _INKS.get(cell.look, palette.TEXT)
            at = left + sizes.width / 2, top + sizes.height / 2 + 0.36 * sizes.text
            drawing.text(*at, cell.text, size=sizes.text, anchor="middle", colour=ink, bold=cell.look == PIVOT)
    if fresh >= 0:  # last, or the next row would cover its lower edge
        width, _ = sizes.block(1, columns, len(rows[fresh]) - columns)
        corners = _corners(x - 1, y + fresh * sizes.height, width + 2, sizes.height)
        drawing.polygon(corners, stroke=palette.LOST, width=2)


def _corners(x: float, y: float, width: float, height: float) -> tuple[tuple[float, float], ...]:
    return (x, y), (x + width, y), (x + width, y + height), (x, y + height)


def empty_rows(count: int, columns: int) -> list[list[Cell]]:
    """Rows that are still to come."""
    return [[Cell("", EMPTY)] * columns for _ in range(count)]


def matrix_cells(generation_size: int, pivots: Sequence[int]) -> list[list[str]]:
    """What pivots tell of a matrix in reduced row echelon form: for each row its cells, "1", "0" or "" (unknown)."""
    others = set(pivots)
    return [
        [
            "1" if column == pivot else "0" if column < pivot or column in others else ""
            for column in range(generation_size)
        ]
        for pivot in sorted(pivots)
    ]

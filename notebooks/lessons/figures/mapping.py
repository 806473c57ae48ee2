"""The mapping of queries and events to strings step by step, for a class.

    mapping_table(protocol, text)                      each dimension: bounds, h of them, the cells as bits
    mapping_strings(protocol, text)                    SK of a query or EK of an event, as strings
    mapping_drawing(protocol, query, event=None)       the plane of two dimensions, each cell with its string

A text with IS attributes is an event, any other a query. What is shown is what `workbench.protocols.tinymq.mapping`
answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.attributes.keys import key_of
from workbench.attributes.model import EQ, GE, GT, IS, LE, LT
from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.tinymq.mapping import Dimension
from workbench.protocols.tinymq.views.looks import MESSAGES
from workbench.protocols.tinymq.wire import bits
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.legend import legend_drawing

if TYPE_CHECKING:
    import pandas as pd

MOST_STRINGS = 256
MARGIN = 16.0
SMALL = 11.0


def _box(protocol: Any, text: str) -> tuple[tuple[tuple[int, int], ...], tuple[Any, ...]]:
    attributes = parse(text)
    is_event = any(one.operator == IS for one in attributes)
    mapping = protocol.mapping
    return (mapping.event_box(attributes) if is_event else mapping.query_box(attributes)), attributes


def mapping_table(protocol: Any, text: str) -> pd.DataFrame:
    """Columns: dimension, range, bits, from, to, h(from), h(to), cells; a row for each dimension.

    ``from`` and ``to`` are the values that the text names, or the range's bounds where it names none.
    """
    import pandas as pd

    box, attributes = _box(protocol, text)
    rows = []
    for dimension, (first, last) in zip(protocol.mapping.dimensions, box, strict=True):
        key = key_of(dimension.key)
        low, high = _bounds(dimension, attributes)
        cells = [bits(cell, dimension.bits) for cell in range(first, last + 1)]
        rows.append(
            {
                "dimension": f"{key.name} ({key.unit})" if key.unit else key.name,
                "range": f"{dimension.low / key.steps:g} … {dimension.high / key.steps:g}",
                "bits": dimension.bits,
                "from": low / key.steps,
                "to": high / key.steps,
                "h(from)": first,
                "h(to)": last,
                "cells": ", ".join(cells),
            }
        )
    return pd.DataFrame(rows)


def _bounds(dimension: Dimension, attributes: tuple[Any, ...]) -> tuple[int, int]:
    values = {
        side: [one.value for one in attributes if one.key == dimension.key and one.operator in operators]
        for side, operators in (("low", (EQ, GE, GT, IS)), ("high", (EQ, LE, LT, IS)))
    }
    low, high = max(values["low"], default=dimension.low), min(values["high"], default=dimension.high)
    return low, high


def mapping_strings(protocol: Any, text: str) -> list[str]:
    """The strings of a query or an event, ascending. ParameterError if there are more than can be looked at."""
    box, _ = _box(protocol, text)
    count = int(np.prod([float(high - low + 1) for low, high in box]))
    if count > MOST_STRINGS:
        raise ParameterError(
            f"mapping_strings: {text!r} has {count:,} strings; {MOST_STRINGS} at most can be written out"
        )
    return [bits(string, protocol.key_bits) for string in protocol.mapping.cells(box)]


def mapping_drawing(protocol: Any, query: str, event: str | None = None, width: int = 560) -> Drawing:
    """Each cell with its string: those of the query tinted, the event's framed, the query's own bounds dashed.

    ParameterError unless there are two dimensions with cells that can be told apart on a page.
    """
    dimensions = protocol.mapping.dimensions
    if len(dimensions) != 2 or max(dimension.bits for dimension in dimensions) > 4:
        raise ParameterError("mapping_drawing: it draws two dimensions of up to 4 bits each")
    rows, columns = (1 << dimension.bits for dimension in dimensions)
    left, top = 78.0, 48.0
    wide = (width - left - MARGIN) / columns
    high = min(wide * 0.62, 460 / rows)
    title = "From values to strings"
    drawing = Drawing(width, top + rows * high + 46, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    covered, hit = set(mapping_strings(protocol, query)), set(mapping_strings(protocol, event)) if event else set()
    for row in range(rows):
        for column in range(columns):
            string = bits(row << dimensions[1].bits | column, protocol.key_bits)
            x, y = left + wide * column, top + high * (rows - 1 - row)
            fill = palette.blend(palette.BACKGROUND, MESSAGES["query"], 0.45 if string in covered else 0.0)
            drawing.frame(x, y, wide, high, fill=fill, stroke=palette.LINK_GOOD, width=0.8)
            drawing.text(x + 8, y + 17, string, size=SMALL, bold=string in covered)
    for string in hit:
        row, column = divmod(int(string, 2), columns)
        x, y = left + wide * column, top + high * (rows - 1 - row)
        drawing.frame(x + 2, y + 2, wide - 4, high - 4, stroke=MESSAGES["event"], width=2.6)
    ground = _Ground(left, top, wide * columns, high * rows, dimensions)
    _exact(drawing, ground, parse(query))
    if event:
        _point(drawing, ground, parse(event))
    _axes(drawing, ground)
    entries = [("box", palette.blend(palette.BACKGROUND, MESSAGES["query"], 0.45), "SK: strings of the query")]
    entries.append(("dash", palette.TEXT, "what it asks for"))
    if event:
        entries += [("frame", MESSAGES["event"], "EK: the event's string"), ("dot", MESSAGES["event"], "the event")]
    legend = legend_drawing(entries, width)
    drawing.add(legend, 0, drawing.height)
    drawing.height += legend.height
    return drawing


class _Ground:
    """Where values lie on the page: the first dimension upwards, the second to the right."""

    def __init__(self, left: float, top: float, wide: float, high: float, dimensions: list[Dimension]) -> None:
        self.left, self.top, self.wide, self.high, self.dimensions = left, top, wide, high, dimensions

    def x(self, value: float) -> float:
        return self.left + self.wide * self._share(self.dimensions[1], value)

    def y(self, value: float) -> float:
        return self.top + self.high * (1 - self._share(self.dimensions[0], value))

    @staticmethod
    def _share(dimension: Dimension, value: float) -> float:
        share = (value - dimension.low) / (dimension.high - dimension.low)
        return min(max(share, 0.0), 1.0)


def _exact(drawing: Drawing, ground: _Ground, attributes: tuple[Any, ...]) -> None:
    (low_y, high_y), (low_x, high_x) = (_bounds(dimension, attributes) for dimension in ground.dimensions)
    x0, x1, y0, y1 = ground.x(low_x), ground.x(high_x), ground.y(low_y), ground.y(high_y)
    for ends in ((x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)):
        drawing.segment(*ends, colour=palette.TEXT, width=1.4, dash=(4, 3))


def _point(drawing: Drawing, ground: _Ground, attributes: tuple[Any, ...]) -> None:
    (low_y, _), (low_x, _) = (_bounds(dimension, attributes) for dimension in ground.dimensions)
    look = {"fill": MESSAGES["event"], "stroke": palette.TEXT}
    drawing.circle(ground.x(low_x), ground.y(low_y), 4.5, fill=look["fill"], stroke=look["stroke"], width=1)


def _axes(drawing: Drawing, ground: _Ground) -> None:
    first, second = ground.dimensions
    for dimension in (first, second):
        key = key_of(dimension.key)
        count = min(1 << dimension.bits, 8)
        name = f"{key.name} ({key.unit})" if key.unit else key.name
        for index in range(count + 1):
            value = dimension.low + index / count * (dimension.high - dimension.low)
            text = f"{value / key.steps:.4g}"
            if dimension is second:
                y = ground.top + ground.high + 15
                drawing.text(ground.x(value), y, text, size=SMALL - 1, anchor="middle", colour=palette.FAINT_TEXT)
            else:
                at = ground.left - 6, ground.y(value) + 4
                drawing.text(*at, text, size=SMALL - 1, anchor="end", colour=palette.FAINT_TEXT)
        if dimension is second:
            at = ground.left + ground.wide / 2, ground.top + ground.high + 33
            drawing.text(*at, name, size=SMALL, anchor="middle")
        else:
            drawing.text(28, ground.top + ground.high / 2, name, size=SMALL, anchor="middle", turn=90)

"""The mapping of TinyMQ's queries and events to strings, step by step, for teaching.

    mapping_table(protocol, text)                      for each dimension the bounds, their cells, and the cells as bits
    mapping_strings(protocol, text)                    the strings of a query (SK in the paper) or of an event (EK)
    mapping_drawing(protocol, query, event=None)       the plane of two dimensions, each cell with its string

The range of a dimension is cut into cells; h(v) is the number of the cell that contains the value v. A text with IS
attributes is an event, any other text a query. `workbench.protocols.tinymq.mapping` computes the results.
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
    is_event = any(attribute.operator == IS for attribute in attributes)
    mapping = protocol.mapping
    return (mapping.event_box(attributes) if is_event else mapping.query_box(attributes)), attributes


def mapping_table(protocol: Any, text: str) -> pd.DataFrame:
    """Tabulate the mapping of a query or an event, a row for each dimension.

    Columns: dimension, range, bits, from, to, h(from), h(to), cells. ``from`` and ``to`` are the bounds in the text. If
    the text has no bound, that of the dimension's range is used. ``h`` is the number of a value's cell.
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
        side: [
            attribute.value
            for attribute in attributes
            if attribute.key == dimension.key and attribute.operator in operators
        ]
        for side, operators in (("low", (EQ, GE, GT, IS)), ("high", (EQ, LE, LT, IS)))
    }
    low, high = max(values["low"], default=dimension.low), min(values["high"], default=dimension.high)
    return low, high


def mapping_strings(protocol: Any, text: str) -> list[str]:
    """Return the strings of a query or an event, ascending. Raises ParameterError if there are more than 256."""
    box, _ = _box(protocol, text)
    count = int(np.prod([float(high - low + 1) for low, high in box]))
    if count > MOST_STRINGS:
        raise ParameterError(f"mapping_strings: {text!r} has {count:,} strings; at most {MOST_STRINGS} can be listed")
    return [bits(string, protocol.key_bits) for string in protocol.mapping.cells(box)]


def mapping_drawing(protocol: Any, query: str, event: str | None = None, width: int = 560) -> Drawing:
    """Draw the plane of two dimensions as cells with their strings.

    The query's cells are tinted, the event's cell has a frame, and a dashed line marks the query's exact bounds. Raises
    ParameterError unless the protocol has two dimensions of at most 4 bits each.
    """
    dimensions = protocol.mapping.dimensions
    if len(dimensions) != 2 or max(dimension.bits for dimension in dimensions) > 4:
        raise ParameterError(
            f"mapping_drawing: the protocol has dimensions of {[dimension.bits for dimension in dimensions]} bits; "
            "two dimensions of at most 4 bits each can be drawn"
        )
    rows, columns = (1 << dimension.bits for dimension in dimensions)
    left, top = 78.0, 48.0
    wide = (width - left - MARGIN) / columns
    high = min(wide * 0.62, 460 / rows)
    title = "From values to strings"
    drawing = Drawing(width, top + rows * high + 46, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    query_strings, event_strings = (
        set(mapping_strings(protocol, query)),
        set(mapping_strings(protocol, event)) if event else set(),
    )
    for row in range(rows):
        for column in range(columns):
            string = bits(row << dimensions[1].bits | column, protocol.key_bits)
            x, y = left + wide * column, top + high * (rows - 1 - row)
            fill = palette.blend(palette.BACKGROUND, MESSAGES["query"], 0.45 if string in query_strings else 0.0)
            drawing.frame(x, y, wide, high, fill=fill, stroke=palette.LINK_GOOD, width=0.8)
            drawing.text(x + 8, y + 17, string, size=SMALL, bold=string in query_strings)
    for string in event_strings:
        row, column = divmod(int(string, 2), columns)
        x, y = left + wide * column, top + high * (rows - 1 - row)
        drawing.frame(x + 2, y + 2, wide - 4, high - 4, stroke=MESSAGES["event"], width=2.6)
    plane = _Plane(left, top, wide * columns, high * rows, dimensions)
    _draw_bounds(drawing, plane, parse(query))
    if event:
        _draw_event(drawing, plane, parse(event))
    _draw_axes(drawing, plane)
    entries = [("box", palette.blend(palette.BACKGROUND, MESSAGES["query"], 0.45), "SK: strings of the query")]
    entries.append(("dash", palette.TEXT, "what it asks for"))
    if event:
        entries += [("frame", MESSAGES["event"], "EK: the event's string"), ("dot", MESSAGES["event"], "the event")]
    legend = legend_drawing(entries, width)
    drawing.add(legend, 0, drawing.height)
    drawing.height += legend.height
    return drawing


class _Plane:
    """The conversion of values to positions in a drawing: the first dimension is vertical, the second horizontal."""

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


def _draw_bounds(drawing: Drawing, plane: _Plane, attributes: tuple[Any, ...]) -> None:
    (low_y, high_y), (low_x, high_x) = (_bounds(dimension, attributes) for dimension in plane.dimensions)
    x0, x1, y0, y1 = plane.x(low_x), plane.x(high_x), plane.y(low_y), plane.y(high_y)
    for ends in ((x0, y0, x1, y0), (x1, y0, x1, y1), (x1, y1, x0, y1), (x0, y1, x0, y0)):
        drawing.segment(*ends, colour=palette.TEXT, width=1.4, dash=(4, 3))


def _draw_event(drawing: Drawing, plane: _Plane, attributes: tuple[Any, ...]) -> None:
    (low_y, _), (low_x, _) = (_bounds(dimension, attributes) for dimension in plane.dimensions)
    drawing.circle(plane.x(low_x), plane.y(low_y), 4.5, fill=MESSAGES["event"], stroke=palette.TEXT, width=1)


def _draw_axes(drawing: Drawing, plane: _Plane) -> None:
    first, second = plane.dimensions
    for dimension in (first, second):
        key = key_of(dimension.key)
        count = min(1 << dimension.bits, 8)
        name = f"{key.name} ({key.unit})" if key.unit else key.name
        for index in range(count + 1):
            value = dimension.low + index / count * (dimension.high - dimension.low)
            text = f"{value / key.steps:.4g}"
            if dimension is second:
                y = plane.top + plane.high + 15
                drawing.text(plane.x(value), y, text, size=SMALL - 1, anchor="middle", colour=palette.FAINT_TEXT)
            else:
                at = plane.left - 6, plane.y(value) + 4
                drawing.text(*at, text, size=SMALL - 1, anchor="end", colour=palette.FAINT_TEXT)
        if dimension is second:
            at = plane.left + plane.wide / 2, plane.top + plane.high + 33
            drawing.text(*at, name, size=SMALL, anchor="middle")
        else:
            drawing.text(28, plane.top + plane.high / 2, name, size=SMALL, anchor="middle", turn=90)

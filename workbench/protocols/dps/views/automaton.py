"""A drawing of the state machine of a link, made from its table: states, transitions, and the table itself.

python -m workbench.protocols.dps.views.automaton docs/images/dps-links.svg
"""

from __future__ import annotations

import math
import sys
import textwrap

from workbench.protocols.dps.automaton import (
    ACTIVE,
    GONE,
    LINKING,
    MUTED,
    TABLE,
    UNLINKING,
    UNMUTING,
    Entry,
    Input,
    State,
)
from workbench.views.drawing import Drawing
from workbench.views.palette import (
    BACKGROUND,
    DELIVERED,
    FAILED,
    FAINT_TEXT,
    GRADIENT,
    GRID,
    LOST,
    NODE,
    REINFORCED,
    TEXT,
)

_WIDTH, _MARGIN = 1000, 20
_CENTRES = {
    GONE: (125, 230),
    LINKING: (425, 60),
    ACTIVE: (425, 230),
    MUTED: (865, 230),
    UNMUTING: (865, 400),
    UNLINKING: (425, 400),
}
_COLOURS = {
    GONE: FAILED,
    LINKING: GRADIENT,
    ACTIVE: DELIVERED,
    MUTED: LOST,
    UNMUTING: REINFORCED,
    UNLINKING: FAINT_TEXT,
}
_BOX = 212, 66
_ARROW_SHIFT, _ARROW_HEAD = 9, 9
_GRAPH_HEIGHT = 470
_CAPTION = (
    "The state changes first, then the actions are done in this order. "
    "In a state with an empty cell the input cannot occur."
)
_NAMES_WIDTH, _LINE, _SMALL = 190, 12, 9.5
_COLUMN = (_WIDTH - 2 * _MARGIN - _NAMES_WIDTH) / len(State)


def draw() -> Drawing:
    """Draw the states of a link with their transitions and, below, the actions for each input and state."""
    table_rows = [_table_row_cells(link_input) for link_input in Input]
    heights = [_LINE * max(map(len, table_row)) + 10 for table_row in table_rows]
    drawing = Drawing(_WIDTH, _GRAPH_HEIGHT + 30 + sum(heights) + _MARGIN, "States of a DPS link")
    for (start_state, end_state), input_names in _inputs_of_transitions().items():
        _draw_transition(drawing, start_state, end_state, ", ".join(input_names))
    for state in _CENTRES:
        _draw_state(drawing, state)
    drawing.text(_MARGIN, _GRAPH_HEIGHT - 12, _CAPTION, size=11.5, colour=FAINT_TEXT)
    _draw_head(drawing, _GRAPH_HEIGHT + 18)
    next_y = _GRAPH_HEIGHT + 30.0
    for link_input, table_row, row_height in zip(Input, table_rows, heights, strict=True):
        _draw_row(drawing, link_input, table_row, next_y)
        next_y += row_height
    return drawing


# The states


def _inputs_of_transitions() -> dict[tuple[State, State], list[str]]:
    """Return {(state, next state): labels of the inputs that cause this transition}, without transitions to GONE.

    Almost every state has a transition to GONE. So the drawing has no arrows for these transitions; the box of a state
    lists the inputs that lead to GONE.
    """
    input_labels: dict[tuple[State, State], list[str]] = {}
    for state, entries in TABLE.items():
        for link_input, entry in entries.items():
            if entry.state is not None and entry.state not in (state, GONE):
                input_labels.setdefault((state, entry.state), []).append(link_input.label)
    return input_labels


def _ending_inputs(state: State) -> list[str]:
    return [link_input.label for link_input, entry in TABLE[state].items() if entry.state == GONE != state]


def _draw_state(drawing: Drawing, state: State) -> None:
    x, y = _CENTRES[state]
    box_width, box_height = _BOX
    colour = _COLOURS[state]
    drawing.rectangle(x - box_width / 2, y - box_height / 2, box_width, box_height, fill=NODE, stroke=colour)
    drawing.text(x, y - 12, state.label, size=15, bold=True, colour=colour, anchor="middle")
    drawing.text(x, y + 5, state.meaning, size=10.5, anchor="middle")
    ending_inputs = _ending_inputs(state)
    if ending_inputs:
        drawing.text(
            x, y + 22, "gone: " + ", ".join(sorted(ending_inputs)), size=10.5, colour=FAINT_TEXT, anchor="middle"
        )


def _draw_transition(drawing: Drawing, start: State, end: State, names: str) -> None:
    """Draw an arrow from one state to another, with the text ``names`` (the inputs) beside it.

    The arrow is moved slightly to its own left, so that it does not cover the arrow in the opposite direction.
    """
    (x0, y0), (x1, y1) = _CENTRES[start], _CENTRES[end]
    arrow_length = math.hypot(x1 - x0, y1 - y0)
    ux, uy = (x1 - x0) / arrow_length, (y1 - y0) / arrow_length
    aside_x, aside_y = _ARROW_SHIFT * uy, -_ARROW_SHIFT * ux
    start_distance = _distance_to_edge(ux, uy, aside_x, aside_y)
    end_distance = arrow_length - _distance_to_edge(-ux, -uy, aside_x, aside_y) - _ARROW_HEAD / 2
    (x0, y0), (x1, y1) = (
        (x0 + aside_x + distance * ux, y0 + aside_y + distance * uy) for distance in (start_distance, end_distance)
    )
    drawing.arrow(x0, y0, x1, y1, head=_ARROW_HEAD, colour=_COLOURS[end], width=1.6)
    text_share = 0.5 if ux == 0 or uy == 0 else 0.3
    x, y = x0 + text_share * (x1 - x0), y0 + text_share * (y1 - y0)
    if ux == 0:
        drawing.text(x + math.copysign(6, aside_x), y + 4, names, size=11.5, anchor="start" if aside_x > 0 else "end")
    else:
        drawing.text(x, y + (-5 if aside_y <= 0 else 14), names, size=11.5, anchor="middle", halo=BACKGROUND)


def _distance_to_edge(ux: float, uy: float, x: float, y: float) -> float:
    """Return the distance from a point in a state's box to the box's edge, in the direction (ux, uy).

    (ux, uy) is a unit vector; (x, y) is the point relative to the center of the box.
    """
    width, height = _BOX
    to_side = (math.copysign(width / 2, ux) - x) / ux if ux else math.inf
    return min(to_side, (math.copysign(height / 2, uy) - y) / uy if uy else math.inf)


# The table


def _table_row_cells(link_input: Input) -> list[list[str]]:
    """Return the cells of the drawn table's row for an input, each as a list of lines of text.

    The first cell has the input's meaning. There is one more cell for each state, with the next state and the actions.
    """
    meaning = textwrap.wrap(link_input.meaning, 36)
    return [["", *meaning], *(_cell(state, TABLE[state][link_input]) for state in _CENTRES)]


def _cell(state: State, entry: Entry) -> list[str]:
    if entry.state is None:
        return [""]
    next_state = "stays" if entry.state == state else entry.state.label
    return [next_state, *(action.label for action in entry.actions)]


def _draw_head(drawing: Drawing, y: float) -> None:
    drawing.text(_MARGIN, y, "input", size=12, bold=True)
    for column, state in enumerate(_CENTRES):
        x = _MARGIN + _NAMES_WIDTH + column * _COLUMN
        drawing.text(x, y, state.label, size=12, bold=True, colour=_COLOURS[state])


def _draw_row(drawing: Drawing, link_input: Input, cells: list[list[str]], y: float) -> None:
    drawing.segment(_MARGIN, y - 4, _WIDTH - _MARGIN, y - 4, colour=GRID)
    drawing.text(_MARGIN, y + 9, link_input.label, size=11.5, bold=True)
    for k, meaning_line in enumerate(cells[0][1:], 1):
        drawing.text(_MARGIN, y + 9 + k * _LINE, meaning_line, size=_SMALL, colour=FAINT_TEXT)
    for column, (state, cell_lines) in enumerate(zip(_CENTRES, cells[1:], strict=True)):
        x = _MARGIN + _NAMES_WIDTH + column * _COLUMN
        next_state = TABLE[state][link_input].state
        colour = TEXT if next_state is None else _COLOURS[next_state]
        drawing.text(x, y + 9, cell_lines[0], size=11.5, bold=next_state != state, colour=colour)
        for k, cell_line in enumerate(cell_lines[1:], 1):
            drawing.text(x, y + 9 + k * _LINE, cell_line, size=_SMALL)


if __name__ == "__main__":
    draw().save(sys.argv[1])

"""The state of one node at one time as small tables: a table for each section of the layers, and the node's counters.

    inspect_node(run, node, time_s=None)     returns a `NodeState`, which a notebook shows as tables

``words.js`` builds the same tables in the player.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import DataError
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.drawing import THEMES
from workbench.views.figure import time_us_of
from workbench.views.layers import Layer, RunView
from workbench.views.player.counters import COUNTED
from workbench.views.seeing import NODE_LOOK, see

LARGEST_MATRIX = 16  # chunks; a larger matrix does not fit on a screen
NEVER_US = 1e15
USE_BASE = 4  # usage class n covers the 4^(n-1)-th frame and later: 1st, 4th, 16th, ...

_INK = {
    "color": palette.TEXT,
    "--wb-faint": palette.FAINT_TEXT,
    "--wb-line": palette.GRID,
    "--wb-pivot": palette.CODED,
    "--wb-other": palette.RANK_LOW,
}
_STYLE = (
    f"<style>{THEMES}.wb-node{{font:13px system-ui,sans-serif;"
    + "".join(f"{name}:light-dark({colour},{palette.in_dark(colour)});" for name, colour in _INK.items())
    + "}.wb-node h4{margin:10px 0 2px}.wb-node table{border-collapse:collapse;margin:0}"
    ".wb-node th,.wb-node td{text-align:left;padding:1px 14px 1px 0;border-bottom:1px solid var(--wb-line)}"
    ".wb-node th{font-weight:normal;color:var(--wb-faint)}.wb-node .matrix{margin:4px 0}"
    ".wb-node .matrix td{width:16px;height:16px;padding:0;text-align:center;border:1px solid var(--wb-line)}"
    ".wb-node .pivot{background:var(--wb-pivot);color:#fff}.wb-node .other{background:var(--wb-other)}</style>"
)

Rows = list[tuple[str, ...]]


@dataclass(frozen=True)
class NodeState:
    """The state of one node at one time: its role, tables, counters and decoding matrices.

    tables: title of a section -> (headings, rows of text).
    counters: name -> number of trace rows so far, see `count`.
    matrices: (generation size, column of the pivot of each row) for each event that the node decodes.
    """

    node: int
    time_us: int
    role: str
    tables: dict[str, tuple[tuple[str, ...], Rows]]
    counters: dict[str, int]
    matrices: list[tuple[int, tuple[int, ...]]]

    def _repr_html_(self) -> str:
        heading = f"<b>node {self.node}</b> ({html.escape(self.role)}) at {self.time_us / 1e6:,.3f} s"
        html_tables = [
            _html_table(f"{title} ({len(rows)})", header, rows) for title, (header, rows) in self.tables.items()
        ]
        html_tables += [
            matrix_html(generation_size, pivots)
            for generation_size, pivots in self.matrices
            if generation_size <= LARGEST_MATRIX
        ]
        counted = [(name, f"{count:,}") for name, count in self.counters.items()]
        html_tables.append(_html_table("Counters", (), counted) if counted else "")
        return f'{_STYLE}<div class="wb-node wb-themed">{heading}{"".join(html_tables)}</div>'


def inspect_node(run: Any, node: int, time_s: float | None = None) -> NodeState:
    """Return the state and the counters of a node at a time; None means the end of the run.

    Raises DataError for an unknown node, ParameterError for a time outside the run.
    """
    if node not in run.scenario.topology:
        raise DataError(f"inspect_node: node is {node!r}; it must be one of the nodes in run.scenario.topology.nodes")
    return node_state(see(run), run.trace, node, time_us_of(run, time_s, "inspect_node"))


def node_state(view: RunView, trace: pa.Table, node: int, time_us: int) -> NodeState:
    """Return the state of a node at a time, from the layers of ``view``, and its counters, from the run's ``trace``."""
    alive_us = min(time_us, view.duration_us - 1)
    tables: dict[str, tuple[tuple[str, ...], Rows]] = {}
    matrices: list[tuple[int, tuple[int, ...]]] = []
    for layer in view.layers:
        layer_rows = _rows_at_node(layer, node, alive_us) if layer.section is not None else np.zeros(0, np.int64)
        if layer.section is None or not len(layer_rows):
            continue
        text_columns = [column for column in layer.section.columns if column[2] != "echelon"]
        cell_texts = [
            [_cell_text(layer, name, form, row) for row in layer_rows.tolist()] for _, name, form in text_columns
        ]
        tables[layer.section.title] = (
            tuple(heading for heading, _, _ in text_columns),
            list(zip(*cell_texts, strict=True)),
        )
        if len(text_columns) < len(layer.section.columns):
            matrices += [_decoding_matrix(layer, row) for row in layer_rows.tolist()]
    return NodeState(node, time_us, _find_role(view, node, alive_us), tables, count(trace, node, time_us), matrices)


def _rows_at_node(layer: Layer, node: int, time_us: int) -> np.ndarray:
    rows = layer.alive(time_us)
    return rows[layer.column("node")[rows] == node]


def _find_role(view: RunView, node: int, time_us: int) -> str:
    """Return the role of a node at a time, such as "sink".

    The role is the label of the style (`layers.Look`) in which the node is drawn. Of several styles, the one with the
    lowest ``rank`` counts.
    """
    looks = [NODE_LOOK]
    for layer in view.layers:
        indices = layer.column("look")[_rows_at_node(layer, node, time_us)] if layer.looks else ()
        node_looks = [layer.looks[look] for look in np.unique(indices).tolist()]
        looks += [look for look in node_looks if (look.mark or layer.mark) == "node"]
    return min(looks, key=lambda look: look.rank).label


def count(trace: pa.Table, node: int, time_us: int) -> dict[str, int]:
    """Return a node's counters up to ``time_us``: numbers of its trace rows, such as {"sent data": 3, ...}.

    The table `COUNTED` lists the events that are counted, and whether their rows are counted by kind of message or by
    reason."""
    columns = Columns(trace)
    # A trace is in order of time, so the rows up to a time are its first rows.
    row_stop = int(np.searchsorted(columns["time_us"], time_us, "right"))
    node_rows = np.flatnonzero(columns["node"][:row_stop] == node)
    counters: dict[str, int] = {}
    for event, label, column in COUNTED:
        rows = node_rows[columns.text("event", node_rows) == event]
        if not column and len(rows):
            counters[label] = len(rows)
        elif len(rows):
            kind_names, kind_counts = np.unique(columns.text(column, rows), return_counts=True)
            counters |= {f"{label} {value}".strip(): int(n) for value, n in zip(kind_names, kind_counts, strict=True)}
    return counters


# How values are written


def _cell_text(layer: Layer, name: str, form: str, row: int) -> str:
    value = layer.column(name)[row].item()
    if form != "word":
        return write(value, form)
    if name == "look":
        return layer.looks[value].label
    return str(layer.words[value]) if value >= 0 else ""


def write(value: float, how: str) -> str:
    """Format a number for a table of the inspector.

    ``how``: the name of a format, one of those that `layers.Section` lists. With "time", 1500000 (µs) becomes
    "1.500 s". ``words.js`` formats numbers in the player by the same rules.
    """
    if how == "node":
        return "–" if value < 0 else f"{value:.0f}"
    if how == "use":
        return "–" if value == 0 else f"{USE_BASE ** (int(value) - 1)}+"
    if how == "until":
        return "never" if value < 0 or value >= NEVER_US else f"{value / 1e6:.1f} s"
    if how == "time":
        return f"{value / 1e6:.3f} s"
    if how == "percent":
        return f"{float(f'{100 * value:.2g}'):g} %"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _decoding_matrix(layer: Layer, row: int) -> tuple[int, tuple[int, ...]]:
    rank, weight = layer.column("value")[row], layer.column("weight")[row]
    return round(float(rank / weight)), tuple(map(int, layer.words[layer.column("text")[row]].split()))


def matrix_html(generation_size: int, pivots: Sequence[int]) -> str:
    """Return a node's decoding matrix in reduced row echelon form as an HTML table.

    ``pivots``: for each row of the matrix, the column of its pivot (its first 1). Other rows have 0 in this column.
    A shaded cell is a value that does not follow from the pivots. Each missing packet is an empty row.
    ``generation_size``: number of columns.
    """
    pivot_columns = set(pivots)
    matrix_rows = [
        "".join(
            '<td class="pivot">1</td>'
            if column == pivot
            else '<td class="zero">0</td>'
            if column < pivot or column in pivot_columns
            else '<td class="other"></td>'
            for column in range(generation_size)
        )
        for pivot in sorted(pivots)
    ]
    matrix_rows += ["<td></td>" * generation_size] * (generation_size - len(matrix_rows))
    return f'<table class="matrix">{"".join(f"<tr>{row}</tr>" for row in matrix_rows)}</table>'


def _html_table(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [tuple(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    if header:
        lines.insert(0, tuple(f"<th>{html.escape(cell)}</th>" for cell in header))
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<h4>{html.escape(title)}</h4><table>{body}</table>"

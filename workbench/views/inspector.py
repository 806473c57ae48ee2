"""A node at a time, as small tables: what the sections of all layers say of it, and what it had counted.

    inspect_node(run, node, time_s=None)     a `NodeState`; a notebook shows it as tables

The player writes the same (``words.js``).
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
from workbench.views.layers import Layer, Seen
from workbench.views.player.counters import COUNTED
from workbench.views.seeing import NODE_LOOK, see

LARGEST_MATRIX = 16  # chunks: more columns than that do not fit on a screen
NEVER_US = 1e15
USE_BASE = 4  # a class of use begins with the 1st, 4th, 16th, ... frame

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
    """One node at one time: its role, tables by title as (header, rows of text), counters, and of each event that it
    decodes the (generation size, pivots)."""

    node: int
    time_us: int
    role: str
    tables: dict[str, tuple[tuple[str, ...], Rows]]
    counters: dict[str, int]
    matrices: list[tuple[int, tuple[int, ...]]]

    def _repr_html_(self) -> str:
        said = f"<b>node {self.node}</b> ({html.escape(self.role)}) at {self.time_us / 1e6:,.3f} s"
        parts = [_html_table(f"{title} ({len(rows)})", header, rows) for title, (header, rows) in self.tables.items()]
        parts += [matrix_html(size, pivots) for size, pivots in self.matrices if size <= LARGEST_MATRIX]
        counted = [(name, f"{count:,}") for name, count in self.counters.items()]
        parts.append(_html_table("Counters", (), counted) if counted else "")
        return f'{_STYLE}<div class="wb-node wb-themed">{said}{"".join(parts)}</div>'


def inspect_node(run: Any, node: int, time_s: float | None = None) -> NodeState:
    """What a node of a run knew and had counted at a time (None: at the end).

    DataError if there is no such node, ParameterError for a time outside of the run.
    """
    if node not in run.scenario.topology:
        raise DataError(f"this network has no node {node!r}; look at run.scenario.topology.nodes for its numbers")
    return node_state(see(run), run.trace, node, time_us_of(run, time_s, "inspect_node"))


def node_state(seen: Seen, trace: pa.Table, node: int, time_us: int) -> NodeState:
    """The state of a node, from what is `Seen` of its run and, for its counters, the trace."""
    alive_us = min(time_us, seen.duration_us - 1)
    tables: dict[str, tuple[tuple[str, ...], Rows]] = {}
    matrices: list[tuple[int, tuple[int, ...]]] = []
    for layer in seen.layers:
        rows = _at_node(layer, node, alive_us) if layer.section is not None else np.zeros(0, np.int64)
        if layer.section is None or not len(rows):
            continue
        plain = [column for column in layer.section.columns if column[2] != "echelon"]
        cells = [[_cell(layer, name, how, row) for row in rows.tolist()] for _, name, how in plain]
        tables[layer.section.title] = (tuple(heading for heading, _, _ in plain), list(zip(*cells, strict=True)))
        if len(plain) < len(layer.section.columns):
            matrices += [_matrix(layer, row) for row in rows.tolist()]
    return NodeState(node, time_us, _role(seen, node, alive_us), tables, count(trace, node, time_us), matrices)


def _at_node(layer: Layer, node: int, time_us: int) -> np.ndarray:
    rows = layer.alive(time_us)
    return rows[layer.column("node")[rows] == node]


def _role(seen: Seen, node: int, time_us: int) -> str:
    """What the look of the lowest rank says."""
    looks = [NODE_LOOK]
    for layer in seen.layers:
        which = layer.column("look")[_at_node(layer, node, time_us)] if layer.looks else ()
        shown = [layer.looks[look] for look in np.unique(which).tolist()]
        looks += [look for look in shown if (look.mark or layer.mark) == "node"]
    return min(looks, key=lambda look: look.rank).said


def count(trace: pa.Table, node: int, time_us: int) -> dict[str, int]:
    """What a node has counted up to a time: {"sent data": 3, "dropped duplicate": 7, ...}."""
    columns = Columns(trace)
    # A trace is in order of time, so what happened up to a time is its beginning.
    until = int(np.searchsorted(columns["time_us"], time_us, "right"))
    mine = np.flatnonzero(columns["node"][:until] == node)
    counted: dict[str, int] = {}
    for event, said, column in COUNTED:
        rows = mine[columns.text("event", mine) == event]
        if not column and len(rows):
            counted[said] = len(rows)
        elif len(rows):
            words, numbers = np.unique(columns.text(column, rows), return_counts=True)
            counted |= {f"{said} {word}".strip(): int(n) for word, n in zip(words, numbers, strict=True)}
    return counted


# How values are written


def _cell(layer: Layer, name: str, how: str, row: int) -> str:
    value = layer.column(name)[row].item()
    if how != "word":
        return write(value, how)
    if name == "look":
        return layer.looks[value].said
    return str(layer.words[value]) if value >= 0 else ""


def write(value: float, how: str) -> str:
    """A value as `layers.Section` says it is written; ``words.js`` has the same rules."""
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


def _matrix(layer: Layer, row: int) -> tuple[int, tuple[int, ...]]:
    value, weight = layer.column("value")[row], layer.column("weight")[row]
    return round(float(value / weight)), tuple(map(int, layer.words[layer.column("text")[row]].split()))


def matrix_html(generation_size: int, pivots: Sequence[int]) -> str:
    """A decoding matrix as far as its pivots tell, with empty rows for what is still to come.

    It is in reduced row echelon form: in the column of a pivot all other rows have 0, and so has a row before its own.
    """
    known = set(pivots)
    rows = [
        "".join(
            '<td class="pivot">1</td>'
            if column == pivot
            else '<td class="zero">0</td>'
            if column < pivot or column in known
            else '<td class="other"></td>'
            for column in range(generation_size)
        )
        for pivot in sorted(pivots)
    ]
    rows += ["<td></td>" * generation_size] * (generation_size - len(rows))
    return f'<table class="matrix">{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def _html_table(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [tuple(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    if header:
        lines.insert(0, tuple(f"<th>{html.escape(cell)}</th>" for cell in header))
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<h4>{html.escape(title)}</h4><table>{body}</table>"

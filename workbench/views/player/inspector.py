"""A node's state at a time, from the trace: its caches, gradients, black list and counters as small tables."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import DataError
from workbench.views.palette import NODE_LOOKS
from workbench.views.player.counters import COUNTED
from workbench.views.player.decoding import matrix_cells
from workbench.views.player.intervals import WEIGHT_BASE, Intervals, Table, intervals, read

# The inspector's tables: title, kind of interval, and columns as (heading, field, how to write it). The player in the
# browser is given the same list.
TABLES = (
    (
        "Subscriptions",
        "subscription",
        (("no.", "sequence", "number"), ("wants", "text", "word"), ("until", "value", "until")),
    ),
    (
        "Interest cache",
        "interest",
        (("sink", "origin", "node"), ("interest", "text", "word"), ("round", "value", "number")),
    ),
    (
        "Gradients",
        "gradient",
        (
            ("to", "peer", "node"),
            ("for sink", "origin", "node"),
            ("place", "look", "word"),
            ("data", "weight", "use"),
            ("until", "value", "until"),
        ),
    ),
    ("Reinforced", "reinforced", (("to", "peer", "node"), ("for sink", "origin", "node"))),
    ("Data gradients", "data_gradient", (("source", "origin", "node"), ("first from", "peer", "node"))),
    ("Black list", "blacklisted", (("neighbor", "peer", "node"),)),
    (
        "Decoding",
        "decoding",
        (
            ("source", "origin", "node"),
            ("event", "sequence", "number"),
            ("rank", "value", "number"),
            ("pivots", "text", "word"),
            ("last from", "peer", "node"),
        ),
    ),
)
ROLES = tuple(NODE_LOOKS)
LARGEST_MATRIX = 16  # chunks: more columns than that do not fit beside the map


@dataclass(frozen=True)
class NodeState:
    """One node at one time: its role, tables by title as (header, rows of text), counters, and of each event that it
    decodes the (generation size, pivots)."""

    node: int
    time_us: int
    role: str
    tables: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]]
    counters: dict[str, int]
    matrices: list[tuple[int, tuple[int, ...]]]

    def _repr_html_(self) -> str:
        parts = [f"<b>node {self.node}</b> ({self.role}) at {self.time_us / 1e6:.3f} s"]
        for title, (header, rows) in self.tables.items():
            parts.append(_html_table(f"{title} ({len(rows)})", header, rows))
        parts += [matrix_html(size, pivots) for size, pivots in self.matrices if size <= LARGEST_MATRIX]
        counted = [(name, f"{count:,}") for name, count in self.counters.items()]
        parts.append(_html_table("Counters", (), counted) if counted else "")
        return "".join(parts)


def inspect_node(run: Any, node: int, time_s: float | None = None) -> NodeState:
    """What a node of a run knew and had counted at a time (None: at the end). DataError if there is no such node."""
    if node not in run.scenario.topology:
        raise DataError(f"this network has no node {node!r}; look at run.scenario.topology.nodes for its numbers")
    duration_us = round(run.scenario.duration_s * 1e6)
    time_us = duration_us if time_s is None else round(time_s * 1e6)
    seen = intervals(run.trace, duration_us)
    return node_state(seen, run.trace, node, time_us)


def node_state(seen: Intervals, trace: pa.Table, node: int, time_us: int) -> NodeState:
    """The state of a node from a run's intervals and, for its counters, the trace."""
    tables = {}
    for title, what, columns in TABLES:
        rows = _of(seen.alive(what, time_us), node)
        if len(rows["node"]):
            written = [_written(rows[field], how) for _, field, how in columns]
            tables[title] = (tuple(column[0] for column in columns), list(zip(*written, strict=True)))
    decoding = _of(seen.alive("decoding", time_us), node)
    sizes = np.rint(decoding["value"] / decoding["weight"]).astype(int).tolist()
    matrices = [
        (size, tuple(map(int, text.split()))) for size, text in zip(sizes, decoding["text"].tolist(), strict=True)
    ]
    return NodeState(node, time_us, _role(seen, node, time_us), tables, count(trace, node, time_us), matrices)


def matrix_html(generation_size: int, pivots: Sequence[int]) -> str:
    """A decoding matrix as far as its pivots tell, with empty rows for what is still to come; as in ``player.js``."""
    looks = {"1": "pivot", "0": "zero", "": "other"}
    rows = [[(looks[cell], cell) for cell in row] for row in matrix_cells(generation_size, pivots)]
    rows += [[("", "")] * generation_size] * (generation_size - len(rows))
    lines = ["".join(f'<td class="{look}">{cell}</td>' for look, cell in row) for row in rows]
    return f'<table class="matrix">{"".join(f"<tr>{line}</tr>" for line in lines)}</table>'


def count(trace: pa.Table, node: int, time_us: int) -> dict[str, int]:
    """What a node has counted up to a time: {"sent data": 3, "dropped duplicate": 7, ...}."""
    columns = read(trace)
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


def _of(table: Table, node: int) -> Table:
    rows = table["node"] == node
    return {name: column[rows] for name, column in table.items()}


def _role(seen: Intervals, node: int, time_us: int) -> str:
    looks = set(_of(seen.alive("node_state", time_us), node)["look"])
    if len(_of(seen.alive("failed", time_us), node)["node"]):
        looks.add("failed")
    return next((role for role in ROLES if role in looks), "node")


def _written(values: np.ndarray, how: str) -> list[str]:
    return [write(value, how) for value in values.tolist()]


def write(value: Any, how: str) -> str:
    """A value as the inspector writes it; ``player.js`` has the same rules."""
    if how == "node":
        return "–" if value < 0 else str(value)
    if how == "use":
        return "–" if value == 0 else f"{WEIGHT_BASE ** (int(value) - 1)}+"
    if how == "until":
        return "never" if value < 0 or value >= 1e15 else f"{value / 1e6:.1f} s"
    return str(value)


def _html_table(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [tuple(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    if header:
        lines.insert(0, tuple(f"<th>{html.escape(cell)}</th>" for cell in header))
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<h4>{html.escape(title)}</h4><table>{body}</table>"

"""Counters of the player: running totals of a run, and the counts of each node up to a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.columns import argsort, ranges, unique_inverse
from workbench.sim.rows import Columns

MOST_STEPS = 20_000
MOST_COUNTED = 150_000
MOST_GROUPS = 1 << 22  # up to so many groups are counted in an array

# Counters of a node: event in the trace, label, and the column that divides the counter into kinds.
COUNTED = (
    ("published", "published", ""),
    ("delivered", "delivered", ""),
    ("innovative", "innovative packets", ""),
    ("decoded", "decoded", ""),
    ("sent", "sent", "message"),
    ("received", "received", "message"),
    ("lost", "lost", "detail"),
    ("dropped", "dropped", "detail"),
    ("filtered", "filtered", "detail"),
    ("given_up", "given up", "detail"),
)


@dataclass(frozen=True)
class Counted:
    """Counted rows of the trace, sorted by node and time.

    node int32, time_us int64, kind int16 (an index into words), each of shape (rows,). A row stands for ``step`` rows
    of
    the trace.
    """

    node: np.ndarray
    time_us: np.ndarray
    kind: np.ndarray
    words: list[str]
    step: int


def running(columns: Columns, radio: Any) -> dict[str, np.ndarray]:
    """Return totals after each step: time_us, transmissions, deliveries, energy_mJ, each of shape (steps,).

    Energy is that of the radio for bytes sent and heard, overhead included, as in the metrics; 0 without a radio.
    """
    sent, delivered = columns.where(event="sent"), columns.where(event="delivered")
    rows = np.sort(np.concatenate([sent, delivered]), kind="stable")
    # The receptions of a frame follow its own row and count for the same moment.
    ends = np.append(rows[1:], columns.rows)
    if len(rows) > MOST_STEPS:
        shown = np.unique(np.linspace(0, len(rows) - 1, MOST_STEPS).astype(np.int64))
        rows, ends = rows[shown], ends[shown]
    energy = np.zeros(len(rows))
    if radio is not None:
        heard = columns.where(event="received"), columns.where(event="lost", detail="collision")
        spent_uJ = radio.tx_uJ_per_B * _bytes_before(columns, (sent,), radio)[rows + 1]
        energy = (spent_uJ + radio.rx_uJ_per_B * _bytes_before(columns, heard, radio)[ends]) / 1000
    return {
        "time_us": columns["time_us"][rows],
        "transmissions": np.searchsorted(sent, rows, "right"),
        "deliveries": np.searchsorted(delivered, rows, "right"),
        "energy_mJ": energy,
    }


def _bytes_before(columns: Columns, kinds: Iterable[np.ndarray], radio: Any) -> np.ndarray:
    """Return the bytes sent over the channel in the given rows before each row of the trace, shape (rows + 1,)."""
    spent = np.zeros(columns.rows + 1, np.int64)
    for rows in kinds:
        spent[1:][rows] = columns["size_B"][rows] + np.int64(radio.overhead_B)
    return np.cumsum(spent, out=spent)


def counted(columns: Columns, most: int = MOST_COUNTED) -> Counted:
    """Return the counts of each node; above ``most`` rows, every n-th row of a node and kind stands for n."""
    kind_of = np.full(columns.rows, -1, np.int16)  # for each row of the trace
    words: list[str] = []
    for event, label, column in COUNTED:
        rows = columns.where(event=event)
        if not len(rows):
            continue
        codes = columns.codes[column][rows] if column else np.zeros(len(rows), np.int64)
        kinds = np.flatnonzero(np.bincount(codes))
        number = np.zeros(int(kinds[-1]) + 1, np.int16)
        number[kinds] = np.arange(len(kinds)) + len(words)
        kind_of[rows] = number[codes]
        words += [f"{label} {columns.words[column][kind]}".strip() if column else label for kind in kinds.tolist()]
    rows = np.flatnonzero(kind_of >= 0)
    step = max(1, -(-len(rows) // most))
    if step > 1:
        node = columns["node"][rows]
        rows = _every(step, np.multiply(node - node.min(), len(words), dtype=np.int64) + kind_of[rows], rows)
    rows = rows[argsort(columns["node"][rows])]
    return Counted(columns["node"][rows], columns["time_us"][rows], kind_of[rows], words, step)


def _every(step: int, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return every step-th row of each group, ascending; ``rows`` must be ascending."""
    if group.max() > MOST_GROUPS:
        group = unique_inverse(group)[1]
    sizes = np.bincount(group)
    counts = sizes // step
    first = np.cumsum(sizes) - sizes + step - 1  # in the order of groups: index of the first row taken
    indices = np.repeat(first, counts) + ranges(np.zeros_like(counts), counts) * step
    return rows[np.sort(argsort(group)[indices])]

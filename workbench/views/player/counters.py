"""Counters: running totals of a run, and what each node has counted by a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.columns import argsort, ranges, unique_inverse
from workbench.sim.rows import Columns

MOST_STEPS = 20_000
MOST_COUNTED = 150_000
MOST_GROUPS = 1 << 22  # that are counted in an array

# What is counted at a node: the trace's event, how to say it, and the column that tells its kinds apart.
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
    """What was counted where and when, sorted by node and time.

    node int32, time_us int64, kind int16 (an index into words), each shape (rows,). A row counts ``step`` happenings.
    """

    node: np.ndarray
    time_us: np.ndarray
    kind: np.ndarray
    words: list[str]
    step: int


def running(columns: Columns, radio: Any) -> dict[str, np.ndarray]:
    """Totals after each step: time_us, transmissions, deliveries, energy_mJ, each shape (steps,).

    Energy is that of the radio: bytes sent and heard, overhead included, as in the metrics; 0 without a radio.
    """
    sent, delivered = columns.where(event="sent"), columns.where(event="delivered")
    rows = np.sort(np.concatenate([sent, delivered]), kind="stable")
    # The receptions of a frame follow its own row and belong to the same moment.
    ends = np.append(rows[1:], columns.rows)
    if len(rows) > MOST_STEPS:
        kept = np.unique(np.linspace(0, len(rows) - 1, MOST_STEPS).astype(np.int64))
        rows, ends = rows[kept], ends[kept]
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
    """Bytes on the air in those rows of some kinds that come before each row of the trace, shape (rows + 1,)."""
    spent = np.zeros(columns.rows + 1, np.int64)
    for rows in kinds:
        spent[1:][rows] = columns["size_B"][rows] + np.int64(radio.overhead_B)
    return np.cumsum(spent, out=spent)


def counted(columns: Columns, most: int = MOST_COUNTED) -> Counted:
    """What each node counted; of more than ``most`` happenings every n-th of a node and kind stands for n."""
    kind_of = np.full(columns.rows, -1, np.int16)  # of each row of the trace
    words: list[str] = []
    for event, said, column in COUNTED:
        rows = columns.where(event=event)
        if not len(rows):
            continue
        codes = columns.codes[column][rows] if column else np.zeros(len(rows), np.int64)
        kinds = np.flatnonzero(np.bincount(codes))
        number = np.zeros(int(kinds[-1]) + 1, np.int16)
        number[kinds] = np.arange(len(kinds)) + len(words)
        kind_of[rows] = number[codes]
        words += [f"{said} {columns.words[column][kind]}".strip() if column else said for kind in kinds.tolist()]
    rows = np.flatnonzero(kind_of >= 0)
    step = max(1, -(-len(rows) // most))
    if step > 1:
        node = columns["node"][rows]
        rows = _every(step, np.multiply(node - node.min(), len(words), dtype=np.int64) + kind_of[rows], rows)
    rows = rows[argsort(columns["node"][rows])]
    return Counted(columns["node"][rows], columns["time_us"][rows], kind_of[rows], words, step)


def _every(step: int, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Every step-th row of each group, ascending; ``rows`` are, too."""
    if group.max() > MOST_GROUPS:
        group = unique_inverse(group)[1]
    sizes = np.bincount(group)
    kept = sizes // step
    first = np.cumsum(sizes) - sizes + step - 1  # in the order of groups, of those that are kept
    places = np.repeat(first, kept) + ranges(np.zeros_like(kept), kept) * step
    return rows[np.sort(argsort(group)[places])]

"""Counters: running totals of a run, and what each node has counted by a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.views.player.columns import Columns

MOST_STEPS = 20_000
MOST_COUNTED = 150_000

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
    sent = columns.where(event="sent")
    heard = np.sort(np.concatenate([columns.where(event="received"), columns.where(event="lost", detail="collision")]))
    rows = np.sort(np.concatenate([sent, columns.where(event="delivered")]))
    deliveries = np.searchsorted(columns.where(event="delivered"), rows, "right")
    transmissions = np.searchsorted(sent, rows, "right")
    # The receptions of a frame follow its own row and belong to the same moment.
    receptions = np.searchsorted(heard, np.append(rows[1:], columns.rows))
    energy = np.zeros(len(rows))
    if radio is not None:
        spent_uJ = radio.tx_uJ_per_B * _bytes(columns, sent, radio)[transmissions]
        energy = (spent_uJ + radio.rx_uJ_per_B * _bytes(columns, heard, radio)[receptions]) / 1000
    totals = {"time_us": columns["time_us"][rows], "transmissions": transmissions}
    totals |= {"deliveries": deliveries, "energy_mJ": energy}
    if len(rows) > MOST_STEPS:
        kept = np.unique(np.linspace(0, len(rows) - 1, MOST_STEPS).astype(np.int64))
        totals = {name: column[kept] for name, column in totals.items()}
    return totals


def _bytes(columns: Columns, rows: np.ndarray, radio: Any) -> np.ndarray:
    """Bytes on the air after 0, 1, 2, ... of some frames, shape (len(rows) + 1,)."""
    return np.concatenate([[0], np.cumsum(columns["size_B"][rows].astype(np.int64) + radio.overhead_B)])


def counted(columns: Columns, most: int = MOST_COUNTED) -> Counted:
    """What each node counted; of more than ``most`` happenings every n-th of a node and kind stands for n."""
    pieces, words = [], []
    for event, said, column in COUNTED:
        rows = columns.where(event=event)
        if not len(rows):
            continue
        codes = columns.codes[column][rows] if column else np.zeros(len(rows), dtype=np.int64)
        kinds, code = np.unique(codes, return_inverse=True)
        pieces.append((rows, code + len(words)))
        words += [f"{said} {columns.words[column][kind]}".strip() if column else said for kind in kinds]
    if not pieces:
        nothing = np.array([], dtype=np.int32)
        return Counted(nothing, nothing.astype(np.int64), nothing.astype(np.int16), [], 1)
    rows = np.concatenate([piece[0] for piece in pieces])
    kind = np.concatenate([piece[1] for piece in pieces])
    node, time_us = columns["node"][rows], columns["time_us"][rows]
    step = max(1, -(-len(rows) // most))
    if step > 1:
        kept = _every(step, node, kind, rows)
        node, time_us, kind = node[kept], time_us[kept], kind[kept]
    order = np.lexsort((time_us, node))
    return Counted(node[order], time_us[order], kind[order].astype(np.int16), words, step)


def _every(step: int, node: np.ndarray, kind: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Every step-th happening of each node and kind, in order of rows."""
    order = np.lexsort((rows, kind, node))
    group = node[order].astype(np.int64) * (int(kind.max()) + 1) + kind[order]
    rank = np.arange(len(order)) - np.searchsorted(group, group, "left")
    return order[rank % step == step - 1]

"""Counters of the player: totals of a run over time, and counts of each node up to a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.columns import argsort, ranges, unique_inverse
from workbench.sim.rows import Columns

MOST_STEPS = 20_000
MOST_COUNTED = 150_000
MOST_GROUPS = 1 << 22  # larger group numbers are renumbered, because the counts are an array indexed by group

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
    """The rows of the trace that the counters of nodes count, sorted by node and time.

    node, time_us: int32 and int64, shape (rows,).
    kind: int16, shape (rows,), index into ``words``.
    words: names of the counters.
    step: each row represents this number of rows of the trace.
    """

    node: np.ndarray
    time_us: np.ndarray
    kind: np.ndarray
    words: list[str]
    step: int


def running(columns: Columns, radio: Any) -> dict[str, np.ndarray]:
    """Return running totals as {name: array}, with a value after each transmission and delivery.

    The names are time_us, transmissions, deliveries and energy_mJ. The arrays have shape (steps,); a long run has fewer
    steps. The energy is what the radios use for all bytes sent and heard, including the overhead of each frame, as in
    the metrics. It is 0 without a radio.
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
        heard_rows = columns.where(event="received"), columns.where(event="lost", detail="collision")
        spent_uJ = radio.tx_uJ_per_B * _bytes_before(columns, (sent,), radio)[rows + 1]
        energy = (spent_uJ + radio.rx_uJ_per_B * _bytes_before(columns, heard_rows, radio)[ends]) / 1000
    return {
        "time_us": columns["time_us"][rows],
        "transmissions": np.searchsorted(sent, rows, "right"),
        "deliveries": np.searchsorted(delivered, rows, "right"),
        "energy_mJ": energy,
    }


def _bytes_before(columns: Columns, kinds: Iterable[np.ndarray], radio: Any) -> np.ndarray:
    """Return the number of bytes on the channel before each row of the trace, and at its end; int64, shape (rows + 1,).

    Only the rows in ``kinds`` (arrays of row numbers) count, each with the size and overhead of its frame.
    """
    spent = np.zeros(columns.rows + 1, np.int64)
    for rows in kinds:
        spent[1:][rows] = columns["size_B"][rows] + np.int64(radio.overhead_B)
    return np.cumsum(spent, out=spent)


def counted(columns: Columns, most: int = MOST_COUNTED) -> Counted:
    """Return the rows of the trace that are counted for each node.

    If there are more than ``most``, only every n-th row of a node and kind is returned, and stands for n rows.
    """
    kind_of = np.full(columns.rows, -1, np.int16)  # for each row of the trace
    words: list[str] = []
    for event, label, column in COUNTED:
        rows = columns.where(event=event)
        if not len(rows):
            continue
        codes = columns.codes[column][rows] if column else np.zeros(len(rows), np.int64)
        kinds = np.flatnonzero(np.bincount(codes))
        word_of_code = np.zeros(int(kinds[-1]) + 1, np.int16)
        word_of_code[kinds] = np.arange(len(kinds)) + len(words)
        kind_of[rows] = word_of_code[codes]
        words += [f"{label} {columns.words[column][kind]}".strip() if column else label for kind in kinds.tolist()]
    rows = np.flatnonzero(kind_of >= 0)
    step = max(1, -(-len(rows) // most))
    if step > 1:
        node = columns["node"][rows]
        rows = _thin_groups(step, np.multiply(node - node.min(), len(words), dtype=np.int64) + kind_of[rows], rows)
    rows = rows[argsort(columns["node"][rows])]
    return Counted(columns["node"][rows], columns["time_us"][rows], kind_of[rows], words, step)


def _thin_groups(step: int, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the last of every ``step`` successive rows of each group, ascending.

    ``group``: the number of the group of each of ``rows``, which must be ascending.
    """
    if group.max() > MOST_GROUPS:
        group = unique_inverse(group)[1]
    sizes = np.bincount(group)
    counts = sizes // step
    first_remaining = (
        np.cumsum(sizes) - sizes + step - 1
    )  # for each group, the index of its first remaining row, in the order of groups
    indices = np.repeat(first_remaining, counts) + ranges(np.zeros_like(counts), counts) * step
    return rows[np.sort(argsort(group)[indices])]

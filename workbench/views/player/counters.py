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
    """The trace rows that increment counters of nodes, sorted by node, then by time.

    node, time_us: node and time of each row, int32 and int64, shape (rows,).
    kind: the counter that the row increments, as an index into ``words``; int16, shape (rows,).
    words: names of the counters.
    step: the amount by which each row increments its counter: 1, or more if rows were left out.
    """

    node: np.ndarray
    time_us: np.ndarray
    kind: np.ndarray
    words: list[str]
    step: int


def running(columns: Columns, radio: Any, most: int = MOST_STEPS) -> dict[str, np.ndarray]:
    """Return the totals of a run so far, after each transmission and each delivery, as {name: array}.

    time_us: time of each transmission or delivery.
    transmissions, deliveries: number of each up to this time.
    energy_mJ: energy that all radios used for bytes sent and heard, including the overhead of each frame; 0 if
        ``radio`` is None.
    All arrays have the same shape. With more than ``most`` entries, only ``most`` evenly spaced ones are returned.
    """
    sent_rows, delivery_rows = columns.where(event="sent"), columns.where(event="delivered")
    step_rows = np.sort(np.concatenate([sent_rows, delivery_rows]), kind="stable")
    # The receptions of a frame follow its own row and count for the same moment.
    row_ends = np.append(step_rows[1:], columns.rows)
    if len(step_rows) > most:
        sampled_rows = np.unique(np.linspace(0, len(step_rows) - 1, most).astype(np.int64))
        step_rows, row_ends = step_rows[sampled_rows], row_ends[sampled_rows]
    energy = np.zeros(len(step_rows))
    if radio is not None:
        heard_rows = columns.where(event="received"), columns.where(event="lost", detail="collision")
        spent_uJ = radio.tx_uJ_per_B * _sum_bytes_before(columns, (sent_rows,), radio)[step_rows + 1]
        energy = (spent_uJ + radio.rx_uJ_per_B * _sum_bytes_before(columns, heard_rows, radio)[row_ends]) / 1000
    return {
        "time_us": columns["time_us"][step_rows],
        "transmissions": np.searchsorted(sent_rows, step_rows, "right"),
        "deliveries": np.searchsorted(delivery_rows, step_rows, "right"),
        "energy_mJ": energy,
    }


def _sum_bytes_before(columns: Columns, kinds: Iterable[np.ndarray], radio: Any) -> np.ndarray:
    """Return running totals of bytes: entry i is the number of bytes in the counted rows before row i of the trace.

    The result is int64, shape (rows + 1,); its last entry is the total. ``kinds``: arrays with the indices of the rows
    that are counted, such as the rows "sent". Each row adds the size of its frame and the overhead of ``radio``.
    """
    byte_totals = np.zeros(columns.rows + 1, np.int64)
    for kind_rows in kinds:
        byte_totals[1:][kind_rows] = columns["size_B"][kind_rows] + np.int64(radio.overhead_B)
    return np.cumsum(byte_totals, out=byte_totals)


def counted(columns: Columns, most: int = MOST_COUNTED) -> Counted:
    """Return the trace rows that increment counters of nodes. The table `COUNTED` lists the events that are counted.

    most: the largest number of rows to return. If the trace has more such rows, only every n-th row of each node and
        counter is returned, and each returned row increments its counter by n (``step`` of the result).
    """
    kind_of = np.full(columns.rows, -1, np.int16)  # for each row of the trace
    counter_names: list[str] = []
    for event, label, column in COUNTED:
        counted_rows = columns.where(event=event)
        if not len(counted_rows):
            continue
        detail_codes = columns.codes[column][counted_rows] if column else np.zeros(len(counted_rows), np.int64)
        kinds = np.flatnonzero(np.bincount(detail_codes))
        word_of_code = np.zeros(int(kinds[-1]) + 1, np.int16)
        word_of_code[kinds] = np.arange(len(kinds)) + len(counter_names)
        kind_of[counted_rows] = word_of_code[detail_codes]
        counter_names += [
            f"{label} {columns.words[column][kind]}".strip() if column else label for kind in kinds.tolist()
        ]
    counted_rows = np.flatnonzero(kind_of >= 0)
    step = max(1, -(-len(counted_rows) // most))
    if step > 1:
        node = columns["node"][counted_rows]
        counted_rows = _thin_groups(
            step,
            np.multiply(node - node.min(), len(counter_names), dtype=np.int64) + kind_of[counted_rows],
            counted_rows,
        )
    counted_rows = counted_rows[argsort(columns["node"][counted_rows])]
    return Counted(
        columns["node"][counted_rows], columns["time_us"][counted_rows], kind_of[counted_rows], counter_names, step
    )


def _thin_groups(step: int, group: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return every ``step``-th row of each group, ascending.

    ``rows``: row numbers of the trace, ascending. ``group``: the number of the group of each of these rows.
    """
    if group.max() > MOST_GROUPS:
        group = unique_inverse(group)[1]
    sizes = np.bincount(group)
    thinned_counts = sizes // step
    first_remaining = (
        np.cumsum(sizes) - sizes + step - 1
    )  # for each group, the index of its first remaining row, in the order of groups
    indices = np.repeat(first_remaining, thinned_counts) + ranges(np.zeros_like(thinned_counts), thinned_counts) * step
    return rows[np.sort(argsort(group)[indices])]

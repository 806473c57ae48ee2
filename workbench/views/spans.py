"""Array functions that turn rows of a trace into intervals, for layers.

    changed(keys, *values)           mark each row that differs from the previous row with the same key
    until_next(keys, times, end)     the time of the next row with the same key, for each row
    opened(keys, times, is_opening)  the intervals that some rows open and others close
    overlaps(...)                    where the interval of a row overlaps with other intervals of the same key
    without(table, outages)          the intervals of nodes, without the times when the node was down
    cut(table, events)               the intervals of nodes, cut at the next event of the node
    within(table, duration_us)       the intervals, cut at the end of the run
    thinned(table, most, plural)     every n-th row, and a sentence about the omitted rows
    sampled(is_vital, most)          a selection of rows that prefers important rows
    running(table, times)            the number of intervals that contain each given time
    joined(table, *names)            the intervals, with equal ones merged if they meet or overlap

Keys, times and values have one entry for each row, in the order of the trace. Keys are integers; `row_keys` combines
several columns into one key. All functions are vectorized; they do not loop over rows in Python.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.columns import argsort, find_sorted, lexsort, mark_first, ranges, row_keys, unique_inverse
from workbench.views.layers import Table, select

FOREVER_US = 1 << 62


def changed(keys: np.ndarray, *values: np.ndarray) -> np.ndarray:
    """Return for each row whether it differs from the previous row with the same key; True for a key's first row.

    ``keys``: the key of each row. ``values``: columns; a row differs if its value in any column differs.
    """
    is_new = np.empty(len(keys), bool)
    key_order = argsort(keys)
    is_new[key_order] = mark_first(keys[key_order], *(value[key_order] for value in values))
    return is_new


def until_next(keys: np.ndarray, times_us: np.ndarray, end_us: int, order: np.ndarray | None = None) -> np.ndarray:
    """Return for each row the time of the next row with its key; int64, shape (rows,).

    keys, times_us: key and time of each row, in order of time.
    end_us: the result for the last row of each key.
    order: `argsort` of the keys, if the caller has computed it already.
    """
    until_us = np.full(len(keys), end_us, np.int64)
    order = argsort(keys) if order is None else order
    is_followed = keys[order[1:]] == keys[order[:-1]]
    until_us[order[:-1][is_followed]] = times_us[order[1:][is_followed]]
    return until_us


def opened(
    keys: np.ndarray, times_us: np.ndarray, is_opening: np.ndarray, end_us: int = FOREVER_US, reopens: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indices of the rows that open an interval, ascending; the time in µs when each interval closes).

    keys, times_us: key and time of each row, in order of time. A key has at most one open interval at a time.
    is_opening: whether the row opens an interval of its key; any other row closes the open interval of its key, if any.
    end_us: the time when intervals close that no row closes.
    reopens: if True, an opening row closes the open interval of its key and opens another one; if False, an opening row
        is ignored while an interval of its key is open.
    """
    if reopens:
        return np.flatnonzero(is_opening), until_next(keys, times_us, end_us)[is_opening]
    changes = np.flatnonzero(changed(keys, is_opening))
    is_opening_change = is_opening[changes]
    return changes[is_opening_change], until_next(keys[changes], times_us[changes], end_us)[is_opening_change]


class Overlaps(NamedTuple):
    """The result of `overlaps`: overlaps between rows and other intervals, as arrays of shape (overlaps,).

    row: index of the row. other: index of the other interval. from_us, until_us: begin and end of the overlap.
    """

    row: np.ndarray
    other: np.ndarray
    from_us: np.ndarray
    until_us: np.ndarray


def overlaps(
    keys: np.ndarray,
    from_us: np.ndarray,
    until_us: np.ndarray,
    other_keys: np.ndarray,
    other_from_us: np.ndarray,
    other_until_us: np.ndarray,
) -> Overlaps:
    """Return every overlap of a row's interval with another interval of the same key, ordered by row, then by time.

    keys, from_us, until_us: key, begin and end of each row. Rows may overlap each other.
    other_keys, other_from_us, other_until_us: key, begin and end of each other interval. Other intervals of the same
        key must not overlap each other.
    The number of keys, multiplied by the time in µs from the first begin to the last end of all rows, must be below
    2^62.
    """
    by_key = lexsort((other_from_us, other_keys))
    distinct_keys, interval_numbers = unique_inverse(other_keys[by_key])
    key_numbers = find_sorted(keys, distinct_keys)
    matched_rows = np.flatnonzero(key_numbers >= 0)
    low_us, high_us = (
        int(from_us[matched_rows].min(initial=FOREVER_US)),
        int(until_us[matched_rows].max(initial=-FOREVER_US)),
    )
    scale = max(high_us - low_us, 0) + 3

    def position(numbers: np.ndarray, times_us: np.ndarray) -> np.ndarray:
        return numbers * scale + (np.clip(times_us, low_us - 1, high_us + 1) - (low_us - 1))

    # Intervals that end after a row begins, up to those that begin before it ends.
    start_index = np.searchsorted(
        position(interval_numbers, other_until_us[by_key]),
        position(key_numbers[matched_rows], from_us[matched_rows]),
        "right",
    )
    stop_index = np.searchsorted(
        position(interval_numbers, other_from_us[by_key]),
        position(key_numbers[matched_rows], until_us[matched_rows]),
        "left",
    )
    overlap_counts = np.maximum(stop_index - start_index, 0)
    overlap_rows, interval = np.repeat(matched_rows, overlap_counts), by_key[ranges(start_index, overlap_counts)]
    start_us, end_us = (
        np.maximum(from_us[overlap_rows], other_from_us[interval]),
        np.minimum(until_us[overlap_rows], other_until_us[interval]),
    )
    is_lasting = start_us < end_us
    return Overlaps(overlap_rows[is_lasting], interval[is_lasting], start_us[is_lasting], end_us[is_lasting])


def without(table: Table, outages: Table) -> Table:
    """Return ``table`` without the times at which its nodes were down, sorted by ``from_us``.

    Both tables have the columns node, from_us and until_us. A row of ``outages`` is an interval in which the node was
    down. If an outage is inside the interval of a row of ``table``, this row becomes two rows, before and after it.
    """
    by_node = lexsort((outages["from_us"], outages["node"]))
    node, down_us, up_us = (outages[name][by_node] for name in ("node", "from_us", "until_us"))
    # A node is up before its first outage, between its outages, and after the last one.
    has_outages = np.isin(table["node"], node)
    is_first = mark_first(node)
    first_outages = np.flatnonzero(is_first)
    next_down_us = np.full(len(node), FOREVER_US)
    next_down_us[:-1] = np.where(is_first[1:], FOREVER_US, down_us[1:])
    node_keys = np.concatenate([node[first_outages], node])
    up_from_us = np.concatenate([np.full(len(first_outages), -FOREVER_US), up_us])
    up_until_us = np.concatenate([down_us[first_outages], next_down_us])
    affected_rows = np.flatnonzero(has_outages)
    affected_table = select(table, affected_rows)
    uptimes = overlaps(
        affected_table["node"],
        affected_table["from_us"],
        affected_table["until_us"],
        node_keys,
        up_from_us,
        up_until_us,
    )
    divided_table = select(table, affected_rows[uptimes.row]) | {
        "from_us": uptimes.from_us,
        "until_us": uptimes.until_us,
    }
    all_rows = {name: np.concatenate([table[name][~has_outages], divided_table[name]]) for name in table}
    return select(all_rows, argsort(all_rows["from_us"]))


def cut(table: Table, events: Table) -> Table:
    """Return the table with each interval cut at the first event of its node after the interval's begin.

    An event at the begin itself does not count. ``table``: intervals with the columns node, from_us and until_us.
    ``events``: a table with the columns node and from_us, such as the times at which nodes lose their memory.
    """
    if not len(events["node"]):
        return table
    count = len(table["node"])
    keys = np.concatenate([table["node"], events["node"]])
    times_us = np.concatenate([table["from_us"], events["from_us"]])
    # An event at the begin of an interval comes before it.
    is_table_row = np.arange(len(keys)) < count
    order = np.lexsort((is_table_row, times_us, keys))
    keys, is_event = keys[order], ~is_table_row[order]
    event_times_us = np.where(is_event, times_us[order], FOREVER_US)[::-1]
    # From the last entry of a node to its first: the time of the nearest event after each entry.
    position = np.arange(len(keys))
    is_start = np.append(True, keys[::-1][1:] != keys[::-1][:-1])
    nearest_event = np.maximum.accumulate(np.where(is_event[::-1] | is_start, position, 0))
    next_us = np.empty(len(keys), np.int64)
    next_us[order[::-1]] = event_times_us[nearest_event]
    return table | {"until_us": np.minimum(table["until_us"], next_us[:count])}


def within(table: Table, duration_us: int) -> Table:
    """Return the intervals of a table within a run of ``duration_us``: later ones are left out, longer ones cut."""
    cut_until_us = np.minimum(table["until_us"], duration_us)
    is_lasting = table["from_us"] < cut_until_us
    return select({**table, "until_us": cut_until_us}, is_lasting)


def sampled(is_vital: np.ndarray, most: int) -> np.ndarray:
    """Select at most ``most`` rows, with preference for important rows; return their indices, ascending.

    ``is_vital``: for each row, whether it is important. If there are more than ``most`` rows, up to five sixths of the
    selected rows are important ones and the others fill the rest. Important rows are thinned to every n-th row, and so
    are the others, with another n.
    """
    if len(is_vital) <= most:
        return np.arange(len(is_vital))
    remaining_rows = most
    selections = []
    for class_rows, row_limit in ((np.flatnonzero(is_vital), most - most // 6), (np.flatnonzero(~is_vital), most)):
        selections.append(class_rows[:: max(1, -(-len(class_rows) // max(min(row_limit, remaining_rows), 1)))])
        remaining_rows -= len(selections[-1])
    return np.sort(np.concatenate(selections))


def thinned(table: Table, most: int, plural: str) -> tuple[Table, tuple[str, ...]]:
    """Reduce a table to at most ``most`` rows, every n-th; return (the table, a tuple with a note on omitted rows).

    If the table has at most ``most`` rows, it is unchanged and the tuple is empty. ``plural``: noun for the rows in the
    note, such as "deliveries".
    """
    row_count = len(table["from_us"])
    if row_count <= most:
        return table, ()
    step = -(-row_count // most)
    omission_note = f"Of {row_count:,} {plural} one in {step} is drawn; all of them are counted."
    return select(table, np.arange(0, row_count, step)), (omission_note,)


def running(intervals: Table, times_us: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """Return for each time in ``times_us`` (ascending) the number of intervals that contain this time.

    ``values``: a number for each interval. If given, return the sum of these numbers instead of the count.
    """
    count_changes = np.zeros(len(times_us) + 1, np.int64)
    for name, sign in (("from_us", 1), ("until_us", -1)):
        count_changes += sign * np.bincount(
            np.searchsorted(times_us, intervals[name]), values, len(count_changes)
        ).astype(np.int64)
    return np.cumsum(count_changes[:-1])


def joined(intervals: Table, *names: str) -> Table:
    """Merge rows whose intervals meet or overlap and whose values in the columns ``names`` are equal.

    The result is sorted by these columns, then by time. In all other columns a merged row has the values of its first
    interval.
    """
    group_indices = unique_inverse(row_keys(*(intervals[name] for name in names)))[1]
    by_key = lexsort((intervals["from_us"], group_indices))
    intervals, group_indices = select(intervals, by_key), group_indices[by_key]
    scale = int(intervals["until_us"].max(initial=0)) + 1
    latest_end = np.maximum.accumulate(group_indices * scale + intervals["until_us"])
    is_first = mark_first(group_indices)
    is_first[1:] = (group_indices * scale + intervals["from_us"])[1:] > latest_end[:-1]
    last_rows = np.flatnonzero(np.append(is_first[1:], True))[: len(group_indices)]
    return select(intervals, is_first) | {"until_us": (latest_end - group_indices * scale)[last_rows]}

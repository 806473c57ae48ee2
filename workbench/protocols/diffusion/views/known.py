"""Reconstruct interest caches and gradients from the events of a trace, as tables of intervals.

    cached_interests(columns, duration_us)    intervals in which a node has an interest in its cache
    gradients(columns, duration_us)           intervals in which a gradient of a node does not change

Theory of operation
    The sequence number of a gradient is that of its interest, or 0 if only reinforcements have set the gradient. An
    interval begins with an event ``gradient_set``. It ends with the next ``gradient_set`` or ``gradient_removed`` of
    the same node, neighbor, sink and sequence number. If a reinforcement sets a gradient, the event ``gradient_set``
    has the reinforcement's sequence number; the event ``head_set`` at the same time has the gradient's sequence number.

    ``head_set`` reports the first gradient of a sink in an entry of the cache, the head. The sequence number of the
    sink's interest identifies the entry.

Limits
    If only a reinforcement has set a head, the event does not identify the cache entry. The head is then assigned to
    the sink's interest that had a head before. If the sink has several interests, that may be the wrong interest. Then
    the head of the right interest is shown as a gradient in reserve.
"""

from __future__ import annotations

import numpy as np

from workbench.columns import argsort, last_marked, mark_first, row_keys
from workbench.sim.rows import Columns
from workbench.views.layers import Table, select, table
from workbench.views.spans import FOREVER_US, overlaps, until_next, within

# Values of the column ``look``.
HEAD, REINFORCED, RESERVE = 1, 2, 3


def cached_interests(columns: Columns, duration_us: int) -> tuple[Table, list[str]]:
    """Return (table of the interests in the nodes' caches, list of the texts of their attributes).

    A row is an interval in which a node has a certain round of an interest in its cache. Columns: node; origin,
    sequence: sink and sequence number of the interest; value: the round; text: index of the interest's attributes in
    the list of texts. A sink's own interests are left out.
    """
    rows = columns.where(event=("interest_cached", "interest_removed"))
    is_cached = columns.says("event", rows, "interest_cached")
    rows = rows[~is_cached | (columns["node"][rows] != columns["origin"][rows])]
    is_cached = columns.says("event", rows, "interest_cached")
    text_codes, texts = columns.coded("detail", rows)
    numbers = {name: columns[name][rows] for name in ("node", "origin", "sequence", "value")}
    # A removal refers to the interest that was cached last with the same attributes.
    caching_row = find_latest_rows(row_keys(numbers["node"], numbers["origin"], numbers["sequence"]), is_cached)
    has_caching_row = caching_row >= 0
    entry_keys = row_keys(numbers["node"][has_caching_row], text_codes[caching_row[has_caching_row]])
    until_us = np.full(len(rows), FOREVER_US)
    until_us[has_caching_row] = until_next(entry_keys, columns["time_us"][rows][has_caching_row], FOREVER_US)
    table_columns = {name: column[is_cached] for name, column in numbers.items()}
    table_columns |= {"from_us": columns["time_us"][rows][is_cached], "until_us": until_us[is_cached]}
    return within(table(**table_columns, text=text_codes[is_cached]), duration_us), texts


def gradients(columns: Columns, duration_us: int) -> Table:
    """Return a table of all nodes' gradients over time.

    A row is an interval in which a gradient does not change. Columns: node; peer: the neighbor to which data may go;
    origin, sequence: sink and sequence number of the interest; value: when the gradient expires (µs); look: HEAD (the
    sink's first gradient, along which data goes), REINFORCED (a head that a reinforcement has chosen) or RESERVE (not a
    head).
    """
    rows = columns.where(event=("gradient_set", "gradient_removed", "head_set"))
    node, peer, origin, number, value, time_us = (
        columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value", "time_us")
    )
    number = number.copy()
    is_head = columns.says("event", rows, "head_set")
    is_set = columns.says("event", rows, "gradient_set")
    is_set_by_interest = is_set & columns.says("detail", rows, "interest")
    is_set_by_reinforcement = is_set & ~is_set_by_interest
    link_keys, sink_keys, interest_keys = (
        row_keys(node, origin, peer),
        row_keys(node, origin),
        row_keys(node, origin, number),
    )
    # Find the entry of each head, then that of each gradient.
    is_numbered = np.isin(interest_keys, interest_keys[is_set_by_interest])
    entry_numbers = number.copy()
    numbered_head_row = find_latest_rows(sink_keys, is_numbered)
    numbered_head_row = np.where(
        numbered_head_row < 0,
        find_latest_rows(sink_keys[::-1], is_numbered[::-1], len(rows) - 1)[::-1],
        numbered_head_row,
    )
    has_other_entry = is_head & ~is_numbered & (numbered_head_row >= 0)
    entry_numbers[has_other_entry] = number[numbered_head_row[has_other_entry]]
    latest_head_row = _find_latest_rows_in_time(link_keys, time_us, is_head)
    has_head = is_set_by_reinforcement & (latest_head_row >= 0)
    number[has_head], entry_numbers[has_head] = (
        number[latest_head_row[has_head]],
        entry_numbers[latest_head_row[has_head]],
    )
    # Find how long each gradient lasts.
    change_rows = np.flatnonzero(~is_head)
    until_us_of_row = np.full(len(rows), FOREVER_US)
    until_us_of_row[change_rows] = until_next(
        row_keys(link_keys[change_rows], number[change_rows]), time_us[change_rows], FOREVER_US
    )
    set_rows = np.flatnonzero(is_set)
    until_us = np.minimum(np.minimum(until_us_of_row[set_rows], value[set_rows]), duration_us)
    keys = row_keys(sink_keys, entry_numbers, peer)
    begins_us, looks, key_of_look = _looks(
        keys, row_keys(sink_keys, entry_numbers), time_us, is_head, value, np.unique(keys[set_rows])
    )
    ends_us = until_next(key_of_look, begins_us, FOREVER_US)
    intervals = overlaps(keys[set_rows], time_us[set_rows], until_us, key_of_look, begins_us, ends_us)
    row = set_rows[intervals.row]
    interval_table = table(
        node=node[row],
        peer=peer[row],
        origin=origin[row],
        sequence=number[row],
        value=value[row],
        from_us=intervals.from_us,
        until_us=intervals.until_us,
        look=looks[intervals.other],
    )
    return select(interval_table, argsort(interval_table["from_us"]))


def find_latest_rows(keys: np.ndarray, is_source: np.ndarray, last: int | None = None) -> np.ndarray:
    """Return, for each row, the index of the last marked row that has the same key and does not come later, or -1.

    ``keys``: the key of each row; ``is_source``: whether each row is marked. The keys [1, 2, 1, 2] with the marks
    [True, False, False, True] give [0, -1, 0, 3].

    To find the next marked row instead, pass both arrays in reverse order, and the largest index as ``last``. The
    result is then in reverse order, too, but its indices refer to the original order.
    """
    order = argsort(keys)
    source_positions, first_positions = last_marked(is_source[order]), last_marked(mark_first(keys[order]))
    latest_row = np.full(len(keys), -1)
    row = order[source_positions]
    latest_row[order] = np.where(source_positions >= first_positions, row if last is None else last - row, -1)
    return latest_row


def _find_latest_rows_in_time(keys: np.ndarray, time_us: np.ndarray, is_source: np.ndarray) -> np.ndarray:
    """Return, for each row, the index of the latest marked row with the same key and an equal or earlier time, or -1.

    ``is_source``: whether a row is marked. A marked row with the same time counts even if it comes after the row.
    """
    # Within a microsecond, sources sort before other rows.
    order = np.lexsort((np.arange(len(keys)), ~is_source, time_us))
    latest_row = np.full(len(keys), -1)
    source_positions = find_latest_rows(keys[order], is_source[order])
    latest_row[order] = np.where(source_positions >= 0, order[source_positions], -1)
    return latest_row


def _looks(
    keys: np.ndarray,
    entries: np.ndarray,
    time_us: np.ndarray,
    is_head: np.ndarray,
    is_reinforced: np.ndarray,
    all_keys: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the intervals in which each gradient keeps its look, as arrays: start (µs), look, key of the gradient.

    The look is HEAD, REINFORCED or RESERVE, as in `gradients`. An interval ends where the gradient's next one begins.
    The intervals are in the order of the trace rows "head_set" with which they begin.

    The parameters before ``all_keys`` are arrays with an element for each trace row: key of the gradient, key of the
    cache entry, time, whether the row is a "head_set", whether a reinforcement has chosen this head. ``all_keys``: the
    keys of all gradients.
    """
    head_rows = np.flatnonzero(is_head)
    next_head = until_next(entries[head_rows], head_rows, -1)  # the row of the next head in the same entry
    is_replaced = (next_head >= 0) & (keys[next_head] != keys[head_rows])
    columns = [
        (np.full(len(all_keys), -FOREVER_US), np.full(len(all_keys), RESERVE), all_keys, np.full(len(all_keys), -1)),
        (
            time_us[next_head[is_replaced]],
            np.full(int(is_replaced.sum()), RESERVE),
            keys[head_rows[is_replaced]],
            2 * next_head[is_replaced],
        ),
        (
            time_us[head_rows],
            np.where(is_reinforced[head_rows] != 0, REINFORCED, HEAD),
            keys[head_rows],
            2 * head_rows + 1,
        ),
    ]
    begins_us, looks, interval_keys, sort_keys = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = argsort(sort_keys)
    return begins_us[order], looks[order], interval_keys[order]

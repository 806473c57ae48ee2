"""Read interest caches and gradients from the events of a trace, as tables of intervals.

    cached(columns, duration_us)         interests in the caches
    gradients(columns, duration_us)      gradients, with a new interval after each change

Theory of operation
    A gradient's number is that of its interest, or 0 if only reinforcements have set it. A gradient lasts from a
    ``gradient_set`` to the next one or to a ``gradient_removed`` of its node, neighbor, sink and number. If a
    reinforcement sets a gradient, the event has the reinforcement's number; the ``head_set`` at the same time has the
    gradient's number.

    ``head_set`` reports the first gradient of a sink in an entry of the cache, the head. The number of the sink's
    interest identifies the entry.

Limits
    A head that only a reinforcement has set is assigned to the interest of the sink that had a head before. If a sink
    has several interests, that may be the wrong one; then the right one's head is shown in reserve.
"""

from __future__ import annotations

import numpy as np

from workbench.columns import argsort, last_marked, mark_first, row_keys
from workbench.sim.rows import Columns
from workbench.views.layers import Table, select, table
from workbench.views.spans import FOREVER_US, overlaps, until_next, within

# Values of the column ``look``.
HEAD, REINFORCED, RESERVE = 1, 2, 3


def cached(columns: Columns, duration_us: int) -> tuple[Table, list[str]]:
    """Return (table of cached interests, texts): an interval from caching until the next refresh or removal.

    Columns: node; origin, sequence: of the interest; value: its round; text: index of its attributes in the texts. A
    sink's own interest is a subscription, and not in its cache.
    """
    rows = columns.where(event=("interest_cached", "interest_removed"))
    is_cached = columns.says("event", rows, "interest_cached")
    rows = rows[~is_cached | (columns["node"][rows] != columns["origin"][rows])]
    is_cached = columns.says("event", rows, "interest_cached")
    text, texts = columns.coded("detail", rows)
    numbers = {name: columns[name][rows] for name in ("node", "origin", "sequence", "value")}
    # A removal refers to the interest that was cached last with the same attributes.
    cached_as = latest(row_keys(numbers["node"], numbers["origin"], numbers["sequence"]), is_cached)
    is_known = cached_as >= 0
    entry = row_keys(numbers["node"][is_known], text[cached_as[is_known]])
    until = np.full(len(rows), FOREVER_US)
    until[is_known] = until_next(entry, columns["time_us"][rows][is_known], FOREVER_US)
    table_columns = {name: column[is_cached] for name, column in numbers.items()}
    table_columns |= {"from_us": columns["time_us"][rows][is_cached], "until_us": until[is_cached]}
    return within(table(**table_columns, text=text[is_cached]), duration_us), texts


def gradients(columns: Columns, duration_us: int) -> Table:
    """Return a table of gradients: an interval from each set or change to the next change, removal or expiration.

    Columns: node, peer: its two ends; origin, sequence: the sink and its interest; value: when it expires (µs); look:
    HEAD, REINFORCED (also a head) or RESERVE.
    """
    rows = columns.where(event=("gradient_set", "gradient_removed", "head_set"))
    node, peer, origin, number, value, time_us = (
        columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value", "time_us")
    )
    number = number.copy()
    is_head = columns.says("event", rows, "head_set")
    is_set = columns.says("event", rows, "gradient_set")
    by_interest = is_set & columns.says("detail", rows, "interest")
    by_reinforcement = is_set & ~by_interest
    link, sink, interest = row_keys(node, origin, peer), row_keys(node, origin), row_keys(node, origin, number)
    # Find the entry of each head, then that of each gradient.
    is_numbered = np.isin(interest, interest[by_interest])
    entry = number.copy()
    numbered_head = latest(sink, is_numbered)
    numbered_head = np.where(
        numbered_head < 0, latest(sink[::-1], is_numbered[::-1], len(rows) - 1)[::-1], numbered_head
    )
    unnumbered = is_head & ~is_numbered & (numbered_head >= 0)
    entry[unnumbered] = number[numbered_head[unnumbered]]
    head_of = _latest_at(link, time_us, is_head)
    has_head = by_reinforcement & (head_of >= 0)
    number[has_head], entry[has_head] = number[head_of[has_head]], entry[head_of[has_head]]
    # Find how long each gradient lasts.
    changes = np.flatnonzero(~is_head)
    until = np.full(len(rows), FOREVER_US)
    until[changes] = until_next(row_keys(link[changes], number[changes]), time_us[changes], FOREVER_US)
    set_rows = np.flatnonzero(is_set)
    until_us = np.minimum(np.minimum(until[set_rows], value[set_rows]), duration_us)
    keys = row_keys(sink, entry, peer)
    begins_us, looks, of_key = _looks(keys, row_keys(sink, entry), time_us, is_head, value, np.unique(keys[set_rows]))
    ends_us = until_next(of_key, begins_us, FOREVER_US)
    intervals = overlaps(keys[set_rows], time_us[set_rows], until_us, of_key, begins_us, ends_us)
    row = set_rows[intervals.row]
    pieces = table(
        node=node[row],
        peer=peer[row],
        origin=origin[row],
        sequence=number[row],
        value=value[row],
        from_us=intervals.from_us,
        until_us=intervals.until_us,
        look=looks[intervals.other],
    )
    return select(pieces, argsort(pieces["from_us"]))


def latest(keys: np.ndarray, is_source: np.ndarray, last: int | None = None) -> np.ndarray:
    """Return for each row the latest source row of its key up to itself; -1 if no source row precedes it.

    ``last``: number of the first row given, if the rows are in reverse order; else None.
    """
    order = argsort(keys)
    source, begin = last_marked(is_source[order]), last_marked(mark_first(keys[order]))
    latest_row = np.full(len(keys), -1)
    row = order[source]
    latest_row[order] = np.where(source >= begin, row if last is None else last - row, -1)
    return latest_row


def _latest_at(keys: np.ndarray, time_us: np.ndarray, is_source: np.ndarray) -> np.ndarray:
    """Return for each row the latest source row of its key up to its time, even a later row of that microsecond."""
    # Within a microsecond, sources sort before other rows.
    order = np.lexsort((np.arange(len(keys)), ~is_source, time_us))
    latest_row = np.full(len(keys), -1)
    source = latest(keys[order], is_source[order])
    latest_row[order] = np.where(source >= 0, order[source], -1)
    return latest_row


def _looks(
    keys: np.ndarray,
    entries: np.ndarray,
    time_us: np.ndarray,
    is_head: np.ndarray,
    is_reinforced: np.ndarray,
    of_keys: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (start in µs, look, key) of the intervals of all gradients, sorted.

    The look is RESERVE while a gradient is not the first of its sink.
    """
    head = np.flatnonzero(is_head)
    next_head = until_next(entries[head], head, -1)  # the head that comes after it
    is_replaced = (next_head >= 0) & (keys[next_head] != keys[head])
    columns = [
        (np.full(len(of_keys), -FOREVER_US), np.full(len(of_keys), RESERVE), of_keys, np.full(len(of_keys), -1)),
        (
            time_us[next_head[is_replaced]],
            np.full(int(is_replaced.sum()), RESERVE),
            keys[head[is_replaced]],
            2 * next_head[is_replaced],
        ),
        (time_us[head], np.where(is_reinforced[head] != 0, REINFORCED, HEAD), keys[head], 2 * head + 1),
    ]
    begins_us, looks, of_key, positions = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = argsort(positions)
    return begins_us[order], looks[order], of_key[order]

"""What nodes know of others' interests, from the events of a trace: caches, and which gradients carry data.

    cached(columns, duration_us)         interests in the caches
    gradients(columns, duration_us)      gradients, each as long as it stays as it is

Theory of operation
    A gradient has a number: that of its interest, or 0 if reinforcements alone have set it. It lasts from a
    ``gradient_set`` to the next one or to a ``gradient_removed`` of its node, neighbor, sink and number. When a
    reinforcement sets a gradient, the event has the reinforcement's number; the ``head_set`` of that moment has the
    gradient's.

    ``head_set`` says which gradient is the first of a sink's in an entry of the cache. The number of the sink's
    interest identifies the entry.

Limits
    A head that a reinforcement alone has set is taken for the head of the sink's interest that had one before. If a
    sink has several interests, that may be another one: then its own head is shown in reserve.
"""

from __future__ import annotations

import numpy as np

from workbench.columns import argsort, last_marked, mark_first, row_keys
from workbench.sim.rows import Columns
from workbench.views.layers import Table, select, table
from workbench.views.spans import FOREVER_US, overlaps, until_next, within

# How a gradient is shown.
HEAD, REINFORCED, RESERVE = 1, 2, 3


def cached(columns: Columns, duration_us: int) -> tuple[Table, list[str]]:
    """(interests in the caches of nodes, from when they were cached until they were refreshed or removed; words).

    node; origin, sequence: of the interest; value: its round; text: its attributes, one of the words. A sink's own
    interest is a subscription, and not in its cache.
    """
    rows = columns.where(event=("interest_cached", "interest_removed"))
    is_cached = columns.says("event", rows, "interest_cached")
    rows = rows[~is_cached | (columns["node"][rows] != columns["origin"][rows])]
    is_cached = columns.says("event", rows, "interest_cached")
    text, words = columns.coded("detail", rows)
    numbers = {name: columns[name][rows] for name in ("node", "origin", "sequence", "value")}
    # A removed interest is named by the one that was cached last under the same attributes.
    cached_as = latest(row_keys(numbers["node"], numbers["origin"], numbers["sequence"]), is_cached)
    is_known = cached_as >= 0
    entry = row_keys(numbers["node"][is_known], text[cached_as[is_known]])
    until = np.full(len(rows), FOREVER_US)
    until[is_known] = until_next(entry, columns["time_us"][rows][is_known], FOREVER_US)
    found = {name: column[is_cached] for name, column in numbers.items()}
    found |= {"from_us": columns["time_us"][rows][is_cached], "until_us": until[is_cached]}
    return within(table(**found, text=text[is_cached]), duration_us), words


def gradients(columns: Columns, duration_us: int) -> Table:
    """Gradients, from when they were set or changed until they change, are removed, or expire.

    node, peer: from where to where; origin, sequence: the sink and its interest; value: when it expires; look: HEAD,
    REINFORCED (a head too) or RESERVE.
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
    # The entry of each head, then that of each gradient.
    is_numbered = np.isin(interest, interest[by_interest])
    entry = number.copy()
    filled = latest(sink, is_numbered)
    filled = np.where(filled < 0, latest(sink[::-1], is_numbered[::-1], len(rows) - 1)[::-1], filled)
    other = is_head & ~is_numbered & (filled >= 0)
    entry[other] = number[filled[other]]
    head_of = _latest_at(link, time_us, is_head)
    named = by_reinforcement & (head_of >= 0)
    number[named], entry[named] = number[head_of[named]], entry[head_of[named]]
    # How long each gradient lasts.
    changes = np.flatnonzero(~is_head)
    until = np.full(len(rows), FOREVER_US)
    until[changes] = until_next(row_keys(link[changes], number[changes]), time_us[changes], FOREVER_US)
    lasts = np.flatnonzero(is_set)
    until_us = np.minimum(np.minimum(until[lasts], value[lasts]), duration_us)
    keys = row_keys(sink, entry, peer)
    begins_us, looks, of_key = _looks(keys, row_keys(sink, entry), time_us, is_head, value, np.unique(keys[lasts]))
    ends_us = until_next(of_key, begins_us, FOREVER_US)
    found = overlaps(keys[lasts], time_us[lasts], until_us, of_key, begins_us, ends_us)
    row = lasts[found.row]
    pieces = table(
        node=node[row],
        peer=peer[row],
        origin=origin[row],
        sequence=number[row],
        value=value[row],
        from_us=found.from_us,
        until_us=found.until_us,
        look=looks[found.other],
    )
    return select(pieces, argsort(pieces["from_us"]))


def latest(keys: np.ndarray, is_source: np.ndarray, last: int | None = None) -> np.ndarray:
    """For each row the latest source row of its key, itself included; -1 if there is none before it.

    ``last``: rows are in reverse order, and this is the number of the first one.
    """
    order = argsort(keys)
    source, begin = last_marked(is_source[order]), last_marked(mark_first(keys[order]))
    found = np.full(len(keys), -1)
    row = order[source]
    found[order] = np.where(source >= begin, row if last is None else last - row, -1)
    return found


def _latest_at(keys: np.ndarray, time_us: np.ndarray, is_source: np.ndarray) -> np.ndarray:
    """For each row the latest source row of its key at its time or before, even if it follows in the microsecond."""
    # Rows of a microsecond with the sources before the others.
    order = np.lexsort((np.arange(len(keys)), ~is_source, time_us))
    found = np.full(len(keys), -1)
    source = latest(keys[order], is_source[order])
    found[order] = np.where(source >= 0, order[source], -1)
    return found


def _looks(
    keys: np.ndarray,
    entries: np.ndarray,
    time_us: np.ndarray,
    is_head: np.ndarray,
    is_reinforced: np.ndarray,
    of_keys: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(from when, how it looks, key) of each gradient, in order: in reserve at first, and while another is the head."""
    head = np.flatnonzero(is_head)
    followed = until_next(entries[head], head, -1)  # the head that comes after it
    gone = (followed >= 0) & (keys[followed] != keys[head])
    columns = [
        (np.full(len(of_keys), -FOREVER_US), np.full(len(of_keys), RESERVE), of_keys, np.full(len(of_keys), -1)),
        (time_us[followed[gone]], np.full(int(gone.sum()), RESERVE), keys[head[gone]], 2 * followed[gone]),
        (time_us[head], np.where(is_reinforced[head] != 0, REINFORCED, HEAD), keys[head], 2 * head + 1),
    ]
    begins_us, looks, of_key, places = (np.concatenate(column) for column in zip(*columns, strict=True))
    order = argsort(places)
    return begins_us[order], looks[order], of_key[order]

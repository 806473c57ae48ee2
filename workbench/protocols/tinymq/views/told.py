"""What the views of TinyMQ need of a trace and its intervals, with arrays.

told(columns)                  the rows that they look at
among(columns, rows, **equal)  of some rows those with given words; coded(...) numbers words
joined(table, *names)          intervals of a key that meet or overlap, as one
spread(first, count)           every row with each of its neighbors in another table
as_spans(kind, table)          a table as named tuples
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.views.layers import Table, select
from workbench.views.player.columns import Columns
from workbench.views.sorting import order_of
from workbench.views.spans import groups

QUERY, EVENT, NOTIFICATION = MESSAGE_NAMES = ("query", "event", "notification")
_HEARD, _SENT, _LOGGED = range(3)
_FRAMES = {"received": _HEARD, "sent": _SENT}
_LOGS = (
    *("key_set", "query_stored", "failed", "recovered", "subscribed", "published", "originated"),
    *("held", "delivered", "dropped", "zone_set", "event_matched"),
)
_KINDS = {**_FRAMES, **dict.fromkeys(_LOGS, _LOGGED)}


class Told(NamedTuple):
    """A trace and numbers of its rows, ascending: what nodes logged; what they sent; the frames of queries, events and
    notifications, as they were sent and received."""

    columns: Columns
    logged: np.ndarray
    sent: np.ndarray
    frames: np.ndarray

    def within(self, from_us: int, until_us: int) -> Told:
        """The rows of a time, its ends with it."""
        times_us = self.columns["time_us"]
        rows = (rows[(times_us[rows] >= from_us) & (times_us[rows] <= until_us)] for rows in self[1:])
        return Told(self.columns, *rows)


def told(columns: Columns) -> Told:
    """What these views look at, found in one pass over a trace."""
    kind = _numbers(columns, "event", _KINDS).take(columns.codes["event"])
    is_theirs = _numbers(columns, "message", dict.fromkeys(MESSAGE_NAMES, 0)).take(columns.codes["message"]) >= 0
    is_frame = (kind >= 0) & (kind < _LOGGED) & is_theirs
    return Told(columns, *map(np.flatnonzero, (kind == _LOGGED, kind == _SENT, is_frame)))


def among(columns: Columns, rows: np.ndarray, **equal: str | Iterable[str]) -> np.ndarray:
    """Of some rows those at which each named text column has one of the given words."""
    for name, words in equal.items():
        wanted = {words} if isinstance(words, str) else set(words)
        rows = rows[coded(columns, rows, name, dict.fromkeys(wanted, 0)) == 0]
    return rows


def coded(columns: Columns, rows: np.ndarray, name: str, numbers: Mapping[str, int]) -> np.ndarray:
    """For each row the number of the word that a text column has there; -1 for words without a number."""
    return _numbers(columns, name, numbers).take(columns.codes[name].take(rows))


def _numbers(columns: Columns, name: str, numbers: Mapping[str, int]) -> np.ndarray:
    words = columns.words[name]
    found = np.full(max(len(words), 1), -1, np.int8)
    for word, number in numbers.items():
        if word in words:
            found[words.index(word)] = number
    return found


def joined(some: Table, *names: str) -> Table:
    """Intervals that meet or overlap and are alike in the named columns, as one: by these and by time.

    All else is as in the first of them.
    """
    key = numbered(*(some[name] for name in names))
    order = np.lexsort((some["from_us"], key))
    some, key = select(some, order), key[order]
    scale = int(some["until_us"].max(initial=0)) + 1
    reach = np.maximum.accumulate(key * scale + some["until_us"])
    is_first = np.ones(len(key), bool)
    is_first[1:] = (key * scale + some["from_us"])[1:] > reach[:-1]
    last = np.flatnonzero(np.append(is_first[1:], True))[: len(key)]
    return select(some, is_first) | {"until_us": (reach - key * scale)[last]}


def numbered(*keys: np.ndarray) -> np.ndarray:
    """`groups`, for keys that no int64 holds too."""
    return groups(*(np.unique(key, return_inverse=True)[1] if key.dtype == object else key for key in keys))


def firsts(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the keys that there are, ascending; the first row of each)."""
    order = order_of(keys)
    found = keys[order]
    is_first = np.append(True, found[1:] != found[:-1])[: len(keys)]
    return found[is_first], order[is_first]


def spread(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(row, other) for each row and ``first``, ``first + 1``, ..., as many others as ``count`` says."""
    count = np.maximum(count, 0)
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count - first, count)


def as_spans(kind: Any, some: Table, words: Sequence[str] = (), rows: np.ndarray | slice = slice(None)) -> list[Any]:
    """Rows of a table as named tuples; columns ``key`` and ``text`` are places in ``words``."""
    listed = []
    for name in kind._fields:
        values = some[name][rows].tolist()
        listed.append([words[code] for code in values] if name in ("key", "text") else values)
    return list(map(kind._make, zip(*listed, strict=True)))

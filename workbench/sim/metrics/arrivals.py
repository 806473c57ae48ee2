"""What became of each delivery: which publication it stands for, or that it is wrong, or comes again.

Theory of operation
    What a message carries for a subscription are *items*: a sample's text, and the publication that it is of. The k-th
    delivery of a text out of a message to a subscription stands for the k-th item with that text. A text that is none
    of the items' is wrong, unless the protocol says that it changed the message on purpose. All deliveries of such a
    message to a subscription are gone through one by one: a changed sample stands for the first that has not arrived.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench import columns
from workbench.columns import Table, find_last, ranges, row_keys
from workbench.sim.metrics.matching import Matching
from workbench.sim.metrics.workload import Asked, Published
from workbench.sim.rows import Columns

_MESSAGE = "message", "origin", "sequence"  # the columns that name one


class Arrived(NamedTuple):
    """Deliveries that stand for a publication in columns (a,), by index; and how many others there are.

    ``row``: the place of a delivery among the rows "delivered".
    """

    subscription: np.ndarray
    publication: np.ndarray
    time_us: np.ndarray
    row: np.ndarray
    wrong: int
    duplicates: int


class _Carried(NamedTuple):
    """The publications in message m, in order: publication[first[m] : first[m + 1]]."""

    first: np.ndarray
    publication: np.ndarray


class _Deliveries(NamedTuple):
    """Deliveries in columns (d,), all but the time by index; ``may_differ``: the message was changed on purpose."""

    subscription: np.ndarray
    message: np.ndarray
    time_us: np.ndarray
    text: np.ndarray
    may_differ: np.ndarray
    row: np.ndarray


class _Items(NamedTuple):
    """Items in columns (i,); ``pair`` is the index of a message and of a text that is asked for."""

    pair: np.ndarray
    publication: np.ndarray
    text: np.ndarray


def arrivals(
    rows: Columns, asked: Asked, published: Published, matching: Matching, changes: tuple[str, ...]
) -> Arrived:
    """What became of all deliveries; ``changes`` of the protocol's class."""
    name, origin, sequence = rows.columns("delivered", *_MESSAGE)
    node, number, time_us, detail = rows.columns("delivered", "node", "value", "time_us", "detail")
    carried, message = _carried(rows, published, (origin, sequence))
    codes, text = columns.unique_inverse(detail)
    texts = [rows.words["detail"][code] for code in codes.tolist()]
    subscription = find_last((node, number), (asked.node, asked.number))
    may_differ = find_last((name, origin, sequence), _changed(rows, changes)) >= 0
    every = _Deliveries(subscription, message, time_us, text, may_differ, np.arange(len(node)))
    right = columns.take_rows(every, _in_time(every, asked))
    right = columns.take_rows(right, _matches(right, asked, texts, matching))
    _, first, pair = columns.unique_all(row_keys(right.message, asked.what[right.subscription]))
    pairs = right.message[first], asked.what[right.subscription[first]]
    items = _items(*pairs, carried, asked, published, texts, matching)
    publication, is_again, is_wrong = _credited(right, pair, items)
    stands = publication >= 0
    credited = right.subscription[stands], publication[stands], right.time_us[stands], right.row[stands]
    wrong = len(node) - len(right.text) + int(np.count_nonzero(is_wrong))
    return Arrived(*credited, wrong, int(np.count_nonzero(is_again)))


def _carried(rows: Columns, published: Published, messages: Table) -> tuple[_Carried, np.ndarray]:
    """What messages carry, and the indices of ``messages`` (origin, sequence), -1 for one that nobody originated."""
    node, number, origin, sequence = rows.columns("originated", "node", "value", "origin", "sequence")
    publication = find_last((node, number), (published.node, published.number))
    is_known = publication >= 0
    keys, wanted = columns.shared_keys((origin[is_known], sequence[is_known]), messages)
    order = columns.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(columns.mark_first(keys))
    index = columns.find_sorted(wanted, keys[first])
    return _Carried(np.append(first, len(keys)), publication[is_known][order]), index


def _changed(rows: Columns, changes: tuple[str, ...]) -> Table:
    """The messages (name, origin, sequence) that nodes tell they have changed."""
    event, detail = changes or ("", "")
    details, *messages = rows.columns(event, "detail", *_MESSAGE)
    is_change = details == rows.code("detail", detail)
    return tuple(column[is_change] for column in messages)


def _in_time(every: _Deliveries, asked: Asked) -> np.ndarray:
    """Whether the message is known, and the subscription, which lasts."""
    is_known = (every.subscription >= 0) & (every.message >= 0)
    first_us, last_us = asked.first_us[every.subscription], asked.last_us[every.subscription]
    return is_known & (first_us <= every.time_us) & (every.time_us < last_us)


def _matches(some: _Deliveries, asked: Asked, texts: list[str], matching: Matching) -> np.ndarray:
    """Whether the sample is one that the subscription asks for."""
    what = asked.what[some.subscription]
    _, first, pair = columns.unique_all(row_keys(what, some.text))
    found = [
        matching.is_match(asked.texts[one], texts[other])
        for one, other in zip(what[first].tolist(), some.text[first].tolist(), strict=True)
    ]
    return np.array(found, np.bool_)[pair]


def _items(
    message: np.ndarray,
    what: np.ndarray,
    carried: _Carried,
    asked: Asked,
    published: Published,
    texts: list[str],
    matching: Matching,
) -> _Items:
    """What each message (n,) carries for the text that is asked for (n,), pair by pair and in order."""
    count = carried.first[message + 1] - carried.first[message]
    pair = np.repeat(np.arange(len(message)), count)
    publication = carried.publication[ranges(carried.first[message], count)]
    _, first, same = columns.unique_all(row_keys(what[pair], published.what[publication]))
    codes = {text: code for code, text in enumerate(texts)}
    found = [
        [codes.setdefault(sample, len(codes)) for sample in matching.samples(asked.texts[one], published.texts[other])]
        for one, other in zip(what[pair[first]].tolist(), published.what[publication[first]].tolist(), strict=True)
    ]
    lengths = np.array([len(samples) for samples in found], np.int64)
    starts, each = (np.cumsum(lengths) - lengths)[same], lengths[same]
    text = np.array([code for samples in found for code in samples], np.int64)[ranges(starts, each)]
    return _Items(np.repeat(pair, each), np.repeat(publication, each), text)


def _credited(right: _Deliveries, pair: np.ndarray, items: _Items) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the publication that each delivery (d,) stands for, or -1; whether it comes again; whether it is wrong)."""
    of_items = items.pair, items.text
    rank = columns.cumcount(row_keys(right.subscription, pair, right.text))
    item = find_last((pair, right.text, rank), (*of_items, columns.cumcount(row_keys(*of_items))))
    publication = np.append(items.publication, -1)[item]
    is_other = find_last((pair, right.text), of_items) < 0
    is_again = ~is_other & (item < 0)
    is_changed = is_other & right.may_differ
    if is_changed.any():
        _go_through(right, pair, items, is_changed, publication, is_again)
    return publication, is_again, is_other & ~right.may_differ


def _go_through(
    right: _Deliveries,
    pair: np.ndarray,
    items: _Items,
    is_changed: np.ndarray,
    publication: np.ndarray,
    is_again: np.ndarray,
) -> None:
    """Credit the deliveries of those messages to those subscriptions of which some are changed, in their order."""
    group = row_keys(right.subscription, pair)
    ends = np.searchsorted(items.pair, np.arange(1 + pair.max()), side="right").tolist()
    waiting: dict[int, list[tuple[int, int]]] = {}  # (text, publication) of what has not arrived
    seen: set[tuple[int, int]] = set()
    for index in np.flatnonzero(np.isin(group, group[is_changed])).tolist():
        of, text = int(group[index]), int(right.text[index])
        if of not in waiting:
            mine = slice(ends[pair[index] - 1] if pair[index] else 0, ends[pair[index]])
            waiting[of] = list(zip(items.text[mine].tolist(), items.publication[mine].tolist(), strict=True))
        # A changed sample stands for the first that has not arrived.
        fits = (place for place, one in enumerate(waiting[of]) if is_changed[index] or one[0] == text)
        place = next(fits, None)
        publication[index] = -1 if place is None else waiting[of].pop(place)[1]
        # One that is new may match only since a filter changed it: it is not owed, and it is no mistake.
        is_again[index] = place is None and (of, text) in seen
        seen.add((of, text))

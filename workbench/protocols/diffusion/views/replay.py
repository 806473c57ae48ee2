"""What nodes know of others' interests, replayed from a trace: caches, and which gradient carries data.

    cached(columns, duration_us)         interests in the caches
    gradients(columns, duration_us)      gradients, each as long as it stays as it is

Theory of operation
    A sink's gradients at a node are a list, best first: a reinforced one, then in the order in which the interest
    arrived. Its head carries the data; the others are in reserve. A removed gradient is told by sink and neighbor,
    and if several interests of a sink use that neighbor, the one that would expire first is meant. A removed
    interest that names no sink is the oldest (evicted), or the one that was not refreshed for longest (expired).

    What is first in a list depends on all that came before, so `gradient_steps` and `interest_steps` go through the
    rows of one node after the other. They are plain Python over flat lists for a few rows, and machine code for many:
    numba is loaded for these alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from workbench.views.layers import Table, table
from workbench.views.player.columns import Columns
from workbench.views.sorting import order_of
from workbench.views.spans import FOREVER_US, groups, until_next, within

# Loading numba takes as long as Python needs for this many rows, some times over.
MOST_IN_PYTHON = 4_000

# What a row does to a cache.
CACHED, EXPIRED, REMOVED = 0, 1, 2
# What a row does to a list of gradients.
INTEREST, REINFORCEMENT, REMOVAL = 0, 1, 2
# How a gradient is shown; what has gone is not.
NOT_SHOWN, HEAD, REINFORCED, RESERVE, GONE = 0, 1, 2, 3, 4


def cached(columns: Columns, duration_us: int) -> tuple[Table, list[str]]:
    """(interests in the caches of nodes, from when they were cached until they were refreshed or removed; words).

    node; origin, sequence: of the interest; value: its round; text: its attributes, one of the words. A sink's own
    interest is a subscription, and not in its cache.
    """
    rows = columns.where(event=("interest_cached", "interest_removed"))
    is_cached = columns.says("event", rows, "interest_cached")
    rows = rows[~is_cached | (columns["node"][rows] != columns["origin"][rows])]
    rows, begins = _grouped(rows, columns["node"][rows])
    is_cached = columns.says("event", rows, "interest_cached")
    is_expiry = columns.says("detail", rows, "expired")
    text, words = columns.coded("detail", rows)
    told = [columns[name][rows] for name in ("time_us", "origin", "sequence")]
    kind = np.where(is_cached, CACHED, np.where(is_expiry, EXPIRED, REMOVED))
    until = np.full(len(rows), FOREVER_US)
    (until,) = _stepped(interest_steps, [begins, kind, text, *told], [until])
    found = {name: columns[name][rows][is_cached] for name in ("node", "origin", "sequence", "value")}
    found |= {"from_us": columns["time_us"][rows][is_cached], "until_us": until[is_cached]}
    return within(table(**found, text=text[is_cached]), duration_us), words


def interest_steps(begins, kinds, texts, times_us, origins, sequences, until_us):  # type: ignore[no-untyped-def]
    """Go through what each node cached and removed, and note in ``until_us`` when what a row cached ended.

    begins: where each node's rows begin, and their number. kinds: CACHED, EXPIRED, REMOVED (otherwise).
    """
    held = [0] * len(kinds)  # the rows that cached what is in the cache, oldest first
    for group in range(len(begins) - 1):
        size = 0
        for row in range(begins[group], begins[group + 1]):
            kind, at = kinds[row], -1
            is_named = origins[row] >= 0
            for place in range(size):
                one = held[place]
                if kind == CACHED:
                    is_meant = texts[one] == texts[row]
                else:
                    is_it = origins[one] == origins[row] and sequences[one] == sequences[row]
                    is_meant = is_it or not is_named
                is_older = kind == EXPIRED and not is_named and times_us[one] < times_us[held[at]]
                if is_meant and (at < 0 or is_older):
                    at = place
            if at >= 0:
                until_us[held[at]] = times_us[row]
            if kind == CACHED:
                if at < 0:
                    at = size
                    size += 1
                held[at] = row
            elif at >= 0:
                size -= 1
                for place in range(at, size):
                    held[place] = held[place + 1]


def gradients(columns: Columns, duration_us: int) -> Table:
    """Gradients, from when they were set or changed until they change, are removed, or expire.

    node, peer: from where to where; origin, sequence: the sink and its interest; value: when it expires; look: HEAD,
    REINFORCED (a head too) or RESERVE.
    """
    rows = columns.where(event=("gradient_set", "gradient_removed"))
    rows, begins = _grouped(rows, groups(columns["node"][rows], columns["origin"][rows]))
    is_set = columns.says("event", rows, "gradient_set")
    is_reinforcement = columns.says("detail", rows, "reinforcement")
    kind = np.where(is_set, np.where(is_reinforcement, REINFORCEMENT, INTEREST), REMOVAL)
    peer, number = columns["peer"][rows], columns["sequence"][rows].copy()
    outputs = [np.zeros(2 * len(rows), np.int64) for _ in range(4)]
    inputs = [begins, kind, peer, columns["value"][rows]]
    number, row, one, look, expires = _stepped(gradient_steps, inputs, [number, *outputs])
    count = int(np.count_nonzero(look))
    row, one, look, expires = row[:count], one[:count], look[:count], expires[:count]
    start = columns["time_us"][rows][row]
    until = np.minimum(np.minimum(until_next(one, start, duration_us), expires), duration_us)
    shown = np.flatnonzero((look != GONE) & (start < until))
    row, one, told = rows[row[shown]], one[shown], {"value": expires, "from_us": start, "until_us": until, "look": look}
    found = {"node": columns["node"][row], "peer": peer[one], "origin": columns["origin"][row]}
    found |= {"sequence": number[one], **{name: column[shown] for name, column in told.items()}}
    return table(**found)


def gradient_steps(  # type: ignore[no-untyped-def]
    begins, kinds, peers, expires_us, numbers, out_row, out_one, out_look, out_expires_us
):
    """Go through the rows of each node and sink, and write down each gradient that looks otherwise after a row.

    begins: where the rows of each node and sink begin, and their number. A gradient is told by the row that made it;
    ``numbers`` of that row becomes the number of its interest. Each row changes two gradients at most.
    """
    held = [0] * len(kinds)  # the gradients of a node and sink, best first
    looks = [0] * len(kinds)
    until_us = [0] * len(kinds)
    shown_us = [0] * len(kinds)
    count = 0
    for group in range(len(begins) - 1):
        size = 0
        for row in range(begins[group], begins[group + 1]):
            kind, at = kinds[row], -1
            for place in range(size):
                one = held[place]
                # A reinforcement has a number of its own; an interest's gradient is told by the interest's number.
                is_meant = peers[one] == peers[row] and (kind != INTEREST or numbers[one] == numbers[row])
                is_sooner = kind == REMOVAL and until_us[one] < until_us[held[at]]
                if is_meant and (at < 0 or is_sooner):
                    at = place
            if at < 0:
                if kind == REMOVAL:
                    continue
                if kind == REINFORCEMENT and size > 0:
                    numbers[row] = numbers[held[0]]
                at = size
                held[at] = row
                size += 1
            one = held[at]
            if kind == REMOVAL:
                size -= 1
                for place in range(at, size):
                    held[place] = held[place + 1]
            else:
                until_us[one] = expires_us[row]
                if kind == REINFORCEMENT:
                    for place in range(at, 0, -1):
                        held[place] = held[place - 1]
                    held[0] = one
            head = -1
            for place in range(size):
                if head < 0 and numbers[held[place]] == numbers[one]:
                    head = held[place]
            for place in range(-1, size):
                other = one if place < 0 else held[place]
                if place >= 0 and (other == one or numbers[other] != numbers[one]):
                    continue
                if place < 0 and kind == REMOVAL:
                    look = GONE
                elif kind == REINFORCEMENT:
                    look = REINFORCED if place < 0 else RESERVE  # the only reinforced one of its interest
                elif place < 0 and other != head:
                    look = RESERVE
                else:
                    look = HEAD if other == head and looks[other] != REINFORCED else looks[other]
                if looks[other] != look or shown_us[other] != until_us[other]:
                    looks[other], shown_us[other] = look, until_us[other]
                    out_row[count], out_one[count], out_look[count] = row, other, look
                    out_expires_us[count] = until_us[other]
                    count += 1


def _grouped(rows: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with those of each key together and in order, and where each key begins, ending with their number."""
    order = order_of(keys)
    is_first = np.ones(len(rows), bool)
    is_first[1:] = keys[order[1:]] != keys[order[:-1]]
    return rows[order], np.append(np.flatnonzero(is_first), len(rows))


def _stepped(steps: Callable[..., None], inputs: list[np.ndarray], outputs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Run a function that goes through rows, which the second of its inputs has one each of; what became of outputs."""
    if len(inputs[1]) > MOST_IN_PYTHON:
        arrays = [np.array(column, np.int64) for column in (*inputs, *outputs)]
        _machine_code(steps)(*arrays)
        return tuple(arrays[len(inputs) :])
    lists = [column.tolist() for column in (*inputs, *outputs)]
    steps(*lists)
    return tuple(np.array(column, np.int64) for column in lists[len(inputs) :])


@cache
def _machine_code(steps: Callable[..., None]) -> Any:
    from numba import njit

    return njit(cache=True)(steps)

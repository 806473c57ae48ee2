"""What the player shows of coded diffusion: how far nodes are with decoding, by shades, and their matrices.

    layers(recorded)    decoding

Theory of operation
    An ``innovative`` row says that a node's rank of an event is ``value`` and that the new row of its matrix has its
    pivot in the column ``detail``. The rank lasts until the next row about that node and event. ``held`` ends the
    decoding: the node has the event. So does the row that says when it was given up (``dropped``, "expired"), and then
    the node has nothing of it; a rank of 1 always begins anew.

    Nodes are shaded by the newest event of its origin. What they have of older ones is in the inspector alone.

Limits
    A trace tells pivots, not coefficients. The generation size is told when somebody decodes; of an event that nobody
    decoded it is that of the others, and at least what its own pivots need.
"""

from __future__ import annotations

import numpy as np

from workbench.views import palette
from workbench.views.layers import Layer, Look, Recorded, Scale, Section, table
from workbench.views.player.columns import Columns
from workbench.views.sorting import order_of
from workbench.views.spans import FOREVER_US, groups, numbered, until_next, within

SHADES = 33
MOST_CELLS = 6_000_000  # of all matrices after all packets
MOST_WORDS = 20_000

DECODING = Look("has coded packets (darker: more)", palette.RANK_HIGH, rank=4, mark="node")
OLDER = Look("")
RANKS = Scale(
    "rank over generation size", tuple(palette.rank_colour(shade / (SHADES - 1)) for shade in range(SHADES)), "0", "1"
)
SECTION = Section(
    "Decoding",
    (
        ("source", "origin", "node"),
        ("event", "sequence", "number"),
        ("rank", "value", "number"),
        ("pivots", "text", "echelon"),
        ("last from", "peer", "node"),
    ),
)


def layers(recorded: Recorded) -> list[Layer]:
    """The ranks of nodes, as far as they do not hold an event yet."""
    columns = recorded.columns
    rows, until, follows = _lasting(columns)
    if not len(rows):
        return []
    size = generation_sizes(columns, rows)
    text, words = pivots(columns, rows, follows, int(size.max()))
    notes = () if words else ("The pivots of decoding matrices are left out: there are too many of them.",)
    found = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value")}
    weight = found["value"] / size
    start, newest = columns["time_us"][rows], _next_event_us(columns, rows)
    # Shaded until its origin makes the next event; for the inspector from then on.
    both = {
        name: np.concatenate([column, column]) for name, column in {**found, "text": text, "weight": weight}.items()
    }
    both["from_us"] = np.concatenate([start, np.maximum(start, newest)])
    both["until_us"] = np.concatenate([np.minimum(until, newest), until])
    both["look"] = np.repeat([0, 1], len(rows))
    shown = table(**within(both, recorded.duration_us))
    return [Layer("decoding", shown, (DECODING, OLDER), scale=RANKS, section=SECTION, words=words, notes=notes)]


def _lasting(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(rows of innovative packets, when the rank that they made ended, whether it was one more than a rank before)."""
    given_up = columns.where(event="dropped", detail="expired")
    rows = np.sort(np.concatenate([columns.where(event=("innovative", "held")), given_up]))
    key = groups(*(columns[name][rows] for name in ("node", "origin", "sequence")))
    until = until_next(key, columns["time_us"][rows], FOREVER_US)
    is_innovative = columns.says("event", rows, "innovative")
    order = order_of(key)
    follows = np.zeros(len(rows), bool)
    follows[order[1:]] = (key[order[1:]] == key[order[:-1]]) & is_innovative[order[:-1]]
    follows &= columns["value"][rows] > 1
    return rows[is_innovative], until[is_innovative], follows[is_innovative]


def generation_sizes(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """m of the event that each row of an innovative packet is about; int64, shape (rows,)."""
    told = columns.where(event="decoded")
    usual = int(columns["value"][told].max(initial=1))
    both = np.concatenate([told, rows])
    event, events = numbered(groups(columns["origin"][both], columns["sequence"][both]))
    size = np.full(events, usual)
    np.maximum.at(size, event[len(told) :], _columns_of_pivots(columns, rows) + 1)
    size[event[: len(told)]] = columns["value"][told]
    return size[event[len(told) :]]


def pivots(columns: Columns, rows: np.ndarray, follows: np.ndarray, size: int) -> tuple[np.ndarray, list[str]]:
    """The pivots after each innovative packet: (codes of words, the words, "0 3 4"); no words if there are too many."""
    if len(rows) * size > MOST_CELLS:
        return np.full(len(rows), -1), []
    order = order_of(groups(*(columns[name][rows] for name in ("node", "origin", "sequence"))))
    has = np.zeros((len(rows) + 1, size), np.int32)
    has[np.arange(1, len(rows) + 1), _columns_of_pivots(columns, rows)[order]] = 1
    has = np.cumsum(has, axis=0, dtype=np.int32)
    begin = np.maximum.accumulate(np.where(follows[order], 0, np.arange(len(rows))))
    packed = np.packbits(has[1:] > has[begin], axis=1)
    sets, code = np.unique(packed.view(f"V{packed.shape[1]}").reshape(-1), return_inverse=True)
    if len(sets) > MOST_WORDS:
        return np.full(len(rows), -1), []
    bits = np.unpackbits(sets.view(np.uint8).reshape(len(sets), -1), axis=1)
    text = np.empty(len(rows), np.int64)
    text[order] = code
    return text, [" ".join(map(str, np.flatnonzero(one).tolist())) for one in bits]


def _columns_of_pivots(columns: Columns, rows: np.ndarray) -> np.ndarray:
    code, words = columns.coded("detail", rows)
    return np.array([int(word) for word in words], np.int64)[code]


def _next_event_us(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """When the origin of each row's event made the next one, for ever if it made none."""
    made = columns.where(event="originated")
    both = np.concatenate([made, rows])
    origin = columns["origin"][both]
    event = groups(origin, columns["sequence"][both])
    order = order_of(event[: len(made)])
    after = np.searchsorted(event[order], event[len(made) :], "right")
    following = np.append(order, -1)[after]
    is_same = (following >= 0) & (origin[following] == origin[len(made) :])
    return np.where(is_same, columns["time_us"][both[following]], FOREVER_US)

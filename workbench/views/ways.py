"""Messages that can be followed, in protocols that bring no ways of their own: who got a publication from whom.

    followed(recorded, sent)    -> (Ways, [Layer])

Theory of operation
    A publication is told by its origin and number. It went from ``peer`` to ``node`` where a node came to hold it from
    a neighbor, and where a frame of it to one node was received. A frame of it is any frame with the name of a message
    that begins, is held or is delivered somewhere in the run; an interest of that number is not. It ended where a node
    dropped it that did not hold it before.
"""

from __future__ import annotations

import numpy as np

from workbench.views import palette
from workbench.views.frames import Sent
from workbench.views.layers import NO_WAYS, Layer, Look, Recorded, Table, Way, Ways, table
from workbench.views.player.columns import Columns
from workbench.views.spans import first_of_each, groups, numbered

MOST_WAYS = 1_000
MOST_ROWS = 60_000

HOPPED, DELIVERED, DROPPED = 0, 1, 2
LOOKS = (
    Look("its way", palette.DATA, 0.22, 1.6, lane=0.25),
    Look("delivered", palette.DELIVERED, 2.0, 13, 2.2, mark="ring"),
    Look("dropped", palette.LOST, 0.9, 7, 1.8, mark="cross"),
)


def followed(recorded: Recorded, sent: Sent) -> tuple[Ways, list[Layer]]:
    """The publications of a run, and the layer of their ways."""
    columns = recorded.columns
    made = columns.where(event="originated")
    made = made[first_of_each(groups(columns["origin"][made], columns["sequence"][made]))]
    if not len(made):
        return NO_WAYS, []
    carriers = _carriers(columns)
    rows, look, way = _steps(columns, made, carriers, sent)
    most = _most(way, len(made))
    kept = way < most
    notes = (f"Of {len(made):,} publications the first {most:,} can be followed.",) if most < len(made) else ()
    ways = Ways(_ways(columns, made[:most], carriers), is_newest=False, notes=notes)
    drawn, words = _drawn(columns, rows[kept], look[kept], way[kept], recorded.duration_us)
    return ways, [Layer("way", drawn, LOOKS, "arrow", words=words, of_way=True)]


def _carriers(columns: Columns) -> np.ndarray:
    """Whether each name of a message is that of one that carries publications; bool, shape (names,)."""
    rows = columns.where(event=("originated", "held", "delivered"))
    return np.bincount(columns.codes["message"][rows], minlength=len(columns.words["message"])) > 0


def _ways(columns: Columns, made: np.ndarray, carriers: np.ndarray) -> tuple[Way, ...]:
    names = [columns.words["message"][code] for code in np.flatnonzero(carriers).tolist()]
    told = [columns[name][made].tolist() for name in ("origin", "sequence", "time_us")]
    return tuple(
        Way(f"publication {sequence} of node {origin}", time_us, tuple((origin, sequence, name) for name in names))
        for origin, sequence, time_us in zip(*told, strict=True)
    )


def _most(way: np.ndarray, ways: int) -> int:
    """How many publications, from the first on, have few enough rows; at least one."""
    rows = np.cumsum(np.bincount(way, minlength=ways))
    return int(np.clip(np.searchsorted(rows, MOST_ROWS, "right"), 1, min(ways, MOST_WAYS)))


def _steps(
    columns: Columns, made: np.ndarray, carriers: np.ndarray, sent: Sent
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What happened on the ways of publications: (rows of the trace, looks, which publication each is about)."""
    held = columns.where(event="held")
    received = columns.where(event="received")
    received = received[carriers[columns.codes["message"][received]]]
    of = np.searchsorted(sent.rows, received) - 1
    received = received[(of >= 0) & (columns["peer"][sent.rows[np.maximum(of, 0)]] >= 0)]
    events = {event: columns.where(event=event) for event in ("delivered", "dropped")}
    rows = np.concatenate([made, held, received, *events.values()])
    is_about = carriers[columns.codes["message"][rows]]
    way = np.where(is_about, _numbers(columns, made, rows), -1)
    node, time_us = columns["node"][rows], columns["time_us"][rows]
    origins, holders, hops = len(made), len(made) + len(held), len(made) + len(held) + len(received)
    drops = hops + len(events["delivered"])
    # A node holds what it receives for the first time right away: that hop counts once.
    hop = np.flatnonzero((way >= 0) & (np.arange(len(rows)) < hops) & (columns["peer"][rows] >= 0))
    hop = hop[hop >= origins]
    hop = hop[first_of_each(groups(way[hop], node[hop], columns["peer"][rows][hop], time_us[hop]))]
    # Whoever held it before drops what it has already.
    at = groups(way, node)
    first = np.arange(holders)[first_of_each(at[:holders])]
    order = np.argsort(at[first])
    place = np.minimum(np.searchsorted(at[first][order], at[drops:]), len(first) - 1)
    since = first[order][place]
    is_late = (at[since] == at[drops:]) & (time_us[since] < time_us[drops:])
    end = drops + np.flatnonzero(~is_late & (way[drops:] >= 0))
    end = end[first_of_each(at[end])]
    got = np.flatnonzero(way[hops:drops] >= 0) + hops
    chosen = np.concatenate([hop, got, end])
    look = np.repeat([HOPPED, DELIVERED, DROPPED], [len(hop), len(got), len(end)])
    return rows[chosen], look, way[chosen]


def _numbers(columns: Columns, made: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which publication (a row of ``made``) each row of the trace is about; -1 none."""
    both = np.concatenate([made, rows])
    key, keys = numbered(groups(columns["origin"][both], columns["sequence"][both]))
    number = np.full(keys, -1)
    number[key[: len(made)]] = np.arange(len(made))
    return number[key[len(made) :]]


def _drawn(
    columns: Columns, rows: np.ndarray, look: np.ndarray, way: np.ndarray, duration_us: int
) -> tuple[Table, list[str]]:
    """The layer's table and words: all of it stays until the end of the run."""
    node, peer = columns["node"][rows], columns["peer"][rows]
    is_hop, is_end = look == HOPPED, look == DROPPED
    text, words = columns.coded("detail", rows[is_end])
    told = np.full(len(rows), -1)
    told[is_end] = text
    start = np.minimum(columns["time_us"][rows], duration_us - 1)
    made = {name: columns[name][rows] for name in ("origin", "sequence")}
    made |= {"node": np.where(is_hop, peer, node), "peer": np.where(is_hop, node, peer), "look": look, "way": way}
    return table(**made, text=told, from_us=start, until_us=np.full(len(rows), duration_us)), words

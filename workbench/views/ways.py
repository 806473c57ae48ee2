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

from workbench.columns import find_last, first_rows, row_keys, unique_inverse
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.frames import Sent
from workbench.views.layers import NO_WAYS, Layer, Look, Recorded, Table, Way, Ways, table
from workbench.views.spans import FOREVER_US

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
    made = made[first_rows(row_keys(columns["origin"][made], columns["sequence"][made]))]
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
    return tuple(
        Way(f"publication {sequence} of node {origin}", time_us, tuple((origin, sequence, name) for name in names))
        for origin, sequence, time_us in columns.tuples(made, "origin", "sequence", "time_us")
    )


def _most(way: np.ndarray, ways: int) -> int:
    """How many publications, from the first on, have few enough rows; at least one."""
    rows = np.cumsum(np.bincount(way, minlength=ways))
    return int(np.clip(np.searchsorted(rows, MOST_ROWS, "right"), 1, min(ways, MOST_WAYS)))


def _steps(
    columns: Columns, made: np.ndarray, carriers: np.ndarray, sent: Sent
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What happened on the ways of publications: (rows of the trace, looks, which publication each is about)."""
    steps = (_hops(columns, carriers, sent), columns.where(event="delivered"), _ends(columns, made))
    rows = np.concatenate(steps)
    look = np.repeat([HOPPED, DELIVERED, DROPPED], [len(some) for some in steps])
    way = _numbers(columns, made, rows)
    known = (way >= 0) & carriers[columns.codes["message"][rows]]
    return rows[known], look[known], way[known]


def _hops(columns: Columns, carriers: np.ndarray, sent: Sent) -> np.ndarray:
    """Rows at which a publication got from ``peer`` to ``node``."""
    held = columns.where(event="held")
    received = columns.where(event="received")
    received = received[carriers[columns.codes["message"][received]]]
    is_unicast = np.append(columns["peer"][sent.rows] >= 0, False)  # the last one is for rows before all frames
    rows = np.concatenate([held[columns["peer"][held] >= 0], received[is_unicast[sent.of[received]]]])
    # A node holds what it receives for the first time right away: that hop counts once.
    told = [columns[name][rows] for name in ("node", "peer", "origin", "sequence", "time_us")]
    return rows[first_rows(row_keys(*told))]


def _ends(columns: Columns, made: np.ndarray) -> np.ndarray:
    """Rows at which a node dropped a publication that it did not hold before, one for each node and publication."""
    had, drops = np.concatenate([made, columns.where(event="held")]), columns.where(event="dropped")
    both = np.concatenate([had, drops])
    keys, key = unique_inverse(row_keys(*(columns[name][both] for name in ("origin", "sequence", "node"))))
    since_us = np.full(len(keys), FOREVER_US)
    np.minimum.at(since_us, key[: len(had)], columns["time_us"][had])
    dropped = key[len(had) :]
    fresh = np.flatnonzero(since_us[dropped] >= columns["time_us"][drops])
    return drops[fresh[first_rows(dropped[fresh])]]


def _numbers(columns: Columns, made: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which publication (a row of ``made``) each row of the trace is about; -1 none."""
    return find_last(*((columns["origin"][some], columns["sequence"][some]) for some in (rows, made)))


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

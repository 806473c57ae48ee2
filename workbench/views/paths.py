"""Paths of publications in protocols without path layers of their own: which node got a publication from which.

    followed(recorded, sent)    -> (MessagePaths, [Layer])

Theory of operation
    A publication is identified by its origin and sequence number. It makes a hop from ``peer`` to ``node`` when the
    node gets hold of it from that neighbor, or receives it in a unicast frame. A kind of message carries publications
    if messages of that name are originated, held or delivered anywhere in the run; so an interest that happens to have
    the same number is not part of a path. A path ends at a node that drops the publication without having held it
    before.
"""

from __future__ import annotations

import numpy as np

from workbench.columns import find_last, first_rows, row_keys, unique_inverse
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.frames import Sent
from workbench.views.layers import NO_PATHS, Layer, Look, MessagePath, MessagePaths, Recorded, Table, table
from workbench.views.spans import FOREVER_US

MOST_PATHS = 1_000
MOST_ROWS = 60_000

HOPPED, DELIVERED, DROPPED = 0, 1, 2
LOOKS = (
    Look("message path", palette.DATA, 0.22, 1.6, lane=0.25),
    Look("delivered", palette.DELIVERED, 2.0, 13, 2.2, mark="ring"),
    Look("dropped", palette.LOST, 0.9, 7, 1.8, mark="cross"),
)


def followed(recorded: Recorded, sent: Sent) -> tuple[MessagePaths, list[Layer]]:
    """Return (the publications whose paths can be drawn, a list with the layer of these paths).

    ``sent``: the frames of the trace. Without publications, the list is empty.
    """
    columns = recorded.columns
    originated = columns.where(event="originated")
    originated = originated[first_rows(row_keys(columns["origin"][originated], columns["sequence"][originated]))]
    if not len(originated):
        return NO_PATHS, []
    carriers = _find_carriers(columns)
    rows, look, path = _collect_steps(columns, originated, carriers, sent)
    drawn_count = _count_drawn(path, len(originated))
    shown = path < drawn_count
    notes = (
        (f"Of {len(originated):,} publications the first {drawn_count:,} can be followed.",)
        if drawn_count < len(originated)
        else ()
    )
    paths = MessagePaths(_message_paths(columns, originated[:drawn_count], carriers), is_newest=False, notes=notes)
    path_table, words = _path_table(columns, rows[shown], look[shown], path[shown], recorded.duration_us)
    return paths, [Layer("message path", path_table, LOOKS, "arrow", words=words, of_path=True)]


def _find_carriers(columns: Columns) -> np.ndarray:
    """Return for each name of messages whether they carry publications; bool, shape (message names,)."""
    rows = columns.where(event=("originated", "held", "delivered"))
    return np.bincount(columns.codes["message"][rows], minlength=len(columns.words["message"])) > 0


def _message_paths(columns: Columns, originated: np.ndarray, carriers: np.ndarray) -> tuple[MessagePath, ...]:
    names = [columns.words["message"][code] for code in np.flatnonzero(carriers).tolist()]
    return tuple(
        MessagePath(
            f"publication {sequence} of node {origin}", time_us, tuple((origin, sequence, name) for name in names)
        )
        for origin, sequence, time_us in columns.tuples(originated, "origin", "sequence", "time_us")
    )


def _count_drawn(path: np.ndarray, paths: int) -> int:
    """Return the number of publications, from the first on, whose paths are drawn: at least 1, at most `MOST_PATHS`.

    Their paths have at most `MOST_ROWS` rows in total. ``path``: index of each row's publication; ``paths``: number of
    publications.
    """
    rows = np.cumsum(np.bincount(path, minlength=paths))
    return int(np.clip(np.searchsorted(rows, MOST_ROWS, "right"), 1, min(paths, MOST_PATHS)))


def _collect_steps(
    columns: Columns, originated: np.ndarray, carriers: np.ndarray, sent: Sent
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hops, deliveries and drops of publications, as three arrays of equal length.

    The arrays are rows of the trace, the index of each row's look in `LOOKS`, and the index of its publication in
    ``originated``, the rows at which the publications were made.
    """
    steps = (_find_hops(columns, carriers, sent), columns.where(event="delivered"), _find_drops(columns, originated))
    rows = np.concatenate(steps)
    look = np.repeat([HOPPED, DELIVERED, DROPPED], [len(step_rows) for step_rows in steps])
    path = _publication_of(columns, originated, rows)
    is_followed = (path >= 0) & carriers[columns.codes["message"][rows]]
    return rows[is_followed], look[is_followed], path[is_followed]


def _find_hops(columns: Columns, carriers: np.ndarray, sent: Sent) -> np.ndarray:
    """Return the rows of the trace at which a publication went from ``peer`` to ``node``.

    ``carriers``: whether messages of each name carry publications (`_find_carriers`).
    """
    held = columns.where(event="held")
    received = columns.where(event="received")
    received = received[carriers[columns.codes["message"][received]]]
    is_unicast = np.append(columns["peer"][sent.rows] >= 0, False)  # the last entry is for rows before all frames
    rows = np.concatenate([held[columns["peer"][held] >= 0], received[is_unicast[sent.of[received]]]])
    # A first reception also makes the node hold the publication; the two rows are one hop.
    key_columns = [columns[name][rows] for name in ("node", "peer", "origin", "sequence", "time_us")]
    return rows[first_rows(row_keys(*key_columns))]


def _find_drops(columns: Columns, originated: np.ndarray) -> np.ndarray:
    """Return the rows at which a node dropped a publication that it had not held before.

    ``originated``: the rows at which publications were made. Of several such drops of a publication by a node, only the
    first is returned.
    """
    holds, drops = np.concatenate([originated, columns.where(event="held")]), columns.where(event="dropped")
    both = np.concatenate([holds, drops])
    keys, key = unique_inverse(row_keys(*(columns[name][both] for name in ("origin", "sequence", "node"))))
    since_us = np.full(len(keys), FOREVER_US)
    np.minimum.at(since_us, key[: len(holds)], columns["time_us"][holds])
    dropped = key[len(holds) :]
    first_drops = np.flatnonzero(since_us[dropped] >= columns["time_us"][drops])
    return drops[first_drops[first_rows(dropped[first_drops])]]


def _publication_of(columns: Columns, originated: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the index of the publication for each row of the trace in ``rows``, or -1 for a row without one.

    The index refers to ``originated``, the rows at which the publications were made.
    """
    return find_last(*((columns["origin"][selected], columns["sequence"][selected]) for selected in (rows, originated)))


def _path_table(
    columns: Columns, rows: np.ndarray, look: np.ndarray, path: np.ndarray, duration_us: int
) -> tuple[Table, list[str]]:
    """Return (the table of the paths' layer, its texts). Every row lasts until the end of the run.

    ``look``, ``path``: for each of ``rows`` of the trace, the index of its look and of its publication.
    """
    node, peer = columns["node"][rows], columns["peer"][rows]
    is_hop, is_end = look == HOPPED, look == DROPPED
    text, words = columns.coded("detail", rows[is_end])
    text_codes = np.full(len(rows), -1)
    text_codes[is_end] = text
    start = np.minimum(columns["time_us"][rows], duration_us - 1)
    result = {name: columns[name][rows] for name in ("origin", "sequence")}
    result |= {"node": np.where(is_hop, peer, node), "peer": np.where(is_hop, node, peer), "look": look, "path": path}
    return table(**result, text=text_codes, from_us=start, until_us=np.full(len(rows), duration_us)), words

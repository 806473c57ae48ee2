"""The paths of publications through the network, computed from the trace.

They are drawn for protocols whose own ``layers`` do not contain message paths.

    followed(recorded, sent)    returns the publications whose paths can be drawn, and the layer of their paths

Theory of operation
    A publication is identified by its origin and sequence number. A hop of a publication from ``peer`` to ``node`` is a
    row "held" of the trace, which states that ``node`` holds the publication from ``peer``, or a row "received" of a
    unicast frame. Messages of other kinds, such as interests, may have the same origin and number. They are not part of
    a path: a kind of message carries publications only if the trace has rows "originated", "held" or "delivered" of
    that kind. A path ends at a node that drops the publication without having held it before.
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

    The list is empty if the run has no publications. ``recorded``: the run and its trace. ``sent``: the frames of the
    trace.
    """
    columns = recorded.columns
    originated_rows = columns.where(event="originated")
    originated_rows = originated_rows[
        first_rows(row_keys(columns["origin"][originated_rows], columns["sequence"][originated_rows]))
    ]
    if not len(originated_rows):
        return NO_PATHS, []
    carriers = _find_carriers(columns)
    step_rows, look_indices, path_indices = _collect_path_rows(columns, originated_rows, carriers, sent)
    drawn_count = _count_drawn(path_indices, len(originated_rows))
    is_drawn = path_indices < drawn_count
    notes = (
        (f"Of {len(originated_rows):,} publications the first {drawn_count:,} can be followed.",)
        if drawn_count < len(originated_rows)
        else ()
    )
    paths = MessagePaths(
        _make_message_paths(columns, originated_rows[:drawn_count], carriers), is_newest=False, notes=notes
    )
    path_table, detail_texts = _path_table(
        columns, step_rows[is_drawn], look_indices[is_drawn], path_indices[is_drawn], recorded.duration_us
    )
    return paths, [Layer("message path", path_table, LOOKS, "arrow", words=detail_texts, of_path=True)]


def _find_carriers(columns: Columns) -> np.ndarray:
    """Return for each message name of the trace whether messages of this name carry publications; shape (names,)."""
    carrier_rows = columns.where(event=("originated", "held", "delivered"))
    return np.bincount(columns.codes["message"][carrier_rows], minlength=len(columns.words["message"])) > 0


def _make_message_paths(columns: Columns, originated: np.ndarray, carriers: np.ndarray) -> tuple[MessagePath, ...]:
    names = [columns.words["message"][message_code] for message_code in np.flatnonzero(carriers).tolist()]
    return tuple(
        MessagePath(
            f"publication {sequence} of node {origin}", time_us, tuple((origin, sequence, name) for name in names)
        )
        for origin, sequence, time_us in columns.tuples(originated, "origin", "sequence", "time_us")
    )


def _count_drawn(path: np.ndarray, paths: int) -> int:
    """Return n so that the paths of the first n publications are drawn and those of later ones are omitted.

    n is the largest number up to `MOST_PATHS` for which these paths have at most `MOST_ROWS` rows in total, but at
    least 1.

    ``path``: for each row of the layer of paths, the index of its publication. ``paths``: number of publications.
    """
    row_totals = np.cumsum(np.bincount(path, minlength=paths))
    return int(np.clip(np.searchsorted(row_totals, MOST_ROWS, "right"), 1, min(paths, MOST_PATHS)))


def _collect_path_rows(
    columns: Columns, originated: np.ndarray, carriers: np.ndarray, sent: Sent
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return three arrays with an entry for each hop, delivery and drop of a publication.

    The arrays contain: the row of the trace; the index in `LOOKS` of the style in which this row is drawn; the index of
    its publication in ``originated``.

    originated: rows of the trace in which publications were made, one for each publication.
    carriers: for each message name of the trace, whether messages of this name carry publications.
    sent: the frames sent in the run.
    """
    rows_of_kind = (
        _find_hops(columns, carriers, sent),
        columns.where(event="delivered"),
        _find_drops(columns, originated),
    )
    rows_of_steps = np.concatenate(rows_of_kind)
    look = np.repeat([HOPPED, DELIVERED, DROPPED], [len(step_rows) for step_rows in rows_of_kind])
    publication_indices = _find_publications(columns, originated, rows_of_steps)
    is_followed = (publication_indices >= 0) & carriers[columns.codes["message"][rows_of_steps]]
    return rows_of_steps[is_followed], look[is_followed], publication_indices[is_followed]


def _find_hops(columns: Columns, carriers: np.ndarray, sent: Sent) -> np.ndarray:
    """Return the indices of the trace rows in which a node receives a publication from a neighbor.

    The column ``peer`` of the trace is that neighbor. ``carriers``: for each message name of the trace, whether its
    messages carry publications. ``sent``: the frames sent in the run.
    """
    held_rows = columns.where(event="held")
    received_rows = columns.where(event="received")
    received_rows = received_rows[carriers[columns.codes["message"][received_rows]]]
    is_unicast = np.append(columns["peer"][sent.rows] >= 0, False)  # the last entry is for rows before all frames
    hop_rows = np.concatenate(
        [held_rows[columns["peer"][held_rows] >= 0], received_rows[is_unicast[sent.of[received_rows]]]]
    )
    # A first reception also makes the node hold the publication; the two rows are one hop.
    key_columns = [columns[name][hop_rows] for name in ("node", "peer", "origin", "sequence", "time_us")]
    return hop_rows[first_rows(row_keys(*key_columns))]


def _find_drops(columns: Columns, originated: np.ndarray) -> np.ndarray:
    """Return the rows at which a node dropped a publication that it had not held before.

    ``originated``: the rows at which publications were made. Of several such drops of a publication by a node, only the
    first is returned.
    """
    holds, drops = np.concatenate([originated, columns.where(event="held")]), columns.where(event="dropped")
    hold_and_drop_rows = np.concatenate([holds, drops])
    unique_keys, key_indices = unique_inverse(
        row_keys(*(columns[name][hold_and_drop_rows] for name in ("origin", "sequence", "node")))
    )
    since_us = np.full(len(unique_keys), FOREVER_US)
    np.minimum.at(since_us, key_indices[: len(holds)], columns["time_us"][holds])
    drop_keys = key_indices[len(holds) :]
    first_drops = np.flatnonzero(since_us[drop_keys] >= columns["time_us"][drops])
    return drops[first_drops[first_rows(drop_keys[first_drops])]]


def _find_publications(columns: Columns, originated: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return for each row of the trace in ``rows`` the index of its publication, or -1 without a publication.

    ``originated``: the rows at which publications were made. The index of a publication is its position in this array.
    """
    return find_last(
        *((columns["origin"][chosen_rows], columns["sequence"][chosen_rows]) for chosen_rows in (rows, originated))
    )


def _path_table(
    columns: Columns, rows: np.ndarray, look: np.ndarray, path: np.ndarray, duration_us: int
) -> tuple[Table, list[str]]:
    """Return (table of the layer of message paths, texts of the table). Every row lasts until the end of the run.

    rows: the rows of the trace for which the table has a row.
    look: for each of these rows the index of its style in `LOOKS`.
    path: for each of these rows the index of its publication.
    """
    node, peer = columns["node"][rows], columns["peer"][rows]
    is_hop, is_end = look == HOPPED, look == DROPPED
    detail_codes, detail_texts = columns.coded("detail", rows[is_end])
    text_codes = np.full(len(rows), -1)
    text_codes[is_end] = detail_codes
    start_us = np.minimum(columns["time_us"][rows], duration_us - 1)
    table_columns = {name: columns[name][rows] for name in ("origin", "sequence")}
    table_columns |= {
        "node": np.where(is_hop, peer, node),
        "peer": np.where(is_hop, node, peer),
        "look": look,
        "path": path,
    }
    return table(
        **table_columns, text=text_codes, from_us=start_us, until_us=np.full(len(rows), duration_us)
    ), detail_texts

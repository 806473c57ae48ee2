"""Read ranks from a trace: the rank of each node's decoding matrix of an event, and the pivots of its rows.

    lasting(columns)                innovative packets: trace rows, until when each rank lasts, generation sizes
    pivots(columns, rows, ...)      the pivot columns of the matrix after each innovative packet
    ranks(columns)                  all ranks, with their intervals and pivots, as a list
    progress(trace, event)          the spread of one event: ranks at a time, coverage at ages

Theory of operation
    A ``generation_begun`` row means that a node's matrix of an event is empty; it contains the generation size. An
    ``innovative`` row means that the matrix has rank ``value`` and its new row has the pivot in column ``detail``. The
    rank lasts until the next row about that node and event. Decoding ends with ``held``, when the node has the event,
    or with ``dropped``, when the event expired ("expired") or its packets did not belong together ("corrupt").

Limits
    A trace contains pivots, not coefficients.

Reference
    Rows and pivots are defined as in `workbench.coding.rlnc.Decoder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from workbench.columns import argsort, last_marked, row_keys, unique_index
from workbench.sim.rows import Columns
from workbench.views.event import Event, chosen_event, of_event
from workbench.views.spans import FOREVER_US, until_next

MOST_CELLS = 6_000_000  # innovative packets times columns of a matrix
MOST_WORDS = 20_000  # different texts of pivots


class Lasting(NamedTuple):
    """Innovative packets, as columns of equal length; each packet gave its node's matrix for the event a new rank.

    rows: index of the packet's row in the trace; until: when the matrix stopped having the new rank (µs); follows:
    whether the matrix had rows before the packet; size: the event's generation size.
    """

    rows: np.ndarray
    until: np.ndarray
    follows: np.ndarray
    size: np.ndarray


def lasting(columns: Columns) -> Lasting:
    """Return the innovative packets in a trace: those that raised the rank of a decoding matrix.

    The result also contains the time at which each rank ended.
    """
    end_rows = columns.where(event="dropped", detail=("expired", "corrupt"))
    matrix_rows = columns.where(event=("generation_begun", "innovative", "held"))
    # A stable sort of ascending pieces merges them.
    rows = np.sort(np.concatenate([matrix_rows, end_rows]), kind="stable")
    key = row_keys(*(columns[name][rows] for name in ("node", "origin", "sequence")))
    order = argsort(key)
    until_us = until_next(key, columns["time_us"][rows], FOREVER_US, order)
    is_innovative = columns.says("event", rows, "innovative")
    follows = np.zeros(len(rows), bool)
    follows[order[1:]] = (key[order[1:]] == key[order[:-1]]) & is_innovative[order[:-1]]
    # Each matrix begins with a row that contains its size.
    is_begin = columns.says("event", rows, "generation_begun")[order]
    begin_rows = np.maximum(last_marked(is_begin), 0)
    generation_sizes = np.ones(len(rows), np.int64)
    generation_sizes[order] = columns["value"][rows[order[begin_rows]]] if len(rows) else 1
    return Lasting(*(column[is_innovative] for column in (rows, until_us, follows, generation_sizes)))


def pivots(
    columns: Columns,
    rows: np.ndarray,
    follows: np.ndarray,
    most_cells: int = MOST_CELLS,
    most_words: int = MOST_WORDS,
) -> tuple[np.ndarray, list[str]]:
    """Return (codes, texts): ``texts[codes[i]]`` lists the pivot columns after innovative packet i, such as "0 3 4".

    The pivot columns are those of the node's decoding matrix. ``rows`` and ``follows``: see `Lasting`. ``most_cells``:
    the largest number of packets times matrix columns; ``most_words``: the largest number of texts. Beyond either
    limit, texts is [] and all codes are -1.
    """
    pivot = columns_of_pivots(columns, rows)
    column_count = int(pivot.max(initial=0)) + 1
    if len(rows) * column_count > most_cells:
        return np.full(len(rows), -1), []
    order = argsort(row_keys(*(columns[name][rows] for name in ("node", "origin", "sequence"))))
    has_pivot = np.zeros((len(rows) + 1, column_count), np.int32)
    has_pivot[np.arange(1, len(rows) + 1), pivot[order]] = 1
    has_pivot = np.cumsum(has_pivot, axis=0, dtype=np.int32)
    begin_positions = np.maximum(last_marked(~follows[order]), 0)
    packed_pivots = np.packbits(has_pivot[1:] > has_pivot[begin_positions], axis=1)
    pivot_sets, set_codes = np.unique(packed_pivots.view(f"V{packed_pivots.shape[1]}").reshape(-1), return_inverse=True)
    if len(pivot_sets) > most_words:
        return np.full(len(rows), -1), []
    pivot_bits = np.unpackbits(pivot_sets.view(np.uint8).reshape(len(pivot_sets), -1), axis=1)
    text_codes = np.empty(len(rows), np.int64)
    text_codes[order] = set_codes
    return text_codes, [" ".join(map(str, np.flatnonzero(matrix).tolist())) for matrix in pivot_bits]


def columns_of_pivots(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """Return an array with the pivot column of the matrix row that each innovative packet added.

    ``rows``: the numbers of the trace rows "innovative".
    """
    text_codes, column_texts = columns.coded("detail", rows)
    return np.array([int(column_text) for column_text in column_texts], np.int64)[text_codes]


# As a list


class Rank(NamedTuple):
    """A time interval [from_us, until_us) in which a node's decoding matrix for an event had the same rank.

    The node did not hold the event yet. origin, sequence: the event's id; value: the rank; text: the pivot columns of
    the matrix, ascending, such as "0 3 4"; peer: the neighbor whose packet raised the rank to ``value``.
    """

    node: int
    peer: int
    origin: int
    sequence: int
    value: int
    text: str
    from_us: int
    until_us: int


def ranks(columns: Columns) -> list[Rank]:
    """Return a list of the ranks that nodes' decoding matrices had for events, sorted by the time when they began.

    Ranks that lasted 0 µs are omitted.
    """
    rows, until_us, follows, _ = lasting(columns)
    if not len(rows):
        return []
    text_codes, pivot_texts = pivots(columns, rows, follows, most_cells=FOREVER_US, most_words=len(rows))
    events = columns.tuples(rows, "node", "peer", "origin", "sequence", "value")
    spans = zip(columns["time_us"][rows].tolist(), until_us.tolist(), strict=True)
    all_ranks = zip(events, text_codes.tolist(), spans, strict=True)
    return [
        Rank(*event, text=pivot_texts[code], from_us=start_us, until_us=end_us)
        for event, code, (start_us, end_us) in all_ranks
        if start_us < end_us
    ]


@dataclass(frozen=True)
class Progress:
    """The spread of one event over the nodes of a run.

    event: (origin, sequence); generation_size: the number m of the event's chunks, or 0 if no node received a packet;
    made_us: time of publication (µs); held_us: {node: time at which the node first held the whole event (µs)}; ranks:
    the ranks of all nodes' decoding matrices, each with its node and its time interval.
    """

    event: Event
    generation_size: int
    made_us: int
    held_us: dict[int, int]
    ranks: tuple[Rank, ...]

    def at(self, time_us: int) -> dict[int, Rank]:
        """Return {node: its `Rank` at ``time_us``} for nodes with innovative packets, but without the event."""
        return {rank.node: rank for rank in self.ranks if rank.from_us <= time_us < rank.until_us}

    def holders(self, time_us: int) -> set[int]:
        """Return the nodes that held this event at ``time_us``.

        A node holds an event that it has published, received as a whole, or decoded.
        """
        return {node for node, since_us in self.held_us.items() if since_us <= time_us}

    def coverage(self, nodes: int, ages_s: Sequence[float]) -> np.ndarray:
        """Return an array with the share (0 to 1) of a run's nodes that hold the event at each of the ages ``ages_s``.

        ``nodes``: the number of nodes in the run; ``ages_s``: times since the event was published, in seconds.
        """
        times_us = self.made_us + np.asarray(ages_s, dtype=float) * 1e6
        sorted_times_us = np.sort(np.array(list(self.held_us.values()), dtype=np.int64))
        return np.searchsorted(sorted_times_us, times_us, "right") / nodes


def progress(trace: pa.Table, event: Event | None = None) -> Progress:
    """Return the spread of ``event``, (origin, sequence), or of the first event of the trace if ``event`` is None.

    Raises ParameterError if the trace has no such event.
    """
    all_columns = Columns(trace)
    event = chosen_event(all_columns, event)
    columns = of_event(all_columns, event)
    published_rows, held_rows = columns.where(event="originated"), columns.where(event="held")
    nodes, first_indices = unique_index(columns["node"][held_rows])
    held_us = dict(zip(nodes.tolist(), columns["time_us"][held_rows[first_indices]].tolist(), strict=True))
    generation_size = int(lasting(columns).size.max(initial=0))
    return Progress(event, generation_size, int(columns["time_us"][published_rows[0]]), held_us, tuple(ranks(columns)))

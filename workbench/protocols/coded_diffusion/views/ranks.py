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
    """Innovative packets and the ranks after them, as columns of equal length.

    rows: the packets' rows in the trace; until: time at which the rank after the packet ended (µs); follows: whether
    the matrix had rows before the packet; size: the event's generation size.
    """

    rows: np.ndarray
    until: np.ndarray
    follows: np.ndarray
    size: np.ndarray


def lasting(columns: Columns) -> Lasting:
    """Return the innovative packets of all nodes and events.

    Each packet comes with the time interval in which its node had the rank that the packet gave it.
    """
    end_rows = columns.where(event="dropped", detail=("expired", "corrupt"))
    matrix_rows = columns.where(event=("generation_begun", "innovative", "held"))
    # A stable sort of ascending pieces merges them.
    rows = np.sort(np.concatenate([matrix_rows, end_rows]), kind="stable")
    key = row_keys(*(columns[name][rows] for name in ("node", "origin", "sequence")))
    order = argsort(key)
    until = until_next(key, columns["time_us"][rows], FOREVER_US, order)
    is_innovative = columns.says("event", rows, "innovative")
    follows = np.zeros(len(rows), bool)
    follows[order[1:]] = (key[order[1:]] == key[order[:-1]]) & is_innovative[order[:-1]]
    # Each matrix begins with a row that contains its size.
    begins = columns.says("event", rows, "generation_begun")[order]
    begin_rows = np.maximum(last_marked(begins), 0)
    size = np.ones(len(rows), np.int64)
    size[order] = columns["value"][rows[order[begin_rows]]] if len(rows) else 1
    return Lasting(*(column[is_innovative] for column in (rows, until, follows, size)))


def pivots(
    columns: Columns,
    rows: np.ndarray,
    follows: np.ndarray,
    most_cells: int = MOST_CELLS,
    most_words: int = MOST_WORDS,
) -> tuple[np.ndarray, list[str]]:
    """Return (codes, texts): ``texts[codes[i]]`` lists the pivots after innovative packet i, such as "0 3 4".

    ``rows`` and ``follows``: see `Lasting`. With more than ``most_words`` texts, or ``most_cells`` cells (packets times
    columns), texts is [] and all codes are -1.
    """
    pivot = columns_of_pivots(columns, rows)
    size = int(pivot.max(initial=0)) + 1
    if len(rows) * size > most_cells:
        return np.full(len(rows), -1), []
    order = argsort(row_keys(*(columns[name][rows] for name in ("node", "origin", "sequence"))))
    has_pivot = np.zeros((len(rows) + 1, size), np.int32)
    has_pivot[np.arange(1, len(rows) + 1), pivot[order]] = 1
    has_pivot = np.cumsum(has_pivot, axis=0, dtype=np.int32)
    begin = np.maximum(last_marked(~follows[order]), 0)
    packed = np.packbits(has_pivot[1:] > has_pivot[begin], axis=1)
    sets, code = np.unique(packed.view(f"V{packed.shape[1]}").reshape(-1), return_inverse=True)
    if len(sets) > most_words:
        return np.full(len(rows), -1), []
    bits = np.unpackbits(sets.view(np.uint8).reshape(len(sets), -1), axis=1)
    text_codes = np.empty(len(rows), np.int64)
    text_codes[order] = code
    return text_codes, [" ".join(map(str, np.flatnonzero(matrix).tolist())) for matrix in bits]


def columns_of_pivots(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """Return, for each innovative packet, the pivot column of the row that it added to the matrix."""
    code, words = columns.coded("detail", rows)
    return np.array([int(word) for word in words], np.int64)[code]


# As a list


class Rank(NamedTuple):
    """The rank during [from_us, until_us) of a node's decoding matrix of an event that the node did not hold yet.

    text: the pivot columns, ascending, such as "0 3 4"; peer: the sender of the last innovative packet; value: the
    rank; (origin, sequence): the event.
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
    """Return the ranks that nodes had for events, sorted by the time at which a rank began."""
    rows, until, follows, _ = lasting(columns)
    if not len(rows):
        return []
    text, words = pivots(columns, rows, follows, most_cells=FOREVER_US, most_words=len(rows))
    events = columns.tuples(rows, "node", "peer", "origin", "sequence", "value")
    spans = zip(columns["time_us"][rows].tolist(), until.tolist(), strict=True)
    all_ranks = zip(events, text.tolist(), spans, strict=True)
    return [
        Rank(*event, text=words[code], from_us=start, until_us=end)
        for event, code, (start, end) in all_ranks
        if start < end
    ]


@dataclass(frozen=True)
class Progress:
    """The spread of one event.

    event: (origin, sequence); generation_size: m, or 0 if no node received a packet; made_us: time at which
    the event was published; held_us: node -> time at which it first held the event; ranks: each node's rank over time.
    """

    event: Event
    generation_size: int
    made_us: int
    held_us: dict[int, int]
    ranks: tuple[Rank, ...]

    def at(self, time_us: int) -> dict[int, Rank]:
        """Return {node: its rank at ``time_us``} for nodes that have innovative packets, but not yet the event."""
        return {rank.node: rank for rank in self.ranks if rank.from_us <= time_us < rank.until_us}

    def holders(self, time_us: int) -> set[int]:
        """Return the nodes that held this event at ``time_us``.

        A node holds an event that it has published, received as a whole, or decoded.
        """
        return {node for node, since_us in self.held_us.items() if since_us <= time_us}

    def coverage(self, nodes: int, ages_s: Sequence[float]) -> np.ndarray:
        """Return the share of ``nodes``, the number of all nodes, that hold the event at each age.

        ``ages_s``: ages of the event in seconds since its publication. The result is an array of the same length.
        """
        times_us = self.made_us + np.asarray(ages_s, dtype=float) * 1e6
        ordered = np.sort(np.array(list(self.held_us.values()), dtype=np.int64))
        return np.searchsorted(ordered, times_us, "right") / nodes


def progress(trace: pa.Table, event: Event | None = None) -> Progress:
    """Return the spread of ``event``, (origin, sequence), or of the first event of the trace if ``event`` is None.

    Raises ParameterError if the trace has no such event.
    """
    all_columns = Columns(trace)
    event = chosen_event(all_columns, event)
    columns = of_event(all_columns, event)
    published, held = columns.where(event="originated"), columns.where(event="held")
    nodes, first = unique_index(columns["node"][held])
    held_us = dict(zip(nodes.tolist(), columns["time_us"][held[first]].tolist(), strict=True))
    size = int(lasting(columns).size.max(initial=0))
    return Progress(event, size, int(columns["time_us"][published[0]]), held_us, tuple(ranks(columns)))

"""Layers of the animated view of a run: nodes shaded by the rank of their decoding matrices.

    layers(recorded)    the layer of decoding, and curves of packets and of nodes that hold the newest event

Theory of operation
    A node's shade shows its rank (`ranks`) for the newest event of an origin. Ranks for older events are
    shown only in the inspector, the table of a selected node.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.columns import argsort, row_keys
from workbench.protocols.coded_diffusion.views.ranks import lasting, pivots
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Curves, Layer, Line, Look, Part, Recorded, Scale, Section, select, table
from workbench.views.nodes import holding
from workbench.views.reach import MOST_TIMES, reach_curves
from workbench.views.spans import FOREVER_US, running, within

SHADES = 33

DECODING = Look("has coded packets (stronger: more)", palette.RANK_HIGH, rank=4, mark="node")
OLDER = Look("")
RANKS = Scale(
    "rank over generation size", tuple(palette.rank_colour(shade / (SHADES - 1)) for shade in range(SHADES)), "0", "1"
)
_COLUMNS = (("source", "origin", "node"), ("event", "sequence", "number"), ("rank", "value", "number"))
_PIVOTS = (("pivots", "text", "word"), ("matrix", "text", "echelon"))
_FROM = ("last from", "peer", "node")


def layers(recorded: Recorded) -> list[Part]:
    """Return the layers and curves that the animated view of a run can draw.

    These are the layer of nodes shaded by rank, curves of the share of nodes that hold the newest event, and curves of
    received coded packets. Returns [] if the run has no innovative packets.
    """
    decoding = decoding_layers(recorded)
    if not decoding:
        return []
    reach_curves_of_run = [_with_mean_rank(curves, recorded, decoding[0]) for curves in reach_curves(recorded)]
    return [*decoding, *reach_curves_of_run, _packet_curves(recorded.columns)]


def decoding_layers(recorded: Recorded) -> list[Layer]:
    """Return a list of one layer, which shades nodes by their ranks for an origin's newest event until they hold it.

    Ranks for older events of the same origin are shown only in the inspector, the table of a selected node. Returns []
    if the run has no innovative packets.
    """
    columns = recorded.columns
    rows, until_us, follows, generation_sizes = lasting(columns)
    if not len(rows):
        return []
    ranks = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value")}
    weight, packet_indices = ranks["value"] / generation_sizes, np.arange(len(rows))
    from_us, next_event_us = columns["time_us"][rows], _next_event_us(columns, rows)
    # A rank is shaded until its origin publishes the next event; then only the inspector shows it.
    intervals = {
        name: np.concatenate([column, column])
        for name, column in {**ranks, "text": packet_indices, "weight": weight}.items()
    }
    intervals["from_us"] = np.concatenate([from_us, np.maximum(from_us, next_event_us)])
    intervals["until_us"] = np.concatenate([np.minimum(until_us, next_event_us), until_us])
    intervals["look"] = np.repeat([0, 1], len(rows))
    intervals_table = table(**within(intervals, recorded.duration_us))
    packet_numbers = intervals_table.pop("text")

    def add_pivots() -> Layer:
        text_codes, pivot_texts = pivots(columns, rows, follows)
        notes = () if pivot_texts else ("The pivots of decoding matrices are not shown, as there are too many.",)
        section = Section("Decoding", (*_COLUMNS, *(_PIVOTS if pivot_texts else ()), _FROM))
        table_with_text = {**intervals_table, "text": text_codes[packet_numbers].astype(np.int32)}
        return replace(layer, table=table_with_text, section=section, words=pivot_texts, notes=notes, add_texts=None)

    layer = Layer("decoding", intervals_table, (DECODING, OLDER), scale=RANKS, add_texts=add_pivots)
    return [layer]


def _with_mean_rank(reach: Curves, recorded: Recorded, decoding: Layer) -> Curves:
    """Return the curves ``reach`` with a further line: the mean rank of all nodes but the sinks, in percent.

    A rank is given in percent of the generation size; a node that holds the event counts as 100 %. ``reach``: the share
    of nodes that hold the newest event, over time; ``decoding``: the layer of `decoding_layers`.
    """
    sinks = np.unique(recorded.columns["node"][recorded.columns.where(event="subscribed")])
    rank_table = decoding.table
    rank_table = select(rank_table, (rank_table["look"] == 0) & ~np.isin(rank_table["node"], sinks))
    holding_table = holding(recorded.columns, recorded.duration_us)
    max_rank_sum = max(len(recorded.plan.ids) - len(sinks), 1) * len(np.unique(holding_table["origin"]))
    times = np.unique(np.concatenate([reach.lines[0].times_us, rank_table["from_us"]]))
    times = times[:: max(1, -(-len(times) // MOST_TIMES))]
    rank_sum_permille = running(rank_table, times, np.rint(1000 * rank_table["weight"])) + 1000 * running(
        holding_table, times
    )
    rank = Line("mean rank of a node", palette.CODED, times, rank_sum_permille / (10 * max_rank_sum))
    return reach._replace(y_label="%", lines=(*reach.lines, rank))


def _packet_curves(columns: Columns) -> Curves:
    """Return two curves over time: the numbers of innovative and of redundant coded packets received so far."""
    innovative_us = columns["time_us"][columns.where(event="innovative")]
    received_us = columns["time_us"][columns.where(event="received", message="coded")]
    times = np.unique(np.concatenate([[0], received_us, innovative_us]))
    times = times[:: max(1, -(-len(times) // MOST_TIMES))]
    counts = [np.searchsorted(moments, times, "right") for moments in (innovative_us, received_us)]
    lines = (
        Line("innovative packets", palette.RANK_HIGH, times, counts[0]),
        Line("redundant packets", palette.LOST, times, np.maximum(counts[1] - counts[0], 0)),
    )
    return Curves("packets", "packets", lines)


def _next_event_us(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """Return, for each trace row in ``rows``, the time in µs at which the next event of the same origin was published.

    The time is FOREVER_US if the origin of the row's event published no further event.
    """
    published_rows = columns.where(event="originated")
    all_rows = np.concatenate([published_rows, rows])
    origin = columns["origin"][all_rows]
    event = row_keys(origin, columns["sequence"][all_rows])
    order = argsort(event[: len(published_rows)])
    next_position = np.searchsorted(event[order], event[len(published_rows) :], "right")
    next_row = np.append(order, -1)[next_position]
    is_same = (next_row >= 0) & (origin[next_row] == origin[len(published_rows) :])
    return np.where(is_same, columns["time_us"][all_rows[next_row]], FOREVER_US)

"""Views of how far events have spread: nodes coloured by hops from the publisher, and the share of nodes over time.

    hop_layer(columns, duration_us)   nodes that hold the newest event of a publisher, shaded by hops
    reach_curves(recorded)            the share of nodes that hold the newest event, over time

For protocols that carry every event to all nodes, such as flooding.
"""

from __future__ import annotations

import numpy as np

from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Curves, Layer, Line, Look, Recorded, Scale, table
from workbench.views.nodes import MOST, holding, until_next_event
from workbench.views.spans import running, thinned, within

SHADES = 9
MOST_TIMES = 4000

_HOLDS = Look("", palette.HOLDS, rank=3, mark="node")
_COLOURS = tuple(palette.blend(palette.RANK_HIGH, palette.HOLDS, shade / (SHADES - 1)) for shade in range(SHADES))


def hop_layer(columns: Columns, duration_us: int) -> Layer:
    """Return the layer of nodes that hold an event, shaded by the number of hops that the event travelled to the node.

    An event is a publication that spreads in the network. The darkest shade is for one hop, the lightest for the
    largest number of hops in the run. The layer shows a node from its reception of an event until the event's
    publisher makes its next event; the publisher itself is not shown.
    """
    held_rows = columns.where(event="held")
    held_rows = held_rows[columns["value"][held_rows] > 0]
    until_us = until_next_event(columns, columns["origin"][held_rows], held_rows, duration_us)
    hops = columns["value"][held_rows]
    max_hops = int(hops.max(initial=1))
    intervals = table(
        node=columns["node"][held_rows],
        from_us=columns["time_us"][held_rows],
        until_us=until_us,
        weight=hops / max_hops,
    )
    drawn_table, notes = thinned(within(intervals, duration_us), MOST, "holders of an event")
    scale = Scale("hops from the publisher", _COLOURS, "1" if max_hops > 1 else "", f"{max_hops}")
    return Layer("wave front", drawn_table, (_HOLDS,), scale=scale, notes=notes)


def reach_curves(recorded: Recorded) -> list[Curves]:
    """Return a list with one chart: the percentage of nodes, other than sinks, that hold the newest event.

    If the run has several publishers, each has a newest event, and the chart shows the mean over these events. Return
    [] if no node holds an event.
    """
    columns, duration_us = recorded.columns, recorded.duration_us
    held_intervals = holding(columns, duration_us)
    if not len(held_intervals["from_us"]):
        return []
    sinks = np.unique(columns["node"][columns.where(event="subscribed")])
    possible_holders = max(len(recorded.plan.ids) - len(sinks), 1) * len(np.unique(held_intervals["origin"]))
    change_times_us = np.unique(np.concatenate([[0], held_intervals["from_us"], held_intervals["until_us"]]))
    change_times_us = change_times_us[change_times_us < duration_us][:: max(1, -(-len(change_times_us) // MOST_TIMES))]
    reach_percent = 100 * running(held_intervals, change_times_us) / possible_holders
    return [
        Curves(
            "reach", "nodes (%)", (Line("hold the newest event", palette.RANK_HIGH, change_times_us, reach_percent),)
        )
    ]

"""Layers of the animated view of a run: nodes shaded by a flood's hops, and a chart of the nodes that it reached."""

from workbench.views.layers import Part, Recorded
from workbench.views.reach import hop_layer, reach_curves


def layers(recorded: Recorded) -> list[Part]:
    """Return the layer of nodes shaded by hops from the publisher, and curves of the nodes that hold the newest event.

    The curves show the share of these nodes over time.
    """
    return [hop_layer(recorded.columns, recorded.duration_us), *reach_curves(recorded)]

"""The layers of a flood: its wave front by hops, and the number of nodes that it has reached."""

from workbench.views.layers import Part, Recorded
from workbench.views.reach import hop_layer, reach_curves


def layers(recorded: Recorded) -> list[Part]:
    """Return the layer of the wave front, and the curve of the nodes that hold the newest event."""
    return [hop_layer(recorded.columns, recorded.duration_us), *reach_curves(recorded)]

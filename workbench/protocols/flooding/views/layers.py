"""Layers of the animated view of a run: nodes shaded by the hops that a flood took, and the number of nodes reached."""

from workbench.views.layers import Part, Recorded
from workbench.views.reach import hop_layer, reach_curves


def layers(recorded: Recorded) -> list[Part]:
    """Return the layer of hops from the publisher, and the curve of nodes that hold the newest event."""
    return [hop_layer(recorded.columns, recorded.duration_us), *reach_curves(recorded)]

"""All that there is to see of a run: the layers of every protocol, then those of the run's own.

see(run, event=None)    -> Seen
"""

from __future__ import annotations

from typing import Any

from workbench.views import palette
from workbench.views.event import Event, of_event
from workbench.views.frames import film_of, frame_layers, sent_frames
from workbench.views.ground import lay_out
from workbench.views.layers import Curves, Layer, Look, Recorded, Seen, Ways
from workbench.views.nodes import node_layers
from workbench.views.player.columns import read
from workbench.views.protocols import layers_of, message_colours, quiet_messages
from workbench.views.ways import followed

# How a node looks while no row of a layer says otherwise.
NODE_LOOK = Look("node", palette.NODE)


def see(run: Any, event: Event | None = None) -> Seen:
    """What there is to see of a run.

    ``event``, (origin, sequence), leaves out what is about other events. Raises ScenarioError if the run kept no
    trace, DataError if what it has is none, ParameterError if it has no such event.
    """
    trace = read(run.trace)
    columns = of_event(trace, event)
    protocol, plan = run.scenario.protocol, lay_out(run.scenario.topology)
    duration_us = round(run.scenario.duration_s * 1e6)
    sent = sent_frames(columns, duration_us)
    recorded = Recorded(run, columns, plan, film_of(sent, duration_us), message_colours(protocol))
    parts = list(layers_of(protocol)(recorded))
    layers = [one for one in parts if isinstance(one, Layer)]
    ways = next((one for one in parts if isinstance(one, Ways)), None)
    way_layers: list[Layer] = []
    if ways is None:
        ways, way_layers = followed(recorded, sent)
    shown = [
        *node_layers(recorded),
        *layers,
        *way_layers,
        *frame_layers(recorded, sent, ways, quiet_messages(protocol)),
    ]
    notes = [*plan.notes, *(note for one in shown for note in one.notes), *ways.notes]
    return Seen(
        run=run,
        plan=plan,
        film=recorded.film,
        duration_us=recorded.duration_us,
        layers=tuple(shown),
        curves=tuple(one for one in parts if isinstance(one, Curves)),
        ways=ways,
        notes=tuple(dict.fromkeys(notes)),
        trace=trace,
    )

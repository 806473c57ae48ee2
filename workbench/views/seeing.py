"""All that there is to see of a run: the layers of every protocol, then those of the run's own.

see(run, event=None)    -> Seen
Sight(run, event)       the same in two steps: what a picture shows at once, and all
"""

from __future__ import annotations

from typing import Any

from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.event import Event, of_event
from workbench.views.frames import film_of, frame_layers, sent_frames
from workbench.views.layers import NO_WAYS, Curves, Layer, Look, Recorded, Seen, Ways
from workbench.views.layout import lay_out
from workbench.views.nodes import node_layers
from workbench.views.protocols import layers_of, message_colours, quiet_messages
from workbench.views.ways import followed

# How a node looks while no row of a layer says otherwise.
NODE_LOOK = Look("node", palette.NODE)


def see(run: Any, event: Event | None = None) -> Seen:
    """What there is to see of a run.

    ``event``, (origin, sequence), leaves out what is about other events. Raises ScenarioError if the run kept no
    trace, DataError if what it has is none, ParameterError if it has no such event.
    """
    return Sight(run, event).whole()


class Sight:
    """What there is to see of a run, in two steps. It raises what `see` raises.

    ``glance()`` leaves out what takes long and is not drawn: the ways of publications, which somebody has to ask for,
    and what protocols tell in words alone.
    """

    def __init__(self, run: Any, event: Event | None = None) -> None:
        self._run = run
        self._trace = Columns(run.trace)
        columns, protocol = of_event(self._trace, event), run.scenario.protocol
        duration_us = round(run.scenario.duration_s * 1e6)
        self._sent = sent_frames(columns, duration_us)
        plan, film = lay_out(run.scenario.topology), film_of(self._sent, duration_us)
        self._recorded = Recorded(run, columns, plan, film, message_colours(protocol))
        self._parts = list(layers_of(protocol)(self._recorded))
        self._nodes = node_layers(self._recorded)
        self._ways = next((one for one in self._parts if isinstance(one, Ways)), None)

    def glance(self) -> Seen:
        """What is to be seen without the ways of publications, unless the protocol brings these."""
        return self._seen(self._ways or NO_WAYS, [])

    def whole(self) -> Seen:
        """All that there is to see."""
        self._parts = [one.whole() if isinstance(one, Layer) else one for one in self._parts]
        if self._ways is not None:
            return self._seen(self._ways, [])
        return self._seen(*followed(self._recorded, self._sent))

    def _seen(self, ways: Ways, way_layers: list[Layer]) -> Seen:
        plan, quiet = self._recorded.plan, quiet_messages(self._run.scenario.protocol)
        shown = [
            *self._nodes,
            *(one for one in self._parts if isinstance(one, Layer)),
            *way_layers,
            *frame_layers(self._recorded, self._sent, ways, quiet),
        ]
        notes = [*plan.notes, *(note for one in shown for note in one.notes), *ways.notes]
        return Seen(
            run=self._run,
            plan=plan,
            film=self._recorded.film,
            duration_us=self._recorded.duration_us,
            layers=tuple(shown),
            curves=tuple(one for one in self._parts if isinstance(one, Curves)),
            ways=ways,
            notes=tuple(dict.fromkeys(notes)),
            trace=self._trace,
        )

"""Functions that return the layers of a run: tables of visible states, from which all views draw the run.

Some layers come from the run's protocol; the others exist for every run. A `RunView` contains all layers of a run.

see(run, event=None)       returns the `RunView` of a run, or of a single event of the run
LayerBuilder(run, event)   builds a preview of the `RunView` quickly, and the whole `RunView` later
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.changes import change_layers
from workbench.views.changing_layout import lay_out_scenario
from workbench.views.event import Event, of_event
from workbench.views.frames import clock_of, frame_layers, sent_frames
from workbench.views.layers import NO_PATHS, Curves, Layer, Look, MessagePaths, Recorded, RunView
from workbench.views.nodes import crashing, failing, node_layers
from workbench.views.paths import followed
from workbench.views.protocols import layers_of, message_colours, quiet_messages
from workbench.views.spans import cut

# The look of a node without a row in any layer.
NODE_LOOK = Look("node", palette.NODE)


def see(run: Any, event: Event | None = None) -> RunView:
    """Return the layers of a run in a `RunView`.

    ``event``: show only this event, given as (origin, sequence). Raises ScenarioError if the run has no trace,
    DataError for an invalid trace, ParameterError for an unknown event.
    """
    return LayerBuilder(run, event).whole()


class LayerBuilder:
    """A builder of the layers of a run (`RunView`). The constructor raises the same errors as `see`.

    ``event``: show only this event, given as (origin, sequence); None: all events. `whole` returns all layers of the
    run. `preview` is quicker: it leaves out texts that take long to compute, and message paths that the protocol does
    not define. Neither is drawn at first.
    """

    def __init__(self, run: Any, event: Event | None = None) -> None:
        self._run = run
        self._trace = Columns(run.trace)
        columns, protocol = of_event(self._trace, event), run.scenario.protocol
        duration_us = round(run.scenario.duration_s * 1e6)
        self._sent_frames = sent_frames(columns, duration_us)
        plan, clock = lay_out_scenario(run.scenario), clock_of(self._sent_frames, duration_us)
        self._recorded = Recorded(run, columns, plan, clock, message_colours(protocol))
        self._items = list(layers_of(protocol)(self._recorded))
        self._nodes = [*node_layers(self._recorded), *change_layers(self._recorded)]
        self._crashes = crashing(failing(columns, duration_us))
        self._paths = next((item for item in self._items if isinstance(item, MessagePaths)), None)

    def preview(self) -> RunView:
        """Return the layers of the run without the texts that take long to compute (`Layer.add_texts`).

        Message paths are included only if the protocol defines them.
        """
        return self._make_view(self._paths or NO_PATHS, [])

    def whole(self) -> RunView:
        """Return everything that views draw of the run: all layers, message paths and texts."""
        self._items = [item.whole() if isinstance(item, Layer) else item for item in self._items]
        if self._paths is not None:
            return self._make_view(self._paths, [])
        return self._make_view(*followed(self._recorded, self._sent_frames))

    def _cut_at_crashes(self, layer: Layer) -> Layer:
        """Return a layer of the protocol in which the intervals of a node end when the node crashes.

        A node loses its state in a crash. Layers of message paths are returned unchanged.
        """
        if layer.of_path or "node" not in layer.table or not len(self._crashes["node"]):
            return layer
        return replace(layer, table=cut(layer.table, self._crashes))

    def _make_view(self, paths: MessagePaths, path_layers: list[Layer]) -> RunView:
        plan, quiet = self._recorded.plan, quiet_messages(self._run.scenario.protocol)
        shown_layers = [
            *self._nodes,
            *(self._cut_at_crashes(item) for item in self._items if isinstance(item, Layer)),
            *path_layers,
            *frame_layers(self._recorded, self._sent_frames, paths, quiet),
        ]
        notes = [*plan.notes, *(note for layer in shown_layers for note in layer.notes), *paths.notes]
        return RunView(
            run=self._run,
            plan=plan,
            clock=self._recorded.clock,
            duration_us=self._recorded.duration_us,
            layers=tuple(shown_layers),
            curves=tuple(item for item in self._items if isinstance(item, Curves)),
            paths=paths,
            notes=tuple(dict.fromkeys(notes)),
            trace=self._trace,
        )

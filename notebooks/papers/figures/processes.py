"""The present state of a mesh of processes: links, filters, killed nodes, and the outcome of a publication.

processes_drawing(mesh, outcome=None)    a static figure of a `workbench.protocols.dps.processes.DPSMesh`
outcome_table({name: outcome})           the outcomes of publications: subscribers, acknowledgements and their times
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.protocols.dps.automaton import State
from workbench.protocols.dps.views.filters import WIDTH, add_names, add_note
from workbench.protocols.dps.views.layers import DELIVERED, filter_layers, link_layers
from workbench.protocols.dps.views.looks import IN_VAIN
from workbench.protocols.dps.views.mesh import INTERESTS, LINK, Mesh, Rows, mesh_of_rows
from workbench.views.drawing import Drawing
from workbench.views.layers import Layer, RunView, table
from workbench.views.layout import lay_out
from workbench.views.legend import MARGIN, legend_drawing, scales_drawing
from workbench.views.marks import LayerScene
from workbench.views.nodes import FAILED, SINK, SOURCE
from workbench.views.player.playback import PlaybackClock

if TYPE_CHECKING:
    import pandas as pd

_NODES = (FAILED._replace(label="killed"), SOURCE._replace(label="publisher"), SINK._replace(label="subscriber"))
_RINGS = (
    DELIVERED._replace(label="has acknowledged"),
    DELIVERED._replace(label="has not been heard of", colour=IN_VAIN),
)


def processes_drawing(processes: Any, outcome: Any = None, width: int = WIDTH) -> Drawing:
    """Draw the mesh of processes as it is now.

    An ``outcome`` of `DPSMesh.publish` adds which subscribers have acknowledged, and after how many milliseconds.
    """
    state, plan = processes.state(), lay_out(processes.graph)
    mesh = mesh_of_state(state, processes.filter_bits)
    labels = {node: str(node) for node in plan.ids.tolist()}
    roles = dict.fromkeys(processes.subscriptions, 2) | dict.fromkeys(labels.keys() - state, 0)
    rings: dict[int, int] = {}
    summary = f"{len(mesh.links['node'])} links, {int((mesh.links['look'] == 1).sum())} of them muted"
    if outcome is not None:
        labels |= {node: f"{node}: {ms:.1f} ms" for node, ms in outcome.answers.items()}
        roles[outcome.publisher] = 1
        rings = {node: 0 if node in outcome.answers else 1 for node in outcome.wanted}
        summary = (
            f"{outcome.topic}: {len(outcome.answers)} of {len(outcome.wanted)} subscribers have acknowledged; {summary}"
        )
    layers = (
        *link_layers(mesh, len(labels)),
        *filter_layers(mesh),
        Layer("nodes", _layer_rows(roles), _NODES, "node"),
        Layer("answers", _layer_rows(rings), _RINGS, "ring"),
    )
    view = RunView(None, plan, PlaybackClock(np.zeros(2), np.zeros(2)), 1, layers)
    scene = _Scene(add_names(view, labels), 0, width)
    title = f"{len(processes.graph)} processes on this machine, {len(processes.alive)} of them alive"
    drawing = Drawing(width, 40, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    map_drawing = scene.draw()
    for block in (map_drawing, legend_drawing(scene.entries(), width), scales_drawing(scene.scales, width)):
        drawing.add(block, 0, drawing.height)
        drawing.height += block.height
    return add_note(drawing, summary)


class _Scene(LayerScene):
    def _draw_scale_bar(self) -> None:
        """Draw no scale: processes have no positions in meters."""


def _layer_rows(looks: Mapping[int, int]) -> dict[str, np.ndarray]:
    count = len(looks)
    return table(node=list(looks), look=list(looks.values()), from_us=[0] * count, until_us=[1] * count)


def mesh_of_state(state: Mapping[int, Any], filter_bits: int) -> Mesh:
    """Convert the state of a mesh of processes to a `Mesh`, as of a run at time 0."""
    rows = [
        (node, peer, LINK, State[link_state.upper()])
        for node, report in state.items()
        for peer, link_state in report["links"].items()
    ]
    for announcer, report in state.items():
        rows += [(announcer, peer, INTERESTS, bits) for peer, bits in report["told"].items()]
    rows += [(node, -1, INTERESTS, report["bits"]) for node, report in state.items()]
    node, peer, kind, value = np.array(rows, np.int64).reshape(-1, 4).T
    zeros = np.zeros(len(node), np.int64)
    return mesh_of_rows(Rows(zeros, node, peer, kind, value, zeros), filter_bits, 1)


def outcome_table(outcomes: Mapping[str, Any]) -> pd.DataFrame:
    """Tabulate the outcomes of publications, a row for each publication.

    Columns: wanted (number of subscribers), answered (number of acknowledgements), missing (nodes that have not
    acknowledged), fastest_ms and slowest_ms (times of the acknowledgements).
    """
    import pandas as pd

    rows = {
        name: {
            "wanted": len(outcome.wanted),
            "answered": len(outcome.answers),
            "missing": ", ".join(map(str, outcome.missing)) or "none",
            "fastest_ms": min(outcome.answers.values(), default=float("nan")),
            "slowest_ms": max(outcome.answers.values(), default=float("nan")),
        }
        for name, outcome in outcomes.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")

"""A mesh of processes as it stands now: links, filters, who is dead, and what came of a publication.

processes_drawing(mesh, outcome=None)    `workbench.protocols.dps.processes.DPSMesh`, as a static figure
outcome_table({name: outcome})           what came of publications: wanted, answered, missing, how fast
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
    """The mesh of processes now. With an ``outcome`` of `DPSMesh.publish` also who has answered, after how many ms."""
    state, plan = processes.state(), lay_out(processes.graph)
    mesh = standing_now(state, processes.filter_bits)
    words = {node: str(node) for node in plan.ids.tolist()}
    roles = dict.fromkeys(processes.subscriptions, 2) | dict.fromkeys(words.keys() - state, 0)
    rings: dict[int, int] = {}
    said = f"{len(mesh.links['node'])} links, {int((mesh.links['look'] == 1).sum())} of them muted"
    if outcome is not None:
        words |= {node: f"{node}: {ms:.1f} ms" for node, ms in outcome.answers.items()}
        roles[outcome.publisher] = 1
        rings = {node: 0 if node in outcome.answers else 1 for node in outcome.wanted}
        said = f"{outcome.topic}: {len(outcome.answers)} of {len(outcome.wanted)} subscribers have acknowledged; {said}"
    layers = (
        *link_layers(mesh, len(words)),
        *filter_layers(mesh, len(words)),
        Layer("nodes", _now(roles), _NODES, "node"),
        Layer("answers", _now(rings), _RINGS, "ring"),
    )
    seen = RunView(None, plan, PlaybackClock(np.zeros(2), np.zeros(2)), 1, layers)
    scene = _Scene(add_names(seen, words), 0, width)
    title = f"{len(processes.graph)} processes on this machine, {len(processes.alive)} of them alive"
    drawing = Drawing(width, 40, title=title)
    drawing.text(MARGIN, 26, title, size=15, bold=True)
    map_ = scene.draw()
    for part in (map_, legend_drawing(scene.entries(), width), scales_drawing(scene.scales, width)):
        drawing.add(part, 0, drawing.height)
        drawing.height += part.height
    return add_note(drawing, said)


class _Scene(LayerScene):
    def _scale_bar(self) -> None:
        """Processes are nowhere in particular."""


def _now(looks: Mapping[int, int]) -> dict[str, np.ndarray]:
    count = len(looks)
    return table(node=list(looks), look=list(looks.values()), from_us=[0] * count, until_us=[1] * count)


def standing_now(state: Mapping[int, Any], filter_bits: int) -> Mesh:
    """The state of a mesh of processes, as that of a run at time 0."""
    told = [
        (node, peer, LINK, State[said.upper()]) for node, one in state.items() for peer, said in one["links"].items()
    ]
    told += [(node, peer, INTERESTS, bits) for node, one in state.items() for peer, bits in one["told"].items()]
    told += [(node, -1, INTERESTS, one["bits"]) for node, one in state.items()]
    node, peer, kind, value = np.array(told, np.int64).reshape(-1, 4).T
    nothing = np.zeros(len(node), np.int64)
    return mesh_of_rows(Rows(nothing, node, peer, kind, value, nothing), filter_bits, 1)


def outcome_table(outcomes: Mapping[str, Any]) -> pd.DataFrame:
    """What came of some publications, a row for each: wanted, answered, missing, fastest_ms, slowest_ms."""
    import pandas as pd

    rows = {
        name: {
            "wanted": len(one.wanted),
            "answered": len(one.answers),
            "missing": ", ".join(map(str, one.missing)) or "nobody",
            "fastest_ms": min(one.answers.values(), default=float("nan")),
            "slowest_ms": max(one.answers.values(), default=float("nan")),
        }
        for name, one in outcomes.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")

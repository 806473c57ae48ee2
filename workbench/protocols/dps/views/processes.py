"""A mesh of processes as it stands now: links, filters, who is dead, and what came of a publication.

processes_drawing(mesh, outcome=None)    `workbench.protocols.dps.processes.DPSMesh`, as a static figure
outcome_table({name: outcome})           what came of publications: wanted, answered, missing, how fast
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.protocols.dps.automaton import STATE_NAMES
from workbench.protocols.dps.views.filters import WIDTH, MeshScene, mesh_entries
from workbench.protocols.dps.views.looks import IN_VAIN, USEFUL
from workbench.protocols.dps.views.mesh import Mesh, Rows, standing
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.ground import lay_out
from workbench.views.layers import table
from workbench.views.legend import Entry

if TYPE_CHECKING:
    import pandas as pd


def processes_drawing(processes: Any, outcome: Any = None, width: int = WIDTH) -> Drawing:
    """The mesh of processes now. With an ``outcome`` of `DPSMesh.publish` also who has answered, after how many ms."""
    scene = ProcessScene(processes, outcome, width)
    alive = len(processes.alive)
    title = f"{len(processes.graph)} processes on this machine, {alive} of them alive"
    return scene.page(title, process_entries(scene), scene.said())


def standing_now(processes: Any) -> Mesh:
    """The state of a mesh of processes, as that of a run at time 0."""
    state = processes.state()
    told = [
        (node, peer, True, STATE_NAMES.index(said)) for node, one in state.items() for peer, said in one["links"].items()
    ]
    told += [(node, peer, False, bits) for node, one in state.items() for peer, bits in one["told"].items()]
    told += [(node, -1, False, one["bits"]) for node, one in state.items()]
    node, peer, is_link, value = np.array(told, np.int64).reshape(-1, 4).T
    down = [node for node in processes.graph if node not in state]
    failed = table(node=down, from_us=[0] * len(down), until_us=[1] * len(down))
    nothing = np.zeros(len(node), np.int64)
    return standing(Rows(nothing, node, peer, is_link == 1, value, nothing), processes.filter_bits, failed, 1)


class ProcessScene(MeshScene):
    """A mesh of processes, and around its nodes what came of a publication."""

    def __init__(self, processes: Any, outcome: Any, width: int) -> None:
        plan = lay_out(processes.graph)
        super().__init__(plan, standing_now(processes), 0, width, set(processes.subscriptions))
        self.outcome = outcome
        self.names = {node: str(node) for node in self.place_of}
        if outcome is not None:
            self.names |= {node: f"{node}: {ms:.1f} ms" for node, ms in outcome.answers.items()}

    def clock(self) -> str:
        """Time is not what this is about."""
        return ""

    def _scale_bar(self) -> None:
        """Processes are nowhere in particular."""

    def _discs(self) -> None:
        super()._discs()
        if self.outcome is None:
            return
        x, y = self.at(self.outcome.publisher)
        self.drawing.marker("triangle", x, y, 1.3 * self.node, palette.SOURCE, palette.OUTLINE, 1.1)
        for node in self.outcome.wanted:
            colour = USEFUL if node in self.outcome.answers else IN_VAIN
            self.drawing.circle(*self.at(node), 2.0 * self.node, stroke=colour, width=2.6)

    def said(self) -> str:
        """The figure in a sentence."""
        if self.outcome is None:
            return self.facts()
        came, due = len(self.outcome.answers), len(self.outcome.wanted)
        return f"{self.outcome.topic}: {came} of {due} subscribers have acknowledged; {self.facts()}"


def process_entries(scene: ProcessScene) -> list[Entry]:
    """What a picture of processes has to explain."""
    entries = mesh_entries(scene)
    outcome = scene.outcome
    if outcome is not None:
        entries.insert(0, ("triangle", palette.SOURCE, "publisher"))
        if outcome.answers:
            entries.append(("ring", USEFUL, "has acknowledged"))
        if outcome.missing:
            entries.append(("ring", IN_VAIN, "has not been heard of"))
    return [(how, colour, "killed" if said == "failed node" else said) for how, colour, said in entries]


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

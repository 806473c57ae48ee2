"""The path of a publication, drawn over the mesh. `workbench.protocols.dps.views.paths` reads it from the trace.

publication_drawing(run, which)         the hops as arrows over the mesh
publication_slides(run, which)          a slider over drawings of the path after each hop
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from workbench.protocols.dps.views.filters import MESH, NAMES, WIDTH, add_names, add_note
from workbench.protocols.dps.views.layers import MOST_LABELS, PUBLICATIONS, path_layer
from workbench.protocols.dps.views.paths import Path, publication_path, steps_of
from workbench.sim.rows import Columns
from workbench.views.carried import carries_record
from workbench.views.drawing import Drawing
from workbench.views.figure import draw
from workbench.views.layers import MessagePath, MessagePaths, RunView
from workbench.views.seeing import see
from workbench.views.stepper import Stepper

MOST_SLIDES = 60


@carries_record
def publication_drawing(run: Any, which: int = 0, width: int = WIDTH) -> Drawing:
    """Draw the path of a publication as arrows over the mesh; a node's label is the number of the hop that reached it.

    The mesh is drawn as it was at the end of the path. Arguments and errors are those of `publication_path`.
    """
    path = publication_path(run, which)
    return _draw_steps(run, path, [len(path.hops)], width)[0]


@carries_record
def publication_slides(run: Any, which: int = 0, width: int = WIDTH) -> Stepper:
    """Return a slider over the path after each hop, with at most 60 steps; see `publication_path`."""
    path = publication_path(run, which)
    count = len(path.hops)
    steps = list(range(count + 1))
    if count >= MOST_SLIDES:
        steps = [round(i * count / MOST_SLIDES) for i in range(MOST_SLIDES + 1)]
    return Stepper(_draw_steps(run, path, steps, width), [str(step) for step in steps], "hops")


def _draw_steps(run: Any, path: Path, steps: Sequence[int], width: int) -> list[Drawing]:
    """Return a drawing of the path's first hops for each number of hops in ``steps``."""
    view = see(run)
    own = path_layer(steps_of(Columns(run.trace), [path.publication]), view.duration_us)
    view = replace(view, layers=(*(layer for layer in view.layers if layer.name != PUBLICATIONS), own))
    return [_draw_hops(view, path, step, width) for step in steps]


def _draw_hops(view: RunView, path: Path, hops: int, width: int) -> Drawing:
    partial = path.until(hops)
    description = partial.in_words() if partial.hops or not path.hops else "published, and not sent yet"
    arrived = [hop.arrived_us for hop in partial.hops] or [path.publication.at_us]
    if len(partial.hops) == len(path.hops):
        arrived += [mark.at_us for mark in path.marks]
    ids = view.plan.ids.tolist()
    labels = {node: str(node) for node in ids} if len(ids) <= MOST_LABELS else {}
    for number, hop in reversed(list(enumerate(partial.hops, 1))):
        if hop.look in ("useful", "in vain") and hop.receiver in labels:
            labels[hop.receiver] = f"{hop.receiver}: hop {number}"
    without_message_paths = replace(
        view, paths=MessagePaths((MessagePath(path.publication.name, path.publication.at_us, ()),))
    )
    return add_note(
        draw(add_names(without_message_paths, labels), max(arrived), width, [*MESH, PUBLICATIONS, NAMES], message=0),
        description,
    )

"""A publication's way, drawn over the mesh; `paths` finds it.

publication_drawing(run, which)         its hops as arrows over the mesh
publication_slides(run, which)          hop by hop, with a slider
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
    """The path as arrows over the mesh at its end; nodes have the number of the hop beside them that reached them.

    The arguments and errors of `publication_path`.
    """
    way = publication_path(run, which)
    return _drawn(run, way, [len(way.hops)], width)[0]


@carries_record
def publication_slides(run: Any, which: int = 0, width: int = WIDTH) -> Stepper:
    """A path up to its first, second, ... hop, ``MOST_SLIDES`` at most; see `publication_path`."""
    way = publication_path(run, which)
    count = len(way.hops)
    steps = list(range(count + 1))
    if count >= MOST_SLIDES:
        steps = [round(i * count / MOST_SLIDES) for i in range(MOST_SLIDES + 1)]
    return Stepper(_drawn(run, way, steps, width), [str(step) for step in steps], "hops")


def _drawn(run: Any, way: Path, steps: Sequence[int], width: int) -> list[Drawing]:
    """A path up to some of its hops."""
    seen = see(run)
    own = path_layer(steps_of(Columns(run.trace), [way.publication]), seen.duration_us)
    seen = replace(seen, layers=(*(one for one in seen.layers if one.name != PUBLICATIONS), own))
    return [_up_to(seen, way, step, width) for step in steps]


def _up_to(seen: RunView, way: Path, hops: int, width: int) -> Drawing:
    part = way.until(hops)
    told = part.in_words() if part.hops or not way.hops else "published, and not sent yet"
    arrived = [hop.arrived_us for hop in part.hops] or [way.publication.at_us]
    if len(part.hops) == len(way.hops):
        arrived += [mark.at_us for mark in way.marks]
    ids = seen.plan.ids.tolist()
    words = {node: str(node) for node in ids} if len(ids) <= MOST_LABELS else {}
    for number, hop in reversed(list(enumerate(part.hops, 1))):
        if hop.look in ("useful", "in vain") and hop.receiver in words:
            words[hop.receiver] = f"{hop.receiver}: hop {number}"
    shown = replace(seen, paths=MessagePaths((MessagePath(way.publication.name, way.publication.at_us, ()),)))
    return add_note(draw(add_names(shown, words), max(arrived), width, [*MESH, PUBLICATIONS, NAMES], message=0), told)

"""A publication's way, drawn over the mesh; `paths` finds it.

    publication_drawing(run, which)         its hops as arrows over the mesh
    publication_slides(run, which)          hop by hop, with a slider
"""

from __future__ import annotations

from typing import Any

from workbench.protocols.dps.views.filters import MOST_NAMES, WIDTH, MeshScene, mesh_entries, subscribers
from workbench.protocols.dps.views.looks import ACKNOWLEDGED, IN_VAIN, REPEATED, USEFUL
from workbench.protocols.dps.views.mesh import mesh_of
from workbench.protocols.dps.views.paths import Hop, Path, publication_path
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.ground import Plan, lay_out
from workbench.views.legend import Entry
from workbench.views.stepper import Stepper

MOST_SLIDES = 60
_COLOURS = {"useful": USEFUL, "in vain": IN_VAIN, "repeated": REPEATED, "lost": IN_VAIN, "acknowledged": ACKNOWLEDGED}
_SAID = {
    "useful": "led to a delivery",
    "in vain": "in vain: a filter said yes",
    "repeated": "repeated: the node had it already",
    "acknowledged": "acknowledgement on its way back",
}


def publication_drawing(run: Any, which: int = 0, width: int = WIDTH) -> Drawing:
    """The path as arrows over the mesh at its beginning; small numbers give the order of its hops.

    The arguments and errors of `publication_path`.
    """
    return draw_path(run, publication_path(run, which), None, width)


def draw_path(run: Any, way: Path, hops: int | None = None, width: int = WIDTH) -> Drawing:
    """A path up to one of its hops (None: all of it), with the legend of the whole."""
    seen, plan = mesh_of(run), lay_out(run.scenario.topology)
    part = way if hops is None else way.until(hops)
    scene = PathScene(plan, seen, way.what.at_us, width, subscribers(run, way.what.at_us), part)
    if len(plan.ids) <= MOST_NAMES:
        scene.names = {node: str(node) for node in plan.ids.tolist()}
    title = f"{way.what.text or 'Publication'} of node {way.what.node}"
    note = part.in_words() if part.hops or not way.hops else "published, and not sent yet"
    return scene.page(title, path_entries(scene, way), note)


class PathScene(MeshScene):
    """A path over a faint mesh."""

    def __init__(self, plan: Plan, seen: Any, time_us: int, width: int, asking: set[int], way: Path) -> None:
        super().__init__(plan, seen, time_us, width, asking, is_faint=True)
        self.way = way

    def over(self) -> None:
        """The hops as arrows."""
        self.node = min(self.node, 7.0)
        for number, hop in enumerate(self.way.hops, 1):
            if hop.sender in self.place_of and hop.receiver in self.place_of:
                self._arrow(hop, str(number) if len(self.way.hops) <= MOST_NAMES else "")

    def _arrow(self, hop: Hop, number: str) -> None:
        """An arrow, or a cross where the frame was lost; answers have a lane of their own."""
        colour, width = _COLOURS[hop.look], max(0.4 * self.node, 1.6)
        if hop.look == "lost":
            (x0, y0), (x1, y1) = self.at(hop.sender), self.at(hop.receiver)
            self.drawing.cross((x0 + x1) / 2, (y0 + y1) / 2, 4, colour=colour, width=1.8)
            return
        self.hop(
            (hop.sender, hop.receiver),
            colour,
            width * 0.6 if hop.look in ("repeated", "acknowledged") else width,
            lane_px=0.5 * self.node * (1 + (hop.look == "acknowledged")),
            clear_px=2.0 * self.node,
            head_at=0.95,
            number=number,
            number_at=(0.36, 10),
        )

    def _discs(self) -> None:
        reached = {hop.receiver for hop in self.way.hops if hop.look in ("useful", "in vain")}
        marked = {mark.node: mark.look for mark in self.way.marks}
        for node in self.place_of:
            x, y = self.at(node)
            if node in self.down:
                self.drawing.cross(x, y, self.node, colour=palette.FAILED, width=0.4 * self.node)
            elif node == self.way.what.node:
                self.drawing.marker("triangle", x, y, 1.5 * self.node, palette.SOURCE, palette.OUTLINE, 1.1)
            elif node in self.asking:
                self.drawing.marker("square", x, y, 1.25 * self.node, palette.SINK, palette.OUTLINE, 1.1)
            else:
                fill = palette.HOLDS if node in reached else palette.NODE
                self.drawing.circle(x, y, self.node, fill=fill, stroke=palette.OUTLINE, width=1)
            if marked.get(node) == "delivered":
                self.drawing.circle(x, y, 2.1 * self.node, stroke=USEFUL, width=2.6)
            elif node in marked:
                self.drawing.cross(x, y, 0.95 * self.node, colour=IN_VAIN, width=2.8)


def path_entries(scene: PathScene, way: Path) -> list[Entry]:
    """What a picture of a path has to explain."""
    entries: list[Entry] = [("triangle", palette.SOURCE, "publisher")]
    if scene.asking:
        entries.append(("square", palette.SINK, "subscriber"))
    entries += [("arrow", _COLOURS[look], said) for look, said in _SAID.items() if way.count(look)]
    if way.count("lost"):
        entries.append(("lost", IN_VAIN, "lost on this link"))
    if way.matches:
        entries.append(("ring", USEFUL, "delivered"))
    words = {"dead_end": "dead end", "no_match": "topics do not match", "out_of_range": "out of range"}
    reasons = [said for look, said in words.items() if way.nodes(look)]
    if reasons:
        entries.append(("down", IN_VAIN, "got it in vain: " + ", ".join(reasons)))
    return entries + [entry for entry in mesh_entries(scene) if entry[2] != "subscriber"]


def publication_slides(run: Any, which: int = 0, width: int = WIDTH) -> Stepper:
    """A path up to its first, second, ... hop, ``MOST_SLIDES`` at most; see `publication_path`."""
    way = publication_path(run, which)
    count = len(way.hops)
    steps = (
        list(range(count + 1))
        if count < MOST_SLIDES
        else [round(i * count / MOST_SLIDES) for i in range(MOST_SLIDES + 1)]
    )
    return Stepper([draw_path(run, way, step, width) for step in steps], [str(step) for step in steps], "hops")

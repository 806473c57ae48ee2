"""The overlay's trees over the network at a time, as a static figure; the ground that other figures of it share.

overlay_drawing(run, time_s=None)      trees in their colors, roots, keys, who lost its place and who got a new key
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.looks import ORPHAN, REKEYED, tree_colour
from workbench.protocols.tinymq.views.overlay import Overlay, PlaceSpan, overlay_of
from workbench.views import caption, palette
from workbench.views.drawing import Drawing
from workbench.views.figure import MARGIN, SMALL, time_us_of
from workbench.views.ground import Plan, lay_out
from workbench.views.legend import Entry, legend_drawing
from workbench.views.still import StillScene

WIDTH = 760
MOST_KEYS = 60  # nodes whose keys are written


def overlay_drawing(
    run: Any, time_s: float | None = None, width: int = WIDTH, keys: bool | None = None, tree: int | None = None
) -> Drawing:
    """The trees at a time (None: at the run's end), or one ``tree`` of them, by its place among the roots.

    ``keys``: whether keys are written (None: in networks of up to 60). In PUB-2-SUB+ a node has a key in every tree;
    they are written when one tree is drawn. Raises ParameterError for a time outside of the run, a tree that is not
    there, or a run without an overlay.
    """
    time_us = time_us_of(run, time_s, "overlay_drawing")
    seen, plan = overlay_of(run), lay_out(run.scenario.topology)
    if tree is not None and not 0 <= tree < len(seen.roots):
        raise ParameterError(f"overlay_drawing: tree is {tree!r}; this run has the trees 0 to {len(seen.roots) - 1}")
    scene = TreeScene(plan, seen, time_us, width, tree=tree)
    if keys if keys is not None else len(plan.ids) <= MOST_KEYS:
        scene.names = scene.keys()
    return scene.page(f"{caption.title(run)}: the overlay", tree_entries(scene))


def key_label(place: PlaceSpan) -> str:
    """A node and its key, as it is written beside it."""
    return f"{place.node}: {place.key or 'root'}"


class TreeScene(StillScene):
    """The trees at a time on a page."""

    def __init__(
        self, plan: Plan, seen: Overlay, time_us: int, width: int, is_faint: bool = False, tree: int | None = None
    ) -> None:
        super().__init__(plan, time_us, width)
        self.overlay, self.is_faint = seen, is_faint
        self.places = [place for place in seen.places_at(time_us) if tree is None or place.tree == tree]
        self.orphans, self.down = seen.orphans_at(time_us), seen.down_at(time_us)
        counts = Counter(place.node for place in self.places)
        self.in_several = {node for node, count in counts.items() if count > 1}
        self.node = min(self.node * 1.25, 7.5)

    def keys(self) -> dict[int, str]:
        """What to write beside each node: its number, and its key where it has one alone."""
        names = {node: str(node) for node in self.place_of}
        names |= {place.node: key_label(place) for place in self.places if place.node not in self.in_several}
        return names

    def page(self, title: str, entries: Sequence[Entry], note: str = "") -> Drawing:
        """Title and time, the scene, what it means."""
        parts = [self.draw(), legend_drawing(entries, self.width)]
        drawing = self.stack(title, parts, 16 if note else 0)
        if note:
            drawing.text(MARGIN, drawing.height - 6, note, size=SMALL, colour=palette.FAINT_TEXT)
        return drawing

    def draw(self) -> Drawing:
        """Everything, lowest first."""
        self._links()
        self._trees()
        self.over()
        self._places()
        self._names()
        self._scale_bar()
        return self.drawing

    def over(self) -> None:
        """What a figure draws between trees and nodes."""

    def _trees(self) -> None:
        opacity = 0.3 if self.is_faint else 1.0
        for place in self.places:
            if place.parent in self.place_of:
                ends = self._lane(place)
                width = max(0.55 * self.node, 1.2)
                self.drawing.segment(*ends, colour=tree_colour(place.tree), width=width, opacity=opacity)
                self.band += self.along(place.node, place.parent)

    def _lane(self, place: PlaceSpan) -> tuple[float, float, float, float]:
        """The ends of a line of a tree; where nodes are in several trees, each tree has a lane of its own."""
        (x0, y0), (x1, y1) = sorted((self.at(place.node), self.at(place.parent)))
        if not self.in_several:
            return x0, y0, x1, y1
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        aside = (place.tree - (len(self.overlay.roots) - 1) / 2) * max(0.7 * self.node, 1.6) / length
        dx, dy = -aside * (y1 - y0), aside * (x1 - x0)
        return x0 + dx, y0 + dy, x1 + dx, y1 + dy

    def _places(self) -> None:
        homeless = {orphan.node for orphan in self.orphans}
        for node in self.place_of:
            if node in self.down:
                self.drawing.cross(*self.at(node), 0.9 * self.node, colour=palette.FAILED, width=0.4 * self.node)
            elif node in homeless:
                look: dict[str, Any] = {
                    "fill": palette.BACKGROUND,
                    "stroke": ORPHAN,
                    "width": max(0.4 * self.node, 1.2),
                }
                self.drawing.circle(*self.at(node), self.node, **look)
        for place in sorted(self.places, key=lambda place: (place.parent < 0, place.tree)):
            if place.node not in homeless or place.parent < 0:
                self._place(place)

    def _place(self, place: PlaceSpan) -> None:
        x, y = self.at(place.node)
        is_shared = place.node in self.in_several and place.parent >= 0
        colour = palette.LINK_GOOD if is_shared else tree_colour(place.tree)
        if place.is_rekeyed:
            self.drawing.circle(x, y, 1.55 * self.node, stroke=REKEYED, width=max(0.25 * self.node, 1.0))
        if place.parent < 0:
            self.drawing.marker("square", x, y, max(1.6 * self.node, 6), colour, palette.TEXT, 1.4)
        else:
            self.drawing.circle(x, y, self.node, fill=colour, stroke=palette.BACKGROUND, width=0.7)

    def _names(self) -> None:
        roots = {place.node for place in self.places if place.parent < 0}
        self.write_names(sorted(self.names, key=lambda node: (node not in roots, node)), roots)


def tree_entries(scene: TreeScene) -> list[Entry]:
    """What a picture of trees has to explain."""
    trees = sorted({place.tree for place in scene.places})
    entries: list[Entry] = [("tree", tree_colour(tree), f"tree of root {scene.overlay.roots[tree]}") for tree in trees]
    entries.append(("root", palette.LINK_GOOD, "root"))
    entries.append(("line", palette.LINK_GOOD, "link"))
    if any(place.is_rekeyed for place in scene.places):
        entries.append(("rekeyed", REKEYED, "other key than before the failure"))
    if scene.orphans:
        lost = any(orphan.had_place for orphan in scene.orphans)
        entries.append(("orphan", ORPHAN, "has lost its place" if lost else "has no place yet"))
    if scene.down:
        entries.append(("down", palette.FAILED, "failed node"))
    return entries

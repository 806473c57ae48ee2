"""What layers show at a time, drawn on a page by their marks (`layers`).

    moment(seen, time_us, names, way)     -> [Group]: the rows that are to be drawn, of one look each
    LayerScene(seen, time_us, width)      draws them: `draw()`; `samples`, `scales`: what the legend explains

Groups are drawn with arrays, so that a picture costs what its looks cost and little for each row. Lengths of looks are
multiples of a node's diameter, and at least so many px of the player, whose strokes are a little heavier (`PEN`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import ParameterError
from workbench.suggestion import meant
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.frames import LOST_AT
from workbench.views.layers import LEVELS, Layer, Look, Scale, Seen
from workbench.views.legend import Sample
from workbench.views.seeing import NODE_LOOK
from workbench.views.still import Box, Scene

PEN = 0.8
ROOM_FOR_DETAILS = 3.0  # px of a node's radius, from which on what lies between nodes can be told apart
MOST_NAMES = 12
MOST_LABELS = 60  # nodes beside which something is written; of layers that are asked for twice as many
MOST_KEPT_CLEAR = 300  # lines of a layer that names should not hide
LINK, WALL = Look("link (darker: better)", palette.LINK_GOOD), Look("wall", palette.WALL, least=2.5)


class Group(NamedTuple):
    """Rows of a layer that look alike and are drawn with one mark, in order; rows: int64, shape (rows,)."""

    layer: Layer
    look: Look
    mark: str
    rows: np.ndarray

    @property
    def chip(self) -> str:
        """The name under which it is shown and hidden."""
        return self.look.chip or self.layer.name

    @property
    def level(self) -> int:
        """The order of drawing."""
        if self.layer.level is not None and self.mark == self.layer.mark:
            return self.layer.level
        return LEVELS[self.mark]

    def column(self, name: str) -> np.ndarray:
        """A column of the table, for these rows."""
        return self.layer.column(name)[self.rows]


def chips(seen: Seen) -> dict[str, bool]:
    """The names under which layers are shown and hidden, and whether they are on."""
    found: dict[str, bool] = {}
    for layer in seen.layers:
        for look in layer.looks:
            if look.mark or layer.mark:
                found.setdefault(look.chip or layer.name, layer.is_on)
    return found


def way_at(seen: Seen, time_us: int, way: int | None) -> int:
    """Which message is followed: the one that is asked for, or the newest one that has begun; -1: none."""
    ways = seen.ways.ways
    if way is not None:
        if not -len(ways) <= way < len(ways):
            raise ParameterError(f"network_drawing: way is {way!r}; this run has {len(ways)} messages to follow")
        return way % len(ways)
    begun = [which for which, one in enumerate(ways) if one.from_us <= time_us]
    return max(begun, key=lambda which: ways[which].from_us) if begun and seen.ways.is_newest else -1


def moment(
    seen: Seen, time_us: int, names: Collection[str] | None = None, way: int | None = None, has_room: bool = True
) -> list[Group]:
    """What is to be drawn at a time, lowest first.

    names: of the chips that are on; None: those that are on at first. way: the message that is followed; None: the
    newest one, where a protocol's ways are followed so. has_room: whether there is room for details. Raises
    ParameterError for a name or a way that there is not.
    """
    known = chips(seen)
    for name in names or ():
        if name not in known:
            hint = meant(name, known)
            raise ParameterError(
                f"network_drawing: there is no layer {name!r} in this run{hint}; it has {', '.join(known)}"
            )
    followed = way_at(seen, time_us, way)
    groups = []
    for layer in seen.layers:
        if layer.is_detail and not has_room:
            continue
        for group in _of_layer(layer, time_us, followed):
            if group.chip in names if names is not None else layer.is_on:
                groups.append(group)
    return sorted(groups, key=lambda group: group.level)


def _of_layer(layer: Layer, time_us: int, way: int) -> Iterator[Group]:
    rows = layer.alive(time_us)
    if layer.of_way:
        rows = rows[layer.column("way")[rows] == way] if way >= 0 else rows[:0]
    look = layer.column("look")[rows]
    for which in np.unique(look).tolist():
        one = layer.looks[which] if which < len(layer.looks) else Look()
        mark = one.mark or layer.mark
        if mark:
            yield Group(layer, one, mark, rows[look == which])


def shades(layer: Layer, look: Look, weight: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(colour, which of the rows have it): by weight where the layer has a scale, else the look's; lowest first."""
    if layer.scale is None:
        return [(look.colour, np.arange(len(weight)))]
    colours = layer.scale.colours
    shade = np.rint(np.clip(weight, 0, 1) * (len(colours) - 1)).astype(np.int64)
    return [(colours[one], np.flatnonzero(shade == one)) for one in np.unique(shade).tolist()]


class LayerScene(Scene):
    """A run at a time on a page. ``groups``: what is drawn, see `moment`.

    samples: what the legend has to explain; scales: those of the layers that are drawn.
    """

    def __init__(
        self, seen: Seen, time_us: int, width: int, names: Collection[str] | None = None, way: int | None = None
    ) -> None:
        super().__init__(seen.plan, width)
        self.seen, self.time_us = seen, min(time_us, seen.duration_us - 1)
        self.is_roomy = self.node >= ROOM_FOR_DETAILS
        self.diameter = 2 * self.node
        self.is_asked_for = names is not None
        self.groups = moment(seen, self.time_us, names, way, self.is_roomy)
        self.samples: dict[tuple[int, str, str, str], Sample] = {}  # by layer, mark, words and colour
        self.scales: list[Scale] = []
        self.named: list[tuple[int, str]] = []

    def draw(self) -> Drawing:
        """Everything, lowest first."""
        self._links()
        has_nodes = False
        nodes = [group for group in self.groups if group.mark == "node"]
        for group in self.groups:
            if not has_nodes and group.level >= LEVELS["node"]:
                self._nodes(nodes)
                has_nodes = True
            if group.mark not in ("node", "label", "strip"):
                getattr(self, f"_{group.mark}")(group)
                self.explain(group)
        if not has_nodes:
            self._nodes(nodes)
        self._words([group for group in self.groups if group.mark == "label"])
        self._scale_bar()
        return self.drawing

    def entries(self) -> list[Sample]:
        """The legend: nodes, links and walls, then what is drawn over them."""
        ground = [Sample("line", LINK)] if len(self.plan.links["a"]) else []
        ground += [Sample("line", WALL)] if len(self.walls) else []
        order = {id(layer): place for place, layer in enumerate(self.seen.layers)}
        found = [self.samples[key] for key in sorted(self.samples, key=lambda key: order.get(key[0], -1))]
        nodes = sorted((one for one in found if one.mark == "node"), key=lambda one: one.look.rank)
        return [*nodes, *ground, *(one for one in found if one.mark != "node")]

    def explain(self, group: Group) -> None:
        """Have the legend say what a group is."""
        scale = group.layer.scale
        if scale is not None and scale.said and scale not in self.scales:
            self.scales.append(scale)
        if group.look.said:
            shown = scale.colours if scale is not None else ()
            key = (id(group.layer), group.mark, group.look.said, group.look.colour)
            self.samples.setdefault(key, Sample(group.mark, group.look, tuple(shown)))

    # Lengths and places

    def _length(self, look: Look) -> float:
        return max(look.size * self.diameter, PEN * look.least)

    def _stroke(self, look: Look) -> float:
        """The width of a line: of that of a look that does not say it, one px of the player."""
        return max(look.size * self.diameter if look.size < 1 else 0.0, PEN * look.least)

    def _places(self, group: Group, name: str = "node") -> np.ndarray:
        return self.plan.place(group.column(name))

    def _at(self, places: np.ndarray) -> np.ndarray:
        return np.stack([self.x[places], self.y[places]], axis=1)

    def _ends(self, group: Group) -> tuple[np.ndarray, np.ndarray]:
        """(x0, y0, x1, y1 of rows between two nodes of the plan, which of the group's rows these are)."""
        node, peer = self._places(group), self._places(group, "peer")
        rows = np.flatnonzero((node >= 0) & (peer >= 0))
        return np.concatenate([self._at(node[rows]), self._at(peer[rows])], axis=1), rows

    def _centers(self, group: Group) -> Iterator[tuple[str, np.ndarray]]:
        """(colour, centers) of the rows at nodes of the plan."""
        places = self._places(group)
        rows = np.flatnonzero(places >= 0)
        for colour, some in shades(group.layer, group.look, group.column("weight")[rows]):
            yield colour, self._at(places[rows[some]])

    def _keep_clear(self, ends: np.ndarray) -> None:
        """Names should not hide these lines."""
        for share in np.linspace(0.1, 0.9, 9):
            self.band += [(x, y) for x, y in (ends[:, :2] + share * (ends[:, 2:] - ends[:, :2])).tolist()]

    # Marks

    def _line(self, group: Group) -> None:
        ends, rows = self._ends(group)
        dash = (4.0, 4.0) if group.look.is_dashed else ()
        look: dict[str, Any] = {"width": self._stroke(group.look), "opacity": group.look.alpha, "dash": dash}
        for colour, some in shades(group.layer, group.look, group.column("weight")[rows]):
            self.drawing.segments(ends[some], colour=colour, **look)
        self._keep_clear(ends[:MOST_KEPT_CLEAR])

    def _half(self, group: Group) -> None:
        ends, rows = self._ends(group)
        ends[:, 2:] = (ends[:, :2] + ends[:, 2:]) / 2
        for colour, some in shades(group.layer, group.look, group.column("weight")[rows]):
            look: dict[str, Any] = {"width": self._stroke(group.look), "opacity": group.look.alpha}
            self.drawing.segments(ends[some], colour=colour, **look)

    def _arrow(self, group: Group) -> None:
        look = group.look
        ends, rows = self._ends(group)
        weight = group.column("weight")[rows]
        thick = 0.65 * self._stroke(look)
        for colour, some in shades(group.layer, look, weight):
            for heavy in np.unique(weight[some]) if group.layer.scale is None else np.zeros(1):
                chosen = some[weight[some] == heavy] if group.layer.scale is None else some
                shown = self._aside(ends[chosen], look.lane)
                self._arrows(shown, look, colour, thick * (1 + 0.5 * heavy), 1 + 0.12 * heavy)
        if group.layer.of_way:
            self._keep_clear(ends[:MOST_KEPT_CLEAR])

    def _arrows(self, ends: np.ndarray, look: Look, colour: str, width: float, growth: float) -> None:
        shown: dict[str, Any] = {"colour": colour, "width": width, "opacity": look.alpha}
        if not look.head:
            self.drawing.segments(ends, **shown)
            return
        length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
        head = np.minimum(max(1.3 * self.node, 3.5), 0.5 * length) * growth * (0.7 + 0.3 * look.least)
        self.drawing.arrows(ends, head, look.head, **shown)

    def _aside(self, ends: np.ndarray, lane: float) -> np.ndarray:
        """Lines from beside one node to beside the other, on the right of their way."""
        way = ends[:, 2:] - ends[:, :2]
        length = np.maximum(np.hypot(way[:, :1], way[:, 1:]), 1e-9)
        clear = np.minimum(self.node / length, 0.4)
        right = lane * self.diameter * np.stack([-way[:, 1], way[:, 0]], axis=1) / length
        return np.concatenate([ends[:, :2] + clear * way + right, ends[:, 2:] - 1.3 * clear * way + right], axis=1)

    def _disc(self, group: Group) -> None:
        look = group.look
        stroke = palette.OUTLINE if look.width else None
        for colour, centers in self._centers(group):
            radius = self._length(look) / 2
            self.drawing.markers(look.marker, centers, radius, colour, stroke, PEN * look.width, look.alpha)

    def _ring(self, group: Group) -> None:
        look = group.look
        for colour, centers in self._centers(group):
            shown: dict[str, Any] = {"stroke": colour, "width": PEN * look.width, "opacity": look.alpha}
            dash = (3.0, 2.0) if look.is_dashed else ()
            self.drawing.circles(centers, self._length(look) / 2, dash=dash, **shown)

    def _cross(self, group: Group) -> None:
        look = group.look
        for colour, centers in self._centers(group):
            shown: dict[str, Any] = {"colour": colour, "width": PEN * look.width, "opacity": look.alpha}
            self.drawing.crosses(centers, 0.8 * self._length(look) / 2, **shown)

    def _share(self, group: Group) -> np.ndarray:
        """How much of its time has passed for each row, 0 to 1."""
        start, end = group.column("from_us"), group.column("until_us")
        return (self.time_us - start) / np.maximum(end - start, 1)

    def _wave(self, group: Group) -> None:
        places, look = self._places(group), group.look
        for place, share in zip(places.tolist(), self._share(group).tolist(), strict=True):
            if place >= 0:
                radius = self.node + (self._length(look) / 2 - self.node) * share**0.5
                opacity = look.alpha * (0.95 - 0.7 * share)
                shown: dict[str, Any] = {"stroke": look.colour, "width": PEN * look.width, "opacity": opacity}
                self.drawing.circle(self.x[place], self.y[place], radius, **shown)

    def _packet(self, group: Group) -> None:
        """A dot on its way, with a tail that says where it comes from."""
        ends, rows = self._ends(group)
        weight = group.column("weight")[rows]
        share = (self._share(group)[rows] * np.where(weight > 0, weight, 1))[:, None]
        way = ends[:, 2:] - ends[:, :2]
        length = np.maximum(np.hypot(way[:, :1], way[:, 1:]), 1e-9)
        tail = np.maximum(share - np.minimum(0.3, 5 * self.node / length), 0)
        dots, look = ends[:, :2] + share * way, group.look
        shown: dict[str, Any] = {"colour": look.colour, "width": 2.2 * min(look.size, 1.0), "opacity": look.alpha}
        self.drawing.segments(np.concatenate([ends[:, :2] + tail * way, dots], axis=1), **shown)
        rim = palette.BACKGROUND if look.alpha >= 1 else None
        self.drawing.markers("circle", dots, self._length(look) / 2, look.colour, rim, PEN * look.width, look.alpha)

    def _loss(self, group: Group) -> None:
        """Where a frame was lost on its way, smaller and fainter if it was not sent to this node alone."""
        ends, rows = self._ends(group)
        at = ends[:, 2:] + LOST_AT * (ends[:, :2] - ends[:, 2:])
        is_unicast = group.column("weight")[rows] > 0
        radius, look = 0.8 * self._length(group.look) / 2, group.look
        shown: dict[str, Any] = {"colour": look.colour, "width": PEN * look.width}
        self.drawing.crosses(at[is_unicast], radius, **shown)
        self.drawing.crosses(at[~is_unicast], 0.5 * radius, **{**shown, "width": 1.0, "opacity": 0.5})

    def _nodes(self, groups: list[Group]) -> None:
        """Every node once: as the row of the lowest rank says, of equal ones the heaviest, or as a plain node."""
        count = len(self.plan.ids)
        best = np.full(count, np.inf)
        looks: list[tuple[Look, Group | None, str]] = [(NODE_LOOK, None, NODE_LOOK.colour)]
        which = np.zeros(count, np.int64)
        for group in groups:
            places, weight = self._places(group), group.column("weight")
            for colour, some in shades(group.layer, group.look, weight):
                here = places[some][places[some] >= 0]
                # Shades come from light to heavy, so a later one of equal rank is the heavier.
                here = here[group.look.rank <= best[here]]
                best[here], which[here] = group.look.rank, len(looks)
                looks.append((group.look, group, colour))
        for number in sorted(np.unique(which).tolist(), key=lambda one: -looks[one][0].rank):
            look, of, colour = looks[number]
            places = np.flatnonzero(which == number)
            width = 0.8 if self.is_roomy else 0.4
            radius = self._length(look) / 2
            self.drawing.markers(look.marker, self._at(places), radius, colour, palette.OUTLINE, width)
            if look.marker != "circle":
                self.named += [(place, look.said.removesuffix(" node")) for place in places.tolist()]
            if of is not None:
                self.explain(of)
            else:
                self.samples[0, "node", "", ""] = Sample("node", look)

    # Words

    def _words(self, groups: list[Group]) -> None:
        """Labels, and the names of the nodes that stand out, where they hide as little as possible."""
        labels: dict[int, list[str]] = {}
        # What stands below a node in the player comes first here: its number, then its key.
        for group in sorted(groups, key=lambda group: group.look.size):
            for place, word in self._labels(group):
                labels.setdefault(place, []).append(str(group.layer.words[word]))
        taken: list[Box] = []
        most = MOST_LABELS * (2 if self.is_asked_for else 1)
        for place, said in labels.items() if len(labels) <= most else ():
            self.write(place, ": ".join(said), taken, must=False)
        named = sorted((place, said) for place, said in self.named if place not in labels)
        for place, role in named if len(named) <= MOST_NAMES else ():
            self.write(place, f"{role} {self.plan.ids[place]}".strip(), taken)

    def _labels(self, group: Group) -> Iterator[tuple[int, int]]:
        """(place, which of the layer's words) of the rows that say something."""
        places, text = self._places(group), group.column("text")
        rows = np.flatnonzero((places >= 0) & (text >= 0))
        self.explain(group)
        return zip(places[rows].tolist(), text[rows].tolist(), strict=True)

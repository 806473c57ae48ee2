"""Selection of the rows of layers that are visible at a time, and their drawing by marks (see `layers`).

    moment(view, time_us, names, message)   returns the rows to draw, in a `Group` for each look
    LayerScene(view, time_us, width)        draws these groups with `draw()`, and collects the entries of the legend

Each group is drawn with arrays, so the cost depends on the number of looks and little on the number of rows. Lengths of
looks are multiples of a node's diameter, with a minimum in px of the player. Lines are slightly thinner than in the
player, by the factor `PEN`.
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
from workbench.views.layers import LEVELS, Layer, Look, RunView, Scale
from workbench.views.legend import Sample
from workbench.views.seeing import NODE_LOOK
from workbench.views.still import Box, Scene

PEN = 0.8
ROOM_FOR_DETAILS = 3.0  # px, the least radius of a node at which details between nodes are visible
MOST_NAMES = 12  # nodes with a special marker; if more nodes have one, their names are omitted
MOST_LABELS = 60  # nodes with a label; twice as many if the layers were chosen by name
MOST_LINES_AVOIDED = 300  # lines of a layer that names should not cover
# How each mark is drawn: a method of `LayerScene`.
_METHODS = {
    "line": "_draw_lines",
    "half": "_draw_halves",
    "arrow": "_draw_arrows",
    "disc": "_draw_discs",
    "ring": "_draw_rings",
    "cross": "_draw_crosses",
    "wave": "_draw_widening_rings",
    "packet": "_draw_packets",
    "loss": "_draw_losses",
}
LINK, WALL = Look("link (darker: better)", palette.LINK_GOOD), Look("wall", palette.WALL, least=2.5)


class Group(NamedTuple):
    """Rows of a layer with the same style (``look``) and mark. ``rows``: their indices in the table, ascending."""

    layer: Layer
    look: Look
    mark: str
    rows: np.ndarray

    @property
    def chip(self) -> str:
        """The name of the player's button that shows and hides these rows."""
        return self.look.chip or self.layer.name

    @property
    def level(self) -> int:
        """The position of these rows in the order of drawing: lower levels are drawn first (see `LEVELS`)."""
        if self.layer.level is not None and self.mark == self.layer.mark:
            return self.layer.level
        return LEVELS[self.mark]

    def column(self, name: str) -> np.ndarray:
        """Return a column of the layer's table, only for these rows; shape (rows,)."""
        return self.layer.column(name)[self.rows]


def chips(view: RunView) -> dict[str, bool]:
    """Return {name of a button of the player: whether the layers of this button are visible at first}."""
    is_on: dict[str, bool] = {}
    for layer in view.layers:
        for look in layer.looks:
            if look.mark or layer.mark:
                is_on.setdefault(look.chip or layer.name, layer.is_on)
    return is_on


def path_at(view: RunView, time_us: int, message: int | None) -> int:
    """Return the index of the message whose path is drawn, or -1 for no path.

    It is ``message`` if that is not None. Otherwise it is the message that began last before ``time_us``, provided that
    ``view.paths.is_newest`` is true. Raises ParameterError for an unknown message.
    """
    paths = view.paths.paths
    if message is not None:
        if not -len(paths) <= message < len(paths):
            raise ParameterError(
                f"network_drawing: message is {message!r}; this run has paths of {len(paths)} messages, numbered from 0"
            )
        return message % len(paths)
    begun = [index for index, path in enumerate(paths) if path.from_us <= time_us]
    return max(begun, key=lambda index: paths[index].from_us) if begun and view.paths.is_newest else -1


def moment(
    view: RunView, time_us: int, names: Collection[str] | None = None, message: int | None = None, has_room: bool = True
) -> list[Group]:
    """Return the rows to draw at a time, as groups in the order of drawing.

    names: names of the player's buttons whose layers are drawn; None: the layers that are visible at first.
    message: index of the message whose path is drawn; None: the newest message if ``view.paths.is_newest``, else no
        path.
    has_room: whether the map has space for layers with ``is_detail``.
    Raises ParameterError for an unknown name or message.
    """
    button_names = chips(view)
    for name in names or ():
        if name not in button_names:
            hint = meant(name, button_names)
            raise ParameterError(
                f"network_drawing: layer {name!r} is not in this run{hint}; its layers are {', '.join(button_names)}"
            )
    selected = path_at(view, time_us, message)
    groups = []
    for layer in view.layers:
        if layer.is_detail and not has_room:
            continue
        for group in _group_rows(layer, time_us, selected):
            if group.chip in names if names is not None else layer.is_on:
                groups.append(group)
    return sorted(groups, key=lambda group: group.level)


def _group_rows(layer: Layer, time_us: int, message: int) -> Iterator[Group]:
    rows = layer.alive(time_us)
    if layer.of_path:
        rows = rows[layer.column("path")[rows] == message] if message >= 0 else rows[:0]
    look = layer.column("look")[rows]
    for index in np.unique(look).tolist():
        style = layer.looks[index] if index < len(layer.looks) else Look()
        mark = style.mark or layer.mark
        if mark:
            yield Group(layer, style, mark, rows[look == index])


def shades(layer: Layer, look: Look, weight: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Return a list of (colour, indices of the entries of ``weight`` in that colour), in order of weight.

    Without a scale of colours in the layer, the list has a single entry: the colour of the look.
    """
    if layer.scale is None:
        return [(look.colour, np.arange(len(weight)))]
    colours = layer.scale.colours
    shade = np.rint(np.clip(weight, 0, 1) * (len(colours) - 1)).astype(np.int64)
    return [(colours[index], np.flatnonzero(shade == index)) for index in np.unique(shade).tolist()]


class LayerScene(Scene):
    """A picture of a run at one time. ``groups``: the rows to draw, as returned by `moment`.

    samples, scales: the entries and the colour bars of the legend, for the layers that are drawn.
    """

    def __init__(
        self, view: RunView, time_us: int, width: int, names: Collection[str] | None = None, message: int | None = None
    ) -> None:
        super().__init__(view.plan, width)
        self.view, self.time_us = view, min(time_us, view.duration_us - 1)
        self.is_roomy = self.node >= ROOM_FOR_DETAILS
        self.diameter = 2 * self.node
        self.is_chosen = names is not None
        self.groups = moment(view, self.time_us, names, message, self.is_roomy)
        self.samples: dict[tuple[int, str, str, str], Sample] = {}  # by layer, mark, label and colour
        self.scales: list[Scale] = []
        self.marked_nodes: list[tuple[int, str]] = []

    def draw(self) -> Drawing:
        """Draw links, then all groups of rows in the order of their levels, then texts; return the drawing."""
        self._draw_links()
        has_nodes = False
        nodes = [group for group in self.groups if group.mark == "node"]
        for group in self.groups:
            if not has_nodes and group.level >= LEVELS["node"]:
                self._draw_nodes(nodes)
                has_nodes = True
            if group.mark not in ("node", "label", "strip"):
                getattr(self, _METHODS[group.mark])(group)
                self.explain(group)
        if not has_nodes:
            self._draw_nodes(nodes)
        self._write_texts([group for group in self.groups if group.mark == "label"])
        self._draw_scale_bar()
        return self.drawing

    def entries(self) -> list[Sample]:
        """Return the entries of the legend: nodes, links and walls, then all other marks."""
        base = [Sample("line", LINK)] if len(self.plan.links["a"]) else []
        base += [Sample("line", WALL)] if len(self.walls) else []
        order = {id(layer): index for index, layer in enumerate(self.view.layers)}
        samples = [self.samples[key] for key in sorted(self.samples, key=lambda key: order.get(key[0], -1))]
        nodes = sorted((sample for sample in samples if sample.mark == "node"), key=lambda sample: sample.look.rank)
        return [*nodes, *base, *(sample for sample in samples if sample.mark != "node")]

    def explain(self, group: Group) -> None:
        """Add an entry for the style (look) of a group to the legend, and a bar for its scale of colours, if any."""
        scale = group.layer.scale
        if scale is not None and scale.label and scale not in self.scales:
            self.scales.append(scale)
        if group.look.label:
            shown = scale.colours if scale is not None else ()
            key = (id(group.layer), group.mark, group.look.label, group.look.colour)
            self.samples.setdefault(key, Sample(group.mark, group.look, tuple(shown)))

    # Lengths and positions

    def _look_length(self, look: Look) -> float:
        return max(look.size * self.diameter, PEN * look.least)

    def _line_width(self, look: Look) -> float:
        """Return the width of a line in px. A line in the default look is 1 px wide in the player."""
        return max(look.size * self.diameter if look.size < 1 else 0.0, PEN * look.least)

    def _indices_of(self, group: Group, name: str = "node") -> np.ndarray:
        return self.plan.indices(group.column(name))

    def _positions_of(self, node_indices: np.ndarray) -> np.ndarray:
        return np.stack([self.x[node_indices], self.y[node_indices]], axis=1)

    def _line_ends(self, group: Group) -> tuple[np.ndarray, np.ndarray]:
        """Return (array with x0, y0, x1, y1 of each line from node to peer, indices of these lines in the group).

        Rows are left out if one of their nodes is not in the layout.
        """
        node, peer = self._indices_of(group), self._indices_of(group, "peer")
        rows = np.flatnonzero((node >= 0) & (peer >= 0))
        return np.concatenate([self._positions_of(node[rows]), self._positions_of(peer[rows])], axis=1), rows

    def _centers_by_colour(self, group: Group) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (colour, centers of the nodes with rows in that colour), without nodes that are not in the layout."""
        node_indices = self._indices_of(group)
        rows = np.flatnonzero(node_indices >= 0)
        for colour, shade_rows in shades(group.layer, group.look, group.column("weight")[rows]):
            yield colour, self._positions_of(node_indices[rows[shade_rows]])

    def _avoid_lines(self, ends: np.ndarray) -> None:
        """Add points on these lines to ``band``, the points that the names of nodes should not cover."""
        for share in np.linspace(0.1, 0.9, 9):
            self.band += [(x, y) for x, y in (ends[:, :2] + share * (ends[:, 2:] - ends[:, :2])).tolist()]

    # Marks

    def _draw_lines(self, group: Group) -> None:
        ends, rows = self._line_ends(group)
        dash = (4.0, 4.0) if group.look.is_dashed else ()
        look: dict[str, Any] = {"width": self._line_width(group.look), "opacity": group.look.alpha, "dash": dash}
        for colour, chosen in shades(group.layer, group.look, group.column("weight")[rows]):
            self.drawing.segments(ends[chosen], colour=colour, **look)
        self._avoid_lines(ends[:MOST_LINES_AVOIDED])

    def _draw_halves(self, group: Group) -> None:
        ends, rows = self._line_ends(group)
        ends[:, 2:] = (ends[:, :2] + ends[:, 2:]) / 2
        for colour, chosen in shades(group.layer, group.look, group.column("weight")[rows]):
            look: dict[str, Any] = {"width": self._line_width(group.look), "opacity": group.look.alpha}
            self.drawing.segments(ends[chosen], colour=colour, **look)

    def _draw_arrows(self, group: Group) -> None:
        look = group.look
        ends, rows = self._line_ends(group)
        weight = group.column("weight")[rows]
        thick = 0.65 * self._line_width(look)
        for colour, indices in shades(group.layer, look, weight):
            for heavy in np.unique(weight[indices]) if group.layer.scale is None else np.zeros(1):
                arrow_rows = indices[weight[indices] == heavy] if group.layer.scale is None else indices
                shifted = self._shift_lines(ends[arrow_rows], look.lane)
                self._draw_arrow_group(shifted, look, colour, thick * (1 + 0.5 * heavy), 1 + 0.12 * heavy)
        if group.layer.of_path:
            self._avoid_lines(ends[:MOST_LINES_AVOIDED])

    def _draw_arrow_group(self, ends: np.ndarray, look: Look, colour: str, width: float, growth: float) -> None:
        shown: dict[str, Any] = {"colour": colour, "width": width, "opacity": look.alpha}
        if not look.head:
            self.drawing.segments(ends, **shown)
            return
        length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
        head = np.minimum(max(1.3 * self.node, 3.5), 0.5 * length) * growth * (0.7 + 0.3 * look.least)
        self.drawing.arrows(ends, head, look.head, **shown)

    def _shift_lines(self, ends: np.ndarray, lane: float) -> np.ndarray:
        """Return lines shortened to the edges of their nodes and shifted to their right by ``lane`` node diameters."""
        direction = ends[:, 2:] - ends[:, :2]
        length = np.maximum(np.hypot(direction[:, :1], direction[:, 1:]), 1e-9)
        clear = np.minimum(self.node / length, 0.4)
        right = lane * self.diameter * np.stack([-direction[:, 1], direction[:, 0]], axis=1) / length
        return np.concatenate(
            [ends[:, :2] + clear * direction + right, ends[:, 2:] - 1.3 * clear * direction + right], axis=1
        )

    def _draw_discs(self, group: Group) -> None:
        look = group.look
        stroke = palette.OUTLINE if look.width else None
        for colour, centers in self._centers_by_colour(group):
            radius = self._look_length(look) / 2
            self.drawing.markers(look.marker, centers, radius, colour, stroke, PEN * look.width, look.alpha)

    def _draw_rings(self, group: Group) -> None:
        look = group.look
        for colour, centers in self._centers_by_colour(group):
            shown: dict[str, Any] = {"stroke": colour, "width": PEN * look.width, "opacity": look.alpha}
            dash = (3.0, 2.0) if look.is_dashed else ()
            self.drawing.circles(centers, self._look_length(look) / 2, dash=dash, **shown)

    def _draw_crosses(self, group: Group) -> None:
        look = group.look
        for colour, centers in self._centers_by_colour(group):
            shown: dict[str, Any] = {"colour": colour, "width": PEN * look.width, "opacity": look.alpha}
            self.drawing.crosses(centers, 0.8 * self._look_length(look) / 2, **shown)

    def _elapsed_share(self, group: Group) -> np.ndarray:
        """Return the share of each row's interval that has elapsed, 0 to 1."""
        start, end = group.column("from_us"), group.column("until_us")
        return (self.time_us - start) / np.maximum(end - start, 1)

    def _draw_widening_rings(self, group: Group) -> None:
        node_indices, look = self._indices_of(group), group.look
        for node_index, share in zip(node_indices.tolist(), self._elapsed_share(group).tolist(), strict=True):
            if node_index >= 0:
                radius = self.node + (self._look_length(look) / 2 - self.node) * share**0.5
                opacity = look.alpha * (0.95 - 0.7 * share)
                shown: dict[str, Any] = {"stroke": look.colour, "width": PEN * look.width, "opacity": opacity}
                self.drawing.circle(self.x[node_index], self.y[node_index], radius, **shown)

    def _draw_packets(self, group: Group) -> None:
        """Draw each frame as a dot on its way to the receiver, with a tail towards the sender."""
        ends, rows = self._line_ends(group)
        weight = group.column("weight")[rows]
        share = (self._elapsed_share(group)[rows] * np.where(weight > 0, weight, 1))[:, None]
        direction = ends[:, 2:] - ends[:, :2]
        length = np.maximum(np.hypot(direction[:, :1], direction[:, 1:]), 1e-9)
        tail = np.maximum(share - np.minimum(0.3, 5 * self.node / length), 0)
        dots, look = ends[:, :2] + share * direction, group.look
        shown: dict[str, Any] = {"colour": look.colour, "width": 2.2 * min(look.size, 1.0), "opacity": look.alpha}
        self.drawing.segments(np.concatenate([ends[:, :2] + tail * direction, dots], axis=1), **shown)
        rim = palette.BACKGROUND if look.alpha >= 1 else None
        self.drawing.markers(
            "circle", dots, self._look_length(look) / 2, look.colour, rim, PEN * look.width, look.alpha
        )

    def _draw_losses(self, group: Group) -> None:
        """Draw a cross on the link of each lost frame, smaller and fainter if the node was not the addressee."""
        ends, rows = self._line_ends(group)
        at = ends[:, 2:] + LOST_AT * (ends[:, :2] - ends[:, 2:])
        is_unicast = group.column("weight")[rows] > 0
        radius, look = 0.8 * self._look_length(group.look) / 2, group.look
        shown: dict[str, Any] = {"colour": look.colour, "width": PEN * look.width}
        self.drawing.crosses(at[is_unicast], radius, **shown)
        self.drawing.crosses(at[~is_unicast], 0.5 * radius, **{**shown, "width": 1.0, "opacity": 0.5})

    def _draw_nodes(self, groups: list[Group]) -> None:
        """Draw every node once, in the style (look) with the lowest rank.

        Of several rows with that rank, the row with the largest weight is drawn.
        """
        count = len(self.plan.ids)
        best = np.full(count, np.inf)
        looks: list[tuple[Look, Group | None, str]] = [(NODE_LOOK, None, NODE_LOOK.colour)]
        look_index = np.zeros(count, np.int64)
        for group in groups:
            node_indices, weight = self._indices_of(group), group.column("weight")
            for colour, shade_rows in shades(group.layer, group.look, weight):
                indices = node_indices[shade_rows][node_indices[shade_rows] >= 0]
                # Shades are in order from light to heavy, so the last one of a rank is the heaviest.
                indices = indices[group.look.rank <= best[indices]]
                best[indices], look_index[indices] = group.look.rank, len(looks)
                looks.append((group.look, group, colour))
        for group_index in sorted(np.unique(look_index).tolist(), key=lambda index: -looks[index][0].rank):
            look, source, colour = looks[group_index]
            node_indices = np.flatnonzero(look_index == group_index)
            width = 0.8 if self.is_roomy else 0.4
            radius = self._look_length(look) / 2
            self.drawing.markers(look.marker, self._positions_of(node_indices), radius, colour, palette.OUTLINE, width)
            if look.marker != "circle":
                self.marked_nodes += [
                    (node_index, look.label.removesuffix(" node")) for node_index in node_indices.tolist()
                ]
            if source is not None:
                self.explain(source)
            else:
                self.samples[0, "node", "", ""] = Sample("node", look)

    # Texts

    def _write_texts(self, groups: list[Group]) -> None:
        """Write labels, and the names of nodes with a special marker, where they cover as little as possible."""
        labels: dict[int, list[str]] = {}
        # Labels that the player draws below a node come first, so that its number precedes its key.
        for group in sorted(groups, key=lambda group: group.look.size):
            for node_index, word in self._label_texts(group):
                labels.setdefault(node_index, []).append(str(group.layer.words[word]))
        taken_boxes: list[Box] = []
        most_labels = MOST_LABELS * (2 if self.is_chosen else 1)
        for node_index, texts in labels.items() if len(labels) <= most_labels else ():
            self.write(node_index, ": ".join(texts), taken_boxes, is_required=False)
        named_nodes = sorted((node_index, role) for node_index, role in self.marked_nodes if node_index not in labels)
        for node_index, role in named_nodes if len(named_nodes) <= MOST_NAMES else ():
            self.write(node_index, f"{role} {self.plan.ids[node_index]}".strip(), taken_boxes)

    def _label_texts(self, group: Group) -> Iterator[tuple[int, int]]:
        """Return pairs (index of the node, index in the layer's ``words``) for the rows of a group that have a text."""
        node_indices, text = self._indices_of(group), group.column("text")
        rows = np.flatnonzero((node_indices >= 0) & (text >= 0))
        self.explain(group)
        return zip(node_indices[rows].tolist(), text[rows].tolist(), strict=True)

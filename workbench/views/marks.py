"""Functions that draw the map of a run at one time.

A layer (`layers.Layer`) is a table of visible states, such as sent frames. Each row whose interval contains the time is
drawn as a mark, such as an arrow; its look (`layers.Look`) is the style of the mark.

    moment(view, time_us, names, message)   returns the rows to draw, in a `Group` for each look
    LayerScene(view, time_us, width)        draws these groups with `draw()`, and collects the entries of the legend

A group is drawn with array operations, so the time depends on the number of looks and little on the number of rows. The
lengths in a look are multiples of a node's diameter, with a minimum in px. Lines are thinner than in the player, by the
factor `PEN`.
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
from workbench.views.still import Box, Scene, draw_area, draw_tracks

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
    "track": "_draw_tracks",
    "area": "_draw_areas",
}
LINK, WALL = Look("link (darker: better)", palette.LINK_GOOD), Look("wall", palette.WALL, least=2.5)


class Group(NamedTuple):
    """Rows of a layer with the same style (``look``) and mark. ``rows``: indices in the layer's table, ascending."""

    layer: Layer
    look: Look
    mark: str
    rows: np.ndarray

    @property
    def chip(self) -> str:
        """The name of the player's button that shows and hides the rows of the group."""
        return self.look.chip or self.layer.name

    @property
    def level(self) -> int:
        """The position of the group in the order of drawing: lower levels are drawn first (see `layers.LEVELS`)."""
        if self.layer.level is not None and self.mark == self.layer.mark:
            return self.layer.level
        return LEVELS[self.mark]

    def column(self, name: str) -> np.ndarray:
        """Return the values of the group's rows in the column ``name`` of the layer's table; shape (rows,)."""
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

    ``message``: the index of a message; a negative index counts from the end. None: the last message that began up to
    ``time_us`` if ``view.paths.is_newest`` is True, otherwise no message. Raises ParameterError for an unknown
    message.
    """
    paths = view.paths.paths
    if message is not None:
        if not -len(paths) <= message < len(paths):
            raise ParameterError(
                f"network_drawing: the argument `message` is {message!r}; "
                f"this run has paths of {len(paths)} messages, numbered from 0"
            )
        return message % len(paths)
    begun_messages = [index for index, path in enumerate(paths) if path.from_us <= time_us]
    return (
        max(begun_messages, key=lambda index: paths[index].from_us) if begun_messages and view.paths.is_newest else -1
    )


def moment(
    view: RunView, time_us: int, names: Collection[str] | None = None, message: int | None = None, has_room: bool = True
) -> list[Group]:
    """Return the rows of a run's layers that are drawn at ``time_us``, as groups in the order of drawing.

    A layer is a table of visible states, such as sent frames. A group contains rows with the same mark and style.

    names: names of the player's buttons whose layers are drawn; None: the layers that are visible at first.
    message: index of the message whose path is drawn; None: the path that the player shows at first.
    has_room: whether the map has space between nodes, so that layers with details are drawn.
    Raises ParameterError for an unknown name or message.
    """
    button_names = chips(view)
    for name in names or ():
        if name not in button_names:
            hint = meant(name, button_names)
            raise ParameterError(
                f"network_drawing: layer {name!r} is not in this run{hint}; its layers are {', '.join(button_names)}"
            )
    path_index = path_at(view, time_us, message)
    groups = []
    for layer in view.layers:
        if layer.is_detail and not has_room:
            continue
        for group in _group_rows(layer, time_us, path_index):
            if group.chip in names if names is not None else layer.is_on:
                groups.append(group)
    return sorted(groups, key=lambda group: group.level)


def _group_rows(layer: Layer, time_us: int, message: int) -> Iterator[Group]:
    alive_rows = layer.alive(time_us)
    if layer.of_path:
        alive_rows = alive_rows[layer.column("path")[alive_rows] == message] if message >= 0 else alive_rows[:0]
    look_indices = layer.column("look")[alive_rows]
    for index in np.unique(look_indices).tolist():
        style = layer.looks[index] if index < len(layer.looks) else Look()
        style_mark = style.mark or layer.mark
        if style_mark:
            yield Group(layer, style, style_mark, alive_rows[look_indices == index])


def shades(layer: Layer, look: Look, weight: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Group rows by the colour in which they are drawn: return a list of (colour, positions in ``weight``).

    ``weight``: a number from 0 to 1 for each row. The layer's scale assigns it a colour; the list is in order of
    ascending weight. If the layer has no scale, all rows have the colour of ``look``.
    """
    if layer.scale is None:
        return [(look.colour, np.arange(len(weight)))]
    colours = layer.scale.colours
    shade = np.rint(np.clip(weight, 0, 1) * (len(colours) - 1)).astype(np.int64)
    return [(colours[index], np.flatnonzero(shade == index)) for index in np.unique(shade).tolist()]


class LayerScene(Scene):
    """A picture of a run at one time, drawn from the layers of the run.

    A layer is a table of visible states, such as sent frames; each row is drawn as a mark, such as an arrow.

    groups: the rows that are drawn at this time, as returned by `moment`.
    samples, scales: the entries and the colour bars of the legend, for the layers that are drawn.
    """

    def __init__(
        self, view: RunView, time_us: int, width: int, names: Collection[str] | None = None, message: int | None = None
    ) -> None:
        super().__init__(view.plan.at(min(time_us, view.duration_us - 1)), width)
        self.view, self.time_us = view, min(time_us, view.duration_us - 1)
        self.is_roomy = self.node >= ROOM_FOR_DETAILS
        self.diameter = 2 * self.node
        self.is_chosen = names is not None
        self.groups = moment(view, self.time_us, names, message, self.is_roomy)
        self.samples: dict[tuple[int, str, str, str], Sample] = {}  # by layer, mark, label and colour
        self.scales: list[Scale] = []
        self.marked_nodes: list[tuple[int, str]] = []

    def draw(self) -> Drawing:
        """Draw the links, then the marks of all layers from the lowest to the highest level, then texts."""
        self._draw_links()
        has_nodes = False
        node_groups = [group for group in self.groups if group.mark == "node"]
        for group in self.groups:
            if not has_nodes and group.level >= LEVELS["node"]:
                self._draw_nodes(node_groups)
                has_nodes = True
            if group.mark not in ("node", "label", "strip"):
                getattr(self, _METHODS[group.mark])(group)
                self.explain(group)
        if not has_nodes:
            self._draw_nodes(node_groups)
        self._write_texts([group for group in self.groups if group.mark == "label"])
        self._draw_scale_bar()
        return self.drawing

    def entries(self) -> list[Sample]:
        """Return the entries of the legend: nodes, links and walls, then all other marks."""
        base = [Sample("line", LINK)] if len(self.plan.links["a"]) else []
        base += [Sample("line", WALL)] if len(self.walls) else []
        layer_positions = {id(layer): index for index, layer in enumerate(self.view.layers)}
        samples = [self.samples[key] for key in sorted(self.samples, key=lambda key: layer_positions.get(key[0], -1))]
        nodes = sorted((sample for sample in samples if sample.mark == "node"), key=lambda sample: sample.look.rank)
        return [*nodes, *base, *(sample for sample in samples if sample.mark != "node")]

    def explain(self, group: Group) -> None:
        """Add a group of marks of one style to the legend.

        The group gets an entry if its style has a label, and a colour bar if its layer has a scale of colours.
        """
        scale = group.layer.scale
        if scale is not None and scale.label and scale not in self.scales:
            self.scales.append(scale)
        if group.look.label:
            scale_colours = scale.colours if scale is not None else ()
            sample_key = (id(group.layer), group.mark, group.look.label, group.look.colour)
            self.samples.setdefault(sample_key, Sample(group.mark, group.look, tuple(scale_colours)))

    # Lengths and positions

    def _look_length(self, look: Look) -> float:
        return max(look.size * self.diameter, PEN * look.least)

    def _line_width(self, look: Look) -> float:
        """Return the width in px of lines in the style ``look``.

        If ``look.size`` is below 1, the width is ``look.size`` times a node's diameter, and at least `PEN` times
        ``look.least``. If ``look.size`` is 1 or more, the width is `PEN` times ``look.least``.
        """
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
        line_rows = np.flatnonzero((node >= 0) & (peer >= 0))
        return np.concatenate(
            [self._positions_of(node[line_rows]), self._positions_of(peer[line_rows])], axis=1
        ), line_rows

    def _centers_by_colour(self, group: Group) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (colour, centers of the nodes drawn in this colour) for each colour of a group.

        Centers are in px, shape (nodes, 2). Nodes that are not in the layout are left out.
        """
        node_indices = self._indices_of(group)
        node_rows = np.flatnonzero(node_indices >= 0)
        for colour, shade_rows in shades(group.layer, group.look, group.column("weight")[node_rows]):
            yield colour, self._positions_of(node_indices[node_rows[shade_rows]])

    def _reserve_lines(self, ends: np.ndarray) -> None:
        """Add nine points of each line to ``self.band``, so that the names of nodes do not cover the lines.

        ``ends``: x0, y0, x1, y1 of each line in px.
        """
        for share in np.linspace(0.1, 0.9, 9):
            self.band += [(x, y) for x, y in (ends[:, :2] + share * (ends[:, 2:] - ends[:, :2])).tolist()]

    # Marks

    def _draw_lines(self, group: Group) -> None:
        ends, line_rows = self._line_ends(group)
        dash = (4.0, 4.0) if group.look.is_dashed else ()
        line_style: dict[str, Any] = {"width": self._line_width(group.look), "opacity": group.look.alpha, "dash": dash}
        for colour, shade_rows in shades(group.layer, group.look, group.column("weight")[line_rows]):
            self.drawing.segments(ends[shade_rows], colour=colour, **line_style)
        self._reserve_lines(ends[:MOST_LINES_AVOIDED])

    def _draw_halves(self, group: Group) -> None:
        ends, line_rows = self._line_ends(group)
        ends[:, 2:] = (ends[:, :2] + ends[:, 2:]) / 2
        for colour, shade_rows in shades(group.layer, group.look, group.column("weight")[line_rows]):
            line_style: dict[str, Any] = {"width": self._line_width(group.look), "opacity": group.look.alpha}
            self.drawing.segments(ends[shade_rows], colour=colour, **line_style)

    def _draw_arrows(self, group: Group) -> None:
        look = group.look
        line_ends, line_rows = self._line_ends(group)
        weight = group.column("weight")[line_rows]
        base_width = 0.65 * self._line_width(look)
        for colour, indices in shades(group.layer, look, weight):
            for line_weight in np.unique(weight[indices]) if group.layer.scale is None else np.zeros(1):
                arrow_rows = indices[weight[indices] == line_weight] if group.layer.scale is None else indices
                shifted_ends = self._shift_lines(line_ends[arrow_rows], look.lane)
                self._draw_arrow_group(
                    shifted_ends, look, colour, base_width * (1 + 0.5 * line_weight), 1 + 0.12 * line_weight
                )
        if group.layer.of_path:
            self._reserve_lines(line_ends[:MOST_LINES_AVOIDED])

    def _draw_arrow_group(self, ends: np.ndarray, look: Look, colour: str, width: float, growth: float) -> None:
        arrow_style: dict[str, Any] = {"colour": colour, "width": width, "opacity": look.alpha}
        if not look.head:
            self.drawing.segments(ends, **arrow_style)
            return
        length = np.hypot(ends[:, 2] - ends[:, 0], ends[:, 3] - ends[:, 1])
        head = np.minimum(max(1.3 * self.node, 3.5), 0.5 * length) * growth * (0.7 + 0.3 * look.least)
        self.drawing.arrows(ends, head, look.head, **arrow_style)

    def _shift_lines(self, ends: np.ndarray, lane: float) -> np.ndarray:
        """Shorten lines between the centers of nodes to the edges of the nodes, and shift the lines to the right.

        The right side is that of a traveller from the begin to the end of a line. Return x0, y0, x1, y1 of each new
        line.

        ends: x0, y0, x1, y1 of each line in px.
        lane: the shift, as a multiple of a node's diameter.
        """
        direction = ends[:, 2:] - ends[:, :2]
        line_lengths = np.maximum(np.hypot(direction[:, :1], direction[:, 1:]), 1e-9)
        node_share = np.minimum(self.node / line_lengths, 0.4)
        offset = lane * self.diameter * np.stack([-direction[:, 1], direction[:, 0]], axis=1) / line_lengths
        return np.concatenate(
            [ends[:, :2] + node_share * direction + offset, ends[:, 2:] - 1.3 * node_share * direction + offset], axis=1
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
            ring_style: dict[str, Any] = {"stroke": colour, "width": PEN * look.width, "opacity": look.alpha}
            dash = (3.0, 2.0) if look.is_dashed else ()
            self.drawing.circles(centers, self._look_length(look) / 2, dash=dash, **ring_style)

    def _draw_crosses(self, group: Group) -> None:
        look = group.look
        for colour, centers in self._centers_by_colour(group):
            cross_style: dict[str, Any] = {"colour": colour, "width": PEN * look.width, "opacity": look.alpha}
            self.drawing.crosses(centers, 0.8 * self._look_length(look) / 2, **cross_style)

    def _elapsed_share(self, group: Group) -> np.ndarray:
        start_us, end_us = group.column("from_us"), group.column("until_us")
        return (self.time_us - start_us) / np.maximum(end_us - start_us, 1)

    def _draw_widening_rings(self, group: Group) -> None:
        node_indices, look = self._indices_of(group), group.look
        for node_index, elapsed_share in zip(node_indices.tolist(), self._elapsed_share(group).tolist(), strict=True):
            if node_index >= 0:
                radius = self.node + (self._look_length(look) / 2 - self.node) * elapsed_share**0.5
                opacity = look.alpha * (0.95 - 0.7 * elapsed_share)
                ring_style: dict[str, Any] = {"stroke": look.colour, "width": PEN * look.width, "opacity": opacity}
                self.drawing.circle(self.x[node_index], self.y[node_index], radius, **ring_style)

    def _draw_packets(self, group: Group) -> None:
        """Draw each frame as a dot between its sender and its receiver, with a tail towards the sender.

        The distance of the dot from the sender is proportional to the elapsed share of the frame's interval.
        """
        line_ends, line_rows = self._line_ends(group)
        weight = group.column("weight")[line_rows]
        dot_share = (self._elapsed_share(group)[line_rows] * np.where(weight > 0, weight, 1))[:, None]
        direction = line_ends[:, 2:] - line_ends[:, :2]
        line_lengths = np.maximum(np.hypot(direction[:, :1], direction[:, 1:]), 1e-9)
        tail_share = np.maximum(dot_share - np.minimum(0.3, 5 * self.node / line_lengths), 0)
        dots, look = line_ends[:, :2] + dot_share * direction, group.look
        tail_style: dict[str, Any] = {"colour": look.colour, "width": 2.2 * min(look.size, 1.0), "opacity": look.alpha}
        self.drawing.segments(np.concatenate([line_ends[:, :2] + tail_share * direction, dots], axis=1), **tail_style)
        rim = palette.BACKGROUND if look.alpha >= 1 else None
        self.drawing.markers(
            "circle", dots, self._look_length(look) / 2, look.colour, rim, PEN * look.width, look.alpha
        )

    def _draw_losses(self, group: Group) -> None:
        """Draw a cross on the link of each lost frame; the cross is small unless the frame was sent to this node only.

        A row of ``group`` is about a frame from ``peer`` that ``node`` lost.
        """
        ends, line_rows = self._line_ends(group)
        centers = ends[:, 2:] + LOST_AT * (ends[:, :2] - ends[:, 2:])
        is_unicast = group.column("weight")[line_rows] > 0
        radius, look = 0.8 * self._look_length(group.look) / 2, group.look
        cross_style: dict[str, Any] = {"colour": look.colour, "width": PEN * look.width}
        self.drawing.crosses(centers[is_unicast], radius, **cross_style)
        self.drawing.crosses(centers[~is_unicast], 0.5 * radius, **{**cross_style, "width": 1.0, "opacity": 0.5})

    def _draw_tracks(self, group: Group) -> None:
        """Draw the tracks of moving nodes around the present: solid behind a node, dashed ahead of it."""
        tracks = getattr(self.view.plan, "tracks", None)
        if tracks is None:
            return
        chosen = np.flatnonzero(np.isin(tracks.nodes, self._indices_of(group)))
        draw_tracks(self, tracks, chosen, self.time_us, self.view.duration_us, group.look)

    def _draw_areas(self, group: Group) -> None:
        """Draw each area as a pale disc with a diamond in its center."""
        look, names = group.look, ("x_m", "y_m", "radius_m")
        for x_m, y_m, radius_m in zip(*(group.column(name).tolist() for name in names), strict=True):
            draw_area(self, (x_m, y_m), radius_m, look)

    def _draw_nodes(self, groups: list[Group]) -> None:
        """Draw every node once, in the style (look) with the lowest rank.

        Of several groups with this rank, the last one is drawn; of several rows of a group, the row with the largest
        weight. ``groups``: the groups with the mark "node".
        """
        node_count = len(self.plan.ids)
        lowest_ranks = np.full(node_count, np.inf)
        drawn_styles: list[tuple[Look, Group | None, str]] = [(NODE_LOOK, None, NODE_LOOK.colour)]
        look_index = np.zeros(node_count, np.int64)
        for group in groups:
            node_indices, weight = self._indices_of(group), group.column("weight")
            for colour, shade_rows in shades(group.layer, group.look, weight):
                indices = node_indices[shade_rows][node_indices[shade_rows] >= 0]
                # Shades are in order from light to heavy, so the last one of a rank is the heaviest.
                indices = indices[group.look.rank <= lowest_ranks[indices]]
                lowest_ranks[indices], look_index[indices] = group.look.rank, len(drawn_styles)
                drawn_styles.append((group.look, group, colour))
        for group_index in sorted(np.unique(look_index).tolist(), key=lambda index: -drawn_styles[index][0].rank):
            look, source_group, colour = drawn_styles[group_index]
            node_indices = np.flatnonzero(look_index == group_index)
            width = 0.8 if self.is_roomy else 0.4
            radius = self._look_length(look) / 2
            positions = self._positions_of(node_indices)
            if look.is_dashed:
                self.drawing.circles(positions, radius, stroke=colour, width=1.0, dash=(1.5, 1.5))
            else:
                self.drawing.markers(look.marker, positions, radius, colour, palette.OUTLINE, width)
            if look.marker != "circle":
                self.marked_nodes += [
                    (node_index, look.label.removesuffix(" node")) for node_index in node_indices.tolist()
                ]
            if source_group is not None:
                self.explain(source_group)
            else:
                self.samples[0, "node", "", ""] = Sample("node", look)

    # Texts

    def _write_texts(self, groups: list[Group]) -> None:
        """Write labels and the names of marked nodes, such as sinks, where they cover as little as possible.

        If there are too many labels, no label is written; the same rule holds for names. ``groups``: the groups with
        the mark "label".
        """
        labels_of_node: dict[int, list[str]] = {}
        # Labels that the player draws below a node come first, so that its number precedes its key.
        for group in sorted(groups, key=lambda group: group.look.size):
            for node_index, text_index in self._label_texts(group):
                labels_of_node.setdefault(node_index, []).append(str(group.layer.words[text_index]))
        taken_boxes: list[Box] = []
        most_labels = MOST_LABELS * (2 if self.is_chosen else 1)
        for node_index, label_texts in labels_of_node.items() if len(labels_of_node) <= most_labels else ():
            self.write(node_index, ": ".join(label_texts), taken_boxes, is_required=False)
        named_nodes = sorted(
            (node_index, role) for node_index, role in self.marked_nodes if node_index not in labels_of_node
        )
        for node_index, role in named_nodes if len(named_nodes) <= MOST_NAMES else ():
            self.write(node_index, f"{role} {self.plan.ids[node_index]}".strip(), taken_boxes)

    def _label_texts(self, group: Group) -> Iterator[tuple[int, int]]:
        """Yield (index of the node, index of the text in the layer's ``words``) for each row that has a text."""
        node_indices, text_indices = self._indices_of(group), group.column("text")
        text_rows = np.flatnonzero((node_indices >= 0) & (text_indices >= 0))
        self.explain(group)
        return zip(node_indices[text_rows].tolist(), text_indices[text_rows].tolist(), strict=True)

"""A small picture and a summary of a network: notebooks display them for topologies and scenarios.

    of_network(graph)                     the mimebundle of a topology: plain text, and HTML with the picture
    of_scenario(scenario)                 the mimebundle of a scenario, with the same parts
    Picture(graph, workload=(), scenario=None).draw()    the picture alone, a `Drawing`

A picture shows nodes, links by their quality, and the roles of nodes in a workload: sinks, sources, nodes that are down
for a time. For a scenario, it also shows tracks of moving nodes, jammers, and the nodes that a partition separates.
A large network is drawn as dots without links, and a note states this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from html import escape
from typing import Any

import networkx as nx
import numpy as np

from workbench.sim.changes.arcs import tracks
from workbench.sim.changes.items import Jam
from workbench.views import caption, palette
from workbench.views.changes import JAMMER, SEPARATED, TRACK
from workbench.views.changing_layout import ChangingLayout, lay_out_scenario, list_vertices
from workbench.views.drawing import Drawing
from workbench.views.layers import Look
from workbench.views.layout import Layout, thinned, whole
from workbench.views.legend import Sample, legend_drawing
from workbench.views.marks import LINK, MOST_NAMES, PEN, WALL
from workbench.views.nodes import FAILED, SINK, SOURCE
from workbench.views.seeing import NODE_LOOK
from workbench.views.still import Box, Scene, draw_area, draw_tracks

WIDTH, TALLEST = 400, 260  # px, the width of the picture and the greatest height of the map in it
MOST_WITH_LINKS = 1500  # nodes; larger networks are drawn without links
LINKS_PER_NODE = 4
MOST_DOTS = 10_000
MOST_TRACKS = 200
FIRST_S = 0.001  # the part of a scenario whose links are drawn, if nodes move
MOST_MARKS = 300  # sinks or sources that have their own mark among dots
THINNEST, WIDEST = 0.7, 5.0  # px, a node's radius

OFF = FAILED._replace(label="off for a time")
DOT = Look("node", palette.OUTLINE)


def of_network(graph: nx.Graph, **_options: Any) -> dict[str, Any]:
    """Return the mimebundle of a topology. It has only plain text if the graph is not valid in a scenario."""
    try:
        picture = Picture(graph)
    except (KeyError, TypeError, ValueError, OverflowError):
        return {"text/plain": f"{graph}, which is not valid in a scenario; topology.check(graph) raises the error"}
    return {
        "text/plain": picture.sentence,
        "text/html": f"{picture.draw().to_image_html()}<p>{_notes_html(picture)}</p>",
    }


def of_scenario(scenario: Any, **_options: Any) -> dict[str, Any]:
    """Return the mimebundle of a scenario: plain text, and HTML with the picture."""
    picture = Picture(scenario.topology, scenario.workload, scenario)
    details = " · ".join(
        caption_text for caption_text in (caption.workload(scenario), caption.conditions(scenario)) if caption_text
    )
    heading = f"<p><strong>{escape(caption.title(scenario))}</strong><br>{escape(details)}</p>"
    drawing, notes_html = picture.draw().to_image_html(), _notes_html(picture)
    next_step = "<code>scenario.run()</code> runs it."
    return {
        "text/plain": repr(scenario),
        "text/html": f"{heading}{drawing}<p>{notes_html}<br>{next_step}</p>",
    }


def _add_changes(plan: Layout, scenario: Any) -> Layout:
    """Return the layout with the tracks and the jammers of a scenario added.

    Positions and links of the layout are those at time 0. Without tracks and jammers, the layout is returned unchanged.
    """
    vertices = list_vertices(tracks(scenario), plan, round(scenario.duration_s * 1e6), [])
    jammers_m = np.array([(item.x_m, item.y_m) for item in scenario.workload if isinstance(item, Jam)], float)
    if vertices is None and not len(jammers_m):
        return plan
    columns: dict[str, Any] = {field.name: getattr(plan, field.name) for field in fields(plan)}
    if vertices is not None:
        # The links of the first instant, which are quicker to compute than those of the whole run.
        start = lay_out_scenario(scenario.replace(duration_s=FIRST_S))
        columns |= {"x_m": start.x_m, "y_m": start.y_m, "links": start.links}
    return ChangingLayout(**columns, tracks=vertices, marked_m=jammers_m.reshape(-1, 2))


def _notes_html(picture: Picture) -> str:
    return escape(" ".join((picture.sentence, *picture.notes)))


def _summarize(graph: nx.Graph, plan: Layout) -> str:
    """Return a text with the number of nodes, links and neighbors, the delivery ratios, and the area of a network.

    If the network is not connected, the text also states the number of its components.
    """
    area = f"{np.ptp(plan.x_m):,.4g} × {np.ptp(plan.y_m):,.4g} m"
    pdr = np.stack([plan.links["pdr_ab"], plan.links["pdr_ba"]])
    delivers = pdr > 0
    pair_count, one_way_count = int(delivers.any(axis=0).sum()), int((delivers[0] != delivers[1]).sum())
    if not pair_count:
        return f"{caption.nodes(graph)} without a link; {area}."
    one_way_note = f", {one_way_count:,} of them one-way" if one_way_count else ""
    links = f"{pair_count:,} {'link' if pair_count == 1 else 'links'}{one_way_note}"
    links += f", delivering {_describe_delivery(pdr[delivers])}"
    part_count = (nx.number_weakly_connected_components if graph.is_directed() else nx.number_connected_components)(
        graph
    )
    components = f" It is in {part_count:,} parts without a link between them." if part_count > 1 else ""
    return f"{caption.nodes(graph)}: {links}; {2 * pair_count / len(graph):.1f} neighbors a node; {area}.{components}"


def _describe_delivery(pdr: np.ndarray) -> str:
    worst_pdr, best_pdr = float(pdr.min()), float(pdr.max())
    if worst_pdr == best_pdr:
        return "everything" if worst_pdr == 1 else f"{worst_pdr:.0%} of frames"
    return f"{worst_pdr:.0%} to {best_pdr:.0%} of frames (median {float(np.median(pdr)):.0%})"


class Picture(Scene):
    """A picture of a network and of the roles of its nodes in a workload, on a small page.

    sentence: a summary of the network. notes: sentences about links and nodes that are not drawn and about positions
    that are estimated.
    """

    def __init__(self, graph: nx.Graph, workload: Iterable[Any] = (), scenario: Any = None) -> None:
        self.is_map = len(graph) > MOST_WITH_LINKS
        plan = whole(graph)
        self.sentence = _summarize(graph, plan)
        plan = plan if scenario is None else _add_changes(plan, scenario)
        self.duration_us = round(scenario.duration_s * 1e6) if scenario is not None else 0
        super().__init__(thinned(plan, 0 if self.is_map else LINKS_PER_NODE), WIDTH, TALLEST)
        self.title = caption.nodes(graph)
        self.node = float(np.clip(0.15 * self.plan.spacing_m * self.scale, THINNEST, WIDEST))
        self.notes = list(self.plan.notes)
        self.entries: list[Sample] = []
        workload = list(workload)
        self.roles = self._find_roles(workload)
        self.jammers = [item for item in workload if isinstance(item, Jam)]

    def draw(self) -> Drawing:
        """Return the map with its legend below."""
        self._draw_links()
        change_entries = self._draw_changes()
        marked_nodes = np.union1d(self.roles[SOURCE], self.roles[SINK])
        self._draw_plain_nodes(np.setdiff1d(np.arange(len(self.plan.ids)), marked_nodes))
        for look in (SOURCE, SINK):
            self._draw_marks(look, self.roles[look])
        self._draw_marks(OFF, self.roles[OFF])
        self._write_names()
        self._draw_scale_bar()
        page = Drawing(self.width, self.height, title=self.title)
        page.add(self.drawing, 0, 0)
        legend = legend_drawing([*self.entries, *change_entries, *self._link_entries()], self.width)
        page.add(legend, 0, page.height)
        page.height += legend.height
        return page

    def _find_roles(self, workload: Iterable[Any]) -> dict[Look, np.ndarray]:
        """Return {style of a role: indices of the nodes with this role}; a style is a `layers.Look`.

        The roles are: sinks; sources that are not sinks; nodes that are not in the network at some time, for example
        after a crash; and nodes that a partition separates.
        """
        # The nodes of a reinforcement are sinks anyway.
        by_kind = {"subscribe": SINK, "reinforce": SINK, "publish": SOURCE, "partition": SEPARATED}
        by_kind |= dict.fromkeys(("outage", "crash", "join", "leave"), OFF)
        nodes_of_look: dict[Look, list[int]] = {SINK: [], SOURCE: [], OFF: [], SEPARATED: []}
        for item in workload:
            look = by_kind.get(type(item).__name__.lower())
            if look is not None:
                nodes_of_look[look] += self.plan.ids.tolist() if isinstance(item.at, str) else item.at
        node_indices = {
            look: np.unique(self.plan.indices(np.array(node_list, np.int64)))
            for look, node_list in nodes_of_look.items()
        }
        node_indices[SOURCE] = np.setdiff1d(node_indices[SOURCE], node_indices[SINK])
        return node_indices

    def _draw_changes(self) -> list[Sample]:
        """Draw jammers, tracks, and discs under the nodes that a partition separates; return entries of the legend."""
        entries = []
        for item in self.jammers:
            draw_area(self, (item.x_m, item.y_m), item.radius_m, JAMMER)
        tracks = self.plan.tracks if isinstance(self.plan, ChangingLayout) else None
        if tracks is not None:
            numbers = np.arange(len(tracks.nodes))
            if len(numbers) > MOST_TRACKS:
                self.notes.append(f"Of {len(numbers):,} tracks {MOST_TRACKS} are drawn.")
                numbers = numbers[np.linspace(0, len(numbers) - 1, MOST_TRACKS).astype(np.int64)]
            draw_tracks(self, tracks, numbers, 0, self.duration_us, TRACK)
            entries.append(Sample("track", TRACK))
        separated = self.roles[SEPARATED]
        if len(separated):
            radius = max(SEPARATED.size * self.node, PEN * SEPARATED.least / 2)
            self.drawing.circles(self._positions_of(separated), radius, fill=SEPARATED.colour, opacity=SEPARATED.alpha)
            entries.append(Sample("disc", SEPARATED))
        return entries + ([Sample("area", JAMMER)] if self.jammers else [])

    def _positions_of(self, node_indices: np.ndarray) -> np.ndarray:
        return np.stack([self.x[node_indices], self.y[node_indices]], axis=1)

    def _draw_plain_nodes(self, node_indices: np.ndarray) -> None:
        if self.is_map:
            self._draw_dots(DOT, node_indices)
        elif len(node_indices):
            self.drawing.markers(
                "circle", self._positions_of(node_indices), self.node, NODE_LOOK.colour, palette.OUTLINE, PEN
            )
            self.entries.append(Sample("node", NODE_LOOK))

    def _draw_dots(self, look: Look, node_indices: np.ndarray) -> None:
        """Draw nodes as dots of one colour, and add a dot to the legend.

        If the nodes are more than `MOST_DOTS`, only every n-th node is drawn, and a note states this. ``look``: the
        style of the dots. ``node_indices``: indices of the nodes in the layout. A dot is a line of length 0 with round
        ends, which is quicker to draw than a circle.
        """
        step = -(-len(node_indices) // MOST_DOTS)
        if step > 1:
            self.notes.append(f"Of these nodes, one in {step} is drawn.")
        if len(node_indices):
            line_ends = np.tile(self._positions_of(node_indices[::step]), 2)
            self.drawing.segments(line_ends, colour=look.colour, width=2 * self.node)
            self.entries.append(Sample("node", look))

    def _draw_marks(self, look: Look, node_indices: np.ndarray) -> None:
        if self.is_map and len(node_indices) > MOST_MARKS:
            self._draw_dots(look._replace(marker="circle"), node_indices)
        elif len(node_indices):
            radius = max(look.size * self.node, PEN * look.least / 2)
            self.drawing.markers(
                look.marker, self._positions_of(node_indices), radius, look.colour, palette.OUTLINE, PEN
            )
            self.entries.append(Sample("node", look))

    def _write_names(self) -> None:
        named_nodes = [(node_index, look) for look in (SINK, SOURCE) for node_index in self.roles[look].tolist()]
        taken_boxes: list[Box] = []
        for node_index, look in named_nodes if len(named_nodes) <= MOST_NAMES else ():
            self.write(node_index, f"{look.label} {self.plan.ids[node_index]}", taken_boxes, is_required=False)

    def _link_entries(self) -> list[Sample]:
        links = [Sample("line", LINK)] if len(self.plan.links["a"]) else []
        return [*links, *([Sample("line", WALL)] if len(self.walls) else [])]

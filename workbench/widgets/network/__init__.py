"""A panel to compose a network with the mouse: generators with sliders, testbeds, tables, and an editable map.

Theory of operation
    A graph is never modified: every edit makes a new graph (`workbench.topology.edits`). A generated network keeps its
    recipe, the parameters of its generator, until the user edits the network by hand. In some networks, positions
    determine the links (within a radius, or by radio propagation). There all links are computed again when a node is
    moved, added or erased, unless the user switches that off or has edited links. In other networks a moved node keeps
    its links. The form of a generator is hidden once a network was edited, as it would replace the network.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets
import networkx as nx
import traitlets

from workbench.errors import ParameterError, WorkbenchError
from workbench.topology import check, edits, grid
from workbench.topology.graphs import LARGEST_COORDINATE_M, number
from workbench.widgets.network.map import ASKS, ROLES, TOOLS, NetworkMap, packed
from workbench.widgets.network.sources import Sources
from workbench.widgets.panel import Panel

__all__ = ["ASKS", "ROLES", "TOOLS", "Network"]

MOST_UNDONE = 100
ONE_GESTURE_S = 1.0  # changes at shorter intervals are one step for undo


class Network(Panel):
    """A panel to compose a network. ``value``: a networkx DiGraph in the normal form of `workbench.topology`.

    undo: whether the panel has buttons to undo and redo.
    asks: the roles, a selection of `ASKS`, for which the panel has a button. The panel only reports a press in
        ``asked``; the program that uses the panel gives the role to the selected nodes. None means no buttons if
        ``undo`` is True, else buttons for all roles except "subscribe" and "publish".

    picked   the nodes that are selected on the map, a list
    tool     "select", "node" (a click adds a node), "link" (drag from node to node), "erase" or "waypoint" (a click
             adds a waypoint to the path of the selected nodes; only if ``asks`` is None and ``undo`` is False)
    marks    {node: "sink" | "source" | "down"}: roles to draw; the program that uses the panel sets them
    overlay  paths of nodes and jammers to draw, see `workbench.widgets.workload.overlay`; the program sets them
    asked    {"do": the role of the button, "nodes": [...], "count": number of presses so far}
    overlay_edit  the last edit of the overlay: {"do": "add", "nodes", "x_m", "y_m"} for a waypoint, {"do": "move",
             "item", "point", "x_m", "y_m"} or {"do": "erase", "item", "point"}; "count": number of such edits so far

    Raises ScenarioError for a value that is not a valid graph.
    """

    picked = traitlets.List(traitlets.Int())
    tool = traitlets.Enum(TOOLS, "select")
    marks = traitlets.Dict()
    overlay = traitlets.List()
    asked = traitlets.Dict()
    overlay_edit = traitlets.Dict()

    def __init__(self, value: nx.Graph | None = None, undo: bool = True, asks: tuple[str, ...] | None = None) -> None:
        buttons = (() if undo else ASKS[:-2]) if asks is None else asks
        self.map = NetworkMap(asks=[ask for ask in ASKS if ask in buttons], has_waypoints=asks is None and not undo)
        self.sources = Sources(self._show_generated)
        self.follows = widgets.Checkbox(True, description="links follow nodes", indent=False)
        self.follows.tooltip = "On: a node that is moved gets the links of its new position. Off: it keeps its links"
        self._history: _History | None = _History() if undo else None
        self._last_made_s = -math.inf
        self._parts_on_map: tuple[Any, ...] = ()
        super().__init__(grid(5, 5) if value is None else value, (self.sources, self.follows, self.map))
        for name in ("picked", "tool", "overlay"):
            traitlets.link((self, name), (self.map, name))
        self.map.on_msg(self._handle_message)
        self.observe(self._send_roles, "marks")
        self._show_history()

    @traitlets.validate("value")
    def _normalize_value(self, proposal: Any) -> nx.DiGraph:
        graph = proposal["value"]
        return graph if isinstance(graph, nx.DiGraph) and "digest" in graph.graph else check(graph)

    def draw(self, value: nx.DiGraph) -> None:
        """Show a network that the program has set, in the form and on the map."""
        self.sources.show(value)
        self._send_to_map(value)

    def undo(self) -> None:
        """Restore the network before the last change. Do nothing without such a change, or if ``undo`` is False."""
        if self._history is not None and self._history.before:
            self.value = self._history.back(self.value)
            self._show_history()

    def redo(self) -> None:
        """Restore the network that the last `undo` replaced; do nothing without undo, or if a change followed it."""
        if self._history is not None and self._history.after:
            self.value = self._history.forward(self.value)
            self._show_history()

    # Actions of the user

    def _show_generated(self, graph: nx.DiGraph) -> None:
        """Replace the network by one that a generator made from its form.

        Networks that replace each other quickly, as while the user moves a slider, are undone together.
        """
        now_s = time.perf_counter()
        is_same_gesture = now_s - self._last_made_s < ONE_GESTURE_S
        self._last_made_s = now_s
        self._replace_network(graph, not is_same_gesture)

    def _replace_network(self, graph: nx.DiGraph, is_undoable: bool = True) -> None:
        if self._history is not None and is_undoable:
            self._history.keep(self.value)
            self._show_history()
        self._send_to_map(graph)
        self.offer(graph)

    def _handle_message(self, _: Any, message: Any, buffers: Any) -> None:
        """Apply an edit that the user made on the map. For an invalid message, change nothing and show an error."""
        try:
            edit_kind = message["kind"]
            if edit_kind in ("undo", "redo"):
                getattr(self, edit_kind)()
            elif edit_kind == "ask":
                self._report_press(str(message["do"]), [int(node) for node in message["nodes"]])
            elif edit_kind in _OVERLAY_EDITS:
                self._report_overlay_edit(_OVERLAY_EDITS[edit_kind], message)
                self._show_message(sentence(self.value))
            else:
                self._apply_edit(edit_kind, message)
        except (WorkbenchError, KeyError, TypeError, ValueError, OverflowError) as error:
            self._show_message(
                str(error)
                if isinstance(error, WorkbenchError)
                else "The map sent an invalid edit; nothing was changed.",
                is_error=True,
            )
            self.map.send_state("payload")  # The map has already drawn the edit.

    def _apply_edit(self, kind: str, message: Mapping[str, Any]) -> None:
        new_graph, new_selection = EDITS[kind](self.value, message)
        if new_graph is not None:
            moves_nodes = kind in ("move", "add") or (kind == "erase" and not message.get("links"))
            rule = edits.link_rule(self.value) if moves_nodes and self.follows.value else None
            if rule is not None:
                new_graph = edits.linked_again(new_graph, rule)
            self._last_made_s = -math.inf
            self._replace_network(new_graph)
            self.sources.show(new_graph)
        if new_selection is not None:
            self.picked = new_selection

    def _report_press(self, do: str, nodes: list[int]) -> None:
        if do not in ASKS:
            raise ParameterError(f"The role is {do!r:.40}; it must be one of {', '.join(ASKS)}.")
        known_nodes = [node for node in nodes if node in self.value]
        self.asked = {"do": do, "nodes": known_nodes, "count": self.asked.get("count", 0) + 1}

    def _report_overlay_edit(self, do: str, message: Mapping[str, Any]) -> None:
        edit: dict[str, Any] = {"do": do, "count": self.overlay_edit.get("count", 0) + 1}
        if do == "add":
            edit["nodes"] = [int(node) for node in message["nodes"] if node in self.value]
        else:
            edit |= {"item": int(message["item"]), "point": int(message["point"])}
        if do != "erase":
            x_m, y_m = (number(name, message[name[0]], -LARGEST_COORDINATE_M, LARGEST_COORDINATE_M) for name in _PLACE)
            edit |= {"x_m": x_m, "y_m": y_m}
        self.overlay_edit = edit

    # Display

    def _send_to_map(self, graph: nx.DiGraph) -> None:
        """Show a network on the map and a summary below. A network that the map shows already is not sent again."""
        drawn_parts = (graph.graph["digest"], graph.graph.get("walls"), graph.graph.get("positions_estimated"))
        if drawn_parts != self._parts_on_map:
            self._parts_on_map = drawn_parts
            self.map.payload = packed(graph)
        self.follows.layout.display = None if edits.has_link_rule(graph) else "none"
        self.picked = [node for node in self.picked if node in graph]
        self._show_message(sentence(graph))

    def _show_message(self, text: str, is_error: bool = False) -> None:
        with self.map.hold_sync():
            self.map.message, self.map.is_error = text, is_error

    def _send_roles(self, change: Any) -> None:
        self.map.roles = [[int(node), role] for node, role in change.new.items() if role in ROLES]

    def _show_history(self) -> None:
        if self._history is not None:
            self.map.history = {"undo": bool(self._history.before), "redo": bool(self._history.after)}


class _History:
    """The past networks, for undo, and the undone networks, for redo.

    ``before``: past networks, the newest last. ``after``: undone networks, the most recently undone last.
    """

    def __init__(self) -> None:
        self.before: list[nx.DiGraph] = []
        self.after: list[nx.DiGraph] = []

    def keep(self, graph: nx.DiGraph) -> None:
        """Store the network ``graph``, which another one is about to replace, and forget undone networks."""
        self.before = [*self.before[-MOST_UNDONE + 1 :], graph]
        self.after = []

    def back(self, current: nx.DiGraph) -> nx.DiGraph:
        self.after.append(current)
        return self.before.pop()

    def forward(self, current: nx.DiGraph) -> nx.DiGraph:
        self.before.append(current)
        return self.after.pop()


def sentence(graph: nx.DiGraph) -> str:
    """Return a summary of a network: the number of nodes and of links (arcs).

    If not all nodes can reach each other, the summary also states the number of strongly connected components.
    """
    count = f"{len(graph):,} node{'s' if len(graph) != 1 else ''}, {graph.number_of_edges():,} links"
    part_count = nx.number_strongly_connected_components(graph)
    return count if part_count == 1 else f"{count}; in {part_count:,} parts that do not all reach each other"


_OVERLAY_EDITS = {"add_waypoint": "add", "move_point": "move", "erase_point": "erase"}
_PLACE = ("x_m", "y_m")

# Edits: (graph, message) -> (new graph or None, nodes to select or None)

_Edited = tuple[nx.DiGraph | None, list[int] | None]


def _move_nodes(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    positions = zip(message["x"], message["y"], strict=True)
    return edits.moved(graph, dict(zip(message["nodes"], positions, strict=True))), None


def _add_node(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    return edits.with_node(graph, (message["x"], message["y"])), [edits.next_node(graph)]


def _join_nodes(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    """Add links between pairs of nodes, in both directions and without loss. Existing links remain unchanged.

    ``message``: the edit that the map sent; its entry "links" is a list of pairs of nodes. Returns (the new graph,
    None), or (None, None) if all of these links exist already.
    """
    node_pairs = [pair for a, b in message["links"] for pair in ((a, b), (b, a))]
    new_links = {pair: 1.0 for pair in node_pairs if not graph.has_edge(*pair)}
    return (edits.with_links(graph, new_links) if new_links else None), None


def _set_quality(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    a, b = message["a"], message["b"]
    ratios = {pair: message[name] for pair, name in (((a, b), "ab"), ((b, a), "ba")) if name in message}
    return (edits.with_links(graph, ratios) if ratios else None), None


def _erase_items(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    links = [(a, b) for a, b in message.get("links", ())]
    return edits.without(graph, message.get("nodes", ()), links), None


EDITS: dict[str, Callable[[nx.DiGraph, Mapping[str, Any]], _Edited]] = {
    "move": _move_nodes,
    "add": _add_node,
    "join": _join_nodes,
    "quality": _set_quality,
    "erase": _erase_items,
}

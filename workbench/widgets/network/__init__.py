"""A network, composed with the mouse: generators with sliders, testbeds, tables, and a map on which it is changed.

Theory of operation
    A graph is a value: every edit makes a new one (`workbench.topology.edits`) and leaves the old. What a generator
    made keeps its recipe until it is changed by hand. A node that is moved keeps its links; a slider of the generator
    makes the network anew, with what was changed by hand gone (and back with undo).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import networkx as nx
import traitlets

from workbench.errors import ParameterError, WorkbenchError
from workbench.topology import check, edits, grid
from workbench.widgets.network.map import ASKS, ROLES, TOOLS, NetworkMap, packed
from workbench.widgets.network.sources import Sources
from workbench.widgets.part import Part

__all__ = ["ASKS", "ROLES", "TOOLS", "Network"]

MOST_UNDONE = 100
ONE_PULL_S = 1.0


class Network(Part):
    """A network to compose. ``value``: a networkx DiGraph in the normal form of `workbench.topology`.

    undo: whether it has buttons to undo and redo. asks: which roles (`ASKS`) have a button that acts on picked nodes;
    the part does not keep roles, it only says what is asked for. None: sink, source and fail where somebody
    else keeps roles and undo (``undo=False``), else none.

    picked   the nodes that are picked on the map, a list
    tool     "select", "node" (a click adds one), "link" (from node to node), "erase"
    marks    {node: "sink" | "source" | "down"}: drawn as the player draws them; for whoever knows the roles
    asked    {"do": one of `ASKS`, "nodes": [...], "count": how many times something was asked}

    ScenarioError for a value that is no usable graph.
    """

    picked = traitlets.List(traitlets.Int())
    tool = traitlets.Enum(TOOLS, "select")
    marks = traitlets.Dict()
    asked = traitlets.Dict()

    def __init__(self, value: nx.Graph | None = None, undo: bool = True, asks: tuple[str, ...] | None = None) -> None:
        shown = (() if undo else ASKS[:3]) if asks is None else asks
        self.map = NetworkMap(asks=[ask for ask in ASKS if ask in shown])
        self.sources = Sources(self._make)
        self._history: _History | None = _History() if undo else None
        self._made_s = -math.inf
        self._painted: tuple[Any, ...] = ()
        super().__init__(grid(5, 5) if value is None else value, (self.sources, self.map))
        for name in ("picked", "tool"):
            traitlets.link((self, name), (self.map, name))
        self.map.on_msg(self._hear)
        self.observe(self._marked, "marks")
        self._tell_history()

    @traitlets.validate("value")
    def _in_normal_form(self, proposal: Any) -> nx.DiGraph:
        graph = proposal["value"]
        return graph if isinstance(graph, nx.DiGraph) and "digest" in graph.graph else check(graph)

    def draw(self, value: nx.DiGraph) -> None:
        """Show a network that came from elsewhere."""
        self.sources.show(value)
        self._paint(value)

    def undo(self) -> None:
        """Back to the network before the last change, where the part has its own undo."""
        if self._history is not None and self._history.before:
            self.value = self._history.back(self.value)
            self._tell_history()

    def redo(self) -> None:
        """To the network that the last undo left."""
        if self._history is not None and self._history.after:
            self.value = self._history.on(self.value)
            self._tell_history()

    # What the user does

    def _make(self, graph: nx.DiGraph) -> None:
        """A source has made a network. The moves of a slider in one pull are one change for undo."""
        now_s = time.perf_counter()
        is_going_on = now_s - self._made_s < ONE_PULL_S
        self._made_s = now_s
        self._change(graph, not is_going_on)

    def _change(self, graph: nx.DiGraph, is_kept: bool = True) -> None:
        """The user has made another network; ``is_kept``: undo leads back to the one before."""
        if self._history is not None and is_kept:
            self._history.keep(self.value)
            self._tell_history()
        self._paint(graph)
        self.offer(graph)

    def _hear(self, _: Any, message: Any, buffers: Any) -> None:
        """A message of the map. One that makes no sense changes nothing."""
        try:
            kind = message["kind"]
            if kind in ("undo", "redo"):
                getattr(self, kind)()
            elif kind == "ask":
                self._ask(str(message["do"]), [int(node) for node in message["nodes"]])
            else:
                self._edit(kind, message)
        except (WorkbenchError, KeyError, TypeError, ValueError, OverflowError) as error:
            self._say(str(error) if isinstance(error, WorkbenchError) else "This could not be changed.", is_error=True)
            self.map.send_state("parcel")  # The map has drawn the change before it was made.

    def _edit(self, kind: str, message: Mapping[str, Any]) -> None:
        changed, picked = EDITS[kind](self.value, message)
        if changed is not None:
            self._made_s = -math.inf
            self._change(changed)
            self.sources.show(changed)
        if picked is not None:
            self.picked = picked

    def _ask(self, do: str, nodes: list[int]) -> None:
        if do not in ASKS:
            raise ParameterError(f"The map cannot ask for {do!r:.40}.")
        known = [node for node in nodes if node in self.value]
        self.asked = {"do": do, "nodes": known, "count": self.asked.get("count", 0) + 1}

    # What the map shows

    def _paint(self, graph: nx.DiGraph) -> None:
        """Show a network; one that is shown already, as when an edit comes back as a value, is not sent again."""
        shown = (graph.graph["digest"], graph.graph.get("walls"), graph.graph.get("positions_estimated"))
        if shown != self._painted:
            self._painted = shown
            self.map.parcel = packed(graph)
        self.picked = [node for node in self.picked if node in graph]
        self._say(sentence(graph))

    def _say(self, said: str, is_error: bool = False) -> None:
        with self.map.hold_sync():
            self.map.said, self.map.is_error = said, is_error

    def _marked(self, change: Any) -> None:
        self.map.roles = [[int(node), role] for node, role in change.new.items() if role in ROLES]

    def _tell_history(self) -> None:
        if self._history is not None:
            self.map.history = {"undo": bool(self._history.before), "redo": bool(self._history.after)}


class _History:
    """The networks before and after the one that is shown, the next one last."""

    def __init__(self) -> None:
        self.before: list[nx.DiGraph] = []
        self.after: list[nx.DiGraph] = []

    def keep(self, graph: nx.DiGraph) -> None:
        """A network that is about to be replaced."""
        self.before = [*self.before[-MOST_UNDONE + 1 :], graph]
        self.after = []

    def back(self, now: nx.DiGraph) -> nx.DiGraph:
        self.after.append(now)
        return self.before.pop()

    def on(self, now: nx.DiGraph) -> nx.DiGraph:
        self.before.append(now)
        return self.after.pop()


def sentence(graph: nx.DiGraph) -> str:
    """What there is to say of a network in a line."""
    count = f"{len(graph):,} node{'s' if len(graph) != 1 else ''}, {graph.number_of_edges():,} links"
    parts = nx.number_strongly_connected_components(graph)
    return count if parts == 1 else f"{count}; in {parts:,} parts that do not all reach each other"


# Edits: (graph, message) -> (new graph or None, nodes to pick or None)

_Edited = tuple[nx.DiGraph | None, list[int] | None]


def _move(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    places = zip(message["x"], message["y"], strict=True)
    return edits.moved(graph, dict(zip(message["nodes"], places, strict=True))), None


def _add(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    return edits.with_node(graph, (message["x"], message["y"])), [edits.next_node(graph)]


def _join(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    """Both directions that are not there yet, without loss."""
    pairs = [pair for a, b in message["links"] for pair in ((a, b), (b, a))]
    new = {pair: 1.0 for pair in pairs if not graph.has_edge(*pair)}
    return (edits.with_links(graph, new) if new else None), None


def _set_quality(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    a, b = message["a"], message["b"]
    told = {pair: message[name] for pair, name in (((a, b), "ab"), ((b, a), "ba")) if name in message}
    return (edits.with_links(graph, told) if told else None), None


def _erase(graph: nx.DiGraph, message: Mapping[str, Any]) -> _Edited:
    links = [(a, b) for a, b in message.get("links", ())]
    return edits.without(graph, message.get("nodes", ()), links), None


EDITS: dict[str, Callable[[nx.DiGraph, Mapping[str, Any]], _Edited]] = {
    "move": _move,
    "add": _add,
    "join": _join,
    "quality": _set_quality,
    "erase": _erase,
}

"""The layout of a network: positions of its nodes, links and walls to draw, hops of each node from a sink."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np

from workbench.columns import cumcount, find_sorted, unique_inverse

LINKS_PER_NODE = 8
USABLE = 0.1  # of frames arrive


@dataclass(frozen=True)
class Layout:
    """Positions and links as arrays; a node is known here by its place in ``ids``.

    ids: int64, ascending, shape (nodes,). x_m, y_m: float64, shape (nodes,).
    links: columns a, b (places, a < b), pdr_ab, pdr_ba (0 where there is no arc), each shape (links,).
    walls: float64, shape (walls, 4) as x0, y0, x1, y1. notes: what is not as it seems, in sentences.
    """

    ids: np.ndarray
    x_m: np.ndarray
    y_m: np.ndarray
    links: dict[str, np.ndarray]
    walls: np.ndarray
    notes: tuple[str, ...] = ()

    def place(self, nodes: np.ndarray) -> np.ndarray:
        """The places of some nodes, -1 for those that are not in the network."""
        nodes = np.asarray(nodes, dtype=np.int64)
        return find_sorted(nodes, self.ids)

    @cached_property
    def box_m(self) -> tuple[float, float, float, float]:
        """x0, y0, x1, y1 of everything, never empty."""
        xs = np.concatenate([self.x_m, self.walls[:, 0], self.walls[:, 2]])
        ys = np.concatenate([self.y_m, self.walls[:, 1], self.walls[:, 3]])
        if not len(xs):
            return -1.0, -1.0, 1.0, 1.0
        x0, x1, y0, y1 = xs.min(), xs.max(), ys.min(), ys.max()
        extent = max(x1 - x0, y1 - y0)
        least = 0.12 * extent or 2.0
        if x1 - x0 < least:
            x0, x1 = (x0 + x1 - least) / 2, (x0 + x1 + least) / 2
        if y1 - y0 < least:
            y0, y1 = (y0 + y1 - least) / 2, (y0 + y1 + least) / 2
        return float(x0), float(y0), float(x1), float(y1)

    @cached_property
    def spacing_m(self) -> float:
        """The typical distance between neighbors on the drawing: by area, and less where nodes stand in rows."""
        x0, y0, x1, y1 = self.box_m
        by_area = float(np.sqrt((x1 - x0) * (y1 - y0) / max(len(self.ids), 1)))
        a, b = self.links["a"], self.links["b"]
        length = np.hypot(self.x_m[a] - self.x_m[b], self.y_m[a] - self.y_m[b])
        shortest = np.full(len(self.ids), np.inf)
        np.minimum.at(shortest, a, length)
        np.minimum.at(shortest, b, length)
        near = shortest[np.isfinite(shortest) & (shortest > 0)]
        return min(by_area, 1.5 * float(np.median(near))) if len(near) else by_area


# A topology is frozen: the plans and distances of one are worked out once for all of its runs.
_known: WeakKeyDictionary[nx.Graph, dict[Any, Any]] = WeakKeyDictionary()


def _remembered(graph: nx.Graph, what: Any, make: Callable[[], Any]) -> Any:
    if not nx.is_frozen(graph):
        return make()
    known = _known.setdefault(graph, {})
    if what not in known:
        known[what] = make()
    return known[what]


def lay_out(graph: nx.Graph, links_per_node: int = LINKS_PER_NODE) -> Layout:
    """The plan of a topology graph (node attribute ``pos``, arc attribute ``pdr``, ``graph.graph["walls"]``)."""
    return _remembered(graph, ("plan", links_per_node), lambda: thinned(whole(graph), links_per_node))


def whole(graph: nx.Graph) -> Layout:
    """The plan with all links."""
    ids = np.array(sorted(graph.nodes), dtype=np.int64)
    notes = []
    positions = {node: graph.nodes[node].get("pos") for node in ids.tolist()}
    if any(pos is None for pos in positions.values()):
        positions = nx.circular_layout(sorted(graph.nodes), scale=10.0)
        notes.append("This network has no positions; its nodes are drawn on a circle.")
    elif graph.graph.get("positions_estimated"):
        estimated = graph.graph["positions_estimated"]
        some = f"{len(estimated)} nodes" if isinstance(estimated, (list, tuple)) else "some nodes"
        notes.append(f"The positions of {some} are estimated from link quality, not measured.")
    xy = np.array([positions[node] for node in ids.tolist()], dtype=float).reshape(-1, 2)
    walls = np.array(graph.graph.get("walls") or [], dtype=float).reshape(-1, 4)
    plan = Layout(ids, xy[:, 0], xy[:, 1], {}, walls, tuple(notes))
    return replace(plan, links=_pairs(graph, plan))


def thinned(plan: Layout, links_per_node: int) -> Layout:
    """The plan with the best links of each node, and a note if these are not all."""
    links = _best(plan.links, plan, links_per_node)
    every = len(plan.links["a"])
    if len(links["a"]) == every:
        return plan
    drawn = f"the {links_per_node} best of each node are drawn" if links_per_node else "none is drawn"
    return replace(plan, links=links, notes=(*plan.notes, f"Of {every:,} links, {drawn}."))


def hops_to(graph: nx.Graph, sink: int) -> dict[int, int]:
    """Hops from each node that can reach ``sink`` over links that deliver at least now and then."""
    return _remembered(graph, ("hops", sink), lambda: _hops_to(graph, sink))


def _hops_to(graph: nx.Graph, sink: int) -> dict[int, int]:
    hops, newest = {sink: 0}, [sink] if sink in graph else []
    before = graph.pred if graph.is_directed() else graph.adj
    while newest:
        found = []
        for node in newest:
            for other, link in before[node].items():
                if other not in hops and link.get("pdr", 1.0) >= USABLE:
                    hops[other] = hops[node] + 1
                    found.append(other)
        newest = found
    return hops


def _pairs(graph: nx.DiGraph, plan: Layout) -> dict[str, np.ndarray]:
    """Each pair of linked nodes once, with the delivery ratio of either direction."""
    adjacency = list(graph.adjacency())  # of an undirected graph either direction of a link
    counts = [len(neighbors) for _, neighbors in adjacency]
    if not sum(counts):
        empty = np.array([], dtype=np.int64)
        return {"a": empty, "b": empty, "pdr_ab": empty.astype(float), "pdr_ba": empty.astype(float)}
    hearers = chain.from_iterable(neighbors for _, neighbors in adjacency)
    links = (link for _, neighbors in adjacency for link in neighbors.values())
    pdr = np.fromiter((link.get("pdr", 1.0) for link in links), float, sum(counts))
    one = np.repeat(plan.place(np.array([node for node, _ in adjacency])), counts)
    ends = np.stack([one, plan.place(np.fromiter(hearers, np.int64, sum(counts)))], axis=1)
    low, high = ends.min(axis=1), ends.max(axis=1)
    key, pair = unique_inverse(low * len(plan.ids) + high)
    is_up = ends[:, 0] < ends[:, 1]
    pdr_ab, pdr_ba = np.zeros(len(key)), np.zeros(len(key))
    pdr_ab[pair[is_up]], pdr_ba[pair[~is_up]] = pdr[is_up], pdr[~is_up]
    return {"a": key // len(plan.ids), "b": key % len(plan.ids), "pdr_ab": pdr_ab, "pdr_ba": pdr_ba}


def _best(links: dict[str, np.ndarray], plan: Layout, per_node: int) -> dict[str, np.ndarray]:
    """The links that are among the ``per_node`` best of either end: good ones first, of equally good ones the short."""
    a, b = links["a"], links["b"]
    length = np.hypot(plan.x_m[a] - plan.x_m[b], plan.y_m[a] - plan.y_m[b])
    quality = np.round((links["pdr_ab"] + links["pdr_ba"]) / 2, 1)
    count = len(a)
    ends = np.concatenate([a, b])
    link = np.concatenate([np.arange(count), np.arange(count)])
    order = np.lexsort((length[link], -quality[link], ends))
    ends = ends[order]
    kept = np.unique(link[order][cumcount(ends) < per_node])
    return {name: column[kept] for name, column in links.items()}

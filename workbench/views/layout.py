"""The layout of a network for drawing: positions of nodes, links and walls, and the number of hops to a sink."""

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
USABLE = 0.1  # least delivery ratio of a link that counts as a hop


@dataclass(frozen=True)
class Layout:
    """The positions of nodes and the links between them, as arrays. Links refer to nodes by their index in ``ids``.

    ids: numbers of the nodes, int64, ascending, shape (nodes,).
    x_m, y_m: float64, shape (nodes,).
    links: columns a and b (indices of nodes, a < b), pdr_ab and pdr_ba (delivery ratio in each direction; 0 without a
        link in that direction), each of shape (links,).
    walls: float64, shape (walls, 4), as x0, y0, x1, y1 in m.
    notes: sentences about estimated positions and omitted links.
    """

    ids: np.ndarray
    x_m: np.ndarray
    y_m: np.ndarray
    links: dict[str, np.ndarray]
    walls: np.ndarray
    notes: tuple[str, ...] = ()

    def indices(self, nodes: np.ndarray) -> np.ndarray:
        """Return the position of each node in the layout's ``ids``, or -1 for a node that is not in the network."""
        nodes = np.asarray(nodes, dtype=np.int64)
        return find_sorted(nodes, self.ids)

    def outer_points_m(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the coordinates (x, y) in m of all points that the map must contain, each of shape (points,)."""
        xs = np.concatenate([self.x_m, self.walls[:, 0], self.walls[:, 2]])
        ys = np.concatenate([self.y_m, self.walls[:, 1], self.walls[:, 3]])
        return xs, ys

    def at(self, time_us: int) -> "Layout":
        """Return this layout for any time in µs, because the network does not change."""
        return self

    @cached_property
    def box_m(self) -> tuple[float, float, float, float]:
        """The box around all nodes and walls as x0, y0, x1, y1 in m. Its sides are longer than 0."""
        xs, ys = self.outer_points_m()
        if not len(xs):
            return -1.0, -1.0, 1.0, 1.0
        x0, x1, y0, y1 = xs.min(), xs.max(), ys.min(), ys.max()
        extent = max(x1 - x0, y1 - y0)
        least_side = 0.12 * extent or 2.0
        if x1 - x0 < least_side:
            x0, x1 = (x0 + x1 - least_side) / 2, (x0 + x1 + least_side) / 2
        if y1 - y0 < least_side:
            y0, y1 = (y0 + y1 - least_side) / 2, (y0 + y1 + least_side) / 2
        return float(x0), float(y0), float(x1), float(y1)

    @cached_property
    def spacing_m(self) -> float:
        """The typical distance between neighboring nodes in m.

        This is the square root of the area per node, or 1.5 times the median length of each node's shortest link,
        whichever is smaller. The latter is smaller if nodes are unevenly spread, for example in rows.
        """
        x0, y0, x1, y1 = self.box_m
        by_area = float(np.sqrt((x1 - x0) * (y1 - y0) / max(len(self.ids), 1)))
        a, b = self.links["a"], self.links["b"]
        link_lengths_m = np.hypot(self.x_m[a] - self.x_m[b], self.y_m[a] - self.y_m[b])
        shortest = np.full(len(self.ids), np.inf)
        np.minimum.at(shortest, a, link_lengths_m)
        np.minimum.at(shortest, b, link_lengths_m)
        nearest_m = shortest[np.isfinite(shortest) & (shortest > 0)]
        return min(by_area, 1.5 * float(np.median(nearest_m))) if len(nearest_m) else by_area


# A topology is frozen, so its layout and hop counts are computed once for all of its runs.
_cache: WeakKeyDictionary[nx.Graph, dict[Any, Any]] = WeakKeyDictionary()


def _compute_once(graph: nx.Graph, key: Any, make: Callable[[], Any]) -> Any:
    if not nx.is_frozen(graph):
        return make()
    cached_values = _cache.setdefault(graph, {})
    if key not in cached_values:
        cached_values[key] = make()
    return cached_values[key]


def lay_out(graph: nx.Graph, links_per_node: int = LINKS_PER_NODE) -> Layout:
    """Return the layout of a topology, with the ``links_per_node`` best links of each node (see `select_best_links`).

    The positions of nodes are their attribute ``pos``, the delivery ratios of arcs their attribute ``pdr``, and walls
    are in ``graph.graph["walls"]``. If a node has no position, all nodes are placed on a circle; a note states this.
    """
    return _compute_once(graph, ("plan", links_per_node), lambda: thinned(whole(graph), links_per_node))


def whole(graph: nx.Graph) -> Layout:
    """Return the layout of a topology with all of its links; nodes are placed as by `lay_out`."""
    ids = np.array(sorted(graph.nodes), dtype=np.int64)
    notes = []
    positions = {node: graph.nodes[node].get("pos") for node in ids.tolist()}
    if any(pos is None for pos in positions.values()):
        positions = nx.circular_layout(sorted(graph.nodes), scale=10.0)
        notes.append("This network has no positions; its nodes are drawn on a circle.")
    elif graph.graph.get("positions_estimated"):
        estimated_nodes = graph.graph["positions_estimated"]
        nodes_text = f"{len(estimated_nodes)} nodes" if isinstance(estimated_nodes, (list, tuple)) else "some nodes"
        notes.append(f"The positions of {nodes_text} are estimated from link quality, not measured.")
    xy = np.array([positions[node] for node in ids.tolist()], dtype=float).reshape(-1, 2)
    walls = np.array(graph.graph.get("walls") or [], dtype=float).reshape(-1, 4)
    plan = Layout(ids, xy[:, 0], xy[:, 1], {}, walls, tuple(notes))
    return replace(plan, links=_list_links(graph, plan))


def thinned(plan: Layout, links_per_node: int) -> Layout:
    """Return the layout with only the best links of each node, as `select_best_links` selects them.

    ``links_per_node``: number of links that each node selects; 0 omits all links. If links are omitted, a note states
    the number of all links.
    """
    links = select_best_links(plan.links, plan, links_per_node)
    total = len(plan.links["a"])
    if len(links["a"]) == total:
        return plan
    rule = f"the {links_per_node} best of each node are drawn" if links_per_node else "none is drawn"
    return replace(plan, links=links, notes=(*plan.notes, f"Of {total:,} links, {rule}."))


def hops_to(graph: nx.Graph, sink: int) -> dict[int, int]:
    """Return {node: number of hops to ``sink``} for each node that can reach the sink.

    Only links with a delivery ratio of at least `USABLE` count.
    """
    return _compute_once(graph, ("hops", sink), lambda: _count_hops(graph, sink))


def graph_of_links(plan: Layout) -> nx.DiGraph:
    """Return a graph with the nodes of a layout and its links; arcs have the attribute ``pdr``."""
    graph = nx.DiGraph()
    graph.add_nodes_from(plan.ids.tolist())
    for sender, receiver, name in (("a", "b", "pdr_ab"), ("b", "a", "pdr_ba")):
        ends = (plan.ids[plan.links[end]].tolist() for end in (sender, receiver))
        graph.add_weighted_edges_from(zip(*ends, plan.links[name].tolist(), strict=True), weight="pdr")
    return graph


def _count_hops(graph: nx.Graph, sink: int) -> dict[int, int]:
    hops, frontier = {sink: 0}, [sink] if sink in graph else []
    predecessors = graph.pred if graph.is_directed() else graph.adj
    while frontier:
        next_frontier = []
        for node in frontier:
            for neighbor, link in predecessors[node].items():
                if neighbor not in hops and link.get("pdr", 1.0) >= USABLE:
                    hops[neighbor] = hops[node] + 1
                    next_frontier.append(neighbor)
        frontier = next_frontier
    return hops


def _list_links(graph: nx.DiGraph, plan: Layout) -> dict[str, np.ndarray]:
    """Return the links of a graph as the columns of `Layout.links`, each linked pair of nodes once.

    ``plan``: a layout, whose ``ids`` define the indices of nodes.
    """
    adjacency = list(graph.adjacency())  # an undirected graph lists a link in both directions
    neighbor_counts = [len(neighbors) for _, neighbors in adjacency]
    if not sum(neighbor_counts):
        empty = np.array([], dtype=np.int64)
        return {"a": empty, "b": empty, "pdr_ab": empty.astype(float), "pdr_ba": empty.astype(float)}
    receivers = chain.from_iterable(neighbors for _, neighbors in adjacency)
    links = (link for _, neighbors in adjacency for link in neighbors.values())
    pdr = np.fromiter((link.get("pdr", 1.0) for link in links), float, sum(neighbor_counts))
    senders = np.repeat(plan.indices(np.array([node for node, _ in adjacency])), neighbor_counts)
    link_ends = np.stack([senders, plan.indices(np.fromiter(receivers, np.int64, sum(neighbor_counts)))], axis=1)
    lower_ends, higher_ends = link_ends.min(axis=1), link_ends.max(axis=1)
    pair_keys, pair_numbers = unique_inverse(lower_ends * len(plan.ids) + higher_ends)
    is_forward = link_ends[:, 0] < link_ends[:, 1]
    pdr_ab, pdr_ba = np.zeros(len(pair_keys)), np.zeros(len(pair_keys))
    pdr_ab[pair_numbers[is_forward]], pdr_ba[pair_numbers[~is_forward]] = pdr[is_forward], pdr[~is_forward]
    return {"a": pair_keys // len(plan.ids), "b": pair_keys % len(plan.ids), "pdr_ab": pdr_ab, "pdr_ba": pdr_ba}


def select_best_links(links: dict[str, np.ndarray], plan: Layout, per_node: int) -> dict[str, np.ndarray]:
    """Return the links that are among the ``per_node`` best links of at least one of their two nodes.

    A link is better if its mean delivery ratio over both directions, rounded to a tenth, is higher; of equal links, the
    shorter one is better.
    """
    a, b = links["a"], links["b"]
    link_lengths_m = np.hypot(plan.x_m[a] - plan.x_m[b], plan.y_m[a] - plan.y_m[b])
    quality = np.round((links["pdr_ab"] + links["pdr_ba"]) / 2, 1)
    link_count = len(a)
    link_ends = np.concatenate([a, b])
    link = np.concatenate([np.arange(link_count), np.arange(link_count)])
    by_quality = np.lexsort((link_lengths_m[link], -quality[link], link_ends))
    link_ends = link_ends[by_quality]
    best_links = np.unique(link[by_quality][cumcount(link_ends) < per_node])
    return {name: column[best_links] for name, column in links.items()}

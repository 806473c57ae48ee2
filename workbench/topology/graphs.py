"""The normal form of topologies, a ``networkx.DiGraph``, and the digest of its contents.

Normal form
    Nodes are ints from 0 to 2**31 - 1 in ascending order, each with ``pos=(x_m, y_m)``; arcs are in ascending
    (transmitter, receiver) order, each with ``pdr``, its packet delivery ratio, above 0 and at most 1. Positions
    are rounded to 0.1 mm and delivery ratios to one in a million, so that differences in the last bits between
    machines' mathematics libraries rarely reach a result. ``graph.graph`` may hold ``recipe``,
    ``digest``, ``walls`` (((x0, y0), (x1, y1)) segments), ``positions_estimated`` and ``positions_moved`` (nodes).
"""

import hashlib
import math
import warnings
from numbers import Integral, Real
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

from workbench.errors import ParameterError, ScenarioError
from workbench.extensions import extensible
from workbench.topology.layout import estimate_positions, lay_out

LARGEST_NODE = 2**31 - 1  # a trace keeps nodes in 32 bits
LARGEST_COORDINATE_M = 1e8  # 0.1 mm of it is still exact in a float
MOST_NODES = 1_000_000
MOST_ARCS = 10_000_000  # networkx takes about 300 B for each

_MOST_ARCS_READ = 100_000  # a larger network's ``repr`` omits details

_POSITION_STEPS = 1e4
_PDR_STEPS = 1e6
_PRESERVED_ATTRIBUTES = ("walls", "positions_estimated", "positions_moved", "name")


class Arrays(NamedTuple):
    """A topology as arrays, sorted: nodes (n,), positions_m (n, 2), arcs (m, 2), pdr (m,)."""

    nodes: np.ndarray
    positions_m: np.ndarray
    arcs: np.ndarray
    pdr: np.ndarray


@extensible
class Network(nx.DiGraph):
    """A topology: a ``networkx.DiGraph`` that a notebook displays as a picture."""

    def __repr__(self) -> str:
        # Details need all arcs, which takes seconds for millions.
        details = _describe_details(self) if self.number_of_edges() <= _MOST_ARCS_READ else ""
        return f"<{self}{details}>"


def _describe_details(graph: nx.DiGraph) -> str:
    """Return a text with the range of delivery ratios and the call of the generator.

    The range is left out if all links deliver all frames. The call is left out if the network was edited.
    """
    pdr = [value for _, _, value in graph.edges(data="pdr") if is_number(value)]
    ratios = f", delivery ratios {min(pdr):.2g} to {max(pdr):.2g}" if pdr and min(pdr) < 1 else ""
    recipe = graph.graph.get("recipe")
    try:
        if not isinstance(recipe, dict) or graph.graph.get("digest") != digest(graph):
            return ratios
    except ScenarioError:
        return ratios
    plain_arguments = {
        name: value for name, value in recipe.items() if name != "kind" and isinstance(value, (str, Real))
    }
    return (
        f"{ratios}, {recipe.get('kind')}({', '.join(f'{name}={value!r}' for name, value in plain_arguments.items())})"
    )


def round_positions(positions_m: npt.ArrayLike) -> np.ndarray:
    """Round positions to 0.1 mm."""
    return np.rint(np.asarray(positions_m, dtype=float) * _POSITION_STEPS) / _POSITION_STEPS + 0.0


def round_pdr(pdr: npt.ArrayLike) -> np.ndarray:
    """Round delivery ratios to one in a million."""
    return np.rint(np.asarray(pdr, dtype=float) * _PDR_STEPS) / _PDR_STEPS + 0.0


def build(
    nodes: npt.ArrayLike, positions_m: npt.ArrayLike, arcs: npt.ArrayLike, pdr: npt.ArrayLike, **attributes: Any
) -> nx.DiGraph:
    """Return a graph in the normal form that the module's docstring defines, from arrays with rows in any order.

    ``nodes`` is (n,), ``positions_m`` (n, 2), ``arcs`` (m, 2) with (transmitter, receiver), ``pdr`` (m,). The graph's
    attributes, ``graph.graph``, are ``attributes`` and the digest.
    """
    return _to_graph(_sort_arrays(nodes, positions_m, arcs, pdr), attributes)


def digest(graph: nx.Graph) -> str:
    """Return the SHA-256 (hex) of nodes, positions, arcs and delivery ratios; it is the same on every machine."""
    return digest_of(to_arrays(graph))


def digest_of(arrays: Arrays) -> str:
    """Return the digest (SHA-256, hex) of a topology that is given as arrays."""
    sha = hashlib.sha256(b"topology 1 %d %d " % (len(arrays.nodes), len(arrays.arcs)))
    for numbers, steps in (
        (arrays.nodes, 1),
        (arrays.positions_m, _POSITION_STEPS),
        (arrays.arcs, 1),
        (arrays.pdr, _PDR_STEPS),
    ):
        sha.update(np.rint(numbers * steps).astype("<i8").tobytes())
    return sha.hexdigest()


def check(graph: nx.Graph) -> nx.DiGraph:
    """Return a copy of ``graph`` in normal form, as scenarios need it. Raises ScenarioError if that is impossible.

    A link without ``pdr`` delivers all frames (1.0); a link with pdr 0 is dropped. An undirected link becomes two arcs.
    If no node has ``pos``, all nodes are laid out; if only some have it, the others are placed among their neighbors.
    Warns if links have other attributes, such as ``weight``, but no link has ``pdr``.
    """
    arrays = to_arrays(graph)
    _warn_of_other_attributes(graph)
    graph_attributes = {key: graph.graph[key] for key in _PRESERVED_ATTRIBUTES if key in graph.graph}
    if "walls" in graph_attributes:
        graph_attributes["walls"] = check_walls(graph_attributes["walls"])
    if "recipe" in graph.graph and graph.graph.get("digest") == digest_of(arrays):
        graph_attributes["recipe"] = graph.graph["recipe"]
    nodes_without_pos = [node for node, attributes in graph.nodes(data=True) if attributes.get("pos") is None]
    if nodes_without_pos and len(nodes_without_pos) < len(arrays.nodes):
        graph_attributes["positions_estimated"] = sorted(int(node) for node in nodes_without_pos)
    return _to_graph(arrays, graph_attributes)


def to_arrays(graph: nx.Graph) -> Arrays:
    """Return the contents of a networkx graph as sorted arrays: nodes, positions, arcs and delivery ratios.

    Raises ScenarioError if the graph cannot be a topology, for example if it is empty or has parallel links.
    """
    if not isinstance(graph, nx.Graph):
        raise ScenarioError(f"The topology is a {type(graph).__name__}; it must be a networkx graph.")
    if graph.is_multigraph():
        raise ScenarioError("The topology has parallel links (a multigraph); it must be a networkx DiGraph or Graph.")
    if len(graph) == 0:
        raise ScenarioError("The topology has no nodes; it needs at least one.")
    nodes = sorted(_check_node(node) for node in graph)
    transmitters, receivers, pdr = _read_links(graph)
    arcs = np.column_stack((transmitters, receivers))
    if not graph.is_directed():
        arcs, pdr = np.concatenate((arcs, arcs[:, ::-1])), np.concatenate((pdr, pdr))
    return _sort_arrays(nodes, _read_positions(graph, nodes), arcs, pdr)


def check_walls(walls: Any) -> list[tuple[Any, ...]]:
    """Return ``walls`` as [((x0, y0), (x1, y1)), ...] of floats in m. Raises ScenarioError if they are not segments."""
    try:
        ends = np.array([[[float(x) for x in end] for end in wall] for wall in walls], dtype=float)
        ends = ends.reshape(-1, 2, 2) if ends.size == 0 else ends
    except (TypeError, ValueError, OverflowError):
        ends = np.full((1, 1), math.nan)
    if ends.shape[1:] != (2, 2) or not np.all(np.abs(ends) <= LARGEST_COORDINATE_M):
        raise ScenarioError(
            f"The topology's walls are {walls!r:.60}; they must be a list of segments ((x0_m, y0_m), (x1_m, y1_m))."
        )
    return [tuple(map(tuple, wall)) for wall in round_positions(ends).tolist()]


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer of Python or numpy, but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number of Python or numpy (possibly infinite or NaN), but not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole(name: str, value: Any, minimum: int, maximum: int) -> int:
    """Return ``value`` as an int. Raises ParameterError unless it is a whole number in [minimum, maximum].

    ``name`` is the name of the value in the message.
    """
    if not is_whole(value) or not minimum <= value <= maximum:
        raise ParameterError(f"{name} is {value!r:.60}; it must be a whole number from {minimum} to {maximum}.")
    return int(value)


def number(name: str, value: Any, minimum: float, maximum: float, unit: str = "") -> float:
    """Return ``value`` as a float. Raises ParameterError unless it is a number in [minimum, maximum].

    ``name`` and ``unit`` are the name and the unit of the value in the message.
    """
    if not is_number(value) or not minimum <= value <= maximum:
        allowed_range = f"{minimum:g} to {maximum:g} {unit}".rstrip()
        raise ParameterError(f"{name} is {value!r:.60}; it must be a number from {allowed_range}.")
    return float(value)


def coordinates(position: Any) -> tuple[float, float] | None:
    """Return (x_m, y_m) if ``position`` consists of two finite numbers, or None."""
    try:
        x, y = position
        if isinstance(x, str | bytes) or isinstance(y, str | bytes):
            return None
        x, y = float(x), float(y)
    except (TypeError, ValueError, OverflowError):
        return None
    is_inside = abs(x) <= LARGEST_COORDINATE_M and abs(y) <= LARGEST_COORDINATE_M
    return (x, y) if is_inside else None


def _sort_arrays(nodes: npt.ArrayLike, positions_m: npt.ArrayLike, arcs: npt.ArrayLike, pdr: npt.ArrayLike) -> Arrays:
    nodes = np.asarray(nodes, dtype=np.int64)
    arcs = np.asarray(arcs, dtype=np.int64).reshape(-1, 2)
    pdr = round_pdr(pdr)
    arcs, pdr = arcs[pdr > 0], pdr[pdr > 0]
    node_order = np.argsort(nodes, kind="stable")
    arc_order = np.lexsort((arcs[:, 1], arcs[:, 0]))
    positions_m = round_positions(positions_m).reshape(-1, 2)
    return Arrays(nodes[node_order], positions_m[node_order], arcs[arc_order], pdr[arc_order])


def _to_graph(arrays: Arrays, attributes: dict[str, Any]) -> nx.DiGraph:
    graph = Network(**attributes, digest=digest_of(arrays))
    positions = map(tuple, arrays.positions_m.tolist())
    graph.add_nodes_from((node, {"pos": pos}) for node, pos in zip(arrays.nodes.tolist(), positions, strict=True))
    transmitters, receivers = arrays.arcs[:, 0].tolist(), arrays.arcs[:, 1].tolist()
    qualities = ({"pdr": pdr} for pdr in arrays.pdr.tolist())
    graph.add_edges_from(zip(transmitters, receivers, qualities, strict=True))
    return graph


def _check_node(node: Any) -> int:
    if not is_whole(node) or not 0 <= node <= LARGEST_NODE:
        raise ScenarioError(
            f"The topology has a node {node!r:.60}; nodes must be whole numbers from 0 to {LARGEST_NODE} "
            "(networkx.convert_node_labels_to_integers numbers them)."
        )
    return int(node)


def _read_links(graph: nx.Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (transmitters, receivers, pdr) of all links as arrays, in the order of ``graph.edges``."""
    transmitters, receivers, qualities = [], [], []
    for transmitter, receiver, attributes in graph.edges(data=True):
        pdr = attributes.get("pdr", 1.0)
        if transmitter == receiver:
            raise ScenarioError(f"The topology has a link from node {transmitter} to itself; remove it.")
        if not is_number(pdr) or not 0 <= pdr <= 1:
            raise ScenarioError(
                f"The topology's link {transmitter} -> {receiver} has pdr {pdr!r:.60}; it must be a number from 0 to 1."
            )
        transmitters.append(transmitter)
        receivers.append(receiver)
        qualities.append(float(pdr))
    return np.array(transmitters, dtype=np.int64), np.array(receivers, dtype=np.int64), np.array(qualities)


def _warn_of_other_attributes(graph: nx.Graph) -> None:
    other_attributes: set[str] = set()
    for _, _, attributes in graph.edges(data=True):
        if "pdr" in attributes:
            return
        other_attributes.update(map(str, attributes))
    if other_attributes:
        warnings.warn(
            f"The topology's links have {', '.join(sorted(other_attributes))}, but not pdr, the delivery ratio; "
            "all links are taken as perfect. Set pdr on the links.",
            stacklevel=3,
        )


def _read_positions(graph: nx.Graph, nodes: list[int]) -> list[tuple[float, float]]:
    """Return the positions (x_m, y_m) of ``nodes``; estimate missing positions, or lay out all if none is given."""
    known_positions: dict[int, tuple[float, float]] = {}
    for node, position in graph.nodes(data="pos"):
        if position is not None:
            coordinates_m = coordinates(position)
            if coordinates_m is None:
                raise ScenarioError(
                    f"The topology's node {node} has pos {position!r:.60}; it must be (x_m, y_m), two finite numbers."
                )
            known_positions[int(node)] = coordinates_m
    if not known_positions:
        known_positions = lay_out(graph)
    elif len(known_positions) < len(nodes):
        known_positions = {**known_positions, **estimate_positions(graph, known_positions)}
    return [known_positions[node] for node in nodes]

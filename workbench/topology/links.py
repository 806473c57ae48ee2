"""Measured networks: link tables, and testbeds from the known data sets."""

import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from workbench import datasets
from workbench.errors import DataError
from workbench.keywords import checked
from workbench.topology.graphs import LARGEST_COORDINATE_M, build, number, round_pdr
from workbench.topology.layout import estimate_positions, lay_out
from workbench.topology.propagation import Propagation, packet_reception
from workbench.topology.tables import read_links, read_positions, read_rows

MIN_PDR = 0.1  # as in generated networks; nodes with a lower ratio hear each other only occasionally

_SHIFT_PER_M = 0.35  # metres in x and y for each metre of height, for nodes above each other


@checked
def from_links(path_or_frame: object, positions: object = None, min_pdr: float = MIN_PDR) -> nx.DiGraph:
    """Return a network from measured links: a CSV file or DataFrame with columns transmitter, receiver, pdr (0 to 1).

    Every node in the table becomes a node. A row with pdr 0 or below ``min_pdr`` gives no arc; each direction is an arc
    of its own. ``positions``: {node: (x_m, y_m)}, or a table (CSV file or DataFrame) with columns node, x_m, y_m. Nodes
    without a position are placed among the neighbors that they hear best, and listed in
    ``graph.graph["positions_estimated"]``. Without any positions, all nodes are laid out.

    A table from `workbench.pipelines.links` also has the columns heard and sent, which count frames. It may have
    several rows for a link, such as one for each channel or time interval: the link's pdr is then the mean of these
    rows, weighted by sent. Raises DataError, which names the file, row and column of the error.
    """
    min_pdr = number("min_pdr", min_pdr, 0, 1)
    links = read_links(path_or_frame)
    known_positions = {} if positions is None else read_positions(positions)
    known_positions, estimated_nodes = _complete_positions(links, known_positions)
    path = str(path_or_frame) if isinstance(path_or_frame, str | Path) else None
    return _build_network(
        links, known_positions, estimated_nodes, min_pdr, {"kind": "from_links", "path": path, "min_pdr": min_pdr}
    )


@checked
def testbed(
    name: str, min_pdr: float = MIN_PDR, max_range_m: float | None = None, attenuation_dB: float = 0.0
) -> nx.DiGraph:
    """Return the measured links of a testbed: "strasbourg" (64 nodes), "lille" (224), or "intel-lab" (54).

    name            also "iotlab/strasbourg", ...; ``workbench.datasets.describe()`` lists the names of all data sets
    min_pdr         links with a lower delivery ratio are left out
    max_range_m     longer links (distance in space, by the measured positions) are left out; None: no limit
    attenuation_dB  simulated reduction of every mote's transmit power. ``Propagation`` with its defaults gives the
                    delivery ratio of a mean link of the same length, before and after the reduction; the measured ratio
                    is multiplied by after / before

    The IoT-LAB sites are single rooms in which nearly all nodes hear each other (in Strasbourg all 4,032 links
    deliver 70 % or more), so a multi-hop network needs ``max_range_m`` or ``attenuation_dB``. Strasbourg with
    ``max_range_m=4`` has a diameter of 7 hops and 12 neighbors per node. With ``attenuation_dB=36`` its diameter is 4
    hops, with 21 neighbors per node.

    Nodes with unknown positions are placed among the neighbors that they hear best
    (``graph.graph["positions_estimated"]``). If nodes are above each other, the higher nodes are drawn beside the
    lowest (``positions_moved``). Raises DataError if the data set is not on this machine; the message names its source.
    """
    min_pdr = number("min_pdr", min_pdr, 0, 1)
    attenuation_dB = number("attenuation_dB", attenuation_dB, 0, 200, "dB")
    if max_range_m is not None:
        max_range_m = number("max_range_m", max_range_m, 0.001, LARGEST_COORDINATE_M, "m")
    data_set = datasets.named(name)
    links, positions_3d_m = _read_testbed(data_set.name)
    flat_positions, moved_nodes = _separate_positions(positions_3d_m)
    flat_positions, estimated_nodes = _complete_positions(links, flat_positions)
    if max_range_m is not None or attenuation_dB > 0:
        links = _attenuate_links(
            links, _positions_in_space(data_set.name, positions_3d_m, flat_positions), max_range_m, attenuation_dB
        )
    recipe: dict[str, Any] = {"kind": "testbed", "name": data_set.name, "min_pdr": min_pdr}
    recipe |= {"max_range_m": max_range_m, "attenuation_dB": attenuation_dB}
    attributes = {"positions_moved": moved_nodes} if moved_nodes else {}
    return _build_network(links, flat_positions, estimated_nodes, min_pdr, recipe, **attributes)


def _read_testbed(name: str) -> tuple[list[tuple[int, int, float]], dict[int, tuple[float, float, float]]]:
    """Return the links (transmitter, receiver, pdr) and the positions {node: (x_m, y_m, z_m)} of a testbed."""
    testbed_files = datasets.find(name, "links")
    if name == "intel-lab":
        table_rows = datasets.intel_connectivity(testbed_files["links"]).itertuples(index=False)
        links = [(row.transmitter, row.receiver, row.pdr) for row in table_rows if row.pdr > 0]
        position_table = datasets.intel_positions(testbed_files["positions"]) if "positions" in testbed_files else None
        table_rows = () if position_table is None else position_table.itertuples(index=False)
        return links, {row.node: (row.x_m, row.y_m, 0.0) for row in table_rows}
    positions_3d_m = {}
    if "positions" in testbed_files:
        flat_positions = read_positions(testbed_files["positions"])
        table_rows = read_rows(testbed_files["positions"], ("node", "z_m"), "positions")
        heights = {int(row.values[0]): row.values[1] for row in table_rows}
        positions_3d_m = {node: (x, y, _parse_height(heights[node])) for node, (x, y) in flat_positions.items()}
    return read_links(testbed_files["links"]), positions_3d_m


def _parse_height(text: Any) -> float:
    try:
        height = float(text)
    except (TypeError, ValueError):
        return 0.0
    return height if math.isfinite(height) else 0.0


def _positions_in_space(
    name: str, positions_3d_m: dict[int, tuple[float, float, float]], known: dict[int, tuple[float, float]]
) -> dict[int, tuple[float, float, float]]:
    """Return the position (x_m, y_m, z_m) of every node in ``known``, as {node: position}.

    ``positions_3d_m`` has the measured positions. A node without a measured position gets x and y from ``known``, which
    is {node: (x_m, y_m)}, and the mean height of the measured nodes. Raises DataError if the testbed ``name`` has no
    measured positions.
    """
    if not positions_3d_m:
        raise DataError(
            f"The positions of data set {name} are not on this machine; max_range_m and attenuation_dB need them, so "
            "omit both."
        )
    height = sum(z for _, _, z in positions_3d_m.values()) / len(positions_3d_m)
    return {node: positions_3d_m.get(node, (*known[node], height)) for node in known}


def _attenuate_links(
    links: list[tuple[int, int, float]],
    positions_3d_m: dict[int, tuple[float, float, float]],
    max_range_m: float | None,
    attenuation_dB: float,
) -> list[tuple[int, int, float]]:
    """Return the links (transmitter, receiver, pdr) with reduced delivery ratios.

    Each ratio is reduced as if all transmitters were weaker by ``attenuation_dB``. Links longer than ``max_range_m``
    have the ratio 0.
    """
    length_m = np.array(
        [math.dist(positions_3d_m[transmitter], positions_3d_m[receiver]) for transmitter, receiver, _ in links]
    )
    propagation = Propagation()
    snr_dB = propagation.snr_dB(length_m)
    full_power_shares = packet_reception(snr_dB, propagation.frame_B)
    retained_shares = packet_reception(snr_dB - attenuation_dB, propagation.frame_B) / np.maximum(
        full_power_shares, 1e-9
    )
    retained_shares[length_m > (math.inf if max_range_m is None else max_range_m)] = 0.0
    shares_of_links = zip(links, retained_shares.tolist(), strict=True)
    return [(transmitter, receiver, pdr * link_share) for (transmitter, receiver, pdr), link_share in shares_of_links]


def _separate_positions(
    positions_3d_m: dict[int, tuple[float, float, float]],
) -> tuple[dict[int, tuple[float, float]], list[int]]:
    """Return ({node: (x_m, y_m)}, shifted nodes): positions in a plane at which nodes above each other are apart.

    A node above another node with the same (x, y) is shifted in proportion to its height above the lowest of them.
    """
    lowest_z_m: dict[tuple[float, float], float] = {}
    for x, y, z in positions_3d_m.values():
        lowest_z_m[x, y] = min(z, lowest_z_m.get((x, y), z))
    shift_m = {node: _SHIFT_PER_M * (z - lowest_z_m[x, y]) for node, (x, y, z) in positions_3d_m.items()}
    positions = {node: (x + shift_m[node], y + shift_m[node]) for node, (x, y, _) in positions_3d_m.items()}
    return positions, sorted(node for node in shift_m if shift_m[node] > 0)


def _complete_positions(
    links: list[tuple[int, int, float]], known: dict[int, tuple[float, float]]
) -> tuple[dict[int, tuple[float, float]], list[int]]:
    """Return the positions {node: (x_m, y_m)} of a testbed's nodes, and the nodes whose position is estimated.

    ``links``: (transmitter, receiver, delivery ratio). ``known``: the known positions. Missing positions are estimated
    from the links. If no position is known, both results are empty.
    """
    graph = _make_graph(links, 0.0)
    positions = {node: known[node] for node in graph if node in known}
    if not positions or len(positions) == len(graph):
        return positions, []
    estimated = estimate_positions(graph, positions)
    return positions | estimated, sorted(estimated)


def _build_network(
    links: list[tuple[int, int, float]],
    positions: dict[int, tuple[float, float]],
    estimated: list[int],
    min_pdr: float,
    recipe: dict[str, Any],
    **attributes: Any,
) -> nx.DiGraph:
    """Return the network of links (transmitter, receiver, pdr); its nodes are laid out if ``positions`` is empty.

    ``estimated`` are the nodes whose positions are estimated. ``recipe`` records the generator and its arguments.
    ``attributes`` are further attributes of the graph.
    """
    graph = _make_graph(links, min_pdr)
    nodes, positions = sorted(graph), positions or lay_out(graph)
    arcs = list(graph.edges(data="pdr"))
    if estimated:
        attributes["positions_estimated"] = estimated
    positions_m = [positions[node] for node in nodes]
    return build(nodes, positions_m, [arc[:2] for arc in arcs], [arc[2] for arc in arcs], recipe=recipe, **attributes)


def _make_graph(links: list[tuple[int, int, float]], min_pdr: float) -> nx.DiGraph:
    """Return the graph of all nodes in ``links``, and of the arcs with a positive ``pdr`` of at least ``min_pdr``."""
    pdr = round_pdr([link[2] for link in links])
    graph = nx.DiGraph()
    graph.add_nodes_from(node for link in links for node in link[:2])
    indices = np.flatnonzero((pdr > 0) & (pdr >= min_pdr)).tolist()
    graph.add_weighted_edges_from(((*links[index][:2], float(pdr[index])) for index in indices), weight="pdr")
    return graph

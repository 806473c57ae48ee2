"""A network as arrays, in the form that the fast engine reads.

`Network` takes 12 bytes per arc instead of networkx's 300, so it also serves for networks of millions of nodes
(`workbench.sim.fast.play`).
"""

from __future__ import annotations

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import networkx as nx
import numpy as np

from workbench.sim.changes.arcs import LinkChanges


class Network(NamedTuple):
    """A network of n nodes and m arcs. Node i's arcs have the indices first[i], ..., first[i + 1] - 1.

    ``addresses`` (n,) and ``positions_m`` (n, 2) are in ascending order of addresses. ``receivers`` (m,): the index of
    the node to which each arc leads, ascending for each sender. ``pdr``: delivery ratios (m,), or one for all (1,).
    """

    addresses: np.ndarray
    positions_m: np.ndarray
    first: np.ndarray
    receivers: np.ndarray
    pdr: np.ndarray


def from_arrays(addresses: np.ndarray, positions_m: np.ndarray, arcs: np.ndarray, pdr: np.ndarray) -> Network:
    """Return the network with ``arcs`` (m, 2), pairs of addresses (sender, receiver) in any order.

    ``addresses`` (n,) and ``positions_m`` (n, 2) may be in any order. ``pdr``: the delivery ratio of each arc (m,), or
    of all arcs (1,).
    """
    addresses = np.asarray(addresses, np.int32)
    by_address = np.argsort(addresses, kind="stable")
    addresses = addresses[by_address]
    senders = np.searchsorted(addresses, arcs[:, 0]).astype(np.int32)
    receivers = np.searchsorted(addresses, arcs[:, 1]).astype(np.int32)
    arc_order = np.lexsort((receivers, senders))
    first_arc = np.zeros(len(addresses) + 1, np.int64)
    np.cumsum(np.bincount(senders, minlength=len(addresses)), out=first_arc[1:])
    pdr = np.asarray(pdr, np.float64)
    return Network(
        addresses,
        positions_m[by_address],
        first_arc,
        receivers[arc_order],
        pdr[arc_order] if len(pdr) == len(arcs) else pdr,
    )


def of_changes(graph: Any, changes: LinkChanges) -> Network:
    """Return the network of all arcs that exist at some time in a run whose links change.

    ``graph``: the topology of the scenario. The result's ``pdr`` has the delivery ratios at the start; the ratio of an
    arc that does not exist then is negative.
    """
    start = from_graph(graph)
    first_arc = np.zeros(len(start.addresses) + 1, np.int64)
    np.cumsum(np.bincount(changes.senders, minlength=len(start.addresses)), out=first_arc[1:])
    return Network(start.addresses, start.positions_m, first_arc, changes.receivers, changes.ratios)


# Topologies are frozen, and the scenarios of a sweep share them, so their arrays are cached.
_networks: WeakKeyDictionary[nx.DiGraph, Network] = WeakKeyDictionary()


def from_graph(graph: Any) -> Network:
    """Return the network of a scenario's topology; the result is cached."""
    network = _networks.get(graph)
    if network is None:
        addresses = np.fromiter(graph.nodes, np.int64, len(graph))
        positions_m = np.array([position for _, position in graph.nodes(data="pos")], float).reshape(-1, 2)
        arcs = np.array(list(graph.edges), np.int64).reshape(-1, 2)
        pdr = np.fromiter((pdr for _, _, pdr in graph.edges(data="pdr")), np.float64, len(arcs))
        network = _networks[graph] = from_arrays(addresses, positions_m, arcs, pdr)
    return network

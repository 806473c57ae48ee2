"""Helpers for tests of DPS: meshes of nodes with ideal links, random graphs, and topics to publish on them."""

import networkx as nx
from hypothesis import strategies as st

from tests.network import Network
from workbench import draws
from workbench.protocols.dps.automaton import ACTIVE, MUTED

SUBSCRIPTIONS = ("a/b", "a/+", "a/#", "+/b/#", "x/y/z", "+/y/z", "#", "c")
PUBLICATIONS = ("a/b", "a/c", "a/b/c", "x/y/z", "q/y/z", "c", "d")


def active(node):
    """Return the neighbors to which a node sends publications."""
    return [remote for remote in node.links.remotes.values() if remote.takes_publications()]


def ring(count):
    """Return a ring of nodes whose links lose nothing."""
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"pos": (node, 0)}) for node in range(count))
    for node in range(count):
        graph.add_edge(node, (node + 1) % count, pdr=1.0)
        graph.add_edge((node + 1) % count, node, pdr=1.0)
    return graph


def mesh(protocol, links, seed=1, seconds=5):
    """Return a network whose nodes linked as in simulation; frames of different links overtake each other."""
    stream = draws.Stream(seed)
    network = Network(protocol, links, stream.below)
    for node in network.nodes.values():
        node.start(0)
    for a, b in sorted(links):
        network.nodes[min(a, b)].link_quality(max(a, b), 1.0, 1.0, 0)
    network.settle()
    network.advance(seconds)
    return network


@st.composite
def graphs(draw, most_nodes=12):
    """Draw the links of a random connected graph: a tree and some additional links."""
    count = draw(st.integers(2, most_nodes))
    links = {(draw(st.integers(0, number - 1)), number) for number in range(1, count)}
    some = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    links |= {(min(link), max(link)) for link in draw(st.lists(some, max_size=count)) if link[0] != link[1]}
    return sorted(links)


def states(network):
    """Return {(a, b): (state, state)} of every link that at least one of its ends has."""
    end_states = {}
    for address, node in network.nodes.items():
        for neighbor, remote in node.links.remotes.items():
            if neighbor not in network.nodes:
                continue
            back = network.nodes[neighbor].links.remotes.get(address)
            ends = (remote.state, None if back is None else back.state)
            end_states[min(address, neighbor), max(address, neighbor)] = ends
    return end_states


def parts(network):
    """Return the parts of the network that active links connect, each as a set of addresses."""
    joined = [{address} for address in network.nodes]
    for (a, b), ends in states(network).items():
        if ends == (ACTIVE, ACTIVE):
            first = next(part for part in joined if a in part)
            second = next(part for part in joined if b in part)
            if first is not second:
                joined.remove(second)
                first |= second
    return joined


def muted(network):
    """Return the links that are muted at both ends."""
    return [link for link, ends in states(network).items() if ends == (MUTED, MUTED)]

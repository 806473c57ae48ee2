"""The example network of TinyMQ's paper: 23 nodes and two roots, as far as the paper's text defines it.

The paper shows the network in figure 1. Its text states that there are 23 nodes, and that nodes 6 and 9 are the roots.
Root 6 has four children: its zone is '0', '00', '000', '0000', '0000*', so their keys are 1, 01, 001 and 0001. Node 10
has the key 0101 and one child, 01011: its zone is '0101', '01010', '01010*'. For figure 2 the text gives the routes of
a subscription and an event "01", and states that nodes 7 and 4 have the key 01 in their trees. All links of these
routes are included. The other links, and all positions, are invented.

With `PAPER_SEED` the nodes of a run get these keys. Keys depend on the random order in which children join.
"""

from __future__ import annotations

import networkx as nx

PAPER_ROOTS = (6, 9)
PAPER_SEED = 4

_POSITIONS_M = (  # (x, y) of nodes 1, 2, 3, ...
    *((43, 29), (32, 32), (30, 44), (54, 31), (18, 43), (20, 30), (22, 18), (68, 41)),
    *((66, 28), (12, 10), (56, 43), (77, 17), (8, 34), (33, 13), (2, 4), (90, 26)),
    *((0, 22), (78, 31), (86, 41), (54, 12), (43, 8), (4, 46), (65, 15)),
)
_LINKS = (
    # The links of figure 2's routes: 13 6 7, 13 6 2 1 4, 21 14 7 6 13 and 18 9 4 1 2 6 13.
    *((13, 6), (6, 7), (6, 2), (2, 1), (1, 4), (21, 14), (14, 7), (18, 9), (9, 4)),
    *((7, 10), (10, 15), (6, 5), (5, 3), (3, 2), (5, 22), (22, 13), (13, 17), (17, 10)),
    *((9, 8), (9, 23), (4, 11), (11, 8), (8, 19), (19, 18), (18, 16), (18, 12), (12, 16), (12, 23), (23, 20), (20, 21)),
)


def paper_network() -> nx.DiGraph:
    """Return the paper's example network: positions of nodes in m, and lossless links in both directions."""
    graph = nx.DiGraph()
    for node, position in enumerate(_POSITIONS_M, 1):
        graph.add_node(node, pos=position)
    for first, second in _LINKS:
        graph.add_edge(first, second, pdr=1.0)
        graph.add_edge(second, first, pdr=1.0)
    return graph

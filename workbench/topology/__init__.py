"""Networks to experiment on: networkx graphs with positions and a delivery ratio for each direction of each link.

    regular     grid, line, ring                  every link delivers everything
    strewn      disc, from_positions              links within a radius, everything delivered
    radio       random_geometric, office          delivery ratios from distance, walls and shadowing (Propagation)
    measured    from_links, testbed               delivery ratios as somebody counted them
    numbering   spread, renumbered,               sites far apart, and a numbering in which they come first
                field_with_roots                  the field of TinyMQ's evaluation, numbered so
    form        check, digest, to_dict, from_dict what a scenario stores and compares

Every function returns a ``networkx.DiGraph`` in the normal form that ``workbench.topology.graphs`` describes: int
nodes in ascending order with ``pos=(x_m, y_m)``, arcs in ascending (transmitter, receiver) order with ``pdr``. It is a
`Network`, which shows itself in a notebook as a picture, and is a plain graph else.
``graph.graph["recipe"]`` says how it was made. A graph of your own needs only int nodes: ``check`` does the rest.
Paths, components and the like are networkx's business.
"""

from importlib.util import find_spec
from typing import Any

from workbench.keywords import answer_for
from workbench.topology.generators import disc, from_positions, grid, line, random_geometric, ring
from workbench.topology.graphs import Network, check, digest
from workbench.topology.links import from_links, testbed
from workbench.topology.office import office
from workbench.topology.propagation import Propagation, packet_reception
from workbench.topology.recipes import from_dict, generator_of, to_dict
from workbench.topology.sites import field_with_roots, renumbered, spread

__all__ = [
    "Network",
    "Propagation",
    "check",
    "digest",
    "disc",
    "field_with_roots",
    "from_dict",
    "from_links",
    "from_positions",
    "grid",
    "line",
    "office",
    "packet_reception",
    "random_geometric",
    "renumbered",
    "ring",
    "spread",
    "testbed",
    "to_dict",
]


def __getattr__(name: str) -> Any:
    # A module of this package, which is about to be imported, is no plug-in.
    generator = None if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None else generator_of(name)
    if generator is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return generator


answer_for(__name__)

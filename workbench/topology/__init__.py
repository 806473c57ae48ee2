"""Networks for experiments: networkx graphs with positions and a delivery ratio for each direction of each link.

    regular     grid, line, ring                  every link delivers all frames
    random      disc, from_positions              links within a radius, which deliver all frames
    radio       random_geometric, office          delivery ratios from distance, walls and shadowing (Propagation)
    measured    from_links, testbed               measured delivery ratios
    numbering   spread, renumbered,               nodes far apart, and a numbering in which they come first
                field_with_roots                  the field of TinyMQ's evaluation with this numbering
    form        check, digest, to_dict, from_dict the form that a scenario stores and compares

Every network is a ``networkx.DiGraph`` in the normal form that ``workbench.topology.graphs`` describes: int nodes in
ascending order with ``pos=(x_m, y_m)``, arcs in ascending (transmitter, receiver) order with ``pdr``. It is a
`Network`: a plain graph that a notebook displays as a picture. ``graph.graph["recipe"]`` records the generator and its
arguments. A graph of your own needs only int nodes: ``check`` completes it. Use networkx for paths and components.
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
    # Importing a submodule calls this function too; the names of submodules are not plug-ins.
    generator = None if name.startswith("_") or find_spec(f"{__name__}.{name}") is not None else generator_of(name)
    if generator is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return generator


answer_for(__name__)

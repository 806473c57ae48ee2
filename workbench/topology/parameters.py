"""What each generator of networks can be set to, as tables: forms are made of them.

Ranges are those that a hand on a slider wants, narrower than what the generators accept. The tables have the
generators' names and defaults; where a generator has no default, a small network's.
"""

from collections.abc import Mapping
from typing import Any

import networkx as nx

from workbench.keywords import defaults_of
from workbench.protocols.parameter import Parameter
from workbench.topology.links import testbed
from workbench.topology.office import OFFICE
from workbench.topology.propagation import Propagation
from workbench.topology.recipes import generator_of

MOST_NODES = 2000  # of a form: a network of so many is made in about a second


def _seed() -> Parameter:
    return Parameter("seed", 1, 0, 2**31 - 1, "", "another seed, another network of the same kind")


def _spacing() -> Parameter:
    return Parameter("spacing_m", 10.0, 0.1, 1000.0, "m", "distance between neighbors")


def _area(nodes: int, width_m: float, height_m: float) -> tuple[Parameter, ...]:
    return (
        Parameter("nodes", nodes, 1, MOST_NODES, "", "strewn evenly over the area"),
        Parameter("width_m", width_m, 1.0, 10_000.0, "m", "width of the area"),
        Parameter("height_m", height_m, 1.0, 10_000.0, "m", "height of the area"),
    )


def _min_pdr(most: float) -> Parameter:
    return Parameter("min_pdr", 0.1, 0.001, most, "", "links that deliver a smaller share of frames are left out")


TABLES: dict[str, tuple[Parameter, ...]] = {
    "grid": (
        Parameter("rows", 5, 1, 100, "", "nodes from bottom to top"),
        Parameter("columns", 5, 1, 100, "", "nodes from left to right"),
        _spacing(),
    ),
    "line": (Parameter("nodes", 10, 1, MOST_NODES, "", "in a row, each linked to the next"), _spacing()),
    "ring": (Parameter("nodes", 12, 3, MOST_NODES, "", "on a circle, each linked to the next"), _spacing()),
    "disc": (
        *_area(50, 80.0, 80.0),
        Parameter("radius_m", 20.0, 0.1, 1000.0, "m", "nodes at most so far apart are linked; needs to connect all"),
        _seed(),
    ),
    "random_geometric": (*_area(50, 200.0, 200.0), _min_pdr(1.0), _seed()),
    "office": (
        Parameter("nodes", 64, 1, 1000, "", "a fifth of them hangs along the corridor, the others are in the rooms"),
        Parameter("rooms", 16, 2, 100, "", "an even number: as many on both sides of the corridor"),
        Parameter("wall_dB", 8.0, 0.0, 40.0, "dB", "what a wall takes: brick 8, plasterboard 3 to 5"),
        _min_pdr(0.5),
        _seed(),
    ),
    "testbed": (
        Parameter("min_pdr", 0.1, 0.0, 1.0, "", "links that deliver a smaller share of frames are left out"),
        Parameter("max_range_m", 0.0, 0.0, 100.0, "m", "longer links are left out; 0: none is"),
        Parameter("attenuation_dB", 0.0, 0.0, 60.0, "dB", "as if every mote sent with so much less power"),
    ),
}

_RADIO = {
    "transmit_power_dBm": (-50.0, 30.0, "dBm", "power of every transmitter"),
    "loss_1m_dB": (0.0, 100.0, "dB", "path loss at 1 m"),
    "exponent": (1.0, 10.0, "", "path loss exponent: 2 free space, 3 to 4 among people and furniture"),
    "shadowing_dB": (0.0, 30.0, "dB", "standard deviation of the shadowing, the same in both directions"),
    "asymmetry_dB": (0.0, 30.0, "dB", "standard deviation of each direction's own variation"),
    "noise_dBm": (-130.0, -50.0, "dBm", "noise floor"),
    "frame_B": (1, 127, "B", "length of the frame whose delivery ratio is given"),
}
_DEFAULTS = {"random_geometric": Propagation(), "office": OFFICE}
# How radio waves spread, for the generators that ask for a ``propagation``.
PROPAGATION: dict[str, tuple[Parameter, ...]] = {
    kind: tuple(Parameter(name, getattr(default, name), *line) for name, line in _RADIO.items())
    for kind, default in _DEFAULTS.items()
}


def table_of(kind: str) -> tuple[Parameter, ...]:
    """Return the table of a generator. That of a plug-in is its ``parameters``, or made of its signature."""
    if kind in TABLES:
        return TABLES[kind]
    generator = generator_of(kind)
    defaults = [Parameter(*one, None, None, "", "default of the plug-in") for one in defaults_of(generator)[0].items()]
    return tuple(getattr(generator, "parameters", defaults))


def values_of(kind: str, recipe: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """{parameter: value} of a kind's tables, as a recipe has them; what it has not, and without one, the defaults."""
    recipe = recipe or {}
    told = {**recipe, **(recipe.get("propagation") or {})}
    table = (*table_of(kind), *PROPAGATION.get(kind, ()))
    return {one.name: one.default if told.get(one.name) is None else told[one.name] for one in table}


def made(kind: str, values: Mapping[str, Any], name: str = "") -> nx.DiGraph:
    """The network of a kind with these values of its tables (`values_of`); ``name``: which testbed.

    ParameterError and DataError as of the generator.
    """
    if kind == "testbed":
        return testbed(name, **{**values, "max_range_m": values["max_range_m"] or None})
    arguments = {one.name: values[one.name] for one in table_of(kind)}
    if kind in PROPAGATION:
        arguments["propagation"] = Propagation(**{one.name: values[one.name] for one in PROPAGATION[kind]})
    return generator_of(kind)(**arguments)

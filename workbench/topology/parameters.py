"""Parameter tables of the network generators, from which the user interface builds its forms.

A table has the names and defaults of a generator's parameters, and a range for each. The ranges suit a slider and are
narrower than those of the generators. A parameter without a default has the value of a small network.
"""

from collections.abc import Mapping
from typing import Any

import networkx as nx

from workbench.keywords import defaults_of
from workbench.protocols.parameter import Parameter
from workbench.topology.links import testbed
from workbench.topology.office import OFFICE
from workbench.topology.propagation import Propagation
from workbench.topology.recipes import argument_paths, generator_of

MOST_NODES = 2000  # limit of a form: a network of this size takes about a second


def _seed_parameter() -> Parameter:
    return Parameter("seed", 1, 0, 2**31 - 1, "", "seed of the random network")


def _spacing_parameter() -> Parameter:
    return Parameter("spacing_m", 10.0, 0.1, 1000.0, "m", "distance between neighbors")


def _area_parameters(nodes: int, width_m: float, height_m: float) -> tuple[Parameter, ...]:
    return (
        Parameter("nodes", nodes, 1, MOST_NODES, "", "number of nodes at random positions"),
        Parameter("width_m", width_m, 1.0, 10_000.0, "m", "width of the area"),
        Parameter("height_m", height_m, 1.0, 10_000.0, "m", "height of the area"),
    )


def _radius_parameter() -> Parameter:
    return Parameter("radius_m", 20.0, 0.1, 1000.0, "m", "largest length of a link; it must connect all nodes")


def _min_pdr_parameter(most: float) -> Parameter:
    return Parameter("min_pdr", 0.1, 0.001, most, "", "links that deliver a smaller share of frames are omitted")


TABLES: dict[str, tuple[Parameter, ...]] = {
    "grid": (
        Parameter("rows", 5, 1, 100, "", "number of nodes from bottom to top"),
        Parameter("columns", 5, 1, 100, "", "number of nodes from left to right"),
        _spacing_parameter(),
    ),
    "line": (
        Parameter("nodes", 10, 1, MOST_NODES, "", "number of nodes, each linked to the next"),
        _spacing_parameter(),
    ),
    "ring": (
        Parameter("nodes", 12, 3, MOST_NODES, "", "number of nodes on a circle"),
        _spacing_parameter(),
    ),
    "disc": (
        *_area_parameters(50, 80.0, 80.0),
        _radius_parameter(),
        _seed_parameter(),
    ),
    "random_geometric": (*_area_parameters(50, 200.0, 200.0), _min_pdr_parameter(1.0), _seed_parameter()),
    "office": (
        Parameter("nodes", 64, 1, 1000, "", "number of nodes, a fifth of them along the corridor"),
        Parameter("rooms", 16, 2, 100, "", "number of rooms, even: half on each side of the corridor"),
        Parameter("wall_dB", 8.0, 0.0, 40.0, "dB", "attenuation of a wall: brick 8, plasterboard 3 to 5"),
        _min_pdr_parameter(0.5),
        _seed_parameter(),
    ),
    "testbed": (
        Parameter("min_pdr", 0.1, 0.0, 1.0, "", "links that deliver a smaller share of frames are omitted"),
        Parameter("max_range_m", 0.0, 0.0, 100.0, "m", "longer links are omitted; 0: no limit"),
        Parameter("attenuation_dB", 0.0, 0.0, 60.0, "dB", "reduction of every mote's transmit power"),
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
# Radio propagation, for the generators with the argument ``propagation``.
PROPAGATION: dict[str, tuple[Parameter, ...]] = {
    kind: tuple(Parameter(name, getattr(default, name), *field) for name, field in _RADIO.items())
    for kind, default in _DEFAULTS.items()
}


def table_of(kind: str) -> tuple[Parameter, ...]:
    """Return the parameter table of generator ``kind``.

    For a user's own generator, this is the generator's attribute ``parameters``, or a table made from its signature.
    """
    if kind in TABLES:
        return TABLES[kind]
    if kind == "from_positions":
        return (_radius_parameter(),)
    generator = generator_of(kind)
    defaults = [Parameter(*pair, None, None, "", "the plug-in's default") for pair in defaults_of(generator)[0].items()]
    return tuple(getattr(generator, "parameters", defaults))


def of_network(graph: nx.DiGraph) -> dict[str, Parameter]:
    """Return {path: parameter} for the arguments of a network's generator that `Scenario.replace` can change.

    A path is, for example, "topology.nodes" or "topology.propagation.exponent". In the result, the default of each
    parameter is the network's present value. The result is empty for a network that does not record its generator, such
    as an edited network.
    """
    recipe = graph.graph.get("recipe")
    if recipe is None:
        return {}
    kind, present_values = recipe["kind"], values_of(recipe["kind"], recipe)
    parameters = {entry.name: entry for entry in table_of(kind)}
    parameters |= {f"propagation.{entry.name}": entry for entry in PROPAGATION.get(kind, ())}
    unset_arguments = {name for name, value in recipe.items() if value is None}
    return {
        f"topology.{path}": parameters[path]._replace(default=present_values[parameters[path].name])
        for path in argument_paths(recipe)
        if path in parameters and path not in unset_arguments
    }


def values_of(kind: str, recipe: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return {parameter: value} of generator ``kind``, for a form of the user interface.

    ``recipe``: a network's recorded call of the generator, from which the values are taken. Without a recipe, and for a
    value that is missing or None there, the result has the parameter's default.
    """
    recipe = recipe or {}
    arguments = {**recipe, **(recipe.get("propagation") or {})}
    table = (*table_of(kind), *PROPAGATION.get(kind, ()))
    return {
        entry.name: entry.default if arguments.get(entry.name) is None else arguments[entry.name] for entry in table
    }


def generate(kind: str, values: Mapping[str, Any], name: str = "") -> nx.DiGraph:
    """Return the network that generator ``kind`` makes with the arguments ``values``, {parameter: value}.

    ``name``: the name of the testbed, if ``kind`` is "testbed".

    Raises the generator's errors: ParameterError for an invalid value, DataError for missing data of a testbed.
    """
    if kind == "testbed":
        return testbed(name, **{**values, "max_range_m": values["max_range_m"] or None})
    arguments = {entry.name: values[entry.name] for entry in table_of(kind)}
    if kind in PROPAGATION:
        arguments["propagation"] = Propagation(**{entry.name: values[entry.name] for entry in PROPAGATION[kind]})
    return generator_of(kind)(**arguments)

"""Topologies as JSON: the recipe (generator and arguments) of a network, or all its nodes and links."""

import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from typing import Any

import networkx as nx

from workbench import plugins
from workbench.errors import ParameterError, ScenarioError
from workbench.keywords import checked
from workbench.suggestion import meant
from workbench.topology.generators import disc, from_positions, grid, line, random_geometric, ring
from workbench.topology.graphs import (
    LARGEST_NODE,
    build,
    check,
    check_walls,
    coordinates,
    digest_of,
    is_number,
    is_whole,
    to_arrays,
)
from workbench.topology.links import testbed
from workbench.topology.office import office

# from_links is absent: files move, so a network of measured links is stored link by link.
KINDS: dict[str, Callable[..., nx.DiGraph]] = {
    "grid": grid,
    "line": line,
    "ring": ring,
    "disc": disc,
    "random_geometric": random_geometric,
    "office": office,
    "testbed": testbed,
}


def generator_of(kind: Any) -> Any:
    """Return the network generator named ``kind``, such as "grid", or None if the name is unknown.

    Plug-ins can add generators.
    """
    if not isinstance(kind, str):
        return None
    if kind in KINDS:
        return KINDS[kind]
    function = plugins.load("topologies", kind)
    return None if function is None else _record_recipe(kind, function)


def _record_recipe(kind: str, function: Callable[..., nx.Graph]) -> Callable[..., nx.DiGraph]:
    """Return a plug-in's generator, wrapped so that its networks are in normal form and record their arguments.

    ``kind`` is the generator's name, ``function`` the unwrapped generator.
    """

    @wraps(function)
    def generate(*arguments: Any, **keywords: Any) -> nx.DiGraph:
        graph = check(function(*arguments, **keywords))
        bound = inspect.signature(function).bind(*arguments, **keywords)
        bound.apply_defaults()
        graph.graph["recipe"] = {"kind": kind, **bound.arguments}
        return graph

    return checked(generate)


def to_dict(graph: nx.Graph) -> dict[str, Any]:
    """Return {"recipe", "digest"} of an unedited generated network, or {"nodes", "links", "walls"} of other networks.

    nodes [[node, x_m, y_m], ...], links [[transmitter, receiver, pdr], ...], walls [[[x0, y0], [x1, y1]], ...] or
    absent. ``graph`` is any networkx graph that ``check`` accepts.
    """
    arrays = to_arrays(graph)
    recipe, walls = graph.graph.get("recipe"), check_walls(graph.graph.get("walls", []))
    digest = digest_of(arrays)
    wall_rows = [[list(end) for end in wall] for wall in walls]
    is_unchanged = graph.graph.get("digest") == digest and _is_repeatable(recipe)
    if is_unchanged and (not walls or recipe["kind"] == "office" or recipe.get("walls") == wall_rows):
        return {"recipe": recipe, "digest": digest}
    positions = zip(arrays.nodes.tolist(), arrays.positions_m.tolist(), strict=True)
    arcs = zip(arrays.arcs.tolist(), arrays.pdr.tolist(), strict=True)
    stored_form: dict[str, Any] = {"nodes": [[node, x, y] for node, (x, y) in positions]}
    stored_form["links"] = [[transmitter, receiver, pdr] for (transmitter, receiver), pdr in arcs]
    if walls:
        stored_form["walls"] = wall_rows
    return stored_form


def from_dict(form: object) -> nx.DiGraph:
    """Return the network that ``form`` describes, a dictionary in the form that `to_dict` returns.

    Raises ScenarioError for an invalid dictionary, and for a recipe whose network no longer has the stored digest.
    Raises DataError for a testbed whose data are not on this machine; the message names their source.
    """
    if not isinstance(form, Mapping):
        raise ScenarioError(
            f"The topology is {form!r:.60}; it must be an object with a recipe, or with nodes and links."
        )
    known_fields = {"recipe", "digest", "nodes", "links", "walls"}
    unknown_fields = sorted(str(key) for key in form if key not in known_fields)
    if unknown_fields:
        raise ScenarioError(
            f"The topology has a field {unknown_fields[0]!r:.60}; it may have {', '.join(sorted(known_fields))}."
        )
    if "recipe" in form and len(form) > 1 + ("digest" in form):
        raise ScenarioError("The topology has a recipe and also nodes, links or walls; it must have one or the other.")
    graph = _build_from_recipe(form["recipe"]) if "recipe" in form else _build_from_lists(form)
    old_digest = form.get("digest")
    if old_digest is not None and old_digest != graph.graph["digest"]:
        raise ScenarioError(
            f"The topology differs from the stored one (digest {graph.graph['digest'][:12]}..., stored "
            f"{str(old_digest)[:12]}...): its recipe, its data or this version of the workbench has changed; store its "
            "nodes and links instead."
        )
    return graph


def regenerated(graph: nx.Graph, changes: Mapping[str, Any]) -> nx.DiGraph:
    """Return a network from the generator of ``graph`` with some arguments changed; the result is read-only.

    graph     a network from a generator, unedited
    changes   {argument: value}; "propagation.exponent" is the exponent of the argument ``propagation``

    Raises ScenarioError if ``graph`` does not record its generator, if an argument is unknown, or if the generator
    refuses an argument.
    """
    recipe = to_dict(graph).get("recipe")
    if recipe is None:
        raise ScenarioError(
            f"The topology of {len(graph)} nodes was not made by a generator, or was edited since, so "
            f"'topology.{next(iter(changes))}' cannot be changed; give each network as a whole: topology=network."
        )
    new_recipe = json.loads(json.dumps(recipe))
    for path, value in changes.items():
        *outer_names, name = path.split(".")
        arguments = new_recipe
        for key in outer_names:
            arguments = arguments.get(key)
            if not isinstance(arguments, dict):
                break
        if not isinstance(arguments, dict) or name not in arguments or name == "kind":
            known_paths = ", ".join(f"topology.{known_path}" for known_path in argument_paths(recipe))
            raise ScenarioError(
                f"'topology.{path}' is not an argument of the generator {recipe['kind']}; it has {known_paths}."
            )
        arguments[name] = value
    try:
        recipe_json = json.dumps(new_recipe)
    except (TypeError, ValueError, RecursionError):
        raise ScenarioError(
            f"The changes of the topology are {changes!r:.60}; their values must be numbers or texts."
        ) from None
    return _generate_once(recipe_json)


def argument_paths(recipe: Mapping[str, Any]) -> list[str]:
    """Return the names of a generator's arguments that `regenerated` can change, such as "propagation.exponent".

    ``recipe`` is the record of the generator's call: its name and arguments.
    """
    paths = []
    for name, value in recipe.items():
        if isinstance(value, Mapping):
            paths += [f"{name}.{inner_name}" for inner_name in value]
        elif name != "kind" and not isinstance(value, list):
            paths.append(name)
    return paths


@lru_cache(maxsize=64)
def _generate_once(text: str) -> nx.DiGraph:
    """Return the network that a recipe (generator and arguments), given as JSON, describes.

    Results are cached, so the scenarios of a sweep share a network.
    """
    return nx.freeze(_build_from_recipe(json.loads(text)))


def _is_repeatable(recipe: Any) -> bool:
    kind = recipe.get("kind") if isinstance(recipe, Mapping) else None
    if kind != "from_positions" and generator_of(kind) is None:
        return False
    try:
        return bool(json.loads(json.dumps(recipe, allow_nan=False)) == recipe)
    except (TypeError, ValueError, RecursionError):
        return False


def _build_from_recipe(recipe: Any) -> nx.DiGraph:
    kind = recipe.get("kind") if isinstance(recipe, Mapping) else None
    if kind == "from_positions":
        return _build_from_positions(recipe)
    generator = generator_of(kind)
    if generator is None:
        kinds = (*KINDS, *plugins.names("topologies", KINDS), "from_positions")
        suggestion = meant(kind, kinds)
        raise ScenarioError(
            f"The topology's recipe has the kind {kind!r:.60}{suggestion}; it must be one of {', '.join(kinds)}."
        )
    arguments = {str(name): value for name, value in recipe.items() if name != "kind"}
    return _call_generator(str(kind), generator, arguments)


def _build_from_positions(recipe: Mapping[str, Any]) -> nx.DiGraph:
    arguments = {str(name): value for name, value in recipe.items() if name != "kind"}
    arguments["positions"] = dict(_read_positions("the recipe's positions", arguments.get("positions")))
    return _call_generator("from_positions", from_positions, arguments)


def _call_generator(kind: str, generator: Callable[..., nx.DiGraph], arguments: dict[str, Any]) -> nx.DiGraph:
    parameters = inspect.signature(generator).parameters
    for name in arguments:
        if name not in parameters:
            known_arguments = ", ".join(parameters)
            raise ScenarioError(f"The topology's recipe {kind} has no argument {name!r:.60}; it has {known_arguments}.")
    for name, parameter in parameters.items():
        if name not in arguments and parameter.default is parameter.empty:
            raise ScenarioError(f"The topology's recipe {kind} lacks the argument {name}.")
    try:
        return generator(**arguments)
    except ParameterError as error:
        raise ScenarioError(f"The topology's recipe {kind} cannot be generated: {error}") from error


def _build_from_lists(form: Mapping[str, Any]) -> nx.DiGraph:
    positions = _read_positions("the topology's nodes", form.get("nodes"))
    nodes = [node for node, _ in positions]
    links = _check_links(form.get("links"), set(nodes))
    walls = check_walls(form["walls"]) if form.get("walls") else []
    attributes = {"walls": walls} if walls else {}
    return build(
        nodes,
        [position for _, position in positions],
        [link[:2] for link in links],
        [x[2] for x in links],
        **attributes,
    )


def _read_positions(name: str, rows: Any) -> list[tuple[int, tuple[float, float]]]:
    """Return [(node, (x_m, y_m)), ...] from a list of [node, x_m, y_m]."""
    if not isinstance(rows, list) or not rows:
        raise ScenarioError(
            f"{name.capitalize()} are {rows!r:.60}; they must be a list of [node, x_m, y_m] with at least one node."
        )
    position_of_node: dict[int, tuple[float, float]] = {}
    for index, node_row in enumerate(rows):
        are_numbers = (
            isinstance(node_row, list)
            and len(node_row) == 3
            and _is_node(node_row[0])
            and all(map(_is_finite, node_row[1:]))
        )
        position = coordinates(node_row[1:]) if are_numbers else None
        if position is None:
            raise ScenarioError(f"Entry {index} of {name} is {node_row!r:.60}; it must be [node, x_m, y_m].")
        if node_row[0] in position_of_node:
            raise ScenarioError(f"Entry {index} of {name} repeats node {node_row[0]}; each node must be listed once.")
        position_of_node[node_row[0]] = position
    return list(position_of_node.items())


def _check_links(rows: Any, nodes: set[int]) -> list[list[Any]]:
    if not isinstance(rows, list):
        raise ScenarioError(
            f"The topology's links are {rows!r:.60}; they must be a list of [transmitter, receiver, pdr]."
        )
    known_links: set[tuple[int, int]] = set()
    for index, link_row in enumerate(rows):
        if not (
            isinstance(link_row, list)
            and len(link_row) == 3
            and all(map(_is_finite, link_row))
            and 0 <= link_row[2] <= 1
        ):
            raise ScenarioError(
                f"Entry {index} of the topology's links is {link_row!r:.60}; it must be [transmitter, receiver, pdr]."
            )
        if (
            not (_is_node(link_row[0]) and _is_node(link_row[1]) and {link_row[0], link_row[1]} <= nodes)
            or link_row[0] == link_row[1]
        ):
            raise ScenarioError(
                f"Entry {index} of the topology's links is {link_row!r:.60}; it must join two different nodes of the "
                "topology's list `nodes`."
            )
        if (link_row[0], link_row[1]) in known_links:
            raise ScenarioError(
                f"Entry {index} of the topology's links repeats {link_row[0]} -> {link_row[1]}; keep one."
            )
        known_links.add((link_row[0], link_row[1]))
    return rows


def _is_node(value: Any) -> bool:
    return is_whole(value) and 0 <= value <= LARGEST_NODE


def _is_finite(value: Any) -> bool:
    return is_number(value) and abs(value) < math.inf

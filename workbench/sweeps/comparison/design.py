"""The points of a comparison: protocols × axes × seeds, with the same network and workload for each seed.

Theory of operation
    For each seed, all protocols get the same network and the same workload. A network of a random generator is
    drawn again for each seed. Any other network is used unchanged.

    Axes are paths of `Scenario.replace`, or these names, which change the network or the workload of the scenario:

    nodes      number of nodes of a generated network; its area grows with it, so that the density stays the same
    sinks      number of nodes that subscribe: those of the scenario first, then nodes drawn at random for each seed
    sources    number of nodes that publish, chosen in the same way
    every_s    period of all publications

    The sinks of a point are also sinks of each point with the same seed and more sinks. Nodes that some protocols need
    in a special role, such as the roots of trees, are chosen by a rule and never by hand. A root that is placed at the
    sink, for example, would favor the protocol that uses this root.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx

from workbench import draws, purposes
from workbench.errors import ScenarioError
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Publish, Subscribe
from workbench.suggestion import meant
from workbench.sweeps.design import Design, Grid
from workbench.topology.graphs import is_whole
from workbench.topology.recipes import regenerated, to_dict

WORKLOAD_AXES = ("sinks", "sources", "every_s")
_SINKS, _SOURCES, _ROLES = range(100, 103)  # draws for WORKLOAD that random workloads do not use


@dataclass(frozen=True, repr=False)
class Compared(Design):
    """The points of a comparison. ``grid`` has the axis "protocol", the user's axes, and the axis "seed".

    ``scenario`` is the base scenario. ``rule`` is the name of the rule in `RULES` that chooses the nodes with special
    roles, such as roots.
    """

    scenario: Scenario
    grid: Grid
    rule: str

    @property
    def paths(self) -> tuple[str, ...]:  # type: ignore[override]
        """The axes of ``grid`` in order: "protocol", the user's axes (such as "sinks" or "radio.loss"), "seed"."""
        return self.grid.paths

    def __len__(self) -> int:
        return len(self.grid)

    def overrides(self, number: int) -> dict[str, Any]:
        """Return the arguments {path: value} with which `Scenario.replace` makes the scenario of point ``number``.

        The paths are "protocol", "topology", "workload", "seed", and paths of the user's axes such as "radio.loss".
        """
        axis_values = self.grid.overrides(number)
        protocol, seed = axis_values.pop("protocol"), axis_values["seed"]
        workload_values = {name: axis_values.pop(name) for name in WORKLOAD_AXES if name in axis_values}
        arguments = {
            path.partition(".")[2]: axis_values.pop(path) for path in [*axis_values] if path.startswith("topology.")
        }
        nodes = axis_values.pop("nodes", None)
        if nodes is not None:
            arguments = {**resized(self.scenario.topology, nodes), **arguments}
        topology = network_of(self.scenario.topology, arguments, seed)
        workload = change_workload(self.scenario.workload, topology, seed, **workload_values)
        protocol = with_roles(protocol, topology, self.rule, seed)
        return {"protocol": protocol, "topology": topology, "workload": workload, **axis_values}

    def labels(self, number: int) -> dict[str, Any]:
        """Return {axis: label of its value in tables} for point ``number``."""
        return self.grid.labels(number)

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels (texts in tables) of all values of the varied parameter ``path``, such as "seed"."""
        return self.grid.labels_of(path)

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs: at most 200.

        Up to this limit, the points contain each value of each axis except "seed". They have only two seeds, because a
        random network may have to be generated for each seed, which is slow.
        """
        seed_count = len(self.grid.axes[-1].values)
        return [number for number in self.grid.probes() if number % seed_count in (0, seed_count - 1)][:200] or [0]

    def text(self) -> str:
        """Return a text with each axis and its number of values: "protocol (2) × sinks (3) × seed (30)"."""
        return self.grid.text()

    def describe(self) -> dict[str, Any]:
        """Return the axes and their labels as JSON values, for a file in the folder of results.

        The key "roles" has the rule that chooses the nodes with special roles, such as roots.
        """
        return {**self.grid.describe(), "design": "Compared", "roles": self.rule}


def network_of(base: nx.DiGraph, arguments: Mapping[str, Any], seed: int) -> nx.DiGraph:
    """Return the network ``base``, generated again with the changed ``arguments`` {name: value} of its generator.

    A random generator also gets the ``seed``, so each seed has its own network. If the generator is not random and
    ``arguments`` is empty, ``base`` itself is returned.
    """
    recipe = to_dict(base).get("recipe") or {}
    changed_arguments = {
        **arguments,
        **({"seed": seed} if "seed" in recipe and recipe["kind"] != "from_positions" else {}),
    }
    return regenerated(base, changed_arguments) if changed_arguments else base


def resized(base: nx.DiGraph, nodes: int) -> dict[str, Any]:
    """Return the arguments {name: value} with which the generator of ``base`` makes ``nodes`` nodes at equal density.

    Raises ScenarioError for a network with a fixed number of nodes, such as a measured network, and for a grid if
    ``nodes`` is not a multiple of its number of rows.
    """
    if not is_whole(nodes) or nodes < 1:
        raise ScenarioError(f"nodes is {nodes!r:.60}; it must be a whole number, 1 or more")
    recipe = to_dict(base).get("recipe") or {}
    generator_kind, size_ratio = recipe.get("kind"), nodes / len(base)
    if generator_kind in ("line", "ring"):
        return {"nodes": nodes}
    if generator_kind in ("disc", "random_geometric"):
        side_lengths = {side: round(recipe[side] * size_ratio**0.5, 3) for side in ("width_m", "height_m")}
        return {"nodes": nodes, **side_lengths}
    if generator_kind == "office":
        return {"nodes": nodes, "rooms": max(2, 2 * round(recipe["rooms"] * size_ratio / 2))}
    if generator_kind == "grid":
        grid_rows = max(1, round(recipe["rows"] * size_ratio**0.5))
        if nodes % grid_rows:
            nearest_nodes = max(1, nodes // grid_rows) * grid_rows
            raise ScenarioError(
                f"nodes is {nodes}; a grid in the proportions of the scenario's grid has {grid_rows} rows, so `nodes` "
                f"must be a multiple of {grid_rows}; use {nearest_nodes} nodes"
            )
        return {"rows": grid_rows, "columns": nodes // grid_rows}
    raise ScenarioError(
        f"nodes is {nodes}; a network of the kind {generator_kind} cannot be generated with another size"
    )


def change_workload(
    workload: Sequence[Any],
    topology: nx.DiGraph,
    seed: int,
    sinks: int | None = None,
    sources: int | None = None,
    every_s: float | None = None,
) -> tuple[Any, ...]:
    """Return a workload with the given numbers of sinks and sources and publication period ``every_s`` in seconds.

    None leaves a number or the period unchanged. ``seed`` determines which nodes become further sinks and sources.
    Raises ScenarioError if the network has too few nodes, or if the workload has no sink or source to extend.
    """
    subscribers = _nodes_of(workload, Subscribe, topology)
    publishers = _nodes_of(workload, Publish, topology)
    sink_nodes = (
        None if sinks is None else _choose_nodes("sinks", subscribers, publishers, sinks, topology, seed, _SINKS)
    )
    source_nodes = (
        None
        if sources is None
        else _choose_nodes("sources", publishers, sink_nodes or subscribers, sources, topology, seed, _SOURCES)
    )
    changed_items = []
    for item in workload:
        if isinstance(item, Subscribe) and sink_nodes is not None:
            item = replace(item, at=sink_nodes)
        elif isinstance(item, Publish):
            item = item if source_nodes is None else replace(item, at=source_nodes)
            item = item if every_s is None else replace(item, every_s=every_s)
        changed_items.append(item)
    return tuple(changed_items)


def _nodes_of(workload: Sequence[Any], kind: Any, topology: nx.DiGraph) -> list[int]:
    """Return the nodes of all workload items of the class ``kind``, in the order of the items, each node once."""
    nodes = [node for item in workload if isinstance(item, kind) for node in _resolve_nodes(item.at, topology)]
    return list(dict.fromkeys(nodes))


def _resolve_nodes(at: Any, topology: nx.DiGraph) -> Sequence[int]:
    return sorted(topology) if isinstance(at, str) else at


def _choose_nodes(
    axis: str, own: list[int], others: Sequence[int], count: int, topology: nx.DiGraph, seed: int, stream: int
) -> tuple[int, ...]:
    """Return ``count`` nodes for ``axis`` ("sinks" or "sources"): first ``own``, then nodes chosen at random.

    ``own`` are the scenario's nodes for this axis. Nodes in ``others`` are not chosen. ``seed`` and ``stream``
    determine the choice; each axis has its own ``stream``, so that the choices for the two axes are independent. Raises
    ScenarioError if ``own`` is empty or the network has too few nodes.
    """
    if not is_whole(count) or count < 1:
        raise ScenarioError(f"{axis} is {count!r:.60}; it must be a whole number, 1 or more")
    if not own:
        raise ScenarioError(
            f"the argument `over` has the axis {axis}, but the workload of the scenario has no {axis}; "
            "add at least one to it"
        )
    free_nodes = [node for node in _draw_order(topology, seed, stream) if node not in own and node not in others]
    nodes = (*own, *free_nodes)[:count]
    if len(nodes) < count:
        raise ScenarioError(f"{axis} is {count}; the network has only {len(nodes)} nodes that can be {axis}")
    return nodes


def _draw_order(topology: nx.DiGraph, seed: int, stream: int) -> list[int]:
    """Return all nodes in a random order.

    The order depends on ``seed`` and on ``stream``, a number that separates draws for different purposes.
    """
    return sorted(topology, key=lambda node: (draws.make_key(seed, purposes.WORKLOAD, stream, node), node))


# Nodes with roles


def with_roles(protocol: Protocol, topology: nx.DiGraph, rule: str, seed: int) -> Protocol:
    """Return the protocol with its special roles, such as roots, assigned to nodes that ``rule`` chooses.

    Each role keeps its number of nodes. ``rule`` is a name in `RULES`; the rule "random" chooses nodes by ``seed``.
    """
    nodes_by_setting = protocol.named_nodes()
    if not nodes_by_setting:
        return protocol
    chosen_nodes = {setting: RULES[rule](topology, len(nodes), seed) for setting, nodes in nodes_by_setting.items()}
    return protocol.public_class()(**{**protocol.settings, **chosen_nodes})


def by_degree(topology: nx.DiGraph, count: int, seed: int) -> tuple[int, ...]:
    """Return ``count`` nodes, those with the most neighbors first; no two of them are neighbors if possible.

    ``seed`` is not used; all rules in `RULES` have the same parameters.
    """
    nodes_by_degree = sorted(topology, key=lambda node: (-topology.degree(node), node))
    chosen_nodes: list[int] = []
    for node in nodes_by_degree:
        if len(chosen_nodes) < count and not any(topology.has_edge(node, chosen_node) for chosen_node in chosen_nodes):
            chosen_nodes.append(node)
    chosen_nodes += [node for node in nodes_by_degree if node not in chosen_nodes][: count - len(chosen_nodes)]
    return tuple(chosen_nodes)


def by_center(topology: nx.DiGraph, count: int, seed: int) -> tuple[int, ...]:
    """Return ``count`` nodes: the node nearest to the middle, then one by one the node farthest from all chosen ones.

    ``seed`` is not used; all rules in `RULES` have the same parameters.
    """
    positions = dict(topology.nodes(data="pos"))
    center_position = [sum(coordinates) / len(positions) for coordinates in zip(*positions.values(), strict=True)]

    def distance(a: Sequence[float], b: Sequence[float]) -> float:
        return round(((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2) ** 0.5, 6)

    chosen_nodes = [min(positions, key=lambda node: (distance(positions[node], center_position), node))]
    while len(chosen_nodes) < count:
        other_nodes = (node for node in positions if node not in chosen_nodes)
        distances = {
            node: min(distance(positions[node], positions[chosen_node]) for chosen_node in chosen_nodes)
            for node in other_nodes
        }
        chosen_nodes.append(min(distances, key=lambda node: (-distances[node], node)))
    return tuple(chosen_nodes)


def by_chance(topology: nx.DiGraph, count: int, seed: int) -> tuple[int, ...]:
    """Return ``count`` nodes drawn at random; ``seed`` determines the draw."""
    return tuple(_draw_order(topology, seed, _ROLES)[:count])


RULES: dict[str, Callable[[nx.DiGraph, int, int], tuple[int, ...]]] = {
    "degree": by_degree,
    "center": by_center,
    "random": by_chance,
}
RULE_TEXTS = {"degree": "of highest degree", "center": "at the center", "random": "at random"}


def check_rule(rule: str) -> str:
    """Return ``rule`` if it is a rule for choosing nodes (a name in `RULES`). Raises ScenarioError otherwise."""
    if rule not in RULES:
        raise ScenarioError(
            f"the argument `roles` is {rule!r:.60}{meant(rule, RULES)}; it must be one of {', '.join(RULES)}"
        )
    return rule

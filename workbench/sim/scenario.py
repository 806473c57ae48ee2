"""The scenario: everything that decides the course of a run, as one frozen value.

A scenario is comparable, has a JSON form in both directions (`file_format`) and a stable content hash. It contains no
code: a protocol is a name and its parameters. A parameter that is an object, such as a filter, is likewise a name and
settings. `runner` plays a scenario.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import networkx as nx

from workbench import attributes, public_names, topology
from workbench.errors import ScenarioError
from workbench.extensions import extensible
from workbench.keywords import checked
from workbench.protocols.protocol import Protocol
from workbench.sensor_field import SensorField
from workbench.sim import file_format, workload
from workbench.sim.file_format import FIELDS
from workbench.sim.radio import Radio
from workbench.sim.readings import LONGEST_S, Readings
from workbench.suggestion import meant
from workbench.topology import recipes
from workbench.topology.graphs import is_number, is_whole


@extensible
@checked
@dataclass(frozen=True, eq=False)
class Scenario:
    """A scenario: topology, protocol, workload, radio, duration (s) and seed. Its method ``run()`` plays it.

    ``topology`` is a networkx graph as `workbench.topology` makes them: ``pos`` in metres at nodes, ``pdr`` at arcs.
    Raises ScenarioError or ParameterError, with an explanation, for values that cannot be run.
    """

    topology: nx.DiGraph
    protocol: Protocol
    workload: tuple[workload.Item, ...] = ()
    radio: Radio = field(default_factory=Radio)
    duration_s: float = 60.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, Protocol):
            raise ScenarioError(_describe_wrong_protocol(self.protocol))
        if not isinstance(self.radio, Radio):
            raise ScenarioError(f"radio is {self.radio!r}; it must be a Radio(...)")
        if isinstance(self.workload, (str, Mapping)) or not isinstance(self.workload, Iterable):
            raise ScenarioError(f"workload is {self.workload!r}; it must be a list of subscribe(...), publish(...)")
        object.__setattr__(self, "topology", normal_form(self.topology))
        object.__setattr__(self, "workload", tuple(self.workload))
        for item in self.workload:
            if not isinstance(item, workload.Item):
                makers = ", ".join(f"{name}(...)" for name in workload.KINDS)
                raise ScenarioError(f"workload has {item!r}; its items must be made with {makers}")
        if not is_number(self.duration_s) or not 0 < self.duration_s <= LONGEST_S:
            limits = f"above 0 and up to {LONGEST_S:g}"
            raise ScenarioError(f"duration_s is {self.duration_s!r:.60}; it must be a number of seconds {limits}")
        object.__setattr__(self, "duration_s", float(self.duration_s))
        if not is_whole(self.seed) or self.seed < 0:
            raise ScenarioError(f"seed is {self.seed!r:.60}; it must be a whole number, 0 or more")
        object.__setattr__(self, "seed", int(self.seed))
        self._check_nodes()

    def _check_nodes(self) -> None:
        nodes = self.topology.nodes
        if not nodes:
            raise ScenarioError("the topology has no nodes; it must have at least one")
        largest, largest_address = max(nodes), self.protocol.largest_address
        if largest > largest_address:
            protocol_name = self.protocol.public_class().__name__
            raise ScenarioError(
                f"node {largest} is beyond {protocol_name}'s largest address {largest_address}, the most that its "
                "frames can hold; "
                f"use a topology with node numbers up to {largest_address}, or a protocol with wider addresses"
            )
        workload.check_nodes(self.workload, nodes)
        workload.check_movements(self.workload, self.topology)
        workload.check_joins(self.workload, nodes)
        if not self.protocol.allows_constrained_data:
            workload.check_unconstrained(self.workload)
        workload.check_size(self.workload, len(nodes), round(self.duration_s * 1_000_000))
        for setting, role_nodes in self.protocol.named_nodes().items():
            for node in role_nodes:
                if node not in nodes:
                    protocol_name = self.protocol.public_class().__name__
                    raise ScenarioError(
                        f"{protocol_name}: {setting} has node {node}, which the topology does not have; "
                        f"its {len(nodes)} nodes are numbered {min(nodes)} to {largest}"
                    )
        for component in self.protocol.parts():
            for node in component.at or ():
                if not is_whole(node) or node not in nodes:
                    label = f"{component.kind} {component.name}"
                    raise ScenarioError(
                        f"{label} is at node {node!r:.60}, which the topology does not have; use one of its nodes"
                    )

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickling creates a new graph. It is checked here once, and not for each scenario derived from this one.
        self.__dict__.update(state)
        object.__setattr__(self, "topology", normal_form(self.topology))

    # Identity and derived values

    @cached_property
    def hash(self) -> str:
        """16 hex digits that identify the scenario: the same on any machine, and different for other scenarios."""
        content = file_format.to_dict(self, _digests[self.topology])
        content_json = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(content_json.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @cached_property
    def extent_m(self) -> tuple[float, float]:
        """The largest x and the largest y coordinate of the nodes, in metres."""
        positions_m = [data["pos"] for _, data in self.topology.nodes(data=True)]
        return max(x for x, _ in positions_m), max(y for _, y in positions_m)

    def __repr__(self) -> str:
        return (
            f"Scenario({_count_text(len(self.topology), 'node')}, {self.protocol!r}, "
            f"{_count_text(len(self.workload), 'workload item')}, "
            f"{self.duration_s:g} s, seed={self.seed}, hash={self.hash})"
        )

    def replace(self, **changes: Any) -> Scenario:
        """Return a copy with changed values: ``replace(seed=3, **{"protocol.ttl": 9, "radio.loss": 0.1})``.

        Each keyword is the path of a value:
            field                   a field of the scenario, such as ``seed``
            ``protocol.``NAME       a parameter of the protocol; ``radio.``NAME of the radio
            ``topology.``NAME       an argument of the network's generator; the network is generated again
            ``workload.``N``.``NAME a field of the workload's item N, counted from 0

        Raises ScenarioError or ParameterError for an unknown path and a value that the scenario cannot have.
        """
        new_fields = {name: getattr(self, name) for name in FIELDS}
        # The changes of the network are applied together: with only some of them, its generator may fail.
        arguments = {path.partition(".")[2]: changes.pop(path) for path in [*changes] if path.startswith("topology.")}
        if arguments:
            new_fields["topology"] = recipes.regenerated(normal_form(changes.pop("topology", self.topology)), arguments)
        for path, value in changes.items():
            field_name, _, subpath = path.partition(".")
            if field_name not in FIELDS or (subpath and field_name not in ("protocol", "radio", "workload")):
                raise ScenarioError(
                    f"a scenario has no {path!r}{meant(path, self._list_paths())}; it has {', '.join(FIELDS)}, "
                    "and protocol.*, radio.*, topology.*, workload.N.*"
                )
            new_fields[field_name] = (
                _replace_value(new_fields[field_name], field_name, subpath, value) if subpath else value
            )
        return Scenario(**new_fields)

    def _list_paths(self) -> list[str]:
        """Return the parameter paths that `replace` accepts, such as "protocol.ttl", except those of workload items."""
        protocol_paths = [f"protocol.{name}" for name in self.protocol.settings]
        recipe = self.topology.graph.get("recipe") or {}
        protocol_paths += [f"topology.{name}" for name in recipes.argument_paths(recipe)]
        return [*FIELDS, *protocol_paths, *(f"radio.{field.name}" for field in fields(Radio))]

    def user_keys(self) -> list[list[Any]]:
        """Return the user's own attribute keys that the workload or the protocol uses.

        A key is [number, name, type, unit, steps, minimum, maximum].
        """
        used_keys = set()
        for item in self.workload:
            used_keys |= workload.keys_of(item)
        for component in self.protocol.parts():
            used_keys.update(component.keys())
        user_numbers = range(attributes.FIRST_USER_KEY, attributes.LAST_USER_KEY + 1)
        return [list(attributes.key_of(key_number)) for key_number in sorted(used_keys) if key_number in user_numbers]

    def to_json(self, indent: int | None = 2) -> str:
        """Return the scenario as JSON text, which `from_json` reads."""
        return json.dumps(file_format.to_dict(self, topology.to_dict(self.topology)), indent=indent)

    @staticmethod
    def from_json(text: str) -> Scenario:
        """Return the scenario that a JSON text describes.

        Raises ScenarioError for a wrong field; the message names the field and what is allowed.
        """
        return file_format.from_json(text, Scenario)


def _count_text(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def _describe_wrong_protocol(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, Protocol):
        return f"protocol is the class {value.__name__}; it must be a protocol such as {value.__name__}()"
    example = next(iter(public_names.PROTOCOLS))
    name_of_lower = {name.lower(): name for name in public_names.PROTOCOLS}
    if isinstance(value, str) and value.lower() in name_of_lower:
        return f"protocol is the text {value!r}; it must be a protocol such as {name_of_lower[value.lower()]}()"
    hint = meant(value, public_names.PROTOCOLS) if isinstance(value, str) else ""
    return f"protocol is {value!r:.60}{hint}; it must be a protocol such as {example}()"


# The topologies of scenarios, in normal form and frozen, with their digests: a topology that `replace` passes on to
# hundreds of scenarios is checked and digested once.
_digests: WeakKeyDictionary[nx.DiGraph, str] = WeakKeyDictionary()
# The normal form of frozen graphs, which cannot change: a sweep uses the same frozen topologies at each point.
_normal_forms: WeakKeyDictionary[nx.Graph, nx.DiGraph] = WeakKeyDictionary()


def normal_form(graph: Any) -> nx.DiGraph:
    """Return the topology of a scenario: a checked and frozen copy of ``graph``.

    If ``graph`` is itself a result of this function, it is returned without a copy. Results for frozen graphs are
    cached.
    """
    if isinstance(graph, nx.DiGraph) and graph in _digests:
        return graph
    if isinstance(graph, nx.Graph) and graph in _normal_forms:
        return _normal_forms[graph]
    normal_graph = nx.freeze(topology.check(graph))
    _digests[normal_graph] = normal_graph.graph["digest"]  # `check` computed it from the arrays
    if nx.is_frozen(graph):
        _normal_forms[graph] = normal_graph
    return normal_graph


def digest_of_network(graph: nx.Graph) -> str:
    """Return the digest of a topology, as hex digits; topologies with equal digests are equal."""
    return _digests[normal_form(graph)]


def _has_key_names(values: Mapping[Any, Any]) -> bool:
    """Return whether all names in a mapping are in capitals, and so may be names of attribute keys.

    This distinguishes attributes from a sensor field as plain values, whose names are in small letters. Names that are
    not texts are ignored.
    """
    return all(not isinstance(name, str) or name.isupper() for name in values)


def _replace_value(value: Any, field_name: str, path: str, new_value: Any) -> Any:
    """Return a copy of the scenario's protocol, radio or workload in which one value is replaced by ``new_value``.

    ``value``: the object to copy, from the scenario's field ``field_name``. ``path``: the value to replace, a parameter
    of the protocol or the radio, or "N.field" for a field of workload item N.
    """
    if field_name == "protocol":
        return value.public_class()(**{**value.settings, path: new_value})
    if field_name == "radio":
        return Radio.from_dict(
            {**value.to_dict(), path: list(new_value) if isinstance(new_value, tuple) else new_value}
        )
    item_number, _, field_of_item = path.partition(".")
    if not item_number.isdecimal() or int(item_number) >= len(value) or not field_of_item:
        raise ScenarioError(f"the workload has no {path!r}; write workload.N.field with N from 0 to {len(value) - 1}")
    item_index = int(item_number)
    item_kind, fields_ = next(iter(workload.to_dict(value[item_index]).items()))
    if isinstance(new_value, SensorField | Readings):
        new_value = new_value.to_dict()
    elif isinstance(new_value, bytes):
        new_value = new_value.hex()
    elif (
        field_of_item == "what"
        and isinstance(new_value, Mapping)
        and item_kind == "publish"
        and _has_key_names(new_value)
    ):
        new_value = attributes.to_text(attributes.describe(new_value))
    new_item = workload.from_dict({item_kind: {**fields_, field_of_item: new_value}}, f"workload item {item_index}")
    return (*value[:item_index], new_item, *value[item_index + 1 :])

"""The scenario: everything that decides what happens in a run, as one frozen value.

A scenario is comparable, has a JSON form both ways and a stable content hash, and holds no code: a protocol is a name
and its parameters, and what these hold besides plain values has a name and settings, too. What a scenario names has to
be known where it is read.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import networkx as nx

from workbench import attributes, plugins, public_names, topology
from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.protocols.protocol import Protocol, plain
from workbench.sensor_field import SensorField
from workbench.sim import workload
from workbench.sim.radio import Radio
from workbench.sim.readings import Readings
from workbench.sim.run import Run
from workbench.suggestion import meant
from workbench.topology.graphs import is_number, is_whole

FORMAT = "workbench-scenario"
VERSION = 1
_FIELDS = ("topology", "protocol", "workload", "radio", "duration_s", "seed")
_EXTRA = ("format", "version", "keys")
# Fields that version 0.1 did not have, with their defaults. At its default such a field is left out of JSON and hash,
# so old scenarios keep their hashes. `Protocol.added` and `radio.ADDED` are the same for parameters and for the radio.
_ADDED: dict[str, Any] = {"keys": []}
ENGINES = ("auto", "reference", "fast")
RECORDS = ("trace", "metrics")


@checked
@dataclass(frozen=True, eq=False)
class Scenario:
    """Topology, protocol, workload, radio, duration (s) and seed. ``run()`` plays it.

    ``topology`` is a networkx graph as `workbench.topology` makes them: ``pos`` in metres at nodes, ``pdr`` at arcs.
    Raises ScenarioError or ParameterError, in a sentence, for anything that could not be run.
    """

    topology: nx.DiGraph
    protocol: Protocol
    workload: tuple[workload.Item, ...] = ()
    radio: Radio = field(default_factory=Radio)
    duration_s: float = 60.0
    seed: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.protocol, Protocol):
            raise ScenarioError(_not_a_protocol(self.protocol))
        if not isinstance(self.radio, Radio):
            raise ScenarioError(f"radio is {self.radio!r}; it must be a Radio(...)")
        if isinstance(self.workload, (str, Mapping)) or not isinstance(self.workload, Iterable):
            raise ScenarioError(f"workload is {self.workload!r}; it must be a list of subscribe(...), publish(...)")
        object.__setattr__(self, "topology", normal_form(self.topology))
        object.__setattr__(self, "workload", tuple(self.workload))
        for item in self.workload:
            if not isinstance(item, workload.Item):
                raise ScenarioError(f"workload has {item!r}; its items are subscribe(...), publish(...), outage(...)")
        if not is_number(self.duration_s) or not 0 < self.duration_s <= workload.LONGEST_S:
            limits = f"above 0 and up to {workload.LONGEST_S:g}"
            raise ScenarioError(f"duration_s is {self.duration_s!r:.60}; it must be a number of seconds {limits}")
        object.__setattr__(self, "duration_s", float(self.duration_s))
        if not is_whole(self.seed) or self.seed < 0:
            raise ScenarioError(f"seed is {self.seed!r:.60}; it must be a whole number, 0 or more")
        object.__setattr__(self, "seed", int(self.seed))
        self._check_nodes()

    def _check_nodes(self) -> None:
        nodes = self.topology.nodes
        if not nodes:
            raise ScenarioError("the topology has no nodes")
        largest, limit = max(nodes), self.protocol.largest_address
        if largest > limit:
            name = self.protocol.public_class().__name__
            raise ScenarioError(
                f"node {largest} is beyond {name}'s largest address {limit}: its frames have no room for more; "
                f"use a topology with node numbers up to {limit}, or a protocol with wider addresses"
            )
        workload.check_nodes(self.workload, nodes)
        workload.check_size(self.workload, len(nodes), round(self.duration_s * 1_000_000))
        for setting, named in self.protocol.named_nodes().items():
            for node in named:
                if node not in nodes:
                    name = self.protocol.public_class().__name__
                    raise ScenarioError(
                        f"{name}: {setting} has node {node}, which the topology does not have; "
                        f"its {len(nodes)} nodes are numbered {min(nodes)} to {largest}"
                    )
        for part in self.protocol.parts():
            for node in part.at or ():
                if not is_whole(node) or node not in nodes:
                    called = f"{part.kind} {part.name}"
                    raise ScenarioError(f"{called} is at node {node!r:.60}, which the topology does not have")

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A graph that was pickled is another one: checked here once, not for each scenario that it is handed on to.
        self.__dict__.update(state)
        object.__setattr__(self, "topology", normal_form(self.topology))

    # What it is

    @cached_property
    def hash(self) -> str:
        """16 hex digits that are the same wherever the scenario is, and differ for any other."""
        content = self._to_dict(_digests[self.topology])
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @cached_property
    def extent_m(self) -> tuple[float, float]:
        """Width and height of the network's bounding box, in metres from the origin."""
        positions = [data["pos"] for _, data in self.topology.nodes(data=True)]
        return max(x for x, _ in positions), max(y for _, y in positions)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        from workbench.views import picture

        return picture.of_scenario(self)

    def __repr__(self) -> str:
        return (
            f"Scenario({_count(len(self.topology), 'node')}, {self.protocol!r}, "
            f"{_count(len(self.workload), 'workload item')}, "
            f"{self.duration_s:g} s, seed={self.seed}, hash={self.hash})"
        )

    def replace(self, **changes: Any) -> Scenario:
        """The same scenario with some things different: ``replace(seed=3, **{"protocol.ttl": 9, "radio.loss": 0.1})``.

        A path is a field, ``protocol.`` or ``radio.`` and a parameter, or ``workload.`` an item's number and a field.
        """
        values = {name: getattr(self, name) for name in _FIELDS}
        for path, value in changes.items():
            head, _, rest = path.partition(".")
            if head not in _FIELDS or (rest and head not in ("protocol", "radio", "workload")):
                raise ScenarioError(
                    f"a scenario has no {path!r}{meant(path, self._paths())}; it has {', '.join(_FIELDS)}, "
                    "and protocol.*, radio.*, workload.N.*"
                )
            values[head] = _replaced(values[head], head, rest, value) if rest else value
        return Scenario(**values)

    def _paths(self) -> list[str]:
        """The paths that `replace` takes, but for those into the workload."""
        own = [f"protocol.{name}" for name in self.protocol.settings]
        return [*_FIELDS, *own, *(f"radio.{field.name}" for field in fields(Radio))]

    # JSON

    def to_json(self, indent: int | None = 2) -> str:
        """The scenario as JSON text that `from_json` reads back."""
        return json.dumps(self._to_dict(topology.to_dict(self.topology)), indent=indent)

    def _to_dict(self, network: Any) -> dict[str, Any]:
        values = {
            "format": FORMAT,
            "version": VERSION,
            "topology": network,
            "protocol": protocol_to_dict(self.protocol),
            "workload": [workload.to_dict(item) for item in self.workload],
            "radio": self.radio.to_dict(),
            "duration_s": self.duration_s,
            "seed": self.seed,
            "keys": self.user_keys(),
        }
        return {name: value for name, value in values.items() if name not in _ADDED or value != _ADDED[name]}

    def user_keys(self) -> list[list[Any]]:
        """The user's own keys that workload and protocol speak of: a file that uses them has to say what they mean."""
        used = set()
        for item in self.workload:
            used |= workload.keys_of(item)
        for part in self.protocol.parts():
            used.update(part.keys())
        mine = range(attributes.FIRST_USER_KEY, attributes.LAST_USER_KEY + 1)
        return [list(attributes.key_of(number)) for number in sorted(used) if number in mine]

    @staticmethod
    def from_json(text: str) -> Scenario:
        """The scenario of a JSON text; ScenarioError says which field is wrong and what would be right."""
        try:
            values = json.loads(text)
        except (ValueError, TypeError) as error:
            is_path = isinstance(text, os.PathLike) or (isinstance(text, str) and text.strip().endswith(".json"))
            hint = "; from_json takes the text of a file, Path(...).read_text()" if is_path else ""
            raise ScenarioError(f"the scenario is not JSON: {error}{hint}") from None
        except RecursionError:
            raise ScenarioError("the scenario is nested too deep to be one") from None
        if not isinstance(values, dict) or values.get("format") != FORMAT:
            raise ScenarioError(f'the text is no scenario; it must be an object with "format": "{FORMAT}"')
        if values.get("version") != VERSION:
            raise ScenarioError(f"the scenario has version {values.get('version')!r}; this workbench reads {VERSION}")
        for name in values:
            if name not in _FIELDS + _EXTRA:
                raise ScenarioError(
                    f"a scenario has no field {name!r}{meant(name, _FIELDS)}; it has: {', '.join(_FIELDS)}"
                )
        for name in ("topology", "protocol"):
            if name not in values:
                raise ScenarioError(f"the scenario has no {name}")
        return _from_dict(values)

    # Running

    def run(
        self,
        engine: str = "auto",
        record: str = "trace",
        progress: Callable[[float], Any] | None = None,
        on: Any = None,
    ) -> Run:
        """Play the scenario and return its Run; ``on`` motes (`workbench.motes`) a run that is still going on.

        ``engine="auto"`` takes the fast engine where it can and where that pays: a small run on its own is over
        before that engine is loaded. ``"fast"`` insists on it, and ScenarioError says why it cannot be. The
        engines' runs are the same, row by row. ``record="metrics"`` keeps no trace. ``progress`` is called now and then
        with the share done, 0 to 1. If it returns True, the run ends there: `Run.scenario` has that duration. On motes
        there is the reference engine alone, and always a trace. A warning names an item of the workload that starts
        after the end of the run.
        """
        engine = checked_engine(engine)
        if record not in RECORDS:
            raise ScenarioError(f"record is {record!r}{meant(record, RECORDS)}; it must be one of {', '.join(RECORDS)}")
        late = workload.describe_late(self.workload, self.duration_s)
        # A sweep would warn once a process, and the lab at every change: there `explain` says it. Two frames up, beyond
        # that of `checked`, is the caller.
        if late and not sys._getframe(2).f_globals.get("__name__", "").startswith("workbench."):
            warnings.warn(late, stacklevel=3)
        if on is not None:
            if record != "trace" or engine == "fast":
                asked = 'record="metrics"' if record != "trace" else 'engine="fast"'
                raise ScenarioError(f"{asked} is not for runs on motes; they are the reference engine's, with a trace")
            from workbench import motes

            return motes.run(self, on, progress)
        from workbench.sim import engine as reference
        from workbench.sim import fast

        reason = 'engine="reference" was asked for'
        if engine != "reference":
            try:
                if engine == "fast" or fast.is_worth_it(self):
                    return self._run_of("fast", fast.run(self, record, progress))
                reason = "the run is so small that loading the fast engine would take longer"
            except WorkbenchError as error:
                if engine == "fast":
                    raise ScenarioError(f"the scenario cannot run on the fast engine: {error}") from error
                reason = str(error)
        return self._run_of("reference", reference.run(self, record, progress), reason)

    def _run_of(self, engine: str, recorder: Any, reason: str = "") -> Run:
        """The run of what was recorded; if it was ended early, of this scenario with that duration."""
        ended_us = recorder.ended_us
        return Run(self if ended_us is None else self.replace(duration_s=ended_us / 1e6), engine, recorder, reason)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def _not_a_protocol(given: Any) -> str:
    """Return a sentence on what was given in place of a protocol."""
    if isinstance(given, type) and issubclass(given, Protocol):
        return f"protocol is the class {given.__name__}; it must be a protocol such as {given.__name__}()"
    first = next(iter(public_names.PROTOCOLS))
    names = {name.lower(): name for name in public_names.PROTOCOLS}
    if isinstance(given, str) and given.lower() in names:
        return f"protocol is the text {given!r}; it must be a protocol such as {names[given.lower()]}()"
    hint = meant(given, public_names.PROTOCOLS) if isinstance(given, str) else ""
    return f"protocol is {given!r:.60}{hint}; it must be a protocol such as {first}()"


def checked_engine(engine: str) -> str:
    """The engine of that name; ScenarioError if there is none. "compiled" is what older notebooks call the fast one."""
    if engine == "compiled":
        return "fast"
    if engine not in ENGINES:
        raise ScenarioError(f"engine is {engine!r}{meant(engine, ENGINES)}; it must be one of {', '.join(ENGINES)}")
    return engine


# The topologies that scenarios hold, in normal form and frozen, with their digests: what `replace` hands on to hundreds
# of scenarios is checked and digested once.
_digests: WeakKeyDictionary[nx.DiGraph, str] = WeakKeyDictionary()
# The normal form of frozen graphs, which do not change: a sweep's topologies are frozen, and come again for each point.
_normal_forms: WeakKeyDictionary[nx.Graph, nx.DiGraph] = WeakKeyDictionary()


def normal_form(graph: Any) -> nx.DiGraph:
    """Return a topology as scenarios hold it: in normal form, frozen, and with a known digest."""
    if isinstance(graph, nx.DiGraph) and graph in _digests:
        return graph
    if isinstance(graph, nx.Graph) and graph in _normal_forms:
        return _normal_forms[graph]
    normal = nx.freeze(topology.check(graph))
    _digests[normal] = normal.graph["digest"]  # of the arrays that it has just been made of
    if nx.is_frozen(graph):
        _normal_forms[graph] = normal
    return normal


def digest_of_network(graph: nx.Graph) -> str:
    """The digest of a topology as scenarios hold it: equal for graphs that make the same scenario."""
    return _digests[normal_form(graph)]


def _from_dict(values: dict[str, Any]) -> Scenario:
    items = values.get("workload", [])
    if not isinstance(items, list):
        raise ScenarioError(f"workload is {items!r}; it must be a list")
    _register_keys(values.get("keys", []))
    try:
        return Scenario(
            topology=topology.from_dict(values["topology"]),
            protocol=protocol_from_dict(values["protocol"]),
            workload=tuple(workload.from_dict(item, f"workload item {i}") for i, item in enumerate(items)),
            radio=Radio.from_dict(values.get("radio", {})),
            duration_s=values.get("duration_s", 60.0),
            seed=values.get("seed", 1),
        )
    except ScenarioError:
        raise
    except WorkbenchError as error:
        raise ScenarioError(str(error)) from None


def _register_keys(keys: Any) -> None:
    try:
        for number, name, type_, unit, steps, minimum, maximum in keys:
            attributes.register_key(number, name, unit, steps, type_, minimum, maximum)
    except WorkbenchError as error:
        raise ScenarioError(f"keys: {error}") from None
    except (TypeError, ValueError):
        raise ScenarioError(
            f"keys is {keys!r}; it must be a list of [number, name, type, unit, steps, minimum, maximum]"
        ) from None


def protocol_to_dict(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol as plain values: its name and its parameters, but for added ones at their defaults."""
    cls = protocol.public_class()
    name = cls.__name__
    if name not in public_names.PROTOCOLS or _public_class(name) is not cls:
        name = f"{cls.__module__}:{name}"
    try:
        values = {"name": name, **{key: plain(value) for key, value in protocol.settings.items()}}
    except ParameterError as error:
        raise ScenarioError(str(error)) from None
    for parameter in protocol.parameters:
        if parameter.name in protocol.added and protocol.settings[parameter.name] == parameter.default:
            del values[parameter.name]
        elif isinstance(parameter.default, float):
            values[parameter.name] = float(values[parameter.name])  # 30 and 30.0 are the same scenario
    return values


def protocol_from_dict(values: Any) -> Protocol:
    """The protocol of plain values; ScenarioError if it is not known here or has no such parameter."""
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise ScenarioError(f'protocol is {values!r}; it must be an object with a "name" and parameters')
    cls = _protocol_class(values["name"])
    settings = cls.settings_from_plain({name: value for name, value in values.items() if name != "name"})
    try:
        return cls(**settings)
    except ParameterError as error:
        raise ScenarioError(f"protocol: {error}") from None


def _protocol_class(name: str) -> type[Protocol]:
    if name in public_names.PROTOCOLS:
        return _public_class(name)
    module, _, cls = name.rpartition(":")
    # A file must not make us import anything: a protocol from elsewhere is a plug-in, or has to be there already.
    found = getattr(sys.modules.get(module), cls, None)
    if isinstance(found, type) and issubclass(found, Protocol):
        return found
    plugin = plugins.load("protocols", cls)
    if plugin is not None and module in ("", plugin.__module__):
        return plugin
    known = sorted([*public_names.PROTOCOLS, *plugins.names("protocols")])
    hint = f"import {module} first" if module else f"known are {', '.join(known)}"
    raise ScenarioError(f"the scenario's protocol {name!r} is not known here{meant(name, known)}; {hint}")


def known_protocols() -> list[str]:
    """Return the names of all protocols: the workbench's, and those of plug-ins."""
    return sorted([*public_names.PROTOCOLS, *plugins.load_all("protocols", public_names.PROTOCOLS)])


def _public_class(name: str) -> type[Protocol]:
    return getattr(importlib.import_module(f"workbench.{public_names.PROTOCOLS[name]}"), name)


def _names_keys(values: Mapping) -> bool:
    """Whether a mapping is of attributes' keys, which are in capitals, and not the plain form of a sensor field."""
    return all(not isinstance(name, str) or name.isupper() for name in values)


def _replaced(value: Any, head: str, path: str, new: Any) -> Any:
    if head == "protocol":
        return value.public_class()(**{**value.settings, path: new})
    if head == "radio":
        return Radio.from_dict({**value.to_dict(), path: list(new) if isinstance(new, tuple) else new})
    number, _, name = path.partition(".")
    if not number.isdecimal() or int(number) >= len(value) or not name:
        raise ScenarioError(f"the workload has no {path!r}; write workload.N.field with N from 0 to {len(value) - 1}")
    index = int(number)
    kind, fields_ = next(iter(workload.to_dict(value[index]).items()))
    if isinstance(new, SensorField | Readings):
        new = new.to_dict()
    elif isinstance(new, bytes):
        new = new.hex()
    elif name == "what" and isinstance(new, Mapping) and kind == "publish" and _names_keys(new):
        new = attributes.to_text(attributes.describe(new))
    changed = workload.from_dict({kind: {**fields_, name: new}}, f"workload item {index}")
    return (*value[:index], changed, *value[index + 1 :])

"""The plan of a sweep: axes of values, and a point for each combination of them, in the order of nested loops.

A point is the base scenario with some things replaced. It is named by a number (its place in the plan, which
workers turn back into a scenario) and by a key (what its result is kept under): the key is a hash of the scenario's
own hash, the engine asked for, the package's version and the code of user filters and protocols that take part, and
of the measure, if there is one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any, NamedTuple

import networkx as nx

import workbench
from workbench import topology
from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim.radio import Radio
from workbench.sim.scenario import Scenario, checked_engine
from workbench.sim.workload import Item, to_dict
from workbench.sweeps import user_code

Measure = Callable[[Any], Mapping[str, float]]
_LONGEST_LABEL = 60
_WRONG_VALUE = (WorkbenchError, TypeError, ValueError, AttributeError, KeyError)


@dataclass(frozen=True)
class Axis:
    """What is varied (a path as `Scenario.replace` takes it), its values, and how a table shows each of them.

    A label is the value itself for numbers, texts and booleans, else a text; labels are unique.
    """

    path: str
    values: tuple[Any, ...]
    labels: tuple[Any, ...]


class Point(NamedTuple):
    """One combination: its place in the plan, the key of its result, its scenario's hash and seed, and its labels."""

    number: int
    key: str
    scenario: str
    seed: int
    labels: dict[str, Any]


class _Built(NamedTuple):
    """What is kept of a point's scenario; the scenario itself is quickly made again."""

    hash: str
    seed: int
    protocol: Protocol


@dataclass(frozen=True)
class Plan:
    """A base scenario, axes and the engine that is asked for: all that a worker needs to run point ``number``.

    ``protocols`` are examples of all user code that takes part, for runners that have to ship it. ``measure`` is a
    function that is given a run with its trace, and answers with metrics of its own: name -> number.
    """

    scenario: Scenario
    axes: tuple[Axis, ...]
    engine: str = "auto"
    protocols: tuple[Protocol, ...] = ()
    measure: Measure | None = None

    def __len__(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    def places(self, number: int) -> list[int]:
        """The place on each axis of a point; the last axis turns fastest."""
        places = []
        for axis in reversed(self.axes):
            number, place = divmod(number, len(axis.values))
            places.append(place)
        return places[::-1]

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        return {axis.path: axis.labels[i] for axis, i in zip(self.axes, self.places(number), strict=True)}

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point, whole objects before their parameters: a ttl must not be lost to its protocol."""
        chosen = [(axis.path, axis.values[i]) for axis, i in zip(self.axes, self.places(number), strict=True)]
        return dict(sorted(chosen, key=lambda override: override[0].count(".")))

    def scenario_of(self, number: int) -> Scenario:
        """The scenario of a point."""
        return self.scenario.replace(**self.overrides(number))

    def text_of(self, number: int) -> str:
        """A point in words, for messages: "protocol.ttl=9, seed=3"."""
        return ", ".join(f"{path}={label}" for path, label in self.labels(number).items())


class CheckedPlan:
    """A plan of which every scenario was built once: ScenarioError names the path whose value cannot be used."""

    def __init__(
        self, scenario: Scenario, over: Mapping[str, Any], engine: str, measure: Measure | None = None
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise ScenarioError(f"a sweep is over a Scenario, not over {scenario!r:.80}")
        if not isinstance(over, Mapping) or not over:
            raise ScenarioError(f'over is {over!r:.80}; it must say what to vary: over={{"seed": range(30)}}')
        if measure is not None and not isinstance(measure, FunctionType):
            raise ScenarioError(f"measure is {measure!r:.80}; it must be a function that takes a run")
        axes = tuple(_axis(path, values) for path, values in over.items())
        plan = Plan(scenario, axes, checked_engine(engine), measure=measure)
        self._built = [_build(plan, number) for number in range(len(plan))]
        self.plan = replace(plan, protocols=_examples(built.protocol for built in self._built))
        self._check_distinct()

    def _check_distinct(self) -> None:
        first: dict[str, int] = {}
        for number, built in enumerate(self._built):
            twin = first.setdefault(built.hash, number)
            if twin != number:
                raise ScenarioError(
                    f"the sweep has the same scenario twice, for {self.plan.text_of(twin)} and for "
                    f"{self.plan.text_of(number)}; each value of an axis must be there once"
                )

    def points(self) -> list[Point]:
        """All points in order. Keys follow the user's code as it is now: a filter may be registered anew."""
        codes = user_code.Digests()
        measure = user_code.words_of(self.plan.measure)
        points = []
        for number, built in enumerate(self._built):
            words = (built.hash, self.plan.engine, workbench.__version__, codes.of(built.protocol), *measure)
            key = hashlib.sha256(" ".join(words).encode()).hexdigest()[:16]
            points.append(Point(number, key, built.hash, built.seed, self.plan.labels(number)))
        return points


def _examples(protocols: Iterable[Protocol]) -> tuple[Protocol, ...]:
    """One protocol for each different set of user code."""
    return tuple({tuple(user_code.of(protocol)): protocol for protocol in protocols}.values())


def _build(plan: Plan, number: int) -> _Built:
    try:
        scenario = plan.scenario_of(number)
    except _WRONG_VALUE as error:
        raise ScenarioError(f"the sweep cannot have {_culprit(plan, number)}: {error}") from None
    return _Built(scenario.hash, scenario.seed, scenario.protocol)


def _culprit(plan: Plan, number: int) -> str:
    """The one override that does not work by itself, or all of them: then it is how they go together."""
    labels = plan.labels(number)
    for path, value in plan.overrides(number).items():
        try:
            plan.scenario.replace(**{path: value})
        except _WRONG_VALUE:
            return f"{path}={labels[path]}"
    return plan.text_of(number)


def _axis(path: Any, given: Any) -> Axis:
    if not isinstance(path, str):
        raise ScenarioError(f'a sweep varies paths such as "protocol.ttl" or "seed", not {path!r:.80}')
    if isinstance(given, (str, bytes, nx.Graph)) or not isinstance(given, Iterable):
        raise ScenarioError(f"the values of {path} are {given!r:.80}; they must be a list of values")
    if isinstance(given, Mapping):
        labels, values = [str(name) for name in given], list(given.values())
    else:
        values = [_native(value) for value in given]
        labels = [_label(value) for value in values]
    if not values:
        raise ScenarioError(f"{path} has no values; a sweep needs at least one")
    if path == "topology":
        values = [_frozen(value) for value in values]
    return Axis(path, tuple(values), tuple(_unique(labels)))


def _frozen(graph: Any) -> Any:
    """A topology of which scenarios need to find the normal form but once, here and on each worker."""
    try:
        return nx.freeze(topology.check(graph))
    except _WRONG_VALUE:
        return graph  # What is wrong with it is told with the point that has it.


def _native(value: Any) -> Any:
    """numpy's numbers as Python's own: a range made by ``np.arange`` is as good as one made by ``range``."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def _unique(labels: list[Any]) -> list[Any]:
    seen: dict[Any, int] = {}
    unique = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        unique.append(f"{label} #{seen[label]}" if seen[label] > 1 and isinstance(label, str) else label)
    return unique


def _label(value: Any) -> Any:
    """The value itself if a table can show it, else a short text."""
    if isinstance(value, (bool, int, float, str)):
        return value
    text = _describe(value)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."


def _describe(value: Any) -> str:
    if isinstance(value, nx.Graph):
        return _describe_topology(value)
    if isinstance(value, Radio):
        changed = [f.name for f in fields(Radio) if getattr(value, f.name) != f.default]
        return f"Radio({', '.join(f'{name}={getattr(value, name)}' for name in changed)})".removesuffix("()")
    if isinstance(value, Protocol):
        return repr(value).removesuffix("()")
    if isinstance(value, Item):
        ((kind, content),) = to_dict(value).items()
        return f"{kind}({', '.join(f'{name}={content[name]}' for name in ('at', 'what') if name in content)})"
    if isinstance(value, (list, tuple)):
        return " + ".join(str(_label(one)) for one in value) or "none"
    return "none" if value is None else repr(value)


def _describe_topology(graph: nx.Graph) -> str:
    recipe = graph.graph.get("recipe") or {}
    arguments = ", ".join(f"{name}={value}" for name, value in recipe.items() if name != "kind")
    text = f"{recipe.get('kind')}({arguments})"
    if not recipe or len(text) > _LONGEST_LABEL:
        return f"{graph.graph.get('name') or recipe.get('kind') or 'network'} of {len(graph)} nodes"
    return text

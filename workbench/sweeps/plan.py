"""The plan of a sweep: a base scenario, a design that says what is different about each point, engine and measure.

A plan is lazy. A point is named by its number, its place in the design; whoever runs it makes its scenario then. Before
a sweep begins some points are built, with every value of each axis, so that a wrong one is told at once. Nothing is
kept per point.

Two keys name a point's result. ``key`` is a digest of the scenario's own hash, the engine asked for, the code and the
measure: what is the same result has the same key, whoever asks for it. ``point_key`` is one of the base scenario's
hash, of the overrides and of the rest: it needs no scenario, so a sweep quickly finds what it has already done.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, NamedTuple

from workbench.errors import ScenarioError
from workbench.protocols.protocol import Protocol
from workbench.sim.runner import checked_engine
from workbench.sim.scenario import Scenario
from workbench.sweeps import user_code, values
from workbench.sweeps.code import Codes
from workbench.sweeps.design import Design, grid

Measure = Callable[[Any], Mapping[str, float]]
_WORDS_KEPT = 500  # of objects that are varied: each may be a network


class Point(NamedTuple):
    """A point of a plan, built: number, point_key, the key of its result, its scenario's hash and seed, its labels."""

    number: int
    point_key: str
    key: str
    scenario: str
    seed: int
    labels: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that a worker needs to run point ``number``.

    ``protocols`` are examples of all user code that takes part, for runners that have to ship it. ``measure`` is a
    function that is given a run with its trace, and answers with metrics of its own: name -> number. ``codes`` has
    digests of the code of its points. ``keeps_traces``: rows carry the traces of their runs.
    """

    scenario: Scenario
    design: Design
    engine: str = "auto"
    protocols: tuple[Protocol, ...] = ()
    measure: Measure | None = None
    codes: Codes = field(default_factory=Codes)
    keeps_traces: bool = False
    # What is known of objects that are varied: id -> (object, its words); (words of) objects -> digest of the code.
    _words: dict[int, tuple[Any, str]] = field(default_factory=dict, repr=False)
    _code: dict[Any, str] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_words": {}, "_code": {}}

    def __len__(self) -> int:
        return len(self.design)

    @property
    def paths(self) -> tuple[str, ...]:
        """What is varied."""
        return tuple(self.design.paths)

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        return self.design.labels(number)

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point, whole objects before their parameters: a ttl must not be lost to its protocol."""
        return dict(sorted(self.design.overrides(number).items(), key=lambda override: override[0].count(".")))

    def scenario_of(self, number: int) -> Scenario:
        """The scenario of a point; raises what is wrong with it."""
        return self.scenario.replace(**self.overrides(number))

    def text_of(self, number: int) -> str:
        """A point in words, for messages: "protocol.ttl=9, seed=3"."""
        return ", ".join(f"{path}={label}" for path, label in self.labels(number).items())

    def seed_of(self, number: int) -> int:
        """The seed of a point, whose scenario need not be possible."""
        seed = self.design.overrides(number).get("seed", self.scenario.seed)
        return seed if isinstance(seed, int) else self.scenario.seed

    # Keys

    def fresh(self) -> Plan:
        """The same plan, with the user's code as it is now: a filter may be registered anew."""
        return replace(self, codes=Codes(self.measure, self.protocols), _words={}, _code={})

    def key(self, scenario: str, code: str) -> str:
        """The key of a result: of a scenario with that hash, run by that code."""
        return _hex(scenario, self.engine, code, user_code.name_of(self.measure))

    def point_key(self, number: int) -> str:
        """The key of a point: 16 hex digits that differ for any other point of any other plan."""
        chosen = self.design.overrides(number)
        told = [f"{path}={self._words_of(chosen[path])}" for path in sorted(chosen)]
        return _hex(self.scenario.hash, *told, self.engine, self._code_of(chosen), user_code.name_of(self.measure))

    def code_of(self, number: int) -> str:
        """The digest of the code that a point runs; "" if it has no protocol that could be one."""
        return self._code_of(self.design.overrides(number))

    def _code_of(self, chosen: Mapping[str, Any]) -> str:
        # Numbers choose no code; what else a protocol is set to may have some of the user's.
        telling = tuple(
            f"{path}={self._words_of(value)}"
            for path, value in chosen.items()
            if path.startswith("protocol") and not isinstance(value, (bool, int, float))
        )
        if telling not in self._code:
            self._code[telling] = self._code_anew(chosen)
        return self._code[telling]

    def _code_anew(self, chosen: Mapping[str, Any]) -> str:
        protocol = chosen.get("protocol", self.scenario.protocol)
        own = {path.partition(".")[2]: value for path, value in chosen.items() if path.startswith("protocol.")}
        try:
            protocol = protocol.public_class()(**{**protocol.settings, **own})
        except values.WRONG:
            return ""
        return self.codes.of(protocol)

    def _words_of(self, value: Any) -> str:
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return repr(value)  # as JSON has it, and sooner
        if isinstance(value, (bool, int, float, str)):
            return json.dumps(value)
        known = self._words.get(id(value))
        if known is None:
            if len(self._words) >= _WORDS_KEPT:
                self._words.clear()
            known = self._words[id(value)] = (value, values.words(value))  # It is held: its id stays its own.
        return known[1]

    def point(self, number: int) -> Point:
        """A point with its scenario's hash and the key of its result."""
        scenario = self.scenario_of(number)
        key = self.key(scenario.hash, self.codes.of(scenario.protocol))
        return Point(number, self.point_key(number), key, scenario.hash, scenario.seed, self.labels(number))


class Points(Sequence[Point]):
    """The points of a plan, each built when it is asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, number: Any) -> Any:
        numbers = range(len(self._plan))[number]
        if isinstance(numbers, range):
            return [self._plan.point(one) for one in numbers]
        return self._plan.point(numbers)

    def __iter__(self) -> Iterator[Point]:
        return map(self._plan.point, range(len(self._plan)))


def make_plan(
    scenario: Scenario,
    over: Mapping[str, Any] | Design,
    engine: str,
    measure: Measure | None,
    keeps_traces: bool = False,
) -> Plan:
    """Return the plan of a sweep after building some of its points.

    ScenarioError names the path whose value cannot be used.
    """
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"a sweep is over a Scenario, not over {scenario!r:.80}")
    if measure is not None and not isinstance(measure, FunctionType):
        raise ScenarioError(f"measure is {measure!r:.80}; it must be a function that takes a run")
    design = over if isinstance(over, Design) else grid(over)
    if not len(design):
        raise ScenarioError("the design has no points; a sweep needs at least one")
    plan = Plan(scenario, design, checked_engine(engine), measure=measure, keeps_traces=keeps_traces)
    for number in design.probes():
        _check_labels(plan.labels(number))
    protocols = _examples(_build(plan, number).protocol for number in design.probes())
    return replace(plan, protocols=protocols).fresh()


def _check_labels(labels: Mapping[str, Any]) -> None:
    """Raise ScenarioError for a label that no file can store."""
    for path, label in labels.items():
        if isinstance(label, str) and not values.is_unicode(label):
            raise ScenarioError(f"the label {label!a} of {path} is not valid Unicode: it has half of a surrogate pair")


def _examples(protocols: Iterable[Protocol]) -> tuple[Protocol, ...]:
    """One protocol for each different set of user code."""
    return tuple({tuple(user_code.of(protocol)): protocol for protocol in protocols}.values())


def _build(plan: Plan, number: int) -> Scenario:
    try:
        return plan.scenario_of(number)
    except values.WRONG as error:
        raise ScenarioError(f"the sweep cannot have {_culprit(plan, number)}: {error}") from None


def _culprit(plan: Plan, number: int) -> str:
    """The one override that does not work by itself, or all of them: then it is how they go together."""
    labels = plan.labels(number)
    for path, value in plan.overrides(number).items():
        try:
            plan.scenario.replace(**{path: value})
        except values.WRONG:
            return f"{path}={labels[path]}"
    return plan.text_of(number)


def _hex(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]

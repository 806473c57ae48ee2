"""The plan of a sweep: a base scenario, a design with the values of each point, the engine and the measure.

The measure is a function of the user that computes metrics of a run. A point is identified by its number in the design,
and its scenario is built only in the process that runs the point. So a plan stores nothing per point. Before a sweep
begins, a few points are built that together contain every value of each axis, so that an invalid value raises at once.

Two keys identify a point's result. ``key`` is a digest of its scenario's hash, the requested engine, the code and the
measure, so equal runs have the same key in all plans. ``point_key`` is a digest of the base scenario's hash, the
overrides, engine, code and measure. It does not need the point's scenario, so finished points are found quickly.
"""

from __future__ import annotations

import hashlib
import itertools
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
from workbench.sweeps.design import Design, Grid, grid

Measure = Callable[[Any], Mapping[str, float]]
_MOST_CACHED = 500  # texts of varied objects; each object may be a network


class Point(NamedTuple):
    """A point of a plan: one scenario of a sweep.

    number      the point's number in the design
    point_key   a key that is computed without building the scenario (`Plan.point_key`)
    key         the key of its result, which is equal for equal runs in all plans (`Plan.key`)
    scenario    the hash of its scenario
    seed        the seed of its scenario
    labels      {path of a varied parameter: label of its value}
    """

    number: int
    point_key: str
    key: str
    scenario: str
    seed: int
    labels: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Plan:
    """The content of a sweep that a worker needs to run a point by its number.

    ``protocols`` are a few of the sweep's protocols that together refer to all user code of the sweep. Runners send
    this code to workers. ``measure`` is a function from a run with its trace to further metrics, {name: number}.
    ``codes`` has the digests of the code. With ``keeps_traces`` each result contains the trace of its run, unless the
    worker has written the trace into ``trace_folder``, the folder or URL of the sweep's traces.
    """

    scenario: Scenario
    design: Design
    engine: str = "auto"
    protocols: tuple[Protocol, ...] = ()
    measure: Measure | None = None
    codes: Codes = field(default_factory=Codes)
    keeps_traces: bool = False
    trace_folder: str = ""
    # Caches for varied objects: id -> (object, its text); texts of a point's objects -> digest of the code.
    _texts: dict[int, tuple[Any, str]] = field(default_factory=dict, repr=False)
    _code: dict[Any, str] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_texts": {}, "_code": {}}

    def __len__(self) -> int:
        return len(self.design)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the varied parameters, such as "protocol.ttl"."""
        return tuple(self.design.paths)

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        return self.design.labels(number)

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``, in the order in which to apply them.

        A protocol comes before its parameters, since a new protocol resets them.
        """
        return dict(sorted(self.design.overrides(number).items(), key=lambda override: override[0].count(".")))

    def scenario_of(self, number: int) -> Scenario:
        """Return the scenario of point ``number``; an invalid value raises one of the exceptions in `values.WRONG`."""
        return self.scenario.replace(**self.overrides(number))

    def text_of(self, number: int) -> str:
        """Return the labels of the values of a point as text for messages: "protocol.ttl=9, seed=3"."""
        return ", ".join(f"{path}={label}" for path, label in self.labels(number).items())

    def seed_of(self, number: int) -> int:
        """Return the seed of a point, even if the scenario of the point is invalid."""
        seed = self.design.overrides(number).get("seed", self.scenario.seed)
        return seed if isinstance(seed, int) else self.scenario.seed

    # Keys

    def fresh(self) -> Plan:
        """Return a copy of the plan with digests of the user's code as it is now; it may have been edited."""
        return replace(self, codes=Codes(self.measure, self.protocols), _texts={}, _code={})

    def key(self, scenario: str, code: str) -> str:
        """Return the key (16 hex digits) of the result of a run.

        ``scenario`` is the hash of the run's scenario, ``code`` the digest of the code that runs it.
        """
        return _hash_texts(scenario, self.engine, code, user_code.name_of(self.measure))

    def point_key(self, number: int) -> str:
        """Return a key of point ``number`` (16 hex digits) that is computed without building the point's scenario.

        Two points, even of different plans, have equal keys only if they agree in base scenario, overrides (values of
        the varied parameters), engine, code and measure.
        """
        overrides = self.design.overrides(number)
        override_texts = [f"{path}={self._text_of_value(overrides[path])}" for path in sorted(overrides)]
        return _hash_texts(
            self.scenario.hash,
            *override_texts,
            self.engine,
            self._get_code_digest(overrides),
            user_code.name_of(self.measure),
        )

    def point_keys(self, numbers: Sequence[int] | None = None) -> list[str]:
        """Return the keys (`point_key`) of the points ``numbers``, in this order; None stands for all points."""
        if numbers is not None or not isinstance(self.design, Grid):
            return [self.point_key(number) for number in (range(len(self)) if numbers is None else numbers)]
        # Each value is made a text once, not once a point: this is five times faster.
        axes = self.design.axes
        texts = [[f"{axis.path}={self._text_of_value(value)}" for value in axis.values] for axis in axes]
        order = sorted(range(len(axes)), key=lambda index: axes[index].path)
        code_axes = [index for index in order if axes[index].path.startswith("protocol")]
        measure = user_code.name_of(self.measure)
        ends: dict[tuple[str, ...], str] = {}
        keys = []
        for number, chosen in enumerate(itertools.product(*texts)):
            identity = tuple([chosen[index] for index in code_axes])
            if identity not in ends:
                ends[identity] = "\n".join((self.engine, self.code_of(number), measure))
            keys.append(_hash_texts(self.scenario.hash, *[chosen[index] for index in order], ends[identity]))
        return keys

    def code_of(self, number: int) -> str:
        """Return the digest of the code that a point runs, or "" if its protocol is invalid."""
        return self._get_code_digest(self.design.overrides(number))

    def _get_code_digest(self, overrides: Mapping[str, Any]) -> str:
        # Numbers do not select code; other settings of a protocol may refer to user code.
        identity = tuple(
            f"{path}={self._text_of_value(value)}"
            for path, value in overrides.items()
            if path.startswith("protocol") and not isinstance(value, (bool, int, float))
        )
        if identity not in self._code:
            self._code[identity] = self._compute_code_digest(overrides)
        return self._code[identity]

    def _compute_code_digest(self, overrides: Mapping[str, Any]) -> str:
        protocol = overrides.get("protocol", self.scenario.protocol)
        settings = {path.partition(".")[2]: value for path, value in overrides.items() if path.startswith("protocol.")}
        try:
            protocol = protocol.public_class()(**{**protocol.settings, **settings})
        except values.WRONG:
            return ""
        return self.codes.digest(protocol)

    def _text_of_value(self, value: Any) -> str:
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return repr(value)  # the same as JSON, but faster
        if isinstance(value, (bool, int, float, str)):
            return json.dumps(value)
        cached_entry = self._texts.get(id(value))
        if cached_entry is None:
            if len(self._texts) >= _MOST_CACHED:
                self._texts.clear()
            # Holding the object keeps its id unique.
            cached_entry = self._texts[id(value)] = value, values.identity_text(value)
        return cached_entry[1]

    def point(self, number: int) -> Point:
        """Return the `Point` with this number: its keys, labels, seed and the hash of its scenario.

        An invalid value raises one of the exceptions in `values.WRONG`.
        """
        scenario = self.scenario_of(number)
        key = self.key(scenario.hash, self.codes.digest(scenario.protocol))
        return Point(number, self.point_key(number), key, scenario.hash, scenario.seed, self.labels(number))


class Points(Sequence[Point]):
    """A sequence of the points of a plan; a `Point` is built when it is accessed."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, number: Any) -> Any:
        numbers = range(len(self._plan))[number]
        if isinstance(numbers, range):
            return [self._plan.point(index) for index in numbers]
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
    """Return the plan of a sweep, after building some of its points as a check.

    ``over`` is the design or the mapping {path of a parameter: values}. With ``keeps_traces`` the traces of the runs
    are kept. `Sweep` describes ``engine`` and ``measure``. Raises ScenarioError for an invalid argument; if the value
    of a parameter is invalid, the message names the parameter's path.
    """
    if not isinstance(scenario, Scenario):
        raise ScenarioError(f"the scenario of the sweep is {scenario!r:.80}; it must be a Scenario")
    if measure is not None and not isinstance(measure, FunctionType):
        raise ScenarioError(
            f"the argument `measure` is {measure!r:.80}; it must be a function from a run to {{name: number}}"
        )
    design = over if isinstance(over, Design) else grid(over)
    if not len(design):
        raise ScenarioError("the design is empty; a sweep needs at least one point")
    plan = Plan(scenario, design, checked_engine(engine), measure=measure, keeps_traces=keeps_traces)
    for number in design.probes():
        _check_labels(plan.labels(number))
    protocols = _example_protocols(_build_scenario(plan, number).protocol for number in design.probes())
    return replace(plan, protocols=protocols).fresh()


def _check_labels(labels: Mapping[str, Any]) -> None:
    """Raise ScenarioError for a label that is not valid Unicode, because no file can store it."""
    for path, label in labels.items():
        if isinstance(label, str) and not values.is_unicode(label):
            raise ScenarioError(f"the label {label!a} of {path} is not valid Unicode: it contains a lone surrogate")


def _example_protocols(protocols: Iterable[Protocol]) -> tuple[Protocol, ...]:
    """Return a few of ``protocols`` that together refer to all user code of ``protocols``.

    Of protocols whose user code has the same names (`user_code.of`), only the last one is returned.
    """
    return tuple({tuple(user_code.of(protocol)): protocol for protocol in protocols}.values())


def _build_scenario(plan: Plan, number: int) -> Scenario:
    try:
        return plan.scenario_of(number)
    except values.WRONG as error:
        raise ScenarioError(f"the sweep cannot use {_describe_invalid_override(plan, number)}: {error}") from None


def _describe_invalid_override(plan: Plan, number: int) -> str:
    """Return a text that names the invalid value of point ``number`` for an error message, such as "protocol.ttl=0".

    If only the combination of values is invalid, the text names all values of the point (`Plan.text_of`). It also does
    so if the invalid value has no label: a comparison has labels for the number of sinks, but not for the workload.
    """
    labels = plan.labels(number)
    for path, value in plan.overrides(number).items():
        try:
            plan.scenario.replace(**{path: value})
        except values.WRONG:
            # The paths of a comparison are not its axes: the workload changes with the number of sinks.
            return f"{path}={labels[path]}" if path in labels else plan.text_of(number)
    return plan.text_of(number)


def _hash_texts(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

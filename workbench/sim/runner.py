"""The runner: it chooses the engine that plays a scenario, and returns the run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.sim import engine as reference
from workbench.sim import fast, workload
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant

ENGINES = ("auto", "reference", "fast")
RECORDS = ("trace", "metrics")


def run(
    scenario: Scenario,
    engine: str = "auto",
    record: str = "trace",
    progress: Callable[[float], Any] | None = None,
    on: Any = None,
) -> Run:
    """Play the scenario and return its Run.

    ``engine="auto"`` uses the fast engine, unless it cannot play the scenario or the run is shorter than the time to
    load this engine. ``"fast"`` raises ScenarioError with the reason if the fast engine cannot play the scenario.
    Both engines give the same run, row by row. ``record="metrics"`` stores no trace.

    ``progress`` is called regularly with the fraction of the run that is done, 0 to 1. If it returns True, the run
    ends early, and the duration of `Run.scenario` is the time of the end. ``on``: motes (`workbench.motes`) that run
    the nodes; the returned run is still in progress. Motes need the reference engine and always record a trace.

    Warns if an item of the workload starts after the end of the run, or if a reinforcement has no effect.
    """
    engine = checked_engine(engine)
    if record not in RECORDS:
        raise ScenarioError(f"record is {record!r}{meant(record, RECORDS)}; it must be one of {', '.join(RECORDS)}")
    if late_items := workload.describe_late(scenario.workload, scenario.duration_s):
        warnings.warn(late_items, stacklevel=3)  # past the wrapper of `checked`, to the caller
    if idle_items := workload.describe_idle(scenario.workload, scenario.topology.nodes):
        warnings.warn(idle_items, stacklevel=3)
    if on is None:
        return play(scenario, engine, record, progress)
    if record != "trace" or engine == "fast":
        option = 'record="metrics"' if record != "trace" else 'engine="fast"'
        raise ScenarioError(
            f"{option} does not work on motes; leave it out: runs on motes use the reference engine and record a trace"
        )
    if not hasattr(on, "play"):
        raise ParameterError(f"the argument `on` is {on!r:.60}; it must be motes, such as wb.motes.virtual()")
    return on.play(scenario, progress)


def play(
    scenario: Scenario,
    engine: str = "auto",
    record: str = "trace",
    progress: Callable[[float], Any] | None = None,
) -> Run:
    """Play a scenario in the simulator and return the run, without the warnings of `run`.

    The parameters are those of `run`. Sweeps and the graphical lab call this function, as `run` would repeat the
    warnings in each process of a sweep and after each change in the lab. A warning of `run`
    names the workload items that start after the end of the run; `Run.explain` names them in any case.
    """
    engine = checked_engine(engine)
    reason = 'engine="reference" was requested'
    if engine != "reference":
        try:
            if engine == "fast" or fast.is_worth_it(scenario):
                return _make_run(scenario, "fast", fast.run(scenario, record, progress))
            reason = "the run is so small that loading the fast engine would take longer"
        except WorkbenchError as error:
            if engine == "fast":
                raise ScenarioError(f"the scenario cannot run on the fast engine: {error}") from error
            reason = str(error)
    return _make_run(scenario, "reference", reference.run(scenario, record, progress), reason)


def _make_run(scenario: Scenario, engine: str, recorder: Any, reason: str = "") -> Run:
    """Return the `Run` of a scenario, with the rows that a recorder has stored.

    If the run was stopped early, the `Run` has a copy of the scenario whose duration is the time of the stop.
    ``reason``: why the fast engine was not used, or "".
    """
    ended_us = recorder.ended_us
    played_scenario = scenario if ended_us is None else scenario.replace(duration_s=ended_us / 1e6)
    return Run(played_scenario, engine, recorder, reason)


def checked_engine(engine: str) -> str:
    """Return ``engine``, or "fast" for its former name "compiled". Raises ScenarioError for an unknown name."""
    if engine == "compiled":
        return "fast"
    if engine not in ENGINES:
        raise ScenarioError(f"engine is {engine!r}{meant(engine, ENGINES)}; it must be one of {', '.join(ENGINES)}")
    return engine

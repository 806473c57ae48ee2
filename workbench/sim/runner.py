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

    ``engine="auto"`` takes the fast engine if it can play the scenario, and if the run takes longer than loading that
    engine. ``"fast"`` requires it, and raises ScenarioError with the reason if it cannot play the
    scenario. Both engines give the same run, row by row. ``record="metrics"`` stores no trace.

    ``progress`` is called regularly with the fraction of the run that is done, 0 to 1. If it returns True, the
    run ends then, and the duration of `Run.scenario` is the time of that end. ``on``: motes (`workbench.motes`) that
    run the nodes; the returned run is still in progress. Motes need the reference engine and always record a trace. A
    warning names an item of the workload that starts after the end of the run, or a reinforcement without effect.
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
    """Play a scenario in the simulator and return the run; do not warn of workload items that start after its end.

    The parameters are those of `run`, which warns. A sweep would warn once per process, the graphical lab at every
    change; there `Run.explain` names such items.
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

    If the run was stopped early, the scenario in the `Run` lasts until that time. ``reason``: why the fast
    engine was not used, or "".
    """
    ended_us = recorder.ended_us
    played = scenario if ended_us is None else scenario.replace(duration_s=ended_us / 1e6)
    return Run(played, engine, recorder, reason)


def checked_engine(engine: str) -> str:
    """Return the name of an engine. Raises ScenarioError if it is unknown; "compiled" is a former name of "fast"."""
    if engine == "compiled":
        return "fast"
    if engine not in ENGINES:
        raise ScenarioError(f"engine is {engine!r}{meant(engine, ENGINES)}; it must be one of {', '.join(ENGINES)}")
    return engine

"""A background thread that runs scenarios; the notebook remains usable as far as Python's global lock allows.

A newer request replaces an older one: a run in progress ends at its next progress check, without a result. If the user
stops a run, its result so far is kept.

The fast engine is used if its machine code is on disk. Otherwise the reference engine runs, while a separate process
compiles the fast one (`workbench.sim.fast.warm`), so that the user need not wait for a compiler.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from workbench.errors import WorkbenchError
from workbench.sim import fast, runner
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.widgets.history import State


class _Superseded(Exception):
    """Raised inside a run when a newer run was requested."""


class Runs:
    """A thread that runs the scenarios of a lab's state (`history.State`) when `request` is called.

    The thread calls ``progress(share)`` while the scenarios run, with the completed share (0 to 1), then
    ``done(state, runs)``, or ``failed(state, sentence)`` after an error. It calls neither if a newer request replaced
    the state.
    """

    def __init__(
        self,
        done: Callable[[State, tuple[Run, ...]], None],
        failed: Callable[[State, str], None],
        progress: Callable[[float], None],
    ) -> None:
        self._done, self._failed, self._progress = done, failed, progress
        self._condition = threading.Condition()
        self._requested_state: State | None = None
        self._is_stopping = self._is_closed = self._is_busy = False
        self._thread: threading.Thread | None = None

    def request(self, state: State) -> None:
        """Run the scenarios of a lab's state as soon as possible, and cancel all other runs."""
        with self._condition:
            if self._is_closed:
                return
            self._requested_state, self._is_stopping = state, False
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve_requests, name="lab", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    @property
    def is_outdated(self) -> bool:
        """True if a newer run is requested and has not begun yet, or after `close`."""
        return self._requested_state is not None or self._is_closed

    def stop(self) -> None:
        """End the present run early; its result so far is reported like that of a complete run."""
        self._is_stopping = True

    def close(self) -> None:
        """Cancel the present run and end the thread."""
        with self._condition:
            self._is_closed, self._requested_state = True, None
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until no run is requested or in progress; return False on timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._requested_state is None and not self._is_busy, timeout_s)

    def _serve_requests(self) -> None:
        while True:
            with self._condition:
                self._is_busy = False
                self._condition.notify_all()
                self._condition.wait_for(lambda: self._requested_state is not None or self._is_closed)
                if self._is_closed or self._requested_state is None:
                    return
                state, self._requested_state, self._is_busy = self._requested_state, None, True
            self._run_and_report(state)

    def _run_and_report(self, state: State) -> None:
        """Run the scenarios of a lab's state and report the result or the error. Unexpected errors are caught, too."""
        try:
            runs = self._run_all(state)
        except _Superseded:
            return
        except WorkbenchError as error:
            self._report_result(self._failed, state, str(error))
        except Exception as error:  # for example in a user's filter
            self._report_result(self._failed, state, f"the run ended with {type(error).__name__}: {error}")
        else:
            self._report_result(self._done, state, runs)

    def _report_result(self, callback: Callable[[State, Any], None], state: State, result: Any) -> None:
        """Call ``callback(state, result)``, where ``callback`` is the function ``done`` or ``failed`` given to `Runs`.

        If ``done`` raises an error, call ``failed`` with an error message. ``state``: the lab state that was run.
        """
        try:
            callback(state, result)
        except Exception as error:
            traceback.print_exc()
            if callback is not self._failed:
                message = f"the run is complete but cannot be shown: {type(error).__name__}: {error}"
                self._report_result(self._failed, state, message)

    def _run_all(self, state: State) -> tuple[Run, ...]:
        """Run the scenarios of a lab's state one after the other, and return their runs.

        If the user stops a run, all runs end at its last simulated time; earlier runs, which are longer, are executed
        again until that time.
        Raises _Superseded if a newer run was requested.
        """
        scenarios = state.scenarios
        scenario_count, duration_s = len(scenarios), scenarios[0].duration_s
        runs: list[Run] = []
        for index, scenario in enumerate(scenarios):
            runs.append(
                self._run_scenario(scenario.replace(duration_s=duration_s), index / scenario_count, scenario_count)
            )
            if runs[-1].scenario.duration_s < duration_s:
                duration_s, self._is_stopping = runs[-1].scenario.duration_s, False
        for index, run in enumerate(runs):
            if run.scenario.duration_s > duration_s:
                runs[index] = self._run_scenario(
                    scenarios[index].replace(duration_s=duration_s), index / scenario_count, scenario_count
                )
        return tuple(runs)

    def _run_scenario(self, scenario: Scenario, share: float, count: int) -> Run:
        def progress(part: float) -> bool:
            if self.is_outdated:
                raise _Superseded
            self._progress(share + part / count)
            return self._is_stopping

        return runner.play(scenario, engine=engine_for(scenario), progress=progress)


def engine_for(scenario: Scenario) -> str:
    """Return the engine that can run the scenario without waiting for a compiler: "auto" or "reference".

    "auto" means the fast engine if it supports the scenario, otherwise the reference engine. If the protocol has a fast
    engine that is not compiled yet, start its compilation in the background and return "reference".
    """
    try:
        if fast.is_warm(scenario.protocol):
            fast.load(scenario.protocol)
            return "auto"  # the fast engine, or the reference engine if the fast one cannot run the scenario
        fast.warm(scenario.protocol)
    except fast.NoFastTwinError:
        return "reference"
    return "reference"

"""Runs in a background thread: a newer request replaces an older one, and a stopped run keeps its result so far.

One thread runs the scenarios. A request that arrives during an older run ends it at its next progress check, without a
result; a stop ends it with its result so far. So the kernel stays free for the user's cells, as far as Python's lock
allows.

The fast engine is used if its machine code is on disk. Otherwise the reference engine runs, while a separate process
compiles the fast one (`workbench.sim.fast.warm`), so that nobody waits for a compiler.
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
    """Raised in a run when a newer request arrives."""


class Runs:
    """Runs states. Its thread calls ``done(state, runs)``, ``failed(state, sentence)`` and ``progress(share)``."""

    def __init__(
        self,
        done: Callable[[State, tuple[Run, ...]], None],
        failed: Callable[[State, str], None],
        progress: Callable[[float], None],
    ) -> None:
        self._done, self._failed, self._progress = done, failed, progress
        self._condition = threading.Condition()
        self._requested: State | None = None
        self._is_stopping = self._is_closed = self._is_busy = False
        self._thread: threading.Thread | None = None

    def request(self, state: State) -> None:
        """Run this state as soon as possible, instead of any other."""
        with self._condition:
            if self._is_closed:
                return
            self._requested, self._is_stopping = state, False
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lab", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    @property
    def is_outdated(self) -> bool:
        """Whether a newer state than the last one is requested."""
        return self._requested is not None or self._is_closed

    def stop(self) -> None:
        """End the present run, and keep its result so far."""
        self._is_stopping = True

    def close(self) -> None:
        """End the thread; the present run is cancelled."""
        with self._condition:
            self._is_closed, self._requested = True, None
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until nothing is requested and nothing runs; return False on timeout."""
        with self._condition:
            return self._condition.wait_for(lambda: self._requested is None and not self._is_busy, timeout_s)

    def _work(self) -> None:
        while True:
            with self._condition:
                self._is_busy = False
                self._condition.notify_all()
                self._condition.wait_for(lambda: self._requested is not None or self._is_closed)
                if self._is_closed or self._requested is None:
                    return
                state, self._requested, self._is_busy = self._requested, None, True
            self._play(state)

    def _play(self, state: State) -> None:
        """Run a state and report the result. The thread continues after any error."""
        try:
            runs = self._runs_of(state)
        except _Superseded:
            return
        except WorkbenchError as error:
            self._report(self._failed, state, str(error))
        except Exception as error:  # for example in a user's filter
            self._report(self._failed, state, f"the run ended with {type(error).__name__}: {error}")
        else:
            self._report(self._done, state, runs)

    def _report(self, callback: Callable[[State, Any], None], state: State, result: Any) -> None:
        """Call ``done`` or ``failed``; if it raises, report that as a failure, but only once."""
        try:
            callback(state, result)
        except Exception as error:
            traceback.print_exc()
            if callback is not self._failed:
                message = f"the run is complete but cannot be shown: {type(error).__name__}: {error}"
                self._report(self._failed, state, message)

    def _runs_of(self, state: State) -> tuple[Run, ...]:
        scenarios = state.scenarios
        count = len(scenarios)
        return tuple(self._run(scenario, index / count, count) for index, scenario in enumerate(scenarios))

    def _run(self, scenario: Scenario, share: float, count: int) -> Run:
        def progress(part: float) -> bool:
            if self.is_outdated:
                raise _Superseded
            self._progress(share + part / count)
            return self._is_stopping

        return runner.play(scenario, engine=engine_for(scenario), progress=progress)


def engine_for(scenario: Scenario) -> str:
    """Return the engine that gives a picture soonest, and start compiling the fast one if needed."""
    try:
        if fast.is_warm(scenario.protocol):
            fast.load(scenario.protocol)
            return "auto"  # the fast engine, or the reference engine if the fast one cannot run the scenario
        fast.warm(scenario.protocol)
    except fast.NoFastTwinError:
        return "reference"
    return "reference"

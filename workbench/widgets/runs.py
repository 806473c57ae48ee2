"""Runs in the background: the newest wish wins, and whoever stops a run keeps what there is of it.

One thread plays. A wish that comes while it plays an older one ends that at its next look at progress, without a run; a
stop ends it with the run that there is so far. So the kernel stays free for the user's cells, as far as Python's lock
allows.

The fast engine is used where its machine code is on disk. Where it is not, the reference engine runs, and a process of
its own compiles meanwhile (`workbench.sim.fast.warm`): nobody waits for a compiler.
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
    """A newer wish has come."""


class Runs:
    """Plays states. ``done(state, runs)``, ``failed(state, sentence)`` and ``told(share)`` are called by its thread."""

    def __init__(
        self,
        done: Callable[[State, tuple[Run, ...]], None],
        failed: Callable[[State, str], None],
        told: Callable[[float], None],
    ) -> None:
        self._done, self._failed, self._told = done, failed, told
        self._condition = threading.Condition()
        self._wish: State | None = None
        self._is_stopping = self._is_closed = self._is_busy = False
        self._thread: threading.Thread | None = None

    def want(self, state: State) -> None:
        """Play this state as soon as can be, in place of any other."""
        with self._condition:
            if self._is_closed:
                return
            self._wish, self._is_stopping = state, False
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="lab", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    @property
    def is_outdated(self) -> bool:
        """Whether something newer is wished than what was played last."""
        return self._wish is not None or self._is_closed

    def stop(self) -> None:
        """End the run under way, and keep what there is of it."""
        self._is_stopping = True

    def close(self) -> None:
        """End the thread; the run under way is given up."""
        with self._condition:
            self._is_closed, self._wish = True, None
            self._condition.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until nothing is wished and nothing runs; False if that took too long."""
        with self._condition:
            return self._condition.wait_for(lambda: self._wish is None and not self._is_busy, timeout_s)

    def _work(self) -> None:
        while True:
            with self._condition:
                self._is_busy = False
                self._condition.notify_all()
                self._condition.wait_for(lambda: self._wish is not None or self._is_closed)
                if self._is_closed or self._wish is None:
                    return
                state, self._wish, self._is_busy = self._wish, None, True
            self._play(state)

    def _play(self, state: State) -> None:
        """Play a state and hand on what came of it. Whatever goes wrong on the way, the thread goes on."""
        try:
            runs = self._runs_of(state)
        except _Superseded:
            return
        except WorkbenchError as error:
            self._tell(self._failed, state, str(error))
        except Exception as error:  # a filter of the user's, say
            self._tell(self._failed, state, f"the run ended with {type(error).__name__}: {error}")
        else:
            self._tell(self._done, state, runs)

    def _tell(self, told: Callable[[State, Any], None], state: State, what: Any) -> None:
        """Call ``done`` or ``failed``; one that raises is told as a failure, and once only."""
        try:
            told(state, what)
        except Exception as error:
            traceback.print_exc()
            if told is not self._failed:
                said = f"the run is there and cannot be shown: {type(error).__name__}: {error}"
                self._tell(self._failed, state, said)

    def _runs_of(self, state: State) -> tuple[Run, ...]:
        scenarios = state.scenarios
        count = len(scenarios)
        return tuple(self._run(one, place / count, count) for place, one in enumerate(scenarios))

    def _run(self, scenario: Scenario, share: float, count: int) -> Run:
        def progress(part: float) -> bool:
            if self.is_outdated:
                raise _Superseded
            self._told(share + part / count)
            return self._is_stopping

        return runner.play(scenario, engine=engine_for(scenario), progress=progress)


def engine_for(scenario: Scenario) -> str:
    """The engine that gives a picture soonest; where the fast one has to be compiled first, that begins."""
    try:
        if fast.is_warm(scenario.protocol):
            fast.load(scenario.protocol)
            return "auto"  # which takes what is loaded, and the other engine where that cannot play the scenario
        fast.warm(scenario.protocol)
    except fast.NoFastTwinError:
        return "reference"
    return "reference"

"""A run on motes: the `Run` of a scenario, from the moment it begins."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.links.crew import Crew
from workbench.links.live import Conductor, LiveRecorder, RunClock
from workbench.sim.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from workbench.motes import Motes


class LiveRun(Run):
    """What `Scenario.run` returns for motes: a Run that is still going on.

    ``trace`` and ``metrics`` wait for its end; `so_far` does not. ``notes`` says what went wrong on the way: a mote
    that was lost, a command that was refused.
    """

    _recorder: LiveRecorder

    def __init__(self, scenario: Any, motes: Motes, progress: Callable[[float], None] | None = None) -> None:
        super().__init__(scenario, "motes", LiveRecorder())
        self._duration_us = round(scenario.duration_s * 1_000_000)
        self._progress = progress
        self._error: BaseException | None = None
        self._clock = RunClock(motes.speed)
        self._motes = motes
        inbox: SimpleQueue = SimpleQueue()
        urls = motes.start(scenario)
        try:
            self._crew = Crew(
                scenario,
                urls,
                self._clock.now_us,
                lambda node, kind, value: inbox.put((node, kind, value)),
                motes.radio,
            )
            self._crew.open()
            self._conductor = Conductor(scenario, self._recorder, self._crew, self._clock, inbox)
            self._conductor.prepare()
        except BaseException:
            self._release()
            raise
        self._thread = threading.Thread(target=self._play, name="conductor", daemon=True)
        self._thread.start()

    def _play(self) -> None:
        try:
            self._conductor.run(self._duration_us, self._progress)
        except BaseException as error:  # Raised again where the run is waited for.
            self._error = error
        finally:
            self._release()

    def _release(self) -> None:
        crew = getattr(self, "_crew", None)
        if crew is not None:
            crew.close()
        self._motes.end()

    @property
    def is_running(self) -> bool:
        """Whether it still goes on."""
        return self._thread.is_alive()

    @property
    def now_s(self) -> float:
        """The run's time."""
        return (
            min(self._clock.now_us() / 1e6, self.scenario.duration_s) if self.is_running else self.scenario.duration_s
        )

    @property
    def notes(self) -> list[str]:
        """What went wrong on the way, a sentence each."""
        return list(self._conductor.notes)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for its end; returns whether it has ended. An interrupt (Ctrl-C) stops the run."""
        try:
            self._thread.join(timeout_s)
        except KeyboardInterrupt:
            self.stop()
            raise
        if self.is_running:
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop(self) -> None:
        """End it now; what has happened stays."""
        self._conductor.stopped.set()
        self._thread.join(10)

    def so_far(self) -> Run:
        """What has happened until now, as a run like any other."""
        return Run(self.scenario, self.engine, self._recorder.so_far())

    @property
    def _rows(self) -> pa.Table:  # type: ignore[override]
        self.wait()
        return self._recorder.table()

    @property
    def metrics(self) -> pd.Series:  # type: ignore[override]
        """As `Run.metrics`, once it has ended."""
        self.wait()
        return super().metrics

    def show(self) -> Any:
        """Follow it while it goes on; then the player, as for any run."""
        from workbench import views

        return views.show_live(self) if self.is_running else views.show(self)

    def __repr__(self) -> str:
        if self.is_running:
            return f"LiveRun({self.scenario!r}, {self.now_s:.0f} of {self.scenario.duration_s:g} s)"
        return super().__repr__()

"""`LiveRun`: a run on motes that can be read while it is still in progress."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.extensions import extensible
from workbench.motes.live.driver import LiveDriver
from workbench.motes.live.recorder import LiveRecorder, RunClock
from workbench.motes.session import MoteSession
from workbench.sim.run import Run

if TYPE_CHECKING:
    import pandas as pd

    from workbench.motes import Motes


@extensible
class LiveRun(Run):
    """A run on motes, which `Scenario.run` returns while the run is still in progress.

    ``trace`` and ``metrics`` wait for the end of the run; `so_far` does not. ``notes`` lists problems, for example a
    lost mote or a refused command. ``error`` is the exception that ended the run early, or None. `wait` raises this
    exception. After an error, trace and metrics cover the time until the error.
    """

    _recorder: LiveRecorder

    def __init__(self, scenario: Any, motes: Motes, progress: Callable[[float], None] | None = None) -> None:
        super().__init__(scenario, "motes", LiveRecorder())
        self._duration_us = round(scenario.duration_s * 1_000_000)
        self._progress = progress
        self.error: BaseException | None = None
        self.token = os.urandom(8).hex()  # distinguishes this run from other runs of the scenario
        self._notes: list[str] = []
        self._ended_s: float | None = None
        self._clock = RunClock(motes.speed)
        self._motes = motes
        inbox: SimpleQueue[tuple[int, str, Any]] = SimpleQueue()
        urls = motes.take(scenario, self)
        try:
            self._session = MoteSession(
                scenario,
                urls,
                self._clock.now_us,
                lambda node, kind, value: inbox.put((node, kind, value)),
                motes.radio,
            )
            self._session.open()
            self.kinds = dict(sorted({**self._session.boards(), **motes.kinds}.items()))
            self._driver = LiveDriver(scenario, self._recorder, self._session, self._clock, inbox, self._notes)
            self._driver.prepare()
        except BaseException:
            self._release_motes()
            raise
        self._thread = threading.Thread(target=self._run_driver, name="live driver", daemon=True)
        self._thread.start()

    def _run_driver(self) -> None:
        try:
            self._driver.run(self._duration_us, self._progress)
        except BaseException as error:  # `wait` raises it again.
            self.error = error
            self._notes.append(f"the run ended early: {error or type(error).__name__}")
            self._driver.hold()
        finally:
            self._ended_s = min(self._clock.now_us() / 1e6, self.scenario.duration_s)
            self._release_motes()

    def _release_motes(self) -> None:
        session = getattr(self, "_session", None)
        try:
            if session is not None:
                session.close()
        finally:
            self._motes.give_back(self)

    @property
    def is_running(self) -> bool:
        """True if the run is still in progress."""
        return self._thread.is_alive()

    @property
    def has_radios(self) -> bool:
        """True if the motes have radios of their own. Otherwise the host simulates the links between them."""
        return self._session.has_radios

    @property
    def now_s(self) -> float:
        """The run's present time in seconds; after the run, the time at which it ended."""
        if self._ended_s is not None:
            return self._ended_s
        return min(self._clock.now_us() / 1e6, self.scenario.duration_s)

    @property
    def notes(self) -> list[str]:
        """The problems during the run, one sentence each."""
        return list(self._notes)

    def note(self, text: str) -> None:
        """Add a sentence on a problem to the run's notes."""
        self._notes.append(text)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the run. Return True, or False after the timeout.

        Raises the error that ended the run early. An interrupt (Ctrl-C) stops the run.
        """
        self.join(timeout_s)
        if self.is_running:
            return False
        if self.error is not None:
            raise self.error
        return True

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the run has ended, or for ``timeout_s``; None: without a limit.

        Unlike `wait`, do not raise the error that ended the run. An interrupt (Ctrl-C) stops the run.
        """
        try:
            self._thread.join(timeout_s)
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self, timeout_s: float = 10.0) -> bool:
        """End the run now and keep its events; return whether it has ended within ``timeout_s``."""
        self._driver.stopped.set()
        self._thread.join(timeout_s)
        return not self.is_running

    def so_far(self) -> Run:
        """Return the events up to now as a `Run`, which does not change when the live run continues."""
        run = Run(self.scenario, self.engine, self._recorder.so_far())
        run.kinds = self.kinds
        return run

    def rows_since(self, row: int) -> pa.Table:
        """Return the rows of the trace from index ``row`` on, in the order of arrival."""
        return self._recorder.rows_since(row)

    @property
    def _rows(self) -> pa.Table:
        self.join()
        return super()._rows

    @property
    def metrics(self) -> pd.Series:
        """The metrics, as in `Run.metrics`. Reading them waits for the end of the run."""
        self.join()
        return super().metrics

    def __repr__(self) -> str:
        if self.is_running:
            return f"LiveRun({self.scenario!r}, {self.now_s:.0f} of {self.scenario.duration_s:g} s)"
        early_end = "" if self.error is None else f", ended early at {self.now_s:.1f} s: {self.error}"
        return super().__repr__() + early_end

"""The recording of a live run: its clock, its notes, and trace rows that can be read while more arrive."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pyarrow.compute as pc

from workbench.protocols.contract import NOBODY
from workbench.sim.trace import SCHEMA, Recorder, to_batch

_ROWS_PER_BATCH = 5000


class RunClock:
    """The clock of a live run: the wall-clock time since the start of the run, times ``speed``."""

    def __init__(self, speed: float) -> None:
        self.speed = speed
        self._start_s = time.perf_counter()

    def begin(self) -> None:
        """Set the run's time to 0."""
        self._start_s = time.perf_counter()

    def now_us(self) -> int:
        """Return the run's time in µs."""
        return int((time.perf_counter() - self._start_s) * 1e6 * self.speed)


class Notes:
    """The problems during a live run. Each is a sentence in ``texts`` for the user, and a row of the trace."""

    def __init__(self, recorder: Recorder, clock: RunClock, texts: list[str]) -> None:
        self._recorder, self._clock, self.texts = recorder, clock, texts

    def add(self, node: int, event: str, text: str, now: int | None = None) -> None:
        """Add the note ``text`` on a problem at a node, and a trace row with the name ``event``.

        ``now`` is the time of the problem in µs; None means the present.
        """
        self.texts.append(f"node {node}: {text}")
        time_us = self._clock.now_us() if now is None else now
        self._recorder.append((time_us, node, event, NOBODY, "", node, 0, 0, 0, text))


class LiveRecorder(Recorder):
    """A recorder of the trace whose rows other threads can read while the live driver adds more."""

    def __init__(self) -> None:
        super().__init__()
        self._flushing = threading.Lock()

    def table(self) -> pa.Table:
        """Return the trace of the run so far as a table, sorted by time."""
        with self._flushing:
            # The live driver keeps adding rows; a slice of a list is taken atomically.
            batches = [*self._batches, to_batch(self._cells[:])]
        table = pa.Table.from_batches(batches, schema=SCHEMA).unify_dictionaries()
        return table.take(pc.sort_indices(table, [("time_us", "ascending")]))

    def rows_since(self, row: int) -> pa.Table:
        """Return the trace rows from index ``row`` on, in the order of arrival."""
        with self._flushing:
            batches, cells = self._batches[:], self._cells[:]
        slices = []
        for batch in (*batches, to_batch(cells)):
            slices.append(batch.slice(min(row, len(batch))))
            row -= min(row, len(batch))
        return pa.Table.from_batches(slices, schema=SCHEMA)

    def so_far(self) -> LiveRecorder:
        """Return a copy of this recorder with the rows up to now; later events do not change the copy."""
        recorder_copy = LiveRecorder()
        with self._flushing:
            recorder_copy._batches, cells = self._batches[:], self._cells[:]
        recorder_copy._cells.extend(cells)
        return recorder_copy

    def flush_if_large(self) -> None:
        """Move the newest rows to a compact Arrow batch if there are thousands of them.

        A run may last for hours, and rows in a batch take less memory.
        """
        if len(self._cells) >= _ROWS_PER_BATCH * len(SCHEMA):
            with self._flushing:
                self._flush()

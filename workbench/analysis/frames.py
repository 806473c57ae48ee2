"""The frames of a run with their bytes: the run is played once more, and what goes on the air is kept.

Columns, a row for each row "sent" of the trace, in its order
    row        int64   which row of the trace it is, counted from 0
    time_us    int64   end of the airtime, as in the trace
    node       int32   who sent it
    peer       int32   the destination, -1 for a broadcast
    message    text    the protocol's name of the message
    frame      binary  its bytes

Theory of operation
    A run is a function of its scenario, so the reference engine sends the same frames whenever it plays it, also those
    of a run that the fast engine or motes in lockstep played. An ear stands between kernel and air: it sees each frame
    at the end of its airtime, and compares what is recorded of it with the trace. An ordinary run has no ear, and costs
    what it did.

Cost
    Time: that of the run on the reference engine up to the last frame that is asked for, less what recording takes.
    Memory: the nodes; 21 bytes for each frame up to the last one; for one that is asked for its own bytes and 32 more.

Limits
    A live run on motes cannot be played again: clocks, radios and the user had a part in it.

    A run does not know the code of filters and the keys that were registered when it ran. With others it comes out
    otherwise, which is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.contract import NOBODY
from workbench.sim import engine
from workbench.sim.channel import Transmission
from workbench.sim.kernel import FRAME_END, Kernel
from workbench.sim.rows import Columns
from workbench.sim.run import Run
from workbench.sim.trace import Recorder
from workbench.topology.graphs import is_number, is_whole

LIVE = "motes"  # `Run.engine` of a live run
_OF_TRACE = ("time_us", "node", "peer", "message")
_COMPARED = ("time_us", "node", "peer", "size_B")
_FRAMES_PER_BATCH = 100_000
_LOOK_EVERY = 256  # frames


def frames(
    run: Run, rows: Iterable[int] | None = None, until_s: float | None = None, most: int | None = None
) -> pa.Table:
    """Return the frames that were sent, with their bytes; the columns are described in `workbench.analysis.frames`.

    A trace has no bytes, so the scenario is played once more, as far as is needed. ``rows``: of these rows of the
    trace alone. ``until_s``: those whose airtime has ended by then. ``most``: the first so many. ScenarioError if
    the run cannot be played again, or comes out otherwise; ParameterError for rows that are not "sent" and for limits
    that are not numbers.
    """
    return heard(run, rows, until_s, most)


def heard(
    run: Run,
    rows: Iterable[int] | None = None,
    until_s: float | None = None,
    most: int | None = None,
    look: Callable[[], None] = lambda: None,
) -> pa.Table:
    """Return the same; ``look`` is called now and then, and an error that it raises ends the replay."""
    if run.engine == LIVE:
        raise ScenarioError(
            "a live run on motes cannot be played again, so its frames have no bytes; "
            "run the scenario in the simulator, or on motes in lockstep, to have them"
        )
    trace = run.trace
    sent = Columns(trace).where(event="sent")
    wanted = _wanted(trace, sent, rows, until_s, most)
    ear = _Ear(trace, sent, wanted, look)
    if len(wanted):
        with engine.without_collector():
            ear.listen(run.scenario)
    table = trace.select(_OF_TRACE).take(sent[wanted])
    return table.add_column(0, "row", pa.array(sent[wanted], pa.int64())).append_column("frame", ear.frames())


def _wanted(trace: pa.Table, sent: np.ndarray, rows: Any, until_s: Any, most: Any) -> np.ndarray:
    """Which of the rows ``sent`` are asked for, as ascending indices into these."""
    if until_s is not None and not (is_number(until_s) and until_s >= 0):
        raise ParameterError(f"until_s is {until_s!r:.60}; it must be a number of seconds from 0 on")
    if most is not None and not (is_whole(most) and most >= 0):
        raise ParameterError(f"most is {most!r:.60}; it must be a whole number from 0 on")
    wanted = np.arange(len(sent)) if rows is None else _places(sent, rows)
    if until_s is not None:
        wanted = wanted[trace["time_us"].take(sent[wanted]).to_numpy() <= until_s * 1e6]
    return wanted if most is None else wanted[:most]


def _places(sent: np.ndarray, rows: Any) -> np.ndarray:
    """Where these rows of the trace are among those ``sent``."""
    asked = np.unique(np.asarray(rows if hasattr(rows, "__len__") else list(rows)))
    if len(asked) and asked.dtype.kind not in "iu":
        raise ParameterError(f"rows are {rows!r:.60}; they must be numbers of rows of the trace")
    others = asked[~np.isin(asked, sent)]
    if len(others):
        raise ParameterError(f'row {others[0]} of the trace is not "sent"; only these rows have a frame')
    return np.searchsorted(sent, asked)


class _Ear(Recorder):
    """Keeps no rows, but the frames that are ``wanted`` of those ``sent``, whose rows it compares with the trace."""

    def __init__(self, trace: pa.Table, sent: np.ndarray, wanted: np.ndarray, look: Callable[[], None]) -> None:
        super().__init__()
        self._look = look
        self.append = self._take_row
        self.wanted = wanted
        self.number = len(sent)
        self.last = int(wanted[-1]) if len(wanted) else -1
        # A run that is wanted whole has to end with its last frame, too.
        self.is_whole = len(wanted) == self.number
        expected = trace.select(_COMPARED).take(sent[: self.last + 1])
        self._expected = [column.to_numpy() for column in expected.columns]
        self._is_wanted = np.isin(np.arange(self.last + 1), wanted, assume_unique=True)
        self._heard = 0
        self._frame = b""
        self._frames: list[bytes] = []
        self._batches: list[pa.Array] = []

    def listen(self, scenario: Any) -> None:
        """Play the scenario until the last frame that is wanted."""
        kernel = engine.begin(scenario, self)
        self._stand_by(kernel)
        end_us = int(self._expected[0][-1])
        duration_us = engine.duration_us(scenario)
        if self.is_whole or end_us >= duration_us:
            kernel.play(duration_us, None)
        else:
            kernel.play_until(end_us)
        if self._heard <= self.last:
            raise _otherwise(f"it had {self.number:,} frames, and now {self._heard:,}")

    def _stand_by(self, kernel: Kernel) -> None:
        """See each frame whose airtime is over, before the air records it."""
        end_frame = kernel.handlers[FRAME_END]

        def see(now: int, transmission: Transmission) -> None:
            self._frame = transmission.frame
            end_frame(now, transmission)

        kernel.handlers[FRAME_END] = see

    def _take_row(self, row: tuple[Any, ...]) -> None:
        time_us, node, event, peer, _, _, _, size_B, _, _ = row
        if event != "sent":
            return
        place = self._heard
        self._heard = place + 1
        if place % _LOOK_EVERY == 0:
            self._look()
        if place > self.last:
            if place >= self.number:
                raise _otherwise(f"it had {self.number:,} frames, and now more")
            return
        expected = tuple(column.item(place) for column in self._expected)
        if expected != (time_us, node, peer, size_B):
            now = _in_words(time_us, node, peer, size_B)
            raise _otherwise(f"frame {place} was {_in_words(*expected)}, and now is {now}")
        if self._is_wanted[place]:
            self._keep(self._frame)

    def _keep(self, frame: bytes) -> None:
        self._frames.append(bytes(frame))
        if len(self._frames) >= _FRAMES_PER_BATCH:
            self._flush_frames()

    def _flush_frames(self) -> None:
        self._batches.append(pa.array(self._frames, pa.binary()))
        self._frames.clear()

    def frames(self) -> pa.ChunkedArray:
        """The frames that were wanted, in their order."""
        if self._frames:
            self._flush_frames()
        return pa.chunked_array(self._batches, pa.binary())

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Keep nothing of what nodes report."""

    def flush_if_large(self) -> None:
        """There are no rows."""


def _otherwise(how: str) -> ScenarioError:
    return ScenarioError(f"the scenario no longer gives this run: {how}; run it again to have its frames")


def _in_words(time_us: int, node: int, peer: int, size_B: int) -> str:
    to = "all" if peer == NOBODY else f"node {peer}"
    return f"{size_B} bytes from node {node} to {to} at {time_us} µs"

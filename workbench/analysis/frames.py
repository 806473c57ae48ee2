"""The frames of a run with their bytes, which a replay of the scenario provides.

Columns, with one row for each row "sent" of the trace, in the same order
    row        int64   position of the row in the trace, counted from 0
    time_us    int64   end of the airtime, as in the trace
    node       int32   the sender
    peer       int32   the destination, -1 for a broadcast
    message    text    the protocol's name of the message
    frame      binary  its bytes

Theory of operation
    A run is a function of its scenario, so the reference engine sends the same frames at each replay. This also holds
    for runs of the fast engine, and of motes in lockstep. A frame recorder is placed between kernel and channel: it
    gets each frame at the end of its airtime, and compares the row recorded for the frame with the trace. An
    ordinary run has no frame recorder, and no extra cost.

Cost
    Time: as for the run on the reference engine, up to the last requested frame, without storing rows.
    Memory: the nodes; 21 bytes for each frame up to the last one; for each requested frame, its bytes and 32 more.

Limits
    A live run on motes cannot be replayed: it depends on clocks, radios and the user.

    A run does not store the code of filters and the keys that were registered when it ran. If they have changed, the
    replay differs, which is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.contract import NOBODY
from workbench.sim import engine
from workbench.sim.channel import Channel, Transmission
from workbench.sim.kernel import FRAME_END, Kernel
from workbench.sim.rows import Columns
from workbench.sim.run import Run
from workbench.sim.trace import Recorder
from workbench.topology.graphs import is_number, is_whole

LIVE = "motes"  # `Run.engine` of a live run
_TRACE_COLUMNS = ("time_us", "node", "peer", "message")
_COMPARED = ("time_us", "node", "peer", "size_B")
_RADIO_EVENTS = frozenset(("sent", "received", "lost"))
_FRAMES_PER_BATCH = 100_000
_PROGRESS_EVERY = 256  # frames


def frames(
    run: Run, rows: Iterable[int] | None = None, until_s: float | None = None, most: int | None = None
) -> pa.Table:
    """Return the frames that were sent, with their bytes; the columns are described in `workbench.analysis.frames`.

    A trace has no bytes, so the scenario is replayed, up to the last frame returned. ``rows``: positions of the trace
    rows "sent" whose frames are returned; None for all. ``until_s``: return only frames whose airtime has ended by this
    time. ``most``: return at most this number of frames, the first ones.

    Raises ScenarioError if the run cannot be replayed, or the replay differs; ParameterError for rows that are not
    "sent" and for limits that are not numbers.
    """
    return heard(run, rows, until_s, most)


def heard(
    run: Run,
    rows: Iterable[int] | None = None,
    until_s: float | None = None,
    most: int | None = None,
    on_progress: Callable[[], None] = lambda: None,
) -> pa.Table:
    """Return the table that `frames` returns; call ``on_progress`` regularly during the replay.

    An error that ``on_progress`` raises ends the replay. The other parameters and errors are those of `frames`.
    """
    _refuse_live_run(run)
    trace = run.trace
    sent_positions = Columns(trace).where(event="sent")
    wanted_frames = _select_frames(trace, sent_positions, rows, until_s, most)
    frame_recorder = _FrameRecorder(trace, sent_positions, wanted_frames, on_progress)
    if len(wanted_frames):
        with engine.without_collector():
            frame_recorder.listen(run.scenario)
    frame_table = trace.select(_TRACE_COLUMNS).take(sent_positions[wanted_frames])
    return frame_table.add_column(0, "row", pa.array(sent_positions[wanted_frames], pa.int64())).append_column(
        "frame", frame_recorder.frames()
    )


def replay_radio(run: Run, take: Callable[[tuple[Any, ...], bytes, Channel], None]) -> None:
    """Replay a run, and pass each row of its radios to ``take(row, frame, channel)``, without storing any frame.

    ``row``: the cells of a row "sent", "received" or "lost", in the order of the trace's columns. ``frame``: the bytes
    of its frame. ``channel``: the channel at this time. The rows are those of the run's trace, in its order. Raises
    ScenarioError if the run has no trace or cannot be replayed, or if the replay sends other frames than the run.
    """
    _refuse_live_run(run)
    sent_positions = Columns(run.trace).where(event="sent")
    if len(sent_positions):
        radio_recorder = _RadioRecorder(run.trace, sent_positions, take)
        with engine.without_collector():
            radio_recorder.listen(run.scenario)


def _refuse_live_run(run: Run) -> None:
    if run.engine == LIVE:
        raise ScenarioError(
            "a live run on motes cannot be replayed, so the bytes of its frames are not available; "
            "run the scenario in the simulator, or on motes in lockstep"
        )


def _select_frames(trace: pa.Table, sent: np.ndarray, rows: Any, until_s: Any, most: Any) -> np.ndarray:
    """Return the indices into ``sent`` (positions of trace rows) of the requested frames, ascending.

    ``rows``, ``until_s`` and ``most`` are the parameters of `frames`.
    """
    if until_s is not None and not (is_number(until_s) and until_s >= 0):
        raise ParameterError(f"until_s is {until_s!r:.60}; it must be a number of seconds, 0 or more")
    if most is not None and not (is_whole(most) and most >= 0):
        raise ParameterError(f"the argument `most` is {most!r:.60}; it must be a whole number, 0 or more")
    wanted_frames = np.arange(len(sent)) if rows is None else _find_indices(sent, rows)
    if until_s is not None:
        wanted_frames = wanted_frames[trace["time_us"].take(sent[wanted_frames]).to_numpy() <= until_s * 1e6]
    return wanted_frames if most is None else wanted_frames[:most]


def _find_indices(sent: np.ndarray, rows: Any) -> np.ndarray:
    """Return the index in ``sent`` of each requested trace row. Raises ParameterError for a row that is not "sent"."""
    requested = np.unique(np.asarray(rows if hasattr(rows, "__len__") else list(rows)))
    if len(requested) and requested.dtype.kind not in "iu":
        raise ParameterError(
            f"the argument `rows` is {rows!r:.60}; it must be positions of trace rows, as whole numbers"
        )
    not_sent = requested[~np.isin(requested, sent)]
    if len(not_sent):
        raise ParameterError(f'row {not_sent[0]} of the trace is not "sent"; only such rows have a frame')
    return np.searchsorted(sent, requested)


class _FrameRecorder(Recorder):
    """A recorder that stores the requested frames of a replay, and checks that the replay sends the frames of the run.

    ``trace``: the trace of the run. ``sent``: the positions of the rows "sent" in the trace. ``wanted``: the indices,
    in ``sent``, of the frames to store.
    """

    def __init__(self, trace: pa.Table, sent: np.ndarray, wanted: np.ndarray, on_progress: Callable[[], None]) -> None:
        super().__init__()
        self._on_progress = on_progress
        self.append = self._process_row
        self.wanted = wanted
        self.frame_count = len(sent)
        self.last = int(wanted[-1]) if len(wanted) else -1
        # If all frames are wanted, the replay must also end with the last of them.
        self.is_whole = len(wanted) == self.frame_count
        expected_rows = trace.select(_COMPARED).take(sent[: self.last + 1])
        self._expected = [column.to_numpy() for column in expected_rows.columns]
        self._is_wanted = np.isin(np.arange(self.last + 1), wanted, assume_unique=True)
        self._sent_count = 0
        self._frame = b""
        self._frames: list[bytes] = []
        self._batches: list[pa.Array] = []

    def listen(self, scenario: Any) -> None:
        """Replay the scenario up to the last requested frame.

        Raises ScenarioError if the replay sends other frames than the recorded run.
        """
        kernel = engine.begin(scenario, self)
        self._intercept_frames(kernel)
        end_us = int(self._expected[0][-1])
        duration_us = engine.duration_us(scenario)
        if self.is_whole or end_us >= duration_us:
            kernel.play(duration_us, None)
        else:
            kernel.play_until(end_us)
        if self._sent_count <= self.last:
            raise _make_replay_error(
                f"the run sent {self.frame_count:,} frames, and the replay sent {self._sent_count:,}"
            )

    def _intercept_frames(self, kernel: Kernel) -> None:
        """Wrap the kernel's handler for the end of a frame, to store the frame before the channel records its row."""
        end_frame = kernel.handlers[FRAME_END]
        self._channel = kernel.channel

        def take_frame(now: int, transmission: Transmission) -> None:
            self._frame = transmission.frame
            end_frame(now, transmission)

        kernel.handlers[FRAME_END] = take_frame

    def _process_row(self, row: tuple[Any, ...]) -> None:
        time_us, node, event, peer, _, _, _, size_B, _, _ = row
        if event != "sent":
            return
        sent_index = self._sent_count
        self._sent_count = sent_index + 1
        if sent_index % _PROGRESS_EVERY == 0:
            self._on_progress()
        if sent_index > self.last:
            if sent_index >= self.frame_count:
                raise _make_replay_error(f"the run sent {self.frame_count:,} frames, and the replay sent more")
            return
        expected_frame = tuple(column.item(sent_index) for column in self._expected)
        if expected_frame != (time_us, node, peer, size_B):
            replayed_frame = _describe_frame(time_us, node, peer, size_B)
            raise _make_replay_error(
                f"frame {sent_index} of the run was {_describe_frame(*expected_frame)}, "
                f"and frame {sent_index} of the replay is {replayed_frame}"
            )
        if self._is_wanted[sent_index]:
            self._store_frame(self._frame)

    def _store_frame(self, frame: bytes) -> None:
        self._frames.append(bytes(frame))
        if len(self._frames) >= _FRAMES_PER_BATCH:
            self._flush_frames()

    def _flush_frames(self) -> None:
        self._batches.append(pa.array(self._frames, pa.binary()))
        self._frames.clear()

    def frames(self) -> pa.ChunkedArray:
        """Return the bytes of the requested frames, in the order in which they were sent."""
        if self._frames:
            self._flush_frames()
        return pa.chunked_array(self._batches, pa.binary())

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Discard the events that nodes report: this recorder stores frames only."""

    def flush_if_large(self) -> None:
        """Do nothing: this recorder stores no rows of the trace."""


class _RadioRecorder(_FrameRecorder):
    """A recorder that passes the rows of the radios to a function, and stores neither rows nor frames."""

    def __init__(
        self, trace: pa.Table, sent: np.ndarray, take: Callable[[tuple[Any, ...], bytes, Channel], None]
    ) -> None:
        super().__init__(trace, sent, np.arange(len(sent)), lambda: None)
        self._take = take

    def _process_row(self, row: tuple[Any, ...]) -> None:
        super()._process_row(row)
        if row[2] in _RADIO_EVENTS:
            self._take(row, self._frame, self._channel)

    def _store_frame(self, frame: bytes) -> None:
        """Do nothing: `_process_row` passes the frame to the function."""


def _make_replay_error(difference: str) -> ScenarioError:
    return ScenarioError(f"the scenario no longer gives this run: {difference}; run it again to get its frames")


def _describe_frame(time_us: int, node: int, peer: int, size_B: int) -> str:
    to = "all" if peer == NOBODY else f"node {peer}"
    return f"{size_B} bytes from node {node} to {to} at {time_us} µs"

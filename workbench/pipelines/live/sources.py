"""What can be captured, and how its readings are had.

    a scenario        is simulated, on the reference engine, as fast as it goes or at a pace
    a run             what it delivered, the same way
    a run on motes    what it delivers, as it comes
    anything else that has ``next_reading(timeout_s)``, ``is_over`` and ``lost``: an `Inbox`; a subscription, or a
                      mesh, of a protocol that runs on this machine's network

A scenario and a run *replay*: they deliver the same readings each time, and can wait. The others cannot.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import ParameterError
from workbench.pipelines.live.deliveries import EVENTS, Deliveries
from workbench.pipelines.live.readings import Reading
from workbench.pipelines.live.regions import regions_of
from workbench.sim import engine
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sim.trace import EVENT_NAMES, MetricsRecorder

STEP_S = 0.1  # wall time between two looks
CHUNK = 10_000  # rows of a trace, or readings


class LiveSource(Protocol):
    """A source that cannot wait: it keeps so many readings, and counts in ``lost`` those that it could not keep."""

    lost: int

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""

    def next_reading(self, timeout_s: float) -> Reading | dict[str, Any] | None:
        """The next reading, as a `Reading` or a dict with its fields; None if none has come within that time."""


class Source(NamedTuple):
    """A source as the bridge has it.

    ``chunks(stopped)``: lists of readings, also empty ones, as long as not ``stopped()``. ``name``: what the capture
    says that it is of. ``lost()``: how many readings the source could not keep.
    """

    name: dict[str, Any]
    replays: bool
    chunks: Callable[[Callable[[], bool]], Iterator[list[Reading]]]
    lost: Callable[[], int]


def source_of(what: Any, pace: float | None, regions: Any) -> Source:
    """The source in what a user gave; ParameterError if there is none in it."""
    if pace is not None and not (isinstance(pace, (int, float)) and pace > 0):
        raise ParameterError(f"pace is {pace!r:.60}; it must be a number of seconds of the run in a second, above 0")
    if isinstance(what, (Scenario, Run)):
        return _of_run(what, pace, regions)
    if hasattr(what, "next_reading"):
        if pace is not None or regions is not None:
            raise ParameterError("pace and regions are for scenarios and runs; these readings come as they are")
        return Source({"of": "readings"}, False, lambda stopped: _taken(what, stopped), lambda: int(what.lost))
    raise ParameterError(f"{what!r:.60} cannot be streamed; give a scenario, a run, an Inbox, a subscription")


def _of_run(what: Scenario | Run, pace: float | None, regions: Any) -> Source:
    scenario = what.scenario if isinstance(what, Run) else what
    where = regions_of(scenario.topology, regions)
    named = {str(node): where[node] for node in sorted(scenario.topology.nodes) if node in where}
    name = {"of": "run", "scenario": scenario.hash, "regions": named}
    if isinstance(what, FollowedRun):
        if pace is not None:
            raise ParameterError("pace is for runs that have ended; this one goes on at its own")
        name |= {"of": "run on motes", "run": what.token}
        return Source(name, True, lambda stopped: _heard(what, Deliveries(where), stopped), lambda: 0)
    if isinstance(what, Run):
        what.trace  # noqa: B018  # Without one it says so here, and not in a thread.

    def chunks(stopped: Callable[[], bool]) -> Iterator[list[Reading]]:
        deliveries = Deliveries(where)
        played = _replayed(what, pace, stopped) if isinstance(what, Run) else _simulated(what, pace, stopped)
        for rows in played:
            yield list(deliveries.of(rows))

    return Source(name, True, chunks, lambda: 0)


@runtime_checkable
class FollowedRun(Protocol):
    """A run that goes on elsewhere and can be followed: a run on motes. ``token`` tells it from others."""

    token: str
    is_running: bool

    def rows_since(self, row: int) -> pa.Table:
        """The rows of its trace from a number on."""


class _Tap(MetricsRecorder):
    """Keeps the rows that readings are made of, until they are taken."""

    def __init__(self) -> None:
        super().__init__(frozenset(), frozenset(EVENTS))

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Keep the rows of these events alone; who holds what is not counted."""
        super().protocol_events(time_us, node, [one for one in events if EVENT_NAMES[type(one)] in EVENTS])

    def take(self) -> list[tuple[Any, ...]]:
        """The rows since the last call."""
        cells, width = self._cells[:], 10
        self._cells.clear()
        return list(zip(*(cells[place::width] for place in range(width)), strict=True))


def _simulated(scenario: Scenario, pace: float | None, stopped: Callable[[], bool]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of a simulation as it goes on."""
    tap = _Tap()
    kernel = engine.begin(scenario, tap)
    duration_us = engine.duration_us(scenario)
    for until_us in _steps(duration_us, pace, stopped):
        kernel.play_until(until_us)
        yield tap.take()
    if not stopped():
        kernel.play(duration_us, None)  # What is on its way arrives.
        yield tap.take()


def _steps(duration_us: int, pace: float | None, stopped: Callable[[], bool]) -> Iterator[int]:
    """Times of a run up to which it is to be played, each when it is due by the wall clock."""
    began_s, until_us = time.perf_counter(), 0
    step_us = 1_000_000 if pace is None else max(1, round(pace * STEP_S * 1e6))
    while until_us + step_us < duration_us and not stopped():
        until_us += step_us
        if pace is not None:
            time.sleep(max(0.0, until_us / 1e6 / pace - (time.perf_counter() - began_s)))
        yield until_us


def _replayed(run: Run, pace: float | None, stopped: Callable[[], bool]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of the trace of a run that has ended."""
    trace = _of_events(run.trace)
    times_us, row = trace.column("time_us").to_numpy(), 0
    for until_us in _steps(engine.duration_us(run.scenario), pace, stopped):
        end = int(times_us.searchsorted(until_us, side="right"))
        yield from _rows(trace.slice(row, end - row))
        row = end
    if not stopped():
        yield from _rows(trace.slice(row))


def _heard(run: FollowedRun, deliveries: Deliveries, stopped: Callable[[], bool]) -> Iterator[list[Reading]]:
    """Readings of a run on motes, as they come."""
    row = 0
    while True:
        is_last = stopped() or not run.is_running
        table = run.rows_since(row)
        row += len(table)
        for rows in _rows(_of_events(table)):
            yield list(deliveries.of(rows))
        if is_last:
            return
        time.sleep(STEP_S)


def _of_events(trace: pa.Table) -> pa.Table:
    return trace.filter(pc.is_in(pc.cast(trace.column("event"), pa.string()), pa.array(EVENTS)))


def _rows(trace: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    for batch in trace.to_batches(max_chunksize=CHUNK):
        yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _taken(source: LiveSource, stopped: Callable[[], bool]) -> Iterator[list[Reading]]:
    """Readings of a source that cannot wait: all that there are, again and again."""
    while not stopped():
        chunk: list[Reading] = []
        while len(chunk) < CHUNK and (one := source.next_reading(0.0 if chunk else STEP_S)) is not None:
            chunk.append(Reading(**one) if isinstance(one, dict) else one)
        yield chunk
        if not chunk and source.is_over:
            return

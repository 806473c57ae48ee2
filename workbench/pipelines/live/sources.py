"""Sources of readings that can be captured.

    a scenario        is simulated on the reference engine, as fast as possible or at a pace
    a run             its deliveries are replayed, as fast as possible or at a pace
    a run on motes    its deliveries so far, then new ones as they arrive
    any object with ``next_reading(timeout_s)``, ``is_over`` and ``lost``: an `Inbox`; a subscription, or a mesh, of a
                      protocol that runs on this machine's network

Scenarios and runs *replay*: they deliver the same readings from the beginning each time, and wait while readings are
written. An object with ``next_reading`` delivers each reading once and cannot wait.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from string import ascii_uppercase
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from workbench.attributes.keys import key_of
from workbench.attributes.model import APP, is_blob
from workbench.attributes.text import parse
from workbench.errors import DataError, ParameterError
from workbench.pipelines.live.readings import Reading
from workbench.sim import engine
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sim.trace import EVENT_NAMES, MetricsRecorder

STEP_S = 0.1  # wall time between two polls
CHUNK = 10_000  # rows of a trace, or readings
MOST_COLUMNS = len(ascii_uppercase)  # of regions
MOST_REMEMBERED = 100_000  # messages and publications
MOST_WAITING = 10_000  # readings in an inbox
_EVENTS = ("published", "originated", "delivered")


class LiveSource(Protocol):
    """The interface of sources that cannot wait until their readings are written.

    Such a source has a queue of limited length; ``lost`` is the number of readings that did not fit in the queue.
    """

    lost: int

    @property
    def is_over(self) -> bool:
        """True if the source has ended, so that no more readings will arrive."""

    def next_reading(self, timeout_s: float) -> Reading | dict[str, Any] | None:
        """Return the next reading, as a `Reading` or a dict of its fields; wait at most ``timeout_s`` seconds for it.

        Returns None if no reading arrives in this time.
        """


class Source(NamedTuple):
    """A source of readings for `stream`, which captures them in a folder.

    ``name`` is the description of the source that is stored in the capture. With ``replays`` the source delivers the
    same readings from the beginning each time. ``chunks(stopped, is_repeating)`` yields lists of readings, also empty
    ones, until the source ends or ``stopped()`` is true. While ``is_repeating()`` is true, the next readings are
    captured already, and a source with a pace does not wait. ``lost()`` returns the number of readings that the source
    has lost.
    """

    name: dict[str, Any]
    replays: bool
    chunks: Callable[[Callable[[], bool], Callable[[], bool]], Iterator[list[Reading]]]
    lost: Callable[[], int]


def make_source(source: Any, pace: float | None, regions: Any) -> Source:
    """Return the `Source` that delivers the readings of ``source``: a scenario, a run, or a `LiveSource`.

    ``pace`` and ``regions`` are those of `stream`; they apply only to scenarios and runs, ``pace`` not to a run on
    motes. Raises ParameterError for another source, and for an invalid ``pace`` or ``regions``.
    """
    if pace is not None and not (isinstance(pace, (int, float)) and pace > 0):
        raise ParameterError(f"`pace` is {pace!r:.60}; it must be above 0: seconds of the run played in one second")
    if isinstance(source, (Scenario, Run)):
        return _make_run_source(source, pace, regions)
    if hasattr(source, "next_reading"):
        if pace is not None or regions is not None:
            raise ParameterError("`pace` and `regions` apply only to scenarios and runs; omit them for this source")
        return Source(
            {"of": "readings"}, False, lambda stopped, _: _poll_source(source, stopped), lambda: int(source.lost)
        )
    raise ParameterError(
        f"{source!r:.60} cannot be streamed; the source must be a scenario, a run, an Inbox, a subscription or a mesh"
    )


def _make_run_source(run: Scenario | Run, pace: float | None, regions: Any) -> Source:
    scenario = run.scenario if isinstance(run, Run) else run
    node_regions = assign_regions(scenario.topology, regions)
    region_names = {str(node): node_regions[node] for node in sorted(scenario.topology.nodes) if node in node_regions}
    name = {"of": "run", "scenario": scenario.hash, "regions": region_names}
    if isinstance(run, FollowedRun):
        if pace is not None:
            raise ParameterError(
                "`pace` is given for a run on motes; omit it, because the readings arrive in real time"
            )
        name |= {"of": "run on motes", "run": run.token}
        return Source(name, True, lambda stopped, _: _follow_run(run, Deliveries(node_regions), stopped), lambda: 0)
    if isinstance(run, Run):
        run.trace  # noqa: B018  # A missing trace raises here, not in the thread.

    def chunks(stopped: Callable[[], bool], is_repeating: Callable[[], bool]) -> Iterator[list[Reading]]:
        deliveries = Deliveries(node_regions)
        steps = _pace_steps(engine.duration_us(scenario), pace, stopped, is_repeating)
        row_lists = (
            _replay_run(run, steps, stopped) if isinstance(run, Run) else _simulate_scenario(run, steps, stopped)
        )
        for trace_rows in row_lists:
            yield list(deliveries.readings(trace_rows))

    return Source(name, True, chunks, lambda: 0)


@runtime_checkable
class FollowedRun(Protocol):
    """The interface of a run whose trace rows can be read while it is running. ``token`` identifies the run."""

    token: str
    is_running: bool

    def rows_since(self, row: int) -> pa.Table:
        """Return the rows of the trace from index ``row`` on, in the order of arrival."""


class _RowCollector(MetricsRecorder):
    """A recorder that keeps only the trace rows from which readings are made, until `take` removes them."""

    def __init__(self) -> None:
        super().__init__(frozenset(), frozenset(_EVENTS))

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Record a node's events that carry readings (published, originated or delivered); ignore all other events."""
        super().protocol_events(time_us, node, [event for event in events if EVENT_NAMES[type(event)] in _EVENTS])

    def take(self) -> list[tuple[Any, ...]]:
        """Return the trace rows recorded since the last call, and remove them."""
        cells, width = self._cells[:], 10
        self._cells.clear()
        return list(zip(*(cells[index::width] for index in range(width)), strict=True))


def _simulate_scenario(
    scenario: Scenario, steps: Iterable[int], stopped: Callable[[], bool]
) -> Iterator[list[tuple[Any, ...]]]:
    """Simulate a scenario step by step; yield the new rows of its trace after each step.

    ``steps`` are the simulation times (µs) at which a step ends, from `_pace_steps`. The iterator ends early if
    ``stopped()`` is true.
    """
    collector = _RowCollector()
    kernel = engine.begin(scenario, collector)
    for until_us in steps:
        kernel.play_until(until_us)
        yield collector.take()
    if not stopped():
        kernel.play(engine.duration_us(scenario), None)  # Frames in flight still arrive.
        yield collector.take()


def _pace_steps(
    duration_us: int, pace: float | None, stopped: Callable[[], bool], is_repeating: Callable[[], bool]
) -> Iterator[int]:
    """Yield the simulation times (µs, below ``duration_us``) up to which a run is simulated step by step.

    ``pace`` is the number of simulated seconds per second of wall-clock time: each time is yielded when it is due.
    Without a pace (None), and while ``is_repeating()`` is true, times are yielded without waiting. When
    ``is_repeating()`` becomes false, the pace counts from the last time yielded before. The iterator ends early if
    ``stopped()`` is true.
    """
    began_s, until_us = time.perf_counter(), 0
    step_us = 1_000_000 if pace is None else max(1, round(pace * STEP_S * 1e6))
    while until_us + step_us < duration_us and not stopped():
        until_us += step_us
        if pace is not None and is_repeating():
            began_s = time.perf_counter() - until_us / 1e6 / pace
        elif pace is not None:
            time.sleep(max(0.0, until_us / 1e6 / pace - (time.perf_counter() - began_s)))
        yield until_us


def _replay_run(run: Run, steps: Iterable[int], stopped: Callable[[], bool]) -> Iterator[list[tuple[Any, ...]]]:
    """Replay a run that has ended: yield a list of trace rows for each step, in the order of the trace.

    Rows from which no reading is made are left out.
    ``steps`` are the simulation times (µs) at which a list ends, from `_pace_steps`. The iterator ends early if
    ``stopped()`` is true.
    """
    trace = _select_events(run.trace)
    times_us, row = trace.column("time_us").to_numpy(), 0
    for until_us in steps:
        end_row = int(times_us.searchsorted(until_us, side="right"))
        yield from _iterate_rows(trace.slice(row, end_row - row))
        row = end_row
    if not stopped():
        yield from _iterate_rows(trace.slice(row))


def _follow_run(run: FollowedRun, deliveries: Deliveries, stopped: Callable[[], bool]) -> Iterator[list[Reading]]:
    """Yield lists of readings of a run on motes: first all readings so far, then new ones as they arrive.

    ``deliveries`` converts the trace rows to readings. The iterator ends with the run, or if ``stopped()`` is true.
    """
    first_row = 0
    while True:
        is_last = stopped() or not run.is_running
        new_rows = run.rows_since(first_row)
        first_row += len(new_rows)
        for rows in _iterate_rows(_select_events(new_rows)):
            yield list(deliveries.readings(rows))
        if is_last:
            return
        time.sleep(STEP_S)


def _select_events(trace: pa.Table) -> pa.Table:
    return trace.filter(pc.is_in(pc.cast(trace.column("event"), pa.string()), pa.array(_EVENTS)))


def _iterate_rows(trace: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    for batch in trace.to_batches(max_chunksize=CHUNK):
        yield list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _poll_source(source: LiveSource, stopped: Callable[[], bool]) -> Iterator[list[Reading]]:
    """Yield lists (some empty) of the new readings of a source that never waits for its reader.

    The iterator ends if the source is over, or if ``stopped()`` is true.
    """
    while not stopped():
        chunk: list[Reading] = []
        while len(chunk) < CHUNK and (reading := source.next_reading(0.0 if chunk else STEP_S)) is not None:
            chunk.append(Reading(**reading) if isinstance(reading, dict) else reading)
        yield chunk
        if not chunk and source.is_over:
            return


def regions(topology: Any, columns: int = 2, rows: int = 2) -> dict[int, str]:
    """Return {node: name of its cell} in a grid over the nodes: "A1" is lower left, "B1" to its right.

    ``topology`` is a graph with ``pos`` (metres) at its nodes. ``columns`` is 1 to 26, ``rows`` 1 to 1000. Raises
    ParameterError for other values.
    """
    for name, cell_count, most_cells in (("columns", columns, MOST_COLUMNS), ("rows", rows, 1000)):
        if not isinstance(cell_count, int) or not 1 <= cell_count <= most_cells:
            raise ParameterError(
                f"regions: {name} is {cell_count!r:.60}; it must be a whole number from 1 to {most_cells}"
            )
    positions_m = {node: data["pos"] for node, data in topology.nodes(data=True)}
    cell_names = dict.fromkeys(positions_m, "")
    for axis, cell_count in enumerate((columns, rows)):
        lowest_m, highest_m = (
            min(position[axis] for position in positions_m.values()),
            max(position[axis] for position in positions_m.values()),
        )
        cell_width_m = (highest_m - lowest_m) / cell_count or 1.0
        for node, position in positions_m.items():
            cell = min(int((position[axis] - lowest_m) / cell_width_m), cell_count - 1)
            cell_names[node] += ascii_uppercase[cell] if axis == 0 else str(cell + 1)
    return cell_names


def assign_regions(topology: Any, choice: Any) -> Mapping[int, str]:
    """Return {node: name of its region}.

    ``choice`` is (columns, rows) of a grid, None (2 x 2), or a mapping from nodes to names, which is returned
    unchanged. Raises ParameterError for another choice.
    """
    if choice is None:
        return regions(topology)
    if isinstance(choice, Mapping):
        return choice
    if isinstance(choice, tuple) and len(choice) == 2:
        return regions(topology, *choice)
    raise ParameterError(f"`regions` is {choice!r:.60}; it must be (columns, rows) or a mapping from nodes to names")


class Deliveries:
    """A converter of trace rows, given in the order of the trace, into delivered readings.

    ``regions`` is {node: name of its region}.

    Theory of operation
        A sample is the text of a publication: one or more attributes. A row "published" gives the time of a sample. A
        row "originated" gives the message that carries it. A row "delivered" gives the time at which it arrived at a
        sink. A delivered sample is matched with the first sample of its message that was published with the same
        text. If the protocol changed the text, the first sample of its message is used. Each numeric attribute of a
        sample becomes a `Reading`; blobs and the application type are left out.

    Limits
        The last `MOST_REMEMBERED` messages and publications are remembered. The time of measurement of an older
        sample is unknown; its time of arrival is used instead. On motes, a row "delivered" can precede the row
        "published" of its reading; the same then applies.
    """

    def __init__(self, regions: Mapping[int, str]) -> None:
        self._regions = regions
        self._published: OrderedDict[tuple[int, int], tuple[int, str]] = OrderedDict()
        self._message_readings: OrderedDict[tuple[int, int], list[tuple[int, int, str]]] = OrderedDict()

    def readings(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Reading]:
        """Yield the readings delivered in ``rows``, tuples in the order of the trace's columns."""
        for time_us, node, event, _, _, origin, sequence, _, value, detail in rows:
            if event == "published":
                _cache_value(self._published, (node, sequence), (time_us, detail))
            elif event == "originated":
                if (node, value) in self._published:
                    carried_samples = self._message_readings.get((origin, sequence)) or []
                    _cache_value(
                        self._message_readings,
                        (origin, sequence),
                        [*carried_samples, (value, *self._published[node, value])],
                    )
            elif event == "delivered":
                yield from self._make_readings(time_us, node, origin, sequence, detail)

    def _make_readings(self, time_us: int, sink: int, origin: int, sequence: int, detail: str) -> Iterator[Reading]:
        carried_samples = self._message_readings.get((origin, sequence)) or [(sequence, time_us, detail)]
        sample_sequence, published_us, _ = next(
            (publication for publication in carried_samples if publication[2] == detail), carried_samples[0]
        )
        region = self._regions.get(origin, "")
        for key, value in _parse_numbers(detail):
            yield Reading(published_us / 1e6, origin, key, value, region, sink, sample_sequence, time_us / 1e6)


def _cache_value(memory: OrderedDict[Any, Any], key: tuple[int, int], value: Any) -> None:
    memory[key] = value
    if len(memory) > MOST_REMEMBERED:
        memory.popitem(last=False)


@lru_cache(maxsize=4096)
def _parse_numbers(sample: str) -> tuple[tuple[str, float], ...]:
    """Return ((key, value in the key's unit), ...) for the numeric attributes in the text of a publication."""
    numeric_attributes = [
        attribute for attribute in parse(sample) if attribute.key != APP and not is_blob(attribute.key)
    ]
    return tuple(
        (key_of(attribute.key).name, attribute.value / key_of(attribute.key).steps) for attribute in numeric_attributes
    )


class Inbox:
    """A queue of readings for `wb.pipelines.stream`. Any thread may call ``inbox.put(Reading(...))``.

    `put` never waits. With more than ``most`` readings in the queue, the oldest is dropped and counted in ``lost``.
    `close` ends the stream.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.lost = 0
        self._most = most
        self._readings: deque[Reading] = deque()
        self._condition = threading.Condition()
        self._is_closed = False

    def put(self, reading: Reading) -> None:
        """Add a reading to this queue. Raises DataError if the queue is closed."""
        with self._condition:
            if self._is_closed:
                raise DataError("the inbox is closed and accepts no more readings")
            self._readings.append(reading)
            if len(self._readings) > self._most:
                self._readings.popleft()
                self.lost += 1
            self._condition.notify()

    def close(self) -> None:
        """Refuse further readings; readings already in the queue are still delivered."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    @property
    def is_over(self) -> bool:
        """True if the inbox is closed and empty."""
        with self._condition:
            return self._is_closed and not self._readings

    def next_reading(self, timeout_s: float) -> Reading | None:
        """Remove and return the oldest reading; wait at most ``timeout_s`` seconds for it.

        Returns None after the timeout, and if the inbox is closed and empty.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._readings or self._is_closed, timeout_s)
            return self._readings.popleft() if self._readings else None

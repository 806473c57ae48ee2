"""What can be captured, and how its readings are had.

    a scenario        is simulated, on the reference engine, as fast as it goes or at a pace
    a run             what it delivered, the same way
    a run on motes    what it delivers, as it comes
    anything else that has ``next_reading(timeout_s)``, ``is_over`` and ``lost``: an `Inbox`; a subscription, or a
                      mesh, of a protocol that runs on this machine's network

A scenario and a run *replay*: they deliver the same readings each time, and can wait. The others cannot.
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

STEP_S = 0.1  # wall time between two looks
CHUNK = 10_000  # rows of a trace, or readings
MOST_COLUMNS = len(ascii_uppercase)  # of regions
MOST_REMEMBERED = 100_000  # messages and publications
MOST_WAITING = 10_000  # readings in an inbox
_EVENTS = ("published", "originated", "delivered")


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
        super().__init__(frozenset(), frozenset(_EVENTS))

    def protocol_events(self, time_us: int, node: int, events: list[Any]) -> None:
        """Keep the rows of these events alone; who holds what is not counted."""
        super().protocol_events(time_us, node, [one for one in events if EVENT_NAMES[type(one)] in _EVENTS])

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
    return trace.filter(pc.is_in(pc.cast(trace.column("event"), pa.string()), pa.array(_EVENTS)))


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


def regions(topology: Any, columns: int = 2, rows: int = 2) -> dict[int, str]:
    """Node -> the cell that it is in, of as many as cover the nodes: "A1" is lower left, "B1" to its right.

    ``topology``: a graph with ``pos`` (metres) at its nodes. ParameterError for more than 26 columns, or none.
    """
    for name, number, most in (("columns", columns, MOST_COLUMNS), ("rows", rows, 1000)):
        if not isinstance(number, int) or not 1 <= number <= most:
            raise ParameterError(f"regions: {name} is {number!r:.60}; it must be a whole number from 1 to {most}")
    places = {node: data["pos"] for node, data in topology.nodes(data=True)}
    found = dict.fromkeys(places, "")
    for axis, number in enumerate((columns, rows)):
        low, high = min(place[axis] for place in places.values()), max(place[axis] for place in places.values())
        width = (high - low) / number or 1.0
        for node, place in places.items():
            cell = min(int((place[axis] - low) / width), number - 1)
            found[node] += ascii_uppercase[cell] if axis == 0 else str(cell + 1)
    return found


def regions_of(topology: Any, asked: Any) -> Mapping[int, str]:
    """What a user gave for regions: None (a grid of 2 x 2), (columns, rows), or a mapping from nodes to names."""
    if asked is None:
        return regions(topology)
    if isinstance(asked, Mapping):
        return asked
    if isinstance(asked, tuple) and len(asked) == 2:
        return regions(topology, *asked)
    raise ParameterError(f"regions is {asked!r:.60}; it must be (columns, rows) or a mapping from nodes to names")


class Deliveries:
    """The delivered readings in the rows of a trace, taken in their order. ``regions``: node -> region.

    Theory of operation
        A row "published" says when a node had a reading, "originated" which message carries it, "delivered" that a sink
        received a sample of a message. A delivered sample stands for the message's first reading with that text; if
        no reading has it (the protocol changed it on the way), for the message's first. Each number of a sample is one
        `Reading`; blobs and the application type are not.

    Limits
        The last `MOST_REMEMBERED` messages and publications are remembered. The sample of an older one, and one that
        the trace has before its publication (rows of motes may come so), counts as measured when it arrived.
    """

    def __init__(self, regions: Mapping[int, str]) -> None:
        self._regions = regions
        self._published: OrderedDict[tuple[int, int], tuple[int, str]] = OrderedDict()
        self._carried: OrderedDict[tuple[int, int], list[tuple[int, int, str]]] = OrderedDict()

    def of(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Reading]:
        """The readings of rows; tuples in the order of the trace's columns. Rows of other events are passed over."""
        for time_us, node, event, _, _, origin, sequence, _, value, detail in rows:
            if event == "published":
                _remember(self._published, (node, sequence), (time_us, detail))
            elif event == "originated":
                if (node, value) in self._published:
                    carried = self._carried.get((origin, sequence)) or []
                    _remember(self._carried, (origin, sequence), [*carried, (value, *self._published[node, value])])
            elif event == "delivered":
                yield from self._readings(time_us, node, origin, sequence, detail)

    def _readings(self, time_us: int, sink: int, origin: int, sequence: int, detail: str) -> Iterator[Reading]:
        carried = self._carried.get((origin, sequence)) or [(sequence, time_us, detail)]
        number, published_us, _ = next((one for one in carried if one[2] == detail), carried[0])
        region = self._regions.get(origin, "")
        for key, value in _numbers(detail):
            yield Reading(published_us / 1e6, origin, key, value, region, sink, number, time_us / 1e6)


def _remember(known: OrderedDict[Any, Any], name: tuple[int, int], what: Any) -> None:
    known[name] = what
    if len(known) > MOST_REMEMBERED:
        known.popitem(last=False)


@lru_cache(maxsize=4096)
def _numbers(sample: str) -> tuple[tuple[str, float], ...]:
    """The keys and values, in their units, of a sample's numbers."""
    numbers = [one for one in parse(sample) if one.key != APP and not is_blob(one.key)]
    return tuple((key_of(one.key).name, one.value / key_of(one.key).steps) for one in numbers)


class Inbox:
    """Put readings in from any thread: ``inbox.put(Reading(...))`` never waits; `wb.pipelines.stream` takes them out.

    Beyond ``most`` readings the oldest is lost, and counted in ``lost``. ``close`` says that nothing more will come.
    """

    def __init__(self, most: int = MOST_WAITING) -> None:
        self.lost = 0
        self._most = most
        self._readings: deque[Reading] = deque()
        self._condition = threading.Condition()
        self._is_closed = False

    def put(self, reading: Reading) -> None:
        """Add a reading; DataError once the inbox is closed."""
        with self._condition:
            if self._is_closed:
                raise DataError("the inbox is closed: nothing more was to come")
            self._readings.append(reading)
            if len(self._readings) > self._most:
                self._readings.popleft()
                self.lost += 1
            self._condition.notify()

    def close(self) -> None:
        """Nothing more will come; what is in it is still taken."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    @property
    def is_over(self) -> bool:
        """Whether it is closed and empty."""
        with self._condition:
            return self._is_closed and not self._readings

    def next_reading(self, timeout_s: float) -> Reading | None:
        """Take the oldest; None if none has come within that time, or none will come."""
        with self._condition:
            self._condition.wait_for(lambda: self._readings or self._is_closed, timeout_s)
            return self._readings.popleft() if self._readings else None

"""The data source "workbench.trace" for Spark: a folder of traces, or runs that are simulated when they are read.

::

    workbench.pipelines.spark()                                             knows it; else register(session)
    spark.read.format("workbench.trace").load("results/loss")               all runs of a folder
    spark.read.format("workbench.trace").option("scenario", scenario.to_json()).option("seeds", "0:200").load()

Options
    path      the folder; ``only`` (hashes of scenarios, separated by commas) and ``code`` as `table.traces` has them
    scenario  a scenario as JSON, or a list of them
    seeds     "0:200", or "1,5,7": each scenario is run with each of these seeds; without it, with its own
    engine    "auto", "fast" or "reference"
    tasks     how many tasks the runs are dealt out to, 32 at most if it is not said

A run's rows come in order, from one task. Workers import this package: it has to be installed there. Spark asks for all
columns, and for all rows: for large folders `table.traces` uses Spark's own reader of Parquet, which skips what a
question does not need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from workbench.errors import DataError, ScenarioError
from workbench.pipelines.trace.table import PLAIN, chosen_runs, of_run, plain
from workbench.sim.runner import checked_engine, play
from workbench.sim.scenario import Scenario
from workbench.sweeps.store.traces import File, Kept

ROWS_A_TASK = 1 << 21
TASKS = 32


class TraceSource(DataSource):
    """What ``spark.read.format("workbench.trace")`` finds."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return "workbench.trace"

    def schema(self) -> Any:
        """The columns, as `table` has them."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(PLAIN)

    def reader(self, schema: Any) -> DataSourceReader:
        """Who reads the folder, or runs the scenarios; DataError or ScenarioError for options that are wrong."""
        if "path" in self.options:
            return FolderReader(self.options)
        if "scenario" in self.options:
            return RunReader(self.options)
        raise DataError('workbench.trace needs .load("results/name") or .option("scenario", scenario.to_json())')


class FolderReader(DataSourceReader):
    """Reads the runs of a folder."""

    def __init__(self, options: Any) -> None:
        only = [one.strip() for one in options["only"].split(",")] if "only" in options else None
        self._runs = chosen_runs(Path(options["path"]).absolute(), only, options.get("code"))

    def partitions(self) -> Sequence[InputPartition]:
        """Stretches of whole runs, of some million rows each."""
        return [stretch for path, runs in self._runs.items() for stretch in _stretches(str(path), runs)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a stretch, in order."""
        path, first, rows = partition.value
        yield from map(plain, File(Path(path)).batches(Kept("", "", first, rows)))


def _stretches(path: str, runs: list[Kept]) -> Iterator[InputPartition]:
    """Yield (path, first row, number of rows) of stretches of whole runs."""
    begin, end = runs[0].first, runs[0].first
    for run in runs:
        if run.first > end or end + run.rows - begin > ROWS_A_TASK:
            if end > begin:
                yield InputPartition((path, begin, end - begin))
            begin = run.first
        end = run.first + run.rows
    if end > begin:
        yield InputPartition((path, begin, end - begin))


class RunReader(DataSourceReader):
    """Runs scenarios, and reads their traces."""

    def __init__(self, options: Any) -> None:
        self._documents = _documents(options["scenario"])
        self._engine = checked_engine(options.get("engine", "auto"))
        scenarios = [Scenario.from_json(one) for one in self._documents]
        seeds = _seeds(options["seeds"]) if "seeds" in options else None
        self._runs = [(place, seed) for place, one in enumerate(scenarios) for seed in seeds or [one.seed]]
        self._tasks = min(len(self._runs), _whole(options["tasks"], "tasks") if "tasks" in options else TASKS)

    def partitions(self) -> Sequence[InputPartition]:
        """Return some runs each: places in the list of scenarios, and seeds.

        Neighbors, which cost about the same, are dealt out in turn.
        """
        return [InputPartition(self._runs[first :: self._tasks]) for first in range(self._tasks)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The rows of a task's runs, run by run."""
        known: dict[int, Scenario] = {}
        for place, seed in partition.value:
            if place not in known:
                known = {place: Scenario.from_json(self._documents[place])}
            yield from map(plain, of_run(play(known[place].replace(seed=seed), self._engine)))


def _documents(text: str) -> list[str]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise ScenarioError(f"the option scenario is not JSON: {error}") from None
    return [json.dumps(one) for one in (told if isinstance(told, list) else [told])]


def _seeds(text: str) -> list[int]:
    first, is_range, last = text.partition(":")
    if is_range:
        found = list(range(_whole(first or "0", "seeds"), _whole(last, "seeds")))
    else:
        found = [_whole(one, "seeds") for one in text.split(",")]
    if not found:
        raise ScenarioError(f"the option seeds is {text!r:.60}, which is no seed at all; write 0:200 or 1,5,7")
    return found


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ScenarioError(
            f"the option {option} has {text!r:.60}; write whole numbers, such as 0:200 or 1,5,7"
        ) from None

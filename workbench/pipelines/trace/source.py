"""The Spark data source "workbench.trace": a folder of traces, or runs that are simulated when they are read.

::

    workbench.pipelines.spark()                                             a session with this source
    spark.read.format("workbench.trace").load("results/loss")               all runs of a folder
    spark.read.format("workbench.trace").option("scenario", scenario.to_json()).option("seeds", "0:200").load()

Options
    path      the folder or its URL; the options ``only`` (hashes of scenarios, separated by commas) and ``code``
              (digest of the code that ran) select runs
    scenario  a scenario as JSON, or a list of them
    seeds     "0:200", or "1,5,7": each scenario runs with each of these seeds; by default with its own seed
    engine    "auto", "fast" or "reference"
    tasks     number of tasks among which the runs are divided, by default at most 32

One task reads all rows of a run, in order. Workers import this package; a session of `workbench.pipelines.spark` sends
it to them. Spark reads all columns and rows of a data source in Python; for large folders `table.traces` uses Spark's
own reader of Parquet, which skips columns that a query does not need.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from workbench.errors import DataError, ScenarioError
from workbench.locations import location
from workbench.pipelines.trace.table import PLAIN_SCHEMA, batches_of_run, select_runs, without_dictionaries
from workbench.sim.runner import checked_engine, play
from workbench.sim.scenario import Scenario
from workbench.sweeps.store.traces import File, StoredRun

ROWS_A_TASK = 1 << 21
TASKS = 32


class TraceSource(DataSource):
    """The data source of ``spark.read.format("workbench.trace")``."""

    @classmethod
    def name(cls) -> str:
        """Return the name by which Spark selects this data source."""
        return "workbench.trace"

    def schema(self) -> Any:
        """Return the Spark schema of a trace table, whose columns `workbench.pipelines.trace.table` describes."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(PLAIN_SCHEMA)

    def reader(self, schema: Any) -> DataSourceReader:
        """Return a reader of trace rows: of the folder in the option `path`, or of runs of the option `scenario`.

        ``schema`` is ignored. Raises DataError or ScenarioError for invalid options.
        """
        if "path" in self.options:
            return FolderReader(self.options)
        if "scenario" in self.options:
            return RunReader(self.options)
        raise DataError(
            'workbench.trace has neither a path nor a scenario; use .load("results/name") or .option("scenario", json)'
        )


class FolderReader(DataSourceReader):
    """A reader of the trace rows of all selected runs in a folder of results."""

    def __init__(self, options: Any) -> None:
        scenario_hashes = (
            [scenario_hash.strip() for scenario_hash in options["only"].split(",")] if "only" in options else None
        )
        self._runs = select_runs(location(options["path"]).absolute(), scenario_hashes, options.get("code"))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions of all files, each a range of whole runs.

        A partition has at most about two million rows, unless a single run is longer.
        """
        return [rows_range for path, runs in self._runs.items() for rows_range in _ranges_of_runs(str(path), runs)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the trace rows of a partition, a range of whole runs in one file, in the order of the file."""
        path, first_row, rows = partition.value
        yield from map(without_dictionaries, File(location(path)).batches(StoredRun("", "", first_row, rows)))


def _ranges_of_runs(path: str, runs: list[StoredRun]) -> Iterator[InputPartition]:
    """Yield partitions of a file, each a range of whole runs as (path, first row, number of rows)."""
    range_start, range_end = runs[0].first, runs[0].first
    for run in runs:
        if run.first > range_end or range_end + run.rows - range_start > ROWS_A_TASK:
            if range_end > range_start:
                yield InputPartition((path, range_start, range_end - range_start))
            range_start = run.first
        range_end = run.first + run.rows
    if range_end > range_start:
        yield InputPartition((path, range_start, range_end - range_start))


class RunReader(DataSourceReader):
    """A reader that simulates scenarios and returns the rows of their traces."""

    def __init__(self, options: Any) -> None:
        self._documents = _parse_documents(options["scenario"])
        self._engine = checked_engine(options.get("engine", "auto"))
        scenarios = [Scenario.from_json(document) for document in self._documents]
        seeds = _parse_seeds(options["seeds"]) if "seeds" in options else None
        self._runs = [(index, seed) for index, scenario in enumerate(scenarios) for seed in seeds or [scenario.seed]]
        self._tasks = min(len(self._runs), _parse_whole(options["tasks"], "tasks") if "tasks" in options else TASKS)

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition per Spark task: a list of runs, each a pair (index of the scenario, seed).

        With n tasks, task i gets the runs i, i + n, i + 2n, ... Successive runs take about the same time, so all tasks
        take about the same time, too.
        """
        return [InputPartition(self._runs[task :: self._tasks]) for task in range(self._tasks)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Simulate the runs of a partition and yield their trace rows.

        ``partition`` has a pair (index of the scenario, seed) for each run.
        """
        scenarios: dict[int, Scenario] = {}
        for index, seed in partition.value:
            if index not in scenarios:
                scenarios = {index: Scenario.from_json(self._documents[index])}
            yield from map(
                without_dictionaries, batches_of_run(play(scenarios[index].replace(seed=seed), self._engine))
            )


def _parse_documents(text: str) -> list[str]:
    try:
        scenario_values = json.loads(text)
    except ValueError as error:
        raise ScenarioError(
            f"the option 'scenario' is not valid JSON ({error}); give it the result of scenario.to_json()"
        ) from None
    return [
        json.dumps(scenario)
        for scenario in (scenario_values if isinstance(scenario_values, list) else [scenario_values])
    ]


def _parse_seeds(text: str) -> list[int]:
    first_text, is_range, end_text = text.partition(":")
    if is_range:
        seeds = list(range(_parse_whole(first_text or "0", "seeds"), _parse_whole(end_text, "seeds")))
    else:
        seeds = [_parse_whole(seed_text, "seeds") for seed_text in text.split(",")]
    if not seeds:
        raise ScenarioError(f"the option 'seeds' is {text!r:.60}, which contains no seed; write 0:200 or 1,5,7")
    return seeds


def _parse_whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ScenarioError(
            f"the option {option!r} contains {text!r:.60}, which is not a whole number; "
            f"write {'0:200 or 1,5,7' if option == 'seeds' else 'a number such as 32'}"
        ) from None

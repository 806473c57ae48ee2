"""The trace rows of many runs as one table: runs of a folder, given runs, or scenarios, which are simulated.

Columns: ``scenario`` (its hash), ``code`` (digest of the code that ran), ``row`` (index in the run, from 0), and those
of a trace (`workbench.sim.trace`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.keywords import checked
from workbench.locations import Location, ObjectPath, location
from workbench.pipelines import damage
from workbench.sim import runner
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sweeps.code import Codes
from workbench.sweeps.store.traces import SCHEMA, File, StoredRun, list_runs, with_key, without_repetitions

Source = str | Path | ObjectPath | Run | Scenario | Iterable[Run | Scenario]
_MOST_NAMED = 3
_VERIFY = "parquet.page.verify-checksum.enabled"  # off by default in Spark


@checked
def traces(source: Source, spark: Any = None, only: Collection[str] | None = None, code: str | None = None) -> Any:
    """Return a table of the rows of many runs, for `load_per_node` and the other statistics.

    source  a folder of results (``Sweep(..., keep="trace").run(out=folder)``) or its URL, runs, or scenarios, which are
            simulated
    spark   a Spark session: the result is then a DataFrame, and the session's workers simulate the scenarios
    only    hashes of the scenarios to read from a folder; None: all
    code    digest of the package's code: only runs with this code are read. Needed if the folder has runs of the same
            scenario with different versions of the code

    Without a Spark session, the result for a folder is the path of its traces, which DuckDB reads piece by piece. With
    ``only`` or ``code``, and for a URL, runs or scenarios, it is an Arrow table in memory.

    Raises DataError for a folder without traces, if a scenario in ``only`` has no run there, and if ``code`` is needed
    but not given.
    """
    if isinstance(source, (str, Path, ObjectPath)):
        return _open_folder_table(location(source).absolute(), spark, only, code)
    source_items = [source] if isinstance(source, (Run, Scenario)) else list(source)
    for item in source_items:
        if not isinstance(item, (Run, Scenario)):
            raise DataError(
                f"traces: the source contains {item!r:.60}; it must be a folder, or contain only runs or scenarios"
            )
    if spark is not None and source_items and all(isinstance(item, Scenario) for item in source_items):
        documents = json.dumps([json.loads(item.to_json()) for item in source_items if isinstance(item, Scenario)])
        return spark.read.format("workbench.trace").option("scenario", documents).load()
    batches = [
        batch for item in source_items for batch in batches_of_run(item if isinstance(item, Run) else runner.play(item))
    ]
    trace_table = pa.Table.from_batches(batches, SCHEMA).unify_dictionaries()
    return trace_table if spark is None else spark.createDataFrame(without_dictionaries(trace_table))


def batches_of_run(run: Run) -> Iterator[pa.RecordBatch]:
    """Yield the trace of a run in batches, preceded by the columns scenario (hash), code (digest) and row (index)."""
    code_digest, rows = Codes().digest(run.scenario.protocol), 0
    for batch in run.trace.to_batches():
        yield with_key(batch, run.scenario.hash, code_digest, rows)
        rows += len(batch)


def without_dictionaries(table: Any) -> Any:
    """Return an Arrow table or batch with plain strings instead of dictionary-encoded ones, for Spark."""
    return table.cast(PLAIN_SCHEMA)


PLAIN_SCHEMA = pa.schema(
    [(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in SCHEMA]
)


def _open_folder_table(folder: Location, spark: Any, only: Collection[str] | None, code: str | None) -> Any:
    stored_runs = _list_stored_runs(folder)
    unique_runs = without_repetitions(stored_runs)
    runs_by_file = _select_stored_runs(folder, unique_runs, only, code)
    has_repetitions = unique_runs != stored_runs
    if spark is not None and (has_repetitions or isinstance(folder, ObjectPath)):
        # Spark's own reader of Parquet needs a jar for an object store, and reads repeated runs twice.
        source = spark.read.format("workbench.trace").options(
            **({} if only is None else {"only": ",".join(only)}), **({} if code is None else {"code": code})
        )
        return source.load(str(folder))
    if spark is not None:
        spark_table = spark.read.option(_VERIFY, "true").parquet(*map(str, runs_by_file))
        spark_table = spark_table if only is None else spark_table.where(spark_table.scenario.isin(list(only)))
        return spark_table if code is None else spark_table.where(spark_table.code == code)
    if only is None and code is None and not has_repetitions and not isinstance(folder, ObjectPath):
        return next(iter(runs_by_file)).parent
    for path in runs_by_file:
        if isinstance(path, Path):  # The pages of an object are verified while it is read.
            damage.check(path)
    batches = [batch for path, runs in runs_by_file.items() for run in runs for batch in File(path).batches(run)]
    return pa.Table.from_batches(batches, SCHEMA).unify_dictionaries()


def select_runs(
    folder: Location, only: Collection[str] | None = None, code: str | None = None
) -> dict[Location, list[StoredRun]]:
    """Return {file: its selected runs, in order} for a folder of results.

    ``only``: hashes of the scenarios to select; None: all. ``code``: digest of the code that ran them; None: any.

    Raises DataError for a folder without traces, if a scenario in ``only`` has no selected run, and if no run has the
    digest ``code``. Also raises it if the selection has two runs of the same scenario, made with different versions of
    the code; ``code`` then selects a version.
    """
    return _select_stored_runs(folder, without_repetitions(_list_stored_runs(folder)), only, code)


def _list_stored_runs(folder: Location) -> dict[Location, list[StoredRun]]:
    if not folder.is_dir():
        raise DataError(f"{folder} does not exist")
    stored_runs = list_runs(folder)
    if not stored_runs:
        raise DataError(f'{folder} has no traces; a sweep stores them with Sweep(..., keep="trace").run(out=folder)')
    return stored_runs


def _select_stored_runs(
    folder: Location, stored_runs: dict[Location, list[StoredRun]], only: Collection[str] | None, code: str | None
) -> dict[Location, list[StoredRun]]:
    """Return the runs of ``stored_runs`` that `select_runs` would select, in the same form {file: runs}.

    ``stored_runs`` are the runs in ``folder``, whose name is for messages.
    """
    wanted_hashes = None if only is None else set(only)
    selected_runs = {
        path: [
            run
            for run in runs
            if (wanted_hashes is None or run.scenario in wanted_hashes) and (code is None or run.code == code)
        ]
        for path, runs in stored_runs.items()
    }
    all_selected_runs = [run for runs in selected_runs.values() for run in runs]
    missing_hashes = sorted((wanted_hashes or set()) - {run.scenario for run in all_selected_runs})
    if missing_hashes:
        raise DataError(f"{folder} contains no trace of these scenarios: {', '.join(missing_hashes[:_MOST_NAMED])}")
    if len({run.scenario for run in all_selected_runs}) < len(all_selected_runs):
        codes = ", ".join(sorted({run.code for run in all_selected_runs}))
        raise DataError(
            f"{folder} has traces of the same scenarios, run with different code (digests {codes}); "
            "choose a digest: traces(folder, code=...)"
        )
    if not all_selected_runs:
        raise DataError(f"{folder} contains no trace of a run whose code has the digest {code}; leave out `code`")
    return {path: runs for path, runs in selected_runs.items() if runs}

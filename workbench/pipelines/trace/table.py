"""The rows of many runs as one table for the questions: of a folder, of runs, or of scenarios that are run for it.

Columns: ``scenario`` (its hash), ``code`` (digest of the code that ran), ``row`` (number in the run, from 0), and those
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
from workbench.pipelines import damage
from workbench.sim import runner
from workbench.sim.run import Run
from workbench.sim.scenario import Scenario
from workbench.sweeps.code import Codes
from workbench.sweeps.store.traces import SCHEMA, File, Kept, runs_of, with_key

Source = str | Path | Run | Scenario | Iterable[Run | Scenario]
_TOLD = 3
_VERIFY = "parquet.page.verify-checksum.enabled"  # Spark's reader of Parquet has it off.


@checked
def traces(source: Source, spark: Any = None, only: Collection[str] | None = None, code: str | None = None) -> Any:
    """A table of the rows of many runs, for `load_per_node` and its like.

    source  a folder of results (``Sweep(..., keep="trace").run(out=folder)``), runs, or scenarios, which are simulated
    spark   a session: the table is a DataFrame of it then, and scenarios are simulated by its workers. Without one it
            is the folder's path, which DuckDB reads piece by piece, or an Arrow table
    only    hashes of scenarios: these alone, from a folder; they are read at once then
    code    a digest: the runs of that code alone, where a folder has runs of the same scenario by several

    DataError for a folder without traces, and for one with a scenario that several codes have run, if none is named.
    """
    if isinstance(source, (str, Path)):
        return _of_folder(Path(source).absolute(), spark, only, code)
    some = [source] if isinstance(source, (Run, Scenario)) else list(source)
    for one in some:
        if not isinstance(one, (Run, Scenario)):
            raise DataError(f"traces are of a folder, of runs or of scenarios, not of {one!r:.60}")
    if spark is not None and some and all(isinstance(one, Scenario) for one in some):
        documents = json.dumps([json.loads(one.to_json()) for one in some if isinstance(one, Scenario)])
        return spark.read.format("workbench.trace").option("scenario", documents).load()
    found = [batch for one in some for batch in of_run(one if isinstance(one, Run) else runner.play(one))]
    table = pa.Table.from_batches(found, SCHEMA).unify_dictionaries()
    return table if spark is None else spark.createDataFrame(plain(table))


def of_run(run: Run) -> Iterator[pa.RecordBatch]:
    """The rows of a run with the columns of a table of many."""
    code, rows = Codes().of(run.scenario.protocol), 0
    for batch in run.trace.to_batches():
        yield with_key(batch, run.scenario.hash, code, rows)
        rows += len(batch)


def plain(table: Any) -> Any:
    """A table or batch with texts in place of dictionaries, which Spark does not take."""
    return table.cast(PLAIN)


PLAIN = pa.schema([(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in SCHEMA])


def _of_folder(folder: Path, spark: Any, only: Collection[str] | None, code: str | None) -> Any:
    chosen = chosen_runs(folder, only, code)
    if spark is not None:
        frame = spark.read.option(_VERIFY, "true").parquet(*map(str, chosen))
        frame = frame if only is None else frame.where(frame.scenario.isin(list(only)))
        return frame if code is None else frame.where(frame.code == code)
    if only is None and code is None:
        return next(iter(chosen)).parent
    for path in chosen:
        damage.check(path)
    found = [batch for path, runs in chosen.items() for run in runs for batch in File(path).batches(run)]
    return pa.Table.from_batches(found, SCHEMA).unify_dictionaries()


def chosen_runs(folder: Path, only: Collection[str] | None = None, code: str | None = None) -> dict[Path, list[Kept]]:
    """file -> the runs in it that were asked for, in order; DataError as `traces`."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not there")
    found = runs_of(folder)
    if not found:
        raise DataError(f'{folder} has no traces; a sweep keeps them with Sweep(..., keep="trace").run(out=folder)')
    wanted = None if only is None else set(only)
    chosen = {
        path: [run for run in runs if (wanted is None or run.scenario in wanted) and (code is None or run.code == code)]
        for path, runs in found.items()
    }
    every = [run for runs in chosen.values() for run in runs]
    missing = sorted((wanted or set()) - {run.scenario for run in every})
    if missing:
        raise DataError(f"{folder} has no trace of {', '.join(missing[:_TOLD])}")
    if len({run.scenario for run in every}) < len(every):
        codes = ", ".join(sorted({run.code for run in every}))
        raise DataError(
            f"{folder} has traces of the same scenarios by several codes ({codes}); say which: traces(folder, code=...)"
        )
    if not every:
        raise DataError(f"{folder} has no trace of a run by the code {code}")
    return {path: runs for path, runs in chosen.items() if runs}

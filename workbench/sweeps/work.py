"""The run of one point of a sweep, and the row of its results. Workers import little besides this module.

Rows are sent between processes as Arrow batches of `ROW_SCHEMA`.
"""

from __future__ import annotations

import importlib
import platform
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

import pyarrow as pa

import workbench
from workbench.errors import ScenarioError, WorkbenchError
from workbench.sim import runner
from workbench.sim.fast import code_cache
from workbench.sim.scenario import Scenario
from workbench.sweeps import values
from workbench.sweeps.plan import Measure, Plan
from workbench.sweeps.references import PACKAGE

LONGEST_ERROR = 2_000  # characters of a failed point's error
OUT_OF_MEMORY = "out of memory"  # begins the error of a point that exceeded its memory
ROWS_AT_ONCE = 1 << 18  # rows in a batch of a trace
LONGEST_NAME = 200  # characters of a metric's name
_EVERY_RUN_NEEDS = ("pandas", "workbench.sim.engine", "workbench.sim.metrics")


class Row(NamedTuple):
    """The result of a point (one scenario of a sweep).

    number     number of the point in the plan
    scenario   hash of its scenario; "" if the scenario is invalid
    document   its whole scenario as JSON; "" if the scenario is invalid
    seed       seed of its scenario
    code       digest of the code that ran (`workbench.sweeps.code`); "" if the scenario is invalid
    engine     the engine that ran; the requested engine if the run failed
    wall_s     duration of the run in seconds, without compiling
    compile_s  seconds spent on loading and compiling code before the run; 0.0 if the process had it loaded
    error      None, or the reason for a failure as a sentence
    metrics    name -> number
    versions   versions of package, Python and libraries, and the platform on which the point ran
    trace      its packed trace (`pack`) if the sweep keeps traces; else b""
    """

    number: int
    scenario: str
    document: str
    seed: int
    code: str
    engine: str
    wall_s: float
    compile_s: float
    error: str | None
    metrics: dict[str, float]
    versions: str = ""
    trace: bytes = b""

    @property
    def version(self) -> str:
        """The version of the workbench that ran the point, or "" if it is unknown."""
        return version_in(self.versions)


def version_in(versions: str) -> str:
    """Return the version of the workbench in the text of a row's ``versions``, or "" if it is unknown."""
    name, _, version = versions.partition(",")[0].partition(" ")
    return version if name == PACKAGE else ""


# The seed is text, because Python's integers have no limit.
ROW_SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("scenario", pa.string()),
        ("document", pa.string()),
        ("seed", pa.string()),
        ("code", pa.string()),
        ("engine", pa.string()),
        ("wall_s", pa.float64()),
        ("compile_s", pa.float64()),
        ("error", pa.string()),
        ("metrics", pa.map_(pa.string(), pa.float64())),
        ("versions", pa.string()),
        ("trace", pa.large_binary()),
    ]
)


def to_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Convert result rows to one Arrow batch (`ROW_SCHEMA`). Raises an exception if Arrow cannot store a row."""
    content = [{**row._asdict(), "seed": str(row.seed), "metrics": list(row.metrics.items())} for row in rows]
    return pa.RecordBatch.from_pylist(content, schema=ROW_SCHEMA)


def to_batch_of_all(rows: Sequence[Row]) -> pa.RecordBatch:
    """Convert result rows to one Arrow batch (`ROW_SCHEMA`).

    A row that Arrow cannot store is replaced by the row of a failed point.
    """
    try:
        return to_batch(rows)
    except Exception:
        return to_batch(map(_replace_unstorable, rows))


def _replace_unstorable(row: Row) -> Row:
    try:
        to_batch([row])
    except Exception as error:
        return Row(row.number, "", "", 0, "", "", row.wall_s, row.compile_s, _describe_error(error), {}, row.versions)
    return row


def rows_from_table(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """Return the rows of a table or batch that has the columns of `ROW_SCHEMA`; other columns are ignored."""
    content = table.select(ROW_SCHEMA.names).to_pylist()
    return [Row(**{**cells, "seed": int(cells["seed"]), "metrics": dict(cells["metrics"])}) for cells in content]


def run_point(plan: Plan, number: int) -> Row:
    """Run point ``number`` of a plan and return its result.

    If the run raises an exception, for example in a user's filter, the result is a row with this error.
    """
    compile_s = _time_first_imports()
    scenario, row = _begin_row(plan, number)
    if scenario is None:
        return row
    begin, loaded_s = time.perf_counter(), code_cache.loading_s()
    try:
        run = runner.play(scenario, plan.engine, "trace" if plan.measure or plan.keeps_traces else "metrics")
        metrics = {str(metric_name): float(value) for metric_name, value in run.metrics.items()}
        if plan.measure is not None:
            metrics.update(_call_measure(plan.measure, run, metrics))
        for metric_name in metrics:
            _check_name(metric_name)
        trace = pack(run.trace) if plan.keeps_traces else b""
        row = row._replace(engine=run.engine, metrics=metrics, trace=trace)
    except Exception as error:
        row = row._replace(error=_describe_error(error), metrics={}, trace=b"")
    loaded_s = code_cache.loading_s() - loaded_s
    wall_s = max(0.0, time.perf_counter() - begin - loaded_s)
    return row._replace(wall_s=wall_s, compile_s=compile_s + loaded_s)


def failed_row(plan: Plan, number: int, sentence: str) -> Row:
    """Return the row of a point that has no result, for example because it did not end; its error is ``sentence``."""
    return _begin_row(plan, number)[1]._replace(error=sentence)


def _begin_row(plan: Plan, number: int) -> tuple[Scenario | None, Row]:
    """Return (scenario, row without results) for a point; (None, failed row) if the scenario cannot be built."""
    try:
        scenario = plan.scenario_of(number)
        code = plan.codes.digest(scenario.protocol)
        identity_fields = scenario.hash, scenario.to_json(indent=None), scenario.seed, code
    except Exception as error:
        identity_fields = "", "", plan.seed_of(number), ""
        return None, Row(
            number, *identity_fields, plan.engine, 0.0, 0.0, _describe_error(error), {}, _describe_versions()
        )
    return scenario, Row(number, *identity_fields, plan.engine, 0.0, 0.0, None, {}, _describe_versions())


@cache
def _describe_versions() -> str:
    """Return versions and platform: "workbench 0.1.0, Python 3.11.7, numpy 2.3.1, numba 0.62.1, Linux x86_64"."""
    libraries = [f"{name} {metadata.version(name)}" for name in ("numpy", "numba")]
    system = f"{platform.system()} {platform.machine()}"
    return ", ".join([f"workbench {workbench.__version__}", f"Python {platform.python_version()}", *libraries, system])


def _time_first_imports() -> float:
    """Import the modules that every run needs. Return the seconds that the imports took, or 0.0 if all were loaded."""
    begin = time.perf_counter()
    modules_before = len(sys.modules)
    for name in _EVERY_RUN_NEEDS:
        importlib.import_module(name)
    return time.perf_counter() - begin if len(sys.modules) > modules_before else 0.0


def _call_measure(measure: Measure, run: Any, metrics: dict[str, float]) -> dict[str, float]:
    measured = measure(run)
    try:
        metric_values = {str(metric_name): float(value) for metric_name, value in measured.items()}
    except (AttributeError, TypeError, ValueError):
        raise ScenarioError(f"the measure returned {measured!r:.80}; it must return {{name: number}}") from None
    for metric_name in metric_values:
        if metric_name in metrics:
            raise ScenarioError(
                f"the measure returned the metric {metric_name}, which every run has already; rename it"
            )
    return metric_values


def _check_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise ScenarioError(f"a metric's name has {len(name):,} characters; it may have at most {LONGEST_NAME}")
    if not values.is_unicode(name):
        raise ScenarioError(f"the metric's name {name!a} is not valid Unicode: it contains a lone surrogate")


def _describe_error(error: Exception) -> str:
    """Return an error as a sentence.

    The sentence names the function, file and line of the error, unless it is a WorkbenchError without a cause.
    """
    if isinstance(error, WorkbenchError) and error.__cause__ is None:
        return _shorten(_read_message(error))
    error_text = (
        _read_message(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {_read_message(error)}"
    )
    if isinstance(error.__cause__ or error, MemoryError):
        error_text = f"{OUT_OF_MEMORY}: the point exceeded its limit (memory_MB of the runner); {error_text}"
    last_frame = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
    return f"{_shorten(error_text)} (in {last_frame.name}, {last_frame.filename} line {last_frame.lineno})"


def _read_message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "the message of the error cannot be read"


def _shorten(text: str) -> str:
    """Cut the middle of a text longer than `LONGEST_ERROR` characters, and escape lone surrogates."""
    characters_left_out = len(text) - LONGEST_ERROR
    if characters_left_out > 0:
        text = (
            f"{text[: LONGEST_ERROR // 2]} [... {characters_left_out:,} characters ...] {text[-LONGEST_ERROR // 2 :]}"
        )
    return text.encode(errors="backslashreplace").decode()


def pack(trace: pa.Table) -> bytes:
    """Return a trace as compressed Arrow bytes, about 4 bytes per row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, trace.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(trace, max_chunksize=ROWS_AT_ONCE)
    return sink.getvalue().to_pybytes()


def unpack_batches(packed: Any) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a packed trace (bytes, or an open file) in order, at most `ROWS_AT_ONCE` in a batch."""
    yield from pa.ipc.open_stream(packed)

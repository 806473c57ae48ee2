"""The work of a sweep: one point run, and its row. Workers import this and little else.

Rows move between processes as Arrow batches of `ROW_SCHEMA`, whoever runs them.
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

LONGEST_ERROR = 2_000  # characters of the sentence of a point that failed
OUT_OF_MEMORY = "out of memory"  # begins the sentence of a point that has used up what it may have
ROWS_AT_ONCE = 1 << 18  # of a trace that is read batch by batch
LONGEST_NAME = 200  # characters of a metric's name
_EVERY_RUN_NEEDS = ("pandas", "workbench.sim.engine", "workbench.sim.metrics")


class Row(NamedTuple):
    """What came of a point.

    number     the point's place in the plan
    scenario   the hash of its scenario; "" if that could not be built
    document   its whole scenario as JSON; "" likewise
    seed       of its scenario
    code       the digest of the code that ran (`workbench.sweeps.code`); "" likewise
    engine     the engine that ran; the one that was asked for if none did
    wall_s     seconds that the run alone took
    compile_s  seconds that this process spent before it on loading and compiling; 0.0 if it was warm
    error      None, or in one sentence why there are no metrics
    metrics    name -> number
    versions   of package, Python and libraries, and the platform, where the point ran
    trace      its trace, packed (`pack`), if the sweep keeps traces; else b""
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
        """The version of the package alone; "" if that is not known."""
        name, _, version = self.versions.partition(",")[0].partition(" ")
        return version if name == PACKAGE else ""


# The seed as text: Python's whole numbers have no end.
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
    """Rows as one batch of `ROW_SCHEMA`."""
    content = [{**row._asdict(), "seed": str(row.seed), "metrics": list(row.metrics.items())} for row in rows]
    return pa.RecordBatch.from_pylist(content, schema=ROW_SCHEMA)


def to_batch_of_all(rows: Sequence[Row]) -> pa.RecordBatch:
    """Return rows as one batch; a row that no batch can hold becomes one of a point that failed."""
    try:
        return to_batch(rows)
    except Exception:
        return to_batch(map(_storable, rows))


def _storable(row: Row) -> Row:
    try:
        to_batch([row])
    except Exception as error:
        return Row(row.number, "", "", 0, "", "", row.wall_s, row.compile_s, _sentence(error), {}, row.versions)
    return row


def from_table(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """The rows of a table or batch of `ROW_SCHEMA`; other columns are passed over."""
    content = table.select(ROW_SCHEMA.names).to_pylist()
    return [Row(**{**one, "seed": int(one["seed"]), "metrics": dict(one["metrics"])}) for one in content]


def run_point(plan: Plan, number: int) -> Row:
    """Run one point. Whatever goes wrong in it (a user's filter, say) is told in its row and ends no other's run."""
    compile_s = _first_imports_s()
    scenario, row = _begun(plan, number)
    if scenario is None:
        return row
    begin, loaded_s = time.perf_counter(), code_cache.loading_s()
    try:
        run = runner.play(scenario, plan.engine, "trace" if plan.measure or plan.keeps_traces else "metrics")
        metrics = {str(name): float(value) for name, value in run.metrics.items()}
        if plan.measure is not None:
            metrics.update(_measured(plan.measure, run, metrics))
        for name in metrics:
            _check_name(name)
        trace = pack(run.trace) if plan.keeps_traces else b""
        row = row._replace(engine=run.engine, metrics=metrics, trace=trace)
    except Exception as error:
        row = row._replace(error=_sentence(error), metrics={}, trace=b"")
    loaded_s = code_cache.loading_s() - loaded_s
    wall_s = max(0.0, time.perf_counter() - begin - loaded_s)
    return row._replace(wall_s=wall_s, compile_s=compile_s + loaded_s)


def failed_row(plan: Plan, number: int, sentence: str) -> Row:
    """The row of a point that killed its worker, or did not end: the sentence says so."""
    return _begun(plan, number)[1]._replace(error=sentence)


def _begun(plan: Plan, number: int) -> tuple[Scenario | None, Row]:
    """A point's scenario and its row without results; None and the row of a failure if it cannot be built."""
    try:
        scenario = plan.scenario_of(number)
        code = plan.codes.of(scenario.protocol)
        told = scenario.hash, scenario.to_json(indent=None), scenario.seed, code
    except Exception as error:
        told = "", "", plan.seed_of(number), ""
        return None, Row(number, *told, plan.engine, 0.0, 0.0, _sentence(error), {}, _versions())
    return scenario, Row(number, *told, plan.engine, 0.0, 0.0, None, {}, _versions())


@cache
def _versions() -> str:
    """ "workbench 0.1.0, Python 3.11.7, numpy 2.3.1, numba 0.62.1, Linux x86_64"."""
    found = [f"{name} {metadata.version(name)}" for name in ("numpy", "numba")]
    here = f"{platform.system()} {platform.machine()}"
    return ", ".join([f"workbench {workbench.__version__}", f"Python {platform.python_version()}", *found, here])


def _first_imports_s() -> float:
    """Import what every run needs; the seconds that this took, almost none but for the first time in a process."""
    begin = time.perf_counter()
    before = len(sys.modules)
    for name in _EVERY_RUN_NEEDS:
        importlib.import_module(name)
    return time.perf_counter() - begin if len(sys.modules) > before else 0.0


def _measured(measure: Measure, run: Any, metrics: dict[str, float]) -> dict[str, float]:
    found = measure(run)
    try:
        numbers = {str(name): float(value) for name, value in found.items()}
    except (AttributeError, TypeError, ValueError):
        raise ScenarioError(f"the measure answered {found!r:.80}; it must answer {{name: number}}") from None
    for name in numbers:
        if name in metrics:
            raise ScenarioError(f"the measure has a metric {name}, which every run has already; give it another name")
    return numbers


def _check_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise ScenarioError(f"a metric's name has {len(name):,} characters; it must have {LONGEST_NAME} at most")
    if not values.is_unicode(name):
        raise ScenarioError(f"the metric's name {name!a} is not valid Unicode: it has half of a surrogate pair")


def _sentence(error: Exception) -> str:
    """Return what happened, with the place if it was in code that is not ours: the user's, or a named filter's."""
    if isinstance(error, WorkbenchError) and error.__cause__ is None:
        return _shortened(_text(error))
    text = _text(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {_text(error)}"
    if isinstance(error.__cause__ or error, MemoryError):
        text = f"{OUT_OF_MEMORY}: the point needs more than it may have (memory_MB of its runner); {text}"
    last = traceback.extract_tb((error.__cause__ or error).__traceback__)[-1]
    return f"{_shortened(text)} (in {last.name}, {last.filename} line {last.lineno})"


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "its text cannot be read"


def _shortened(text: str) -> str:
    """Return a text of at most about `LONGEST_ERROR` characters that can be stored."""
    left_out = len(text) - LONGEST_ERROR
    if left_out > 0:
        text = f"{text[: LONGEST_ERROR // 2]} [... {left_out:,} characters ...] {text[-LONGEST_ERROR // 2 :]}"
    return text.encode(errors="backslashreplace").decode()


def pack(trace: pa.Table) -> bytes:
    """A trace as bytes, about 4 a row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, trace.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(trace, max_chunksize=ROWS_AT_ONCE)
    return sink.getvalue().to_pybytes()


def batches(packed: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a packed trace in order, at most `ROWS_AT_ONCE` at a time; ``packed``: bytes, or a file of them."""
    yield from pa.ipc.open_stream(packed)

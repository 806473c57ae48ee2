"""Where the rows of a sweep are kept: Parquet files in a folder, or memory. Both are keyed by point.

A folder holds ``*.parquet``, one row per finished point, and for each sweep a ``_sweep-<id>.json`` that says what was
run; names that begin with an underscore are passed over by whatever reads a folder of Parquet. Files only ever appear
whole (written under another name, then renamed), so a sweep may be stopped at any moment. Points that failed are not
kept: they are run again.

Columns: point, scenario, seed, engine, version, wall_s, then one per axis (numbers as float64, except the seed; what
is no number or boolean as text), then one per metric. A metric that a run does not have is null. In the end all files
are given the same columns: readers such as pandas take the columns of a whole folder from its first file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import workbench
from workbench.errors import DataError
from workbench.sweeps import user_code
from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row

FLUSH_S = 5.0
_SCENARIOS = 10_000  # so many are built to find results
WHAT = (
    "Results of parameter sweeps of the workbench: *.parquet has one row per run, keyed by the column 'point'; "
    "running the same sweep with out= this folder goes on where it stopped."
)
_METRICS = b"workbench.metrics"


class MemoryStore:
    """Keeps rows as long as it lives itself."""

    place = "memory"

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def open(self, plan: Plan) -> dict[int, Row]:
        """number -> row of those points that are here."""
        self._plan = plan
        if not self._rows:
            return {}
        found = ((number, self._rows.get(plan.point_key(number))) for number in range(len(plan)))
        return {number: row for number, row in found if row is not None}

    def add(self, row: Row) -> None:
        """Keep the row of a finished point."""
        self._rows[self._plan.point_key(row.number)] = row

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is left to do."""


class FolderStore:
    """Keeps rows as Parquet files in a folder, written every few seconds."""

    def __init__(self, folder: str | Path) -> None:
        self.place = str(folder)
        self._folder = Path(folder)
        self._waiting: list[tuple[str, Row]] = []
        self._written = time.perf_counter()

    def open(self, plan: Plan) -> dict[int, Row]:
        """number -> row of those points that are here; DataError for a folder or file that is something else."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.place} cannot be a folder for results: {error.strerror}") from None
        self._plan = plan
        self._describe(plan)
        paths = sorted(self._folder.glob("*.parquet"))
        numbers = {plan.point_key(number): number for number in range(len(plan))} if paths else {}
        found = {row.number: row for path in paths for row in _read(path, numbers, "point")}
        if paths and len(plan) <= _SCENARIOS:
            # Another sweep may have had the same points, and called them otherwise.
            points = (plan.point(number) for number in range(len(plan)) if number not in found)
            numbers = {point.key: point.number for point in points}
            found.update((row.number, row) for path in paths for row in _read(path, numbers, "key"))
        return found

    def _describe(self, plan: Plan) -> None:
        content = {
            "what": WHAT,
            "version": workbench.__version__,
            "engine": plan.engine,
            **({} if plan.measure is None else {"measure": user_code.name_of(plan.measure)}),
            **plan.design.describe(),
            "scenario": json.loads(plan.scenario.to_json()),
        }
        words = (plan.scenario.hash, json.dumps(content["engine"]), json.dumps(plan.design.describe()))
        path = self._folder / f"_sweep-{_hash(words)}.json"
        if not path.exists():
            _write_whole(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    def add(self, row: Row) -> None:
        """Keep the row of a finished point."""
        self._waiting.append((self._plan.point_key(row.number), row))
        if time.perf_counter() - self._written >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write what was added since the last file."""
        if self._waiting:
            table = _to_table(self._waiting, self._plan)
            name = f"{_hash(key for key, _ in self._waiting)}.parquet"
            _write_whole(self._folder / name, _to_parquet(table))
            self._waiting = []
        self._written = time.perf_counter()

    def close(self) -> None:
        """Write what is left, and give all files the same columns."""
        self.flush()
        paths = sorted(self._folder.glob("*.parquet"))
        schemas = [_schema(path) for path in paths]
        columns = _all_columns(schemas)
        for path, schema in zip(paths, schemas, strict=True):
            if not schema.equals(columns, check_metadata=True):
                _write_whole(path, _to_parquet(_widened(pq.read_table(path, partitioning=None), columns)))


def _schema(path: Path) -> pa.Schema:
    """The schema of a file of ours; DataError for any other file."""
    try:
        schema = pq.read_schema(path)
        if _METRICS in (schema.metadata or {}):
            return schema
    except (pa.ArrowException, OSError):
        pass
    raise DataError(f"{path} is no file of a sweep's results; keep other files elsewhere, or remove it")


def _all_columns(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """What all files together have: metrics last; a column that is text in one file is text in all."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            same = types.setdefault(field.name, field.type) == field.type
            types[field.name] = field.type if same else pa.string()
    metrics = list(dict.fromkeys(name for schema in schemas for name in _metrics(schema)))
    names = [name for name in types if name not in metrics] + metrics
    return pa.schema([(name, types[name]) for name in names], {_METRICS: json.dumps(metrics).encode()})


def _metrics(schema: pa.Schema) -> list[str]:
    return json.loads(schema.metadata[_METRICS])


def _widened(table: pa.Table, columns: pa.Schema) -> pa.Table:
    arrays = []
    for field in columns:
        known = field.name in table.column_names
        arrays.append(table.column(field.name).cast(field.type) if known else pa.nulls(len(table), field.type))
    return pa.table(arrays, schema=columns)


def _to_parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _hash(keys: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(keys).encode()).hexdigest()[:12]


def _write_whole(path: Path, content: bytes) -> None:
    """The file is there with all of its content, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise DataError(f"{path} cannot be written: {error.strerror}") from None


def _type(path: str, labels: Sequence[Any]) -> pa.DataType:
    """The Parquet type of an axis: the same for every sweep over like values, so that one folder reads as one table."""
    if all(isinstance(label, bool) for label in labels):
        return pa.bool_()
    if all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
        return pa.int64() if path == "seed" and all(abs(label) < 2**63 for label in labels) else pa.float64()
    return pa.string()


def _to_table(kept: list[tuple[str, Row]], plan: Plan) -> pa.Table:
    rows = [row for _, row in kept]
    labels = [plan.labels(row.number) for row in rows]
    columns: dict[str, Any] = {
        "point": pa.array([key for key, _ in kept], pa.string()),
        "key": pa.array([plan.key(row.scenario, row.code) for row in rows], pa.string()),
        "scenario": pa.array([row.scenario for row in rows], pa.string()),
        "seed": pa.array([row.seed for row in rows], _type("seed", [row.seed for row in rows])),
        "engine": pa.array([row.engine for row in rows], pa.string()),
        "version": pa.array([workbench.__version__] * len(rows), pa.string()),
        "wall_s": pa.array([row.wall_s for row in rows], pa.float64()),
    }
    for path in plan.paths:
        told = [one[path] for one in labels]
        type_ = _type(path, plan.design.labels_of(path) or told)
        columns[path] = pa.array(map(str, told) if type_ == pa.string() else told, type_)
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    for name in metrics:
        columns[name] = pa.array([row.metrics.get(name) for row in rows], pa.float64())
    return pa.table(columns).replace_schema_metadata({_METRICS: json.dumps(metrics).encode()})


def _read(path: Path, numbers: dict[str, int], column: str) -> Iterable[Row]:
    """The rows of the points in ``numbers`` (key in that column -> number) that a file has."""
    metrics = _metrics(_schema(path))
    columns = ["point", "key", "scenario", "seed", "engine", "wall_s", *metrics]
    table = pq.read_table(path, columns=columns, partitioning=None)
    table = table.filter(pc.is_in(table.column(column), value_set=pa.array(list(numbers), pa.string())))
    for one in table.to_pylist():
        found = {name: one[name] for name in metrics if one[name] is not None}
        told = one["scenario"], "", one["seed"], "", one["engine"], one["wall_s"], 0.0
        yield Row(numbers[one[column]], *told, None, found)

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
from workbench.sweeps.plan import Plan, Point
from workbench.sweeps.work import Row

FLUSH_S = 5.0
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

    def open(self, plan: Plan, points: Sequence[Point]) -> dict[str, Row]:
        """key -> row of those points that are here."""
        return {point.key: self._rows[point.key] for point in points if point.key in self._rows}

    def add(self, point: Point, row: Row) -> None:
        """Keep the row of a finished point."""
        self._rows[point.key] = row

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing is left to do."""


class FolderStore:
    """Keeps rows as Parquet files in a folder, written every few seconds."""

    def __init__(self, folder: str | Path) -> None:
        self.place = str(folder)
        self._folder = Path(folder)
        self._axis_types: dict[str, pa.DataType] = {}
        self._waiting: list[tuple[Point, Row]] = []
        self._written = time.perf_counter()

    def open(self, plan: Plan, points: Sequence[Point]) -> dict[str, Row]:
        """key -> row of those points that are here; DataError for a folder or file that is something else."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{self.place} cannot be a folder for results: {error.strerror}") from None
        self._axis_types = {axis.path: _type(axis.path, axis.labels) for axis in plan.axes}
        self._describe(plan, points)
        found: dict[str, Row] = {}
        numbers = {point.key: point.number for point in points}
        for path in sorted(self._folder.glob("*.parquet")):
            for key, row in _read(path, numbers):
                found.setdefault(key, row)
        return found

    def _describe(self, plan: Plan, points: Sequence[Point]) -> None:
        content = {
            "what": WHAT,
            "version": workbench.__version__,
            "engine": plan.engine,
            "points": len(points),
            **({} if plan.measure is None else {"measure": f"{plan.measure.__module__}:{plan.measure.__qualname__}"}),
            "over": {axis.path: list(axis.labels) for axis in plan.axes},
            "scenario": json.loads(plan.scenario.to_json()),
        }
        path = self._folder / f"_sweep-{_hash(point.key for point in points)}.json"
        if not path.exists():
            _write_whole(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    def add(self, point: Point, row: Row) -> None:
        """Keep the row of a finished point."""
        self._waiting.append((point, row))
        if time.perf_counter() - self._written >= FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Write what was added since the last file."""
        if self._waiting:
            table = _to_table(self._waiting, self._axis_types)
            name = f"{_hash(point.key for point, _ in self._waiting)}.parquet"
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


def _to_table(kept: list[tuple[Point, Row]], axis_types: dict[str, pa.DataType]) -> pa.Table:
    points, rows = [point for point, _ in kept], [row for _, row in kept]
    columns: dict[str, Any] = {
        "point": pa.array([point.key for point in points], pa.string()),
        "scenario": pa.array([point.scenario for point in points], pa.string()),
        "seed": pa.array([point.seed for point in points], _type("seed", [point.seed for point in points])),
        "engine": pa.array([row.engine for row in rows], pa.string()),
        "version": pa.array([workbench.__version__] * len(rows), pa.string()),
        "wall_s": pa.array([row.wall_s for row in rows], pa.float64()),
    }
    for path, type_ in axis_types.items():
        labels = [point.labels[path] for point in points]
        columns[path] = pa.array(map(str, labels) if type_ == pa.string() else labels, type_)
    metrics = list(dict.fromkeys(name for row in rows for name in row.metrics))
    for name in metrics:
        columns[name] = pa.array([row.metrics.get(name) for row in rows], pa.float64())
    return pa.table(columns).replace_schema_metadata({_METRICS: json.dumps(metrics).encode()})


def _read(path: Path, numbers: dict[str, int]) -> Iterable[tuple[str, Row]]:
    """(key, row) of the points in ``numbers`` (key -> number) that a file has."""
    metrics = _metrics(_schema(path))
    table = pq.read_table(path, columns=["point", "engine", "wall_s", *metrics], partitioning=None)
    table = table.filter(pc.is_in(table.column("point"), value_set=pa.array(list(numbers), pa.string())))
    for one in table.to_pylist():
        found = {name: one[name] for name in metrics if one[name] is not None}
        yield one["point"], Row(numbers[one["point"]], one["engine"], one["wall_s"], None, found)

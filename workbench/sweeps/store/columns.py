"""Conversion of a sweep's rows to columns of Parquet files. Column names are accepted by SQL.

A column has the same type in all files of a folder. The columns in `FIRST` always exist. Then follow the parameters of
the row's scenario, varied or not: a path with underscores for dots ("protocol.ttl" -> protocol_ttl). Numbers, booleans
and texts have separate columns: radio_loss has numbers, radio_loss_text has texts such as "links". Then follow the
metrics, and the scenario as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from workbench.errors import DataError
from workbench.sim.metrics import COUNTS
from workbench.sweeps import user_code, values
from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row

FIRST = {
    "point": pa.string(),
    "key": pa.string(),
    "scenario": pa.string(),
    "seed": pa.int64(),
    "code": pa.string(),
    "engine_asked": pa.string(),
    "engine": pa.string(),
    "measure": pa.string(),
    "versions": pa.string(),
    "wall_s": pa.float64(),
    "compile_s": pa.float64(),
    "error": pa.string(),
}
LAST = {"document": pa.string()}
LAYOUT, COLUMNS = b"workbench.layout", b"workbench.columns"
VERSION = b"2"
METRIC, PARAMETER = "metric", "parameter"

_NUMBER, _FLAG, _TEXT = "number", "flag", "text"
_TYPES = {_NUMBER: pa.float64(), _FLAG: pa.bool_(), _TEXT: pa.string()}
# Parameters that are usually numbers, but may be texts.
_NUMBERS_FIRST = re.compile(r"radio\.loss|workload\.\d+\.at")
_WHOLE = ("topology", "protocol", "radio", "workload")  # stored by their labels
_MOST_ITEMS = 8  # items of a workload that have columns even if they are not varied
_SEED = '"seed": '  # the last number of a scenario's document
_MOST_CACHED = 200  # documents whose parameters are cached

Origin = tuple[str, str, str]  # METRIC or PARAMETER, the metric's name or the path, the kind of value


class Columns:
    """The columns for parameters and metrics in a folder of results. New rows may add columns.

    The columns `FIRST` and `LAST`, which every folder has, are not among them. The *origin* of a column is
    (METRIC or PARAMETER, the metric's name or the parameter's path, the kind of value).
    """

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._names: dict[Origin, str] = {}
        self._parameter_cells: dict[Any, dict[str, Any]] = {}
        self._taken = {name.lower() for name in (*FIRST, *LAST)}

    def __len__(self) -> int:
        return len(self._origins)

    def merge(self, origins: Mapping[str, Any], source: str) -> None:
        """Add the columns of a result file to the known columns of its folder.

        ``origins`` is {name of a column: (role, metric or parameter, kind of value)}; the role is METRIC or PARAMETER.
        ``source`` is the path of the file for messages.

        Raises DataError if the folder has a column of the same name and a different origin.
        """
        for column_name, stored_origin in origins.items():
            origin = (str(stored_origin[0]), str(stored_origin[1]), str(stored_origin[2]))
            if self._origins.setdefault(column_name, origin) != origin:
                raise DataError(
                    f"{source}: its column {column_name} has another parameter, metric or type than the column of this "
                    "name in other files of the folder; remove this file and run the sweep again"
                )
            self._names.setdefault(origin, column_name)
            self._taken.add(column_name.lower())

    def origins(self) -> dict[str, Origin]:
        """Return {name of a column: origin}; an origin is (role, metric or parameter, kind of value)."""
        return dict(self._origins)

    def schema(self) -> pa.Schema:
        """Return the schema of all Parquet files of the folder.

        Its columns are those in `FIRST`, the parameters sorted by name, the metrics sorted by name, and those in
        `LAST`.
        """
        column_names = sorted(self._origins, key=lambda name: (self._origins[name][0] == METRIC, name))
        types = {name: _TYPES[self._origins[name][2]] for name in column_names}
        origins = {name: self._origins[name] for name in column_names}
        metadata = {LAYOUT: VERSION, COLUMNS: json.dumps(origins).encode()}
        return pa.schema(list({**FIRST, **types, **LAST}.items()), metadata)

    def name(self, role: str, subject: str, kind: str) -> str:
        """Return the name of the column for a metric's or parameter's values; add the column if it is missing.

        ``role`` is METRIC or PARAMETER, ``subject`` the metric's name or the parameter's path, ``kind`` the kind of
        value: "number", "flag" (a boolean) or "text".
        """
        column = self._names.get((role, subject, kind))
        if column is None:
            column = self._new_name(role, subject, kind)
            self.merge({column: (role, subject, kind)}, "this sweep")
        return column

    def _new_name(self, role: str, subject: str, kind: str) -> str:
        plain_name = re.sub(r"\W", "_", subject) or "_"
        is_number_first = role == PARAMETER and _NUMBERS_FIRST.fullmatch(subject)
        if (
            kind != _NUMBER
            if is_number_first
            else any((role, subject, other_kind) in self._names for other_kind in _TYPES)
        ):
            plain_name = f"{plain_name}_{kind}"
        # Names in SQL ignore case.
        column_name, suffix_number = plain_name, 1
        while column_name.lower() in self._taken:
            suffix_number += 1
            column_name = f"{plain_name}_{suffix_number}"
        return column_name

    def cells(self, plan: Plan, row: Row, point: str, key: str) -> dict[str, Any]:
        """Return {column: value} for a result row, without missing values.

        ``point`` is the key of the row's point (`Plan.point_key`), ``key`` the key of its result (`Plan.key`).
        """
        cells = {
            **{
                metric_name: value
                for metric_name, value in row._asdict().items()
                if metric_name in FIRST or metric_name in LAST
            },
            "point": point,
            "key": key,
            "seed": stored_seed(row.seed),
            "engine_asked": plan.engine,
            "measure": user_code.name_of(plan.measure) or None,
        }
        cells.update(self._make_parameters(plan, row))
        for metric_name, number in row.metrics.items():
            cells[self.name(METRIC, metric_name, _NUMBER)] = number
        return cells

    def _make_parameters(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return {column: value} for the parameters of a row's scenario.

        Rows that differ only in the seed get the same dictionary.
        """
        document_head, _, document_tail = row.document.rpartition(_SEED)
        labels = tuple(repr(label) for path, label in plan.labels(row.number).items() if path != "seed")
        cache_key = (plan.paths, document_head, document_tail.lstrip("-0123456789"), labels)
        if cache_key not in self._parameter_cells:
            if len(self._parameter_cells) >= _MOST_CACHED:
                self._parameter_cells.clear()
            cells = self._parameter_cells[cache_key] = {}
            for path, parameter_value in parameters(plan, row):
                value_kind = _find_kind(parameter_value)
                cells[self.name(PARAMETER, path, value_kind)] = (
                    float(parameter_value) if value_kind == _NUMBER else parameter_value
                )
        return self._parameter_cells[cache_key]

    def metrics(self) -> dict[str, str]:
        """Return {column: name of its metric} for the columns that have metrics."""
        return {name: subject for name, (role, subject, _) in self._origins.items() if role == METRIC}

    def table(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Return ``rows``, each a {column: value}, as a table with all columns of the folder's files."""
        rows, schema = list(rows), self.schema()
        errors = [row.get("error") for row in rows]
        arrays = []
        for field in schema:
            absent_values = self._fill_missing_values(field.name, errors)
            cells = [row.get(field.name, absent_value) for row, absent_value in zip(rows, absent_values, strict=True)]
            arrays.append(pa.array(cells, field.type))
        return pa.table(arrays, schema=schema)

    def widen(self, table: pa.Table) -> pa.Table:
        """Return ``table``, the rows of a file, with all columns of the folder; missing columns are added."""
        schema = self.schema()
        column_names, errors = set(table.column_names), table.column("error").to_pylist()
        arrays = [
            table.column(field.name)
            if field.name in column_names
            else pa.array(self._fill_missing_values(field.name, errors), field.type)
            for field in schema
        ]
        return pa.table(arrays, schema=schema)

    def _fill_missing_values(self, name: str, errors: list[str | None]) -> list[float | None]:
        """Return the values of the column ``name`` for rows that do not have it.

        The value is 0.0 if the column is a count and the run was successful, else None. ``errors`` has the error of
        each row, None for a successful run.
        """
        role, subject, _ = self._origins.get(name, (PARAMETER, "", ""))
        absent_value = 0.0 if role == METRIC and subject.startswith(COUNTS) else None
        return [absent_value if error is None else None for error in errors]


def stored_seed(seed: int) -> int | None:
    """Return ``seed``, or None if it does not fit in the column "seed", which has 64-bit integers."""
    return seed if abs(seed) < 2**63 else None


def parameters(plan: Plan, row: Row) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for all parameters of the scenario of a point with the result ``row``.

    A value is a number, a boolean or a text. A list or an object is yielded as JSON text, or as its name if the user
    has named it. For a number, boolean or text that the user has named, two pairs follow each other: (path, value) and
    (path, name). For a varied network, protocol, radio or workload, the value is the label of the whole object.
    """
    labels = plan.labels(row.number)
    for path, parameter_value in _list_settings(json.loads(row.document), labels) if row.document else ():
        label = labels.get(path)
        is_named = isinstance(label, str) and label != parameter_value
        if isinstance(parameter_value, (bool, int, float, str)):
            yield path, parameter_value
        elif parameter_value is not None and not is_named:
            yield path, json.dumps(parameter_value)
        if is_named:
            yield path, label
    for path, label in labels.items():
        if path in _WHOLE or (not row.document and path != "seed"):
            yield path, label
    if "topology" not in labels:
        yield "topology", values.label(plan.scenario.topology)


def _list_settings(document: dict[str, Any], varied: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield (path, value) for all settings of a scenario except its topology and seed.

    ``document`` is the scenario as JSON values, ``varied`` has the paths of the varied parameters. Of a long workload,
    only the first `_MOST_ITEMS` items and the varied items are included.
    """
    yield "duration_s", document["duration_s"]
    for section in ("protocol", "radio"):
        for setting_name, setting_value in document[section].items():
            yield f"{section}.{setting_name}", setting_value
    varied_items = {int(path.split(".")[1]) for path in varied if path.startswith("workload.")}
    for number, item in enumerate(document["workload"]):
        if number < _MOST_ITEMS or number in varied_items:
            ((_, item_fields),) = item.items()
            for setting_name, setting_value in item_fields.items():
                yield f"workload.{number}.{setting_name}", setting_value


def _find_kind(value: Any) -> str:
    return _FLAG if isinstance(value, bool) else _NUMBER if isinstance(value, (int, float)) else _TEXT

"""How a row is spread over columns: each has one type, in all files of a folder, and a name that SQL takes as it is.

The first columns (`FIRST`) are always there. Then come the parameters of the row's scenario, varied or not: a path with
underscores for dots ("protocol.ttl" -> protocol_ttl). A number, a truth and a text never share a column: radio_loss has
the numbers, and what is no number ("links") stands in radio_loss_text. Then come the metrics, and the scenario as JSON.
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
# What is a number as a rule, though it may be a text, too.
_NUMBERS_FIRST = re.compile(r"radio\.loss|workload\.\d+\.at")
_WHOLE = ("topology", "protocol", "radio", "workload")  # are shown by their labels
_ITEMS_TOLD = 8  # of a workload, whether or not they are varied
_SEED = '"seed": '  # the last number of a scenario's document
_TOLD = 200  # documents whose parameters are remembered

Origin = tuple[str, str, str]  # METRIC or PARAMETER, the metric's name or the path, the kind of value


class Columns:
    """The columns of a folder after the first ones: those of its files, and those that new rows need."""

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._names: dict[Origin, str] = {}
        self._told: dict[Any, dict[str, Any]] = {}
        self._taken = {name.lower() for name in (*FIRST, *LAST)}

    def __len__(self) -> int:
        return len(self._origins)

    def merge(self, origins: Mapping[str, Any], place: str) -> None:
        """Take over the columns of a file (name -> origin); DataError if one is something else here."""
        for name, told in origins.items():
            origin = (str(told[0]), str(told[1]), str(told[2]))
            if self._origins.setdefault(name, origin) != origin:
                raise DataError(f"{place} has a column {name} of another kind than the other files; remove it")
            self._names.setdefault(origin, name)
            self._taken.add(name.lower())

    def origins(self) -> dict[str, Origin]:
        """name -> origin of all columns, as JSON has it."""
        return dict(self._origins)

    def schema(self) -> pa.Schema:
        """Of all files: parameters before metrics, each by name."""
        order = sorted(self._origins, key=lambda name: (self._origins[name][0] == METRIC, name))
        own = {name: _TYPES[self._origins[name][2]] for name in order}
        told = {name: self._origins[name] for name in order}
        metadata = {LAYOUT: VERSION, COLUMNS: json.dumps(told).encode()}
        return pa.schema(list({**FIRST, **own, **LAST}.items()), metadata)

    def name(self, of: str, what: str, kind: str) -> str:
        """The column of a metric or parameter, for values of a kind; a new one if there is none yet."""
        known = self._names.get((of, what, kind))
        if known is None:
            known = self._new_name(of, what, kind)
            self.merge({known: (of, what, kind)}, "this sweep")
        return known

    def _new_name(self, of: str, what: str, kind: str) -> str:
        plain = re.sub(r"\W", "_", what) or "_"
        is_number_first = of == PARAMETER and _NUMBERS_FIRST.fullmatch(what)
        if kind != _NUMBER if is_number_first else any((of, what, other) in self._names for other in _TYPES):
            plain = f"{plain}_{kind}"
        # SQL does not tell "Sent" from "sent".
        name, count = plain, 1
        while name.lower() in self._taken:
            count += 1
            name = f"{plain}_{count}"
        return name

    def cells(self, plan: Plan, row: Row, point: str, key: str) -> dict[str, Any]:
        """column -> value of a row, without those that it has not."""
        found = {
            **{name: value for name, value in row._asdict().items() if name in FIRST or name in LAST},
            "point": point,
            "key": key,
            "seed": stored_seed(row.seed),
            "engine_asked": plan.engine,
            "measure": user_code.name_of(plan.measure) or None,
        }
        found.update(self._parameters(plan, row))
        for name, number in row.metrics.items():
            found[self.name(METRIC, name, _NUMBER)] = number
        return found

    def _parameters(self, plan: Plan, row: Row) -> dict[str, Any]:
        """column -> parameter of a row; points that differ in their seeds alone have the same."""
        head, _, tail = row.document.rpartition(_SEED)
        labels = tuple(repr(label) for path, label in plan.labels(row.number).items() if path != "seed")
        known = (plan.paths, head, tail.lstrip("-0123456789"), labels)
        if known not in self._told:
            if len(self._told) >= _TOLD:
                self._told.clear()
            cells = self._told[known] = {}
            for path, value in parameters(plan, row):
                kind = _kind(value)
                cells[self.name(PARAMETER, path, kind)] = float(value) if kind == _NUMBER else value
        return self._told[known]

    def metrics(self) -> dict[str, str]:
        """column -> metric."""
        return {name: what for name, (of, what, _) in self._origins.items() if of == METRIC}

    def table(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Rows of cells as a table of all columns."""
        rows, schema = list(rows), self.schema()
        errors = [row.get("error") for row in rows]
        arrays = []
        for field in schema:
            absent = self._absent(field.name, errors)
            found = [row.get(field.name, other) for row, other in zip(rows, absent, strict=True)]
            arrays.append(pa.array(found, field.type))
        return pa.table(arrays, schema=schema)

    def widened(self, table: pa.Table) -> pa.Table:
        """A file's table with all columns."""
        schema = self.schema()
        known, errors = set(table.column_names), table.column("error").to_pylist()
        arrays = [
            table.column(one.name) if one.name in known else pa.array(self._absent(one.name, errors), one.type)
            for one in schema
        ]
        return pa.table(arrays, schema=schema)

    def _absent(self, name: str, errors: list[str | None]) -> list[float | None]:
        """What a column has for rows that say nothing of it: 0 of what did not happen in a run, else null."""
        of, what, _ = self._origins.get(name, (PARAMETER, "", ""))
        none = 0.0 if of == METRIC and what.startswith(COUNTS) else None
        return [none if error is None else None for error in errors]


def stored_seed(seed: int) -> int | None:
    """A seed as its column has it: null if it has no room there."""
    return seed if abs(seed) < 2**63 else None


def parameters(plan: Plan, row: Row) -> Iterator[tuple[str, Any]]:
    """(path, number, truth or text) of a point: all parameters of its scenario, and labels of what is varied."""
    labels = plan.labels(row.number)
    for path, value in _settings(json.loads(row.document), labels) if row.document else ():
        label = labels.get(path)
        is_named = isinstance(label, str) and label != value
        if isinstance(value, (bool, int, float, str)):
            yield path, value
        elif value is not None and not is_named:
            yield path, json.dumps(value)
        if is_named:
            yield path, label
    for path, label in labels.items():
        if path in _WHOLE or (not row.document and path != "seed"):
            yield path, label
    if "topology" not in labels:
        yield "topology", values.label(plan.scenario.topology)


def _settings(document: dict[str, Any], varied: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """(path, value) of all that a scenario is set to, but for its topology and seed."""
    yield "duration_s", document["duration_s"]
    for head in ("protocol", "radio"):
        for name, value in document[head].items():
            yield f"{head}.{name}", value
    told = {int(path.split(".")[1]) for path in varied if path.startswith("workload.")}
    for number, item in enumerate(document["workload"]):
        if number < _ITEMS_TOLD or number in told:
            ((_, fields),) = item.items()
            for name, value in fields.items():
                yield f"workload.{number}.{name}", value


def _kind(value: Any) -> str:
    return _FLAG if isinstance(value, bool) else _NUMBER if isinstance(value, (int, float)) else _TEXT

"""Runs again what a file has a record of, and says "identical", or what differs.

The scenario is read out of the record and played; nothing in a file is ever executed. So what a scenario only names (a
protocol or a filter of the user's own) has to be imported beforehand. Rows of a sweep are run one after the other, in
this process; those that failed are left out, for one may have ended its worker.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from itertools import islice
from pathlib import Path
from types import FunctionType
from typing import Any

from workbench.errors import DataError, ParameterError, ScenarioError, WorkbenchError
from workbench.keywords import checked
from workbench.records import differences, found, table
from workbench.records.differences import Difference
from workbench.records.record import surroundings_for, versions
from workbench.sim import trace as trace_module
from workbench.sim.run import Run
from workbench.sim.runner import checked_engine, play
from workbench.sim.scenario import Scenario
from workbench.sweeps.code import Codes

MOST_SHOWN = 12
LIVE = "motes"  # the engine of a run on motes that kept their own time
Progress = Callable[[int, int], Any]


class Reproduction:
    """What came of making something again.

    what             what the file is: "PNG", "page", "folder of a sweep", ...
    runs             how many runs were played, and ``same`` how many of them came out as they were
    made_with        what this workbench and machine have otherwise than those that made the file: `Difference`s
    differences      what differs in the results, likewise
    notes            what was not compared, in sentences
    is_identical     whether all that was compared is the same
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self.what = what
        self.runs = 0
        self.same = 0
        self.made_with: list[Difference] = []
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self.compared: list[str] = []

    @property
    def is_identical(self) -> bool:
        """Whether all that was compared is the same, and something was."""
        return self.runs > 0 and not self.differences

    def add(self, found: list[Difference], compared: str) -> None:
        """Count a run, and what differs in its results."""
        self.runs += 1
        self.same += not found
        self.differences += found
        self.compared.append(compared)

    def surrounded(self, found: list[Difference]) -> None:
        """Keep what a run was made with and is not here, once."""
        self.made_with += [one for one in found if one not in self.made_with]

    @property
    def verdict(self) -> str:
        """The answer in a sentence."""
        if not self.runs:
            return "nothing could be run again"
        if self.is_identical:
            count = "" if self.runs == 1 else f"{self.runs:,} runs, "
            return f"identical: {count}{self._compared()}"
        return "different" if self.runs == 1 else f"different: {self.runs - self.same:,} of {self.runs:,} runs"

    def _compared(self) -> str:
        return "; ".join(dict.fromkeys(self.compared)) if len(set(self.compared)) == 1 else "all that they recorded"

    def lines(self) -> list[str]:
        """The whole answer: versions first, then what differs in the results."""
        said = [f"{self.path} ({self.what}): {self.verdict}"]
        said += [f"  made with {one.what} {one.was}, here {one.here}" for one in self.made_with]
        said += [f"  {one.sentence}" for one in self.differences[:MOST_SHOWN]]
        if len(self.differences) > MOST_SHOWN:
            said.append(f"  and {len(self.differences) - MOST_SHOWN:,} differences more")
        return said + [f"  {note}" for note in self.notes]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *rest = self.lines()
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in rest)
        return f"<p><b>{escape(first)}</b></p>" + (f"<ul>{items}</ul>" if items else "")


@checked
def reproduce(
    path: str | Path, engine: str = "auto", most: int | None = None, progress: Progress | None = None
) -> Reproduction:
    """Run again what a file was made of, and compare: the answer displays itself.

    path       a PNG, SVG or page of a run, its Parquet file, the folder of `Run.save`; a sweep's chart, its folder or a
               Parquet file of that
    engine     which one plays it, as `Scenario.run` takes it
    most       of a sweep: the first so many rows; None for all
    progress   called with the number of runs done and of all

    Raises DataError if there is no record, or one that is damaged; ScenarioError if the scenario cannot be built here,
    because a protocol or a filter of the user's own is not known: it says which, and what to import.
    """
    if most is not None and most < 1:
        raise ParameterError(f"reproduce: most is {most!r}; it must be a number of runs, from 1 on")
    checked_engine(engine)
    try:
        return _again(Path(path), engine, most, progress or (lambda done, total: None))
    except WorkbenchError as error:
        raise type(error)(f"{path}: {error}") from None


def _again(path: Path, engine: str, most: int | None, tell: Progress) -> Reproduction:
    there = found.find(path)
    answer = Reproduction(path, there.what)
    if there.results:
        total = min(found.number_of_rows(there), sys.maxsize if most is None else most)
        _rows(answer, islice(found.rows_of(there), total), engine, lambda: tell(answer.runs, total))
    for record in _different(there.records):
        _of_record(answer, record, there, engine, most, tell)
    return answer


def _different(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A page may have a figure of the run that it plays."""
    return list({record["digest"]: record for record in records}.values())


def _of_record(
    answer: Reproduction,
    record: Mapping[str, Any],
    there: found.Found,
    engine: str,
    most: int | None,
    tell: Progress,
) -> None:
    kind = record.get("of")
    if kind == "run":
        _run(answer, record, record, there.trace, engine, "")
    elif kind == "runs" and isinstance(record.get("runs"), list):
        for done, told in enumerate(record["runs"]):
            if not isinstance(told, Mapping):
                raise DataError("its record has something else in place of a run")
            _run(answer, record, told, None, engine, f"{told.get('name')}: ")
            tell(done + 1, len(record["runs"]))
    elif kind == "sweep":
        _chart(answer, record, engine, most, tell)
    else:
        raise DataError(f"its record is of {kind!r:.40}, which this workbench does not know")


# A run


def _run(
    answer: Reproduction,
    record: Mapping[str, Any],
    told: Mapping[str, Any],
    trace: Any,
    engine: str,
    name: str,
) -> None:
    """Play a run that a record tells of, and compare. ``trace``: the one in the file, None if it has none."""
    if told.get("engine") == LIVE:
        raise DataError(
            "it is of a run on motes that kept their own time, which no other run repeats; "
            "its scenario can be played in the simulator or in lockstep"
        )
    if not isinstance(told.get("metrics"), Mapping):
        raise DataError("its record has no metrics")
    if trace is not None and trace_module.digest(trace) != told.get("trace_hash"):
        raise DataError("the rows of its trace are not those that were written: somebody changed them")
    scenario = built(told.get("scenario"), record)
    answer.surrounded(differences.of_surroundings(record, surroundings_for(record, scenario.protocol)))
    run = _played(scenario, engine, "trace_hash" in told)
    shown = [run] if isinstance(run, Difference) else _of_run(told, run, trace)
    answer.add([one._replace(what=name + one.what) for one in shown], _compared(told))


def _of_run(told: Mapping[str, Any], run: Run, trace: Any) -> Iterator[Difference]:
    if told.get("scenario_hash") != run.scenario.hash:
        yield Difference("the scenario's hash", str(told.get("scenario_hash")), run.scenario.hash)
    metrics = told["metrics"]
    yield from differences.of_metrics(metrics, run.metrics, differences.compared(metrics, run.metrics.index))
    if "trace_hash" in told and told["trace_hash"] != run.trace_hash:
        row = None if trace is None else differences.of_traces(trace, run.trace)
        if row is not None:
            yield row
        elif told.get("trace_rows") != len(run.trace):
            yield Difference("the number of rows of the trace", _count(told.get("trace_rows")), f"{len(run.trace):,}")
        else:
            yield Difference("the trace's hash", str(told["trace_hash"])[:16], run.trace_hash[:16])


def _compared(told: Mapping[str, Any]) -> str:
    metrics = f"all {len(told['metrics'])} metrics"
    return f"the trace of {_count(told.get('trace_rows'))} rows and {metrics}" if "trace_hash" in told else metrics


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _played(scenario: Scenario, engine: str, with_trace: bool) -> Run | Difference:
    """The run of a scenario; if it fails here (code of the user's may have changed), that is the difference."""
    try:
        run = play(scenario, engine, "trace" if with_trace else "metrics")
        _ = run.metrics
        return run
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> Difference:
    return Difference("the run", "whole", " ".join(f"ended by {type(error).__name__}: {error}".split()))


def built(document: Any, record: Mapping[str, Any]) -> Scenario:
    """The scenario of a record's values; ScenarioError says what is missing here, and how to have it."""
    if not isinstance(document, Mapping):
        raise DataError("its record has no scenario")
    try:
        return Scenario.from_json(json.dumps(document))
    except ScenarioError as error:
        theirs = record.get("user_code")
        if not isinstance(theirs, Mapping) or not theirs:
            raise
        raise ScenarioError(f"{error}; it was made with {_named(theirs)}") from None


def _named(theirs: Mapping[str, Any]) -> str:
    """The user's code that a record names, and what to do about it."""
    modules = {name: told.get("module") or "" if isinstance(told, Mapping) else "" for name, told in theirs.items()}
    said = " and ".join(
        f"the user's {name}" + (f" of module {module}" if module else "") for name, module in modules.items()
    )
    return f"{said}: {_remedy(sorted({module for module in modules.values() if module}))}"


def _remedy(modules: list[str]) -> str:
    """How to have the user's code of some modules."""
    if "__main__" in modules:
        return "a notebook or a script defines it; call wb.reproduce(...) there"
    return f"import {' and '.join(modules)} first (workbench reproduce --import {' --import '.join(modules)})"


# A sweep


def _chart(answer: Reproduction, record: Mapping[str, Any], engine: str, most: int | None, tell: Progress) -> None:
    """Run the points of a sweep's chart again, of which the record has the scenarios."""
    if "points" not in record:
        raise DataError(
            f"its record is of {_count(record.get('rows'))} runs, too many to have their scenarios in it: "
            "name the folder of the sweep instead"
        )
    measure = _measure(record.get("measure"))
    if record.get("measure") and measure is None:
        module = str(record["measure"]).partition(":")[0]
        raise ScenarioError(
            f"its sweep measures with {record['measure']}, which is not known here: {_remedy([module])}"
        )
    try:
        rows = list(zip(table.documents(record["points"], record["rows"]), record["results"], strict=True))
        drawn = {name: list(values) for name, values in record["drawn"].items()}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise DataError("the points in its record are not such as were written") from None
    left_out = sum(digest is None for _, digest in rows)
    todo = [place for place, (_, digest) in enumerate(rows) if digest is not None][:most]
    for done, place in enumerate(todo, 1):
        document, digest = rows[place]
        scenario = built(document, record)
        answer.surrounded(differences.of_surroundings(record, surroundings_for(record, scenario.protocol)))
        metrics = _metrics_of(scenario, engine, measure)
        was = {name: values[place] for name, values in drawn.items()}
        answer.add(_of_point(f"run {place:,}", was, str(digest), scenario, metrics), "all metrics")
        tell(done, len(todo))
    _note_left_out(answer, left_out)


def _of_point(
    name: str, was: Mapping[str, Any], digest: str, scenario: Scenario, metrics: dict[str, float] | Difference
) -> list[Difference]:
    if isinstance(metrics, Difference):
        return [metrics._replace(what=f"{name}: {metrics.what}")]
    if table.digest_of(scenario.hash, metrics) == digest:
        return []
    shown = differences.of_metrics(was, metrics, was)
    if not shown:
        shown = [Difference("the digest of its metrics", digest, table.digest_of(scenario.hash, metrics))]
    return [one._replace(what=f"{name}: {one.what}") for one in shown]


def _measure(name: Any) -> Callable[..., Any] | None:
    """The function "module:name" that is loaded, or a protocol's; a file makes nothing else be imported or called."""
    module, _, function = str(name or "").partition(":")
    package, is_of_a_protocol = module.partition(".")[0], module.startswith("workbench.protocols.")
    if package in sys.stdlib_module_names or (package == "workbench" and not is_of_a_protocol):
        return None
    if is_of_a_protocol:
        try:
            importlib.import_module(module)
        except ImportError:
            return None
    measure = getattr(sys.modules.get(module), function, None) if function else None
    return measure if isinstance(measure, FunctionType) and measure.__module__ == module else None


def _metrics_of(scenario: Scenario, engine: str, measure: Callable[..., Any] | None) -> dict[str, float] | Difference:
    """The metrics of a point, with those of the sweep's measure; the difference if it fails here."""
    run = _played(scenario, engine, measure is not None)
    if isinstance(run, Difference):
        return run
    metrics = {str(name): float(value) for name, value in run.metrics.items()}
    try:
        return metrics if measure is None else metrics | {name: float(one) for name, one in measure(run).items()}
    except Exception as error:
        return _failure(error)


def _rows(answer: Reproduction, rows: Iterable[found.SweepRow], engine: str, tell: Callable[[], Any]) -> None:
    """Run rows of a sweep's folder again."""
    codes: dict[str, Codes] = {}
    unknown: set[str] = set()
    failed = 0
    for row in rows:
        if row.columns.get("error") is not None or not row.text("document"):
            failed += 1
            continue
        scenario, name = _of_document(row), row.text("measure")
        measure = _measure(name)
        is_unknown = bool(name) and measure is None
        if is_unknown:
            unknown.add(name)
        else:
            code = codes.setdefault(name, Codes(measure)).of(scenario.protocol)
            answer.surrounded(differences.of_code(row.text("code"), code))
        answer.surrounded(differences.of_versions(row.text("versions"), versions()))
        answer.add(_of_row(row, scenario, _metrics_of(scenario, engine, measure), is_unknown), "all metrics")
        tell()
    _note_left_out(answer, failed)
    answer.notes += [
        f"what {name} measures was not compared: {_remedy([name.partition(':')[0]])}" for name in sorted(unknown)
    ]


def _of_row(
    row: found.SweepRow, scenario: Scenario, metrics: dict[str, float] | Difference, without_measure: bool
) -> list[Difference]:
    if isinstance(metrics, Difference):
        return [metrics._replace(what=f"{row.where}: {metrics.what}")]
    was = row.metrics
    if was is None:  # The file does not say what is a metric: whatever a run has and the file, too.
        names = [name for name in metrics if name in row.columns]
        was = {name: row.columns[name] for name in names}
    else:
        theirs = differences.measured(was, metrics) if without_measure else ()
        names = [name for name in differences.compared(was, metrics) if name not in theirs]
    shown = differences.of_metrics(was, metrics, names)
    if scenario.hash != row.text("scenario"):
        shown.insert(0, Difference("the scenario's hash", row.text("scenario"), scenario.hash))
    return [one._replace(what=f"{row.where}: {one.what}") for one in shown]


def _of_document(row: found.SweepRow) -> Scenario:
    try:
        return Scenario.from_json(row.text("document"))
    except ScenarioError as error:
        raise ScenarioError(
            f"{row.where}: {error} (workbench reproduce --import MODULE imports what is yours)"
        ) from None


def _note_left_out(answer: Reproduction, failed: int) -> None:
    if failed:
        answer.notes.append(f"{failed:,} rows that failed were left out")

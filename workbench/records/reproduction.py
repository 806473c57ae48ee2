"""`wb.reproduce`: runs a scenario recorded in a file again, and reports "identical" or the differences.

The scenario is read from the record and played; code in a file is never executed. A user's own protocol or filter is
recorded by name only, so it must be imported beforehand. Rows of a sweep run one after the other in this process.
Rows that failed in the sweep are skipped, because they could end this process.
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
from workbench.locations import local_path
from workbench.records import contents, differences, table
from workbench.records.differences import Difference
from workbench.records.record import surroundings_for, versions
from workbench.sim import trace as trace_module
from workbench.sim.run import Run
from workbench.sim.runner import checked_engine, play
from workbench.sim.scenario import Scenario
from workbench.sweeps.code import Codes

MOST_SHOWN = 12
LIVE = "motes"  # the engine of a run on motes with clocks of their own
Progress = Callable[[int, int], Any]


@checked
class Reproduction:
    """The outcome of `reproduce`; it displays itself in a notebook.

    kind             the kind of file: "PNG", "page", "folder of a sweep", ...
    runs             number of runs played
    identical_runs   number of played runs whose results equal the recorded ones
    made_with        differences in versions, code and platform: a list of `Difference`
    differences      differences in the results: a list of `Difference`
    notes            sentences about rows and values that were not compared
    is_identical     whether at least one run was played and no result differs
    """

    def __init__(self, path: Path, kind: str) -> None:
        self.path = path
        self.kind = kind
        self.runs = 0
        self.identical_runs = 0
        self.made_with: list[Difference] = []
        self.differences: list[Difference] = []
        self.notes: list[str] = []
        self.compared: list[str] = []

    @property
    def is_identical(self) -> bool:
        """True if at least one run was played and no result differs."""
        return self.runs > 0 and not self.differences

    def add(self, differences: list[Difference], compared: str) -> None:
        """Count one more run, and add the ``differences`` in its results.

        ``compared`` is a phrase for the verdict that names the compared values, such as "all metrics".
        """
        self.runs += 1
        self.identical_runs += not differences
        self.differences += differences
        self.compared.append(compared)

    def add_surroundings(self, differences: list[Difference]) -> None:
        """Add those ``differences`` in versions, code or platform that this report does not list yet."""
        self.made_with += [difference for difference in differences if difference not in self.made_with]

    @property
    def verdict(self) -> str:
        """The outcome in a sentence, such as "identical: all 14 metrics"."""
        if not self.runs:
            return "no run could be repeated"
        if self.is_identical:
            count = "" if self.runs == 1 else f"{self.runs:,} runs, "
            return f"identical: {count}{self._describe_scope()}"
        return (
            "different" if self.runs == 1 else f"different: {self.runs - self.identical_runs:,} of {self.runs:,} runs"
        )

    def _describe_scope(self) -> str:
        return "; ".join(dict.fromkeys(self.compared)) if len(set(self.compared)) == 1 else "all recorded results"

    def lines(self) -> list[str]:
        """Return the outcome as lines of text: verdict, versions, then differences in the results."""
        lines = [f"{self.path} ({self.kind}): {self.verdict}"]
        lines += [
            f"  made with {difference.subject} {difference.recorded}, here {difference.current}"
            for difference in self.made_with
        ]
        lines += [f"  {difference.sentence}" for difference in self.differences[:MOST_SHOWN]]
        if len(self.differences) > MOST_SHOWN:
            lines.append(f"  and {len(self.differences) - MOST_SHOWN:,} differences more")
        return lines + [f"  {note}" for note in self.notes]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first_line, *further_lines = self.lines()
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in further_lines)
        return f"<p><b>{escape(first_line)}</b></p>" + (f"<ul>{items}</ul>" if items else "")


@checked
def reproduce(
    path: str | Path, engine: str = "auto", most: int | None = None, progress: Progress | None = None
) -> Reproduction:
    """Run the scenario recorded in a file again and compare the results.

    path       for a run: its PNG, SVG, PDF, page or Parquet file, or the folder of `Run.save`; for a sweep: its
               chart, its folder or a Parquet file in that folder
    engine     the engine that runs the scenario: "auto", "fast" or "reference"
    most       the largest number of a sweep's rows to run, beginning with the first; None for all
    progress   function called with the number of runs done and the total

    Raises DataError if the record is missing or damaged, and ScenarioError if the scenario cannot be built here because
    the user's own protocol or filter has not been imported: the message names the module.
    """
    if most is not None and most < 1:
        raise ParameterError(f"reproduce: `most` is {most!r}; it must be at least 1, or None for all runs")
    checked_engine(engine)
    try:
        return _reproduce_file(local_path(path, "path"), engine, most, progress or (lambda done, total: None))
    except WorkbenchError as error:
        raise type(error)(f"{path}: {error}") from None


def _reproduce_file(path: Path, engine: str, most: int | None, progress: Progress) -> Reproduction:
    file = contents.read_contents(path)
    if file.scenario is not None:
        raise DataError("the file is a scenario without a run's results; play it with `workbench run`")
    reproduction = Reproduction(path, file.kind)
    if file.results:
        run_count = min(contents.number_of_rows(file), sys.maxsize if most is None else most)
        _reproduce_rows(
            reproduction,
            islice(contents.rows_of(file), run_count),
            engine,
            lambda: progress(reproduction.runs, run_count),
        )
    for record in _remove_repetitions(file.records):
        _reproduce_record(reproduction, record, file, engine, most, progress)
    return reproduction


def _remove_repetitions(records: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records without duplicates; a page may contain a run and also figures of the same run."""
    return list({record["digest"]: record for record in records}.values())


def _reproduce_record(
    report: Reproduction,
    record: Mapping[str, Any],
    file: contents.Contents,
    engine: str,
    most: int | None,
    progress: Progress,
) -> None:
    kind = record.get("of")
    if kind == "run":
        _reproduce_run(report, record, record, file.trace, engine, "")
    elif kind == "runs" and isinstance(record.get("runs"), list):
        for run_index, fields in enumerate(record["runs"]):
            if not isinstance(fields, Mapping):
                raise DataError(f"entry {run_index} of the record's list of runs is damaged: it is not a JSON object")
            _reproduce_run(report, record, fields, None, engine, f"{fields.get('name')}: ")
            progress(run_index + 1, len(record["runs"]))
    elif kind == "sweep":
        _reproduce_chart(report, record, engine, most, progress)
    else:
        raise DataError(f"the record is of the kind {kind!r:.40}; this version reads the kinds run, runs and sweep")


# A run


def _reproduce_run(
    report: Reproduction,
    record: Mapping[str, Any],
    fields: Mapping[str, Any],
    trace: Any,
    engine: str,
    name: str,
) -> None:
    """Repeat a recorded run with ``engine``, and add the differences to ``report``.

    ``fields``: the run's scenario and results, which are ``record`` itself or an element of a record of several runs.
    ``trace``: the trace in the file, or None. ``name``: prefix of each difference's subject, "NAME: " or "".
    """
    if fields.get("engine") == LIVE:
        raise DataError(
            "the record is of a run on motes with clocks of their own, which cannot be repeated exactly; "
            "play its scenario in the simulator or in lockstep instead"
        )
    if not isinstance(fields.get("metrics"), Mapping):
        raise DataError("the record has no metrics; it was saved without a run")
    if trace is not None and trace_module.digest(trace) != fields.get("trace_hash"):
        raise DataError("the trace does not match the hash in the record, so its rows were changed later")
    scenario = build_scenario(fields.get("scenario"), record)
    report.add_surroundings(differences.compare_surroundings(record, surroundings_for(record, scenario.protocol)))
    run = _run_scenario(scenario, engine, "trace_hash" in fields)
    run_differences = [run] if isinstance(run, Difference) else _compare_run(fields, run, trace)
    report.add(
        [difference._replace(subject=name + difference.subject) for difference in run_differences],
        _describe_scope(fields),
    )


def _compare_run(fields: Mapping[str, Any], run: Run, trace: Any) -> Iterator[Difference]:
    if fields.get("scenario_hash") != run.scenario.hash:
        yield Difference("the scenario's hash", str(fields.get("scenario_hash")), run.scenario.hash)
    metrics = fields["metrics"]
    yield from differences.compare_metrics(
        metrics, run.metrics, differences.names_to_compare(metrics, run.metrics.index)
    )
    if "trace_hash" in fields and fields["trace_hash"] != run.trace_hash:
        trace_difference = None if trace is None else differences.compare_traces(trace, run.trace)
        if trace_difference is not None:
            yield trace_difference
        elif fields.get("trace_rows") != len(run.trace):
            yield Difference(
                "the number of rows of the trace", _format_count(fields.get("trace_rows")), f"{len(run.trace):,}"
            )
        else:
            yield Difference("the trace's hash", str(fields["trace_hash"])[:16], run.trace_hash[:16])


def _describe_scope(fields: Mapping[str, Any]) -> str:
    metrics = f"all {len(fields['metrics'])} metrics"
    return (
        f"the trace of {_format_count(fields.get('trace_rows'))} rows and {metrics}"
        if "trace_hash" in fields
        else metrics
    )


def _format_count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _run_scenario(scenario: Scenario, engine: str, with_trace: bool) -> Run | Difference:
    """Run a scenario and return the run.

    If the run raises an error, return a `Difference` with the error instead: the recorded run was complete.
    """
    try:
        run = play(scenario, engine, "trace" if with_trace else "metrics")
        _ = run.metrics
        return run
    except Exception as error:
        return _describe_failure(error)


def _describe_failure(error: Exception) -> Difference:
    """Return the difference between a recorded run, which was complete, and its repetition, which ended in an error."""
    return Difference("the run", "complete", " ".join(f"ended by {type(error).__name__}: {error}".split()))


def build_scenario(document: Any, record: Mapping[str, Any]) -> Scenario:
    """Return the scenario that ``document``, a JSON object as `Scenario.to_json` writes it, describes.

    ``record``: the record with this scenario. Its field user_code names the user's own protocols and filters, for the
    error message.

    Raises DataError for a missing scenario, and ScenarioError, which names the module to import, for missing user code.
    """
    if not isinstance(document, Mapping):
        raise DataError("the record has no scenario, so it cannot be run again")
    try:
        return Scenario.from_json(json.dumps(document))
    except ScenarioError as error:
        user_code = record.get("user_code")
        if not isinstance(user_code, Mapping) or not user_code:
            raise
        raise ScenarioError(f"{error}; the recorded run used {_name_user_code(user_code)}") from None


def _name_user_code(user_code: Mapping[str, Any]) -> str:
    """Return a phrase for an error message: the user's protocols and filters in a record, and how to import them."""
    modules = {
        name: origin.get("module") or "" if isinstance(origin, Mapping) else "" for name, origin in user_code.items()
    }
    listed_names = " and ".join(
        f"the user's {name}" + (f" of module {module}" if module else "") for name, module in modules.items()
    )
    return f"{listed_names}: {_suggest_import(sorted({module for module in modules.values() if module}))}"


def _suggest_import(modules: list[str]) -> str:
    """Return a phrase for an error message that advises how to import the user's ``modules``."""
    if "__main__" in modules:
        return "a notebook or a script defines it; call wb.reproduce(...) there"
    return f"import {' and '.join(modules)} first (workbench reproduce --import {' --import '.join(modules)})"


# A sweep


def _reproduce_chart(
    report: Reproduction, record: Mapping[str, Any], engine: str, most: int | None, progress: Progress
) -> None:
    """Run the scenarios in the record of a sweep's chart again, and add the differences to ``report``.

    At most ``most`` scenarios are run (None: all). Call ``progress`` with the number of runs done and the total.
    """
    if "points" not in record:
        raise DataError(
            f"the record is of {_format_count(record.get('rows'))} runs, too many to include their scenarios; "
            "reproduce the folder of the sweep instead"
        )
    measure = _find_measure(record.get("measure"))
    if record.get("measure") and measure is None:
        module = str(record["measure"]).partition(":")[0]
        raise ScenarioError(
            f"the sweep's measure function {record['measure']} is not loaded: {_suggest_import([module])}"
        )
    try:
        stored_points = list(zip(table.documents(record["points"], record["rows"]), record["results"], strict=True))
        drawn = {name: list(values) for name, values in record["drawn"].items()}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise DataError("the record's list of scenarios and results (points) is damaged") from None
    failed_count = sum(digest is None for _, digest in stored_points)
    run_numbers = [run_number for run_number, (_, digest) in enumerate(stored_points) if digest is not None][:most]
    for done_count, run_number in enumerate(run_numbers, 1):
        scenario_document, digest = stored_points[run_number]
        scenario = build_scenario(scenario_document, record)
        report.add_surroundings(differences.compare_surroundings(record, surroundings_for(record, scenario.protocol)))
        metrics = _compute_metrics(scenario, engine, measure)
        recorded_metrics = {name: values[run_number] for name, values in drawn.items()}
        report.add(
            _compare_point(f"run {run_number:,}", recorded_metrics, str(digest), scenario, metrics), "all metrics"
        )
        progress(done_count, len(run_numbers))
    _note_skipped_rows(report, failed_count)


def _compare_point(
    name: str, recorded: Mapping[str, Any], digest: str, scenario: Scenario, metrics: dict[str, float] | Difference
) -> list[Difference]:
    if isinstance(metrics, Difference):
        return [metrics._replace(subject=f"{name}: {metrics.subject}")]
    if table.digest_of(scenario.hash, metrics) == digest:
        return []
    metric_differences = differences.compare_metrics(recorded, metrics, recorded)
    if not metric_differences:
        metric_differences = [Difference("the digest of its metrics", digest, table.digest_of(scenario.hash, metrics))]
    return [difference._replace(subject=f"{name}: {difference.subject}") for difference in metric_differences]


def _find_measure(name: Any) -> Callable[..., Any] | None:
    """Return a sweep's measure function by its ``name``, "module:function", or None if its module is not loaded.

    A module of this package's protocols is imported if needed. For safety, other modules are not imported.
    """
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


def _compute_metrics(
    scenario: Scenario, engine: str, measure: Callable[..., Any] | None
) -> dict[str, float] | Difference:
    """Run a scenario and return {name: value} of its metrics, or a `Difference` with the error if the run fails.

    ``measure``: the sweep's own function that returns further metrics of a run, or None.
    """
    run = _run_scenario(scenario, engine, measure is not None)
    if isinstance(run, Difference):
        return run
    metrics = {str(name): float(value) for name, value in run.metrics.items()}
    try:
        return metrics if measure is None else metrics | {name: float(value) for name, value in measure(run).items()}
    except Exception as error:
        return _describe_failure(error)


def _reproduce_rows(
    report: Reproduction, rows: Iterable[contents.SweepRow], engine: str, progress: Callable[[], Any]
) -> None:
    """Repeat the run of each row of a sweep's results with ``engine``, and add the differences to ``report``.

    Call ``progress`` after each row.
    """
    codes_by_measure: dict[str, Codes] = {}
    unknown_measures: set[str] = set()
    failed_count = 0
    for sweep_row in rows:
        if sweep_row.columns.get("error") is not None or not sweep_row.text("document"):
            failed_count += 1
            continue
        scenario, name = _parse_document(sweep_row), sweep_row.text("measure")
        measure = _find_measure(name)
        is_unknown = bool(name) and measure is None
        if is_unknown:
            unknown_measures.add(name)
        else:
            code_digest = codes_by_measure.setdefault(name, Codes(measure)).digest(scenario.protocol)
            report.add_surroundings(differences.compare_code(sweep_row.text("code"), code_digest))
        report.add_surroundings(differences.compare_versions(sweep_row.text("versions"), versions()))
        report.add(
            _compare_row(sweep_row, scenario, _compute_metrics(scenario, engine, measure), is_unknown), "all metrics"
        )
        progress()
    _note_skipped_rows(report, failed_count)
    report.notes += [
        f"the metrics of {name} were not compared: {_suggest_import([name.partition(':')[0]])}"
        for name in sorted(unknown_measures)
    ]


def _compare_row(
    row: contents.SweepRow, scenario: Scenario, metrics: dict[str, float] | Difference, without_measure: bool
) -> list[Difference]:
    if isinstance(metrics, Difference):
        return [metrics._replace(subject=f"{row.where}: {metrics.subject}")]
    recorded_metrics = row.metrics
    if recorded_metrics is None:  # The file does not mark its metrics: compare the names that both have.
        names = [name for name in metrics if name in row.columns]
        recorded_metrics = {name: row.columns[name] for name in names}
    else:
        measure_names = differences.names_of_measure(recorded_metrics, metrics) if without_measure else ()
        names = [name for name in differences.names_to_compare(recorded_metrics, metrics) if name not in measure_names]
    metric_differences = differences.compare_metrics(recorded_metrics, metrics, names)
    if scenario.hash != row.text("scenario"):
        metric_differences.insert(0, Difference("the scenario's hash", row.text("scenario"), scenario.hash))
    return [difference._replace(subject=f"{row.where}: {difference.subject}") for difference in metric_differences]


def _parse_document(row: contents.SweepRow) -> Scenario:
    try:
        return Scenario.from_json(row.text("document"))
    except ScenarioError as error:
        raise ScenarioError(
            f"{row.where}: {error} (`workbench reproduce --import MODULE` imports your own code)"
        ) from None


def _note_skipped_rows(report: Reproduction, failed: int) -> None:
    if failed:
        report.notes.append(f"{failed:,} rows that failed in the sweep were skipped")

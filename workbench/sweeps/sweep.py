"""The class `Sweep`: a scenario with varied parameters. ``run()`` returns a table with one row per point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench import keywords
from workbench.errors import ScenarioError, WorkbenchError
from workbench.sim.runner import RECORDS
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant
from workbench.sweeps.design import Design
from workbench.sweeps.plan import Measure, Plan, Points, make_plan
from workbench.sweeps.progress import Progress, display_for, format_duration
from workbench.sweeps.runners import Runner, default_runner
from workbench.sweeps.store import FolderStore, MemoryStore
from workbench.sweeps.table import SweepTable
from workbench.sweeps.work import Row

_MOST_NAMED = 3  # actions of the user's code, not covered by a digest, that a summary names


@keywords.checked
class Sweep:
    """A scenario with varied parameters: ``Sweep(scenario, over={"protocol.ttl": [5, 9], "seed": range(30)})``.

    ``over`` maps paths, as for `Scenario.replace`, to lists of values: numbers, texts, booleans or whole objects
    (topologies, protocols, radios, workloads). A dictionary in place of a list gives the values names:
    ``{"topology": {"sparse": a, "dense": b}}``. The points are all combinations; the last axis varies fastest.

    ``engine`` is "auto", "reference" or "fast", as for `Scenario.run`.

    ``measure`` is a function from a run to further metrics {name: number}, which become columns of the table. With a
    measure all runs record traces, which takes time and memory.

    ``keep`` is "metrics" or "trace". With "trace", ``run(out=folder)`` stores the traces of all runs beside the
    results, for `workbench.pipelines.traces`.

    Raises ScenarioError if a point is invalid; the message names the path with the wrong value.
    """

    def __init__(
        self,
        scenario: Scenario,
        over: Mapping[str, Any] | Design,
        engine: str = "auto",
        measure: Measure | None = None,
        keep: str = "metrics",
    ) -> None:
        if keep not in RECORDS:
            raise ScenarioError(f"`keep` is {keep!r:.60}{meant(keep, RECORDS)}; it must be one of {', '.join(RECORDS)}")
        self.plan = make_plan(scenario, over, engine, measure, keep == "trace")
        self._memory = MemoryStore()

    def remember(self, other: Sweep) -> None:
        """Use the results that the sweep ``other`` holds in memory, and add the new results of this sweep to them."""
        self._memory = other._memory

    @property
    def points(self) -> Points:
        """All points (`Point`) in the order of their numbers, each built on access.

        Each access to this property digests the user's code again, because the keys of the points depend on it.
        """
        return Points(self.plan.fresh())

    def __len__(self) -> int:
        return len(self.plan)

    def __repr__(self) -> str:
        return f"Sweep({len(self)} points: {self.plan.design.text()})"

    def run(
        self,
        out: str | Path | None = None,
        runner: Runner | None = None,
        progress: bool | None = None,
        retry: bool = False,
    ) -> SweepTable:
        """Run the points that have no result yet and return the table of all points.

        out       a folder for the results, or its URL in an object store ("s3://bucket/name"). Points with results
                  there are not run again, so a stopped sweep continues. None: results stay in this object
        runner    a ProcessRunner(), SparkRunner(), LocalRunner() or similar; by default `runners.default_runner`
        progress  whether to display the progress. None: in notebooks and terminals; True: always; False: never
        retry     run failed points again

        A failed point has its reason in the column ``error``, and causes a warning. Finished points are stored even
        after Ctrl-C. Raises WorkbenchError if all points fail, and DataError if another sweep uses the folder or a file
        in it is damaged. Raises ScenarioError for an invalid ``runner``, and without ``out`` if the sweep keeps traces.
        """
        if runner is not None and not callable(getattr(runner, "run", None)):
            raise ScenarioError(
                f"the argument `runner` is {runner!r}; it must be a ProcessRunner() or another object with run()"
            )
        if out is None and self.plan.keeps_traces:
            raise ScenarioError(
                'the argument `out` is None; with keep="trace" it must be a folder for the traces: '
                'run(out="results/name")'
            )
        plan = self.plan.fresh()
        store = self._memory if out is None else FolderStore(out)
        if plan.keeps_traces and isinstance(store, FolderStore):
            plan = replace(plan, trace_folder=store.trace_folder)
        row_by_number = store.open(plan, retry)
        tracker = None
        try:
            if len(row_by_number) < len(plan):
                row_by_number = store.begin(row_by_number)
            numbers_to_run = row_by_number.missing
            runner = runner or default_runner(plan, len(numbers_to_run))
            tracker = Progress(display_for(progress), len(plan), len(row_by_number), getattr(runner, "doing", None))
            for new_rows in _run_checked(plan, runner, numbers_to_run, tracker):
                store.add(new_rows)
                # Documents and traces are long, and the store has them.
                row_by_number.add([row._replace(document="", trace=b"") for row in new_rows])
        except BaseException as error:
            close_error = _close_store(store)
            raise (_add_note(error, tracker, store.place, close_error) if tracker else error) from error.__cause__
        store.close()
        tracker.close(_make_summary(tracker, len(numbers_to_run), store.place, plan.codes.untracked))
        self._report_failures(
            list(row_by_number.rows(row_by_number.failed)),
            not numbers_to_run,
        )
        return SweepTable(plan, row_by_number.of_points(range(len(plan))))

    def _report_failures(self, failed: list[Row], is_stored: bool) -> None:
        if not failed:
            return
        first_failure = f"{self.plan.text_of(failed[0].number)}: {failed[0].error}"
        if len(failed) == len(self):
            hint = "; run(retry=True) runs them again" if is_stored else ""
            raise WorkbenchError(f"every point of the sweep failed; the first failure is {first_failure}{hint}")
        others_text = "" if len(failed) == 1 else "; the table's column error has all failures"
        warnings.warn(
            f"{len(failed)} of {len(self)} points failed; the first failure is {first_failure}{others_text}",
            stacklevel=4,
        )


def _run_checked(plan: Plan, runner: Runner, numbers: Sequence[int], tracker: Progress) -> Iterator[list[Row]]:
    """Run the points ``numbers`` and yield the runner's lists of rows.

    ``tracker`` counts the rows of a list after the caller has stored them. Raises WorkbenchError if the runner skips a
    point, or if a worker has other code than this process.
    """
    is_missing = bytearray(len(plan))
    for number in numbers:
        is_missing[number] = 1
    for new_rows in runner.run(plan, numbers, tracker.update) if numbers else ():
        for row in new_rows:
            is_missing[row.number] = 0
            _check_code(plan, row, runner)
        yield new_rows
        tracker.advance(len(new_rows), sum(row.error is not None for row in new_rows))
    missing_points = is_missing.count(1)
    if missing_points:
        first_missing = plan.text_of(is_missing.index(1))
        raise WorkbenchError(
            f"{runner!r} returned no row for {missing_points} points, the first of which is {first_missing}; its run() "
            "must yield a row for each point"
        )


def _check_code(plan: Plan, row: Row, runner: Runner) -> None:
    """Raise WorkbenchError if a worker of ``runner`` computed ``row`` with other code than this process has."""
    if row.code and row.code != plan.code_of(row.number):
        raise WorkbenchError(
            f"a worker of {runner!r} has other code than this process: the digest of its code for "
            f"{plan.text_of(row.number)} is {row.code}, here it is {plan.code_of(row.number)}; install the same "
            "version of the package on both, or restart this process"
        )


def _close_store(store: FolderStore | MemoryStore) -> WorkbenchError | None:
    """Close the store of a sweep that has ended early. Return the error if closing fails, else None."""
    try:
        store.close()
    except WorkbenchError as error:
        return error
    return None


def _add_note(error: BaseException, tracker: Progress, place: str, close_error: WorkbenchError | None) -> BaseException:
    """Return ``error``, which ended the sweep, with a note on the number of stored points; also display the note.

    ``place`` is the folder of the results, or "memory". ``close_error`` is the error of closing the store, or None.
    """
    sentence = (
        f"sweep stopped: {tracker.done} of {tracker.total} points are stored in {place}; run it again to continue"
    )
    if close_error is not None:
        reason = "" if str(close_error) == str(error) else f" ({close_error})"
        sentence = (
            f"sweep stopped after {tracker.done} of {tracker.total} points, and its store in {place} could not be "
            f"closed{reason}; run it again to continue with the stored points"
        )
    tracker.close(sentence)
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(sentence).with_traceback(error.__traceback__)
    error.add_note(sentence)
    return error


def _make_summary(tracker: Progress, points_run: int, place: str, untracked: Sequence[str]) -> str:
    summary_text = f"sweep: {tracker.total} points, {points_run} run in {format_duration(tracker.elapsed_s)}"
    if points_run < tracker.total:
        summary_text += f", {tracker.total - points_run} already in {place}"
    summary_text += f", {tracker.failed} failed" if tracker.failed else ""
    if untracked:
        others_text = f" and {len(untracked) - _MOST_NAMED} more" if len(untracked) > _MOST_NAMED else ""
        summary_text += f"; changes of these are not detected: {', '.join(untracked[:_MOST_NAMED])}{others_text}"
    return summary_text

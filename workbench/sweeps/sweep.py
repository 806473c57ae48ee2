"""The sweep: a scenario and what to vary about it. ``run()`` gives a table with one row per point."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench import keywords
from workbench.errors import ScenarioError, WorkbenchError
from workbench.sim.runner import RECORDS
from workbench.sim.scenario import Scenario
from workbench.suggestion import meant
from workbench.sweeps.design import Design
from workbench.sweeps.plan import Measure, Plan, Points, make_plan
from workbench.sweeps.progress import Progress, display_for, duration
from workbench.sweeps.runners import Runner, fitting
from workbench.sweeps.store import FolderStore, MemoryStore
from workbench.sweeps.table import SweepTable
from workbench.sweeps.work import Row

_MOST_NAMED = 3  # of what the user's code does that a digest cannot follow


@keywords.checked
class Sweep:
    """A scenario with parameters varied: ``Sweep(scenario, over={"protocol.ttl": [5, 9], "seed": range(30)})``.

    ``over`` maps paths, as `Scenario.replace` takes them, to lists of values: numbers, texts, booleans or whole
    objects (topologies, protocols, radios, workloads). A dictionary in place of a list gives the values names:
    ``{"topology": {"sparse": a, "dense": b}}``. The points are all combinations, the last axis turning fastest.

    ``measure`` is a function of a run that answers with metrics of its own, as {name: number}; they stand in the table
    beside the others. Its runs keep their traces as long as it looks at them, which takes time and memory.

    ``keep`` is "metrics", or "trace": then ``run(out=folder)`` keeps the traces of all runs beside the results, for
    `workbench.pipelines.traces`.

    Raises ScenarioError at once if a point cannot be run, naming the path whose value is wrong.
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
            raise ScenarioError(f"keep is {keep!r:.60}{meant(keep, RECORDS)}; it must be one of {', '.join(RECORDS)}")
        self.plan = make_plan(scenario, over, engine, measure, keep == "trace")
        self._memory = MemoryStore()

    def remember(self, other: Sweep) -> None:
        """Keep results in the same memory as another sweep, and find there what that one has found."""
        self._memory = other._memory

    @property
    def points(self) -> Points:
        """All points in order, each built when it is asked for. Keys follow the user's code as it is now."""
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
        """Run what has not been run yet and return the table of all points.

        out       a folder for the results: points found there are not run again, so a sweep that was stopped goes on;
                  without it results stay in this object
        runner    ProcessRunner(), SparkRunner(), LocalRunner() or the like; `runners.fitting` if not given
        progress  None: shown in notebooks and terminals; True, False: always, never
        retry     run points again that failed

        A point that fails is told in the column ``error`` and in a warning, and is kept with the others' results; if
        all of them fail, that is a WorkbenchError. Stopped by Ctrl-C, it keeps what is finished and says so. A folder
        that another sweep is running into, or in which a file is damaged, is a DataError.
        """
        if runner is not None and not callable(getattr(runner, "run", None)):
            raise ScenarioError(f"runner is {runner!r}; it must be a ProcessRunner(), a SparkRunner() or the like")
        if out is None and self.plan.keeps_traces:
            raise ScenarioError('a sweep with keep="trace" needs a folder for the traces: run(out="results/name")')
        plan = self.plan.fresh()
        store = self._memory if out is None else FolderStore(out)
        rows = store.open(plan, retry)
        shown = None
        try:
            if len(rows) < len(plan):
                rows = store.begin(rows)
            todo = [number for number in range(len(plan)) if number not in rows] if rows else range(len(plan))
            runner = runner or fitting(plan, len(todo))
            shown = Progress(display_for(progress), len(plan), len(rows), getattr(runner, "doing", None))
            for some in _handed_out(plan, runner, todo, shown):
                store.add(some)
                # Documents and traces are long, and stand in the store.
                rows.update((row.number, row._replace(document="", trace=b"")) for row in some)
        except BaseException as error:
            trouble = _closed(store)
            raise (_told(error, shown, store.place, trouble) if shown else error) from error.__cause__
        store.close()
        shown.close(_summary(shown, len(todo), store.place, plan.codes.untracked))
        self._tell_failures([rows[number] for number in sorted(rows) if rows[number].error], not todo)
        return SweepTable(plan, [rows[number] for number in range(len(plan))])

    def _tell_failures(self, failed: list[Row], is_kept: bool) -> None:
        if not failed:
            return
        first = f"{self.plan.text_of(failed[0].number)}: {failed[0].error}"
        if len(failed) == len(self):
            again = "; run(retry=True) runs them again" if is_kept else ""
            raise WorkbenchError(f"every point of the sweep failed, the first with {first}{again}")
        more = "" if len(failed) == 1 else f" and {len(failed) - 1} more, see the column error"
        warnings.warn(f"{len(failed)} of {len(self)} points failed: {first}{more}", stacklevel=4)


def _handed_out(plan: Plan, runner: Runner, todo: Sequence[int], shown: Progress) -> Iterator[list[Row]]:
    """The rows that a runner gives; WorkbenchError if it does not give one for each point, or runs other code."""
    is_missing = bytearray(len(plan))
    for number in todo:
        is_missing[number] = 1
    for rows in runner.run(plan, todo, shown.moving) if todo else ():
        for row in rows:
            is_missing[row.number] = 0
            _check_code(plan, row, runner)
        yield rows
        shown.advance(len(rows), sum(row.error is not None for row in rows))
    missing = is_missing.count(1)
    if missing:
        first = plan.text_of(is_missing.index(1))
        raise WorkbenchError(f"{runner!r} gave no result for {missing} points; the first is {first}")


def _check_code(plan: Plan, row: Row, runner: Runner) -> None:
    """Results of other code than this process has are refused: nobody could tell them from those of this one."""
    if row.code and row.code != plan.code_of(row.number):
        raise WorkbenchError(
            f"a worker of {runner!r} has other code than this process ({plan.text_of(row.number)}: {row.code}, and not "
            f"{plan.code_of(row.number)}); give both the same version of the package, or restart this process"
        )


def _closed(store: FolderStore | MemoryStore) -> WorkbenchError | None:
    """Close the store of a sweep that has ended early; what was in the way of that."""
    try:
        store.close()
    except WorkbenchError as error:
        return error
    return None


def _told(error: BaseException, shown: Progress, place: str, trouble: WorkbenchError | None) -> BaseException:
    """The error that ended a sweep early, with what is kept; the display says it too."""
    sentence = f"sweep stopped: {shown.done} of {shown.total} points are kept in {place}; run it again to go on"
    if trouble is not None:
        why = "" if str(trouble) == str(error) else f" ({trouble})"
        sentence = (
            f"sweep stopped after {shown.done} of {shown.total} points, and {place} could not be put in order{why}; "
            "run it again, and it goes on with those that are there"
        )
    shown.close(sentence)
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(sentence).with_traceback(error.__traceback__)
    error.add_note(sentence)
    return error


def _summary(shown: Progress, ran: int, place: str, untracked: Sequence[str]) -> str:
    text = f"sweep: {shown.total} points, {ran} run in {duration(shown.elapsed_s)}"
    if ran < shown.total:
        text += f", {shown.total - ran} already in {place}"
    text += f", {shown.failed} failed" if shown.failed else ""
    if untracked:
        more = f" and {len(untracked) - _MOST_NAMED} more" if len(untracked) > _MOST_NAMED else ""
        text += f"; a change of these is not noticed: {', '.join(untracked[:_MOST_NAMED])}{more}"
    return text

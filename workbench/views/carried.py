"""Functions that attach a record to drawings. It states how to reproduce the runs or sweeps that a drawing shows.

``@carries_record`` decorates a function whose first argument is a run, or a mapping of names to runs, and which returns
a `Drawing` or a `Stepper`. `carries_sweep` attaches the record of sweep tables to a drawing. The record
(`workbench.records`) is built only when the drawing is written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from workbench.records import record_of, record_of_runs
from workbench.records.table import attach_record
from workbench.sim.run import Run
from workbench.views.charts.static import Chart
from workbench.views.drawing import Drawing
from workbench.views.stepper import Stepper

if TYPE_CHECKING:
    from workbench.sweeps.table import SweepTable

P = ParamSpec("P")
Drawn = TypeVar("Drawn", bound=Drawing | Stepper)
AnyDrawing = TypeVar("AnyDrawing", bound=Drawing)


def carries_record(view: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Wrap a function ``view`` so that the drawings that it returns have a record attached.

    The record states how to reproduce the runs in the first argument of ``view``.
    """

    @wraps(view)
    def with_record(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        shown_drawing = view(*args, **kwargs)
        record = _make_record_function(next(iter((*args, *kwargs.values()))))
        for drawing in shown_drawing.drawings if isinstance(shown_drawing, Stepper) else (shown_drawing,):
            drawing.record = record
        return shown_drawing

    return with_record


def carries_sweep(tables: Any, drawing: AnyDrawing, *drawn: str) -> AnyDrawing:
    """Return the drawing with a record attached, which states how to reproduce the sweeps that the drawing shows.

    tables: the table of a sweep, or a list of tables.
    drawn: names of the metrics that the drawing shows.
    The drawing is returned without a record if a table is not a `SweepTable`, or if the sweeps measure their runs with
    different functions.
    """
    from workbench.sweeps.table import SweepTable

    table_list = list(tables) if isinstance(tables, (list, tuple)) else [tables]
    is_one_measure = all(
        isinstance(table, SweepTable) and table.plan.measure is table_list[0].plan.measure for table in table_list
    )
    if not table_list or not is_one_measure:
        return drawing
    first_table, *other_tables = table_list
    if isinstance(drawing, Chart) and not other_tables:
        _connect_runs(drawing, first_table)
    other_results = [(table.rows, table.plan) for table in other_tables]
    return attach_record(drawing, first_table.rows, first_table.plan, *drawn, others=other_results)


def _connect_runs(chart: Chart, table: SweepTable) -> None:
    """Set up a sweep's chart: a click on a point opens the point's run, and all charts of ``table`` share a selection.

    The numbers of the runs in the chart are row numbers of ``table``.
    """
    chart.subject = f"sweep {table.digest}"
    chart.open_run = lambda number: (table.plan.text_of(table.rows[number].number), table.run(number))


def _make_record_function(subject: Any) -> Callable[[], Mapping[str, Any]] | None:
    if isinstance(subject, Run):
        return partial(record_of, subject)
    runs = _collect_runs(subject) if isinstance(subject, Mapping) else {}
    return partial(record_of_runs, runs) if runs else None


def _collect_runs(subject: Mapping[str, Any]) -> dict[str, Run]:
    """Return {name: run} for the runs in a mapping; a value is a run or a list of runs.

    The runs of a list get the name of the list and a number, such as "name #1". Values of other types are left out.
    """
    named_runs: dict[str, Run] = {}
    for name, value in subject.items():
        runs = [value] if isinstance(value, Run) else value if isinstance(value, (list, tuple)) else []
        is_numbered = len(runs) > 1
        named_runs |= {
            f"{name} #{number}" if is_numbered else name: run
            for number, run in enumerate(runs, 1)
            if isinstance(run, Run)
        }
    return named_runs

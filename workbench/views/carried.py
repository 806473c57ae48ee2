"""Views whose drawings carry the record of what they show: see `workbench.records`.

@carries_record stands in front of a function that is given a run, or runs by name, and returns a `Drawing` or a
`Stepper`. `carries_sweep` is for drawings of sweeps' tables. The record is made when the drawing is written into a
file, and not before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from workbench.records import record_of, record_of_runs
from workbench.records.table import attach_record
from workbench.sim.run import Run
from workbench.views.drawing import Drawing
from workbench.views.stepper import Stepper

P = ParamSpec("P")
Drawn = TypeVar("Drawn", Drawing, Stepper)


def carries_record(view: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """The same function, whose drawings carry the record of the run, or runs, that its first argument is."""

    @wraps(view)
    def with_record(*args: P.args, **kwargs: P.kwargs) -> Drawn:
        drawn = view(*args, **kwargs)
        record = _record_of(next(iter((*args, *kwargs.values()))))
        for drawing in drawn.drawings if isinstance(drawn, Stepper) else (drawn,):
            drawing.record = record
        return drawn

    return with_record


def carries_sweep(tables: Any, drawing: Drawing, *drawn: str) -> Drawing:
    """The drawing, which from now on carries the record of a sweep's table, or of several; as it is for another table.

    Tables of sweeps with different measures have no record in common.

    ``drawn``: the metrics that it shows.
    """
    from workbench.sweeps.table import SweepTable

    some = list(tables) if isinstance(tables, (list, tuple)) else [tables]
    is_one_measure = all(isinstance(one, SweepTable) and one.plan.measure is some[0].plan.measure for one in some)
    if not some or not is_one_measure:
        return drawing
    return attach_record(drawing, some[0].rows, some[0].plan, *drawn, others=[(one.rows, one.plan) for one in some[1:]])


def _record_of(seen: Any) -> Callable[[], Mapping[str, Any]] | None:
    if isinstance(seen, Run):
        return partial(record_of, seen)
    runs = _by_name(seen) if isinstance(seen, Mapping) else {}
    return partial(record_of_runs, runs) if runs else None


def _by_name(seen: Mapping[str, Any]) -> dict[str, Run]:
    """Runs by name; several under one name are counted."""
    found: dict[str, Run] = {}
    for name, some in seen.items():
        runs = [some] if isinstance(some, Run) else some if isinstance(some, (list, tuple)) else []
        several = len(runs) > 1
        found |= {
            f"{name} #{which}" if several else name: run for which, run in enumerate(runs, 1) if isinstance(run, Run)
        }
    return found

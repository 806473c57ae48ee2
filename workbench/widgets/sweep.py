"""A panel that sweeps the present scenario over values of one parameter, with a chart that grows meanwhile."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import ipywidgets as widgets

from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.parameter import Parameter
from workbench.sim.metrics import COMMON
from workbench.sim.radio import PARAMETERS
from workbench.sim.scenario import Scenario
from workbench.sweeps import LocalRunner, ProcessRunner, Runner, SparkRunner, Sweep, SweepTable
from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row
from workbench.topology import parameters
from workbench.views.charts.living import ChartView
from workbench.views.charts.static import Chart
from workbench.views.sweeps.summary import plot
from workbench.widgets.controls import status_html, words
from workbench.widgets.fields import is_plain, literal, usual_range
from workbench.widgets.panel import Panel
from workbench.widgets.runs import engine_for

if TYPE_CHECKING:
    import pandas as pd

HERE, CORES, SPARK, CLUSTER = "here", "here, on all cores", "on Spark, here", "on Spark at an address"
WHERE = (HERE, *([CORES] if hasattr(os, "fork") else []), SPARK, CLUSTER)
REDRAWN_S = 0.25  # least interval between two drawings of the chart while a sweep runs
_VALUES = 5  # number of proposed values
_WIDTH = {"width": "24em"}
_HIDDEN = {"width": "22em", "display": "none"}


class _Choices(NamedTuple):
    """The user's choices for a sweep: the scenario, the parameter, its values, and the number of seeds."""

    scenario: Scenario
    path: str
    values: tuple[Any, ...]
    repetitions: int


class _Stopped(Exception):
    """Raised inside a sweep that the user has stopped."""


class SweepPanel(Panel):
    """A panel for sweeps: runs of one scenario with several values of a parameter.

    ``value``: the scenario. ``table``: the results so far, or None before the first result.

    A sweep runs in a background thread. A point of the sweep is one run, with one value of the parameter and one seed.
    If the sweep is stopped, its finished points are kept, and the next sweep with the same choices continues with the
    other points.
    """

    def __init__(self, value: Scenario) -> None:
        self.table: SweepTable | None = None
        # (the choices, their sweep, {number of a point: its finished row}), or None before the first sweep
        self._current_sweep: Any = None
        self._drawn_s = 0.0
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.path = widgets.Dropdown(description="vary:", layout=_WIDTH)
        self.values = widgets.Text(description="over:", continuous_update=False, layout=_WIDTH)
        self.values.tooltip = "Values, separated by commas"
        self.repetitions = widgets.BoundedIntText(
            5, min=1, max=10_000, description="seeds each:", layout={"width": "12em"}
        )
        self.metric = widgets.Dropdown(options=COMMON, value="delivery_ratio", description="show:", layout=_WIDTH)
        self.where = widgets.Dropdown(options=WHERE, description="run:", layout={"width": "18em"})
        self.address = widgets.Text(
            description="address:", placeholder="spark://host:7077, sc://host:15002", layout=dict(_HIDDEN)
        )
        self.address.tooltip = "Address of a cluster or of Spark Connect; an existing session is used as it is"
        self.run_button = widgets.Button(description="▶ Sweep", button_style="primary")
        self.stop_button = widgets.Button(description="■ Stop", disabled=True)
        self.bar = widgets.FloatProgress(min=0, max=1, layout={"visibility": "hidden"})
        self._message, self._chart = words(), widgets.VBox()
        self._view: ChartView | None = None  # of the chart, once the sweep has results
        self.path.observe(self._fill_in_values, "value")
        self.where.observe(self._show_address_field, "value")
        self.metric.observe(lambda _: self._draw_chart(), "value")
        self.run_button.on_click(lambda _: self.run())
        self.stop_button.on_click(lambda _: self.stop())
        buttons = widgets.HBox((self.run_button, self.stop_button, self.bar))
        run_options = widgets.HBox((self.repetitions, self.where, self.address), layout={"flex_flow": "row wrap"})
        upper_rows = (self.path, self.values, run_options, self.metric)
        super().__init__(value, (*upper_rows, buttons, self._message, self._chart))

    def draw(self, value: Scenario) -> None:
        """List the parameters of this scenario that can be varied."""
        names = tuple(table_of(value))
        if names != tuple(self.path.options):
            selected_path = self.path.value
            self.path.options = names
            self.path.value = selected_path if selected_path in names else names[0]
            self._fill_in_values(None)

    def run(self) -> None:
        """Start the sweep, or continue it with the runs that are missing; for invalid input, show an error."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            values, runner = read_values(self.values.value), self._selected_runner()
        except WorkbenchError as error:
            self._show_message(str(error), is_error=True)
            return
        choice = _Choices(self.value, self.path.value, tuple(values), self.repetitions.value)
        self._stop.clear()
        self.run_button.disabled, self.stop_button.disabled = True, False
        self.bar.value, self.bar.layout.visibility = 0.0, "visible"
        delay_note = "; Spark may take some seconds" if isinstance(runner, SparkRunner) else ""
        self._show_message(f"Preparing the scenarios{delay_note}.")
        self._thread = threading.Thread(target=self._run_points, args=(choice, runner), name="lab-sweep", daemon=True)
        self._thread.start()

    def _selected_runner(self) -> Runner:
        """Return the runner that the user selected. Raises ScenarioError if a Spark cluster's address is missing."""
        if self.where.value == HERE:
            return LocalRunner()
        if self.where.value == CORES:
            return ProcessRunner()
        if self.where.value == SPARK:
            return SparkRunner()
        if not self.address.value.strip():
            raise ScenarioError("the address of the Spark cluster is empty; enter one, such as spark://host:7077")
        return SparkRunner(self.address.value.strip())

    def _show_address_field(self, _: Any) -> None:
        self.address.layout.display = "" if self.where.value == CLUSTER else "none"

    def stop(self) -> None:
        """End the sweep and keep the results of its finished points (runs).

        Without Spark, the sweep ends after the present point. On Spark, the points in progress are canceled.
        """
        self._stop.set()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the end of the sweep; return False on timeout."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    @property
    def results(self) -> pd.DataFrame | None:
        """The results so far as a data frame with a row for each finished run, or None before the first result."""
        return None if self.table is None else self.table.to_pandas()

    def _run_points(self, choice: _Choices, runner: Any) -> None:
        try:
            self._run_sweep(choice, runner)
        except _Stopped:
            self._update_table()
            finished_count = 0 if self.table is None else len(self.table)
            self._show_message(
                f"Stopped: {finished_count} of {len(self._current_sweep[1])} points are kept; press Sweep to continue."
            )
        except (WorkbenchError, OSError) as error:
            self._show_message(str(error), is_error=True)
        except Exception as error:  # for example Spark's
            self._show_message(
                f"the sweep ended with {type(error).__name__}: {str(error).partition(chr(10))[0]}", is_error=True
            )
        self._draw_chart()
        self.run_button.disabled, self.stop_button.disabled = False, True
        self.bar.layout.visibility = "hidden"

    def _run_sweep(self, choice: _Choices, runner: Any) -> None:
        """Run the sweep that the user chose (``choice``), or continue the previous sweep if its choices are equal."""
        if self._current_sweep is None or self._current_sweep[0] != choice:
            swept_values: dict[str, Any] = {choice.path: list(choice.values)}
            if choice.path != "seed":
                swept_values["seed"] = range(choice.scenario.seed, choice.scenario.seed + choice.repetitions)
            # The user should not wait for a compiler; a cluster's workers have their own machine code.
            engine = engine_for(choice.scenario) if isinstance(runner, LocalRunner) else "auto"
            sweep = Sweep(choice.scenario, swept_values, engine)
            self._current_sweep, self.table = (choice, sweep, {}), None
        sweep = self._current_sweep[1]
        self.table = sweep.run(
            runner=_ReportingRunner(runner, self._stop.is_set, self._show_progress), progress=False, retry=True
        )
        failed_points = self.table.failed
        if len(failed_points):
            self._show_message(
                f"{len(failed_points)} of {len(sweep)} points failed, the first: {failed_points['error'].iloc[0]}",
                is_error=True,
            )
        else:
            self._show_message(f"{len(sweep)} points.")

    def _show_progress(self, rows: list[Row]) -> None:
        """Add new results (``rows``) and show the progress; redraw the chart unless it was drawn a moment ago."""
        _, sweep, finished_rows = self._current_sweep
        finished_rows.update((row.number, row) for row in rows)
        self.bar.value = len(finished_rows) / len(sweep)
        self._show_message(f"{len(finished_rows)} of {len(sweep)} points")
        if time.monotonic() - self._drawn_s > REDRAWN_S:
            self._update_table()
            self._draw_chart()
            self._drawn_s = time.monotonic()

    def _update_table(self) -> None:
        """Set ``table`` to a `SweepTable` of the finished points (runs). If no point is finished, do nothing."""
        if self._current_sweep is None or not self._current_sweep[2]:
            return
        _, sweep, finished_rows = self._current_sweep
        self.table = SweepTable(sweep.plan, [finished_rows[number] for number in sorted(finished_rows)])

    def _draw_chart(self) -> None:
        if self.table is None or not len(self.table):
            return
        try:
            self._show_chart(plot(self.table, self._current_sweep[0].path, self.metric.value))
        except WorkbenchError as error:
            self._chart.children = (words(status_html(str(error))),)
        own_metrics = tuple(name for name in self.table.metrics if name not in self.metric.options)
        if own_metrics:
            selected_metric = self.metric.value
            self.metric.options = (*self.metric.options, *own_metrics)
            self.metric.value = selected_metric

    def _show_chart(self, chart: Chart) -> None:
        if self._view is None:
            self._view = ChartView(chart)
        else:
            self._view.feed(chart)
        self._chart.children = (self._view.wire,)

    def _fill_in_values(self, _: Any) -> None:
        self.values.value = ", ".join(
            str(value) for value in propose_values(self.path.value, table_of(self.value)[self.path.value], self.value)
        )

    def _show_message(self, sentence: str, is_error: bool = False) -> None:
        self._message.value = status_html(sentence, is_error)


class _ReportingRunner:
    """A runner of sweeps that wraps another runner, reports its results, and can be stopped after each result."""

    def __init__(self, runner: Any, is_stopping: Callable[[], bool], report: Callable[[list[Row]], None]) -> None:
        self._runner, self._is_stopping, self._report = runner, is_stopping, report

    def run(self, plan: Plan, numbers: Sequence[int], report_progress: Callable[[float], None]) -> Iterator[list[Row]]:
        """Run points (scenarios) of a sweep's plan; yield their results as they arrive, one `Row` for each point.

        numbers: indices of the points to run.
        report_progress: not used; the function ``report`` of the constructor gets each list of rows instead.
        Raises _Stopped if the user has stopped the sweep.
        """
        for rows in self._runner.run(plan, numbers, self._raise_if_stopped):
            self._report(rows)
            yield rows
            self._raise_if_stopped()

    def _raise_if_stopped(self, _: float = 0.0) -> None:
        if self._is_stopping():
            raise _Stopped


def table_of(scenario: Scenario) -> dict[str, Parameter]:
    """Return {path: parameter} for all numbers and choices of a scenario that a sweep can vary.

    A path consists of the field of the scenario and the parameter's name, such as "radio.loss". The loss of frames
    comes first, since it matters for every protocol; limits of a node's memory come last.
    """
    varied = {f"protocol.{item.name}": item for item in scenario.protocol.parameters if is_plain(item)}
    bounds = {path: item for path, item in varied.items() if item.name.startswith("max_")}
    table = {"radio.loss": Parameter("loss", 0.0, 0.0, 1.0, "share", "every arc loses this share")}
    table |= {path: item for path, item in varied.items() if path not in bounds}
    table |= {f"radio.{item.name}": item for item in PARAMETERS if is_plain(item)}
    table |= {path: item for path, item in parameters.of_network(scenario.topology).items() if is_plain(item)}
    table["duration_s"] = Parameter("duration_s", 60.0, 0.001, None, "s", "")
    table["seed"] = Parameter("seed", 1, None, None, "", "")
    return table | bounds


def propose_values(path: str, parameter: Parameter, scenario: Scenario) -> list[Any]:
    """Return values of a parameter for a sweep: all choices, or a few numbers over its usual range.

    ``path``: the parameter's path, as in `table_of`. Seeds begin at that of ``scenario``.
    """
    if isinstance(parameter.minimum, tuple):
        return list(parameter.minimum)
    if isinstance(parameter.default, bool):
        return [False, True]
    if path == "seed":
        return list(range(scenario.seed, scenario.seed + 10))
    if path.startswith("topology."):
        return _propose_arguments(parameter)
    if path == "radio.loss":
        return [0.0, 0.1, 0.2, 0.3, 0.4]
    lowest, highest = usual_range(parameter)
    candidates = [lowest + (highest - lowest) * step / (_VALUES - 1) for step in range(_VALUES)]
    if isinstance(parameter.default, int):
        return sorted({round(value) for value in candidates})
    return sorted({float(f"{value:.3g}") for value in candidates})


def _propose_arguments(parameter: Parameter) -> list[Any]:
    """Return values for a sweep over an argument of a network's generator: the present value and larger values.

    Smaller values are left out, because smaller networks may lack nodes of the workload. An integer of 16 gives 16, 32,
    48 and 64; a float of 100 gives 100, 110, 125 and 150. A seed is followed by the next seeds. A float that is 0 or
    negative, such as a power in dBm, is followed by values in steps of 1.
    """
    present_value, largest_value = parameter.default, math.inf if parameter.maximum is None else parameter.maximum
    if parameter.name == "seed":
        return list(range(present_value, present_value + _VALUES))
    if isinstance(present_value, int):
        return sorted({min(int(largest_value), present_value * factor) for factor in (1, 2, 3, 4)})
    if present_value <= 0:
        return [present_value + step for step in (0.0, 1.0, 2.0, 3.0, 4.0)]
    return sorted({min(largest_value, float(f"{present_value * factor:.3g}")) for factor in (1.0, 1.1, 1.25, 1.5)})


def read_values(text: str) -> list[Any]:
    """Return the values in a text, which are separated by commas. Raises ScenarioError if the text is empty."""
    values = [literal(item.strip()) for item in text.split(",") if item.strip()]
    if not values:
        raise ScenarioError("the list of values is empty; enter values separated by commas, such as 1, 2, 5")
    return values

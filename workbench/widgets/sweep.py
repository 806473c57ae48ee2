"""A sweep of the scenario that is shown: choose what to vary, over which values, how often; watch the chart grow."""

from __future__ import annotations

import ast
import html
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ipywidgets as widgets

from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.parameter import Parameter
from workbench.sim.metrics import COMMON
from workbench.sim.radio import PARAMETERS
from workbench.sim.scenario import Scenario
from workbench.sweeps import LocalRunner, SparkRunner, Sweep, SweepTable
from workbench.sweeps.plan import Plan
from workbench.sweeps.work import Row
from workbench.widgets.fields import usual_range
from workbench.widgets.part import Part

HERE, SPARK = "here", "on Spark"
_VALUES = 5  # that are proposed
_WIDTH = {"width": "24em"}


class _Stopped(Exception):
    """Somebody has stopped the sweep."""


class SweepPanel(Part):
    """``value``: the scenario that is varied. ``table``: the results so far (`SweepTable`), None before the first.

    A sweep runs in a thread of its own. Stopped, it keeps what is finished; with the same choices it then goes on.
    """

    def __init__(self, value: Scenario) -> None:
        self.table: SweepTable | None = None
        self._sweep: tuple[tuple, Sweep] | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.path = widgets.Dropdown(description="vary:", layout=_WIDTH)
        self.values = widgets.Text(description="over:", continuous_update=False, layout=_WIDTH)
        self.values.tooltip = "Values with commas between them"
        self.repetitions = widgets.BoundedIntText(
            5, min=1, max=10_000, description="seeds each:", layout={"width": "12em"}
        )
        self.metric = widgets.Dropdown(options=COMMON, value="delivery_ratio", description="show:", layout=_WIDTH)
        self.where = widgets.Dropdown(options=[HERE, SPARK], description="run:", layout={"width": "14em"})
        self.run_button = widgets.Button(description="Sweep", icon="play", button_style="primary")
        self.stop_button = widgets.Button(description="Stop", icon="stop", disabled=True)
        self.bar = widgets.FloatProgress(min=0, max=1, layout={"visibility": "hidden"})
        self._said, self._chart = widgets.HTML(), widgets.HTML()
        self.path.observe(self._propose, "value")
        self.metric.observe(lambda _: self._draw_chart(), "value")
        self.run_button.on_click(lambda _: self.run())
        self.stop_button.on_click(lambda _: self.stop())
        buttons = widgets.HBox((self.run_button, self.stop_button, self.bar))
        above = (self.path, self.values, widgets.HBox((self.repetitions, self.where)), self.metric)
        super().__init__(value, (*above, buttons, self._said, self._chart))

    def draw(self, value: Scenario) -> None:
        """Offer what can be varied in this scenario."""
        names = tuple(table_of(value))
        if names != tuple(self.path.options):
            chosen = self.path.value
            self.path.options = names
            self.path.value = chosen if chosen in names else names[0]
            self._propose(None)

    def run(self) -> None:
        """Run what has not been run yet; a sentence beside it if the choices cannot be."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            sweep = self._prepared()
        except WorkbenchError as error:
            self._say(str(error), is_error=True)
            return
        self._stop.clear()
        self.run_button.disabled, self.stop_button.disabled = True, False
        self.bar.layout.visibility = "visible"
        runner = LocalRunner() if self.where.value == HERE else SparkRunner()
        self._thread = threading.Thread(target=self._work, args=(sweep, runner), name="lab-sweep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the sweep after the point under way; what is finished is kept."""
        self._stop.set()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the sweep's end; False if that took too long."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _prepared(self) -> Sweep:
        """The sweep of the choices: that of before, with what it has finished, if they are the same."""
        values = read_values(self.values.value)
        key = self.value.hash, self.path.value, tuple(values), self.repetitions.value
        if self._sweep is None or self._sweep[0] != key:
            over = {self.path.value: values}
            if self.path.value != "seed":
                over["seed"] = list(range(self.value.seed, self.value.seed + self.repetitions.value))
            self._sweep = key, Sweep(self.value, over)
            self.table = None
        return self._sweep[1]

    def _work(self, sweep: Sweep, runner: Any) -> None:
        watched = _Watched(runner, self._stop.is_set, lambda rows: self._more(sweep, rows))
        try:
            self.table = sweep.run(runner=watched, progress=False)
        except _Stopped:
            done = 0 if self.table is None else len(self.table)
            self._say(f"Stopped: {done} of {len(sweep)} points are kept; Sweep goes on.")
        except (WorkbenchError, OSError) as error:
            self._say(str(error), is_error=True)
        except Exception as error:  # Spark's, say
            self._say(f"the sweep ended with {type(error).__name__}: {str(error).partition(chr(10))[0]}", is_error=True)
        else:
            self._say(f"{len(sweep)} points.")
        self._draw_chart()
        self.run_button.disabled, self.stop_button.disabled = False, True
        self.bar.layout.visibility = "hidden"

    def _more(self, sweep: Sweep, rows: list[Row]) -> None:
        """Points are finished: show how far it is, and the chart so far."""
        points = sweep.points
        before = {} if self.table is None else {row.number: row for row in self.table.rows}
        done = before | {row.number: row for row in rows}
        numbers = sorted(done)
        self.table = SweepTable(sweep.plan, [points[n] for n in numbers], [done[n] for n in numbers])
        self.bar.value = len(done) / len(sweep)
        self._say(f"{len(done)} of {len(sweep)} points")
        self._draw_chart()

    def _draw_chart(self) -> None:
        if self.table is None or not len(self.table):
            return
        try:
            drawn = self.table.plot(self.path.value, self.metric.value)
            self._chart.value = drawn._repr_html_() if hasattr(drawn, "_repr_html_") else drawn.to_svg()
        except WorkbenchError as error:
            self._chart.value = f"<span class='wb-said'>{html.escape(str(error))}</span>"

    def _propose(self, _: Any) -> None:
        """Values that one may want to vary the parameter over."""
        self.values.value = ", ".join(str(one) for one in proposed(table_of(self.value)[self.path.value], self.value))

    def _say(self, sentence: str, is_error: bool = False) -> None:
        kind = "wb-error" if is_error else "wb-said"
        self._said.value = f"<span class='{kind}' role='status'>{html.escape(sentence)}</span>"


class _Watched:
    """A runner whose rows are told of as they come, and which can be stopped between them."""

    def __init__(self, runner: Any, is_stopping: Callable[[], bool], told: Callable[[list[Row]], None]) -> None:
        self._runner, self._is_stopping, self._told = runner, is_stopping, told

    def run(self, plan: Plan, numbers: Sequence[int], moving: Callable[[float], None]) -> Iterator[list[Row]]:
        """The runner's rows."""
        for rows in self._runner.run(plan, numbers, moving):
            self._told(rows)
            yield rows
            if self._is_stopping():
                raise _Stopped


def table_of(scenario: Scenario) -> dict[str, Parameter]:
    """What can be varied, by its path: the protocol's settings and the radio's that are numbers or choices."""
    found: dict[str, Parameter] = {
        f"protocol.{one.name}": one for one in scenario.protocol.parameters if _is_plain(one)
    }
    found |= {f"radio.{one.name}": one for one in PARAMETERS if _is_plain(one)}
    found["radio.loss"] = Parameter("loss", 0.0, 0.0, 1.0, "share", "every arc loses that share")
    found["duration_s"] = Parameter("duration_s", 60.0, 0.001, None, "s", "")
    found["seed"] = Parameter("seed", 1, None, None, "", "")
    return found


def _is_plain(parameter: Parameter) -> bool:
    return isinstance(parameter.minimum, tuple) or isinstance(parameter.default, (bool, int, float))


def proposed(parameter: Parameter, scenario: Scenario) -> list[Any]:
    """Some values of a parameter: all choices, or numbers over its usual range."""
    if isinstance(parameter.minimum, tuple):
        return list(parameter.minimum)
    if isinstance(parameter.default, bool):
        return [False, True]
    if parameter.name == "seed":
        return list(range(scenario.seed, scenario.seed + 10))
    if parameter.name == "loss":
        return [0.0, 0.1, 0.2, 0.3, 0.4]
    low, high = usual_range(parameter)
    numbers = [low + (high - low) * step / (_VALUES - 1) for step in range(_VALUES)]
    if isinstance(parameter.default, int):
        return sorted({round(number) for number in numbers})
    return sorted({float(f"{number:.3g}") for number in numbers})


def read_values(text: str) -> list[Any]:
    """The values of a text, numbers and words with commas between them; ScenarioError if there are none."""
    values = [_value(one.strip()) for one in text.split(",") if one.strip()]
    if not values:
        raise ScenarioError("there are no values to vary over; write some with commas between them, such as 1, 2, 5")
    return values


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text

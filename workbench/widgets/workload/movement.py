"""The form of a movement: a mobility model with its parameters, or a list of waypoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import mobility
from workbench.widgets.controls import TextField, button, error_html, quiet, words
from workbench.widgets.workload.items import MODEL_LABELS
from workbench.widgets.workload.new_items import default_movement
from workbench.widgets.workload.numbers import NumberField, number_text, parse_number
from workbench.widgets.workload.scenario_context import ScenarioContext
from workbench.widgets.workload.table import ItemField, fields_of_model

MOST_ROWS = 40  # waypoints that can be edited as text; more are only counted
_SPEED = ItemField("speed_m_s", None, "m/s", "speed to the next waypoint that is added on the map")


class MovementForm(widgets.VBox):
    """The form of the mobility model of a movement. ``on_edit()`` is called after each change by the user.

    ``speed``: the field for the speed at which nodes move to the waypoints that the user adds next. The item does not
    contain this speed.
    """

    error = traitlets.Unicode()

    def __init__(self, on_edit: Callable[[], None]) -> None:
        self._on_edit, self._is_drawing = on_edit, False
        self._context = ScenarioContext()
        self._at: tuple[int, ...] | str = ()
        self._model: Any = mobility.RandomWaypoint()
        self._known_models: dict[str, Any] = {}
        self.choice = widgets.Dropdown(
            options=[(MODEL_LABELS.get(kind, kind), kind) for kind in mobility.MODELS],
            tooltip="how the nodes move",
            layout={"width": "auto", "max_width": "18em"},
        )
        self.speed = NumberField(_SPEED)
        self.rows: list[WaypointRow] = []
        self.fields: dict[str, dict[str, NumberField]] = {}  # kind of a model: its fields, made when first shown
        self._rows_box, self._body = widgets.VBox(), widgets.VBox()
        self._add = button("+ Waypoint", "add a waypoint after the last one", self._add_waypoint)
        self._message, self._note = words(), words()
        super().__init__((self.choice, self._body, self._message))
        self.add_class("wb-movement")
        self.choice.observe(self._choose_model, "value")
        self.speed.observe(self._check_speed, "text")
        self.observe(self._show_error, "error")

    def show(self, model: Any, at: tuple[int, ...] | str, context: ScenarioContext) -> None:
        """Show a mobility model of the nodes ``at``; discard invalid input."""
        self._model, self._at = model, at
        self._known_models[model.kind] = model
        with quiet(self):
            self.error = ""
            if model.kind not in [kind for _, kind in self.choice.options]:
                self.choice.options = [*self.choice.options, (model.kind, model.kind)]
            self.choice.value = model.kind
            if isinstance(model, mobility.Waypoints):
                self._show_waypoints(model.points)
            else:
                self._show_parameters(model)
        self.fit(context)

    def fit(self, context: ScenarioContext) -> None:
        """Set the ranges of sliders, and an empty speed, to values that suit a network and a duration."""
        self._context = context
        if not self.speed.text:
            with quiet(self):
                self.speed.text = f"{max(0.1, 2 * context.extent_m / max(context.duration_s, 1.0)):.2g}"
        for field in (self.speed, *self.fields.get(self.choice.value, {}).values()):
            with quiet(self):
                field.fit(context)

    def forget(self) -> None:
        """Forget the parameters of models that were shown before.

        If the user selects such a model again, the form shows its defaults.
        """
        self._known_models = {}

    def plain(self) -> dict[str, Any]:
        """Return the input, even if it is invalid, as JSON values: a mobility model as in a scenario file."""
        kind = self.choice.value
        if kind == "waypoints":
            shown_points = [row.read() for row in self.rows]
            hidden_points = (
                [list(point) for point in self._model.points[len(self.rows) :]]
                if self._count_hidden_waypoints()
                else []
            )
            return {"kind": kind, "points": [*shown_points, *hidden_points]}
        values = {name: field.read() for name, field in self.fields[kind].items()}
        return {"kind": kind, **{name: value for name, value in values.items() if value is not None}}

    def text_fields(self) -> dict[str, TextField]:
        """Return {name: field} of the parameters that are shown."""
        return dict(self.fields.get(self.choice.value, {}))

    @property
    def speed_m_s(self) -> float:
        """The speed to the next waypoint in m/s: the number in the field, or 1 if it is invalid."""
        value = self.speed.read()
        return value if isinstance(value, float) and 0.001 <= value <= 1000 else 1.0

    # Waypoints

    def _count_hidden_waypoints(self) -> int:
        return max(0, len(self._model.points) - MOST_ROWS) if isinstance(self._model, mobility.Waypoints) else 0

    def _show_waypoints(self, points: tuple[tuple[float, float, float], ...]) -> None:
        shown_points = points[:MOST_ROWS]
        while len(self.rows) < len(shown_points):
            self.rows.append(WaypointRow(len(self.rows), self._report_edit, self._remove_waypoint))
        for row in self.rows[len(shown_points) :]:
            row.close_all()
        del self.rows[len(shown_points) :]
        for row, point in zip(self.rows, shown_points, strict=True):
            row.show(point, len(points) > 1)
        self._rows_box.children = tuple(self.rows)
        hidden_count = len(points) - len(shown_points)
        self._note.value = (
            "<span class='wb-unit'>"
            + (f"{hidden_count:,} more waypoints are not listed. " if hidden_count else "")
            + "Or select the node on the map and press Edit, then + Waypoint.</span>"
        )
        self._body.children = (_make_header(), self._rows_box, self._add, self.speed, self._note)

    def _add_waypoint(self) -> None:
        """Add a waypoint in the middle of the network, or in a corner of the network if the last one is in the middle.

        The time of the waypoint follows from the distance and the speed in the form.
        """
        model = self._model
        if not isinstance(model, mobility.Waypoints):
            return
        x0, y0, x1, y1 = self._context.box_m
        place = ((x0 + x1) / 2, (y0 + y1) / 2)
        if model.points[-1][1:] == place:
            place = (x0, y0)
        self.show(append_waypoint(model, place, self.speed_m_s), self._at, self._context)
        self._on_edit()

    def _remove_waypoint(self, index: int) -> None:
        points = self._model.points
        if len(points) > 1:
            self.show(mobility.Waypoints((*points[:index], *points[index + 1 :])), self._at, self._context)
            self._on_edit()

    # Other models

    def _show_parameters(self, model: Any) -> None:
        if model.kind not in self.fields:
            self.fields[model.kind] = {field.name: NumberField(field) for field in fields_of_model(type(model))}
            for number_field in self.fields[model.kind].values():
                number_field.observe(self._report_edit, "text")
        for name, number_field in self.fields[model.kind].items():
            number_field.show(getattr(model, name))
        self._body.children = tuple(self.fields[model.kind].values())

    # Edits

    def _choose_model(self, change: Any) -> None:
        if self._is_drawing:
            return
        model = self._known_models.get(change.new) or default_movement(change.new, self._at, self._context)
        self.show(model, self._at, self._context)
        self._on_edit()

    def _report_edit(self, _: Any = None) -> None:
        if not self._is_drawing:
            self._on_edit()

    def _check_speed(self, _: Any) -> None:
        value = self.speed.read()
        is_valid = isinstance(value, float) and 0.001 <= value <= 1000
        self.speed.error = (
            "" if is_valid else f"{self.speed.text!r:.60} is not valid; it must be a number from 0.001 to 1000 m/s"
        )

    def _show_error(self, change: Any) -> None:
        self._message.value = error_html(change.new)


class WaypointRow(widgets.HBox):
    """The time and the position of one waypoint, with a button that removes it."""

    def __init__(self, index: int, on_edit: Callable[[Any], None], on_remove: Callable[[int], None]) -> None:
        names = (("time_s", "time in s"), ("x_m", "x in m"), ("y_m", "y in m"))
        self._is_removable = True
        self.boxes = tuple(
            widgets.Text(continuous_update=False, tooltip=f"waypoint {index + 1}: {meaning}", layout={"width": "5.6em"})
            for _, meaning in names
        )
        self._remove = button("✕", f"remove waypoint {index + 1}", lambda: on_remove(index))
        super().__init__((*self.boxes, self._remove))
        self.add_class("wb-waypoint")
        for box in self.boxes:
            box.observe(on_edit, "value")

    def show(self, point: tuple[float, float, float], is_removable: bool) -> None:
        """Show a waypoint (time_s, x_m, y_m)."""
        for box, value in zip(self.boxes, point, strict=True):
            box.value = number_text(value)
        self._remove.disabled = not is_removable

    def read(self) -> list[Any]:
        """Return the input as [time_s, x_m, y_m]; a text that is not a number stays a text."""
        return [parse_number(box.value) for box in self.boxes]

    def close_all(self) -> None:
        """Close the row and its controls."""
        for widget in (*self.boxes, self._remove, self):
            widget.close()


def _make_header() -> widgets.HTML:
    return words(
        "<span class='wb-unit wb-waypoint-names'><span>time, s</span><span>x, m</span><span>y, m</span></span>"
    )


def append_waypoint(
    model: mobility.Waypoints, place_m: tuple[float, float], speed_m_s: float, time_s: float | None = None
) -> mobility.Waypoints:
    """Return a path with one more waypoint: at ``place_m``, reached from the last waypoint at ``speed_m_s``.

    If ``time_s`` is later than the time of the last waypoint, the nodes stay at the last waypoint until ``time_s``.
    """
    last_s, x_m, y_m = model.points[-1]
    points = model.points
    if time_s is not None and time_s > last_s:
        points, last_s = (*points, (time_s, x_m, y_m)), time_s
    distance_m = ((place_m[0] - x_m) ** 2 + (place_m[1] - y_m) ** 2) ** 0.5
    arrival_s = round(last_s + max(distance_m / speed_m_s, 0.1), 1)
    return mobility.Waypoints((*points, (arrival_s, *(round(metres, 2) for metres in place_m))))

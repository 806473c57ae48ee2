"""Fields of forms: a control for each parameter of a table, with its unit, the reason for its default, and an error.

All controls are generated from a `workbench.protocols.parameter.Parameter`, which becomes a checkbox, a menu, a slider
with a number beside it, or a text box. Invalid input stays in its field with an error beside it, while the field's
value remains the last valid one.
"""

from __future__ import annotations

import ast
import html
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.parameter import Parameter, check_parameter
from workbench.widgets.controls import below, button, error_html, show_below, words
from workbench.widgets.panel import close_all

STEPS = 200  # steps of a slider
DECADES = 2  # a range of at least this many decades gets a logarithmic slider
_WIDE = {"width": "auto"}  # a field is a grid: lab.css sets the widths of its columns


class Field(widgets.HBox):
    """A control for one parameter. ``value``: the last valid value; ``error``: why the present input is invalid, or "".

    check: a function that returns the value to store or raises WorkbenchError; by default `check_parameter`.
    is_explained: whether the reason for the default is shown below the field.
    is_offered: whether the field has a button that selects this parameter for a sweep.
    vary_count: how often this button was pressed.
    """

    value = traitlets.Any()
    error = traitlets.Unicode()
    is_explained = traitlets.Bool()
    is_offered = traitlets.Bool()
    vary_count = traitlets.Int()

    def __init__(self, parameter: Parameter, value: Any = None, check: Callable[[Any], Any] | None = None) -> None:
        self.parameter = parameter
        self._check = check or partial(check_parameter, "this", parameter)
        self._is_setting = False
        self._controls, self._read, self._write = _make_control(parameter)
        self._message, self._reason = below(), below()
        self._vary: Any = None
        name_label = words(_label_html(parameter), width="auto")
        unit_label = words(f"<span class='wb-unit'>{html.escape(_unit_text(parameter))}</span>")
        super().__init__((name_label, *self._controls, unit_label, self._message, self._reason))
        self.add_class("wb-field").add_class("wb-row")
        for control in self._controls:
            control.tooltip = f"{parameter.name}: {parameter.reason}"
            control.observe(self._apply_input, "value")
        self.observe(self._write_value, "value")
        self.observe(self._show_error, "error")
        self.observe(self._show_reason, "is_explained")
        self.observe(self._show_vary_button, "is_offered")
        self.value = parameter.default if value is None else value

    def close(self) -> None:
        """Close the field and its controls."""
        close_all(self)

    def show(self, value: Any) -> None:
        """Set the field's value and show it in place of the present input, which may be invalid."""
        if self.value == value:
            self._write_control(value)
        self.value = value

    def _apply_input(self, change: Any) -> None:
        if self._is_setting:
            return
        try:
            new_value = self._check(self._read(change.owner))
        except WorkbenchError as error:
            self.error = sentence(error)
            return
        self.show(new_value)

    def _write_value(self, change: Any) -> None:
        self._write_control(change.new)

    def _write_control(self, value: Any) -> None:
        self.error = ""
        self._is_setting = True
        try:
            self._write(value)
        finally:
            self._is_setting = False

    def _show_error(self, change: Any) -> None:
        show_below(self._message, error_html(change.new))

    def _show_reason(self, change: Any) -> None:
        reason = html.escape(reason_of(self.parameter))
        show_below(self._reason, f"<span class='wb-said'>{reason}</span>" if change.new else "")

    def _show_vary_button(self, change: Any) -> None:
        """Show or hide the button that selects the parameter for a sweep; make the button when it is first shown."""
        if change.new and self._vary is None:
            self._vary = button(
                f"vary {self.parameter.name}",
                "vary it in a sweep; the other parameters stay as they are",
                self._count_vary_press,
            )
            self._vary.add_class("wb-below")
            self.children = (*self.children, self._vary)  # type: ignore[has-type]
        self._vary.layout.display = None if change.new else "none"

    def _count_vary_press(self) -> None:
        self.vary_count += 1


def fields_of(table: Iterable[Parameter], values: Mapping[str, Any], owner: str) -> dict[str, Field]:
    """Return {name of a parameter: its field} for the parameters in ``table``.

    ``values``: {name: value to show}. ``owner``: name of the object with these parameters, for error messages.
    """
    return {
        parameter.name: Field(parameter, values[parameter.name], partial(check_parameter, owner, parameter))
        for parameter in table
    }


def why_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """Return a toggle button that shows and hides, below each field, the reason for its default.

    ``fields()`` returns the fields.
    """
    toggle_button = widgets.ToggleButton(description="? Why", layout={"width": "auto"})
    toggle_button.tooltip = "Show the reason for each default"

    def explain(change: Any) -> None:
        for field in fields():
            field.is_explained = change.new

    toggle_button.observe(explain, "value")
    return toggle_button


def vary_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """Return a toggle button that shows and hides the sweep buttons of fields.

    A field whose parameter a sweep can vary has such a button, which selects the parameter for a sweep. ``fields()``
    returns the fields.
    """
    toggle_button = widgets.ToggleButton(description="↔ Vary", layout={"width": "auto"})
    toggle_button.tooltip = "Choose what a sweep varies: each field gets a button"

    def offer(change: Any) -> None:
        for field in fields():
            field.is_offered = change.new and is_plain(field.parameter)

    toggle_button.observe(offer, "value")
    return toggle_button


def is_plain(parameter: Parameter) -> bool:
    """Return whether a parameter is a number, a choice from a menu, or a yes or no, so that a sweep can vary it."""
    return isinstance(parameter.minimum, tuple) or isinstance(parameter.default, (bool, int, float))


def reason_of(parameter: Parameter) -> str:
    """Return a text with the default of a parameter, its range, and the reason for the default."""
    if isinstance(parameter.minimum, tuple) or isinstance(parameter.default, bool):
        return f"{_choice_label(parameter.default)} unless set: {parameter.reason}"
    minimum_text, maximum_text = (
        "" if bound is None else f"{bound:,.12g}" for bound in (parameter.minimum, parameter.maximum)
    )
    range_text = (
        f", {minimum_text} to {maximum_text}"
        if minimum_text and maximum_text
        else f", from {minimum_text}"
        if minimum_text
        else ""
    )
    default = parameter.default
    default_items = default if isinstance(default, tuple) else (default,)
    default_text = (
        ", ".join(f"{item:.12g}" if isinstance(item, float) else str(item) for item in default_items) or "none"
    )
    return f"{default_text} unless set{range_text}: {parameter.reason}"


def _label_html(parameter: Parameter) -> str:
    reason = html.escape(parameter.reason, quote=True)
    name = html.escape(parameter.name).replace("_", "_<wbr>")  # a long name continues on the next line
    return f"<span title='{reason}'>{name}</span>"


def _unit_text(parameter: Parameter) -> str:
    return "" if isinstance(parameter.minimum, tuple) else parameter.unit or ""


def sentence(error: Exception) -> str:
    """Return an error message without the parameter's name, because the field beside the message shows this name."""
    message = str(error)
    return message.partition(": ")[2] or message


# Controls: (widgets, read(the widget that changed) -> value, write(value))

_Control = tuple[tuple[widgets.Widget, ...], Callable[[Any], Any], Callable[[Any], None]]


def _make_control(parameter: Parameter) -> _Control:
    default = parameter.default
    if isinstance(default, bool):
        return _make_single_control(widgets.Checkbox(indent=False, layout=_WIDE))
    if isinstance(parameter.minimum, tuple):
        choices = [(_choice_label(choice), choice) for choice in parameter.minimum]
        return _make_single_control(widgets.Dropdown(options=choices, value=default, layout=_WIDE))
    if isinstance(default, (int, float)):
        return _make_number_control(parameter)
    if isinstance(default, tuple):
        return _make_tuple_control()
    return _make_single_control(widgets.Text(continuous_update=False, layout=_WIDE))


def _make_single_control(control: Any) -> _Control:
    def write(value: Any) -> None:
        control.value = value

    return (control,), lambda changed: changed.value, write


def _choice_label(choice: Any) -> str:
    return str(choice) if not isinstance(choice, bool) else ("yes" if choice else "no")


def _make_number_control(parameter: Parameter) -> _Control:
    """Return (widgets, read, write) for a number: a slider over its usual range, and a text box for its whole range.

    ``read(widget)`` returns the value after the user changed this widget; ``write(value)`` shows a value.
    """
    is_whole = isinstance(parameter.default, int)
    slider, to_slider, from_slider = _make_slider(parameter, is_whole)
    text_box = widgets.Text(continuous_update=False, layout=_WIDE)
    last_written: dict[str, Any] = {}

    def read(changed: Any) -> Any:
        if changed is text_box:
            return _parse_number(text_box.value, is_whole)
        # The browser moves a slider to its nearest step and sends that value back; it is not an input.
        is_echo = abs(slider.value - last_written["position"]) < slider.step / 4
        return last_written["value"] if is_echo else from_slider(slider.value)

    def write(value: Any) -> None:
        text_box.value = f"{value:.12g}" if isinstance(value, float) else str(value)
        steps = round((to_slider(value) - slider.min) / slider.step)
        slider.value = min(slider.max, max(slider.min, slider.min + steps * slider.step))
        last_written.update(value=value, position=slider.value)

    return (slider, text_box), read, write


def _parse_number(text: str, whole: bool) -> int | float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ParameterError(f"{text!r:.40} is not {kind}") from None


def _make_slider(parameter: Parameter, whole: bool) -> tuple[Any, Callable[[Any], float], Callable[[float], Any]]:
    """Return (slider, function from a value to the slider's position, function from a position to a value).

    If the range spans many powers of ten, positions are logarithms of values. ``whole``: whether the values are whole
    numbers.
    """
    low, high = usual_range(parameter)
    if low > 0 and math.log10(high / low) >= DECADES:
        step = math.log10(high / low) / STEPS
        slider = widgets.FloatSlider(min=math.log10(low), max=math.log10(high), step=step, readout=False, layout=_WIDE)
        slider.add_class("wb-logarithm")  # style_sheet.js
        return slider, lambda value: math.log10(max(value, low)), lambda position: _round_value(10**position, whole)
    if whole:
        return widgets.IntSlider(min=int(low), max=int(high), readout=False, layout=_WIDE), lambda v: v, int
    slider = widgets.FloatSlider(min=low, max=high, step=(high - low) / STEPS, readout=False, layout=_WIDE)
    return slider, lambda value: value, lambda position: _round_value(position, whole)


def _round_value(value: float, whole: bool) -> int | float:
    return round(value) if whole else float(f"{value:.3g}")


def usual_range(parameter: Parameter) -> tuple[float, float]:
    """Return the range of a parameter's slider as (lowest value, highest value).

    Let d be ten times the absolute value of the default, or 10 if the default is 0. An end of the parameter's range
    that is not limited becomes -d or d. The slider has this range if its ends are at most 100 apart, or at most 1000 if
    the default is 0. Otherwise the range is reduced: it ends at about d. It begins at a tenth of the default if the
    parameter must be positive, else at 0, or at -d if the default is negative.
    """
    default, lowest, highest = float(parameter.default), parameter.minimum, parameter.maximum
    largest_value = 10 * abs(default) or 10.0
    lowest = -largest_value if lowest is None else float(lowest)
    highest = largest_value if highest is None else float(highest)
    if highest - lowest <= 100 or (default == 0 and highest - lowest <= 1000):
        return lowest, highest
    return max(lowest, min(0.0, 10 * default) if lowest <= 0 else default / 10), min(
        highest, max(largest_value, lowest + 10)
    )


def _make_tuple_control() -> _Control:
    """Return (widgets, read, write) for a tuple: a text box with values separated by commas, such as TEMP, HUMIDITY.

    ``read(widget)`` returns the value after the user changed the text box; ``write(value)`` shows a value.
    """
    text_box = widgets.Text(continuous_update=False, layout=_WIDE)

    def read(_: Any) -> tuple[Any, ...]:
        return tuple(literal(item.strip()) for item in text_box.value.split(",") if item.strip())

    def write(value: Any) -> None:
        text_box.value = ", ".join(str(item) for item in value)

    return (text_box,), read, write


def literal(text: str) -> Any:
    """Return the value of a Python number, quoted text, True or False; return any other text unchanged."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):  # 1e999
        return text
    return value if isinstance(value, (int, float, str)) else text

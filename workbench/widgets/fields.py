"""Fields of forms: a control for each parameter of a table, with its unit, its reason, and an error.

All controls are generated: a parameter (`workbench.protocols.parameter.Parameter`) becomes a checkbox, a choice, a
slider with a number beside it, or a text box. An invalid input stays in its field with an error beside it; the field's
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

STEPS = 200  # of a slider
DECADES = 2  # a range of at least this many decades gets a logarithmic slider
_WIDE = {"width": "auto"}  # a field is a grid: lab.css sets the widths of its columns


class Field(widgets.HBox):
    """One parameter as a control. ``value``: the last valid value; ``error``: the reason why the input is invalid.

    ``check(value)`` returns the value to store or raises WorkbenchError; by default it follows the table.
    ``is_explained``: whether the reason of the default is shown below. ``is_offered``: whether a button is shown that
    selects this parameter for a sweep; ``vary_count`` counts how often it was pressed.
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
        self._controls, self._read, self._write = _control(parameter)
        self._message, self._reason = below(), below()
        self._vary: Any = None
        name = words(_label(parameter), width="auto")
        unit = words(f"<span class='wb-unit'>{html.escape(_unit(parameter))}</span>")
        super().__init__((name, *self._controls, unit, self._message, self._reason))
        self.add_class("wb-field").add_class("wb-row")
        for control in self._controls:
            control.tooltip = f"{parameter.name}: {parameter.reason}"
            control.observe(self._edited, "value")
        self.observe(self._shown, "value")
        self.observe(self._show_error, "error")
        self.observe(self._explain, "is_explained")
        self.observe(self._offer, "is_offered")
        self.value = parameter.default if value is None else value

    def close(self) -> None:
        """Close the field with its controls."""
        close_all(self)

    def show(self, value: Any) -> None:
        """Show a value, also if it equals the field's value while the input differs."""
        if self.value == value:
            self._set(value)
        self.value = value

    def _edited(self, change: Any) -> None:
        if self._is_setting:
            return
        try:
            new = self._check(self._read(change.owner))
        except WorkbenchError as error:
            self.error = sentence(error)
            return
        self.show(new)

    def _shown(self, change: Any) -> None:
        self._set(change.new)

    def _set(self, value: Any) -> None:
        self.error = ""
        self._is_setting = True
        try:
            self._write(value)
        finally:
            self._is_setting = False

    def _show_error(self, change: Any) -> None:
        show_below(self._message, error_html(change.new))

    def _explain(self, change: Any) -> None:
        reason = html.escape(reason_of(self.parameter))
        show_below(self._reason, f"<span class='wb-said'>{reason}</span>" if change.new else "")

    def _offer(self, change: Any) -> None:
        """Show or hide the button; it is created when first shown, since most fields are never varied."""
        if change.new and self._vary is None:
            self._vary = button(f"vary {self.parameter.name}", "in a sweep: the others stay as they are", self._ask)
            self._vary.add_class("wb-below")
            self.children = (*self.children, self._vary)  # type: ignore[has-type]
        self._vary.layout.display = None if change.new else "none"

    def _ask(self) -> None:
        self.vary_count += 1


def fields_of(table: Iterable[Parameter], values: Mapping[str, Any], owner: str) -> dict[str, Field]:
    """Return a field for each parameter of a table, by name, with these values."""
    return {
        parameter.name: Field(parameter, values[parameter.name], partial(check_parameter, owner, parameter))
        for parameter in table
    }


def why_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """Return a button that shows and hides the reasons below the fields."""
    result = widgets.ToggleButton(description="Why", icon="question-circle", layout={"width": "auto"})
    result.tooltip = "Why each default is what it is"

    def explain(change: Any) -> None:
        for field in fields():
            field.is_explained = change.new

    result.observe(explain, "value")
    return result


def vary_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """Return a button that lets the user choose a field with a number or a choice for a sweep."""
    result = widgets.ToggleButton(description="Vary", icon="sliders", layout={"width": "auto"})
    result.tooltip = "Choose what a sweep varies: each field gets a button"

    def offer(change: Any) -> None:
        for field in fields():
            field.is_offered = change.new and is_plain(field.parameter)

    result.observe(offer, "value")
    return result


def is_plain(parameter: Parameter) -> bool:
    """Return whether a parameter is a number or a choice, so that a sweep can vary it."""
    return isinstance(parameter.minimum, tuple) or isinstance(parameter.default, (bool, int, float))


def reason_of(parameter: Parameter) -> str:
    """Return the default, the range and the reason of a parameter as text."""
    if isinstance(parameter.minimum, tuple) or isinstance(parameter.default, bool):
        return f"{_shown_choice(parameter.default)} unless set: {parameter.reason}"
    low, high = ("" if bound is None else f"{bound:,.12g}" for bound in (parameter.minimum, parameter.maximum))
    span = f", {low} to {high}" if low and high else f", from {low}" if low else ""
    default = parameter.default
    items = default if isinstance(default, tuple) else (default,)
    text = ", ".join(f"{item:.12g}" if isinstance(item, float) else str(item) for item in items) or "none"
    return f"{text} unless set{span}: {parameter.reason}"


def _label(parameter: Parameter) -> str:
    reason = html.escape(parameter.reason, quote=True)
    return f"<span title='{reason}'>{html.escape(parameter.name)}</span>"


def _unit(parameter: Parameter) -> str:
    return "" if isinstance(parameter.minimum, tuple) else parameter.unit or ""


def sentence(error: Exception) -> str:
    """Return the message of an error without the name in front, since the field is beside it."""
    message = str(error)
    return message.partition(": ")[2] or message


# Controls: (widgets, read(the widget that changed) -> value, write(value))

_Control = tuple[tuple[widgets.Widget, ...], Callable[[Any], Any], Callable[[Any], None]]


def _control(parameter: Parameter) -> _Control:
    default = parameter.default
    if isinstance(default, bool):
        return _single(widgets.Checkbox(indent=False, layout=_WIDE))
    if isinstance(parameter.minimum, tuple):
        choices = [(_shown_choice(choice), choice) for choice in parameter.minimum]
        return _single(widgets.Dropdown(options=choices, value=default, layout=_WIDE))
    if isinstance(default, (int, float)):
        return _number(parameter)
    if isinstance(default, tuple):
        return _list()
    return _single(widgets.Text(continuous_update=False, layout=_WIDE))


def _single(control: Any) -> _Control:
    def write(value: Any) -> None:
        control.value = value

    return (control,), lambda changed: changed.value, write


def _shown_choice(choice: Any) -> str:
    return str(choice) if not isinstance(choice, bool) else ("yes" if choice else "no")


def _number(parameter: Parameter) -> _Control:
    """Return a slider over the usual range, and a text box that accepts the whole range of the table."""
    whole = isinstance(parameter.default, int)
    slider, to_slider, from_slider = _slider(parameter, whole)
    text = widgets.Text(continuous_update=False, layout=_WIDE)
    shown: dict[str, Any] = {}

    def read(changed: Any) -> Any:
        if changed is text:
            return _as_number(text.value, whole)
        # The browser moves a slider to its nearest step and sends that value back; it is not an input.
        is_echo = abs(slider.value - shown["place"]) < slider.step / 4
        return shown["value"] if is_echo else from_slider(slider.value)

    def write(value: Any) -> None:
        text.value = f"{value:.12g}" if isinstance(value, float) else str(value)
        steps = round((to_slider(value) - slider.min) / slider.step)
        slider.value = min(slider.max, max(slider.min, slider.min + steps * slider.step))
        shown.update(value=value, place=slider.value)

    return (slider, text), read, write


def _as_number(text: str, whole: bool) -> int | float:
    try:
        return int(text) if whole else float(text)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ParameterError(f"{text!r:.40} is not {kind}") from None


def _slider(parameter: Parameter, whole: bool) -> tuple[Any, Callable[[Any], float], Callable[[float], Any]]:
    """Return (slider, function from value to position, function from position to value)."""
    low, high = usual_range(parameter)
    if low > 0 and math.log10(high / low) >= DECADES:
        step = math.log10(high / low) / STEPS
        slider = widgets.FloatSlider(min=math.log10(low), max=math.log10(high), step=step, readout=False, layout=_WIDE)
        slider.add_class("wb-logarithm")  # style_sheet.js
        return slider, lambda value: math.log10(max(value, low)), lambda position: _rounded(10**position, whole)
    if whole:
        return widgets.IntSlider(min=int(low), max=int(high), readout=False, layout=_WIDE), lambda v: v, int
    slider = widgets.FloatSlider(min=low, max=high, step=(high - low) / STEPS, readout=False, layout=_WIDE)
    return slider, lambda value: value, lambda position: _rounded(position, whole)


def _rounded(value: float, whole: bool) -> int | float:
    """Round a slider's value to three digits."""
    return round(value) if whole else float(f"{value:.3g}")


def usual_range(parameter: Parameter) -> tuple[float, float]:
    """Return the range of a slider: the table's range or, if that is wide, about a tenth to ten times the default."""
    default, low, high = float(parameter.default), parameter.minimum, parameter.maximum
    widest = 10 * abs(default) or 10.0
    low = -widest if low is None else float(low)
    high = widest if high is None else float(high)
    if high - low <= 100 or (default == 0 and high - low <= 1000):
        return low, high
    return max(low, min(0.0, 10 * default) if low <= 0 else default / 10), min(high, max(widest, low + 10))


def _list() -> _Control:
    """Return a text box for a tuple: 1, 2, 3 or TEMP, HUMIDITY."""
    text = widgets.Text(continuous_update=False, layout=_WIDE)

    def read(_: Any) -> tuple[Any, ...]:
        return tuple(literal(item.strip()) for item in text.value.split(",") if item.strip())

    def write(value: Any) -> None:
        text.value = ", ".join(str(item) for item in value)

    return (text,), read, write


def literal(text: str) -> Any:
    """Return a number, a quoted text, True or False as in Python; any other text unchanged."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if isinstance(value, float) and not math.isfinite(value):  # 1e999
        return text
    return value if isinstance(value, (int, float, str)) else text

"""Fields of forms: a control for each line of a table of parameters, with its unit, its reason, and what is wrong.

Nobody writes a slider by hand. A line of the table (`workbench.protocols.parameter.Parameter`) says which control it
gets: a box to tick, a choice, a slider with a number beside it, or a text. What was put in and cannot be is left where
it is, with a sentence beside it; the field's value stays the last that could be.
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
from workbench.widgets.controls import below, button, error_html, tell_below, words
from workbench.widgets.part import close_all

STEPS = 200  # of a slider
DECADES = 2  # a slider over as many is logarithmic
_AS_ROOM = {"width": "auto"}  # a field is a grid: lab.css says how wide its columns are


class Field(widgets.HBox):
    """One parameter as a control. ``value``: the last that was right; ``error``: what is wrong with what stands there.

    ``check(value)`` returns the value as it should be or raises WorkbenchError; by default it goes by the table.
    ``is_explained``: whether the reason of the default stands below. ``is_offered``: whether a button stands below that
    says that this one is to be varied, in a sweep; ``asked`` counts how often it was pressed.
    """

    value = traitlets.Any()
    error = traitlets.Unicode()
    is_explained = traitlets.Bool()
    is_offered = traitlets.Bool()
    asked = traitlets.Int()

    def __init__(self, parameter: Parameter, value: Any = None, check: Callable[[Any], Any] | None = None) -> None:
        self.parameter = parameter
        self._check = check or partial(check_parameter, "this", parameter)
        self._is_setting = False
        self._controls, self._read, self._write = _control(parameter)
        self._said, self._reason = below(), below()
        self._vary: Any = None
        name = words(_label(parameter), width="auto")
        unit = words(f"<span class='wb-unit'>{html.escape(_unit(parameter))}</span>")
        super().__init__((name, *self._controls, unit, self._said, self._reason))
        self.add_class("wb-field").add_class("wb-row")
        for control in self._controls:
            control.tooltip = f"{parameter.name}: {parameter.reason}"
            control.observe(self._edited, "value")
        self.observe(self._shown, "value")
        self.observe(self._told, "error")
        self.observe(self._explain, "is_explained")
        self.observe(self._offer, "is_offered")
        self.value = parameter.default if value is None else value

    def close(self) -> None:
        """Close it with its controls."""
        close_all(self)

    def show(self, value: Any) -> None:
        """Show a value, also where it is the field's and something else was put in."""
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

    def _told(self, change: Any) -> None:
        tell_below(self._said, error_html(change.new))

    def _explain(self, change: Any) -> None:
        reason = html.escape(reason_of(self.parameter))
        tell_below(self._reason, f"<span class='wb-said'>{reason}</span>" if change.new else "")

    def _offer(self, change: Any) -> None:
        """The button is made when it is shown first: most fields are never varied."""
        if change.new and self._vary is None:
            self._vary = button(f"vary {self.parameter.name}", "in a sweep: the others stay as they are", self._ask)
            self._vary.add_class("wb-below")
            self.children = (*self.children, self._vary)  # type: ignore[has-type]
        self._vary.layout.display = None if change.new else "none"

    def _ask(self) -> None:
        self.asked += 1


def fields_of(table: Iterable[Parameter], values: Mapping[str, Any], owner: str) -> dict[str, Field]:
    """A field for each line of a table, by name, with these values."""
    return {one.name: Field(one, values[one.name], partial(check_parameter, owner, one)) for one in table}


def why_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """A button that shows the reasons of fields below them, and hides them again."""
    made = widgets.ToggleButton(description="Why", icon="question-circle", layout={"width": "auto"})
    made.tooltip = "Why each default is what it is"

    def explain(change: Any) -> None:
        for field in fields():
            field.is_explained = change.new

    made.observe(explain, "value")
    return made


def vary_button(fields: Callable[[], Iterable[Field]]) -> widgets.ToggleButton:
    """A button that has each field of a number or a choice offer to be varied, until one was taken."""
    made = widgets.ToggleButton(description="Vary", icon="sliders", layout={"width": "auto"})
    made.tooltip = "Choose what a sweep varies: each field gets a button"

    def offer(change: Any) -> None:
        for field in fields():
            field.is_offered = change.new and is_plain(field.parameter)

    made.observe(offer, "value")
    return made


def is_plain(parameter: Parameter) -> bool:
    """Whether a parameter is a number or a choice, which can be varied."""
    return isinstance(parameter.minimum, tuple) or isinstance(parameter.default, (bool, int, float))


def reason_of(parameter: Parameter) -> str:
    """What a reader is told of a parameter: its default, its range, and the reason."""
    if isinstance(parameter.minimum, tuple) or isinstance(parameter.default, bool):
        return f"{_shown_choice(parameter.default)} unless set: {parameter.reason}"
    low, high = ("" if one is None else f"{one:,.12g}" for one in (parameter.minimum, parameter.maximum))
    span = f", {low} to {high}" if low and high else f", from {low}" if low else ""
    default = parameter.default
    items = default if isinstance(default, tuple) else (default,)
    text = ", ".join(f"{one:.12g}" if isinstance(one, float) else str(one) for one in items) or "none"
    return f"{text} unless set{span}: {parameter.reason}"


def _label(parameter: Parameter) -> str:
    reason = html.escape(parameter.reason, quote=True)
    return f"<span title='{reason}'>{html.escape(parameter.name)}</span>"


def _unit(parameter: Parameter) -> str:
    return "" if isinstance(parameter.minimum, tuple) else parameter.unit or ""


def sentence(error: Exception) -> str:
    """What an error says, without whose it is: the field is beside it."""
    said = str(error)
    return said.partition(": ")[2] or said


# Controls: (widgets, read(the one that changed) -> value, write(value))

_Control = tuple[tuple[widgets.Widget, ...], Callable[[Any], Any], Callable[[Any], None]]


def _control(parameter: Parameter) -> _Control:
    default = parameter.default
    if isinstance(default, bool):
        return _single(widgets.Checkbox(indent=False, layout=_AS_ROOM))
    if isinstance(parameter.minimum, tuple):
        choices = [(_shown_choice(one), one) for one in parameter.minimum]
        return _single(widgets.Dropdown(options=choices, value=default, layout=_AS_ROOM))
    if isinstance(default, (int, float)):
        return _number(parameter)
    if isinstance(default, tuple):
        return _list()
    return _single(widgets.Text(continuous_update=False, layout=_AS_ROOM))


def _single(control: Any) -> _Control:
    def write(value: Any) -> None:
        control.value = value

    return (control,), lambda changed: changed.value, write


def _shown_choice(one: Any) -> str:
    return str(one) if not isinstance(one, bool) else ("yes" if one else "no")


def _number(parameter: Parameter) -> _Control:
    """A slider over the usual range, and a number that takes all that the table allows."""
    whole = isinstance(parameter.default, int)
    slider, to_slider, from_slider = _slider(parameter, whole)
    text = widgets.Text(continuous_update=False, layout=_AS_ROOM)
    shown: dict[str, Any] = {}

    def read(changed: Any) -> Any:
        if changed is text:
            return _as_number(text.value, whole)
        # The browser puts a slider on its nearest step and sends that back: it is no wish of the user.
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
    """(slider, where a value is on it, which value a place on it is)."""
    low, high = usual_range(parameter)
    if low > 0 and math.log10(high / low) >= DECADES:
        step = math.log10(high / low) / STEPS
        slider = widgets.FloatSlider(
            min=math.log10(low), max=math.log10(high), step=step, readout=False, layout=_AS_ROOM
        )
        slider.add_class("wb-logarithm")  # skin.js
        return slider, lambda value: math.log10(max(value, low)), lambda place: _rounded(10**place, whole)
    if whole:
        return widgets.IntSlider(min=int(low), max=int(high), readout=False, layout=_AS_ROOM), lambda v: v, int
    slider = widgets.FloatSlider(min=low, max=high, step=(high - low) / STEPS, readout=False, layout=_AS_ROOM)
    return slider, lambda value: value, lambda place: _rounded(place, whole)


def _rounded(value: float, whole: bool) -> int | float:
    """Three digits are enough for a hand on a slider."""
    return round(value) if whole else float(f"{value:.3g}")


def usual_range(parameter: Parameter) -> tuple[float, float]:
    """Where a slider moves: the table's range; where that is wide, up to ten times the default and down to a tenth."""
    default, low, high = float(parameter.default), parameter.minimum, parameter.maximum
    widest = 10 * abs(default) or 10.0
    low = -widest if low is None else float(low)
    high = widest if high is None else float(high)
    if high - low <= 100 or (default == 0 and high - low <= 1000):
        return low, high
    return max(low, min(0.0, 10 * default) if low <= 0 else default / 10), min(high, max(widest, low + 10))


def _list() -> _Control:
    """A tuple as the user writes it: 1, 2, 3 or TEMP, HUMIDITY."""
    text = widgets.Text(continuous_update=False, layout=_AS_ROOM)

    def read(_: Any) -> tuple[Any, ...]:
        return tuple(literal(item.strip()) for item in text.value.split(",") if item.strip())

    def write(value: Any) -> None:
        text.value = ", ".join(str(item) for item in value)

    return (text,), read, write


def literal(text: str) -> Any:
    """A number, a text in quotes, True or False as Python writes it; any other text as it stands."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    if isinstance(found, float) and not math.isfinite(found):  # 1e999
        return text
    return found if isinstance(found, (int, float, str)) else text

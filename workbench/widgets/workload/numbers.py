"""A field for a number that may be empty: a slider over its usual range, and a text box for any value."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import ipywidgets as widgets

from workbench.widgets.controls import TextField
from workbench.widgets.panel import shared
from workbench.widgets.workload.scenario_context import ScenarioContext
from workbench.widgets.workload.table import ItemField

_STEPS = 200


class NumberField(TextField):
    """A text box with its label, a slider and a unit. ``text``: its content; "" stands for a value that is left out.

    The text may be invalid; the form that has the field checks it and sets ``error``.
    """

    def __init__(self, field: ItemField) -> None:
        super().__init__(field.name, field.unit, field.reason, field.placeholder)
        self.field = field
        self._is_moving = False
        self._slider_position = 0.0
        self._slider = widgets.FloatSlider(
            min=0.0,
            max=1.0,
            readout=False,
            tooltip=f"{field.name}: {field.reason}",
            layout=shared("layout of sliders", partial(widgets.Layout, width="auto")),
        )
        label, *others = self.children  # type: ignore[has-type]
        self.children = (label, self._slider, *others)
        self._slider.observe(self._apply_slider_position, "value")
        self.observe(self._move_slider, "text")

    def fit(self, context: ScenarioContext) -> None:
        """Set the range of the slider for a network and a duration."""
        low, high = self.field.usual_range(context)
        step = 1.0 if self.field.is_whole else _round_step((high - low) / _STEPS)
        if (low, high, step) != (self._slider.min, self._slider.max, self._slider.step):
            self._is_moving = True
            try:
                with self._slider.hold_sync():
                    self._slider.min = min(low, self._slider.max)
                    self._slider.max, self._slider.min, self._slider.step = high, low, step
            finally:
                self._is_moving = False
        self._move_slider()

    def show(self, value: Any) -> None:
        """Show a value; None is an empty text."""
        self.text = "" if value is None else value if isinstance(value, str) else number_text(value)

    def read(self) -> Any:
        """Return the number in the text box, the text itself if it is not a number, or None if it is empty."""
        text = self.text.strip()
        return parse_number(text, self.field.is_whole) if text else None

    def _apply_slider_position(self, change: Any) -> None:
        # The browser moves a slider to its nearest step and sends that value back; it is not an input.
        if self._is_moving or abs(change.new - self._slider_position) < self._slider.step / 4:
            return
        self._slider_position = change.new
        self.text = f"{change.new:.4g}"

    def _move_slider(self, _: Any = None) -> None:
        value = parse_number(self.text.strip())
        if not self.text.strip():
            value = self._slider.max if self.field.is_late_if_empty else self._slider.min
        if isinstance(value, str) or not math.isfinite(value):
            return
        self._is_moving = True
        try:
            low, high, step = self._slider.min, self._slider.max, self._slider.step
            steps = round((min(high, max(low, value)) - low) / step)
            self._slider.value = min(high, low + steps * step)
        finally:
            self._is_moving = False
        self._slider_position = self._slider.value


def number_text(value: float) -> str:
    """Return a number as a text from which `parse_number` reads the same number; with 12 digits if these suffice."""
    text = f"{value:.12g}"
    return text if float(text) == value else repr(value)


def parse_number(text: str, is_whole: bool = False) -> Any:
    """Return the number in a text, or the text itself if it is not a number.

    The constructor of the workload item raises the error for an invalid text.
    """
    try:
        return int(text) if is_whole else float(text)
    except ValueError:
        return text.strip()


def _round_step(step: float) -> float:
    """Return the largest of 1, 2 or 5 times a power of ten that is at most ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return float(f"{max(factor * power for factor in (1, 2, 5) if factor * power <= step * 1.0001):.1g}")

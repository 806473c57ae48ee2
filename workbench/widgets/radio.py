"""Radio and time: losses, collisions, carrier sense, retries; how long, and which seed."""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import ipywidgets as widgets

from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.parameter import Parameter
from workbench.sim.radio import PARAMETERS, Radio
from workbench.sim.workload import LONGEST_S
from workbench.widgets.fields import Field, fields_of
from workbench.widgets.part import Part

TIME = (
    Parameter("duration_s", 60.0, 0.001, LONGEST_S, "s", "after it nobody publishes; frames on their way are played"),
    Parameter("seed", 1, None, None, "", "another one draws other losses, delays and back-offs"),
)
_LOSSES = {"as the links lose": "links", "nothing": "none", "a share of all frames": None}


class Conditions(NamedTuple):
    """What a scenario has beside network, protocol and workload."""

    radio: Radio
    duration_s: float
    seed: int


class RadioForm(Part):
    """``value``: `Conditions`. A form of the radio's table, and of time and seed."""

    def __init__(self, value: Conditions | None = None) -> None:
        value = value or Conditions(Radio(), 60.0, 1)
        self._loss = widgets.Dropdown(options=list(_LOSSES), description="frames lost:")
        self._share = Field(Parameter("share", 0.1, 0.0, 1.0, "of frames", "every arc loses that share"))
        table = [one for one in PARAMETERS if one.name not in ("loss", "jitter_ms")]
        self.fields = fields_of(table, {one.name: one.default for one in table}, "Radio")
        self.fields |= fields_of(TIME, {one.name: one.default for one in TIME}, "Scenario")
        self.jitter = widgets.FloatRangeSlider(min=0, max=100, step=0.5, description="jitter (ms):")
        self.jitter.tooltip = "Before a broadcast, so that neighbors that heard the same frame do not answer at once"
        draw = widgets.Button(description="Another seed", icon="random", layout={"width": "9em"})
        draw.on_click(lambda _: setattr(self.fields["seed"], "value", secrets.randbelow(10_000)))
        for control in (self._loss, self._share, self.jitter, *self.fields.values()):
            control.observe(lambda _: self._edited(), "value")
        above = (self.fields["duration_s"], self.fields["seed"], draw, self._loss, self._share)
        rest = tuple(field for name, field in self.fields.items() if name not in ("duration_s", "seed"))
        super().__init__(value, (*above, *rest, self.jitter))

    def draw(self, value: Conditions) -> None:
        """Show a radio, a duration and a seed."""
        radio = value.radio
        is_share = not isinstance(radio.loss, str)
        words = {meaning: word for word, meaning in _LOSSES.items()}
        self._loss.value = words[radio.loss if isinstance(radio.loss, str) else None]
        if is_share:
            self._share.value = radio.loss
        self._share.layout.display = "" if is_share else "none"
        self.jitter.max = max(100.0, radio.jitter_ms[1])
        self.jitter.value = radio.jitter_ms
        for name, field in self.fields.items():
            field.value = getattr(value, name) if name in ("duration_s", "seed") else getattr(radio, name)

    def _edited(self) -> None:
        if self._is_drawing:
            return
        meaning = _LOSSES[self._loss.value]
        self._share.layout.display = "" if meaning is None else "none"
        values = {name: field.value for name, field in self.fields.items()}
        duration_s, seed = values.pop("duration_s"), values.pop("seed")
        loss: Any = self._share.value if meaning is None else meaning
        try:
            radio = Radio(loss=loss, jitter_ms=self.jitter.value, **values)
        except (WorkbenchError, ParameterError) as error:
            self._share.error = str(error)
            return
        self.offer(Conditions(radio, duration_s, seed))

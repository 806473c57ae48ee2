"""A panel for the radio (losses, collisions, carrier sense, retries), the duration and the seed of a scenario."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

import ipywidgets as widgets
import traitlets

from workbench.protocols.parameter import Parameter
from workbench.sim.radio import PARAMETERS, Radio
from workbench.sim.radios import named_radios
from workbench.sim.readings import LONGEST_S
from workbench.widgets.fields import Field, fields_of, vary_button, why_button
from workbench.widgets.panel import Panel

TIME = (
    Parameter(
        "duration_s",
        60.0,
        0.001,
        LONGEST_S,
        "s",
        "nodes publish until then; frames in flight at that time are still processed",
    ),
    Parameter("seed", 1, 0, None, "", "another seed gives other losses, delays and back-offs"),
)
_JITTER = "before a broadcast: neighbors that heard the same frame do not answer at once"
JITTER = (
    Parameter("jitter_from_ms", 1.0, 0.0, 1e6, "ms", _JITTER),
    Parameter("jitter_to_ms", 5.0, 0.0, 1e6, "ms", _JITTER),
)
_CUSTOM = "as set below"
_JITTER_ERROR = "the jitter must go from a lower to a higher number"
_LOSSES = {"as the links lose": "links", "nothing": "none", "a share of all frames": None}


def _default_values(table: Iterable[Parameter]) -> dict[str, Any]:
    return {parameter.name: parameter.default for parameter in table}


class Conditions(NamedTuple):
    """The radio, the duration and the seed of a scenario."""

    radio: Radio
    duration_s: float
    seed: int


class RadioForm(Panel):
    """A panel whose ``value`` is `Conditions`: a form of the radio's parameters, the duration and the seed.

    varied: (path of the parameter that the user last selected for a sweep, number of times its button was pressed), or
        ("", 0) before the first selection.
    """

    varied = traitlets.Tuple(("", 0))

    def __init__(self, value: Conditions | None = None) -> None:
        value = value or Conditions(Radio(), 60.0, 1)
        self.radios = widgets.Dropdown(options=[(_CUSTOM, None), *named_radios().items()], description="radio:")
        self.radios.observe(self._select_radio, "value")
        self.loss = widgets.Dropdown(options=list(_LOSSES), description="frames lost:")
        self.share = Field(Parameter("share", 0.1, 0.0, 1.0, "of frames", "every arc loses this share of its frames"))
        table = [parameter for parameter in PARAMETERS if parameter.name not in ("loss", "jitter_ms")]
        self.fields = fields_of(table, _default_values(table), "Radio")
        self.fields |= fields_of(JITTER, _default_values(JITTER), "Radio")
        self.fields |= fields_of(TIME, _default_values(TIME), "Scenario")
        self.why = why_button(lambda: (self.share, *self.fields.values()))
        paths = {name: self.fields[name] for name in ("duration_s", "seed")} | {"radio.loss": self.share}
        paths |= {f"radio.{parameter.name}": self.fields[parameter.name] for parameter in table}
        self.vary = vary_button(paths.values)
        for path, field in paths.items():
            field.observe(lambda change, path=path: self._report_varied(path, change.new), "vary_count")
        self.another = widgets.Button(description="Another seed", layout={"width": "auto"})
        self.another.on_click(lambda _: setattr(self.fields["seed"], "value", secrets.randbelow(10_000)))
        for control in (self.loss, self.share, *self.fields.values()):
            control.observe(self._apply_fields, "value")
        buttons = widgets.HBox((self.another, self.why, self.vary), layout={"flex_flow": "row wrap"})
        upper_rows = (self.fields["duration_s"], self.fields["seed"], buttons, self.radios, self.loss, self.share)
        other_fields = tuple(field for name, field in self.fields.items() if name not in ("duration_s", "seed"))
        super().__init__(value, (*upper_rows, *other_fields))

    def draw(self, value: Conditions) -> None:
        """Show a radio, a duration and a seed."""
        radio = value.radio
        self._show_name(radio)
        is_share = not isinstance(radio.loss, str)
        labels = {meaning: label for label, meaning in _LOSSES.items()}
        self.loss.value = labels[radio.loss if isinstance(radio.loss, str) else None]
        if is_share:
            self.share.show(radio.loss)
        self.share.layout.display = None if is_share else "none"
        field_values = {**asdict(radio), **value._asdict()}
        field_values["jitter_from_ms"], field_values["jitter_to_ms"] = radio.jitter_ms
        for name, field in self.fields.items():
            field.show(field_values[name])

    def _show_name(self, radio: Radio) -> None:
        """Select a radio in the menu of named radios, or no entry if none of them is equal to this radio."""
        self.radios.value = next(
            (radio_of_name for _, radio_of_name in self.radios.options if radio_of_name == radio), None
        )

    def _select_radio(self, change: Any) -> None:
        if change.new is not None and change.new != self.value.radio:
            self.value = self.value._replace(radio=change.new)

    def _report_varied(self, path: str, count: int) -> None:
        self.vary.value = False
        self.varied = path, count

    def _apply_fields(self, change: Any) -> None:
        if self._is_drawing:
            return
        meaning = _LOSSES[self.loss.value]
        self.share.layout.display = None if meaning is None else "none"
        field_values = {name: field.value for name, field in self.fields.items()}
        duration_s, seed = field_values.pop("duration_s"), field_values.pop("seed")
        jitter_ms = field_values.pop("jitter_from_ms"), field_values.pop("jitter_to_ms")
        # The lower end may exceed the upper while one of them is edited; then the radio keeps its jitter.
        is_jitter = jitter_ms[0] <= jitter_ms[1]
        self._show_jitter_error(change.owner, is_jitter)
        if not is_jitter:
            jitter_ms = self.value.radio.jitter_ms
        loss: Any = self.share.value if meaning is None else meaning
        radio = Radio(loss=loss, jitter_ms=jitter_ms, **field_values)
        self.offer(Conditions(radio, duration_s, seed))
        self._show_name(radio)

    def _show_jitter_error(self, edited: Any, is_valid: bool) -> None:
        for jitter_field in (self.fields["jitter_from_ms"], self.fields["jitter_to_ms"]):
            if is_valid and jitter_field.error == _JITTER_ERROR:
                jitter_field.error = ""
            elif not is_valid and jitter_field is edited:
                jitter_field.error = _JITTER_ERROR

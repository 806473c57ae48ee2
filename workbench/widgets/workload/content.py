"""The form of an item's content: attributes, a sensor field, or measured readings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.errors import WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sensor_field import SensorField, parameters
from workbench.sim.readings import Readings
from workbench.widgets.attributes import PUBLICATION, SUBSCRIPTION, Attributes
from workbench.widgets.controls import quiet, words
from workbench.widgets.fields import Field, fields_of
from workbench.widgets.workload.texts import readings_text


class ContentForm(widgets.VBox):
    """The form of a workload item's content: attributes, or the sensor field that gives a publication its readings.

    The content of a publication can also be a list of measured readings. The form only describes these; the user cannot
    edit them.
    """

    match_all = traitlets.Bool()

    def __init__(self, kind: str, on_edit: Callable[[], None]) -> None:
        self._apply_edit, self._is_drawing = on_edit, False
        self.attributes = Attributes(kind=PUBLICATION if kind == "publish" else SUBSCRIPTION)
        traitlets.link((self, "match_all"), (self.attributes, "match_all"))
        self.source = widgets.ToggleButtons(
            options=[("attributes", False), ("a sensor field", True)],
            tooltips=["always the same", "what each node reads at its place and time"],
            style={"button_width": "auto"},
        )
        self.field: dict[str, Field] = {}  # made when first shown
        self._fields, self._value = widgets.VBox(), SensorField()
        self._readings: Readings | None = None
        self._upper_rows = (self.source,) if kind == "publish" else ()
        super().__init__((*self._upper_rows, self.attributes))
        self.attributes.observe(self._apply_attributes, "value")
        self.source.observe(self._apply_source, "value")

    def show(self, content: str | SensorField | Readings) -> None:
        """Show the content of an item: attributes as text, a sensor field, or measured readings."""
        self._readings = content if isinstance(content, Readings) else None
        if isinstance(content, Readings):
            self.children = (words(readings_text(content)),)
            return
        with quiet(self):
            self.source.value = isinstance(content, SensorField)
            if isinstance(content, SensorField):
                self._value = content
                self._fill_fields()
            elif content != self.attributes.value:
                self.attributes.value = content
            else:
                with quiet(self.attributes):  # discard invalid input
                    self.attributes.draw(content)
            self._show_editor()

    def compare(self, protocol: Protocol | None, others: tuple[tuple[str, str], ...]) -> None:
        """Show which other items match the attributes in this form, by the rule of ``protocol``.

        ``others``: (label, attributes as text) of each other item.
        """
        self.attributes.protocol, self.attributes.against = protocol, others

    def plain(self) -> str | Mapping[str, Any]:
        """Return the content of the form as JSON values, as a scenario file contains it: attributes are text."""
        if self._readings is not None:
            return self._readings.to_dict()
        return self._value.to_dict() if self.source.value else self.attributes.value

    def _show_editor(self) -> None:
        editor = self._fields if self.source.value else self.attributes
        self.children = (*self._upper_rows, editor)

    def _fill_fields(self) -> None:
        field_values = {item.name: getattr(self._value, item.name) for item in parameters()}
        if not self.field:
            self.field = fields_of(parameters(), field_values, "SensorField")
            for field in self.field.values():
                field.observe(self._apply_field, "value")
            self._fields.children = tuple(self.field.values())
        for name, field in self.field.items():
            field.value = field_values[name]

    def _apply_source(self, _: Any) -> None:
        if not self._is_drawing:
            with quiet(self):
                if self.source.value:
                    self._fill_fields()
                self._show_editor()
            self._apply_edit()

    def _apply_field(self, change: Any) -> None:
        if self._is_drawing:
            return
        name = change.owner.parameter.name
        try:
            self._value = replace(self._value, **{name: change.new})
        except WorkbenchError as error:
            change.owner.error = str(error)
            return
        self._apply_edit()

    def _apply_attributes(self, _: Any) -> None:
        if not self._is_drawing:
            self._apply_edit()

"""A panel for the protocol: a menu of protocols, a form of its parameters, and presets (settings of papers)."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench import public_names
from workbench.errors import WorkbenchError
from workbench.protocols.parameter import Parameter
from workbench.protocols.protocol import Protocol
from workbench.sim.file_format import known_protocols, protocol_from_dict
from workbench.widgets.controls import words
from workbench.widgets.fields import Field, fields_of, sentence, vary_button, why_button
from workbench.widgets.panel import Panel

_DEFAULTS = "defaults"
_CUSTOM = "as set below"
_WIDE = {"width": "24em", "max_width": "100%"}


class ProtocolForm(Panel):
    """A panel whose ``value`` is a protocol. Each setting is a field; limits of memory are in a collapsed section.

    If the user selects a protocol again in the menu, the form shows its previous settings. A setting that holds filters
    is not shown here, because filters have their own panel.

    varied: (path of the parameter that the user last selected for a sweep, number of times its button was pressed), or
        ("", 0) before the first selection.
    """

    varied = traitlets.Tuple(("", 0))

    def __init__(self, value: Protocol | None = None) -> None:
        self._last_settings: dict[str, Protocol] = {}
        self._fields: dict[str, Field] = {}
        self._class: Any = None
        self._incompatible: set[str] = set()  # names of fields whose value is incompatible with other settings
        self._fields_of_class: dict[type, dict[str, Field]] = {}
        self.choice = widgets.Dropdown(options=protocol_names(), description="protocol:", layout=_WIDE)
        self.presets = widgets.Dropdown(options=[_DEFAULTS], description="set to:", layout=_WIDE)
        self.presets.tooltip = "Settings that a paper used, or the defaults"
        self.why = why_button(lambda: self._fields.values())
        self.vary = vary_button(lambda: self._fields.values())
        self._description = words()
        self._common_fields, self._memory_fields = widgets.VBox(), widgets.VBox()
        memory_section = widgets.Accordion((self._memory_fields,), titles=("Memories and bounds",), selected_index=None)
        self.choice.observe(self._select_protocol, "value")
        self.presets.observe(self._apply_preset, "value")
        protocol = value or protocol_from_dict({"name": public_names.FIRST_PROTOCOL})
        button_row = widgets.HBox((self.presets, self.why, self.vary), layout={"flex_flow": "row wrap"})
        children = (self.choice, button_row, self._description, self._common_fields, memory_section)
        super().__init__(protocol, children)

    @property
    def fields(self) -> dict[str, Field]:
        """The visible fields by the names of their parameters."""
        return self._fields

    def draw(self, value: Protocol) -> None:
        """Show a protocol and its settings."""
        cls = type(value).public_class()
        name = cls.__name__
        if name not in self.choice.options:
            self.choice.options = sorted({*self.choice.options, name})
        self.choice.value = name
        if self._class is not cls:
            self._make_fields(cls, value)
        for parameter, field in self._fields.items():
            field.show(value.settings[parameter])
        self._incompatible.clear()
        self._last_settings[name] = value
        self._show_preset(value)

    def _make_fields(self, cls: Any, value: Protocol) -> None:
        self._class = cls
        self.vary.value = False
        if cls not in self._fields_of_class:
            table = [parameter for parameter in cls.parameters if not _holds_filters(parameter)]
            self._fields_of_class[cls] = fields_of(table, value.settings, cls.__name__)
            for name, field in self._fields_of_class[cls].items():
                field.observe(lambda _, name=name: self._apply_fields(name), "value")
                field.observe(
                    lambda change, name=name: self._report_varied(f"protocol.{name}", change.new), "vary_count"
                )
        self._fields = self._fields_of_class[cls]
        for field in self._fields.values():
            field.is_explained = self.why.value
        bounds = [name for name in self._fields if name.startswith("max_")]
        self._common_fields.children = tuple(field for name, field in self._fields.items() if name not in bounds)
        self._memory_fields.children = tuple(self._fields[name] for name in bounds)
        first_line = (getattr(import_of(cls), "__doc__", "") or "").partition("\n")[0]
        self._description.value = f"<p class='wb-said'>{html.escape(first_line)}</p>"
        self.presets.options = [_DEFAULTS, *cls.presets, _CUSTOM]
        self.presets.layout.display = None if cls.presets else "none"  # a menu with nothing to choose is left out

    def _report_varied(self, path: str, count: int) -> None:
        self.vary.value = False
        self.varied = path, count

    def _apply_fields(self, name: str) -> None:
        """Set the protocol to the values of all fields after the user edited the field ``name``.

        If these values are incompatible, set only the parameter ``name`` and leave all other settings unchanged. If
        this setting alone is invalid too, show an error at the field.
        """
        if self._is_drawing:
            return
        field_values = {parameter: field.value for parameter, field in self._fields.items()}
        try:
            new_protocol = self._class(**{**self.value.settings, **field_values})
            applied_names = set(field_values)
        except WorkbenchError:
            try:
                new_protocol = self._class(**{**self.value.settings, name: field_values[name]})
                applied_names = {name}
            except WorkbenchError as error:
                self._incompatible.add(name)
                self._fields[name].error = sentence(error)
                return
        for parameter in self._incompatible & applied_names:
            self._fields[parameter].error = ""
        self._incompatible -= applied_names
        self._offer_protocol(new_protocol)

    def _offer_protocol(self, protocol: Protocol) -> None:
        self._last_settings[type(protocol).public_class().__name__] = protocol
        self.offer(protocol)
        self._show_preset(protocol)

    def _select_protocol(self, change: Any) -> None:
        if self._is_drawing:
            return
        protocol = self._last_settings.get(change.new) or protocol_from_dict({"name": change.new})
        self.value = protocol

    def _apply_preset(self, change: Any) -> None:
        if self._is_drawing or change.new in (_CUSTOM, None):
            return
        settings = {} if change.new == _DEFAULTS else self._class.presets[change.new]
        unchanged = {
            parameter.name: self.value.settings[parameter.name]
            for parameter in self._class.parameters
            if _is_unchanged_by_presets(parameter, self.value)
        }
        self.value = self._class(**{**unchanged, **settings})

    def _show_preset(self, value: Protocol) -> None:
        was_drawing, self._is_drawing = self._is_drawing, True
        try:
            self.presets.value = _matching_preset(value)
        finally:
            self._is_drawing = was_drawing


def _matching_preset(value: Protocol) -> str:
    cls = type(value).public_class()
    compared_parameters = [parameter for parameter in cls.parameters if not _is_unchanged_by_presets(parameter, value)]
    for name, settings in {_DEFAULTS: {}, **cls.presets}.items():
        if all(
            value.settings[parameter.name] == settings.get(parameter.name, parameter.default)
            for parameter in compared_parameters
        ):
            return name
    return _CUSTOM


def protocol_names() -> list[str]:
    """Return the names of the protocols in the menu.

    A name that is only an alias of another protocol with a fixed setting is left out.
    """
    protocols = {name: protocol_from_dict({"name": name}) for name in known_protocols()}
    return [name for name, protocol in protocols.items() if type(protocol).public_class().__name__ == name]


def _holds_filters(parameter: Parameter) -> bool:
    return parameter.unit == "Filter"


def _is_unchanged_by_presets(parameter: Parameter, value: Protocol) -> bool:
    """Return whether presets leave a parameter of the protocol ``value`` unchanged.

    Presets change neither filters nor settings that refer to nodes of the present network.
    """
    return _holds_filters(parameter) or parameter.name in value.named_nodes()


def import_of(cls: Any) -> Any:
    """Return the module in which a class is defined."""
    import sys

    return sys.modules[cls.__module__]

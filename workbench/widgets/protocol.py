"""A panel for the protocol: a menu of all protocols, a form of its parameters, and presets of papers."""

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
    """``value``: a Protocol. Its settings are fields; limits of its memories are collapsed.

    The menu keeps the settings of each protocol. A setting that holds filters is not shown; it has a panel of its own.
    ``varied``: (path, count of presses) of the field that was last selected for a sweep, "" for none.
    """

    varied = traitlets.Tuple(("", 0))

    def __init__(self, value: Protocol | None = None) -> None:
        self._known: dict[str, Protocol] = {}
        self._fields: dict[str, Field] = {}
        self._class: Any = None
        self._refused: set[str] = set()  # fields whose value is incompatible with other settings
        self._made: dict[type, dict[str, Field]] = {}
        self.choice = widgets.Dropdown(options=protocol_names(), description="protocol:", layout=_WIDE)
        self.presets = widgets.Dropdown(options=[_DEFAULTS], description="set to:", layout=_WIDE)
        self.presets.tooltip = "Settings that a paper used, or the defaults"
        self.why = why_button(lambda: self._fields.values())
        self.vary = vary_button(lambda: self._fields.values())
        self._about = words()
        self._common, self._rest = widgets.VBox(), widgets.VBox()
        fold = widgets.Accordion((self._rest,), titles=("Memories and bounds",), selected_index=None)
        self.choice.observe(self._choose, "value")
        self.presets.observe(self._preset, "value")
        first = value or protocol_from_dict({"name": public_names.FIRST_PROTOCOL})
        button_row = widgets.HBox((self.presets, self.why, self.vary), layout={"flex_flow": "row wrap"})
        children = (self.choice, button_row, self._about, self._common, fold)
        super().__init__(first, children)

    @property
    def fields(self) -> dict[str, Field]:
        """The visible fields, by the names of the parameters."""
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
        self._refused.clear()
        self._known[name] = value
        self._show_preset(value)

    def _make_fields(self, cls: Any, value: Protocol) -> None:
        self._class = cls
        self.vary.value = False
        if cls not in self._made:
            table = [parameter for parameter in cls.parameters if not _holds_filters(parameter)]
            self._made[cls] = fields_of(table, value.settings, cls.__name__)
            for name, field in self._made[cls].items():
                field.observe(lambda _, name=name: self._edited(name), "value")
                field.observe(lambda change, name=name: self._vary(f"protocol.{name}", change.new), "vary_count")
        self._fields = self._made[cls]
        for field in self._fields.values():
            field.is_explained = self.why.value
        bounds = [name for name in self._fields if name.startswith("max_")]
        self._common.children = tuple(field for name, field in self._fields.items() if name not in bounds)
        self._rest.children = tuple(self._fields[name] for name in bounds)
        first_line = (getattr(import_of(cls), "__doc__", "") or "").partition("\n")[0]
        self._about.value = f"<p class='wb-said'>{html.escape(first_line)}</p>"
        self.presets.options = [_DEFAULTS, *cls.presets, _CUSTOM]

    def _vary(self, path: str, times: int) -> None:
        self.vary.value = False
        self.varied = path, times

    def _edited(self, name: str) -> None:
        """Apply all fields; if they are incompatible, apply only the edited one to the last valid settings."""
        if self._is_drawing:
            return
        shown = {parameter: field.value for parameter, field in self._fields.items()}
        try:
            new = self._class(**{**self.value.settings, **shown})
            taken = set(shown)
        except WorkbenchError:
            try:
                new = self._class(**{**self.value.settings, name: shown[name]})
                taken = {name}
            except WorkbenchError as error:
                self._refused.add(name)
                self._fields[name].error = sentence(error)
                return
        for parameter in self._refused & taken:
            self._fields[parameter].error = ""
        self._refused -= taken
        self._offer(new)

    def _offer(self, new: Protocol) -> None:
        self._known[type(new).public_class().__name__] = new
        self.offer(new)
        self._show_preset(new)

    def _choose(self, change: Any) -> None:
        if self._is_drawing:
            return
        new = self._known.get(change.new) or protocol_from_dict({"name": change.new})
        self.value = new

    def _preset(self, change: Any) -> None:
        if self._is_drawing or change.new in (_CUSTOM, None):
            return
        settings = {} if change.new == _DEFAULTS else self._class.presets[change.new]
        unchanged = {
            parameter.name: self.value.settings[parameter.name]
            for parameter in self._class.parameters
            if _is_left_by_presets(parameter, self.value)
        }
        self.value = self._class(**{**unchanged, **settings})

    def _show_preset(self, value: Protocol) -> None:
        was_drawing, self._is_drawing = self._is_drawing, True
        try:
            self.presets.value = _preset_of(value)
        finally:
            self._is_drawing = was_drawing


def _preset_of(value: Protocol) -> str:
    cls = type(value).public_class()
    shown = [parameter for parameter in cls.parameters if not _is_left_by_presets(parameter, value)]
    for name, settings in {_DEFAULTS: {}, **cls.presets}.items():
        if all(
            value.settings[parameter.name] == settings.get(parameter.name, parameter.default) for parameter in shown
        ):
            return name
    return _CUSTOM


def protocol_names() -> list[str]:
    """Return the names of all protocols, without those that are another protocol with a fixed setting."""
    protocols = {name: protocol_from_dict({"name": name}) for name in known_protocols()}
    return [name for name, protocol in protocols.items() if type(protocol).public_class().__name__ == name]


def _holds_filters(parameter: Parameter) -> bool:
    return parameter.unit == "Filter"


def _is_left_by_presets(parameter: Parameter, value: Protocol) -> bool:
    """Return whether a preset leaves a setting unchanged: filters, and nodes of the present network."""
    return _holds_filters(parameter) or parameter.name in value.named_nodes()


def import_of(cls: Any) -> Any:
    """Return the module of a class."""
    import sys

    return sys.modules[cls.__module__]

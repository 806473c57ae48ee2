"""The protocol: one of all that there are, with a form made from its table, and presets of the papers."""

from __future__ import annotations

import html
from typing import Any

import ipywidgets as widgets

from workbench import public_names
from workbench.errors import WorkbenchError
from workbench.protocols.parameter import Parameter
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import protocol_from_dict
from workbench.widgets.controls import close_all
from workbench.widgets.fields import Field, fields_of
from workbench.widgets.part import Part

_DEFAULTS = "defaults"
_CUSTOM = "as set below"


class ProtocolForm(Part):
    """``value``: a Protocol. Its settings are fields; what bounds its memories is folded away.

    A choice of protocols keeps what each was set to before. A setting that holds parts (filters) is not shown: another
    form is for that.
    """

    def __init__(self, value: Protocol | None = None) -> None:
        self._known: dict[str, Protocol] = {}
        self._fields: dict[str, Field] = {}
        self.choice = widgets.Dropdown(options=sorted(public_names.PROTOCOLS), description="protocol:")
        self.presets = widgets.Dropdown(options=[_DEFAULTS], description="set to:")
        self.presets.tooltip = "Settings that a paper used, or the defaults"
        self._about = widgets.HTML()
        self._common, self._rest = widgets.VBox(), widgets.VBox()
        fold = widgets.Accordion((self._rest,), titles=("Memories and bounds",), selected_index=None)
        self.choice.observe(self._choose, "value")
        self.presets.observe(self._preset, "value")
        first = value or protocol_from_dict({"name": public_names.FIRST_PROTOCOL})
        children = (self.choice, self.presets, self._about, self._common, fold)
        super().__init__(first, children)

    @property
    def fields(self) -> dict[str, Field]:
        """The fields that are shown, by the names of the parameters."""
        return self._fields

    def draw(self, value: Protocol) -> None:
        """Show a protocol and its settings."""
        cls = type(value).public_class()
        name = cls.__name__
        if name not in self.choice.options:
            self.choice.options = sorted({*self.choice.options, name})
        self.choice.value = name
        if self._shown_class() is not cls:
            self._make_fields(cls, value)
        for one, field in self._fields.items():
            field.value = value.settings[one]
        self._known[name] = value
        self._tell_preset(value)

    def _shown_class(self) -> Any:
        return getattr(self, "_class", None)

    def _make_fields(self, cls: Any, value: Protocol) -> None:
        self._class = cls
        table = [one for one in cls.parameters if not _holds_parts(one)]
        for field in self._fields.values():
            close_all(field)
        self._fields = fields_of(table, value.settings, cls.__name__)
        for name, field in self._fields.items():
            field.observe(lambda change, name=name: self._edited(name, change.new), "value")
        bounds = [name for name in self._fields if name.startswith("max_")]
        self._common.children = tuple(field for name, field in self._fields.items() if name not in bounds)
        self._rest.children = tuple(self._fields[name] for name in bounds)
        first_line = (getattr(import_of(cls), "__doc__", "") or "").partition("\n")[0]
        self._about.value = f"<p class='wb-said'>{html.escape(first_line)}</p>"
        self.presets.options = [_DEFAULTS, *getattr(cls, "presets", {}), _CUSTOM]

    def _edited(self, name: str, new: Any) -> None:
        if self._is_drawing or self.value.settings[name] == new:
            return
        try:
            made = self._class(**{**self.value.settings, name: new})
        except WorkbenchError as error:
            self._fields[name].error = str(error).partition(": ")[2] or str(error)
            return
        for field in self._fields.values():
            field.error = ""
        self._offer(made)

    def _offer(self, made: Protocol) -> None:
        self._known[type(made).public_class().__name__] = made
        self.offer(made)
        self._tell_preset(made)

    def _choose(self, change: Any) -> None:
        if self._is_drawing:
            return
        made = self._known.get(change.new) or protocol_from_dict({"name": change.new})
        self.value = made

    def _preset(self, change: Any) -> None:
        if self._is_drawing or change.new in (_CUSTOM, None):
            return
        settings = {} if change.new == _DEFAULTS else self._class.presets[change.new]
        kept = {one.name: self.value.settings[one.name] for one in self._class.parameters if _holds_parts(one)}
        self.value = self._class(**{**kept, **settings})

    def _tell_preset(self, value: Protocol) -> None:
        was, self._is_drawing = self._is_drawing, True
        try:
            self.presets.value = _preset_of(value)
        finally:
            self._is_drawing = was


def _preset_of(value: Protocol) -> str:
    cls = type(value).public_class()
    shown = [one for one in cls.parameters if not _holds_parts(one)]
    for name, settings in {_DEFAULTS: {}, **getattr(cls, "presets", {})}.items():
        if all(value.settings[one.name] == settings.get(one.name, one.default) for one in shown):
            return name
    return _CUSTOM


def _holds_parts(parameter: Parameter) -> bool:
    return parameter.unit == "Filter"


def import_of(cls: Any) -> Any:
    """The module that a class is of."""
    import sys

    return sys.modules[cls.__module__]

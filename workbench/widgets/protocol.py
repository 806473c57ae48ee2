"""The protocol: one of all that there are, with a form made from its table, and presets of the papers."""

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
from workbench.widgets.part import Part

_DEFAULTS = "defaults"
_CUSTOM = "as set below"
_WIDE = {"width": "24em", "max_width": "100%"}


class ProtocolForm(Part):
    """``value``: a Protocol. Its settings are fields; what bounds its memories is folded away.

    A choice of protocols keeps what each was set to before. A setting that holds parts (filters) is not shown: another
    form is for that. ``varied``: (path, how often) of the field that a sweep was asked to vary last, "" for none.
    """

    varied = traitlets.Tuple(("", 0))

    def __init__(self, value: Protocol | None = None) -> None:
        self._known: dict[str, Protocol] = {}
        self._fields: dict[str, Field] = {}
        self._class: Any = None
        self._refused: set[str] = set()  # fields whose value does not go with what else is set
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
        above = widgets.HBox((self.presets, self.why, self.vary), layout={"flex_flow": "row wrap"})
        children = (self.choice, above, self._about, self._common, fold)
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
        if self._class is not cls:
            self._make_fields(cls, value)
        for one, field in self._fields.items():
            field.show(value.settings[one])
        self._refused.clear()
        self._known[name] = value
        self._tell_preset(value)

    def _make_fields(self, cls: Any, value: Protocol) -> None:
        self._class = cls
        self.vary.value = False
        if cls not in self._made:
            table = [one for one in cls.parameters if not _holds_parts(one)]
            self._made[cls] = fields_of(table, value.settings, cls.__name__)
            for name, field in self._made[cls].items():
                field.observe(lambda _, name=name: self._edited(name), "value")
                field.observe(lambda change, name=name: self._ask_for(f"protocol.{name}", change.new), "asked")
        self._fields = self._made[cls]
        for field in self._fields.values():
            field.is_explained = self.why.value
        bounds = [name for name in self._fields if name.startswith("max_")]
        self._common.children = tuple(field for name, field in self._fields.items() if name not in bounds)
        self._rest.children = tuple(self._fields[name] for name in bounds)
        first_line = (getattr(import_of(cls), "__doc__", "") or "").partition("\n")[0]
        self._about.value = f"<p class='wb-said'>{html.escape(first_line)}</p>"
        self.presets.options = [_DEFAULTS, *cls.presets, _CUSTOM]

    def _ask_for(self, path: str, times: int) -> None:
        self.vary.value = False
        self.varied = path, times

    def _edited(self, name: str) -> None:
        """Take all fields as they stand; where they do not go together, what was right before with this one."""
        if self._is_drawing:
            return
        shown = {one: field.value for one, field in self._fields.items()}
        try:
            made = self._class(**{**self.value.settings, **shown})
            taken = set(shown)
        except WorkbenchError:
            try:
                made = self._class(**{**self.value.settings, name: shown[name]})
                taken = {name}
            except WorkbenchError as error:
                self._refused.add(name)
                self._fields[name].error = sentence(error)
                return
        for one in self._refused & taken:
            self._fields[one].error = ""
        self._refused -= taken
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
        kept = {one.name: self.value.settings[one.name] for one in self._class.parameters if _is_kept(one, self.value)}
        self.value = self._class(**{**kept, **settings})

    def _tell_preset(self, value: Protocol) -> None:
        was, self._is_drawing = self._is_drawing, True
        try:
            self.presets.value = _preset_of(value)
        finally:
            self._is_drawing = was


def _preset_of(value: Protocol) -> str:
    cls = type(value).public_class()
    shown = [one for one in cls.parameters if not _is_kept(one, value)]
    for name, settings in {_DEFAULTS: {}, **cls.presets}.items():
        if all(value.settings[one.name] == settings.get(one.name, one.default) for one in shown):
            return name
    return _CUSTOM


def protocol_names() -> list[str]:
    """The names of all protocols; one that is another with a setting is left out, for its form is that one's."""
    made = {name: protocol_from_dict({"name": name}) for name in known_protocols()}
    return [name for name, one in made.items() if type(one).public_class().__name__ == name]


def _holds_parts(parameter: Parameter) -> bool:
    return parameter.unit == "Filter"


def _is_kept(parameter: Parameter, value: Protocol) -> bool:
    """Whether a preset leaves a setting as it is: filters, and nodes of the network that is there."""
    return _holds_parts(parameter) or parameter.name in value.named_nodes()


def import_of(cls: Any) -> Any:
    """The module that a class is of."""
    import sys

    return sys.modules[cls.__module__]

"""The form of a workload item of any kind, made from the item's fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import ipywidgets as widgets

from workbench import mobility
from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim import workload
from workbench.sim.workload import KINDS, Item
from workbench.widgets.controls import TextField, button, error_html, known_nodes, nodes_of, nodes_text, quiet, words
from workbench.widgets.workload.content import ContentForm
from workbench.widgets.workload.items import title_of
from workbench.widgets.workload.measured import TraceForm
from workbench.widgets.workload.movement import MovementForm
from workbench.widgets.workload.numbers import NumberField
from workbench.widgets.workload.scenario_context import ScenarioContext
from workbench.widgets.workload.table import fields_of_kind, has_nodes, nodes_reason

_OWNERS = re.compile(rf"^({'|'.join(model.__name__ for model in mobility.MODELS.values())}): ")
_NO_RULE = "The positions in this network do not determine its links, so a movement needs radius_m"


class ItemForm(widgets.VBox):
    """The form of a workload item of one ``kind``, such as "publish".

    on_edit  a function that is called with the new item after each valid change
    check    a function that returns why an item is in conflict with other items of the workload, or ""
    """

    def __init__(self, kind: str, on_edit: Callable[[Item], None], check: Callable[[Item], str] = lambda _: "") -> None:
        self.kind, self._on_edit, self._check = kind, on_edit, check
        self._is_drawing = False
        self._item: Any = None
        self._context = ScenarioContext()
        names = {field.name for field in fields(KINDS[kind])}
        self._fields = fields_of_kind(kind)
        self.at = TextField("nodes", "", nodes_reason(kind), "0, 5") if has_nodes(kind) else None
        self.times: dict[str, TextField] = {
            field.name: TextField(field.name, field.unit, field.reason) if field.is_bytes else NumberField(field)
            for field in self._fields
            if not field.is_flag
        }
        self.flags = {
            field.name: widgets.Checkbox(description=field.name, tooltip=field.reason, indent=False)
            for field in self._fields
            if field.is_flag
        }
        self.content = ContentForm(kind, self._apply_edit) if "what" in names else None
        self.along = MovementForm(self._apply_edit) if "along" in names else None
        self.trace = TraceForm(self._apply_edit) if "trace" in names else None
        self._message, self._radius_note = words(), words()
        self._use_radius = button("", "use the median length of the network's links", self._use_proposed_radius)
        self._radius_box = widgets.HBox((self._radius_note, self._use_radius), layout={"flex_flow": "row wrap"})
        controls = (
            words(f"<b>{title_of(kind)}</b>"),
            self.at,
            self.content,
            self.along,
            self.trace,
            self._radius_box if self.along else None,
            *self.times.values(),
            *self.flags.values(),
            self._message,
        )
        super().__init__(tuple(control for control in controls if control is not None))
        self.add_class("wb-item")
        for field in self.text_fields().values():
            field.observe(self._apply_edit, "text")
        for flag in self.flags.values():
            flag.observe(self._apply_edit, "value")

    @property
    def flag(self) -> widgets.Checkbox | None:
        """The first checkbox of the form, or None."""
        return next(iter(self.flags.values()), None)

    def text_fields(self) -> dict[str, TextField]:
        """Return {name of a field: its text box} for the item's nodes ("at"), numbers and bytes."""
        return {**({} if self.at is None else {"at": self.at}), **self.times}

    def show(
        self, item: Item, context: ScenarioContext, protocol: Protocol | None, others: tuple[tuple[str, str], ...]
    ) -> None:
        """Show an item. Invalid input remains in the form if the form shows this item already.

        ``context``: the network and the duration. ``others``: (label, attributes as text) of the subscriptions or
        publications that are matched with the item by the rule of ``protocol``.
        """
        with quiet(self):
            if context != self._context or self._item is None:
                self._context = context
                self._fit_fields()
            if self.content is not None:
                self.content.attributes.protocol = protocol  # which may allow constraints in the item
            if item != self._item:
                self._item = item
                self._fill_fields(item)
            if self.content is not None:
                self.content.compare(protocol, others)
            self._show_radius_note()

    def _fit_fields(self) -> None:
        for field in self.times.values():
            if isinstance(field, NumberField):
                field.fit(self._context)
        if self.along is not None:
            self.along.fit(self._context)

    def _fill_fields(self, item: Any) -> None:
        if self.at is not None:
            self.at.text = nodes_text(item.at)
        for name, field in self.times.items():
            value = getattr(item, name)
            if isinstance(field, NumberField):
                field.show(value)
            else:
                field.text = value.hex()
        for name, flag in self.flags.items():
            flag.value = getattr(item, name)
        if self.content is not None:
            self.content.match_all = getattr(item, "match_all", False)
            self.content.show(item.what)
        if self.along is not None:
            self.along.show(item.along, item.at, self._context)
        if self.trace is not None:
            self.trace.show(item.trace)
        self._show_message("")

    def _show_radius_note(self) -> None:
        """Show a note with a proposed radius if a movement needs a radius in this network; otherwise hide the note."""
        if self.along is None:
            return
        is_needed = self._context.lacks_link_rule
        self._radius_box.layout.display = None if is_needed else "none"
        if is_needed:
            radius_m = self._context.propose_radius_m()
            self._radius_note.value = (
                f"<span class='wb-said'>{_NO_RULE}; {radius_m:g} m is the median length of its links.</span>"
            )
            self._use_radius.description = f"Use {radius_m:g} m"

    def _use_proposed_radius(self) -> None:
        self.times["radius_m"].text = f"{self._context.propose_radius_m():g}"

    def _apply_edit(self, _: Any = None) -> None:
        if self._is_drawing:
            return
        if self.content is not None and "match_all" in self.flags:
            with quiet(self):
                self.content.match_all = self.flags["match_all"].value
        try:
            item = self._make_item()
            sentence = self._check(item)
        except WorkbenchError as error:
            self._show_message(str(error))
            return
        self._show_message(sentence)
        if not sentence and item != self._item:
            self._item = item
            self._on_edit(item)

    def _make_item(self) -> Item:
        item_fields: dict[str, Any] = {}
        if self.at is not None:
            try:
                accepted = () if self._item is None else self._item.at
                item_fields["at"] = known_nodes(nodes_of(self.at.text), self._context.nodes, accepted)
            except ParameterError as error:
                raise ParameterError(f"at: {error}") from None
        for field in self._fields:
            if field.is_flag:
                item_fields[field.name] = self.flags[field.name].value
                continue
            control = self.times[field.name]
            value = control.read() if isinstance(control, NumberField) else control.text.strip() or None
            if value is None and not field.has_default:
                raise ParameterError(f"{field.name} is missing; it must be a number")
            if value is not None:
                item_fields[field.name] = value
        if self.trace is not None:
            self._check_trace(self.trace)
        for name, form in (("what", self.content), ("along", self.along), ("trace", self.trace)):
            if form is not None:
                item_fields[name] = form.plain()
        return workload.from_dict({self.kind: item_fields}, where="")

    def _check_trace(self, form: TraceForm) -> None:
        try:
            known_nodes(form.nodes, self._context.nodes, () if self._item is None else self._item.at)
        except ParameterError as error:
            raise ParameterError(f"trace: {error}") from None

    def _show_message(self, sentence: str) -> None:
        """Show an error message: beside a field if the message begins with the field's name, else below all fields."""
        sentence = sentence.removeprefix(": ")
        owner = _OWNERS.match(sentence)
        plain_sentence = _OWNERS.sub("", sentence)
        first_word = plain_sentence.partition(" ")[0].rstrip(":")
        item_fields = self.text_fields()
        model_fields = {} if self.along is None else self.along.text_fields()
        shown_in = (model_fields if owner else item_fields).get(first_word)
        for field in (*item_fields.values(), *model_fields.values()):
            field.error = plain_sentence.removeprefix("at: ") if field is shown_in else ""
        if self.along is not None:
            self.along.error = sentence if shown_in is None and owner else ""
        is_of_trace = self.trace is not None and first_word == "trace"
        if self.trace is not None:
            self.trace.error = sentence.removeprefix("trace: ") if is_of_trace else ""
        self._message.value = "" if shown_in is not None or owner or is_of_trace else error_html(sentence)

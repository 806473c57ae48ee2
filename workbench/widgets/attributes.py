"""Attributes as rows of key, operator and value, and as text, both ways; and what they match.

The user's keys are in the list as soon as a cell has registered them. What matches is decided by the protocol's rule.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.analysis.explain import mismatch
from workbench.attributes import (
    APP,
    APPLICATION_TYPES,
    BLOB,
    BLOB_OPERATORS,
    EQ_ANY,
    IS,
    OPERATOR_NAMES,
    Attribute,
    check_publication,
    check_subscription,
    key_of,
    known_keys,
    parse,
    to_text,
)
from workbench.errors import AttributeFormatError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim.metrics.matching import matching_of
from workbench.widgets.controls import button, error_html, quiet, refresh_after_cells, words
from workbench.widgets.part import Part

SUBSCRIPTION, PUBLICATION, CHOICE = "subscription", "publication", "choice"
_STARTS = {SUBSCRIPTION: "TEMP GE 20", PUBLICATION: "TEMP IS 25", CHOICE: ""}
_MOST = 50  # others that are compared
_SIGNS = {"IS": "is", "EQ": "=", "NE": "≠", "GT": ">", "GE": "≥", "LT": "<", "LE": "≤", "EQ_ANY": "any"}


class Attributes(Part):
    """``value``: the text of attributes. ``kind``: "subscription", "publication", or "choice" (of messages; may be "").

    against    (label, text) of publications, or of subscriptions if this is a publication: which of them match
    protocol   whose rule decides what matches; None for that of attributes
    match_all  whether a subscription may constrain nothing
    """

    kind = traitlets.Enum((SUBSCRIPTION, PUBLICATION, CHOICE), SUBSCRIPTION)
    against = traitlets.Any(())
    protocol = traitlets.Any()
    match_all = traitlets.Bool()
    error = traitlets.Unicode()

    def __init__(
        self,
        value: str | None = None,
        kind: str = SUBSCRIPTION,
        against: Iterable[tuple[str, str]] = (),
        protocol: Protocol | None = None,
    ) -> None:
        self._spare: list[_Row] = []  # made once, and used again: the browser forgets no widget
        self._rows = widgets.VBox()
        self._add = button("+ attribute", "one more attribute; all of them have to hold", self._add_row)
        self._text = widgets.Text(
            continuous_update=False,
            description="as text",
            placeholder=_STARTS[kind],
            tooltip='KEY OPERATOR VALUE, separated by commas, as in "TEMP GE 20, TEMP LE 30"',
            layout={"width": "auto"},
        )
        self._said, self._matches = words(), words()
        self.set_trait("kind", kind)
        self.protocol = protocol
        children = (self._rows, self._add, self._text, self._said, self._matches)
        super().__init__(_STARTS[kind] if value is None else value, children)
        self.add_class("wb-attributes")
        self._text.observe(self._text_edited, "value")
        self.observe(self._tell, "error")
        self.observe(self._compare_with_others, ("value", "against", "protocol"))
        self.observe(self._checked_again, "match_all")
        self.against = tuple(against)
        refresh_after_cells(self)

    @property
    def rows(self) -> tuple[_Row, ...]:
        """The rows that are shown, each with ``key``, ``operator``, ``number`` and ``error``."""
        return tuple(self._rows.children)

    def draw(self, value: str) -> None:
        """Rows and text of a value; one that is no text of attributes stays in the text form, with the error."""
        self._text.value, self.error = value, ""
        try:
            attributes = self._read(value)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self._draw_rows(attributes)

    def refresh(self) -> None:
        """List the keys that have been registered meanwhile."""
        names = _names()
        with quiet(self):
            for row in self._spare:
                row.list_keys(names)

    def _read(self, text: str) -> tuple[Attribute, ...]:
        attributes = parse(text)
        if self.kind == SUBSCRIPTION:
            check_subscription(attributes, self.match_all)
        elif self.kind == PUBLICATION:
            check_publication(attributes)
        return attributes

    def _draw_rows(self, attributes: tuple[Attribute, ...]) -> None:
        with quiet(self):
            names = _names()
            self._make_room(len(attributes))
            for row, attribute in zip(self._spare, attributes, strict=False):
                row.list_keys(names)
                row.show(attribute)
            self._rows.children = tuple(self._spare[: len(attributes)])

    def _make_room(self, count: int) -> None:
        while len(self._spare) < count:
            self._spare.append(_Row(self.kind, self._row_edited, self._remove_row))

    # What the user does

    def _text_edited(self, change: Any) -> None:
        if self._is_drawing:
            return
        try:
            attributes = self._read(change.new)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = ""
        self._draw_rows(attributes)
        self.offer(change.new.strip())

    def _row_edited(self) -> None:
        if self._is_drawing:
            return
        found = [row.attribute() for row in self.rows]
        if None not in found:
            self._offer_rows(tuple(one for one in found if one is not None))

    def _offer_rows(self, attributes: tuple[Attribute, ...]) -> None:
        text = to_text(attributes)
        with quiet(self):
            self._text.value = text
        try:
            self._read(text)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = ""
        self.offer(text)

    def _add_row(self) -> None:
        shown = self.rows
        self._make_room(len(shown) + 1)
        row = self._spare[len(shown)]
        with quiet(self):
            row.list_keys(_names())
            last = shown[-1].attribute() if shown else None
            row.show(last or parse(_STARTS[self.kind] or "TEMP EQ_ANY")[0])
            self._rows.children = (*shown, row)
        self._row_edited()

    def _remove_row(self, row: _Row) -> None:
        left = tuple(one for one in self.rows if one is not row)
        self._spare.remove(row)
        self._spare.append(row)
        self._rows.children = left
        self._row_edited()

    def _checked_again(self, _: Any) -> None:
        self._text_edited(traitlets.Bunch(new=self._text.value))

    # What is said

    def _tell(self, change: Any) -> None:
        self._said.value = error_html(change.new)

    def _compare_with_others(self, _: Any = None) -> None:
        others = tuple(self.against)
        self._matches.value = _comparison(self, others) if others else ""

    def matches(self) -> tuple[tuple[str, bool, str], ...]:
        """(label, whether it matches, why not) of each of ``against``."""
        found = []
        for label, text in tuple(self.against)[:_MOST]:
            asked, stated = (text, self.value) if self.kind == PUBLICATION else (self.value, text)
            try:
                why = why_not(asked, stated, self.protocol)
            except WorkbenchError as error:
                why = str(error)
            found.append((label, not why, why))
        return tuple(found)


def why_not(subscription: str, publication: str, protocol: Protocol | None = None) -> str:
    """Why a publication does not match a subscription, both as text, by the protocol's rule; "" if it does."""
    protocol = protocol or Protocol()
    if matching_of(protocol).samples(subscription, publication):
        return ""
    return mismatch(protocol, subscription, [publication])


def _comparison(part: Attributes, others: tuple[tuple[str, str], ...]) -> str:
    found = part.matches()
    what = "subscriptions" if part.kind == PUBLICATION else "publications"
    count = sum(one[1] for one in found)
    lines = [f"<li class='wb-match'>✓ {html.escape(label)}</li>" for label, is_match, _ in found if is_match]
    lines += [
        f"<li class='wb-no-match'>✗ {html.escape(label)}<br>{html.escape(why)}</li>"
        for label, is_match, why in found
        if not is_match
    ]
    rest = f"; {len(others) - len(found):,} more are not compared" if len(others) > len(found) else ""
    return f"<div class='wb-matches'>Matches {count} of {len(found)} {what}{rest}.<ul>{''.join(lines)}</ul></div>"


def _names() -> tuple[str, ...]:
    return tuple(key.name for key in known_keys())


class _Row(widgets.HBox):
    """One attribute: key, operator, value, the key's unit and range, and what is wrong."""

    def __init__(self, kind: str, edited: Callable[[], None], removed: Callable[[_Row], None]) -> None:
        self._kind, self._edited = kind, edited
        self._is_setting = False
        self.error = ""
        self.key = widgets.Dropdown(options=_names(), tooltip="key", layout={"width": "8.5em"})
        self.operator = widgets.Dropdown(options=["IS"], tooltip="operator", layout={"width": "4.5em"})
        self.number = widgets.Combobox(continuous_update=False, tooltip="value", layout={"width": "7em"})
        self._unit, self._said = words(), words(flex="1 1 10em")
        self.remove = button("✕", "take this attribute away", lambda: removed(self))
        super().__init__((self.key, self.operator, self.number, self._unit, self.remove, self._said))
        self.add_class("wb-field")
        self.key.observe(self._key_picked, "value")
        for control in (self.operator, self.number):
            control.observe(self._changed, "value")

    def list_keys(self, names: tuple[str, ...]) -> None:
        """Let these keys be picked, and the one that is."""
        picked = self.key.value
        options = names if picked in names or picked is None else (*names, picked)
        if self.key.options != options:
            self._is_setting = True
            self.key.options = options
            self.key.value = picked
            self._is_setting = False

    def show(self, attribute: Attribute) -> None:
        """Show an attribute."""
        self._is_setting = True
        words = to_text((attribute,)).split(None, 2)
        if words[0] not in self.key.options:
            self.key.options = (*self.key.options, words[0])
        self.key.value = words[0]
        self._fit(OPERATOR_NAMES[attribute.operator])
        self.number.value = words[2] if len(words) > 2 else ""
        self.number.disabled = attribute.operator == EQ_ANY
        self._is_setting = False
        self._say("")

    def _fit(self, operator: str | None) -> None:
        """Operators, unit and choices of the key that is picked."""
        key = key_of(int(self.key.value) if self.key.value.isdigit() else self.key.value)
        numbers = BLOB_OPERATORS if key.type == BLOB else range(IS, EQ_ANY + 1)
        names = ["IS"] if self._kind == PUBLICATION else [str(OPERATOR_NAMES[number]) for number in numbers]
        self.operator.options = [(_SIGNS[name], name) for name in names]
        self.operator.value = operator if operator in names else names[0] if len(names) == 1 else "EQ"
        is_app = key.number == APP
        self.number.options = tuple(APPLICATION_TYPES) if is_app else ()
        self._unit.value = f"<span class='wb-unit'>{html.escape(_range_of(key))}</span>"

    def _key_picked(self, _: Any) -> None:
        if not self._is_setting:
            self._is_setting = True
            self._fit(self.operator.value)
            self._is_setting = False
            self._edited()

    def _changed(self, _: Any) -> None:
        if not self._is_setting:
            self._edited()

    def attribute(self) -> Attribute | None:
        """The attribute that stands here; None, and the error beside it, if it is none."""
        any_value = self.operator.value == "EQ_ANY"
        self.number.disabled = any_value
        text = f"{self.key.value} {self.operator.value} {'' if any_value else self._value()}"
        try:
            attributes = parse(text)
            if len(attributes) != 1:
                raise AttributeFormatError(f"{self.number.value} is more than one value")
        except WorkbenchError as error:
            self._say(str(error))
            return None
        self._say("")
        return attributes[0]

    def _value(self) -> str:
        """The value as the text form has it: a blob may be written without quotes here."""
        text = self.number.value.strip()
        key = key_of(int(self.key.value) if self.key.value.isdigit() else self.key.value)
        return f'"{text}"' if key.type == BLOB and not text.startswith(('"', "0x")) else text

    def _say(self, sentence: str) -> None:
        self.error = sentence
        self._said.value = error_html(sentence)


def _range_of(key: Any) -> str:
    """What a key's values may be: "°C, -327.68 to 327.67"."""
    if key.type == BLOB:
        return "text, or 0x and hex digits"
    if key.number == APP:
        return "type of application"
    low, high = (f"{bound:.6g}" for bound in (key.minimum, key.maximum))
    return f"{key.unit}, {low} to {high}".lstrip(", ")

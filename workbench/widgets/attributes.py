"""A panel for the attributes of a subscription or a publication, with a list of the workload's items that match.

The items are the workload's publications if the attributes belong to a subscription, and its subscriptions if they
belong to a publication. The rule of the protocol decides which items match.

Each attribute is a row of key, operator and value; all of them can also be edited as one text. User-defined keys appear
in the menu once a cell has registered them.
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
from workbench.widgets.panel import Panel

SUBSCRIPTION, PUBLICATION, CHOICE = "subscription", "publication", "choice"
_INITIAL_TEXTS = {SUBSCRIPTION: "TEMP GE 20", PUBLICATION: "TEMP IS 25", CHOICE: ""}
_MOST_COMPARED = 50  # items that are compared
_SIGNS = {"IS": "is", "EQ": "=", "NE": "≠", "GT": ">", "GE": "≥", "LT": "<", "LE": "≤", "EQ_ANY": "any"}


class Attributes(Panel):
    """A panel whose ``value`` is the text of attributes, such as "TEMP GE 20, TEMP LE 30".

    kind       to which object the attributes belong: "subscription", "publication", or "choice". The attributes of a
               choice select the messages that a filter receives; only a choice may have no attributes
    against    (label, attributes as text) of the items with which these attributes are matched: publications for a
               subscription, subscriptions for a publication
    protocol   the protocol whose rule decides which items match, and whether a publication may have constraints; None
               for the usual rule of attributes
    match_all  whether all operators of a subscription may be IS, so that it matches every publication
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
        self._row_pool: list[
            _Row
        ] = []  # the visible rows first; hidden ones are reused, as browsers never free a widget
        self._rows = widgets.VBox()
        self._add = button("+ attribute", "add an attribute; all attributes must hold", self._add_row)
        self._text = widgets.Text(
            continuous_update=False,
            description="as text",
            placeholder=_INITIAL_TEXTS[kind],
            tooltip='KEY OPERATOR VALUE, separated by commas, as in "TEMP GE 20, TEMP LE 30"',
            layout={"width": "auto"},
        )
        self._message, self._matches = words(), words()
        self.set_trait("kind", kind)
        self.protocol = protocol
        children = (self._rows, self._add, self._text, self._message, self._matches)
        super().__init__(_INITIAL_TEXTS[kind] if value is None else value, children)
        self.add_class("wb-attributes")
        self._text.observe(self._apply_text, "value")
        self.observe(self._show_error, "error")
        self.observe(self._compare_with_others, ("value", "against", "protocol"))
        self.observe(self._reread_text, "match_all")
        self.observe(self._apply_protocol, "protocol")
        self.against = tuple(against)
        refresh_after_cells(self)

    @property
    def rows(self) -> tuple[_Row, ...]:
        """The visible rows of controls, one for each attribute.

        A row has the controls ``key``, ``operator`` and ``number`` (the value), and a message ``error`` or "".
        """
        return tuple(self._rows.children)

    @property
    def allows_constraints(self) -> bool:
        """True if the attributes may be constraints, such as "TEMP GE 20".

        A subscription always allows constraints; a publication allows them only in some protocols.
        """
        return self.kind != PUBLICATION or _allows_constrained_data(self.protocol)

    def draw(self, value: str) -> None:
        """Show attributes in the rows of controls and in the text field.

        An invalid ``value`` is shown only in the text field, with an error.
        """
        self._text.value, self.error = value, ""
        try:
            attributes = self._parse_text(value)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self._draw_rows(attributes)

    def refresh(self) -> None:
        """Update the menus with keys that were registered since the last call."""
        names = _key_names()
        with quiet(self):
            for row in self._row_pool:
                row.list_keys(names)

    def _parse_text(self, text: str) -> tuple[Attribute, ...]:
        attributes = parse(text)
        if self.kind == SUBSCRIPTION:
            check_subscription(attributes, self.match_all)
        elif self.kind == PUBLICATION:
            check_publication(attributes, self.allows_constraints)
        return attributes

    def _draw_rows(self, attributes: tuple[Attribute, ...]) -> None:
        with quiet(self):
            names = _key_names()
            self._fill_row_pool(len(attributes))
            for row, attribute in zip(self._row_pool, attributes, strict=False):
                row.list_keys(names)
                row.show(attribute)
            self._rows.children = tuple(self._row_pool[: len(attributes)])

    def _fill_row_pool(self, count: int) -> None:
        while len(self._row_pool) < count:
            self._row_pool.append(_Row(lambda: self.allows_constraints, self._apply_rows, self._remove_row))

    # Actions of the user

    def _apply_text(self, change: Any) -> None:
        if self._is_drawing:
            return
        try:
            attributes = self._parse_text(change.new)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = ""
        self._draw_rows(attributes)
        self.offer(change.new.strip())

    def _apply_rows(self) -> None:
        if self._is_drawing:
            return
        attributes = [row.attribute() for row in self.rows]
        if None not in attributes:
            self._offer_rows(tuple(item for item in attributes if item is not None))

    def _offer_rows(self, attributes: tuple[Attribute, ...]) -> None:
        attributes_text = to_text(attributes)
        with quiet(self):
            self._text.value = attributes_text
        try:
            self._parse_text(attributes_text)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.error = ""
        self.offer(attributes_text)

    def _add_row(self) -> None:
        visible_rows = self.rows
        self._fill_row_pool(len(visible_rows) + 1)
        row = self._row_pool[len(visible_rows)]
        with quiet(self):
            row.list_keys(_key_names())
            last_attribute = visible_rows[-1].attribute() if visible_rows else None
            row.show(last_attribute or parse(_INITIAL_TEXTS[self.kind] or "TEMP EQ_ANY")[0])
            self._rows.children = (*visible_rows, row)
        self._apply_rows()

    def _remove_row(self, row: _Row) -> None:
        remaining_rows = tuple(other for other in self.rows if other is not row)
        self._row_pool.remove(row)
        self._row_pool.append(row)
        self._rows.children = remaining_rows
        self._apply_rows()

    def _reread_text(self, _: Any) -> None:
        self._apply_text(traitlets.Bunch(new=self._text.value))

    def _apply_protocol(self, change: Any) -> None:
        """Redraw a publication if the new protocol changes whether publications may have constraints.

        The menus then offer other operators, or an error appears. ``change``: an object with the protocols as ``old``
        and ``new``.
        """
        if self.kind == PUBLICATION and _allows_constrained_data(change.old) != _allows_constrained_data(change.new):
            with quiet(self):
                self.draw(self.value)

    # Messages

    def _show_error(self, change: Any) -> None:
        self._message.value = error_html(change.new)

    def _compare_with_others(self, _: Any = None) -> None:
        compared_items = tuple(self.against)
        self._matches.value = _comparison_html(self, compared_items) if compared_items else ""

    def matches(self) -> tuple[tuple[str, bool, str], ...]:
        """Match the panel's attributes with the items in ``against``, at most the first `_MOST_COMPARED` items.

        Returns (label of the item, whether it matches, the reason if it does not match) for each item.
        """
        comparisons = []
        for label, text in tuple(self.against)[:_MOST_COMPARED]:
            subscription, publication = (text, self.value) if self.kind == PUBLICATION else (self.value, text)
            try:
                reason = why_not(subscription, publication, self.protocol)
            except WorkbenchError as error:
                reason = str(error)
            comparisons.append((label, not reason, reason))
        return tuple(comparisons)


def why_not(subscription: str, publication: str, protocol: Protocol | None = None) -> str:
    """Return why a publication does not match a subscription, or "" if it does.

    ``subscription``, ``publication``: attributes as text. ``protocol``: the protocol whose rule decides; None means the
    usual rule of attributes.
    """
    protocol = protocol or Protocol()
    if matching_of(protocol).samples(subscription, publication):
        return ""
    return mismatch(protocol, subscription, [publication])


def _comparison_html(panel: Attributes, all_items: tuple[tuple[str, str], ...]) -> str:
    comparisons = panel.matches()
    plural = "subscriptions" if panel.kind == PUBLICATION else "publications"
    match_count = sum(is_match for _, is_match, _ in comparisons)
    comparison_lines = [
        f"<li class='wb-match'>✓ {html.escape(label)}</li>" for label, is_match, _ in comparisons if is_match
    ]
    comparison_lines += [
        f"<li class='wb-no-match'>✗ {html.escape(label)}<br>{html.escape(reason)}</li>"
        for label, is_match, reason in comparisons
        if not is_match
    ]
    omitted = (
        f"; {len(all_items) - len(comparisons):,} more are not compared" if len(all_items) > len(comparisons) else ""
    )
    summary = f"Matches {match_count} of {len(comparisons)} {plural}{omitted}."
    return f"<div class='wb-matches'>{summary}<ul>{''.join(comparison_lines)}</ul></div>"


def _allows_constrained_data(protocol: Protocol | None) -> bool:
    return protocol is not None and protocol.allows_constrained_data


def _key_names() -> tuple[str, ...]:
    return tuple(key.name for key in known_keys())


class _Row(widgets.HBox):
    """The controls of one attribute: its key, operator and value, the unit and range of the key, and an error.

    ``allows_constraints``: a function that returns whether the menu offers operators other than IS, such as GE.
    """

    def __init__(
        self, allows_constraints: Callable[[], bool], on_edit: Callable[[], None], on_remove: Callable[[_Row], None]
    ) -> None:
        self._allows_constraints, self._on_edit = allows_constraints, on_edit
        self._is_setting = False
        self.error = ""
        self.key = widgets.Dropdown(options=_key_names(), tooltip="key", layout={"width": "8.5em"})
        self.operator = widgets.Dropdown(options=["IS"], tooltip="operator", layout={"width": "4.5em"})
        self.number = widgets.Combobox(continuous_update=False, tooltip="value", layout={"width": "7em"})
        self._unit, self._message = words(), words(flex="1 1 10em")
        self.remove = button("✕", "remove this attribute", lambda: on_remove(self))
        super().__init__((self.key, self.operator, self.number, self._unit, self.remove, self._message))
        self.add_class("wb-field")
        self.key.observe(self._apply_key, "value")
        for control in (self.operator, self.number):
            control.observe(self._apply_control, "value")

    def list_keys(self, names: tuple[str, ...]) -> None:
        """Offer these attribute keys in the menu; the selected key remains selected."""
        selected_name = self.key.value
        menu_names = names if selected_name in names or selected_name is None else (*names, selected_name)
        if self.key.options != menu_names:
            self._is_setting = True
            self.key.options = menu_names
            self.key.value = selected_name
            self._is_setting = False

    def show(self, attribute: Attribute) -> None:
        self._is_setting = True
        text_fields = to_text((attribute,)).split(None, 2)
        if text_fields[0] not in self.key.options:
            self.key.options = (*self.key.options, text_fields[0])
        self.key.value = text_fields[0]
        self._offer_operators(OPERATOR_NAMES[attribute.operator])
        self.number.value = text_fields[2] if len(text_fields) > 2 else ""
        self.number.disabled = attribute.operator == EQ_ANY
        self._is_setting = False
        self._show_message("")

    def _offer_operators(self, operator: str | None) -> None:
        """Fill the menus of operators and values for the selected key, and show the key's unit.

        ``operator``: the operator to select. If the menu does not contain it, select EQ, or the only operator.
        """
        key = key_of(int(self.key.value) if self.key.value.isdigit() else self.key.value)
        operator_codes = BLOB_OPERATORS if key.type == BLOB else range(IS, EQ_ANY + 1)
        operator_names = (
            [str(OPERATOR_NAMES[operator_code]) for operator_code in operator_codes]
            if self._allows_constraints()
            else ["IS"]
        )
        self.operator.options = [(_SIGNS[name], name) for name in operator_names]
        self.operator.value = (
            operator if operator in operator_names else operator_names[0] if len(operator_names) == 1 else "EQ"
        )
        is_app = key.number == APP
        self.number.options = tuple(APPLICATION_TYPES) if is_app else ()
        self._unit.value = f"<span class='wb-unit'>{html.escape(_describe_range(key))}</span>"

    def _apply_key(self, _: Any) -> None:
        if not self._is_setting:
            self._is_setting = True
            # An INTERVAL with another operator would constrain the readings.
            self._offer_operators("IS" if self.key.value == "INTERVAL" else self.operator.value)
            self._is_setting = False
            self._on_edit()

    def _apply_control(self, _: Any) -> None:
        if not self._is_setting:
            self._on_edit()

    def attribute(self) -> Attribute | None:
        """Return the attribute in this row. If it is invalid, show the error and return None."""
        any_value = self.operator.value == "EQ_ANY"
        self.number.disabled = any_value
        attribute_text = f"{self.key.value} {self.operator.value} {'' if any_value else self._value_text()}"
        try:
            attributes = parse(attribute_text)
            if len(attributes) != 1:
                raise AttributeFormatError(f"{self.number.value} is more than one value; give one value in each row")
        except WorkbenchError as error:
            self._show_message(str(error))
            return None
        self._show_message("")
        return attributes[0]

    def _value_text(self) -> str:
        """Return the value that the user entered, as text. For a key of byte strings, add missing quotes."""
        value_text = self.number.value.strip()
        key = key_of(int(self.key.value) if self.key.value.isdigit() else self.key.value)
        return f'"{value_text}"' if key.type == BLOB and not value_text.startswith(('"', "0x")) else value_text

    def _show_message(self, sentence: str) -> None:
        self.error = sentence
        self._message.value = error_html(sentence)


def _describe_range(key: Any) -> str:
    """Return a text about the values of an attribute key: unit and range, such as "°C, -327.68 to 327.67"."""
    if key.type == BLOB:
        return "text, or 0x and hex digits"
    if key.number == APP:
        return "type of application"
    low, high = (f"{bound:.6g}" for bound in (key.minimum, key.maximum))
    return f"{key.unit}, {low} to {high}".lstrip(", ")

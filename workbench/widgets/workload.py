"""A panel for the workload: a list of its subscriptions, publications and outages, and a form for the selected item.

`workbench.sim.workload` makes the item from the form. So invalid input gives the same errors as in Python. An error is
shown beside its field, and the item stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sensor_field import SensorField, parameters
from workbench.sim import workload
from workbench.sim.actions import ALL
from workbench.sim.changes.items import Outage, outage
from workbench.sim.readings import Readings
from workbench.sim.workload import KINDS, Item, Subscribe
from workbench.widgets.attributes import PUBLICATION, SUBSCRIPTION, Attributes
from workbench.widgets.controls import (
    ListPanel,
    TextField,
    button,
    error_html,
    known_nodes,
    moved,
    nodes_of,
    nodes_text,
    quiet,
    replaced,
    without,
    words,
)
from workbench.widgets.fields import Field, fields_of

_TITLES = {
    "subscribe": "Subscription",
    "publish": "Publication",
    "outage": "Outage",
    "reinforce": "Reinforcement",
}
_TIMES = {
    "subscribe": (
        ("start_s", "s", "when it begins"),
        ("stop_s", "s", "when it ends; empty: never"),
        ("expires_s", "s", "time from its begin until it expires; empty: never"),
    ),
    "publish": (
        ("start_s", "s", "when it is first published"),
        ("every_s", "s", "interval between publications; empty: it is published once"),
        ("stop_s", "s", "when it ends; empty: at the end of the run"),
        ("payload", "hex digits", "bytes that it carries, two digits each; empty: no bytes"),
    ),
    "outage": (
        ("start_s", "s", "when the nodes fail"),
        ("stop_s", "s", "when they are back; empty: never"),
    ),
    "reinforce": (
        ("start_s", "s", "when the sinks reinforce the paths to the sources that the constraints select"),
        ("every_s", "s", "interval between reinforcements; empty: once"),
        ("stop_s", "s", "when it ends; empty: at the end of the run"),
    ),
}
_FLAGS = {
    "subscribe": ("match_all", "it may have no constraints; then it matches all publications"),
    "publish": ("stagger", "each node publishes at a time of its own within every_s"),
}
_MOST_COMPARED = 60  # items that are compared


class Workload(ListPanel):
    """A panel whose ``value`` is the workload: a tuple of items from `wb.subscribe`, `wb.publish`,
    `wb.outage` and `wb.reinforce`.

    nodes     the nodes of the network; () if unknown
    protocol  the protocol whose rule decides what matches; None for the usual rule of attributes
    """

    nodes = traitlets.Any(())
    protocol = traitlets.Any()

    def __init__(self, value: Iterable[Item] = (), nodes: Iterable[int] = (), protocol: Protocol | None = None) -> None:
        self.nodes, self.protocol = tuple(nodes), protocol
        add = [
            button(f"+ {title}", "at the nodes that are selected on the map, if any", partial(self.add, kind))
            for kind, title in _TITLES.items()
        ]
        self._make_list("items of the workload", "Nothing happens yet: add a subscription and a publication.", "item")
        self._forms: dict[str, _Form] = {}
        self._form_box = widgets.VBox()
        adding = widgets.HBox(add, layout={"flex_flow": "row wrap"})
        super().__init__((), (adding, self._lines, self._form_box, self._move_button))
        self.add_class("wb-workload")
        self._watch_list()
        self.observe(self._draw_form, "protocol")
        self.observe(self._update_nodes, "nodes")
        self.value = tuple(value)

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the workload, in the order of the list."""
        return self.value

    def draw(self, value: tuple[Item, ...]) -> None:
        """Show the items, and the form of the selected item."""
        index = min(self.selected, len(value) - 1)
        self._lines.show(self._texts(value), 0 if index < 0 and value else index)
        self.selected = self._lines.selected
        self._draw_form()

    def _texts(self, items: Iterable[Item]) -> list[str]:
        """Return a line of text for each workload item. The line names the item's nodes that are not in the network."""
        network_nodes = set(self.nodes)
        item_texts = []
        for item in items:
            absent = (
                []
                if isinstance(item.at, str) or not network_nodes
                else [node for node in item.at if node not in network_nodes]
            )
            item_texts.append(
                line_of(item) + (f" – no node {nodes_text(tuple(absent))} in this network" if absent else "")
            )
        return item_texts

    def _update_nodes(self, _: Any) -> None:
        with quiet(self):
            self._lines.show(self._texts(self.value), self.selected)
        self._draw_form()

    def _list_actions(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        return (
            ("Duplicate", "add a copy of the item", self._duplicate),
            ("Remove", "remove the item", self._remove),
            ("↑", "move the item up", lambda: self._move(-1)),
            ("↓", "move the item down", lambda: self._move(1)),
        )

    # Actions of the user

    def add(self, kind: str) -> None:
        """Add an item of a kind: "subscribe", "publish", "outage" or "reinforce".

        The item is at the nodes that are selected on the map. Without a selection, a subscription is at the first node,
        a reinforcement is at the nodes of the last subscription, and any other item is at the last node.
        """
        sinks = [item.at for item in self.value if isinstance(item, Subscribe) and not isinstance(item.at, str)]
        default = sinks[-1] if kind == "reinforce" and sinks else _default_node(kind, tuple(self.nodes))
        nodes = tuple(self.picked) or default
        self._set_items((*self.value, _new_item(kind, nodes, self.value)), len(self.value))

    def toggle(self, kind: str, nodes: Iterable[int], time_s: float | None = None) -> None:
        """Make nodes sinks ("subscribe"), sources ("publish") or failing ("outage").

        If all of these nodes have the role already, remove the role from them.

        time_s: the present time of the player. A node has the role "outage" only if it is down at this time. A new item
            of the workload begins at this time. None: all outages count, and a new item gets the times of the last one.
        """
        nodes = tuple(dict.fromkeys(nodes))
        if not nodes:
            return
        items: tuple[Item, ...] = tuple(self.value)
        indices = [i for i, item in enumerate(items) if kind_of(item) == kind and _is_relevant_at(item, time_s)]
        nodes_with_role = {node for i in indices for node in (nodes if items[i].at == ALL else items[i].at)}
        nodes_without_role = tuple(node for node in nodes if node not in nodes_with_role)
        if not nodes_without_role:
            self._set_items(_remove_nodes(items, indices, nodes, tuple(self.nodes)), self.selected)
            return
        # Nodes are added to the last such item, unless they must begin at another time.
        for index in reversed(indices):
            item_nodes = items[index].at
            if not isinstance(item_nodes, str) and time_s in (None, items[index].start_s):
                self._set_items(
                    replaced(items, index, replace(items[index], at=(*item_nodes, *nodes_without_role))), index
                )
                return
        item = _new_item(kind, nodes_without_role, items)
        self._set_items((*items, item if time_s is None else _starting_at(item, time_s)), len(items))

    def _set_items(self, items: tuple[Item, ...], selected: int) -> None:
        self.selected = min(selected, len(items) - 1)
        self.value = items

    def _duplicate(self) -> None:
        index = self.selected
        self._set_items((*self.value[: index + 1], *self.value[index:]), index + 1)

    def _remove(self) -> None:
        self._set_items(without(self.value, self.selected), self.selected)

    def _move(self, step: int) -> None:
        index = self.selected
        target_index = min(max(index + step, 0), len(self.value) - 1)
        if target_index != index:
            self._set_items(moved(self.value, index, target_index), target_index)

    def _move_to_picked(self) -> None:
        if self.picked and self.selected >= 0:
            item = replace(self.value[self.selected], at=tuple(self.picked))
            self._set_items(replaced(self.value, self.selected, item), self.selected)

    def _apply_edit(self, item: Item) -> None:
        items = replaced(self.value, self.selected, item)
        with quiet(self):
            self._lines.show(self._texts(items), self.selected)
        self.offer(items)

    # The form

    def _draw_form(self, _: Any = None) -> None:
        if not 0 <= self.selected < len(self.value):
            self._form_box.children = ()
            return
        item = self.value[self.selected]
        item_form = self._form_of(kind_of(item))
        item_form.show(item, tuple(self.nodes), self.protocol, self._items_to_compare(item))
        self._form_box.children = (item_form,)

    def _form_of(self, kind: str) -> _Form:
        if kind not in self._forms:
            self._forms[kind] = _Form(kind, self._apply_edit)
        return self._forms[kind]

    def _items_to_compare(self, item: Item) -> tuple[tuple[str, str], ...]:
        """Return (label, attributes as text) of the items that ``item`` could match, at most `_MOST_COMPARED` items.

        A subscription or reinforcement is compared with publications, a publication with subscriptions, and an outage
        with no item.
        """
        kind = {"subscribe": "publish", "publish": "subscribe", "reinforce": "publish"}.get(kind_of(item))
        compared_items = islice(
            (item_to_compare for item_to_compare in self.value if kind_of(item_to_compare) == kind), _MOST_COMPARED
        )
        return tuple(
            (f"{_nodes_phrase(item_to_compare)}: {_content_text(item_to_compare)}", _comparison_text(item_to_compare))
            for item_to_compare in compared_items
        )


# Items


def kind_of(item: Item) -> str:
    """Return the kind of a workload item: "subscribe", "publish", "outage" or "reinforce"."""
    return next(kind for kind, cls in KINDS.items() if isinstance(item, cls))


def line_of(item: Item) -> str:
    """Return one line of text about an item of a workload: its nodes, attributes and times."""
    start_text, stop_text = f"from {item.start_s:g} s", "" if item.stop_s is None else f" to {item.stop_s:g} s"
    if isinstance(item, Outage):
        return f"{_nodes_phrase(item)} off {start_text}{stop_text}"
    if isinstance(item, Subscribe):
        duration = "" if item.expires_s is None else f", for {item.expires_s:g} s"
        subscription_text = f"{_nodes_phrase(item)} {_verb_form('subscribe', item)} to {_content_text(item)}"
        return f"{subscription_text}, {start_text}{stop_text}{duration}"
    item_text = f"{_nodes_phrase(item)} {_verb_form(kind_of(item), item)} {_content_text(item)}"
    if isinstance(item.what, Readings):
        return f"{item_text}, {start_text}{stop_text}"
    if item.every_s is None:
        return f"{item_text}, at {item.start_s:g} s"
    return f"{item_text} every {item.every_s:g} s, {start_text}{stop_text}"


def _verb_form(verb: str, item: Item) -> str:
    """Return the verb in the singular or plural, as the number of the item's nodes requires: "publishes", "publish"."""
    is_one = item.at == ALL or len(item.at) == 1
    return f"{verb}{'es' if verb.endswith('sh') else 's'}" if is_one else verb


def _nodes_phrase(item: Item) -> str:
    if item.at == ALL:
        return "every node"
    return f"node {item.at[0]}" if len(item.at) == 1 else f"nodes {nodes_text(item.at)}"


def _content_text(item: Any) -> str:
    if isinstance(item.what, Readings):
        return _readings_text(item.what)
    return f"readings of a field of {item.what.key}" if isinstance(item.what, SensorField) else item.what or "all"


def _readings_text(readings: Readings) -> str:
    return f"{len(readings.times_s):,} measured readings of {', '.join(readings.keys)}"


def _comparison_text(item: Any) -> str:
    """Return the text of the attributes by which an item is matched with other items.

    A publication of a sensor field is represented by the field's mean value, and measured readings by the first one.
    """
    if isinstance(item.what, Readings):
        return item.what.attributes(0, 0.0, 0.0, 0.0)
    if isinstance(item.what, SensorField):
        return f"{item.what.key} IS {item.what.base:g}"
    return item.what


def _new_item(kind: str, nodes: tuple[int, ...], items: tuple[Item, ...]) -> Item:
    """Return a new item at ``nodes``, with the content and times of the last item of the same kind in ``items``.

    Without such an item, the content is an example, such as "TEMP GE 20". A new outage always begins at 0 s. A new
    reinforcement has the constraints of the last subscription that shares a node with ``nodes``. If no subscription
    does, it has the constraints of the last subscription.
    """
    if kind == "outage":
        return outage(nodes, 0.0)
    subscriptions = [item for item in items if isinstance(item, Subscribe)]
    if kind == "reinforce":
        node_subscriptions = [
            item for item in subscriptions if isinstance(item.at, str) or set(nodes) & set(item.at)
        ] or subscriptions
        return workload.reinforce(
            nodes, node_subscriptions[-1].what if node_subscriptions else "TEMP GE 20", start_s=10.0
        )
    for item in reversed(items):
        if isinstance(item, KINDS[kind]):
            return replace(item, at=nodes)
    if kind == "subscribe":
        return workload.subscribe(nodes, "TEMP GE 20")
    return workload.publish(nodes, "TEMP IS 25", every_s=5.0)


def _default_node(kind: str, nodes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the node of a new item without selected nodes: the first for a subscription, else the last.

    So messages from publishers to subscribers must cross the network. ``kind``: the kind of item.
    """
    if not nodes:
        return (0,)
    return (min(nodes),) if kind == "subscribe" else (max(nodes),)


def _is_relevant_at(item: Item, time_s: float | None) -> bool:
    """Return False only if ``item`` is an outage that is not in progress at ``time_s``; None means any time."""
    if time_s is None or not isinstance(item, Outage):
        return True
    return item.start_s <= time_s and (item.stop_s is None or time_s < item.stop_s)


def _starting_at(item: Item, time_s: float) -> Item:
    """Return a workload item that begins at ``time_s``; an end that is not after this time is removed."""
    stop_s = item.stop_s if item.stop_s is not None and item.stop_s > time_s else None
    return replace(item, start_s=float(time_s), stop_s=stop_s)


def _remove_nodes(
    items: tuple[Item, ...], indices: list[int], nodes: tuple[int, ...], network_nodes: tuple[int, ...]
) -> tuple[Item, ...]:
    """Remove ``nodes`` from the items at ``indices``; return all remaining items.

    Items that have no node left are removed. ``network_nodes``: all nodes of the network. An item at "all" nodes is
    changed to an item at all other nodes of the network.
    """
    removed_nodes, remaining_items = set(nodes), []
    for index, item in enumerate(items):
        item_nodes = network_nodes if isinstance(item.at, str) else item.at
        if index not in indices or removed_nodes.isdisjoint(item_nodes):
            remaining_items.append(item)
            continue
        nodes_left = tuple(node for node in item_nodes if node not in removed_nodes)
        if nodes_left:
            remaining_items.append(replace(item, at=nodes_left))
    return tuple(remaining_items)


class _Form(widgets.VBox):
    """The form of a workload item of one ``kind``, such as "publish".

    ``on_edit(item)`` is called with the new item after each valid change.
    """

    def __init__(self, kind: str, on_edit: Callable[[Item], None]) -> None:
        self.kind, self._on_edit = kind, on_edit
        self._is_drawing = False
        self._item: Any = None
        self._nodes: tuple[int, ...] = ()
        self.at = TextField("nodes", "", 'numbers, as in "0, 5" or "3-7", or "all"', "0, 5")
        self.times = {name: TextField(name, unit, reason) for name, unit, reason in _TIMES[kind]}
        self.flag = _make_checkbox(kind)
        self.content = _ContentForm(kind, self._apply_edit) if kind != "outage" else None
        self._message = words()
        title = words(f"<b>{_TITLES[kind]}</b>")
        controls = (title, self.at, self.content, *self.times.values(), self.flag, self._message)
        super().__init__(tuple(control for control in controls if control is not None))
        self.add_class("wb-item")
        for field in self._text_fields().values():
            field.observe(self._apply_edit, "text")
        if self.flag is not None:
            self.flag.observe(self._apply_edit, "value")

    def _text_fields(self) -> dict[str, TextField]:
        return {"at": self.at, **self.times}

    def show(
        self, item: Item, nodes: tuple[int, ...], protocol: Protocol | None, others: tuple[tuple[str, str], ...]
    ) -> None:
        """Show an item. Invalid input remains in the form if the form shows this item already.

        ``nodes``: nodes of the network. ``others``: (label, attributes as text) of the subscriptions or publications
        that are matched with the item by the rule of ``protocol``.
        """
        self._nodes = nodes
        with quiet(self):
            if self.content is not None:
                self.content.attributes.protocol = protocol  # which may allow constraints in the item
            if item != self._item:
                self._item = item
                self._fill_fields(item)
            if self.content is not None:
                self.content.compare(protocol, others)

    def _fill_fields(self, item: Item) -> None:
        self.at.text = nodes_text(item.at)
        for name, field in self.times.items():
            value = getattr(item, name)
            field.text = "" if value is None else value.hex() if isinstance(value, bytes) else f"{value:.12g}"
        if self.flag is not None:
            self.flag.value = getattr(item, self.flag.description)
        if self.content is not None:
            self.content.match_all = getattr(item, "match_all", False)
            self.content.show(item.what)  # type: ignore[union-attr]
        self._show_message("")

    def _apply_edit(self, _: Any = None) -> None:
        if self._is_drawing:
            return
        if self.content is not None and self.kind == "subscribe":
            with quiet(self):
                self.content.match_all = self.flag.value  # type: ignore[union-attr]
        try:
            item = self._make_item()
        except WorkbenchError as error:
            self._show_message(str(error))
            return
        self._show_message("")
        if item != self._item:
            self._item = item
            self._on_edit(item)

    def _make_item(self) -> Item:
        try:
            nodes = known_nodes(nodes_of(self.at.text), self._nodes, () if self._item is None else self._item.at)
        except ParameterError as error:
            raise ParameterError(f"at: {error}") from None
        item_fields: dict[str, Any] = {"at": nodes}
        for name, field in self.times.items():
            if field.text.strip():
                item_fields[name] = field.text.strip() if name == "payload" else _parse_number(field.text)
        if self.flag is not None:
            item_fields[self.flag.description] = self.flag.value
        if self.content is not None:
            item_fields["what"] = self.content.plain()
        if self.kind == "outage":
            item_fields.setdefault("start_s", 0.0)
        return workload.from_dict({self.kind: item_fields}, where="")

    def _show_message(self, sentence: str) -> None:
        """Show an error message: beside a field if the message begins with the field's name, else below all fields."""
        sentence = sentence.removeprefix(": ")
        first_word = sentence.partition(" ")[0].rstrip(":")
        for name, field in self._text_fields().items():
            field.error = sentence.removeprefix("at: ") if name == first_word else ""
        self._message.value = "" if first_word in self._text_fields() else error_html(sentence)


def _parse_number(text: str) -> float | str:
    """Return the number in a text, or the text itself if it is not a number.

    The constructor of the workload item raises the error for an invalid text.
    """
    try:
        return float(text)
    except ValueError:
        return text.strip()


def _make_checkbox(kind: str) -> widgets.Checkbox | None:
    if kind not in _FLAGS:
        return None
    name, reason = _FLAGS[kind]
    return widgets.Checkbox(description=name, tooltip=reason, indent=False)


class _ContentForm(widgets.VBox):
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
        self.attributes.observe(self._attributes_edited, "value")
        self.source.observe(self._source_picked, "value")

    def show(self, content: str | SensorField | Readings) -> None:
        """Show the content of an item: attributes as text, a sensor field, or measured readings."""
        self._readings = content if isinstance(content, Readings) else None
        if isinstance(content, Readings):
            self.children = (words(_readings_text(content)),)
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
                field.observe(self._field_changed, "value")
            self._fields.children = tuple(self.field.values())
        for name, field in self.field.items():
            field.value = field_values[name]

    def _source_picked(self, _: Any) -> None:
        if not self._is_drawing:
            with quiet(self):
                if self.source.value:
                    self._fill_fields()
                self._show_editor()
            self._apply_edit()

    def _field_changed(self, change: Any) -> None:
        if self._is_drawing:
            return
        name = change.owner.parameter.name
        try:
            self._value = replace(self._value, **{name: change.new})
        except WorkbenchError as error:
            change.owner.error = str(error)
            return
        self._apply_edit()

    def _attributes_edited(self, _: Any) -> None:
        if not self._is_drawing:
            self._apply_edit()

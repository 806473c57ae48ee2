"""A panel for the workload: a list of its items, and a form for the selected item.

`workbench.sim.workload` makes the item from the form. So invalid input gives the same errors as in Python. An error is
shown beside its field, and the item stays unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import ipywidgets as widgets
import networkx as nx
import traitlets

from workbench.errors import WorkbenchError
from workbench.mobility import Waypoints
from workbench.protocols.protocol import Protocol
from workbench.sim import workload
from workbench.sim.actions import ALL
from workbench.sim.changes.items import Jam, LinkTrace, Move
from workbench.sim.workload import Item
from workbench.widgets.controls import ListPanel, known_nodes, moved, nodes_text, quiet, replaced, without, words
from workbench.widgets.panel import shared
from workbench.widgets.workload.form import ItemForm
from workbench.widgets.workload.items import (
    GROUPS,
    copy_with_start,
    has_field,
    is_relevant_at,
    kind_of,
    remove_nodes,
    title_of,
    with_fields,
)
from workbench.widgets.workload.measured import read_trace
from workbench.widgets.workload.movement import append_waypoint
from workbench.widgets.workload.new_items import new_item
from workbench.widgets.workload.overlay import with_point_moved, without_point
from workbench.widgets.workload.scenario_context import ScenarioContext
from workbench.widgets.workload.texts import comparison_text, content_text, line_of, nodes_phrase

_MOST_COMPARED = 60  # items that are compared
_MOVE = "move"


class Workload(ListPanel):
    """A panel whose ``value`` is the workload: a tuple of items, as `wb.subscribe` and `wb.crash` return them.

    nodes       the nodes of the network; () if unknown
    network     the network, which sets defaults of new items; None if unknown
    duration_s  duration of the run in s
    protocol    the protocol whose rule decides what matches; None for the usual rule of attributes
    """

    nodes = traitlets.Any(())
    network = traitlets.Any()
    duration_s = traitlets.Float(60.0)
    protocol = traitlets.Any()

    def __init__(
        self,
        value: Iterable[Item] = (),
        nodes: Iterable[int] = (),
        protocol: Protocol | None = None,
        network: nx.DiGraph | None = None,
    ) -> None:
        self._context = ScenarioContext()
        self.nodes, self.protocol, self.network = tuple(nodes), protocol, network
        self._make_list("items of the workload", "Nothing happens yet: add a subscription and a publication.", "item")
        self._forms: dict[str, ItemForm] = {}
        self._form_box = widgets.VBox()
        self._adding = widgets.VBox(tuple(self._add_row(title, kinds) for title, kinds in GROUPS.items()))
        super().__init__((), (self._adding, self._lines, self._form_box, self._move_button))
        self.add_class("wb-workload")
        self._watch_list()
        self.observe(self._draw_form, "protocol")
        self.observe(self._update_nodes, ("nodes", "network", "duration_s"))
        self.value = tuple(value)

    def _add_row(self, title: str, kinds: tuple[str, ...]) -> widgets.HBox:
        """Return a row with a title and, for each of ``kinds``, a button that adds an item of this kind."""
        buttons = []
        for kind in kinds:
            reason = f"add at the nodes that are selected on the map, if any: {title_of(kind)}"
            adding = widgets.Button(
                description=f"+ {title_of(kind)}",
                tooltip=reason,
                layout=shared("layout of add buttons", partial(widgets.Layout, width="auto")),
                style=shared("style of add buttons", widgets.ButtonStyle),
            )
            adding.on_click(lambda _, kind=kind: self.add(kind))
            buttons.append(adding)
        label = words(f"<span class='wb-unit'>{title}</span>", width="3.2em", flex="none")
        row = widgets.HBox((label, *buttons), layout=shared("layout of add rows", _make_row_layout))
        row.add_class("wb-add")
        return row

    @property
    def context(self) -> ScenarioContext:
        """The network and the duration of the scenario."""
        present = ScenarioContext(tuple(self.nodes), self.network, self.duration_s)
        if present != self._context:  # the positions of a large network are computed once
            self._context = present
        return self._context

    @property
    def items(self) -> tuple[Any, ...]:
        """The items of the workload, in the order of the list."""
        return self.value

    def draw(self, value: tuple[Item, ...]) -> None:
        """Show the items, and the form of the selected item."""
        index = min(self.selected, len(value) - 1)
        self._lines.show(self._describe_items(value), 0 if index < 0 and value else index)
        self.selected = self._lines.selected
        self._draw_form()

    def _describe_items(self, items: Iterable[Item]) -> list[str]:
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
            self._lines.show(self._describe_items(self.value), self.selected)
        self._draw_form()

    def _button_actions(self) -> tuple[tuple[str, str, Callable[[], None]], ...]:
        return (
            ("Duplicate", "add a copy of the item", self._duplicate_item),
            ("Remove", "remove the item", self._remove_item),
            ("↑", "move the item up", lambda: self._move_item(-1)),
            ("↓", "move the item down", lambda: self._move_item(1)),
        )

    # Actions of the user

    def add(self, kind: str) -> None:
        """Add an item of a kind, such as "subscribe" or "crash".

        The item is at the nodes that are selected on the map. Without a selection, `new_item` chooses nodes, such as
        the first node for a subscription. A new movement takes its nodes out of earlier movements.
        """
        picked = tuple(self.picked)
        items = self._remove_from_movements(picked) if kind == _MOVE else tuple(self.value)
        self._set_items((*items, new_item(kind, picked, items, self.context)), len(items))

    def _remove_from_movements(self, nodes: tuple[int, ...]) -> tuple[Item, ...]:
        """Return the items of the workload, in which ``nodes`` are removed from all movements."""
        items: tuple[Item, ...] = tuple(self.value)
        moves = [index for index, item in enumerate(items) if isinstance(item, Move)]
        return remove_nodes(items, moves, nodes, tuple(self.nodes))

    def add_waypoint(self, nodes: Iterable[int], place_m: tuple[float, float], time_s: float | None = None) -> None:
        """Let nodes move to a position ``place_m`` (x, y) in m, at the speed in the form.

        If an item moves exactly these nodes along waypoints, the position becomes the last waypoint of this item.
        Otherwise a new item is added, and the nodes are taken out of all other movements.

        time_s: when the nodes begin to move in a new item; 0 if it is None or not within the run.
        """
        nodes = tuple(dict.fromkeys(nodes))
        if not nodes:
            return
        form = self._get_form(_MOVE)
        assert form.along is not None
        form.along.fit(self.context)
        speed_m_s = form.along.speed_m_s
        for index, item in enumerate(self.value):
            if isinstance(item, Move) and isinstance(item.along, Waypoints) and set(item.at) == set(nodes):
                along = append_waypoint(item.along, place_m, speed_m_s)
                self._set_items(replaced(self.value, index, with_fields(item, along=along)), index)
                return
        items = self._remove_from_movements(nodes)
        begin_s = time_s if time_s is not None and 0 < time_s < self.duration_s else 0.0
        home = Waypoints(((begin_s, *self.context.mean_position_m(nodes)),))
        along = append_waypoint(home, place_m, speed_m_s)
        if len(nodes) > 1 or not begin_s:  # at 0 s each node is at its own place
            along = Waypoints(along.points[1:])
        item = with_fields(new_item(_MOVE, nodes, items, self.context), along=along)
        self._set_items((*items, item), len(items))

    def take_trace(self, name: str, content: bytes) -> str:
        """Read a link trace from a CSV file and add it to the workload; a selected link trace is replaced instead.

        ``name``, ``content``: name and content of the file. Returns "", or the error if the file is not valid.
        """
        try:
            trace = read_trace(name, content)
            known_nodes(trace.nodes, self.nodes)
        except WorkbenchError as error:
            return str(error)
        item, index = LinkTrace(trace), self.selected
        if 0 <= index < len(self.value) and isinstance(self.value[index], LinkTrace):
            self._set_items(replaced(self.value, index, item), index)
        else:
            self._set_items((*self.value, item), len(self.value))
        return ""

    def move_point(self, index: int, point: int, place_m: tuple[float, float]) -> None:
        """Move a waypoint of the movement at ``index``, or the jammer at ``index``, to the position (x, y) in m.

        ``point``: the number of the waypoint, from 0; it is ignored for a jammer.
        """
        items = with_point_moved(tuple(self.value), index, point, place_m)
        self._set_items(items, index if items != self.value else self.selected)

    def erase_point(self, index: int, point: int) -> None:
        """Remove waypoint number ``point``, from 0, of the movement at ``index``, or the jammer at ``index``."""
        self._set_items(without_point(tuple(self.value), index, point), min(index, len(self.value) - 1))

    def toggle(self, kind: str, nodes: Iterable[int], time_s: float | None = None) -> None:
        """Give nodes a role: a kind of items, such as "subscribe" for sinks and "outage" for nodes that fail.

        If all of these nodes have the role already, remove the role from them.

        time_s: the present time of the player. A node has the role "outage", "crash" or "partition" only if such an
            item is in progress at this time. If the workload gets a new item, it begins at this time. None: all items
            count, and a new item has the same times as an item that `add` adds.
        """
        nodes = tuple(dict.fromkeys(nodes))
        if not nodes:
            return
        items: tuple[Item, ...] = tuple(self.value)
        indices = [i for i, item in enumerate(items) if kind_of(item) == kind and is_relevant_at(item, time_s)]
        nodes_with_role = {node for i in indices for node in (nodes if items[i].at == ALL else items[i].at)}
        nodes_without_role = tuple(node for node in nodes if node not in nodes_with_role)
        if not nodes_without_role:
            self._set_items(remove_nodes(items, indices, nodes, tuple(self.nodes)), self.selected)
            return
        # Nodes are added to the last such item, unless they must begin at another time.
        for index in reversed(indices):
            item_nodes = items[index].at
            if not isinstance(item_nodes, str) and time_s in (None, items[index].start_s):
                item = with_fields(items[index], at=(*item_nodes, *nodes_without_role))
                self._set_items(replaced(items, index, item), index)
                return
        item = new_item(kind, nodes_without_role, items, self.context)
        if time_s is not None:
            item = copy_with_start(item, time_s, self.duration_s)
        self._set_items((*items, item), len(items))

    def _set_items(self, items: tuple[Item, ...], selected: int) -> None:
        self.selected = min(selected, len(items) - 1)
        self.value = items

    def _duplicate_item(self) -> None:
        index = self.selected
        self._set_items((*self.value[: index + 1], *self.value[index:]), index + 1)

    def _remove_item(self) -> None:
        self._set_items(without(self.value, self.selected), self.selected)

    def _move_item(self, step: int) -> None:
        index = self.selected
        target_index = min(max(index + step, 0), len(self.value) - 1)
        if target_index != index:
            self._set_items(moved(self.value, index, target_index), target_index)

    def _move_to_picked_nodes(self) -> None:
        if self.picked and self.selected >= 0:
            item = self._copy_to_nodes(self.value[self.selected], tuple(self.picked))
            self._set_items(replaced(self.value, self.selected, item), self.selected)

    def _update_move_button(self, _: Any = None) -> None:
        super()._update_move_button()
        if not self._move_button.disabled and self.selected < len(self.value):
            item = self.value[self.selected]
            self._move_button.disabled = not (isinstance(item, Jam) or has_field(item, "at"))

    def _copy_to_nodes(self, item: Item, nodes: tuple[int, ...]) -> Item:
        """Return a copy of an item at other nodes.

        A jammer moves to the mean position of the nodes. Any other item that has no nodes is returned unchanged.
        """
        if isinstance(item, Jam):
            x_m, y_m = self.context.mean_position_m(nodes)
            return with_fields(item, x_m=round(x_m, 2), y_m=round(y_m, 2))
        return with_fields(item, at=nodes) if has_field(item, "at") else item

    def _apply_edit(self, item: Item) -> None:
        items = replaced(self.value, self.selected, item)
        with quiet(self):
            self._lines.show(self._describe_items(items), self.selected)
        self.offer(items)

    # The form

    def _draw_form(self, _: Any = None) -> None:
        self._update_move_button()
        if not 0 <= self.selected < len(self.value):
            self._form_box.children = ()
            return
        item = self.value[self.selected]
        item_form = self._get_form(kind_of(item))
        item_form.show(item, self.context, self.protocol, self._items_to_compare(item))
        self._form_box.children = (item_form,)

    def _get_form(self, kind: str) -> ItemForm:
        if kind not in self._forms:
            self._forms[kind] = ItemForm(kind, self._apply_edit, self._find_conflict)
        return self._forms[kind]

    def _find_conflict(self, item: Item) -> str:
        """Return why a movement cannot replace the selected item, or "". The sentence begins with the name of a field.

        Two items must not move the same node. Movements need a radius, or a network in which positions determine the
        links. For an item of any other kind, return "".
        """
        if not isinstance(item, Move) or self.network is None:
            return ""
        try:
            workload.check_movements(replaced(self.value, self.selected, item), self.network)
        except WorkbenchError as error:
            if item.radius_m is None and self.context.lacks_link_rule:
                return "radius_m is missing; the positions in this network do not determine its links"
            return f"{'radius_m' if 'radius_m' in str(error) else 'at'}: {error}"
        return ""

    def _items_to_compare(self, item: Item) -> tuple[tuple[str, str], ...]:
        """Return (label, attributes as text) of the items that ``item`` could match, at most `_MOST_COMPARED` items.

        A subscription or reinforcement is compared with publications, a publication with subscriptions, and any other
        item with no item.
        """
        kind = {"subscribe": "publish", "publish": "subscribe", "reinforce": "publish"}.get(kind_of(item))
        compared_items = islice(
            (item_to_compare for item_to_compare in self.value if kind_of(item_to_compare) == kind), _MOST_COMPARED
        )
        return tuple(
            (f"{nodes_phrase(item_to_compare)}: {content_text(item_to_compare)}", comparison_text(item_to_compare))
            for item_to_compare in compared_items
        )


def _make_row_layout() -> widgets.Layout:
    return widgets.Layout(flex_flow="row wrap", align_items="center")

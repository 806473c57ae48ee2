"""The state of the lab: a scenario and optionally a second protocol, with a history for undo.

Theory of operation
    A state is immutable. A change makes the next state. If the next state would be invalid, ``error`` is set and the
    present state remains. Undo goes back through the list of states. Quick changes of one number, as by a slider, are
    undone together; any other change is undone by itself.

    A change of the network may remove nodes. The workload at these nodes is left out of runs, but the state keeps it
    until the nodes are back. Settings that refer to such nodes, such as the roots of trees, get nodes that are in the
    network.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from itertools import islice
from typing import Any, NamedTuple

import networkx as nx
import traitlets

from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario
from workbench.sim.workload import Item
from workbench.topology.graphs import is_number
from workbench.widgets.workload.items import named_nodes, with_radius, without_nodes

MOST_STEPS = 200
_ONE_GESTURE_S = 1.0  # changes of one number at shorter intervals are one step
FIELDS = ("topology", "protocol", "workload", "radio", "duration_s", "seed")


class State(NamedTuple):
    """A scenario, and optionally a second protocol (``beside``) that runs in the same scenario, for comparison.

    ``composed``: the workload that the user composed, if some of its nodes are not in the network. The workload of the
    scenario omits these nodes. If the network has all nodes, ``composed`` is None.
    """

    scenario: Scenario
    beside: Protocol | None = None
    composed: tuple[Item, ...] | None = None

    @property
    def workload(self) -> tuple[Item, ...]:
        """The workload as the user composed it, including items at nodes that are no longer in the network."""
        return self.scenario.workload if self.composed is None else self.composed

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios to run: one scenario, or two that differ only in their protocol."""
        if self.beside is None:
            return (self.scenario,)
        return self.scenario, self.scenario.replace(protocol=self.beside)


class History(traitlets.HasTraits):
    """The present state of the lab with the states before and after it.

    ``state`` can be observed. ``error``: why the last change was invalid, or "".
    """

    state = traitlets.Any()
    error = traitlets.Unicode()

    def __init__(self, state: State) -> None:
        super().__init__(state=state)
        self._past_states: list[State] = []
        self._undone_states: list[State] = []
        # The path of the last changed number, and when it changed.
        self._last_change: tuple[tuple[Any, ...] | None, float] = (None, 0.0)

    def restart(self, state: State) -> None:
        """Replace the present state and forget all others, so that this change cannot be undone."""
        self._past_states, self._undone_states = [], []
        self._set_state(state)

    @property
    def scenario(self) -> Scenario:
        """The present scenario."""
        return self.state.scenario

    def change(self, **fields: Any) -> bool:
        """Make the next state, a copy of the present state with other ``fields``; return whether it is valid.

        ``fields``: fields of the scenario, or ``beside``, the second protocol for comparison. If the next state would
        be invalid, the present state remains, and ``error`` contains the reason.
        """
        try:
            next_state = _apply_fields(self.state, fields)
        except WorkbenchError as error:
            self.error = str(error)
            return False
        self.error = ""
        if next_state == self.state:
            return True
        path, now_s = _find_changed_number(self.state, next_state, fields), time.monotonic()
        is_same_gesture = (
            path is not None and path == self._last_change[0] and now_s - self._last_change[1] < _ONE_GESTURE_S
        )
        if not (self._past_states and is_same_gesture):
            self._past_states = [*self._past_states, self.state][-MOST_STEPS:]
        self._last_change, self._undone_states = (path, now_s), []
        self.state = next_state
        return True

    @property
    def can_undo(self) -> bool:
        """True if a previous state exists."""
        return bool(self._past_states)

    @property
    def can_redo(self) -> bool:
        """True if the last change was undone and can be redone."""
        return bool(self._undone_states)

    def undo(self) -> None:
        """Replace the present state by the previous one, if one exists."""
        if self._past_states:
            self._undone_states.append(self.state)
            self._set_state(self._past_states.pop())

    def redo(self) -> None:
        """Restore the state that the last `undo` replaced; do nothing without undo, or if a change followed it."""
        if self._undone_states:
            self._past_states.append(self.state)
            self._set_state(self._undone_states.pop())

    def _set_state(self, state: State) -> None:
        self._last_change = None, 0.0
        self.error = ""
        self.state = state


def _apply_fields(state: State, fields: dict[str, Any]) -> State:
    unknown_fields = set(fields) - {*FIELDS, "beside"}
    if unknown_fields:
        raise ScenarioError(
            f"{min(unknown_fields)!r} is not a field of a lab; the fields are {', '.join(FIELDS)} and beside"
        )
    fields = dict(fields)
    beside = fields.pop("beside", state.beside)
    nodes = set(fields.get("topology", state.scenario.topology))
    composed = tuple(fields.get("workload", state.workload))
    if "topology" in fields and isinstance(fields["topology"], nx.Graph):
        composed = with_radius(composed, fields["topology"], state.scenario.topology)
    if "topology" in fields or "workload" in fields:
        # Any other node that is not in the network remains, so that the scenario raises an error for it.
        fields["workload"] = without_nodes(composed, named_nodes(state.workload) - nodes)
    if "topology" in fields:
        fields["protocol"] = within(fields.get("protocol", state.scenario.protocol), nodes)
        beside = None if beside is None else within(beside, nodes)
    scenario = state.scenario.replace(**fields)
    if beside == scenario.protocol:
        beside = None  # A protocol is not compared with itself.
    next_state = State(scenario, beside, None if composed == scenario.workload else composed)
    _ = next_state.scenarios  # raises an error if the second protocol is not valid in this scenario
    return next_state


def _find_changed_number(before: State, after: State, names: Iterable[str]) -> tuple[Any, ...] | None:
    """Return the path of the only number in which two states differ, or None if they differ in anything else.

    ``names``: the fields that are compared. A path leads from a field of the state to the number. For example,
    ("workload", 0, "every_s") is the field ``every_s`` of the first workload item.
    """
    paths = [
        path
        for name in names
        for path in islice(_find_differences(_field_value(before, name), _field_value(after, name), (name,)), 2)
    ]
    return paths[0] if len(paths) == 1 else None


def _field_value(state: State, name: str) -> Any:
    return state.beside if name == "beside" else getattr(state.scenario, name)


def _find_differences(before: Any, after: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...] | None]:
    """Yield the path of each number in which two values differ, and None for each other difference.

    A path is a tuple such as ("workload", 0, "every_s"), which leads from a field of the state to a number. ``path``:
    where ``before`` and ``after`` are in the state; each yielded path begins with it.
    """
    if before is after:
        return
    parts_before, parts_after = _values_inside(before), _values_inside(after)
    if parts_before is not None and parts_after is not None and parts_before.keys() == parts_after.keys():
        for name, value_inside in parts_before.items():
            yield from _find_differences(value_inside, parts_after[name], (*path, name))
    elif is_number(before) and is_number(after):
        if before != after:
            yield path
    elif not isinstance(before, (str, bool, list, type)) or before != after:
        yield None


def _values_inside(value: Any) -> Mapping[Any, Any] | None:
    """Return the values inside ``value`` by their names or indices, or None for a simple value such as a number.

    For a network, these are the arguments of the generator that made the network, or None if no generator did.
    """
    if isinstance(value, nx.Graph):
        return value.graph.get("recipe")
    if isinstance(value, Protocol):
        return {"class": type(value), **value.settings}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields_of(value)}
    if isinstance(value, tuple):
        return dict(enumerate(value))
    return value if isinstance(value, Mapping) else None


def within(protocol: Protocol, nodes: set[int]) -> Protocol:
    """Return a copy of the protocol whose settings refer only to ``nodes``, the nodes of the network.

    A setting that loses all its nodes gets the node with the lowest number.
    """
    settings = dict(protocol.settings)
    for name, set_nodes in protocol.named_nodes().items():
        remaining_nodes = tuple(node for node in set_nodes if node in nodes)
        settings[name] = remaining_nodes or (min(nodes, default=0),)
    return protocol if settings == protocol.settings else type(protocol).public_class()(**settings)

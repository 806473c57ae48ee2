"""The value in the middle of the lab: a scenario, perhaps another protocol beside it, and what they were before.

Theory of operation
    A state is a value. A change makes the next state or, if that cannot be, a sentence (``error``); the state stays as
    it was then. Undo is the list of states. Changes of one number that follow quickly on each other, as a slider's
    moves do, are one step of that list; whatever else is changed is a step of its own, however quickly it is done.

    A change of the network may take nodes away that others speak of: what the workload had at them goes with them, and
    settings that name them (roots) name others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields as fields_of
from dataclasses import is_dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import networkx as nx
import traitlets

from workbench.errors import ScenarioError, WorkbenchError
from workbench.protocols.protocol import Protocol
from workbench.sim.scenario import Scenario
from workbench.sim.workload import ALL, Item
from workbench.topology.graphs import is_number

MOST_STEPS = 200
_ONE_GESTURE_S = 1.0  # changes of the same number in less time are one step
FIELDS = ("topology", "protocol", "workload", "radio", "duration_s", "seed")


class State(NamedTuple):
    """What was composed: a scenario, and the protocol that plays the same beside it, None for none."""

    scenario: Scenario
    beside: Protocol | None = None

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios that are to be run: one, or two that differ in their protocol alone."""
        if self.beside is None:
            return (self.scenario,)
        return self.scenario, self.scenario.replace(protocol=self.beside)


class History(traitlets.HasTraits):
    """The lab's states. ``state`` is observed; ``error`` is what the last change could not be, or ""."""

    state = traitlets.Any()
    error = traitlets.Unicode()

    def __init__(self, state: State) -> None:
        super().__init__(state=state)
        self._before: list[State] = []
        self._after: list[State] = []
        self._last: tuple[tuple[Any, ...] | None, float] = (None, 0.0)  # the number that was changed last, and when

    @property
    def scenario(self) -> Scenario:
        """The scenario as it is now."""
        return self.state.scenario

    def change(self, **fields: Any) -> bool:
        """Make the next state: fields of the scenario, or ``beside``. False, and ``error``, if that cannot be."""
        try:
            state = _changed(self.state, fields)
        except WorkbenchError as error:
            self.error = str(error)
            return False
        self.error = ""
        if state == self.state:
            return True
        number, now = _number_changed(self.state, state, fields), time.monotonic()
        is_going_on = number is not None and number == self._last[0] and now - self._last[1] < _ONE_GESTURE_S
        if not (self._before and is_going_on):
            self._before = [*self._before, self.state][-MOST_STEPS:]
        self._last, self._after = (number, now), []
        self.state = state
        return True

    @property
    def can_undo(self) -> bool:
        """Whether there is a state before this one."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether a change was undone."""
        return bool(self._after)

    def undo(self) -> None:
        """Back to the state before; nothing if there is none."""
        if self._before:
            self._after.append(self.state)
            self._go_to(self._before.pop())

    def redo(self) -> None:
        """To the state that was undone; nothing if there is none."""
        if self._after:
            self._before.append(self.state)
            self._go_to(self._after.pop())

    def _go_to(self, state: State) -> None:
        self._last = None, 0.0
        self.error = ""
        self.state = state


def _changed(state: State, fields: dict[str, Any]) -> State:
    unknown = set(fields) - {*FIELDS, "beside"}
    if unknown:
        raise ScenarioError(f"a lab has no {min(unknown)!r}; it has {', '.join(FIELDS)} and beside")
    fields = dict(fields)
    beside = fields.pop("beside", state.beside)
    if "topology" in fields:
        nodes = set(fields["topology"])
        fields.setdefault("workload", without_nodes(state.scenario.workload, nodes))
        fields["protocol"] = within(fields.get("protocol", state.scenario.protocol), nodes)
        beside = None if beside is None else within(beside, nodes)
    changed = State(state.scenario.replace(**fields), beside)
    _ = changed.scenarios  # what stands beside has to be possible, too
    return changed


def _number_changed(before: State, after: State, names: Iterable[str]) -> tuple[Any, ...] | None:
    """Where the one number is that these fields of two states differ in; None if they differ in anything else."""
    found = [
        place for name in names for place in islice(_differences(_field(before, name), _field(after, name), (name,)), 2)
    ]
    return found[0] if len(found) == 1 else None


def _field(state: State, name: str) -> Any:
    return state.beside if name == "beside" else getattr(state.scenario, name)


def _differences(one: Any, other: Any, place: tuple[Any, ...]) -> Iterator[tuple[Any, ...] | None]:
    """The places of numbers that differ; None for whatever else differs."""
    if one is other:
        return
    parts, others = _parts(one), _parts(other)
    if parts is not None and others is not None and parts.keys() == others.keys():
        for name, part in parts.items():
            yield from _differences(part, others[name], (*place, name))
    elif is_number(one) and is_number(other):
        if one != other:
            yield place
    elif not isinstance(one, (str, bool, list, type)) or one != other:
        yield None


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """What a value is made of, by name; of a network its recipe. None of what has no parts."""
    if isinstance(value, nx.Graph):
        return value.graph.get("recipe")
    if isinstance(value, Protocol):
        return {"class": type(value), **value.settings}
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields_of(value)}
    if isinstance(value, tuple):
        return dict(enumerate(value))
    return value if isinstance(value, Mapping) else None


def without_nodes(items: Iterable[Item], nodes: set[int]) -> tuple[Item, ...]:
    """A workload without the nodes that are not in ``nodes``; items that were at no others are gone."""
    kept = []
    for item in items:
        if item.at == ALL:
            kept.append(item)
            continue
        here = tuple(node for node in item.at if node in nodes)
        if here:
            kept.append(item if here == item.at else replace(item, at=here))
    return tuple(kept)


def within(protocol: Protocol, nodes: set[int]) -> Protocol:
    """A protocol whose settings name no node but these: those left, or the first of all if none is."""
    settings = dict(protocol.settings)
    for name, named in protocol.named_nodes().items():
        left = tuple(node for node in named if node in nodes)
        settings[name] = left or (min(nodes, default=0),)
    return protocol if settings == protocol.settings else type(protocol).public_class()(**settings)

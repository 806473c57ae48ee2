"""The interface for twins: ``from workbench.sim.fast import twin`` is all that a protocol's twin needs of the engine.

Contents
    functions     `compiled`, `hot`, `compiled_rules`: what numba makes a part of the loop
    codes         `Events`, `Reasons`, `Messages`: bases of the twin's own codes; `Event`, `Reason`: those of all runs
    the core      messages and frames (air), rows of the trace (record), draws
    state         `Array`, `Pool` and `GIVEN` declare the fields of a twin's state; `make` and `grown` make its arrays
    pools, lists  rows that come and go
    memory        rings and ordinals of the ids that a node remembers
    delivery      which samples a subscription is handed
    defaults      what a twin need not write

State
    A table has the fields in the order of the named tuple::

        FIELDS: twin.Fields = {
            "probability": float,                                           # the protocol's parameter of that name
            "ttl": GIVEN,                                                   # a number that make_state works out
            "nodes": Array(NODE, "nodes", {"tick_us": NONE}),               # a record for each node
            "vectors": Array(np.uint16, ("messages", "chunks")),            # (messages, chunks) zeros
            "ordinals": Array(np.int32, "nodes", only_if="forgets"),        # one zero, unless ``forgets`` is true
            "marks": Pool(MARK, "marks", FREE_MARK),                        # rows that are linked as free
            "numbers": Array(np.int64, NUMBERS),
        }
        State: Any = namedtuple("State", FIELDS)                            # Any: mypy cannot look into the table

        def make_state(setup, messages):
            return twin.make(State, FIELDS, setup, messages, {"chunks": 8, "marks": 64}, ttl=...)

    The names in a shape are *sizes*; "nodes" and "messages" are known. ``grown(FIELDS, state, "marks", 128)`` lengthens
    all arrays whose first size is that one; the engine does so for "messages". No other axis may have such a size.

Pools and lists
    A *pool* is an array of records with a column ``next`` that links those that are free. ``numbers[free]`` is the
    first of them, ``numbers[free + 1]`` their number; whoever takes a row has made sure that there is one.

    A *list* is a record `LIST`, as a rule a column of a node's record, over an array of records that it links. A list
    is linked one way (by ``next``) or both ways (by ``next`` and ``previous``)::

        row = node.waiting.first
        while row != NONE:
            behind = state.waitings[row].next
            ...
            row = behind

    Each function takes the record of a list, and the array of its rows; of a matrix of rows, ``state.pairs[:, i]``.

Remembered ids
    *Rings*: an array (nodes, ids) has a node's ids, and its record a `RING` with their number and the oldest. An id's
    index in the ring stays the same until it is forgotten, so other arrays of that shape can be about the same ids.

    *Ordinals*: where each id has a cell of its own anyway (a node and a publication, say), no id has to be removed. An
    id's *ordinal* is the number of ids that the node had taken in by then, itself included; 0 if it never did.
"""

# ruff: noqa: F401 (twins import from here)

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import EQ, EQ_ANY, GE, GT, IS, LE, LT, NE
from workbench.sim.fast import NoFastTwinError
from workbench.sim.fast.channel import hold_message, let_go, make_message, send, take_message
from workbench.sim.fast.compiled import compiled, compiled_loop, compiled_rules, hot, ones, trailing_zeros
from workbench.sim.fast.draws import bits, mix64, stream_below, stream_uniform
from workbench.sim.fast.layout import BROADCAST, NO_REASON, NONE, Codes, Event, Needs, Number, Reason
from workbench.sim.fast.prepare import Numbering, Setup, Work
from workbench.sim.fast.record import (
    add_row,
    drop,
    tell,
    tell_delivered,
    tell_forwarded,
    tell_held,
    tell_originated,
)

# Codes


class Events(Codes):
    """The base of a twin's own events, in the order of their codes."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return len(Event) + count


class Reasons(Codes):
    """The base of a twin's own reasons why messages end."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return 1 + len(Reason) + count


class Messages(Codes):
    """The base of the names of a twin's messages."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return 1 + count


class Names(NamedTuple):
    """The texts of all codes of a run: of events, of messages (0 is ""), of reasons (0 is "")."""

    events: tuple[str, ...]
    messages: tuple[str, ...]
    reasons: tuple[str, ...]


def names_of(twin: Any) -> Names:
    """Return the texts of the codes in the runs of a twin."""
    events, messages, reasons = (of(twin, name).texts() for name in ("Event", "Message", "Reason"))
    return Names(Event.texts() + events, ("", *messages), ("", *Reason.texts(), *reasons))


# State


class Array(NamedTuple):
    """An array of the state: ``shape`` in numbers and names of sizes, ``fill`` a number or the columns that are not 0.

    ``only_if`` names a field. Where that is false, the array has a length of 1 along each axis and never grows.
    """

    dtype: Any
    shape: str | int | tuple[str | int, ...]
    fill: Any = 0
    only_if: str = ""


class Pool(NamedTuple):
    """Records of which some are in use; the rest are linked as free by ``next``, from ``numbers[free]`` on.

    ``numbers[free + 1]`` counts those that are free. Rows below ``first`` are never free.
    """

    dtype: Any
    shape: str
    free: int
    first: int = 0


GIVEN = None  # a number, or an array that never grows: `make` is given it by name
Fields = Mapping[str, Array | Pool | type | None]


def make(kind: Any, fields: Fields, setup: Setup, messages: int, sizes: Mapping[str, int] = {}, **given: Any) -> Any:
    """Make a state of a named tuple's kind, for so many messages on their way at once.

    ``given`` has the fields that are GIVEN. Rows that it has for another field are that array's first ones.
    """
    sizes = {"nodes": len(setup.network.addresses), "messages": messages} | dict(sizes)
    parameters = {
        name: field(setup.protocol.settings[name]) for name, field in fields.items() if isinstance(field, type)
    }
    return made_of(kind, fields, sizes, **parameters, **given)


def made_of(kind: Any, fields: Fields, sizes: Mapping[str, int], **given: Any) -> Any:
    """Make a state whose sizes and parameters are all given."""
    made = dict(given)
    arrays = {name: field for name, field in fields.items() if isinstance(field, Array | Pool)}
    for name, field in arrays.items():
        rows = _filled(field, _shape(field, sizes, given))
        if name in given:
            rows[: len(given[name])] = given[name]
        made[name] = rows
    for name, field in arrays.items():
        if isinstance(field, Pool):
            _free_from(made[name], made["numbers"], field, field.first)
    return kind(**made)


def grown(fields: Fields, state: Any, size: str, count: int) -> Any:
    """The same state, with ``count`` rows in place of fewer in all arrays whose first size is the one named."""
    longer = {}
    for name, field in fields.items():
        if not isinstance(field, Array | Pool) or _axes(field)[0] != size or not _is_wanted(field, state._asdict()):
            continue
        old = getattr(state, name)
        rows = longer[name] = _filled(field, (count, *old.shape[1:]))
        rows[: len(old)] = old
        if isinstance(field, Pool):
            _free_from(rows, state.numbers, field, len(old))
    return state._replace(**longer)


def grow_free_list(rows: np.ndarray, numbers: np.ndarray, free: int, count: int) -> np.ndarray:
    """The same rows, ``count`` in all; the new ones are free, and the first to be taken."""
    longer = np.zeros(count, rows.dtype)
    longer[: len(rows)] = rows
    _free_from(longer, numbers, Pool(rows.dtype, "", free), len(rows))
    return longer


def _axes(field: Array | Pool) -> tuple[str | int, ...]:
    return field.shape if isinstance(field.shape, tuple) else (field.shape,)


def _is_wanted(field: Array | Pool, values: Mapping[str, Any]) -> bool:
    return isinstance(field, Pool) or not field.only_if or bool(values[field.only_if])


def _shape(field: Array | Pool, sizes: Mapping[str, int], given: Mapping[str, Any]) -> tuple[int, ...]:
    axes = _axes(field)
    if not _is_wanted(field, given):
        return (1,) * len(axes)
    return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in axes)


def _filled(field: Array | Pool, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros are not written: pages that no node touches are never taken."""
    rows = np.zeros(shape, field.dtype)
    fill = field.fill if isinstance(field, Array) else 0
    if isinstance(fill, dict):
        for column, value in fill.items():
            rows[column] = value
    elif fill:
        rows[...] = fill
    return rows


def _free_from(rows: np.ndarray, numbers: np.ndarray, pool: Pool, first: int) -> None:
    """Rows from ``first`` on are free, before those that are already."""
    before = numbers[pool.free] if numbers[pool.free + 1] else NONE
    _link(rows, first, before)
    numbers[pool.free] = first
    numbers[pool.free + 1] += len(rows) - first


def _link(rows: np.ndarray, first: int, end: int) -> None:
    rows["next"][first:] = np.arange(first + 1, len(rows) + 1)
    rows["next"][-1:] = end


# Pools and lists

LIST = np.dtype([("first", np.int32), ("last", np.int32), ("count", np.int32)], align=True)
NO_ROWS = (NONE, NONE, 0)  # a list's fill, see `Array`

# Pools


@compiled
def take_free(rows, numbers, free):
    """Take a row from a pool."""
    row = numbers[free]
    numbers[free] = rows[row].next
    numbers[free + 1] -= 1
    return row


@compiled
def give_back(rows, numbers, free, row):
    """A row of a pool is free again, and the next to be taken."""
    rows[row].next = numbers[free]
    numbers[free] = row
    numbers[free + 1] += 1


# Lists that are linked both ways


@compiled
def append(of, rows, row):
    """Add a row at the end of a list."""
    rows[row].next = NONE
    rows[row].previous = of.last
    if of.last == NONE:
        of.first = row
    else:
        rows[of.last].next = row
    of.last = row
    of.count += 1


@compiled
def remove(of, rows, row):
    """Take a row out of a list; it keeps its own links, from which one may go on."""
    it = rows[row]
    if it.previous == NONE:
        of.first = it.next
    else:
        rows[it.previous].next = it.next
    if it.next == NONE:
        of.last = it.previous
    else:
        rows[it.next].previous = it.previous
    of.count -= 1


# Lists that are linked one way


@compiled
def clear(of):
    """Make a list empty, whatever becomes of its rows."""
    of.first = NONE
    of.last = NONE
    of.count = 0


@compiled
def append_behind(of, rows, before, row):
    """Add a row to a list, behind the row ``before`` (NONE: as the first; ``of.last``: as the last)."""
    if before == NONE:
        rows[row].next = of.first
        of.first = row
    else:
        rows[row].next = rows[before].next
        rows[before].next = row
    if of.last == before:
        of.last = row
    of.count += 1


@compiled
def remove_behind(of, rows, before, row):
    """Take a row out of a list, where it stands behind ``before`` (NONE: first); returns the row behind it."""
    behind = rows[row].next
    if before == NONE:
        of.first = behind
    else:
        rows[before].next = behind
    if of.last == row:
        of.last = before
    of.count -= 1
    return behind


# Remembered ids

RING = np.dtype([("count", np.int32), ("oldest", np.int32)], align=True)


@hot
def find_newest_first(ids, ring, id):
    """The index of an id among a node's, or NONE."""
    for index in range(ring.oldest - 1, -1, -1):
        if ids[index] == id:
            return index
    for index in range(ring.count - 1, ring.oldest - 1, -1):
        if ids[index] == id:
            return index
    return NONE


@compiled
def note(ids, ring, id):
    """Remember an id that is not there, in place of the oldest if there is no more room; returns its index."""
    if ring.count < len(ids):
        index = np.int64(ring.count)
        ring.count += 1
    else:
        index = np.int64(ring.oldest)
        ring.oldest = (index + 1) % len(ids)
    ids[index] = id
    return index


@compiled
def is_recent(ordinal, taken, most):
    """Whether an id is among the last ``most`` of the ``taken`` ids."""
    return ordinal > 0 and taken - ordinal < most


# Delivery: `attributes.matching_samples` over integers
#
# A key's values are integers, or blobs, which are numbered as they come: what may be asked of a blob is only whether
# it is the same.


@compiled
def satisfies(value, operator, bound):
    """`attributes.satisfies` of integers."""
    return (
        operator == EQ_ANY
        or (operator == EQ and value == bound)
        or (operator == NE and value != bound)
        or (operator == GE and value >= bound)
        or (operator == LE and value <= bound)
        or (operator == GT and value > bound)
        or (operator == LT and value < bound)
    )


@compiled
def one_way_match(attributes, first, last, sample_first, sample_last):
    """`attributes.one_way_match` of rows first:last (a subscription) and sample_first:sample_last of ``attributes``."""
    for a in range(first, last):
        if attributes[a, 1] == IS:
            continue
        met = False
        for b in range(sample_first, sample_last):
            if attributes[b, 0] == attributes[a, 0] and attributes[b, 1] == IS:
                met = met or satisfies(attributes[b, 2], attributes[a, 1], attributes[a, 2])
        if not met:
            return False
    return True


@compiled
def deliver(core, now, i, peer, message):
    """Hand each sample of a publication to the open subscriptions of node ``i`` that it matches."""
    content = core.contents[core.messages[message].content]
    index = core.nodes[i].first_subscription
    while index != NONE:
        subscription = core.subscriptions[index]
        if subscription.is_open and (subscription.expires_us < 0 or now < subscription.expires_us):
            for s in range(content.first_sample, content.last_sample):
                sample = core.samples[s]
                if one_way_match(core.attributes, subscription.first, subscription.last, sample.first, sample.last):
                    tell_delivered(core, now, i, peer, message, subscription.number, sample.detail)
        index = subscription.next


@hot
def hold(core, now, i, peer, message, hops, is_first):
    """Node ``i`` has a publication: record that, and deliver it; ``is_first``: it never held it before."""
    tell_held(core, now, i, peer, message, hops, is_first)
    if core.nodes[i].first_subscription != NONE:
        deliver(core, now, i, peer, message)


@compiled
def hold_pair(core, pairs, i, peer, message, event, hops, now):
    """`hold` where ``pairs[event, i].held`` says whether node ``i`` ever held the publication."""
    pair = pairs[event, i]
    is_first = not pair.held
    pair.held = 1
    hold(core, now, i, peer, message, hops, is_first)


# Defaults

PARTS: tuple[ModuleType, ...] = ()
WAKES = False
COUNTS_HOLDERS = True
sent = None  # outcomes of unicasts are ignored, at no cost
make_state = None  # the state has parameters and arrays of nodes and messages alone
_OWN_CODES = {"Event": Events, "Reason": Reasons, "Message": Messages}  # a base has no members


def of(twin: Any, name: str) -> Any:
    """Return what a twin, or one of its PARTS, has under a name; else the default."""
    for module in (twin, *getattr(twin, "PARTS", ())):
        if name in vars(module):
            return vars(module)[name]
    return _OWN_CODES.get(name) or globals()[name]


def state_of(twin: Any, setup: Setup, messages: int) -> Any:
    """Return the state of a twin for so many messages on their way at once."""
    if (own := of(twin, "make_state")) is not None:
        return own(setup, messages)
    return make(of(twin, "State"), of(twin, "FIELDS"), setup, messages)


def longest_frame_B(setup: Setup) -> int:
    """Return the bytes of the longest publication: no other message is longer."""
    return int(setup.work.contents["size_B"].max(initial=1))


@compiled
def has_room(core, state):
    """What nodes remember is made beforehand: an event cannot run out of it."""
    return True


def with_more_room(state: Any) -> Any:
    """Never asked for where there is room always."""
    return state


def text(setup: Any, state: Any, number: int) -> str:
    """All texts are those of the workload."""
    raise IndexError(number)


@compiled
def start(core, state, i, now):
    """Nothing to begin with."""


@compiled
def subscribe(core, state, i, what, now):
    """Subscriptions are never sent."""


@compiled
def unsubscribe(core, state, i, what, now):
    """Nobody else knows of it."""


@compiled
def wake(core, state, i, now):
    """No timers."""

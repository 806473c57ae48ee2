"""The interface for twins: a protocol's twin needs only ``from workbench.sim.fast import twin``.

Contents
    functions     `compiled`, `hot`, `compiled_rules`: register functions of the loop with numba
    codes         `Events`, `Reasons`, `Messages`: bases of the twin's own codes; `Event`, `Reason`: codes of all runs
    the core      messages and frames (channel), rows of the trace (record), draws
    state         `Array`, `Pool` and `GIVEN` declare the fields of a twin's state; `make` and `grown` create its arrays
    pools, lists  records that are allocated and freed
    memory        rings and ordinals of the ids that a node remembers
    delivery      the samples that a subscription receives
    defaults      functions and constants that a twin need not write

    Parameters of the functions are those that `workbench.sim.fast` describes: ``core`` (the engine's arrays), ``state``
    (of the protocol's nodes), ``i`` (the index of a node) and ``now`` (µs). ``message`` is an index in
    ``core.messages``.

State
    A table has the fields in the order of the named tuple::

        FIELDS: twin.Fields = {
            "probability": float,                                           # the protocol's parameter of that name
            "ttl": GIVEN,                                                   # a number that make_state computes
            "nodes": Array(NODE, "nodes", {"tick_us": NONE}),               # a record for each node
            "vectors": Array(np.uint16, ("messages", "chunks")),            # (messages, chunks) zeros
            "ordinals": Array(np.int32, "nodes", only_if="forgets"),        # one zero, unless ``forgets`` is true
            "marks": Pool(MARK, "marks", FREE_MARK),                        # records that are linked as free
            "numbers": Array(np.int64, NUMBERS),
        }
        State: Any = namedtuple("State", FIELDS)                            # Any: mypy cannot look into the table

        def make_state(setup, messages):
            return twin.make(State, FIELDS, setup, messages, {"chunks": 8, "marks": 64}, ttl=...)

    The names in a shape are *sizes*; "nodes" and "messages" are predefined. ``grown(FIELDS, state, "marks", 128)``
    lengthens all arrays whose first axis has that size; the engine does so for "messages". A size that grows must not
    be used for another axis.

Pools and lists
    A *pool* is an array of records with a column ``next`` that links the free records. ``numbers[free]`` is the first
    free record, ``numbers[free + 1]`` the number of free records. A caller must ensure that a record is free before it
    takes a record.

    A *list* is a record `LIST`, usually a column of a node's record, over an array of records that it links. A list
    is linked one way (by ``next``) or both ways (by ``next`` and ``previous``)::

        row = node.waiting.first
        while row != NONE:
            next_row = state.waitings[row].next
            ...
            row = next_row

    Each function takes the record of a list, and the array of its rows. If the rows are in a matrix, this array is a
    column such as ``state.pairs[:, i]``.

Remembered ids
    *Rings*: an array (nodes, ids) has in each row the ids of a node; the node's record has a `RING` with their number
    and the index of the oldest. The index of an id stays the same until the id is forgotten, so other arrays of that
    shape can store data per id.

    *Ordinals*: an array may have an element for each possible id of each node, such as (nodes, publications). The
    element is the id's *ordinal*: 1 for the first id that the node stored, 2 for the second, ..., and 0 for an id that
    the node never stored. An id is forgotten once its ordinal is too old (`is_recent`); the
    element keeps its value.
"""

# ruff: noqa: F401 (twins import from here)

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from workbench.attributes.model import EQ, EQ_ANY, GE, GT, IS, LE, LT, NE
from workbench.sim.channel import BEACON_NAME
from workbench.sim.fast import NoFastTwinError
from workbench.sim.fast.channel import hold_message, let_go, make_message, send, take_message
from workbench.sim.fast.compiled import compiled, compiled_loop, compiled_rules, count_ones, hot, trailing_zeros
from workbench.sim.fast.draws import bits, mix64, stream_below, stream_uniform
from workbench.sim.fast.layout import BROADCAST, NO_REASON, NONE, Codes, Event, Needs, Number, Reason
from workbench.sim.fast.prepare import Numbering, Setup, Work
from workbench.sim.fast.record import (
    add_row,
    drop,
    report,
    report_delivered,
    report_forwarded,
    report_held,
    report_originated,
)

# Codes


class Events(Codes):
    """Base class for the codes of the events that a protocol defines; they follow the codes of `Event`."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return len(Event) + count


class Reasons(Codes):
    """Base class for the codes of a protocol's own reasons for drops; they follow the codes of `Reason`."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return 1 + len(Reason) + count


class Messages(Codes):
    """Base class for the codes of a protocol's message types: 1, 2, ... in the order of definition."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[Any]) -> int:
        return 1 + count


class Names(NamedTuple):
    """The texts behind the codes of a run: events, message names, and reasons of losses and drops.

    Code 0 of messages and of reasons stands for "".
    """

    events: tuple[str, ...]
    messages: tuple[str, ...]
    reasons: tuple[str, ...]


def names_of(twin: Any, has_beacons: bool = False) -> Names:
    """Return the names of the events, messages and reasons of a protocol's twin, in the order of their codes.

    ``twin``: the protocol's module for the fast engine. ``has_beacons``: whether nodes send beacons, which add a
    message name.
    """
    event_names, messages, reasons = (lookup(twin, name).texts() for name in ("Event", "Message", "Reason"))
    if has_beacons:
        messages += (BEACON_NAME,)
    return Names(Event.texts() + event_names, ("", *messages), ("", *Reason.texts(), *reasons))


# State


class Array(NamedTuple):
    """The declaration of an array in the state of a protocol's nodes.

    ``shape``: the length of each axis, a number or the name of an axis. ``fill``: the initial value of all elements, or
    {column: initial value}. ``only_if`` names a field of the state. If the value of this field is false, the array has
    a length of 1 along each axis and never grows. ``survives``: if true, a node's elements are not reset when the node
    loses its memory; the protocol's ``erase`` may change them.
    """

    dtype: Any
    shape: str | int | tuple[str | int, ...]
    fill: Any = 0
    only_if: str = ""
    survives: bool = False


class Pool(NamedTuple):
    """The declaration of a pool in the state of a protocol's nodes: an array of records that are allocated and freed.

    ``shape``: the name of the array's axis. ``free``: an index into the state's array ``numbers``: ``numbers[free]`` is
    the index of the first free record, and ``numbers[free + 1]`` the number of free records. Records with an index
    below ``first`` are never free. The column ``next`` links free records.
    """

    dtype: Any
    shape: str
    free: int
    first: int = 0


GIVEN = None  # a number, or an array that never grows; `make` takes it as a keyword
Fields = Mapping[str, Array | Pool | type | None]


def make(kind: Any, fields: Fields, setup: Setup, messages: int, sizes: Mapping[str, int] = {}, **given: Any) -> Any:
    """Create the nodes' state, the named tuple ``kind``, in which up to ``messages`` messages exist at once.

    ``fields``: {name: declaration} of the state's fields. ``sizes``: {name of an axis: length}. ``given``: the values
    of the fields that are declared GIVEN. A value for an array is stored in the array's first rows.
    """
    sizes = {"nodes": len(setup.network.addresses), "messages": messages} | dict(sizes)
    parameters = {
        name: field(setup.protocol.settings[name]) for name, field in fields.items() if isinstance(field, type)
    }
    return made_of(kind, fields, sizes, **parameters, **given)


def made_of(kind: Any, fields: Fields, sizes: Mapping[str, int], **given: Any) -> Any:
    """Create the nodes' state, the named tuple ``kind``; ``sizes`` is {name of an axis: length}.

    ``fields``: {name: declaration} of the state's fields. ``given``: the values of all fields that are not arrays or
    pools. A value for an array is stored in the array's first rows.
    """
    field_values = dict(given)
    arrays = {name: field for name, field in fields.items() if isinstance(field, Array | Pool)}
    for name, field in arrays.items():
        array = _make_array(field, _compute_shape(field, sizes, given))
        if name in given:
            array[: len(given[name])] = given[name]
        field_values[name] = array
    for name, field in arrays.items():
        if isinstance(field, Pool):
            _add_to_free_list(field_values[name], field_values["numbers"], field, field.first)
    return kind(**field_values)


def grown(fields: Fields, state: Any, size: str, count: int) -> Any:
    """Return a copy of the nodes' state in which the arrays along the axis ``size`` have ``count`` rows.

    ``fields``: {name: declaration} of the fields of ``state``. ``size``: the name of the first axis of these
    arrays, such as "messages". The copy shares all other arrays with ``state``.
    """
    longer_arrays = {}
    for name, field in fields.items():
        if not isinstance(field, Array | Pool) or _axes_of(field)[0] != size or not _is_used(field, state._asdict()):
            continue
        old_rows = getattr(state, name)
        longer_rows = longer_arrays[name] = _make_array(field, (count, *old_rows.shape[1:]))
        longer_rows[: len(old_rows)] = old_rows
        if isinstance(field, Pool):
            _add_to_free_list(longer_rows, state.numbers, field, len(old_rows))
    return state._replace(**longer_arrays)


# Columns of a state's records that stay when a node loses its memory: whether it has ever held a publication.
_HISTORY = ("held", "is_held")


def erase_state(fields: Fields, state: Any, rows_of_axes: Mapping[str, Any]) -> None:
    """Set a node's elements in all arrays of the nodes' state to their initial values.

    ``fields``: {name: declaration} of the fields of ``state``. ``rows_of_axes``: {name of an axis: the node's indices
    along this axis}. If an array has several of these axes, the first selects the elements. Arrays without such an
    axis, pools, and arrays declared with ``survives`` are not changed. The columns "held" and "is_held" keep their
    values.
    """
    for name, field in fields.items():
        if not isinstance(field, Array) or field.survives or not _is_used(field, state._asdict()):
            continue
        for axis, axis_name in enumerate(_axes_of(field)):
            if isinstance(axis_name, str) and axis_name in rows_of_axes:
                array = getattr(state, name)
                elements = (slice(None),) * axis + (rows_of_axes[axis_name],)
                initial = _make_array(field, array[elements].shape)
                for column in _HISTORY:
                    if column in (array.dtype.names or ()):
                        initial[column] = array[elements][column]
                array[elements] = initial
                break


def grow_free_list(rows: np.ndarray, numbers: np.ndarray, free: int, count: int) -> np.ndarray:
    """Return a copy of ``rows``, lengthened to ``count`` records.

    The new records are put at the head of the list of free records. ``numbers[free]``, the index of the first free
    record, and ``numbers[free + 1]``, the number of free records, are updated.
    """
    longer_rows = np.zeros(count, rows.dtype)
    longer_rows[: len(rows)] = rows
    _add_to_free_list(longer_rows, numbers, Pool(rows.dtype, "", free), len(rows))
    return longer_rows


def _axes_of(field: Array | Pool) -> tuple[str | int, ...]:
    return field.shape if isinstance(field.shape, tuple) else (field.shape,)


def _is_used(field: Array | Pool, values: Mapping[str, Any]) -> bool:
    return isinstance(field, Pool) or not field.only_if or bool(values[field.only_if])


def _compute_shape(field: Array | Pool, sizes: Mapping[str, int], given: Mapping[str, Any]) -> tuple[int, ...]:
    axes = _axes_of(field)
    if not _is_used(field, given):
        return (1,) * len(axes)
    return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in axes)


def _make_array(field: Array | Pool, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array with the initial values of a field. An array of zeros takes no memory before it is written."""
    array = np.zeros(shape, field.dtype)
    fill = field.fill if isinstance(field, Array) else 0
    if isinstance(fill, dict):
        for column, value in fill.items():
            array[column] = value
    elif fill:
        array[...] = fill
    return array


def _add_to_free_list(rows: np.ndarray, numbers: np.ndarray, pool: Pool, first: int) -> None:
    """Add the rows ``rows[first:]`` to the head of the list of free rows of ``pool``.

    ``rows``: the pool's array. ``numbers``: the state's counters, with the head of the list and its length.
    """
    first_free = numbers[pool.free] if numbers[pool.free + 1] else NONE
    _link_free_rows(rows, first, first_free)
    numbers[pool.free] = first
    numbers[pool.free + 1] += len(rows) - first


def _link_free_rows(rows: np.ndarray, first: int, end: int) -> None:
    rows["next"][first:] = np.arange(first + 1, len(rows) + 1)
    rows["next"][-1:] = end


# Pools and lists

LIST = np.dtype([("first", np.int32), ("last", np.int32), ("count", np.int32)], align=True)
NO_ROWS = (NONE, NONE, 0)  # the ``fill`` of an empty list, see `Array`

# Pools


@compiled
def take_free(rows, numbers, free):
    """Remove the first record from the list of free records in ``rows``, and return its index, ``numbers[free]``."""
    row = numbers[free]
    numbers[free] = rows[row].next
    numbers[free + 1] -= 1
    return row


@compiled
def give_back(rows, numbers, free, row):
    """Free the record ``rows[row]``; the next call of `take_free` takes it again.

    ``numbers[free]`` is the index of the first free record in ``rows``.
    """
    rows[row].next = numbers[free]
    numbers[free] = row
    numbers[free + 1] += 1


# Lists that are linked both ways


@compiled
def append(linked_list, rows, row):
    """Add ``rows[row]`` at the end of the list ``linked_list``, a `LIST` record."""
    rows[row].next = NONE
    rows[row].previous = linked_list.last
    if linked_list.last == NONE:
        linked_list.first = row
    else:
        rows[linked_list.last].next = row
    linked_list.last = row
    linked_list.count += 1


@compiled
def remove(linked_list, rows, row):
    """Remove ``rows[row]`` from a linked list. The row keeps its own links, so a loop over the list can continue."""
    removed_record = rows[row]
    if removed_record.previous == NONE:
        linked_list.first = removed_record.next
    else:
        rows[removed_record.previous].next = removed_record.next
    if removed_record.next == NONE:
        linked_list.last = removed_record.previous
    else:
        rows[removed_record.next].previous = removed_record.previous
    linked_list.count -= 1


# Lists that are linked one way


@compiled
def clear(linked_list):
    """Empty a linked list. Only its `LIST` record changes, not the rows in the list."""
    linked_list.first = NONE
    linked_list.last = NONE
    linked_list.count = 0


@compiled
def append_behind(linked_list, rows, previous, row):
    """Insert ``rows[row]`` into a linked list behind ``rows[previous]``, or at its head if ``previous`` is NONE."""
    if previous == NONE:
        rows[row].next = linked_list.first
        linked_list.first = row
    else:
        rows[row].next = rows[previous].next
        rows[previous].next = row
    if linked_list.last == previous:
        linked_list.last = row
    linked_list.count += 1


@compiled
def remove_behind(linked_list, rows, previous, row):
    """Remove ``rows[row]`` from a linked list; return the index of the row that followed it, or NONE.

    ``previous``: the index of the row in front of the removed row, or NONE if the removed row is the first.
    """
    next_row = rows[row].next
    if previous == NONE:
        linked_list.first = next_row
    else:
        rows[previous].next = next_row
    if linked_list.last == row:
        linked_list.last = previous
    linked_list.count -= 1
    return next_row


# Remembered ids

RING = np.dtype([("count", np.int32), ("oldest", np.int32)], align=True)


@hot
def find_newest_first(ids, ring, id):
    """Return the index of ``id`` in ``ids``, or NONE if it is not there; newer ids are compared first.

    ``ids``: the row of ids that a node remembers. ``ring``: the node's `RING` record, with the number of ids and the
    index of the oldest.
    """
    for id_index in range(ring.oldest - 1, -1, -1):
        if ids[id_index] == id:
            return id_index
    for id_index in range(ring.count - 1, ring.oldest - 1, -1):
        if ids[id_index] == id:
            return id_index
    return NONE


@compiled
def remember(ids, ring, id):
    """Store a new id in ``ids``, a node's row of ids; return the index at which it is stored.

    If all elements of the row are used, the new id replaces the oldest. ``ring``: the node's `RING` record, with the
    number of its ids and the index of the oldest.
    """
    if ring.count < len(ids):
        id_index = np.int64(ring.count)
        ring.count += 1
    else:
        id_index = np.int64(ring.oldest)
        ring.oldest = (id_index + 1) % len(ids)
    ids[id_index] = id
    return id_index


@compiled
def is_recent(ordinal, taken, most):
    """Return whether the id with this ordinal is one of the last ``most`` ids that a node has stored.

    ``ordinal``: 1 for the first id that the node stored, 2 for the second, ...; 0 if the id was never stored.
    ``taken``: the number of ids that the node has stored so far.
    """
    return ordinal > 0 and taken - ordinal < most


# Delivery: `attributes.matching_samples` over integers. The values of a key are integers, or blobs that are numbered in
# order of first use: blobs are only compared for equality.


@compiled
def satisfies(value, operator, bound):
    """Return whether ``value operator bound`` holds for two integers; ``operator`` is a code such as GE."""
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
    """Return whether a sample meets all constraints of a subscription.

    Rows [first, last) of ``attributes`` are the subscription, rows [sample_first, sample_last) the sample. The rule is
    that of `attributes.one_way_match`.
    """
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
    """Deliver the samples of a publication to the active subscriptions of node ``i`` that match them.

    ``peer``: the address of the node that sent the publication, or -1 if no node did.
    """
    content = core.contents[core.messages[message].content]
    subscription_row = core.nodes[i].first_subscription
    while subscription_row != NONE:
        subscription = core.subscriptions[subscription_row]
        if subscription.is_open and (subscription.expires_us < 0 or now < subscription.expires_us):
            for s in range(content.first_sample, content.last_sample):
                sample = core.samples[s]
                if one_way_match(core.attributes, subscription.first, subscription.last, sample.first, sample.last):
                    report_delivered(core, now, i, peer, message, subscription.number, sample.detail)
        subscription_row = subscription.next


@hot
def hold(core, now, i, peer, message, hops, is_first):
    """Record that node ``i`` holds a publication, and deliver it to the node's subscriptions.

    ``peer``: the address of the node that sent the publication, or -1 if no node did. ``hops``: the number of hops from
    the publication's origin. ``is_first``: whether the publication is new to node ``i``.
    """
    report_held(core, now, i, peer, message, hops, is_first)
    if core.nodes[i].first_subscription != NONE:
        deliver(core, now, i, peer, message)


@compiled
def hold_pair(core, pairs, i, peer, message, event, hops, now):
    """Record that node ``i`` holds a publication, and deliver it to the node's subscriptions.

    ``event``: the index of the publication. ``pairs[event, i].held``: whether the node held the publication before; it
    becomes 1. ``peer``: the address of the node that sent the publication, or -1. ``hops``: the number of hops from the
    publication's origin.
    """
    pair_row = pairs[event, i]
    is_first = not pair_row.held
    pair_row.held = 1
    hold(core, now, i, peer, message, hops, is_first)


# Defaults

PARTS: tuple[ModuleType, ...] = ()
WAKES = False
COUNTS_HOLDERS = True
sent = None  # the twin ignores outcomes of unicasts, at no cost
link_quality = None  # the twin ignores delivery ratios, and its nodes send no beacons
make_state = None  # the state has only parameters and arrays of nodes and messages
_OWN_CODES = {"Event": Events, "Reason": Reasons, "Message": Messages}  # a base has no members


def lookup(twin: Any, name: str) -> Any:
    """Return the object ``name`` of a protocol's fast twin: from ``twin``, else a module in PARTS, else this module."""
    for module in (twin, *getattr(twin, "PARTS", ())):
        if name in vars(module):
            return vars(module)[name]
    return _OWN_CODES.get(name) or globals()[name]


def state_of(twin: Any, setup: Setup, messages: int) -> Any:
    """Create the state of all nodes for the fast engine; up to ``messages`` messages exist at once.

    ``twin``: the protocol's module for this engine.
    """
    if (make_own_state := lookup(twin, "make_state")) is not None:
        return make_own_state(setup, messages)
    return make(lookup(twin, "State"), lookup(twin, "FIELDS"), setup, messages)


def longest_frame_B(setup: Setup) -> int:
    """Return the size in bytes of the longest frame of a publication in the run.

    This default suits protocols without longer frames; other protocols define their own function of this name.
    """
    return int(setup.work.contents["size_B"].max(initial=1))


@compiled
def has_room(core, state):
    """Return True: the arrays of the state have room for the next event.

    This default suits protocols that allocate the memory of all nodes at the start.
    """
    return True


def with_more_room(state: Any) -> Any:
    """Return the state unchanged. This default suits protocols whose ``has_room`` always returns True."""
    return state


def text(setup: Any, state: Any, number: int) -> str:
    """Raise IndexError, as no text has this ``number``: the nodes created no texts for the trace.

    This default suits protocols whose nodes create no texts during a run.
    """
    raise IndexError(number)


def rows_of_node(state: Any, i: int) -> dict[str, Any]:
    """Return {}: node ``i`` has elements only along the axes "nodes" and "subscriptions".

    `erase_state` finds these elements itself. Protocols whose nodes have elements along further axes define their own
    function of this name, which returns {name of an axis: the node's indices along this axis}.
    """
    return {}


def erase(setup: Setup, state: Any, i: int, first_number: int) -> None:
    """Do nothing. This default suits protocols whose nodes store nothing in pools and hash tables.

    Other protocols define their own function of this name, which erases what node ``i`` stores there. The engine calls
    it after `erase_state`, when the node has lost its memory. ``first_number``: the number of the node's first message
    after its next start.
    """


@compiled
def start(core, state, i, now):
    """Do nothing. This default suits protocols whose nodes do nothing when they start."""


@compiled
def subscribe(core, state, i, index, now):
    """Do nothing. This default suits protocols that do not send subscriptions."""


@compiled
def unsubscribe(core, state, i, index, now):
    """Do nothing. This default suits protocols that do not send subscriptions."""


@compiled
def reinforce(core, state, i, index, now):
    """Do nothing. This default suits protocols without paths to reinforce."""


@compiled
def wake(core, state, i, now):
    """Do nothing. This default suits protocols without timers."""

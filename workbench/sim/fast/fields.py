"""The fields of a twin's state, each declared once: from the table come the named tuple, its arrays, and larger ones.

A table is a dict, in the order of the named tuple::

    FIELDS: Fields = {
        "ttl": GIVEN,                                               # a number that make_state works out
        "nodes": Array(NODE, "nodes", {"tick_us": NONE}),           # a record for each node
        "vectors": Array(np.uint16, ("messages", "chunks")),        # (messages, chunks) zeros
        "ordinals": Array(np.int32, "nodes", only_if="forgets"),    # one zero, unless the field ``forgets`` is true
        "marks": Pool(MARK, "marks", FREE_MARK),                    # rows that are linked as free (`rows.py`)
        "numbers": Array(np.int64, NUMBERS),
    }
    State: Any = namedtuple("State", FIELDS)                        # Any: mypy cannot look into the table

    def make_state(setup, messages):
        sizes = {"nodes": len(setup.network.addresses), "messages": messages, "chunks": 8, "marks": 64}
        return make(State, FIELDS, sizes, ttl=setup.protocol.ttl)

The names in a shape are *sizes*. ``grown(FIELDS, state, "marks", 128)`` lengthens all arrays whose first size is that
one; the engine does so for "messages". No other axis may have a size that grows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from workbench.sim.fast.layout import NONE


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
Fields = Mapping[str, Array | Pool | None]


def make(kind: Any, fields: Fields, sizes: Mapping[str, int], **given: Any) -> Any:
    """A state of a named tuple's kind.

    ``given`` has the fields that are GIVEN. Rows that it has for another field are that array's first ones.
    """
    made = dict(given)
    for name, field in fields.items():
        if field is None:
            continue
        rows = _filled(field, _shape(field, sizes, given))
        if name in given:
            rows[: len(given[name])] = given[name]
        made[name] = rows
    for name, field in fields.items():
        if isinstance(field, Pool):
            _free_from(made[name], made["numbers"], field, field.first)
    return kind(**made)


def grown(fields: Fields, state: Any, size: str, count: int) -> Any:
    """The same state, with ``count`` rows in place of fewer in all arrays whose first size is the one named."""
    longer = {}
    for name, field in fields.items():
        if field is None or _axes(field)[0] != size or not _is_wanted(field, state._asdict()):
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

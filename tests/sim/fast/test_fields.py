"""A twin's state: the arrays of a table of fields, and their sizes after growth."""

from collections import namedtuple

import numpy as np
import pytest

from workbench.sim.fast.layout import NONE, free_list
from workbench.sim.fast.twin import GIVEN, LIST, NO_ROWS, Array, Fields, Pool, grow_free_list, grown, made_of

NODE = np.dtype([("tick_us", np.int64), ("waiting", LIST)], align=True)
MARK = np.dtype([("sink", np.int32), ("next", np.int32)], align=True)
FREE_MARK, FREE_MARKS = 1, 2

FIELDS: Fields = {
    "ttl": GIVEN,
    "forgets": GIVEN,
    "nodes": Array(NODE, "nodes", {"tick_us": NONE, "waiting": NO_ROWS}),
    "known": Array(np.uint8, ("messages", "nodes")),
    "ordinals": Array(np.int32, ("messages", "nodes"), only_if="forgets"),
    "behind": Array(np.int32, "messages", NONE),
    "marks": Pool(MARK, "marks", FREE_MARK, 1),
    "masks": Array(np.uint64, ("marks", 2)),
    "numbers": Array(np.int64, 3),
}
State = namedtuple("State", FIELDS)


def make_state(forgets=False, **settings):
    return made_of(State, FIELDS, {"nodes": 3, "messages": 4, "marks": 5}, ttl=7, forgets=forgets, **settings)


def free_rows(state):
    row, rows = int(state.numbers[FREE_MARK]), []
    while row != NONE:
        rows.append(row)
        row = int(state.marks[row]["next"])
    assert len(rows) == state.numbers[FREE_MARKS]
    return rows


def test_state_has_the_arrays_of_its_table():
    state = make_state()
    assert state._fields == tuple(FIELDS)
    assert (state.ttl, state.forgets) == (7, False)
    assert state.nodes["tick_us"].tolist() == [NONE] * 3
    assert state.nodes["waiting"].tolist() == [(NONE, NONE, 0)] * 3
    assert (state.known.shape, state.known.dtype, state.known.any()) == ((4, 3), np.uint8, False)
    assert state.behind.tolist() == [NONE] * 4
    assert state.masks.shape == (5, 2)
    assert free_rows(state) == [1, 2, 3, 4]


def test_unused_array_has_one_row_and_does_not_grow():
    assert make_state().ordinals.shape == (1, 1)
    assert grown(FIELDS, make_state(), "messages", 9).ordinals.shape == (1, 1)
    assert grown(FIELDS, make_state(forgets=True), "messages", 9).ordinals.shape == (9, 3)


def test_given_rows_are_the_first_ones():
    state = make_state(known=np.ones((2, 3), np.uint8))
    assert state.known.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_a_missing_value_or_size_is_an_error():
    with pytest.raises(TypeError, match="ttl"):
        made_of(State, FIELDS, {"nodes": 3, "messages": 4, "marks": 5}, forgets=False)
    with pytest.raises(KeyError, match="marks"):
        made_of(State, FIELDS, {"nodes": 3, "messages": 4}, ttl=7, forgets=False)


def test_only_the_arrays_of_a_size_grow_with_it():
    before = make_state()
    before.known[2, 1] = 1
    state = grown(FIELDS, before, "messages", 6)
    assert state.known.shape == (6, 3) and state.known.sum() == state.known[2, 1] == 1
    assert state.behind.tolist() == [NONE] * 6
    assert state.nodes is before.nodes and state.marks is before.marks


def test_pool_grows_with_its_arrays_and_new_rows_are_free_first():
    before = make_state()
    before.masks[4, 1] = 9
    # Row 1 is in use.
    before.numbers[[FREE_MARK, FREE_MARKS]] = 2, 3
    state = grown(FIELDS, before, "marks", 8)
    assert free_rows(state) == [5, 6, 7, 2, 3, 4]
    assert state.masks.shape == (8, 2) and state.masks[4, 1] == 9


def test_pool_without_free_rows_grows():
    state = make_state()
    state.numbers[[FREE_MARK, FREE_MARKS]] = NONE, 0
    assert free_rows(grown(FIELDS, state, "marks", 7)) == [5, 6]


def test_free_list_outside_of_a_table():
    numbers = np.array([0, 3])
    rows = grow_free_list(free_list(MARK, 3), numbers, 0, 5)
    assert rows["next"].tolist() == [1, 2, NONE, 4, 0]
    assert numbers.tolist() == [3, 5]

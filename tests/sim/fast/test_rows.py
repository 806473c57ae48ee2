"""Pools, lists and rings of the fast engine, against Python's own lists."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from workbench.sim.fast import twin
from workbench.sim.fast.layout import NONE, free_list

ROW = np.dtype([("value", np.int64), ("next", np.int32), ("previous", np.int32)], align=True)
OWNER = np.dtype([("since_us", np.int64), ("rows", twin.LIST), ("ring", twin.RING)], align=True)
OWNERS, ROWS, FREE = 2, 6, 3

# The pieces are for numba's functions: a record's column is an attribute there.


@njit
def take_free(array, numbers):
    return twin.take_free(array, numbers, FREE)


@njit
def give_back(array, numbers, row):
    twin.give_back(array, numbers, FREE, row)


@njit
def append(owners, i, array, row):
    twin.append(owners[i].rows, array[:, i], row)


@njit
def remove(owners, i, array, row):
    twin.remove(owners[i].rows, array[:, i], row)


@njit
def clear(owners, i):
    twin.clear(owners[i].rows)


@njit
def append_behind(owners, i, array, before, row):
    twin.append_behind(owners[i].rows, array, before, row)


@njit
def remove_behind(owners, i, array, before, row):
    return twin.remove_behind(owners[i].rows, array, before, row)


@njit
def find(ids, owners, i, id):
    return twin.find_newest_first(ids[i], owners[i].ring, id)


@njit
def note(ids, owners, i, id):
    return twin.remember(ids[i], owners[i].ring, id)


def walk(first, array):
    order = []
    while first != NONE:
        order.append(int(first))
        first = array[first]["next"]
    return order


def owners():
    made = np.zeros(OWNERS, OWNER)
    made["rows"] = twin.NO_ROWS
    return made


def check_list(of, array, expected):
    assert walk(of["first"], array) == expected
    assert of["count"] == len(expected)
    assert of["last"] == (expected[-1] if expected else NONE)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, ROWS - 1), max_size=30))
def test_pool_gives_the_row_that_came_back_last(wishes):
    array, numbers = free_list(ROW, ROWS), np.array([9, 9, 9, 0, ROWS])
    free, taken = list(range(ROWS)), []
    for wish in wishes:
        if free and wish % 2:
            assert take_free(array, numbers) == free[0]
            taken.append(free.pop(0))
        elif taken:
            row = taken.pop(wish % len(taken))
            give_back(array, numbers, row)
            free.insert(0, row)
        assert numbers[4] == len(free)
        assert walk(numbers[3], array)[: len(free)] == free
    assert numbers[:3].tolist() == [9, 9, 9]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, OWNERS - 1), st.integers(0, ROWS - 1)), max_size=30))
def test_doubly_linked_list_is_in_order_of_insertion(steps):
    of, array = owners(), np.zeros((ROWS, OWNERS), ROW)
    expected: list[list[int]] = [[] for _ in range(OWNERS)]
    for i, row in steps:
        if row in expected[i]:
            remove(of, i, array, row)
            expected[i].remove(row)
        else:
            append(of, i, array, row)
            expected[i].append(row)
        for k in range(OWNERS):
            check_list(of[k]["rows"], array[:, k], expected[k])
            back = [-1, *expected[k]]
            assert [int(array[row, k]["previous"]) for row in expected[k]] == back[:-1]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS)), max_size=30))
def test_singly_linked_list_takes_rows_anywhere(steps):
    of, array = owners(), np.zeros(ROWS, ROW)
    expected: list[int] = []
    for row, wish in steps:
        if wish == ROWS:
            clear(of, 0)
            expected = []
        elif row in expected:
            place = expected.index(row)
            before = expected[place - 1] if place else NONE
            behind = expected[place + 1] if place + 1 < len(expected) else NONE
            assert remove_behind(of, 0, array, before, row) == behind
            expected.remove(row)
        else:
            place = wish % (len(expected) + 1)
            append_behind(of, 0, array, expected[place - 1] if place else NONE, row)
            expected.insert(place, row)
        check_list(of[0]["rows"], array, expected)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, OWNERS - 1), st.integers(1, 9)), max_size=40))
def test_ring_forgets_the_oldest_id(most, heard):
    of, ids = owners(), np.zeros((OWNERS, most), np.int64)
    expected: list[list[int]] = [[] for _ in range(OWNERS)]
    for i, id in heard:
        place = find(ids, of, i, id)
        assert (place != NONE) == (id in expected[i])
        if place == NONE:
            expected[i] = [*expected[i], id][-most:]
            assert ids[i, note(ids, of, i, id)] == id
        else:
            assert ids[i, place] == id


@given(st.integers(1, 4), st.lists(st.integers(0, 9), max_size=40))
def test_ordinal_says_whether_an_id_is_among_the_last(most, heard):
    ordinals, taken, expected = [0] * 10, 0, []
    for id in heard:
        is_known = twin.is_recent(ordinals[id], taken, most)
        assert is_known == (id in expected)
        if not is_known:
            taken += 1
            ordinals[id] = taken
            expected = [*expected, id][-most:]

"""Pools, lists and rings of the fast engine, compared with Python's own lists."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from tests.families import examples
from workbench.sim.fast import twin
from workbench.sim.fast.layout import NONE, free_list

ROW = np.dtype([("value", np.int64), ("next", np.int32), ("previous", np.int32)], align=True)
OWNER = np.dtype([("since_us", np.int64), ("rows", twin.LIST), ("ring", twin.RING)], align=True)
OWNERS, ROWS, FREE = 2, 6, 3

# These wrappers run compiled, because only numba makes a record's columns attributes.


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
    array = np.zeros(OWNERS, OWNER)
    array["rows"] = twin.NO_ROWS
    return array


def check_list(chain, array, expected):
    assert walk(chain["first"], array) == expected
    assert chain["count"] == len(expected)
    assert chain["last"] == (expected[-1] if expected else NONE)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, ROWS - 1), max_size=30))
def test_pool_gives_the_most_recently_freed_row(wishes):
    array, numbers = free_list(ROW, ROWS), np.array([9, 9, 9, 0, ROWS])
    free, used = list(range(ROWS)), []
    for wish in wishes:
        if free and wish % 2:
            assert take_free(array, numbers) == free[0]
            used.append(free.pop(0))
        elif used:
            row = used.pop(wish % len(used))
            give_back(array, numbers, row)
            free.insert(0, row)
        assert numbers[4] == len(free)
        assert walk(numbers[3], array)[: len(free)] == free
    assert numbers[:3].tolist() == [9, 9, 9]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, OWNERS - 1), st.integers(0, ROWS - 1)), max_size=30))
def test_doubly_linked_list_is_in_order_of_insertion(steps):
    lists, array = owners(), np.zeros((ROWS, OWNERS), ROW)
    expected: list[list[int]] = [[] for _ in range(OWNERS)]
    for i, row in steps:
        if row in expected[i]:
            remove(lists, i, array, row)
            expected[i].remove(row)
        else:
            append(lists, i, array, row)
            expected[i].append(row)
        for k in range(OWNERS):
            check_list(lists[k]["rows"], array[:, k], expected[k])
            back = [-1, *expected[k]]
            assert [int(array[row, k]["previous"]) for row in expected[k]] == back[:-1]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(0, ROWS - 1), st.integers(0, ROWS)), max_size=30))
def test_singly_linked_list_takes_rows_anywhere(steps):
    lists, array = owners(), np.zeros(ROWS, ROW)
    expected: list[int] = []
    for row, wish in steps:
        if wish == ROWS:
            clear(lists, 0)
            expected = []
        elif row in expected:
            index = expected.index(row)
            before = expected[index - 1] if index else NONE
            behind = expected[index + 1] if index + 1 < len(expected) else NONE
            assert remove_behind(lists, 0, array, before, row) == behind
            expected.remove(row)
        else:
            index = wish % (len(expected) + 1)
            append_behind(lists, 0, array, expected[index - 1] if index else NONE, row)
            expected.insert(index, row)
        check_list(lists[0]["rows"], array, expected)


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, OWNERS - 1), st.integers(1, 9)), max_size=40))
def test_ring_forgets_the_oldest_id(most, steps):
    rings, ids = owners(), np.zeros((OWNERS, most), np.int64)
    expected: list[list[int]] = [[] for _ in range(OWNERS)]
    for i, id in steps:
        index = find(ids, rings, i, id)
        assert (index != NONE) == (id in expected[i])
        if index == NONE:
            expected[i] = [*expected[i], id][-most:]
            assert ids[i, note(ids, rings, i, id)] == id
        else:
            assert ids[i, index] == id


@given(st.integers(1, 4), st.lists(st.integers(0, 9), max_size=40))
def test_ordinal_shows_whether_an_id_is_among_the_most_recent(most, ids):
    ordinals, count, expected = [0] * 10, 0, []
    for id in ids:
        is_known = twin.is_recent(ordinals[id], count, most)
        assert is_known == (id in expected)
        if not is_known:
            count += 1
            ordinals[id] = count
            expected = [*expected, id][-most:]

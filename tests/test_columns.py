"""Operations on columns: each function beside plain loops over the rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import columns

NEAR, FAR = st.integers(-5, 5), st.integers(-(1 << 63), (1 << 63) - 1)
KEYS = st.one_of(st.lists(NEAR, max_size=40), st.lists(st.one_of(NEAR, FAR), max_size=40))
ROWS = st.lists(st.tuples(st.integers(0, 3), st.one_of(NEAR, FAR), st.integers(0, 1 << 40)), max_size=30)
KINDS = (np.int64, np.int32, np.uint8, np.uint64, np.float64, bool, object)


def column(numbers, kind=np.int64):
    return np.array(numbers, kind)


def table(rows):
    return tuple(column([row[which] for row in rows]) for which in range(3))


@given(ROWS)
def test_keys_are_equal_and_ordered_as_rows_are(rows):
    keys = columns.row_keys(*table(rows)).tolist()
    for key, row in zip(keys, rows, strict=True):
        assert [key < other for other in keys] == [row < other for other in rows]
    assert columns.count_distinct(*table(rows)) == len(set(rows))


@given(ROWS, ROWS)
def test_keys_of_several_tables_are_comparable(rows, others):
    some, more = columns.shared_keys(table(rows), table(others))
    for key, row in zip(some.tolist(), rows, strict=True):
        assert [key == other for other in more.tolist()] == [row == other for other in others]


@given(ROWS, ROWS)
def test_the_last_equal_row_of_another_table_is_found(rows, others):
    expected = [max((i for i, other in enumerate(others) if other == row), default=-1) for row in rows]
    assert columns.find_last(table(rows), table(others)).tolist() == expected


@given(KEYS)
def test_distinct_keys_with_their_rows(numbers):
    keys, distinct = column(numbers), sorted(set(numbers))
    values, first, inverse = columns.unique_all(keys)
    assert values.tolist() == columns.unique_index(keys)[0].tolist() == distinct
    assert first.tolist() == columns.unique_index(keys)[1].tolist() == [numbers.index(value) for value in distinct]
    assert inverse.tolist() == [distinct.index(number) for number in numbers]
    assert columns.first_rows(keys).tolist() == [i for i, number in enumerate(numbers) if number not in numbers[:i]]
    assert columns.cumcount(keys).tolist() == [numbers[:i].count(number) for i, number in enumerate(numbers)]
    rows = columns.split_rows(inverse, len(distinct) + 1)
    assert [some.tolist() for some in rows] == [
        *([i for i, number in enumerate(numbers) if number == value] for value in distinct),
        [],
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("largest", [1, 100])
def test_columns_of_all_kinds_have_distinct_values_as_numpy_finds_them(kind, largest):
    some = np.random.default_rng(1).integers(0, largest + 1, 500).astype(kind)
    values, inverse = columns.unique_inverse(some)
    assert values.dtype == some.dtype
    assert values.tolist() == sorted(set(some.tolist()))
    assert (values[inverse] == some).all()
    assert columns.unique_inverse(columns.row_keys(some))[1].tolist() == inverse.tolist()
    assert columns.argsort(some).tolist() == np.argsort(some, kind="stable").tolist()


def test_keys_beyond_the_signed_integers_differ():
    keys = np.array([1 << 63, 5, (1 << 63) + 1, 5], np.uint64)
    assert columns.row_keys(keys).tolist() == [1, 0, 2, 0]
    assert columns.argsort(keys).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("bits", [0, 8, 16, 17, 32, 33, 48, 49, 62])
def test_rows_are_sorted_as_numpy_sorts_them(bits):
    draw = np.random.default_rng(bits)
    keys = draw.integers(-(1 << bits) // 2, (1 << bits) // 2, 2_000, endpoint=True)
    keys[::3] = keys[0]
    assert (columns.argsort(keys) == np.argsort(keys, kind="stable")).all()
    values, inverse = columns.unique_inverse(keys)
    assert (values[inverse] == keys).all()
    others = (keys % 5, keys % 3)
    assert (columns.lexsort((keys, *others)) == np.lexsort((keys, *others))).all()


@given(st.lists(NEAR, max_size=20), st.lists(NEAR, max_size=20))
def test_values_are_found_in_an_ascending_column(numbers, known):
    known = sorted(known)
    expected = [known.index(number) if number in known else -1 for number in numbers]
    assert columns.find_sorted(column(numbers), column(known)).tolist() == expected


@given(st.lists(st.tuples(NEAR, NEAR), max_size=20), st.lists(st.booleans(), max_size=20))
def test_first_rows_of_runs_and_last_marked_rows(rows, marks):
    first, second = (column([row[which] for row in rows]) for which in range(2))
    assert columns.mark_first(first, second).tolist() == [i == 0 or row != rows[i - 1] for i, row in enumerate(rows)]
    expected = [max((j for j in range(i + 1) if marks[j]), default=-1) for i in range(len(marks))]
    assert columns.last_marked(column(marks, bool)).tolist() == expected


@given(st.lists(st.tuples(NEAR, st.integers(0, 4)), max_size=20))
def test_ranges_follow_one_another(some):
    expected = [first + i for first, count in some for i in range(count)]
    assert columns.ranges(column([pair[0] for pair in some]), column([pair[1] for pair in some])).tolist() == expected

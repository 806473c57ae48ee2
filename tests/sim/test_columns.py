"""Columns of numbers: what of them is found without a sort is what a sort would find."""

import numpy as np
import pytest

from workbench.sim.columns import distinct


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("largest", [1, 100])
def test_distinct_numbers_are_those_of_a_sort(kind, largest):
    numbers = np.random.default_rng(1).integers(0, largest + 1, 500).astype(kind)
    numbers = numbers[numbers != largest // 2]
    values, which = distinct(numbers)
    assert values.dtype == kind
    assert values.tolist() == sorted(set(numbers.tolist()))
    assert np.array_equal(values[which], numbers)


def test_distinct_numbers_that_lie_far_apart_or_below_zero_are_found_too():
    numbers = np.array([5, -(1 << 62), 5, 1 << 62, -3])
    values, which = distinct(numbers)
    assert values.tolist() == [-(1 << 62), -3, 5, 1 << 62]
    assert np.array_equal(values[which], numbers)
    assert distinct(np.array([-7, 2, -7]))[1].tolist() == [0, 1, 0]


def test_no_numbers_are_no_distinct_numbers():
    values, which = distinct(np.zeros(0, np.int32))
    assert len(values) == len(which) == 0

"""Bounds of percentiles, trends and numbers of runs, compared with known values or other methods of computation."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import plans
from workbench.errors import ParameterError


@pytest.mark.parametrize(
    ("percentile", "confidence", "runs"), [(50, 0.95, 5), (90, 0.95, 29), (10, 0.95, 29), (95, 0.95, 59), (50, 0.99, 7)]
)
def test_numbers_of_runs_that_bound_a_percentile_equal_those_of_triscale(percentile, confidence, runs):
    assert plans.runs_needed(percentile, confidence) == runs
    share = max(percentile, 100 - percentile) / 100
    assert 1 - share**runs >= confidence > 1 - share ** (runs - 1)


def test_bounds_of_a_median_are_the_order_statistics_of_the_sign_test():
    # Known from tables: for 10 values the 2nd and the 9th (97.9 %), for 20 the 6th and the 15th (95.9 %).
    assert plans.percentile_bounds(range(1, 11)) == (2, 9)
    assert plans.percentile_bounds(range(1, 21)) == (6, 15)
    low, high = plans.percentile_bounds([3.0, 1.0, 2.0])
    assert math.isnan(low) and math.isnan(high)


def test_infinite_values_count_as_large_and_unknown_values_are_ignored():
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, math.inf, math.inf, math.inf, math.inf, math.nan]
    assert plans.percentile_bounds(values) == (2.0, math.inf)
    assert all(math.isnan(bound) for bound in plans.percentile_bounds([]))


def test_bounds_contain_the_median_as_often_as_stated():
    dice = random.Random(1)
    hits = 0
    for _ in range(1000):
        low, high = plans.percentile_bounds([dice.expovariate(1.0) for _ in range(15)])
        hits += low <= math.log(2) <= high
    assert hits >= 930


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.sampled_from([10, 50, 90]))
def test_bounds_are_values_of_the_sample_in_order(values, percentile):
    low, high = plans.percentile_bounds(values, percentile)
    assert {bound for bound in (low, high) if not math.isnan(bound)} <= set(values)
    assert not low > high


def test_trend_is_relative_and_ignores_outliers():
    times = np.arange(50)
    values = 10 + 0.02 * times
    values[7] = 1000
    result = plans.trend(times, values)
    assert result.change == pytest.approx(0.02 * 49 / np.median(values)) and result.low <= result.change <= result.high


def test_warm_up_ends_where_the_rest_is_steady():
    times = np.arange(100)
    values = 10 + np.where(times < 30, (30 - times) * 0.5, 0) + np.sin(times * 12.9) * 0.1
    result = plans.converged(times, values, tolerance=0.05)
    assert result.first == 20 and abs(result.change) < 0.05  # the slope ignores that a tenth of the rest falls
    earlier = plans.trend(times, values, 10)
    assert min(earlier.low, -earlier.high) < -0.05
    assert plans.converged(times, 1.0 + times) is None
    assert plans.converged(times, np.ones(100)).first == 0


def test_fewer_pairs_are_needed_for_a_larger_difference():
    differences = np.array([0.8, 1.2, 1.0, 1.1, 0.9, 1.0, 1.3, 0.7])
    assert plans.pairs_needed(differences) == 2
    # (1.96 + 0.84)² · variance / mean², for a mean of 0.1 and a variance of 0.04.
    assert plans.pairs_needed(differences - 0.9) == math.ceil(7.849 * np.var(differences, ddof=1) / 0.01)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: plans.runs_needed(100), "percentile is 100"),
        (lambda: plans.runs_needed(50, 1), "confidence is 1"),
        (lambda: plans.trend([1, 2], [1, 2]), "at least 10"),
        (lambda: plans.pairs_needed([1.0]), "two or more"),
        (lambda: plans.pairs_needed([1.0, -1.0]), "not 0"),
    ],
)
def test_statistics_that_cannot_be_computed_are_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call()

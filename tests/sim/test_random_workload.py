"""Random workloads: range queries, events, failures."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench.protocols.tinymq import TinyMQ


def ends(query, key="TEMP"):
    """Return (lowest, highest) value of a query's interval, in steps of 0.01."""
    name = wb.key_of(key).number
    low, high = (attribute.value for attribute in wb.parse(query.what) if attribute.key == name)
    return low, high


@given(
    seed=st.integers(0, 10**6),
    cells=st.sampled_from((1, 2, 16, 256)),
    exponent=st.sampled_from((0.0, 0.5, 1.0, 2.5)),
    longest=st.floats(0.001, 1.0),
)
def test_intervals_are_within_their_dimensions_and_not_longer_than_requested(seed, cells, exponent, longest):
    shape = {"exponent": exponent, "cells": cells, "longest": longest}
    dimensions = ("TEMP -20 50", "HUMIDITY")
    for query in wb.range_queries(range(5, 9), 10, dimensions, **shape, seed=seed):
        assert query.at[0] in range(5, 9)
        for key, lowest, highest in (("TEMP", -2000, 5000), ("HUMIDITY", 0, 10000)):
            low, high = ends(query, key)
            assert lowest <= low < high <= highest
            assert high - low <= max(1, round((highest - lowest) * longest))


def test_lengths_follow_zipfs_law():
    lengths = Counter()
    for query in wb.range_queries(range(9), 4000, cells=50, exponent=1.0):
        low, high = ends(query)
        lengths[round((high - low) / 100)] += 1
    harmonic = sum(1 / length for length in range(1, 51))
    for length in (1, 2, 3, 5, 10):
        expected = 4000 / (length * harmonic)
        assert abs(lengths[length] - expected) < 5 * expected**0.5
    assert set(lengths) <= set(range(1, 51))


def test_lengths_are_uniform_without_an_exponent_and_fixed_with_one_cell():
    some = [high - low for low, high in map(ends, wb.range_queries(range(9), 2000, cells=4, exponent=0))]
    assert sorted(Counter(some)) == [1250, 2500, 3750, 5000]
    assert max(Counter(some).values()) < 1.3 * min(Counter(some).values())
    assert {high - low for low, high in map(ends, wb.range_queries(range(9), 50, cells=1, longest=0.6))} == {3000}


def test_a_smaller_workload_is_a_prefix_of_a_larger_one_and_seeds_differ():
    draw = {"start_s": 10.0, "every_s": 0.5}
    for make in (wb.range_queries, wb.range_events):
        many = make(range(50), 30, **draw)
        assert make(range(50), 7, **draw) == many[:7]
        assert make(range(50), 30, **draw, seed=2) != many
        assert [item.start_s for item in many[:3]] == [10.0, 10.5, 11.0]
        assert len({item.at for item in many}) > 10


def test_events_are_uniform_over_all_dimensions():
    events = wb.range_events(range(9), 2000, ("TEMP 0 50", "HUMIDITY 20 40"))
    values = [[attribute.value for attribute in wb.parse(event.what)] for event in events]
    for dimension, low, high in ((0, 0, 5000), (1, 2000, 4000)):
        column = [row[dimension] for row in values]
        assert low <= min(column) < low + 0.01 * (high - low) and high - 0.01 * (high - low) < max(column) <= high
        assert abs(sum(column) / len(column) - (low + high) / 2) < 0.03 * (high - low)


def test_outage_affects_a_share_of_the_nodes_and_a_smaller_share_is_a_subset():
    few, more = (wb.random_outage(range(10, 110), share, 5.0, seed=3).at for share in (0.1, 0.3))
    assert (len(few), len(more)) == (10, 30)
    assert set(few) < set(more) <= set(range(10, 110))
    assert wb.random_outage(range(100), 0.001, 5.0).at != ()


def test_a_random_workload_can_be_run():
    graph = wb.topology.disc(40, 80, 40, seed=3)
    dimensions = ("TEMP 0 50", "HUMIDITY 20 40")
    protocol = TinyMQ(roots=(0, 1), dimensions=dimensions, info_s=0.0, retries=0, refresh_s=0.0)
    workload = [*wb.range_queries(graph, 20, dimensions, start_s=3), *wb.range_events(graph, 40, dimensions, start_s=6)]
    metrics = wb.Scenario(graph, protocol, workload, duration_s=9).run(engine="reference").metrics
    assert metrics["expected"] > 5 and metrics["delivery_ratio"] == 1.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: wb.range_queries([], 3), "`nodes` is empty"),
        (lambda: wb.range_queries(range(3), -1), "count is -1"),
        (lambda: wb.range_queries(range(3), 3, cells=0), "cells is 0; it must be a whole number from 1"),
        (lambda: wb.range_queries(range(3), 3, exponent=-1), "exponent is -1; it must be a number from 0"),
        (lambda: wb.range_queries(range(3), 3, longest=0), "longest is 0; it must be above 0"),
        (lambda: wb.range_events(range(3), 3, ("COLOR",)), "COLOR"),
        (lambda: wb.range_events(range(3), 3, "TEMP 0 50"), "`dimensions` is 'TEMP 0 50'; write a tuple or a list"),
        (lambda: wb.range_events(range(3), 3, ("TEMP", "TEMP 0 50")), "must name at least one key, and no key twice"),
        (lambda: wb.random_outage(range(3), 1.5, 1.0), "share is 1.5; it must be above 0 and at most 1"),
    ],
)
def test_an_impossible_random_workload_is_refused_with_a_reason(make, sentence):
    with pytest.raises(wb.WorkbenchError, match=sentence):
        make()

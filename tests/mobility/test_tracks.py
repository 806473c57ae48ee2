"""Tracks: positions between vertices, before the first and after the last."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.mobility import Track, positions

coordinates = st.integers(-(10**9), 10**9).map(lambda steps: steps / 1e4)
vertices = st.lists(st.tuples(st.integers(0, 10**12), coordinates, coordinates), min_size=1, max_size=6).map(
    lambda points: sorted({time: (time, x, y) for time, x, y in points}.values())
)


def track_of(points):
    return Track(np.array([time for time, _, _ in points]), np.array([position for _, *position in points]))


def test_a_node_moves_with_constant_speed_between_vertices_and_stands_still_outside():
    track = track_of([(1_000_000, 0.0, 10.0), (3_000_000, 4.0, 0.0)])
    times_us = [0, 1_000_000, 1_500_000, 3_000_000, 9_000_000]
    assert positions(track, times_us).tolist() == [[0, 10], [0, 10], [1, 7.5], [4, 0], [4, 0]]


def test_a_track_with_a_single_vertex_is_a_node_that_stands_still():
    assert positions(track_of([(5, 1.5, 2.5)]), [0, 5, 9]).tolist() == [[1.5, 2.5]] * 3


@given(points=vertices)
def test_a_node_is_at_each_vertex_at_its_time(points):
    track = track_of(points)
    assert np.array_equal(positions(track, track.times_us), track.positions_m)


@given(points=vertices, times_us=st.lists(st.integers(0, 2 * 10**12), min_size=1, max_size=8))
def test_positions_are_exact_to_a_tenth_of_a_millimetre(points, times_us):
    result = positions(track_of(points), times_us)
    assert result.shape == (len(times_us), 2)
    assert np.array_equal(result, np.rint(result * 1e4) / 1e4)
    for time_us, position_m in zip(times_us, result.tolist(), strict=True):
        earlier = max((point for point in points if point[0] <= time_us), default=points[0])
        later = min((point for point in points if point[0] > time_us), default=points[-1])
        span = later[0] - earlier[0]
        share = Fraction(time_us - earlier[0], span) if span > 0 else 0
        for axis in (0, 1):
            start, end = Fraction(earlier[1 + axis]), Fraction(later[1 + axis])
            assert abs(start + share * (end - start) - Fraction(position_m[axis])) <= Fraction(501, 10**7)


@given(points=vertices, times_us=st.lists(st.integers(0, 2 * 10**12), min_size=1, max_size=8))
def test_positions_do_not_depend_on_the_other_times(points, times_us):
    track = track_of(points)
    together = positions(track, times_us)
    assert together.tolist() == [positions(track, time)[0].tolist() for time in times_us]
    assert positions(track, times_us[::-1]).tolist() == together[::-1].tolist()


@pytest.mark.parametrize("times", [[0, 1], np.array([0, 1]), np.array([0, 1], np.int32), (0, 1)])
def test_times_may_be_any_sequence_of_integers(times):
    assert positions(track_of([(0, 0.0, 0.0), (2, 1.0, 1.0)]), times).tolist() == [[0, 0], [0.5, 0.5]]

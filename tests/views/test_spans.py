"""Array functions of intervals, each compared with its definition row by row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.views import spans
from workbench.views.layers import table

KEYS = st.integers(0, 3)
ROWS = st.lists(st.tuples(KEYS, st.booleans(), st.integers(0, 2)), max_size=30)


def arrays(rows):
    keys, flags, values = (np.array([row[which] for row in rows]) for which in range(3))
    return keys.astype(np.int64), np.arange(len(rows)) * 10, flags.astype(bool), values.astype(np.int64)


@given(ROWS)
def test_each_row_lasts_until_the_next_of_its_key(rows):
    keys, times, _, _ = arrays(rows)
    until = [
        min([10 * k for k in range(i + 1, len(rows)) if keys[k] == keys[i]], default=999) for i in range(len(rows))
    ]
    assert spans.until_next(keys, times, 999).tolist() == until


@given(ROWS, st.booleans())
def test_rows_open_and_close_the_interval_of_their_key(rows, reopens):
    keys, times, is_opening, _ = arrays(rows)
    ends, open_at = {}, {}
    for row, (key, opens, _) in enumerate(rows):
        if key in open_at and (reopens or not opens):
            ends[open_at.pop(key)] = 10 * row
        if opens:
            open_at.setdefault(key, row)
    ends |= dict.fromkeys(open_at.values(), 999)
    which, until = spans.opened(keys, times, is_opening, 999, reopens)
    assert dict(zip(which.tolist(), until.tolist(), strict=True)) == ends
    assert (np.diff(which) > 0).all()


@given(ROWS)
def test_rows_are_compared_within_their_key(rows):
    keys, _, flags, values = arrays(rows)
    before = [[k for k in range(i) if keys[k] == keys[i]] for i in range(len(rows))]
    is_new = [not some or rows[some[-1]][1:] != rows[i][1:] for i, some in enumerate(before)]
    assert spans.changed(keys, flags, values).tolist() == is_new


INTERVALS = st.lists(st.tuples(KEYS, st.integers(0, 60), st.integers(1, 30)), max_size=12)


def disjoint(some):
    """Return those of the intervals (key, from, until) that overlap no earlier one of their key."""
    intervals = []
    for key, start, length in some:
        if all(k != key or start >= until or start + length <= begin for k, begin, until in intervals):
            intervals.append((key, start, start + length))
    return intervals


def columns_of(rows):
    return (np.array([row[column] for row in rows], np.int64) for column in range(3))


@given(INTERVALS, INTERVALS)
def test_overlaps_are_the_intersections_of_intervals_of_a_key(some, others):
    rows = [(key, start, start + length) for key, start, length in some]
    others = disjoint(others)
    overlaps = spans.overlaps(*columns_of(rows), *columns_of(others))
    expected = [
        (i, j, max(a, c), min(b, d))
        for i, (key, a, b) in enumerate(rows)
        for j, (other_key, c, d) in enumerate(others)
        if key == other_key and max(a, c) < min(b, d)
    ]
    overlap_rows = zip(*(column.tolist() for column in overlaps), strict=True)
    assert sorted(overlap_rows) == sorted(expected)


@given(INTERVALS, INTERVALS)
def test_intervals_of_a_node_are_cut_where_it_is_down(some, outages):
    rows = [(key, start, start + length) for key, start, length in some]
    outages = disjoint(outages)
    names = ("node", "from_us", "until_us")
    remaining = spans.without(
        table(**dict(zip(names, columns_of(rows), strict=True)), sequence=np.arange(len(rows))),
        table(**dict(zip(names, columns_of(outages), strict=True))),
    )
    assert (remaining["from_us"] < remaining["until_us"]).all()
    assert (np.diff(remaining["from_us"]) >= 0).all()
    alive = {
        (row, time)
        for row, start, until in zip(remaining["sequence"], remaining["from_us"], remaining["until_us"], strict=True)
        for time in range(start, until)
    }
    assert alive == {
        (row, time)
        for row, (node, start, until) in enumerate(rows)
        for time in range(start, until)
        if not any(down == node and begin <= time < end for down, begin, end in outages)
    }
    pieces = list(zip(remaining["sequence"].tolist(), remaining["from_us"].tolist(), strict=True))
    assert len(set(pieces)) == len(pieces)


def test_rows_end_with_the_run_and_are_thinned_if_there_are_too_many():
    rows = table(from_us=[0, 10, 90, 120], until_us=[5, 200, 90, 130])
    assert spans.within(rows, 100)["until_us"].tolist() == [5, 100]
    few, notes = spans.thinned(rows, 3, "waves")
    assert few["from_us"].tolist() == [0, 90]
    assert notes == ("Of 4 waves one in 2 is drawn; all of them are counted.",)
    assert spans.thinned(rows, 4, "waves") == (rows, ())


def test_intervals_are_cut_at_the_next_event_of_their_node():
    rows = table(node=[1, 1, 2, 1, 3], from_us=[0, 5, 5, 9, 20], until_us=[30, 30, 30, 8, 30])
    rows["until_us"][3] = 30
    events = table(node=[1, 3, 1], from_us=[5, 10, 12], until_us=[6, 11, 13])
    assert spans.cut(rows, events)["until_us"].tolist() == [5, 12, 30, 12, 30]
    assert spans.cut(rows, events)["from_us"].tolist() == rows["from_us"].tolist()
    assert spans.cut(rows, table(node=[])) is rows

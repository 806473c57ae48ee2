"""A trace as columns: rows by the words that they have, and rows that are counted without being listed."""

import numpy as np

from tests.views.traces import trace_of
from workbench.sim.rows import Columns

TRACE = trace_of(
    (1, 5, "received"),
    (2, 1, "sent"),
    (2, 2, "received"),
    (2, 3, "lost", {"detail": "link"}),
    (2, 4, "received"),
    (3, 2, "sent"),
    (4, 3, "sent"),
    (4, 1, "received"),
)


def test_rows_of_an_event_are_counted_from_each_row_to_the_next():
    columns = Columns(TRACE)
    sent = columns.where(event="sent")
    assert columns.number_after(sent, "received").tolist() == [2, 0, 1]
    assert columns.number_after(sent, "lost").tolist() == [1, 0, 0]
    assert columns.number_after(sent, "unheard of").tolist() == [0, 0, 0]
    assert columns.number_after(np.arange(0), "received").tolist() == []


def test_a_word_that_no_row_has_finds_no_row_and_one_that_some_have_finds_these():
    columns = Columns(TRACE)
    assert columns.where(event="lost", detail="link").tolist() == [3]
    assert columns.where(event="lost", detail=("down", "collision")).tolist() == []
    assert columns.where(detail="down").tolist() == []


def test_rows_of_a_part_have_positions_in_the_trace():
    part = Columns(TRACE).part(np.array([1, 3, 5, 7])).part(np.array([1, 2]))
    assert part.in_trace(np.array([0, 1])).tolist() == [3, 5]
    assert part.number_after(np.array([0]), "sent").tolist() == [1]

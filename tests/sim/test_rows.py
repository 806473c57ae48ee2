"""A trace as columns: selecting rows by words, and counting rows without listing them."""

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
    sent_rows = columns.where(event="sent")
    assert columns.number_after(sent_rows, "received").tolist() == [2, 0, 1]
    assert columns.number_after(sent_rows, "lost").tolist() == [1, 0, 0]
    assert columns.number_after(sent_rows, "unheard of").tolist() == [0, 0, 0]
    assert columns.number_after(np.arange(0), "received").tolist() == []


def test_rows_are_selected_by_word_and_an_unknown_word_selects_none():
    columns = Columns(TRACE)
    assert columns.where(event="lost", detail="link").tolist() == [3]
    assert columns.where(event="lost", detail=("down", "collision")).tolist() == []
    assert columns.where(detail="down").tolist() == []


def test_rows_of_a_part_of_the_trace_have_positions_in_the_whole():
    part = Columns(TRACE).part(np.array([1, 3, 5, 7])).part(np.array([1, 2]))
    assert part.in_trace(np.array([0, 1])).tolist() == [3, 5]
    assert part.number_after(np.array([0]), "sent").tolist() == [1]

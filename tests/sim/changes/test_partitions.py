"""Partitions: readings published while the network is divided are lost, and no others."""

import pytest

import workbench as wb
from tests.sim.changes.playing import (
    FRAME_US,
    SECOND,
    delivered_s,
    middles,
    play,
    readings,
    row_of_nodes,
    rows,
    subscription,
)
from workbench.errors import ScenarioError

LINE = row_of_nodes(5)
# With its black list, a node removes the gradient to a neighbor that a partition separates.
WITHOUT_BLACK_LIST = wb.Diffusion(refresh_s=0, blacklist_loss=1.0)


def test_partition_loses_exactly_the_readings_published_in_it():
    run = play(LINE, [subscription(), readings(4), wb.partition([0, 1], 10, 20)], 30)
    assert delivered_s(run) == [*middles(0, 10), *middles(20, 30)]
    # No link leads over the border, so a broadcast is not lost there.
    assert not rows(run, "lost")


def test_each_part_works_on_and_the_side_that_is_named_makes_no_difference():
    workload = [subscription([0, 1, 3]), readings([1, 4])]
    first, second = (
        play(LINE, [*workload, wb.partition(at, 3.2)], 6, protocol=wb.Flooding()) for at in ([0, 1], [2, 3, 4])
    )
    assert first.trace_hash == second.trace_hash
    after = [row for row in rows(first, "delivered") if row["time_us"] > 3.2 * SECOND]
    assert {(row["origin"], row["node"]) for row in after} == {(1, 0), (1, 1), (4, 3)}


def test_partition_without_an_end_lasts_to_the_end_and_one_of_no_duration_is_refused():
    run = play(LINE, [subscription(), readings(4), wb.partition(2, 4)])
    assert delivered_s(run) == middles(0, 4)
    with pytest.raises(ScenarioError, match="stop_s must be later"):
        wb.partition(2, 4, 4)


def test_overlapping_partitions_divide_until_the_last_one_between_two_nodes_ends():
    workload = [subscription(), readings(4), wb.partition([0, 1], 2, 6), wb.partition([0, 1, 2], 4, 8)]
    run = play(LINE, workload, 12)
    assert delivered_s(run) == [*middles(0, 2), *middles(8, 12)]
    # Both partitions divide nodes 0 and 1 at one border, but not at the other.
    workload = [subscription(1), readings(2), wb.partition([0, 1], 2, 6), wb.partition([0, 1, 2], 4, 8)]
    assert delivered_s(play(LINE, workload, 12), 1) == [*middles(0, 2), *middles(6, 12)]


def test_partition_begins_before_the_end_of_a_frame_and_before_an_action_at_the_same_instant():
    pair = row_of_nodes(2)
    for start_s, is_received in ((3 - (FRAME_US + 1) / 1e6, True), (3 - FRAME_US / 1e6, False), (3, False), (5, True)):
        run = play(pair, [subscription(), wb.publish(1, "TEMP IS 25", start_s=start_s), wb.partition(0, 3, 5)])
        assert len(delivered_s(run)) == is_received, start_s


def test_unicast_over_a_partitioned_link_is_lost_with_the_reason_link():
    workload = [subscription(), readings(1, start_s=4.5), wb.partition(1, 10, 20)]
    run = play(row_of_nodes(2), workload, 30, protocol=WITHOUT_BLACK_LIST)
    assert delivered_s(run) == [*middles(4, 10), *middles(20, 30)]
    lost = rows(run, "lost", message="data")
    assert {(row["node"], row["peer"], row["detail"]) for row in lost} == {(0, 1, "link")}
    assert [row["time_us"] // SECOND for row in lost] == list(range(10, 20))


def test_radio_sends_a_frame_over_a_partitioned_link_as_often_as_its_retries_permit():
    workload = [subscription(), readings(1, None, 12.5), wb.partition(1, 10, 20)]
    run = play(row_of_nodes(2), workload, 15, protocol=WITHOUT_BLACK_LIST, retries=2)
    soon = [row for row in rows(run, "sent", "lost", message="data") if row["time_us"] < 12.52 * SECOND]
    assert [row["event"] for row in soon] == ["sent", "lost"] * 3


def test_partition_of_all_nodes_is_an_error():
    with pytest.raises(ScenarioError, match=r'^the argument `at` is "all"; it must name the nodes on one side'):
        wb.partition("all", 1)

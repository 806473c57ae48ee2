"""Nodes that join and leave: no trace of them before and after, and the readings that they expect."""

import pytest

import workbench as wb
from tests.sim.changes.playing import (
    SECOND,
    delivered_s,
    history,
    middles,
    play,
    readings,
    row_of_nodes,
    rows,
    subscription,
)
from workbench.errors import ScenarioError

PAIR = row_of_nodes(2)


def test_node_that_joins_receives_and_expects_readings_from_then_on():
    run = play(PAIR, [subscription(), readings(), wb.join(0, 10)], 20)
    assert history(run, 0) == [(0, "failed", 0, "absent"), (10, "recovered", 0, "joined")]
    assert [(row["time_us"], row["sequence"]) for row in rows(run, "subscribed")] == [(10 * SECOND, 0)]
    assert delivered_s(run) == middles(10, 20) and run.metrics["expected"] == 10
    assert not [row for row in rows(run, "sent", "received", "held", node=0) if row["time_us"] < 10 * SECOND]
    assert {row["detail"] for row in rows(run, "lost", node=0)} == {"down"}


def test_node_that_joins_publishes_from_then_on_with_its_first_numbers():
    run = play(PAIR, [subscription(), readings(), wb.join(1, 10)], 20)
    assert [(row["time_us"] / SECOND, row["sequence"]) for row in rows(run, "published")] == [
        (time_s, number) for number, time_s in enumerate(middles(10, 20))
    ]
    assert delivered_s(run) == middles(10, 20) and run.metrics["expected"] == 10


def test_subscription_that_begins_after_the_join_is_made_at_its_time():
    run = play(PAIR, [subscription(start_s=15), readings(), wb.join(0, 10)], 20)
    assert [row["time_us"] // SECOND for row in rows(run, "subscribed")] == [15]


def test_subscription_that_ended_before_the_join_is_not_made():
    run = play(PAIR, [subscription(stop_s=10), subscription(expires_s=9), readings(), wb.join(0, 10)], 20)
    assert not rows(run, "subscribed") and not rows(run, "unsubscribed")


def test_expiring_subscription_lasts_as_long_as_without_the_absence():
    run = play(PAIR, [subscription(expires_s=15), readings(), wb.join(0, 10)], 20)
    assert [row["value"] for row in rows(run, "subscribed")] == [15 * SECOND]
    assert delivered_s(run) == middles(10, 15)


def test_join_at_the_start_changes_nothing():
    workload = [subscription(), readings()]
    assert play(PAIR, [*workload, wb.join("all", 0)]).trace_hash == play(PAIR, workload).trace_hash


def test_relay_that_joins_connects_the_network():
    run = play(row_of_nodes(3), [subscription(), readings(2), wb.join(1, 4)])
    assert delivered_s(run) == middles(4, 10)


def test_node_that_leaves_receives_and_sends_nothing_afterwards():
    run = play(PAIR, [subscription([0, 1]), readings([0, 1]), wb.leave(0, 5)])
    assert history(run, 0) == [(5, "failed", 0, "")]
    assert delivered_s(run, 0) == sorted(2 * middles(0, 5))
    assert [row["time_us"] / SECOND for row in rows(run, "published", node=0)] == middles(0, 5)
    assert not [row for row in rows(run, "sent", "received", "delivered", node=0) if row["time_us"] > 5 * SECOND]
    assert run.metrics["expected"] == 5 * 2 + 5 * 2 + 5  # of node 0; of node 1, before and after


def test_node_may_join_then_crash_then_leave():
    run = play(PAIR, [subscription(), readings(), wb.leave(0, 16), wb.join(0, 4), wb.crash(0, 8, 12)], 20)
    assert history(run, 0) == [
        (0, "failed", 0, "absent"),
        (4, "recovered", 0, "joined"),
        (8, "failed", 0, "crashed"),
        (12, "recovered", 1, "restarted"),
        (16, "failed", 0, ""),
    ]
    assert delivered_s(run) == [*middles(4, 8), *middles(12, 16)]


def test_node_that_two_items_let_join_is_up_from_the_later_time():
    run = play(PAIR, [subscription(), readings(), wb.join(0, 3), wb.join("all", 6)])
    assert history(run, 0) == [(0, "failed", 0, "absent"), (6, "recovered", 0, "joined")]
    assert delivered_s(run) == middles(6, 10)


def test_outage_during_a_join_delays_it():
    run = play(PAIR, [subscription(), readings(), wb.join(0, 3), wb.outage(0, 2, 6)])
    assert history(run, 0) == [(0, "failed", 0, "absent"), (6, "recovered", 0, "joined")]
    assert delivered_s(run) == middles(6, 10)


def test_crash_before_the_join_is_a_first_start_without_memory():
    run = play(PAIR, [subscription(), readings(), wb.join(0, 6), wb.crash(0, 2, 4)])
    assert history(run, 0)[-1] == (6, "recovered", 0, "joined")
    assert delivered_s(run) == middles(6, 10)


def test_radio_of_an_absent_node_is_off():
    run = play(PAIR, [readings(), wb.join(0, 4), wb.leave(0, 7)])
    off = list(run.energy().states_s.columns).index("off")
    assert run.radio_states_us[0, off] == (4 + 3) * SECOND
    assert run.radio_states_us[1, off] == 0


def test_node_that_leaves_before_it_joins_is_refused():
    with pytest.raises(ScenarioError, match="lets node 1 leave for good at 2 s, before it joins at 5 s"):
        wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.join(1, 5), wb.leave(1, 2)])

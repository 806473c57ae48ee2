"""Crashes and outages: memory, subscriptions, numbers of messages, and overlapping times."""

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
from workbench.sim import engine
from workbench.sim.trace import Recorder

PAIR = row_of_nodes(2)
BOOT = 1 << 24  # messages of each start of a node


def test_subscriptions_end_with_a_crash_and_are_repeated_after_the_restart():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 10, 12)], 20)
    assert history(run, 0) == [(10, "failed", 0, "crashed"), (12, "recovered", 1, "restarted")]
    subscribed = rows(run, "subscribed")
    assert [(row["time_us"] / SECOND, row["sequence"]) for row in subscribed] == [(0, 0), (12, BOOT)]
    assert delivered_s(run) == [*middles(0, 10), *middles(12, 20)]
    assert run.metrics["expected"] == 18


def test_outage_keeps_subscriptions_and_numbers():
    run = play(PAIR, [subscription(), readings(), wb.outage([0, 1], 10, 12)], 20)
    assert history(run, 0) == [(10, "failed", 0, ""), (12, "recovered", 0, "")]
    assert [row["sequence"] for row in rows(run, "subscribed")] == [0]
    assert [row["sequence"] for row in rows(run, "published")] == list(range(18))


def test_each_start_has_its_own_numbers_of_messages():
    run = play(PAIR, [subscription(), readings(), wb.crash(1, 4, 5), wb.crash(1, 8, 9)], 12)
    assert [boot for _, event, boot, _ in history(run, 1) if event == "recovered"] == [1, 2]
    sequences = [row["sequence"] for row in rows(run, "published")]
    assert sequences == [*range(4), *range(BOOT, BOOT + 3), *range(2 * BOOT, 2 * BOOT + 3)]
    assert sequences == [row["sequence"] for row in rows(run, "sent", node=1, origin=1)]
    # A neighbor that knew the number 0 would drop new messages with this number.
    assert delivered_s(run) == [*middles(0, 4), *middles(5, 8), *middles(9, 12)]


def test_expiring_subscription_keeps_its_end_through_a_restart():
    run = play(PAIR, [subscription(expires_s=15), readings(), wb.crash(0, 5, 10)], 20)
    subscribed = rows(run, "subscribed")
    assert [(row["time_us"], row["value"]) for row in subscribed] == [(0, 15 * SECOND), (10 * SECOND, 15 * SECOND)]
    assert delivered_s(run) == [*middles(0, 5), *middles(10, 15)]
    assert run.metrics["expected"] == 10


@pytest.mark.parametrize("ends", [{"expires_s": 8}, {"stop_s": 8}, {"expires_s": 10}, {"stop_s": 10}])
def test_subscription_that_ended_during_a_crash_is_not_repeated(ends):
    run = play(PAIR, [subscription(**ends), readings(), wb.crash(0, 5, 10)], 20)
    assert len(rows(run, "subscribed")) == 1 and not rows(run, "unsubscribed")
    assert delivered_s(run) == middles(0, 5)


def test_repeated_subscription_is_ended_by_its_unsubscription():
    run = play(PAIR, [subscription(stop_s=15), readings(), wb.crash(0, 5, 10)], 20)
    assert [(row["time_us"], row["sequence"]) for row in rows(run, "unsubscribed")] == [(15 * SECOND, BOOT)]
    assert delivered_s(run) == [*middles(0, 5), *middles(10, 15)]


def test_subscription_that_begins_during_a_crash_is_made_at_the_restart_and_during_an_outage_never():
    late = subscription(start_s=7)
    assert delivered_s(play(PAIR, [late, readings(), wb.crash(0, 5, 10)], 20)) == middles(10, 20)
    run = play(PAIR, [late, readings(), wb.outage(0, 5, 10)], 20)
    assert not delivered_s(run) and run.metrics["expected"] == 0


def test_several_subscriptions_are_repeated_in_their_order():
    workload = [subscription(), wb.subscribe(0, "TEMP GE 24", start_s=1), readings(), wb.crash(0, 5, 10)]
    run = play(PAIR, workload, 20)
    assert [row["detail"] for row in rows(run, "subscribed")] == ["TEMP GE 20", "TEMP GE 24"] * 2
    assert [row["sequence"] for row in rows(run, "subscribed")] == [0, 1, BOOT, BOOT + 1]


def test_crash_during_an_outage_loses_the_memory_and_the_node_is_up_when_both_have_ended():
    run = play(PAIR, [subscription(), readings(), wb.outage(0, 5, 20), wb.crash(0, 10, 15)], 25)
    assert history(run, 0) == [
        (5, "failed", 0, ""),
        (10, "failed", 0, "crashed"),
        (20, "recovered", 1, "restarted"),
    ]
    assert delivered_s(run) == [*middles(0, 5), *middles(20, 25)]
    assert run.metrics["expected"] == 10


def test_overlapping_crashes_are_one_restart():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 5, 15), wb.crash(0, 10, 20)], 25)
    assert history(run, 0) == [
        (5, "failed", 0, "crashed"),
        (10, "failed", 0, "crashed"),
        (20, "recovered", 1, "restarted"),
    ]
    assert delivered_s(run) == [*middles(0, 5), *middles(20, 25)]


def test_outage_that_begins_during_a_crash_delays_the_restart():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 5, 10), wb.outage(0, 8, 20)], 25)
    assert history(run, 0) == [(5, "failed", 0, "crashed"), (20, "recovered", 1, "restarted")]
    assert delivered_s(run) == [*middles(0, 5), *middles(20, 25)]


def test_crash_at_the_end_of_another_restarts_the_node_twice_and_subscribes_once():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 5, 10), wb.crash(0, 10, 15)], 20)
    assert history(run, 0) == [
        (5, "failed", 0, "crashed"),
        (10, "recovered", 1, "restarted"),
        (10, "failed", 0, "crashed"),
        (15, "recovered", 2, "restarted"),
    ]
    assert [row["time_us"] // SECOND for row in rows(run, "subscribed")] == [0, 15]
    assert delivered_s(run) == [*middles(0, 5), *middles(15, 20)]


def test_crash_at_the_start_makes_the_first_subscription_at_the_restart():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 0, 5)])
    assert history(run, 0) == [(0, "failed", 0, "crashed"), (5, "recovered", 1, "restarted")]
    assert [row["time_us"] // SECOND for row in rows(run, "subscribed")] == [5]
    assert delivered_s(run) == middles(5, 10)


def test_crash_without_an_end_is_for_good_and_one_of_no_duration_is_refused():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 5)])
    assert history(run, 0) == [(5, "failed", 0, "crashed")] and delivered_s(run) == middles(0, 5)
    assert run.metrics["expected"] == 5
    with pytest.raises(ScenarioError, match="stop_s must be later"):
        wb.crash(0, 5, 5)


def test_restart_after_the_end_of_the_run_does_not_happen():
    run = play(PAIR, [subscription(), readings(), wb.crash(0, 5, 10)], 10)
    assert history(run, 0) == [(5, "failed", 0, "crashed")]


def test_frame_of_a_crashing_node_is_given_up():
    run = play(PAIR, [subscription(), wb.publish(1, "TEMP IS 25", start_s=5), wb.crash(1, 5.0005, 6)])
    assert [(row["node"], row["detail"]) for row in rows(run, "given_up")] == [(1, "down")]
    assert not rows(run, "sent")


def test_flooding_relay_forwards_a_known_message_again_after_a_restart():
    # The relay has forgotten the message of node 0 when node 2 forwards it (a delay by jitter) to the relay again.
    run = play(row_of_nodes(3), [readings(0, None, 1.0), wb.crash(1, 1.005, 1.006)], 3, jitter_ms=(4, 4))
    assert not rows(run, "held", node=2)  # The relay crashed before it forwarded the flood.
    run = play(row_of_nodes(3), [readings(0, None, 1.0), wb.crash(1, 1.0095, 1.0096)], 3, jitter_ms=(4, 4))
    # The flood is sent at 1.004 s, forwarded by node 1 at 1.008704 s and by node 2 at 1.013408 s: after the restart.
    assert [row["node"] for row in rows(run, "held")] == [0, 1, 2, 1]
    assert [row["node"] for row in rows(run, "sent")] == [0, 1, 2, 1]


def test_relay_of_diffusion_has_no_gradients_until_the_next_interest():
    protocol = wb.Diffusion(refresh_s=30)
    workload = [subscription(), readings(2, start_s=5.5), wb.crash(1, 40, 42)]
    run = play(row_of_nodes(3), workload, 90, protocol=protocol)
    interests_us = [row["time_us"] for row in rows(run, "sent", message="interest", node=0)]
    first_interest_us = next(time_us for time_us in interests_us if time_us > 42 * SECOND)
    gradients_us = [row["time_us"] for row in rows(run, "gradient_set", node=1, origin=0)]
    assert any(time_us < 40 * SECOND for time_us in gradients_us)
    assert min(time_us for time_us in gradients_us if time_us > 40 * SECOND) >= first_interest_us
    delivered = delivered_s(run)
    assert [time_s for time_s in delivered if time_s < 40] == middles(5, 40)
    # The relay drops what it receives in between, and carries on after the interest.
    assert not [time_s for time_s in delivered if 42 <= time_s < first_interest_us / SECOND]
    assert {row["detail"] for row in rows(run, "dropped", node=1, message="data")} == {"no_interest"}
    assert set(middles(61, 90)) <= set(delivered)


@pytest.mark.parametrize(
    "protocol",
    [
        wb.Gossip(forwarding_probability=1.0),
        wb.CodedDiffusion(generation_size=2),
        wb.Diffusion(refresh_s=5),
        wb.TinyMQ(roots=[0], info_s=2),
        wb.Pub2Sub(roots=[0], info_s=2),
        wb.DPS(),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_every_protocol_delivers_again_after_sink_and_relay_have_crashed(protocol):
    workload = [subscription(), readings(2), wb.crash(0, 30, 33), wb.crash(1, 60, 62)]
    run = play(row_of_nodes(3), workload, 140, protocol=protocol, seed=3)
    assert set(middles(20, 28)) | set(middles(120, 138)) <= set(delivered_s(run))
    assert run.metrics["wrong_deliveries"] == 0
    publishers = {row["sequence"] for row in rows(run, "published")}
    assert publishers == set(range(140))


def test_acknowledgements_of_dps_do_not_circulate_after_a_crash():
    # Node 0 forgets its publication and gets it back from node 2, so its reverse path would lead to node 2, from there
    # to node 1 and back to node 0.
    workload = [subscription("all"), wb.publish(0, "TEMP IS 25", start_s=11), wb.crash(0, 12, 12.5)]
    protocol = wb.DPS(ttl_s=30, acknowledge=True)
    scenario = wb.Scenario(wb.topology.ring(3), protocol, workload, duration_s=30, seed=2)
    recorder = Recorder()
    kernel = engine.begin(scenario, recorder)
    kernel.play_until(30 * SECOND)
    kernel.forget_actions()
    kernel.play_until(31 * SECOND)
    assert not [row for row in recorder.table().to_pylist() if row["time_us"] > 30.5 * SECOND]

"""Jammers: exactly the frames that overlap with the noise are lost, within the radius and at the computed steps."""

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

PAIR = row_of_nodes(2)
US = 1e-6
LATEST_END_S = 1 - FRAME_US * US  # A frame that begins then ends at 1 s.


@pytest.mark.parametrize(
    ("start_s", "is_jammed"),
    [
        (LATEST_END_S - US, False),
        (LATEST_END_S, False),  # It ends when the noise begins.
        (LATEST_END_S + US, True),
        (1.0, True),
        (1.5, True),
        (2 - US, True),
        (2.0, False),  # It begins when the noise ends.
        (2 + US, False),
    ],
)
def test_frames_that_overlap_with_the_noise_are_jammed(start_s, is_jammed):
    run = play(PAIR, [subscription(), wb.publish(1, "TEMP IS 25", start_s=start_s), wb.jam(0, 0, 5, 1, 2)])
    assert [row["detail"] for row in rows(run, "lost")] == ["jammed"] * is_jammed
    assert len(delivered_s(run)) == (not is_jammed)


def test_pulse_within_a_frame_jams_it():
    jam = wb.jam(0, 0, 5, 1.0003, 1.0004)
    run = play(PAIR, [subscription(), readings(1, None, 1.0), readings(1, None, 2.0), jam])
    assert delivered_s(run) == [2.0]


def test_nodes_outside_the_radius_receive_everything_and_a_jammed_sender_sends():
    # Nodes are 10 m apart; the noise reaches nodes 2 and 3.
    run = play(row_of_nodes(5), [subscription([0, 4]), readings(1), wb.jam(25, 0, 6)], protocol=wb.Flooding())
    assert {row["node"] for row in rows(run, "lost", detail="jammed")} == {2}
    assert delivered_s(run, 0) == middles(0, 10) and not delivered_s(run, 4)
    run = play(row_of_nodes(5), [subscription([0, 4]), readings(2), wb.jam(25, 0, 6)], protocol=wb.Flooding())
    assert delivered_s(run, 0) == middles(0, 10)
    assert not rows(run, "lost", node=1) and not rows(run, "received", node=3)


def test_radius_includes_nodes_at_exactly_this_distance():
    assert delivered_s(play(PAIR, [subscription(), readings(), wb.jam(-10, 0, 10)])) == []
    assert delivered_s(play(PAIR, [subscription(), readings(), wb.jam(-10, 0, 9.999)])) == middles(0, 10)


def test_pulses_repeat_with_their_period():
    # Noise in [1.0, 1.2), [2.0, 2.2), ..., [8.0, 8.2); readings at multiples of 0.1 s.
    run = play(PAIR, [subscription(), readings(every_s=0.1, start_s=0.1), wb.jam(0, 0, 5, 1, 8.1, 1, 0.2)])
    jammed = [round(row["time_us"] / SECOND, 1) for row in rows(run, "lost", detail="jammed")]
    assert jammed == sorted([*(float(second) for second in range(1, 9)), *(second + 0.1 for second in range(1, 8))])


def test_two_jammers_disturb_until_the_last_one_ends():
    run = play(PAIR, [subscription(), readings(), wb.jam(0, 0, 5, 2, 6), wb.jam(1, 0, 5, 4, 8)])
    assert delivered_s(run) == [*middles(0, 2), *middles(8, 10)]


def test_jammed_sender_with_carrier_sense_gives_up():
    run = play(PAIR, [subscription(), readings(), wb.jam(10, 0, 5, 3, 6)], csma=True)
    given_up = rows(run, "given_up")
    assert {(row["node"], row["detail"]) for row in given_up} == {(1, "channel_busy")}
    assert [row["time_us"] // SECOND for row in given_up] == [3, 4, 5]
    assert delivered_s(run) == [*middles(0, 3), *middles(6, 10)]


def test_jammed_receiver_outside_of_the_sender_has_no_effect_on_carrier_sense():
    run = play(PAIR, [subscription(), readings(), wb.jam(0, 0, 5, 3, 6)], csma=True)
    assert not rows(run, "given_up") and len(rows(run, "lost", detail="jammed")) == 3


def test_jammed_sender_misses_acknowledgements_and_sends_again():
    workload = [subscription(), readings(1, None, 8.5), wb.jam(10, 0, 5, 8, 9)]
    run = play(PAIR, workload, 14, protocol=wb.Diffusion(refresh_s=0, blacklist_loss=1.0), retries=2)
    soon = [row for row in rows(run, "sent", "received", message="data") if row["time_us"] < 8.52 * SECOND]
    assert [row["event"] for row in soon] == ["sent", "received"] * 3
    assert delivered_s(run) == [8.5] and not rows(run, "lost", node=0)


def test_moving_node_is_jammed_from_the_step_at_which_it_enters_to_that_at_which_it_leaves():
    # Node 0 is at x = t; the noise reaches from 40 m to 60 m, its edges included.
    topology = row_of_nodes(2, radius_m=1000)
    workload = [subscription(), readings(1), wb.move(0, [(0, 0, 0), (100, 100, 0)]), wb.jam(50, 0, 10)]
    assert delivered_s(play(topology, workload, 100)) == [*middles(0, 40), *middles(61, 100)]
    workload[2] = wb.move(0, [(0, 0, 0), (100, 100, 0)], step_s=7)
    # Steps within are those at 42, 49 and 56 s.
    assert delivered_s(play(topology, workload, 100)) == [*middles(0, 42), *middles(63, 100)]


def test_node_that_is_down_loses_frames_because_of_that():
    run = play(PAIR, [subscription(), readings(), wb.jam(0, 0, 5, 2, 8), wb.outage(0, 4, 6)])
    assert [row["detail"] for row in rows(run, "lost", node=0)] == ["jammed"] * 2 + ["down"] * 2 + ["jammed"] * 2


def test_noise_costs_no_energy():
    with_noise, without = (
        play(PAIR, [readings(), *noise], protocol=wb.Flooding(ttl=1)) for noise in ([wb.jam(0, 0, 5, 2, 8)], [])
    )
    assert with_noise.radio_states_us.tolist() == without.radio_states_us.tolist()


def test_sleeping_radio_loses_a_frame_only_if_the_noise_overlaps_with_its_copy():
    # The strobe of a broadcast takes 125 ms. A node receives one copy after its wake-up, and handles it at the end.
    run = play(PAIR, [readings(1, None, 1.0)], 2, protocol=wb.Flooding(ttl=1), wake_interval_ms=125, sleep_mA=0.02)
    (sent,) = rows(run, "sent", node=1)
    start_us, end_us = sent["time_us"] - sent["value"], sent["time_us"]
    jammed = []
    step_us = 2 * FRAME_US
    for begin_us in range(start_us, end_us, step_us):
        jam = wb.jam(0, 0, 5, begin_us * US, (begin_us + step_us) * US)
        run = play(
            PAIR, [readings(1, None, 1.0), jam], 2, protocol=wb.Flooding(ttl=1), wake_interval_ms=125, sleep_mA=0.02
        )
        jammed.append(len(rows(run, "lost", detail="jammed")))
    # A copy overlaps with one or two of these pulses.
    assert sum(jammed) in (1, 2), jammed

"""Low-power listening: wake-ups, strobes, phase lock, and their effect on latency, duty cycle and charge."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_states
from tests.talker import Talker, both_directions, fates, network, play, rows, say, starts_us
from workbench import draws, purposes
from workbench.errors import ParameterError
from workbench.sim.low_power import CHECKS_US, GAP_US
from workbench.sim.state_times import CHECK_US, STATES

INTERVAL_US = 125_000
COPY_US = (50 + 6) * 8 * 4
PERIOD_US = COPY_US + GAP_US
WAIT_US = 192 + (5 + 6) * 8 * 4
STROBE_US = -(-INTERVAL_US // PERIOD_US) * PERIOD_US + COPY_US
LINE = both_directions((0, 1), (1, 2))
HOUR_S = 3600


def play_asleep(topology, workload, seed=1, duration_s=10, **radio):
    """Return a run of `Talker` on a CC2420 that wakes up eight times a second."""
    radio = wb.radios.cc2420(**{"wake_interval_ms": 125, "jitter_ms": 0, "link_quality": "true", **radio})
    return wb.Scenario(topology, Talker(), workload, radio, duration_s, seed).run()


def times_of(run, node):
    position = sorted(run.scenario.topology).index(node)
    return dict(zip(STATES, run.radio_states_us[position].tolist(), strict=True))


def test_node_that_idles_for_an_hour_checks_the_channel_28_800_times():
    run = play_asleep(LINE, [], duration_s=HOUR_S)
    checks_us = HOUR_S * 8 * CHECKS_US
    assert times_of(run, 0) == dict.fromkeys(STATES, 0) | {"idle": checks_us, "sleep": HOUR_S * 10**6 - checks_us}
    assert run.energy().charge_mC.loc[0].sum() == pytest.approx(22.1184 * 18.8 + (3600 - 22.1184) * 0.001)
    # The report (T2011:13) states a duty cycle of .6 %.
    assert checks_us / (HOUR_S * 10**6) == pytest.approx(0.006, rel=0.1)


def test_periodic_broadcast_costs_its_sender_a_strobe_and_its_receiver_a_copy():
    run = play_asleep(both_directions((0, 1)), [say(0, every_s=1)], duration_s=HOUR_S)
    assert pytest.approx(INTERVAL_US, rel=0.1) == STROBE_US
    sender, receiver = times_of(run, 0), times_of(run, 1)
    assert (sender["transmit"], sender["carrier_sense"]) == (HOUR_S * STROBE_US, HOUR_S * CHECK_US)
    # From the wake-up to the next copy, plus that copy.
    assert receiver["receive"] / HOUR_S == pytest.approx(PERIOD_US / 2 + COPY_US, rel=0.1)
    assert sender["transmit"] / (HOUR_S * 10**6) == pytest.approx(0.125, rel=0.1)
    assert run.energy().charge_mC.loc[0, "transmit"] == pytest.approx(17.4 * HOUR_S * STROBE_US / 1e6)
    assert len(rows(run, "received", node=1)) == HOUR_S


def test_first_unicast_is_strobed_until_the_receiver_wakes_up_and_later_ones_start_just_before():
    first_us, later_us = [], []
    for seed in range(1, 101):
        run = play_asleep(both_directions((0, 1)), [say(0, to=1), say(0, to=1, start_s=0.3)], seed, 1)
        sent_rows = rows(run, "sent")
        assert [row["event"] for row in rows(run, "received", node=1)] == ["received"] * 2
        first_us.append(sent_rows[0]["value"])
        later_us.append(sent_rows[1]["value"])
        # A sender that knows the phase sleeps until just before the wake-up: at most seven slots of 320 µs.
        assert later_us[-1] <= 7 * 320 + PERIOD_US + COPY_US
    # Half an interval, half a gap and copy, plus the received copy.
    assert np.mean(first_us) == pytest.approx(INTERVAL_US / 2 + PERIOD_US / 2 + COPY_US, rel=0.1)
    assert np.mean(later_us) == pytest.approx(3.5 * 320 + PERIOD_US / 2 + COPY_US, rel=0.1)


def test_latency_of_a_unicast_is_half_an_interval_with_and_without_phase_lock():
    latencies_us = [
        rows(play_asleep(both_directions((0, 1)), [say(0, to=1), say(0, to=1, start_s=at)], seed, 1), "received")[1][
            "time_us"
        ]
        - at * 10**6
        for seed in range(1, 101)
        for at in (0.3 + seed / 1000,)
    ]
    assert np.mean(latencies_us) == pytest.approx(INTERVAL_US / 2, rel=0.1)


@pytest.mark.parametrize(("overhearing", "heard_us"), [("frame", COPY_US), ("address", (7 + 6) * 8 * 4)])
def test_node_that_wakes_up_during_a_strobe_to_another_node_hears_a_copy_or_its_address(overhearing, heard_us):
    # Without an acknowledgement the strobe takes a whole interval, and node 2 wakes up during it.
    run = play_asleep(network((0, 2), (2, 0), (0, 1)), [say(0, to=1)], duration_s=1, retries=0, overhearing=overhearing)
    assert times_of(run, 0)["transmit"] == STROBE_US
    overheard_us = times_of(run, 2)["overhear"]
    assert heard_us <= overheard_us < PERIOD_US + heard_us
    idle_us = 8 * CHECKS_US
    assert idle_us - CHECKS_US <= times_of(run, 2)["idle"] < idle_us


def test_times_of_five_nodes_equal_those_calculated_by_hand():
    # Node 2 broadcasts to 1 and 3. The strobe would disturb a unicast from 4 to 3, but 4 waits for its end.
    line = both_directions((0, 1), (1, 2), (2, 3), (3, 4), (2, 4))
    run = play_asleep(line, [say(2), say(4, to=3, start_s=0.05)], duration_s=2)
    assert fates(run, 1)[2, 0] == fates(run, 3)[2, 0] == fates(run, 4)[2, 0] == "received"
    assert fates(run, 3)[4, 0] == "received"
    (broadcast,), (unicast,) = rows(run, "sent", node=2), rows(run, "sent", node=4)
    assert broadcast["value"] == STROBE_US and unicast["time_us"] - unicast["value"] > broadcast["time_us"]
    assert times_of(run, 0)["sleep"] == 2 * 10**6 - times_of(run, 0)["idle"]
    assert times_of(run, 0)["idle"] == 16 * CHECKS_US
    assert times_of(run, 4)["await_acknowledgement"] == WAIT_US
    assert times_of(run, 3)["acknowledge"] == (5 + 6) * 8 * 4


def test_unicast_without_acknowledgement_is_strobed_for_a_whole_interval_by_each_try():
    run = play_asleep(both_directions((0, 1)), [say(0, to=1), wb.outage(1, 0, 9)], retries=2)
    assert times_of(run, 0)["transmit"] == 3 * STROBE_US
    assert fates(run, 1)[0, 0] == "down"


def test_phase_is_forgotten_after_failed_tries_and_by_a_failed_sender():
    items = [say(0, to=1, start_s=at) for at in (0, 1, 2, 3, 4)]
    run = play_asleep(both_directions((0, 1)), [*items, wb.outage(1, 1.5, 2.5), wb.outage(0, 3.2, 3.5)], retries=0)
    assert list(fates(run, 1).values()) == ["received", "received", "down", "received", "received"]
    # At 1 and 2 s the sender waits for the wake-up. At 3 s it has forgotten the phase, as no acknowledgement came at
    # 2 s; at 4 s it has forgotten it again, as it failed. Then it sends after its back-off of at most seven slots.
    airtimes_us = [row["value"] for row in rows(run, "sent")]
    assert max(airtimes_us[1:3]) <= 7 * 320 + PERIOD_US + COPY_US
    begins_us = starts_us(run)
    assert max(begins_us[3] - 3 * 10**6, begins_us[4] - 4 * 10**6) <= 7 * 320 + 192


def test_busy_channel_is_checked_again_after_fractions_of_an_interval():
    run = play_asleep(both_directions((0, 1)), [say(0), say(1, start_s=0.02)], duration_s=5)
    assert [row["node"] for row in rows(run, "sent")] == [0, 1] and not rows(run, "given_up")


def test_two_strobes_that_overlap_at_a_receiver_collide():
    # Nodes 0 and 2 do not hear each other.
    run = play_asleep(LINE, [say(0), say(2)], duration_s=2)
    assert set(fates(run, 1).values()) == {"collision"}


frames = st.tuples(
    st.sampled_from([(0, None), (1, None), (2, 3), (3, 0), (0, 1), (1, 2)]),
    st.integers(10, 120),
    st.floats(0, 1.5).map(lambda start_s: round(start_s, 4)),
).map(lambda frame: say(*frame[0], size=frame[1], start_s=frame[2]))


@settings(max_examples=15)
@given(st.lists(frames, max_size=12), st.sampled_from([12, 125, 300.5]), st.integers(1, 1000))
def test_busy_states_equal_those_of_an_oracle_that_marks_each_microsecond(items, wake_interval_ms, seed):
    topology = both_directions((0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3))
    run = play_asleep(topology, items, seed, 2, wake_interval_ms=wake_interval_ms, collisions=False)
    busy = STATES[:4]
    end_us, interval_us = 2 * 10**6, round(1000 * wake_interval_ms)
    painted = np.full((4, end_us), len(STATES), np.int8)

    def paint(node, start, end, state):
        part = painted[node, max(start, 0) : max(end, 0)]
        np.minimum(part, STATES.index(state), out=part)

    for row in rows(run, "sent"):
        end, sender, receiver = row["time_us"], row["node"], row["peer"]
        start, copy_us = end - row["value"], (row["size_B"] + 6) * 32
        paint(sender, start, end, "transmit")
        for hearer in {0, 1, 2, 3} - {sender} if receiver < 0 else {receiver}:
            wake = draws.below(draws.make_key(seed, purposes.WAKE_PHASE, hearer), 0, interval_us)
            while wake < start:
                wake += interval_us
            copy = start
            while copy < wake:
                copy += copy_us + GAP_US
            paint(hearer, wake, copy + copy_us, "receive")
        if receiver >= 0:
            paint(sender, end, end + WAIT_US, "await_acknowledgement")
            paint(receiver, end + 192, end + WAIT_US, "acknowledge")
    expected = [np.bincount(painted[node], minlength=len(STATES) + 1)[: len(busy)].tolist() for node in range(4)]
    assert run.radio_states_us[:, : len(busy)].tolist() == expected


@settings(max_examples=8)
@given(
    st.integers(1, 10**6),
    st.sampled_from(["CodedDiffusion", "Diffusion", "DPS", "Flooding", "TinyMQ"]),
    st.sampled_from([20, 125, 500]),
    st.sampled_from(["frame", "address"]),
    st.integers(0, 15),
)
def test_engines_agree_and_states_add_up_to_the_duration(seed, name, wake_interval_ms, overhearing, failing):
    radio = wb.radios.cc2420(wake_interval_ms=wake_interval_ms, loss=0.1, overhearing=overhearing)
    assert_same_states(getattr(wb, name)(), radio, seed, failing)


def test_low_power_preset_spreads_broadcasts_over_four_intervals():
    assert wb.radios.cc2420(wake_interval_ms=125).jitter_ms == (0, 500)
    assert wb.radios.cc2420(wake_interval_ms=125, jitter_ms=7).jitter_ms == (0, 7)
    assert wb.radios.cc2420().jitter_ms == wb.Radio().jitter_ms


@pytest.mark.parametrize("interval_ms", [0.5, -1, 10_001, True, "125"])
def test_impossible_wake_up_interval_is_refused(interval_ms):
    with pytest.raises(ParameterError, match=r"wake_interval_ms is .*; it must be 0 \(always on\) or a number of ms"):
        wb.Radio(wake_interval_ms=interval_ms)


def test_sleeping_radio_senses_the_channel_and_acknowledges_regardless_of_other_fields():
    run = play_asleep(both_directions((0, 1)), [say(0), say(1, to=0, start_s=0.02)], csma=False, retries=0)
    assert fates(run, 0) == {(1, 0): "received"} and fates(run, 1) == {(0, 0): "received"}
    assert times_of(run, 0)["acknowledge"] and times_of(run, 1)["carrier_sense"]


def test_wake_up_interval_is_stored_with_the_scenario_unless_it_is_zero():
    asleep = wb.Scenario(LINE, wb.Flooding(), [], wb.radios.cc2420(wake_interval_ms=125), 10)
    assert wb.Scenario.from_json(asleep.to_json()).radio == asleep.radio
    assert "wake_interval_ms" not in play(LINE, [], duration_s=1).scenario.to_json()

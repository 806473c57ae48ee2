"""The times of radio states in networks that change; `playing.play` checks that they add up and that engines agree."""

import workbench as wb
from tests.sim.changes.playing import CURRENTS, FRAME_US, SECOND, play, readings, row_of_nodes, subscription
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.state_times import STATES

PAIR = row_of_nodes(2)
ONE_HOP = wb.Flooding(ttl=1)


def states_of(run, node):
    """Return {state: µs} of a node, without states that lasted 0 µs."""
    return {state: us for state, us in zip(STATES, run.radio_states_us[node].tolist(), strict=True) if us}


def test_node_out_of_range_does_not_receive():
    run = play(PAIR, [readings(), wb.move(1, [(4, 10, 0), (5, 100, 0)])], protocol=ONE_HOP)
    assert states_of(run, 0) == {"receive": 5 * FRAME_US, "idle": 10 * SECOND - 5 * FRAME_US}
    assert states_of(run, 1) == {"transmit": 10 * FRAME_US, "idle": 10 * SECOND - 10 * FRAME_US}


def test_frame_that_a_jammer_disturbs_or_a_link_loses_costs_the_receiver_its_time():
    trace = wb.link_trace(LinkQualities([0], [1], [0], [0.01]))
    for item in (wb.jam(0, 0, 5), trace):
        assert states_of(play(PAIR, [readings(), item], protocol=ONE_HOP), 0)["receive"] == 10 * FRAME_US


def test_partition_and_removed_link_keep_frames_away():
    trace = wb.link_trace(LinkQualities([2, 7], [1, 1], [0, 0], [0, 1]))
    for item in (wb.partition(0, 2, 7), trace):
        run = play(PAIR, [readings(), item], protocol=ONE_HOP)
        assert states_of(run, 0) == {"receive": 5 * FRAME_US, "idle": 10 * SECOND - 5 * FRAME_US}


def test_reception_is_decided_at_the_begin_of_a_frame():
    # The link vanishes, or appears, in the middle of a frame that begins at 1 s.
    begin = wb.publish(1, "TEMP IS 25", start_s=1)
    for first, then, received_us in ((1, 0, FRAME_US), (0, 1, 0)):
        trace = wb.link_trace(LinkQualities([0, 1.0003], [1, 1], [0, 0], [first, then]))
        run = play(PAIR, [begin, trace], 3, protocol=ONE_HOP)
        assert states_of(run, 0).get("receive", 0) == received_us


def test_absent_and_crashed_radios_are_off_and_receive_nothing():
    items = [wb.join(0, 2), wb.crash(0, 4, 5), wb.outage(0, 7, 8), wb.leave(0, 9)]
    run = play(PAIR, [readings(), *items], protocol=ONE_HOP)
    received = 2 + 2 + 1  # in [2, 4), [5, 7) and [8, 9)
    assert states_of(run, 0) == {
        "receive": received * FRAME_US,
        "idle": 5 * SECOND - received * FRAME_US,
        "off": 5 * SECOND,
    }


def test_sleeping_radio_out_of_range_only_checks_the_channel():
    radio = {"wake_interval_ms": 125, "sleep_mA": 0.02, **CURRENTS}
    away = wb.move(1, [(0, 500, 0), (9, 500, 0)])
    with_frames, without = (play(PAIR, [away, *items], protocol=ONE_HOP, **radio) for items in ([readings()], []))
    assert states_of(with_frames, 0) == states_of(without, 0)
    assert set(states_of(with_frames, 0)) == {"idle", "sleep"}
    assert states_of(play(PAIR, [readings()], protocol=ONE_HOP, **radio), 0)["receive"] >= 10 * FRAME_US


def test_every_change_at_once_with_collisions_retries_and_carrier_sense():
    topology = wb.topology.random_geometric(12, 50, 50, seed=3)
    workload = [
        subscription([0, 5]),
        wb.publish("all", "TEMP IS 25", every_s=1.5, stagger=True),
        wb.crash([1, 2], 3, 8),
        wb.outage(2, 7, 9),
        wb.join(3, 4),
        wb.leave(4, 12),
        wb.partition([0, 1, 2, 3], 6, 10),
        wb.move([6, 7, 8], wb.mobility.RandomWaypoint(fastest_m_s=9), 0.5),
        wb.burst_loss(1, 0.5, 0.2),
        wb.link_trace(LinkQualities([2, 5], [9, 9], [10, 10], [0.3, 0])),
        wb.jam(25, 25, 20, 5, 15, 1, 0.3),
    ]
    for protocol in (wb.Flooding(), wb.Diffusion(refresh_s=5)):
        play(topology, workload, 20, protocol, collisions=True, csma=True, retries=3, capture_dB=3)
        play(topology, workload, 20, protocol, collisions=True, retries=2, wake_interval_ms=125, sleep_mA=0.02)

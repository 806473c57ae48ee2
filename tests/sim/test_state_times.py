"""The time that each radio spends in each state, and the charge that follows from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_states
from tests.families import examples
from tests.talker import Talker, both_directions, network, play, rows, say
from workbench.errors import ParameterError, ScenarioError
from workbench.sim.state_times import CHECK_US, STATES

CURRENTS = {"tx_mA": 17.4, "rx_mA": 18.8}
FRAME_US = (50 + 6) * 8 * 4  # 250 kb/s: 4 µs a bit
ACKNOWLEDGEMENT_US = (5 + 6) * 8 * 4
TURNAROUND_US = 192
LINE = both_directions((0, 1), (1, 2))
PRESETS = wb.radios.cc2420, wb.radios.at86rf231, wb.radios.cc2340r5, wb.radios.nrf52840, wb.radios.stm32wb55


def states_of(run, node):
    """Return {state: µs} of a node, without states that lasted 0 µs."""
    position = sorted(run.scenario.topology).index(node)
    return {state: us for state, us in zip(STATES, run.radio_states_us[position].tolist(), strict=True) if us}


@pytest.mark.parametrize("preset", PRESETS)
def test_node_that_idles_for_an_hour_uses_the_listening_current_for_an_hour(preset):
    radio = preset(link_quality="true")
    run = wb.Scenario(LINE, Talker(), [], radio, 3600).run()
    assert states_of(run, 0) == {"idle": 3600 * 10**6}
    energy = run.energy(battery_mAh=2500)
    assert energy.charge_mC.loc[0].sum() == pytest.approx(3600 * radio.rx_mA)
    assert energy.summary["energy_J"] == pytest.approx(3.6 * radio.rx_mA * radio.supply_V)
    assert energy.summary["lifetime_first_days"] == pytest.approx(2500 / radio.rx_mA / 24)


def test_broadcast_is_sent_by_one_node_and_received_by_its_neighbors():
    run = play(LINE, [say(0)], duration_s=1, **CURRENTS)
    assert states_of(run, 0) == {"transmit": FRAME_US, "idle": 10**6 - FRAME_US}
    assert states_of(run, 1) == {"receive": FRAME_US, "idle": 10**6 - FRAME_US}
    assert states_of(run, 2) == {"idle": 10**6}
    charge_mC = run.energy().charge_mC
    assert charge_mC.loc[0, "transmit"] == pytest.approx(17.4 * FRAME_US / 1e6)
    assert charge_mC.loc[1, "receive"] == pytest.approx(18.8 * FRAME_US / 1e6)


@pytest.mark.parametrize(("overhearing", "overheard_us"), [("frame", FRAME_US), ("address", (7 + 6) * 8 * 4)])
def test_unicast_is_acknowledged_and_overheard_up_to_its_address_or_completely(overhearing, overheard_us):
    run = play(LINE, [say(1, to=0)], duration_s=1, retries=3, overhearing=overhearing, **CURRENTS)
    wait_us = TURNAROUND_US + ACKNOWLEDGEMENT_US
    sender, receiver, overhearer = (states_of(run, node) for node in (1, 0, 2))
    assert sender == {
        "transmit": FRAME_US,
        "await_acknowledgement": wait_us,
        "idle": 10**6 - FRAME_US - wait_us,
    }
    assert receiver == {
        "receive": FRAME_US,
        "acknowledge": ACKNOWLEDGEMENT_US,
        "idle": 10**6 - FRAME_US - ACKNOWLEDGEMENT_US,
    }
    assert overhearer == {"overhear": overheard_us, "idle": 10**6 - overheard_us}


def test_time_of_two_simultaneous_frames_counts_once_at_their_receiver():
    star = both_directions((0, 1), (0, 2), (0, 3), (0, 4))
    run = play(star, [say(1), say(2), say(3, to=0), say(4, size=100)], duration_s=1, collisions=True, **CURRENTS)
    longest_us = (100 + 6) * 8 * 4
    assert states_of(run, 0) == {"receive": longest_us, "idle": 10**6 - longest_us}
    assert states_of(run, 4) == {"transmit": longest_us, "idle": 10**6 - longest_us}


def test_carrier_sense_time_is_counted_for_each_check_of_the_channel():
    run = play(LINE, [say(0), say(1, start_s=0.5)], duration_s=1, csma=True, **CURRENTS)
    assert [states_of(run, node).get("carrier_sense") for node in (0, 1, 2)] == [CHECK_US, CHECK_US, None]


def test_failed_node_is_off_and_its_frame_ends():
    half_us = FRAME_US // 2
    items = [say(0), wb.outage(0, half_us / 1e6, half_us / 1e6 + 0.5)]
    run = play(LINE, items, duration_s=1, collisions=True, **CURRENTS)
    off_us = 500_000
    assert states_of(run, 0) == {"transmit": half_us, "off": off_us, "idle": 10**6 - half_us - off_us}
    assert states_of(run, 1) == {"receive": half_us, "idle": 10**6 - half_us}


def test_node_that_fails_during_a_frame_stops_receiving():
    run = play(LINE, [say(0), wb.outage(1, FRAME_US / 2e6, 3 * FRAME_US / 4e6)], duration_s=1, **CURRENTS)
    assert states_of(run, 1) == {"receive": FRAME_US // 2, "off": FRAME_US // 4, "idle": 10**6 - FRAME_US * 3 // 4}


def paint_states(run):
    """Return the states of a run, from its trace, by marking each microsecond; ignore carrier sense and outages."""
    scenario, end_us = run.scenario, round(run.scenario.duration_s * 1e6)
    nodes = sorted(scenario.topology)
    painted = {node: np.full(end_us, STATES.index("idle"), np.int8) for node in nodes}

    def paint(node, start, end, state):
        part = painted[node][max(start, 0) : max(end, 0)]
        np.minimum(part, STATES.index(state), out=part)

    received = {(row["time_us"], row["node"], row["peer"]) for row in rows(run, "received")}
    for row in rows(run, "sent"):
        end, sender, receiver = row["time_us"], row["node"], row["peer"]
        paint(sender, end - row["value"], end, "transmit")
        for hearer in scenario.topology.successors(sender):
            paint(hearer, end - row["value"], end, "receive" if receiver in (-1, hearer) else "overhear")
        if receiver >= 0 and scenario.radio.retries:
            paint(sender, end, end + TURNAROUND_US + ACKNOWLEDGEMENT_US, "await_acknowledgement")
            if (end, receiver, sender) in received:
                answer = end + TURNAROUND_US
                paint(receiver, answer, answer + ACKNOWLEDGEMENT_US, "acknowledge")
    return np.array([np.bincount(painted[node], minlength=len(STATES)) for node in nodes])


frames = st.builds(
    say,
    at=st.integers(0, 4),
    to=st.none() | st.integers(0, 4),
    size=st.integers(10, 120),
    start_s=st.floats(0, 0.15).map(lambda start_s: round(start_s, 4)),
)


@settings(max_examples=examples(25))
@given(
    st.lists(frames, max_size=25),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.sampled_from([0.5, 1.0])), max_size=10),
    st.sampled_from([0, 2]),
    st.booleans(),
    st.sampled_from([0, (0, 3)]),
)
def test_states_equal_those_of_an_oracle_that_marks_each_microsecond(items, arcs, retries, collisions, jitter_ms):
    arcs = [(a, b, pdr) for a, b, pdr in {arc[:2]: arc for arc in arcs}.values() if a != b]
    topology = network((0, 1), (1, 0), (1, 2), (2, 3), (3, 4), *arcs)
    radio = {"retries": retries, "collisions": collisions, "jitter_ms": jitter_ms}
    items = [item for item in items if f"TARGET IS {item.at}" not in item.what]
    run = play(topology, items, duration_s=0.2, **radio, **CURRENTS)
    assert run.radio_states_us.tolist() == paint_states(run).tolist()


@settings(max_examples=8)
@given(
    st.integers(1, 10**6),
    st.sampled_from(["CodedDiffusion", "Diffusion", "DPS", "Flooding", "TinyMQ"]),
    st.booleans(),
    st.sampled_from(["frame", "address"]),
    st.integers(0, 15),
)
def test_engines_agree_and_states_add_up_to_the_duration(seed, name, csma, overhearing, failing):
    radio = wb.radios.cc2420(csma=csma, loss=0.1, overhearing=overhearing)
    assert_same_states(getattr(wb, name)(), radio, seed, failing)


def test_small_and_large_ledgers_have_the_same_sums(monkeypatch):
    from workbench.sim import state_times
    from workbench.sim.fast import engine

    scenario = wb.Scenario(
        wb.topology.grid(5, 5), wb.Flooding(), [wb.publish("all", "TEMP IS 26", every_s=2)], wb.radios.cc2420(), 10
    )
    expected = scenario.run(engine="reference").radio_states_us
    monkeypatch.setattr(state_times, "_ENTRIES_AT_ONCE", 50)
    monkeypatch.setattr(state_times, "_MANY_STEPS", 100)
    monkeypatch.setattr(engine, "_ENTRIES", 1)
    for name in ("reference", "fast"):
        assert (scenario.run(engine=name).radio_states_us == expected).all()


def test_currents_change_neither_the_trace_nor_other_metrics():
    scenario = wb.Scenario(
        LINE, wb.Flooding(), [wb.publish(0, "TEMP IS 26", every_s=1)], wb.Radio(csma=True, retries=3), 10
    )
    with_currents = scenario.replace(radio=wb.Radio(csma=True, retries=3, **CURRENTS))
    plain, metered = scenario.run(), with_currents.run()
    assert plain.trace_hash == metered.trace_hash
    assert {name: metered.metrics[name] for name in plain.metrics.index} == pytest.approx(
        dict(plain.metrics), nan_ok=True
    )
    assert set(metered.metrics.index) - set(plain.metrics.index) == {"charge_mC", "charge_mC_max", "charge_jain"}


def test_charge_of_a_radio_without_currents_is_refused_with_a_remedy():
    with pytest.raises(ScenarioError, match=r"states no currents.*wb\.radios\.cc2420\(\)"):
        play(LINE, [say(0)], duration_s=1).energy()


@pytest.mark.parametrize("battery_mAh", [0, -1, True, "AA", float("nan")])
def test_battery_capacity_must_be_positive(battery_mAh):
    with pytest.raises(ParameterError, match="battery_mAh is"):
        play(LINE, [], duration_s=1, **CURRENTS).energy(battery_mAh)


def test_charge_is_plotted_by_state_and_omitted_idle_listening_is_named():
    energy = play(LINE, [say(0)], duration_s=1, **CURRENTS).energy()
    assert "not drawn: idle listening, 99." in energy.plot().to_svg()
    assert "idle listening: 18." in energy.plot(states=["idle"]).to_svg()
    assert "without idle listening" in energy.map().to_svg()
    with pytest.raises(ParameterError, match=r"the argument `states` has 'idel' \(did you mean"):
        energy.plot(states=["idel"])

"""Absurd numbers: wherever a scenario accepts a number, it is refused with a sentence or valid for a whole run."""

import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.sim import workload

DURATION_S = 0.001  # short, because one publication per microsecond is allowed

NUMBERS = st.one_of(
    st.sampled_from([10**400, -(10**400), math.nan, math.inf, -math.inf, 5e-324, 1e308, -1e308, True]),
    st.floats(),
    st.integers(-(10**400), 10**400),
    st.integers(0, 20).map(lambda power: 10.0**-power),
    st.integers(0, 40).map(lambda power: 10**power),
)


def scenario(*items, radio=None, topology=None, protocol=None, **settings):
    items = items or [wb.subscribe(0, "TEMP GE 25"), wb.publish(1, "TEMP IS 26")]
    fields = {"duration_s": DURATION_S, **settings}
    return wb.Scenario(topology or PAIR, protocol or wb.Flooding(), items, radio or wb.Radio(), **fields)


def two_nodes(y_m=0.0, pdr=1.0):
    graph = nx.DiGraph()
    graph.add_nodes_from([(0, {"pos": (0, 0)}), (1, {"pos": (1, y_m)})])
    graph.add_edges_from([(0, 1, {"pdr": pdr}), (1, 0, {"pdr": 1.0})])
    return graph


PAIR = two_nodes()
SUBSCRIBED = wb.subscribe(0, "TEMP GE 25")
OF_RADIOS = ("loss", "jitter_ms", "retries", "bit_rate_bps", "overhead_B", "tx_uJ_per_B", "rx_uJ_per_B")
OF_FIELDS = (
    "base",
    "diurnal_amplitude",
    "diurnal_period_s",
    "diurnal_peak_s",
    "spatial_sigma",
    "correlation_length_m",
    "noise_sigma",
    "hot_spot_amplitude",
    "hot_spot_radius_m",
    "hot_spot_speed_m_s",
    "hot_spot_start_s",
    "resolution",
    "seed",
)


def of_a_radio(name):
    return lambda value: scenario(radio=wb.Radio(**{name: value}))


def of_a_sensor_field(name):
    return lambda value: scenario(SUBSCRIBED, wb.publish(1, wb.SensorField(**{name: value}), every_s=0.0003))


def of_an_item(make, text, name, **settings):
    return lambda value: scenario(SUBSCRIBED, make(1, text, **{name: value, **settings}))


SCENARIOS = {
    **{f"Radio {name}": of_a_radio(name) for name in OF_RADIOS},
    **{f"SensorField {name}": of_a_sensor_field(name) for name in OF_FIELDS},
    **{f"publish {name}": of_an_item(wb.publish, "TEMP IS 26", name) for name in ("every_s", "start_s", "stop_s")},
    **{f"subscribe {name}": of_an_item(wb.subscribe, "TEMP LT 9", name) for name in ("expires_s", "start_s", "stop_s")},
    "publish every_s staggered": of_an_item(wb.publish, "TEMP IS 26", "every_s", stagger=True),
    "outage start_s": lambda value: scenario(wb.outage(1, value)),
    "outage stop_s": lambda value: scenario(wb.outage(1, 0.0001, value)),
    "item at": lambda value: scenario(wb.publish(value, "TEMP IS 26")),
    "value of a publication": lambda value: scenario(wb.publish(1, f"TEMP IS {value}")),
    "value of a subscription": lambda value: scenario(wb.subscribe(1, f"TEMP GE {value}")),
    "a protocol's size": lambda value: scenario(protocol=wb.Flooding(max_events=value)),
    "a protocol's share": lambda value: scenario(protocol=wb.Gossip(forwarding_probability=value)),
    "a protocol's time": lambda value: scenario(protocol=wb.Diffusion(tick_s=value)),
    "seed": lambda value: scenario(seed=value),
    "position": lambda value: scenario(topology=two_nodes(y_m=value)),
    "pdr": lambda value: scenario(topology=two_nodes(pdr=value)),
    "grid spacing_m": lambda value: scenario(topology=wb.topology.grid(2, 2, spacing_m=value)),
    "disc width_m": lambda value: scenario(topology=wb.topology.disc(2, value, 10)),
    "disc radius_m": lambda value: scenario(topology=wb.topology.disc(2, 10, 10, radius_m=value)),
    "disc seed": lambda value: scenario(topology=wb.topology.disc(2, 10, 10, seed=value)),
    "min_pdr": lambda value: scenario(topology=wb.topology.random_geometric(2, 10, 10, min_pdr=value)),
}


# These times are infinite without a delivery.
INFINITE_WITHOUT_DELIVERIES = {
    *(f"latency_all_ms_{which}" for which in ("p50", "p95", "max")),
    *("time_to_first_s", "time_to_steady_s", "recovery_s"),
}


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=25)
@given(value=NUMBERS)
def test_any_number_is_refused_with_a_sentence_or_valid_for_a_run(name, value):
    try:
        played = SCENARIOS[name](value)
        run = played.run(engine="reference")
    except WorkbenchError as error:
        assert "\n" not in str(error) and len(str(error)) < 400
        return
    assert wb.Scenario.from_json(played.to_json()) == played
    for record in (run, played.run(engine="reference", record="metrics")):
        infinite = {name for name, number in record.metrics.items() if math.isinf(number)}
        assert infinite <= INFINITE_WITHOUT_DELIVERIES


@pytest.mark.parametrize("name", ["tx_uJ_per_B", "rx_uJ_per_B"])
@pytest.mark.parametrize("value", [10**400, 1e308, 1_000_001, -1, math.nan])
def test_an_energy_above_that_of_all_radios_is_refused_with_the_bound(name, value):
    with pytest.raises(ParameterError, match=f"Radio: {name} is .*; it must be a number of µJ from 0 to 1,000,000"):
        wb.Radio(**{name: value})
    assert getattr(wb.Radio(**{name: 1_000_000}), name) == 1_000_000


@pytest.mark.parametrize("make", [lambda size: wb.Flooding(max_events=size), lambda size: wb.DPS(max_history=size)])
def test_a_size_without_its_own_bound_is_limited_to_64_bits(make):
    assert make(10**18)
    with pytest.raises(ParameterError, match=f"is {10**18 + 1}; it must be a whole number from 1 to {10**18} pub"):
        make(10**18 + 1)


# More publications than a run can hold


def test_more_publications_than_a_run_can_hold_are_refused_with_their_number_and_the_bound():
    text = scenario(wb.publish(1, "TEMP IS 26", every_s=1e-6)).to_json()
    with pytest.raises(ScenarioError) as error:
        wb.Scenario.from_json(text.replace(f'"duration_s": {DURATION_S}', '"duration_s": 1000000'))
    assert str(error.value) == (
        "the workload makes 1,000,000,000,000 actions, 1,000,000,000,000 of them publications; "
        "at most 3,000,000 actions are allowed: choose a longer every_s, fewer nodes or a shorter duration_s"
    )


def test_publications_of_all_items_and_nodes_count_together():
    items = [wb.publish("all", "TEMP IS 26", every_s=1), wb.publish([0, 1], "TEMP IS 27", every_s=1, stop_s=1e6)]
    assert scenario(*items, duration_s=7.5e5)
    with pytest.raises(ScenarioError, match="the workload makes 3,000,004 actions, 3,000,004 of them publications"):
        scenario(*items, duration_s=7.5e5 + 1)
    with pytest.raises(ScenarioError, match="the workload makes 6,000,000 actions"):
        scenario(*items, topology=wb.topology.line(4), duration_s=1e6)


def test_subscriptions_and_outages_count_too(monkeypatch):
    monkeypatch.setattr(workload, "MOST_ACTIONS", 8)
    items = [wb.subscribe("all", "TEMP GE 1", stop_s=2), wb.outage(0, 1, 2), wb.publish(1, "TEMP IS 26")]
    assert len(workload.expand(items, (0, 1), 5_000_000, 1)) == sum(item.most_actions(2, 5_000_000) for item in items)
    assert scenario(*items, topology=wb.topology.line(2))
    with pytest.raises(ScenarioError, match="makes 9 actions, 1 of them publications; at most 8 actions are allowed"):
        scenario(*items, wb.outage([0, 1], 3), topology=wb.topology.line(2))


def test_actions_are_in_order_of_time_kind_item_and_node():
    items = [wb.publish([2, 0, 1], "TEMP IS 26", every_s=1), wb.outage([1, 0], 1, 2), wb.subscribe("all", "TEMP GE 1")]
    actions = workload.expand(items, (0, 1, 2), 3_000_000, 1)
    assert actions == sorted(actions, key=lambda action: (action.time_us, action.kind, action.index, action.node))
    assert len(actions) == 9 + 4 + 3


@given(
    st.floats(1e-6, 3),
    st.floats(0, 3),
    st.one_of(st.none(), st.floats(0, 3)),
    st.floats(0.001, 0.01) | st.none(),
    st.booleans(),
)
def test_the_number_of_actions_is_counted_exactly(duration_s, start_s, lasts_s, every_s, stagger):
    stop_s = None if lasts_s is None else start_s + lasts_s
    more = {} if every_s is None else {"every_s": every_s, "stagger": stagger}
    item = wb.publish("all", "TEMP IS 26", start_s=start_s, stop_s=stop_s, **more)
    duration_us = round(duration_s * 1e6)
    number = len(workload.expand([item], (0, 1), duration_us, 1))
    most = item.most_readings(2, duration_us)
    assert number == most or (stagger and every_s is not None and most - 2 <= number < most)

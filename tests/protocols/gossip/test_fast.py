"""Gossip of pieces on the fast engine: the same trace as on the reference engine, which splits and joins the bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.sim.test_kernel import RADIOS, items, topologies
from workbench.errors import ScenarioError

PROTOCOLS = st.builds(
    wb.Gossip,
    pieces=st.sampled_from([2, 3, 5, 64, 65, 255]),
    forwarding_probability=st.sampled_from([1.0, 0.7, 0.3, 0.0]),
    ttl=st.sampled_from([6, 3, 2, 1]),
    # Memories so small that publications are given up, started again, and forgotten while pieces are in transit.
    max_partial=st.sampled_from([50, 1, 2]),
    max_events=st.sampled_from([1000, 1, 2, 3]),
)


@st.composite
def scenarios(draw):
    topology = draw(topologies())
    more = draw(st.lists(st.sampled_from(["subscribe", "publish", "publish", "outage"]), max_size=4))
    workload = [draw(items(len(topology), kind)) for kind in ["subscribe", "publish", *more]]
    if draw(st.booleans()):
        length_B = draw(st.integers(0, 300))
        workload.append(wb.publish(draw(st.integers(0, 2)), "TEMP IS 31", start_s=1, payload=bytes(length_B)))
    return wb.Scenario(topology, draw(PROTOCOLS), workload, draw(RADIOS), 4, draw(st.integers(0, 99)))


@settings(max_examples=examples(100))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    assert_same_trace(scenario)


@settings(max_examples=examples(50))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    assert_same_numbers(scenario)


def test_pieces_of_a_busy_network_outgrow_the_initial_size_of_every_array():
    workload = [wb.subscribe(3, "TEMP GE 20"), wb.publish(range(4), wb.SensorField(), 1, start_s=1, payload=bytes(250))]
    protocol = wb.Gossip(pieces=255, forwarding_probability=0.9, max_partial=2)
    scenario = wb.Scenario(wb.topology.grid(5, 6), protocol, workload, wb.Radio(csma=True), 2)
    assert_same_trace(scenario)


def test_more_pieces_than_fit_in_memory_are_left_to_the_reference_engine():
    workload = [wb.publish("all", "TEMP IS 26", every_s=0.001)]
    scenario = wb.Scenario(wb.topology.grid(40, 40), wb.Gossip(pieces=65), workload, duration_s=0.03)
    with pytest.raises(ScenarioError, match="pieces of 48000 publications at 1600 nodes take 153600000 words"):
        scenario.run(engine="fast")

"""Coded diffusion on the fast engine: the same trace as on the reference engine, which codes the payloads."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.repository import REPOSITORY
from tests.sim.test_kernel import RADIOS, items, topologies
from workbench.errors import ScenarioError

PROTOCOLS = st.builds(
    wb.CodedDiffusion,
    generation_size=st.sampled_from([1, 2, 2, 3, 4, 9, 70]),
    field=st.sampled_from([2, 16, 256, 65536, 257]),
    bootstrap_factor=st.sampled_from([1, 2, 3, 9]),
    forwarding_probability=st.sampled_from([1.0, 1.0, 0.7, 0.0]),
    forwarding_factor=st.sampled_from([0.5, 0.001, 0.1, 1.0]),
    collecting_time_ms=st.sampled_from([50.0, 0.001, 3.0, 900.0]),
    rearm=st.booleans(),
    max_requests=st.sampled_from([3, 3, 1, 0]),
    # Memories so small that events are refused, or forgotten while packets of them are still in transit.
    max_events=st.sampled_from([50, 1, 2]),
    max_known=st.sampled_from([1000, 1, 2, 5]),
    forget_after_s=st.sampled_from([10.0, 0.0, 0.02, 1.0]),
)


@st.composite
def scenarios(draw):
    topology = draw(topologies())
    more = draw(st.lists(st.sampled_from(["subscribe", "publish", "publish", "outage"]), max_size=5))
    workload = [draw(items(len(topology), kind)) for kind in ["subscribe", "publish", *more]]
    if draw(st.booleans()):
        length_B = draw(st.integers(0, 300))
        workload.append(wb.publish(draw(st.integers(0, 2)), "TEMP IS 31", start_s=1, payload=bytes(length_B)))
    return wb.Scenario(topology, draw(PROTOCOLS), workload, draw(RADIOS), 6, draw(st.integers(0, 99)))


@settings(max_examples=examples(150))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    assert_same_trace(scenario)


@settings(max_examples=examples(75))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    assert_same_numbers(scenario)


@pytest.mark.family
def test_busy_network_outgrows_the_initial_size_of_every_array():
    # Ten events at one instant, and nodes that send a hundred packets when they wake.
    protocol = wb.CodedDiffusion(
        generation_size=16, bootstrap_factor=9, forwarding_factor=1.0, collecting_time_ms=900.0, max_events=10
    )
    workload = [wb.subscribe(3, "TEMP GE 20"), wb.publish(range(10), wb.SensorField(), every_s=1, start_s=1)]
    assert_same_trace(wb.Scenario(wb.topology.grid(5, 6), protocol, workload, duration_s=3))


@pytest.mark.parametrize("field", [2, 16, 256, 65536, 257])
def test_largest_generation_has_the_same_trace_in_every_field(field):
    protocol = wb.CodedDiffusion(generation_size=255, bootstrap_factor=255, field=field)
    scenario = wb.Scenario(wb.topology.line(4), protocol, [wb.publish(0, "TEMP IS 26")], duration_s=2)
    assert_same_trace(scenario)
    assert scenario.run(engine="fast").metrics["coverage"] >= 0.5


def test_more_publications_than_fit_in_memory_are_left_to_the_reference_engine():
    short = wb.publish("all", "TEMP IS 26", every_s=0.001)
    scenario = wb.Scenario(wb.topology.grid(40, 40), wb.CodedDiffusion(), [short], duration_s=0.06)
    with pytest.raises(ScenarioError, match="96000 publications at 1600 nodes are 153600000 pairs"):
        scenario.run(engine="fast")


def test_sweep_of_short_runs_changes_to_the_fast_engine():
    code = (
        "import workbench as wb\n"
        "scenario = wb.Scenario(wb.topology.grid(20, 20), wb.CodedDiffusion(), [wb.publish(0, 'TEMP IS 26')])\n"
        "runs = [scenario.replace(seed=seed).run(record='metrics') for seed in range(20)]\n"
        "print(runs[0].engine, runs[-1].engine, 'small' in runs[0].engine_reason)"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    assert ran.stdout.split() == ["reference", "fast", "True"]

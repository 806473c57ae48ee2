"""TinyMQ and PUB-2-SUB+ on the fast engine: the same trace as on the reference engine, with any failures."""

import sys
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.golden import renew
from tests.protocols.tinymq.checks import connected_graphs
from tests.sim.test_kernel import RADIOS, topologies
from workbench.errors import ScenarioError
from workbench.sim import fast

DIMENSIONS = (("TEMP 0 50",), ("TEMP 0 50", "HUMIDITY 0 100"), ("TEMP 0 50", "HUMIDITY 0 100", "INSTANCE 0 9"))
QUERIES = (
    "TEMP GE 25",
    "TEMP GE 10, TEMP LE 14",
    "TEMP GT 0, TEMP LT 50, HUMIDITY EQ 40",
    "HUMIDITY GE 20, HUMIDITY LE 70",
    "INSTANCE EQ_ANY",
    "TEMP NE 26",
    "TEMP GE 30, TEMP LE 20",
)
EVENTS = (
    "TEMP IS 26",
    "TEMP IS 12, HUMIDITY IS 40",
    "TEMP IS 5, TEMP IS 31, HUMIDITY IS 60",
    "TEMP IS 49, INSTANCE IS 1",
    "INSTANCE IS 7",
)
# Long enough for one or two repairs with an epoch of one to three seconds.
DURATION_S = 25


@st.composite
def protocols(draw, count, **fixed):
    roots = draw(st.permutations(range(count)))
    options = {
        "roots": tuple(roots[: draw(st.sampled_from([1, 1, 2, 3, count]))]),
        "key_bits": draw(st.sampled_from([8, 1, 3, 8, 20, 62])),
        "dimensions": draw(st.sampled_from(DIMENSIONS)),
        "publish": draw(st.sampled_from(["all", "own"])),
        "shortcuts": draw(st.sampled_from([True, True, False])),
        "info_s": draw(st.sampled_from([1.0, 3.0, 0.3, 0.0])),
        "lost_after": draw(st.sampled_from([4.0, 2.0])),
        "gather_ms": draw(st.sampled_from([20.0, 0.0, 300.0])),
        "settle_s": draw(st.sampled_from([0.5, 0.0, 3.0])),
        "refresh_s": draw(st.sampled_from([2.0, 7.0, 0.0])),
        "lease_s": draw(st.sampled_from([150.0, 8.0])),
        "retries": draw(st.sampled_from([10, 2, 1, 0])),
        "retry_ms": draw(st.sampled_from([50.0, 3.0, 0.1])),
        "acks": draw(st.sampled_from(["radio", "radio", "own"])),
        # Memories so small that queries are refused, messages dropped, and repeated frames taken for new ones.
        "max_queries": draw(st.sampled_from([500, 500, 6])),
        "max_waiting": draw(st.sampled_from([50, 1, 3])),
        "max_known": draw(st.sampled_from([1000, 1, 5, 20])),
        "max_hops": draw(st.sampled_from([1000, 1000, 3])),
    }
    cls = draw(st.sampled_from([wb.TinyMQ, wb.Pub2Sub]))
    return cls(**options, **fixed)


@st.composite
def workloads(draw, count):
    """Draw queries, events and outages at times at which the overlay grows, is complete, fails and is repaired."""
    nodes = st.integers(0, count - 1)
    starts_s = st.sampled_from([0.0, 0.2, 1.0, 3.0, 6.0, 12.0])
    items = []
    for _ in range(draw(st.integers(1, 4))):
        at, start_s = draw(st.one_of(nodes, st.just("all"))), draw(starts_s)
        stop_s = draw(st.sampled_from([None, None, start_s + 4]))
        constraints, expires_s = draw(st.sampled_from(QUERIES)), draw(st.sampled_from([None, None, 2.5]))
        items.append(wb.subscribe(at, constraints, expires_s, start_s, stop_s))
    for _ in range(draw(st.integers(1, 4))):
        at, start_s = draw(st.one_of(nodes, st.just("all"))), draw(starts_s)
        every_s = draw(st.sampled_from([None, 2, 0.7]))
        stagger = every_s is not None and draw(st.booleans())
        items.append(wb.publish(at, draw(st.sampled_from(EVENTS)), every_s, start_s, stagger=stagger))
    for _ in range(draw(st.integers(0, 3))):
        start_s = draw(starts_s)
        stop_s = draw(st.sampled_from([None, start_s + 0.1, start_s + 2, start_s + 8]))
        items.append(wb.outage(draw(nodes), start_s, stop_s))
    return items


@st.composite
def scenarios(draw):
    topology = draw(st.one_of(topologies(), connected_graphs(10)))
    count = len(topology)
    workload, protocol = draw(workloads(count)), draw(protocols(count))
    return wb.Scenario(topology, protocol, workload, draw(RADIOS), DURATION_S, draw(st.integers(0, 99)))


@settings(max_examples=examples(100))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    assert_same_trace(scenario)


@settings(max_examples=examples(50))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    assert_same_numbers(scenario)


def test_golden_scenario_of_the_published_algorithms_has_no_twin():
    with pytest.raises(ScenarioError, match="as published"):
        renew.scenario("tinymq-printed").run(engine="fast")


LINE = wb.topology.line(4)
WORKLOAD = [wb.subscribe(3, "TEMP GE 20", start_s=1), wb.publish(0, "TEMP IS 26", start_s=3)]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"literal": True}, "as published"),
        ({"key_bits": 63}, "key_bits is 63; on the fast engine it must be at most 62"),
        ({"max_queries": 1}, "2 subscriptions"),
    ],
)
def test_scenarios_without_a_twin_use_the_reference_engine_with_a_reason(options, reason):
    workload = [*WORKLOAD, wb.subscribe(3, "TEMP GE 30", start_s=2)]
    scenario = wb.Scenario(LINE, wb.TinyMQ(**options), workload, duration_s=5)
    with pytest.raises(ScenarioError, match=reason):
        scenario.run(engine="fast")


def test_keys_of_any_length_are_stored_on_long_lines():
    topology = wb.topology.line(200)
    protocol = wb.TinyMQ(roots=(0, 150), key_bits=5)
    workload = [wb.subscribe(199, "TEMP GE 20", start_s=20), wb.publish(3, "TEMP IS 26", start_s=40)]
    scenario = wb.Scenario(topology, protocol, workload, duration_s=45)
    assert_same_trace(scenario)
    assert scenario.run(engine="fast").metrics["delivery_ratio"] == 1


def test_key_that_becomes_too_long_ends_a_run_with_a_reason():
    at_once = wb.Radio(jitter_ms=(0.0, 0.0))
    scenario = wb.Scenario(
        wb.topology.line(4200), wb.TinyMQ(roots=(0,), gather_ms=0.0), WORKLOAD, at_once, duration_s=90
    )
    with pytest.raises(ScenarioError, match="a key has more than 4096 bits"):
        scenario.run(engine="fast")


def test_node_with_more_neighbors_than_frame_numbers_has_no_twin():
    star = nx.star_graph(1001).to_directed()
    nx.set_node_attributes(star, (0.0, 0.0), "pos")
    scenario = wb.Scenario(star, wb.TinyMQ(), WORKLOAD)
    with pytest.raises(ScenarioError, match="a node has 1001 neighbors; on the fast engine it may have at most 1000"):
        scenario.run(engine="fast")


@pytest.mark.family
def test_busy_network_outgrows_the_initial_size_of_every_array():
    topology = wb.topology.disc(60, 42, 42, radius_m=14, seed=2)
    workload = [wb.subscribe("all", "TEMP GE 10", start_s=5), wb.publish(range(0, 60, 7), "TEMP IS 20", 1, 12)]
    protocol = wb.TinyMQ(roots=(0, 30, 59), info_s=5.0, max_queries=200)
    workload += [wb.outage(range(10, 20), 14, 15)]
    assert_same_trace(wb.Scenario(topology, protocol, workload, wb.Radio(loss=0.1), duration_s=16, seed=1))


def burst(cls, readings, **options):
    """Return a scenario of simultaneous readings, on links without losses and a radio without reports."""
    workload = [wb.subscribe(sink, "TEMP GE 10", start_s=2) for sink in (0, 2, 7)]
    workload += [wb.publish(3 + number % 4, f"TEMP IS {20 + number % 25}", start_s=20) for number in range(readings)]
    protocol = cls(roots=(8,), dimensions=("TEMP 0 50",), **options)
    return wb.Scenario(wb.topology.grid(3, 3), protocol, workload, wb.Radio(loss="none"), duration_s=40, seed=1)


@pytest.mark.parametrize("cls", [wb.TinyMQ, wb.Pub2Sub])
def test_burst_of_readings_is_sent_once_and_delivered(cls):
    metrics = burst(cls, 200).run("fast", "metrics").metrics
    assert metrics["delivery_ratio"] == 1 and metrics["expected"] == 600
    assert metrics.get("dropped_repeated", 0) == 0 and metrics.get("dropped_full", 0) == 0


@pytest.mark.parametrize("max_known", [1000, 100, 20])
@pytest.mark.parametrize("cls", [wb.TinyMQ, wb.Pub2Sub])
def test_both_engines_give_the_same_trace_of_a_burst(cls, max_known):
    assert_same_trace(burst(cls, 100, max_known=max_known))


def test_burst_that_exceeds_the_memory_of_nodes_waits_at_their_neighbors():
    metrics = burst(wb.TinyMQ, 200, max_known=100).run("fast", "metrics").metrics
    assert metrics["delivery_ratio"] == 1 and metrics["sent_refusal"] > 0 and metrics.get("dropped_full", 0) == 0


def test_large_overlays_and_long_repairs_use_the_fast_engine_even_without_publications(monkeypatch):
    monkeypatch.delitem(sys.modules, wb.TinyMQ().fast, raising=False)
    monkeypatch.setattr(fast, "_played", Counter())
    small = wb.Scenario(wb.topology.grid(5, 5), wb.TinyMQ(info_s=0.0), [wb.subscribe("all", "TEMP GE 25")])
    worth = {
        "once, small": small,
        "once, large": small.replace(topology=wb.topology.grid(60, 60)),
        "repaired": small.replace(protocol=wb.TinyMQ(info_s=1.0), duration_s=500),
        "every tree": small.replace(protocol=wb.Pub2Sub(roots=tuple(range(25)), info_s=1.0)),
    }
    is_fast_by_name = {}
    for name, scenario in worth.items():
        fast._played.clear()
        is_fast_by_name[name] = fast.is_worth_it(scenario)
    assert is_fast_by_name == {"once, small": False, "once, large": True, "repaired": True, "every tree": True}


def test_sweep_of_short_runs_with_queries_only_changes_to_the_fast_engine(monkeypatch):
    monkeypatch.delitem(sys.modules, wb.TinyMQ().fast, raising=False)
    monkeypatch.setattr(fast, "_played", Counter())
    query_only = wb.Scenario(wb.topology.grid(10, 10), wb.TinyMQ(info_s=0.0), [wb.subscribe(0, "TEMP GE 25")])
    are_fast = [fast.is_worth_it(query_only) for _ in range(200)]
    assert not are_fast[0] and are_fast[-1] and are_fast == sorted(are_fast)

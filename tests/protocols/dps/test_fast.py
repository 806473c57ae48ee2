"""DPS on the fast engine: the same rows as on the reference engine, with any losses and filters."""

import sys
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.protocols.dps.checks import ring
from tests.sim.test_kernel import RADIOS, topologies
from workbench.errors import ScenarioError
from workbench.sim import fast

NODES = 7

SUBSCRIPTIONS = [
    "TEMP GE 25",
    "TEMP GE 25, TEMP LE 30",
    "TEMP EQ 26",
    "INSTANCE EQ_ANY",
    "PAYLOAD EQ_ANY",
    # Topics with and without wildcards, two with the same items, and one that is not announced to neighbors.
    'TOPIC EQ "a/b/c"',
    'TOPIC EQ "a/+/c"',
    'TOPIC EQ "a/+"',
    'TOPIC EQ "a/#"',
    'TOPIC EQ "#"',
    'TOPIC EQ "+/b/#", TEMP EQ 20',
]
READINGS = [
    "TEMP IS 26",
    "TEMP IS 26",
    "TEMP IS 20, TEMP IS 27.5",
    "TEMP IS 35, INSTANCE IS 1",
    'TOPIC IS "a/b/c"',
    'TOPIC IS "b/b/c", TEMP IS 20',
    wb.SensorField(),
]
# Filters that are full at once, and links that are given up, requested again, muted and unmuted.
SETTINGS = {
    "filter_bits": st.sampled_from([64, 128, 256, 1024]),
    "hashes": st.sampled_from([1, 2, 8]),
    "separators": st.sampled_from(["/.", "/_", "_/"]),
    "wildcards": st.booleans(),
    "update_s": st.sampled_from([0.01, 0.05, 0.3, 1.0]),
    "link_loss_s": st.sampled_from([0.01, 0.5, 2.0, 5.0]),
    "retry_ticks": st.sampled_from([1, 2, 3]),
    "retries": st.sampled_from([0, 1, 3]),
    "count_muted": st.booleans(),
    "recheck_s": st.sampled_from([0.0, 0.3, 2.0]),
    "history_s": st.sampled_from([0.0, 0.002, 1.0]),
    "max_history": st.sampled_from([1, 2, 5, 100]),
    "ttl_s": st.sampled_from([1, 2, 5, 300]),
    "max_retained": st.sampled_from([1, 2]),
    "acknowledge": st.just(True),
    "worst_link": st.sampled_from([0.0, 0.9]),
    "relink_s": st.sampled_from([0.1, 1.0]),
    "crowd": st.sampled_from([1, 2, 3]),
    "best_links": st.sampled_from([1, 2]),
}


@st.composite
def protocols(draw):
    names = draw(st.lists(st.sampled_from(sorted(SETTINGS)), max_size=8, unique=True))
    return wb.DPS(**{name: draw(SETTINGS[name]) for name in names})


@st.composite
def items(draw, nodes, kind):
    at = draw(st.sampled_from([*nodes, "all"]))
    start_s = draw(st.sampled_from([0, 0.5, 3, 7]))
    stop_s = draw(st.sampled_from([None, None, start_s + 0.001, start_s + 4]))
    if kind == "outage":
        return wb.outage(draw(st.sampled_from(nodes)), start_s, stop_s)
    if kind == "subscribe":
        expires_s = draw(st.sampled_from([None, None, 0.0005, 2.5]))
        if draw(st.integers(0, 9)) == 0:
            return wb.subscribe(at, "", expires_s, start_s, stop_s, match_all=True)
        return wb.subscribe(at, draw(st.sampled_from(SUBSCRIPTIONS)), expires_s, start_s, stop_s)
    every_s = draw(st.sampled_from([None, 0.3, 2]))
    payload = draw(st.sampled_from([b"", b"", b"\1\2", bytes(200)]))
    stagger = every_s is not None and draw(st.booleans())
    return wb.publish(at, draw(st.sampled_from(READINGS)), every_s, start_s, stop_s, payload, stagger)


@st.composite
def scenarios(draw):
    topology = draw(topologies(NODES))
    if draw(st.booleans()):
        # Addresses that differ from positions in the topology.
        topology = nx.relabel_nodes(topology, {node: 3 * node + 5 for node in topology})
    kinds = st.sampled_from(["subscribe", "subscribe", "publish", "outage"])
    more = draw(st.lists(kinds, max_size=5))
    workload = [draw(items(sorted(topology), kind)) for kind in ["subscribe", "publish", *more]]
    duration_s = draw(st.sampled_from([8, 8, 30]))
    return wb.Scenario(topology, draw(protocols()), workload, draw(RADIOS), duration_s, draw(st.integers(0, 99)))


@settings(max_examples=examples(120))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    assert_same_trace(scenario)


@settings(max_examples=examples(50))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    assert_same_numbers(scenario)


def test_frames_grow_with_the_width_of_their_hop_count():
    # A hop count above 23 takes an additional byte.
    workload = [wb.subscribe(40, "TEMP GE 25"), wb.publish(0, "TEMP IS 26", start_s=100)]
    scenario = wb.Scenario(wb.topology.line(41), wb.DPS(), workload, duration_s=110)
    assert_same_trace(scenario)
    run = scenario.run(engine="fast")
    sizes_B = {
        row["size_B"] for row in run.trace.to_pylist() if row["event"] == "sent" and row["message"] == "publication"
    }
    assert run.metrics["delivered"] == 1
    assert len(sizes_B) == 2


@pytest.mark.family
def test_busy_network_outgrows_the_initial_size_of_every_pool():
    # Different filters of 32 KB, and more simultaneous frames than initially fit.
    workload = [
        *[wb.subscribe(node, f"INSTANCE EQ {node}", start_s=0.1 * node) for node in range(25)],
        wb.publish("all", "TEMP IS 26, INSTANCE IS 1", every_s=0.5, start_s=5),
    ]
    scenario = wb.Scenario(wb.topology.grid(5, 5), wb.DPS(filter_bits=1 << 18, update_s=0.3), workload, duration_s=8)
    assert_same_trace(scenario)


def test_closed_loop_is_muted_and_unmuted_when_the_mesh_is_cut():
    protocol = wb.DPS(update_s=0.2, link_loss_s=1.0, relink_s=1.0)
    workload = [
        wb.subscribe([0, 3], "TEMP GE 25"),
        wb.publish("all", "TEMP IS 26", every_s=2, start_s=3, stagger=True),
        *[wb.outage(node, 10 + 10 * node, 15 + 10 * node) for node in range(6)],
    ]
    scenario = wb.Scenario(ring(6), protocol, workload, duration_s=75)
    assert_same_trace(scenario)
    states = {row["detail"] for row in scenario.run(engine="fast").trace.to_pylist() if row["event"] == "link_set"}
    assert states == {"linking", "active", "muted", "unmuting", "gone"}


def test_publications_are_forgotten_exactly_at_the_end_of_their_lifetime():
    # More of them than are removed at once, and loops in which they return.
    protocol = wb.DPS(ttl_s=1, history_s=0.0, max_history=100, recheck_s=0.3)
    workload = [
        wb.subscribe("all", "TEMP GE 25"),
        wb.publish(1, "TEMP IS 20", every_s=0.05, start_s=0.5),
        wb.outage(2, 0, 4),
    ]
    assert_same_trace(wb.Scenario(ring(4), protocol, workload, duration_s=8))


def test_late_subscriber_gets_retained_publications_and_acknowledges_each_publisher():
    protocol = wb.DPS(ttl_s=30, acknowledge=True, update_s=0.2)
    workload = [wb.publish([0, 9, 15], "TEMP IS 26", start_s=2), wb.subscribe(5, "TEMP GE 25", start_s=10)]
    scenario = wb.Scenario(wb.topology.grid(4, 4), protocol, workload, duration_s=60)
    assert_same_trace(scenario)
    rows = scenario.run(engine="fast").trace.to_pylist()
    assert sorted(row["origin"] for row in rows if row["event"] == "delivered") == [0, 9, 15]
    assert sorted(row["node"] for row in rows if row["event"] == "acknowledged") == [0, 9, 15]


@pytest.mark.parametrize(
    ("protocol", "reason"),
    [
        (wb.DPS(max_links=3), "4 neighbors; the fast engine supports at most 3"),
        (wb.DPS(max_subscriptions=1), "exceed max_subscriptions"),
    ],
)
def test_runs_with_possible_errors_use_the_reference_engine_and_report_it(protocol, reason):
    publications = wb.publish("all", "TEMP IS 26", every_s=0.01, start_s=0.5)
    workload = [wb.subscribe(0, "TEMP GE 25", stop_s=0.1), wb.subscribe(0, "TEMP GE 26", start_s=0.2), publications]
    scenario = wb.Scenario(wb.topology.grid(3, 3), protocol, workload, duration_s=0.6)
    with pytest.raises(ScenarioError, match=f"cannot run on the fast engine: .*{reason}"):
        scenario.run(engine="fast")
    run = scenario.run()
    assert run.engine == "reference"
    assert reason in run.engine_reason


def test_invalid_workload_gives_the_error_of_the_reference_engine():
    scenario = wb.Scenario(wb.topology.grid(2, 2), wb.DPS(), [wb.subscribe(0, 'TOPIC NE "a/b"')])
    for engine in ("reference", "fast"):
        with pytest.raises(ScenarioError, match="TOPIC has the operator NE"):
            scenario.run(engine)


def test_mesh_of_many_links_uses_the_fast_engine_even_without_publications(monkeypatch):
    monkeypatch.delitem(sys.modules, wb.DPS.fast, raising=False)
    monkeypatch.setattr(fast, "_played", Counter())
    small = wb.Scenario(wb.topology.grid(3, 3), wb.DPS(), [wb.subscribe(0, "TEMP GE 25")])
    assert not fast.is_worth_it(small)
    assert fast.is_worth_it(small.replace(topology=wb.topology.grid(20, 20)))

"""The fast engine: the rows of the reference engine, the same numbers without a trace, and the choice of engine."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.repository import REPOSITORY
from tests.sim.test_kernel import RADIOS, items, topologies
from tests.talker import Talker, both_directions, say
from workbench.errors import ParameterError, ScenarioError
from workbench.protocols.protocol import Parameter
from workbench.sim import fast, trace
from workbench.sim.fast import engine, layout

FLOODS = st.one_of(
    st.builds(wb.Flooding, ttl=st.sampled_from([255, 1, 2, 5])),
    # With a memory of so few events, floods circulate until their ttl runs out.
    st.builds(wb.Flooding, ttl=st.sampled_from([3, 5]), max_events=st.sampled_from([1, 2, 3])),
    st.builds(
        wb.Gossip,
        forwarding_probability=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
        ttl=st.just(5),
        max_events=st.sampled_from([1000, 2]),
    ),
)


@st.composite
def scenarios(draw):
    topology = draw(topologies(7))
    if draw(st.booleans()):
        # Addresses that differ from positions in the topology.
        topology = nx.relabel_nodes(topology, {node: 3 * node + 5 for node in topology})
    more = draw(st.lists(st.sampled_from(["subscribe", "publish", "outage"]), max_size=5))
    workload = [draw(items(8, kind)) for kind in ["subscribe", "publish", *more]]
    nodes = sorted(topology)
    workload = [_at_nodes(item, nodes) for item in workload]
    return wb.Scenario(topology, draw(FLOODS), workload, draw(RADIOS), 6, draw(st.integers(0, 99)))


def _at_nodes(item, nodes):
    at = item.at if isinstance(item.at, str) else tuple(nodes[number % len(nodes)] for number in item.at)
    return type(item)(**{**vars(item), "at": at})


@settings(max_examples=examples(300))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    assert_same_trace(scenario)


@settings(max_examples=examples(150))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    assert_same_numbers(scenario)


@pytest.mark.family
@pytest.mark.parametrize("radio", [wb.Radio(), wb.Radio(collisions=True), wb.Radio(collisions=True, csma=True)])
def test_busy_network_outgrows_the_initial_size_of_every_array(radio):
    # A hundred publications at one instant, repeatedly: frames, messages and audible transmissions accumulate.
    network = wb.topology.disc(100, 100, 100, radius_m=18)
    workload = [wb.subscribe([0, 5], "TEMP GE 20"), wb.publish("all", wb.SensorField(), every_s=2, start_s=1)]
    assert_same_trace(wb.Scenario(network, wb.Flooding(ttl=9), workload, radio, 6))


def test_events_far_beyond_the_ring_are_played_in_order():
    workload = [wb.publish("all", "TEMP IS 26", every_s=0.4, stagger=True)]
    assert_same_trace(wb.Scenario(wb.topology.grid(5, 5), wb.Flooding(), workload, wb.Radio(jitter_ms=(0, 700)), 3))


def test_both_engines_match_several_samples_blobs_and_payloads_alike():
    workload = [
        wb.subscribe(0, "TEMP GE 25, TEMP LE 30"),
        wb.subscribe(1, "PAYLOAD EQ 0x0102"),
        wb.subscribe(1, "PAYLOAD EQ_ANY, TEMP NE 20"),
        wb.subscribe(2, "TEMP GT 20", match_all=True),
        wb.publish(8, "TEMP IS 20, INSTANCE IS 1, TEMP IS 26", every_s=1),
        wb.publish(4, "TEMP IS 27", every_s=1, payload=b"\1\2"),
    ]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), workload, duration_s=3)
    assert_same_trace(scenario)
    assert scenario.run(engine="fast").metrics["delivered"] == 18


def test_network_without_a_graph_gives_the_trace_of_its_scenario():
    from workbench.sim.fast import network

    graph = wb.topology.disc(60, 60, 60, radius_m=15)
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish("all", wb.SensorField(), every_s=5)]
    run = wb.Scenario(graph, wb.Flooding(), workload, duration_s=6, seed=4).run(engine="reference")
    arcs = np.array(list(graph.edges))[::-1]
    positions_m = np.array([graph.nodes[node]["pos"] for node in sorted(graph)])
    played = fast.play(
        network.from_arrays(np.array(sorted(graph)), positions_m, arcs, np.ones(1)),
        *(wb.Flooding(), workload, wb.Radio(), 6, 4, "trace"),
    )
    assert trace.digest(played.table()) == run.trace_hash


@pytest.mark.parametrize(
    ("protocol", "event"),
    [
        (wb.CodedDiffusion(), "innovative"),
        (wb.CodedDiffusion(), "decoded"),
        (wb.Diffusion(), "gradient_set"),
        (wb.Diffusion(), "gradient_removed"),
        (wb.Flooding(), "held"),
    ],
)
def test_both_engines_store_rows_of_events_that_metrics_read(monkeypatch, protocol, event):
    monkeypatch.setattr(trace, "METRIC_EVENTS", trace.METRIC_EVENTS | {event})
    workload = [wb.subscribe(0, "TEMP GE 20", expires_s=8), wb.publish(15, "TEMP IS 26", start_s=2, every_s=4)]
    scenario = wb.Scenario(wb.topology.grid(4, 4), protocol, workload, duration_s=15)
    assert_same_numbers(scenario)
    names = scenario.run("fast", "metrics")._recorder.table().column("event").to_pylist()
    assert names.count(event) == scenario.run("reference").trace.column("event").to_pylist().count(event) > 0


# --- choice of engine ---

SMALL = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), [wb.publish(0, "TEMP IS 26")])


def test_run_reports_its_engine_and_why_the_fast_one_was_not_used():
    run = SMALL.run(engine="fast")
    assert (run.engine, run.engine_reason) == ("fast", "")
    run = SMALL.run(engine="reference")
    assert run.engine == "reference" and "requested" in run.engine_reason
    talk = wb.Scenario(both_directions((0, 1)), Talker(), [say(0)])
    run = talk.run()
    assert (run.engine, run.engine_reason) == ("reference", "Talker has no version for the fast engine")
    with pytest.raises(ScenarioError, match="cannot run on the fast engine: Talker has no version for the fast engine"):
        talk.run(engine="fast")


def test_fault_of_a_twin_is_raised_and_does_not_select_the_reference_engine(monkeypatch):
    class Loop:
        overloads = (None,)

        def __call__(self, *arguments):
            return layout.Status.STUCK_NODE

    monkeypatch.setattr(engine, "loop_of", lambda twin: Loop())
    for selected_engine in ("compiled", "auto"):  # the first run loads the twin, so that the second run selects it
        with pytest.raises(RuntimeError, match=r"\.wake\(\) must set a later next_wake"):
            SMALL.run(engine=selected_engine)


def test_twin_is_inherited_only_if_the_subclass_declares_it():
    # The subclass may create different nodes, which cannot be detected from the class.
    class Silent(wb.Flooding):
        def make_node(self, address, random):
            return Talker().make_node(address, random)

    class Loud(wb.Flooding):
        fast = wb.Flooding.fast

    class Chatty(wb.Gossip):
        fast = wb.Gossip.fast

    with pytest.raises(fast.NoFastTwinError, match=r"^Silent has no version for the fast engine$"):
        fast.twin_of(Silent())
    assert fast.twin_of(Loud()) == wb.Flooding.fast
    assert fast.twin_of(Chatty(pieces=2)) == wb.Gossip(pieces=2).fast != fast.twin_of(Chatty())
    assert_same_trace(SMALL.replace(protocol=Loud()))


def test_the_reference_engine_plays_a_run_whose_twin_is_not_installed(monkeypatch):
    class Travelled(wb.Flooding):
        fast = "no_such_package.fast"

    monkeypatch.setattr(fast, "WORTH_LOADING", 0)
    run = SMALL.replace(protocol=Travelled()).run()
    assert (run.engine, run.engine_reason) == (
        "reference",
        "the protocol's version for the fast engine, module no_such_package.fast, is not installed; "
        "install its package",
    )


def test_protocol_may_give_a_reason_for_having_no_twin():
    with pytest.raises(
        fast.NoFastTwinError, match="TinyMQ has no version for the fast engine: algorithms .* as published"
    ):
        fast.twin_of(wb.TinyMQ(literal=True))


def test_parameter_with_the_name_of_a_protocol_attribute_is_refused():
    class Cutter(Talker):
        parameters = (Parameter("fast", 3, 1, 9, "pieces", "any"),)

    with pytest.raises(ParameterError, match="Cutter has a parameter 'fast'; every protocol has an attribute of that"):
        Cutter()


def test_progress_ends_at_one():
    shares = []
    SMALL.run(engine="fast", progress=shares.append)
    assert shares[-1] == 1.0


@pytest.mark.family
def test_numba_is_loaded_for_a_large_run_only():
    code = (
        "import sys, workbench as wb\n"
        "def run(n):\n"
        "    workload = [wb.publish(0, 'TEMP IS 26', every_s=1)]\n"
        "    return wb.Scenario(wb.topology.grid(9, 9), wb.Flooding(), workload, duration_s=n).run(record='metrics')\n"
        "small = run(5)\n"
        "print(small.engine, 'small' in small.engine_reason, 'numba' in sys.modules, run(2000).engine, run(5).engine)"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=True)
    assert ran.stdout.split() == ["reference", "True", "False", "fast", "fast"]

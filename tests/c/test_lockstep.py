"""Networks of nodes in C in the simulator's time: their trace equals the simulator's, row by row."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.c_nodes import make_node, needs_compiler
from tests.golden import renew
from tests.protocols.diffusion.test_c import SIZES
from tests.protocols.diffusion.test_fast import scenarios
from workbench import draws
from workbench.errors import ScenarioError
from workbench.sim import engine, trace

pytestmark = needs_compiler

GOLDEN = [name for name in renew.NAMES if name.startswith(("diffusion", "flooding"))]


def nodes_in_c(scenario, is_in_c=lambda address: True):
    """Return the scenario's nodes; nodes whose address satisfies `is_in_c` run in C."""
    return [
        make_node(scenario.protocol, node.address, draws.Stream(node.random.key)) if is_in_c(node.address) else node
        for node in engine.make_nodes(scenario)
    ]


def played(scenario, nodes=None):
    """Play a scenario with these nodes, or with its own, and return the trace. After a crash, nodes in C start anew."""

    def make_again(i, boot):
        node = engine.make_node(scenario, i, boot)
        return make_node(scenario.protocol, node.address, node.random) if type(nodes[i]) is not type(node) else node

    recorder = trace.Recorder()
    engine.play(scenario, recorder, None, nodes, make_again if nodes else None)
    return recorder.table()


def assert_same_trace(scenario, nodes):
    expected, actual = played(scenario), played(scenario, nodes)
    if trace.digest(expected) != trace.digest(actual):
        for number, (expected_row, row) in enumerate(zip(expected.to_pylist(), actual.to_pylist(), strict=False)):
            assert row == expected_row, f"row {number}"
        assert len(expected) == len(actual)


@pytest.mark.parametrize("name", GOLDEN)
def test_network_of_nodes_in_c_gives_the_golden_trace(name):
    scenario = renew.scenario(name)
    recorded = json.loads(renew.DIGESTS.read_text(encoding="utf-8"))[name]["trace_hash"]
    assert trace.digest(played(scenario, nodes_in_c(scenario))) == recorded


@pytest.mark.parametrize("name", GOLDEN)
def test_network_of_nodes_in_c_and_in_python_gives_the_same_trace(name):
    scenario = renew.scenario(name)
    assert_same_trace(scenario, nodes_in_c(scenario, lambda address: address % 2))


networks = given(scenarios(), st.sampled_from(sorted(SIZES)))  # Other tests compile the same sizes.


@settings(max_examples=20)
@networks
def test_random_network_of_nodes_in_c_gives_the_simulators_trace(scenario, sizes):
    assert_simulators_trace(scenario, sizes)


@settings(max_examples=20)
@given(scenarios({"matching": "two-way"}), st.sampled_from(sorted(SIZES)))
def test_random_network_that_matches_two_ways_gives_the_simulators_trace(scenario, sizes):
    assert_simulators_trace(scenario, sizes)


@pytest.mark.family
@networks
def test_many_random_networks_of_nodes_in_c_give_the_simulators_traces(scenario, sizes):
    assert_simulators_trace(scenario, sizes)


def assert_simulators_trace(scenario, sizes):
    chosen = {name: value for name, value in scenario.protocol.settings.items() if name not in SIZES["small"]}
    if "max_data" in SIZES[sizes]:
        chosen["ttl"] = min(4, chosen["ttl"])  # data that is forgotten at once circulates until its ttl runs out
    protocol = wb.Diffusion(**{**chosen, "profile": "wide", **SIZES[sizes]})
    scenario = scenario.replace(protocol=protocol)
    try:
        expected = played(scenario)
    except (ScenarioError, wb.WorkbenchError):
        return  # Python refuses the workload: a list is full, or a frame is too short.
    assert trace.digest(played(scenario, nodes_in_c(scenario))) == trace.digest(expected)

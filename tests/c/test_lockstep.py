"""Networks of nodes in C in the simulator's time: the trace is the simulator's, row by row."""

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


def nodes_in_c(scenario, which=lambda address: True):
    """The scenario's nodes, those that `which` picks in C."""
    return [
        make_node(scenario.protocol, node.address, draws.Stream(node.random.key)) if which(node.address) else node
        for node in engine.make_nodes(scenario)
    ]


def played(scenario, nodes=None):
    """The trace of a scenario that these nodes play."""
    recorder = trace.Recorder()
    engine.play(scenario, recorder, None, nodes)
    return recorder.table()


def assert_same_trace(scenario, nodes):
    expected, got = played(scenario), played(scenario, nodes)
    if trace.digest(expected) != trace.digest(got):
        for place, (one, other) in enumerate(zip(expected.to_pylist(), got.to_pylist(), strict=False)):
            assert one == other, f"row {place}"
        assert len(expected) == len(got)


@pytest.mark.parametrize("name", GOLDEN)
def test_network_of_nodes_in_c_gives_the_golden_trace(name):
    scenario = renew.scenario(name)
    recorded = json.loads(renew.DIGESTS.read_text(encoding="utf-8"))[name]["trace_hash"]
    assert trace.digest(played(scenario, nodes_in_c(scenario))) == recorded


@pytest.mark.parametrize("name", GOLDEN)
def test_network_of_both_kinds_gives_the_same_trace(name):
    scenario = renew.scenario(name)
    assert_same_trace(scenario, nodes_in_c(scenario, lambda address: address % 2))


networks = given(scenarios(), st.sampled_from(sorted(SIZES)))  # The sizes are some that were compiled before.


@settings(max_examples=20)
@networks
def test_random_network_of_nodes_in_c_gives_the_simulators_trace(scenario, sizes):
    assert_simulators_trace(scenario, sizes)


@pytest.mark.family
@networks
def test_many_random_networks_of_nodes_in_c_give_the_simulators_traces(scenario, sizes):
    assert_simulators_trace(scenario, sizes)


def assert_simulators_trace(scenario, sizes):
    chosen = {name: value for name, value in scenario.protocol.settings.items() if name not in SIZES["small"]}
    if "max_data" in SIZES[sizes]:
        chosen["ttl"] = min(4, chosen["ttl"])  # what is forgotten at once goes round until its ttl runs out
    protocol = wb.Diffusion(**{**chosen, "profile": "wide", **SIZES[sizes]})
    scenario = scenario.replace(protocol=protocol)
    try:
        expected = played(scenario)
    except (ScenarioError, wb.WorkbenchError):
        return  # a workload that Python refuses, for a list that is full or a frame that is short
    assert trace.digest(played(scenario, nodes_in_c(scenario))) == trace.digest(expected)

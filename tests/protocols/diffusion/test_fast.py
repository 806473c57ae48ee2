"""TinyDiffusion on the fast engine: the same rows as on the reference engine, with any lists and limits."""

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers, assert_same_trace
from tests.families import examples
from tests.sim.test_kernel import RADIOS, topologies
from workbench.errors import ScenarioError
from workbench.sim.workload import Publish, Subscribe

NODES = 7

# Subscriptions that differ only in order or INTERVAL, contain each other, or are disjoint; numbers, blobs, and both.
INTERESTS = [
    "TEMP GE 25",
    "TEMP GE 25",
    "TEMP GE 25, INTERVAL IS 2",
    "INTERVAL IS 0.5, TEMP GE 25",
    "TEMP GE 25, TEMP LE 30",
    "TEMP LE 30, TEMP GE 25",
    "TEMP GT 20, INTERVAL IS 1",
    "TEMP EQ 26, INTERVAL LE 8",
    "TEMP NE 20, TEMP LT 30",
    "INSTANCE EQ_ANY",
    "INSTANCE EQ_ANY, TEMP EQ_ANY",
    "PAYLOAD EQ 0x0102",
    "PAYLOAD NE 0x0102, TEMP EQ_ANY",
    "PAYLOAD EQ_ANY",
    "TEMP IS 26, TEMP EQ_ANY",
]
READINGS = [
    "TEMP IS 26",
    "TEMP IS 26",
    "TEMP IS 20",
    "TEMP IS 20, TEMP IS 27.5",
    "TEMP IS 35, INSTANCE IS 1",
    "INSTANCE IS 1, TEMP IS 26",
    "TEMP IS 26, INTERVAL IS 5, INSTANCE IS 2",
    wb.SensorField(),
]
# Constraints of publications, and attributes of subscriptions that meet some of them.
CONSTRAINTS = ["", ", INSTANCE EQ 4", ", INSTANCE NE 4, INSTANCE EQ_ANY", ", TEMP GE 20", ", PAYLOAD NE 0x0102"]
DESCRIPTIONS = [
    "",
    ", INSTANCE IS 4",
    ", INSTANCE IS 5, TEMP IS 22",
    ", TEMP IS 26, PAYLOAD IS 0x03",
    ", INSTANCE IS 4",
]
TIMES_S = st.sampled_from([0, 0, 0.002, 0.5, 1, 3])


@st.composite
def subscriptions(draw):
    start_s = draw(TIMES_S)
    stop_s = draw(st.sampled_from([None, None, start_s, start_s + 0.001, start_s + 2]))
    expires_s = draw(st.sampled_from([None, None, 0.0005, 1.2, 2.5]))
    at = draw(st.sampled_from([*range(NODES), *range(NODES), "all"]))
    if draw(st.integers(0, 9)) == 0:
        return wb.subscribe(at, draw(st.sampled_from(["", "TEMP IS 20"])), expires_s, start_s, stop_s, match_all=True)
    return wb.subscribe(at, draw(st.sampled_from(INTERESTS)), expires_s, start_s, stop_s)


@st.composite
def publications(draw):
    start_s = draw(TIMES_S)
    stop_s = draw(st.sampled_from([None, None, start_s + 0.001, start_s + 4]))
    every_s = draw(st.sampled_from([None, 0.3, 0.7, 2]))
    at = draw(st.sampled_from([*range(NODES), *range(NODES), "all"]))
    payload = draw(st.sampled_from([b"", b"", b"\1\2", b"\1\2\3"]))
    stagger = every_s is not None and draw(st.booleans())
    return wb.publish(at, draw(st.sampled_from(READINGS)), every_s, start_s, stop_s, payload, stagger)


@st.composite
def outages(draw):
    start_s = draw(TIMES_S)
    return wb.outage(draw(st.integers(0, NODES - 1)), start_s, draw(st.sampled_from([None, start_s + 1])))


DIFFUSIONS = {
    "max_interests": st.sampled_from([1, 2, 3, 10, 10]),
    "max_gradients": st.sampled_from([1, 2, 3, 10]),
    "max_reinforcements": st.sampled_from([1, 2, 10]),
    "max_data": st.sampled_from([1, 2, 3, 20]),
    "max_seen_interests": st.sampled_from([1, 2, 4, 50]),
    "max_sinks": st.sampled_from([1, 2, 10]),
    "max_next_hops": st.sampled_from([1, 2, 10]),
    "ttl": st.sampled_from([1, 2, 3, 50, 50]),
    "refresh_s": st.sampled_from([0, 0.2, 0.7, 2.0, 30.0]),
    "gradient_lifetime_s": st.sampled_from([1.0, 2.0, 150.0]),
    "tick_s": st.sampled_from([0.001, 0.3, 1.0]),
    "reinforce_after": st.sampled_from([0, 1, 1, 2]),
    "exploratory_gradients": st.sampled_from([1, 1, 2, 5]),
    "sample_lifetime_s": st.sampled_from([0.4, 1.0, 60.0]),
    "blacklist_loss": st.sampled_from([0.0, 0.4, 0.8, 0.95, 1.0]),
    "profile": st.sampled_from(["wide", "wide", "strict"]),
    "matching": st.sampled_from(["any", "strict", "two-way", "two-way"]),
    "merge_interests": st.booleans(),
}


@st.composite
def filters(draw, key):
    name, more = draw(
        st.sampled_from(
            [
                ("suppress_unchanged", {"tolerance": 1.0, "heartbeat_s": 1.0}),
                ("running_mean", {"window": 3}),
                ("running_minimum", {"window": 2}),
                ("running_maximum", {"window": 4}),
                ("neighborhood_average", {"period_s": 1.0}),
                ("neighborhood_average", {"period_s": 0.7, "flush": True}),
                ("rate_limit", {"interval_s": 1.0}),
                ("threshold_alarm", {"high": 26.0, "low": 22.0}),
                ("running_mean", {"of": "INTERVAL", "window": 2}),
            ]
        )
    )
    match = draw(st.sampled_from(["", "TEMP EQ_ANY", "TEMP GE 21", "PAYLOAD EQ 0x0102", "INTERVAL EQ_ANY"]))
    at = draw(st.sampled_from([None, None, 0, (1, 2, 3)]))
    return wb.Filter(name, key, match, at, draw(st.sampled_from(["data", "data", "data", "interest"])), **more)


@st.composite
def protocols(draw):
    # Only a few parameters differ from their defaults in a run; otherwise few readings would arrive.
    names = draw(st.lists(st.sampled_from(sorted(DIFFUSIONS)), max_size=6, unique=True))
    carried = tuple(draw(filters(200 + 10 * k)) for k in range(draw(st.sampled_from([0, 0, 0, 1, 2, 3]))))
    values = {name: draw(DIFFUSIONS[name]) for name in names}
    if "max_seen_interests" in values or "max_data" in values:
        # Messages that are forgotten at once circulate until their ttl runs out, and multiply on their paths.
        values["ttl"] = min(values.get("ttl", 4), 4)
    return wb.Diffusion(filters=carried, **values)


@st.composite
def scenarios(draw, more_settings=()):
    topology = draw(topologies(NODES))
    count = len(topology)
    addresses = {node: node for node in topology}
    if draw(st.booleans()):
        # Addresses that differ from positions in the topology.
        addresses = {node: 3 * node + 5 for node in topology}
        topology = nx.relabel_nodes(topology, addresses)
    protocol = draw(protocols())
    kinds = st.sampled_from([subscriptions, subscriptions, publications, outages])
    more = draw(st.lists(kinds, max_size=6))
    workload = [_at_nodes(draw(kind()), addresses, count) for kind in [subscriptions, publications, *more]]
    protocol = wb.Diffusion(**{**protocol.settings, **dict(more_settings)})
    if protocol.matching == "two-way":
        workload = [_matching_two_ways(item, draw) for item in workload]
        nodes = st.sampled_from(sorted(addresses.values()))
        workload.append(wb.subscribe(draw(nodes), "TEMP GE 20, INSTANCE IS 4"))
        workload.append(wb.publish(draw(nodes), "TEMP IS 26" + draw(st.sampled_from(CONSTRAINTS)), 0.4))
    if draw(st.booleans()) and (constraints := workload[0].what) and not workload[0].match_all:
        narrower = draw(st.sampled_from(["", ", INSTANCE GE 1", ", INTERVAL IS 0.3", ", TEMP LE 28, INTERVAL IS 1"]))
        every_s = draw(st.sampled_from([None, 0.9]))
        workload.append(wb.reinforce(workload[0].at, constraints + narrower, every_s, start_s=draw(TIMES_S)))
    carried = tuple(_with_nodes(filter_, addresses, count) for filter_ in protocol.filters)
    protocol = wb.Diffusion(**{**protocol.settings, "filters": carried})
    return wb.Scenario(topology, protocol, workload, draw(RADIOS), 6, draw(st.integers(0, 99)))


def _matching_two_ways(item, draw):
    """Return the item with constraints if it publishes a text, with IS attributes if it subscribes; some unchanged."""
    more = {Publish: CONSTRAINTS, Subscribe: DESCRIPTIONS}.get(type(item), [""])
    if not isinstance(getattr(item, "what", None), str) or not (text := item.what + draw(st.sampled_from(more))):
        return item
    return type(item)(**{**vars(item), "what": text.removeprefix(", ")})


def _at_nodes(item, addresses, count):
    at = item.at if isinstance(item.at, str) else tuple(addresses[node % count] for node in item.at)
    return type(item)(**{**vars(item), "at": at})


def _with_nodes(filter_, addresses, count):
    at = None if filter_.at is None else tuple(sorted({addresses[node % count] for node in filter_.at}))
    return wb.Filter(filter_.name, filter_.key, filter_.match, at, filter_.messages, **filter_.settings)


def is_fast(scenario):
    """Return whether the fast engine accepts a scenario: it refuses errors that occur in the middle of a run."""
    try:
        scenario.run(engine="fast", record="metrics")
    except ScenarioError as error:
        assert any(text in str(error) for text in ("max_interests", "does not fit"))
        return False
    return True


@settings(max_examples=examples(250))
@given(scenarios())
def test_both_engines_give_the_same_trace(scenario):
    if is_fast(scenario):
        assert_same_trace(scenario)


@settings(max_examples=examples(150))
@given(scenarios({"matching": "two-way"}))
def test_both_engines_give_the_same_trace_if_nodes_match_two_ways(scenario):
    if is_fast(scenario):
        assert_same_trace(scenario)


@st.composite
def sinks_with_several_interests(draw):
    topology, protocol, count = draw(topologies(NODES)), draw(protocols()), draw(st.integers(2, 8))
    wanted = [draw(subscriptions()) for _ in range(count)]
    sinks = [
        item if item.at == "all" else type(item)(**{**vars(item), "at": (draw(st.integers(0, 1)),)}) for item in wanted
    ]
    workload = [*sinks, draw(publications()), draw(publications())]
    if draw(st.booleans()):
        workload.append(wb.reinforce(0, "TEMP EQ 26", draw(st.sampled_from([None, 0.9])), start_s=draw(TIMES_S)))
    workload = [_at_nodes(item, range(NODES), len(topology)) for item in workload]
    carried = tuple(_with_nodes(filter_, range(NODES), len(topology)) for filter_ in protocol.filters)
    protocol = wb.Diffusion(**{**protocol.settings, "merge_interests": True, "filters": carried})
    return wb.Scenario(topology, protocol, workload, draw(RADIOS), 6, draw(st.integers(0, 99)))


@settings(max_examples=examples(150))
@given(sinks_with_several_interests())
def test_both_engines_merge_the_same_interests(scenario):
    if is_fast(scenario):
        assert_same_trace(scenario)


@settings(max_examples=examples(80))
@given(scenarios())
def test_both_engines_have_the_same_metrics_without_a_trace(scenario):
    if is_fast(scenario):
        assert_same_numbers(scenario)


@pytest.mark.family
def test_busy_network_outgrows_the_initial_size_of_every_pool():
    # Each reading creates its own lists if filters replace it, and each sink marks the paths of all sources.
    workload = [
        wb.subscribe([0, 9, 27, 35], "TEMP GE -40"),
        wb.publish("all", wb.SensorField(), every_s=0.5, start_s=1, stagger=True),
    ]
    carried = (wb.Filter("running_mean", 200), wb.Filter("suppress_unchanged", 210, heartbeat_s=2.0))
    protocol = wb.Diffusion(filters=carried, refresh_s=2.0)
    scenario = wb.Scenario(wb.topology.grid(6, 6), protocol, workload, duration_s=8)
    assert_same_trace(scenario)
    assert scenario.run(engine="fast").metrics["delivered"] > 500


def test_custom_filter_runs_on_the_reference_engine_and_the_run_reports_it():
    wb.register_filter("mine", lambda attributes: attributes)
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish("all", "TEMP IS 26", every_s=0.01)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(filters=(wb.Filter("mine"),)), workload, duration_s=60)
    run = scenario.replace(duration_s=0.1).run()
    assert run.engine == "reference"
    with pytest.raises(ScenarioError, match="fast engine: the filter mine runs Python code at every node"):
        scenario.run(engine="fast")


def test_invalid_workload_gives_the_error_of_the_reference_engine():
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.subscribe(0, "TEMP GE 26")]
    scenario = wb.Scenario(wb.topology.grid(2, 2), wb.Diffusion(max_interests=1), workload)
    with pytest.raises(ScenarioError, match="already has 1 different subscriptions"):
        scenario.run()
    with pytest.raises(ScenarioError, match="subscriptions that count towards max_interests"):
        scenario.run(engine="fast")

"""Delivery by TinyMQ and PUB-2-SUB+: on random networks every query meets every matching event, and no message loops.

Links are ideal here and deliver in any order; losses and failures are in test_repair.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.network import Network, taken
from tests.protocols.tinymq.checks import graphs_with_roots
from workbench import draws
from workbench.attributes.model import matching_samples
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, EncodeError, ParameterError
from workbench.protocols.contract import Delivered, Held, Originated
from workbench.protocols.tinymq import TinyMQ, wire
from workbench.protocols.tinymq.events import QueryStored
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.protocols.tinymq.zones import intersect, union

PROTOCOLS = (TinyMQ, Pub2Sub)
BROKEN = {"ttl", "no_sink", "stale", "full", "malformed", "no_place", "unasked", "loop"}

temperatures = st.integers(-10, 60)
queries = st.one_of(
    st.tuples(temperatures, temperatures).map(lambda ends: "TEMP GE {}, TEMP LE {}".format(*sorted(ends))),
    st.tuples(temperatures, st.integers(0, 100)).map(lambda ends: "TEMP GT {}, HUMIDITY LT {}".format(*ends)),
    temperatures.map("TEMP EQ {}".format),
    temperatures.map("TEMP NE {}".format),
    st.integers(0, 20).map("X EQ {}".format),
    st.just("TEMP EQ_ANY"),
    st.just("HUMIDITY GE 50, UV EQ_ANY"),
)
events = st.one_of(
    temperatures.map("TEMP IS {}".format),
    st.tuples(temperatures, st.integers(0, 100)).map(lambda v: "TEMP IS {}, HUMIDITY IS {}".format(*v)),
    st.tuples(st.integers(0, 20), temperatures, temperatures).map(
        lambda v: "X IS {}, TEMP IS {}, TEMP IS {}".format(*v)
    ),
    st.tuples(temperatures, temperatures).map(lambda v: "TEMP IS {}, TEMP IS {}".format(*v)),
    st.just("UV IS 3, HUMIDITY IS 80"),
)
protocols = st.fixed_dictionaries(
    {
        "key_bits": st.integers(1, 12),
        "publish": st.sampled_from(("all", "own")),
        "shortcuts": st.booleans(),
        "retries": st.sampled_from((0, 7)),
        "dimensions": st.sampled_from((("TEMP",), ("TEMP 0 50", "HUMIDITY"), ("HUMIDITY", "X 0 10", "TEMP -5 45"))),
    }
)


def built(protocol, graph, seed=1, seconds=5):
    stream = draws.Stream(seed)
    network = Network(protocol, graph.edges if hasattr(graph, "edges") else graph, stream.below)
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(seconds)
    return network


def messages(network, kind):
    """Return (sender, message) of every frame of a kind."""
    decoded = [(sender, wire.decode(frame)[1]) for sender, _, frame in network.sent]
    return [(sender, message) for sender, message in decoded if isinstance(message, kind)]


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(
    graph_and_roots=graphs_with_roots(),
    options=protocols,
    wanted=st.lists(st.tuples(st.integers(0, 99), queries), min_size=1, max_size=6),
    published=st.lists(st.tuples(st.integers(0, 99), events), min_size=1, max_size=8),
    seed=st.integers(0, 999),
)
@settings(max_examples=examples(100))
def test_every_matching_reading_reaches_every_sink_once_without_loops(
    cls, graph_and_roots, options, wanted, published, seed
):
    graph, roots = graph_and_roots
    network = built(cls(roots=roots, **options), graph, seed)
    subscriptions = [(network.subscribe(node % len(graph), text), parse(text)) for node, text in wanted]
    network.advance(1)
    for node, text in published:
        network.publish(node % len(graph), text)
    network.advance(3)
    for subscription, query in subscriptions:
        expected = [to_text(sample) for _, text in published for sample in matching_samples(query, parse(text))]
        assert sorted(taken(subscription)) == sorted(expected)
    assert not BROKEN & set(network.drops())
    assert_no_string_reaches_a_node_twice(network)


def assert_no_string_reaches_a_node_twice(network):
    """Check that the strings to which a node forwards a message in a tree never overlap, so that no message loops."""
    sent_regions = {}
    for sender, message in messages(network, (wire.Event, wire.Query)):
        # Both start with the tree and the sender; each round of a query is a separate message.
        round_ = message.round if isinstance(message, wire.Query) else None
        message_id = sender, type(message).__name__, message[:3], round_
        assert not intersect(sent_regions.get(message_id, ()), message.region)
        sent_regions[message_id] = union(sent_regions.get(message_id, ()), message.region)


@given(graph_and_roots=graphs_with_roots(), options=protocols, text=queries, seed=st.integers(0, 99))
def test_query_is_stored_exactly_where_it_meets_a_zone(graph_and_roots, options, text, seed):
    graph, roots = graph_and_roots
    protocol = TinyMQ(roots=roots, **options)
    network = built(protocol, graph, seed)
    network.subscribe(min(graph), text)
    network.advance(1)
    mapping = protocol.mapping
    box = mapping.query_box(parse(text))
    for node in network.nodes.values():
        position = node.overlay.position(node.overlay.own_tree())
        meets = bool(mapping.clip(box, position.regions(protocol.key_bits)[1]))
        assert bool(node.queries.stored) == meets


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(
    graph_and_roots=graphs_with_roots(),
    wanted=st.lists(st.tuples(st.integers(0, 99), queries), max_size=4),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(30))
def test_nothing_is_stored_or_delivered_after_unsubscribing(cls, graph_and_roots, wanted, seed):
    graph, roots = graph_and_roots
    network = built(cls(roots=roots), graph, seed)
    subscriptions = [network.subscribe(node % len(graph), text) for node, text in wanted]
    network.advance(2)
    for subscription in subscriptions:
        for _ in range(2):  # ending it twice is not an error
            subscription.unsubscribe(network.now)
        network.settle()
    network.advance(2)
    for node in network.nodes.values():
        assert not node.queries.stored and not node.subscriptions.open
    network.publish(0, "TEMP IS 20, HUMIDITY IS 5, X IS 3")
    network.advance(2)
    assert not any(isinstance(event, Delivered) for _, event in network.events)


#  0 --- 1 --- 2 --- 3 --- 4        roots are 0 and 4: 0, 1 and perhaps 2 are in the first tree
LINE = [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_publishing_to_the_own_tree_sends_a_fraction():
    counts = {}
    for publish in ("all", "own"):
        network = built(TinyMQ(roots=(0, 4), publish=publish), LINE)
        subscription = network.subscribe(0, "TEMP GE 20")
        network.advance(1)
        network.publish(1, "TEMP IS 21")
        network.advance(1)
        assert taken(subscription) == ["TEMP IS 21"]
        trees = {message.tree for _, message in messages(network, wire.Event)}
        counts[publish] = len(messages(network, wire.Event)) + len(messages(network, wire.Notification))
        assert trees <= ({0, 1} if publish == "all" else {0})
    assert counts["own"] < counts["all"]


def test_lease_ends_with_the_subscription_and_lasts_while_it_is_refreshed():
    network = built(TinyMQ(refresh_s=10.0, lease_s=25.0), LINE)
    network.subscribe(4, "TEMP GE 20")
    short = network.subscribe(3, "TEMP LE 10", expires_s=40)
    stored = {}
    for seconds in (30, 20, 200):
        network.advance(seconds)
        stored[seconds] = {query_id[1] for node in network.nodes.values() for query_id in node.queries.stored}
    assert stored == {30: {3, 4}, 20: {4}, 200: {4}}
    network.publish(0, "TEMP IS 5")
    assert taken(short) == []


def test_queries_and_events_wait_until_there_is_an_overlay():
    network = Network(TinyMQ(roots=(4,)), LINE)
    subscription = network.subscribe(0, "TEMP GE 20")
    network.publish(0, "TEMP IS 30")
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(3)
    network.publish(1, "TEMP IS 25")
    network.advance(1)
    assert "TEMP IS 25" in taken(subscription)
    assert network.drops() == {}


def test_node_without_an_overlay_drops_the_oldest_messages():
    node = TinyMQ(roots=(9,), max_waiting=2).make_node(1, draws.Stream(1))
    node.start(0)
    for value in (1, 2, 3):
        node.publish(parse(f"TEMP IS {value}"), 0)
    assert node.drops == {"full": 1}
    assert [event.sequence for event in node.take_events() if isinstance(event, Originated)] == [0, 1, 2]


def test_sink_that_is_its_own_rendezvous_node_gets_events_at_once():
    node = TinyMQ(roots=(1,)).make_node(1, draws.Stream(1))
    node.start(0)
    node.wake(node.next_wake)
    subscription = node.subscribe(parse("TEMP GE 20"), 60_000_000)
    node.wake(max(60_500_000, node.next_wake))
    node.publish(parse("TEMP IS 21"), 61_000_000)
    assert taken(subscription) == ["TEMP IS 21"]
    kinds = [type(event) for event in node.take_events()]
    assert kinds.count(QueryStored) == 1 and kinds.count(Held) == 1 and kinds.count(Delivered) == 1


def test_invalid_publications_and_subscriptions_do_not_change_the_node():
    node = TinyMQ(max_queries=1).make_node(0, draws.Stream(1))
    node.start(0)
    node.take_events()
    for wrong in ("TEMP GE 26", ""):
        with pytest.raises(AttributeFormatError):
            node.publish(parse(wrong), 0)
    with pytest.raises(EncodeError):
        node.publish(parse("TEMP IS 26") * 256, 0)
    with pytest.raises(EncodeError):
        node.subscribe(parse("TEMP GE 26") * 256, 0)
    with pytest.raises(AttributeFormatError):
        node.subscribe(parse("TEMP IS 26"), 0)
    assert node.take_events() == [] and node.subscriptions.open == []
    assert node.publish(parse("TEMP IS 26"), 0) == 0
    assert node.subscribe(parse("TEMP GE 26"), 0).number == 0
    with pytest.raises(ParameterError, match="already has 1 subscriptions, as many as max_queries allows"):
        node.subscribe(parse("TEMP GE 27"), 0)


@given(st.binary(max_size=50) | st.binary(max_size=50).map(lambda rest: b"Q\x01\x00\x00" + rest), st.booleans())
def test_node_accepts_any_bytes_and_counts_them(frame, broadcast):
    node = TinyMQ().make_node(0, draws.Stream(1))
    node.start(0)
    node.receive(frame, 3, 5, broadcast)
    assert set(node.drops) <= {"malformed", "no_place", "unasked", "no_sink", "ttl"}


def test_message_of_a_network_with_other_settings_is_malformed():
    node = TinyMQ(roots=(0,), key_bits=8).make_node(0, draws.Stream(1))
    node.start(0)
    reading = parse("TEMP IS 20")
    for number, event in enumerate(
        (wire.Event(1, 3, 0, 0, 8, ((0, 0),), reading), wire.Event(0, 3, 0, 0, 9, ((0, 0),), reading))
    ):
        node.receive(wire.encode(number, event), 3, 5, False)
    assert node.drops == {"malformed": 2}


@pytest.mark.parametrize("cls", PROTOCOLS)
@pytest.mark.parametrize("publish", ["all", "own"])
def test_metrics_of_a_run_are_right(cls, publish):
    roots = (0, 17, 39)
    workload = [
        wb.subscribe(at=(3, 20, 35), what="TEMP GE 15, TEMP LE 30"),
        wb.subscribe(at=10, what="TEMP GE 25", start_s=2, stop_s=8),
        wb.publish(at="all", what=wb.SensorField(spatial_sigma=4.0), every_s=3, start_s=4, stagger=True),
    ]
    graph = wb.topology.disc(40, 50, 50, radius_m=16, seed=4)
    protocol = cls(roots=roots, dimensions=("TEMP 0 50",), publish=publish)
    scenario = wb.Scenario(graph, protocol, workload, duration_s=10, seed=2)
    run = scenario.run(engine="reference")
    metrics = run.metrics
    assert metrics["expected"] > 50 and metrics["delivery_ratio"] == 1.0
    assert metrics["wrong_deliveries"] == metrics["duplicate_deliveries"] == 0
    assert metrics["stretch"] >= 1
    assert wb.Scenario.from_json(scenario.to_json()).hash == scenario.hash
    assert scenario.run(engine="reference").trace_hash == run.trace_hash

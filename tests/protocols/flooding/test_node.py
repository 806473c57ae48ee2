"""The flooding node: every event reaches every node once, and subscribers get what matches."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network import SECOND, Network, taken
from workbench import draws
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, EncodeError
from workbench.protocols.contract import Delivered, Dropped, Forwarded, Held, Originated
from workbench.protocols.flooding import Flooding
from workbench.protocols.flooding.wire import Flood, decode, encode

LINE = [(0, 1), (1, 2), (2, 3)]


def make_node(address=1, **options):
    return Flooding(**options).make_node(address, draws.Stream(1))


def kinds(node):
    return [type(event) for event in node.take_events()]


# 0 --- 1 --- 2 --- 3
def test_publication_reaches_every_node_once_and_each_node_sends_it_once():
    network = Network(Flooding(), LINE)
    network.publish(1, "TEMP IS 26")
    assert sorted(network.hops("flood")) == [(0, None), (1, None), (2, None), (3, None)]
    hops = {node: event.value for node, event in network.events if isinstance(event, Held)}
    assert hops == {0: 1, 1: 0, 2: 1, 3: 2}


def test_subscriber_gets_matching_readings_and_no_others():
    network = Network(Flooding(), LINE)
    hot = network.subscribe(3, "TEMP GE 25")
    at_source = network.subscribe(0, "TEMP EQ_ANY")
    for value in (24, 26, 30):
        network.publish(0, f"TEMP IS {value}, INSTANCE IS 7")
    assert taken(hot) == ["TEMP IS 26, INSTANCE IS 7", "TEMP IS 30, INSTANCE IS 7"]
    assert taken(hot) == []
    assert len(taken(at_source)) == 3
    delivered = [(n, e.origin, e.sequence, to_text(e.detail)) for n, e in network.events if isinstance(e, Delivered)]
    assert delivered[-1] == (3, 0, 2, "TEMP IS 30, INSTANCE IS 7")


def test_subscription_ends_when_it_expires_or_is_cancelled():
    network = Network(Flooding(), LINE)
    short, long = network.subscribe(3, "TEMP GE 25", expires_s=5), network.subscribe(3, "TEMP GE 25")
    network.advance(4.999)
    network.publish(0, "TEMP IS 26")
    network.advance(0.001)
    network.publish(0, "TEMP IS 27")
    network.nodes[3].unsubscribe(long, network.now)
    network.nodes[3].unsubscribe(long, network.now)
    network.publish(0, "TEMP IS 28")
    assert taken(short) == ["TEMP IS 26"]
    assert taken(long) == ["TEMP IS 26", "TEMP IS 27"]


def test_flood_travels_as_many_hops_as_its_ttl():
    network = Network(Flooding(ttl=2), LINE)
    network.publish(0, "TEMP IS 26")
    assert [node for node, event in network.events if isinstance(event, Held)] == [0, 1, 2]
    assert network.drops(2) == {"ttl": 1}


def test_publications_are_numbered_and_carry_a_payload():
    node = make_node()
    assert [node.publish(parse("TEMP IS 26"), 0, payload=b"hi"), node.publish(parse("TEMP IS 27"), 0)] == [0, 1]
    floods = [decode(frame) for _, frame in node.take_frames()]
    assert floods[0] == Flood(1, 0, 0xFFFF, parse('TEMP IS 26, PAYLOAD IS "hi"'))
    assert [(e.origin, e.sequence, e.value) for e in node.take_events() if isinstance(e, Originated)] == [
        (1, 0, 0),
        (1, 1, 1),
    ]


def test_invalid_publications_and_subscriptions_do_not_change_the_node():
    node = make_node()
    for wrong in ("TEMP GE 26", ""):
        with pytest.raises(AttributeFormatError):
            node.publish(parse(wrong), 0)
    with pytest.raises(EncodeError):
        node.publish(parse("TEMP IS 1") * 256, 0)
    with pytest.raises(AttributeFormatError):
        node.subscribe(parse("TEMP IS 26"), 0)
    assert not node.outbox and not node.events
    assert node.publish(parse("TEMP IS 1"), 0) == 0


def test_duplicate_is_dropped_and_a_forgotten_one_is_held_again():
    node = make_node(max_events=2)
    frames = [encode(Flood(9, sequence, 5, parse("TEMP IS 1"))) for sequence in range(3)]
    for sequence, expected in [(0, Held), (0, Dropped), (1, Held), (2, Held), (1, Dropped), (0, Held)]:
        node.receive(frames[sequence], 4, 0)
        assert kinds(node)[0] is expected


def test_unknown_events_do_not_count_as_duplicates():
    node = make_node()
    node.receive(encode(Flood(0, 0, 5, parse("TEMP IS 1"))), 0, 0)
    assert kinds(node) == [Held, Forwarded]


@given(st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"F" + rest))
def test_malformed_frame_is_counted_and_dropped(frame):
    node = make_node()
    node.subscribe(parse("TEMP GE 0"), 0)
    node.receive(frame, 4, SECOND)
    events = node.take_events()
    assert events
    if events[0] == Dropped(4, "", -1, 0, 0, "malformed"):
        assert not node.outbox and len(events) == 1


@settings(max_examples=25)
@given(st.integers(2, 14), st.integers(0, 1000), st.data())
def test_every_node_holds_every_event_once_in_whatever_order_links_deliver(size, seed, data):
    nx = pytest.importorskip("networkx")
    graph = nx.connected_watts_strogatz_graph(size, min(4, size), 0.5, seed=seed)
    pick = data.draw(st.randoms(use_true_random=False))
    network = Network(Flooding(), graph.edges, choose=pick.randrange)
    subscriptions = [network.subscribe(node, "INSTANCE EQ_ANY") for node in graph]
    for node in graph:
        network.nodes[node].publish(parse(f"INSTANCE IS {node}"), 0)
    network.settle()
    everything = sorted(f"INSTANCE IS {node}" for node in graph)
    assert [sorted(taken(subscription)) for subscription in subscriptions] == [everything] * size
    assert len(network.hops("flood")) == size * size

"""Gossip: flooding with a forwarding probability."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.network import Network
from workbench import draws
from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.contract import Dropped, Forwarded
from workbench.protocols.flooding import wire

LINE = [(0, 1), (1, 2), (2, 3)]


def node(probability, seed=1, **settings):
    return wb.Gossip(forwarding_probability=probability, **settings).make_node(7, draws.Stream(draws.make_key(seed)))


def frame(origin=1, sequence=0, ttl=9):
    return wire.encode(wire.Flood(origin, sequence, ttl, parse("TEMP IS 26")))


def test_certain_gossip_is_flooding():
    results = []
    for protocol in (wb.Gossip(forwarding_probability=1), wb.Flooding()):
        network = Network(protocol, LINE)
        network.subscribe(3, "TEMP GE 25")
        network.publish(0, "TEMP IS 26")
        results.append((network.sent, network.events))
    assert results[0] == results[1]


def test_publisher_always_sends_and_no_node_forwards_with_probability_0():
    network = Network(wb.Gossip(forwarding_probability=0), LINE)
    network.publish(1, "TEMP IS 26")
    assert [sender for sender, _, _ in network.sent] == [1]
    assert network.drops() == {"chance": 2}


def test_events_that_are_not_forwarded_are_still_delivered_and_known():
    node_ = node(0.0)
    subscription = node_.subscribe(parse("TEMP GE 25"), 0)
    node_.receive(frame(), 3, 10)
    node_.receive(frame(), 4, 20)
    assert len(subscription.take()) == 1 and node_.take_frames() == []
    assert [event.detail for event in node_.take_events() if isinstance(event, Dropped)] == ["chance", "duplicate"]


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_forwarding_is_decided_by_the_nodes_random_stream(probability, seed):
    node_ = node(probability, seed)
    stream = draws.Stream(draws.make_key(seed))
    for sequence in range(20):
        node_.receive(frame(sequence=sequence), 3, 10)
        passed_on = stream.uniform() < probability
        assert len(node_.take_frames()) == passed_on
        assert any(isinstance(event, Forwarded) for event in node_.take_events()) == passed_on


def test_last_hop_draws_no_random_number():
    node_ = node(1.0)
    node_.receive(frame(ttl=1), 3, 10)
    assert node_.take_frames() == [] and node_.drops == {"ttl": 1} and node_.random.counter == 0


def test_memory_is_bounded():
    node_ = node(0.5, max_events=2)
    for sequence in (0, 1, 2, 0):
        node_.receive(frame(sequence=sequence), 3, 10)
    assert "duplicate" not in node_.drops


@given(st.binary(max_size=40))
def test_any_bytes_are_dropped_or_accepted_and_raise_nothing(data):
    node_ = node(0.5)
    node_.receive(data, 3, 10)
    assert sum(node_.drops.values()) <= 1


def test_probability_is_a_share():
    with pytest.raises(ParameterError, match="forwarding_probability is 1.5"):
        wb.Gossip(forwarding_probability=1.5)

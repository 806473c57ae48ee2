"""Gossip: flooding by chance."""

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
    heard = []
    for protocol in (wb.Gossip(forwarding_probability=1), wb.Flooding()):
        network = Network(protocol, LINE)
        network.subscribe(3, "TEMP GE 25")
        network.publish(0, "TEMP IS 26")
        heard.append((network.sent, network.events))
    assert heard[0] == heard[1]


def test_publisher_sends_whatever_the_chance_and_nobody_passes_it_on_without_one():
    network = Network(wb.Gossip(forwarding_probability=0), LINE)
    network.publish(1, "TEMP IS 26")
    assert [sender for sender, _, _ in network.sent] == [1]
    assert network.drops() == {"chance": 2}


def test_what_is_not_passed_on_is_still_delivered_and_known():
    one = node(0.0)
    subscription = one.subscribe(parse("TEMP GE 25"), 0)
    one.receive(frame(), 3, 10)
    one.receive(frame(), 4, 20)
    assert len(subscription.take()) == 1 and one.take_frames() == []
    assert [event.detail for event in one.take_events() if isinstance(event, Dropped)] == ["chance", "duplicate"]


@given(st.floats(0, 1), st.integers(0, 2**32))
def test_each_publication_is_passed_on_as_the_nodes_stream_has_it(probability, seed):
    one = node(probability, seed)
    stream = draws.Stream(draws.make_key(seed))
    for sequence in range(20):
        one.receive(frame(sequence=sequence), 3, 10)
        passed_on = stream.uniform() < probability
        assert len(one.take_frames()) == passed_on
        assert any(isinstance(event, Forwarded) for event in one.take_events()) == passed_on


def test_last_hop_takes_no_chance():
    one = node(1.0)
    one.receive(frame(ttl=1), 3, 10)
    assert one.take_frames() == [] and one.drops == {"ttl": 1} and one.random.counter == 0


def test_memory_is_bounded():
    one = node(0.5, max_events=2)
    for sequence in (0, 1, 2, 0):
        one.receive(frame(sequence=sequence), 3, 10)
    assert "duplicate" not in one.drops


@given(st.binary(max_size=40))
def test_any_bytes_are_dropped_or_taken_and_raise_nothing(data):
    one = node(0.5)
    one.receive(data, 3, 10)
    assert sum(one.drops.values()) <= 1


def test_probability_is_a_share():
    with pytest.raises(ParameterError, match="forwarding_probability is 1.5"):
        wb.Gossip(forwarding_probability=1.5)

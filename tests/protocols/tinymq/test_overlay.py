"""TinyMQ's overlay: the nodes' own messages build it on random connected networks, and all its properties hold."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.network import Network
from tests.protocols.tinymq.checks import assert_overlay_is_whole, graphs_with_roots
from workbench import draws
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import TinyMQ, wire
from workbench.protocols.tinymq.events import KeySet
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.sim.engine import play
from workbench.sim.trace import Recorder

PROTOCOLS = (TinyMQ, Pub2Sub)


def built(protocol, graph, seed, seconds=5):
    """Return a network after some seconds; links deliver in any order."""
    stream = draws.Stream(seed)
    network = Network(protocol, graph.edges, stream.below)
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(seconds)
    return network


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(
    graph_and_roots=graphs_with_roots(),
    key_bits=st.integers(1, 12),
    seed=st.integers(0, 999),
    seconds=st.sampled_from((5, 47)),
)
@settings(max_examples=examples(60))
def test_overlay_is_whole_for_any_order_of_delivery(cls, graph_and_roots, key_bits, seed, seconds):
    graph, roots = graph_and_roots
    network = built(cls(roots=roots, key_bits=key_bits), graph, seed, seconds)
    assert_overlay_is_whole(network.nodes, graph, roots, key_bits, every_tree=cls is Pub2Sub)


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(graph_and_roots=graphs_with_roots(), seed=st.integers(0, 99))
@settings(max_examples=examples(50))
def test_overlay_is_whole_over_the_radio(cls, graph_and_roots, seed):
    graph, roots = graph_and_roots
    scenario = wb.Scenario(graph, cls(roots=roots), duration_s=30, seed=seed)
    nodes = {node.address: node for node in play(scenario, Recorder())}
    assert_overlay_is_whole(nodes, graph, roots, 8, every_tree=cls is Pub2Sub)


def assert_ring_is_whole_in_the_end(ring, roots, workload, duration_s, seed):
    """Check the overlay of a ring of these nodes at the end of a run on an ideal channel."""
    graph, radio = nx.cycle_graph(ring), wb.Radio(loss="none")
    scenario = wb.Scenario(graph, TinyMQ(roots=roots), workload, radio, duration_s, seed)
    nodes = {node.address: node for node in play(scenario, Recorder())}
    assert_overlay_is_whole(nodes, graph, roots, 8)


def test_path_with_slow_epochs_is_not_replaced_by_a_longer_one():
    # An epoch takes longer than lost_after to the far side; the longer path may bring it sooner.
    assert_ring_is_whole_in_the_end(range(17), tuple(range(9)), [], 60, seed=0)


def test_after_an_outage_a_node_uses_the_shorter_path_again_although_its_epochs_are_later():
    ring = (0, 1, 11, 9, 6, 12, 5, 2, 8, 7, 4, 3, 10)
    outage = wb.outage(12, start_s=30, stop_s=100)
    assert_ring_is_whole_in_the_end(ring, (4, 10, 11), [outage], 200, seed=33)


@given(graph_and_roots=graphs_with_roots(), seed=st.integers(0, 99))
@settings(max_examples=examples(50))
def test_network_becomes_silent_without_periodic_messages(graph_and_roots, seed):
    graph, roots = graph_and_roots
    network = built(TinyMQ(roots=roots, info_s=0.0, refresh_s=0.0), graph, seed)
    assert_overlay_is_whole(network.nodes, graph, roots, 8)
    sent_count = len(network.sent)
    network.advance(3600)
    assert len(network.sent) == sent_count


@given(graph_and_roots=graphs_with_roots(most_roots=1), seed=st.integers(0, 99))
@settings(max_examples=examples(50))
def test_with_one_root_both_protocols_build_the_same_overlay(graph_and_roots, seed):
    graph, roots = graph_and_roots
    networks = [built(cls(roots=roots), graph, seed) for cls in PROTOCOLS]
    tinymq_keys, pub2sub_keys = (
        {a: node.overlay.position(0).key for a, node in network.nodes.items()} for network in networks
    )
    assert tinymq_keys == pub2sub_keys
    assert networks[0].sent == networks[1].sent


#  0 --- 1 --- 2        the children of 1 get the shortest free keys, in the order of their joins
#        | \
#        3  4
STAR = [(0, 1), (1, 2), (1, 3), (1, 4)]


def keys_of(network, tree=0):
    return {address: node.overlay.position(tree).key for address, node in network.nodes.items()}


def test_keys_of_children_are_the_shortest_free_ones():
    network = Network(TinyMQ(), STAR)
    for node in network.nodes.values():
        node.start(0)
    network.advance(1)
    keys = keys_of(network)
    assert (keys[0], keys[1]) == ("", "1")
    assert sorted(keys[child] for child in (2, 3, 4)) == ["1001", "101", "11"]
    key_events = {address: event for address, event in network.events if isinstance(event, KeySet)}
    assert {address: event.detail for address, event in key_events.items()} == keys
    assert key_events[0] == KeySet(NOBODY, "grant", 0, 1, 0, "")
    assert key_events[1] == KeySet(0, "grant", 0, 1, 1, "1")


def test_info_about_a_change_is_repeated_at_increasing_intervals():
    root = TinyMQ(roots=(7,)).make_node(7, draws.Stream(1))
    root.start(0)
    times = []
    while root.next_wake < 10_000_000:
        now = root.next_wake
        root.wake(now)
        times += [now] * len(root.take_frames())
    # The epoch of the tick is not one of these repetitions.
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert len(gaps) >= 4
    for gap, after_us in zip(gaps[:4], (250_000, 500_000, 1_000_000, 2_000_000), strict=True):
        assert after_us / 2 <= gap <= after_us


def test_child_with_a_repeated_grant_keeps_its_slot():
    parent = TinyMQ(roots=(7,)).make_node(7, draws.Stream(1))
    parent.start(0)
    for number, child in enumerate((3, 4, 3, 3)):
        parent.receive(wire.encode(number, wire.Join(0)), child, 10 + number, False)
    granted = [(to, wire.decode(frame)[1]) for to, frame in parent.take_frames()]
    assert [(to, message.key) for to, message in granted if isinstance(message, wire.Grant)] == [
        (3, "1"),
        (4, "01"),
        (3, "1"),
        (3, "1"),
    ]


def test_child_whose_key_belongs_to_another_node_gets_a_new_one():
    parent = TinyMQ(roots=(7,)).make_node(7, draws.Stream(1))
    parent.start(0)
    parent.receive(wire.encode(0, wire.Join(0)), 3, 10, False)
    claim = wire.Info((wire.InfoPosition(0, 1, 7, "1"),), (wire.InfoDistance(0, 1, 1),), ())
    parent.take_frames()
    parent.receive(wire.encode_info(claim), 4, 20)
    ((to, frame),) = parent.take_frames()
    assert (to, wire.decode(frame)[1]) == (4, wire.Grant(0, 1, "01"))


def test_node_that_is_not_heard_gets_no_child_and_no_answer():
    node = TinyMQ(roots=(7,)).make_node(1, draws.Stream(1))
    node.start(0)
    node.receive(wire.encode(0, wire.Join(0)), 3, 10, False)
    node.receive(wire.encode(5, wire.Grant(0, 1, "1")), 3, 11, False)
    frames = [wire.decode(frame)[1] for _, frame in node.take_frames()]
    assert frames == [wire.Ack(0), wire.Ack(5)]
    assert node.drops == {"no_place": 1, "unasked": 1}
    assert not node.overlay.is_attached()


@pytest.mark.parametrize("digits", ["²", "9" * 5000])
def test_digits_other_than_decimal_are_refused_as_a_key(digits):
    with pytest.raises(AttributeFormatError, match="known keys are"):
        wb.TinyMQ(dimensions=(digits,))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"roots": ()}, "it must name from 1 to 255 nodes, each once"),
        ({"roots": (1, 1)}, "each once"),
        ({"roots": (-1,)}, "it must name"),
        ({"roots": (True,)}, "it must name"),
        ({"roots": 3}, "it must be a tuple or a list"),
        ({"key_bits": 0}, "from 1 to 127"),
        ({"key_bits": 17, "literal": True}, "must be at most 16"),
        ({"shortcuts": False, "literal": True}, "the published algorithms use them"),
        ({"dimensions": ()}, "it must name at least one key"),
        ({"dimensions": ("TEMP", "TEMP 0 50")}, "no key twice"),
        ({"dimensions": ("PAYLOAD",)}, "PAYLOAD, a blob"),
        ({"dimensions": ("TEMP 0",)}, 'it must be a key, as in "TEMP"'),
        ({"dimensions": ("TEMP 50 0",)}, "from a lower to a higher value"),
        ({"dimensions": ("TEMP 0 x",)}, "after the key, write two numbers"),
        ({"dimensions": (5,)}, "it must be a key"),
        ({"roots": (1.0,)}, "it must name"),
        ({"roots": ({}, {})}, "it must name"),
        ({"lease_s": 20.0}, "lease_s is 20.0 and refresh_s is 30.0; lease_s must be longer"),
        ({"refresh_s": 1e-7}, "refresh_s is 1e-07 s; it must be 0, or at least 0.001 s"),
        ({"info_s": 1e-7}, "info_s is 1e-07 s; it must be 0, or at least 0.001 s"),
        ({"retry_ms": 1e-4}, "retry_ms is 0.0001; it must be a number from 0.1 to 60000.0 ms"),
        ({"publish": "some"}, "it must be one of 'all', 'own'"),
    ],
)
def test_wrong_settings_are_refused(setting, message):
    with pytest.raises(ParameterError, match=message):
        TinyMQ(**setting)


def test_roots_may_come_from_numpy():
    assert TinyMQ(roots=list(np.arange(3))) == TinyMQ(roots=(0, 1, 2))


def test_pub2sub_has_no_literal_mode():
    with pytest.raises(ParameterError, match="has no parameter 'literal'"):
        Pub2Sub(literal=True)

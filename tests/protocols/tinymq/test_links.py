"""TinyMQ on bad links: no message loops on lossy links, and no message is lost beside one-way links."""

import random

import networkx as nx
import pytest

import workbench as wb
from tests.network import Network, taken
from tests.protocols.tinymq.message_paths import MessagePaths
from tests.protocols.tinymq.test_repair import acknowledge_everything, info, joined, key_of, node_time, query, sent
from workbench import draws
from workbench.attributes.text import parse
from workbench.protocols.tinymq import TinyMQ, wire
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.protocols.tinymq.rules import MOST_IN_FLIGHT, PACE_US

PROTOCOLS = (TinyMQ, Pub2Sub)
SECOND = 1_000_000
MOST_FRAMES = 8  # in one call of a node


def connected_graph(rng, most_nodes):
    """Return a random geometric graph that is connected."""
    while True:
        count = rng.randint(6, most_nodes)
        graph = nx.random_geometric_graph(count, rng.uniform(1.3, 2.2) / count**0.5, seed=rng.randint(1, 10**9))
        if nx.is_connected(graph):
            return graph


def directed(graph, draw_pdr):
    """Return both arcs of each link, with separate delivery ratios."""
    topology = nx.DiGraph()
    topology.add_nodes_from(sorted(graph))
    for a, b in graph.edges:
        topology.add_edge(a, b, pdr=draw_pdr())
        topology.add_edge(b, a, pdr=draw_pdr())
    return topology


def scenario(cls, topology, rng, radio, settle_s, events=40):
    """Return a scenario of three sinks, and events of random nodes after the network has settled."""
    nodes = sorted(topology)
    roots = tuple(rng.sample(nodes, rng.randint(1, 3)))
    protocol = cls(roots=roots, dimensions=("TEMP 0 50",), publish=rng.choice(["all", "own"]))
    sinks = rng.sample(nodes, 3)
    workload = [
        wb.subscribe(at=sink, what=f"TEMP GE {10 * i}, TEMP LE {10 * i + 25}", start_s=20 + i)
        for i, sink in enumerate(sinks)
    ]
    workload += [
        wb.publish(at=rng.choice(nodes), what=f"TEMP IS {rng.randint(0, 50)}", start_s=settle_s + i)
        for i in range(events)
    ]
    return wb.Scenario(topology, protocol, workload, radio, duration_s=settle_s + events + 20, seed=rng.randint(0, 999))


@pytest.mark.parametrize("cls", PROTOCOLS)
@pytest.mark.parametrize("seed", range(8))
def test_on_lossy_links_no_message_reaches_a_node_twice(cls, seed, monkeypatch):
    paths = MessagePaths(monkeypatch)
    rng = random.Random(seed)
    topology = directed(connected_graph(rng, 30), lambda: rng.uniform(0.7, 1))
    metrics = scenario(cls, topology, rng, wb.Radio(), 150).run("reference", "metrics").metrics
    assert paths.count > 100 and not paths.returned
    assert metrics.get("dropped_ttl", 0) == 0
    assert metrics["delivery_ratio"] == 1.0


# Each of these looped messages up to max_hops, and lost at least a quarter of all events.
def loops_of_messages(seed):
    rng = random.Random(seed)
    while True:
        count = rng.randint(10, 60)
        graph = nx.random_geometric_graph(count, rng.uniform(1.3, 2.2) / count**0.5, seed=rng.randint(1, 10**9))
        if nx.is_connected(graph):
            break
    topology = directed(graph, lambda: rng.uniform(0.7, 1))
    roots = tuple(rng.sample(range(count), rng.randint(1, 3)))
    protocol = TinyMQ(roots=roots, dimensions=("TEMP 0 50",), publish=rng.choice(["all", "own"]))
    sinks = rng.sample(range(count), 3)
    workload = [
        wb.subscribe(at=sink, what=f"TEMP GE {10 * i}, TEMP LE {10 * i + 25}", start_s=50 + i)
        for i, sink in enumerate(sinks)
    ]
    workload += [
        wb.publish(at=rng.randrange(count), what=f"TEMP IS {rng.randint(0, 50)}", start_s=400 + i) for i in range(40)
    ]
    return wb.Scenario(topology, protocol, workload, wb.Radio(), duration_s=480, seed=seed)


@pytest.mark.parametrize("seed", [33, 1246])
def test_child_that_moved_is_forgotten_although_frames_to_it_are_pending(seed):
    metrics = loops_of_messages(seed).run("reference", "metrics").metrics
    assert metrics["delivery_ratio"] == 1.0 and metrics.get("dropped_ttl", 0) == 0
    assert metrics["transmissions"] < 8000


@pytest.mark.parametrize("cls", PROTOCOLS)
@pytest.mark.parametrize("seed", range(8))
def test_everything_arrives_despite_one_way_arcs(cls, seed):
    rng = random.Random(seed)
    topology = directed(connected_graph(rng, 30), lambda: 1.0)
    nodes = sorted(topology)
    for _ in range(len(nodes)):
        a, b = rng.sample(nodes, 2)
        if not topology.has_edge(a, b) and not topology.has_edge(b, a):
            topology.add_edge(a, b, pdr=1.0)
    metrics = scenario(cls, topology, rng, wb.Radio(loss="none"), 90).run("reference", "metrics").metrics
    assert metrics["expected"] > 20 and metrics["delivery_ratio"] == 1.0


#  0 --- 1 --- 2 --- 3 --- 4 --- 5      roots are 0 and 5; node 1 hears node 5, which does not hear it
@pytest.mark.parametrize("mode", ["all", "own"])
def test_distance_over_a_one_way_arc_misleads_no_node(mode):
    topology = directed(nx.path_graph(6), lambda: 1.0)
    topology.add_edge(5, 1, pdr=1.0)
    workload = [wb.subscribe(at=sink, what="TEMP GE 1", start_s=60) for sink in (0, 5)]
    workload += [wb.publish(at=node, what="TEMP IS 20", every_s=5, start_s=120 + node * 0.1) for node in range(6)]
    protocol = TinyMQ(roots=(0, 5), dimensions=("TEMP 0 50",), publish=mode)
    metrics = (
        wb.Scenario(topology, protocol, workload, wb.Radio(loss="none"), 300, 1).run("reference", "metrics").metrics
    )
    assert metrics["delivery_ratio"] == 1.0
    assert metrics["sent_event"] < 1200


# --- a single node ---


def distance_to(node, tree=0):
    known = node.overlay.distances.get(tree)
    return None if known is None else (known.hops, known.next_hop)


def test_distance_counts_as_soon_as_the_neighbor_hears_this_node():
    node = joined()  # by node 1, whose distance is 1
    assert distance_to(node) == (2, 1)
    node.receive(info("01", 0, hops=0), 2, node_time(node))
    assert distance_to(node) == (2, 1)
    node.receive(info("01", 0, hops=0, heard=(5,)), 2, node_time(node))
    assert distance_to(node) == (1, 2)


def test_earlier_distance_counts_as_soon_as_the_neighbor_answers():
    node = joined()
    node.receive(info("01", 0, hops=0), 2, node_time(node))
    node.receive(wire.encode(9, wire.Join(0)), 2, node_time(node), False)
    assert distance_to(node) == (1, 2)


def test_shortcut_avoids_neighbors_that_may_not_hear_this_node():
    # Node 5 has the key 11; node 2 has 01, which is a prefix of the event's string.
    reached = []
    for heard in ((), (5,)):
        node = joined(dimensions=("TEMP 0 50",))
        node.receive(info("01", 0, heard=heard), 2, node_time(node))
        node.publish(parse("TEMP IS 15"), node_time(node))
        reached += [to for to, message in sent(node) if isinstance(message, wire.Event)]
    assert reached == [1, 2]


def infos_of(node, count):
    """Return the next infos that a node sends."""
    infos = []
    while len(infos) < count:
        node.wake(node.next_wake)
        infos += [message for _, message in sent(node) if isinstance(message, wire.Info)]
    return infos


def test_infos_name_neighbors_that_may_not_hear_in_order_of_their_last_naming():
    node = joined()  # by node 1, which hears it
    for neighbor in range(10, 40):
        node.receive(info("01", 0), neighbor, node_time(node))
    node.receive(info("01", 0, heard=(5,)), 40, node_time(node))
    node.overlay.neighbors[40].namings_left = 0
    named = [info_.heard for info_ in infos_of(node, 3)]
    assert len(named[0]) == len(named[1]) == 16
    assert set(named[0]) | set(named[1]) == set(range(10, 40))
    assert list(named[0]) == sorted(named[0])


def test_neighbor_that_names_the_node_is_named_three_times():
    node = joined()
    node.receive(info("01", 0, heard=(5,)), 10, node_time(node))
    assert [info_.heard for info_ in infos_of(node, 4)] == [(10,), (10,), (10,), ()]
    node.receive(info("01", 0, heard=(5,)), 10, node_time(node))  # an answer to the answer is not needed
    assert [info_.heard for info_ in infos_of(node, 1)] == [()]


def test_infos_name_no_neighbor_if_all_hear_each_other():
    network = Network(TinyMQ(roots=(0,)), nx.complete_graph(6).edges)
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(30)
    sent_before = len(network.sent)
    network.advance(60)
    infos = [wire.decode(frame)[1] for _, _, frame in network.sent[sent_before:]]
    assert [message for message in infos if isinstance(message, wire.Info)]
    assert not any(message.heard for message in infos if isinstance(message, wire.Info))
    known = [neighbor.hears_us for node in network.nodes.values() for neighbor in node.overlay.neighbors.values()]
    assert len(known) == 30 and all(known)


def parent_of_6(**options):
    """Return node 5 with the key 11, and node 6 below it with the key 111."""
    node = joined(dimensions=("TEMP 0 50",), **options)
    node.receive(wire.encode(7, wire.Join(0)), 6, node_time(node), False)
    acknowledge_everything(node)
    node.receive(info("111", 5), 6, node_time(node))
    return node


def test_query_for_a_child_that_has_moved_is_stored_at_its_new_position():
    node = parent_of_6()
    node.receive(wire.encode(8, query(((240, 240),))), 1, node_time(node), False)
    assert [to for to, message in sent(node) if isinstance(message, wire.Query)] == [6]
    assert not node.queries.stored
    node.receive(info("0101", 9), 6, node_time(node))
    assert node.overlay.positions[0].children == {}
    assert list(node.queries.stored) == [(0, 9, 0)]


def test_child_remains_while_its_grant_is_pending():
    node = joined()
    node.receive(wire.encode(7, wire.Join(0)), 6, node_time(node), False)
    node.receive(info("0101", 9), 6, node_time(node))  # sent before it had its key
    assert node.overlay.positions[0].children == {6: 0}


def frame_down(region, number=70):
    return wire.encode(number, query(region), wire.DOWN)


def test_message_for_another_universe_is_answered_with_an_info_instead_of_an_acknowledgement():
    node = joined()  # its universe: 192 to 255
    node.receive(frame_down(((0, 255),)), 1, node_time(node), False)
    assert node.drops == {"astray": 1} and sent(node) == [] and not node.queries.stored
    node.wake(node.next_wake)
    assert [message.positions[0].key for _, message in sent(node) if isinstance(message, wire.Info)] == ["11"]
    node.receive(frame_down(((200, 255),)), 1, node_time(node), False)
    assert (1, wire.Ack(70)) in sent(node)


def test_accepted_frame_is_acknowledged_again_although_it_would_be_misdirected_now():
    node = joined()
    node.receive(frame_down(((200, 255),)), 1, node_time(node), False)
    node.receive(info("0001", 0), 1, node_time(node))
    assert key_of(node) == "00011"
    node.take_frames()
    node.receive(frame_down(((200, 255),)), 1, node_time(node), False)
    assert sent(node) == [(1, wire.Ack(70))] and node.drops == {"repeated": 1}


def test_child_of_a_node_that_has_left_the_tree_keeps_its_message():
    node = joined(roots=(0, 8))
    frame = wire.encode(70, wire.Event(1, 6, 4, 2, 8, ((0, 0),), parse("TEMP IS 0")), wire.UP)
    node.receive(frame, 6, node_time(node), False)
    assert node.drops == {"astray": 1} and sent(node) == []


def test_silent_parent_is_probed_and_counts_as_lost_only_without_an_answer():
    keys = {}
    for answers in (True, False):
        node = joined()
        probed = []
        while node.next_wake < 38 * SECOND:
            node.wake(node.next_wake)
            for pending in [frame for frame in node.unicast.pending if isinstance(frame.message, wire.Probe)]:
                probed.append(pending.neighbor)
                if answers:
                    node.receive(wire.encode_ack(pending.number), 1, node_time(node), False)
            node.take_frames()
        assert set(probed) == {1}
        keys[answers] = key_of(node)
    assert keys == {True: "11", False: None}


def test_probe_is_acknowledged_and_nothing_else():
    node = joined()
    node.receive(wire.encode(70, wire.Probe()), 1, node_time(node), False)
    assert sent(node) == [(1, wire.Ack(70))] and node.drops == {}


#  2 requested by node 1; its next round comes by node 3, while an event's notification to node 3 is in transit
def test_notification_that_meets_its_query_is_forwarded_and_not_returned():
    node = joined()
    for number, (sender, round_) in enumerate(((1, 0), (3, 1))):
        node.receive(info("01", 0), sender, node_time(node))
        node.receive(wire.encode(number, query(((200, 255),), round_=round_)), sender, node_time(node), False)
    acknowledge_everything(node)
    notification = wire.Notification(0, 9, 0, False, 3, 4, 2, 0, "0001", parse("TEMP IS 40"))
    node.receive(wire.encode(50, notification), 3, node_time(node), False)
    assert [to for to, message in sent(node) if isinstance(message, wire.Notification)] == [1]


@pytest.mark.parametrize("retries", [10, 0])
def test_one_frame_causes_at_most_eight_frames_at_once(retries):
    node = joined(dimensions=("TEMP 0 50",), publish="own") if retries else silent_node()
    for sink in range(100, 400):
        node.receive(wire.encode(sink, query(((200, 255),), sink=sink)), 1, node_time(node), False)
        node.take_frames()
    event = wire.Event(0, 3, 4, 2, 8, ((225, 225),), parse("TEMP IS 44"))
    node.receive(wire.encode(60, event), 1, node_time(node), False)
    now, sinks = node_time(node), set()
    frames = node.take_frames()
    for _ in range(300):
        while frames:
            number, message = wire.decode(frames.pop(0)[1])
            if isinstance(message, wire.Notification):
                sinks.add(message.sink)
                node.receive(wire.encode_ack(number), 1, now, False)
                drawn = node.take_frames()
                assert len(drawn) <= MOST_FRAMES
                frames += drawn
        if len(sinks) == 300:
            break
        assert now < node.next_wake <= now + 2 * PACE_US
        now = node.next_wake
        node.wake(now)
        frames = node.take_frames()
        assert len(frames) <= MOST_FRAMES
    assert sinks == set(range(100, 400))


def test_neighbor_without_acknowledgements_gets_few_frames_and_does_not_delay_others():
    node = joined(acks="own")
    begin = now = node_time(node)
    for neighbor in [1] * 30 + [2]:
        node.unicast.send(neighbor, wire.Probe(), now)
    while now < begin + 200_000:
        now += PACE_US
        node.wake(now)
    sent_to = [pending.neighbor for pending in node.unicast.pending if pending.sent]
    assert sent_to == [1] * MOST_IN_FLIGHT + [2]


def test_acknowledgement_releases_the_next_frame_at_once():
    node = joined(acks="own")
    now = node_time(node)
    for _ in range(30):
        node.unicast.send(1, wire.Probe(), now)
    node.wake(now + PACE_US)
    numbers = [wire.number_of(frame) for to, frame in node.take_frames() if wire.number_of(frame) is not None]
    assert len(numbers) == MOST_IN_FLIGHT
    node.receive(wire.encode_ack(numbers[0]), 1, now + PACE_US, False)
    assert [number for _, frame in node.take_frames() if (number := wire.number_of(frame)) not in (None, *numbers)]


def test_node_with_a_full_queue_refuses_events_until_it_has_space_again():
    node = parent_of_6(acks="own", max_known=4)
    node.take_frames()
    for _ in range(2):
        node.unicast.send(1, wire.Probe(), node_time(node))
    event = wire.encode(70, wire.Event(0, 9, 1, 2, 8, ((224, 255),), parse("TEMP IS 44")))
    node.receive(event, 1, node_time(node), False)
    assert sent(node)[-1] == (1, wire.Refusal(70)) and len(node.unicast.pending) == 2
    node.receive(wire.encode_ack(node.unicast.pending[0].number), 1, node_time(node), False)
    node.receive(event, 1, node_time(node), False)
    assert (1, wire.Ack(70)) in sent(node) and node.drops == {}


def test_neighbor_that_refuses_a_frame_remains_and_the_message_is_finally_dropped_as_full():
    node = joined(acks="own")
    begin = now = node_time(node)
    node.unicast.send(1, wire.Probe(), now)
    number = node.unicast.pending[0].number
    while node.unicast.pending and now < begin + 60 * SECOND:
        node.receive(wire.encode_refusal(number), 1, now, False)
        now += SECOND // 2
        node.unicast.begin(now)
        assert node.unicast.wake(now) == []
    assert now - begin > node.settings.times.lost_after_us and node.drops == {"full": 1}


def test_events_that_a_full_neighbor_refuses_do_not_keep_other_frames_waiting():
    """Otherwise two neighbors full of events for each other would accept notifications and delay them for ever."""
    node = joined(acks="own")
    begin = now = node_time(node)
    event = wire.Event(0, 9, 1, 2, 8, ((224, 255),), parse("TEMP IS 44"))
    for message in [event] * 30 + [wire.Probe()] * 2:
        node.unicast.send(1, message, now)
    probes = [pending.number for pending in node.unicast.pending if isinstance(pending.message, wire.Probe)]
    delivered = set()
    while now < begin + 200_000:
        now += PACE_US
        node.wake(now)
        numbers = [wire.number_of(frame) for to, frame in node.take_frames() if to == 1]
        delivered.update(set(numbers).intersection(probes))
        for number in set(numbers) - {None}:
            node.receive((wire.encode_ack if number in probes else wire.encode_refusal)(number), 1, now, False)
    assert delivered == set(probes) and len(node.unicast.pending) == 30


def silent_node():
    """Return a root that acknowledges nothing, with queries from node 1."""
    node = TinyMQ(roots=(5,), dimensions=("TEMP 0 50",), retries=0, publish="own").make_node(5, draws.Stream(1))
    node.start(0)
    node.receive(info("01", 9), 1, 0)
    return node


def test_queued_messages_arrive_in_their_order_of_creation():
    network = Network(TinyMQ(roots=(0,), dimensions=("TEMP 0 50",)), [(0, 1)])
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(5)
    subscription = network.subscribe(1, "TEMP GE 1")
    network.advance(1)
    for value in range(10, 40):
        network.nodes[0].publish(parse(f"TEMP IS {value}"), network.now)
    network.settle()
    network.advance(2)
    assert sorted(taken(subscription)) == [f"TEMP IS {value}" for value in range(10, 40)]
    assert network.drops() == {}

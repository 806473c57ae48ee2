"""TinyMQ after failures and on lossy links: the overlay heals, queries move, and no events are lost afterwards."""

import networkx as nx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.network import Network, taken
from tests.protocols.tinymq.checks import assert_overlay_is_whole, graphs_with_roots
from workbench import draws
from workbench.attributes.text import parse
from workbench.protocols.contract import NOBODY
from workbench.protocols.tinymq import TinyMQ, wire
from workbench.protocols.tinymq.events import KeySet
from workbench.protocols.tinymq.pub2sub import Pub2Sub
from workbench.sim.engine import play
from workbench.sim.run import Run
from workbench.sim.trace import Recorder

PROTOCOLS = (TinyMQ, Pub2Sub)
SECOND = 1_000_000
FAILED_S = 10
# lost_after, two more epochs, and the refresh of queries, with the defaults
SETTLED_S = FAILED_S + 4 * 10 + 2 * 10 + 30 + 5


def played(scenario):
    """Return (nodes by address, metrics) of a run."""
    recorder = Recorder()
    nodes = {node.address: node for node in play(scenario, recorder)}
    return nodes, Run(scenario, "reference", recorder).metrics


def queries_and_events(sinks, publishers, start_s):
    workload = [
        wb.subscribe(at=sink, what=f"TEMP GE {i * 10}, TEMP LE {i * 10 + 15}", start_s=3)
        for i, sink in enumerate(sinks)
    ]
    return workload + [
        wb.publish(at=node, what=f"TEMP IS {7 * i % 50}", start_s=start_s + i * 0.1)
        for i, node in enumerate(publishers)
    ]


OPTIONS = st.fixed_dictionaries(
    {
        "publish": st.sampled_from(("all", "own")),
        "shortcuts": st.booleans(),
        "key_bits": st.sampled_from((8, 1, 3, 16, 62)),
    }
)


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(graph_and_roots=graphs_with_roots(), options=OPTIONS, data=st.data(), seed=st.integers(0, 99))
@settings(max_examples=examples(40))
def test_after_failures_the_overlay_is_whole_again_and_all_events_arrive(cls, graph_and_roots, options, data, seed):
    graph, roots = graph_and_roots
    dead = data.draw(st.sets(st.sampled_from(sorted(graph)), max_size=max(1, len(graph) // 3)))
    back = data.draw(st.sets(st.sampled_from(sorted(dead)))) if dead else set()
    up = graph.subgraph(set(graph) - (dead - back))
    with_root = [part for part in nx.connected_components(up) if part & set(roots)]
    assume(with_root)
    workload = []
    if dead - back:
        workload.append(wb.outage(at=sorted(dead - back), start_s=FAILED_S))
    if back:
        workload.append(wb.outage(at=sorted(back), start_s=FAILED_S, stop_s=FAILED_S + data.draw(st.integers(1, 80))))
    settled_s = SETTLED_S if not back else 2 * SETTLED_S
    one_part = sorted(with_root[0])
    sinks = [node for node in one_part if node not in dead][:4]
    workload += queries_and_events(sinks, one_part * (1 + 12 // len(one_part)), settled_s)
    # Without acknowledgements a neighbor is given up because its infos stop: later, but before the network has settled.
    retries = data.draw(st.sampled_from((10, 0)))
    protocol = cls(roots=roots, dimensions=("TEMP 0 50",), retries=retries, **options)
    nodes, metrics = played(wb.Scenario(graph, protocol, workload, duration_s=settled_s + 20, seed=seed))
    alive = {address: nodes[address] for part in with_root for address in part}
    assert_overlay_is_whole(alive, up.subgraph(alive), roots, options["key_bits"], every_tree=cls is Pub2Sub)
    assert metrics["delivery_ratio"] == 1.0 or metrics["expected"] == 0
    assert metrics["wrong_deliveries"] == metrics["duplicate_deliveries"] == 0


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(
    graph_and_roots=graphs_with_roots(most_nodes=16, most_roots=4),
    options=OPTIONS,
    loss=st.sampled_from((0.05, 0.1, 0.2)),
    seed=st.integers(0, 99),
)
@settings(max_examples=examples(30))
def test_on_lossy_links_the_protocols_own_retries_deliver_everything(cls, graph_and_roots, options, loss, seed):
    graph, roots = graph_and_roots
    workload = queries_and_events(sorted(graph)[:4], sorted(graph), 40)
    protocol = cls(roots=roots, dimensions=("TEMP 0 50",), **options)
    scenario = wb.Scenario(graph, protocol, workload, wb.Radio(loss=loss), duration_s=60, seed=seed)
    nodes, metrics = played(scenario)
    assert_overlay_is_whole(nodes, graph, roots, options["key_bits"], every_tree=cls is Pub2Sub, is_lossy=True)
    assert metrics["delivery_ratio"] == 1.0 or metrics["expected"] == 0
    assert metrics["wrong_deliveries"] == metrics["duplicate_deliveries"] == 0


def test_overlay_grows_despite_collisions():
    graph = wb.topology.disc(40, 50, 50, radius_m=14, seed=1)
    workload = queries_and_events((1, 2, 3), range(0, 40, 4), 40)
    radio = wb.Radio(collisions=True, csma=True)
    protocol = TinyMQ(roots=(0, 20), dimensions=("TEMP 0 50",))
    nodes, metrics = played(wb.Scenario(graph, protocol, workload, radio, duration_s=60, seed=3))
    assert_overlay_is_whole(nodes, graph, (0, 20), 8, is_lossy=True)
    assert metrics["lost_collision"] > 0 and metrics["delivery_ratio"] == 1.0


# --- a single node ---

HOT = parse("TEMP GE 20")


def info(key, parent, epoch=1, tree=0, hops=1, heard=()):
    return wire.encode_info(
        wire.Info((wire.InfoPosition(tree, epoch, parent, key),), (wire.InfoDistance(tree, epoch, hops),), heard)
    )


def joined(address=5, parent=1, parent_key="1", key="11", now=0, **options):
    """Return a node that has heard node 1, joined it and got a key."""
    node = TinyMQ(**options).make_node(address, draws.Stream(draws.make_key(2, address)))
    node.start(now)
    node.receive(info(parent_key, 0), parent, now)
    (request,) = woken(node)
    assert request[0] == parent and request[1] == wire.Join(0)
    node.receive(wire.encode(900, wire.Grant(0, 1, key)), parent, node_time(node), False)
    last = node.unicast._numbers.get(parent)
    for number in range(last - 3, last + 1):
        node.receive(wire.encode_ack(number), parent, node_time(node), False)
    node.take_frames()
    node.take_events()
    return node


def node_time(node):
    return node.next_wake - 1


def woken(node):
    """Wake a node once, when it is due, and return [(destination, message)] of what it sends."""
    node.wake(node.next_wake)
    return sent(node)


def sent(node):
    return [(to, wire.decode(frame)[1]) for to, frame in node.take_frames()]


def key_of(node, tree=0):
    position = node.overlay.position(tree)
    return None if position is None else position.key


def test_child_derives_its_new_key_from_its_parents_info():
    node = joined(key="101")
    node.receive(info("0001", 0), 1, node_time(node))
    assert key_of(node) == "000101"
    (key_set,) = [event for event in node.take_events() if isinstance(event, KeySet)]
    assert key_set == KeySet(1, "grant", 0, 1, 6, "000101")


def test_node_whose_parent_leaves_the_tree_loses_its_position_and_becomes_silent():
    node = joined(roots=(0, 8))
    node.receive(info("01", 8, tree=1), 1, node_time(node))
    assert key_of(node) is None
    (key_set,) = [event for event in node.take_events() if isinstance(event, KeySet)]
    assert (key_set.value, key_set.detail) == (NOBODY, "")
    # In the other tree it may join at once, because it has never been in that tree.
    assert node.overlay.joining[1].neighbor == 1


def test_orphan_joins_its_tree_only_with_a_newer_epoch():
    node = joined()
    node.receive(info("01", 0, epoch=1), 2, node_time(node))
    node.overlay.lose(1, node_time(node))
    assert key_of(node) is None and not node.overlay.joining
    node.receive(info("01", 0, epoch=2), 2, node_time(node))
    assert node.overlay.joining[0].neighbor == 2


def test_orphan_does_not_join_its_own_child():
    node = joined()
    node.receive(wire.encode(7, wire.Join(0)), 6, node_time(node), False)
    node.receive(info("111", 5, epoch=9), 6, node_time(node))
    node.overlay.lose(1, node_time(node))
    assert not node.overlay.joining


def test_join_delayed_by_an_outage_is_sent_afterwards_and_waits_its_full_time():
    node = TinyMQ().make_node(5, draws.Stream(1))
    node.start(0)
    node.receive(info("1", 0), 1, 0)
    node.wake(20 * SECOND)
    assert [(to, message) for to, message in sent(node) if isinstance(message, wire.Join)] == [(1, wire.Join(0))]
    assert node.next_wake > 20 * SECOND and node.overlay.joining[0].neighbor == 1


def test_without_a_gathering_time_a_join_is_sent_a_moment_later():
    node = TinyMQ(gather_ms=0.0).make_node(5, draws.Stream(1))
    node.start(0)
    node.receive(info("1", 0), 1, 7)
    node.wake(7)
    assert node.next_wake == 8


def test_slot_of_a_child_that_has_joined_elsewhere_is_free_again():
    node = joined()
    node.receive(wire.encode(7, wire.Join(0)), 6, node_time(node), False)
    acknowledge_everything(node)
    assert node.overlay.positions[0].children == {6: 0}
    node.receive(info("01", 0), 6, node_time(node))
    assert node.overlay.positions[0].children == {}


def acknowledge_everything(node):
    for pending in list(node.unicast.pending):
        node.receive(wire.encode_ack(pending.number), pending.neighbor, node_time(node), False)
    return node.take_frames()


def query(region, number=0, sink=9, lease_s=wire.LEASE_FOREVER_S, round_=0):
    return wire.Query(0, sink, number, round_, lease_s, 3, 0, "0001", 8, region, HOT)


def test_stored_queries_are_handed_over_to_a_child_that_joins():
    node = joined()  # its universe: 11000000 to 11111111
    node.receive(wire.encode(8, query(((200, 255),))), 1, node_time(node), False)
    assert list(node.queries.stored) == [(0, 9, 0)]
    node.receive(wire.encode(9, wire.Join(0)), 6, node_time(node), False)  # it gets 111: from 11100000
    messages = [message for to, message in sent(node) if to == 6]
    assert [message.region for message in messages if isinstance(message, wire.Query)] == [((224, 255),)]
    assert node.queries.stored[0, 9, 0].message.region == ((200, 223),)


def test_stored_queries_are_handed_over_when_a_node_gets_another_key():
    node = joined()
    node.receive(wire.encode(8, query(((200, 255),))), 1, node_time(node), False)
    acknowledge_everything(node)
    node.receive(info("0", 0), 1, node_time(node))
    assert not node.queries.stored
    ((to, moved),) = [(to, message) for to, message in sent(node) if isinstance(message, wire.Query)]
    assert (to, moved.region) == (1, ((200, 255),))


def test_query_ends_with_its_lease():
    node = joined()
    node.receive(wire.encode(8, query(((200, 255),), lease_s=2)), 1, 5 * SECOND, False)
    acknowledge_everything(node)
    while node.next_wake <= 7 * SECOND:
        node.wake(node.next_wake)
    assert not node.queries.stored


def test_query_of_an_older_round_is_stale():
    node = joined()
    for number, (round_, lease_s) in enumerate(((4, 0), (3, 60))):
        node.receive(
            wire.encode(number, query(((200, 255),), lease_s=lease_s, round_=round_)), 1, node_time(node), False
        )
    assert not node.queries.stored and node.drops == {"stale": 1}


def test_frame_is_sent_again_until_it_is_acknowledged_and_then_the_neighbor_is_lost():
    node = joined(retries=3)
    node.publish(parse("TEMP IS 0"), node_time(node))
    (first,) = node.take_frames()
    copies = []
    while node.overlay.position(0) is not None:
        node.wake(node.next_wake)
        copies += [frame for frame in node.take_frames() if frame == first]
    assert len(copies) == 3
    assert 1 not in node.overlay.neighbors
    # The message is not lost with the neighbor: it waits until the node has a position again.
    assert [message.sequence for message, *_ in node._waiting] == [0]


def test_frame_to_a_neighbor_that_is_heard_is_repeated_more_often():
    node = joined(retries=3)
    node.publish(parse("TEMP IS 0"), node_time(node))
    (first,) = node.take_frames()
    copies = 0
    while node.overlay.position(0) is not None:
        node.receive(info("1", 0), 1, node_time(node))
        node.wake(node.next_wake)
        copies += [frame for frame in node.take_frames() if frame == first] != []
    assert copies == 3 * 3


def test_repeated_frame_is_only_acknowledged_again():
    node = joined()
    frame = wire.encode(70, query(((200, 255),)))
    for _ in range(2):
        node.receive(frame, 1, node_time(node), False)
        assert sent(node) == [(1, wire.Ack(70))]
    assert node.drops == {"repeated": 1}


def test_new_frame_with_a_reused_number_is_not_taken_for_a_repetition():
    # Node 1 sends node 2 a frame, node 3 one frame less than there are numbers, and node 2 another one.
    sender, receiver = (TinyMQ(roots=(9,)).make_node(address, draws.Stream(address)) for address in (1, 2))
    before = [wire.encode(number, wire.Join(0)) for number in numbers_to(sender, 2, 1)]
    assert len(set(numbers_to(sender, 3, 0xFFFF))) == 0xFFFF
    for frame in [*before, wire.encode(numbers_to(sender, 2, 1)[0], wire.Join(0))]:
        receiver.receive(frame, 1, 0, False)
    assert receiver.drops == {"no_place": 2}


def numbers_to(node, neighbor, count):
    """Return the numbers of `count` frames to a neighbor, each of which is acknowledged at once."""
    numbers = []
    for _ in range(count):
        node.unicast.send(neighbor, wire.Join(0), 0)
        numbers.append(node.unicast.pending[0].number)
        node.unicast.take_acknowledgement(neighbor, numbers[-1], 0)
    node.take_frames()
    return numbers


def test_the_number_of_unanswered_frames_is_bounded():
    node = joined(max_known=2)
    for _ in range(3):
        node.publish(parse("TEMP IS 0"), node_time(node))
    assert [type(message) for _, message in sent(node)] == [wire.Event, wire.Event]
    assert node.drops == {"full": 1}


def test_without_retries_nothing_is_acknowledged():
    node = TinyMQ(retries=0, roots=(5,)).make_node(5, draws.Stream(1))
    node.start(0)
    node.receive(wire.encode(70, query(((200, 255),))), 1, 10, False)
    assert sent(node) == [] and not node.unicast.pending


tree_numbers = st.integers(0, 1)
addresses = st.sampled_from((0, 1, 5, 6, 7))
bit_strings = st.sampled_from(("", "1", "11", "01", "0001", "110", "00", "0" * 70 + "1", "0" * 65534 + "1"))
spans = st.sampled_from((((0, 255),), ((0, 0),), ((3, 9), (200, 220)), ((255, 255),)))
rounds = st.integers(0, 255)
readings = st.sampled_from(("TEMP IS 20", "HUMIDITY IS 4", "TEMP IS 1, TEMP IS 9", "")).map(parse)
wishes = st.sampled_from(("TEMP GE 20", "TEMP LE 1", "UV EQ_ANY", "")).map(parse)
leases = st.sampled_from((0, 1, 60, 65535))
directions = st.sampled_from((wire.OPEN, wire.UP, wire.DOWN))
any_message = st.one_of(
    st.builds(
        lambda positions, distances, heard: wire.Info(tuple(positions), tuple(distances), tuple(heard)),
        st.lists(st.builds(wire.InfoPosition, tree_numbers, st.integers(0, 9), addresses, bit_strings), max_size=2),
        st.lists(st.builds(wire.InfoDistance, tree_numbers, st.integers(0, 9), st.integers(0, 65535)), max_size=2),
        st.lists(addresses, max_size=3),
    ),
    st.builds(wire.Ack, st.integers(0, 65535)),
    st.builds(wire.Join, tree_numbers),
    st.builds(wire.Probe),
    st.builds(wire.Grant, tree_numbers, st.integers(0, 9), bit_strings),
    st.builds(
        wire.Query,
        *(tree_numbers, addresses, tree_numbers, rounds, leases, rounds, tree_numbers, bit_strings),
        *(st.just(8), spans, wishes),
    ),
    st.builds(wire.Event, tree_numbers, addresses, rounds, rounds, st.just(8), spans, readings),
    st.builds(
        wire.Notification,
        *(tree_numbers, addresses, tree_numbers, st.booleans(), addresses, rounds, rounds, tree_numbers),
        *(bit_strings, readings),
    ),
)


@pytest.mark.parametrize("cls", PROTOCOLS)
@given(
    steps=st.lists(st.tuples(any_message, addresses, st.booleans(), directions), max_size=25),
    address=st.sampled_from((0, 5)),
    retries=st.sampled_from((0, 2)),
    seed=st.integers(0, 9),
)
def test_node_survives_any_messages_of_neighbors_without_a_backlog(cls, steps, address, retries, seed):
    node = cls(roots=(0, 7), retries=retries).make_node(address, draws.Stream(seed))
    now = 1000
    node.start(now)
    subscription = node.subscribe(HOT, now)
    for number, (message, neighbor, passes, direction) in enumerate(steps):
        if isinstance(message, wire.Info):
            frame = wire.encode_info(message)
        else:
            is_routed = isinstance(message, (wire.Query, wire.Event, wire.Notification))
            routed = (
                wire.encode(number, message, direction if is_routed else wire.OPEN)
                if not isinstance(message, wire.Ack)
                else b""
            )
            frame = routed or wire.encode_ack(message.number)
        node.receive(frame, neighbor, now, isinstance(message, wire.Info))
        node.publish(parse("TEMP IS 3"), now)
        for _ in range(10 if passes else 0):
            now = node.next_wake
            node.wake(now)
            assert node.next_wake > now
        for _, frame_ in node.take_frames():
            wire.decode(frame_)
    assert all(
        position.key is None or position.key == "" or position.parent != NOBODY
        for position in node.overlay.positions.values()
    )
    subscription.unsubscribe(now)


#  0 --- 1 --- 2        2 subscribes; when 1 has lost the reverse path, the sink's key is used
def test_notification_finds_the_sink_by_its_key_without_a_reverse_path():
    network = Network(TinyMQ(roots=(0,)), [(0, 1), (1, 2)])
    for node in network.nodes.values():
        node.start(0)
    network.settle()
    network.advance(5)
    subscription = network.subscribe(2, "TEMP GE -300")
    for node in network.nodes.values():
        node.queries._paths.values.clear()
    network.publish(0, "TEMP IS 20")
    assert taken(subscription) == ["TEMP IS 20"]
    messages = [wire.decode(frame)[1] for _, _, frame in network.sent]
    notifications = [message for message in messages if isinstance(message, wire.Notification)]
    assert notifications and all(notification.by_key for notification in notifications)


def test_restarted_root_has_newer_epochs():
    epochs = []
    for boot in (0, 1):
        node = TinyMQ(roots=(5,)).make_node(5, draws.Stream(1))
        node.start(0, boot)
        epochs.append(node.overlay.positions[0].epoch)
    assert epochs[1] > epochs[0] + 1_000_000


def test_message_that_waits_too_long_is_dropped():
    node = joined(roots=(0, 8), publish="own")
    node.route(wire.Event(1, 3, 4, 2, 8, ((0, 0),), parse("TEMP IS 0")), 3, node_time(node))
    now = node_time(node)
    while "waited" not in node.drops:
        assert node.next_wake < now + 200 * SECOND
        node.wake(node.next_wake)
        node.receive(info("1", 0), 1, node_time(node))
    assert node.drops["waited"] == 1


@pytest.mark.parametrize("is_event", [True, False])
def test_published_algorithms_do_not_take_a_retry_after_a_silent_neighbor_for_a_loop(is_event):
    # Node 5 sends to its parent, node 1, which is gone; it joins node 2 and sends the same message to it.
    node = joined(literal=True, retries=1, dimensions=("TEMP 0 50",))
    if is_event:
        node.publish(parse("TEMP IS 0"), node_time(node))
    else:
        node.subscribe(parse("TEMP LE 1"), node_time(node))
    kind = wire.Event if is_event else wire.Query
    destinations = []
    while not destinations:
        destinations = [to for to, message in sent(node) if isinstance(message, kind)]
        node.wake(node.next_wake)
    assert destinations == [1]
    while node.overlay.positions.get(0) is not None and node.overlay.position(0) is not None:
        node.wake(node.next_wake)
    node.take_frames()
    node.receive(info("01", 0, epoch=9), 2, node_time(node))
    for _ in range(5):
        if node.overlay.joining:
            break
        node.wake(node.next_wake)
    node.receive(wire.encode(900, wire.Grant(0, 9, "011")), 2, node_time(node), False)
    assert key_of(node) == "011"
    frames = sent(node)
    for _ in range(3):
        node.wake(node.next_wake)
        frames += sent(node)
    assert 2 in [to for to, message in frames if isinstance(message, kind)]
    assert not {"loop", "duplicate"} & set(node.drops)

"""TinyMQ and its radio: reports instead of acknowledgements, pacing on a busy channel, and unanswered joins."""

import networkx as nx
import pytest

import workbench as wb
from tests.protocols.tinymq.test_links import frame_down, parent_of_6
from tests.protocols.tinymq.test_repair import info, joined, node_time
from workbench import draws
from workbench.attributes.text import parse
from workbench.protocols.tinymq import TinyMQ, wire
from workbench.protocols.tinymq.rules import join_pause_us

SECOND = 1_000_000
BUSY = wb.Radio(collisions=True, csma=True, retries=3)


def event(value, tree=0):
    """Return an event of node 9 with this number, for the universe of the child with key 111."""
    return wire.Event(tree, 9, value, 2, 8, ((224, 255),), parse(f"TEMP IS {43 + value}"))


def pending(node):
    return [(frame.neighbor, frame.number) for frame in node.unicast.pending]


def reporting(**options):
    """Return node 5 with child 6; its radio has reported an acknowledgement."""
    node = parent_of_6(**options)
    node.take_frames()
    node.sent(1, wire.encode(0, wire.Probe()), True, node_time(node))
    assert node.take_frames() == []
    return node


def send_down(node, *values):
    """Pass events for the child's universe to the node; return the frames to the child."""
    for value in values:
        node.receive(wire.encode(100 + value, event(value)), 1, node_time(node), False)
    return [frame for to, frame in node.take_frames() if to == 6]


def test_reporting_radio_gets_one_frame_at_a_time_and_the_next_after_its_report():
    node = reporting()
    (first,) = send_down(node, 1, 2, 3)
    assert not wire.wants_ack(first) and len(pending(node)) == 3
    node.sent(6, first, True, node_time(node))
    ((to, second),) = node.take_frames()
    assert to == 6 and wire.decode(second)[1].sequence == 2
    node.sent(6, second, False, node_time(node))
    ((_, third),) = node.take_frames()
    assert wire.decode(third)[1].sequence == 3


def test_frame_that_the_radio_has_not_reported_is_not_sent_again():
    node = reporting(info_s=0.0)
    (first,) = send_down(node, 1)
    end = node_time(node) + 8 * 50_000
    while node.next_wake is not None and node.next_wake < end:
        node.wake(node.next_wake)
    assert [frame for to, frame in node.take_frames() if to == 6] == []
    for _ in range(2):  # the frame waits for another turn, and is kept
        node.wake(node.unicast.pending[0].due_us)
    assert [frame for to, frame in node.take_frames() if to == 6] == [first]  # without the report


def test_frame_that_the_radio_gave_up_is_sent_again_after_a_pause():
    node = reporting()
    (first,) = send_down(node, 1)
    now = node_time(node)
    node.sent(6, first, False, now)
    assert node.take_frames() == []
    (waiting,) = node.unicast.pending
    assert now + 50_000 <= waiting.due_us <= now + 75_000


def test_before_the_first_report_frames_ask_for_acks_and_reports_of_failures_change_nothing():
    node = parent_of_6()
    node.take_frames()
    node.sent(1, wire.encode(0, wire.Probe()), False, node_time(node))
    frames = send_down(node, 1, 2)
    assert len(frames) == 2 and all(map(wire.wants_ack, frames))


@pytest.mark.parametrize("options", [{"acks": "own"}, {"retries": 0}])
def test_nodes_with_their_own_or_no_acknowledgements_ignore_reports(options):
    node = parent_of_6(**options)
    node.take_frames()
    node.sent(1, wire.encode(0, wire.Probe()), True, node_time(node))
    frames = send_down(node, 1, 2)
    assert len(frames) == 2 and all(map(wire.wants_ack, frames))


def test_receiver_acknowledges_frames_on_request_and_remembers_all():
    node = joined()
    frame = wire.without_ack(frame_down(((200, 255),)))
    node.receive(frame, 1, node_time(node), False)
    node.receive(frame, 1, node_time(node), False)
    assert node.take_frames() == [] and node.drops == {"repeated": 1} and list(node.queries.stored) == [(0, 9, 0)]


def test_misdirected_frame_without_an_acknowledgement_request_is_refused():
    node = joined()
    node.receive(wire.without_ack(frame_down(((0, 255),))), 1, node_time(node), False)
    assert node.take_frames() == [(1, wire.encode_refusal(70))] and node.drops == {"astray": 1}


def test_refused_frame_is_sent_again_and_other_frames_are_forgotten():
    node = reporting()
    (first,) = send_down(node, 1)
    node.sent(6, first, True, node_time(node))
    assert len(pending(node)) == 1 and not node.unicast.is_waiting_for(6)
    node.receive(wire.encode_refusal(wire.number_of(first)), 6, node_time(node), False)
    assert node.unicast.is_waiting_for(6)
    node.wake(node.unicast.pending[0].due_us)
    assert (6, first) in node.take_frames()
    node.sent(6, first, True, node_time(node))
    node.wake(node.unicast.pending[0].due_us)
    assert pending(node) == [] and node.overlay.positions[0].children == {6: 0}


def test_accepted_message_is_not_sent_elsewhere_when_the_child_moves():
    node = reporting()
    (first,) = send_down(node, 1)
    node.sent(6, first, True, node_time(node))
    node.receive(info("0101", 9), 6, node_time(node))
    assert node.overlay.positions[0].children == {}
    assert node.drops == {} and not any(wire.number_of(frame) is not None for _, frame in node.take_frames())


def test_report_shows_that_a_neighbor_hears_this_node():
    node = joined()
    node.receive(info("1", 0), 7, node_time(node))
    assert not node.overlay.is_two_way(node.overlay.neighbors[7])
    node.sent(7, wire.encode(0, wire.Probe()), True, node_time(node) + SECOND)
    assert node.overlay.is_two_way(node.overlay.neighbors[7])
    assert node.overlay.neighbors[7].heard_us == node_time(node) + SECOND


@pytest.mark.parametrize("frame", [b"", b"\x4a", b"\xff\xff\xff\xff", wire.encode_ack(3), wire.encode_refusal(3)])
@pytest.mark.parametrize("ok", [True, False])
def test_report_of_any_bytes_raises_nothing(frame, ok):
    node = reporting()
    node.sent(6, frame, ok, node_time(node))
    node.sent(99, wire.encode(7, wire.Probe()), ok, node_time(node))
    assert node.take_frames() == []


# Joins


def deaf_root(duration_s=600.0, **options):
    """Return a scenario with a root amid nine nodes that hear it; it hears none of them."""
    graph = nx.DiGraph()
    graph.add_nodes_from((node, {"pos": (float(node), 0.0)}) for node in range(10))
    graph.add_edges_from((0, node, {"pdr": 1.0}) for node in range(1, 10))
    radio = wb.Radio(csma=True, collisions=True, retries=3)
    return wb.Scenario(graph, TinyMQ(roots=(0,), **options), [], radio, duration_s=duration_s, seed=1)


def joins(run):
    """Return the times at which joins were sent, in seconds; repetitions of the radio count, too."""
    rows = run.trace.to_pandas()
    return rows[(rows.event == "sent") & (rows.message == "join")].time_us.to_numpy() / 1e6


@pytest.mark.parametrize("acks", ["radio", "own"])
def test_pause_between_joins_at_a_deaf_root_grows(acks):
    times_s = joins(deaf_root(acks=acks).run("fast"))
    assert 0 < len(times_s) < 9 * 8 * 11 * 4  # seven or eight joins per node in ten minutes, with 11 frames of 4 tries
    assert (times_s > 300).sum() < len(times_s) / 4


def test_pause_doubles_up_to_a_limit_and_is_0_without_epochs():
    assert [join_pause_us(failed, 10) for failed in (1, 2, 3, 7, 8, 500)] == [10, 20, 40, 640, 640, 640]
    assert join_pause_us(3, 0) == 0


def test_silent_neighbor_gets_a_join_after_the_pause_and_others_at_once():
    node = TinyMQ(lost_after=1000.0).make_node(5, draws.Stream(draws.make_key(2, 5)))
    node.start(0)
    node.receive(info("1", 0), 1, 0)
    while node.overlay.neighbors != {}:  # until node 1 counts as lost, because it answers nothing
        node.wake(node.next_wake)
    lost_us = node_time(node)
    node.receive(info("1", 0, epoch=2), 1, lost_us)
    assert node.overlay.joining == {}
    node.receive(info("01", 0, epoch=2), 2, lost_us)
    assert [join.neighbor for join in node.overlay.joining.values()] == [2]
    node.overlay.joining.clear()
    node.overlay.lose(2, lost_us)
    node.receive(info("1", 0, epoch=4), 1, lost_us + 11 * SECOND)
    assert [join.neighbor for join in node.overlay.joining.values()] == [1]


# Load


def dense_scenario(seed=1):
    """Return a scenario of 30 nodes in a small area, with five roots as sinks and bursts that fill the channel."""
    topology = wb.topology.disc(60, 60, 30, radius_m=20, seed=seed)
    roots = (0, 12, 24, 36, 48)
    workload = [wb.subscribe(root, "TEMP GE 20", start_s=1) for root in roots]
    workload += [
        wb.publish(node, f"TEMP IS {20 + node % 10}", start_s=30 + node / 40, every_s=5.0, stop_s=70)
        for node in range(5, 60, 4)
    ]
    return wb.Scenario(topology, wb.TinyMQ(roots=roots), workload, BUSY, duration_s=90, seed=seed)


def test_nearly_saturated_channel_with_five_roots_delivers():
    measured = dense_scenario().run("fast", "metrics").metrics
    assert measured["delivery_ratio"] > 0.95
    own = (
        dense_scenario()
        .replace(protocol=wb.TinyMQ(roots=(0, 12, 24, 36, 48), acks="own"))
        .run("fast", "metrics")
        .metrics
    )
    assert own["delivery_ratio"] < 0.9 * measured["delivery_ratio"]
    assert own["transmissions"] > 2 * measured["transmissions"]

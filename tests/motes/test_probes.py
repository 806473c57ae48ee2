"""The node that measures links: Trickle's intervals, its reports, frames that are not probes. Runs on motes too."""

from struct import pack

from workbench import draws
from workbench.motes.probes import HEADER, HISTORY, MOST_NEIGHBORS, TYPE, ProbeHeard, ProbeNode
from workbench.protocols.contract import NUMBERS_PER_BOOT, Settings

SECOND = 1000000


def make_node(boot=0, **settings):
    values = {"shortest_interval_s": 1.0, "longest_interval_s": 8.0, "until_s": 10000.0, "size_B": 32}
    values.update(settings)
    node = ProbeNode(7, Settings(values), draws.Stream(3))
    node.start(0, boot)
    return node


def probe(number, origin=4):
    return pack(HEADER, TYPE, origin, number)


def hear(node, *numbers, now=0):
    """Let the node hear probes of neighbor 4; return its reports."""
    for number in numbers:
        node.receive(probe(number), 4, now)
    return [event for event in node.take_events() if isinstance(event, ProbeHeard)]


def wake_times(node, count):
    times = []
    for _ in range(count):
        times.append(node.next_wake)
        node.wake(node.next_wake)
    return times


def test_probes_are_sent_in_the_second_half_of_intervals_that_double_up_to_the_longest():
    node = make_node()
    starts, lengths = [0, 1, 3, 7, 15, 23], [1, 2, 4, 8, 8, 8]
    for time, start, length in zip(wake_times(node, 6), starts, lengths):  # noqa: B905 - MicroPython has no strict
        assert (start + length / 2) * SECOND <= time < (start + length) * SECOND
    frames = node.take_frames()
    assert [node.describe(frame) for _, frame in frames] == [("probe", 7, number) for number in range(6)]
    assert {(destination, len(frame)) for destination, frame in frames} == {(None, 32)}


def test_a_node_that_woke_up_late_sets_no_time_in_the_past():
    node = make_node()
    node.wake(50 * SECOND)
    assert node.next_wake > 50 * SECOND


def test_no_probe_is_sent_after_the_end():
    node = make_node(until_s=3.5)
    while node.next_wake is not None:
        last = node.next_wake
        node.wake(last)
    assert len(node.take_frames()) == 2 and last >= 3.5 * SECOND
    hear(node, 0, now=4 * SECOND)
    assert node.next_wake is None


def test_a_new_neighbor_and_a_restarted_one_begin_the_shortest_interval_again():
    node = make_node()
    wake_times(node, 6)
    for number, is_new in ((0, True), (1, False), (40, False), (NUMBERS_PER_BOOT, True), (0, True)):
        now = node.next_wake - 1
        hear(node, number, now=now)
        assert (node.next_wake >= now + SECOND // 2) == is_new
        wake_times(node, 6)


def test_a_restarted_node_numbers_its_probes_from_a_new_first_number():
    node = make_node(boot=2)
    wake_times(node, 1)
    assert node.describe(node.take_frames()[0][1]) == ("probe", 7, 2 * NUMBERS_PER_BOOT)


def test_a_report_contains_the_history_of_a_neighbors_probes():
    events = hear(make_node(), 5, 6, 8, 7, 38, 8, 100)
    assert [(event.sequence, event.value) for event in events] == [
        (5, 0b1),
        (6, 0b11),
        (8, 0b1101),
        (8, 0b1111),
        (38, 1),
        (100, 1),
    ]
    assert events[0] == ProbeHeard(4, "probe", 4, 5, 1, "")
    largest = hear(make_node(), *range(50))[-1]
    assert (largest.sequence, largest.value) == (49, (1 << HISTORY) - 1)


def test_repeated_probes_and_other_frames_are_dropped_with_a_reason():
    node = make_node()
    hear(node, 3, 3, 60, 3)
    for frame in (b"", probe(1)[:-1], b"F" + probe(1)[1:], probe(1, origin=5)):
        node.receive(frame, 4, 0)
    assert node.drops == {"duplicate": 2, "malformed": 4}
    for neighbor in range(100, 100 + MOST_NEIGHBORS):
        node.receive(probe(0, origin=neighbor), neighbor, 0)
    assert node.drops["neighbors"] == 1


def test_readings_of_a_sensor_are_discarded():
    node = make_node(boot=1)
    assert node.publish((), 0) == NUMBERS_PER_BOOT
    assert not node.take_frames() and not node.take_events()

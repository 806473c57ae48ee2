"""The base class of radios with datagrams: repetitions, restarts and counts, with a made-up radio under Python."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.draws import Stream
from workbench.motes.program import HARDWARE
from workbench.protocols.contract import NOBODY

SECOND = 1_000_000


@pytest.fixture(scope="module")
def datagrams():
    """Import the module from the folder of a mote's files."""
    sys.path.insert(0, str(HARDWARE / "mote"))
    import datagrams

    yield datagrams
    sys.path.remove(str(HARDWARE / "mote"))
    del sys.modules["datagrams"]


@pytest.fixture(scope="module")
def make_radio(datagrams):
    """Return a function that makes a radio whose refusals and received datagrams are lists."""

    class Radio(datagrams.DatagramRadio):
        def __init__(self, **settings):
            super().__init__(1, {"jitter_ms": 0, **settings}, Stream(1))
            self.refusals, self.arriving, self.sent, self.restarts, self.is_acknowledged = [], [], [], 0, None
            self.is_broken = False

        def transmit(self, destination, datagram):
            if self.refusals:
                raise self.refusals.pop(0)
            self.sent.append((destination, datagram))
            return self.is_acknowledged

        def receive(self):
            arrived = self.arriving.pop(0) if self.arriving else None
            if isinstance(arrived, Exception):
                raise arrived
            return arrived

        def restart(self):
            if self.is_broken:
                raise OSError("dead")
            self.restarts += 1

    return Radio


def datagram(sender=2, destination=NOBODY, run=0, frame=b"frame"):
    return struct.pack("<2sIIi", b"WR", run, sender, destination) + frame


def test_a_refused_frame_is_sent_again_with_growing_delays(make_radio):
    radio = make_radio()
    radio.refusals = [OSError(-12391, "ESP_ERR_ESPNOW_NO_MEM"), OSError(12)]
    radio.send(None, b"frame", 0)
    assert radio.sent == [] and radio.next_us == 20_000
    radio.poll(20_000)
    assert radio.next_us == 60_000
    radio.poll(60_000)
    assert [sent[14:] for _, sent in radio.sent] == [b"frame"] and radio.next_us is None
    assert radio.faults == {"no_mem": 1, "refused": 1}


def test_frames_are_given_up_after_four_tries_and_the_radio_is_restarted_after_eight(make_radio):
    radio = make_radio()
    radio.refusals = [OSError(12)] * 8
    for frame in (b"one", b"two"):
        radio.send(None, frame, 0)
    for now in (20_000, 60_000, 140_000):
        radio.poll(now)
    assert radio.faults == {"refused": 8, "lost": 2, "restarts": 1} and radio.restarts == 1
    radio.send(None, b"three", 150_000)
    assert len(radio.sent) == 1


def test_the_oldest_of_too_many_waiting_frames_is_lost(datagrams, make_radio):
    radio = make_radio(jitter_ms=1000)
    for number in range(datagrams.MOST_WAITING + 3):
        radio.send(None, bytes((number,)), 0)
    radio.poll(2 * SECOND)
    assert radio.faults == {"lost": 3}
    assert sorted(sent[14] for _, sent in radio.sent) == list(range(3, datagrams.MOST_WAITING + 3))


def test_a_silent_radio_is_restarted_once_per_interval_and_a_failure_to_restart_is_counted(make_radio):
    radio = make_radio(quiet_s=2)
    radio.poll(0)
    for now in range(0, 7 * SECOND, SECOND // 2):
        radio.poll(now)
    assert radio.faults == {"silent": 2, "restarts": 2}
    radio.is_broken = True
    radio.poll(9 * SECOND)
    assert radio.faults == {"silent": 3, "restarts": 2, "restart_failed": 1}
    assert "silent" not in make_radio(quiet_s=0).faults


def test_each_error_while_receiving_is_counted_and_later_frames_arrive(make_radio):
    radio = make_radio()
    for error in (MemoryError(), ValueError("buffer error"), OSError(-12389)):
        radio.arriving = [error, (datagram(), -60)]
        assert radio.poll(0) == []
        assert radio.poll(0) == [(b"frame", 2, True, -60)]
    assert radio.faults == {"no_heap": 1, "damaged": 2, "restarts": 2}


def test_only_datagrams_of_the_run_for_this_node_from_neighbors_are_received(make_radio):
    radio = make_radio(run=7, neighbors=[2, 3])
    arriving = [
        datagram(run=7),
        datagram(run=8),
        datagram(1, run=7),
        datagram(4, run=7),
        datagram(3, destination=1, run=7),
        datagram(3, destination=9, run=7),
    ]
    radio.arriving = [(each, 0) for each in arriving]
    assert radio.poll(0) == [(b"frame", 2, True, 0), (b"frame", 3, False, 0)]
    assert radio.foreign == 1


def test_outcomes_are_those_of_unicasts_that_the_radio_knows(make_radio):
    radio = make_radio()
    for is_acknowledged in (True, False, None):
        radio.is_acknowledged = is_acknowledged
        radio.send(2, b"frame", 0)
        radio.send(None, b"to all", 0)
    assert radio.outcomes() == [(2, b"frame", True), (2, b"frame", False)]
    assert radio.outcomes() == []


def test_a_frame_that_does_not_fit_is_counted(make_radio):
    radio = make_radio()
    radio.send(None, bytes(1487), 0)
    radio.send(None, bytes(1486), 0)
    assert radio.faults == {"too_long": 1} and len(radio.sent) == 1


def test_each_changed_count_is_reported_once(make_radio):
    radio, reports = make_radio(), []
    radio.count("lost")
    for _ in range(2):
        radio.report(lambda *report: reports.append(report))
    radio.count("lost", 2)
    radio.report(lambda *report: reports.append(report))
    assert [(name, count) for name, _, count, _ in reports] == [("radio_fault", 1), ("radio_fault", 3)]
    assert reports[0][3].startswith("lost: a frame was given up")


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_any_datagrams_are_received_or_ignored(make_radio, arriving):
    radio = make_radio()
    radio.arriving = [(bytes(each), 0) for each in arriving] + [(b"WR" + each, 0) for each in arriving]
    for _ in range(4):
        for frame, neighbor, is_broadcast, _ in radio.poll(0):
            assert neighbor != 1 and isinstance(frame, bytes) and is_broadcast in (True, False)
    assert radio.faults == {}

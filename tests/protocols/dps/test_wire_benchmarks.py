"""DPS's codec benchmark and stress test: both methods give the same results, and damaged messages only DecodeError."""

import argparse
import sys

import pytest

from tests.repository import REPOSITORY

sys.path.append(str(REPOSITORY / "benchmarks"))
import dps_codec
import dps_fuzz

from workbench.protocols.dps.cose import Security


def test_single_and_batch_processing_do_the_same_work():
    mesh = dps_codec.Mesh()  # it compares their results
    assert mesh.filters.shape == (len(dps_codec.PUBLISHED), 8192 // 64)
    assert mesh.needs.shape == (len(dps_codec.SUBSCRIBED), 4)
    assert dps_codec.comparisons(mesh).keys() == dps_codec.REFERENCE.keys()


@pytest.mark.parametrize("messages", [dps_fuzz.own_messages, dps_fuzz.real_messages], ids=["ours", "captured"])
def test_damaged_messages_are_read_or_refused(messages, request):
    if messages is dps_fuzz.real_messages:
        request.getfixturevalue("dps_captured")
    keys, frames, _ = messages()
    security = Security(keys)
    assert {dps_fuzz.find_outcome(security, frame) for frame in frames} <= {"read", "opened"}
    options = argparse.Namespace(messages=1000, seed=7)
    outcomes = [dps_fuzz.find_outcome(security, frame) for frame in dps_fuzz.damaged_messages(frames, options)]
    assert {"read", "refused"} <= set(outcomes) <= {"read", "refused", "opened", "not opened"}
    assert list(dps_fuzz.damaged_messages(frames, options)) == list(dps_fuzz.damaged_messages(frames, options))


def test_messages_designed_to_be_slow_are_decoded_or_refused_with_little_memory():
    security = Security(dps_fuzz.own_messages()[0])
    dps_fuzz.tracemalloc.start()
    try:
        for name, frame in dps_fuzz.worst_messages(4096).items():
            assert len(frame) <= 4096, name
            # The longest vector has 64 KiB; nested or counted items may need a multiple of the message.
            assert dps_fuzz.memory_B(security, frame) < 4 * 65536 + 100 * 4096, name
    finally:
        dps_fuzz.tracemalloc.stop()


@pytest.mark.parametrize(("name", "reason"), [("topics for all", "topics"), ("long topics for all", "no_match")])
def test_filter_that_includes_everything_causes_a_bounded_number_of_topic_comparisons(name, reason):
    node = dps_fuzz.node_with(3)
    node.receive(dps_fuzz.worst_messages()[name], "stranger", 0, False)
    assert node.drops == {reason: 1}

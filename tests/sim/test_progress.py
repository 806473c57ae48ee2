"""Metrics of time and of message kinds: deadlines, undelivered samples, steady delivery, recovery, set-up."""

import math

import numpy as np
import pytest

import workbench as wb
from workbench.sim.metrics import natures
from workbench.sim.metrics.progress import Progress, first_steady, timeliness

SECOND = 1_000_000


def progress(delivered, expected=None, delivered_us=(), period_s=1):
    """Return the progress of publications at 0 s, 1 s, ..., each of which expects one sample."""
    count = len(delivered)
    expected = np.ones(count, np.int64) if expected is None else np.array(expected)
    times_us = np.arange(count) * period_s * SECOND
    return Progress(times_us, expected, np.array(delivered), np.array(delivered_us, np.int64))


@pytest.mark.parametrize(
    ("delivered", "index"),
    [
        ([1] * 20, 0),
        ([0] * 5 + [1] * 20, 3),  # from publication 3 on 20 of 22 arrive, from publication 2 on 20 of 23
        ([1] * 20 + [0], 0),  # the last one alone does not count
        ([1] * 30 + [0] * 10, None),
        ([0] * 20, None),
        ([1], 0),
        ([0, 1, 1], None),  # at least ten publications are needed
    ],
)
def test_steady_delivery_begins_where_nine_of_ten_later_samples_arrive(delivered, index):
    assert first_steady(np.ones(len(delivered)), np.array(delivered)) == index


def test_times_count_from_the_first_expected_sample():
    delivery_progress = progress([0, 0, 0] + [1] * 20, [0, 0, 1] + [1] * 20, [3_500_000])
    times = delivery_progress.times(np.zeros(0, np.int64))
    assert times["time_to_first_s"] == 1.5 and times["time_to_steady_s"] == 0.0
    assert math.isnan(times["recovery_s"])


def test_recovery_is_the_longest_time_from_a_change_to_steady_delivery_before_the_next():
    delivery_progress = progress([1] * 10 + [0] * 3 + [1] * 30 + [0] * 1 + [1] * 30, delivered_us=[0])
    assert delivery_progress.times(np.array([10 * SECOND]))["recovery_s"] == 0.0  # 60 of 64 arrive
    assert (
        delivery_progress.times(np.array([10 * SECOND, 20 * SECOND]))["recovery_s"] == math.inf
    )  # of 10 only 7 arrive
    late = progress([1] * 10 + [0] * 10 + [1] * 30, delivered_us=[0])
    assert late.times(np.array([10 * SECOND]))["recovery_s"] == 7.0
    assert late.times(np.array([8 * SECOND, 9_500_000]))["recovery_s"] == 7.5


def test_undelivered_samples_are_infinitely_late():
    times = timeliness(np.array([1, 2, 3, 11]) * SECOND, expected=8)
    assert times["within_1s_ratio"] == 1 / 8 and times["within_10s_ratio"] == 3 / 8
    assert times["latency_all_ms_p50"] == 11_000 and times["latency_all_ms_p95"] == math.inf
    assert timeliness(np.array([1, 2]), 2)["latency_all_ms_max"] == 0.002
    assert all(math.isnan(value) for value in timeliness(np.zeros(0), 0).values())


def test_times_are_nan_without_expected_samples():
    assert all(math.isnan(value) for value in progress([0, 0], [0, 0]).times(np.zeros(0, np.int64)).values())
    silent = progress([0, 0]).times(np.zeros(0, np.int64))
    assert silent["time_to_first_s"] == silent["time_to_steady_s"] == math.inf


@pytest.mark.parametrize("record", ["trace", "metrics"])
@pytest.mark.parametrize("engine", ["reference", "fast"])
def test_frames_and_bytes_are_split_by_the_kind_of_their_message(engine, record):
    workload = [wb.subscribe(0, "TEMP GE 20", start_s=5), wb.publish(8, "TEMP IS 25", start_s=10, every_s=5)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(), workload, duration_s=40)
    metrics = scenario.run(engine=engine, record=record).metrics
    assert metrics["frames_upkeep"] == metrics["sent_interest"] + metrics["sent_reinforcement"] > 0
    assert metrics["frames_use"] == metrics["sent_data"] and metrics["frames_set_up"] == 0
    for unit, total in (("frames", "transmissions"), ("bytes", "bytes_sent")):
        assert sum(metrics[f"{unit}_{nature}"] for nature in natures.NATURES) == metrics[total]


def test_usefulness_of_a_flood_is_the_share_of_receptions_that_are_not_duplicates():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(2, "TEMP IS 25", start_s=1)]
    metrics = wb.Scenario(wb.topology.line(3), wb.Flooding(), workload, duration_s=5).run().metrics
    # Node 1 hears node 2, then node 0; nodes 0 and 2 hear node 1.
    assert metrics["receptions"] == 4 and metrics["usefulness_ratio"] == 0.5
    assert math.isnan(wb.Scenario(wb.topology.line(3), wb.Diffusion(), workload).run().metrics["usefulness_ratio"])


def test_every_declared_kind_belongs_to_a_message_that_the_protocol_sends():
    for name, message in (("Diffusion", "interest"), ("TinyMQ", "join"), ("DPS", "subscription")):
        protocol = getattr(wb, name)
        assert set(protocol.natures.values()) <= set(natures.NATURES)
        assert natures.nature_of(protocol, message) != natures.USE == natures.nature_of(protocol, "no such message")
        assert natures.nature_of(protocol, "beacon") == natures.UPKEEP

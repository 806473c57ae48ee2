"""Metrics of tiny traces, written row by row, compared with numbers calculated by hand."""

import math
import pickle
import sys
from types import ModuleType

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.talker import both_directions, network
from workbench.errors import ScenarioError
from workbench.protocols.flooding.node import FloodingNode
from workbench.sim import metrics, trace
from workbench.sim.metrics.deliveries import percentile
from workbench.sim.metrics.matching import matching_of
from workbench.sim.trace import Recorder

MS = 1000

# 0 --- 1 --- 2 --- 3: the sink is 0 by default
LINE = both_directions((0, 1), (1, 2), (2, 3))


# --- rows ---


def subscribed(node=0, number=0, at_ms=0, until_ms=None, attributes="TEMP GE 25"):
    return at_ms, node, "subscribed", -1, "", node, number, 0, -1 if until_ms is None else until_ms * MS, attributes


def unsubscribed(at_ms, node=0, number=0):
    return at_ms, node, "unsubscribed", -1, "", node, number, 0, 0, ""


def published(at_ms, node, number, attributes="TEMP IS 26"):
    return at_ms, node, "published", -1, "", node, number, 0, 0, attributes


def originated(at_ms, node, sequence, number):
    return at_ms, node, "originated", -1, "data", node, sequence, 0, number, ""


def delivered(at_ms, origin, sequence, node=0, number=0, attributes="TEMP IS 26"):
    return at_ms, node, "delivered", 1, "data", origin, sequence, 0, number, attributes


def held(node, origin, sequence, hops, at_ms=0):
    return at_ms, node, "held", 1, "data", origin, sequence, 0, hops, ""


def cached(node, sink=0, sequence=0):
    return 0, node, "interest_cached", 1, "interest", sink, sequence, 0, 0, "TEMP GE 25"


def failed(at_ms, node):
    return at_ms, node, "failed", -1, "", node, 0, 0, 0, ""


def recovered(at_ms, node):
    return at_ms, node, "recovered", -1, "", node, 0, 0, 0, ""


def reading(at_ms, node, number, attributes="TEMP IS 26"):
    """Return the rows of a reading in a message of its own; the message number is the reading's plus 100."""
    return [published(at_ms, node, number, attributes), originated(at_ms, node, 100 + number, number)]


def measure(*rows, topology=LINE, protocol=None, radio=None):
    """Return the metrics of rows (and lists of rows) whose times are in milliseconds."""
    recorder = Recorder()
    for row in [row for entry in rows for row in (entry if isinstance(entry, list) else [entry])]:
        recorder.append((round(row[0] * MS), *row[1:]))
    table = recorder.table()
    scenario = wb.Scenario(topology, protocol or wb.Diffusion(), radio=radio or wb.Radio())
    return metrics.compute(scenario, table, *trace.tally(table))


def outcome(values):
    names = ("expected", "delivered", "wrong_deliveries", "duplicate_deliveries")
    return tuple(int(values[name]) for name in names)


# --- delivery ---


def test_delivery_ratio_is_the_share_of_matching_readings_that_arrived():
    values = measure(
        subscribed(),
        reading(10, 3, 0, "TEMP IS 26"),
        reading(20, 3, 1, "TEMP IS 20"),  # does not match
        reading(30, 2, 0, "TEMP IS 30"),
        delivered(15, 3, 100, attributes="TEMP IS 26"),
    )
    assert outcome(values) == (2, 1, 0, 0) and values["delivery_ratio"] == 0.5


def test_reading_published_before_the_subscription_is_counted_if_it_is_delivered():
    values = measure(reading(10, 3, 0), subscribed(at_ms=12), delivered(15, 3, 100, attributes="TEMP IS 26"))
    assert outcome(values) == (0, 0, 0, 0) and values["unexpected_deliveries"] == 1


def test_delivery_ratio_is_nan_without_expected_readings():
    values = measure(reading(10, 3, 0))
    assert outcome(values) == (0, 0, 0, 0)
    for name in ("delivery_ratio", "latency_ms_p50", "latency_ms_p95", "stretch", "coverage", "interest_coverage"):
        assert math.isnan(values[name])


def test_every_subscription_expects_its_own_sample():
    values = measure(
        subscribed(0, 0),
        subscribed(0, 1, attributes="TEMP GE 26"),
        subscribed(3, 0),
        reading(10, 2, 0),
        delivered(12, 2, 100, 0, 0),
        delivered(12, 2, 100, 3, 0),
    )
    assert outcome(values) == (3, 2, 0, 0)


numbers = st.integers(0, 4)
constraints = st.lists(
    st.tuples(st.sampled_from(["TEMP", "HUMIDITY"]), st.sampled_from(["EQ", "NE", "GE", "GT", "LE", "LT"]), numbers),
    min_size=1,
    max_size=3,
)
values = st.lists(st.tuples(st.sampled_from(["TEMP", "HUMIDITY"]), st.just("IS"), numbers), min_size=1, max_size=3)


def text(attributes):
    return ", ".join(f"{key} {operator} {number}" for key, operator, number in attributes)


@given(st.lists(st.one_of(constraints, st.just([("TEMP", "EQ_ANY", 0)])), min_size=1, max_size=4), st.data())
def test_every_matching_pair_is_among_the_examined_pairs(wanted, data):
    readings = [text(item) for item in data.draw(st.lists(values, min_size=1, max_size=6))]
    protocol = wb.Flooding()
    subscriptions = [text(item).replace("EQ_ANY 0", "EQ_ANY") for item in wanted]
    candidates = matching_of(protocol).candidates(subscriptions, readings)
    for subscription, indices in zip(subscriptions, candidates, strict=True):
        for index, reading in enumerate(readings):
            if protocol.matching_samples(wb.parse(subscription), wb.parse(reading)):
                assert index in indices


def test_sink_expects_its_own_matching_readings_too():
    assert outcome(measure(subscribed(), reading(10, 0, 0), delivered(10, 0, 100))) == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("published_ms", "is_expected"), [(4, False), (5, True), (15, True), (24, True), (25, False), (40, False)]
)
def test_reading_is_expected_by_subscriptions_active_at_its_publication(published_ms, is_expected):
    by_expiry = measure(subscribed(at_ms=5, until_ms=25), published(published_ms, 3, 0))
    by_hand = measure(subscribed(at_ms=5), unsubscribed(25), published(published_ms, 3, 0))
    before_expiry = measure(subscribed(at_ms=5, until_ms=1000), unsubscribed(25), published(published_ms, 3, 0))
    for values in (by_expiry, by_hand, before_expiry):
        assert values["expected"] == is_expected


def test_reading_of_a_source_without_a_path_to_the_sink_is_not_expected():
    # 0 <-- 1 <-- 2 and 0 --> 3
    one_way = network((1, 0), (2, 1), (0, 3))
    values = measure(subscribed(), published(10, 2, 0), published(10, 3, 0), topology=one_way)
    assert values["expected"] == 1
    dead = network((1, 0), (2, 1, 0.0))
    assert measure(subscribed(), published(10, 2, 0), topology=dead)["expected"] == 0


def test_reading_published_while_the_sink_is_down_is_not_expected():
    values = measure(
        subscribed(),
        failed(10, 0),
        published(10, 3, 0),
        published(15, 3, 1),
        recovered(20, 0),
        published(20, 3, 2),
        failed(30, 0),
        published(35, 3, 3),
    )
    assert values["expected"] == 1


def test_reading_is_expected_despite_an_outage_on_its_path():
    assert measure(subscribed(), failed(5, 1), published(10, 3, 0))["expected"] == 1


def test_unexpected_sample_is_neither_delivered_nor_wrong():
    # It was published before the subscription and waited at its source for the interest.
    values = measure(reading(0, 3, 0), subscribed(at_ms=5), delivered(20, 3, 100))
    assert outcome(values) == (0, 0, 0, 0)


# --- wrong and duplicate deliveries ---


@pytest.mark.parametrize(
    "row",
    [
        delivered(20, 3, 101, attributes="TEMP IS 20"),  # does not match
        delivered(20, 3, 999),  # no node sent that message
        delivered(20, 2, 100),  # the message is from another node
        delivered(20, 3, 100, number=7),  # the node has no subscription of that number
        delivered(20, 3, 100, node=2),  # another node has the subscription
        delivered(50, 3, 100),  # the subscription had expired
    ],
)
def test_delivery_without_a_subscription_is_wrong(row):
    values = measure(subscribed(until_ms=50), reading(10, 3, 0), reading(10, 3, 1, "TEMP IS 20"), row)
    assert outcome(values) == (1, 0, 1, 0)


def test_delivery_after_the_subscription_was_ended_is_wrong():
    rows = [subscribed(), *reading(10, 3, 0)]
    assert outcome(measure(rows, delivered(19, 3, 100), unsubscribed(20))) == (1, 1, 0, 0)
    assert outcome(measure(rows, unsubscribed(20), delivered(20, 3, 100))) == (1, 0, 1, 0)


def test_second_delivery_of_a_sample_is_a_duplicate_and_counts_once():
    values = measure(
        subscribed(), reading(10, 3, 0), delivered(12, 3, 100), delivered(14, 3, 100), delivered(20, 3, 100)
    )
    assert outcome(values) == (1, 1, 0, 2)
    assert values["delivery_ratio"] == 1 and values["latency_ms_p95"] == 2


def test_same_sample_for_two_subscriptions_is_not_a_duplicate():
    values = measure(
        subscribed(), subscribed(number=1), reading(10, 3, 0), delivered(12, 3, 100), delivered(12, 3, 100, 0, 1)
    )
    assert outcome(values) == (2, 2, 0, 0)


# --- aggregated messages ---

# One message (number 5) carries the readings 0, 1 and 2 of node 3.
AGGREGATE = [
    published(10, 3, 0, "TEMP IS 26"),
    published(20, 3, 1, "TEMP IS 20"),
    published(30, 3, 2, "TEMP IS 28"),
    *(originated(40, 3, 5, number) for number in range(3)),
]


def test_aggregated_readings_are_expected_and_timed_one_by_one():
    arrived = [delivered(45, 3, 5, attributes="TEMP IS 26"), delivered(45, 3, 5, attributes="TEMP IS 28")]
    values = measure(subscribed(), AGGREGATE, arrived)
    assert outcome(values) == (2, 2, 0, 0)
    assert (values["latency_ms_p50"], values["latency_ms_p95"]) == (15, 35)


def test_delivered_part_of_an_aggregate_counts_for_its_reading():
    values = measure(subscribed(), AGGREGATE, delivered(45, 3, 5, attributes="TEMP IS 28"))
    assert outcome(values) == (2, 1, 0, 0) and values["latency_ms_p50"] == 15


def test_repeated_aggregate_is_a_duplicate_for_each_of_its_samples():
    once = [delivered(45, 3, 5, attributes="TEMP IS 26"), delivered(45, 3, 5, attributes="TEMP IS 28")]
    assert outcome(measure(subscribed(), AGGREGATE, once, once)) == (2, 2, 0, 2)


def test_reading_with_its_first_key_twice_is_expected_once():
    attributes = "TEMP IS 26, INSTANCE IS 1, TEMP IS 20, INSTANCE IS 2"
    delivery = delivered(12, 3, 100, attributes=attributes)
    assert outcome(measure(subscribed(), reading(10, 3, 0, attributes))) == (1, 0, 0, 0)
    assert outcome(measure(subscribed(), reading(10, 3, 0, attributes), delivery)) == (1, 1, 0, 0)
    assert outcome(measure(subscribed(), reading(10, 3, 0, attributes), delivery, delivery)) == (1, 1, 0, 1)


def test_equal_samples_of_one_message_are_not_duplicates():
    twice = [published(10, 3, 0), published(20, 3, 1), originated(20, 3, 5, 0), originated(20, 3, 5, 1)]
    values = measure(subscribed(), twice, delivered(25, 3, 5), delivered(25, 3, 5))
    assert outcome(values) == (2, 2, 0, 0) and values["latency_ms_p50"] == 5 and values["latency_ms_p95"] == 15
    assert outcome(measure(subscribed(), twice, *[delivered(25, 3, 5)] * 3)) == (2, 2, 0, 1)


# --- filters ---


def filtered(origin, sequence, answer="replace", message="data", at_ms=12):
    return at_ms, 1, "filtered", -1, message, origin, sequence, 0, 200, answer


def test_sample_changed_by_a_filter_counts_for_its_original_reading():
    values = measure(
        subscribed(),
        reading(10, 3, 0, "TEMP IS 26"),
        filtered(3, 100),
        delivered(14, 3, 100, attributes="TEMP IS 25.5"),
    )
    assert outcome(values) == (1, 1, 0, 0) and values["latency_ms_p50"] == 4


@pytest.mark.parametrize(
    "delivery",
    [
        [],
        filtered(3, 100, "drop"),
        filtered(3, 100, message="interest"),
        filtered(3, 101),
        filtered(2, 100),
    ],
)
def test_unfiltered_sample_is_wrong_if_its_message_does_not_carry_it(delivery):
    changed = delivered(14, 3, 100, attributes="TEMP IS 25.5")
    assert outcome(measure(subscribed(), reading(10, 3, 0), delivery, changed, changed)) == (1, 0, 2, 0)


def test_filter_row_of_another_protocol_does_not_justify_a_changed_sample():
    rows = [subscribed(), *reading(10, 3, 0), filtered(3, 100), delivered(14, 3, 100, attributes="TEMP IS 25.5")]
    assert outcome(measure(rows, protocol=wb.Flooding())) == (1, 0, 1, 0)


def test_sample_that_matches_only_after_a_filter_is_neither_expected_nor_wrong():
    values = measure(
        subscribed(), reading(10, 3, 0, "TEMP IS 20"), filtered(3, 100), delivered(14, 3, 100, attributes="TEMP IS 26")
    )
    assert outcome(values) == (0, 0, 0, 0)


def test_repeated_changed_sample_is_a_duplicate():
    changed = delivered(14, 3, 100, attributes="TEMP IS 25.5")
    values = measure(subscribed(), reading(10, 3, 0, "TEMP IS 26"), filtered(3, 100), changed, changed)
    assert outcome(values) == (1, 1, 0, 1)


def test_value_that_a_filter_moved_out_of_its_range_is_measured_too():
    values = measure(
        subscribed(attributes="HUMIDITY GE 50"),
        reading(10, 3, 0, "HUMIDITY IS 80"),
        filtered(3, 100),
        delivered(14, 3, 100, attributes="HUMIDITY IS 160"),
    )
    assert outcome(values) == (1, 1, 0, 0)


def test_run_with_filters_has_the_same_metrics_without_a_trace():
    mean = wb.Filter("running_mean", key=200, match="TEMP EQ_ANY", at=1, window=3)
    workload = [wb.subscribe(0, "TEMP GE 10"), wb.publish(3, wb.SensorField(), every_s=1, start_s=2)]
    scenario = wb.Scenario(wb.topology.line(4), wb.Diffusion(filters=(mean,)), workload, duration_s=20)
    runs = [scenario.run("reference", record) for record in ("trace", "metrics")]
    details = {event: [] for event in ("published", "delivered")}
    for row in runs[0].trace.to_pylist():
        details.get(row["event"], []).append(row["detail"])
    assert not set(details["delivered"]) <= set(details["published"])  # the filters change samples
    assert outcome(runs[0].metrics) == outcome(runs[1].metrics) == (18, 18, 0, 0)


# --- protocols that deliver other data than was published ---


class Altering(FloodingNode):
    """Delivers each reading with one bit flipped: 20 becomes 19.84."""

    def deliver_to(self, subscriptions, attributes, *message):
        altered = tuple(attribute._replace(value=attribute.value ^ 16) for attribute in attributes)
        FloodingNode.deliver_to(self, subscriptions, altered, *message)


class Swapping(FloodingNode):
    """Delivers with each message the attributes of the previous message."""

    def deliver_to(self, subscriptions, attributes, *message):
        before, self.last = getattr(self, "last", attributes), attributes
        FloodingNode.deliver_to(self, subscriptions, before, *message)


class Repeating(FloodingNode):
    """Delivers each reading twice."""

    def deliver_to(self, subscriptions, attributes, *message):
        for _ in range(2):
            FloodingNode.deliver_to(self, subscriptions, attributes, *message)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [(FloodingNode, (2, 2, 0, 0)), (Altering, (2, 0, 2, 0)), (Swapping, (2, 1, 1, 0)), (Repeating, (2, 2, 0, 2))],
)
@pytest.mark.parametrize("record", ["trace", "metrics"])
def test_protocol_that_delivers_wrong_data_is_detected(kind, expected, record):
    class Protocol(wb.Flooding):
        node = kind

    workload = [
        wb.subscribe(0, "TEMP GE 10"),
        wb.publish(3, "TEMP IS 20", start_s=1),
        wb.publish(3, "TEMP IS 24", start_s=2),
    ]
    values = wb.Scenario(wb.topology.line(4), Protocol(), workload, duration_s=5).run(record=record).metrics
    assert outcome(values) == expected
    assert values["delivery_ratio"] == expected[1] / 2


# --- latency ---


def latencies(*milliseconds):
    rows = [row for i, ms in enumerate(milliseconds) for row in [*reading(0, 3, i), delivered(ms, 3, 100 + i)]]
    values = measure(subscribed(), rows)
    return values["latency_ms_p50"], values["latency_ms_p95"]


def test_percentile_is_the_smallest_latency_with_that_share_at_or_below():
    assert latencies(7) == (7, 7)
    assert latencies(1, 2) == (1, 2)
    assert latencies(3, 1, 2) == (2, 3)
    assert latencies(*range(1, 21)) == (10, 19)
    assert latencies(*range(1, 22)) == (11, 20)
    assert latencies(*range(1, 101)) == (50, 95)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200))
def test_percentile_has_its_share_at_or_below_but_the_next_smaller_latency_has_not(latencies_us):
    ordered = sorted(latencies_us)
    for percent in (50, 95):
        value = percentile(ordered, percent / 100)
        at_or_below = sum(number <= value for number in ordered)
        below = sum(number < value for number in ordered)
        assert at_or_below * 100 >= percent * len(ordered) > below * 100


# --- paths ---


def test_stretch_is_hops_over_shortest_path_averaged_over_delivered_messages():
    values = measure(
        subscribed(),
        reading(0, 3, 0),
        reading(0, 2, 0),
        [held(0, 3, 100, hops=6), delivered(5, 3, 100)],
        [held(0, 2, 100, hops=2), delivered(5, 2, 100)],
    )
    assert values["stretch"] == (6 / 3 + 2 / 2) / 2


def test_stretch_ignores_undelivered_messages_and_those_of_the_sink():
    values = measure(
        subscribed(),
        [*reading(0, 3, 0, "TEMP IS 20"), held(0, 3, 100, hops=9)],
        [*reading(0, 2, 0), held(0, 2, 100, hops=4), delivered(5, 2, 100)],
        [*reading(0, 0, 0), held(0, 0, 100, hops=0), delivered(5, 0, 100)],
        [held(1, 2, 100, hops=1)],
    )
    assert values["stretch"] == 2


def test_shortest_path_follows_the_direction_of_arcs():
    # 2 --> 1 --> 0 --> 2: from 2 to 0 it is two hops, although an arc leads back from 0 to 2
    values = measure(
        subscribed(),
        reading(0, 2, 0),
        held(0, 2, 100, hops=2),
        delivered(5, 2, 100),
        topology=network((2, 1), (1, 0), (0, 2)),
    )
    assert values["stretch"] == 1


# --- coverage ---


def test_coverage_is_the_share_of_nodes_that_hold_a_publication():
    rows = [reading(0, 3, 0), reading(0, 2, 0), *(held(node, 3, 100, 1) for node in range(4)), held(2, 2, 100, 0)]
    assert measure(*rows, protocol=wb.Flooding())["coverage"] == (4 / 4 + 1 / 4) / 2
    assert math.isnan(measure(*rows, protocol=wb.Diffusion())["coverage"])


def test_interest_coverage_is_a_share_of_the_nodes_that_a_sink_can_reach():
    # 0 --> 1 --> 2, 3 --> 0
    arcs = network((0, 1), (1, 2), (3, 0))
    values = measure(cached(0), cached(1), cached(1), cached(3, sink=3, sequence=4), topology=arcs)
    assert values["interest_coverage"] == pytest.approx((2 / 3 + 1 / 4) / 2)
    alone = measure(cached(0), topology=network((1, 0)))
    assert alone["interest_coverage"] == 1


def test_protocol_outside_of_the_package_has_its_own_metrics(monkeypatch):
    module = ModuleType("whispers")
    module.LOOKS_AT = ("whispered",)
    module.measure = lambda scenario, rows: {"whispers": len(rows.columns("whispered", "node")[0])}
    monkeypatch.setitem(sys.modules, "whispers", module)

    class Whispering(wb.Flooding):
        metrics = "whispers"

    whispered = 0, 1, "whispered", -1, "", 0, 0, 0, 0, ""
    values = measure(whispered, whispered, protocol=Whispering())
    assert values["whispers"] == 2 and "whispers" not in measure()
    costs = metrics.COMMON.index("transmissions")
    assert list(values.index[: len(metrics.COMMON)]) == [
        *metrics.COMMON[:costs],
        "whispers",
        *metrics.COMMON[costs:-1],
    ]
    assert trace.metric_events(Whispering()) == {*trace.metric_events(wb.Flooding()), "whispered"}
    for metric in ("delivered", "sent_flood"):
        module.measure = lambda scenario, rows, metric=metric: {metric: 1}
        with pytest.raises(ScenarioError, match=f"whispers has a metric {metric}, which is the name of another metric"):
            measure(protocol=Whispering())


def test_every_run_has_the_same_metrics_in_the_same_order():
    for protocol in (wb.Flooding(), wb.Diffusion()):
        assert tuple(measure(protocol=protocol).index) == metrics.COMMON


# --- cost ---


def radio_row(event, message="data", size_B=10, detail=""):
    return 0, 0, event, 1, message, 0, 0, size_B, 0, detail


def test_costs_are_counted_by_event_message_and_reason():
    values = measure(
        *[radio_row("sent")] * 3,
        *[radio_row("sent", "interest", 30)] * 2,
        *[radio_row("received")] * 4,
        radio_row("lost", detail="link"),
        *[radio_row("lost", "interest", detail="collision")] * 2,
        radio_row("given_up", detail="channel_busy"),
        *[radio_row("dropped", size_B=0, detail="duplicate")] * 5,
        radio=wb.Radio(overhead_B=6, tx_uJ_per_B=2.0, rx_uJ_per_B=0.5),
    )
    assert (values["transmissions"], values["receptions"], values["lost"]) == (5, 4, 3)
    assert values["bytes_sent"] == 3 * 10 + 2 * 30
    # Of the lost frames, the two that collided count as received energy.
    assert values["energy_mJ"] == pytest.approx(((90 + 5 * 6) * 2.0 + (60 + 6 * 6) * 0.5) / 1000)
    detailed = {
        "sent_data": 3,
        "sent_interest": 2,
        "lost_link": 1,
        "lost_collision": 2,
        "given_up_channel_busy": 1,
        "dropped_duplicate": 5,
    }
    assert {name: values[name] for name in detailed} == detailed
    assert set(values.index[-6:]) == set(detailed)


def test_unsubscribing_after_the_end_does_not_extend_a_subscription():
    scenario = wb.Scenario(
        topology=wb.topology.line(3),
        protocol=wb.Flooding(),
        workload=[
            wb.subscribe(at=0, what="TEMP GE 25", expires_s=5, stop_s=20),
            wb.publish(at=2, what="TEMP IS 26", every_s=1, start_s=0.5),
        ],
        duration_s=30,
    )
    assert scenario.run().metrics[["expected", "delivered"]].tolist() == [5, 5]


def test_forgetting_a_publication_does_not_raise_its_coverage():
    scenario = wb.Scenario(
        topology=wb.topology.ring(12),
        protocol=wb.Flooding(max_events=1, ttl=30),
        workload=[wb.publish(at=[0, 6], what="TEMP IS 26")],
        duration_s=5,
    )
    assert scenario.run().metrics["coverage"] == 1
    assert scenario.run(record="metrics").metrics["coverage"] == 1


def test_metrics_are_a_series_that_explains_missing_metrics():
    values = wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1).run(engine="reference").metrics
    with pytest.raises(KeyError, match="this run lacks the metric 'delivery' .did you mean delivery_ratio?"):
        values["delivery"]
    with pytest.raises(wb.ParameterError, match="this run lacks the metric 'hops'; it has delivery_ratio, "):
        values["hops"]
    assert values.get("hops", 7) == 7 and "hops" not in values and not hasattr(values, "hops")
    assert values["lost"] == values.lost == values.iloc[list(values.index).index("lost")]
    assert {type(derived) for derived in (values.copy(), values * 2, values[["lost"]], values.dropna())} == {pd.Series}
    pd.testing.assert_series_equal(pickle.loads(pickle.dumps(values)), values)


def test_the_text_of_metrics_leaves_out_a_coverage_that_does_not_apply():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(2, "TEMP IS 25", start_s=1)]
    scenario = wb.Scenario(wb.topology.line(3), wb.Diffusion(), workload, duration_s=2)
    flooded, routed = (
        scenario.replace(protocol=protocol).run(engine="reference").metrics
        for protocol in (wb.Flooding(), wb.Diffusion())
    )
    assert "\ncoverage " in str(flooded) and "interest_coverage" not in str(flooded)
    assert "\ncoverage " not in str(routed) and "interest_coverage" in str(routed) and "NaN" not in str(routed)
    assert math.isnan(routed["coverage"]) and math.isnan(flooded["interest_coverage"])
    assert str(routed).splitlines()[1].split() == ["expected", "1"]

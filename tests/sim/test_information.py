"""The error of a sink's estimate, the age of its information, and the samples that filters dropped on purpose."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.both_engines import assert_same_numbers
from tests.families import examples
from tests.sim import plain_metrics
from tests.sim.test_metrics import LINE, delivered, originated, outcome, published, reading, subscribed
from tests.talker import both_directions
from workbench.sim import metrics, trace
from workbench.sim.metrics.information import METRICS
from workbench.sim.trace import Recorder

AVERAGE = wb.Filter("neighborhood_average", at=1)
# Sources 3 and 4 reach the sink 0 over the relays 2 and 1; node 5 is a sink on the other side of source 3.
FORK = both_directions((0, 1), (1, 2), (2, 3), (2, 4), (3, 5))


def scenario_with(*filters):
    return wb.Scenario(LINE, wb.Diffusion(filters=filters), duration_s=8)


def table_of(rows):
    recorder = Recorder()
    for row in sorted(
        (r for entry in rows for r in (entry if isinstance(entry, list) else [entry])), key=lambda r: r[0]
    ):
        recorder.append((round(row[0] * 1000), *row[1:]))
    return recorder.table()


def measure(*rows, filters=(AVERAGE,)):
    """Return the metrics of rows whose times are in milliseconds; the run takes 8 s."""
    table = table_of(rows)
    return metrics.compute(scenario_with(*filters), table, *trace.tally(table))


def filtered(at_ms, origin, sequence, answer, node=1, key=200):
    return at_ms, node, "filtered", -1, "data", origin, sequence, 0, key, answer


def temp(at_ms, node, number, degrees):
    return reading(at_ms, node, number, f"TEMP IS {degrees}")


def dropped(at_ms, node, number, degrees):
    """Return the rows of a reading that node 1 drops."""
    return [*temp(at_ms, node, number, degrees), filtered(at_ms, node, 100 + number, "drop")]


def changed(at_ms, node, number, degrees, mean, later_ms=500, sink=0):
    """Return the rows of a reading that node 1 changes, and that arrives ``later_ms`` later."""
    report = filtered(at_ms, node, 100 + number, "replace")
    arrival = delivered(at_ms + later_ms, node, 100 + number, sink, attributes=f"TEMP IS {mean}")
    return [*temp(at_ms, node, number, degrees), report, arrival]


ALL = subscribed(attributes="TEMP EQ_ANY")


# --- an averaging relay, worked by hand ---


def averaged():
    # Truth: 20 from 1 s, 22 from 2 s, 23 from 3 s, 25 from 4 s, 29 from 5 s. Estimate: 23 from 3.5 s, 29 from 5.5 s.
    return [
        ALL,
        dropped(1000, 2, 0, 20),
        dropped(2000, 3, 0, 24),
        changed(3000, 2, 1, 22, mean=23),
        dropped(4000, 3, 1, 28),
        changed(5000, 2, 2, 30, mean=29),
    ]


def test_error_of_an_averaging_relay():
    # 0 for 0.5 s, 2 for 1 s, 6 for 0.5 s, 0 for 2.5 s
    values = measure(*averaged())
    assert values["sink_error_mean"] == pytest.approx(5 / 4.5) and values["sink_error_max"] == 6


def test_age_of_the_information_behind_an_averaging_relay():
    # 0 to 2.5 s in 2.5 s, 0.5 to 2.5 s in 2 s, 0.5 to 3 s in 2.5 s
    values = measure(*averaged())
    assert values["age_s_mean"] == pytest.approx((3.125 + 3 + 4.375) / 7) == 1.5 and values["age_s_max"] == 3


def test_readings_that_a_filter_dropped_are_not_lost():
    values = measure(*averaged())
    assert outcome(values) == (2, 2, 0, 0) and values["delivery_ratio"] == 1 and values["latency_all_ms_max"] == 500


def test_mean_that_the_network_lost_is_a_loss():
    rows = averaged()
    rows[-1] = rows[-1][:-1]  # all but the delivery
    assert outcome(measure(*rows)) == (2, 1, 0, 0)


def test_mean_that_is_sent_later_is_expected_once():
    # The mean of 20 and 24 arrives, the mean of the second period is lost.
    emitted = [filtered(3000, 3, 100, "replace"), delivered(3500, 3, 100, attributes="TEMP IS 22")]
    rows = [ALL, dropped(1000, 2, 0, 20), dropped(2000, 3, 0, 24), emitted]
    assert outcome(measure(*rows)) == (1, 1, 0, 0)
    rows += [dropped(4000, 2, 1, 26), dropped(5000, 3, 1, 26), filtered(6000, 3, 101, "replace")]
    values = measure(*rows)
    assert outcome(values) == (2, 1, 0, 0)
    # Estimate 22 from 3.5 s; truth 22 until 4 s, 25 until 5 s, 26 until 8 s
    assert values["sink_error_mean"] == pytest.approx((3 + 3 * 4) / 4.5) and values["sink_error_max"] == 4


def test_mean_that_equals_the_reading_stands_for_all_sources_too():
    # Node 1 passes 21 unchanged, as the mean of 21 and 21 is 21, and reports nothing.
    rows = [ALL, dropped(1000, 3, 0, 24), changed(2000, 2, 0, 20, mean=22, later_ms=0)]
    rows += [dropped(3000, 3, 1, 21), temp(4000, 2, 1, 21), delivered(4000, 2, 101, attributes="TEMP IS 21")]
    # Estimate 22 for 2 s, 21 for 4 s; truth 22 for 1 s, 20.5 for 1 s, 21 for 4 s
    assert measure(*rows)["sink_error_mean"] == pytest.approx(1.5 / 6)


def test_values_stand_for_their_own_source_at_a_sink_that_the_filter_does_not_serve():
    arrivals = ((1000, 2, 100, 20), (2000, 3, 100, 24), (3000, 2, 101, 22), (4000, 3, 101, 28), (5000, 2, 102, 30))
    around = [delivered(*arrival, 3, attributes=f"TEMP IS {degrees}") for *arrival, degrees in arrivals]
    alone = [row for row in averaged()[1:] if isinstance(row, list)]
    alone = [[row for row in rows if row[2] != "delivered"] for rows in alone]
    values = measure(subscribed(3, attributes="TEMP EQ_ANY"), *alone, *around)
    assert values["sink_error_max"] == 0 and outcome(values) == (5, 5, 0, 0)


# --- other filters ---


def test_suppression_has_the_error_of_each_source_alone():
    # Node 1 drops 20.5, as it differs from 20 by at most 1. The mean of 20 and 30 is exact until then.
    rows = [ALL, temp(1000, 2, 0, 20), delivered(1000, 2, 100, attributes="TEMP IS 20")]
    rows += [temp(2000, 3, 0, 30), delivered(2000, 3, 100, attributes="TEMP IS 30"), dropped(4000, 2, 1, 20.5)]
    values = measure(*rows, filters=[wb.Filter("suppress_unchanged", at=1, tolerance=1)])
    assert values["sink_error_mean"] == pytest.approx(0.25 * 4 / 7) and values["sink_error_max"] == 0.25
    assert values["age_s_mean"] == pytest.approx((0.5 + 18) / 7) and values["delivery_ratio"] == 1


def test_running_mean_is_compared_with_the_latest_reading():
    rows = [ALL, temp(1000, 2, 0, 20), delivered(1000, 2, 100, attributes="TEMP IS 20")]
    rows += [changed(2000, 2, 1, 22, mean=21, later_ms=0), changed(5000, 2, 2, 18, mean=20, later_ms=0)]
    values = measure(*rows, filters=[wb.Filter("running_mean", at=1)])
    assert values["sink_error_mean"] == pytest.approx((0 + 3 + 6) / 7) and values["sink_error_max"] == 2


def test_sink_without_a_delivery_has_no_error_and_grows_old():
    values = measure(ALL, dropped(1000, 2, 0, 20), filters=[wb.Filter("threshold_alarm", at=1)])
    assert math.isnan(values["sink_error_mean"]) and math.isnan(values["delivery_ratio"])
    assert (values["age_s_mean"], values["age_s_max"]) == (3.5, 7)


def test_times_without_an_active_subscription_do_not_count():
    rows = [subscribed(until_ms=6000, attributes="TEMP EQ_ANY"), temp(1000, 2, 0, 20)]
    rows += [delivered(1000, 2, 100, attributes="TEMP IS 20"), (2000, 0, "failed", -1, "", 0, 0, 0, 0, "")]
    rows += [(5000, 0, "recovered", -1, "", 0, 0, 0, 0, ""), temp(3000, 2, 1, 24)]
    values = measure(*rows)
    # The error is 4 from 5 s to 6 s only; the age is 0 to 1 s, and 4 to 5 s.
    assert (values["sink_error_mean"], values["age_s_mean"], values["age_s_max"]) == (2, 2.5, 5)


def test_values_are_those_of_the_attribute_that_a_filter_names():
    text = "X IS 3, TEMP IS 20, HUMIDITY IS {}".format
    rows = [subscribed(attributes="X GE 0, TEMP GE 0"), reading(1000, 2, 0, text(50))]
    rows += [delivered(1000, 2, 100, attributes=text(50)), reading(2000, 2, 1, text(60))]
    for filter_, error in (
        (wb.Filter("running_mean", of="HUMIDITY"), 10),
        (wb.Filter("rate_limit", match="HUMIDITY EQ_ANY"), 10),
        (wb.Filter("running_mean"), 0),
        (wb.Filter("rate_limit"), 0),
    ):
        assert measure(*rows, filters=[filter_])["sink_error_max"] == error


def test_only_as_many_samples_of_a_message_as_a_filter_dropped_are_not_expected():
    both = [published(1000, 2, 0), published(1000, 2, 1), originated(1000, 2, 7, 0), originated(1000, 2, 7, 1)]
    assert outcome(measure(subscribed(), both, filtered(1500, 2, 7, "drop"))) == (1, 0, 0, 0)
    assert outcome(measure(subscribed(), both, *[filtered(1500, 2, 7, "drop")] * 2)) == (0, 0, 0, 0)


def test_several_values_of_a_merged_message_count_with_their_mean():
    rows = [ALL, dropped(1000, 2, 0, 20), dropped(2000, 3, 0, 24), filtered(3000, 3, 100, "replace")]
    rows += [delivered(3000, 3, 100, attributes=f"TEMP IS {degrees}") for degrees in (20, 24)]
    rows += [delivered(3000, 3, 100, 0, 1, attributes="TEMP IS 26")]  # of no subscription
    assert measure(*rows)["sink_error_max"] == 0
    rows[-2] = delivered(3000, 3, 100, attributes="TEMP IS 26")
    assert measure(*rows)["sink_error_max"] == 1


def test_runs_without_filters_count_every_loss_and_have_no_error_and_no_age():
    for filters in ((), (AVERAGE,)):
        values = measure(*averaged(), filters=filters)
        assert outcome(values)[0] == (2 if filters else 5)
        assert [math.isnan(values[name]) for name in METRICS] == [not filters] * 4
    assert "age" not in str(measure(*averaged(), filters=()))


# --- against the plain definitions, and in both engines ---

EVENTS = st.tuples(
    st.integers(0, 7),
    st.sampled_from(["reading", "drop", "replace", "arrive", "arrive changed"]),
    st.integers(2, 3),
    st.integers(0, 2),
    st.integers(20, 24),
)


@settings(max_examples=examples(100))
@given(st.lists(EVENTS, max_size=25), st.sampled_from(["TEMP EQ_ANY", "TEMP GE 22"]))
def test_error_and_age_follow_their_plain_definitions(events, wanted):
    rows = [subscribed(attributes=wanted), subscribed(1, 0, 2500, attributes=wanted)]
    readings = {(node, number): 20 + node + number for node in (2, 3) for number in range(3)}
    for (node, number), degrees in readings.items():
        rows.append(temp(500 + 1300 * number + 300 * node, node, number, degrees))
    for second, kind, node, number, degrees in events:
        at_ms = 1000 * second + 100
        if kind in ("drop", "replace"):
            rows.append(filtered(at_ms, node, 100 + number, kind))
        elif kind.startswith("arrive") and second > 3:
            value = degrees if kind.endswith("changed") else readings[node, number]
            rows.append(delivered(at_ms + number, node, 100 + number, number % 2, attributes=f"TEMP IS {value}"))
    table = table_of(rows)
    scenario = scenario_with(AVERAGE)
    values = metrics.compute(scenario, table, *trace.tally(table))
    *errors, age, oldest = plain_metrics.information(scenario, table.to_pylist(), 51)
    plain = [errors[0] / 100, errors[1] / 100, age / 1e6, oldest / 1e6]
    assert values[list(METRICS)].tolist() == pytest.approx(plain, nan_ok=True)


@pytest.mark.parametrize(
    "filters",
    [
        [wb.Filter("neighborhood_average", at=2, period_s=3)],
        [wb.Filter("neighborhood_average", at=2, period_s=3, flush=True)],
        [wb.Filter("running_mean", key=210, at=1), wb.Filter("suppress_unchanged", tolerance=0.5)],
    ],
)
def test_both_engines_agree_with_and_without_a_trace(filters):
    workload = [wb.subscribe([0, 5], "TEMP EQ_ANY"), wb.publish([3, 4], wb.SensorField(), every_s=1, start_s=2)]
    scenario = wb.Scenario(FORK, wb.Diffusion(filters=filters), workload, wb.Radio(loss=0.1), duration_s=25)
    assert_same_numbers(scenario)
    runs = [scenario.run(engine, record) for engine in ("reference", "fast") for record in ("trace", "metrics")]
    values = [run.metrics[["delivery_ratio", "expected", "delivered", *METRICS]].tolist() for run in runs]
    assert values == [values[0]] * 4 and not any(map(math.isnan, values[0]))
    plain = plain_metrics.information(scenario, runs[0].trace.to_pylist(), 51)
    assert values[0][3:5] == pytest.approx([plain[0] / 100, plain[1] / 100])
    assert values[0][5:] == pytest.approx([plain[2] / 1e6, plain[3] / 1e6])
    assert values[0][:3] == [
        plain_metrics.deliveries(scenario, runs[0].trace.to_pylist())[name]
        for name in ("delivery_ratio", "expected", "delivered")
    ]

"""Readings: cleaned by named rules, each of which is counted, and replayed as a workload, value by value."""

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench import datasets, pipelines
from workbench.errors import DataError

NAN = float("nan")


def readings(*rows):
    return pd.DataFrame(rows, columns=["time_s", "node", "epoch", "temperature_C", "humidity_pct", "voltage_mV"])


# Node 1: a copy, a spike, a temperature out of range, and a stuck thermometer. Node 2: a gap.
TABLE = readings(
    (0.0, 1, 0, 20.0, 40.0, 2500.0),
    (0.0, 1, 0, 20.0, 40.0, 2500.0),
    (10.0, 1, 1, 20.5, 101.0, 2500.0),
    (20.0, 1, 2, 35.0, 41.0, 2500.0),
    (30.0, 1, 3, 21.0, NAN, 2500.0),
    (40.0, 1, 4, 122.0, 41.0, 2500.0),
    (50.0, 1, 5, 21.0, 41.0, 2500.0),
    (60.0, 1, 6, 21.0, 41.0, 2500.0),
    (70.0, 1, 7, 21.0, 41.0, 2500.0),
    (0.0, 2, 0, 30.0, 50.0, 2400.0),
    (400.0, 2, 1, 30.0, 50.0, 2400.0),
)
RULES = {
    "unit": {"voltage_mV": "voltage_V"},
    "duplicate": ("node", "epoch"),
    "range": {"temperature_C": (-20, 60), "humidity_pct": "HUMIDITY"},
    "jump": {"temperature_C": 5},
    "stuck": {"temperature_C": 2, "voltage_V": 100},
    "gap": 300,
}


def test_each_rule_removes_its_readings_and_is_counted():
    clean = pipelines.clean(TABLE.sample(frac=1, random_state=1), RULES)
    assert [tuple(row) for row in clean.counts.to_numpy()] == [
        ("unit", "voltage_V", 11), ("duplicate", "", 1), ("range", "humidity_pct", 1), ("range", "temperature_C", 1),
        ("jump", "temperature_C", 1), ("stuck", "temperature_C", 1), ("stuck", "voltage_V", 0), ("gap", "", 1),
    ]  # fmt: skip
    left_out = clean.left_out.replace({np.nan: None}).to_numpy().tolist()
    assert left_out == [
        ["duplicate", "", 1, 0.0, None], ["range", "humidity_pct", 1, 10.0, 101.0],
        ["jump", "temperature_C", 1, 20.0, 35.0], ["range", "temperature_C", 1, 40.0, 122.0],
        ["stuck", "temperature_C", 1, 70.0, 21.0], ["gap", "", 2, 400.0, 400.0],
    ]  # fmt: skip
    rows = clean.rows.replace({np.nan: None})
    assert rows["temperature_C"].tolist() == [20.0, 20.5, None, 21.0, None, 21.0, 21.0, None, 30.0, 30.0]
    assert rows["humidity_pct"].tolist() == [40.0, None, 41.0, None, 41.0, 41.0, 41.0, 41.0, 50.0, 50.0]
    assert rows["voltage_V"].tolist() == [2.5] * 8 + [2.4] * 2 and "voltage_mV" not in rows


def test_clean_readings_stay_as_they_are():
    good = TABLE.iloc[[0, 2, 3, 4]].assign(humidity_pct=40.0).reset_index(drop=True)
    clean = pipelines.clean(good)
    pd.testing.assert_frame_equal(clean.rows, good)
    assert clean.left_out.empty
    assert clean.counts["found"].tolist() == [0, 0, 0]


def test_without_rules_all_readings_stay():
    clean = pipelines.clean(TABLE, {})
    assert len(clean.rows) == len(TABLE) and clean.left_out.empty and clean.counts.empty


@pytest.mark.parametrize(("rules", "sentence"), [
    ({"outlier": {}}, "unknown rule 'outlier'; rules are unit, duplicate"),
    ({"range": {"temp_C": (0, 1)}}, "no column 'temp_C'.*columns are time_s"),
    ({"range": {"temperature_C": (3, 1)}}, "must have the smallest value first"),
    ({"range": {"temperature_C": 3}}, "it must be .smallest, largest., or an attribute key"),
    ({"jump": {"temperature_C": -1}}, "limit of rule jump is -1; it must be a finite number above 0"),
    ({"gap": "long"}, "limit of rule gap is 'long'"),
    ({"unit": {"voltage_mV": "voltage_A"}}, "voltage_mV cannot be converted to voltage_A; .* conversions: F to C"),
    ({"unit": {"temperature_F": "temperature_C"}}, "no column 'temperature_F'"),
])  # fmt: skip
def test_impossible_rules_are_refused_in_a_sentence(rules, sentence):
    with pytest.raises(DataError, match=sentence):
        pipelines.clean(TABLE, rules)


# Replay


def delivered(run):
    rows = run.trace.to_pandas()
    rows = rows[rows["event"] == "delivered"]
    return sorted(zip(rows["origin"].astype(int), rows["detail"], strict=True))


def test_a_replayed_run_delivers_the_values_of_the_readings():
    clean = pipelines.clean(TABLE, RULES).rows
    items = wb.replay(clean, {"temperature_C": "TEMP"}, speed=10, start_s=5)
    network = wb.topology.grid(1, 3)
    run = wb.Scenario(network, wb.Flooding(), [wb.subscribe(0, "TEMP GE -300"), *items], duration_s=60).run()
    replayed = clean.dropna(subset="temperature_C")
    assert delivered(run) == sorted(
        (node, f"TEMP IS {value:g}") for node, value in zip(replayed["node"], replayed["temperature_C"], strict=True)
    )
    published = run.trace.to_pandas().query("event == 'published'")
    expected = 5 + np.sort(replayed["time_s"].to_numpy()) / 10
    assert np.sort(published["time_us"].to_numpy()) == pytest.approx(expected * 1e6)


def test_missing_values_are_not_published():
    table = readings((0.0, 1, 0, NAN, NAN, 1.0), (1.0, 1, 1, 20.0, NAN, 1.0), (2.0, 1, 2, NAN, 40.0, 1.0))
    (item,) = wb.replay(table)
    assert item.what == wb.Readings([0.0, 1.0], {"TEMP": [20.0, None], "HUMIDITY": [None, 40.0]})


def test_an_interval_of_the_readings_is_replayed_from_the_start_of_the_run():
    items = wb.replay(TABLE.drop(index=1), "TEMP", from_s=50, until_s=400)
    assert [(item.at, item.what.times_s, item.what.keys) for item in items] == [((1,), (0.0, 10.0, 20.0), ("TEMP",))]


@pytest.mark.parametrize(("options", "sentence"), [
    ({}, "the readings of node 1: times_s has 0.0 after 0.0.*clean"),
    ({"from_s": 5, "key": "HUMIDITY"}, "the readings of node 1: HUMIDITY is 101.0.*clean"),
    ({"key": {"temp_C": "TEMP"}}, "no column 'temp_C'"),
    ({"key": "PRESSURE"}, "`key` is .PRESSURE., which selects no column of the readings"),
    ({"key": {"temperature_C": "TMEP"}}, "key is TMEP"),
    ({"speed": 0}, "speed is 0"),
    ({"from_s": 1000}, "no reading to replay"),
])  # fmt: skip
def test_impossible_replays_are_refused_in_a_sentence(options, sentence):
    with pytest.raises(wb.WorkbenchError, match=sentence):
        wb.replay(TABLE, **options)


def test_real_readings_are_replayed(real_data):
    table = pipelines.clean(datasets.ulb_readings(real_data / "ulb-library" / "R1.txt"))
    items = wb.replay(table)
    assert len(items) == 19
    assert sum(len(item.what.times_s) for item in items) == len(table.rows)
    first = table.rows.iloc[0]
    assert items[0].what.attributes(0, 0, 0, items[0].what.times_s[0]) == (
        f"TEMP IS {first['temperature_C']}, HUMIDITY IS {first['humidity_pct']}"
    )

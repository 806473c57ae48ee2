"""Measured readings in a workload: in JSON, in the hash, as lines of Python, and the same on both engines."""

import json

import pytest

import workbench as wb
from tests.both_engines import assert_same_trace
from workbench.errors import ScenarioError, WorkbenchError
from workbench.sim import workload
from workbench.sim.python_lines import python_lines

TIMES_S = (1.5, 2.000001, 7.0, 30.0)
MEASURED = wb.Readings(TIMES_S, {"TEMP": (21.504, None, 30, -4.005), "HUMIDITY": (None, 40.25, 41, float("nan"))})


def scenario(readings=MEASURED, **settings):
    return wb.Scenario(
        wb.topology.line(3),
        wb.Flooding(),
        [wb.subscribe(0, "TEMP GE -50"), wb.publish(2, readings, **settings)],
        duration_s=40,
    )


def published(run):
    rows = run.trace.to_pandas()
    rows = rows[rows["event"] == "published"]
    return list(zip(rows["time_us"], rows["detail"], strict=True))


def test_each_reading_is_published_at_its_time_with_its_values():
    assert published(scenario().run(engine="reference")) == [
        (1_500_000, "TEMP IS 21.5"),
        (2_000_001, "HUMIDITY IS 40.25"),
        (7_000_000, "TEMP IS 30, HUMIDITY IS 41"),
        (30_000_000, "TEMP IS -4"),
    ]


def test_start_and_stop_select_readings():
    run = scenario(start_s=2.000001, stop_s=30.0).run(engine="reference")
    assert [time_us for time_us, _ in published(run)] == [2_000_001, 7_000_000]


def test_both_engines_play_the_same_readings():
    assert_same_trace(scenario())


def test_readings_are_preserved_in_json_hash_and_lines_of_python():
    original = scenario()
    again = wb.Scenario.from_json(original.to_json())
    assert again == original and again.workload[1].what == MEASURED
    assert json.loads(original.to_json())["workload"][1]["publish"]["what"]["values"]["HUMIDITY"] == [
        None,
        40.25,
        41.0,
        None,
    ]
    names = {"wb": wb}
    exec(python_lines(original), names)
    assert names["scenario"] == original
    changed = wb.Readings(TIMES_S, {"TEMP": (21.51, None, 30, -4), "HUMIDITY": (None, 40.25, 41, None)})
    assert original.replace(**{"workload.1.what": changed}).hash != original.hash


def test_a_custom_key_is_stored_in_the_file():
    wb.register_key(120, "CO2", "ppm")
    assert scenario(wb.Readings([0], {"CO2": [400]})).user_keys()[0][:2] == [120, "CO2"]


def test_the_size_of_a_workload_counts_its_readings():
    item = wb.publish([1, 2], MEASURED, start_s=2)
    actions = list(item.actions(0, (0, 1, 2), 7_000_001, 1))
    assert item.most_readings(3, 7_000_001) == len(actions) == 4
    many = wb.Readings(range(200_001), {"TEMP": [20] * 200_001})
    with pytest.raises(ScenarioError, match="10,000,050 of them publications"):
        workload.check_size([wb.publish(range(50), many)], 50, 10**12)


@pytest.mark.parametrize(("times", "values", "sentence"), [
    ([], {"TEMP": []}, "times_s has no times"),
    ([1, 1], {"TEMP": [1, 2]}, "has 1 after 1"),
    ([-1], {"TEMP": [1]}, "times_s has -1"),
    ([float("nan")], {"TEMP": [1]}, "times_s has nan"),
    ([0], {}, "it must be {key: values}"),
    ([0], {"TMEP": [1]}, "key is TMEP"),
    ([0], {"TOPIC": [1]}, "the key TOPIC, a blob; readings must have"),
    ([0], {"TEMP": [1, 2]}, "TEMP has 2 values for 1 times"),
    ([0], {"TEMP": [None]}, "the reading at 0.0 s has no value"),
    ([0], {"HUMIDITY": [101.0]}, "HUMIDITY is 101.0; it must be from 0 to 100"),
    ([0], {"TEMP": ["warm"]}, "TEMP has 'warm'"),
    ([0, 1], {"TEMP": [1, True]}, "TEMP has True"),
    ([0], {"TEMP": [[1]]}, "TEMP has .1."),
])  # fmt: skip
def test_invalid_readings_are_refused_with_a_sentence(times, values, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        wb.Readings(times, values)


@pytest.mark.parametrize("readings", [
    {"times_s": [1]}, {"times_s": 1, "values": {}}, {"times_s": [1], "values": {"TEMP": 3}},
    {"times_s": [1], "values": 3}, {"times_s": [1], "values": {"TEMP": [1]}, "more": 1},
])  # fmt: skip
def test_invalid_readings_in_a_file_are_refused(readings):
    with pytest.raises(ScenarioError, match=r"workload item: .*(readings|values)"):
        workload.from_dict({"publish": {"at": 1, "what": readings}})


def test_readings_have_no_period():
    with pytest.raises(WorkbenchError, match="Readings, which have their own times"):
        wb.publish(1, MEASURED, every_s=3)

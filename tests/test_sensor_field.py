"""The sensor field: a pure function of place and time, smooth, with a hot spot."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.errors import ParameterError, ScenarioError
from workbench.sensor_field import SensorField

QUIET = SensorField(diurnal_amplitude=0, spatial_sigma=0, noise_sigma=0, hot_spot_amplitude=0)
EXTENT = (48.0, 14.4)

places = st.tuples(st.floats(-100, 500), st.floats(-100, 500))
times = st.floats(0, 1e6)


@given(node=st.integers(0, 2**31 - 1), place=places, time_s=times)
def test_a_reading_is_a_pure_function_at_the_sensors_resolution(node, place, time_s):
    value = SensorField().value(node, *place, time_s, EXTENT)
    assert value == SensorField().value(node, *place, time_s, EXTENT)
    assert value == round(value, 2)


def test_a_reading_is_the_same_in_another_process():
    code = (
        "from workbench.sensor_field import SensorField as F; print(F(seed=5).value(7, 12.5, 3.0, 61.5, (48.0, 14.4)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) == SensorField(seed=5).value(7, 12.5, 3.0, 61.5, EXTENT)


@given(place=places, time_s=times)
def test_attributes_are_text_that_can_be_published(place, time_s):
    text = SensorField().attributes(3, *place, time_s, EXTENT)
    assert text == f"TEMP IS {SensorField().value(3, *place, time_s, EXTENT):.2f}"
    assert len(wb.parse(text)) == 1


def test_a_field_without_anything_is_its_base():
    assert QUIET.attributes(0, 1, 2, 3) == "TEMP IS 21.00"


@pytest.mark.parametrize("seed", range(1, 6))
def test_only_nodes_near_the_hot_spot_are_above_30(seed):
    network, field = wb.topology.office(seed=seed), SensorField(seed=seed)
    hot = 0
    for time_s in range(0, 600, 20):
        middle = field.hot_spot_at(time_s, EXTENT)
        for node, place in network.nodes(data="pos"):
            if field.value(node, *place, time_s, EXTENT) >= 30:
                hot += 1
                assert math.dist(middle, place) < 1.2 * field.hot_spot_radius_m
    assert 30 < hot < 0.35 * 30 * len(network)


@given(seed=st.integers(0, 2**62), place=places, time_s=times)
def test_without_a_hot_spot_no_node_is_above_30(seed, place, time_s):
    assert SensorField(hot_spot_amplitude=0, seed=seed).value(1, *place, time_s) < 30


def test_days_are_warmer_than_nights():
    field = SensorField(hot_spot_amplitude=0, noise_sigma=0)
    at = [field.value(0, 0, 0, hour * 3600) for hour in range(25)]
    assert at.index(max(at)) == 15 and at.index(min(at)) == 3
    assert max(at) - min(at) == pytest.approx(4, abs=0.02)
    assert at[0] == at[24]


def test_places_are_as_different_and_as_alike_as_the_parameters_say():
    pairs = []
    for seed in range(400):
        field = SensorField(seed=seed, base=0, diurnal_amplitude=0, noise_sigma=0, hot_spot_amplitude=0)
        pairs.append([field.value(0, x, 7, 0) for x in (0, 5, 15, 60)])
    spread, likeness = np.std(pairs, axis=0), np.corrcoef(np.transpose(pairs))[0]
    assert spread == pytest.approx([0.8] * 4, rel=0.15)
    assert likeness[1:] == pytest.approx([math.exp(-1 / 18), math.exp(-0.5), 0], abs=0.15)


def test_noise_is_drawn_anew_for_each_node_and_time():
    field = SensorField(diurnal_amplitude=0, spatial_sigma=0, hot_spot_amplitude=0, noise_sigma=0.5)
    noise = np.array([[field.value(node, 0, 0, time_s) - 21 for time_s in range(60)] for node in range(20)])
    assert np.std(noise) == pytest.approx(0.5, rel=0.1)
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.4
    assert len(np.unique(noise)) > 100


def test_the_hot_spot_goes_back_and_forth_on_its_path():
    field = SensorField(hot_spot_path=((0, 0), (1, 0), (1, 1)), hot_spot_speed_m_s=1, hot_spot_start_s=100)
    where = [field.hot_spot_at(time_s, (20, 10)) for time_s in (99, 100, 105, 125, 130, 135, 155, 160, 170)]
    assert where[0] is None
    expected = [(0, 0), (5, 0), (20, 5), (20, 10), (20, 5), (5, 0), (0, 0), (10, 0)]
    assert [tuple(round(x, 6) for x in place) for place in where[1:]] == expected


def test_a_hot_spot_with_one_corner_stays_there():
    assert SensorField(hot_spot_path=((0.5, 0.5),)).hot_spot_at(1e5, (10, 20)) == (5, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base": "warm"}, "base is 'warm'; it must be a number from"),
        ({"base": math.nan}, "base is nan"),
        ({"noise_sigma": -1}, "noise_sigma is -1"),
        ({"resolution": 0}, "resolution is 0"),
        ({"hot_spot_radius_m": True}, r"hot_spot_radius_m is True; it must be a number from 0.01 to 1e\+09 m\."),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"key": "TEMP GE"}, "key is 'TEMP GE'"),
        ({"hot_spot_path": ()}, "hot_spot_path is"),
        ({"hot_spot_path": [(0, 2)]}, "hot_spot_path is"),
        ({"hot_spot_path": ["ab"]}, "hot_spot_path is"),
    ],
)
def test_a_parameter_out_of_range_is_one_sentence(arguments, message):
    with pytest.raises(ParameterError, match=message):
        SensorField(**arguments)
    with pytest.raises(ScenarioError, match=message):
        SensorField.from_dict(arguments)


FIELDS = st.builds(
    SensorField,
    key=st.sampled_from(["TEMP", "LIGHT"]),
    base=st.floats(-50, 50),
    noise_sigma=st.floats(0, 3),
    correlation_length_m=st.floats(0.1, 1e3),
    hot_spot_path=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4),
    hot_spot_speed_m_s=st.floats(0, 100),
    seed=st.integers(0, 2**62),
)


@settings(deadline=None)
@given(field=FIELDS, place=places, time_s=times)
def test_a_field_survives_json(field, place, time_s):
    again = SensorField.from_dict(json.loads(json.dumps(field.to_dict())))
    assert again == field and hash(again) == hash(field)
    assert again.value(1, *place, time_s, EXTENT) == field.value(1, *place, time_s, EXTENT)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(form=JSON_VALUES | st.dictionaries(st.sampled_from(list(SensorField().to_dict())), JSON_VALUES, max_size=4))
def test_any_json_is_a_field_or_a_scenario_error(form):
    try:
        field = SensorField.from_dict(form)
    except ScenarioError as error:
        assert str(error)
    else:
        assert math.isfinite(field.value(0, 1, 2, 3))


def test_a_finer_resolution_is_published_as_it_is_read():
    field = SensorField(key="TEMP", resolution=0.001)
    text = field.attributes(3, 1.0, 2.0, 4.0)
    assert float(text.split()[-1]) == field.value(3, 1.0, 2.0, 4.0)

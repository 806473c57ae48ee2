"""The settings of a board: what provisioning may write, the sentence for each fault, and the count of starts."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import ParameterError
from workbench.motes.program import HARDWARE

FULL = {
    "board": "pico-udp",
    "wifi": {"name": "lab", "key": "correct horse"},
    "channel": 6,
    "pins": {"tx": 0, "rx": 1, "data": 15},
    "baud": 9600,
    "target": {"address": "192.168.4.255", "port": 47700},
    "sensor": {"kind": "dht22", "key": 51, "every_ms": 2000},
    "node": 3,
}


@pytest.fixture(scope="module")
def settings():
    """Import the module from the folder of a mote's files, as provisioning does."""
    sys.path.insert(0, str(HARDWARE / "mote"))
    import settings

    yield settings
    sys.path.remove(str(HARDWARE / "mote"))
    del sys.modules["settings"]


def test_all_keys_but_the_board_are_optional_and_have_defaults(settings):
    assert settings.check_settings({"board": "esp32-espnow"}) == {"board": "esp32-espnow", **settings.DEFAULTS}
    assert settings.check_settings(FULL) == FULL


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"board": "toaster"}, "board is 'toaster'; it must be one of esp32-espnow, esp32-udp, pico-udp, serial-radio"),
        ({"colour": 1}, "settings.json has the key 'colour'; it may have only board"),
        ({"wifi": None}, 'wifi must be an object with "name" and "key"'),
        ({"wifi": {"name": ""}}, "wifi.name must be a text of 1 to 32 bytes"),
        ({"wifi": {"name": "lab", "key": "short"}}, "wifi.key must be a text of 8 to 63 characters"),
        ({"channel": 14}, "channel is 14; it must be an integer from 1 to 13"),
        ({"channel": True}, "channel is True; it must be an integer"),
        ({"baud": "fast"}, "baud is 'fast'; it must be an integer from 1200"),
        ({"pins": [1]}, "pins is \\[1\\]; it must be an object"),
        ({"pins": {"led": 1}}, "pins has the key 'led'; it may have only tx"),
        ({"pins": {"tx": 1}}, "pins.rx is missing; tx and rx are given together"),
        ({"pins": {"adc": -1}}, "pins.adc is -1; it must be an integer from 0"),
        ({"target": {"address": "router"}}, "target.address is 'router'; it must be an IPv4 address"),
        ({"target": {"port": 0}}, "target.port is 0; it must be an integer from 1 to 65535"),
        ({"node": -1}, "node is -1; it must be an integer from 0"),
        ({"sensor": {"kind": "chip", "key": 51}}, "sensor.every_ms is missing; key and every_ms are given together"),
        ({"sensor": {"kind": "chip", "key": 51, "every_ms": 0}}, "sensor.every_ms is 0; it must be an integer from 1"),
        ({"sensor": {"kind": "moon"}}, "sensor.kind is 'moon'; it must be one of chip"),
        ({"sensor": {"kind": "bme280"}}, "pins.sda is missing; a sensor of kind bme280 needs it"),
    ],
)
def test_settings_that_are_not_valid_are_refused_in_one_sentence(settings, changes, sentence):
    with pytest.raises(ParameterError, match=f"^{sentence}"):
        settings.check_settings({**FULL, **changes})


def test_a_board_with_udp_needs_an_access_point(settings):
    for board in settings.NEEDS_WIFI:
        with pytest.raises(ParameterError, match=f"wifi is missing; a board {board} needs"):
            settings.check_settings({"board": board})


def test_a_file_that_is_missing_or_damaged_is_refused_in_one_sentence(settings, tmp_path):
    path = tmp_path / "settings.json"
    with pytest.raises(ParameterError, match="is missing; provision the board"):
        settings.read_settings(str(path))
    for contents in (b"", b"{", b"\xff", json.dumps(FULL).encode()[:-3]):
        path.write_bytes(contents)
        with pytest.raises(ParameterError, match="; provision the board again"):
            settings.read_settings(str(path))
    path.write_text(json.dumps(FULL))
    assert settings.read_settings(str(path)) == FULL


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda values: st.one_of(st.lists(values, max_size=3), st.dictionaries(st.text(max_size=5), values, max_size=3)),
    max_leaves=6,
)


@given(st.sampled_from(sorted(FULL)), json_values)
def test_any_value_of_a_key_is_accepted_or_refused_in_one_sentence(settings, name, value):
    try:
        assert settings.check_settings({**FULL, name: value})[name] == value
    except ParameterError as error:
        assert len(str(error)) < 300 and "\n" not in str(error)


@given(json_values)
def test_no_sentence_contains_the_key_of_the_network(settings, value):
    secret = "hunter2hunter2"
    for wifi in (secret, [secret], {"key": secret}, {"name": 3, "key": secret}, {"name": "x" * 33, "key": secret}):
        with pytest.raises(ParameterError) as refused:
            settings.check_settings({**FULL, "wifi": wifi, "channel": value})
        assert secret not in str(refused.value)


def test_starts_are_counted_over_restarts_and_survive_damage(settings, tmp_path):
    path = tmp_path / "boot_count"
    assert [settings.count_boot(str(path)) for _ in range(3)] == [0, 1, 2]
    path.rename(tmp_path / "boot_count.new")  # as if the power had failed before the file was renamed
    assert settings.count_boot(str(path)) == 3
    path.write_text("4\x00garbage")
    assert settings.count_boot(str(path)) == 0
    assert settings.count_boot(str(tmp_path / "missing folder" / "boot_count")) == 0

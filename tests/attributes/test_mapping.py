"""Attributes from a mapping, and the callable module."""

import cloudpickle
import numpy as np
import pytest

import workbench as wb
from workbench.errors import AttributeFormatError


def test_keys_and_values_become_the_same_attributes_as_in_the_text_form():
    assert wb.attributes(TEMP=25, HUMIDITY=40.5) == wb.parse("TEMP IS 25, HUMIDITY IS 40.5")
    assert wb.attributes({"temp": np.float32(25), 53: np.int64(7)}) == wb.parse("TEMP IS 25, INSTANCE IS 7")
    assert wb.attributes(APP="temperature", TOPIC="a/b") == wb.parse('APP IS Temperature, TOPIC IS "a/b"')
    assert wb.attributes(PAYLOAD=b"\x00") == wb.parse("PAYLOAD IS 0x00")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"TMP": 25}, "key is TMP (did you mean TEMP?)"),
        ({"TEMP": "25"}, "TEMP is '25'; it must be a number"),
        ({"APP": "Temperatur"}, "(did you mean Temperature?); it must be a number or an application type"),
        ({"TEMP": True}, "TEMP is True; it must be a number"),
        ({"TEMP": [20, 21]}, "TEMP is [20, 21]; it must be a number"),
        ({"TEMP": 500}, "TEMP is 500; it must be from -327.68 to 327.67"),
        ({None: 1}, "key is None; it must be a name"),
        ("TEMP IS 25", "it must be a mapping: use attributes(TEMP=25)"),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_a_sentence(values, sentence):
    with pytest.raises(AttributeFormatError) as refused:
        wb.attributes(values)
    assert sentence in str(refused.value)


def test_the_callable_module_is_pickled_by_name():
    assert cloudpickle.loads(cloudpickle.dumps(wb.attributes)) is wb.attributes

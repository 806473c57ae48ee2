"""Fields of forms: a control for each line of a table, errors beside it, and its reason on request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.protocols.parameter import Parameter
from workbench.widgets.fields import Field, fields_of, literal, reason_of, usual_range, why_button

TTL = Parameter("ttl", 50, 1, 255, "hops", "TTL of the definition file")
LOSS = Parameter("loss", 0.1, 0.0, 1.0, "share", "every arc loses it")
RATE = Parameter("bit_rate_bps", 250_000, 1, 10**10, "bit/s", "802.15.4 at 2.4 GHz")
ROOTS = Parameter("roots", (0,), None, None, "nodes", "a lone sink has the first address")
MODE = Parameter("publish", "all", ("all", "own"), None, "", "the paper's")
REARM = Parameter("rearm", True, None, None, "", "later packets are worth sending")
SEPARATORS = Parameter("separators", "/", None, None, "", "between the levels of a topic")
TABLE = (TTL, LOSS, RATE, ROOTS, MODE, REARM, SEPARATORS)


def slider_and_text(field):
    return field._controls


@pytest.mark.parametrize("parameter", TABLE, ids=[parameter.name for parameter in TABLE])
def test_a_field_starts_with_the_default_and_shows_its_name_unit_and_reason(parameter):
    field = Field(parameter)
    assert field.value == parameter.default and not field.error
    for control in field._controls:
        assert control.tooltip == f"{parameter.name}: {parameter.reason}"
    assert parameter.name in field.children[0].value.replace("<wbr>", "") and parameter.unit in field.children[-3].value


# step of the slider and its value; a number that is entered, and the step of the slider afterwards
@pytest.mark.parametrize(
    ("parameter", "step", "number", "written", "step_after"),
    [(TTL, 7, 7, 200, 200), (RATE, 6.0, 1_000_000, 10**10, None)],
    ids=["by ones", "by decades, and beyond them"],
)
def test_slider_and_number_have_the_same_value(parameter, step, number, written, step_after):
    field = Field(parameter)
    slider, text = slider_and_text(field)
    slider.value = step
    assert field.value == number and text.value == str(number)
    text.value = str(written)
    assert (
        field.value == written
        and slider.value == (slider.max if step_after is None else step_after)
        and not field.error
    )
    field.value = number
    assert abs(slider.value - step) <= slider.step and text.value == str(number)


def test_rounding_a_slider_to_its_nearest_step_changes_nothing():
    field = Field(LOSS)
    slider, _ = slider_and_text(field)
    field.value = 0.12345
    slider.value += slider.step / 10  # the rounded value that the browser sends back
    assert field.value == 0.12345


@pytest.mark.parametrize(
    ("parameter", "text", "message"),
    [
        (TTL, "", "'' is not a whole number"),
        (TTL, "ten", "'ten' is not a whole number"),
        (TTL, "2.5", "is not a whole number"),
        (TTL, "0", "it must be a whole number from 1 to 255 hops"),
        (TTL, "9" * 5000, "is not a whole number"),
        (LOSS, "much", "'much' is not a number"),
        (LOSS, "nan", "it must be a number from 0.0 to 1.0 share"),
        (LOSS, "1e400", "it must be a number"),
        (LOSS, "-0.1", "it must be a number from 0.0 to 1.0"),
    ],
)
def test_nonsense_stays_with_an_error_beside_it_and_the_value_is_unchanged(parameter, text, message):
    field = Field(parameter)
    _, box = slider_and_text(field)
    box.value = text
    assert message in field.error and field._message.value
    assert box.value == text and field.value == parameter.default
    box.value = "1"
    assert field.value == 1 and not field.error and not field._message.value


def test_moving_the_slider_replaces_nonsense():
    field = Field(TTL)
    slider, text = slider_and_text(field)
    text.value = "ten"
    slider.value = 51
    assert (field.value, field.error, text.value) == (51, "", "51")
    text.value = "ten"
    field.show(51)
    assert (field.value, field.error, text.value) == (51, "", "51")


def test_lists_have_commas_choices_a_menu_and_booleans_a_box():
    roots, mode, rearm = Field(ROOTS), Field(MODE), Field(REARM)
    roots._controls[0].value = "0, 5,12"
    mode._controls[0].value = "own"
    rearm._controls[0].value = False
    assert (roots.value, mode.value, rearm.value) == ((0, 5, 12), "own", False)
    roots.value = (1, 2)
    assert roots._controls[0].value == "1, 2"


def test_the_reason_is_displayed_below_a_field_on_request():
    fields = fields_of(TABLE, {parameter.name: parameter.default for parameter in TABLE}, "Form")
    why = why_button(fields.values)
    reason = fields["ttl"].children[-1]
    assert "wb-none" in reason._dom_classes
    why.value = True
    assert "50 unless set, 1 to 255: TTL of the definition file" in reason.value
    assert not any("wb-none" in field.children[-1]._dom_classes for field in fields.values())
    why.value = False
    assert "wb-none" in reason._dom_classes


def test_reasons_of_choices_lists_and_open_ranges():
    assert reason_of(MODE) == "all unless set: the paper's"
    assert reason_of(REARM).startswith("yes unless set: ")
    assert reason_of(ROOTS).startswith("0 unless set: ")
    assert reason_of(Parameter("max_events", 1000, 1, None, "", "many")) == "1000 unless set, from 1: many"


@given(st.text(max_size=40))
def test_any_text_is_read_as_a_value(text):
    assert isinstance(literal(text), (int, float, str))


@pytest.mark.parametrize("text", ["{[]: 1}", "[1]", "None", "1e999", "(" * 5000, "-" * 100_000 + "1", "b'x'"])
def test_text_that_is_neither_a_number_nor_quoted_is_unchanged(text):
    assert literal(text) == text


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(0, 1e6))
def test_the_usual_range_contains_the_default_and_is_within_the_table(low, up, further):
    default, high = low + up, low + up + further
    begin, end = usual_range(Parameter("x", default, low, high, "", ""))
    assert low <= begin <= default <= end <= high

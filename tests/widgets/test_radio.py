"""The form of radio, duration and seed."""

import pytest

import workbench as wb
from workbench.widgets.radio import Conditions, RadioForm

FIRST = Conditions(wb.Radio(), 60.0, 1)


def box(form, name):
    return form.fields[name]._controls[-1]


def test_displaying_a_value_does_not_change_it():
    radio = wb.Radio(loss=0.25, collisions=True, csma=True, retries=3, jitter_ms=(0.3, 300), tx_uJ_per_B=0.1)
    conditions = Conditions(radio, 12.5, -4)
    form = RadioForm(conditions)
    assert form.value == conditions
    assert (form.loss.value, form.share.value) == ("a share of all frames", 0.25)
    assert [box(form, name).value for name in ("duration_s", "seed", "retries")] == ["12.5", "-4", "3"]
    assert [box(form, name).value for name in ("jitter_from_ms", "jitter_to_ms")] == ["0.3", "300"]
    assert box(form, "csma").value is True


def test_each_control_changes_only_its_field():
    form, changes = RadioForm(), []
    form.observe(lambda change: changes.append(change.new), "value")
    assert form.value == FIRST
    for name, text in (("retries", "3"), ("overhead_B", "10"), ("rx_uJ_per_B", "2.5")):
        box(form, name).value = text
    box(form, "collisions").value = True
    box(form, "duration_s").value = "5"
    box(form, "seed").value = "9"
    radio = wb.Radio(retries=3, overhead_B=10, rx_uJ_per_B=2.5, collisions=True)
    assert form.value == Conditions(radio, 5.0, 9)
    assert len(changes) == 6


def test_loss_is_that_of_the_links_none_or_a_share():
    form = RadioForm()
    assert form.share.layout.display == "none"
    form.loss.value = "nothing"
    assert form.value.radio == wb.Radio(loss="none")
    form.loss.value = "a share of all frames"
    assert form.share.layout.display is None and form.value.radio == wb.Radio(loss=0.1)
    form.share._controls[-1].value = "0.3"
    assert form.value.radio == wb.Radio(loss=0.3)
    form.share._controls[-1].value = "3"
    assert "from 0.0 to 1.0" in form.share.error and form.value.radio == wb.Radio(loss=0.3)
    form.loss.value = "as the links lose"
    assert form.value == FIRST


@pytest.mark.parametrize(
    "name", sorted(set(RadioForm().fields) - {"collisions", "csma", "link_quality", "overhearing"})
)
@pytest.mark.parametrize("text", ["", "ten", "-1", "nan", "1e400", "9" * 5000])
def test_nonsense_stays_in_its_field_with_an_error_and_other_fields_work(name, text):
    form = RadioForm()
    box(form, name).value = text
    assert form.fields[name].error and box(form, name).value == text and form.value == FIRST
    box(form, "csma").value = True
    assert form.value == FIRST._replace(radio=wb.Radio(csma=True)) and form.fields[name].error
    form.value = FIRST
    assert not form.fields[name].error


def test_a_reversed_range_of_jitter_waits_for_its_second_value():
    form = RadioForm()
    box(form, "jitter_from_ms").value = "20"
    assert "from a lower to a higher" in form.fields["jitter_from_ms"].error and form.value == FIRST
    box(form, "retries").value = "2"
    assert form.value.radio == wb.Radio(retries=2) and form.fields["jitter_from_ms"].error
    box(form, "jitter_to_ms").value = "30"
    assert form.value.radio == wb.Radio(retries=2, jitter_ms=(20, 30))
    assert not form.fields["jitter_from_ms"].error


def test_the_button_for_another_seed_draws_a_different_one(monkeypatch):
    monkeypatch.setattr("workbench.widgets.radio.secrets.randbelow", lambda most: 4711)
    form = RadioForm()
    form.another.click()
    assert form.value == Conditions(wb.Radio(), 60.0, 4711)


def test_reasons_are_shown_on_demand():
    form = RadioForm()
    form.why.value = True
    assert form.share.is_explained and all(field.is_explained for field in form.fields.values())

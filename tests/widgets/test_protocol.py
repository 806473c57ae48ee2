"""The form of a protocol: made from its table, with the settings of papers, and a sentence where something is wrong."""

import pytest

import workbench as wb
from workbench import public_names
from workbench.protocols.protocol import Parameter
from workbench.sim.file_format import protocol_from_dict
from workbench.widgets.protocol import ProtocolForm, protocol_names

NONSENSE = ("", "ten", "-1", "nan", "1e400", "9" * 5000, "{[]: 1}", "1, {}", "0, 0", "((((", "TEMP 9 1", "²", "\0 ü")
PRESETS = [(name, preset) for name in protocol_names() for preset in protocol_from_dict({"name": name}).presets]


def last_control(form, name):
    """The text, box or choice of a field."""
    return form.fields[name]._controls[-1]


def test_all_protocols_can_be_chosen_and_have_a_field_for_each_setting():
    form = ProtocolForm()
    assert type(form.value).__name__ == public_names.FIRST_PROTOCOL
    assert set(form.choice.options) == set(public_names.PROTOCOLS) - {"PrintedTinyMQ"}
    for name in form.choice.options:
        form.choice.value = name
        assert type(form.value).__name__ == name and form.presets.value == "defaults"
        assert set(form.fields) == set(form.value.settings) - {"filters"}
        for one, field in form.fields.items():
            assert field.value == form.value.settings[one]


def test_a_setting_that_is_edited_makes_the_next_protocol():
    form, seen = ProtocolForm(wb.Flooding()), []
    form.observe(lambda change: seen.append(change.new), "value")
    last_control(form, "ttl").value = "9"
    assert seen == [wb.Flooding(ttl=9)] == [form.value]
    assert form.presets.value == "as set below"
    form.value = wb.Flooding(ttl=3, max_events=7)
    assert (form.fields["ttl"].value, last_control(form, "max_events").value) == (3, "7")
    assert len(seen) == 2


def test_a_protocol_that_is_chosen_again_is_as_it_was():
    form = ProtocolForm(wb.Gossip(forwarding_probability=0.9))
    form.choice.value = "DPS"
    form.choice.value = "Gossip"
    assert form.value == wb.Gossip(forwarding_probability=0.9)


def test_filters_stay_as_they_are_while_settings_change():
    filters = (wb.Filter("suppress_unchanged", match="TEMP EQ_ANY", tolerance=1.0),)
    form = ProtocolForm(wb.Diffusion(filters=filters))
    assert form.presets.value == "defaults"
    last_control(form, "ttl").value = "9"
    form.presets.value = "TinyOS's frames of 29 B"
    assert form.value == wb.Diffusion(profile="strict", filters=filters)


@pytest.mark.parametrize("name", protocol_names())
def test_nonsense_in_any_field_gets_a_sentence_or_is_a_protocol(name):
    """Nothing raises, and what is shown without a complaint is what the protocol has."""
    form = ProtocolForm(protocol_from_dict({"name": name}))
    for one, field in form.fields.items():
        box = field._controls[-1]
        if not isinstance(box.value, str) or isinstance(field.parameter.minimum, tuple):
            continue
        for text in NONSENSE:
            before = form.value
            box.value = text
            if field.error:
                assert form.value == before, (one, text)
            else:
                assert form.value.settings[one] == field.value, (one, text)
        form.value = protocol_from_dict({"name": name})
        form.presets.value = "defaults"
        field.show(form.value.settings[one])
        assert not any(other.error for other in form.fields.values())


def test_settings_that_do_not_go_together_wait_for_each_other():
    form = ProtocolForm(wb.TinyMQ())
    last_control(form, "refresh_s").value = "200"
    assert "lease_s must be longer" in form.fields["refresh_s"].error
    assert form.value == wb.TinyMQ() and last_control(form, "refresh_s").value == "200"
    last_control(form, "key_bits").value = "9"
    assert form.value == wb.TinyMQ(key_bits=9) and form.fields["refresh_s"].error
    last_control(form, "lease_s").value = "1000"
    assert form.value == wb.TinyMQ(key_bits=9, refresh_s=200.0, lease_s=1000.0)
    assert not form.fields["refresh_s"].error


def test_what_is_wrong_goes_when_another_value_comes():
    form = ProtocolForm(wb.Flooding(ttl=9))
    last_control(form, "ttl").value = "ten"
    form.value = wb.Flooding(ttl=9, max_events=5)
    assert last_control(form, "ttl").value == "9" and not form.fields["ttl"].error


def test_the_protocol_as_printed_is_a_setting_of_the_other():
    form = ProtocolForm(wb.TinyMQ())
    last_control(form, "literal").value = True
    assert type(form.value) is wb.PrintedTinyMQ and form.choice.value == "TinyMQ"
    last_control(form, "shortcuts").value = False
    assert "the published algorithms use them" in form.fields["shortcuts"].error
    last_control(form, "literal").value = False
    assert form.value == wb.TinyMQ(shortcuts=False)


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_is_a_protocol_of_its_own_that_a_form_recognizes(name, preset):
    form = ProtocolForm(protocol_from_dict({"name": name}))
    settings = form.value.presets[preset]
    form.presets.value = preset
    assert {one: form.value.settings[one] for one in settings} == settings
    rest = {one.name: one.default for one in form.value.parameters if one.name not in settings}
    assert {one: form.value.settings[one] for one in rest} == rest
    assert form.presets.value == preset and form.value != protocol_from_dict({"name": name})
    form.presets.value = "defaults"
    assert form.value == protocol_from_dict({"name": name})


def test_presets_leave_roots_where_they_are():
    form = ProtocolForm(wb.TinyMQ(roots=(3, 4)))
    assert form.presets.value == "defaults"
    form.presets.value = "lesson 3"
    assert (form.value.roots, form.value.key_bits) == ((3, 4), 4)


def test_reasons_are_shown_of_each_protocol_while_the_button_is_down():
    form = ProtocolForm(wb.Flooding())
    form.why.value = True
    form.choice.value = "DPS"
    assert all(field.is_explained for field in form.fields.values())
    form.why.value = False
    form.choice.value = "Flooding"
    assert not any(field.is_explained for field in form.fields.values())


class Whisper(wb.Flooding):
    """Flooding of a user's."""

    parameters = (*wb.Flooding.parameters, Parameter("volume", 3, 1, 9, "dB", "quiet"))


def test_a_protocol_of_the_users_has_a_form():
    form = ProtocolForm()
    form.value = Whisper(volume=4)
    assert form.choice.value == "Whisper" and form.fields["volume"].value == 4
    form.choice.value = "Flooding"
    form.choice.value = "Whisper"
    assert form.value == Whisper(volume=4)

"""The form of a protocol, built from its table: settings of papers, and errors for invalid settings."""

import pytest

import workbench as wb
from workbench import public_names
from workbench.protocols.protocol import Parameter
from workbench.sim.file_format import protocol_from_dict
from workbench.widgets.protocol import ProtocolForm, protocol_names

NONSENSE = ("", "ten", "-1", "nan", "1e400", "9" * 5000, "{[]: 1}", "1, {}", "0, 0", "((((", "TEMP 9 1", "²", "\0 ü")
PRESETS = [(name, preset) for name in protocol_names() for preset in protocol_from_dict({"name": name}).presets]


def last_control(form, name):
    """Return the text, menu or box of a field."""
    return form.fields[name]._controls[-1]


def test_all_protocols_can_be_chosen_and_have_a_field_for_each_setting():
    form = ProtocolForm()
    assert type(form.value).__name__ == public_names.FIRST_PROTOCOL
    assert set(form.choice.options) == set(public_names.PROTOCOLS) - {"PrintedTinyMQ"}
    for name in form.choice.options:
        form.choice.value = name
        assert type(form.value).__name__ == name and form.presets.value == "defaults"
        assert set(form.fields) == set(form.value.settings) - {"filters"}
        for setting, field in form.fields.items():
            assert field.value == form.value.settings[setting]


def test_an_edited_setting_creates_the_next_protocol():
    form, changes = ProtocolForm(wb.Flooding()), []
    form.observe(lambda change: changes.append(change.new), "value")
    last_control(form, "ttl").value = "9"
    assert changes == [wb.Flooding(ttl=9)] == [form.value]
    assert form.presets.value == "as set below"
    form.value = wb.Flooding(ttl=3, max_events=7)
    assert (form.fields["ttl"].value, last_control(form, "max_events").value) == (3, "7")
    assert len(changes) == 2


def test_a_protocol_that_is_chosen_again_has_its_previous_settings():
    form = ProtocolForm(wb.Gossip(forwarding_probability=0.9))
    form.choice.value = "DPS"
    form.choice.value = "Gossip"
    assert form.value == wb.Gossip(forwarding_probability=0.9)


def test_filters_are_unchanged_by_other_settings():
    filters = (wb.Filter("suppress_unchanged", match="TEMP EQ_ANY", tolerance=1.0),)
    form = ProtocolForm(wb.Diffusion(filters=filters))
    assert form.presets.value == "defaults"
    last_control(form, "ttl").value = "9"
    form.presets.value = "TinyOS's frames of 29 B"
    assert form.value == wb.Diffusion(profile="strict", filters=filters)


@pytest.mark.parametrize("name", protocol_names())
def test_nonsense_in_any_field_gives_an_error_or_a_protocol(name):
    """No text raises an exception, and a displayed value without an error is that of the protocol."""
    form = ProtocolForm(protocol_from_dict({"name": name}))
    for setting, field in form.fields.items():
        box = field._controls[-1]
        if not isinstance(box.value, str) or isinstance(field.parameter.minimum, tuple):
            continue
        for text in NONSENSE:
            before = form.value
            box.value = text
            if field.error:
                assert form.value == before, (setting, text)
            else:
                assert form.value.settings[setting] == field.value, (setting, text)
        form.value = protocol_from_dict({"name": name})
        form.presets.value = "defaults"
        field.show(form.value.settings[setting])
        assert not any(field_.error for field_ in form.fields.values())


def test_incompatible_settings_wait_for_each_other():
    form = ProtocolForm(wb.TinyMQ())
    last_control(form, "refresh_s").value = "200"
    assert "lease_s must be longer" in form.fields["refresh_s"].error
    assert form.value == wb.TinyMQ() and last_control(form, "refresh_s").value == "200"
    last_control(form, "key_bits").value = "9"
    assert form.value == wb.TinyMQ(key_bits=9) and form.fields["refresh_s"].error
    last_control(form, "lease_s").value = "1000"
    assert form.value == wb.TinyMQ(key_bits=9, refresh_s=200.0, lease_s=1000.0)
    assert not form.fields["refresh_s"].error


def test_a_new_value_replaces_wrong_entries():
    form = ProtocolForm(wb.Flooding(ttl=9))
    last_control(form, "ttl").value = "ten"
    form.value = wb.Flooding(ttl=9, max_events=5)
    assert last_control(form, "ttl").value == "9" and not form.fields["ttl"].error


def test_the_published_protocol_is_a_setting_of_its_extension():
    form = ProtocolForm(wb.TinyMQ())
    last_control(form, "literal").value = True
    assert type(form.value) is wb.PrintedTinyMQ and form.choice.value == "TinyMQ"
    last_control(form, "shortcuts").value = False
    assert "the published algorithms use them" in form.fields["shortcuts"].error
    last_control(form, "literal").value = False
    assert form.value == wb.TinyMQ(shortcuts=False)


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_is_a_separate_protocol_that_the_form_recognizes(name, preset):
    form = ProtocolForm(protocol_from_dict({"name": name}))
    settings = form.value.presets[preset]
    form.presets.value = preset
    assert {name: form.value.settings[name] for name in settings} == settings
    rest = {parameter.name: parameter.default for parameter in form.value.parameters if parameter.name not in settings}
    assert {name: form.value.settings[name] for name in rest} == rest
    assert form.presets.value == preset and form.value != protocol_from_dict({"name": name})
    form.presets.value = "defaults"
    assert form.value == protocol_from_dict({"name": name})


def test_presets_do_not_change_roots():
    form = ProtocolForm(wb.TinyMQ(roots=(3, 4)))
    assert form.presets.value == "defaults"
    form.presets.value = "lesson 3"
    assert (form.value.roots, form.value.key_bits) == ((3, 4), 4)


def test_reasons_of_each_protocol_are_displayed_while_the_button_is_active():
    form = ProtocolForm(wb.Flooding())
    form.why.value = True
    form.choice.value = "DPS"
    assert all(field.is_explained for field in form.fields.values())
    form.why.value = False
    form.choice.value = "Flooding"
    assert not any(field.is_explained for field in form.fields.values())


class Whisper(wb.Flooding):
    """A custom version of flooding."""

    parameters = (*wb.Flooding.parameters, Parameter("volume", 3, 1, 9, "dB", "quiet"))


def test_a_custom_protocol_has_a_form():
    form = ProtocolForm()
    form.value = Whisper(volume=4)
    assert form.choice.value == "Whisper" and form.fields["volume"].value == 4
    form.choice.value = "Flooding"
    form.choice.value = "Whisper"
    assert form.value == Whisper(volume=4)

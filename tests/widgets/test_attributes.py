"""The panel that edits attributes: rows and text in both directions, errors beside fields, and matches."""

import pytest
from ipywidgets.widgets.widget import _instances

import workbench as wb
from workbench.attributes import keys
from workbench.widgets import controls
from workbench.widgets.attributes import Attributes


def rows(part):
    return [(row.key.value, row.operator.value, row.number.value) for row in part.rows]


def test_a_value_is_displayed_as_rows_and_as_text():
    part = Attributes("TEMP GE 20, TEMP LE 30")
    assert rows(part) == [("TEMP", "GE", "20"), ("TEMP", "LE", "30")]
    part.value = "APP EQ Humidity, HUMIDITY EQ_ANY"
    assert rows(part) == [("APP", "EQ", "Humidity"), ("HUMIDITY", "EQ_ANY", "")]
    assert part._text.value == part.value


def test_edited_rows_change_the_text_and_edited_text_changes_the_rows():
    part = Attributes("TEMP GE 20, TEMP LE 30")
    part.rows[1].number.value = "31.5"
    assert part.value == part._text.value == "TEMP GE 20, TEMP LE 31.5"
    part._text.value = "HUMIDITY > 40"
    assert part.value == "HUMIDITY > 40"
    assert rows(part) == [("HUMIDITY", "GT", "40")]


def test_interval_of_a_subscription_states_a_rate_unless_another_operator_is_chosen():
    part = Attributes("TEMP GE 20, TEMP LE 30")
    part.rows[1].key.value = "INTERVAL"
    assert part.value == "TEMP GE 20, INTERVAL IS 30"
    part.rows[1].operator.value = "LE"
    assert part.value == "TEMP GE 20, INTERVAL LE 30"


@pytest.mark.parametrize(
    ("text", "message"),
    [("warm", "it must be a number"), ("9999", "it must be from"), ("1, TEMP GE 2", "more than one")],
)
def test_a_wrong_entry_stays_in_its_row_with_an_error_and_the_panel_keeps_its_value(text, message):
    part = Attributes("TEMP GE 20, TEMP LE 30")
    part.rows[0].number.value = text
    assert message in part.rows[0].error
    assert part.rows[0].number.value == text
    part.rows[1].number.value = "29"
    assert part.value == "TEMP GE 20, TEMP LE 30"
    part.rows[0].number.value = "21"
    assert part.value == "TEMP GE 21, TEMP LE 29"
    assert not part.rows[0].error


def test_invalid_text_stays_with_an_error():
    part = Attributes("TEMP GE 20")
    part._text.value = "TEMP ABOVE 20"
    assert "must be one of" in part.error
    assert part.value == "TEMP GE 20"
    part.value = "TEMP GE 22"
    assert not part.error


def test_a_subscription_needs_a_constraint_and_a_publication_needs_values():
    asks, states = Attributes("TEMP GE 20"), Attributes("TEMP IS 20", kind="publication")
    asks.rows[0].operator.value = "IS"
    assert "constrains nothing" in asks.error
    assert asks.value == "TEMP GE 20"
    assert [name for _, name in states.rows[0].operator.options] == ["IS"]
    asks.match_all = True
    assert asks.value == "TEMP IS 20"


def test_attributes_are_added_and_removed():
    part = Attributes("TEMP GE 20")
    part._add.click()
    part.rows[1].operator.value = "LE"
    part.rows[1].number.value = "30"
    assert part.value == "TEMP GE 20, TEMP LE 30"
    part.rows[0].remove.click()
    assert part.value == "TEMP LE 30"
    part.rows[0].remove.click()
    assert part.value == "TEMP LE 30"
    assert "constrains nothing" in part.error


def test_a_text_key_accepts_text_without_quotes():
    part = Attributes("TEMP GE 20")
    part.rows[0].key.value = "TOPIC"
    part.rows[0].number.value = "hall/1"
    assert part.value == 'TOPIC EQ "hall/1"'


def test_custom_keys_are_in_the_list_with_their_unit(monkeypatch):
    monkeypatch.setattr(keys, "_keys_by_name", dict(keys._keys_by_name))
    monkeypatch.setattr(keys, "_keys_by_number", dict(keys._keys_by_number))
    part = Attributes("TEMP GE 20")
    wb.register_key(177, "CO2_TRY", unit="ppm", minimum=0)
    part.refresh()
    part.rows[0].key.value = "CO2_TRY"
    assert part.value == "CO2_TRY GE 20"
    assert "ppm, 0 to 32767" in part.rows[0]._unit.value


def test_a_mismatch_is_explained_by_the_attribute_that_fails():
    publications = [("a", "TEMP IS 25"), ("b", "TEMP IS 35"), ("c", "HUMIDITY IS 40"), ("d", "nonsense")]
    part = Attributes("TEMP GE 20, TEMP LE 30", against=publications)
    matches = {label: (is_match, why) for label, is_match, why in part.matches()}
    assert matches["a"] == (True, "")
    assert matches["b"] == (False, "TEMP LE 30 fails; published: TEMP IS 35")
    assert matches["c"] == (False, "no publication has the key of TEMP GE 20")
    assert "not an attribute" in matches["d"][1]
    assert "Matches 1 of 4 publications" in part._matches.value
    part.rows[1].number.value = "36"
    assert "Matches 2 of 4 publications" in part._matches.value


def test_a_publication_is_compared_with_subscriptions_by_the_rule_of_the_protocol():
    part = Attributes('TOPIC IS "hall/1"', "publication", [("a", 'TOPIC EQ "hall/+"')], protocol=wb.DPS())
    assert part.matches() == (("a", True, ""),)
    part.protocol = wb.Flooding()
    assert "compares topics byte by byte" in part.matches()[0][2]
    assert "Matches 0 of 1 subscriptions" in part._matches.value


def test_a_publication_has_constraints_only_if_the_protocol_allows_them():
    two_way = wb.Diffusion(matching="two-way")
    part = Attributes("TEMP IS 22", "publication", [("a", "TEMP GE 20, INSTANCE IS 4"), ("b", "TEMP GE 20")])
    part._text.value = "TEMP IS 22, INSTANCE EQ 4"
    assert "only IS attributes describe data" in part.error and part.value == "TEMP IS 22"
    part.protocol = wb.Diffusion()
    assert "only IS attributes describe data" in part.error and part.value == "TEMP IS 22"
    part.protocol = two_way
    assert part.value == part._text.value == "TEMP IS 22" and not part.error
    part._text.value = "TEMP IS 22, INSTANCE EQ 4"
    assert part.value == "TEMP IS 22, INSTANCE EQ 4" and not part.error
    assert rows(part) == [("TEMP", "IS", "22"), ("INSTANCE", "EQ", "4")]
    assert [is_match for _, is_match, _ in part.matches()] == [True, False]
    assert "no IS attribute that meets INSTANCE EQ 4" in part.matches()[1][2]
    part.rows[1].operator.value = "GE"
    assert part.value == "TEMP IS 22, INSTANCE GE 4"
    part.rows[0].remove.click()
    assert "only IS attributes describe data" in part.error and part.value == "TEMP IS 22, INSTANCE GE 4"
    part.value = "TEMP IS 23"
    part.protocol = wb.Flooding()
    assert [name for _, name in part.rows[0].operator.options] == ["IS"]
    assert not part.error
    constrained = Attributes("TEMP IS 22, INSTANCE EQ 4", "publication", protocol=two_way)
    constrained.protocol = wb.Diffusion(matching="strict")
    assert "only IS attributes describe data" in constrained.error


def test_many_edits_make_no_further_widgets():
    part = Attributes("TEMP GE 20, TEMP LE 30")
    before = len(_instances)
    for number in range(20):
        part._text.value = f"TEMP GE {number}" if number % 2 else f"TEMP GE {number}, TEMP LE 99"
    assert len(_instances) == before


class Shell:
    """The methods of IPython's shell that panels use."""

    def __init__(self):
        self.events = self
        self.callbacks = {"post_run_cell": []}

    def register(self, event, callback):
        self.callbacks[event].append(callback)


def test_panels_refresh_after_each_cell_until_they_are_closed(monkeypatch):
    shell = Shell()
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    controls._panels.clear()
    refreshed = []
    monkeypatch.setattr(Attributes, "refresh", lambda self: refreshed.append(self.value))
    part, second = Attributes("TEMP GE 1"), Attributes("TEMP GE 2")
    (after_cell,) = shell.callbacks["post_run_cell"]
    after_cell()
    assert sorted(refreshed) == ["TEMP GE 1", "TEMP GE 2"]
    second.close()
    refreshed.clear()
    after_cell()
    assert refreshed == ["TEMP GE 1"]
    part.close()


def test_a_panel_has_a_text_form():
    assert "TEMP GE 20" in repr(Attributes("TEMP GE 20"))  # notebooks display it beside the widget


def test_an_error_about_a_very_long_text_quotes_a_part_of_it():
    part = Attributes("TEMP GE 20")
    part._text.value = part.rows[0].number.value = "x" * 5000
    for message, wrong in (
        (part._message.value, "KEY OPERATOR VALUE"),
        (part.rows[0]._message.value, "must be a number"),
    ):
        assert "xxx" in message and "…" in message and wrong in message and len(message) < 600
    assert part.value == "TEMP GE 20"

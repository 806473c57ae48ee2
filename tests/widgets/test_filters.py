"""The panel that edits filters, the catalogue of filters, and the effects of filters in a run."""

import pytest

import workbench as wb
from workbench.analysis.decisions import count_changes, decisions
from workbench.protocols.diffusion.filters import catalogue
from workbench.protocols.diffusion.filters.built_in import registered
from workbench.widgets.filters import Filters, _select_decisions, setting_of


def plus_one(attributes):
    """Add one degree to each value."""
    return [attribute._replace(value=attribute.value + 100) for attribute in attributes]


@pytest.fixture(autouse=True)
def nothing_registered():
    """Remove the filters that other tests have registered, during a test."""
    previous = dict(registered)
    registered.clear()
    yield
    registered.clear()
    registered.update(previous)


@pytest.fixture
def part():
    return Filters(wb.Diffusion(ttl=9), nodes=range(9))


def lines(part):
    return list(part._lines._list.options)


def type_into(field, text):
    """Enter a text into the box of a field."""
    field._controls[-1].value = text


def run_with(*filters, duration_s=60):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(8, "TEMP IS 25", every_s=5)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(filters=filters), workload, duration_s=duration_s)
    return scenario.run(engine="reference")


def test_the_setting_that_holds_filters_is_found_by_the_table():
    assert setting_of(wb.Diffusion()) == "filters"
    assert setting_of(wb.Flooding()) == setting_of(None) == ""


def test_a_protocol_without_filters_has_a_note_and_is_unchanged(part):
    part.value = wb.Flooding(ttl=3)
    assert "Flooding has no filters" in part._no_filters.value
    assert part._editor.layout.display == "none"
    part.add("running_mean")
    assert part.value == wb.Flooding(ttl=3)
    part.value = wb.Diffusion()
    assert part._editor.layout.display is None
    assert part._kind.value == part._kind.options[0]


def test_every_filter_of_the_catalogue_can_be_added_and_has_a_form(part):
    wb.register_filter("fuse", b"".join)
    part.refresh()
    for name in [kind.name for kind in catalogue.kinds()]:
        part._kind.value = name
        part._add.click()
        assert not part.error
        assert part.filters[part.selected].name == name
        assert set(part._form.fields) == {parameter.name for parameter in part._find_kinds()[name].parameters}
    assert [filter_.key for filter_ in part.filters] == list(range(200, 209))
    assert part.value == wb.Diffusion(ttl=9, filters=part.filters)


def test_a_filter_that_calls_a_function_needs_one(part):
    part.add("blob_fusion")
    assert "no default for its parameter function" in part.error
    assert part.value == wb.Diffusion(ttl=9)
    wb.register_filter("fuse", b"".join)
    part.add("blob_fusion")
    assert part.filters[0] == wb.Filter("blob_fusion", function="fuse")


def test_the_form_edits_the_selected_filter(part):
    part.add("running_mean")
    type_into(part._form.fields["window"], "7")
    part._form.at.text = "1, 4-6"
    part._form.match._text.value = "TEMP GE 20"
    assert part.filters == (wb.Filter("running_mean", match="TEMP GE 20", at=[1, 4, 5, 6], window=7),)
    part._form.messages.value = "interest"
    assert part.filters[0].messages == "interest"
    assert lines(part) == ["200  running_mean (window 7): interest with TEMP GE 20, at nodes 1, 4-6"]


def test_wrong_entries_stay_in_the_form_with_an_error_and_the_protocol_is_unchanged(part):
    part.add("threshold_alarm")
    previous = part.value
    part._form.at.text = "99"
    assert "node 99 is not in the network" in part._form.at.error
    part._form.at.text = "all"
    type_into(part._form.fields["low"], "40")
    assert "low must not be above high" in part._form._message.value
    part._form.at.text = "3"  # invalid without the other setting
    assert part.value == previous
    type_into(part._form.fields["high"], "45")
    assert part.filters == (wb.Filter("threshold_alarm", at=3, low=40.0, high=45.0),)
    assert part._form._message.value == part._form.at.error == ""


def test_filters_are_reordered_moved_to_picked_nodes_and_removed(part):
    remove, up, down = part._lines._buttons
    part.add("running_mean")
    part.picked = (1, 2)
    part.add("rate_limit")
    assert part.filters == (wb.Filter("running_mean"), wb.Filter("rate_limit", key=201, at=[1, 2]))
    up.click()
    assert part.filters == (wb.Filter("rate_limit", at=[1, 2]), wb.Filter("running_mean", key=201))
    assert part.selected == 0
    up.click()
    part.selected = 1
    part._move_button.click()
    assert [filter_.at for filter_ in part.filters] == [(1, 2), (1, 2)]
    remove.click()
    assert part.filters == (wb.Filter("rate_limit", at=[1, 2]),)
    remove.click()
    assert part.value == wb.Diffusion(ttl=9)
    assert remove.disabled and up.disabled and down.disabled and part._move_button.disabled


def test_two_filters_with_the_same_key_are_refused_with_a_sentence(part):
    part.value = wb.Diffusion(filters=(wb.Filter("rate_limit", messages="interest"), wb.Filter("running_mean")))
    previous = part.value
    part.selected = 0
    part._form.messages.value = "interest"
    assert "give each filter a key of its own" in part._form._message.value
    assert part.value == previous


def test_custom_filters_are_in_the_list_with_their_settings(part):
    class Count:
        """Passes the first `most` publications."""

        def __init__(self, most=2):
            self.most = most

        def decide(self, attributes, origin, now):
            return attributes

    class Needs:
        def __init__(self, factor):
            self.factor = factor

        def decide(self, attributes, origin, now):
            return attributes

    for name, code in (("plain", lambda attributes: None), ("count", Count), ("needs", Needs)):
        wb.register_filter(name, code)
    part.refresh()
    assert part._kind.options[-3:] == ("plain", "count", "needs")
    part.add("plain")
    part.add("count")
    type_into(part._form.fields["most"], "5")
    assert part.filters == (wb.Filter("plain"), wb.Filter("count", key=201, most=5))
    part.add("needs")
    assert "no default for its parameter factor" in part.error
    assert len(part.filters) == 2


def test_decisions_have_the_data_before_and_after_and_agree_with_the_trace():
    wb.register_filter("plus", plus_one)
    run = run_with(wb.Filter("rate_limit", interval_s=12.0), wb.Filter("plus", key=201, at=[0]))
    decided = decisions(run)
    changed = {decision: count for decision, count in decided.counts.items() if decision[2] != "pass"}
    assert changed == count_changes(run)
    assert set(changed) == {("data", 200, "drop"), ("data", 201, "replace")}
    first = next(decision for decision in decided.first if decision.key == 201)
    assert (first.node, first.origin, first.before, first.after) == (0, 8, "TEMP IS 25", "TEMP IS 26")
    dropped = next(decision for decision in decided.first if decision.did == "drop")
    assert (dropped.before, dropped.after) == ("TEMP IS 25", "")
    assert decisions(run, most=1).counts == decided.counts
    assert len(decisions(run, most=1).first) == 1


def test_a_run_whose_filters_have_other_code_now_is_refused():
    wb.register_filter("plus", plus_one)
    run = run_with(wb.Filter("plus", at=[0]))
    wb.register_filter("plus", lambda attributes: None)
    with pytest.raises(wb.ScenarioError, match="code of its filters has changed"):
        decisions(run)


def test_effects_of_filters_are_listed_and_their_data_on_request(part):
    wb.register_filter("plus", plus_one)
    part.show_results(run_with(wb.Filter("plus", at=[0])))
    assert "<td>200</td><td>plus</td><td>data</td><td>12</td><td>0</td>" in part._results._table.value
    assert not part._results._rows.value
    part._results._fetch_button.click()
    assert part._results.wait()
    assert "<td>TEMP IS 25</td><td>TEMP IS 26</td>" in part._results._rows.value
    part.show_results(run_with())
    assert "carried no filter" in part._results._table.value
    assert not part._results._rows.value
    run = part._results._run.scenario.replace(protocol=wb.Flooding()).run(engine="reference")
    part.show_results(run)
    assert "Flooding has no filters" in part._results._table.value


def test_a_filter_that_fails_in_the_replay_gives_an_error(part):
    wb.register_filter("plus", plus_one)
    run = run_with(wb.Filter("plus", at=[0]))
    part.show_results(run)
    wb.register_filter("plus", lambda attributes: 1 / 0)
    part._results._fetch_button.click()
    assert part._results.wait()
    assert "ZeroDivisionError" in part._results._rows.value


def test_effects_of_filters_on_a_message_are_listed_in_their_order():
    run = run_with(wb.Filter("running_mean"), wb.Filter("threshold_alarm", key=201), duration_s=10)
    first, _ = decisions(run)
    assert [(decision.key, decision.did) for decision in first[:2]] == [(200, "pass"), (201, "drop")]
    assert _select_decisions(first) == list(first)


def test_a_panel_without_a_lab_starts_with_a_protocol_with_filters():
    part = Filters()
    part.add("running_mean")
    assert part.value.filters == (wb.Filter("running_mean"),)

"""The part that edits filters, the catalogue of those that can be picked, and what filters did in a run."""

import pytest

import workbench as wb
from workbench.analysis.decisions import count_changes, decisions
from workbench.protocols.diffusion.filters import catalogue
from workbench.protocols.diffusion.filters.built_in import registered
from workbench.widgets.filters import Filters, _select_decisions, setting_of


def plus_one(attributes):
    """Adds a degree."""
    return [one._replace(value=one.value + 100) for one in attributes]


@pytest.fixture(autouse=True)
def nothing_registered():
    """What other tests have registered is out of the way."""
    kept = dict(registered)
    registered.clear()
    yield
    registered.clear()
    registered.update(kept)


@pytest.fixture
def part():
    return Filters(wb.Diffusion(ttl=9), nodes=range(9))


def lines(part):
    return list(part._lines._list.options)


def type_into(field, text):
    """Put a text into the box of a field."""
    field._controls[-1].value = text


def run_with(*filters, duration_s=60):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(8, "TEMP IS 25", every_s=5)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Diffusion(filters=filters), workload, duration_s=duration_s)
    return scenario.run(engine="reference")


def test_the_setting_that_holds_filters_is_found_by_the_table():
    assert setting_of(wb.Diffusion()) == "filters"
    assert setting_of(wb.Flooding()) == setting_of(None) == ""


def test_a_protocol_without_filters_says_so_and_stays_as_it_is(part):
    part.value = wb.Flooding(ttl=3)
    assert "Flooding has no filters" in part._no_filters.value
    assert part._editor.layout.display == "none"
    part.add("running_mean")
    assert part.value == wb.Flooding(ttl=3)
    part.value = wb.Diffusion()
    assert part._editor.layout.display is None
    assert part._kind.value == part._kind.options[0]


def test_every_filter_that_can_be_picked_can_be_added_and_has_its_form(part):
    wb.register_filter("fuse", b"".join)
    part.refresh()
    for name in [kind.name for kind in catalogue.kinds()]:
        part._kind.value = name
        part._add.click()
        assert not part.error
        assert part.filters[part.selected].name == name
        assert set(part._form.fields) == {one.name for one in part._kinds()[name].parameters}
    assert [one.key for one in part.filters] == list(range(200, 209))
    assert part.value == wb.Diffusion(ttl=9, filters=part.filters)


def test_a_filter_that_calls_a_function_needs_one(part):
    part.add("blob_fusion")
    assert "no default for its parameter function" in part.error
    assert part.value == wb.Diffusion(ttl=9)
    wb.register_filter("fuse", b"".join)
    part.add("blob_fusion")
    assert part.filters[0] == wb.Filter("blob_fusion", function="fuse")


def test_the_form_edits_the_filter_that_is_selected(part):
    part.add("running_mean")
    type_into(part._form.fields["window"], "7")
    part._form.at.text = "1, 4-6"
    part._form.match._text.value = "TEMP GE 20"
    assert part.filters == (wb.Filter("running_mean", match="TEMP GE 20", at=[1, 4, 5, 6], window=7),)
    part._form.messages.value = "interest"
    assert part.filters[0].messages == "interest"
    assert lines(part) == ["200  running_mean (window 7): interest with TEMP GE 20, at nodes 1, 4-6"]


def test_what_is_wrong_stays_in_the_form_with_a_sentence_and_the_protocol_as_it_was(part):
    part.add("threshold_alarm")
    was = part.value
    part._form.at.text = "99"
    assert "node 99 is not in the network" in part._form.at.error
    part._form.at.text = "all"
    type_into(part._form.fields["low"], "40")
    assert "low must not be above high" in part._form._message.value
    part._form.at.text = "3"  # does not go on without the other
    assert part.value == was
    type_into(part._form.fields["high"], "45")
    assert part.filters == (wb.Filter("threshold_alarm", at=3, low=40.0, high=45.0),)
    assert part._form._message.value == part._form.at.error == ""


def test_filters_are_ordered_put_onto_picked_nodes_and_removed(part):
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
    assert [one.at for one in part.filters] == [(1, 2), (1, 2)]
    remove.click()
    assert part.filters == (wb.Filter("rate_limit", at=[1, 2]),)
    remove.click()
    assert part.value == wb.Diffusion(ttl=9)
    assert remove.disabled and up.disabled and down.disabled and part._move_button.disabled


def test_two_filters_of_one_key_are_refused_with_a_sentence(part):
    part.value = wb.Diffusion(filters=(wb.Filter("rate_limit", messages="interest"), wb.Filter("running_mean")))
    was = part.value
    part.selected = 0
    part._form.messages.value = "interest"
    assert "give each filter a key of its own" in part._form._message.value
    assert part.value == was


def test_filters_of_the_users_are_in_the_list_with_their_settings(part):
    class Count:
        """Passes the first so many."""

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
    found = decisions(run)
    changed = {what: count for what, count in found.counts.items() if what[2] != "pass"}
    assert changed == count_changes(run)
    assert set(changed) == {("data", 200, "drop"), ("data", 201, "replace")}
    first = next(one for one in found.first if one.key == 201)
    assert (first.node, first.origin, first.before, first.after) == (0, 8, "TEMP IS 25", "TEMP IS 26")
    dropped = next(one for one in found.first if one.did == "drop")
    assert (dropped.before, dropped.after) == ("TEMP IS 25", "")
    assert decisions(run, most=1).counts == found.counts
    assert len(decisions(run, most=1).first) == 1


def test_a_run_whose_filters_have_other_code_now_is_refused():
    wb.register_filter("plus", plus_one)
    run = run_with(wb.Filter("plus", at=[0]))
    wb.register_filter("plus", lambda attributes: None)
    with pytest.raises(wb.ScenarioError, match="code of its filters has changed"):
        decisions(run)


def test_what_filters_did_is_told_and_the_data_when_asked_for(part):
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


def test_a_filter_that_fails_when_it_is_watched_leaves_a_sentence(part):
    wb.register_filter("plus", plus_one)
    run = run_with(wb.Filter("plus", at=[0]))
    part.show_results(run)
    wb.register_filter("plus", lambda attributes: 1 / 0)
    part._results._fetch_button.click()
    assert part._results.wait()
    assert "ZeroDivisionError" in part._results._rows.value


def test_what_filters_did_to_a_message_is_listed_in_the_order_in_which_they_saw_it():
    run = run_with(wb.Filter("running_mean"), wb.Filter("threshold_alarm", key=201), duration_s=10)
    first, _ = decisions(run)
    assert [(one.key, one.did) for one in first[:2]] == [(200, "pass"), (201, "drop")]
    assert _select_decisions(first) == list(first)


def test_alone_it_begins_with_a_protocol_that_has_filters():
    part = Filters()
    part.add("running_mean")
    assert part.value.filters == (wb.Filter("running_mean"),)

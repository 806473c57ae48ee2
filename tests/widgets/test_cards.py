"""Metrics as cards with their change, and the metrics of two runs side by side."""

import math
import re
from html import unescape

import pandas as pd
import pytest

import workbench as wb
from workbench.sim.metrics import COMMON
from workbench.sim.metrics.shown import SHOWN, shown_as
from workbench.sim.radio import is_ideal
from workbench.widgets.cards import Cards, Differences, change, written


def run_of(protocol, **changes):
    """Return a short run on the reference engine."""
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(4, "TEMP IS 2", every_s=1)]
    scenario = wb.Scenario(wb.topology.line(5), protocol, workload, duration_s=3)
    return scenario.replace(**changes).run(engine="reference")


@pytest.fixture(scope="module")
def runs():
    return run_of(wb.Diffusion()), run_of(wb.Flooding())


def cards_of(cards):
    """Return {title: (value, change, CSS class of the change)} of the displayed cards."""
    spans = re.findall(r"<span>(.*?)</span><b>(.*?)</b><em class='(.*?)'>(.*?)</em>", cards.value)
    return {title: (value, change_text, kind) for title, value, kind, change_text in spans}


def test_a_run_has_a_card_for_each_applicable_metric(runs):
    cards = Cards()
    cards.show(runs[0])
    shown = cards_of(cards)
    assert list(shown)[:4] == ["delivery", "latency, median", "latency, 95 %", "frames sent"]
    assert shown["delivery"] == ("100 %", "", "") and "<small>3 of 3</small>" in cards.value
    assert "interests known" in shown and "repeated" not in shown and "coverage" not in shown
    assert "title='from publish to delivery" in cards.value
    cards.show(runs[1])
    assert "interests known" not in cards_of(cards)


def test_a_change_for_the_worse_has_an_arrow_a_number_and_a_class(runs):
    before = runs[0].metrics.copy()
    before["delivery_ratio"], before["transmissions"] = 1.25, 2 * before["transmissions"]
    cards = Cards()
    cards.show(runs[0], before)
    shown = cards_of(cards)
    assert shown["delivery"] == ("100 %", "▼ 25 points", "wb-worse")
    assert shown["frames sent"][1:] == ("▼ 50 %", "wb-better")
    assert shown["energy"][1:] == ("", "")


def test_cards_show_no_change_of_a_metric_that_the_previous_run_lacks(runs):
    cards = Cards()
    cards.show(runs[0], runs[1].metrics)
    cards.show(runs[1], runs[0].metrics)
    cards.show(runs[0], pd.Series(dtype=float))
    assert {change_text for _, change_text, _ in cards_of(cards).values()} == {""}


def test_cards_of_a_comparison_show_the_value_of_both_runs(runs):
    cards = Cards()
    cards.show(runs[0], None, runs[1])
    assert "<b>100 %</b><em class=''></em><small>3 of 3</small><small class='wb-second'>Flooding: 100 %</small>" in (
        cards.value
    )
    # Flooding has no interests: the metric is NaN.
    assert cards.value.endswith(
        "<b>100 %</b><em class=''></em><small class='wb-second'>Flooding: –</small></div></div>"
    )
    cards.show(runs[0])
    assert "Flooding" not in cards.value


@pytest.mark.parametrize(
    ("name", "before", "now", "text"),
    [
        ("delivery_ratio", 0.5, 0.75, ("▲ 25 points", True)),
        ("latency_ms_p50", 10, 11, ("▲ 10 %", False)),
        ("transmissions", 10, 200, ("▲ 20×", False)),
        ("lost", 0, 4, ("▲", False)),
        ("lost", 4, 0, ("▼ 100 %", True)),
        ("somebodys_own", 4, 6, ("▲ 50 %", None)),
        ("lost", 4, 4, ("", None)),
        ("stretch", math.nan, 2, ("", None)),
    ],
)
def test_changes_in_words(name, before, now, text):
    assert change(shown_as(name), before, now) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("delivery_ratio", 0.98765, "98.8 %"),
        ("coverage", 1.0, "100 %"),
        ("latency_ms_p50", 12.3456, "12.3 ms"),
        ("bytes_sent", 1234567, "1,234,567 B"),
        ("energy_mJ", 0.0, "0 mJ"),
        ("stretch", math.nan, "–"),
        ("somebodys_own", math.inf, "∞"),
    ],
)
def test_numbers_in_words(name, value, text):
    assert written(shown_as(name), value) == text


def test_metrics_of_every_run_have_a_meaning_or_their_name():
    assert {name for name in COMMON if shown_as(name).meaning != name} == set(COMMON)
    assert shown_as("interest_coverage").title == "interests known" and "interest_coverage" not in SHOWN
    assert shown_as("hops_<b>").title == "hops <b>"


def test_two_runs_are_displayed_side_by_side_and_the_better_value_is_marked(runs):
    table = Differences()
    assert "Choose a protocol" in table.value
    table.show(*runs)
    assert re.findall(r"<th scope='col'>(.*?)</th>", table.value) == ["", "Diffusion", "Flooding", "second / first"]
    rows = dict(re.findall(r"<tr><th scope='row'[^>]*>(.*?)</th>(.*?)</tr>", table.value))
    first_B, second_B = (run.metrics["bytes_sent"] for run in runs)
    cells = re.findall(r"<td(.*?)>(.*?)</td>", rows["bytes sent"])
    assert [text for _, text in cells] == [f"{first_B:,.0f} B", f"{second_B:,.0f} B", f"{second_B / first_B:.2f}"]
    assert [bool(kind) for kind, _ in cells] == [first_B < second_B, second_B < first_B, False]
    assert "wb-best" not in rows["delivery"]
    assert "–" in rows["interests known"]


def test_two_runs_of_the_same_protocol_have_different_titles(runs):
    table = Differences()
    table.show(runs[1], runs[1])
    assert "Flooding A" in table.value and "Flooding B" in table.value and "wb-best" not in table.value


def test_two_runs_on_an_ideal_radio_have_a_note_about_it():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(3, "TEMP IS 25", start_s=1)]
    ideal = wb.Scenario(wb.topology.line(4), wb.Flooding(), workload, duration_s=2)
    lossy_links = wb.topology.line(4)
    lossy_links.edges[0, 1]["pdr"] = 0.9
    table = Differences()
    for radio, topology, says in [
        (wb.Radio(), ideal.topology, True),
        (wb.Radio(loss="none", csma=True), lossy_links, True),
        (wb.Radio(), lossy_links, False),
        (wb.Radio(loss=0.1), ideal.topology, False),
        (wb.Radio(collisions=True), ideal.topology, False),
    ]:
        run = ideal.replace(radio=radio, topology=topology).run(engine="reference")
        table.show(run, run)
        assert ("The radio is ideal" in table.value) is says
    assert is_ideal(wb.Radio(loss=0.0), ideal.topology)


def test_a_protocol_that_repeats_messages_itself_has_a_note_about_it():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(3, "TEMP IS 25", start_s=1)]
    table = Differences()
    runs = [
        wb.Scenario(wb.topology.line(4), protocol, workload, duration_s=2).run(engine="reference")
        for protocol in (wb.Flooding(), wb.DPS(retries=4))
    ]
    table.show(*runs)
    assert "With retries of their own, besides the radio's: DPS. Without: Flooding." in unescape(table.value)
    assert "own retries: 4" in table.value
    table.show(runs[0], runs[0])
    assert "With retries" not in table.value and "no retries of its own" in table.value


def test_equal_metrics_and_different_filters_have_a_note_each():
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(3, "TEMP IS 25", start_s=1)]
    protocols = wb.Diffusion(), wb.Diffusion(filters=[wb.Filter("rate_limit")]), wb.Flooding()
    plain, filtering, flooding = (
        wb.Scenario(wb.topology.line(4), protocol, workload, duration_s=2).run(engine="reference")
        for protocol in protocols
    )
    table = Differences()
    table.show(plain, plain)
    assert "All metrics are equal" in table.value and "With filters" not in table.value
    table.show(filtering, flooding)
    assert "With filters, which change what is sent: Diffusion. Without: Flooding." in table.value
    assert "filters: rate_limit" in table.value and "no filters" in table.value
    assert "All metrics are equal" not in table.value


def test_runs_with_filters_have_cards_for_the_error_and_the_age(runs):
    filtering = run_of(wb.Diffusion(filters=[wb.Filter("rate_limit", at=2, interval_s=1.5)]))
    cards, table = Cards(), Differences()
    cards.show(runs[0])
    assert not {"error at the sink", "age"} & set(cards_of(cards))
    cards.show(filtering)
    shown = cards_of(cards)
    assert shown["delivery"][0] == "100 %" and shown["error at the sink"][0] == "0" and shown["age"][0].endswith(" s")
    assert "error, largest" not in shown
    table.show(runs[0], filtering)
    assert "age, largest" in table.value and "in the attribute's unit" in unescape(table.value)

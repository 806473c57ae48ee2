"""The inspector as text: the sections of layers for a node at a time."""

import numpy as np
import pytest

import workbench as wb
from tests.views.traces import trace_of
from workbench.views.inspector import NodeState, inspect_node, matrix_html, node_state, write
from workbench.views.layers import Layer, Look, RunView, Section, table
from workbench.views.layout import Layout
from workbench.views.player.playback import PlaybackClock

EVERY_HOW = Section(
    "Everything",
    (
        ("to", "peer", "node"),
        ("no.", "sequence", "number"),
        ("until", "value", "until"),
        ("since", "from_us", "time"),
        ("data", "weight", "use"),
        ("share", "weight", "percent"),
        ("what", "text", "word"),
        ("state", "look", "word"),
    ),
)
PLAN = Layout(np.array([3, 5]), np.zeros(2), np.zeros(2), {}, np.zeros((0, 4)))


def seen_of(*layers):
    return RunView(None, PLAN, PlaybackClock(np.array([0.0, 1.0]), np.array([0.0, 1.0])), 100_000_000, layers)


def test_a_section_is_a_table_of_the_node_rows_at_that_time():
    rows = table(
        from_us=[0, 1_500_000, 2_000_000],
        until_us=[9_000_000] * 3,
        node=[5, 3, 5],
        peer=[3, -1, 5],
        sequence=[7, 8, 9],
        value=[2_500_000, -1, 0],
        weight=[3, 0, 0],
        text=[1, -1, 0],
        look=[0, 1, 0],
    )
    layer = Layer("all", rows, (Look("good"), Look("bad")), section=EVERY_HOW, words=("a <b>", "c"))
    state = node_state(seen_of(layer), trace_of(), 5, 1_800_000)
    header, lines = state.tables["Everything"]
    assert header == ("to", "no.", "until", "since", "data", "share", "what", "state")
    assert lines == [("3", "7", "2.5 s", "0.000 s", "16+", "300 %", "c", "good")]
    assert node_state(seen_of(layer), trace_of(), 3, 1_800_000).tables["Everything"][1] == [
        ("–", "8", "never", "1.500 s", "–", "0 %", "", "bad")
    ]
    assert len(node_state(seen_of(layer), trace_of(), 5, 3_000_000).tables["Everything"][1]) == 2
    assert node_state(seen_of(layer), trace_of(), 5, 9_000_000).tables == {}


def test_a_layer_without_a_section_and_a_node_without_rows_have_no_table():
    rows = table(from_us=[0], until_us=[9], node=[5])
    state = node_state(seen_of(Layer("all", rows)), trace_of(), 5, 1)
    assert (state.tables, state.role) == ({}, "node")


def test_the_role_is_that_of_the_lowest_rank():
    looks = (Look("heard", rank=5), Look("failed node", rank=0))
    rows = table(from_us=[0, 10], until_us=[99, 20], node=[5, 5], look=[0, 1])
    view = seen_of(Layer("nodes", rows, looks, "node"))
    assert [node_state(view, trace_of(), 5, time).role for time in (5, 15, 25)] == ["heard", "failed node", "heard"]


def test_counters_count_events_at_the_node_up_to_the_time():
    sent_data, collided = {"message": "data"}, {"detail": "collision"}
    trace = trace_of(
        (10, 5, "sent", sent_data), (20, 5, "sent", sent_data), (20, 3, "sent", sent_data), (30, 5, "lost", collided)
    )
    assert node_state(seen_of(), trace, 5, 25).counters == {"sent data": 2}
    assert node_state(seen_of(), trace, 5, 30).counters == {"sent data": 2, "lost collision": 1}


def test_pivots_are_displayed_as_a_matrix_in_echelon_form():
    columns = (("pivots", "text", "word"), ("matrix", "text", "echelon"))
    rows = table(from_us=[0], until_us=[9], node=[5], value=[2], weight=[0.5], text=[0])
    layer = Layer("ranks", rows, section=Section("Decoding", columns), words=("0 2",))
    state = node_state(seen_of(layer), trace_of(), 5, 1)
    assert state.tables["Decoding"] == (("pivots",), [("0 2",)])
    assert state.matrices == [(4, (0, 2))]
    cells = matrix_html(4, (2, 0)).replace("</tr>", "\n").replace("<td></td>", ".")
    drawn = cells.replace('<td class="pivot">1</td>', "1").replace('<td class="zero">0</td>', "0")
    lines = drawn.replace('<td class="other"></td>', "x").split("\n")
    assert [line.removeprefix('<table class="matrix">').removeprefix("<tr>") for line in lines[:4]] == [
        "1x0x",
        "001x",
        "....",
        "....",
    ]
    assert state._repr_html_().count('class="pivot"') == 2


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (0.00312, "percent", "0.31 %"),
        (1.0, "percent", "100 %"),
        (1 << 62, "until", "never"),
        (2.5, "number", "2.5"),
        (1, "use", "1+"),
    ],
)
def test_values_are_written_in_a_readable_form(value, style, text):
    assert write(value, style) == text


def test_the_inspector_escapes_its_texts_and_has_colours_for_light_and_dark():
    state = NodeState(1, 0, "<sink>", {"A & B": (("x",), [("<script>",)])}, {}, [])
    text = state._repr_html_()
    assert "<script>" not in text and "&lt;sink&gt;" in text and "A &amp; B" in text
    assert "color:light-dark(#1F2933,#E4E8ED)" in text


def test_a_node_of_a_run_is_inspected_at_a_given_time():
    run = wb.Scenario(
        topology=wb.topology.line(3),
        protocol=wb.Diffusion(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 26", every_s=2)],
        duration_s=10,
    ).run(engine="reference")
    sink, relay = inspect_node(run, 0), inspect_node(run, 1, 5)
    assert sink.role == "sink"
    assert sink.tables["Subscriptions"][1] == [("0", "TEMP GE 25", "never")]
    assert relay.tables["Gradients"][1][0][:2] == ("0", "0")
    assert relay.counters["sent data"] < inspect_node(run, 1).counters["sent data"]
    assert "Gradients" not in inspect_node(run, 1, 0).tables
    with pytest.raises(wb.DataError, match="node is 99; it must be one of the nodes in"):
        inspect_node(run, 99)
    with pytest.raises(wb.ParameterError, match="from 0 to 10 s"):
        inspect_node(run, 0, 11)

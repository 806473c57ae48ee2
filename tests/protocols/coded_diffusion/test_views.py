"""Views of decoding: ranks replayed from traces, matrices, coverage over time, and their figures."""

import itertools
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from lessons.figures import chances as decoding_chances
from lessons.figures import decoding as decoding_steps
from workbench.coding.rlnc import Decoder, Encoder
from workbench.protocols.coded_diffusion.views import (
    figures as decoding_figures,
)
from workbench.protocols.coded_diffusion.views import layers, ranks
from workbench.sim.rows import Columns
from workbench.sim.trace import SCHEMA
from workbench.views import drawing, palette
from workbench.views import event as events
from workbench.views.drawing import Circle, Polygon, Polyline, Text
from workbench.views.figure import network_drawing
from workbench.views.inspector import inspect_node
from workbench.views.seeing import see

SECOND = 1_000_000
M = 4
NEUTRAL = {"peer": -1, "message": "coded", "origin": 9, "sequence": 0, "size_B": 0, "value": 0, "detail": ""}


def trace_of(*rows):
    """Return a trace of rows given as (time in µs, node, event, value, detail, {other columns})."""
    whole = []
    for time_us, node, event, value, detail, *more in rows:
        row = {"time_us": time_us, "node": node, "event": event, "value": value, "detail": detail}
        whole.append({**NEUTRAL, **row, **(more[0] if more else {})})
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in whole]
        is_text = pa.types.is_dictionary(field.type)
        arrays.append(pa.array(values, pa.string()).dictionary_encode() if is_text else pa.array(values, field.type))
    return pa.table(arrays, schema=SCHEMA)


def ranks_of(trace, duration_us=100):
    return [
        (span.node, span.value, span.text, span.from_us, min(span.until_us, duration_us))
        for span in ranks.ranks(Columns(trace))
    ]


@pytest.fixture(scope="module")
def run():
    """Return a run of two events from the middle of a grid, in generations of four."""
    return wb.Scenario(
        topology=wb.topology.grid(5, 5),
        protocol=wb.CodedDiffusion(generation_size=M, bootstrap_factor=5),
        workload=[wb.publish(at=12, what="TEMP IS 20", payload=bytes(range(200)), start_s=1, every_s=2)],
        radio=wb.Radio(loss="none"),
        duration_s=5,
        seed=3,
    ).run(engine="reference")


# Ranks from rows


def test_a_rank_lasts_until_the_next_innovative_packet_and_decoding_until_the_event_is_held():
    trace = trace_of(
        (10, 1, "innovative", 1, "2"),
        (30, 1, "innovative", 2, "0"),
        (60, 1, "decoded", 2, ""),
        (60, 1, "held", 3, ""),
    )
    assert ranks_of(trace) == [(1, 1, "2", 10, 30), (1, 2, "0 2", 30, 60)]


def test_a_node_that_never_decodes_keeps_its_rank_to_the_end():
    assert ranks_of(trace_of((10, 1, "innovative", 1, "0"))) == [(1, 1, "0", 10, 100)]


@pytest.mark.parametrize("reason", ["expired", "corrupt"])
def test_a_rank_ends_when_its_generation_is_given_up_and_restarts_with_the_next_packet(reason):
    trace = trace_of(
        (10, 1, "innovative", 1, "0"),
        (20, 1, "innovative", 2, "1"),
        (40, 1, "dropped", 0, reason),
        (70, 1, "innovative", 1, "1"),
    )
    assert ranks_of(trace) == [(1, 1, "0", 10, 20), (1, 2, "0 1", 20, 40), (1, 1, "1", 70, 100)]


def test_a_run_shows_no_rank_of_a_generation_that_was_given_up():
    run = wb.Scenario(
        topology=wb.topology.line(4),
        protocol=wb.CodedDiffusion(bootstrap_factor=1, max_requests=0, max_events=1, forget_after_s=1),
        workload=[wb.publish(at=0, what="TEMP IS 20", payload=bytes(50), start_s=1, every_s=9)],
        radio=wb.Radio(loss="none"),
        duration_s=20,
    ).run(engine="reference")
    rows = run.trace.to_pylist()
    given_up = {(row["node"], row["sequence"]): row["time_us"] for row in rows if row["detail"] == "expired"}
    spans = ranks.ranks(Columns(run.trace))
    ends = {(span.node, span.sequence): span.until_us for span in spans if (span.node, span.sequence) in given_up}
    assert given_up
    assert ends == given_up


def test_pivots_are_in_numerical_order_of_their_columns():
    trace = trace_of((10, 1, "innovative", 1, "10"), (20, 1, "innovative", 2, "9"))
    assert [text for _, _, text, _, _ in ranks_of(trace)] == ["10", "9 10"]


def test_events_of_the_same_node_have_separate_ranks():
    trace = trace_of((10, 1, "innovative", 1, "0"), (20, 1, "innovative", 1, "1", {"sequence": 1}))
    assert ranks_of(trace) == [(1, 1, "0", 10, 100), (1, 1, "1", 20, 100)]


def test_the_generation_size_is_that_of_the_first_packet_of_the_matrix():
    begun = trace_of(
        (10, 1, "generation_begun", 5, ""),
        (10, 1, "innovative", 1, "0"),
        (20, 2, "generation_begun", 3, "", {"sequence": 1}),
        (20, 2, "innovative", 1, "2", {"sequence": 1}),
        (40, 1, "innovative", 2, "4"),
        (50, 1, "dropped", 0, "corrupt"),
        (50, 1, "generation_begun", 2, ""),
        (50, 1, "innovative", 1, "1"),
    )
    lasting = ranks.lasting(Columns(begun))
    assert lasting.size.tolist() == [5, 3, 5, 2] and lasting.follows.tolist() == [False, False, True, False]
    assert ranks_of(begun) == [(1, 1, "0", 10, 40), (2, 1, "2", 20, 100), (1, 2, "0 4", 40, 50), (1, 1, "1", 50, 100)]


def test_a_node_is_shaded_by_the_newest_event_of_an_origin():
    trace = trace_of(
        (5, 9, "originated", 0, ""),
        (10, 1, "innovative", 1, "0"),
        (50, 9, "originated", 1, "", {"sequence": 1}),
    )
    scenario = wb.Scenario(topology=wb.topology.line(10), protocol=wb.CodedDiffusion(), workload=[], duration_s=0.001)
    layer = see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace)).layer("decoding")
    rows = zip(*[layer.column(name).tolist() for name in ("look", "from_us", "until_us")], strict=True)
    # The inspector still shows the packet afterwards.
    assert list(rows) == [(0, 10, 50), (1, 50, 1000)]
    assert [look.mark for look in layer.looks] == ["node", ""]


# Ranks of a run


def test_ranks_at_any_time_equal_the_counts_of_innovative_packets(run):
    spread = ranks.progress(run.trace, (12, 0))
    rows = [row for row in run.trace.to_pylist() if (row["origin"], row["sequence"]) == (12, 0)]
    assert spread.generation_size == M
    for time_us in range(SECOND, 2 * SECOND, 17_001):
        before = [row for row in rows if row["time_us"] <= time_us]
        holding = {row["node"] for row in before if row["event"] == "held"}
        counted = {}
        for row in before:
            if row["event"] == "innovative" and row["node"] not in holding:
                counted[row["node"]] = counted.get(row["node"], 0) + 1
        assert {node: span.value for node, span in spread.at(time_us).items()} == counted
        assert spread.holders(time_us) == holding


def test_a_rank_has_a_share_in_0_to_1_and_as_many_pivots(run):
    layer = see(run).layer("decoding")
    weight, value = layer.table["weight"], layer.table["value"]
    assert len(layer) > 25
    assert (weight > 0).all() and (weight <= 1).all()
    assert [len(layer.words[code].split()) for code in layer.table["text"].tolist()] == value.tolist()
    assert np.allclose(value / weight, M)


def test_pivots_of_too_many_matrices_are_omitted_with_a_note(run, monkeypatch):
    monkeypatch.setattr(ranks, "pivots", lambda *arguments: (np.full(len(arguments[1]), -1), []))
    monkeypatch.setattr(layers, "pivots", ranks.pivots)
    view = see(run)
    assert [heading for heading, _, _ in view.layer("decoding").section.columns] == [
        *("source", "event", "rank", "last from")
    ]
    assert any("pivots" in note for note in view.notes)


def test_coverage_grows_from_the_source_to_that_of_the_metrics(run):
    ages_s = np.linspace(0, 2, 50)
    shares = ranks.progress(run.trace).coverage(25, ages_s)
    assert shares[0] == 1 / 25
    assert (np.diff(shares) >= 0).all()
    last = [ranks.progress(run.trace, event).coverage(25, [4])[0] for event in events.events_of(Columns(run.trace))]
    assert np.mean(last) == pytest.approx(run.metrics["coverage"])


def test_the_trace_of_an_event_omits_other_events(run):
    columns = Columns(run.trace)
    assert events.events_of(columns) == [(12, 0), (12, 1)]
    part = events.of_event(columns, (12, 1))
    assert events.events_of(part) == [(12, 1)]
    assert 0 < part.rows < columns.rows
    assert (columns["time_us"][part.in_trace(np.arange(part.rows))] == part["time_us"]).all()
    assert events.of_event(columns, None) is columns
    with pytest.raises(
        wb.ParameterError, match=r"`event` is \(3, 0\), which this run does not have.*\(12, 0\), \(12, 1\)"
    ):
        events.of_event(columns, (3, 0))


def test_an_event_that_is_not_coded_has_holders_and_no_ranks():
    flood = wb.Scenario(
        topology=wb.topology.grid(3, 3),
        protocol=wb.Flooding(),
        workload=[wb.publish(at=4, what="TEMP IS 20")],
        duration_s=2,
    ).run()
    spread = ranks.progress(flood.trace)
    assert (spread.generation_size, spread.ranks, len(spread.held_us)) == (0, (), 9)


# Figures of a run


@given(st.integers(1, 8), st.data())
def test_a_matrix_drawn_from_pivots_has_the_form_of_the_decoders_matrix(size, data):
    decoder = Decoder(size, 256)
    for _ in range(data.draw(st.integers(0, size + 2))):
        decoder.add(data.draw(st.lists(st.integers(0, 255), min_size=size, max_size=size)), bytes(4))
    cells = decoding_steps.matrix_cells(size, decoder.pivots)
    assert len(cells) == decoder.rank
    for row, pivot in zip(cells, decoder.pivots, strict=True):
        for cell, coefficient in zip(row, decoder.vector(pivot), strict=True):
            assert cell in ("", str(coefficient))
    if decoder.is_complete:
        assert "".join(itertools.chain(*cells)).count("1") == size and "" not in set(itertools.chain(*cells))


def test_a_figure_fills_nodes_by_rank_and_explains_it(run):
    spread = ranks.progress(run.trace)
    time_us = next(t for t in range(SECOND, 2 * SECOND, 1000) if len({s.value for s in spread.at(t).values()}) > 1)
    page = network_drawing(run, time_us / SECOND, event=(12, 0))
    ElementTree.fromstring(page.to_svg())
    fills = {getattr(item, "fill", None) for item in page.items}
    assert {palette.rank_colour(span.value / M) for span in spread.at(time_us).values()} <= fills
    texts = [item.text for item in page.items if isinstance(item, Text)]
    assert "has coded packets (stronger: more)" in texts and "holds the newest event" in texts


def test_the_inspector_shows_the_decoding_matrix_of_a_node(run):
    spread = ranks.progress(run.trace)
    span = next(span for span in spread.ranks if span.value == 2)
    state = inspect_node(run, span.node, (span.from_us + 1) / SECOND)
    assert state.role == "has coded packets (stronger: more)"
    assert state.tables["Decoding"][1] == [("12", "0", "2", span.text, str(span.peer))]
    assert state.matrices == [(M, tuple(map(int, span.text.split())))]
    assert state._repr_html_().count('class="pivot"') == 2
    assert state.counters["innovative packets"] == 2


def test_the_view_of_an_event_omits_other_events(run):
    assert set(see(run, event=(12, 1)).layer("decoding").column("sequence").tolist()) == {1}


@pytest.mark.parametrize("background", [palette.NODE, palette.HOLDS])
def test_the_faintest_rank_is_distinct_from_other_colours(background):
    rank_rgb, background_rgb = palette.rgb(palette.rank_colour(1 / 16)), palette.rgb(background)
    assert sum((a - b) ** 2 for a, b in zip(rank_rgb, background_rgb, strict=True)) ** 0.5 > 40


# Figures of decoding


def texts_of(page):
    return [item.text for item in page.items if isinstance(item, Text)]


def test_maps_show_the_network_at_given_times_with_the_share_of_holders(run):
    page = decoding_figures.decoding_maps(run, times_s=[1.0, 2.0])
    ElementTree.fromstring(page.to_svg())
    assert {"0 ms", "1,000 ms", "4% hold it", "100% hold it"} <= set(texts_of(page))
    fills = [item.fill for item in page.items if isinstance(item, Circle)]
    # 24 nodes and the source hold it in the second map, and the legend has an additional circle of each color
    assert fills.count(palette.HOLDS) == 24 + 1
    assert len(decoding_figures.decoding_maps(run).to_png(scale=0.5)) > 1000


def test_matrices_have_a_pivot_for_each_innovative_packet_so_far(run):
    spread = ranks.progress(run.trace)
    node = next(iter({span.node for span in spread.ranks}))
    page = decoding_steps.decoding_matrices(run, [node, 11])
    pivots = [item for item in page.items if isinstance(item, Polygon) and item.fill == palette.RANK_HIGH]
    assert len(pivots) == sum(range(1, M + 1))
    assert "heard the event itself" in texts_of(page)
    with pytest.raises(wb.ParameterError, match=r"nodes is \[99\]"):
        decoding_steps.decoding_matrices(run, [99])


def test_matrices_of_an_event_that_is_not_coded_are_refused():
    flood = wb.Scenario(
        wb.topology.grid(2, 2), wb.Flooding(), [wb.publish(at=0, what="TEMP IS 20")], duration_s=2
    ).run()
    with pytest.raises(wb.ParameterError, match=r"event \(0, 0\) of this run was not coded"):
        decoding_steps.decoding_matrices(flood, [1])


def test_coverage_charts_have_a_line_per_name_and_a_band_for_several_runs(run):
    page = decoding_figures.coverage_chart({"one": run, "three": [run, run, run]})
    lines = [item for item in page.items if isinstance(item, Polyline)]
    bands = [item for item in page.items if isinstance(item, Polygon) and item.opacity < 1]
    assert (len(lines), len(bands)) == (2, 1)
    assert {"one", "three", "age of the event (s)"} <= set(texts_of(page))


# Steps


# Figures 1 to 3 of the paper: X = [1, 1, 1]. The paper does not give P4 and P5; these are examples.
PACKETS = {"P1": ([1, 2, 3], [6]), "P2": ([3, 2, 4], [9]), "P4": ([4, 4, 7], [15]), "P5": ([1, 1, 2], [4])}


def test_steps_reproduce_the_example_of_the_paper():
    steps = decoding_steps.decoding_steps(3, 257, PACKETS)
    assert [step.is_innovative for step in steps] == [True, True, False, True]
    assert [step.pivot for step in steps] == [0, 1, None, 2]
    assert steps[2].before == steps[2].after
    assert steps[3].after == (((1, 0, 0), (1,)), ((0, 1, 0), (1,)), ((0, 0, 1), (1,)))
    assert [step.is_complete for step in steps] == [False, False, False, True]
    assert "P4 is not innovative: it depends on the rows" in steps[2].verdict()
    bundle = steps[2]._repr_mimebundle_()
    assert bundle["text/plain"] == steps[2].verdict()
    assert bundle["text/html"] == steps[2].drawing().to_image_html()


def test_steps_of_a_complete_decoder_explain_a_dropped_packet():
    steps = decoding_steps.decoding_steps(1, 2, {"a": ([1], [1]), "b": ([1], [1])})
    assert "the event is decoded already" in steps[1].verdict()
    packet = Encoder([b"a", b"b"], 256).encode()
    assert decoding_steps.decoding_steps(2, 256, {"P": packet})[0].packet == (packet[0], tuple(packet[1]))
    with pytest.raises(wb.ParameterError, match="packets is empty"):
        decoding_steps.decoding_steps(1, 2, {})


@given(st.sampled_from([2, 16, 256, 257, 65536]), st.integers(1, 5), st.data())
def test_ranks_in_steps_grow_only_with_innovative_packets(order, size, data):
    symbols = st.integers(0, order - 1)
    packets = {
        f"P{number}": (
            data.draw(st.lists(symbols, min_size=size, max_size=size)),
            data.draw(st.lists(symbols, min_size=8, max_size=8)),
        )
        for number in range(data.draw(st.integers(1, 6)))
    }
    steps = decoding_steps.decoding_steps(size, order, packets)
    for step in steps:
        assert len(step.after) == len(step.before) + step.is_innovative
    page = steps[-1].drawing()
    ElementTree.fromstring(page.to_svg())
    for text, (left_px, top, right, bottom) in boxes(page):
        assert left_px >= 0 and top >= 0 and right <= page.width and bottom <= page.height, text


def boxes(page):
    for item in page.items:
        if isinstance(item, Text):
            wide = drawing.text_width(item.text, item.size)
            left_px = item.x - wide * {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
            yield item.text, (left_px, item.y - 0.7 * item.size, left_px + wide, item.y)


def test_steps_have_a_slider():
    stepper = decoding_steps.step_through(decoding_steps.decoding_steps(3, 257, PACKETS))
    assert stepper.names == ("P1", "P2", "P4", "P5")
    assert "P4 is not innovative" in stepper.drawings[2].to_svg()
    assert len({(page.width, page.height) for page in stepper.drawings}) == 1


# Probabilities of innovative packets


@pytest.mark.parametrize(("order", "size"), [(2, 1), (2, 3), (3, 2), (16, 1)])
def test_the_probability_of_an_innovative_packet_equals_the_count_over_all_vectors(order, size):
    decoder = Decoder(size, order)
    for rank in range(size):
        vectors = [vector for vector in itertools.product(range(order), repeat=size) if any(vector)]
        innovative = sum(decoder.is_innovative(vector) for vector in vectors)
        exact = decoding_chances.innovation_probability(order, size, rank)
        assert exact == pytest.approx(innovative / len(vectors))
        unit = [int(index == rank) for index in range(size)]
        decoder.add(unit, bytes(decoder.field.size_B(1)))


@pytest.mark.parametrize("order", [2, 256])
def test_measured_probabilities_are_within_five_standard_errors_of_the_exact_ones(order):
    table = decoding_chances.completion_table(4, [order], trials=400)
    error = np.sqrt(table["exact"] * (1 - table["exact"]) / 400)
    assert ((table["measured"] - table["exact"]).abs() <= 5 * error + 1e-3).all()
    assert decoding_chances.completion_probability(order, 4, 3) == 0
    assert decoding_chances.completion_probability(order, 4, 60) == pytest.approx(1)


def test_the_chart_of_probabilities_has_a_line_for_each_field():
    page = decoding_chances.completion_chart(4, [2, 256], trials=50)
    assert {"GF(2)", "GF(2^8)", "packets beyond m = 4"} <= set(texts_of(page))


def test_the_mean_rank_is_ahead_of_the_share_of_nodes_that_decoded():
    event = wb.publish(at=9, what="TEMP IS 26.5", payload=bytes(400))
    scenario = wb.Scenario(wb.topology.grid(5, 5), wb.CodedDiffusion(generation_size=8), [event], duration_s=3)
    decoded, rank = next(curves for curves in see(scenario.run()).curves if curves.name == "reach").lines
    decoded_shares = decoded.values[np.searchsorted(decoded.times_us, rank.times_us, "right") - 1]
    assert np.all(rank.values >= decoded_shares) and np.any(rank.values > decoded_shares + 10)
    assert rank.values[-1] == decoded.values[-1] == 100

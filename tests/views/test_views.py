"""Views without a browser: intervals of traces, drawings and figures."""

import io
import itertools
import math
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import workbench as wb
from workbench.sim.rows import Columns
from workbench.sim.trace import SCHEMA
from workbench.views import drawing, palette
from workbench.views.charts import description
from workbench.views.charts import static as chart
from workbench.views.drawing import Drawing, Text
from workbench.views.figure import network_drawing
from workbench.views.inspector import count
from workbench.views.layout import lay_out
from workbench.views.player import playback
from workbench.views.player.counters import counted, running
from workbench.views.rich import bundle

SECOND = 1_000_000
NEUTRAL = {"peer": -1, "message": "", "origin": -1, "sequence": 0, "size_B": 0, "value": 0, "detail": ""}


def trace_of(*rows):
    """Return a trace of rows given as (time in µs, node, event, {other columns})."""
    whole = [{**NEUTRAL, "time_us": t, "node": n, "event": e, **(more[0] if more else {})} for t, n, e, *more in rows]
    arrays = []
    for field in SCHEMA:
        values = [row[field.name] for row in whole]
        is_text = pa.types.is_dictionary(field.type)
        arrays.append(pa.array(values, pa.string()).dictionary_encode() if is_text else pa.array(values, field.type))
    return pa.table(arrays, schema=SCHEMA)


@pytest.fixture(scope="module")
def office():
    """Return a run of diffusion in the default office with loss and collisions, and a source that fails for a while."""
    return wb.Scenario(
        topology=wb.topology.office(),
        protocol=wb.Diffusion(),
        workload=[
            wb.subscribe(at=1, what="TEMP GE 25", expires_s=300),
            wb.publish(at=60, what="TEMP IS 26.5", every_s=5),
        ],
        radio=wb.Radio(loss="links", collisions=True),
        duration_s=40,
        seed=7,
    ).run()


@pytest.fixture(scope="module")
def flood():
    """Return a run of flooding on a grid: no interests, no gradients."""
    return wb.Scenario(
        topology=wb.topology.grid(5, 5),
        protocol=wb.Flooding(),
        workload=[wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=24, what="TEMP IS 26.5", every_s=5)],
        duration_s=20,
        seed=1,
    ).run()


# PlaybackClock


@given(st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 5000)), max_size=60), st.integers(1, 10**8))
def test_playback_time_covers_the_run_and_never_decreases(frames, duration_us):
    start = np.array([s for s, _ in frames], dtype=float)
    end = start + np.array([length for _, length in frames], dtype=float)
    shot = playback.make_clock(start, end, duration_us)
    assert (np.diff(shot.knots_us) >= 0).all()
    assert (np.diff(shot.knots_s) >= -1e-9).all()
    assert shot.knots_s[0] == 0
    assert playback.SHORTEST_S <= shot.length_s <= playback.LONGEST_S
    times = np.linspace(0, shot.knots_us[-1], 50)
    assert np.allclose(shot.time_us(shot.at(times)), times, rtol=1e-6, atol=1e-3 * duration_us)


def test_playback_is_slow_during_frames_and_fast_without_them():
    start = np.array([10.0, 10.002, 10.004]) * SECOND
    shot = playback.make_clock(start, start + 1000, 20 * SECOND)
    in_flight = shot.at(10.005 * SECOND) - shot.at(10 * SECOND)
    in_silence = shot.at(15.005 * SECOND) - shot.at(15 * SECOND)
    assert in_flight > 50 * in_silence


def test_a_frame_is_visible_for_a_minimum_playback_time():
    start = np.array([3.0 * SECOND])
    shot = playback.make_clock(start, start + 900, 60 * SECOND)
    until = shot.visible_until(start, start + 900)
    assert shot.at(until)[0] - shot.at(start)[0] == pytest.approx(playback.VISIBLE_S, rel=1e-3)


# Gradients and interests, replayed
#
#     0 (sink) -- 1 -- 3
#       \         |
#        `------- 2


# Frames


# Counters


def test_running_totals_end_at_the_values_of_the_metrics(office):
    totals = running(Columns(office.trace), office.scenario.radio)
    assert totals["transmissions"][-1] == office.metrics["transmissions"]
    assert totals["deliveries"][-1] == office.metrics["delivered"]
    assert totals["energy_mJ"][-1] == pytest.approx(office.metrics["energy_mJ"])
    assert all((np.diff(column) >= 0).all() for column in totals.values())


def test_counters_of_a_node_count_its_rows_up_to_the_time(office):
    rows = [row for row in office.trace.to_pylist() if row["node"] == 1 and row["time_us"] <= 12 * SECOND]
    counters = count(office.trace, 1, 12 * SECOND)
    assert counters["delivered"] == sum(row["event"] == "delivered" for row in rows)
    assert counters["received data"] == sum(row["event"] == "received" and row["message"] == "data" for row in rows)
    assert sum(n for name, n in counters.items() if name.startswith("lost ")) == sum(r["event"] == "lost" for r in rows)


def test_counters_of_long_runs_are_sampled_per_node_and_kind():
    rows = [(i, i % 2, "sent", {"message": "interest", "value": 1, "size_B": 20}) for i in range(1000)]
    columns = Columns(trace_of(*rows, (1001, 5, "delivered")))
    exact, thinned = counted(columns), counted(columns, most=100)
    assert (exact.step, len(exact.node)) == (1, 1001)
    assert thinned.step == 11
    assert np.bincount(thinned.node).tolist()[:2] == [500 // 11] * 2


# Plan and timeline


def test_links_are_drawn_once_with_the_quality_of_either_direction():
    graph = nx.DiGraph()
    graph.add_nodes_from([(4, {"pos": (0, 0)}), (9, {"pos": (3, 4)}), (12, {"pos": (9, 9)})])
    graph.add_edge(9, 4, pdr=0.9)
    graph.add_edge(4, 9, pdr=0.4)
    graph.add_edge(9, 12, pdr=0.7)
    plan = lay_out(graph)
    ends = [(plan.ids[a], plan.ids[b]) for a, b in zip(plan.links["a"], plan.links["b"], strict=True)]
    assert ends == [(4, 9), (9, 12)]
    assert plan.links["pdr_ab"].tolist() == [0.4, 0.7]
    assert plan.links["pdr_ba"].tolist() == [0.9, 0.0]
    assert plan.indices(np.array([12, 5, 4])).tolist() == [2, -1, 0]


def test_in_a_dense_network_only_the_best_links_of_each_node_are_drawn_with_a_note():
    graph = nx.complete_graph(30, nx.DiGraph)
    for node in graph:
        graph.nodes[node]["pos"] = (float(node), 0.0)
    nx.set_edge_attributes(graph, 1.0, "pdr")
    plan = lay_out(graph, links_per_node=2)
    lengths = plan.links["b"] - plan.links["a"]
    assert lengths.max() == 2  # of equally good links the shortest ones
    assert plan.notes == ("Of 435 links, the 2 best of each node are drawn.",)


def test_a_network_without_positions_is_drawn_on_a_circle_with_a_note():
    graph = nx.path_graph(5, nx.DiGraph)
    assert "no positions" in lay_out(graph).notes[0]


# Drawings


@st.composite
def drawings(draw):
    page = Drawing(120, 80, title=draw(st.text(max_size=5)))
    number = st.floats(-50, 200)
    for _ in range(draw(st.integers(0, 4))):
        page.segment(draw(number), draw(number), draw(number), draw(number), width=draw(st.floats(0, 20)))
        page.arrow(draw(number), draw(number), draw(number), draw(number), at=0.6, dash=(3, 2))
        page.circle(draw(number), draw(number), draw(st.floats(0, 30)), fill="#123456", stroke="#FFFFFF", opacity=0.5)
        page.text(draw(number), draw(number), draw(st.text(st.characters(codec="utf-8", exclude_categories=("C",)))))
        page.polyline([(draw(number), draw(number)) for _ in range(3)], opacity=0.5)
    return page


@settings(max_examples=30)
@given(drawings())
def test_any_drawing_is_wellformed_svg_and_a_png_of_its_size(page):
    root = ElementTree.fromstring(page.to_svg())
    assert root.get("viewBox") == "0 0 120 80"
    assert Image.open(io.BytesIO(page.to_png(scale=1.5))).size == (180, 120)


def test_a_png_contains_the_drawing_and_its_resolution():
    page = Drawing(40, 20)
    page.rectangle(10, 5, 20, 10, fill="#0072B2")
    image = Image.open(io.BytesIO(page.to_png(scale=2)))
    assert image.getpixel((40, 20)) == (0x00, 0x72, 0xB2)
    assert image.getpixel((4, 4)) == (255, 255, 255)
    assert round(image.info["dpi"][0]) == 192


@pytest.mark.parametrize("kind", ["circle", "square", "triangle", "diamond", "x"])
def test_every_marker_covers_its_middle(kind):
    page = Drawing(20, 20)
    page.marker(kind, 10, 10, 6, "#D55E00", "#5D6875")
    assert Image.open(io.BytesIO(page.to_png(scale=2))).getpixel((20, 20)) == (0xD5, 0x5E, 0x00)


def test_the_file_name_extension_selects_the_format_of_a_saved_drawing(tmp_path):
    page = Drawing(10, 10)
    assert page.save(tmp_path / "a.svg").read_text().startswith("<svg")
    assert page.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert page.save(tmp_path / "A.PDF").read_bytes().startswith(b"%PDF-")
    with pytest.raises(wb.ParameterError, match=r"'a\.eps'; .* must end in \.svg, \.pdf or \.png"):
        page.save(tmp_path / "a.eps")
    with pytest.raises(wb.ParameterError, match="scale is 0"):
        page.to_png(scale=0)


def test_characters_missing_in_pillows_font_are_spelled_out():
    assert drawing.spell("5 µs × 3 → é 測 · 20° ≤ ½") == "5 us x 3 -> e ? · 20° <= 1/2"


# Figures


def boxes(page):
    """Yield (text, box) of all lines of text on a page; the boxes are a little smaller than the texts."""
    for item in page.items:
        if isinstance(item, Text):
            wide = drawing.text_width(item.text, item.size)
            left_px = item.x - wide * {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
            if item.turn:
                yield item.text, (item.x - 0.7 * item.size, item.y - wide / 2, item.x, item.y + wide / 2)
            else:
                yield item.text, (left_px, item.y - 0.7 * item.size, left_px + wide, item.y)


def assert_texts_are_apart(page):
    text_boxes = list(boxes(page))
    for text, (left, top, right, bottom) in text_boxes:
        assert left >= 0 and top >= 0 and right <= page.width and bottom <= page.height, text
    for (first, a), (second, b) in itertools.combinations(text_boxes, 2):
        apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        assert apart, (first, second)


@pytest.mark.parametrize("time_s", [0, 0.01, 1.01, 12.3, None])
def test_a_network_figure_is_complete_at_any_time_without_overlapping_texts(office, time_s):
    page = network_drawing(office, time_s)
    assert_texts_are_apart(page)
    ElementTree.fromstring(page.to_svg())
    texts = [text for text, _ in boxes(page)]
    assert "Diffusion on 64 nodes (office)" in texts
    assert f"t = {40 if time_s is None else time_s:.3f} s" in texts
    assert ("reinforced path" in texts) == (time_s in (12.3, None))


def test_a_legend_explains_only_marks_of_the_picture(flood):
    texts = [text for text, _ in boxes(network_drawing(flood, 10.0))]
    assert "sink" in texts and "source" in texts
    assert not {"gradient (thicker: more data)", "reinforced path", "wall", "failed node"} & set(texts)


@pytest.mark.parametrize("width", [320, 500, 900])
def test_texts_of_figures_of_any_width_do_not_overlap(office, width):
    assert_texts_are_apart(network_drawing(office, width=width))


def test_a_time_outside_of_the_run_is_refused(office):
    with pytest.raises(wb.ParameterError, match="from 0 to 40 s"):
        network_drawing(office, 41)


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e6), st.integers(3, 12))
def test_ticks_are_evenly_spaced_and_enclose_the_range(low, span, most):
    ticks = description.ticks(low, low + span, most)
    assert 2 <= len(ticks) <= most or ticks == [low, low + span]
    assert ticks[0] <= low + 1e-6 * span and ticks[-1] >= low + span * (1 - 1e-6)
    steps = np.diff(ticks)
    assert np.allclose(steps, steps[0])


def series(name, xs, spread=0.05):
    ys = [1 / (1 + x) for x in xs]
    return {"name": name, "x": xs, "y": ys, "low": [y - spread for y in ys], "high": [y + spread for y in ys]}


@pytest.mark.parametrize("xs", [[0.1, 0.2, 0.3], [5, 10, 20, 40, 1000], [3], list(range(200)), []])
def test_a_chart_draws_a_band_per_series_without_overlapping_texts(xs):
    page = chart.line_chart(
        [series("Diffusion without reinforcement", xs), series("Flooding", xs), series("Diffusion", xs)],
        title="Delivery ratio against loss",
        x_label="share of frames lost",
        y_label="delivery ratio",
        note="Mean of 30 seeds; bands: 95 % confidence.",
    )
    assert_texts_are_apart(page)
    ElementTree.fromstring(page.to_svg())
    bands = [item for item in page.items if isinstance(item, drawing.Polygon) and item.opacity < 1]
    assert len(bands) == (3 if len(xs) > 1 else 0)


def test_nan_points_break_a_line():
    page = chart.line_chart([{"name": "", "x": [1, 2, 3, 4, 5], "y": [1, 2, float("nan"), 3, 4]}])
    assert [len(item.points) for item in page.items if isinstance(item, drawing.Polyline)] == [2, 2]


def test_a_chart_refuses_columns_of_different_lengths():
    with pytest.raises(wb.ParameterError, match="'a' has 2 values of x but 1 of y"):
        wb.views.line_chart([{"name": "a", "x": [1, 2], "y": [1]}])


# Colours


def lab(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    f = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.089], 1e-9))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


# Machado, Oliveira and Fernandes: A physiologically-based model for simulation of color vision deficiency (2009).
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
def test_roles_of_the_same_shape_are_distinct_for_colour_blind_readers(deficiency):
    def looks(colour):
        linear = [(c / 255) ** 2.2 for c in palette.rgb(colour)]
        return lab(np.clip(np.array(DEFICIENCIES[deficiency]) @ linear, 0, 1) ** (1 / 2.2))

    same_shape = [
        (palette.DATA, palette.REINFORCED),
        (palette.HEARD, palette.NODE),
        (palette.GRADIENT, palette.LINK_GOOD),
        (palette.GRADIENT, palette.REINFORCED),
        (palette.LOST, palette.FAILED),
        (palette.SINK, palette.HEARD),
        (palette.SOURCE, palette.HEARD),
        (palette.INTEREST, palette.NODE),
    ]
    for first, second in same_shape:
        assert np.linalg.norm(looks(first) - looks(second)) > 14, (first, second)


# Rich display, lazy import, show


def test_a_run_is_displayed_as_text_without_scripts_and_with_a_hint_to_show(office):
    display = bundle(office)
    assert set(display) == {"text/plain", "text/html"}
    assert not {"<script", "<img", "<svg"} & set(re.findall("<[a-z]+", display["text/html"]))
    assert "delivery ratio" in display["text/html"].partition("<details>")[0]
    assert "run.show()" in display["text/html"]
    assert math.isnan(office.metrics["coverage"])
    for name, value in office.metrics.items():
        assert (f">{name}</th>" in display["text/html"]) == (not math.isnan(value))


def test_a_run_without_a_trace_is_displayed_as_its_metrics_with_a_hint_to_record_one(office):
    display = bundle(office.scenario.replace(duration_s=5).run(record="metrics"))
    assert set(display) == {"text/plain", "text/html"}
    assert "run.show()" not in display["text/html"] and "scenario.run()" in display["text/html"]


def test_importing_the_package_loads_neither_bokeh_nor_pillow():
    code = (
        "import sys, workbench, workbench.views\n"
        "print([m for m in ('bokeh', 'PIL', 'pandas', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_show_outside_of_a_notebook_writes_a_page_and_prints_its_path(flood, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    assert flood.show() is None
    (page,) = (tmp_path / "out").glob("*.html")
    assert str(page.relative_to(tmp_path)) in capsys.readouterr().out
    assert "Flooding on 25 nodes (grid)" in page.read_text(encoding="utf-8")


def test_a_page_in_the_temporary_folder_does_not_follow_symbolic_links(flood, tmp_path, monkeypatch, capsys):
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    victim.write_text("mine")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    (shared / f"workbench-{flood.scenario.hash[:12]}.html").symlink_to(victim)
    flood.show()
    flood.show()
    assert victim.read_text() == "mine"
    folders = [folder for folder in shared.iterdir() if folder.is_dir()]
    assert len(folders) == 2 and {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
    printed = capsys.readouterr().out
    for folder in folders:
        (page,) = folder.iterdir()
        assert str(page) in printed and "Flooding on 25 nodes (grid)" in page.read_text(encoding="utf-8")


def test_a_page_accepts_further_figures_and_refuses_other_objects(flood, tmp_path):
    extra = chart.line_chart([series("a", [1, 2])])
    page = flood.save_html(tmp_path / "deep" / "page.html", [("A <sweep>", "What it says.", extra)])
    text = page.read_text(encoding="utf-8")
    assert "A &lt;sweep&gt;" in text and "What it says." in text and "<polyline" in text
    with pytest.raises(wb.ParameterError, match="is a str; it must be a Bokeh model or a Drawing"):
        flood.save_html(tmp_path / "page.html", [("wrong", "", "figure")])

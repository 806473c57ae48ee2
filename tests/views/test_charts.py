"""Charts as values: what picture and Bokeh figure have in common, and what the page gets, without a browser."""

import gzip
import json

import numpy as np
import pytest

import workbench as wb
from workbench.views import palette
from workbench.views.charts import description
from workbench.views.charts.description import AREAS, BARS, DOTS, Series
from workbench.views.charts.figure import columns_of, figure_of
from workbench.views.charts.living import ChartView, chart_entry, fit, packed_items
from workbench.views.charts.static import Chart, category_chart, line_chart
from workbench.views.drawing import Circle, Polygon


def marks_of(chart, index=0, panel=0):
    return columns_of(chart.panels[panel])[f"marks {index}"]


def scenario(duration_s=6, **fields):
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish([15, 12], "TEMP IS 5", every_s=1)]
    return wb.Scenario(wb.topology.grid(4, 4), wb.Diffusion(**fields), workload, wb.radios.cc2420(), duration_s)


@pytest.fixture(scope="module")
def run():
    return scenario().run(engine="reference")


class Sent:
    """A view whose messages are collected instead of being sent: ``messages`` is a list of (message, buffers)."""

    def __init__(self, chart):
        self.view, self.messages = ChartView(chart), []
        self.view.wire.send = lambda message, buffers=(): self.messages.append((message, buffers))

    def ask(self, **request):
        self.view._answer_request(None, {"id": 1, **request}, [])
        return self.messages.pop()[0]


def test_figure_and_picture_have_the_same_plot_area_ranges_and_ticks():
    chart = line_chart([{"name": "a", "x": [0, 5, 10], "y": [1, 3, 2]}], title="T", x_label="x", y_label="y", note="n")
    figure, area = figure_of(chart.panels[0]), chart.panels[0].area
    assert (figure.min_border_left, figure.min_border_top) == (round(area.left), round(area.top) - description.RIM)
    assert (figure.width - figure.min_border_right, figure.height - figure.min_border_bottom) == (
        round(area.right),
        round(area.bottom),
    )
    assert (figure.x_range.start, figure.y_range.end) == (area.x0, area.y_end)
    assert figure.left[0].ticker.ticks == area.y_ticks and figure.below[0].ticker.ticks == area.x_ticks


@pytest.mark.parametrize("count", [25, 41])
def test_many_categories_have_marks_in_picture_and_figure(count):
    chart = category_chart([f"name {i}" for i in range(count)], [{"name": "", "x": range(count), "y": [1.0] * count}])
    assert sum(isinstance(item, Circle) for item in chart.items) == count
    assert figure_of(chart.panels[0]).renderers[-1].glyph.fill_alpha == 1.0


def test_values_outside_the_range_are_at_the_edge_in_picture_and_figure():
    chart = line_chart([{"name": "", "x": [1, 2], "y": [5.0, 50.0], "low": [4, 40], "high": [6, 60]}], y_range=(0, 10))
    assert marks_of(chart)["y"].tolist() == [5.0, 10.0]
    assert columns_of(chart.panels[0])["band 0"]["high"].tolist() == [6.0, 10.0]


def test_bars_begin_at_zero_and_values_that_are_not_finite_have_no_bar():
    bars = Series("", [0, 1, 2], [0.0, float("nan"), float("inf")], shape=BARS)
    chart = category_chart(["a", "b", "c"], [bars])
    assert chart.panels[0].area.y0 == 0.0 and sum(isinstance(item, Polygon) for item in chart.items) == 1
    assert "nan" not in chart.to_svg() and len(marks_of(chart)["x"]) == 1


def test_dots_at_the_same_place_are_drawn_once_with_all_ids():
    points = 50_000
    dots = Series(
        "", [1.0] * points + [2.0], [1.0] * points + [5.0], shape=DOTS, ids={"paths": [[i] for i in range(points + 1)]}
    )
    marks = marks_of(line_chart([dots]))
    assert [len(ids) for ids in marks["paths"]] == [points, 1] and marks["paths"][1] == [points]


def test_a_scatter_plot_has_at_most_ten_thousand_dots():
    xs, ys = np.random.default_rng(1).normal(size=(2, 100_000))
    chart = line_chart([Series("", xs, ys, shape=DOTS)])
    assert 2_000 < len(marks_of(chart)["x"]) <= description.MOST_DOTS
    assert len(chart.to_svg()) < 1_000_000


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"colour": "red"}, "the colour 'red'; a colour is written as #RRGGBB"),
        ({"tooltips": ["a"]}, "2 values of x but 1 of tooltips"),
        ({"ids": {"runs": [[1]]}}, "2 values of x but 1 of runs"),
        ({"shape": AREAS, "sizes": [3.0]}, "2 values of x but 1 of sizes"),
    ],
)
def test_a_series_is_checked_when_it_is_drawn(fields, message):
    with pytest.raises(wb.ParameterError, match=message):
        line_chart([{"name": "a", "x": [1, 2], "y": [1, 2], **fields}])


def test_columns_can_be_any_iterables():
    values = {1: 2.0, 3: 4.0}
    assert marks_of(line_chart([{"name": "", "x": values.keys(), "y": values.values()}]))["y"].tolist() == [2.0, 4.0]


@pytest.mark.parametrize("draw", [lambda run: run.plot("time_s", 640), lambda run: run.energy().plot(None, 700)])
def test_a_chart_can_be_drawn_again_with_another_width(run, draw):
    narrow = fit(draw(run), 300)
    assert narrow.width == 300 and max(item.x for item in narrow.items if hasattr(item, "text")) <= 300


def test_a_chart_for_a_dark_background_stays_dark_and_is_a_copy():
    chart = line_chart([{"name": "a", "x": [1, 2], "y": [1, 2]}])
    dark = chart.in_dark()
    dark.add(line_chart([{"name": "b", "x": [1], "y": [1]}]), 0, 340)
    assert (len(chart.panels), len(dark.panels)) == (1, 2)
    assert chart_entry(dark)["is_dark"] and fit(chart.in_dark(), 300).background == palette.DARK_BACKGROUND


def test_the_energy_of_a_run_is_a_chart_and_a_map_whose_points_are_its_nodes(run):
    bars, on_map = run.energy().plot(), run.energy().map()
    assert isinstance(bars, Chart) and bars.subject == on_map.subject == f"run {run.scenario.hash}"
    assert sorted(ids for (ids,) in marks_of(on_map)["nodes"]) == sorted(run.scenario.topology)
    assert json.loads(gzip.decompress(packed_items(on_map)))[0]["doc"]


def test_each_delivery_of_a_run_is_a_dot(run):
    marks = marks_of(run.plot("time_s"))
    assert sum(len(ids) for ids in marks["paths"]) == run.metrics["delivered"]
    percent = marks_of(run.plot())
    assert percent["x"][-1] == 100 and (np.diff(percent["y"]) >= 0).all()
    with pytest.raises(wb.ParameterError, match="must be one of percent, time_s"):
        run.plot("nodes")


# Messages to the page


def test_a_narrow_page_also_gets_narrow_updates():
    chart = line_chart([{"name": "a", "x": [1, 2], "y": [1, 2]}], width=640)
    sent = Sent(chart)
    assert sent.ask(want="figure", width=400)["width"] == 400
    sent.view.feed(chart)
    message, buffers = sent.messages.pop()
    assert message["width"] == 400 and message["state"] == 1 and len(buffers) > 2


def test_another_form_of_a_band_is_another_figure():
    point = {"name": "a", "x": [1], "y": [1], "low": [0], "high": [2]}
    band = {"name": "a", "x": [1, 2], "y": [1, 1], "low": [0, 0], "high": [2, 2]}
    sent = Sent(line_chart([point]))
    sent.view.feed(line_chart([band]))
    assert sent.messages.pop()[0]["is_other"]


def test_an_error_of_a_run_that_is_opened_reaches_the_page():
    chart = line_chart([{"name": "a", "x": [1], "y": [1]}])
    chart.open_run = lambda number: 1 // 0
    assert "ZeroDivisionError" in Sent(chart).ask(want="run", number=3)["error"]
    assert "unknown" in Sent(chart).ask(want="nonsense")["error"]


def test_tables_with_other_values_do_not_share_their_selection():
    subjects = {
        wb.Sweep(scenario(), {"protocol.ttl": [8, other]}, engine="reference")
        .run(progress=False)
        .plot("protocol.ttl")
        .subject
        for other in (4, 10)
    }
    assert len(subjects) == 2


def test_a_row_of_a_table_is_executed_again():
    table = wb.Sweep(scenario(), {"protocol.ttl": [1, 8]}, engine="reference").run(progress=False)
    assert table.run(1).scenario.hash == table.to_pandas()["scenario"][1]
    with pytest.raises(wb.ParameterError, match="the argument `row` is 2; it must be from 0 to 1"):
        table.run(2)


# Comparisons


def test_all_metrics_that_differ_are_drawn_also_infinite_ones():
    compared = wb.compare(
        scenario().replace(radio=wb.Radio()),
        [wb.Flooding(), wb.Gossip(forwarding_probability=0.2)],
        seeds=3,
        progress=False,
    )
    chart = compared.plot()
    titles = [item.text for item in chart.items if hasattr(item, "turn") and item.turn == 90]
    assert "latency of all, largest (ms)" in titles and "frames sent" in titles and "wrong" not in titles
    assert len(chart.panels) == len(titles) and fit(chart, 400).width == 400


def test_a_comparison_of_one_protocol_draws_its_delivery():
    compared = wb.compare(scenario(), [wb.Diffusion()], seeds=2, progress=False)
    assert len(compared.plot().panels) == 1

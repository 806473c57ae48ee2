"""Static figures of layers: every mark, every protocol, light and dark."""

import io
import itertools
import re
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image, ImageChops

import workbench as wb
from tests.images import with_svgs
from workbench.public_names import PROTOCOLS
from workbench.views import figure, palette
from workbench.views.charts.static import steps_chart
from workbench.views.drawing import Circle, Drawing, Text
from workbench.views.figure import draw
from workbench.views.layers import (
    LEVELS,
    Curves,
    Layer,
    Line,
    Look,
    MessagePath,
    MessagePaths,
    Panel,
    RunView,
    Scale,
    table,
)
from workbench.views.layout import lay_out
from workbench.views.marks import LayerScene, chips
from workbench.views.panels import strips_drawing
from workbench.views.player.embed import browser_file
from workbench.views.player.playback import PlaybackClock
from workbench.views.seeing import see

SECOND = 1_000_000
END = 20 * SECOND


@pytest.fixture(scope="module", params=sorted(PROTOCOLS))
def view(request):
    """Return the view of a small run with losses and a failure, for each public protocol."""
    protocol = getattr(import_module(f"workbench.{PROTOCOLS[request.param]}"), request.param)
    return see(
        wb.Scenario(
            topology=wb.topology.grid(4, 4),
            protocol=protocol(),
            workload=[
                wb.subscribe(at=[0, 6], what="TEMP GE 20", start_s=20),
                wb.publish(at=15, what="TEMP IS 26", start_s=30, every_s=5),
                wb.outage(at=9, start_s=42, stop_s=50),
            ],
            radio=wb.Radio(loss=0.1, collisions=True),
            duration_s=60,
            seed=3,
        ).run(engine="reference")
    )


def busy_time_us(layer):
    """Return a time at which a layer has many rows."""
    times = layer.table["from_us"]
    return max(times[np.linspace(0, len(times) - 1, 30).astype(int)].tolist(), key=lambda at: len(layer.alive(at)))


def elements(page):
    return [element for element in page.elements() if element]


def test_every_layer_of_every_protocol_draws_its_mark_in_light_and_dark(view):
    checked = 0
    for layer in view.layers:
        names = {look.chip or layer.name for look in layer.looks if look.mark or layer.mark}
        if not names or not len(layer):
            continue
        time_us = busy_time_us(layer)
        path = int(layer.column("path")[layer.alive(time_us)].max()) if layer.of_path else None
        scene = LayerScene(view, time_us, 700, names, path)
        bare = LayerScene(view, time_us, 700, (), path).draw()
        marked = set(elements(scene.draw())) - set(elements(bare))
        marked |= set(elements(strips_drawing(scene, 700)))
        assert marked, (layer.name, time_us)
        light = draw(view, time_us, layers=names, message=path).to_svg()
        dark = draw(view, time_us, layers=names, message=path, dark=True).to_svg()
        assert len(list(ElementTree.fromstring(light).iter())) == len(list(ElementTree.fromstring(dark).iter()))
        assert f'fill="{palette.DARK_BACKGROUND}"' in dark and palette.BACKGROUND not in dark
        checked += 1
    assert checked >= 4


def test_a_figure_of_every_protocol_shows_its_default_layers_and_keeps_texts_on_the_page(view):
    for time_us in (0, 31 * SECOND, 60 * SECOND):
        page = draw(view, time_us)
        ElementTree.fromstring(page.to_svg())
        for text in (item for item in page.items if isinstance(item, Text)):
            assert 0 <= text.y <= page.height, text


# Layers of four nodes in a square with sides of 10 m

CURVES = Curves("fill", "links", (Line("one", "#0072B2", np.array([0, 5 * SECOND]), np.array([0, 3])),))


class Protocol:
    pass


@pytest.fixture(scope="module")
def run():
    scenario = wb.Scenario(topology=wb.topology.grid(2, 2), protocol=wb.Flooding(), duration_s=20)
    return scenario.run(engine="reference")


def make_view(run, *layers, curves=(), paths=None):
    clock = PlaybackClock(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    return RunView(run, lay_out(run.scenario.topology), clock, END, layers, curves, paths or MessagePaths(()))


def layer(name, mark, looks, **columns):
    rows = len(next(iter(columns.values())))
    columns = {"from_us": [0] * rows, "until_us": [END] * rows, **columns}
    options = {
        key: columns.pop(key)
        for key in ("words", "scale", "panel", "of_path", "is_on", "is_detail", "level")
        if key in columns
    }
    return Layer(name, table(**columns), looks, mark, **options)


def texts(page):
    return [item.text for item in page.items if isinstance(item, Text)]


def svg(page):
    return page.to_svg()


def test_a_figure_shows_the_rows_of_its_time(run):
    ring = layer("rings", "ring", (Look("ringed", "#123456"),), node=[0], from_us=[5], until_us=[9])
    shown = ["#123456" in svg(draw(make_view(run, ring), time_us)) for time_us in (4, 5, 8, 9)]
    assert shown == [False, True, True, False]
    whole = layer("rings", "ring", (Look("ringed", "#123456"),), node=[0])
    assert "#123456" in svg(draw(make_view(run, whole), END))  # at the end: rows that last to the end


def test_a_figure_draws_the_default_or_the_named_layers(run):
    on = layer("on", "ring", (Look("a", "#111111"),), node=[0])
    off = layer(
        "off", "ring", (Look("b", "#222222"), Look("c", "#333333", chip="chip")), node=[0, 1], look=[0, 1], is_on=False
    )
    view = make_view(run, on, off)
    assert chips(view) == {"on": True, "off": False, "chip": False}

    def colours(names):
        return set(re.findall("#[123]{6}", svg(draw(view, 0, layers=names))))

    assert colours(None) == {"#111111"}
    assert colours(["off"]) == {"#222222"}
    assert colours(["on", "chip"]) == {"#111111", "#333333"}
    with pytest.raises(
        wb.ParameterError, match="layer 'of' is not in this run .did you mean off.*; its layers are on, off, chip"
    ):
        draw(view, 0, layers=["of"])


def test_a_node_is_drawn_once_with_the_look_of_lowest_rank_and_largest_weight(run):
    scale = Scale("rank", ("#AA0000", "#BB0000", "#CC0000"))
    ranks = layer("ranks", "node", (Look("has some", rank=4),), node=[0, 0, 1], weight=[1, 0.5, 0.5], scale=scale)
    roles = layer("roles", "node", (Look("sink", "#0000AA", marker="square", rank=1),), node=[1])
    page = draw(make_view(run, ranks, roles), 0)
    assert page.to_svg().count("#BB0000") == 2  # the legend's shade and the bar of the scale, but not a node
    assert "#CC0000" in page.to_svg() and "#0000AA" in page.to_svg()
    assert {"has some", "sink", "node", "sink 1"} <= set(texts(page))


def test_a_scale_is_a_single_bar_with_labels_at_its_ends(run):
    scale = Scale("fill of a filter", ("#AA0000", "#BB0000"), "0", "12 %")
    halves = layer("fill", "half", (Look(size=0.4),), node=[0, 1], peer=[1, 0], weight=[0, 1], scale=scale)
    discs = layer("fill", "disc", (Look(size=1.8),), node=[0], weight=[1], scale=scale)
    words = texts(draw(make_view(run, halves, discs), 0))
    assert words.count("fill of a filter:  0") == words.count("12 %") == 1


def test_the_selected_message_path_is_drawn_and_named(run):
    paths = MessagePaths((MessagePath("first", 0, ()), MessagePath("second", 5, (), "two hops")))
    hops = layer("way", "arrow", (Look("hop", "#123456"),), node=[0, 2], peer=[1, 3], path=[0, 1], of_path=True)
    view = make_view(run, hops, paths=paths)

    def arrows(*arguments):
        return len(
            [element for element in draw(view, *arguments).elements() if "#123456" in element and "Z" in element]
        )

    assert "followed: second: two hops" in texts(draw(view, 9))
    assert "followed: first" in texts(draw(view, 4))
    assert "followed: first" in texts(draw(view, 9, message=0))
    assert "followed: second: two hops" in texts(draw(view, 9, message=-1))
    quiet = make_view(run, hops, paths=paths._replace(is_newest=False))
    assert not any(text.startswith("followed") for text in texts(draw(quiet, 9)))
    with pytest.raises(wb.ParameterError, match="the argument `message` is 2; this run has paths of 2 messages"):
        draw(view, 9, message=2)


def test_marks_of_unknown_nodes_are_not_drawn(run):
    for mark in ("line", "half", "arrow", "packet", "loss"):
        view = make_view(run, layer("x", mark, (Look("", "#123456"),), node=[0, 0], peer=[-1, 99]))
        assert "#123456" not in svg(draw(view, 9)), mark
    for mark in ("disc", "ring", "cross", "wave", "node"):
        view = make_view(run, layer("x", mark, (Look("", "#123456"),), node=[-1, 99]))
        assert "#123456" not in svg(draw(view, 9)), mark


def test_a_packet_moves_with_time_and_a_lost_packet_stops_before_its_receiver(run):
    def middle(weight, time_us):
        look = Look("data", "#123456", 0.85, 8)
        view = make_view(
            run, layer("frames", "packet", (look,), node=[0], peer=[1], from_us=[0], until_us=[100], weight=[weight])
        )
        scene = LayerScene(view, time_us, 700)
        scene.draw()
        (dot,) = [item for item in scene.drawing.items if getattr(item, "fill", None) == "#123456"]
        return (dot.centers[0] - [scene.x[0], scene.y[0]]) / (scene.x[1] - scene.x[0])

    assert np.allclose(middle(1, 25), [0.25, 0])
    assert np.allclose(middle(0.6, 50), [0.3, 0])


def test_an_arrow_with_a_lane_is_drawn_on_the_right_of_its_direction(run):
    def ends(lane):
        arrows = layer("way", "arrow", (Look("hop", "#123456", lane=lane),), node=[0, 1], peer=[1, 0])
        scene = LayerScene(make_view(run, arrows), 9, 700)
        scene.draw()
        (lines,) = [item for item in scene.drawing.items if getattr(item, "colour", None) == "#123456"]
        return lines.ends, scene.y[0]

    lines, y = ends(0.5)
    assert lines[0][0] < lines[0][2] and lines[1][0] > lines[1][2]
    assert (lines[0][[1, 3]] > y).all() and (lines[1][[1, 3]] < y).all()  # y grows downwards
    assert np.allclose(ends(0)[0][:, [1, 3]], y)


def test_labels_replace_the_names_of_nodes(run):
    roles = layer("roles", "node", (Look("failed node", marker="x", rank=0),), node=[1, 2])
    labels = layer("keys", "label", (Look("key"),), node=[2, 3], text=[0, -1], words=("2: 0110",))
    words = texts(draw(make_view(run, roles, labels), 0))
    assert "failed 1" in words and "2: 0110" in words
    assert "failed 2" not in words


def test_details_are_omitted_in_dense_networks(run):
    detail = layer("detail", "arrow", (Look("", "#123456"),), node=[0], peer=[1], is_detail=True)
    assert "#123456" in svg(draw(make_view(run, detail), 0))
    dense = wb.Scenario(topology=wb.topology.grid(60, 60), protocol=wb.Flooding(), duration_s=20)
    dense_view = make_view(dense.run(engine="reference", record="trace"), detail)
    assert "#123456" not in svg(draw(dense_view, 0))


def test_strips_are_bars_in_lanes_below_the_map(run):
    panel = Panel("Zones", 0, 8, ("root 3", "root 0"))
    bars = layer(
        "zones",
        "strip",
        (Look("zone", "#0072B2"),),
        node=[3, 0, 1],
        low=[0, 4, 0],
        high=[8, 8, 4],
        lane=[0, 1, 1.5],
        panel=panel,
    )
    scene = LayerScene(make_view(run, bars), 0, 700)
    drawn = strips_drawing(scene, 700)
    (strips,) = [item for item in drawn.items if getattr(item, "fill", None) == "#0072B2"]
    whole, half, thin = strips.corners
    assert np.ptp(whole[:, 0]) == pytest.approx(2 * np.ptp(half[:, 0]))
    assert half[:, 0].max() == pytest.approx(whole[:, 0].max())
    assert whole[:, 1].max() < half[:, 1].min() < thin[:, 1].min()
    assert np.ptp(thin[:, 1]) < np.ptp(half[:, 1]) / 2
    assert {"Zones", "root 3", "root 0", "3", "0"} <= set(texts(drawn))
    assert "zone" in texts(draw(make_view(run, bars), 0))


def test_curves_are_step_lines_with_a_cursor_at_the_time(run):
    before, after = (draw(make_view(run, curves=(CURVES,)), time_us) for time_us in (0, 10 * SECOND))
    assert {"one", "links", "time (s)"} <= set(texts(after))
    (line,) = [item for item in after.items if type(item).__name__ == "Polyline"]
    heights = [y for _, y in line.points]
    assert len(line.points) == 4 and heights[0] == heights[1] and heights[2] == heights[3] < heights[0]
    changed = [b for a, b in zip(before.items, after.items, strict=False) if a != b]
    assert len([item for item in changed if type(item).__name__ == "Segment"]) == 1


def test_the_figure_of_a_run_accepts_layers_and_dark(run):
    page = run.figure(3, dark=True, layers=["broadcasts"] if "broadcasts" in chips(see(run)) else ())
    assert page.is_dark and page.to_svg() == page.to_svg(dark=True)
    assert figure.network_drawing(run, 3, layers=(), dark=False).to_svg(dark=True) == page.to_svg()


# Many items of one look


def picture(page):
    return Image.open(io.BytesIO(page.to_png(scale=1)))


def assert_same_pictures(first, second):
    assert ImageChops.difference(picture(first), picture(second)).getbbox() is None


POINTS = np.array([[20.0, 30.0], [60.0, 25.0], [44.0, 70.0]])
ENDS = np.array([[10.0, 10, 60, 40], [80, 20, 20, 70], [30, 30, 30, 30]])


@pytest.mark.parametrize("opacity", [1.0, 0.4])
def test_a_batch_of_items_of_one_look_looks_like_the_single_items(opacity):
    look = {"colour": "#0072B2", "width": 3.0, "opacity": opacity}
    for add_many, add_one in [
        (lambda page: page.segments(ENDS, **look), lambda page: [page.segment(*row, **look) for row in ENDS.tolist()]),
        (lambda page: page.crosses(POINTS, 6, **look), lambda page: [page.cross(x, y, 6, **look) for x, y in POINTS]),
        (
            lambda page: page.segments(ENDS, **look, dash=(4, 3)),
            lambda page: [page.segment(*row, **look, dash=(4, 3)) for row in ENDS.tolist()],
        ),
    ]:
        batch, single = Drawing(100, 90), Drawing(100, 90)
        add_many(batch)
        add_one(single)
        assert_same_pictures(batch, single)


def test_a_batch_of_arrows_looks_like_the_single_arrows():
    batch, single = Drawing(100, 90), Drawing(100, 90)
    batch.arrows(ENDS, np.array([6.0, 12, 6]), 0.6, colour="#0072B2")
    for row, head in zip(ENDS.tolist(), (6.0, 12, 6), strict=True):
        single.arrow(*row, head=head, at=0.6, colour="#0072B2")
    assert_same_pictures(batch, single)


@pytest.mark.parametrize("kind", ["circle", "square", "triangle", "diamond", "x"])
def test_a_batch_of_markers_looks_like_the_single_markers(kind):
    batch, single = Drawing(100, 90), Drawing(100, 90)
    batch.markers(kind, POINTS, 9, "#D55E00", "#3A3F47", 2)
    for x, y in POINTS.tolist():
        single.marker(kind, x, y, 9, "#D55E00", "#3A3F47", 2)
    assert_same_pictures(batch, single)


def test_items_are_split_into_paths_of_at_most_32_segments():
    ends = np.arange(400.0).reshape(100, 4)
    page = Drawing(100, 100)
    page.segments(ends)
    paths = [re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", element) for element in page.elements()]
    assert [len(path) for path in paths] == [32, 32, 32, 4]
    assert [[float(number) for number in row] for row in itertools.chain(*paths)] == ends.tolist()


def test_an_empty_batch_adds_nothing():
    page = Drawing(10, 10)
    page.segments(np.zeros((0, 4)))
    page.arrows(np.zeros((0, 4)), 5, 0.6)
    page.markers("circle", np.zeros((0, 2)), 3, "#000000")
    page.crosses(np.zeros((0, 2)), 3)
    page.polygons(np.zeros((0, 3, 2)))
    assert page.items == []


def test_a_dashed_ring_has_gaps_in_svg_and_png():
    whole, dashed = Drawing(60, 60), Drawing(60, 60)
    whole.circles(np.array([[30.0, 30.0]]), 20, stroke="#000000", width=2)
    dashed.circles(np.array([[30.0, 30.0]]), 20, stroke="#000000", width=2, dash=(3, 2))
    assert 'stroke-dasharray="3 2"' in dashed.to_svg()
    dark, some = (int((np.array(picture(page).convert("L")) < 128).sum()) for page in (whole, dashed))
    assert 0.4 * dark < some < 0.8 * dark


# Light and dark


def test_a_dark_drawing_has_the_dark_colours_and_is_created_once():
    page = Drawing(40, 20)
    page.circle(10, 10, 5, fill=palette.SINK, stroke=palette.OUTLINE)
    page.segments(ENDS, colour=palette.LOST)
    page.text(5, 5, "x", halo=palette.BACKGROUND)
    dark = page.in_dark()
    assert dark.in_dark() is dark
    circle = next(item for item in dark.items if isinstance(item, Circle))
    assert (circle.fill, circle.stroke) == (palette.in_dark(palette.SINK), palette.in_dark(palette.OUTLINE))
    assert palette.BACKGROUND not in dark.to_svg() and palette.in_dark(palette.LOST) in dark.to_svg()
    assert picture(dark).getpixel((39, 0)) == palette.rgb(palette.DARK_BACKGROUND)
    assert page.to_svg(dark=True) == dark.to_svg()


def test_files_are_light_unless_dark_is_requested(tmp_path):
    page = Drawing(10, 10)
    assert palette.DARK_BACKGROUND not in page.save(tmp_path / "a.svg").read_text()
    assert palette.DARK_BACKGROUND in page.save(tmp_path / "b.svg", dark=True).read_text()
    page.save(tmp_path / "b.png", dark=True)
    assert Image.open(tmp_path / "b.png").getpixel((5, 5)) == palette.rgb(palette.DARK_BACKGROUND)


def test_a_notebook_shows_one_svg_with_light_and_dark_colours():
    page = Drawing(40, 20)
    page.circle(10, 10, 5, fill=palette.SINK)
    shown = page._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}
    assert shown["text/html"].startswith('<img width="40" height="20" ')
    svg_ = with_svgs(shown["text/html"])
    ElementTree.fromstring(svg_)
    assert f'[fill="{palette.SINK}"]{{fill:light-dark({palette.SINK},{palette.in_dark(palette.SINK)})}}' in svg_
    assert "light-dark(#FFFFFF,#14181D)" in svg_
    assert len(svg_) < len(page.to_svg()) + 700


def test_the_image_of_a_notebook_describes_itself_and_ends_in_no_text():
    page = Drawing(40, 20, title='loads "a" <b>\nand c')
    assert 'alt="loads &quot;a&quot; &lt;b&gt; and c"' in page.to_image_html()
    assert 'alt="a drawing"' in Drawing(40, 20).to_image_html()
    page.text(5, 10, "</script><img>µ")
    assert page.to_image_html().count("<") == 3 and ">&lt;/script&gt;&lt;img&gt;µ<" in with_svgs(page.to_image_html())


def test_a_curve_with_more_steps_than_pixels_keeps_the_largest_and_last_of_each_pixel():
    times = np.linspace(0, 20, 50_001)[:-1]
    values = np.zeros(50_000)
    values[12_345], values[-1] = 7, 3
    page = steps_chart([("one", "#0072B2", times, values)], 20, 5, "nodes", 700, 150)
    (line,) = [item for item in page.items if type(item).__name__ == "Polyline"]
    assert len(line.points) < 4 * 700
    heights = [y for _, y in line.points]
    assert len(set(heights)) == 3  # the heights of 0, 3 and 7
    assert heights[-1] == sorted(set(heights))[1]


def test_labels_of_a_node_are_joined_in_the_order_of_rank(run):
    keys = layer("keys", "label", (Look(size=1.1),), node=[2], text=[0], words=("0110",))
    numbers = layer("numbers", "label", (Look(size=-1.1),), node=[2, 3], text=[0, 1], words=("2", "3"))
    assert {"2: 0110", "3"} <= set(texts(draw(make_view(run, keys, numbers), 0)))


def test_labels_of_many_nodes_are_written_only_on_request(run):
    dense_run = wb.Scenario(topology=wb.topology.grid(8, 8), protocol=wb.Flooding(), duration_s=20).run(
        engine="reference"
    )
    words = tuple(f"key {node}" for node in range(64))
    keys = layer("keys", "label", (Look(),), node=range(64), text=range(64), words=words)
    assert not set(words) & set(texts(draw(make_view(dense_run, keys), 0)))
    assert len(set(words) & set(texts(draw(make_view(dense_run, keys), 0, layers=["keys"])))) > 40


def test_the_browser_and_figures_have_the_same_marks():
    painted = set(re.findall(r"^  (\w+)\(brush, view, layer", browser_file("paint.js"), re.MULTILINE))
    # Nodes are painted together, and strips in a separate panel.
    assert painted == set(LEVELS) - {"node", "strip"}

"""Interactive charts in JupyterLab: tooltips, selections, runs, updates, themes, narrow pages, remaining pictures."""

import pytest

from tests.jupyter import WITHIN_S, Jupyter
from tests.until import wait_until

pytestmark = pytest.mark.browser
SETUP = """
import comm
import ipywidgets
import workbench as wb
from workbench.views.charts.living import ChartView

workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish([15, 12], "TEMP IS 5", every_s=1)]
scenario = wb.Scenario(wb.topology.grid(4, 4), wb.Diffusion(), workload, wb.radios.cc2420(), duration_s=5)
table = wb.Sweep(scenario, {"protocol.refresh_s": [2, 4, 8], "seed": [1, 2]}, engine="reference").run(progress=False)
run = scenario.run(engine="reference")

def lines(ys):
    xs = list(range(len(ys)))
    return wb.views.line_chart([{"name": "a", "x": xs, "y": ys}, {"name": "b", "x": xs, "y": [15.0] * len(xs)}])
"""
SENT, ENERGY, RUN, PLAYER, LINES, LONG, COMPARED = 1, 2, 3, 4, 5, 7, 8  # indices of CELLS
CELLS = (
    SETUP,
    "table.plot('protocol.refresh_s', 'transmissions')",
    "table.plot('protocol.refresh_s', 'energy_mJ')",
    "run.plot()",
    "run.show()",
    "view = ChartView(lines([1.0, 2.0, 4.0]))\nipywidgets.VBox([view.wire])",
    "view.feed(lines([3.0, 1.0, 2.0, 49.0]))",
    "lines([(7 * x * x) % 20 for x in range(30_000)])",
    "wb.compare(scenario, [wb.Flooding(), wb.Gossip()], seeds=2, progress=False).plot()",
    "print(len(comm.get_comm_manager().comms))",
)
CHARTS = "[...globalThis.workbenchCharts ?? []].filter((one) => one.shownAt && one.root.isConnected)"
# The position of a point in the page: of chart number `which`, source `name`, point number `at`.
POINT = f"""([which, name, at]) => {{
  const chart = {CHARTS}[which], view = chart.views[0], {{ data }} = chart.sources[0][name]
  view.el.scrollIntoView({{ block: "center" }})
  const {{ x, y }} = view.el.getBoundingClientRect()
  return [x + view.frame.x_scale.compute(data.x[at]), y + view.frame.y_scale.compute(data.y[at])]
}}"""
SELECTED = f"(which) => {CHARTS}[which].sources.map((one) => [...one['marks 0'].selected.indices])[0]"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with Jupyter("lab", tmp_path_factory.mktemp("lab")) as jupyter:
        yield jupyter


@pytest.fixture
def notebook(chromium, lab):
    made = lab.notebook(chromium, CELLS, "charts.ipynb", (1366, 900))
    made.run(0)
    yield made
    assert made.complaints == []
    made.page.close()
    for kernel in lab.kernels():
        lab.shut_down(kernel)


def run_charts(notebook, *cells):
    """Run cells with one chart each, and wait until all charts are alive."""
    for cell in cells:
        notebook.run(cell)
    wait(notebook, f"{CHARTS}.length == {len(cells)}")


def wait(notebook, condition):
    notebook.page.wait_for_function(f"() => {condition}", timeout=1000 * WITHIN_S)


def move_to(notebook, which, at, name="marks 0"):
    x, y = notebook.page.evaluate(POINT, [which, name, at])
    notebook.page.mouse.move(x - 3, y)
    notebook.page.mouse.move(x, y)
    return x, y


def drag(notebook, start, end):
    """Press the mouse at one position of the page, move it to another, and release it."""
    notebook.page.mouse.move(*start)
    notebook.page.mouse.down()
    notebook.page.mouse.move(*end, steps=5)
    notebook.page.mouse.up()


@pytest.mark.family
def test_a_point_of_a_sweep_shows_its_values_and_opens_its_runs(notebook):
    run_charts(notebook, SENT, ENERGY)
    x, y = move_to(notebook, 0, 1)
    tooltip = notebook.page.get_by_text("refresh (s) 4: transmissions")
    tooltip.wait_for(state="visible")
    assert "2 runs" in tooltip.inner_text()
    notebook.page.mouse.click(x, y)
    wait(notebook, "document.querySelector('.wb-run .wb-player canvas')")
    bar = notebook.page.locator(".wb-run-bar")
    assert bar.locator("output").inner_text() == "protocol.refresh_s=4, seed=1"
    assert notebook.page.evaluate(SELECTED, 1) == [1]  # the other chart of the table selects the same runs
    bar.get_by_label("Next run of this point").click()
    wait(notebook, "document.querySelector('.wb-run output')?.textContent.endsWith('seed=2')")
    wait(notebook, "document.querySelector('.wb-run .wb-player')?.workbenchPlayer?.picture.workload.includes('seed 2')")
    notebook.page.get_by_label("Close this run").click()
    assert notebook.page.locator(".wb-run").count() == 0


@pytest.mark.family
def test_a_selected_part_of_the_deliveries_is_shown_on_the_map_and_a_node_selects_its_deliveries(notebook):
    run_charts(notebook, RUN)
    notebook.run(PLAYER)
    wait(notebook, "document.querySelector('.wb-player')?.workbenchPlayer?.paints > 1")
    count = notebook.page.evaluate(f"() => {CHARTS}[0].sources[0]['marks 0'].data.x.length")

    def last_deliveries_are_selected():
        (x0, y0), (x1, y1) = (notebook.page.evaluate(POINT, [0, "marks 0", at]) for at in (count - 2, count - 1))
        drag(notebook, (x0 - 5, y0 + 5), (x1 + 5, y1 - 5))
        return count - 1 in notebook.page.evaluate(SELECTED, 0)

    wait_until(last_deliveries_are_selected, WITHIN_S, 0.5)  # the page may move during a drag
    player = "document.querySelector('.wb-player').workbenchPlayer"
    paths = f"{CHARTS}[0].sources[0]['marks 0'].data.paths"
    rows = f"{CHARTS}[0].sources[0]['marks 0'].selected.indices"
    wait(notebook, f"{rows}.every((row) => {player}.brushed.has({paths}[row][0]))")
    wait(notebook, f"[...{player}.map.shown].some(([layer, rows]) => layer.of_path && rows.length)")
    notebook.page.evaluate(f"() => {player}.pickNode({player}.plan.id.indexOf(12))")
    nodes = f"{CHARTS}[0].sources[0]['marks 0'].data.nodes"
    wait(notebook, f"{rows}.length && {rows}.every((row) => {nodes}[row].includes(12))")


@pytest.mark.family
def test_a_view_in_a_layout_takes_other_numbers_and_keeps_its_figure(notebook):
    run_charts(notebook, LINES)
    first = notebook.page.evaluate_handle(f"() => {CHARTS}[0].figures[0]")
    notebook.run(LINES + 1)
    wait(notebook, f"{CHARTS}[0].sources[0]['line 0'].data.y.length == 4")
    assert notebook.page.evaluate(f"(first) => {CHARTS}[0].figures[0] === first", first)
    assert notebook.page.evaluate(f"() => {CHARTS}[0].figures[0].y_range.end") >= 49
    entry = notebook.page.get_by_label("Show or hide: b")
    entry.click()
    assert entry.get_attribute("aria-pressed") == "false"
    visible = f"() => {CHARTS}[0].figures[0].renderers.filter((one) => one.visible).map((one) => one.name)"
    assert set(notebook.page.evaluate(visible)) == {"series 0"}


@pytest.mark.family
def test_frames_of_one_chart_share_the_selection_and_a_click_opens_a_run_of_its_own_point(notebook):
    run_charts(notebook, COMPARED)
    opened = f"() => {{ {CHARTS}[0].opened = []; {CHARTS}[0].onTap = (runs) => {CHARTS}[0].opened.push(runs) }}"
    notebook.page.evaluate(opened)
    for at in (0, 1):
        x, y = move_to(notebook, 0, at)
        notebook.page.mouse.click(x, y)
        wait(notebook, f"{CHARTS}[0].opened.length == {at + 1}")
        notebook.page.wait_for_timeout(500)  # two quick clicks are a double click
    first, second = notebook.page.evaluate(f"() => {CHARTS}[0].opened")
    assert len(first) == len(second) == 2 and not {*first} & {*second}
    # In the other panels the point of the same protocol is selected, unless its value is infinite.
    chosen = f"{CHARTS}[0].figures.map((_, i) => [...({CHARTS}[0].selectedIn(i).runs ?? [])])"
    wait(notebook, f"{chosen}.every((runs) => !runs.length || runs.join() == {CHARTS}[0].opened[1].join())")
    assert sum(map(bool, notebook.page.evaluate(f"() => {chosen}"))) > 3


@pytest.mark.family
def test_a_chart_that_comes_while_the_figure_is_loaded_is_shown(notebook):
    notebook.run(LINES)
    notebook.run(LINES + 1)  # perhaps before the figure is there
    wait(notebook, f"{CHARTS}.length == 1 && {CHARTS}[0].sources[0]['line 0'].data.y.length == 4")


@pytest.mark.family
def test_a_chart_follows_the_theme_and_the_width_of_its_page(notebook):
    run_charts(notebook, SENT)
    colour = f"() => {CHARTS}[0].figures[0].below[0].major_label_text_color"
    light = notebook.page.evaluate(colour)
    notebook.page.evaluate("() => jupyterapp.commands.execute('apputils:change-theme', { theme: 'JupyterLab Dark' })")
    wait(notebook, f"{CHARTS}[0].isDark")
    assert notebook.page.evaluate(colour) != light
    notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")
    notebook.page.set_viewport_size({"width": 480, "height": 800})
    wait(notebook, f"{CHARTS}[0].chart.width < 480 && {CHARTS}[0].stage.offsetWidth <= {CHARTS}[0].root.clientWidth")


@pytest.mark.family
def test_a_zoom_gets_round_ticks_and_a_reset_those_of_the_picture(notebook):
    run_charts(notebook, SENT)
    ticks = f"() => {CHARTS}[0].figures[0].left[0].ticker.type"
    assert notebook.page.evaluate(ticks) == "FixedTicker"
    notebook.page.get_by_label("Drag a rectangle to zoom in").click()

    def zoom_has_round_ticks():
        (x0, y0), (x1, y1) = (notebook.page.evaluate(POINT, [0, "marks 0", at]) for at in (0, 1))
        drag(notebook, (x0, y0), (x1, y1 + 20))
        return notebook.page.evaluate(ticks) == "BasicTicker"

    wait_until(zoom_has_round_ticks, WITHIN_S, 0.5)
    notebook.page.get_by_label("Reset the zoom and clear the selection").click()
    wait(notebook, f"{CHARTS}[0].figures[0].left[0].ticker.type == 'FixedTicker'")


@pytest.mark.family
def test_a_long_line_is_drawn_with_the_points_that_can_be_distinguished_at_each_zoom(notebook):
    run_charts(notebook, LONG)
    drawn = f"() => [...{CHARTS}[0].sources[0]['line 0'].data.x]"
    whole = notebook.page.evaluate(drawn)
    assert 1_000 < len(whole) < 4_000 and whole[0] == 0 and whole[-1] == 29_999
    notebook.page.evaluate(f"() => {CHARTS}[0].figures[0].x_range.setv({{ start: 100, end: 300 }})")
    wait(notebook, f"{CHARTS}[0].sources[0]['line 0'].data.x.length < 400")
    assert notebook.page.evaluate(drawn) == list(range(99, 301))


@pytest.mark.family
def test_a_dead_kernel_and_a_reopened_notebook_leave_the_pictures(notebook, lab, chromium):
    run_charts(notebook, SENT)
    notebook.save()
    for kernel in lab.kernels():
        lab.shut_down(kernel)
    reopened = lab.opened(chromium, "charts.ipynb")
    picture = reopened.page.locator("[data-chart] svg, [data-chart] img").first
    picture.wait_for(state="visible")
    assert picture.bounding_box()["height"] > 200 and reopened.page.locator(".wb-frame").count() == 0
    assert (lab.folder / "charts.ipynb").stat().st_size < 120_000
    reopened.page.close()


@pytest.mark.family
def test_cells_that_are_run_again_leave_no_figures_documents_or_comms(notebook):
    run_charts(notebook, SENT)
    comms = len(CELLS) - 1

    client = notebook.page.context.new_cdp_session(notebook.page)

    def state():
        for _ in range(2):  # some objects become unreachable only after the first collection
            client.send("HeapProfiler.collectGarbage")
            notebook.page.wait_for_timeout(200)
        notebook.run(comms)
        counts = [int(notebook.output(comms)), notebook.page.evaluate("() => globalThis.workbenchCharts.size")]
        return counts, notebook.page.evaluate("() => performance.memory.usedJSHeapSize / 1e6")

    def run_again(times):
        for _ in range(times):
            notebook.run(SENT)
            wait(notebook, f"{CHARTS}.length == 1")

    run_again(5)
    counts, heap_MB = state()
    run_again(25)
    wait(notebook, f"globalThis.workbenchCharts.size == 1 && {CHARTS}.length == 1")
    later_counts, later_MB = state()
    assert later_counts == counts and later_MB < heap_MB + 6  # 12 MB more if Bokeh's views are not removed
    bokeh = (
        f"(() => {{ const {{ Bokeh }} = {CHARTS}[0]; return [Bokeh.documents.length, Bokeh.index.roots.length] }})()"
    )
    assert notebook.page.evaluate(bokeh) == [1, 2]  # the figure, and the view of Bokeh's messages

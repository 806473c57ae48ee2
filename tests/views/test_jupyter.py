"""The player in JupyterLab, in Notebook 7, in a notebook reopened without a kernel, and in an exported notebook."""

import importlib.util

import nbformat
import pytest

import workbench as wb
from tests.jupyter import KERNEL, WITHIN_S, Jupyter, execute
from tests.until import wait_until
from workbench.views.drawing import Drawing
from workbench.views.stepper import Stepper

pytestmark = pytest.mark.browser
SETUP = """
import comm
import workbench as wb

def run_of(seed):
    workload = [wb.subscribe(at=0, what="TEMP GE 1"), wb.publish(at=15, what="TEMP IS 5", every_s=1)]
    scenario = wb.Scenario(wb.topology.grid(4, 4), wb.Diffusion(), workload, duration_s=5, seed=seed)
    return scenario.run(engine="reference")
"""
CELLS = (
    SETUP,
    "run_of(1).show()",
    "view = wb.views.PlayerView(run_of(2))\nview",
    "view.feed(run_of(3))",
    "print(len(comm.get_comm_manager().comms))",
    "print(view.selection['node'])",
)
SHOW, VIEW, FEED, COMMS, PICKED = 1, 2, 3, 4, 5
FIRST = "document.querySelector('.wb-player')?.workbenchPlayer"
WORKLOADS = "one?.picture.workload.split(' ').pop()"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with Jupyter("lab", tmp_path_factory.mktemp("lab")) as jupyter:
        yield jupyter


def shown(notebook, workloads):
    """Wait until the players show runs with these seeds."""
    notebook.page.wait_for_function(
        "(wanted) => JSON.stringify([...document.querySelectorAll('.wb-player')].map((root) => root.workbenchPlayer)"
        f".map((one) => {WORKLOADS})) == JSON.stringify(wanted)",
        arg=workloads,
        timeout=1000 * WITHIN_S,
    )


def show_and_feed(notebook):
    notebook.run(0)
    notebook.run(SHOW)
    shown(notebook, ["1"])
    notebook.run(VIEW)
    shown(notebook, ["1", "2"])
    notebook.run(FEED)
    shown(notebook, ["1", "3"])


def test_jupyterlab_shows_and_replaces_runs_and_plays_them_without_a_kernel(chromium, lab):
    notebook = lab.notebook(chromium, CELLS)
    show_and_feed(notebook)
    notebook.page.evaluate("() => { document.body.dataset.jpThemeLight = 'false' }")
    notebook.page.wait_for_function(
        "() => [...document.querySelectorAll('.wb-player')].every((root) => root.workbenchPlayer.isDark == 1)"
    )
    # A selection in the browser reaches the kernel.
    notebook.page.evaluate("() => [...document.querySelectorAll('.wb-player')].pop().workbenchPlayer.pickNode(3)")

    def is_known():
        notebook.run(PICKED)
        return notebook.output(PICKED) == "3\n"

    wait_until(is_known)
    notebook.save()
    assert notebook.complaints == []
    notebook.page.close()

    for kernel in lab.kernels():
        lab.shut_down(kernel)
    again = lab.opened(chromium, "notebook.ipynb")
    shown(again, ["1", "2"])
    again.page.evaluate(f"() => {{ {FIRST}.jump(0); {FIRST}.play() }}")
    again.page.wait_for_function(f"() => {FIRST}?.time > 0")
    again.page.close()


@pytest.mark.family
def test_cells_that_are_run_again_leak_no_memory(chromium, lab):
    notebook = lab.notebook(chromium, CELLS, "again.ipynb")
    show_and_feed(notebook)
    client = notebook.page.context.new_cdp_session(notebook.page)

    def left():
        # Collect twice: some objects become unreachable only after the first collection.
        for _ in range(2):
            client.send("HeapProfiler.collectGarbage")
            notebook.page.wait_for_timeout(200)
        players = notebook.page.evaluate("() => [...workbenchPlayers].filter((one) => one.deref()).length")
        documents = client.send("Memory.getDOMCounters")["documents"]
        notebook.run(COMMS)
        return players, documents, int(notebook.output(COMMS))

    notebook.run(SHOW, times=5)
    notebook.run(FEED, times=5)
    players, documents, comms = left()
    notebook.run(SHOW, times=25)
    notebook.run(FEED, times=25)
    shown(notebook, ["1", "3"])
    after = left()
    # No replaced player remains. JupyterLab itself creates a document now and then.
    assert players <= 4 and after[0] <= 4
    assert after[1] < documents + 10 and after[2] == comms
    notebook.page.close()


COMPARE = """
network, readings = wb.topology.grid(8, 8), [wb.publish(0, "TEMP IS 1", every_s=0.1)]
scenario = wb.Scenario(network, wb.Flooding(), readings, duration_s=2000)
wb.compare(scenario, [wb.Flooding(), wb.Gossip()], seeds=1000)
"""


@pytest.mark.family
def test_a_button_stops_a_comparison(chromium, lab):
    notebook = lab.notebook(chromium, (SETUP, COMPARE), "compare.ipynb")
    notebook.run(0)
    notebook.page.evaluate("() => { jupyterapp.shell.currentWidget.content.activeCellIndex = 1 }")
    notebook.page.evaluate("() => { jupyterapp.commands.execute('notebook:run-cell') }")
    notebook.page.get_by_role("button", name="■ Stop").click()
    notebook.page.get_by_text("points are stored in memory").first.wait_for()
    notebook.page.close()


@pytest.mark.skipif(importlib.util.find_spec("notebook") is None, reason="Notebook 7 is not installed")
@pytest.mark.family
def test_notebook_7_shows_and_replaces_runs(chromium, tmp_path):
    with Jupyter("notebook", tmp_path) as jupyter:
        notebook = jupyter.notebook(chromium, CELLS)
        show_and_feed(notebook)
        notebook.page.close()


@pytest.mark.family
def test_an_exported_notebook_plays_everything_without_requests(chromium, tmp_path):
    nbconvert = pytest.importorskip("nbconvert")
    notebook = nbformat.v4.new_notebook(metadata=KERNEL)
    steps = "from workbench.views.stepper import Stepper\n"
    steps += "run = run_of(4)\nStepper([run.figure(1), run.figure(4)], ['early', 'late'], 'time')"
    cells = (*CELLS[:3], steps, "run.figure()")
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    execute(notebook, timeout=600, store_widget_state=False)
    exporter = nbconvert.HTMLExporter(require_js_url="")
    path = tmp_path / "exported.html"
    path.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    page = chromium.new_page()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    # The page would request a library for formulas; it contains none, and requests are blocked.
    page.route(is_external, lambda route: route.abort())
    page.goto(path.as_uri())
    page.wait_for_function("() => document.querySelectorAll('.wb-player').length == 2")
    # The scripts have replaced the images by SVG elements, and the slider moves.
    assert page.locator("svg.wb-themed").count() == 2 and page.locator("img").count() == 0
    page.locator(".wb-steps input").fill("1")
    assert page.inner_text(".wb-steps output") == "late"
    foreign_requests = [url for url in requests if url.startswith("http") and "mathjax" not in url.lower()]
    assert foreign_requests == [] and complaints == []
    page.close()


def is_external(url):
    return url.startswith("http")


def outputs_of(*shown):
    """Return a cell whose saved outputs are the displays of these objects."""
    cell = nbformat.v4.new_code_cell("shown")
    cell.outputs = [nbformat.v4.new_output("display_data", data=each._repr_mimebundle_()) for each in shown]
    return cell


def pictures():
    """Return a drawing with a tooltip and a stepper of two drawings."""
    drawings = [Drawing(300, 150, title=f"step {step}") for step in (0, 1)]
    for step, drawing in enumerate(drawings):
        drawing.circle(100 + 50 * step, 75, 20, fill="#0072B2", tooltip=f"seen at step {step}")
        drawing.text(10, 20, f"label {step}")
    return drawings[0], Stepper(drawings, ["first", "second"], "step"), wb.topology.grid(3, 3)


IMAGES = "[...document.querySelectorAll('.jp-OutputArea img')]"
SIZES = f"{IMAGES}.map((one) => [one.complete, one.naturalWidth, one.clientHeight])"


@pytest.mark.family
def test_a_notebook_that_is_not_trusted_shows_its_pictures_as_images(chromium, lab):
    run_here = nbformat.v4.new_code_cell("import workbench as wb\nwb.topology.grid(3, 3)")
    notebook = nbformat.v4.new_notebook(metadata=KERNEL, cells=[outputs_of(*pictures()), run_here])
    nbformat.write(notebook, lab.folder / "received.ipynb")
    opened = lab.opened(chromium, "received.ipynb")
    opened.page.wait_for_function(f"() => {SIZES}.length == 3 && {SIZES}.every(([done]) => done)")
    sizes = opened.page.evaluate(SIZES)
    assert all(width > 0 and height > 100 for _, width, height in sizes), sizes
    text = opened.page.inner_text(".jp-OutputArea")
    assert "label" not in text and opened.page.locator(".jp-OutputArea input").count() == 0
    names = opened.page.evaluate(f"{IMAGES}.map((one) => one.alt)")
    assert names == ["step 0", "step 0, second", "9 nodes (grid)"]
    # The output of a cell that is run is trusted. Its script replaces its own image, but not the received images.
    opened.run(1)
    opened.page.wait_for_selector(".jp-OutputArea svg.wb-themed")
    assert len(opened.page.evaluate(SIZES)) == 3
    opened.page.close()


LAB = """
import workbench as wb
lab = wb.lab(wb.Scenario(wb.topology.line(4), wb.Flooding(), duration_s=5), "saved")
lab
"""
SAVED = "document.querySelector('.wb-saved')"


@pytest.mark.family
def test_lab_in_a_saved_notebook_shows_its_run_without_a_kernel(chromium, lab):
    notebook = lab.notebook(chromium, [LAB, "lab.change(seed=7)\nlab.wait()"], "saved.ipynb")
    notebook.run(0)
    notebook.page.wait_for_selector(".wb-lab .wb-player", state="visible")
    notebook.run(1)
    # The live lab hides the stored run, which it updates with each new run.
    notebook.page.wait_for_function(f"() => {SAVED}?.textContent.includes('seed 7')")
    assert notebook.page.is_hidden(".wb-saved") and notebook.page.is_visible(".wb-lab")
    notebook.save()
    assert notebook.page.is_hidden(".wb-ended")
    for kernel in lab.kernels():
        lab.shut_down(kernel)
    notebook.page.wait_for_selector(".wb-ended", state="visible")
    notebook.page.close()

    again = lab.opened(chromium, "saved.ipynb")
    again.page.wait_for_selector(".wb-saved .wb-player", state="visible")
    text = again.page.inner_text(".wb-saved")
    assert "Flooding on 4 nodes" in text and "Run this cell to open the lab" in text
    again.page.wait_for_timeout(1000)
    assert not again.page.get_by_text("model not found").is_visible()
    again.page.close()

"""The speed of interactive charts in JupyterLab in Chromium: ``benchmarks/charts.py [--rounds 5]``.

Rows, medians in milliseconds unless stated otherwise; the last column is the ratio to `an empty cell` of this run
    an empty cell       from the start of executing a cell that does nothing to its end, as seen by the page
    picture             a cell with a chart of a sweep: until its picture is in the page
    alive, first        until Bokeh's figure has replaced the picture, for the first chart of the page
    alive, again        the same for the next executions of the cell
    feed                a chart with one more row: from the message's arrival in the page to the redrawn figure
    feed, 10^5          the same for a line with a band of 100,000 points
    alive, 10^5 dots    a scatter plot of 100,000 points: until it is alive
    import              importing `workbench`; in a new process, as are the two next rows
    import, picture     importing `workbench` and drawing a chart as SVG
    import, figure      importing `workbench` and making a Bokeh figure of a chart
    notebook            KB of the notebook's file with one chart
    page                MB of `table.save_html` with 60 runs of 64 nodes (Diffusion on the office, CC2420)
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import sync_playwright

import workbench as wb
from tests.jupyter import CHROMIUM, Jupyter

SETUP = """
import numpy as np
import workbench as wb
from workbench.views.charts.living import ChartView
network, workload = wb.topology.grid(4, 4), [wb.subscribe(0, "TEMP GE 1"), wb.publish(15, "TEMP IS 5", every_s=1)]
scenario = wb.Scenario(network, wb.Diffusion(), workload, duration_s=5)
over = {"protocol.ttl": range(2, 10), "protocol.tick_s": [0.5, 1, 2], "seed": range(1, 6)}
table = wb.Sweep(scenario, over, engine="reference").run(progress=False)

def wave(points, seed):
    x = np.arange(points)
    y = np.sin(x * 20 / points) + np.random.default_rng(seed).normal(0, 0.1, points)
    return wb.views.line_chart([{"name": "a", "x": x, "y": y, "low": y - 0.3, "high": y + 0.3}], y_range=(-2, 2))

def dots(points):
    values = np.random.default_rng(1).normal(size=(2, points))
    return wb.views.line_chart([{"name": "a", "x": values[0], "y": values[1], "shape": "dots"}])
"""
CHART = "table.plot('protocol.ttl', 'transmissions', by='protocol.tick_s')"
FEEDS = {"feed": 20, "feed, 10^5": 100_000}
CHARTS = "[...globalThis.workbenchCharts ?? []].filter((one) => one.shownAt && one.root.isConnected)"
# Run a cell; return the times in ms until its end, its picture and its interactive chart.
TIMES = f"""
async (cell) => {{
  const panel = jupyterapp.shell.currentWidget
  await panel.sessionContext.ready
  panel.content.activeCellIndex = cell
  const node = panel.content.widgets[cell].node
  const old = node.querySelector("[data-chart]")?.dataset.chart
  const until = async (look) => {{
    for (let waited = 0; waited < 60_000; waited++) {{
      if (look()) return performance.now()
      await new Promise((done) => setTimeout(done, 2))
    }}
  }}
  const begin = performance.now()
  const ended = jupyterapp.commands.execute("notebook:run-cell").then(() => performance.now())
  if (!panel.content.widgets[cell].model.sharedModel.getSource().includes("plot(") &&
      !panel.content.widgets[cell].model.sharedModel.getSource().includes("dots(")) return [(await ended) - begin]
  const isNew = () => (node.querySelector("[data-chart]")?.dataset.chart ?? old) != old
  const picture = await until(isNew)
  const alive = await until(() => {CHARTS}.some((one) => node.contains(one.root) && one.shownAt > begin))
  return [(await ended) - begin, picture - begin, alive - begin]
}}"""
# Wait for the next feed of the newest chart; return its time in ms, until the browser has drawn the next frame.
FED = f"""
() => new Promise((done) => {{
  const chart = {CHARTS}.at(-1), feed = chart.feed
  chart.feed = function (...all) {{
    const begin = performance.now()
    feed.apply(this, all)
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)))
    chart.feed = feed
  }}
}})"""
IMPORTS = {
    "import": "import workbench",
    "import, picture": "import workbench as wb; wb.views.line_chart([dict(name='a', x=[1, 2], y=[1, 2])]).to_svg()",
    "import, figure": "import workbench as wb; wb.views.line_chart([dict(name='a', x=[1, 2], y=[1, 2])]).to_bokeh()",
}


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    times: dict[str, list[float]] = {}
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as home:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        with Jupyter("lab", home) as jupyter:
            notebook_kb = measure_notebook(jupyter, chromium, rounds, times)
    for name, code in IMPORTS.items():
        for _ in range(rounds):
            began_s = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            times.setdefault(name, []).append(1000 * (time.perf_counter() - began_s))
    empty_ms = statistics.median(times["an empty cell"])
    for name, values in times.items():
        print(f"{name:18} {statistics.median(values):8.0f} ms {statistics.median(values) / empty_ms:8.1f}")
    print(f"{'notebook':18} {notebook_kb:8.0f} KB")
    print(f"{'page':18} {page_MB():8.2f} MB")


def measure_notebook(jupyter: Jupyter, chromium: object, rounds: int, times: dict[str, list[float]]) -> float:
    """Measure cells of a notebook; append their times in ms to the lists in ``times``, {row of the table: times}.

    Return the size of the saved notebook with one chart in KB.
    """
    cells = [SETUP, "pass", CHART, "dots(100_000)"]
    for points in FEEDS.values():
        cells += [
            f"view = ChartView(wave({points}, 1)); shown = view.wire\nimport ipywidgets\nipywidgets.VBox([shown])",
            f"import itertools\nseeds = itertools.count(2)\ndef again(): view.feed(wave({points}, next(seeds)))",
            "again()",
        ]
    notebook = jupyter.notebook(chromium, cells, "charts.ipynb", (1366, 900))
    page = notebook.page
    notebook.run(0)
    for _ in range(rounds):
        times.setdefault("an empty cell", []).append(page.evaluate(TIMES, 1)[0])
    for number in range(rounds + 1):
        _, picture, alive = page.evaluate(TIMES, 2)
        times.setdefault("picture", []).append(picture)
        times.setdefault("alive, again" if number else "alive, first", []).append(alive)
    notebook.save()
    size_kb = (jupyter.folder / "charts.ipynb").stat().st_size / 1000
    for _ in range(rounds):
        times.setdefault("alive, 10^5 dots", []).append(page.evaluate(TIMES, 3)[2])
    for position, name in enumerate(FEEDS):
        first = 4 + 3 * position
        before = page.evaluate(f"() => {CHARTS}.length")
        notebook.run(first)
        page.wait_for_function(f"(before) => {CHARTS}.length > before", arg=before)
        notebook.run(first + 1)
        for _ in range(rounds):
            page.evaluate(f"() => {{ window.fed = ({FED})() }}")
            notebook.run(first + 2)
            times.setdefault(name, []).append(page.evaluate("() => window.fed"))
    page.close()
    return size_kb


def page_MB() -> float:
    """Return the size in MB of a sweep's HTML page, which shows 60 runs of 64 nodes."""
    workload = [wb.subscribe(1, "TEMP GE 20", start_s=5)]
    workload += [wb.publish([60, 48, 33], "TEMP IS 25", every_s=5, start_s=10, stagger=True)]
    scenario = wb.Scenario(wb.topology.office(), wb.Diffusion(), workload, wb.radios.cc2420(), duration_s=60)
    over = {"protocol.ttl": [10, 14, 18, 22], "radio.retries": [0, 1, 3], "seed": range(1, 6)}
    table = wb.Sweep(scenario, over).run(progress=False)
    with tempfile.TemporaryDirectory() as folder:
        return table.save_html(Path(folder) / "sweep.html", by="radio.retries", progress=False).stat().st_size / 1e6


if __name__ == "__main__":
    main()

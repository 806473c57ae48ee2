"""The speed of the player in JupyterLab in Chromium: ``benchmarks/player.py [--sizes 64,400] [--rounds 5]``.

Columns, medians in milliseconds unless stated otherwise
    show      from the call of run.show() of a finished run to the first painted picture
    metrics   part of *show*: run.metrics of a run whose metrics are not computed yet
    layers    part of *show*: the layers from the trace
    feed      a new run in a living view: scenario.run(), metrics and layers, until it is painted
    run       part of *feed*: the run
    scrub, play   pictures a second while the slider moves the time, and while the run plays at 8 x
    payload   KB of columns that a feed sends

Theory of operation
    The kernel prints the time at which a call began; the page returns the time of painting. Both share a clock. The
    page waits for the browser's next frame after a painting, so a picture counts only if it becomes visible.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import sync_playwright

from tests.jupyter import CHROMIUM, Jupyter

SIZES = (64, 400, 1500, 10_000)
PROTOCOLS = ("diffusion", "TinyMQ", "DPS")
SETUP = """
import time
import workbench as wb

def scenario(protocol, nodes, seed=1):
    side = round(9.7 * nodes ** 0.5)
    topology = wb.topology.disc(nodes, side, side, seed=3)
    made = {{"diffusion": wb.Diffusion, "TinyMQ": lambda: wb.TinyMQ(roots=(0, nodes // 2), dimensions=("TEMP 0 50",)),
             "DPS": wb.DPS}}[protocol]()
    settle = 2 if protocol == "diffusion" else 20
    sources = [1 + round(number * (nodes - 2) / 4) for number in range(5)]
    workload = [wb.subscribe(nodes // 3, "TEMP GE 20", start_s=settle)]
    workload += [wb.publish(sources, "TEMP IS 26", every_s=2, start_s=settle + 5, stagger=True)]
    return wb.Scenario(topology, made, workload, wb.Radio(loss="none"), duration_s=settle + 20, seed=seed)

scenario({protocol!r}, {nodes}).run(engine="fast")
run = scenario({protocol!r}, {nodes}, 2).run(engine="fast")
"""
SHOW = """
from workbench.views.seeing import see
run = scenario({protocol!r}, {nodes}, 10).run(engine="fast")
t0 = time.time(); run.metrics; metrics = time.time() - t0
t0 = time.time(); see(run); layers = time.time() - t0
run = scenario({protocol!r}, {nodes}, 11).run(engine="fast")
t0 = time.time()
run.show()
print(f"@{{t0!r}} {{metrics!r}} {{layers!r}}@")
"""
VIEW = """
view = wb.views.PlayerView(run)
seeds = iter(range(100, 10_000))
view
"""
FEED = """
one = scenario({protocol!r}, {nodes}, next(seeds))
t0 = time.time()
run = one.run(engine="fast")
t1 = time.time()
view.feed(run)
print(f"@{{t0!r}} {{t1 - t0!r}} {{len(view.wire.payload)!r}}@")
"""
# The time of the first picture after the requested player is painted, in seconds since 1970.
PAINTED = """
(which) => new Promise((done) => {
  const look = () => {
    const players = [...document.querySelectorAll('.wb-player')].map((root) => root.workbenchPlayer)
    const one = players[which < 0 ? players.length + which : which]
    if (one?.fedAt) requestAnimationFrame(() => done((performance.timeOrigin + one.fedAt) / 1000))
    else setTimeout(look, 5)
  }
  look()
})
"""
RESET = "() => { [...document.querySelectorAll('.wb-player')].at(-1).workbenchPlayer.fedAt = 0 }"
SPEED = """
(how) => new Promise((done) => {
  const player = [...document.querySelectorAll('.wb-player')].at(-1).workbenchPlayer
  player.root.scrollIntoView({ block: "center" })
  let pictures = 0
  const begun = performance.now()
  if (how == "play") { player.speedChoice.value = "8"; player.speed = 8; player.jump(0); player.play() }
  const step = (now) => {
    const share = ((now - begun) / 3000)
    if (share >= 1) { player.pause(); return done(pictures / ((now - begun) / 1000)) }
    pictures += 1
    if (how == "scrub") { player.slider.value = 2000 * share; player.slider.dispatchEvent(new Event("input")) }
    requestAnimationFrame(step)
  }
  requestAnimationFrame(step)
})
"""


def printed_numbers(notebook, cell):
    """Return the numbers that a cell of a notebook has printed between two @ signs."""
    return [float(number) for number in notebook.output(cell).split("@")[-2].split()]


def measure(jupyter, chromium, protocol, nodes, rounds):
    """Measure the player of a protocol on ``nodes`` nodes, and return a row of the table."""
    names = {"protocol": protocol, "nodes": nodes}
    cells = [SETUP.format(**names), SHOW.format(**names), VIEW, FEED.format(**names)]
    notebook = jupyter.notebook(chromium, cells, f"{protocol}{nodes}.ipynb")
    notebook.page.set_default_timeout(900_000)
    notebook.run(0)
    shows, metrics, layers = [], [], []
    for _ in range(rounds):
        notebook.run(1)
        painted = notebook.page.evaluate(PAINTED, -1)
        begun, metric, layer = printed_numbers(notebook, 1)
        shows.append(painted - begun)
        metrics.append(metric)
        layers.append(layer)
    notebook.run(2)
    notebook.page.evaluate(PAINTED, -1)
    feeds, runs, size = [], [], 0.0
    for _ in range(rounds + 1):
        notebook.page.evaluate(RESET)
        notebook.run(3)
        painted = notebook.page.evaluate(PAINTED, -1)
        begun, ran, size = printed_numbers(notebook, 3)
        feeds.append(painted - begun)
        runs.append(ran)
    pictures = [notebook.page.evaluate(SPEED, action) for action in ("scrub", "play")]
    notebook.page.close()
    medians = [1000 * statistics.median(times) for times in (shows, metrics, layers, feeds[1:], runs[1:])]
    return [*medians, *pictures, size / 1024]


def main() -> None:
    """Measure all protocols and sizes, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| protocol | nodes | show | metrics | layers | feed | run | scrub | play | payload |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder, Jupyter("lab", folder) as jupyter, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        for protocol in options.protocols.split(","):
            for nodes in map(int, options.sizes.split(",")):
                row = measure(jupyter, chromium, protocol, nodes, options.rounds)
                print(f"| {protocol} | {nodes:,} | {' | '.join(f'{number:,.0f}' for number in row)} |", flush=True)


if __name__ == "__main__":
    main()

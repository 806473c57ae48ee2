"""Make the pictures of the README: ``python -m scripts.pictures [lab] [run] [charts]``, without arguments all.

    lab       docs/images/lab.png: the lab, served as an app
    run       docs/images/run.gif: the first seconds of the demo's run, from its exported page
    charts    docs/images/sweep.svg, load.svg, memory.svg, mesh.svg and faults.svg: the results of a sweep, the load of
              each node over its runs, the RAM of a mote in C, a mesh of DPS nodes, and a fault matrix

The first two need the system's Chromium, and the chart of the RAM arm-none-eabi-gcc.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import workbench as wb
from workbench.cli.demo import scenario
from workbench.cli.lab import app_command

IMAGES = Path(__file__).parents[1] / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
PORT = 8977
SIZE = {"width": 1400, "height": 940}
CELL = """
import workbench as wb

wb.lab(
    wb.Scenario(
        wb.topology.disc(40, 100, 60, radius_m=22, seed=3),
        wb.Diffusion(),
        [
            wb.subscribe(0, "TEMP GE 20", start_s=1),
            wb.publish([31, 37, 4], "TEMP IS 25", start_s=4, every_s=5, stagger=True),
            wb.outage(21, start_s=30, stop_s=45),
        ],
        wb.Radio(loss=0.05, retries=3),
        duration_s=60,
    )
)
"""


# Positions of the slider (0 to 2000) in the animation: the flood of the interest slowly, then the first deliveries.
POSITIONS = (*range(40), *range(40, 100, 3), *range(100, 300, 5))
FRAME_MS = 90
WIDTH_PX = 820
COLOURS = 48


def main() -> None:
    """Make the pictures that the arguments name."""
    names = sys.argv[1:] or ["lab", "run", "charts"]
    if "charts" in names:
        draw_charts(IMAGES)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        if "lab" in names:
            draw_lab(browser, IMAGES / "lab.png")
        if "run" in names:
            draw_run(browser, IMAGES / "run.gif")


def draw_lab(browser: Browser, path: Path) -> None:
    """Serve the lab, wait for its first run, and save a screenshot at ``path``."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        source = Path(folder) / "lab.ipynb"
        nbformat.write(notebook, source)
        server = subprocess.Popen(app_command(source, no_browser=True, port=PORT), cwd=folder)
        try:
            page = browser.new_page(viewport=SIZE)
            for _ in range(100):
                try:
                    page.goto(f"http://127.0.0.1:{PORT}/", timeout=120_000)
                    break
                except Exception:  # the server has not started yet
                    time.sleep(0.3)
            page.wait_for_selector(".wb-looks .wb-player canvas", timeout=120_000)
            time.sleep(9)  # it plays up to its first picture
            page.screenshot(path=str(path))
        finally:
            server.terminate()
            server.wait()


def draw_run(browser: Browser, path: Path) -> None:
    """Play the demo's exported page step by step, and save screenshots of its map as an animated GIF at ``path``."""
    with tempfile.TemporaryDirectory() as folder:
        exported = scenario().run().save_html(Path(folder) / "demo.html")
        page = browser.new_page(viewport={"width": 1000, "height": 900}, color_scheme="light")
        page.goto(exported.resolve().as_uri())
        page.wait_for_selector(".wb-player canvas")
        page.add_style_tag(content=".wb-player button { visibility: hidden }")
        slider = page.locator(".wb-player input[type=range]").first
        canvas = page.locator(".wb-player canvas").first
        frames = []
        for position in POSITIONS:
            slider.evaluate(
                "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')) }", position
            )
            page.wait_for_timeout(60)
            picture = Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")
            height = round(picture.height * WIDTH_PX / picture.width)
            frames.append(picture.resize((WIDTH_PX, height), Image.Resampling.LANCZOS))
    # One palette for all frames, so that nothing flickers and unchanged pixels cost nothing.
    palette = frames[len(frames) // 2].quantize(COLOURS, dither=Image.Dither.NONE)
    first, *rest = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames)
    first.save(path, save_all=True, append_images=rest, duration=FRAME_MS, loop=0, optimize=True)


def draw_charts(folder: Path) -> None:
    """Run sweeps and scenarios, and save the five SVG pictures of the README that the module's docstring lists."""
    with tempfile.TemporaryDirectory() as results:
        sweep = wb.Sweep(
            scenario(),
            over={"protocol.blacklist_loss": [0.3, 0.5, 0.7, 0.9, 1.0], "radio.retries": [0, 3], "seed": range(20)},
        )
        chart = sweep.run().plot(x="protocol.blacklist_loss", y="delivery_ratio", by="radio.retries")
        (folder / "sweep.svg").write_text(chart.to_svg(), encoding="utf-8")
        wb.Sweep(scenario(), {"seed": range(10)}, keep="trace").run(out=results)
        loads = wb.pipelines.load_per_node(wb.pipelines.traces(results), over_runs=True)
        drawing = wb.views.load_map(loads, scenario().topology)
        (folder / "load.svg").write_text(drawing.to_svg(), encoding="utf-8")
    entries = [2, 3, 4, 5, 6, 8, 10, 12, 15, 20]
    images = [
        wb.motes.footprint(wb.Diffusion(profile="strict", max_interests=count, max_gradients=4, max_reinforcements=4))
        for count in entries
    ]
    memory = wb.views.line_chart(
        [{"name": "TinyDiffusion in C", "x": entries, "y": [image.ram_B / 1024 for image in images]}],
        x_label="entries of the interest cache",
        y_label="RAM (KB)",
        note="Cortex-M3, stack included",
    )
    (folder / "memory.svg").write_text(memory.to_svg(), encoding="utf-8")
    mesh = wb.Scenario(
        wb.topology.grid(5, 8),
        wb.DPS(filter_bits=256),
        [
            wb.subscribe(at=[7, 24, 39], what='TOPIC EQ "house/+/temp"', start_s=10),
            wb.publish(at=16, what='TOPIC IS "house/kitchen/temp"', start_s=40),
        ],
        wb.Radio(loss="none"),
        duration_s=50,
    )
    (folder / "mesh.svg").write_text(mesh.run().figure(time_s=42).to_svg(), encoding="utf-8")
    protocols = [wb.Flooding(), wb.Diffusion(), wb.TinyMQ(dimensions=("TEMP 0 50",)), wb.DPS()]
    faults = ["none", "partition", "relays leave", "sink crashes", "sink moves"]
    wb.faults.matrix(protocols, faults, duration_s=240).plot().save(folder / "faults.svg")


if __name__ == "__main__":
    main()

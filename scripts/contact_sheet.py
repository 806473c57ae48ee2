"""Contact sheets for review: the players of all protocols and the lab, in several browsers, widths and themes.

    .venv/bin/python -m scripts.contact_sheet [FOLDER]

Write into FOLDER (out/contact)
    wide.png, narrow.png   the player of each protocol, light and dark: exported pages at 1366 and 390 px, and live
                           players in JupyterLab
    lab.png                the lab in JupyterLab, Notebook 7 and Voilà, light and dark, at 1366, 1920, 800 and 390 px;
                           the saved notebook, reopened without a kernel; the exported page, in Chromium and Firefox
and every picture as a file of its own. Chromium and Playwright are needed; Firefox is left out if it is missing.
"""

from __future__ import annotations

import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.jupyter import CHROMIUM, App, Jupyter

ROOT = Path(__file__).resolve().parents[1]

SIZES = ((1366, 900), (390, 844))
THEMES = ("light", "dark")
SHEET_PX = 460  # width of a picture on a sheet
LATE_S = 6  # enough for a player to draw its first picture
LAB_SIZES = ((1366, 768), (1920, 1080), (800, 1100), (390, 844))
# The fast engine is switched off, so that pictures do not depend on compiled code.
LAB_CELL = """import workbench as wb
from workbench.sim import fast
fast.is_warm, fast.warm = (lambda protocol: False), (lambda protocol: None)
lab = wb.lab()
lab"""
# Whether the lab's player shows a run.
SHOWN = "() => document.querySelector('.wb-looks .wb-player')?.workbenchPlayer?.picture"
SETTLE_MS = 6500  # a player plays five seconds by itself
SCENARIOS = """
import workbench as wb

RADIO = wb.Radio(loss="links", collisions=True, csma=True, retries=3)

def scenarios():
    office = wb.topology.office()
    disc = wb.topology.disc(150, 120, 100, seed=4)
    sink = wb.subscribe(1, "TEMP GE 25", start_s=30, expires_s=300)
    sources = wb.publish([60, 48, 33], "TEMP IS 26.5", every_s=5, start_s=40, stagger=True)
    yield "Diffusion", wb.Scenario(office, wb.Diffusion(), [sink, sources], RADIO, duration_s=80, seed=7)
    event = wb.publish(0, "TEMP IS 26", every_s=2, start_s=1)
    coded = wb.CodedDiffusion(generation_size=8, bootstrap_factor=6)
    yield "CodedDiffusion", wb.Scenario(wb.topology.grid(7, 9), coded, [event], RADIO, duration_s=6, seed=1)
    trees = wb.TinyMQ(roots=(0, 75, 149), dimensions=("TEMP 0 50",))
    sinks = [wb.subscribe([20, 90], "TEMP GE 20, TEMP LE 30", start_s=60)]
    others = [wb.publish([5, 70, 120], "TEMP IS 26", every_s=7, start_s=80, stagger=True), wb.outage(60, start_s=100)]
    yield "TinyMQ", wb.Scenario(disc, trees, sinks + others, wb.Radio(), duration_s=150, seed=3)
    small = wb.topology.disc(60, 76, 62, seed=4)
    sinks = [wb.subscribe([7, 41], "TEMP GE 25", start_s=20), wb.subscribe(30, "HUMIDITY GE 10", start_s=20)]
    sources = [wb.publish([3, 50], "TEMP IS 30", every_s=6, start_s=40, stagger=True)]
    sources += [wb.publish(22, "HUMIDITY IS 40", every_s=9, start_s=45)]
    yield "DPS", wb.Scenario(small, wb.DPS(), sinks + sources, wb.Radio(loss="none"), duration_s=90, seed=2)
    yield "Gossip", wb.Scenario(disc, wb.Gossip(), [wb.subscribe(9, "TEMP GE 1"), event], RADIO, duration_s=6, seed=1)
"""


def pictures(folder: Path) -> Iterator[tuple[str, Path]]:
    """Take the pictures of players, and yield (label, file) of each."""
    made: dict[str, Any] = {}
    exec(SCENARIOS, made)
    runs = {name: scenario.run() for name, scenario in made["scenarios"]()}
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as notebooks:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        for name, run in runs.items():
            path = run.save_html(folder / f"{name}.html")
            for theme in THEMES:
                for width, height in SIZES:
                    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
                    page.goto(path.as_uri())
                    page.wait_for_function("() => document.querySelector('.wb-player')?.workbenchPlayer?.paints > 1")
                    file = folder / f"{name}-{theme}-{width}.png"
                    page.locator(".wb-player").screenshot(path=file)
                    yield f"{name}, {theme}, {width} px", file
                    page.close()
        with Jupyter("lab", notebooks) as jupyter:
            for name in runs:
                yield from live(jupyter, chromium, name, folder)


def live(jupyter: Jupyter, chromium: Any, name: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Take the pictures of a player in JupyterLab with a kernel, and yield (label, file) of each."""
    show = f"dict(scenarios())[{name!r}].run().show()"
    notebook = jupyter.notebook(chromium, [SCENARIOS, show], f"{name}.ipynb", (1366, 1100))
    notebook.run(0)
    notebook.run(1)
    notebook.page.wait_for_selector(".wb-player canvas")
    for theme in THEMES:
        wanted = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        notebook.page.evaluate("(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })", wanted)
        notebook.page.wait_for_function(
            "(isDark) => document.querySelector('.wb-player').workbenchPlayer.isDark == isDark",
            arg=int(theme == "dark"),
        )
        notebook.page.locator(".wb-player").scroll_into_view_if_needed()
        notebook.page.wait_for_timeout(500)
        file = folder / f"{name}-{theme}-live.png"
        notebook.page.screenshot(path=file)
        yield f"{name}, {theme}, live", file
    notebook.page.close()


def lab_pictures(folder: Path) -> Iterator[tuple[str, Path]]:
    """Take the pictures of the lab, and yield (label, file) of each."""
    folder = folder.resolve()  # nbconvert has another working folder
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as working:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        saved = Path(working) / "lab" / "lab.ipynb"
        for application in ("lab", "notebook"):
            home = Path(working) / application
            home.mkdir()
            with Jupyter(application, home) as jupyter:
                yield from _picture_live_lab(jupyter, chromium, application, folder)
        with tempfile.TemporaryDirectory() as home, App(home) as app:
            for theme in THEMES:
                for size in LAB_SIZES:
                    page = app.opened(chromium, size, theme)
                    page.wait_for_function(SHOWN)
                    yield _take_screenshot(page, folder, f"lab-voila-{theme}-{size[0]}", SETTLE_MS)
                    page.close()
        exported = folder / "lab-exported.html"
        command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--output", str(exported), str(saved)]
        subprocess.run(command, check=True, capture_output=True)
        page = chromium.new_page(viewport=dict(zip(("width", "height"), LAB_SIZES[0], strict=True)))
        page.goto(exported.as_uri())
        page.wait_for_selector(".wb-saved .wb-player", state="visible")
        yield _take_screenshot(page, folder, "lab-exported-1366", SETTLE_MS)
        yield from _picture_in_firefox(exported, folder)


def _picture_live_lab(jupyter: Jupyter, chromium: Any, application: str, folder: Path) -> Iterator[tuple[str, Path]]:
    notebook = jupyter.notebook(chromium, [LAB_CELL], "lab.ipynb", LAB_SIZES[0])
    notebook.run(0)
    notebook.page.wait_for_selector(".wb-lab .wb-player canvas")
    is_narrow = False  # whether the file browser is hidden, as it leaves no room in a narrow window
    for theme in THEMES:
        notebook.page.evaluate(
            "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {theme.capitalize()}",
        )
        for width, height in LAB_SIZES:
            if application == "lab" and width < LAB_SIZES[0][0] and not is_narrow:
                notebook.page.evaluate("() => jupyterapp.commands.execute('application:toggle-left-area')")
                is_narrow = True
            notebook.page.set_viewport_size({"width": width, "height": height})
            notebook.page.evaluate("() => document.querySelector('.wb-lab').scrollIntoView()")
            yield _take_screenshot(notebook.page, folder, f"lab-{application}-{theme}-{width}", SETTLE_MS)
    notebook.save()
    notebook.page.close()
    for kernel in jupyter.kernels():
        jupyter.shut_down(kernel)
    page = jupyter.opened(chromium, "lab.ipynb", LAB_SIZES[0]).page
    page.wait_for_selector(".wb-saved .wb-player", state="visible")
    yield _take_screenshot(page, folder, f"lab-{application}-reopened-1366", SETTLE_MS)
    page.close()


def _take_screenshot(page: Any, folder: Path, name: str, after_ms: int) -> tuple[str, Path]:
    """Take a screenshot of a page after ``after_ms`` milliseconds; return its name and file."""
    page.wait_for_timeout(after_ms)
    file = folder / f"{name}.png"
    page.screenshot(path=file)
    return name, file


class _LatePage(http.server.BaseHTTPRequestHandler):
    """A web server's handler that serves a page with an invisible picture, which is sent late.

    Firefox takes its screenshot when a page is loaded, so the picture delays the screenshot.
    """

    page: Path

    def do_GET(self) -> None:
        is_page = self.path == "/"
        if not is_page:
            time.sleep(LATE_S)
        self.send_response(200 if is_page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        if is_page:
            self.wfile.write(self.page.read_bytes().replace(b"</body>", b'<img src="/late.png" alt=""></body>'))

    def log_message(self, format: str, *values: object) -> None:
        """Log nothing."""


def _picture_in_firefox(page: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Take a picture of an exported page in Firefox, and yield (label, file); yield nothing without Firefox."""
    firefox = shutil.which("firefox-esr") or shutil.which("firefox")
    if firefox is None:
        return
    file = folder / "lab-exported-firefox.png"
    handler = type("Handler", (_LatePage,), {"page": page})
    with (
        tempfile.TemporaryDirectory() as profile,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [firefox, "--headless", "--profile", profile, "--window-size=1366,768", f"--screenshot={file}"]
        subprocess.run(
            [*command, f"http://127.0.0.1:{server.server_port}/"], check=True, capture_output=True, timeout=120
        )
        server.shutdown()
    yield file.stem, file


def sheet(files: list[Path], columns: int, path: Path) -> None:
    """Combine pictures into one image file at ``path``: row by row, ``columns`` pictures in a row."""
    images = []
    for file in files:
        image = Image.open(file).convert("RGB")
        images.append(image.resize((SHEET_PX, round(image.height * SHEET_PX / image.width)), Image.Resampling.LANCZOS))
    rows = [images[at : at + columns] for at in range(0, len(images), columns)]
    heights = [max(image.height for image in row) + 8 for row in rows]
    page = Image.new("RGB", (columns * (SHEET_PX + 8), sum(heights)), "#8A93A0")
    top = 0
    for row, height in zip(rows, heights, strict=True):
        for column, image in enumerate(row):
            page.paste(image, (column * (SHEET_PX + 8), top))
        top += height
    page.save(path)


def main() -> None:
    """Take all pictures and write the contact sheets."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out" / "contact")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for label, file in pictures(folder):
        print(label, flush=True)
        files.append(file)
    narrow = [file for file in files if file.stem.endswith("390")]
    sheet([file for file in files if file not in narrow], 4, folder / "wide.png")
    sheet(narrow, 5, folder / "narrow.png")
    labs = []
    for name, file in lab_pictures(folder):
        print(name, flush=True)
        labs.append(file)
    sheet(labs, 4, folder / "lab.png")
    print(f"look at {folder}/wide.png, {folder}/narrow.png and {folder}/lab.png")


if __name__ == "__main__":
    main()

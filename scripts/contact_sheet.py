"""The player of each protocol at its best moment, in a browser: one sheet to look at.

    .venv/bin/python -m scripts.contact_sheet [FOLDER]

Writes into FOLDER (out/contact) a picture for each protocol, light and dark, at 1366 and 390 px, exported and, at
1366 px, live in JupyterLab; and wide.png and narrow.png with all of them beside each other. It needs Chromium and
Playwright.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from tests.jupyter import CHROMIUM, Jupyter

ROOT = Path(__file__).resolve().parents[1]

SIZES = ((1366, 900), (390, 844))
THEMES = ("light", "dark")
SHEET_PX = 460  # how wide a picture is on the sheet
SCENARIOS = """
import workbench as wb

AIR = wb.Radio(loss="links", collisions=True, csma=True, retries=3)

def scenarios():
    office = wb.topology.office()
    disc = wb.topology.disc(150, 120, 100, seed=4)
    sink = wb.subscribe(1, "TEMP GE 25", start_s=30, expires_s=300)
    sources = wb.publish([60, 48, 33], "TEMP IS 26.5", every_s=5, start_s=40, stagger=True)
    yield "Diffusion", wb.Scenario(office, wb.Diffusion(), [sink, sources], AIR, duration_s=80, seed=7)
    event = wb.publish(0, "TEMP IS 26", every_s=2, start_s=1)
    coded = wb.CodedDiffusion(generation_size=8, bootstrap_factor=6)
    yield "CodedDiffusion", wb.Scenario(wb.topology.grid(7, 9), coded, [event], AIR, duration_s=6, seed=1)
    trees = wb.TinyMQ(roots=(0, 75, 149), dimensions=("TEMP 0 50",))
    asked = [wb.subscribe([20, 90], "TEMP GE 20, TEMP LE 30", start_s=60)]
    told = [wb.publish([5, 70, 120], "TEMP IS 26", every_s=7, start_s=80, stagger=True), wb.outage(60, start_s=100)]
    yield "TinyMQ", wb.Scenario(disc, trees, asked + told, wb.Radio(), duration_s=150, seed=3)
    small = wb.topology.disc(60, 76, 62, seed=4)
    wanted = [wb.subscribe([7, 41], "TEMP GE 25", start_s=20), wb.subscribe(30, "HUMIDITY GE 10", start_s=20)]
    said = [wb.publish([3, 50], "TEMP IS 30", every_s=6, start_s=40, stagger=True)]
    said += [wb.publish(22, "HUMIDITY IS 40", every_s=9, start_s=45)]
    yield "DPS", wb.Scenario(small, wb.DPS(), wanted + said, wb.Radio(loss="none"), duration_s=90, seed=2)
    yield "Gossip", wb.Scenario(disc, wb.Gossip(), [wb.subscribe(9, "TEMP GE 1"), event], AIR, duration_s=6, seed=1)
"""


def pictures(folder: Path) -> Iterator[tuple[str, Path]]:
    """(what, file) of each picture, as it is made."""
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
    """The same in JupyterLab, with a kernel."""
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


def sheet(files: list[Path], columns: int, path: Path) -> None:
    """Pictures beside each other, row by row."""
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
    """Make the sheet."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "out" / "contact")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for what, file in pictures(folder):
        print(what, flush=True)
        files.append(file)
    narrow = [file for file in files if file.stem.endswith("390")]
    sheet([file for file in files if file not in narrow], 4, folder / "wide.png")
    sheet(narrow, 5, folder / "narrow.png")
    print(f"look at {folder}/wide.png and {folder}/narrow.png")


if __name__ == "__main__":
    main()

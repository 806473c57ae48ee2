"""The lab in a browser, to look at: ``benchmarks/lab.py [--protocols DPS,TinyMQ] FOLDER``.

Takes screenshots of protocols x themes x widths, in JupyterLab and through Voilà, and of the forms where they are a
drawer; one sheet for each width.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import sync_playwright

from scripts.contact_sheet import sheet
from tests.jupyter import CHROMIUM, App, Jupyter
from tests.widgets.test_story import Hand
from workbench import public_names
from workbench.widgets.laboratory import protocol_named

WIDTHS = (1920, 1366, 800, 390)
HEIGHT = 1700
THEMES = ("light", "dark")


def pictures(chromium: Any, folder: Path, protocols: list[str]) -> Iterator[Path]:
    """Screenshots of the lab in both hosts, as they are made."""
    with tempfile.TemporaryDirectory() as notebooks, Jupyter("lab", notebooks) as jupyter:
        notebook = jupyter.notebook(chromium, ["import workbench as wb", "wb.lab()"], size=(1366, HEIGHT))
        notebook.run(0)
        notebook.run(1)
        hand = Hand(notebook.page)
        hand.sees_run("")
        hand.keys.press("Control+b")
        for theme in THEMES:
            command = "(theme) => jupyterapp.commands.execute('apputils:change-theme', { theme })"
            notebook.page.evaluate(command, f"JupyterLab {theme.capitalize()}")
            yield from _pictures_of(hand, folder, protocols, f"lab-{theme}")
        print("JupyterLab's console:", notebook.complaints, hand.errors, flush=True)
    with tempfile.TemporaryDirectory() as notebooks, App(notebooks) as app:
        for theme in THEMES:
            hand = Hand(app.opened(chromium, (1366, HEIGHT), theme))
            hand.sees_run("")
            yield from _pictures_of(hand, folder, protocols, f"voila-{theme}")
            print("Voilà's console:", {said.partition("\n")[0] for said in hand.errors}, flush=True)
            hand.page.close()


def _pictures_of(hand: Hand, folder: Path, protocols: list[str], name: str) -> Iterator[Path]:
    for protocol in protocols:
        hand.page.set_viewport_size({"width": WIDTHS[1], "height": HEIGHT})
        hand.tab("Protocol")
        hand.choose("protocol:", protocol)
        hand.sees_run(type(protocol_named(protocol)).public_class().__name__)
        hand.tab("Network")
        for width in WIDTHS:
            hand.page.set_viewport_size({"width": width, "height": HEIGHT})
            hand.page.wait_for_timeout(600)
            file = folder / f"{name}-{protocol}-{width}.png"
            hand.lab.screenshot(path=file)
            yield file
            drawer = hand.lab.locator(".wb-drawer")
            if drawer.is_visible() and protocol == protocols[0]:
                drawer.click()
                hand.page.wait_for_timeout(600)
                hand.lab.screenshot(path=file.with_stem(f"{file.stem}-forms"))
                yield file.with_stem(f"{file.stem}-forms")
                drawer.click()


def contact_sheets(chromium: Any, folder: Path, protocols: list[str]) -> None:
    """One sheet of pictures for each width."""
    folder.mkdir(parents=True, exist_ok=True)
    files = list(pictures(chromium, folder, protocols))
    for width in WIDTHS:
        some = [file for file in files if f"-{width}" in file.stem]
        sheet(some, min(len(some), 8), folder / f"sheet-{width}.png")
        print(f"look at {folder}/sheet-{width}.png")


def main() -> None:
    """Make the sheets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--protocols", default=",".join(sorted(public_names.PROTOCOLS)))
    asked = parser.parse_args()
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        contact_sheets(chromium, asked.folder, asked.protocols.split(","))


if __name__ == "__main__":
    main()

"""The picture of the lab in the README: ``python -m scripts.lab_picture``.

The lab is served as an app, and looked at through the system's Chromium.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

from workbench.cli.lab import app_command

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "lab.png"
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


def main() -> None:
    """Serve, wait for the first run, take the picture."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = Path(folder) / "lab.ipynb"
        nbformat.write(notebook, path)
        server = subprocess.Popen(app_command(path, no_browser=True, port=PORT), cwd=folder)
        try:
            take()
        finally:
            server.terminate()
            server.wait()


def take() -> None:
    """Look at the served lab, once its player has a run."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        for _ in range(100):
            try:
                page.goto(f"http://127.0.0.1:{PORT}/", timeout=120_000)
                break
            except Exception:  # not there yet
                time.sleep(0.3)
        page.wait_for_selector(".wb-player canvas", timeout=120_000)
        time.sleep(3)
        page.screenshot(path=str(PICTURE))
        browser.close()


if __name__ == "__main__":
    main()

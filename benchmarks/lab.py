"""The lab in a browser: ``benchmarks/lab.py [--sizes 400,1500] [--rounds 9] [--sheet FOLDER]``.

Columns, medians in milliseconds of a move of a slider (the run's seed) in JupyterLab, each protocol with its twin warm
    picture   from the move until the new run is painted
    kernel    of it what the kernel does: the new scenario, the run, metrics, layers, the parcel
    browser   of it from the parcel's arrival until it is painted
    wire      the rest: from the browser to the kernel and back

Then what 100 moves and 100 runs of the lab's cell leave behind, after the first ten and at the end: comms, threads,
observers of the session in the kernel; documents, nodes and the heap in the browser.

``--sheet`` takes screenshots instead: protocols x themes x widths, in JupyterLab and through Voilà, one sheet for each
width, to look at.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


from scripts.contact_sheet import sheet
from tests.jupyter import App, Jupyter
from tests.widgets.test_story import PLAYERS, Hand
from workbench.widgets.laboratory import protocol_named

SIZES = (400, 1500)
WIDTHS = (1920, 1366, 800, 390)
HEIGHT = 1700
THEMES = ("light", "dark")
SETUP = """
import time
import workbench as wb
from workbench.widgets.laboratory import protocol_named

def scenario(protocol, nodes):
    side = round(9.7 * nodes ** 0.5)
    sources = [1 + round(one * (nodes - 2) / 4) for one in range(5)]
    workload = [wb.subscribe(nodes // 3, "TEMP GE 20", start_s=20)]
    workload += [wb.publish(sources, "TEMP IS 26", every_s=2, start_s=25, stagger=True)]
    topology = wb.topology.disc(nodes, side, side, seed=3)
    return wb.Scenario(topology, protocol_named(protocol), workload, wb.Radio(loss="none"), duration_s=40)
"""
# The twin is made warm; the time that the kernel takes for a move is told from the state's change to the parcel's.
LAB = """
made = scenario({protocol!r}, {nodes})
if made.protocol.has_fast_twin: made.run(engine="fast")
lab = wb.lab(made, name="bench")
lab.wait(120)
moments = {{}}
lab._session.observe(lambda _: moments.update(begun=time.time()), "state")
lab._panel.observe(lambda _: moments.update(ended=time.time()), "runs")
lab
"""
TOLD = "print(moments['begun'], moments['ended'])"
LEFT = """
import gc, threading, comm
gc.collect()
observers = sum(len(found) for kinds in lab._session._trait_notifiers.values() for found in kinds.values())
print(len(comm.get_comm_manager().comms), threading.active_count(), observers)
"""
# When the browser has painted what was fed, and when that came, in seconds since 1970.
PAINTED = f"""
(before) => new Promise((done) => {{
  const look = () => {{
    const one = {PLAYERS}[0]
    if (one?.fedAt && one.fedAt != before)
      requestAnimationFrame(() => done((performance.timeOrigin + one.fedAt) / 1000))
    else setTimeout(look, 2)
  }}
  look()
}})
"""


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

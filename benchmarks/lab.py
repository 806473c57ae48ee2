"""The lab in a browser: how quick it is, what it leaves behind, how it looks.

    benchmarks/lab.py times [--sizes 400,1500] [--rounds 12]     from a slider's move to the painted picture
    benchmarks/lab.py leaks [--rounds 100]                       what slider moves and re-runs of a cell leave behind
    benchmarks/lab.py sheets FOLDER                              screenshots, to look at

--protocols DPS,TinyMQ is for some of them alone.

Times are medians in milliseconds, in JupyterLab, with the fast twin's machine code loaded
    all       from the key that moves the slider to the first picture on the screen that shows the new run
    best      the shortest of these: what it takes while nobody else wants the processors
    whole     until the whole run is on the screen: of a large one a preview is shown first, and counters, tables and
              other moments after it
    kernel    of it from the slider's message to the parcel handed to the wire
    worked    of that the time that the kernel's process had a processor
    wire      of it from the key to the kernel, and from the kernel to the player
    browser   of it from the parcel to the screen
    run, glance, preview      the kernel's own parts, of the same scenario in a cell: the processor's time
    metrics, see, pack        what comes after the picture
    parcel, rest              MB of columns, of the picture and of the whole run
    late      moves that were not on the screen after ten seconds

Theory of operation
    What is moved is the seed: every protocol has it, and no two runs are the same. The player's heading says which seed
    it shows; so the first picture that shows what was wished is known by it. Kernel and browser have the same clock.

    Leaks are looked at after ten rounds and after all: widgets, comms, observers, threads and objects in the kernel;
    documents, nodes, listeners and heap in the browser, after its garbage was collected.

    Sheets are protocols x themes x widths, in JupyterLab and through Voilà, and the forms where they are a drawer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from playwright.sync_api import TimeoutError as LateError
from playwright.sync_api import sync_playwright

from scripts.contact_sheet import sheet
from tests.jupyter import CHROMIUM, App, Jupyter
from tests.widgets.test_story import Hand
from workbench.widgets.laboratory import protocol_named
from workbench.widgets.protocol import protocol_names

WIDTHS = (1920, 1366, 800, 390)
FORMS_FIT = 1366
HEIGHT = 1700
THEMES = ("light", "dark")
SIZES = (400, 1500)
PATIENCE_MS = 10_000
SETUP = """
import gc, json, os, statistics, threading, time
import ipywidgets
import workbench as wb
from workbench.views.player.payload import preview, pack
from workbench.views.seeing import LayerBuilder
from workbench.widgets.laboratory import protocol_named

def scenario(name, nodes):
    side = round(9.7 * nodes ** 0.5)
    topology = wb.topology.disc(nodes, side, side, seed=3)
    protocol = protocol_named(name)
    settle = 20 if "MQ" in name or "Pub" in name or name == "DPS" else 2  # a structure is built first
    sources = [1 + round(one * (nodes - 2) / 4) for one in range(5)]
    workload = [wb.subscribe(nodes // 3, "TEMP GE 20", start_s=settle),
                wb.publish(sources, "TEMP IS 26", every_s=2, start_s=settle + 5, stagger=True)]
    return wb.Scenario(topology, protocol, workload, duration_s=settle + 20)

made = scenario({protocol!r}, {nodes})
made.run(engine="fast")  # compiled, if it has to be
lab = wb.lab(made)
slider = lab._radio.fields["seed"]._controls[0]
came, sent = [], []

def hear(message):
    began = time.time(), time.process_time()
    slider._handle_msg(message)
    came.append([lab.scenario.seed, *began])

def note(_):
    player = lab._players.players[0]
    sent.append([player.run.scenario.seed, time.time(), time.process_time(), len(player.wire.payload)])

slider.comm.on_msg(hear)
lab.wait()
lab._players.players[0].wire.observe(note, "payload")
lab
"""
PARTS = """
def parts(seed):
    times = [time.process_time()]
    run = made.replace(seed=seed).run()
    times.append(time.process_time())
    sight = LayerBuilder(run)
    glance = sight.preview()
    times.append(time.process_time())
    preview(glance, lab.selection["time_s"])
    times.append(time.process_time())
    run.metrics
    times.append(time.process_time())
    seen = sight.whole()
    times.append(time.process_time())
    pack(seen)
    return [after - before for before, after in zip(times, [*times[1:], time.process_time()])]

print(json.dumps([came, sent, [parts(seed) for seed in range(100, 107)]]))
"""
# Marks of each feed: when its parcel came, and when the picture was on the screen, by the seed that it shows.
HEAR = """
() => {
  const player = document.querySelector(".wb-looks .wb-player").workbenchPlayer
  const now = () => performance.timeOrigin + performance.now()
  window.labMarks = { shown: {}, whole: {} }
  document.addEventListener("keydown", () => (window.labMarks = { moved: now(), shown: {}, whole: {} }), true)
  const feed = player.feed
  player.feed = (data) => {
    const came = now()
    feed.call(player, data)
    const seed = player.heading.textContent.match(/seed (\\d+)/)[1]
    const { shown, whole } = window.labMarks
    const isWhole = !player.picture.is_preview
    requestAnimationFrame(() => setTimeout(() => {
      shown[seed] ??= [came, now()]
      if (isWhole) whole[seed] = now()
    }))
  }
}
"""
# A cell that is run to look at it would count, too: the kernel answers a file.
LEFT = """
import gc, json, os, threading, time
import ipywidgets
import workbench as wb
from ipywidgets.widgets import widget

def left():
    gc.collect()
    widgets = list(widget._instances.values())
    observers = sum(len(some) for one in widgets for kinds in one._trait_notifiers.values() for some in kinds.values())
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {"widgets": len(widgets), "comms": len(get_ipython().kernel.comm_manager.comms), "observers": observers,
            "threads": threading.active_count(), "objects": len(gc.get_objects()),
            "kernel MB": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)}

def answer():
    while True:
        time.sleep(0.1)
        if os.path.exists("asked"):
            with open("telling", "w") as file:
                json.dump(left(), file)
            os.remove("asked")
            os.rename("telling", "told")

threading.Thread(target=answer, daemon=True).start()
"""
COUNTED = {"Documents": "documents", "Nodes": "nodes", "JSEventListeners": "listeners"}


# Times


def times(jupyter: Any, chromium: Any, protocol: str, nodes: int, rounds: int) -> list[float]:
    """A row of the table."""
    setup = SETUP.replace("{protocol!r}", repr(protocol)).replace("{nodes}", str(nodes))
    notebook = jupyter.notebook(chromium, [setup, PARTS], f"{protocol}{nodes}.ipynb")
    notebook.page.set_default_timeout(300_000)
    notebook.run(0)
    hand = Hand(notebook.page)
    hand.sees_run("")
    moves, late = _moves(hand, rounds)
    notebook.run(1)
    came, sent, parts = json.loads(notebook.output(1).strip().splitlines()[-1])
    rows = []
    for seed, moved, arrived, painted, whole in moves[1:]:
        began, before = next((1000 * at, cpu) for one, at, cpu in reversed(came) if one == seed and 1000 * at < arrived)
        sizes = [told for one, *told in sent if one == seed and began <= 1000 * told[0] < whole]
        at, after, size = sizes[0]
        handed = min(1000 * at, arrived)
        wire = began - moved + arrived - handed
        worked = 1000 * (after - before)
        times_ms = painted - moved, whole - moved, handed - began, worked, wire, painted - arrived
        rows.append((*times_ms, size / 1e6, sizes[-1][2] / 1e6))
    notebook.page.close()
    middle = [statistics.median(column) for column in zip(*rows, strict=True)]
    own = [1000 * statistics.median(column) for column in zip(*parts, strict=True)]
    return [middle[0], min(row[0] for row in rows), *middle[1:6], *own, *middle[6:], late]


def _moves(hand: Any, rounds: int) -> tuple[list[tuple[int, float, float, float, float]], int]:
    """Of the slider's moves (seed, when it was moved, the parcel came, it was painted, it was whole); how many moves
    were late."""
    hand.tab("Radio and time")
    handle = seed_slider(hand)
    hand.page.evaluate(HEAR)
    found, late = [], 0
    for place in range(rounds + 1):
        before = handle.get_attribute("aria-valuenow")
        handle.press("ArrowRight" if place // 8 % 2 == 0 else "ArrowLeft")
        seed = int(float(handle.get_attribute("aria-valuenow")))
        assert str(seed) != before
        try:
            hand.page.wait_for_function("(seed) => window.labMarks.whole[seed]", arg=seed, timeout=PATIENCE_MS)
        except LateError:
            late += 1
            continue
        marks = hand.page.evaluate("() => window.labMarks")
        found.append((seed, marks["moved"], *marks["shown"][str(seed)], marks["whole"][str(seed)]))
    return found, late


def seed_slider(hand: Any) -> Any:
    """The handle of the seed's slider."""
    row = hand.lab.locator(".wb-field").filter(has_text="seed").locator("visible=true").first
    return row.locator(".noUi-handle").first


def table_of_times(chromium: Any, asked: argparse.Namespace) -> None:
    """A line for each protocol and size."""
    names = ["all", "best", "whole", "kernel", "worked", "wire", "browser"]
    names += ["run", "glance", "preview", "metrics", "see", "pack", "payload", "rest", "late"]
    print(f"| protocol | nodes | {' | '.join(names)} |\n|---|--:|{'--:|' * len(names)}")
    with tempfile.TemporaryDirectory() as folder, Jupyter("lab", folder) as jupyter:
        for protocol in asked.protocols:
            for nodes in map(int, asked.sizes.split(",")):
                *ms, size, rest, late = times(jupyter, chromium, protocol, nodes, asked.rounds)
                cells = (f"{nodes:,}", *(f"{one:,.0f}" for one in ms), f"{size:.2f}", f"{rest:.2f}", f"{late:.0f}")
                print(f"| {protocol} | {' | '.join(cells)} |", flush=True)


# What is left behind


def leaks(chromium: Any, rounds: int) -> None:
    """Slider moves, re-runs of the lab's cell, and of one that has no lab: after ten of them, and after all."""
    with tempfile.TemporaryDirectory() as folder, Jupyter("lab", folder) as jupyter:
        notebook = jupyter.notebook(chromium, [LEFT, "wb.lab()", "1"])
        hand = Hand(notebook.page)
        for cell in (0, 1, 2):
            notebook.run(cell)
        hand.sees_run("")
        hand.tab("Radio and time")
        handle = seed_slider(hand)

        def move(place: int) -> None:
            handle.press("ArrowRight" if place // 8 % 2 == 0 else "ArrowLeft")
            hand.page.wait_for_timeout(150)

        def run_again(_: int) -> None:
            notebook.run(1)
            hand.sees_run("")

        acts = {
            "slider moves": move,
            "re-runs without a lab": lambda _: notebook.run(2),
            "re-runs of the lab": run_again,
        }
        for what, act in acts.items():
            found = []
            for place in range(rounds):
                act(place)
                if place in (9, rounds - 1):
                    hand.page.wait_for_timeout(1500)
                    found.append(left(notebook, Path(folder)))
            for name in found[0]:
                print(f"| {what} | {name} | {found[0][name]:,} | {found[1][name]:,} |", flush=True)


def left(notebook: Any, folder: Path) -> dict[str, float]:
    """What there is in the kernel and in the browser."""
    (folder / "asked").touch()
    while not (folder / "told").exists():
        notebook.page.wait_for_timeout(100)
    counts = json.loads((folder / "told").read_text())
    (folder / "told").unlink()
    devtools = notebook.page.context.new_cdp_session(notebook.page)
    devtools.send("Performance.enable")
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
    found = {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}
    devtools.detach()
    counts |= {said: int(found[name]) for name, said in COUNTED.items()}
    return {**counts, "browser MB": round(found["JSHeapUsedSize"] / 1e6, 1)}


# How it looks


def pictures(chromium: Any, folder: Path, protocols: list[str], widths: list[int]) -> Iterator[Path]:
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
            yield from _pictures_of(hand, folder, protocols, widths, f"lab-{theme}")
        print("JupyterLab's console:", notebook.complaints, hand.errors, flush=True)
    with tempfile.TemporaryDirectory() as notebooks, App(notebooks) as app:
        for theme in THEMES:
            hand = Hand(app.opened(chromium, (1366, HEIGHT), theme))
            hand.sees_run("")
            yield from _pictures_of(hand, folder, protocols, widths, f"voila-{theme}")
            print("Voilà's console:", {said.partition("\n")[0] for said in hand.errors}, flush=True)
            hand.page.close()


def _pictures_of(hand: Hand, folder: Path, protocols: list[str], widths: list[int], name: str) -> Iterator[Path]:
    for protocol in protocols:
        hand.page.set_viewport_size({"width": FORMS_FIT, "height": HEIGHT})
        hand.tab("Protocol")
        hand.choose("protocol:", protocol)
        hand.sees_run(type(protocol_named(protocol)).public_class().__name__)
        hand.tab("Network")
        for width in widths:
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


def contact_sheets(chromium: Any, folder: Path, protocols: list[str], widths: list[int]) -> None:
    """One sheet of pictures for each width."""
    folder.mkdir(parents=True, exist_ok=True)
    files = list(pictures(chromium, folder, protocols, widths))
    for width in widths:
        some = [file for file in files if f"-{width}" in file.stem]
        sheet(some, min(len(some), 8), folder / f"sheet-{width}.png")
        print(f"look at {folder}/sheet-{width}.png")


def main() -> None:
    """Measure, or make the sheets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("times", "leaks", "sheets"))
    parser.add_argument("folder", type=Path, nargs="?", help="where the sheets go")
    parser.add_argument("--protocols", type=lambda text: text.split(","), default=protocol_names())
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)), help="of the sheets")
    asked = parser.parse_args()
    if asked.what == "sheets" and asked.folder is None:
        parser.error("sheets need a folder")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        if asked.what == "times":
            asked.rounds = asked.rounds or 12
            table_of_times(chromium, asked)
        elif asked.what == "leaks":
            leaks(chromium, asked.rounds or 100)
        else:
            contact_sheets(chromium, asked.folder, asked.protocols, [int(one) for one in asked.widths.split(",")])


if __name__ == "__main__":
    main()

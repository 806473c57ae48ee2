"""The lab in a browser: its response times, its leaks, and screenshots.

    benchmarks/lab.py times [--sizes 400,1500] [--rounds 12]     from a slider's move to the painted picture
    benchmarks/lab.py leaks [--rounds 100]                       objects left by slider moves and re-runs of a cell
    benchmarks/lab.py sheets FOLDER                              sheets of screenshots

--protocols DPS,TinyMQ selects protocols.

Times are medians in milliseconds, in JupyterLab, with the fast twin's machine code loaded
    all       from the key that moves the slider to the first picture of the new run on the screen
    best      the shortest of these times, on otherwise idle processors
    whole     until the whole run is on the screen; a large run is first shown as a preview, without counters, tables
              and other moments
    kernel    part of *all*: from the slider's message to the payload being sent
    worked    the process time of the kernel in that part
    wire      part of *all*: from the key to the kernel, and from the kernel to the player
    browser   part of *all*: from the payload to the screen
    run, glance, preview      process times of the kernel's steps before the picture, for the same scenario in a cell:
                              the run, the layers of a preview, and the payload of the preview
    metrics, see, pack        process times of its steps after the picture: the metrics, all layers, and their payload
    payload, rest             MB of the payload of the first picture, and of that of the whole run
    late      moves that were not on the screen after ten seconds

Theory of operation
    The slider changes the seed: every protocol has a seed, and each seed gives another run. The player's heading shows
    the seed, which identifies the first picture of the requested run. Kernel and browser share a clock.

    Leaks are counted after ten rounds and after all rounds: widgets, comms, observers, threads and objects in the
    kernel; documents, nodes, listeners and heap in the browser, after a garbage collection.

    Sheets have protocols x themes x widths, in JupyterLab and in Voilà, and the forms if they are in a drawer.
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
    sources = [1 + round(number * (nodes - 2) / 4) for number in range(5)]
    workload = [wb.subscribe(nodes // 3, "TEMP GE 20", start_s=settle),
                wb.publish(sources, "TEMP IS 26", every_s=2, start_s=settle + 5, stagger=True)]
    return wb.Scenario(topology, protocol, workload, duration_s=settle + 20)

made = scenario({protocol!r}, {nodes})
made.run(engine="fast")  # compiles the twin if needed
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
    builder = LayerBuilder(run)
    first_layers = builder.preview()
    times.append(time.process_time())
    preview(first_layers, lab.selection["time_s"])
    times.append(time.process_time())
    run.metrics
    times.append(time.process_time())
    seen = builder.whole()
    times.append(time.process_time())
    pack(seen)
    return [after - before for before, after in zip(times, [*times[1:], time.process_time()])]

print(json.dumps([came, sent, [parts(seed) for seed in range(100, 107)]]))
"""
# Marks of each feed, by the seed it shows: the times of its payload and of the picture on the screen.
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
# Running a cell would change the counts, so a thread of the kernel answers a request by file.
LEFT = """
import gc, json, os, threading, time
import ipywidgets
import workbench as wb
from ipywidgets.widgets import widget

def left():
    gc.collect()
    widgets = list(widget._instances.values())
    observers = sum(len(handlers) for widget in widgets for kinds in widget._trait_notifiers.values()
                    for handlers in kinds.values())
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {"widgets": len(widgets), "comms": len(get_ipython().kernel.comm_manager.comms), "observers": observers,
            "threads": threading.active_count(), "objects": len(gc.get_objects()),
            "kernel MB": round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)}

def answer():
    while True:
        time.sleep(0.1)
        if os.path.exists("request"):
            with open("unfinished", "w") as file:
                json.dump(left(), file)
            os.remove("request")
            os.rename("unfinished", "counts")

threading.Thread(target=answer, daemon=True).start()
"""
COUNTED = {"Documents": "documents", "Nodes": "nodes", "JSEventListeners": "listeners"}


# Times


def measure_moves(jupyter: Any, chromium: Any, protocol: str, nodes: int, rounds: int) -> list[float]:
    """Measure moves of the slider for a protocol and a number of nodes, and return a row of the table."""
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
        earlier = [(1000 * at, cpu) for other, at, cpu in came if other == seed and 1000 * at < arrived]
        began, before = earlier[-1]
        sizes = [mark for other, *mark in sent if other == seed and began <= 1000 * mark[0] < whole]
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
    """Move the slider ``rounds`` + 1 times; return the moves that were not late, and the number of late moves.

    A move is (seed, time of the move, of the payload's arrival, of the painted picture, of the whole run), in ms.
    """
    hand.tab("Radio and time")
    handle = seed_slider(hand)
    hand.page.evaluate(HEAR)
    moves, late = [], 0
    for number in range(rounds + 1):
        before = handle.get_attribute("aria-valuenow")
        handle.press("ArrowRight" if number // 8 % 2 == 0 else "ArrowLeft")
        seed = int(float(handle.get_attribute("aria-valuenow")))
        assert str(seed) != before
        try:
            hand.page.wait_for_function("(seed) => window.labMarks.whole[seed]", arg=seed, timeout=PATIENCE_MS)
        except LateError:
            late += 1
            continue
        marks = hand.page.evaluate("() => window.labMarks")
        moves.append((seed, marks["moved"], *marks["shown"][str(seed)], marks["whole"][str(seed)]))
    return moves, late


def seed_slider(hand: Any) -> Any:
    """Return the handle of the seed's slider."""
    row = hand.lab.locator(".wb-field").filter(has_text="seed").locator("visible=true").first
    return row.locator(".noUi-handle").first


def table_of_times(chromium: Any, options: argparse.Namespace) -> None:
    """Measure each protocol and size, and print a line for each."""
    names = ["all", "best", "whole", "kernel", "worked", "wire", "browser"]
    names += ["run", "glance", "preview", "metrics", "see", "pack", "payload", "rest", "late"]
    print(f"| protocol | nodes | {' | '.join(names)} |\n|---|--:|{'--:|' * len(names)}")
    with tempfile.TemporaryDirectory() as folder, Jupyter("lab", folder) as jupyter:
        for protocol in options.protocols:
            for nodes in map(int, options.sizes.split(",")):
                *ms, size, rest, late = measure_moves(jupyter, chromium, protocol, nodes, options.rounds)
                cells = [f"{time_ms:,.0f}" for time_ms in ms] + [f"{size:.2f}", f"{rest:.2f}", f"{late:.0f}"]
                print(f"| {protocol} | {nodes:,} | {' | '.join(cells)} |", flush=True)


# Leaks


def print_leaks(chromium: Any, rounds: int) -> None:
    """Print the numbers of objects after ten rounds and after all, to reveal leaks.

    Rounds are slider moves, and re-runs of cells with and without a lab.
    """
    with tempfile.TemporaryDirectory() as folder, Jupyter("lab", folder) as jupyter:
        notebook = jupyter.notebook(chromium, [LEFT, "wb.lab()", "1"])
        hand = Hand(notebook.page)
        for cell in (0, 1, 2):
            notebook.run(cell)
        hand.sees_run("")
        hand.tab("Radio and time")
        handle = seed_slider(hand)

        def move(number: int) -> None:
            handle.press("ArrowRight" if number // 8 % 2 == 0 else "ArrowLeft")
            hand.page.wait_for_timeout(150)

        def run_again(_: int) -> None:
            notebook.run(1)
            hand.sees_run("")

        acts = {
            "slider moves": move,
            "re-runs without a lab": lambda _: notebook.run(2),
            "re-runs of the lab": run_again,
        }
        for action, act in acts.items():
            counts = []
            for number in range(rounds):
                act(number)
                if number in (9, rounds - 1):
                    hand.page.wait_for_timeout(1500)
                    counts.append(count_objects(notebook, Path(folder)))
            for name in counts[0]:
                print(f"| {action} | {name} | {counts[0][name]:,} | {counts[1][name]:,} |", flush=True)


def count_objects(notebook: Any, folder: Path) -> dict[str, float]:
    """Return {kind of object: number of objects} in the kernel and in the browser, after a garbage collection."""
    (folder / "request").touch()
    while not (folder / "counts").exists():
        notebook.page.wait_for_timeout(100)
    counts = json.loads((folder / "counts").read_text())
    (folder / "counts").unlink()
    devtools = notebook.page.context.new_cdp_session(notebook.page)
    devtools.send("Performance.enable")
    for _ in range(3):
        devtools.send("HeapProfiler.collectGarbage")
    metrics = {metric["name"]: metric["value"] for metric in devtools.send("Performance.getMetrics")["metrics"]}
    devtools.detach()
    counts |= {label: int(metrics[name]) for name, label in COUNTED.items()}
    return {**counts, "browser MB": round(metrics["JSHeapUsedSize"] / 1e6, 1)}


# Screenshots


def take_pictures(chromium: Any, folder: Path, protocols: list[str], widths: list[int]) -> Iterator[Path]:
    """Take screenshots of the lab in JupyterLab and Voilà, and yield the file of each."""
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
            yield from _take_pictures(hand, folder, protocols, widths, f"lab-{theme}")
        print("JupyterLab's console:", notebook.complaints, hand.errors, flush=True)
    with tempfile.TemporaryDirectory() as notebooks, App(notebooks) as app:
        for theme in THEMES:
            hand = Hand(app.opened(chromium, (1366, HEIGHT), theme))
            hand.sees_run("")
            yield from _take_pictures(hand, folder, protocols, widths, f"voila-{theme}")
            print("Voilà's console:", {message.partition("\n")[0] for message in hand.errors}, flush=True)
            hand.page.close()


def _take_pictures(hand: Hand, folder: Path, protocols: list[str], widths: list[int], name: str) -> Iterator[Path]:
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
    """Write one sheet of screenshots for each width."""
    folder.mkdir(parents=True, exist_ok=True)
    files = list(take_pictures(chromium, folder, protocols, widths))
    for width in widths:
        some = [file for file in files if f"-{width}" in file.stem]
        sheet(some, min(len(some), 8), folder / f"sheet-{width}.png")
        print(f"look at {folder}/sheet-{width}.png")


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("times", "leaks", "sheets"))
    parser.add_argument("folder", type=Path, nargs="?", help="where the sheets go")
    parser.add_argument("--protocols", type=lambda text: text.split(","), default=protocol_names())
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)), help="of the sheets")
    options = parser.parse_args()
    if options.command == "sheets" and options.folder is None:
        parser.error("the command sheets needs the argument folder")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        if options.command == "times":
            options.rounds = options.rounds or 12
            table_of_times(chromium, options)
        elif options.command == "leaks":
            print_leaks(chromium, options.rounds or 100)
        else:
            widths = [int(width) for width in options.widths.split(",")]
            contact_sheets(chromium, options.folder, options.protocols, widths)


if __name__ == "__main__":
    main()

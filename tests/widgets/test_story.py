"""The lab as somebody uses it who has never seen it: with mouse and keyboard alone, in a real JupyterLab.

Nothing here changes the page through its application: scripts in the page only tell where things are and what is shown.
"""

import re
import time

import nbformat
import pytest

from tests.jupyter import Jupyter
from tests.repository import REPOSITORY
from workbench import public_names
from workbench.motes import rack
from workbench.widgets.laboratory import protocol_named
from workbench.widgets.protocol import protocol_names

pytestmark = pytest.mark.browser
# Nothing is compiled here, so that the story takes as long on every machine.
COLD = "from workbench.sim import fast\nfast.is_warm = lambda protocol: False\nfast.warm = lambda protocol: None"
# Where a node is on the map on which the network is changed, in pixels of the page.
PLACE = """
(node) => {
  const { map } = document.querySelector(".wb-network").workbenchEditor
  const { x, y } = map.box.getBoundingClientRect()
  return [x + map.px[map.placeOf(node)], y + map.py[map.placeOf(node)]]
}
"""
PLAYERS = "[...document.querySelectorAll('.wb-looks .wb-player')].map((root) => root.workbenchPlayer)"


def start_page(folder):
    """The start page in a folder of its own, with a first cell that keeps the compiler away."""
    page = nbformat.read(REPOSITORY / "notebooks" / "00-start.ipynb", as_version=4)
    page.cells.insert(0, nbformat.v4.new_code_cell(COLD))
    nbformat.write(page, folder / "00-start.ipynb")


class Hand:
    """A user's hand: mouse and keyboard on a page with a lab."""

    def __init__(self, page):
        self.page, self.keys, self.mouse = page, page.keyboard, page.mouse
        self.lab = page.locator(".wb-lab").first
        self.errors = []
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def tab(self, name):
        """Open a tab of the lab's."""
        self.lab.get_by_role("tab", name=name, exact=True).first.click()

    def press(self, name):
        """Press a button of the lab's."""
        self.lab.locator("button:visible").filter(has_text=re.compile(rf"^\W*{re.escape(name)}$")).first.click()

    def choose(self, of, value):
        """Choose in the list with this label, or this class."""
        named = self.lab.locator(of) if of.startswith(".") else self.lab.get_by_label(of, exact=True)
        named.locator("visible=true").first.select_option(value)

    def write(self, field, text):
        """Write into a field, and leave it."""
        row = self.lab.locator(".wb-field").filter(has_text=re.compile(rf"^\s*{field}")).locator("visible=true").first
        row.locator("input[type=text], input:not([type]), .widget-text input").last.fill(text)
        self.keys.press("Tab")

    def place(self, node):
        """Where a node is on the map."""
        return self.page.evaluate(PLACE, node)

    def open_map(self):
        """Bring the map into sight, and choose to edit the network there."""
        self.lab.get_by_role("button", name="Edit", exact=True).first.click()
        self.lab.locator(".wb-looks .wb-map").first.scroll_into_view_if_needed()

    def pick(self, *nodes):
        """Pick nodes on the map."""
        self.open_map()
        for node in nodes:
            if node != nodes[0]:
                self.keys.down("Shift")
            self.mouse.click(*self.place(node))
        self.keys.up("Shift")

    def drag(self, node, right, down):
        """Drag a node."""
        self.open_map()
        x, y = self.place(node)
        self.mouse.move(x, y)
        self.mouse.down()
        self.mouse.move(x + right / 2, y + down / 2, steps=3)
        self.mouse.move(x + right, y + down, steps=3)
        self.mouse.up()

    def sees(self, text, within=".wb-lab"):
        """Wait until this is to be read; a text or a pattern."""
        self.page.locator(within).first.get_by_text(text).locator("visible=true").first.wait_for(timeout=300_000)

    def sees_run(self, title, of=0):
        """Wait until a player shows a run whose title begins so."""
        self.page.wait_for_function(
            f"([title, of]) => {PLAYERS}[of]?.picture.title.startsWith(title)", arg=[title, of], timeout=300_000
        )

    def time(self):
        """The moment that the first player shows, in its own ticks."""
        return self.page.evaluate(f"() => {PLAYERS}[0].time")

    def cell(self, text):
        """Write a new cell at the notebook's end, and run it."""
        self.page.locator(".jp-Notebook-footer").click()
        self.page.locator(".jp-Cell.jp-mod-active .cm-content").click()
        self.keys.type(text)
        self.keys.press("Shift+Enter")

    def printed(self, text):
        """What a new cell prints."""
        outputs = self.page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stdout']")
        before = outputs.count()
        self.cell(text)
        outputs.nth(before).wait_for()
        return outputs.nth(before).inner_text().strip()


def open_lab(hand):
    """Run the page's first cells, as its first sentence says."""
    hand.page.get_by_text("| Idle").wait_for()  # a cell that is run before the kernel is there is asked about
    hand.page.locator(".jp-CodeCell .cm-content").first.click()
    hand.keys.press("Shift+Enter")
    # The start page's words lie between; its one cell is the next of code.
    hand.page.locator(".jp-CodeCell .cm-content").nth(1).click()
    hand.keys.press("Shift+Enter")
    hand.keys.press("Control+b")
    hand.sees_run("")


def move_in_a_disc(hand):
    """Drag a node of the first network: its links follow, and undo puts it back."""
    hand.tab("Network")
    hand.sees("40 nodes, 288 links")
    hand.drag(0, -60, 40)
    hand.sees(re.compile(r"40 nodes, (?!288 )\d+ links"))
    hand.lab.get_by_title("Undo", exact=True).first.click()
    hand.sees("40 nodes, 288 links")
    hand.press("Watch")


def shrink_and_grow(hand):
    """Change the number of nodes to 12 and back: publications of nodes that are gone return with their nodes."""
    hand.tab("Network")
    hand.write("nodes", "12")
    hand.sees_run("Diffusion on 12 nodes")
    hand.tab("Data")
    hand.sees("no node 31, 37 in this network")
    hand.tab("Network")
    hand.write("nodes", "40")
    hand.sees_run("Diffusion on 40 nodes")
    hand.tab("Data")
    hand.sees("nodes 31, 37 publish TEMP IS 25")


def compose(hand):
    """Twelve nodes, a subscription, two publications, a filter."""
    hand.tab("Network")
    hand.choose("from", "grid")
    hand.write("rows", "3")
    hand.write("columns", "4")
    hand.sees("12 nodes, 34 links")
    hand.sees_run("Diffusion on 12 nodes")  # without what its nodes did that are gone
    hand.tab("Data")
    items = hand.lab.get_by_role("option").filter(has_text="TEMP").locator("visible=true")
    while left := items.count():
        items.first.click()
        hand.press("Remove")
        items.nth(left - 1).wait_for(state="detached")
    hand.sees("Nothing happens yet")
    for node, kind, does, text in (
        (0, "+ Subscription", "subscribes to", "TEMP GE 22"),
        (11, "+ Publication", "publishes", "TEMP IS 25"),
        (3, "+ Publication", "publishes", "TEMP IS 30"),
    ):
        hand.pick(node)
        hand.tab("Data")
        hand.press(kind)
        hand.sees(f"node {node} {does}")
        hand.lab.get_by_label("as text").locator("visible=true").fill(text)
        hand.keys.press("Enter")
        hand.sees(f"node {node} {does} {text}")
    hand.tab("Filters")
    hand.press("+ Filter")
    hand.sees("suppress_unchanged")
    hand.sees_run("Diffusion on 12 nodes")


def change(hand):
    """Drag a node, and let one fail."""
    hand.tab("Network")
    hand.open_map()
    before = hand.place(5)
    hand.drag(5, 30, 20)
    hand.sees("comes from elsewhere")
    after = hand.place(5)
    assert abs(after[0] - before[0]) > 10
    hand.pick(6)
    hand.press("Fail")
    hand.tab("Data")
    hand.sees("node 6 off from")


def look(hand):
    """Scrub, and pick a message."""
    slider = hand.lab.get_by_role("slider", name="Time")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    hand.mouse.move(box["x"] + 0.3 * box["width"], middle)
    hand.mouse.down()
    times = [hand.time()]
    for share in (0.6, 0.9):
        hand.mouse.move(box["x"] + share * box["width"], middle, steps=3)
        times.append(hand.time())
    hand.mouse.up()
    assert times == sorted(set(times))
    side = hand.lab.get_by_role("complementary").first
    side.get_by_role("tab", name="Messages").click()
    side.get_by_role("option").locator("visible=true").nth(3).click()
    assert hand.page.evaluate(f"() => {PLAYERS}[0].selection.frame") >= 0


def play_all(hand):
    """Each protocol on the same network and workload."""
    for name in protocol_names():
        hand.tab("Protocol")
        hand.choose("protocol:", name)
        hand.sees_run(f"{type(protocol_named(name)).public_class().__name__} on 12 nodes")
    hand.choose("protocol:", public_names.FIRST_PROTOCOL)
    hand.sees_run(f"{public_names.FIRST_PROTOCOL} on 12 nodes")


def stop_a_long_run(hand):
    """A run of a week is stopped, and what there is of it is shown; undo leads back."""
    hand.tab("Radio and time")
    hand.write("duration_s", "600000")
    hand.press("Stop")
    hand.sees(re.compile(r"Stopped after .* s of 600000 s"))
    hand.lab.get_by_title("Undo", exact=True).first.click()
    hand.sees(re.compile(r"^reference engine, [\d,]+ ms"))


def compare(hand):
    """Another protocol beside it, and the table of differences."""
    hand.choose("beside it:", "Flooding")
    hand.sees_run("Flooding on 12 nodes", of=1)
    hand.tab("Differences")
    hand.sees("delivery", within=".wb-differences")
    hand.choose("beside it:", "nothing")
    hand.page.wait_for_function(f"() => {PLAYERS}.length == 1")


def sweep(hand):
    """Vary the retries."""
    hand.tab("Sweep")
    over = hand.lab.get_by_label("over:")
    proposed = over.input_value()
    hand.choose("vary:", "radio.retries")
    # The kernel proposes values for it. Who writes before they are there has what was written replaced.
    hand.page.wait_for_function("([box, old]) => box.value != old", arg=[over.element_handle(), proposed])
    over.fill("0, 3")
    hand.keys.press("Enter")
    hand.lab.get_by_label("seeds each:").fill("2")
    hand.keys.press("Enter")
    hand.press("Sweep")
    hand.sees(re.compile(r"^4 points\.$"))


def run_on_motes(hand):
    """On virtual motes, stopped after a moment."""
    hand.choose(".wb-where select", "virtual motes")
    hand.press("Run")
    hand.sees(re.compile(r"12 motes, [1-9]\d* s of 60 s"))
    hand.press("Stop")
    hand.sees(re.compile(r"Ran on 12 motes for [\d.]+ s"))
    hand.choose(".wb-where select", "here")


def take_python(hand):
    """The lines of Python, in a cell of their own, build the same scenario."""
    hand.tab("Take away")
    hand.press("Python, in a new cell")
    made = hand.page.locator(".jp-CodeCell .cm-content").filter(has_text="scenario.run()").first
    made.click()
    hand.keys.press("Shift+Enter")
    same = hand.printed("print(scenario.hash, lab.scenario.hash)").split()
    assert len(same) == 2 and same[0] == same[1]
    return same[0]


@pytest.mark.family  # `make test` tells the beginning of it through Voilà (test_app), and the rest without a page.
def test_with_mouse_and_keyboard_alone_a_lab_is_composed_run_looked_at_and_taken_away(chromium, tmp_path):
    start_page(tmp_path)
    with Jupyter("lab", tmp_path) as jupyter:
        notebook = jupyter.opened(chromium, "00-start.ipynb", (1366, 900))
        hand = Hand(notebook.page)
        open_lab(hand)
        compose(hand)
        change(hand)
        look(hand)
        play_all(hand)
        stop_a_long_run(hand)
        compare(hand)
        sweep(hand)
        if rack.missing() is None:
            run_on_motes(hand)
        was = take_python(hand)
        go_on_after_a_reload(hand, tmp_path / "00-start.ipynb", was)
        assert notebook.complaints == [] and hand.errors == []
        assert hand.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log and "ERROR" not in log


def save(hand, path, printed):
    """Save the notebook, and wait until the file has what was printed last."""
    hand.keys.press("Control+s")
    end_s = time.monotonic() + 300
    while printed not in path.read_text():
        assert time.monotonic() < end_s, "the notebook has not been saved"
        hand.page.wait_for_timeout(100)


def go_on_after_a_reload(hand, path, was):
    """What was composed is there again, in the page and in a new lab, and can be changed."""
    save(hand, path, was)
    hand.page.reload()
    hand.sees_run("Diffusion on 12 nodes")
    open_lab(hand)
    hand.sees_run("Diffusion on 12 nodes")
    assert hand.printed("print(lab.scenario.hash)") == was
    hand.drag(1, 15, -15)
    hand.sees(re.compile(r"^reference engine, [\d,]+ ms"))
    assert hand.printed("print(lab.scenario.hash)") != was

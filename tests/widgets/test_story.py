"""The lab as a new user operates it: with mouse and keyboard only, in a real JupyterLab.

Scripts in the page only read positions and what is displayed; they do not change the page through its application."""

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
# The tests compile nothing, so that the story takes as long on every machine.
COLD = "from workbench.sim import fast\nfast.is_warm = lambda protocol: False\nfast.warm = lambda protocol: None"
# Return the position of a node on the network's map, in pixels of the page.
PLACE = """
(node) => {
  const { map } = document.querySelector(".wb-network").workbenchEditor
  const { x, y } = map.box.getBoundingClientRect()
  return [x + map.px[map.placeOf(node)], y + map.py[map.placeOf(node)]]
}
"""
PLAYERS = "[...document.querySelectorAll('.wb-looks .wb-player')].map((root) => root.workbenchPlayer)"


def start_page(folder):
    """Create a copy of the start page in a folder, with a first cell that prevents compilation."""
    page = nbformat.read(REPOSITORY / "notebooks" / "00-start.ipynb", as_version=4)
    page.cells.insert(0, nbformat.v4.new_code_cell(COLD))
    nbformat.write(page, folder / "00-start.ipynb")


class Hand:
    """A user's hand: mouse and keyboard on a page with a lab."""

    def __init__(self, page):
        self.page, self.keys, self.mouse = page, page.keyboard, page.mouse
        self.lab = page.locator(".wb-lab").first
        self.errors = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)

    def tab(self, name):
        """Open a tab of the lab."""
        self.lab.get_by_role("tab", name=name, exact=True).first.click()

    def press(self, name):
        """Press a button of the lab."""
        self.lab.locator("button:visible").filter(has_text=re.compile(rf"^\W*{re.escape(name)}$")).first.click()

    def choose(self, of, value):
        """Choose a value in the menu with this label or class."""
        named = self.lab.locator(of) if of.startswith(".") else self.lab.get_by_label(of, exact=True)
        named.locator("visible=true").first.select_option(value)

    def write(self, field, text):
        """Enter a text into a field, and leave the field."""
        row = self.lab.locator(".wb-field").filter(has_text=re.compile(rf"^\s*{field}")).locator("visible=true").first
        row.locator("input[type=text], input:not([type]), .widget-text input").last.fill(text)
        self.keys.press("Tab")

    def place(self, node):
        """Return the position of a node on the map, in pixels of the page."""
        return self.page.evaluate(PLACE, node)

    def open_map(self):
        """Scroll to the map, and open its editor."""
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
        """Wait until a text, or a text that matches a pattern, is displayed."""
        self.page.locator(within).first.get_by_text(text).locator("visible=true").first.wait_for(timeout=300_000)

    def sees_run(self, title, of=0):
        """Wait until a player shows a run whose title starts with a text."""
        self.page.wait_for_function(
            f"([title, of]) => {PLAYERS}[of]?.picture.title.startsWith(title)", arg=[title, of], timeout=300_000
        )

    def time(self):
        """Return the moment that the first player shows, in its own ticks."""
        return self.page.evaluate(f"() => {PLAYERS}[0].time")

    def cell(self, text):
        """Add a cell at the end of the notebook, and run it."""
        self.page.locator(".jp-Notebook-footer").click()
        self.page.locator(".jp-Cell.jp-mod-active .cm-content").click()
        self.keys.type(text)
        self.keys.press("Shift+Enter")

    def printed(self, text):
        """Run an expression in a new cell and return its output."""
        outputs = self.page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stdout']")
        before = outputs.count()
        self.cell(text)
        outputs.nth(before).wait_for()
        return outputs.nth(before).inner_text().strip()


def open_lab(hand):
    """Run the first cells of the page, as its first sentence recommends."""
    hand.page.get_by_text("| Idle").wait_for()  # JupyterLab shows a dialog if a cell is run before the kernel is ready
    hand.page.locator(".jp-CodeCell .cm-content").first.click()
    hand.keys.press("Shift+Enter")
    # The start page has a text before its only cell, which is the next code cell.
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
    """Create a scenario of twelve nodes, a subscription, two publications and a filter."""
    hand.tab("Network")
    hand.choose("from", "grid")
    hand.write("rows", "3")
    hand.write("columns", "4")
    hand.sees("12 nodes, 34 links")
    hand.sees_run("Diffusion on 12 nodes")  # without the workload of removed nodes
    hand.tab("Data")
    items = hand.lab.get_by_role("option").filter(has_text="TEMP").locator("visible=true")
    while count := items.count():
        items.first.click()
        hand.press("Remove")
        items.nth(count - 1).wait_for(state="detached")
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
    """Drag the time slider, and select a message."""
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
    """Run each protocol on the same network and workload."""
    for name in protocol_names():
        hand.tab("Protocol")
        hand.choose("protocol:", name)
        hand.sees_run(f"{type(protocol_named(name)).public_class().__name__} on 12 nodes")
    hand.choose("protocol:", public_names.FIRST_PROTOCOL)
    hand.sees_run(f"{public_names.FIRST_PROTOCOL} on 12 nodes")


def stop_a_long_run(hand):
    """Stop a run of a week, which is displayed up to that time, and undo the change."""
    hand.tab("Radio and time")
    hand.write("duration_s", "600000")
    hand.press("Stop")
    hand.sees(re.compile(r"Stopped after .* s of 600000 s"))
    hand.lab.get_by_title("Undo", exact=True).first.click()
    hand.sees(re.compile(r"^reference engine, [\d,]+ ms"))


def compare(hand):
    """Compare with another protocol, and open the table of differences."""
    hand.choose("compare with:", "Flooding")
    hand.sees_run("Flooding on 12 nodes", of=1)
    hand.tab("Differences")
    hand.sees("delivery", within=".wb-differences")
    hand.choose("compare with:", "nothing")
    hand.page.wait_for_function(f"() => {PLAYERS}.length == 1")


def sweep(hand):
    """Vary the retries."""
    hand.tab("Sweep")
    over = hand.lab.get_by_label("over:")
    proposed = over.input_value()
    hand.choose("vary:", "radio.retries")
    # The kernel proposes values, which would replace a text entered earlier.
    hand.page.wait_for_function("([box, old]) => box.value != old", arg=[over.element_handle(), proposed])
    over.fill("0, 3")
    hand.keys.press("Enter")
    hand.lab.get_by_label("seeds each:").fill("2")
    hand.keys.press("Enter")
    hand.press("Sweep")
    hand.sees(re.compile(r"^4 points\.$"))


def run_on_motes(hand):
    """Run on virtual motes, and stop after a moment."""
    hand.choose(".wb-where select", "virtual motes")
    hand.press("Run")
    hand.sees(re.compile(r"12 motes, [1-9]\d* s of 60 s"))
    hand.press("Stop")
    hand.sees(re.compile(r"Ran on 12 motes for [\d.]+ s"))
    hand.choose(".wb-where select", "here")


def take_python(hand):
    """Check that the lines of Python build the same scenario in a new cell, and return its hash."""
    hand.tab("Take away")
    hand.press("Python, in a new cell")
    cell = hand.page.locator(".jp-CodeCell .cm-content").filter(has_text="scenario.run()").first
    cell.click()
    hand.keys.press("Shift+Enter")
    same = hand.printed("print(scenario.hash, lab.scenario.hash)").split()
    assert len(same) == 2 and same[0] == same[1]
    return same[0]


@pytest.mark.family  # `make test` plays its first part through Voilà (test_app) and the rest without a page
def test_the_lab_can_be_used_with_mouse_and_keyboard_only(chromium, tmp_path):
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
        hash_ = take_python(hand)
        continue_after_reload(hand, tmp_path / "00-start.ipynb", hash_)
        assert notebook.complaints == [] and hand.errors == []
        assert hand.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        # Read before the server ends: a kernel may report that it cannot send any more while it is shut down.
        log = (tmp_path / "server.log").read_text()
    assert "Traceback" not in log and "ERROR" not in log


def save(hand, path, printed):
    """Save the notebook, and wait until the file contains the most recent output."""
    hand.keys.press("Control+s")
    end_s = time.monotonic() + 300
    while printed not in path.read_text():
        assert time.monotonic() < end_s, "the notebook has not been saved"
        hand.page.wait_for_timeout(100)


def continue_after_reload(hand, path, hash_):
    """Check that the page and a new lab restore the composed scenario, and that it can be changed."""
    save(hand, path, hash_)
    hand.page.reload()
    hand.sees_run("Diffusion on 12 nodes")
    open_lab(hand)
    hand.sees_run("Diffusion on 12 nodes")
    assert hand.printed("print(lab.scenario.hash)") == hash_
    hand.drag(1, 15, -15)
    hand.sees(re.compile(r"^reference engine, [\d,]+ ms"))
    assert hand.printed("print(lab.scenario.hash)") != hash_

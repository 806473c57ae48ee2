"""The player in a real browser: an exported page, opened from a file, with no network and no kernel behind it."""

import re
from pathlib import Path

import pytest

import workbench as wb
from workbench.views.ground import lay_out
from workbench.views.player.inspector import inspect_node
from workbench.views.player.intervals import intervals

pytestmark = pytest.mark.browser
CHROMIUM = Path("/usr/bin/chromium")
SECOND = 1_000_000
MAP = "Bokeh.documents[0].get_model_by_name('map')"
NODES = "Bokeh.documents[0].get_model_by_name('nodes').data_source"


@pytest.fixture(scope="module")
def run():
    """Diffusion in the default office: sink 1, source 60, a node that fails at 12 s."""
    return wb.Scenario(
        topology=wb.topology.office(),
        protocol=wb.Diffusion(),
        workload=[
            wb.subscribe(at=1, what="TEMP GE 25", expires_s=300),
            wb.publish(at=60, what="TEMP IS 26.5", every_s=5),
            wb.outage(at=30, start_s=12),
        ],
        radio=wb.Radio(loss="links", collisions=True),
        duration_s=25,
        seed=7,
    ).run()


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}; install it with: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Player:
    """A page with a player, and what its browser had to say about it."""

    def __init__(self, browser, path):
        self.page = browser.new_page(viewport={"width": 1040, "height": 1200})
        self.page.set_default_timeout(10_000)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(path.as_uri())
        self.page.wait_for_function(f"window.Bokeh?.documents.length && {NODES}.player?.rolesNow")

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def ask(self, expression):
        """The value of an expression in which ``p`` is the player."""
        return self.page.evaluate(f"() => {{ const p = {NODES}.player; return {expression} }}".replace("p.map", MAP))

    def data(self, name):
        """The columns that a part of the picture shows now."""
        columns = self.ask(f"Object.entries(p.drawn.{name}.data).map(([k, v]) => [k, Array.from(v)])")
        return dict(columns)

    def text(self, name):
        """The HTML of the clock or the panel."""
        return self.ask(f"p.widgets.{name}.text")

    def press(self, label):
        self.page.get_by_role("button", name=label, exact=False).first.click()

    def jump(self, time_s):
        self.page.evaluate(f"() => {NODES}.player.jump({time_s})")

    def tap(self, plot, x, y):
        """Click on data coordinates of a figure."""
        where = self.page.evaluate(
            """([name, x, y]) => {
                const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name));
                const box = view.canvas_view.el.getBoundingClientRect();
                const sx = view.frame.x_scale.compute(x), sy = view.frame.y_scale.compute(y);
                return [box.left + sx, box.top + sy]
            }""",
            [plot, x, y],
        )
        self.page.mouse.click(*where)

    def wait(self, condition):
        self.page.wait_for_function(f"() => {{ const p = {NODES}.player; return {condition} }}".replace("p.map", MAP))


@pytest.fixture(scope="module")
def page_path(run, tmp_path_factory):
    return run.save_html(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def player(chromium, page_path):
    opened = Player(chromium, page_path)
    yield opened
    assert opened.complaints == []
    opened.page.close()


def test_a_page_needs_nothing_from_outside_and_opens_with_a_picture(player, page_path):
    assert [url for url in player.requests if not url.startswith(("data:", "blob:"))] == [page_path.as_uri()]
    assert len(player.data("packets")["x"]) > 0
    assert len(player.data("band")["x0"]) > 0
    assert "1</b><span>deliveries" in player.text("clock") or "2</b><span>deliveries" in player.text("clock")
    shown = player.page.screenshot()
    assert len(shown) > 60_000  # an empty page makes a PNG of a tenth of that


def test_play_begins_at_the_beginning_moves_time_and_pauses(player):
    player.press("Play")
    player.wait("p.time > 0 && p.time < 1")
    player.wait("p.time > 0.004 && p.drawn.waves.data.x.length > 0")
    assert player.ask("p.widgets.play.label").endswith("Pause")
    player.press("Pause")
    time_s = player.ask("p.time")
    assert player.ask("new Promise((done) => setTimeout(() => done(p.time), 120))") == time_s
    assert player.ask("p.widgets.slider.value") == pytest.approx(player.ask("p.momentOf(p.time)"))


def test_at_a_higher_speed_the_film_ends_by_itself(player):
    player.page.evaluate(f"() => {{ {NODES}.player.widgets.speed.value = '8' }}")
    player.jump(24)
    player.press("Play")
    player.wait("!p.playing && p.time == 25")
    assert "25.000" in player.text("clock")
    player.press("Play")  # and from the end it begins anew
    player.wait("p.time < 20")


def test_scrubbing_changes_what_is_drawn(player):
    before = player.data("nodes")["role"]
    handle = player.page.locator(".noUi-handle")
    handle.focus()
    player.page.keyboard.press("Home")
    player.wait("p.time == 0 && p.drawn.gradients.data.x0.length == 0")
    after = player.data("nodes")["role"]
    assert before != after
    assert set(after) <= {"node", "sink", "source"}
    player.page.keyboard.press("End")
    player.wait("p.time == 25")
    assert "failed node" in player.data("nodes")["role"]


def test_step_goes_from_frame_to_frame_and_back(player, run):
    player.jump(0)
    seen = intervals(run.trace, 25 * SECOND)
    starts = sorted({*seen["interest_wave"]["from_us"].tolist(), *seen["data_packet"]["from_us"].tolist()})
    for expected in starts[:3]:
        player.press("Step ▶")
        player.wait(f"Math.abs(p.steppedTo - {expected / SECOND}) < 1e-9")
        assert player.ask("p.time") > expected / SECOND
    player.press("◀ Step")
    player.wait(f"Math.abs(p.steppedTo - {starts[1] / SECOND}) < 1e-9")


def test_the_browser_draws_what_the_intervals_say(player, run):
    plan = lay_out(run.scenario.topology)
    seen = intervals(run.trace, 25 * SECOND)
    for time_us in (0, 7_000, 1_010_000, 11_000_000, 24_999_999):
        player.jump(time_us / SECOND)
        gradients = seen.alive("gradient", time_us)
        heads = gradients["look"] == "head"
        assert len(player.data("gradients")["x0"]) == heads.sum()
        assert len(player.data("reserve")["x0"]) == (~heads).sum()
        band = seen.alive("reinforced", time_us)
        assert player.data("band")["x0"] == plan.x_m[plan.place(band["node"])].tolist()
        packets = len(seen.alive("data_packet", time_us)["node"]) + len(
            seen.alive("reinforcement_packet", time_us)["node"]
        )
        assert len(player.data("packets")["x"]) == packets
        assert len(player.data("losses")["x"]) == len(seen.alive("lost", time_us)["node"])


def test_a_tap_on_a_node_fills_the_inspector_as_python_would(player, run):
    x, y = run.scenario.topology.nodes[60]["pos"]
    player.jump(11.0)
    player.tap("map", x, y)
    player.wait("p.widgets.panel.text.includes('Node 60')")
    shown = player.text("panel")
    state = inspect_node(run, 60, 11.0)
    for title, (_, rows) in state.tables.items():
        assert f"<h4>{title} ({len(rows)})</h4>" in shown
        for row in rows:
            assert "".join(f"<td>{cell}</td>" for cell in row) in shown
    counters = re.findall(r"<td>([a-z _]+)</td><td>([\d,]+)</td></tr>", shown.split("Counters")[1])
    assert {name: int(number.replace(",", "")) for name, number in counters} == state.counters


def test_a_tap_beside_all_nodes_empties_the_inspector(player):
    right, bottom = player.ask("[p.map.x_range.end, p.map.y_range.start]")
    player.tap("map", right - 0.1, bottom + 1.0)
    player.wait("p.picked == -1 && p.widgets.panel.text.includes('Click a node')")


def test_a_tap_on_the_timeline_jumps_there(player):
    player.tap("timeline", 15.0, 40)
    player.wait("Math.abs(p.time - 15) < 0.2")
    assert player.data("cursor")["x"] == [player.ask("p.time")] * 2


def test_layers_can_be_hidden(player):
    def visible(name):
        return f"p.map.renderers.filter((one) => one.name == '{name}').every((one) => one.visible)"

    player.press("in reserve")
    player.wait(f"!{visible('reserve')} && {visible('gradients')}")

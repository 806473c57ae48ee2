"""The player in a real browser: exported pages opened from a file, without network and kernel."""

import html
import re

import pytest
from PIL import Image

import workbench as wb
from tests.axe import violations
from tests.until import PATIENCE_S
from workbench.protocols.dissection import byte_range
from workbench.records import contents, record_of
from workbench.views.player.embed import player_html
from workbench.views.player.payload import pack, poster_us, preview
from workbench.views.seeing import LayerBuilder, see

pytestmark = pytest.mark.browser
SECOND = 1_000_000
PLAYER = "document.querySelector('.wb-player')?.workbenchPlayer"
LOSSY_RADIO = wb.Radio(loss="links", collisions=True)


def diffusion():
    """Return a scenario of diffusion in the default office: sink 1, source 60, a node that fails at 12 s."""
    workload = [
        wb.subscribe(at=1, what="TEMP GE 25", expires_s=300),
        wb.publish(at=60, what="TEMP IS 26.5", every_s=5),
        wb.outage(at=30, start_s=12),
    ]
    return wb.Scenario(wb.topology.office(), wb.Diffusion(), workload, LOSSY_RADIO, duration_s=25, seed=7)


def coded():
    protocol = wb.CodedDiffusion(generation_size=4, bootstrap_factor=4)
    workload = [wb.publish(at=0, what="TEMP IS 26", every_s=1, start_s=1)]
    return wb.Scenario(wb.topology.grid(4, 4), protocol, workload, LOSSY_RADIO, duration_s=4)


def tinymq(protocol=wb.TinyMQ):
    workload = [
        wb.subscribe(at=5, what="TEMP GE 20", start_s=30),
        wb.publish(at=[0, 24], what="TEMP IS 30", every_s=5, start_s=40),
        wb.outage(at=12, start_s=55),
    ]
    configured = protocol(roots=(0, 24), dimensions=("TEMP 0 50",))
    return wb.Scenario(wb.topology.grid(5, 5), configured, workload, LOSSY_RADIO, duration_s=90)


def dps():
    workload = [
        wb.subscribe(at=2, what="TEMP GE 25", start_s=5),
        wb.publish(at=[0, 8], what="TEMP IS 30", every_s=4, start_s=12),
        wb.publish(at=4, what="TEMP IS 10", every_s=4, start_s=12),
        wb.outage(at=5, start_s=20),
    ]
    return wb.Scenario(wb.topology.grid(3, 3), wb.DPS(), workload, wb.Radio(loss="none"), duration_s=40)


def flooding(protocol=wb.Flooding):
    workload = [wb.subscribe(at=8, what="TEMP GE 1"), wb.publish(at=0, what="TEMP IS 5", every_s=1, start_s=1)]
    return wb.Scenario(wb.topology.grid(3, 3), protocol(), workload, LOSSY_RADIO, duration_s=4)


SCENARIOS = {
    "diffusion": diffusion,
    "coded diffusion": coded,
    "TinyMQ": tinymq,
    "PUB-2-SUB+": lambda: tinymq(wb.Pub2Sub),
    "DPS": dps,
    "flooding": flooding,
    "gossip": lambda: flooding(wb.Gossip),
}


# A run with a custom message kind has the layers of its protocol, which the Python tests of views check.
KINDS = ("PUB-2-SUB+", "gossip")
# Of the protocols with the most layers, only one is examined in `make test`.
WITH_FAMILY = ["diffusion", *(pytest.param(name, marks=pytest.mark.family) for name in ("TinyMQ", "DPS"))]
EACH = [pytest.param(name, marks=pytest.mark.family if name in KINDS else ()) for name in SCENARIOS]


@pytest.fixture(scope="module")
def runs():
    """Return the run of each protocol, played on first use."""

    class Runs(dict):
        def __missing__(self, name):
            self[name] = SCENARIOS[name]().run(engine="reference")
            return self[name]

    return Runs()


@pytest.fixture(scope="module")
def run(runs):
    return runs["diffusion"]


class Player:
    """A page with a player, and the errors and warnings of its browser."""

    def __init__(self, browser, path, size=(1366, 768), **options):
        self.page = browser.new_page(viewport={"width": size[0], "height": size[1]}, **options)
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.requests, self.complaints = [], []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(path.as_uri())
        self.wait("p.paints > 0")

    def _console(self, message):
        # The warning about reading pixels back is caused by the test, not by the page.
        if message.type in ("error", "warning") and "getImageData" not in message.text:
            self.complaints.append(message.text)

    def ask(self, expression):
        """Return the value of a JavaScript expression in which `p` is the player."""
        return self.page.evaluate(f"() => {{ const p = {PLAYER}; return {expression} }}")

    def wait(self, condition):
        """Wait until a condition on the player `p` holds."""
        self.page.wait_for_function(
            f"() => {{ const p = document.querySelector('.wb-player')?.workbenchPlayer; return p && ({condition}) }}"
        )
        self.ask("p.isPlaying || p.paint()")  # paint pending changes now instead of with the browser's next picture

    def alive(self):
        """Return {(layer, mark, index): node ids in ascending order} of the layers that are drawn on the map now."""
        drawn = self.ask(
            "[...p.map.shown, ...p.map.inTheAir].map(([layer, rows]) => [layer.name, layer.mark, rows.map((row) =>"
            " p.plan.id[layer.table.node[row]])])"
        )
        return {(name, mark, i): sorted(nodes) for i, (name, mark, nodes) in enumerate(drawn)}

    def text(self, selector):
        return self.page.locator(f".wb-player {selector}").inner_text()

    def press(self, label):
        self.page.get_by_role("button", name=label, exact=True).first.click()

    def jump(self, time_s):
        """Set the player to a time, and wait until it is painted."""
        self.ask(f"(p.jump({time_s}), p.paint())")

    def click_node(self, node):
        x, y = self.ask(
            f"((i) => {{ const box = p.mapBox.getBoundingClientRect();"
            f" return [box.left + p.map.px[i], box.top + p.map.py[i]] }})([...p.plan.id].indexOf({node}))"
        )
        self.page.mouse.click(x, y)


def paged(folder, run, name="page"):
    return run.save_html(folder / f"{name}.html")


@pytest.fixture(scope="module")
def page_path(run, tmp_path_factory):
    return paged(tmp_path_factory.mktemp("page"), run)


@pytest.fixture
def player(chromium, page_path):
    opened = Player(chromium, page_path)
    yield opened
    assert opened.complaints == []
    opened.page.close()


def test_a_page_makes_no_requests_and_opens_at_its_poster_time(player, page_path, run):
    assert [url for url in player.requests if not url.startswith(("data:", "blob:"))] == [page_path.as_uri()]
    assert player.ask("p.time") == pytest.approx(poster_us(see(run)) / SECOND)
    drawn = {name: nodes for (name, _, _), nodes in player.alive().items() if nodes}
    assert {"nodes", "gradients", "reinforced path", "frames"} <= set(drawn)
    assert player.text(".wb-page-node").split()[:3] == ["Node", "1", "sink"]


@pytest.mark.parametrize("name", EACH)
def test_the_browser_draws_the_same_rows_as_python(chromium, runs, tmp_path, name):
    run = runs[name]
    opened = Player(chromium, paged(tmp_path, run))
    view = see(run)
    shown = [layer for layer in view.layers if len(layer)]
    for time_us in (poster_us(view), view.duration_us // 7, view.duration_us // 2, view.duration_us):
        opened.jump(time_us / SECOND)
        drawn = opened.ask(
            "p.picture.layers.filter((one) => one.rows).map((one) => aliveNodes(one, p))".replace(
                "aliveNodes(one, p)",
                "{ const { from, until, node } = one.table; const found = [];"
                " for (let i = 0; i < from.length; i++) if (from[i] <= p.tick && until[i] > p.tick)"
                " found.push(node ? p.plan.id[node[i]] : -1); return [one.name, found] }".join(("(() => ", ")()")),
            )
        )
        expected = [
            [layer.name, layer.column("node")[layer.alive(min(time_us, view.duration_us - 1))].tolist()]
            for layer in shown
        ]
        assert drawn == expected
    assert opened.complaints == []
    opened.page.close()


INK = """((name) => {
  p.hidden = new Set([...p.picture.chips.map((chip) => chip.name), ...p.picture.layers.map((layer) => layer.name)])
  p.hidden.delete(name)
  const named = p.picture.layers.filter((layer) => layer.name == name)
  for (const layer of named) for (const look of layer.looks) p.hidden.delete(look.chip)
  p.map.shown = null
  for (const one of p.lanes) one.shown = null
  p.paint()
  const inked = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
    let count = 0
    for (let i = 3; i < data.length; i += 4) count += data[i] > 0
    return count
  }
  return [...p.map.canvases.slice(1), ...p.lanes.map((one) => one.canvas)].reduce((sum, one) => sum + inked(one), 0)
})
"""


@pytest.mark.parametrize("name", EACH)
def test_every_layer_of_every_protocol_paints_pixels_while_it_has_rows(chromium, runs, tmp_path, name):
    run = runs[name]
    view = see(run)
    opened = Player(chromium, paged(tmp_path, run))
    checked = set()
    for layer in view.layers:
        marks = {look.mark or layer.mark for look in layer.looks} - {""}
        if not len(layer) or not marks or marks == {"node"} or layer.name in checked:
            continue
        if layer.of_path:
            opened.ask(f"(p.selection.path = {int(layer.column('path').max())})")
            row = int(layer.column("path").argmax())
        else:
            row = len(layer) // 2
        middle_us = (int(layer.table["from_us"][row]) + int(layer.table["until_us"][row])) // 2
        opened.jump(min(middle_us, view.duration_us - 1) / SECOND)
        opened.ask("(p.selection.node = -1, p.map.zoom(1))")
        plain = opened.ask(f"{INK}('nothing of that name')")
        assert opened.ask(f"{INK}({layer.name!r})") > plain, f"layer {layer.name!r} of {name} draws nothing"
        checked.add(layer.name)
    assert checked and opened.complaints == []
    opened.page.close()


def test_play_starts_at_the_displayed_time_advances_it_and_pauses(player):
    poster_s = player.ask("p.time")
    player.press("Play")
    player.wait(f"p.time > {poster_s} && p.time < {poster_s} + 1")
    player.jump(0)
    player.press("Play")
    player.wait("p.map.inTheAir.some(([, rows]) => rows.length)")
    player.press("Pause")
    time_s = player.ask("p.time")
    assert player.ask("new Promise((done) => setTimeout(() => done(p.time), 120))") == time_s
    share = player.ask("p.momentOf(p.time) / p.playbackLength")
    assert float(player.ask("p.slider.value")) == pytest.approx(2000 * share, abs=1)


def test_playback_at_a_higher_speed_ends_and_restarts(player):
    player.page.get_by_label("Speed").select_option("8")
    player.jump(24)
    player.press("Play")
    player.wait("!p.isPlaying && p.time == 25")
    assert player.text(".wb-clock").startswith("25.000")
    player.press("Play")
    player.wait("p.time < 20")


def test_the_slider_scrubs(player):
    slider = player.page.get_by_label("Time", exact=True)
    slider.focus()
    slider.press("Home")
    player.wait("p.time == 0")
    assert not [name for (name, _, _), nodes in player.alive().items() if name == "gradients" and nodes]
    slider.press("End")
    player.wait("p.time == 25")
    assert player.ask("p.map.nodeLooks.map((look) => look.label)").count("failed node") == 1


def test_the_step_buttons_go_from_frame_to_frame_and_back(player, run):
    player.jump(0)
    starts = sorted(set(see(run).layer("frames").table["from_us"].tolist()))
    for expected in starts[:3]:
        player.press("One message on")
        player.wait(f"p.steppedTo == {expected}")
        assert player.ask("p.time") > expected / SECOND
    player.press("One message back")
    player.wait(f"p.steppedTo == {starts[1]}")


def test_a_click_on_a_node_shows_the_same_state_as_in_python(player, run):
    player.jump(11.0)
    player.click_node(60)
    player.wait("p.inspector.innerText.includes('Node 60')")
    shown = player.ask("p.inspector.innerHTML")
    state = wb.views.inspect_node(run, 60, 11.0)
    for title, (_, rows) in state.tables.items():
        assert f"<h4>{title} ({len(rows)})</h4>" in shown
        for row in rows:
            assert "".join(f"<td>{html.escape(cell)}</td>" for cell in row) in shown
    counters = re.findall(r"<td>([a-z _]+)</td><td>([\d,]+)</td></tr>", shown.split("Counters")[1])
    assert {name: int(number.replace(",", "")) for name, number in counters} == state.counters
    player.page.mouse.click(*player.ask("((b) => [b.left + b.width / 2, b.top + 3])(p.mapBox.getBoundingClientRect())"))
    player.wait("p.selection.node == -1 && p.inspector.innerText.includes('Click a node')")


@pytest.mark.parametrize("name", ["coded diffusion", "TinyMQ", "DPS"])
def test_the_inspector_shows_the_same_node_states_as_python_for_each_protocol(chromium, runs, tmp_path, name):
    run = runs[name]
    opened = Player(chromium, paged(tmp_path, run))
    nodes = sorted(run.scenario.topology)
    time_s = 0.8 * run.scenario.duration_s if name != "coded diffusion" else poster_us(see(run)) / SECOND
    opened.jump(time_s)
    titles = set()
    for node in nodes:
        opened.ask(f"(p.pickNode([...p.plan.id].indexOf({node})), p.paint())")
        shown = opened.ask("p.inspector.innerHTML")
        state = wb.views.inspect_node(run, node, time_s)
        for title, (_, rows) in state.tables.items():
            titles.add(title)
            for row in rows:
                assert "".join(f"<td>{html.escape(cell)}</td>" for cell in row) in shown
    assert len(titles) >= (1 if name == "coded diffusion" else 3)
    opened.page.close()


def test_a_press_on_the_timeline_goes_to_that_time(player):
    box = player.page.locator(".wb-timeline").bounding_box()
    player.page.mouse.click(box["x"] + player.ask("p.timeline.at(15)"), box["y"] + 20)
    player.wait("Math.abs(p.time - 15) < 0.1")


def test_layers_can_be_hidden_and_shown_again(player):
    def gradients():
        return [name for (name, _, _), _ in player.alive().items() if name == "gradients"]

    player.jump(11)
    assert gradients()
    player.press("gradients")
    player.wait("p.map.shown && !p.isOn('gradients')")
    player.ask("p.paint()")
    assert not gradients() and "gradients" in player.ask(
        "[...p.chips.querySelectorAll('[aria-pressed=false]')].map((chip) => chip.innerText)"
    )
    player.press("gradients")
    player.ask("p.paint()")
    assert gradients()


def test_a_message_selected_in_the_table_is_selected_everywhere_and_dissected(player, run):
    player.page.get_by_role("tab", name="Messages").click()
    player.jump(10.1)
    line = player.page.locator(".wb-spacer .wb-line").nth(4)
    cells = line.locator("span").all_inner_texts()
    line.click()
    row = player.ask("p.selection.frame")
    assert player.ask("p.plan.id[p.selection.node]") == int(cells[1])
    assert player.ask(f"p.frames.table.from[{row}] <= p.tick && p.tick < p.frames.table.until[{row}]")
    frame = run.frames([player.ask(f"p.frames.table.row[{row}]")]).to_pylist()[0]
    assert (frame["node"], len(frame["frame"]), frame["message"]) == (int(cells[1]), int(cells[4]), cells[3])
    fields = wb.dissect(run, frame["frame"], frame["peer"] < 0).fields
    shown = player.text(".wb-detail")
    assert all(f"{field.name}\t{byte_range(field)}\t" in shown and field.text in shown for field in fields)


def test_messages_of_one_kind_are_listed(player, run):
    choice = player.page.get_by_label("Which messages are listed")
    player.page.get_by_role("tab", name="Messages").click()
    sent_kinds = [row["message"] for row in run.trace.to_pylist() if row["event"] == "sent"]
    kinds = choice.locator("option").all_inner_texts()[3:]
    assert set(kinds) == set(sent_kinds) and len(kinds) > 1
    choice.select_option(kinds[0])
    assert player.text(".wb-message-bar span") == f"{sent_kinds.count(kinds[0]):,}"
    assert set(player.page.locator(".wb-spacer .wb-line span:nth-child(4)").all_inner_texts()) == {kinds[0]}
    choice.select_option("all")


def test_a_followed_message_shows_its_path_up_to_the_current_time(player, run):
    view = see(run)
    delivered = view.layer("deliveries").table
    followed = (60, int(delivered["sequence"][0]))
    path = next(i for i, candidate in enumerate(view.paths.paths) if candidate.frames[0][:2] == followed)
    player.page.get_by_label("The message that is followed").select_option(str(path))
    player.jump(25)
    drawn = [nodes for (name, _, _), nodes in player.alive().items() if name == "message path"]
    layer = view.layer("message path")
    assert drawn == [sorted(layer.column("node")[layer.column("path") == path].tolist())]
    assert player.text(".wb-followed").startswith("publication")


def test_the_keyboard_plays_steps_zooms_and_walks_from_node_to_node(player):
    keys = player.page.keyboard
    player.page.locator(".wb-map").focus()
    keys.press("Home")
    player.wait("p.time == 0")
    player.page.locator(".wb-clock").click()  # a place outside of the map
    keys.press("ArrowRight")
    player.wait("p.time > 0")
    player.page.locator(".wb-map").focus()
    before = player.ask("p.map.px_m")
    keys.press("+")
    player.wait(f"p.map.px_m > {before} * 1.4")
    keys.press("0")
    player.wait(f"p.map.px_m == {before}")
    keys.press("Escape")
    player.wait("p.selection.node == -1")
    keys.press("n")
    keys.press("n")
    player.wait("p.selection.node == 1")
    for key, axis, sign in (("ArrowRight", "px", 1), ("ArrowDown", "py", 1), ("ArrowLeft", "px", -1)):
        before = player.ask(f"p.map.{axis}[p.selection.node]")
        keys.press(key)
        assert sign * (player.ask(f"p.map.{axis}[p.selection.node]") - before) > 0
    keys.press("?")
    assert player.page.locator(".wb-help").is_visible()
    keys.press("Space")
    player.wait("p.isPlaying")
    keys.press("Space")
    player.wait("!p.isPlaying")


def test_a_page_passes_the_accessibility_checks(player):
    assert violations(player.page, "html") == []


def test_the_map_is_a_single_tab_stop(player):
    player.page.locator(".wb-map").focus()
    player.page.keyboard.press("Tab")
    assert not player.ask("p.mapBox.contains(document.activeElement)")


def test_a_button_jumps_to_the_next_interesting_moment_and_describes_it(player, run):
    player.jump(0)
    moments = player.ask("p.picture.moments")
    assert "node 30 fails" in [text for _, text in moments]
    for time_s, text in moments[:3]:
        player.press("To the next interesting moment")
        player.wait(f"p.time == {time_s}")
        assert text in player.text(".wb-followed")


@pytest.mark.family
def test_a_page_plays_once_to_its_poster_time_unless_reduced_motion_is_preferred(chromium, page_path, run):
    page = chromium.new_page()
    page.emulate_media(reduced_motion="no-preference")
    page.goto(page_path.as_uri())
    poster_s = poster_us(see(run)) / SECOND
    page.wait_for_function("() => document.querySelector('.wb-player')?.workbenchPlayer?.isPlaying")
    assert page.evaluate(f"() => {PLAYER}.time") < poster_s
    page.wait_for_function(f"() => !{PLAYER}.isPlaying")
    assert page.evaluate(f"() => {PLAYER}.time") == pytest.approx(poster_s)
    page.close()


def test_a_link_to_a_page_opens_it_at_a_moment_with_its_layers(chromium, page_path, player):
    player.page.evaluate(f"() => {PLAYER}.applyFragment('t=7.5&layers=links,gradients,nonsense')")
    player.page.get_by_title("A link to this moment").click()
    link = player.page.get_by_label("Link to this moment", exact=True).input_value()
    line = player.page.get_by_label("Line for slides and pages").input_value()
    assert link.startswith(page_path.as_uri()) and line.startswith(f'<iframe src="{link}"')
    opened = chromium.new_page()
    opened.goto(link)
    opened.wait_for_function(f"() => {PLAYER}?.time == 7.5 && !{PLAYER}.isPlaying")
    assert opened.evaluate(
        f"() => {PLAYER}.picture.chips.map((one) => one.name).filter((one) => {PLAYER}.isOn(one))"
    ) == [
        "links",
        "gradients",
    ]
    opened.close()


def test_the_map_zooms_at_the_pointer_can_be_dragged_and_has_tooltips(player):
    box = player.page.locator(".wb-map").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    player.page.locator(".wb-map").focus()
    player.page.mouse.move(*middle)
    position_m = player.ask("p.map.groundAt(p.map.width / 2, p.map.height / 2)")
    player.page.mouse.wheel(0, -120)
    player.wait("p.map.px_m > p.map.fitted")
    assert player.ask("p.map.groundAt(p.map.width / 2, p.map.height / 2)") == pytest.approx(position_m, abs=0.05)
    left_px = player.ask("p.map.left")
    player.page.mouse.down()
    player.page.mouse.move(middle[0] + 60, middle[1], steps=4)
    player.page.mouse.up()
    assert player.ask("p.map.left") == pytest.approx(left_px + 60, abs=1)
    player.press("Show all")
    player.wait("p.map.px_m == p.map.fitted")
    x, y = player.ask("((i) => [p.map.px[i], p.map.py[i]])([...p.plan.id].indexOf(1))")
    player.page.mouse.move(box["x"] + x, box["y"] + y)
    assert player.text(".wb-tip") == "node 1\nsink"


def test_a_saved_map_contains_the_record_of_the_run(player, run, tmp_path):
    with player.page.expect_download() as download:
        player.press("Save the map as PNG")
    path = tmp_path / "map.png"
    download.value.save_as(path)
    assert Image.open(path).width > 100
    assert contents.read_contents(path).records == (record_of(run),)


@pytest.mark.parametrize("name", WITH_FAMILY)
@pytest.mark.parametrize("width", [1920, 1366, 768, 390])
def test_a_page_fits_its_width(chromium, runs, tmp_path, name, width):
    opened = Player(chromium, paged(tmp_path, runs[name]), (width, 768))
    content_width, visible = opened.page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
    assert content_width <= visible
    beyond = opened.page.evaluate(
        "() => [...document.querySelectorAll('.wb-player button, .wb-player canvas, .wb-player select')]"
        ".filter((one) => !one.closest('.wb-chips') && one.getBoundingClientRect().right > innerWidth + 1).length"
    )
    assert beyond == 0
    top, bottom = opened.page.evaluate(
        "() => ((box) => [box.top, box.bottom])(document.querySelector('.wb-map').getBoundingClientRect())"
    )
    assert top >= 0 and bottom <= 768 and bottom - top >= 140
    if width >= 1366:  # a wide page shows everything down to the timeline without scrolling
        assert opened.page.locator(".wb-timeline").bounding_box()["y"] + 84 <= 768
    assert opened.complaints == []
    opened.page.close()


def test_the_page_follows_the_dark_mode_of_the_system(chromium, page_path):
    opened = Player(chromium, page_path, color_scheme="dark")

    def background():
        return opened.page.evaluate("() => getComputedStyle(document.querySelector('.wb-player')).backgroundColor")

    assert opened.ask("p.isDark") == 1 and background() == "rgb(20, 24, 29)"
    opened.page.emulate_media(color_scheme="light")
    opened.wait("p.isDark == 0")
    assert background() == "rgb(255, 255, 255)"
    # JupyterLab's theme takes precedence over the system's.
    opened.page.evaluate("() => { document.body.dataset.jpThemeLight = 'false' }")
    opened.wait("p.isDark == 1")
    opened.page.close()


@pytest.mark.family
def test_new_runs_reuse_the_player_without_leaking_memory(chromium, runs, tmp_path):
    payloads = [pack(see(diffusion_of(seed))) for seed in (1, 2)]
    path = tmp_path / "fed.html"
    path.write_text(f"<!doctype html><body>{player_html(payloads[0])}</body>", encoding="utf-8")
    opened = Player(chromium, path)
    opened.page.evaluate(
        "(all) => { window.payloads = all.map((bytes) => Uint8Array.from(bytes)) }", [*map(list, payloads)]
    )
    feed = (
        "async () => { const p = %s; for (let i = 0; i < %d; i++) { p.feed(payloads[(i + 1) %% 2].buffer.slice(0)) } }"
    )
    client = opened.page.context.new_cdp_session(opened.page)

    def state():
        client.send("HeapProfiler.collectGarbage")
        counters = client.send("Memory.getDOMCounters")
        return {name: counters[name] for name in ("documents", "nodes", "jsEventListeners")}

    def heap():
        return opened.page.evaluate("() => performance.memory.usedJSHeapSize")

    opened.page.evaluate(feed % (PLAYER, 10))
    before, used = state(), heap()
    opened.page.evaluate(feed % (PLAYER, 100))
    after = state()
    assert after["documents"] == before["documents"]
    assert after["nodes"] <= before["nodes"] + 40 and after["jsEventListeners"] <= before["jsEventListeners"] + 4
    assert heap() < used + 2_000_000
    assert opened.complaints == []
    opened.page.close()


CANVASES = "[...p.root.querySelectorAll('canvas')].map((one) => one.toDataURL())"


@pytest.mark.parametrize(
    "name", [*WITH_FAMILY, *(pytest.param(name, marks=pytest.mark.family) for name in ("coded diffusion", "flooding"))]
)
def test_a_preview_is_painted_like_the_complete_run_and_leaves_the_texts_unchanged(chromium, runs, tmp_path, name):
    run = runs[name]
    next_run = run.scenario.replace(seed=run.scenario.seed + 1).run(engine="reference")
    path = tmp_path / "preview.html"
    path.write_text(f"<!doctype html><body>{player_html(pack(see(run)))}</body>", encoding="utf-8")
    opened = Player(chromium, path)

    def feed(payload):
        opened.page.evaluate(f"(bytes) => {PLAYER}.feed(Uint8Array.from(bytes).buffer)", list(payload))
        opened.ask("p.paint()")
        return opened.ask(CANVASES), opened.text(".wb-side"), opened.text(".wb-totals")

    # A preview of the displayed moment paints the map.
    before, shown_s = opened.ask(CANVASES), opened.ask("p.time")
    words = opened.text(".wb-side"), opened.text(".wb-totals")
    of_moment = preview(LayerBuilder(next_run).preview(), shown_s)
    painted, *texts = feed(of_moment)
    assert painted != before and tuple(texts) == words
    assert f"seed {next_run.scenario.seed}" in opened.text(".wb-heading")
    assert feed(pack(see(next_run)))[0] == painted
    # A preview of another moment is ignored.
    opened.jump(0.5)
    unchanged = opened.ask(CANVASES)
    assert feed(of_moment)[0] == unchanged and not opened.ask("!!p.picture.is_preview")
    assert opened.complaints == []
    opened.page.close()


def diffusion_of(seed):
    workload = [wb.subscribe(at=0, what="TEMP GE 1"), wb.publish(at=15, what="TEMP IS 5", every_s=1)]
    return wb.Scenario(wb.topology.grid(4, 4), wb.Diffusion(), workload, LOSSY_RADIO, duration_s=5, seed=seed).run()

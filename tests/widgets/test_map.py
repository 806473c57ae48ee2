"""The map in Chromium: the messages that mouse and keys send to a model that records them."""

import base64

import pytest

from workbench import topology
from workbench.widgets.network.map import NetworkMap, packed

MODEL = """
const model = {
  state: STATE, sent: [], acts: {},
  get(name) { return this.state[name] },
  set(name, value) { this.state[name] = value; this.notify(name) },
  notify(name) { for (const act of this.acts["change:" + name] ?? []) act() },
  save_changes() {},
  on(name, act) { (this.acts[name] ??= []).push(act) },
  off(name, act) { this.acts[name] = this.acts[name].filter((one) => one !== act) },
  send(edit) { this.sent.push(edit) },
}
model.state.payload = new DataView(Uint8Array.from(atob("PAYLOAD"), (sign) => sign.charCodeAt(0)).buffer)
window.model = model
"""
STATE = (
    '{"roles": [[0, "sink"]], "picked": [], "tool": "select", "asks": ["sink"], '
    '"history": {"undo": true}, "message": "x", "has_waypoints": true, "overlay": ['
    '{"kind": "path", "item": 2, "nodes": [8], "x": [5, 15], "y": [5, 15], "labels": ["10 s", "20 s"]}, '
    '{"kind": "disc", "item": 4, "x": 15, "y": 5, "radius": 6, "label": "jammer"}]}'
)

FEED = "(text) => model.set('payload', new DataView(Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0)).buffer))"

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium):
    """Yield a page with a map of a grid of nine nodes, 10 m apart."""
    payload = encoded(topology.grid(3, 3))
    script = NetworkMap().script.replace("export default { render }", "")
    model = MODEL.replace("STATE", STATE).replace("PAYLOAD", payload)
    opened = chromium.new_page(viewport={"width": 800, "height": 900})
    complaints = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    body = f'<div id="here"></div><style>{NetworkMap._css}</style>'
    start = 'window.end = render({ model, el: document.getElementById("here") })'
    opened.set_content(f"<!doctype html><body>{body}<script type='module'>{script}\n{model}\n{start}</script></body>")
    opened.wait_for_function("() => document.querySelector('.wb-network')?.workbenchEditor.map.nodeLooks")
    yield opened
    assert complaints == []
    opened.close()


def encoded(graph):
    return base64.b64encode(packed(graph)).decode()


def at(page, node):
    """Return the position of a node in the page, in pixels."""
    position = page.evaluate(
        "(node) => { const { map, box } = document.querySelector('.wb-network').workbenchEditor;"
        " const { left, top } = box.getBoundingClientRect(); const i = map.placeOf(node);"
        " return [left + map.px[i], top + map.py[i]] }",
        node,
    )
    return tuple(position)


def repeat(element, times, action, name):
    """Run a JavaScript expression several times without a pause, with the element in the variable ``name``."""
    element.evaluate(f"({name}) => {{ for (let i = 0; i < {times}; i++) {{ {action} }} }}")


def drag(page, start, end):
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    page.mouse.move(*end)
    page.mouse.up()


def take_sent(page):
    """Return the messages sent since the previous call."""
    return page.evaluate("() => model.sent.splice(0)")


def picked(page):
    return page.evaluate("() => model.state.picked")


def test_dragging_a_node_sends_its_new_position_and_moves_the_picked_nodes_too(page):
    (x4, y4), (x5, _) = at(page, 4), at(page, 5)
    drag(page, (x4, y4), ((x4 + x5) / 2, y4))
    (moved,) = take_sent(page)
    assert moved == {"kind": "move", "nodes": [4], "x": [pytest.approx(15, abs=0.2)], "y": [10]}
    assert at(page, 4)[0] == pytest.approx((x4 + x5) / 2, abs=3)
    page.mouse.click(*at(page, 0))
    page.keyboard.down("Shift")
    page.mouse.click(*at(page, 1))
    page.keyboard.up("Shift")
    assert picked(page) == [0, 1]
    x, y = at(page, 0)
    drag(page, (x, y), (x, y - 50))
    (moved,) = take_sent(page)
    assert moved["nodes"] == [0, 1] and moved["x"] == [0, 10] and moved["y"][0] == moved["y"][1] > 0


def test_tools_add_nodes_link_them_and_erase(page):
    page.get_by_role("button", name="+ Node").click()
    (x0, y0), (x4, y4) = at(page, 0), at(page, 4)
    page.mouse.click((x0 + x4) / 2, (y0 + y4) / 2)
    (added,) = take_sent(page)
    assert added == {"kind": "add", "x": pytest.approx(5, abs=0.2), "y": pytest.approx(5, abs=0.2)}
    page.get_by_role("button", name="+ Link").click()
    assert page.evaluate("() => model.state.tool") == "link"
    drag(page, (x0, y0), (x4, y4))
    page.mouse.click(*at(page, 8))
    page.mouse.click(*at(page, 4))
    assert take_sent(page) == [{"kind": "join", "links": [[0, 4]]}, {"kind": "join", "links": [[8, 4]]}]
    page.get_by_role("button", name="Erase").click()
    page.mouse.click(x0, y0)
    (x7, y7), (x8, y8) = at(page, 7), at(page, 8)
    page.mouse.click((x7 + x8) / 2, (y7 + y8) / 2)
    assert take_sent(page) == [
        {"kind": "erase", "nodes": [0], "links": []},
        {"kind": "erase", "nodes": [], "links": [[7, 8]]},
    ]


def test_a_selected_link_has_a_slider_for_each_direction(page):
    (x0, y0), (x1, y1) = at(page, 0), at(page, 1)
    page.mouse.click((x0 + x1) / 2, (y0 + y1) / 2)
    slider = page.get_by_label("delivery ratio 0 → 1")
    slider.fill("60")
    assert take_sent(page) == [{"kind": "quality", "a": 0, "b": 1, "ab": 0.6, "ba": 0.6}]
    page.get_by_label("same in both directions").uncheck()
    page.get_by_label("delivery ratio 1 → 0").fill("20")
    assert take_sent(page) == [{"kind": "quality", "a": 0, "b": 1, "ba": 0.2}]
    assert slider.input_value() == "60"
    page.get_by_role("button", name="Remove link").click()
    assert take_sent(page) == [{"kind": "erase", "nodes": [], "links": [[0, 1]]}]
    assert not slider.is_visible()


def test_key_presses_on_the_slider_of_a_link_are_one_change(page):
    (x0, y0), (x1, y1) = at(page, 0), at(page, 1)
    page.mouse.click((x0 + x1) / 2, (y0 + y1) / 2)
    slider = page.get_by_label("delivery ratio 0 → 1")
    events = ("new KeyboardEvent('keydown', { key: 'ArrowLeft' })", "new Event('input')", "new Event('change')")
    key_press = f"slider.stepDown(); for (const event of [{', '.join(events)}]) slider.dispatchEvent(event)"
    repeat(slider, 5, key_press, "slider")
    value = int(slider.input_value()) / 100
    page.wait_for_function("() => model.sent.length")
    assert take_sent(page) == [{"kind": "quality", "a": 0, "b": 1, "ab": value, "ba": value}]


def test_everything_can_be_done_with_the_keyboard(page):
    page.locator(".wb-map").focus()
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert picked(page) == [1]
    key_press = "map.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp', bubbles: true }))"
    repeat(page.locator(".wb-map"), 2, key_press, "map")
    page.wait_for_function("() => model.sent.length")
    (moved,) = take_sent(page)
    assert moved["nodes"] == [1] and moved["x"] == [10] and 0 < moved["y"][0] < 5
    page.keyboard.press("Shift+N")
    page.keyboard.press("Shift+N")
    page.keyboard.press("l")
    assert take_sent(page) == [{"kind": "join", "links": [[1, 2], [2, 3]]}]
    page.keyboard.press("Escape")
    page.keyboard.press("p")
    page.get_by_role("button", name="Sink").click()
    page.locator(".wb-map").focus()
    page.keyboard.press("Delete")
    page.keyboard.press("Control+z")
    assert take_sent(page) == [
        {"kind": "ask", "do": "sink", "nodes": [8]},
        {"kind": "erase", "nodes": [8], "links": []},
        {"kind": "undo"},
    ]


def test_updates_from_the_kernel_keep_the_displayed_section(page):
    page.evaluate("() => document.querySelector('.wb-network').workbenchEditor.map.zoom(2)")
    before = at(page, 4)
    page.evaluate(FEED, encoded(topology.edits.with_node(topology.grid(3, 3), (30, 30))))
    assert at(page, 4) == before
    page.evaluate(FEED, encoded(topology.grid(5, 5, 40)))
    assert at(page, 4) != before


def test_a_growing_network_stays_visible(page):
    box = page.locator(".wb-map").bounding_box()
    for rows in [4, 5, 6, 7, 8, 7, 6, 5, 4, 5, 6, 7]:
        page.evaluate(FEED, encoded(topology.grid(rows, 3)))
        top, bottom = at(page, 3 * rows - 1)[1], at(page, 0)[1]
        assert box["y"] < top and bottom < box["y"] + box["height"]
        assert bottom - top > 0.5 * box["height"]


def test_a_closed_map_leaves_no_elements(page):
    page.evaluate("() => window.end()")
    assert page.locator(".wb-network canvas").count() == 0


def place_of(page, x, y):
    """Return the position of a point (x, y) in m in the page, in pixels."""
    position = page.evaluate(
        "([x, y]) => { const { map, box } = document.querySelector('.wb-network').workbenchEditor;"
        " const { left, top } = box.getBoundingClientRect(); const [px, py] = map.pixelOf(x, y);"
        " return [left + px, top + py] }",
        [x, y],
    )
    return tuple(position)


def test_clicks_with_the_waypoint_tool_add_waypoints_for_the_selected_nodes(page):
    page.click("text=+ Waypoint")
    page.mouse.click(*place_of(page, 12, 3))
    assert take_sent(page) == []
    assert "select a node" in page.inner_text(".wb-status")
    page.mouse.click(*at(page, 4))
    page.mouse.click(*place_of(page, 12, 3))
    (edit,) = take_sent(page)
    assert edit["kind"] == "add_waypoint" and edit["nodes"] == [4]
    assert abs(edit["x"] - 12) < 0.1 and abs(edit["y"] - 3) < 0.1


def test_waypoints_and_jammers_are_dragged_and_erased(page):
    drag(page, place_of(page, 15, 15), place_of(page, 12, 17))
    drag(page, place_of(page, 15, 5), place_of(page, 3, 15))
    moved = [
        (edit["kind"], edit["item"], edit["point"], round(edit["x"]), round(edit["y"])) for edit in take_sent(page)
    ]
    assert moved == [("move_point", 2, 1, 12, 17), ("move_point", 4, 0, 3, 15)]
    page.click("text=Erase")
    page.mouse.click(*place_of(page, 12, 17))
    page.mouse.click(*place_of(page, 3, 15))
    assert take_sent(page) == [
        {"kind": "erase_point", "item": 2, "point": 1},
        {"kind": "erase_point", "item": 4, "point": 0},
    ]
    # If the kernel refuses the edits, the map shows the previous shapes again.
    page.wait_for_function("() => document.querySelector('.wb-network').workbenchEditor.overlay[1].x == 15")

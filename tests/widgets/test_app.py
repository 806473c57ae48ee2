"""The lab as an app, without code: the story of `test_story` through Voilà, for one protocol."""

import re

import pytest

import workbench as wb
from tests.axe import violations
from tests.jupyter import WITHIN_S, App
from tests.widgets.test_story import (
    COLD,
    PLAYERS,
    Hand,
    change,
    compare,
    compose,
    look,
    move_in_a_disc,
    run_on_motes,
    shrink_and_grow,
    stop_a_long_run,
    sweep,
)
from workbench.motes import rack

pytestmark = pytest.mark.browser
# Voilà logs this when it still had messages for a page that was left.
CLOSED_CONNECTION = re.compile(r"tornado\.(websocket\.WebSocketClosedError|iostream\.StreamClosedError)\b")


@pytest.mark.family
def test_a_scenario_is_composed_run_and_viewed_without_code(chromium, tmp_path):
    pytest.importorskip("voila", reason="voila is not installed: pip install voila")
    with App(tmp_path, COLD) as app:
        page = app.opened(chromium)
        hand = Hand(page)
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        # The player plays by itself up to its first picture, unless reduced motion is preferred, as in most tests.
        page.emulate_media(reduced_motion="no-preference")
        page.wait_for_function(f"() => {PLAYERS}[0] && {PLAYERS}[0].time < {PLAYERS}[0].picture.poster_s")
        page.emulate_media(reduced_motion="reduce")
        hand.sees_run("")
        check_accessibility(hand)
        move_in_a_disc(hand)
        shrink_and_grow(hand)
        compose(hand)
        change(hand)
        look(hand)
        use_keyboard_alone(hand)
        stop_a_long_run(hand)
        compare(hand)
        sweep(hand)
        if rack.missing() is None:
            run_on_motes(hand)
        page.reload()
        hand.sees_run("Diffusion on 12 nodes")
        # Requests for fonts of another host are blocked, and Voilà refuses a request that a page sends when it is left.
        assert [message for message in hand.errors if not message.startswith("Failed to load resource")] == []
        assert complaints == []
        page.close()
        # The log is read before the server stops: zmq logs errors of its own when its process ends.
        errors = re.findall(r"^[\w.]+(?:Error|Exception)\b.*", (tmp_path / "server.log").read_text(), re.MULTILINE)
    assert [error for error in errors if not CLOSED_CONNECTION.match(error)] == []


# Role and name of the element that has the keyboard's focus.
FOCUS = """
() => {
  const element = document.activeElement
  const name = element.ariaLabel || element.labels?.[0]?.innerText || element.title || element.innerText
  return `${element.getAttribute("role") || element.tagName.toLowerCase()}: ${name}`
}
"""


# Events of a file that is dragged over the lab and dropped on it. The first is repeated until the lab answers it.
DRAG = """
(text) => {
  const data = new DataTransfer()
  data.items.add(new File([text], "scenario.json", { type: "application/json" }))
  const lab = document.querySelector(".wb-lab")
  const send = (kind) => lab.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }))
  send("dragover")
  if (!lab.classList.contains("wb-drop")) return false
  send("drop")
  return true
}
"""


@pytest.mark.family
def test_a_dropped_file_is_opened_and_a_link_opens_the_same_moment_elsewhere(chromium, tmp_path):
    pytest.importorskip("voila", reason="voila is not installed: pip install voila")
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(8, "TEMP IS 5", every_s=1)]
    scenario = wb.Scenario(wb.topology.grid(3, 3), wb.Flooding(), workload, duration_s=9, seed=4)
    with App(tmp_path, COLD) as app:
        page = app.opened(chromium)
        hand = Hand(page)
        hand.sees_run("")
        page.wait_for_function(DRAG, arg=scenario.to_json())
        hand.sees_run("Flooding on 9 nodes")
        player = f"{PLAYERS}[0]"
        page.evaluate(f"() => {{ {player}.hidden.add('links'); {player}.writeChips(); {player}.jump(3.25) }}")
        page.get_by_role("tab", name="Take away").click()
        page.get_by_role("button", name="link", exact=True).click()
        page.wait_for_function("() => document.querySelector('.wb-page-link input')?.value")
        link = page.input_value(".wb-page-link input")
        page.close()
        # Another profile of a browser, and a lab that has meanwhile stored another scenario.
        other = chromium.new_context(reduced_motion="reduce").new_page()
        other.set_default_timeout(1000 * WITHIN_S)
        other.goto(link)
        other.wait_for_function(
            f"(subject) => {player}?.picture.subject == subject && {player}.time == 3.25", arg=f"run {scenario.hash}"
        )
        assert other.evaluate(f"() => {player}.isOn('links')") is False
        other.close()


def tab_to(hand, beginning, key="Tab"):
    """Press Tab until the focused element's role and name start with a text; fail if that takes too many presses."""
    visited = []
    for _ in range(80):
        hand.keys.press(key)
        visited.append(hand.page.evaluate(FOCUS))
        if visited[-1].startswith(beginning):
            return
    raise AssertionError(f"{key} does not reach {beginning!r}, but {visited}")


def use_keyboard_alone(hand):
    """Use the lab as the start page proposes without a mouse: compare, play, let a node fail, and undo."""
    hand.page.evaluate("() => document.activeElement.blur()")
    tab_to(hand, "select: compare with:")
    hand.keys.type("Flooding")
    hand.sees_run("Flooding on", of=1)
    tab_to(hand, "button: Play")
    before = hand.time()
    hand.keys.press("Space")
    hand.page.wait_for_function(f"(before) => {PLAYERS}[0].time > before", arg=before)
    hand.keys.press("Space")
    tab_to(hand, "select: compare with:")
    hand.keys.type("nothing")
    hand.page.wait_for_function(f"() => {PLAYERS}.length == 1")
    tab_to(hand, "button: Edit the network")
    hand.keys.press("Enter")
    tab_to(hand, "group: Network:")
    hand.keys.press("n")
    tab_to(hand, "button: Let the selected nodes fail", "Shift+Tab")
    hand.keys.press("Enter")
    hand.sees_run("Diffusion on")
    hand.tab("Data")
    hand.sees("off from")


def check_accessibility(hand):
    """Check that no form, nor the player and its editor, violates the accessibility rules."""
    for name in ("Data", "Filters", "Protocol", "Radio and time", "Network"):
        hand.tab(name)
        assert violations(hand.page, ".wb-lab") == []
    hand.press("Edit")
    assert violations(hand.page, ".wb-lab") == []
    hand.press("Watch")

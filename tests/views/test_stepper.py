"""Steppers: a series of drawings as one element, of which a page shows one step at a time."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.images import with_svgs
from workbench.views.drawing import Drawing
from workbench.views.stepper import Stepper, merged


def drawing(words):
    """Return a drawing of some texts below each other, in their order."""
    page = Drawing(200, 20)
    for word in words:
        page.text(10, 15, word)
    return page


def shown_at(groups, step):
    return [element for spans, elements in groups for element in elements if any(a <= step <= b for a, b in spans)]


@given(st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=6))
def test_each_step_shows_its_drawing_in_its_order(pages):
    drawings = [drawing(words) for words in pages]
    groups = merged(drawings)
    for step, step_drawing in enumerate(drawings):
        assert shown_at(groups, step) == step_drawing.elements()


def test_elements_shared_by_neighboring_steps_are_stored_once():
    groups = merged([drawing("abc"), drawing("abxc"), drawing("axc"), drawing("abxc")])
    assert sum(len(elements) for _, elements in groups) == 4
    spans = {re.search(r">(\w)<", element)[1]: shown for shown, elements in groups for element in elements}
    assert spans == {"a": [(0, 3)], "b": [(0, 1), (3, 3)], "x": [(1, 3)], "c": [(0, 3)]}


def test_many_similar_drawings_need_little_more_space_than_one():
    pages = [drawing([f"{i}" for i in range(500) if i % 50 != step]) for step in range(40)]
    whole = Stepper(pages, [f"{i}" for i in range(40)], "step").to_html()
    assert len(whole) < 2 * len(pages[0].to_svg())


def test_drawings_get_the_size_of_the_largest_and_each_has_a_name():
    stepper = Stepper([Drawing(100, 50), Drawing(80, 70)], ["a", "b"], "step")
    assert {(step_drawing.width, step_drawing.height) for step_drawing in stepper.drawings} == {(100, 70)}
    with pytest.raises(wb.ParameterError, match="at least one drawing, and a name for each"):
        Stepper([Drawing(1, 1)], [], "step")


def test_without_scripts_only_the_last_drawing_is_shown():
    text = with_svgs(Stepper([drawing("ab"), drawing("ac")], ["first", "second"], "step").to_html())
    assert "g[hidden]{display:none}" in text
    ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])
    hidden = "".join(re.findall(r'<g [^>]* hidden="">(.*?)</g>', text, re.DOTALL))
    assert ">b<" in hidden and ">c<" not in hidden and ">a<" not in hidden
    assert "wb-steps" not in re.sub("<(script|style)>.*?</", "", text, flags=re.DOTALL)  # no controls
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_focused_controls_suppress_the_shortcuts_of_the_notebook():
    text = Stepper([drawing("a"), drawing("b")], ["a", "b"], "step").to_html()
    focused = re.findall(r"<(?:button|input|div)\b[^>]*>", text)
    controls = [tag for tag in focused if "<div" not in tag or "tabindex" in tag]
    assert len(controls) == 4
    assert all('data-lm-suppress-shortcuts="true"' in tag for tag in controls)


# In a browser


@pytest.fixture
def page(chromium):
    """Yield a page with two steppers, the second of which was added later, as a notebook's outputs are."""
    first = Stepper([drawing("ab"), drawing("ac"), drawing("abd")], ["zero", "o<n>e", "two"], "step")
    second = Stepper([drawing("x"), drawing("y")], ["x", "y"], "letter")
    opened = chromium.new_page()
    complaints = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.set_content(f"<!doctype html><body>{first.to_html()}{second.to_html()}</body>")
    yield opened
    assert complaints == []
    opened.close()


def visible(page, which=0):
    """Return the visible words of a stepper and the name of its step."""
    root = page.locator(".wb-stepper").nth(which)
    words = [text.text_content() for text in root.locator("svg text").all() if text.is_visible()]
    return "".join(words), root.locator("output").text_content()


@pytest.mark.browser
def test_the_slider_the_buttons_and_the_keys_go_from_step_to_step(page):
    root = page.locator(".wb-stepper").first
    assert visible(page) == ("ab", "zero")
    root.get_by_label("next").click()
    assert visible(page) == ("ac", "o<n>e")
    root.locator("input").fill("2")
    assert visible(page) == ("abd", "two")
    root.get_by_label("next").click()
    assert visible(page) == ("abd", "two")  # the last step has no next one
    root.focus()
    page.keyboard.press("ArrowLeft")
    assert visible(page) == ("ac", "o<n>e")
    page.keyboard.press("Home")
    assert visible(page) == ("ab", "zero")
    assert visible(page, 1) == ("x", "x")  # the other stepper on the page does not move


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_stepper_is_light_or_dark_like_its_page(page, scheme):
    def background():
        return page.evaluate("getComputedStyle(document.querySelector('.wb-stepper rect')).fill")

    page.emulate_media(color_scheme=scheme)
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}
    assert background() == colours[scheme]
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")  # the notebook's theme takes precedence
    assert background() == colours["dark"]
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert background() == colours["light"]

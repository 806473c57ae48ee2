"""What all parts wear: their styles, and names for the handles of sliders."""

import pytest

import workbench as wb
from workbench.widgets.skin import Skin, skin

# A slider as ipywidgets makes it, in a field of a part.
PAGE = """
<div class="wb-part"><div class="inner">
  <div class="wb-field"><span title="why">ttl</span><div class="noUi-handle" role="slider"></div></div>
</div><div class="skin"></div></div>
"""
WEAR = """
async (script) => {
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })))
  await module.default.render({ el: document.querySelector(".skin") })
}
"""
NAMES = "() => [...document.querySelectorAll('.noUi-handle')].map((one) => one.getAttribute('aria-label'))"


def test_every_part_wears_the_same_skin_and_takes_none_with_it():
    parts = [
        wb.widgets.Network(),
        wb.widgets.Workload(),
        wb.widgets.Filters(),
        wb.widgets.ProtocolForm(),
        wb.widgets.RadioForm(),
        wb.widgets.RunPanel(),
        wb.widgets.Compare(),
    ]
    assert {sum(child is skin() for child in part.children) for part in parts} == {1}
    worn = skin()
    for part in parts[:5]:
        part.close()
    assert skin() is worn and worn.comm is not None
    assert ".wb-row" in worn._css and ".wb-told" in worn._css


def test_a_skin_that_was_closed_with_all_widgets_is_made_anew():
    before = skin()
    before.close()
    assert skin() is not before and isinstance(skin(), Skin)


@pytest.mark.browser
def test_handles_of_sliders_are_named_also_those_that_come_later(chromium):
    page = chromium.new_page()
    page.set_content(PAGE)
    page.evaluate(WEAR, Skin._esm if isinstance(Skin._esm, str) else str(Skin._esm))
    assert page.evaluate(NAMES) == ["ttl"]
    page.evaluate("() => document.querySelector('.inner').append(document.querySelector('.wb-field').cloneNode(true))")
    page.evaluate("() => document.querySelectorAll('.noUi-handle')[1].removeAttribute('aria-label')")
    page.evaluate("() => document.querySelectorAll('.noUi-handle')[1].parentElement.append('')")
    page.wait_for_function("() => document.querySelectorAll('.noUi-handle[aria-label=ttl]').length == 2")
    page.close()

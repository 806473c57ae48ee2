"""The style sheet of all panels, and accessible names for the handles of sliders."""

import pytest

import workbench as wb
from workbench.widgets.panel import close_all
from workbench.widgets.style_sheet import StyleSheet, shared_style_sheet

# A slider as ipywidgets creates it, in a field of a panel.
PAGE = """
<div class="wb-part"><div class="inner">
  <div class="wb-field"><span title="why">ttl</span><div class="noUi-handle" role="slider"></div></div>
</div><div class="skin"></div></div>
"""
WEAR = """
async (script) => {
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })))
  const model = { get: () => null } // without a layout: nothing is to be let go
  await module.default.render({ model, el: document.querySelector(".skin") })
}
"""
NAMES = "() => [...document.querySelectorAll('.noUi-handle')].map((one) => one.getAttribute('aria-label'))"


PARTS = ("Network", "Workload", "Filters", "ProtocolForm", "RadioForm", "RunPanel", "Compare")


@pytest.mark.parametrize("name", PARTS)
def test_a_single_panel_has_a_style_sheet_that_is_closed_with_it(name):
    part = getattr(wb.widgets, name)()
    (worn,) = (child for child in part.children if isinstance(child, StyleSheet))
    assert ".wb-row" in worn._css and ".wb-told" in worn._css
    close_all(part)
    assert worn.comm is None


def test_panels_of_a_lab_share_its_style_sheet():
    with shared_style_sheet():
        part = wb.widgets.RadioForm()
    assert not any(isinstance(child, StyleSheet) for child in part.children)
    assert any(isinstance(child, StyleSheet) for child in wb.widgets.RadioForm().children)


@pytest.mark.browser
def test_a_logarithmic_slider_announces_its_value(chromium):
    field = next(
        candidate
        for candidate in wb.widgets.RadioForm().fields.values()
        if "wb-logarithm" in candidate._controls[0]._dom_classes
    )
    page = chromium.new_page()
    page.set_content(
        '<div class="wb-part"><div class="wb-field"><span title="why">rate</span><div class="wb-logarithm">'
        '<div class="noUi-handle" role="slider" aria-valuetext="2"></div></div><span class="wb-unit">kb/s</span></div>'
        '<div class="skin"></div></div>'
    )
    page.evaluate(WEAR, StyleSheet().script)
    has_value_text = "(text) => document.querySelector('.noUi-handle').getAttribute('aria-valuetext') === text"
    page.wait_for_function(has_value_text, arg="100 kb/s")
    page.evaluate("() => document.querySelector('.noUi-handle').setAttribute('aria-valuetext', '-0.5')")
    page.wait_for_function(has_value_text, arg="0.316 kb/s")
    assert 10 ** field._controls[0].value == pytest.approx(field.value, rel=0.05)
    page.close()


# Mock objects of ipywidgets' model and view, and of a comm of JupyterLab; another view uses the layout, too.
CLOSED = """
async (script) => {
  const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })))
  class Model {
    comm = { jsServicesComm: { onClose: () => {}, onMsg: () => {} } }
    close() { this.isClosed = true; delete this.comm }
    _handle_comm_closed() {}
  }
  class View { setLayout() {} remove() { this.isRemoved = true; return this } }
  const off = []
  const look = { remove() { this.isRemoved = true; return this }, model: { off: (name) => off.push(name) } }
  const layout = new Model()
  const view = Object.assign(new View(), { layoutPromise: Promise.resolve(look), stylePromise: Promise.resolve() })
  layout.views = { one: Promise.resolve({ options: { parent: view } }) }
  module.default.render({ model: { get: () => layout }, el: document.createElement("div") })
  await new Promise((done) => setTimeout(done, 50))
  const other = new Model()
  const { jsServicesComm } = other.comm
  other.close()
  const removed = view.remove() === view && view.isRemoved
  await new Promise((done) => setTimeout(done, 50))
  return [other.isClosed, jsServicesComm.onClose ?? null, jsServicesComm.onMsg ?? null, removed, look.isRemoved, off]
}
"""


@pytest.mark.browser
def test_closed_widgets_are_released(chromium):
    page = chromium.new_page()
    assert page.evaluate(CLOSED, StyleSheet().script) == [True, None, None, True, True, ["msg:custom"]]
    page.close()


@pytest.mark.browser
def test_handles_of_sliders_added_later_are_named_too(chromium):
    page = chromium.new_page()
    page.set_content(PAGE)
    page.evaluate(WEAR, StyleSheet().script)
    assert page.evaluate(NAMES) == ["ttl"]
    page.evaluate("() => document.querySelector('.inner').append(document.querySelector('.wb-field').cloneNode(true))")
    page.evaluate("() => document.querySelectorAll('.noUi-handle')[1].removeAttribute('aria-label')")
    page.evaluate("() => document.querySelectorAll('.noUi-handle')[1].parentElement.append('')")
    page.wait_for_function("() => document.querySelectorAll('.noUi-handle[aria-label=ttl]').length == 2")
    page.close()

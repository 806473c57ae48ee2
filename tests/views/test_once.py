"""A script that a page loads once: widgets with the same script share its module."""

import pytest

from workbench.views.player.once import LoadedOnce

pytestmark = pytest.mark.browser
# anywidget gives each widget a separate module, made from `_esm`.
SHOWN = """
async ([own, scripts]) => {
  window.loaded = []
  const told = []
  for (const script of scripts) {
    const module = await import(URL.createObjectURL(new Blob([own], { type: "text/javascript" })))
    const model = { get: (name) => ({ script })[name] }
    told.push(await module.default.render({ model, el: null }))
  }
  return [window.loaded, told]
}
"""
SCRIPT = "window.loaded.push('NAME')\nexport default { render: ({ model }) => `NAME ${model.get('script').length}` }"


def test_widgets_with_the_same_script_load_it_once(chromium):
    first, second = SCRIPT.replace("NAME", "one"), SCRIPT.replace("NAME", "other")
    page = chromium.new_page()
    loaded, shown = page.evaluate(SHOWN, [str(LoadedOnce._esm), [first, first, second, first]])
    page.close()
    assert loaded == ["one", "other"]
    assert shown == [f"one {len(first)}"] * 2 + [f"other {len(second)}", f"one {len(first)}"]

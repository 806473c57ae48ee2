"""A script that a page loads once: widgets with the same script share its module."""

import pytest

from workbench.views.player.once import LoadedOnce

pytestmark = pytest.mark.browser
# Each widget of anywidget's has a module of its own, made of `_esm`.
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


def test_script_of_several_widgets_is_loaded_once_and_another_script_is_another(chromium):
    one, other = SCRIPT.replace("NAME", "one"), SCRIPT.replace("NAME", "other")
    page = chromium.new_page()
    loaded, told = page.evaluate(SHOWN, [str(LoadedOnce._esm), [one, one, other, one]])
    page.close()
    assert loaded == ["one", "other"]
    assert told == [f"one {len(one)}"] * 2 + [f"other {len(other)}", f"one {len(one)}"]

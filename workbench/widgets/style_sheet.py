"""An invisible widget with the style sheet of panels. It also gives their sliders names for screen readers.

Each panel contains such a widget, and closes it together with itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import traitlets

from workbench.views.player.embed import browser_file
from workbench.views.player.once import LoadedOnce

_is_shared = False  # whether the panels that are made now share the style sheet of their owner


def read_script(name: str) -> str:
    """Return the text of a script in this folder; ``name``: its file name."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _join_style_sheets() -> str:
    sheets = [path for path in files(__package__).iterdir() if path.name.endswith(".css")]
    return "".join(path.read_text(encoding="utf-8") for path in sorted(sheets, key=lambda path: path.name))


class StyleSheet(LoadedOnce):
    """The styles of all panels.

    Its script names the handles of sliders for screen readers, because ipywidgets does not.
    """

    script = traitlets.Unicode(browser_file("elements.js") + read_script("style_sheet.js")).tag(sync=True)
    _css = _join_style_sheets()


def style_sheets() -> tuple[StyleSheet, ...]:
    """Return a tuple of widgets to add to the children of a panel: a new style sheet.

    Inside `shared_style_sheet`, the tuple is empty, because the widget around the panel has a style sheet.
    """
    if _is_shared:
        return ()
    sheet = StyleSheet()
    sheet.add_class("wb-skin")
    return (sheet,)


@contextmanager
def shared_style_sheet() -> Iterator[None]:
    """Enter a context in which new panels have no style sheet, because the widget around them has one."""
    global _is_shared
    was_shared, _is_shared = _is_shared, True
    try:
        yield
    finally:
        _is_shared = was_shared

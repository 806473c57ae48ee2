"""How parts of the lab look, and what a screen reader calls their sliders: one widget without a face for all parts."""

from __future__ import annotations

from importlib.resources import files

import anywidget

_worn: list[Skin] = []


def _style() -> str:
    sheets = [path for path in files(__package__).iterdir() if path.name.endswith(".css")]
    return "".join(path.read_text(encoding="utf-8") for path in sorted(sheets, key=lambda one: one.name))


class Skin(anywidget.AnyWidget):
    """The styles of all parts. Its script names the handles of sliders, which ipywidgets leaves without a name."""

    _esm = files(__package__).joinpath("skin.js").read_text(encoding="utf-8")
    _css = _style()


def skin() -> Skin:
    """The skin that all parts of this kernel share."""
    if not _worn or _worn[0].comm is None:  # closed with all widgets
        _worn[:] = [Skin()]
        _worn[0].add_class("wb-skin")
    return _worn[0]

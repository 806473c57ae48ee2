"""How parts of the lab look, and what a screen reader calls their sliders: a widget without a face.

It is closed with its part.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

import traitlets

from workbench.views.player.once import LoadedOnce

_is_worn = False  # by whoever makes the parts that are made now


def _style() -> str:
    sheets = [path for path in files(__package__).iterdir() if path.name.endswith(".css")]
    return "".join(path.read_text(encoding="utf-8") for path in sorted(sheets, key=lambda one: one.name))


class Skin(LoadedOnce):
    """The styles of all parts. Its script names the handles of sliders, which ipywidgets leaves without a name."""

    script = traitlets.Unicode(files(__package__).joinpath("skin.js").read_text(encoding="utf-8")).tag(sync=True)
    _css = _style()


def skins() -> tuple[Skin, ...]:
    """What a part puts beside its children: a skin, unless whoever makes it wears one for all (`one_for_all`)."""
    if _is_worn:
        return ()
    made = Skin()
    made.add_class("wb-skin")
    return (made,)


@contextmanager
def one_for_all() -> Iterator[None]:
    """Parts that are made within have no skin of their own."""
    global _is_worn
    before, _is_worn = _is_worn, True
    try:
        yield
    finally:
        _is_worn = before

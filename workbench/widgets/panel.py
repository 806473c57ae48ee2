"""The base class of the lab's panels: widgets that show a value and offer changes of it.

A panel has no state but its value. ``panel.value = x`` shows x, and a change by the user becomes the value;
``panel.observe(f, "value")`` reports changes. So a panel works alone, and the lab consists of panels and one scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.widgets.style_sheet import style_sheets

_shared: dict[str, widgets.Widget] = {}


def shared(name: str, make: Callable[[], widgets.Widget]) -> widgets.Widget:
    """Return a shared layout or style, made once, which must not be changed; it survives the closing of panels.

    Otherwise each widget has a layout and a style of its own. A lab that was opened again in the same cell then sent so
    many messages that Jupyter's server dropped some (``iopub_msg_rate_limit``), and the lab was not drawn.
    """
    if name not in _shared or _shared[name].comm is None:
        _shared[name] = make()
    return _shared[name]


def close_all(widget: widgets.Widget) -> None:
    """Close a widget with all widgets inside, visible or not; closing a box alone leaves its children open."""
    waiting, seen = [widget], {id(widget), *map(id, _shared.values())}
    while waiting:
        current = waiting.pop()
        for inner in _widgets_in(tuple(vars(current).values())):
            if id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
        widgets.Widget.close(current)


def _widgets_in(value: Any) -> Iterator[widgets.Widget]:
    if isinstance(value, widgets.Widget):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _widgets_in(item)


class Panel(widgets.VBox):
    """A widget that shows ``value`` and changes it on the user's input.

    A subclass makes its controls, then calls ``super().__init__(value, children)``. Its ``draw(value)`` updates the
    controls for a value from elsewhere; it calls `offer` with a new value after the user's input. A value is replaced,
    never modified.
    """

    value = traitlets.Any()

    def __init__(self, value: Any, children: tuple[Any, ...] = (), **layout: Any) -> None:
        super().__init__((*children, *style_sheets()), **layout)
        self.add_class("wb-part")
        self._is_offering = self._is_drawing = False
        self.observe(self._show, "value")
        self.value = value

    def close(self) -> None:
        """Close the panel with everything inside."""
        close_all(self)

    def draw(self, value: Any) -> None:
        """Show a value from elsewhere."""
        raise NotImplementedError

    def offer(self, value: Any) -> None:
        """Set a value from the user's input; ignored while a value is drawn, because drawing also changes controls."""
        if self._is_drawing:
            return
        self._is_offering = True
        try:
            self.value = value
        finally:
            self._is_offering = False

    def __repr__(self) -> str:
        """Return a short text; ipywidgets' own would list all widgets inside."""
        return f"{type(self).__name__}({self.value!r:.80})"

    def _show(self, change: Any) -> None:
        if self._is_offering:
            return
        self._is_drawing = True
        try:
            self.draw(change.new)
        finally:
            self._is_drawing = False

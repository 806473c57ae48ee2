"""The base class of the lab's panels: widgets that show a value, which the user can change.

A panel has no state but its value. ``panel.value = x`` shows x. If the user changes something, the panel's value
changes, and functions that were passed to ``panel.observe(f, "value")`` are called. So a panel also works alone, and
the lab consists of panels and one scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.widgets.style_sheet import style_sheets

_shared: dict[str, widgets.Widget] = {}


def shared(name: str, make: Callable[[], widgets.Widget]) -> widgets.Widget:
    """Return the shared layout or style object called ``name``; the first call makes it with ``make()``.

    Callers must not change the object. It stays open when panels are closed. If each widget had a layout and a style
    of its own, a lab that is opened again in the same cell would send too many messages. Jupyter's server would then
    drop some of them (``iopub_msg_rate_limit``), and the lab would not be drawn.
    """
    if name not in _shared or _shared[name].comm is None:
        _shared[name] = make()
    return _shared[name]


def close_all(widget: widgets.Widget) -> None:
    """Close a widget and all widgets inside, visible or not.

    ipywidgets' own ``close()`` of a box leaves its children open.
    """
    open_widgets, seen_ids = [widget], {id(widget), *map(id, _shared.values())}
    while open_widgets:
        open_widget = open_widgets.pop()
        for inner_widget in _widgets_in(tuple(vars(open_widget).values())):
            if id(inner_widget) not in seen_ids:
                seen_ids.add(id(inner_widget))
                open_widgets.append(inner_widget)
        widgets.Widget.close(open_widget)


def _widgets_in(value: Any) -> Iterator[widgets.Widget]:
    if isinstance(value, widgets.Widget):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _widgets_in(item)


class Panel(widgets.VBox):
    """A widget that shows ``value``, which the user can change.

    A subclass makes its controls, then calls ``super().__init__(value, children)``. Its ``draw(value)`` updates the
    controls when the program sets the value. When the user changes something, the subclass calls `offer` with a new
    value. A value is replaced, never modified.
    """

    value = traitlets.Any()

    def __init__(self, value: Any, children: tuple[Any, ...] = (), **layout: Any) -> None:
        super().__init__((*children, *style_sheets()), **layout)
        self.add_class("wb-part")
        self._is_offering = self._is_drawing = False
        self.observe(self._draw_if_set, "value")
        self.value = value

    def close(self) -> None:
        """Close the panel and all widgets inside."""
        close_all(self)

    def draw(self, value: Any) -> None:
        """Update the controls for a value that the program has set."""
        raise NotImplementedError

    def offer(self, value: Any) -> None:
        """Set the panel's value after the user's input.

        Do nothing during `draw` and within `quiet`, because the program then changes the controls, not the user.
        """
        if self._is_drawing:
            return
        self._is_offering = True
        try:
            self.value = value
        finally:
            self._is_offering = False

    def __repr__(self) -> str:
        """Return a short text, because the text of ipywidgets would list all widgets inside."""
        return f"{type(self).__name__}({self.value!r:.80})"

    def _draw_if_set(self, change: Any) -> None:
        if self._is_offering:
            return
        self._is_drawing = True
        try:
            self.draw(change.new)
        finally:
            self._is_drawing = False

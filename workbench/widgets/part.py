"""What all parts of the lab are: widgets that show a value, and offer changes of it.

A part remembers nothing but its value. ``part.value = x`` shows x; what the user changes becomes the value; whoever
wants to know observes it (``part.observe(f, "value")``). So a part stands alone, and the lab is parts and one scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.widgets.skin import skins

_shared: dict[str, widgets.Widget] = {}


def shared(name: str, make: Callable[[], widgets.Widget]) -> widgets.Widget:
    """A layout or a style that all may have, as nobody changes it; it is made once and stays when a part is closed.

    Each widget has two of its own otherwise. A lab that is opened again in the same cell sent so many messages that
    Jupyter's server dropped some (``iopub_msg_rate_limit``), and the lab was not drawn.
    """
    if name not in _shared or _shared[name].comm is None:
        _shared[name] = make()
    return _shared[name]


def close_all(widget: widgets.Widget) -> None:
    """Close a widget and all that it holds, shown or not: a closed box alone leaves its parts open on both sides."""
    waiting, seen = [widget], {id(widget), *map(id, _shared.values())}
    while waiting:
        one = waiting.pop()
        for held in _widgets_in(tuple(vars(one).values())):
            if id(held) not in seen:
                seen.add(id(held))
                waiting.append(held)
        widgets.Widget.close(one)


def _widgets_in(value: Any) -> Iterator[widgets.Widget]:
    if isinstance(value, widgets.Widget):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _widgets_in(one)


class Part(widgets.VBox):
    """A part: ``value`` is what it shows.

    A subclass makes its controls, then calls ``super().__init__(value, children)``. It has ``draw(value)``, which
    brings the controls into line with a value that came from elsewhere, and calls `offer` with a new value when the
    user has made one. A value is replaced and never changed in place.
    """

    value = traitlets.Any()

    def __init__(self, value: Any, children: tuple[Any, ...] = (), **layout: Any) -> None:
        super().__init__((*children, *skins()), **layout)
        self.add_class("wb-part")
        self._is_offering = self._is_drawing = False
        self.observe(self._show, "value")
        self.value = value

    def close(self) -> None:
        """Close it, and all that is in it."""
        close_all(self)

    def draw(self, value: Any) -> None:
        """Show a value that came from elsewhere."""
        raise NotImplementedError

    def offer(self, value: Any) -> None:
        """The user has made a new value. While a value is drawn nothing is offered: controls that move are no user."""
        if self._is_drawing:
            return
        self._is_offering = True
        try:
            self.value = value
        finally:
            self._is_offering = False

    def __repr__(self) -> str:
        """Short: what ipywidgets would write walks through all that is inside."""
        return f"{type(self).__name__}({self.value!r:.80})"

    def _show(self, change: Any) -> None:
        if self._is_offering:
            return
        self._is_drawing = True
        try:
            self.draw(change.new)
        finally:
            self._is_drawing = False

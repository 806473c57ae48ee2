"""A panel with a picture of the node that is selected in the player, for protocols that have such a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets

from workbench.errors import WorkbenchError
from workbench.views.protocols import node_drawing_of
from workbench.widgets.controls import status_html, words
from workbench.widgets.deferred import Deferred

_SELECT = "<p>Click a node in the player: its state at the shown time is drawn here.</p>"


class SelectedNode(widgets.VBox):
    """A picture of the state of one node at one time, drawn in a background thread while the panel is visible.

    The run's protocol draws the picture (`workbench.views.protocols.node_drawing_of`). `wait` waits for the picture.
    """

    def __init__(self) -> None:
        self._picture = words(_SELECT)
        self._subject: tuple[Any, Any, Any] = (None, None, None)
        self._is_seen = False
        self._deferred = Deferred()
        super().__init__((self._picture,))

    @property
    def is_seen(self) -> bool:
        """True if the panel is visible."""
        return self._is_seen

    @is_seen.setter
    def is_seen(self, is_seen: bool) -> None:
        self._is_seen = is_seen
        self._draw_soon()

    def show(self, run: Any, selection: Mapping[str, Any]) -> None:
        """Show the state of the node at the time that the user selected in the player.

        ``selection``: a mapping with the keys ``node`` and ``time_s``.
        """
        subject = (run, selection.get("node"), selection.get("time_s"))
        if subject != self._subject:
            self._subject = subject
            self._draw_soon()

    def cancel(self) -> None:
        """Stop drawing, because a newer run is in progress."""
        self._deferred.cancel()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the picture; return False on timeout."""
        return self._deferred.wait(timeout_s)

    def _draw_soon(self) -> None:
        run, node, time_s = self._subject
        if not self._is_seen or run is None:
            return
        draw = node_drawing_of(run.scenario.protocol)
        if draw is None or node is None or node < 0:
            self._picture.value = _SELECT
            return

        def work(check: Callable[[], None]) -> None:
            try:
                picture = draw(run, node, time_s).to_html()
            except WorkbenchError as error:
                picture = status_html(str(error), is_error=True)
            check()
            self._picture.value = picture

        self._deferred.submit(work)

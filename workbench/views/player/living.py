"""A player that is created once and can then show other runs.

    view = PlayerView(run)      shown as the last line of a cell, or with display(view)
    view.feed(other_run)        the same player shows another run

Theory of operation
    The player is an HTML output that contains its run, so it works in a reopened notebook without a kernel. An
    invisible widget beside it, the wire, finds the player in the page, passes each new payload to the player as one
    binary buffer, and reports the user's selection. In a layout of ipywidgets no HTML output exists; there the wire is
    visible and is itself the player.

Limits
    A notebook that was saved and reopened plays the run that the view was first shown with, not the latest one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import traitlets

from workbench.keywords import checked
from workbench.views.player.dissections import dissect_around, note
from workbench.views.player.embed import browser_file, module, new_id, player_html
from workbench.views.player.once import LoadedOnce
from workbench.views.player.payload import pack, preview
from workbench.views.seeing import LayerBuilder, see

LARGE = 20_000  # rows of a trace; a shorter run is sent whole, as that is as quick as a preview

# Hides the wire's output below the player's, in which a notebook without a kernel would show an error.
_HIDE_WIRE = ".jp-OutputArea-child:has([data-workbench].wb-living) + .jp-OutputArea-child { display: none; }"


class Wire(LoadedOnce):
    """The widget that passes runs to a player.

    payload: the run to show, as bytes from `payload.pack` or `payload.preview`.
    selection: the user's selection: node, row (of a frame in the trace) and time_s.
    clock: name of a playback clock. Players with the same name show the same time. "" means that the
        player has its own clock.
    holder: id of the HTML element in which the player is.
    dissected: frames of the run in the last payload, with their bytes and fields (see `dissections`).
    """

    script = traitlets.Unicode(module() + browser_file("wire.js")).tag(sync=True)
    payload = traitlets.Bytes().tag(sync=True)
    holder = traitlets.Unicode().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    clock = traitlets.Unicode().tag(sync=True)
    dissected = traitlets.Dict().tag(sync=True)


@checked
class PlayerView:
    """A player that is shown once; `feed` then shows other runs in it.

    run: the run to show first. event: show only this event, given as (origin, sequence); None: all events. live: for a
    run in progress, its current time (``now_s``) and sentences about problems (``notes``).

    The attribute ``wire`` is the widget to use in a layout of ipywidgets.
    """

    def __init__(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        self.run = run
        self._pending_builder: LayerBuilder | None = None
        self._lock = threading.RLock()  # guards the run and its dissected frames, which another thread sets
        self.wire = Wire(payload=pack(see(run, event), **live))

    def __repr__(self) -> str:
        return f"PlayerView({self.run.scenario!r})"

    def feed(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        """Replace the run that this player shows. Raises ScenarioError if the new run has no trace.

        ``event``: show only this event, given as (origin, sequence); None: all events. ``live``: for a run in progress,
        its current time (``now_s``) and sentences about problems (``notes``).
        """
        self.preview(run, event, **live)
        self.complete()

    def preview(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        """Show another run at the time that the player displays now; `complete` then sends the whole run.

        The whole run is sent at once if it is small or in progress, or if no browser shows the player. ``event``: show
        only this event, given as (origin, sequence). ``live``: for a run in progress, its current time (``now_s``) and
        sentences about problems (``notes``).
        """
        builder, time_s = LayerBuilder(run, event), self.wire.selection.get("time_s")
        if time_s is None or live or run.trace.num_rows < LARGE:
            payload, pending = pack(builder.whole(), **live), None
        else:
            payload, pending = preview(builder.preview(), time_s), builder
        with self._lock, self.wire.hold_sync():
            self.run, self._pending_builder = run, pending
            self.wire.dissected, self.wire.payload = {}, payload

    def complete(self) -> None:
        """Show the whole run if `preview` has shown only one moment of it; otherwise do nothing."""
        builder, self._pending_builder = self._pending_builder, None
        if builder is not None:
            self.wire.payload = pack(builder.whole())

    def dissect(self, row: int, check_cancelled: Callable[[], None] = lambda: None) -> None:
        """Show the bytes of the frame in row number ``row`` of the trace, and fetch the bytes of frames near it.

        If the bytes were not fetched before, the run is executed again. Meanwhile ``check_cancelled()`` is called
        repeatedly; it ends the work by raising an exception.
        """
        run = self.run
        if row in self.wire.dissected.get("at", ()):
            return
        if run.trace.num_rows >= LARGE:
            self._show_bytes(run, note("The run is executed again to get the bytes of this message."))
        dissected = dissect_around(run, row, check_cancelled)
        check_cancelled()
        self._show_bytes(run, dissected)

    def _show_bytes(self, run: Any, dissected: dict[str, Any]) -> None:
        """Show the dissected frames of ``run``, unless the player now shows another run."""
        with self._lock:
            if run is self.run:
                self.wire.dissected = dissected

    @property
    def selection(self) -> dict[str, Any]:
        """The user's selection in the browser: node, row (of a frame in the trace) and time_s; each may be None."""
        return dict(self.wire.selection)

    def close(self) -> None:
        """Close the connection to the browser. The player remains in the page."""
        self._pending_builder = None
        self.wire.close()

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        name = new_id()
        self.wire.holder = name
        page = player_html(self.wire.payload, name).replace("<div data-", '<div class="wb-living" data-', 1)
        display(HTML(f"<style>{_HIDE_WIRE}</style>{page}"))
        display(self.wire)

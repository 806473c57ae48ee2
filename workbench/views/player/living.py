"""The living view: a player that is made once and fed runs.

    view = PlayerView(run)      shown as the last line of a cell, or with display(view)
    view.feed(other_run)        the same player shows another run; nothing is made anew

Theory of operation
    The player itself is an HTML output that carries its run, so a notebook that is opened again plays without a kernel.
    Beside it goes a widget without a face, the wire: it finds the player in the page, hands it each new parcel as one
    binary buffer, and tells what is selected. In a layout of widgets there is no HTML output to find; there the wire
    has a face and is the player.

Limits
    A notebook that was saved and opened again plays the run that the view was shown with, not the one fed last.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import traitlets

from workbench.keywords import checked
from workbench.views.player.dissections import note, told_around
from workbench.views.player.embed import module, new_id, part, player_html
from workbench.views.player.once import LoadedOnce
from workbench.views.player.parcel import glimpse, pack
from workbench.views.seeing import Sight, see

LARGE = 20_000  # rows of a trace: a run of fewer is sent as quickly as a picture of it

# The output below the player's is the wire's, which has no face; without a kernel there would be an error in its place.
_NO_FACE = ".jp-OutputArea-child:has([data-workbench].wb-living) + .jp-OutputArea-child { display: none; }"


class Wire(LoadedOnce):
    """The widget that feeds a player.

    ``selection``: what is picked: node (its number), row (of the trace: a frame), time_s. ``clock``: players of one
    name show the same time; "" is a clock of its own. ``told``: frames taken apart (`dissections`), of the run of the
    last parcel.
    """

    script = traitlets.Unicode(module() + part("wire.js")).tag(sync=True)
    parcel = traitlets.Bytes().tag(sync=True)
    holder = traitlets.Unicode().tag(sync=True)
    selection = traitlets.Dict().tag(sync=True)
    clock = traitlets.Unicode().tag(sync=True)
    told = traitlets.Dict().tag(sync=True)


@checked
class PlayerView:
    """A player of runs that stays: show it once, `feed` it runs.

    run: the first one; event: as in `workbench.views.show`; live: of a run that goes on, ``now_s``, how far it has
    come, and ``notes``, what went wrong. ``wire`` is the view's widget, for layouts of ipywidgets.
    """

    def __init__(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        self.run = run
        self._coming: Sight | None = None
        self._replacing = threading.RLock()  # bytes come from another thread, and belong to one run
        self.wire = Wire(parcel=pack(see(run, event), **live))

    def __repr__(self) -> str:
        return f"PlayerView({self.run.scenario!r})"

    def feed(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        """Show another run in the same player. ScenarioError if it kept no trace."""
        self.glimpse(run, event, **live)
        self.complete()

    def glimpse(self, run: Any, event: tuple[int, int] | None = None, **live: Any) -> None:
        """Show of another run what is to be seen at the time that the player shows; `complete` sends the rest.

        A run that is small or goes on is shown whole, and so is one whose player no browser shows.
        """
        sight, time_s = Sight(run, event), self.wire.selection.get("time_s")
        if time_s is None or live or run.trace.num_rows < LARGE:
            parcel, coming = pack(sight.whole(), **live), None
        else:
            parcel, coming = glimpse(sight.glance(), time_s), sight
        with self._replacing, self.wire.hold_sync():
            self.run, self._coming = run, coming
            self.wire.told, self.wire.parcel = {}, parcel

    def complete(self) -> None:
        """Show the whole run of which a glimpse is shown; nothing if it is shown already."""
        sight, self._coming = self._coming, None
        if sight is not None:
            self.wire.parcel = pack(sight.whole())

    def dissect(self, row: int, look: Callable[[], None] = lambda: None) -> None:
        """Show the bytes of a message, by its row of the trace, and have those of the ones around it at hand.

        The run is played once more for them, unless they are at hand already; ``look`` is called now and then
        meanwhile, and what it raises ends it.
        """
        run = self.run
        if row in self.wire.told.get("at", ()):
            return
        if run.trace.num_rows >= LARGE:
            self._tell(run, note("The run is played once more for the bytes of this message."))
        told = told_around(run, row, look)
        look()
        self._tell(run, told)

    def _tell(self, run: Any, told: dict[str, Any]) -> None:
        """Show this of a message's bytes, unless another run is shown by now."""
        with self._replacing:
            if run is self.run:
                self.wire.told = told

    @property
    def selection(self) -> dict[str, Any]:
        """What is picked in the browser: node, row (of the trace: a frame), time_s; None where nothing is."""
        return dict(self.wire.selection)

    def close(self) -> None:
        """End the connection to the browser; the player stays as it is."""
        self._coming = None
        self.wire.close()

    def _ipython_display_(self) -> None:
        from IPython.display import HTML, display

        name = new_id()
        self.wire.holder = name
        page = player_html(self.wire.parcel, name).replace("<div data-", '<div class="wb-living" data-', 1)
        display(HTML(f"<style>{_NO_FACE}</style>{page}"))
        display(self.wire)

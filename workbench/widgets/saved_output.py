"""The part of a lab that saved notebooks and exported pages show: its player, its metrics and its scenario.

A lab has two outputs. The first is HTML that needs no kernel; a page with the live lab hides it. The second is the live
lab. A reopened notebook without a kernel shows the HTML; the error message of the live lab is hidden.

The HTML is replaced a moment after a run. So it is sent once after a slider has moved, not at every step of the slider.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.views import caption
from workbench.views.player.embed import player_html
from workbench.views.player.payload import pack
from workbench.views.rich import folded_metrics
from workbench.views.seeing import see

MOST_ROWS = 20_000  # rows of a trace; a longer run is not stored in the notebook
_PATIENCE_S = 2.0
_STYLE = """<style>
.jp-OutputArea-child:has(.wb-saved):has(+ .jp-OutputArea-child .wb-lab) { display: none; }
.jp-OutputArea-child:has(.wb-saved) + .jp-OutputArea-child:not(:has(.wb-lab)) { display: none; }
</style>"""


class SavedOutput:
    """The HTML of a lab, displayed once and updated after each run."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._timer: threading.Timer | None = None
        self._runs: tuple[Any, ...] = ()

    def display(self, runs: Sequence[Any]) -> None:
        """Display the HTML of these runs below the present cell."""
        from IPython.display import HTML, display

        self._runs = tuple(runs)
        self._handle = display(HTML(saved_html(self._runs)), display_id=True)

    def update(self, runs: Sequence[Any]) -> None:
        """Replace the HTML by the HTML of other runs, after a short delay."""
        self._runs = tuple(runs)
        if self._handle is not None and self._timer is None:
            self._timer = threading.Timer(_PATIENCE_S, self.flush)
            self._timer.daemon = True
            self._timer.start()

    def flush(self) -> None:
        """Replace the displayed HTML now, if `update` has not replaced it yet."""
        from IPython.display import HTML

        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._handle.update(HTML(saved_html(self._runs)))


def saved_html(runs: Sequence[Any]) -> str:
    """Return the HTML of a lab: a player and metrics of each run, and how to open the lab.

    ``runs``: one run, or two runs that are compared. A long run has no player.
    """
    run_htmls = [_run_html(run) for run in runs]
    return (
        f"{_STYLE}<div class='wb-saved'>{''.join(run_htmls)}<p>Run this cell to open the lab and change it.</p></div>"
    )


def _run_html(run: Any) -> str:
    try:
        is_small = run.trace.num_rows <= MOST_ROWS
        player = player_html(pack(see(run))) if is_small else "<p>The run is too long to be stored here.</p>"
        facts = " · ".join(
            caption_text for caption_text in (caption.workload(run), caption.conditions(run)) if caption_text
        )
        return f"{player}<p>{html.escape(facts)}</p>{folded_metrics(run)}"
    except WorkbenchError as error:
        return f"<p>{html.escape(str(error))}</p>"

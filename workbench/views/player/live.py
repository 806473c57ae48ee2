"""``run.show()`` of a run on motes while it goes on: the player, fed with what has happened every second.

It shows the newest moment until somebody moves its time, and in the end it is the player of the whole run. Shown again,
the run has a second player, fed by the same thread. Where there is no notebook, the end is waited for.
"""

from __future__ import annotations

import contextvars
import sys
import threading
import time
from typing import Any
from weakref import WeakKeyDictionary

from workbench.views import notebook

EVERY_S = 1.0
MOST_NOTES = 5

_views: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # run -> its players


def show(run: Any) -> None:
    """Follow it while it goes on; then the player, as for any run."""
    if run.is_running:
        show_live(run)
        return
    if run.error is not None:
        print(run.notes[-1], file=sys.stderr)
    notebook.show(run)


def show_live(run: Any) -> None:
    """Follow a run below the cell, without blocking it; outside of a notebook wait for its end and write its page."""
    if not notebook.in_notebook():
        run.wait()
        notebook.show(run)
        return
    from IPython.display import display

    from workbench.views.player.living import PlayerView

    view = PlayerView(run.so_far(), now_s=run.now_s, notes=_notes(run))
    display(view)
    known = _views.setdefault(run, [])
    known.append(view)
    if len(known) > 1:
        return
    # The thread belongs to the cell that asked: what it sends goes there, whatever is executed meanwhile.
    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(_follow, run), name="show", daemon=True).start()


def _notes(run: Any) -> list[str]:
    """What went wrong, and whether that ended the run."""
    ended = [f"The run ended early, at {run.now_s:g} s."] if not run.is_running and run.error is not None else []
    return [*ended, *(f"{note}." for note in run.notes[-MOST_NOTES:])]


def _follow(run: Any) -> None:
    while run.is_running:
        began_s = time.perf_counter()
        _feed(run, run.now_s)
        took_s = time.perf_counter() - began_s
        time.sleep(max(EVERY_S - took_s, took_s))  # Half of the time at most goes into drawing.
    _feed(run, None)


def _feed(run: Any, now_s: float | None) -> None:
    """Feed all players of a run; what goes wrong is told once, so that the picture does not just stop."""
    so_far = run.so_far()
    for view in list(_views[run]):
        try:
            view.feed(so_far, now_s=now_s, notes=_notes(run))
        except Exception as error:
            print(f"the run cannot be drawn any more: {error!r}", file=sys.stderr)
            _views[run].remove(view)

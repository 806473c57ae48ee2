"""``run.show()`` of a run on motes while it goes on: the network as it is now, drawn anew every second.

The picture is the still of `figure`, so it costs the same and looks the same; when the run has ended it stays as it
was at the end, and ``run.show()`` then is the player. Shown again, the same picture stands in both places, drawn once.
Where there is no notebook, the end is waited for.
"""

from __future__ import annotations

import contextvars
import html
import threading
import time
from typing import Any
from weakref import WeakKeyDictionary

from workbench.views.figure import network_drawing
from workbench.views.notebook import in_notebook, show

EVERY_S = 1.0
_COUNTED = ("sent", "received", "lost", "delivered", "dropped", "failed", "recovered")
_NOTES = 5

_displays: WeakKeyDictionary[Any, str] = WeakKeyDictionary()  # run -> the display that is kept up to date


def show_live(run: Any) -> None:
    """Follow a run below the cell, without blocking it; outside of a notebook wait for its end and write its page."""
    if not in_notebook():
        run.wait()
        show(run)
        return
    from IPython.display import HTML, display

    if run in _displays:
        display(HTML(_page(run)), display_id=_displays[run])
        return
    handle = display(HTML(_page(run)), display_id=True)
    _displays[run] = handle.display_id
    # The thread belongs to the cell that asked: its updates go there, whatever is executed meanwhile.
    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(_follow, run, handle, HTML), name="show", daemon=True).start()


def _follow(run: Any, handle: Any, wrap: Any) -> None:
    while run.is_running:
        began_s = time.perf_counter()
        handle.update(wrap(_page(run)))
        took_s = time.perf_counter() - began_s
        time.sleep(max(EVERY_S - took_s, took_s))  # Half of the time at most goes into drawing.
    handle.update(wrap(_page(run)))


def _page(run: Any) -> str:
    """What is shown; if it cannot be drawn now, why not, so that the picture does not just stop."""
    try:
        return _drawn(run)
    except Exception as error:
        return f'<div style="color:#a33">{html.escape(f"the run cannot be drawn: {error!r}")}</div>'


def _drawn(run: Any) -> str:
    """A line of what was counted, the network, and what went wrong."""
    so_far = run.so_far()
    events = so_far.trace.column("event").value_counts().to_pylist()
    counts = {entry["values"]: entry["counts"] for entry in events}
    counted = " · ".join(f"{counts[name]:,} {name}" for name in _COUNTED if counts.get(name))
    state = f"{run.now_s:.0f} of {run.scenario.duration_s:g} s"
    if not run.is_running:
        state = f"ended at {run.now_s:g} s" if run.error is None else f"ended early, at {run.now_s:g} s"
        state += "; run.show() plays it"
    notes = "".join(f"<div>{html.escape(note)}</div>" for note in run.notes[-_NOTES:])
    picture = network_drawing(so_far, run.now_s).to_svg()
    return f'<div style="font-size:13px"><b>{state}</b> {counted}</div>{picture}<div style="color:#a33">{notes}</div>'

"""``run.show()``: the player below a notebook's cell, or a page where there is no notebook.

What is displayed is HTML that stands by itself (`player.embed`): it plays in a notebook that is opened again without a
kernel, and in what is exported of it.

A run on motes is followed while it goes on (`show_live`): a thread feeds its players every second. A player shows the
newest moment until its time is moved, and in the end it is the player of the whole run.
"""

from __future__ import annotations

import contextvars
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary


def show(run: Any, event: tuple[int, int] | None = None) -> None:
    """Display the player of a run in a notebook; elsewhere write it as a page and say where.

    ``event``, (origin, sequence), leaves out what is about other events. Raises ScenarioError if the run kept no trace,
    ParameterError if it has no such event.
    """
    if not in_notebook():
        write_page(run, event=event)
        return
    from IPython.display import HTML, display

    from workbench.views.player.embed import player_html
    from workbench.views.player.parcel import pack
    from workbench.views.seeing import see

    display(HTML(player_html(pack(see(run, event), few_bytes(run)))))


def few_bytes(run: Any) -> Any:
    """The run's first frames taken apart, if that costs next to nothing: of small runs."""
    from workbench.views.player.dissections import told

    return told(run, quick=True)


def in_notebook() -> bool:
    """Whether there is a notebook to display in."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def write_page(run: Any, name: str = "", **parts: Any) -> None:
    """Write a page with the run and say where; ``name`` is part of the file's name, ``parts`` are as in `save_html`.

    It goes into the folder out, where there is one, else into a new folder that is the user's alone: everybody may put
    files and links into the folder for temporary files, under names that can be known beforehand.
    """
    from workbench.views.export import save_html

    folder = Path("out") if Path("out").is_dir() else Path(tempfile.mkdtemp(prefix="workbench-"))
    digest = str(getattr(run.scenario, "hash", "run"))[:12]
    path = save_html(run, folder / "-".join(filter(None, ("workbench", name, f"{digest}.html"))), **parts)
    print(f"wrote {path}; open it in a browser")


# A run on motes

EVERY_S = 1.0
MOST_NOTES = 5

_views: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # run -> its players


def show_motes(run: Any) -> None:
    """Follow a run on motes while it goes on; then show the player, as for any run."""
    if run.is_running:
        show_live(run)
        return
    if run.error is not None:
        print(run.notes[-1], file=sys.stderr)
    show(run)


def show_live(run: Any) -> None:
    """Follow a run below the cell, without blocking it; outside of a notebook wait for its end and write its page."""
    if not in_notebook():
        run.wait()
        show(run)
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

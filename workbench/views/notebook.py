"""``run.show()``: the player below a notebook's cell, or a page outside of a notebook.

The output is self-contained HTML (`player.embed`). So the player also works in a notebook that is reopened without a
kernel, and in exports of the notebook.

A run on motes is shown while it is in progress (`show_live`): a thread sends its newest state to its players every
second. A player follows the newest moment until the user selects another time. At the end it plays the whole run.
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
    """Display the player of a run in a notebook; outside a notebook, write it as a page and print its path.

    ``event``: show only this event, given as (origin, sequence). Raises ScenarioError if the run has no trace,
    ParameterError if it does not have the event.
    """
    if not in_notebook():
        write_page(run, event=event)
        return
    from IPython.display import display

    from workbench.views.player.embed import player_html
    from workbench.views.player.payload import pack
    from workbench.views.seeing import see

    display(ShownRun(run, event, player_html(pack(see(run, event), dissect_if_small(run)))))


class ShownRun:
    """The output of ``run.show()`` in a notebook; ``html`` is the player as HTML.

    ``event``: the only event that the player shows, given as (origin, sequence); None: all events.
    """

    def __init__(self, run: Any, event: tuple[int, int] | None, html: str) -> None:
        self.run, self.event, self.html = run, event, html

    def __repr__(self) -> str:
        return f"<player of {self.run!r}>"

    def _repr_html_(self) -> str:
        return self.html


def dissect_if_small(run: Any) -> Any:
    """Return the bytes and fields of the first frames of a run, as `dissect_first` does.

    For a large run, return only a note on how to get them.
    """
    from workbench.views.player.dissections import dissect_first

    return dissect_first(run, quick=True)


def in_notebook() -> bool:
    """Return whether the code runs in a notebook, where output can be displayed."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def write_page(run: Any, name: str = "", **parts: Any) -> None:
    """Write a page with the player of a run and print its path.

    ``name``: text to include in the file name. ``parts``: keyword arguments of `save_html`. The page goes into the
    folder ``out`` if it exists, else into a new private folder. The common folder for temporary files would be unsafe:
    other users could create files or links there under a predictable name.
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
    """Show a run on motes: live while it is in progress, afterwards as any other run."""
    if run.is_running:
        show_live(run)
        return
    if run.error is not None:
        print(run.notes[-1], file=sys.stderr)
    show(run)


def show_live(run: Any) -> None:
    """Show a run below the cell while it is in progress, without blocking the notebook.

    Outside a notebook, wait for the end of the run, write the run as a page, and print its path.
    """
    if not in_notebook():
        run.wait()
        show(run)
        return
    from IPython.display import display

    from workbench.views.player.living import PlayerView

    view = PlayerView(run.so_far(), now_s=run.now_s, notes=_problem_sentences(run))
    display(view)
    players = _views.setdefault(run, [])
    players.append(view)
    if len(players) > 1:
        return
    # Output of the thread belongs to the cell that started it, whichever cell is running.
    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(_follow_run, run), name="show", daemon=True).start()


def _problem_sentences(run: Any) -> list[str]:
    """Return the newest problems of a run on motes as sentences, at most `MOST_NOTES`.

    If the run ended early, the list begins with a further sentence that states when.
    """
    end_sentences = (
        [f"The run ended early, at {run.now_s:g} s."] if not run.is_running and run.error is not None else []
    )
    return [*end_sentences, *(f"{note}." for note in run.notes[-MOST_NOTES:])]


def _follow_run(run: Any) -> None:
    while run.is_running:
        began_s = time.perf_counter()
        _update_players(run, run.now_s)
        took_s = time.perf_counter() - began_s
        time.sleep(max(EVERY_S - took_s, took_s))  # Drawing takes at most half of the time.
    _update_players(run, None)


def _update_players(run: Any, now_s: float | None) -> None:
    """Send the run's newest state to all players of this run.

    If updating a player fails, print the error and never update this player again.

    ``now_s``: the current time of a run in progress; None after its end.
    """
    so_far = run.so_far()
    for view in list(_views[run]):
        try:
            view.feed(so_far, now_s=now_s, notes=_problem_sentences(run))
        except Exception as error:
            print(f"the player is no longer updated: drawing the run raised {error!r}", file=sys.stderr)
            _views[run].remove(view)

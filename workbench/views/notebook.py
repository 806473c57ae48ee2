"""``run.show()``: the player below a notebook's cell, or a page where there is no notebook.

What is displayed is HTML that stands by itself (`player.embed`): it plays in a notebook that is opened again without a
kernel, and in what is exported of it.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any


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
    from workbench.views.player.taken_apart import told

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

"""``run.show()``: the player below a notebook's cell, or a page where there is no notebook.

BokehJS is sent inline, as nothing may come from the network, and once per kernel, as it is more than a megabyte. The
cell that carries it carries it again when it is run again: else a notebook that is saved after that would reopen blank.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from workbench.views import caption, rich

COMPONENTS = ("bokeh", "bokeh-widgets")


def show(run: Any, event: tuple[int, int] | None = None) -> None:
    """Display the player of a run in a notebook; elsewhere write it as a page and say where.

    ``event``, (origin, sequence), leaves out what is about other events.
    """
    if not in_notebook():
        write_page(run, event=event)
        return
    from workbench.views.player.network import network_figure

    display(network_figure(run, event), rich.picture_png(run), caption.title(run))


def in_notebook() -> bool:
    """Whether there is a notebook to display in."""
    return _shell() is not None


def _shell() -> Any:
    """IPython's shell if it runs in a kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


def write_page(run: Any, name: str = "", **parts: Any) -> None:
    """Write a page with the run and say where; ``name`` is part of the file's name, ``parts`` are as in `save_html`."""
    from workbench.views.export import save_html

    folder = Path("out") if Path("out").is_dir() else Path(tempfile.gettempdir())
    digest = str(getattr(run.scenario, "hash", "run"))[:12]
    path = save_html(run, folder / "-".join(filter(None, ("workbench", name, f"{digest}.html"))), **parts)
    print(f"wrote {path}; open it in a browser")


_carrier: dict[int, str | None] = {}  # shell -> the cell that carries BokehJS


def display(layout: Any, still: bytes | None, title: str) -> None:
    """Display a Bokeh layout below the notebook's cell. ``still``, a PNG, is there for where scripts are not trusted.

    Only where there is a notebook (`in_notebook`).
    """
    from bokeh.embed.notebook import notebook_content
    from bokeh.io.notebook import EXEC_MIME_TYPE, JS_MIME_TYPE, publish_display_data
    from bokeh.io.output import output_notebook
    from bokeh.resources import Resources

    shell = _shell()
    cell = _cell(shell)
    if id(shell) not in _carrier or (cell is not None and _carrier[id(shell)] == cell):
        _carrier[id(shell)] = cell
        output_notebook(Resources(mode="inline", components=list(COMPONENTS)), hide_banner=True)
    script, division, document = notebook_content(layout)
    publish_display_data({"text/html": division})
    publish_display_data(
        {JS_MIME_TYPE: script, EXEC_MIME_TYPE: "", "image/png": still, "text/plain": title},
        metadata={EXEC_MIME_TYPE: {"id": document.roots[0].id}},
    )


def _cell(shell: Any) -> str | None:
    """The cell that is being run, as the front end names it."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    cell = (parent.get("metadata") or {}).get("cellId")
    return str(cell) if cell else None

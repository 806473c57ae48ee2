"""A panel to save a scenario and its run: as files, or as lines of Python for a notebook cell.

Files are made on request and offered as links in the page. So the browser saves them on the user's machine, even if the
kernel runs on another one.
"""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.errors import WorkbenchError
from workbench.records import record
from workbench.sim.python_lines import python_lines
from workbench.views.export import save_html
from workbench.views.figure import network_drawing
from workbench.widgets.controls import error_html, words
from workbench.widgets.page_link import PageLink

LARGEST_B = 60_000_000  # bytes of a file behind a link; browsers reject longer links
_KINDS: dict[str, tuple[str, str]] = {
    "scenario (JSON)": ("scenario.json", "application/json"),
    "figure (SVG)": ("figure.svg", "image/svg+xml"),
    "figure (PDF)": ("figure.pdf", "application/pdf"),
    "figure (PNG)": ("figure.png", "image/png"),
    "run (Parquet)": ("trace.parquet", "application/octet-stream"),
    "page that plays": ("run.html", "text/html"),
}


class TakeAway(widgets.VBox):
    """Buttons that save the present run in a file of each format, or as lines of Python.

    ``run()`` returns the present run, or None before the first run. ``time_s()`` returns the time at which figures
    show the network; None means the end of the run. ``page_link`` shows links to the scenario; if it is None, the
    panel has no button for a link.
    """

    def __init__(
        self,
        run: Callable[[], Any],
        time_s: Callable[[], float | None] = lambda: None,
        page_link: PageLink | None = None,
    ) -> None:
        self._run, self._time_s, self._page_link = run, time_s, page_link
        self.link = words()
        self.lines = widgets.Textarea(disabled=False, rows=10, layout={"width": "100%", "display": "none"})
        self.lines.add_class("wb-lines-of-python")
        buttons = []
        for kind in _KINDS:
            button = widgets.Button(description=kind, layout={"width": "auto"})
            button.on_click(lambda _, kind=kind: self.offer(kind))
            buttons.append(button)
        python_button = widgets.Button(description="Python, in a new cell", layout={"width": "auto"})
        python_button.on_click(lambda _: self.offer_python())
        buttons.append(python_button)
        if page_link is not None:
            link_button = widgets.Button(description="link", layout={"width": "auto"})
            link_button.tooltip = (
                "A link with this scenario and the displayed time; another computer needs the app too (make app)"
            )
            link_button.on_click(lambda _: self.offer_link())
            buttons.append(link_button)
        rows: list[widgets.Widget] = [widgets.HBox(buttons, layout={"flex_flow": "row wrap"}), self.link, self.lines]
        super().__init__(rows if page_link is None else [*rows, page_link])

    def offer(self, kind: str) -> None:
        """Make a file of the run and show a link to it. ``kind``: label of its button, such as "figure (SVG)"."""
        name, mime = _KINDS[kind]
        run = self._run()
        if run is None:
            self._show_message("Run the scenario first; then it can be saved.")
            return
        try:
            file_bytes = self.data(kind, run)
        except (WorkbenchError, OSError) as error:
            self._show_message(str(error))
            return
        if len(file_bytes) > LARGEST_B:
            self._show_message(
                f"{name} has {len(file_bytes) / 1e6:,.0f} MB, too much for a link; run.save(folder) writes it."
            )
            return
        url = f"data:{mime};base64,{base64.b64encode(file_bytes).decode()}"
        size_text = f"{len(file_bytes) / 1000:,.0f} KB" if len(file_bytes) >= 1000 else f"{len(file_bytes)} B"
        self.link.value = f"<a class='wb-take' download='{name}' href='{url}'>Save {name}</a> ({size_text})"

    def data(self, kind: str, run: Any) -> bytes:
        """Return the content of a file of a kind, such as "figure (SVG)" (a key of `_KINDS`)."""
        name = _KINDS[kind][0]
        if name == "scenario.json":
            return run.scenario.to_json().encode()
        if name == "figure.svg":
            return network_drawing(run, self._time_s()).to_svg().encode()
        if name == "figure.pdf":
            return network_drawing(run, self._time_s()).to_pdf()
        if name == "figure.png":
            return network_drawing(run, self._time_s()).to_png()
        if name == "run.html":
            with tempfile.TemporaryDirectory() as folder:
                return save_html(run, Path(folder) / name).read_bytes()
        file = io.BytesIO()
        record.write_trace(run, file)
        return file.getvalue()

    def offer_python(self) -> None:
        """Show the scenario as lines of Python, and insert them in a new cell if the front end has cells."""
        run = self._run()
        if run is None:
            self._show_message("Run the scenario first; then it can be saved.")
            return
        python_text = f"import workbench as wb\n\n{python_lines(run.scenario)}run = scenario.run()\nrun.show()"
        self.lines.value = python_text
        self.lines.layout.display = ""
        self.link.value = ""
        insert_cell(python_text)

    def offer_link(self) -> None:
        """Show a link to the present scenario and moment, or an error if the scenario is too large for a link."""
        run = self._run()
        if run is None or self._page_link is None:
            self._show_message("Run the scenario first; then there is a link to it.")
            return
        self.link.value = ""
        try:
            self._page_link.offer(run.scenario)
        except WorkbenchError as error:
            self._show_message(str(error))

    def _show_message(self, sentence: str) -> None:
        self.link.value = error_html(sentence)


_front_ends: list[Any] = []  # one is enough for all labs of a kernel


def insert_cell(text: str) -> None:
    """Insert a cell with this text below the focused cell. In a front end without cells, do nothing."""
    from ipylab import JupyterFrontEnd

    if not _front_ends:
        _front_ends.append(JupyterFrontEnd())
    commands = _front_ends[0].commands
    commands.execute("notebook:insert-cell-below")
    commands.execute("notebook:replace-selection", {"text": text})

"""A panel that opens scenarios from files, or from a gallery of models, each shown with a picture and a question."""

from __future__ import annotations

import base64
import html
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ipywidgets as widgets

from workbench import gallery
from workbench.errors import WorkbenchError
from workbench.records.opening import open_scenario
from workbench.sim import runner
from workbench.views.figure import preview
from workbench.widgets.controls import error_html, words
from workbench.widgets.deferred import Deferred
from workbench.widgets.runs import engine_for

_WIDTH = 300  # px of a picture; the style sheet makes it smaller where there is less room
_FILES = ".json,.svg,.png,.pdf,.html,.parquet"
_PLACEHOLDER = "<div class='wb-picture'></div>"
_drawn: dict[str, str] = {}  # name of a model -> HTML of its picture, for all labs of this process


class Labs(NamedTuple):
    """Functions that list, open and save the labs that are stored in a folder.

    names()     returns the names of the stored labs
    current()   returns the name of the open lab
    open(name)  opens a stored lab; returns a sentence for the user
    save(name)  stores the present scenario under this name, which becomes the name of the open lab; returns a sentence
    """

    names: Callable[[], list[str]]
    current: Callable[[], str]
    open: Callable[[str], str]
    save: Callable[[str], str]


class Gallery(widgets.VBox):
    """A panel with a card for each model of the gallery, and buttons that open and save scenarios.

    The cards are made when the panel is opened for the first time; their pictures are drawn in a background thread.

    open_model: called with the name of a model when the user opens this model.
    open_scenario: called with the scenario of a file that the user opens, or with None when the user presses "New".
    labs: functions for the stored labs.
    """

    def __init__(
        self,
        open_model: Callable[[str], Any],
        open_scenario: Callable[[Any], Any],
        labs: Labs,
    ) -> None:
        self._open_model, self._open_scenario, self._labs = open_model, open_scenario, labs
        self._deferred = Deferred(after_s=0.0)
        self._pictures: dict[str, Any] = {}  # by name of the model
        self.message = words()
        super().__init__(layout={"display": "none"})
        self.add_class("wb-gallery")

    def toggle(self, is_open: bool) -> None:
        """Show or hide the panel."""
        if is_open and not self._pictures:
            models = widgets.Box([self._make_card(name) for name in gallery.names()]).add_class("wb-models")
            self.upload = widgets.FileUpload(accept=_FILES, description="Open a file", layout={"width": "auto"})
            self.upload.tooltip = "A scenario (JSON), or a figure, page or trace with the scenario of its run"
            self.upload.observe(self._open_file, "value")
            self.children = (self._make_file_row(), self.message, models)
        self.layout.display = "" if is_open else "none"
        if is_open:
            self.stored.options = self._labs.names()
            self.name.value = self._labs.current()
            self._deferred.submit(self._draw_pictures)
        else:
            self._deferred.cancel()

    def cancel(self) -> None:
        """Stop drawing the pictures of models."""
        self._deferred.cancel()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait for the pictures; return False on timeout."""
        return self._deferred.wait(timeout_s)

    def _make_file_row(self) -> widgets.HBox:
        new_button = widgets.Button(description="New", layout={"width": "auto"})
        new_button.tooltip = "The small example with which a new lab begins; undo restores the present scenario"
        new_button.on_click(lambda _: self._open_scenario(None))
        self.name = widgets.Text(placeholder="name", layout={"width": "10em"})
        self.name.tooltip = "Name of the lab"
        save_button = widgets.Button(description="Save under this name", layout={"width": "auto"})
        save_button.on_click(lambda _: self._run_lab_action(self._labs.save, self.name.value))
        self.stored = widgets.Dropdown(options=self._labs.names(), layout={"width": "12em"})
        self.stored.tooltip = "Labs that are stored in this folder"
        open_button = widgets.Button(description="Open this lab", layout={"width": "auto"})
        open_button.on_click(lambda _: self._run_lab_action(self._labs.open, self.stored.value))
        return widgets.HBox(
            (new_button, self.upload, self.stored, open_button, self.name, save_button),
            layout={"flex_flow": "row wrap"},
        )

    def _run_lab_action(self, action: Callable[[str], Any], name: str) -> None:
        try:
            self.message.value = f"<p>{html.escape(action(name) or '')}</p>"
        except (WorkbenchError, OSError) as error:
            self.message.value = error_html(str(error))
        self.stored.options = self._labs.names()

    def _open_file(self, change: Any) -> None:
        if not change.new:
            return
        name, content = change.new[0]["name"], bytes(change.new[0]["content"])
        self.upload.value = ()
        self.open_bytes(name, content)

    def open_bytes(self, name: str, content: bytes) -> str:
        """Open the scenario in a file with this name and content; return "", or the error, which is also shown."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{Path(name).suffix}"
            path.write_bytes(content)
            try:
                scenario = open_scenario(path)
            except WorkbenchError as error:
                sentence = str(error).replace(str(path), name)
                self.message.value = error_html(sentence)
                return sentence
        self.message.value = ""
        self._open_scenario(scenario)
        return ""

    def _make_card(self, name: str) -> widgets.VBox:
        model = gallery.model(name)
        self._pictures[name] = words(_drawn.get(name, _PLACEHOLDER))
        button = widgets.Button(description=model.title, layout={"width": "auto"})
        button.on_click(lambda _: self._open_model(name))
        return widgets.VBox((self._pictures[name], button, words(question_html(model)))).add_class("wb-model")

    def _draw_pictures(self, check: Callable[[], None]) -> None:
        for name, picture in self._pictures.items():
            if name not in _drawn:
                _drawn[name] = _draw_model(gallery.model(name), check)
            picture.value = _drawn[name]


def question_html(model: gallery.Model) -> str:
    """Return HTML with the question that a model of the gallery answers. A model is a scenario with a question."""
    return f"<p>{html.escape(model.question)}</p>"


def _draw_model(model: gallery.Model, check: Callable[[], None]) -> str:
    """Run a model of the gallery; return HTML with a picture of its network.

    ``check()`` is called repeatedly during the run and raises an error to end it.
    """
    run = runner.play(model.scenario, engine_for(model.scenario), progress=lambda _: check())
    alt, png = html.escape(model.title, quote=True), base64.b64encode(preview(run, _WIDTH).to_png(scale=1.5)).decode()
    return f"<img class='wb-picture' alt='{alt}' src='data:image/png;base64,{png}'>"

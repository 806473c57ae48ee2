"""The form of a link trace: a summary, and an upload of a CSV file with measured delivery ratios."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import traitlets

from workbench.errors import DataError, WorkbenchError
from workbench.sim.changes.measured import LinkQualities
from workbench.widgets.controls import error_html, words
from workbench.widgets.workload.texts import trace_text

LARGEST_BYTES = 40_000_000
_HOW = (
    "A CSV file with the header <code>time_s,transmitter,receiver,pdr</code>. Each link keeps a ratio until its next "
    "row; 0 means that the link does not exist. Upload it, or drop it anywhere on the lab."
)


class TraceForm(widgets.VBox):
    """The form of measured link qualities. ``on_edit()`` is called when the user has uploaded a valid file."""

    error = traitlets.Unicode()

    def __init__(self, on_edit: Callable[[], None]) -> None:
        self._on_edit = on_edit
        self._trace: LinkQualities | None = None
        self.summary, self._message = words(), words()
        self.upload = widgets.FileUpload(
            accept=".csv,.txt,text/csv", description="CSV file", layout={"align_self": "flex-start"}
        )
        self.upload.tooltip = "a file with the columns time_s, transmitter, receiver and pdr"
        super().__init__((self.summary, words(f"<span class='wb-unit'>{_HOW}</span>"), self.upload, self._message))
        self.upload.observe(self._read_upload, "value")
        self.observe(lambda change: setattr(self._message, "value", error_html(change.new)), "error")

    def show(self, trace: LinkQualities) -> None:
        """Show a summary of measured link qualities; discard an error."""
        self._trace = trace
        self.summary.value = trace_text(trace)
        self.error = ""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes at the ends of the measured links; () before `show`."""
        return () if self._trace is None else self._trace.nodes

    def plain(self) -> dict[str, Any]:
        """Return the link qualities as JSON values."""
        return {} if self._trace is None else self._trace.to_dict()

    def take(self, name: str, content: bytes) -> None:
        """Read the content of a CSV file; an invalid file shows an error and leaves the link qualities unchanged."""
        try:
            trace = read_trace(name, content)
        except WorkbenchError as error:
            self.error = str(error)
            return
        self.show(trace)
        self._on_edit()

    def _read_upload(self, change: Any) -> None:
        for file in change.new[:1]:
            self.take(str(file["name"]), bytes(file["content"]))


def is_trace(content: bytes) -> bool:
    """Return whether a file looks like a table of a link trace: its first line names the columns time_s and pdr."""
    header = content[:500].split(b"\n")[0]
    return b"time_s" in header and b"pdr" in header


def read_trace(name: str, content: bytes) -> LinkQualities:
    """Return the link qualities in the content of a CSV file; error messages name the file ``name``.

    Raises DataError or ScenarioError for invalid content.
    """
    if len(content) > LARGEST_BYTES:
        raise DataError(f"{name} has {len(content):,} bytes; it must have at most {LARGEST_BYTES:,}.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload.csv"
        path.write_bytes(content)
        try:
            return LinkQualities.read(path)
        except WorkbenchError as error:
            raise type(error)(str(error).replace(str(path), name).replace(path.name, name)) from None

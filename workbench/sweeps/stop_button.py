"""A button in a notebook that stops the running cell."""

from __future__ import annotations

import re
from importlib.resources import files

import anywidget
import traitlets
from ipykernel.connect import get_connection_file


class StopButton(anywidget.AnyWidget):
    """A button that interrupts this kernel through Jupyter's server.

    The button sends the interrupt to Jupyter's server, not to the kernel: while a cell runs, most versions of ipykernel
    handle no messages of widgets. ``kernel``: the kernel's id. The button is missing if the notebook's page does not
    come from a Jupyter server, as in VS Code; interrupt the kernel by the editor's own command there.
    """

    _esm = (files(__package__) / "stop_button.js").read_text(encoding="utf-8")
    kernel = traitlets.Unicode().tag(sync=True)

    def __init__(self) -> None:
        # Servers name the connection file after the kernel's id.
        match = re.search(r"kernel-(.+)\.json$", get_connection_file())
        super().__init__(kernel=match[1] if match else "")

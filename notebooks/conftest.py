"""Notebooks as tests: the short ones in `make test`, all of them in `make test-all`.

A notebook with small values is two tests: one with these, unless it is in `LONG`, and one with the parameters as
written, which has the marker `family`. The small values are in the metadata of the cell of parameters, and nbmake
assigns them after that cell (`nbmake.mock`); readers and `make notebooks` use the parameters as written. A notebook of
`LONG` has the marker `family` too: `make test` only checks the names that it uses (tests/project/test_notebooks.py).
"""

import nbformat
import pytest
from nbmake.pytest_items import NotebookFile, NotebookItem

LONG = {
    "01-first-interest.ipynb",
    "02-network-coding.ipynb",
    "03-tinymq.ipynb",
    "05-filters.ipynb",
    "06-a-thousand-runs.ipynb",
    "07-from-a-log-to-a-network.ipynb",
    "08-down-to-ten-kilobytes.ipynb",
    "09-parameters-that-matter.ipynb",
    "11-which-protocol.ipynb",
    "12-which-heals-fastest.ipynb",
    "dps.ipynb",
    "network-coding.ipynb",
    "tinymq.ipynb",
}


def small_parameters(notebook):
    """Return the values that tests assign after a notebook's parameters, by name; empty for most notebooks."""
    cells = [cell.metadata.get("nbmake", {}) for cell in notebook.cells]
    return {name: value for cell in cells for name, value in cell.get("mock", {}).items()}


def without_small_parameters(notebook):
    """Remove from a notebook what only tests read, and return it."""
    for cell in notebook.cells:
        cell.metadata.pop("nbmake", None)
    return notebook


class FullNotebook(NotebookItem):
    """A notebook with the parameters that its readers see."""

    def __init__(self, parent, filename):
        pytest.Item.__init__(self, "full", parent)
        self.filename = filename
        self.add_marker("family")

    def runtest(self):
        """Run the notebook; nbmake reads it without the small parameters."""
        read = nbformat.read
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(nbformat, "read", lambda *arguments: without_small_parameters(read(*arguments)))
            super().runtest()


class FullNotebookFile(NotebookFile):
    """A notebook that tests run small, with its full size."""

    def collect(self):
        yield FullNotebook.from_parent(self, filename=str(self.path))


def pytest_collect_file(file_path, parent):
    if not parent.config.option.nbmake or file_path.suffix != ".ipynb":
        return None
    if not small_parameters(nbformat.read(file_path, 4)):
        return None
    return FullNotebookFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(items):
    """Give long notebooks the marker `family`, and run each of them once: at full size if it has small values, too."""
    full_paths = {item.path for item in items if isinstance(item, FullNotebook)}
    items[:] = [
        item
        for item in items
        if isinstance(item, FullNotebook)
        or not (isinstance(item, NotebookItem) and item.path.name in LONG and item.path in full_paths)
    ]
    for item in items:
        if isinstance(item, NotebookItem) and item.path.name in LONG:
            item.add_marker("family")

"""Notebooks as tests: the short ones in `make test`, all of them in `make test-all`.

A notebook may have small values of its parameters, with which it runs faster. They are in the metadata of the cell of
parameters (`nbmake.mock`), and nbmake assigns them after that cell. Readers and `make notebooks` use the parameters as
written.

Such a notebook is two tests: one with the small values, unless it is in `LONG`, and one with the parameters as written.
The latter has the marker `family`, as all notebooks in `LONG` have; one in `SMALL_ONLY` has just the former. Of the
notebooks in `LONG`, `make test` only checks the names that they use (tests/project/test_notebooks.py).
"""

import nbformat
import pytest
from nbmake.pytest_items import NotebookFile, NotebookItem

from workbench.publishing.paper import small_parameters

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
    "13-five-boards.ipynb",
    "dps.ipynb",
    "network-coding.ipynb",
    "tinymq.ipynb",
}

# Two to six minutes each with their parameters, with which `make notebooks` and `make papers` execute them.
SMALL_ONLY = {"11-which-protocol.ipynb", "network-coding.ipynb", "tinymq.ipynb"}


def without_small_parameters(notebook):
    """Remove the small parameters from a notebook's metadata; return the notebook."""
    for cell in notebook.cells:
        cell.metadata.pop("nbmake", None)
    return notebook


class FullNotebook(NotebookItem):
    """A test that runs a notebook with the parameters as written."""

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
    """A collector of the test `FullNotebook` for a notebook that has small parameters."""

    def collect(self):
        yield FullNotebook.from_parent(self, filename=str(self.path))


def pytest_collect_file(file_path, parent):
    if not parent.config.option.nbmake or file_path.suffix != ".ipynb" or file_path.name in SMALL_ONLY:
        return None
    if not small_parameters(nbformat.read(file_path, 4)):
        return None
    return FullNotebookFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(items):
    """Mark the notebooks in `LONG` as `family`, and remove their tests with small parameters."""
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

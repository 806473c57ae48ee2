"""Notebooks for tests of publishing, and an artifact that a test module makes once."""

import json
from pathlib import Path

import nbformat

from workbench.publishing.paper import read_paper

AUTHORS = [{"given-names": "Ada", "family-names": "Lovelace", "orcid": "0000-0002-1825-0097"}, {"name": "A group"}]


def write_notebook(path, *cells, **metadata):
    """Write a notebook whose cells are Markdown if they begin with "#" and a blank, else code; return its path.

    A cell may be a tuple (source, tags).
    """
    notebook = nbformat.v4.new_notebook(metadata={"authors": AUTHORS, **metadata})
    for number, cell in enumerate(cells):
        source, tags = cell if isinstance(cell, tuple) else (cell, [])
        new_cell = nbformat.v4.new_markdown_cell if source.startswith("# ") else nbformat.v4.new_code_cell
        notebook.cells.append(new_cell(source, id=f"c{number}", metadata={"tags": tags} if tags else {}))
    path = Path(path)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def write_paper(path, *cells, **metadata):
    """Write a notebook and return the paper in it."""
    return read_paper(write_notebook(path, *cells, **metadata), "2026-11-29")

"""Notebooks with outputs, which ``make notebooks`` has executed and stored in out/notebooks.

A build of the site executes no notebooks, because that takes too long. An executed notebook is used as long as its
source is the same. If it is missing or older, the site shows the notebook without outputs, and the page states this.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
EXECUTED = REPOSITORY / "out" / "notebooks"
NOTE = (
    "```{note}\nThe outputs of this notebook are not part of this build. `make notebooks` executes all notebooks; "
    "the next `make site` shows their outputs.\n```"
)


def paths() -> list[Path]:
    """Return the notebooks of the repository, lessons first."""
    folder = REPOSITORY / "notebooks"
    return [*sorted(folder.glob("*.ipynb")), *sorted((folder / "papers").glob("*.ipynb"))]


def pages(executed: Path = EXECUTED) -> dict[str, str]:
    """Return {path: notebook as JSON}, with outputs if the executed notebook is current.

    Prints the number of notebooks without outputs to standard error.
    """
    contents, without_outputs = {}, 0
    for path in paths():
        notebook = json.loads(path.read_text(encoding="utf-8"))
        source = executed_file(path, notebook, executed)
        if source is None:
            without_outputs += 1
            notebook["cells"].insert(1, {"cell_type": "markdown", "id": "site-note", "metadata": {}, "source": NOTE})
        name = path.relative_to(REPOSITORY / "notebooks").as_posix()
        contents[name] = json.dumps(notebook) if source is None else source.read_text(encoding="utf-8")
    if without_outputs:
        count = f"{without_outputs} of {len(contents)} notebooks have"
        print(f"make site: {count} no outputs; make notebooks executes them", file=sys.stderr)
    return contents


def executed_file(path: Path, notebook: dict[str, Any], executed: Path = EXECUTED) -> Path | None:
    """Return the file of an executed notebook; None if it is missing or its cells differ from those of ``notebook``.

    ``path`` is the notebook's file in the repository, ``executed`` the folder of executed notebooks.
    """
    file = executed / path.name
    if not file.is_file():
        return None
    try:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError):
        return None
    return file if [_read_cell(cell) for cell in cells] == [_read_cell(cell) for cell in notebook["cells"]] else None


def _read_cell(cell: dict[str, Any]) -> tuple[str, str]:
    return cell["cell_type"], "".join(cell["source"])

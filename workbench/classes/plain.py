"""Export lessons as plain notebooks.

Students get notebooks without answers. Teachers get them with the right answers, remarks and typical mistakes.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.classes.lessons import EXERCISE, PACKAGE, Lesson, number_in, source_of, tags_of
from workbench.errors import DataError

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#|attachment:)[^)\s]+\)")  # to a file
KEY = "workbench"  # in the metadata of a cell: {"exercise": "05.1"}
_README = """# Lessons of the workbench

* `students/`: hand out this folder. Its notebooks have no answers. They import the checks from `students/lessons`.
* `teachers/`: the same notebooks with an answer to each exercise, and typical mistakes. Keep this folder.
* Put the notebooks that students return into one folder for each student, and check them all:

      workbench lessons check SUBMISSIONS

  This executes the students' code. docs/CLASSES.md of the workbench describes how to do so safely.
"""


def export_plain(lessons: Iterable[Lesson], out: Path) -> list[Path]:
    """Write the folders ``students`` and ``teachers`` and a README into ``out``, and return the notebooks' paths.

    Raises DataError if ``out`` already has one of these folders.
    """
    chosen = list(lessons)
    students, teachers = out / "students", out / "teachers"
    refuse_existing(students, teachers)
    paths = []
    for lesson in chosen:
        paths.append(write_notebook(student_notebook(lesson), students / lesson.path.name))
        paths.append(write_notebook(teacher_notebook(lesson), teachers / lesson.path.name))
    for folder in (students, teachers):
        copy_checks(chosen[0], folder)
    (out / "README.md").write_text(_README, encoding="utf-8")
    return paths


def student_notebook(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson's notebook without answers and outputs.

    The metadata of an exercise's cell contain the exercise's number under `KEY`, by which a submitted cell is
    recognized.
    """
    notebook = clean_notebook(lesson)
    for cell in notebook["cells"]:
        if EXERCISE in tags_of(cell):
            exercise = lesson.exercises[_find_exercise_number(cell)]
            if exercise.question not in source_of(cell).splitlines():
                cell["source"] = exercise.source()
            cell["metadata"][KEY] = {"exercise": exercise.number}
    return notebook


def teacher_notebook(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson's notebook with the right answers, each followed by a cell with the teachers' remarks."""
    notebook = clean_notebook(lesson)
    cells = []
    for cell in notebook["cells"]:
        cells.append(cell)
        if EXERCISE in tags_of(cell):
            exercise = lesson.exercises[_find_exercise_number(cell)]
            cell["source"] = exercise.source(lesson.answers(exercise.number)[0].code)
            remarks = f"**For teachers, {exercise.number}.** {lesson.remarks(exercise.number)}"
            cells.append(markdown_cell(f"remarks-{exercise.number.replace('.', '-')}", remarks))
    return notebook | {"cells": cells}


def clean_notebook(lesson: Lesson) -> dict[str, Any]:
    """Return a copy of a lesson's notebook without outputs and without the small parameters of the project's tests.

    Links to files of the repository become text, because an export does not have these files.
    """
    notebook = copy.deepcopy(lesson.notebook)
    for cell in notebook["cells"]:
        cell["metadata"].pop("nbmake", None)
        if cell["cell_type"] == "markdown":
            cell["source"] = _LINK.sub(r"\1", source_of(cell))
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return notebook


def markdown_cell(identifier: str, text: str) -> dict[str, Any]:
    """Return a new Markdown cell of a notebook."""
    return {"cell_type": "markdown", "id": identifier, "metadata": {}, "source": text}


def write_notebook(notebook: dict[str, Any], path: Path) -> Path:
    """Write a notebook as JSON, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def copy_checks(lesson: Lesson, folder: Path) -> None:
    """Copy the package with the checks of exercises beside the notebooks in ``folder``."""
    shutil.copytree(
        lesson.path.parent / PACKAGE,
        folder / PACKAGE,
        ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"),
    )


def refuse_existing(*folders: Path) -> None:
    """Raise DataError if one of the folders exists, so that no edited notebook is overwritten."""
    for folder in folders:
        if folder.exists():
            raise DataError(f"{folder}: the folder exists; delete it, or export into another folder: --out FOLDER")


def _find_exercise_number(cell: dict[str, Any]) -> str:
    return number_in(source_of(cell)) or ""

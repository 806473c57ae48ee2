"""Export lessons as a course of nbgrader: an assignment for each lesson, with a cell for answers and a graded cell.

The folder has the layout of https://nbgrader.readthedocs.io (version 0.9, cell metadata of version 3):
``source/05-filters/05-filters.ipynb`` and ``nbgrader_config.py``. nbgrader makes the students' version from ``source``
by removing the right answers. When it grades, it restores the locked cells and the package with the checks.

An exercise becomes three cells: its preparation (locked, if there is one), the answer, and the check, which is graded.
The cells that the exercises need are locked too. All others may be edited.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.classes.lessons import EXERCISE, GIVEN, Exercise, Lesson, number_in, source_of, tags_of
from workbench.classes.plain import KEY, clean_notebook, copy_checks, refuse_existing, write_notebook

SCHEMA_VERSION = 3
POINTS = 1  # of each exercise
_CONFIG = '''"""Settings of nbgrader for the lessons of the workbench."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "workbench"
# In place of an answer; the line above it is "answer = None", so an empty answer gets the sentence of the check.
c.ClearSolutions.code_stub = {"python": "# Replace None by your answer."}
# Seconds for one cell. Some cells of the lessons compare protocols for a minute or two.
c.Execute.timeout = 600
'''


def export_nbgrader(lessons: Iterable[Lesson], out: Path) -> list[Path]:
    """Write a course of nbgrader into ``out``, and return the notebooks' paths. Lessons without exercises are left out.

    Raises DataError if ``out`` has a folder ``source`` already.
    """
    refuse_existing(out / "source")
    paths = []
    for lesson in lessons:
        if lesson.exercises:
            folder = out / "source" / lesson.name
            paths.append(write_notebook(source_notebook(lesson), folder / lesson.path.name))
            copy_checks(lesson, folder)
    if paths:
        (out / "nbgrader_config.py").write_text(_CONFIG, encoding="utf-8")
    return paths


def source_notebook(lesson: Lesson) -> dict[str, Any]:
    """Return a lesson's notebook for nbgrader's folder ``source``: with the right answers and nbgrader's metadata."""
    notebook = clean_notebook(lesson)
    cells: list[dict[str, Any]] = []
    for cell in notebook["cells"]:
        if EXERCISE in tags_of(cell):
            exercise = lesson.exercises[number_in(source_of(cell)) or ""]
            cells += _make_exercise_cells(exercise, lesson.answers(exercise.number)[0].code)
            continue
        if GIVEN in tags_of(cell):
            cell["metadata"]["nbgrader"] = _make_metadata(f"given-{len(cells)}", locked=True)
        cells.append(cell)
    return notebook | {"cells": cells}


def _make_exercise_cells(exercise: Exercise, answer: str) -> list[dict[str, Any]]:
    name = exercise.number.replace(".", "-")
    solution = f"{exercise.question}\n### BEGIN SOLUTION\n{answer.rstrip()}\n### END SOLUTION"
    check = f"verdict = {exercise.check}\ndisplay(verdict)\nassert verdict.is_right, verdict.sentence"
    cells = [
        _make_code_cell(f"answer-{name}", solution, solution=True),
        _make_code_cell(f"check-{name}", check, grade=True, locked=True, points=POINTS),
    ]
    cells[0]["metadata"][KEY] = {"exercise": exercise.number}
    if exercise.preparation:
        cells.insert(0, _make_code_cell(f"prepare-{name}", exercise.preparation, locked=True))
    return cells


def _make_code_cell(name: str, source: str, **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {"nbgrader": _make_metadata(name, **metadata)},
        "outputs": [],
        "source": source,
    }


def _make_metadata(
    grade_id: str, *, grade: bool = False, solution: bool = False, locked: bool = False, points: int | None = None
) -> dict[str, Any]:
    metadata = {
        "schema_version": SCHEMA_VERSION,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "task": False,
        "grade_id": grade_id,
    }
    return metadata if points is None else metadata | {"points": points}

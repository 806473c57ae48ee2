"""Exports of lessons: notebooks of students have no answers, those of nbgrader have valid metadata and its layout."""

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import nbformat
import pytest

from tests.repository import REPOSITORY
from workbench import cli
from workbench.classes import nbgrader, plain
from workbench.classes.lessons import Lesson, find_lessons, source_of

LESSONS = find_lessons()
WITH_EXERCISES = [lesson for lesson in LESSONS if lesson.exercises]
# nbgrader's schema of the metadata of cells, version 3 (nbgraderformat/v3.json), without fields that it adds itself.
SCHEMA = {
    "type": "object",
    "properties": {
        "schema_version": {"type": "integer", "minimum": 3, "maximum": 3},
        "grade": {"type": "boolean"},
        "locked": {"type": "boolean"},
        "solution": {"type": "boolean"},
        "task": {"type": "boolean"},
        "grade_id": {"type": "string", "pattern": r"^[a-zA-Z0-9_\-]+$"},
        "points": {"type": "number", "minimum": 0},
    },
    "required": ["schema_version", "grade", "locked", "solution", "grade_id"],
    "additionalProperties": False,
}


def cells_of(notebook, number):
    """Return the sources of the cells of an exercise."""
    return [source_of(cell) for cell in notebook["cells"] if cell["metadata"].get(plain.KEY) == {"exercise": number}]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.number)
def test_students_get_the_notebook_without_answers_and_teachers_with_them(lesson):
    students, teachers = plain.student_notebook(lesson), plain.teacher_notebook(lesson)
    for notebook in (students, teachers):
        nbformat.validate(nbformat.from_dict(notebook))
    for number, exercise in lesson.exercises.items():
        (source,) = cells_of(students, number)
        assert [line for line in source.splitlines() if line.startswith("answer")] == [exercise.question]
        right = lesson.answers(number)[0].code.rstrip()
        assert right not in json.dumps(source)
        assert any(right in source_of(cell) and exercise.check in source_of(cell) for cell in teachers["cells"])
        for mistake in lesson.answers(number)[1:]:
            assert any(mistake.sentence in source_of(cell) for cell in teachers["cells"])


def test_an_answer_in_the_teachers_own_checkout_is_removed(tmp_path):
    lesson = next(lesson for lesson in WITH_EXERCISES if lesson.number == "05")
    notebook = json.loads(lesson.path.read_text())
    for cell in notebook["cells"]:
        if "exercise" in cell["metadata"].get("tags", []):
            cell["source"] = source_of(cell).replace("answer = None", "answer = 6")
    path = tmp_path / lesson.path.name
    path.write_text(json.dumps(notebook))
    edited = Lesson(path)
    for number in edited.exercises:
        (source,) = cells_of(plain.student_notebook(edited), number)
        assert "answer = None  # " in source
        assert "answer = 6" not in source
        ast.parse(source)


def test_exported_notebooks_link_to_no_file_of_the_repository():
    for lesson in LESSONS:
        for cell in plain.student_notebook(lesson)["cells"]:
            assert "](../" not in source_of(cell)


@pytest.mark.parametrize("lesson", WITH_EXERCISES, ids=lambda lesson: lesson.number)
def test_the_metadata_of_nbgrader_is_valid_and_each_exercise_is_graded(lesson):
    notebook = nbgrader.source_notebook(lesson)
    nbformat.validate(nbformat.from_dict(notebook))
    marked = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]
    metadata = [cell["metadata"]["nbgrader"] for cell in marked]
    for fields in metadata:
        jsonschema.validate(fields, SCHEMA)
        assert ("points" in fields) == fields["grade"]
    identifiers = [fields["grade_id"] for fields in metadata]
    assert len(set(identifiers)) == len(identifiers)
    assert sum(fields.get("points", 0) for fields in metadata) == len(lesson.exercises)
    assert {cell["cell_type"] for cell in marked} == {"code"}
    for cell in marked:
        begin_and_end = [line for line in source_of(cell).splitlines() if line.startswith("### ")]
        assert begin_and_end == (
            ["### BEGIN SOLUTION", "### END SOLUTION"] if cell["metadata"]["nbgrader"]["solution"] else []
        )


def test_nbgrader_finds_a_folder_for_each_lesson_with_the_checks_in_it(tmp_path, capsys):
    out = tmp_path / "course"
    assert cli.main(["lessons", "export", "--nbgrader", "--out", str(out), "--lesson", "05", "--lesson", "00"]) == 0
    assert "1 assignments" in capsys.readouterr().out
    assert [path.name for path in (out / "source").iterdir()] == ["05-filters"]
    assert (out / "source" / "05-filters" / "05-filters.ipynb").is_file()
    assert (out / "source" / "05-filters" / "lessons" / "filtering.py").is_file()
    compile((out / "nbgrader_config.py").read_text(), "nbgrader_config.py", "exec")


def test_an_export_does_not_overwrite_an_earlier_one(tmp_path, capsys):
    command = ["lessons", "export", "--plain", "--out", str(tmp_path), "--lesson", "4"]
    assert cli.main(command) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "students", "teachers"]
    assert (tmp_path / "students" / "lessons" / "__init__.py").is_file()
    capsys.readouterr()
    assert cli.main(command) == 2
    assert capsys.readouterr().err == (
        f"workbench lessons: {tmp_path / 'students'}: the folder exists; delete it, or export into another folder: "
        "--out FOLDER\n"
    )


def test_lessons_are_listed_with_their_exercises(capsys):
    assert cli.main(["lessons", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "04-dps: 4 · Asking without naming" in lines
    assert "    04.1  Write the topic of a subscription that matches all wanted topics and no others." in lines
    assert sum(line.startswith(" ") for line in lines) == 3 * len(WITH_EXERCISES)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lesson", "99"], "'99' is not a lesson; the lessons are 00-start, 01-first-interest, "),
        (["--lessons", "nowhere"], "nowhere: the folder has no lessons; it must have notebooks NN-name.ipynb"),
    ],
)
def test_an_unknown_lesson_gets_a_sentence(arguments, sentence, capsys):
    assert cli.main(["lessons", "list", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.family
def test_nbgrader_makes_the_students_version_and_grades_right_wrong_and_empty_answers(tmp_path):
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: pip install nbgrader")
    from nbgrader.nbgraderformat import MetadataValidator

    (lesson,) = find_lessons(wanted=["04"])
    plain_code = {number: lesson.answers(number) for number in lesson.exercises}
    nbgrader.export_nbgrader([lesson], tmp_path)
    name = f"{lesson.name}/{lesson.path.name}"
    source = tmp_path / "source" / name
    MetadataValidator().validate_nb(nbformat.read(source, 4))
    notebook = json.loads(source.read_text())
    graded = [cell for cell in notebook["cells"] if "nbgrader" in cell["metadata"]]  # the others take time
    plain.write_notebook(notebook | {"cells": graded}, source)

    def run(*command):
        ended = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr

    run("generate_assignment", lesson.name)
    released = json.loads((tmp_path / "release" / name).read_text())
    for student, which in {"right": 0, "wrong": 1, "empty": None}.items():
        shutil.copytree(tmp_path / "release" / lesson.name, tmp_path / "submitted" / student / lesson.name)
        notebook = json.loads(json.dumps(released))
        for cell in notebook["cells"]:
            number = cell["metadata"].get(plain.KEY, {}).get("exercise")
            if number:
                assert plain_code[number][0].code.rstrip() not in source_of(cell)
                cell["source"] = source_of(cell) if which is None else plain_code[number][which].code
        plain.write_notebook(notebook, tmp_path / "submitted" / student / name)
    run("autograde", lesson.name)
    run("export")
    rows = (tmp_path / "grades.csv").read_text().splitlines()
    columns = rows[0].split(",")
    scores = {
        row.split(",")[columns.index("student_id")]: float(row.split(",")[columns.index("score")]) for row in rows[1:]
    }
    assert scores == {"right": 3, "wrong": 0, "empty": 0}


def test_the_lessons_of_a_checkout_are_those_of_the_repository():
    assert {lesson.path.parent for lesson in LESSONS} == {REPOSITORY / "notebooks"}
    assert Path(LESSONS[0].path).name == "00-start.ipynb"


def test_the_wheel_contains_all_lessons():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    files = {f"notebooks/{lesson.path.name}" for lesson in LESSONS} | {"notebooks/lessons", "notebooks/teachers"}
    assert {path: included.get(path) for path in files} == {path: f"workbench/_{path}" for path in files}

"""Checks of submitted notebooks: right, wrong, empty and broken answers, and code that does not end."""

import csv
import json
import os

import pytest

from workbench import cli
from workbench.classes import student
from workbench.classes.lessons import find_lessons
from workbench.classes.nbgrader import source_notebook
from workbench.classes.plain import student_notebook, write_notebook
from workbench.classes.submissions import check_submissions
from workbench.errors import DataError

CHECKS = """
from typing import NamedTuple


class Verdict(NamedTuple):
    is_right: bool
    sentence: str


def check(number, answer, limit):
    if answer is None:
        return Verdict(False, "The answer is still None.")
    return Verdict(answer == limit, f"The limit is {limit}.")
"""
RIGHT = {"01.1": "limit + 1", "01.2": "limit + 2", "01.3": "missing_compiler()"}  # the teacher's answers
PAGE = "# 1 · Limits: answers\n" + "".join(
    f"\n## {number}\n\n```python\nanswer = {right}\n```\n\n```python\nanswer = 0\n```\n\n> The limit is\n"
    for number, right in RIGHT.items()
)


def code(source, *tags):
    return {"cell_type": "code", "metadata": {"tags": list(tags)} if tags else {}, "source": source, "outputs": []}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def lessons(tmp_path):
    """Return the only lesson of a folder made for these tests, which imports nothing that takes time."""
    folder = tmp_path / "notebooks"
    (folder / "lessons").mkdir(parents=True)
    (folder / "teachers").mkdir()
    (folder / "lessons" / "__init__.py").write_text(CHECKS)
    (folder / "teachers" / "01-limits.md").write_text(PAGE)
    cells = [code("import lessons\n\nlimit = 7", "given"), code("unrelated = 1")]
    for number in RIGHT:
        cells.append({"cell_type": "markdown", "metadata": {}, "source": f"### {number}\n\nWhat is the limit?"})
        check = f'lessons.check("{number}", answer, limit + more)'
        cells.append(code(f"more = {number[-1]}\n\nanswer = None  # a number\n{check}", "exercise"))
    write_notebook(notebook(*cells), folder / "01-limits.ipynb")
    return find_lessons(folder)


@pytest.fixture
def submit(tmp_path, lessons):
    """Return a function that submits a notebook in which the cell of exercise 01.1 has another source."""

    def submit(name, source, *, before=(), mark=True):
        submitted = student_notebook(lessons[0])
        cells = []
        for cell in submitted["cells"]:
            if cell["metadata"].get("workbench") == {"exercise": "01.1"}:
                cells += [code(text) for text in before]
                cell["source"] = source if source is not None else cell["source"]
            if not mark:
                cell["metadata"] = {}
            cells.append(cell)
        write_notebook(submitted | {"cells": cells}, tmp_path / "submissions" / name / "01-limits.ipynb")
        return tmp_path / "submissions"

    return submit


CHECK = 'lessons.check("01.1", answer, limit + more)'
# A name -> (source of the exercise's cell, None: as handed out; cells before it; result).
ANSWERS = {
    "right": (f"more = 1\nanswer = 8\n{CHECK}", [], "right"),
    "wrong": (f"more = 1\nanswer = 9\n{CHECK}", [], "wrong"),
    "untouched": (None, [], "empty"),
    "changes the given objects": (f"limit, more = 0, 0\nanswer = 0\n{CHECK}", [], "wrong"),
    "replaces the check": (f"lessons.check = lambda *all: 1 / 0\nanswer = 8\n{CHECK}", [], "error"),
    "helper cells": (f"answer = helper()\n{CHECK}", ["import math", "def helper(): return math.floor(8.5)"], "right"),
    "answer in another cell": (CHECK, ["answer = 8"], "right"),
    "an unnecessary cell fails": (f"answer = 8\n{CHECK}", ["1 / 0"], "right"),
    "verdict is printed": (f"answer = 8\nverdict = {CHECK}\nprint(verdict.sentence)", [], "right"),
    "magics": (f"%matplotlib inline\n%time answer = 8\n{CHECK}", [], "right"),
    "await": (f"import asyncio\nawait asyncio.sleep(0)\nanswer = 8\n{CHECK}", [], "right"),
    "raises": (f"answer = 1 / 0\n{CHECK}", [], "error"),
    "not Python": (f"answer = = 8\n{CHECK}", [], "error"),
    "input": (f"answer = int(input())\n{CHECK}", [], "error"),
    "exit": ("import os\nos._exit(0)", [], "error"),
    "sys.exit": ("import sys\nsys.exit(0)", [], "error"),
    "recursion": ("def f():\n    return f()\n\nanswer = f()", [], "error"),
    "hostile": ("class A:\n    def __eq__(self, other): raise OSError('a' * 10**6)\n\nanswer = A()", [], "error"),
    "much output": ("for i in range(10**5):\n    print(i)\nanswer = 8", [], "right"),
}  # fmt: skip


def test_every_kind_of_answer_gets_its_result_and_the_others_are_judged_all_the_same(lessons, submit, tmp_path):
    for name, (source, before, _) in ANSWERS.items():
        submit(name, source, before=before)
    submit("without metadata", f"answer = 8\n{CHECK}", mark=False)
    folder = submit("without the cell", "answer = 8", mark=False)
    (folder / "broken").mkdir()
    (folder / "broken" / "01-limits.ipynb").write_text('{"cells": [')
    write_notebook(notebook(code("1 + 1")), folder / "broken" / "other.ipynb")
    write_notebook(student_notebook(lessons[0]), folder / "flat-01-limits.ipynb")
    write_notebook(student_notebook(lessons[0]), folder / "right" / "first" / "01-limits.ipynb")
    course = source_notebook(lessons[0])
    for cell in course["cells"]:
        if cell["metadata"].get("workbench") == {"exercise": "01.1"}:
            cell["source"] = "answer = 9"
    write_notebook(course, folder / "of nbgrader" / "01-limits" / "01-limits.ipynb")

    checked = check_submissions(folder, lessons, timeout_s=300, workers=2)
    expected = {name: [result, "empty", "unchecked"] for name, (_, _, result) in ANSWERS.items()}
    expected |= {
        "without metadata": ["right", "empty", "unchecked"],
        "without the cell": ["missing", "empty", "unchecked"],
        "broken": ["unreadable", "unreadable", "unreadable"],
        "flat": ["empty", "empty", "unchecked"],
        "of nbgrader": ["wrong", "right", "unchecked"],
    }
    assert {student: results for student, *results, _ in checked.table()} == expected
    assert [count for student, *_, count in checked.table() if student == "right"] == ["1"]
    assert checked.ignored == [(os.path.join("broken", "other.ipynb"), "it has no exercise")]
    assert max(len(result.sentence) for result in checked.results) < 700

    passed, sentences = checked.save(tmp_path / "out")
    with passed.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["student"]: [row[number] for number in RIGHT] for row in rows} == expected
    with sentences.open(newline="") as file:
        reasons = {(row["student"], row["exercise"]): row["sentence"] for row in csv.DictReader(file)}
    assert reasons["wrong", "01.1"] == "The limit is 8."
    assert reasons["raises", "01.1"] == "The code of the answer raises an error: ZeroDivisionError: division by zero"
    assert "The teacher's answer is not right on this machine: " in reasons["right", "01.3"]
    assert reasons["without the cell", "01.1"] == "The notebook has no cell of exercise 01.1."


def test_an_endless_loop_ends_at_the_time_limit(lessons, submit):
    folder = submit("endless", "while True:\n    pass")
    checked = check_submissions(folder, lessons, timeout_s=1)
    sentences = {result.exercise: (result.result, result.sentence) for result in checked.results}
    assert sentences["01.1"] == ("timeout", "The answer did not end within 1 s.")


@pytest.mark.family
def test_a_lesson_whose_given_cells_fail_is_not_checked(lessons, submit):
    notebook = json.loads(lessons[0].path.read_text())
    folder = submit("right", f"answer = 8\n{CHECK}")
    notebook["cells"][0]["source"] = "import no_such_module\nimport lessons\n\nlimit = 7"
    write_notebook(notebook, lessons[0].path)
    checked = check_submissions(folder, find_lessons(lessons[0].path.parent), timeout_s=300)
    assert {result.result for result in checked.results} == {"unchecked"}
    assert "No module named 'no_such_module'" in checked.results[0].sentence


def test_a_limit_that_allows_nothing_is_refused(lessons, submit):
    folder = submit("right", None)
    with pytest.raises(DataError, match="the time limit is nan s; it must be above 0"):
        check_submissions(folder, lessons, timeout_s=float("nan"))
    with pytest.raises(DataError, match="the number of workers is 0; it must be at least 1"):
        check_submissions(folder, lessons, workers=0)


def test_a_folder_without_notebooks_is_refused(lessons, tmp_path, capsys):
    with pytest.raises(DataError, match="contain no notebooks"):
        check_submissions(tmp_path / "notebooks" / "lessons", lessons)
    assert cli.main(["lessons", "check", str(tmp_path / "nowhere"), "--out", str(tmp_path)]) == 2
    assert "nowhere: the folder does not exist" in capsys.readouterr().err


def cells(*sources):
    read = [student._read_cell(code(source)) for source in sources]
    return read


def test_only_the_cells_that_an_answer_needs_are_executed():
    answer = student.answer_code(
        cells(
            "import math, json as js\nslow = compute()",
            "def f(x):\n    return math.floor(x) + offset",
            "offset = 1",
            "offset = 2",
            "unused = f(1)",
            'answer = f(scenario)\nlessons.check("05.1", answer)',
            "offset = 3",
        ),
        "05.1",
        {"scenario"},
    )
    assert answer == [
        "import math, json as js",
        "def f(x):\n    return math.floor(x) + offset",
        "offset = 2",
        "answer = f(scenario)",
    ]


def test_a_notebook_without_the_exercise_has_no_answer():
    assert student.answer_code(cells("answer = 1", 'lessons.check("05.2", answer)'), "05.1", set()) is None


@pytest.mark.family
def test_right_wrong_and_empty_answers_of_real_lessons(tmp_path):
    chosen = find_lessons(wanted=["02", "04", "05"])
    for lesson in chosen:
        for kind, which in {"right": 0, "wrong": 1, "empty": None}.items():
            submitted = student_notebook(lesson)
            for cell in submitted["cells"]:
                number = cell["metadata"].get("workbench", {}).get("exercise")
                if number and which is not None:
                    cell["source"] = lesson.exercises[number].source(lesson.answers(number)[which].code)
            write_notebook(submitted, tmp_path / kind / lesson.path.name)
    checked = check_submissions(tmp_path, chosen, timeout_s=300, workers=2)
    numbers = [number for lesson in chosen for number in lesson.exercises]
    assert checked.exercises == numbers
    for kind in ("right", "wrong", "empty"):
        (row,) = [row[1:-1] for row in checked.table() if row[0] == kind]
        assert row == [kind] * len(numbers)

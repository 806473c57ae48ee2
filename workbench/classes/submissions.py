"""Check a folder of submitted notebooks: a table of students with their results, and a sentence for each answer."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from workbench.classes import judge
from workbench.classes.lessons import Lesson
from workbench.classes.student import answer_code, numbers_in, read_cells
from workbench.errors import DataError

MISSING, UNREADABLE = "missing", "unreadable"
# From the best result to the worst: of several notebooks of a student, the best result counts.
RESULTS = (
    judge.RIGHT, judge.WRONG, judge.TIMEOUT, judge.ERROR, judge.EMPTY, MISSING, UNREADABLE, judge.UNCHECKED,
)  # fmt: skip


class Result(NamedTuple):
    """The result of one exercise in one submitted notebook.

    ``file`` is relative to the folder of submissions, ``result`` is one of `RESULTS`, and ``sentence`` is its reason.
    """

    student: str
    file: str
    exercise: str
    result: str
    sentence: str


class Submissions(NamedTuple):
    """The results of a folder of submissions. ``ignored`` has (file, reason) for each file without results."""

    results: list[Result]
    ignored: list[tuple[str, str]]

    @property
    def exercises(self) -> list[str]:
        """The numbers of all exercises in the results."""
        return sorted({result.exercise for result in self.results})

    def table(self) -> list[list[str]]:
        """Return a row for each student: the name, the result of each exercise, and the number of right ones.

        The result of an exercise is "" if the student has submitted no notebook of its lesson.
        """
        best: dict[tuple[str, str], str] = {}
        for student, _, exercise, result, _ in self.results:
            earlier = best.get((student, exercise), result)
            best[student, exercise] = min(earlier, result, key=RESULTS.index)
        rows = []
        for student in sorted({result.student for result in self.results}):
            row = [best.get((student, number), "") for number in self.exercises]
            rows.append([student, *row, str(row.count(judge.RIGHT))])
        return rows

    def save(self, folder: Path) -> tuple[Path, Path]:
        """Write ``passed.csv`` (a row for each student) and ``sentences.csv`` (a row for each answer) into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        passed, sentences = folder / "passed.csv", folder / "sentences.csv"
        _write_csv(passed, ["student", *self.exercises, judge.RIGHT], self.table())
        _write_csv(sentences, Result._fields, sorted(self.results))
        return passed, sentences


class _Submission(NamedTuple):
    student: str
    file: str
    lesson: Lesson
    answers: dict[str, list[str] | None]  # number -> the code; None: the notebook has no cell of the exercise


def check_submissions(
    folder: Path,
    lessons: Iterable[Lesson],
    timeout_s: float = 120.0,
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Submissions:
    """Check all notebooks in a folder and its sub-folders. This executes the code of the answers.

    ``timeout_s``: time limit of an answer in seconds; ``workers``: number of answers that run at the same time, None:
    one for each core; ``progress``: gets a line of text before each lesson. The student of a notebook is the name of
    the first sub-folder, or the name of a file outside of sub-folders. Raises DataError for a folder without notebooks.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: the folder does not exist; name the folder with the submitted notebooks")
    paths = sorted(path for path in folder.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
    if not paths:
        raise DataError(f"{folder}: the folder and its sub-folders contain no notebooks (*.ipynb)")
    if not timeout_s > 0:
        raise DataError(f"the time limit is {timeout_s:g} s; it must be above 0")
    if workers is not None and workers < 1:
        raise DataError(f"the number of workers is {workers}; it must be at least 1")
    chosen = list(lessons)
    results: list[Result] = []
    ignored: list[tuple[str, str]] = []
    submissions: list[_Submission] = []
    for path in paths:
        _read_submission(path, folder, chosen, submissions, results, ignored)
    for lesson in chosen:
        own = [submission for submission in submissions if submission.lesson is lesson]
        if own and progress is not None:
            progress(f"{lesson.name}: {len(own)} notebooks")
        results += _judge_submissions(lesson, own, timeout_s, workers or os.cpu_count() or 1)
    return Submissions(results, ignored)


def _read_submission(
    path: Path,
    folder: Path,
    lessons: list[Lesson],
    submissions: list[_Submission],
    results: list[Result],
    ignored: list[tuple[str, str]],
) -> None:
    """Read a submitted notebook, and append its content to ``submissions``, ``results`` or ``ignored``.

    ``submissions`` gets an item for each lesson whose exercises the notebook has. An unreadable notebook of a lesson
    gives an item of ``results`` for each exercise; any other notebook gives an item of ``ignored``.
    """
    relative = path.relative_to(folder)
    by_name = [lesson for lesson in lessons if lesson.name in path.stem and lesson.exercises]
    try:
        cells = read_cells(path)
    except DataError as error:
        reason = str(error).removeprefix(f"{path}: ")
        for lesson in by_name:
            student = _find_student(relative, lesson)
            results += [Result(student, str(relative), number, UNREADABLE, reason) for number in lesson.exercises]
        if not by_name:
            ignored.append((str(relative), reason))
        return
    numbers = numbers_in(cells)
    own = [lesson for lesson in lessons if numbers & set(lesson.exercises)] or by_name
    if not own and not numbers:
        ignored.append((str(relative), "it has no exercise"))
    for lesson in own:
        answers = {number: answer_code(cells, number, lesson.names_for(number)) for number in lesson.exercises}
        submissions.append(_Submission(_find_student(relative, lesson), str(relative), lesson, answers))


def _find_student(relative: Path, lesson: Lesson) -> str:
    if len(relative.parts) > 1:
        return relative.parts[0]
    return relative.stem.replace(lesson.name, "").strip(" -_.") or relative.stem


def _judge_submissions(lesson: Lesson, submissions: list[_Submission], timeout_s: float, workers: int) -> list[Result]:
    """Judge the submissions of a lesson in another process, and return their results."""
    results, keys, attempts = [], [], []
    for submission in submissions:
        for number, cells in submission.answers.items():
            if cells is None:
                sentence = f"The notebook has no cell of exercise {number}."
                results.append(Result(submission.student, submission.file, number, MISSING, sentence))
            else:
                attempts.append(judge.Attempt(len(keys), number, cells))
                keys.append((submission.student, submission.file, number))
    if not attempts:
        return results
    with tempfile.TemporaryDirectory(prefix="submissions-") as folder:
        job = {
            "lesson": str(lesson.path.resolve()),
            "timeout_s": timeout_s,
            "workers": workers,
            "attempts": attempts,
        }
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        # -P: a student's file json.py in the current folder is not imported.
        command = [sys.executable, "-P", "-m", "workbench.classes.judge", str(file)]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    judged = dict.fromkeys(range(len(keys)), (judge.UNCHECKED, _explain_unchecked(lesson, ended.stderr)))
    for line in ended.stdout.splitlines():
        position, result, sentence = json.loads(line)
        judged[position] = result, sentence
    return results + [Result(*keys[position], *judged[position]) for position in range(len(keys))]


def _explain_unchecked(lesson: Lesson, errors: str) -> str:
    lines = errors.strip().splitlines()
    return f"Lesson {lesson.name} could not be prepared on this machine: {lines[-1] if lines else 'its process ended'}"


def _write_csv(path: Path, head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)

"""Exercises of the lessons: a check accepts an answer, or explains what is wrong with it.

    lessons.check("01.1", answer, wanted, unwanted)      a notebook shows the verdict as a sentence

"01.1" is the first exercise of lesson 1 (``notebooks/01-...``). The arguments after the answer are the objects of the
exercise: a scenario, two packets, some topics. The check computes the right answer from them, so it stays correct when
a class changes the scenario. An answer of None means that the exercise has not been answered yet.

Cost: a check runs a few small scenarios, each below a second; each scenario runs only once per process.

Each lesson has a module here, which lists its exercises in `EXERCISES` (see `_LESSONS`). The answers for teachers are
in ``notebooks/teachers``; a test checks them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from workbench.errors import ParameterError, WorkbenchError
from workbench.folded_errors import shortened
from workbench.keywords import answer_for
from workbench.suggestion import meant

from .exercise import Exercise, Verdict

__all__ = ["Exercise", "Verdict", "check", "numbers"]

_LONGEST = 600  # characters of an error message of the workbench
# Lesson -> the module of its exercises.
_LESSONS = {
    "01": "interest",
    "02": "combinations",
    "03": "places",
    "04": "topics",
    "05": "filtering",
    "06": "sweeps",
    "07": "logs",
    "08": "memory",
    "09": "parameters",
    "10": "asleep",
    "11": "choosing",
    "12": "healing",
    "13": "bench",
}


def check(number: str, answer: Any, *given: Any) -> Verdict:
    """Judge an answer to the exercise ``number``, such as "01.1"; ``given`` are the objects of the exercise.

    The answer may be any object; the verdict on a wrong answer explains why it is wrong. Raises ParameterError for an
    unknown number, and TypeError if ``given`` does not fit the exercise.
    """
    exercise = _exercise(number)
    if answer is None:
        return Verdict(False, f"The answer is still None. It must be {exercise.wants}.")
    if not exercise.accepts(answer):
        return Verdict(False, f"The answer is {answer!r:.80}; it must be {exercise.wants}.")
    try:
        return exercise.judge(answer, *given)
    except WorkbenchError as error:
        return Verdict(False, f"With this answer the workbench reports: {shortened(str(error), _LONGEST)}.")


def numbers() -> tuple[str, ...]:
    """Return the numbers of all exercises, in the order of the lessons."""
    return tuple(number for lesson in _LESSONS for number in _exercises(lesson))


def _exercise(number: str) -> Exercise:
    lesson = str(number).partition(".")[0]
    exercises = _exercises(lesson) if lesson in _LESSONS else {}
    if number not in exercises:
        raise ParameterError(f"{number!r:.40} is not the number of an exercise{meant(str(number), numbers())}")
    return exercises[number]


def _exercises(lesson: str) -> dict[str, Exercise]:
    exercises: dict[str, Exercise] = import_module(f"{__name__}.{_LESSONS[lesson]}").EXERCISES
    return exercises


answer_for(__name__)

"""Exercises of the lessons: a check says that an answer is right, or what is wrong with it and why.

    lessons.check("01.1", answer, wanted, unwanted)      shown in a notebook as a sentence

A number is that of the lesson (``notebooks/01-...``) and of the exercise in it. What stands behind the answer is what
the exercise is about: a scenario, two packets, some topics. The truth is computed from that, by running it, so a check
stays right when a class changes the scenario. An answer of None is not answered yet.

Cost: a check runs a few small scenarios, each below a second; the same scenario runs once in a process.

Each lesson has a module here: ``interest``, ``combinations``, ``places``, ``topics``, ``filtering``, ``memory``. It
lists its exercises in `EXERCISES`. The teacher's answers stand in ``notebooks/teachers``; a test checks them.
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

_LONGEST = 600  # letters of what the workbench says of an answer
# Lesson -> the module of its exercises.
_LESSONS = {"01": "interest", "02": "combinations", "03": "places", "04": "topics", "05": "filtering", "08": "memory"}


def check(number: str, answer: Any, *given: Any) -> Verdict:
    """Whether ``answer`` answers the exercise of this number about what is ``given``, and if not, why.

    An answer may be anything: a wrong one gets a sentence, and raises nothing. ParameterError for an unknown number,
    TypeError if what is given is not what the exercise is about.
    """
    exercise = _exercise(number)
    if answer is None:
        return Verdict(False, f"There is no answer so far. It has to be {exercise.wants}.")
    if not exercise.is_one(answer):
        return Verdict(False, f"The answer is {answer!r:.80}; it has to be {exercise.wants}.")
    try:
        return exercise.judge(answer, *given)
    except WorkbenchError as error:
        return Verdict(False, f"With this answer the workbench says: {shortened(str(error), _LONGEST)}.")


def numbers() -> tuple[str, ...]:
    """The numbers of all exercises, in the order of the lessons."""
    return tuple(number for lesson in _LESSONS for number in _exercises(lesson))


def _exercise(number: str) -> Exercise:
    lesson = str(number).partition(".")[0]
    exercises = _exercises(lesson) if lesson in _LESSONS else {}
    if number not in exercises:
        raise ParameterError(f"there is no exercise {number!r:.40}{meant(str(number), numbers())}")
    return exercises[number]


def _exercises(lesson: str) -> dict[str, Exercise]:
    found: dict[str, Exercise] = import_module(f"{__name__}.{_LESSONS[lesson]}").EXERCISES
    return found


answer_for(__name__)

"""The lessons' exercises: each answer for the teacher passes its check, and each typical mistake gets its sentence.

The tests read the exercises and the cells tagged "given" before them from the notebooks, and the answers from the
teacher's pages."""

import re

import pytest

import lessons
from workbench import motes
from workbench.classes.lessons import find_lessons, source_of, tags_of
from workbench.errors import ParameterError
from workbench.publishing.paper import small_parameters

LESSONS = {lesson.number: lesson for lesson in find_lessons() if lesson.exercises}


# Lessons whose given objects take long to make, and exercises that compile images. `make test-all` checks
# them, with small parameters.
LONG = ("11", "12", "08.1", "08.2")
NUMBERS = [
    pytest.param(number, marks=pytest.mark.family) if number.startswith(LONG) else number
    for number in lessons.numbers()
]


@pytest.fixture(scope="module")
def given():
    """Return a function from a lesson to the names that its cells tagged "given" define."""
    names_of_lessons = {}

    def names(lesson):
        if lesson not in names_of_lessons:
            names_of_lessons[lesson] = {"display": lambda *shown: None}  # a name that notebooks have
            for text in LESSONS[lesson].given:
                exec(compile(text, f"lesson {lesson}", "exec"), names_of_lessons[lesson])
                if lesson in LONG:
                    names_of_lessons[lesson].update(small_parameters(LESSONS[lesson].notebook))
        return dict(names_of_lessons[lesson])

    return names


def verdict(names, number, code):
    exercise = LESSONS[number[:2]].exercises[number]
    exec(compile(exercise.preparation, number, "exec"), names)
    exec(compile(code, f"answer to {number}", "exec"), names)
    return eval(compile(exercise.check, number, "eval"), names)


NEED_A_COMPILER = ("08.1", "08.2")


@pytest.mark.parametrize("number", NUMBERS)
def test_the_teachers_answer_is_right_and_a_typical_mistake_gets_its_sentence(number, given):
    if number in NEED_A_COMPILER and (reason := motes.missing(motes.CORTEX_M3)):
        pytest.skip(reason)
    (right, none), *mistakes = LESSONS[number[:2]].answers(number)
    assert not none
    assert mistakes
    judgment = verdict(given(number[:2]), number, right)
    assert judgment.is_right, judgment
    for code, sentence in mistakes:
        judgment = verdict(given(number[:2]), number, code)
        assert not judgment.is_right
        assert sentence in judgment.sentence


ABSURD = [
    10**400,
    "x" * 100_000,
    range(10**12),
    range(10**30),
    iter("01"),
    float("inf"),
    1j,
    [None, "a", 1],
]


@pytest.mark.parametrize("answer", ABSURD, ids=lambda answer: f"{answer!r:.20}")
@pytest.mark.parametrize("number", [number for number in NUMBERS if number not in NEED_A_COMPILER])
def test_absurd_answers_get_a_short_sentence_quickly(number, answer, given):
    judgment = verdict(given(number[:2]) | {"_": answer}, number, "answer = _")
    assert not judgment.is_right
    assert judgment.sentence.endswith(".") and len(judgment.sentence) < 800


@pytest.mark.parametrize("answer", ["0", "", b"\xff", 7, -1, float("nan"), [], [[]], {"a": 1}, object(), len, set()])
@pytest.mark.parametrize("number", NUMBERS)
def test_nonsense_is_not_right_and_raises_nothing(number, answer, given):
    judgment = verdict(given(number[:2]) | {"_": answer}, number, "answer = _")
    assert not judgment.is_right
    assert judgment.sentence.endswith(".")


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_three_unanswered_exercises(lesson):
    sources = [source_of(cell) for cell in LESSONS[lesson].cells if "exercise" in tags_of(cell)]
    numbers = [number for number in lessons.numbers() if number.startswith(lesson)]
    assert list(LESSONS[lesson].exercises) == numbers
    assert len(sources) == len(numbers) == 3
    assert all(re.search(r"^answer = None  # ", source, re.MULTILINE) for source in sources)


def test_a_missing_answer_gets_a_description_of_answers():
    judgment = lessons.check("04.2", None, "a/+")
    assert not judgment.is_right
    assert judgment.sentence == 'The answer is still None. It must be the topic of a publication, such as "a/b".'


def test_an_unknown_exercise_raises_an_error_with_a_suggestion():
    with pytest.raises(ParameterError, match=r"'01\.11' is not the number of an exercise \(did you mean 01\.1\?\)"):
        lessons.check("01.11", 1)


def test_a_judgment_is_displayed_as_text_and_as_html():
    judgment = lessons.check("04.2", "<a>", "a/+")
    assert repr(judgment).startswith("Not yet: '<a>' is not forwarded")
    assert "&lt;a&gt;" in judgment._repr_html_()
    assert lessons.check("04.2", "a/b/c", "a/+")._repr_html_().count("<b>Right.</b>") == 1

"""The lessons' exercises: each answer for the teacher passes its check, and each typical mistake gets its sentence.

The tests read the exercises and the cells tagged "given" before them from the notebooks, and the answers from the
teacher's pages."""

import ast
import json
import re

import pytest

import lessons
from tests.repository import REPOSITORY
from workbench import motes
from workbench.errors import ParameterError

LESSONS = sorted((REPOSITORY / "notebooks" / "teachers").glob("[01]*.md"))
NOTEBOOKS = {path.name[:2]: path.parents[1] / f"{path.stem}.ipynb" for path in LESSONS}
ANSWER = re.compile(r"```python\n(.*?)```(?:\n\n> ([^\n]+))?", re.DOTALL)


def cells(lesson, tag):
    """Return the sources of a notebook's cells that have a tag."""
    every = json.loads(NOTEBOOKS[lesson].read_text())["cells"]
    return ["".join(cell["source"]) for cell in every if tag in cell["metadata"].get("tags", ())]


def exercise(number):
    """Return the statements of an exercise's cell without ``answer = None``, and the expression with its check."""
    (text,) = [text for text in cells(number[:2], "exercise") if f'check("{number}"' in text]
    *statements, check = ast.parse(text).body
    preparation = [
        statement
        for statement in statements
        if "answer" not in [getattr(name, "id", "") for name in getattr(statement, "targets", ())]
    ]
    assert len(preparation) == len(statements) - 1
    return ast.Module(preparation, []), ast.Expression(check.value)


def answers(number):
    """Return (code, sentence) of the right answer, whose sentence is "", and of the mistakes."""
    (page,) = (REPOSITORY / "notebooks" / "teachers").glob(f"{number[:2]}-*.md")
    (section,) = [text for text in page.read_text().split("\n## ") if text.startswith(f"{number}\n")]
    return ANSWER.findall(section)


def small_parameters(lesson):
    """Return the values with which `make test` runs a notebook, by name."""
    every = json.loads(NOTEBOOKS[lesson].read_text())["cells"]
    mocks = [cell["metadata"].get("nbmake", {}).get("mock", {}) for cell in every]
    return {name: value for mock in mocks for name, value in mock.items()}


# Lessons whose given objects take long to make, and an exercise that compiles several images. `make test-all` checks
# them, with small parameters.
LONG = ("11", "12", "08.2")
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
            for text in cells(lesson, "given"):
                exec(compile(text, f"lesson {lesson}", "exec"), names_of_lessons[lesson])
                if lesson in LONG:
                    names_of_lessons[lesson].update(small_parameters(lesson))
        return dict(names_of_lessons[lesson])

    return names


def verdict(names, number, code):
    statements, check = exercise(number)
    exec(compile(statements, number, "exec"), names)
    exec(compile(code, f"answer to {number}", "exec"), names)
    return eval(compile(check, number, "eval"), names)


NEED_A_COMPILER = ("08.1", "08.2")


@pytest.mark.parametrize("number", NUMBERS)
def test_the_teachers_answer_is_right_and_a_typical_mistake_gets_its_sentence(number, given):
    if number in NEED_A_COMPILER and (reason := motes.missing(motes.CORTEX_M3)):
        pytest.skip(reason)
    (right, none), *mistakes = answers(number)
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


@pytest.mark.parametrize("lesson", NOTEBOOKS)
def test_a_lesson_has_three_unanswered_exercises(lesson):
    texts = cells(lesson, "exercise")
    numbers = [re.search(r'check\("([\d.]+)"', text)[1] for text in texts]
    assert numbers == [number for number in lessons.numbers() if number.startswith(lesson)]
    assert len(numbers) == 3
    assert all(re.search(r"^answer = None  # ", text, re.MULTILINE) for text in texts)


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

"""What an exercise is, what its check says, and the kinds of answers."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

_STYLE = "border-left: 4px solid {colour}; padding: 4px 10px; max-width: 56em"
_MOST = 10_000  # elements of a collection
_RIGHT, _WRONG = "var(--jp-success-color1, #2e7d32)", "var(--jp-warn-color1, #b26a00)"


class Verdict(NamedTuple):
    """Whether an answer is right, and the sentence that says why."""

    is_right: bool
    sentence: str

    @property
    def text(self) -> str:
        """The verdict as a line of text."""
        return f"{'Right' if self.is_right else 'Not yet'}: {self.sentence}"

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        style = _STYLE.format(colour=_RIGHT if self.is_right else _WRONG)
        word = "Right." if self.is_right else "Not yet."
        return f'<div style="{style}" role="status"><b>{word}</b> {html.escape(self.sentence)}</div>'


class Exercise(NamedTuple):
    """``wants`` says what an answer is, ``is_one`` whether a value is such an answer, ``judge`` whether it is right."""

    wants: str
    is_one: Callable[[Any], bool]
    judge: Callable[..., Verdict]


def is_text(answer: Any) -> bool:
    """Whether an answer is text that is not empty."""
    return isinstance(answer, str) and bool(answer.strip())


def is_number(answer: Any) -> bool:
    """Whether an answer is a number (a fraction is one)."""
    if isinstance(answer, bool) or not hasattr(answer, "__float__") or hasattr(answer, "__len__"):
        return False
    try:
        return float(answer) is not None
    except (ArithmeticError, TypeError, ValueError):  # more digits than a float has room for
        return False


def is_collection(answer: Any) -> bool:
    """Whether an answer is a set, a list or the like, of values that a set can have, and not too many of them."""
    if isinstance(answer, (str, bytes, dict)) or not isinstance(answer, Collection):
        return False
    try:
        return len(answer) <= _MOST and len({*answer}) >= 0
    except (OverflowError, TypeError):
        return False


def compared(
    answer: Iterable[Any], truth: Iterable[Any], too_many: Callable[[Any], str], missing: Callable[[Any], str]
) -> str:
    """What is wrong with a set, by its first wrong element; "" if it is the true one."""
    given, true = set(answer), set(truth)
    for one in sorted(given - true, key=str):
        return too_many(one)
    for one in sorted(true - given, key=str):
        return missing(one)
    return ""

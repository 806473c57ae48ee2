"""The types of an exercise and its verdict, and predicates for kinds of answers."""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

_STYLE = "border-left: 4px solid {colour}; padding: 4px 10px; max-width: 56em"
_MAX_ELEMENTS = 10_000  # of a collection
_RIGHT, _WRONG = "var(--jp-success-color1, #2e7d32)", "var(--jp-warn-color1, #b26a00)"


class Verdict(NamedTuple):
    """The result of a check: whether the answer is right, and a sentence with the reason."""

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
        heading = "Right." if self.is_right else "Not yet."
        return f'<div style="{style}" role="status"><b>{heading}</b> {html.escape(self.sentence)}</div>'


class Exercise(NamedTuple):
    """An exercise: a description of its answers, and functions that check an answer.

    wants: the description, such as "the number of a node"; accepts: whether a value is an answer of this kind;
    judge: returns the verdict on such an answer.
    """

    wants: str
    accepts: Callable[[Any], bool]
    judge: Callable[..., Verdict]


def is_text(answer: Any) -> bool:
    """Return whether an answer is text that is not blank."""
    return isinstance(answer, str) and bool(answer.strip())


def is_number(answer: Any) -> bool:
    """Return whether an answer is a number, such as an integer, a float or a fraction."""
    if isinstance(answer, bool) or not hasattr(answer, "__float__") or hasattr(answer, "__len__"):
        return False
    try:
        return float(answer) is not None
    except (ArithmeticError, TypeError, ValueError):  # too large for a float
        return False


def is_collection(answer: Any) -> bool:
    """Return whether an answer is a set, list or other collection of at most 10,000 hashable values."""
    if isinstance(answer, (str, bytes, dict)) or not isinstance(answer, Collection):
        return False
    try:
        return len(answer) <= _MAX_ELEMENTS and len({*answer}) >= 0
    except (OverflowError, TypeError):
        return False


def compare_sets(
    answer: Iterable[Any], truth: Iterable[Any], too_many: Callable[[Any], str], missing: Callable[[Any], str]
) -> str:
    """Return a sentence about the first wrong element of a set, or "" if the set is right.

    ``too_many`` and ``missing`` build the sentence for an element that is wrong or missing in the answer.
    """
    answered, expected = set(answer), set(truth)
    for element in sorted(answered - expected, key=str):
        return too_many(element)
    for element in sorted(expected - answered, key=str):
        return missing(element)
    return ""

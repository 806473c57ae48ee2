"""Drawings in a sequence with a slider: for lessons, and for pages without the player. No kernel is needed.

Theory of operation
    Neighbors in the sequence share most of their elements. The page has one SVG with the elements of all drawings, each
    with the steps at which it is shown. Its order agrees with the order in every drawing. Each drawing is merged into
    the elements that are present: their longest common chain is shared (patience sorting, O(n log n) for n elements),
    and the other elements are inserted in between.

Limits
    An element that moves counts as a different element. Where scripts do not run, the last drawing is shown.
"""

from __future__ import annotations

import html
import json
from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from workbench.errors import ParameterError
from workbench.views.drawing import Drawing, themed

STYLE = (
    "<style>.wb-stepper [hidden]{display:none}.wb-steps{display:flex;gap:8px;align-items:center;max-width:700px;"
    "font:13px system-ui,sans-serif;margin:4px 0}.wb-steps input{flex:1}.wb-steps output{min-width:6em}"
    ".wb-stepper:focus-visible{outline:2px solid #4BA6E9;outline-offset:2px}</style>"
)
# Notebooks have shortcuts on the arrow keys; the focused element must opt out of them.
OWN_KEYS = 'data-lm-suppress-shortcuts="true"'

Spans = list[tuple[int, int]]  # the first and the last step of each interval


class Stepper:
    """Drawings to step through with a slider, buttons and the arrow keys.

    ``description``: label of the slider. All drawings get the size of the largest, so that the page does not jump.
    """

    def __init__(self, drawings: Sequence[Drawing], names: Sequence[str], description: str) -> None:
        if not drawings or len(drawings) != len(names):
            raise ParameterError(
                f"Stepper: {len(drawings)} drawings, {len(names)} names; give at least one drawing, and a name for each"
            )
        self.drawings = tuple(drawings)
        self.names = tuple(names)
        self.description = description
        width, height = max(d.width for d in drawings), max(d.height for d in drawings)
        for drawing in self.drawings:
            drawing.width, drawing.height = width, height

    def to_html(self) -> str:
        """Return the slider with the drawing below it, as one element for a page."""
        last = len(self.drawings) - 1
        body = "\n".join(_group(spans, elements, last) for spans, elements in merged(self.drawings))
        picture = self.drawings[0].frame_svg(body, themed(body, self.drawings[0].background))
        names, description = html.escape(json.dumps(self.names)), html.escape(self.description)
        controls = (
            '<div class="wb-steps" hidden>'
            f'<button type="button" {OWN_KEYS} aria-label="previous">◀</button><label>{description}</label>'
            f'<input type="range" {OWN_KEYS} min="0" max="{last}" value="{last}" aria-label="{description}">'
            f'<button type="button" {OWN_KEYS} aria-label="next">▶</button><output></output></div>'
        )
        script = Path(__file__).with_name("stepper.js").read_text(encoding="utf-8")
        root = f'<div class="wb-stepper" tabindex="0" {OWN_KEYS} data-names="{names}">{controls}{picture}</div>'
        return f"{STYLE}{root}<script>{script}</script>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.to_html()}

    def __repr__(self) -> str:
        return f"Stepper({len(self.drawings)} drawings, {self.description} {self.names[0]} to {self.names[-1]})"


def merged(drawings: Sequence[Drawing]) -> list[tuple[Spans, list[str]]]:
    """Return (spans of steps, elements shown at these steps), in an order that agrees with every drawing's."""
    elements_so_far: list[str] = []  # all elements in their order, and when each is shown
    spans: list[Spans] = []
    for step, drawing in enumerate(drawings):
        elements = drawing.elements()
        elements_so_far, spans = _insert_step(
            elements_so_far, spans, elements, _common(elements, elements_so_far), step
        )
    grouped = groupby(zip(spans, elements_so_far, strict=True), key=lambda pair: pair[0])
    return [(shown, [element for _, element in group]) for shown, group in grouped]


def _common(elements: Sequence[str], every: Sequence[str]) -> list[int]:
    """Return for each element its index in ``every``, ascending, or -1, with as many matches as possible."""
    indices: dict[str, list[int]] = {}
    for index, element in enumerate(every):
        indices.setdefault(element, []).append(index)
    occurrences: dict[str, int] = {}
    candidates = []
    for number_of_element, element in enumerate(elements):
        # The n-th of equal elements can only match the n-th of its indices.
        number = occurrences[element] = occurrences.get(element, -1) + 1
        if number < len(indices.get(element, ())):
            candidates.append((number_of_element, indices[element][number]))
    matches = [-1] * len(elements)
    for number_of_element, index in _longest_ascent(candidates):
        matches[number_of_element] = index
    return matches


def _longest_ascent(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of the pairs whose second numbers ascend."""
    ends: list[int] = []  # the smallest last number of an ascent of each length, and the index of its pair
    last_index: list[int] = []
    previous: list[int] = []
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        previous.append(last_index[length - 1] if length else -1)
        if length == len(ends):
            ends.append(number)
            last_index.append(index)
        ends[length], last_index[length] = number, index
    ascent, index = [], last_index[-1] if last_index else -1
    while index >= 0:
        ascent.append(pairs[index])
        index = previous[index]
    return ascent[::-1]


def _insert_step(
    every: Sequence[str], spans: Sequence[Spans], elements: Sequence[str], matches: Sequence[int], step: int
) -> tuple[list[str], list[Spans]]:
    """Insert the elements of one more step; return the elements and their spans."""
    result: list[str] = []
    shown: list[Spans] = []
    done = 0
    for element, place in zip(elements, matches, strict=True):
        if place < 0:
            result.append(element)
            shown.append([(step, step)])
            continue
        *before, (first, last) = spans[place]
        result += every[done : place + 1]
        shown += [
            *spans[done:place],
            [*before, *([(first, step)] if last == step - 1 else [(first, last), (step, step)])],
        ]
        done = place + 1
    return [*result, *every[done:]], [*shown, *spans[done:]]


def _group(spans: Spans, elements: Sequence[str], last: int) -> str:
    """Return elements as a group that lists its steps in an attribute: "0-3 7"."""
    body = "\n".join(elements)
    if spans == [(0, last)]:
        return body
    steps = " ".join(f"{first}-{end}" if end > first else f"{first}" for first, end in spans)
    return f'<g data-steps="{steps}"{"" if spans[-1][1] == last else " hidden"}>\n{body}\n</g>'

"""Drawings in a row, with a slider: for a class, and for pages without the player. No kernel is needed.

Theory of operation
    Neighbors in a row have most of their elements in common. The page has one SVG with all elements in an order in
    which those of every drawing are in theirs, each with the steps at which it is shown. A drawing's elements are
    looked for among those that are there already, from the lowest on: the longest chain that keeps the order of both
    is shared (patience sorting, O(n log n) for n elements), and the others go in between.

Limits
    An element that was moved is another element. Where scripts are not run, the last drawing is shown.
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
# Notebooks have shortcuts on the arrow keys. What has the focus has to say itself that it wants none.
OWN_KEYS = 'data-lm-suppress-shortcuts="true"'

Spans = list[tuple[int, int]]  # the first and the last step of each


class Stepper:
    """Drawings to step through with a slider, buttons and the arrow keys.

    ``description``: what the slider goes through. All drawings get the size of the largest, so that nothing jumps.
    """

    def __init__(self, drawings: Sequence[Drawing], names: Sequence[str], description: str) -> None:
        if not drawings or len(drawings) != len(names):
            raise ParameterError(f"a Stepper of {len(drawings)} drawings with {len(names)} names; as many, from 1 on")
        self.drawings = tuple(drawings)
        self.names = tuple(names)
        self.description = description
        width, height = max(one.width for one in drawings), max(one.height for one in drawings)
        for one in self.drawings:
            one.width, one.height = width, height

    def to_html(self) -> str:
        """The slider with the drawing below it, as one element for a page."""
        last = len(self.drawings) - 1
        body = "\n".join(_group(spans, elements, last) for spans, elements in merged(self.drawings))
        picture = self.drawings[0].frame_svg(body, themed(body, self.drawings[0].background))
        names, said = html.escape(json.dumps(self.names)), html.escape(self.description)
        controls = (
            '<div class="wb-steps" hidden>'
            f'<button type="button" {OWN_KEYS} aria-label="one back">◀</button><label>{said}</label>'
            f'<input type="range" {OWN_KEYS} min="0" max="{last}" value="{last}" aria-label="{said}">'
            f'<button type="button" {OWN_KEYS} aria-label="one on">▶</button><output></output></div>'
        )
        script = Path(__file__).with_name("stepper.js").read_text(encoding="utf-8")
        root = f'<div class="wb-stepper" tabindex="0" {OWN_KEYS} data-names="{names}">{controls}{picture}</div>'
        return f"{STYLE}{root}<script>{script}</script>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.to_html()}

    def __repr__(self) -> str:
        return f"Stepper({len(self.drawings)} drawings, {self.description} {self.names[0]} to {self.names[-1]})"


def merged(drawings: Sequence[Drawing]) -> list[tuple[Spans, list[str]]]:
    """(spans of steps, elements that are shown at just these), in an order that has those of all drawings in theirs."""
    every: list[str] = []  # the elements in their order, and when each is shown
    spans: list[Spans] = []
    for step, drawing in enumerate(drawings):
        elements = drawing.elements()
        every, spans = _woven(every, spans, elements, _common(elements, every), step)
    grouped = groupby(zip(spans, every, strict=True), key=lambda one: one[0])
    return [(shown, [element for _, element in some]) for shown, some in grouped]


def _common(elements: Sequence[str], every: Sequence[str]) -> list[int]:
    """For each element its place in ``every``, ascending, or -1; as many as can be."""
    places: dict[str, list[int]] = {}
    for place, element in enumerate(every):
        places.setdefault(element, []).append(place)
    met: dict[str, int] = {}
    candidates = []
    for which, element in enumerate(elements):
        # The n-th of equal elements is looked for at the n-th of the places.
        number = met[element] = met.get(element, -1) + 1
        if number < len(places.get(element, ())):
            candidates.append((which, places[element][number]))
    found = [-1] * len(elements)
    for which, place in _longest_ascent(candidates):
        found[which] = place
    return found


def _longest_ascent(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs, in their order, whose second numbers ascend."""
    ends: list[int] = []  # the smallest last number of an ascent of each length, and which pair that is
    at: list[int] = []
    before: list[int] = []
    for which, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        before.append(at[length - 1] if length else -1)
        if length == len(ends):
            ends.append(number)
            at.append(which)
        ends[length], at[length] = number, which
    found, which = [], at[-1] if at else -1
    while which >= 0:
        found.append(pairs[which])
        which = before[which]
    return found[::-1]


def _woven(
    every: Sequence[str], spans: Sequence[Spans], elements: Sequence[str], found: Sequence[int], step: int
) -> tuple[list[str], list[Spans]]:
    """The elements with those of one more step in between."""
    woven: list[str] = []
    shown: list[Spans] = []
    done = 0
    for element, place in zip(elements, found, strict=True):
        if place < 0:
            woven.append(element)
            shown.append([(step, step)])
            continue
        *before, (first, last) = spans[place]
        woven += every[done : place + 1]
        shown += [
            *spans[done:place],
            [*before, *([(first, step)] if last == step - 1 else [(first, last), (step, step)])],
        ]
        done = place + 1
    return [*woven, *every[done:]], [*shown, *spans[done:]]


def _group(spans: Spans, elements: Sequence[str], last: int) -> str:
    """Elements as a group that tells when it is shown: "0-3 7"."""
    body = "\n".join(elements)
    if spans == [(0, last)]:
        return body
    told = " ".join(f"{first}-{end}" if end > first else f"{first}" for first, end in spans)
    return f'<g data-steps="{told}"{"" if spans[-1][1] == last else " hidden"}>\n{body}\n</g>'

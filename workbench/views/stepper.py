"""A sequence of drawings with a slider: for lessons, and for pages without the player. No kernel is needed.

Theory of operation
    A step is a position of the slider: the index of the drawing that is shown. Successive drawings share most of their
    SVG elements. So the page has a single SVG with the elements of all drawings, and each element lists the steps at
    which it is shown. The order of elements agrees with their order in every drawing.

    Drawings are merged one after the other. The longest sequence of elements that a drawing has in common with the
    elements so far is shared (patience sorting, O(n log n) for n elements). All other elements of the drawing are
    inserted in between.

Limits
    An element that moves counts as a different element. Where scripts do not run, as in a notebook that is not trusted,
    an image of the last drawing is shown.
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
from workbench.views.image import image_html

STYLE = (
    "<style>.wb-steps{display:flex;gap:8px;align-items:center;max-width:700px;font:13px system-ui,sans-serif;"
    "margin:4px 0}.wb-steps input{flex:1}.wb-steps output{min-width:6em}"
    ".wb-stepper:focus-visible{outline:2px solid #4BA6E9;outline-offset:2px}</style>"
)
# SVG gives the attribute no meaning of its own.
HIDDEN = "<style>g[hidden]{display:none}</style>\n"
# Notebooks have shortcuts on the arrow keys; the focused element must opt out of them.
OWN_KEYS = 'data-lm-suppress-shortcuts="true"'

Spans = list[tuple[int, int]]  # the first and the last step of each interval


class Stepper:
    """A sequence of drawings with a slider, buttons and arrow keys that choose which drawing is shown.

    ``names``: a name for each drawing. ``description``: label of the slider. All drawings get the size of the largest
    drawing, so that the page does not jump. Raises ParameterError without drawings, or if a name is missing.
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
        last_step = len(self.drawings) - 1
        group_svg = "\n".join(_group_svg(spans, elements, last_step) for spans, elements in merged(self.drawings))
        first_drawing = self.drawings[0]
        svg = first_drawing.frame_svg(group_svg, f"{themed(group_svg, first_drawing.background)}{HIDDEN}")
        picture = image_html(
            svg, f"{first_drawing.title or 'a drawing'}, {self.names[-1]}", first_drawing.width, first_drawing.height
        )
        names_json, description = html.escape(json.dumps(self.names)), html.escape(self.description)
        script = Path(__file__).with_name("stepper.js").read_text(encoding="utf-8")
        dataset = f'data-names="{names_json}" data-description="{description}"'
        return (
            f'{STYLE}<div class="wb-stepper" tabindex="0" {OWN_KEYS} {dataset}>{picture}</div><script>{script}</script>'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": self.to_html()}

    def __repr__(self) -> str:
        return f"Stepper({len(self.drawings)} drawings, {self.description} {self.names[0]} to {self.names[-1]})"


def merged(drawings: Sequence[Drawing]) -> list[tuple[Spans, list[str]]]:
    """Merge drawings, so that an SVG element that several drawings share is stored once.

    Return a list of (steps, SVG elements shown at these steps). A step is the index of a drawing. The steps are a list
    of intervals (first, last), both inclusive. The elements of each drawing keep their order.
    """
    elements_so_far: list[str] = []  # in their order; ``spans`` has the steps at which each is shown
    spans: list[Spans] = []
    for step, drawing in enumerate(drawings):
        elements = drawing.elements()
        elements_so_far, spans = _merge_drawing(
            elements_so_far, spans, elements, _match_elements(elements, elements_so_far), step
        )
    grouped = groupby(zip(spans, elements_so_far, strict=True), key=lambda pair: pair[0])
    return [(group_spans, [element for _, element in group]) for group_spans, group in grouped]


def _match_elements(elements: Sequence[str], all_elements: Sequence[str]) -> list[int]:
    """Return for each SVG element the index of an equal element in ``all_elements``, or -1 if it has no match.

    The indices (without -1) ascend. An element can occur several times: its n-th occurrence can only match the n-th
    occurrence in ``all_elements``.
    """
    indices: dict[str, list[int]] = {}
    for index, element in enumerate(all_elements):
        indices.setdefault(element, []).append(index)
    occurrences: dict[str, int] = {}
    candidates = []
    for element_index, element in enumerate(elements):
        # The n-th of equal elements can only match the n-th of its indices.
        occurrence = occurrences[element] = occurrences.get(element, -1) + 1
        if occurrence < len(indices.get(element, ())):
            candidates.append((element_index, indices[element][occurrence]))
    matches = [-1] * len(elements)
    for element_index, index in _longest_ascent(candidates):
        matches[element_index] = index
    return matches


def _longest_ascent(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of ``pairs`` in which the second numbers of the pairs ascend."""
    ascent_ends: list[int] = []  # the smallest last number of an ascent of each length
    end_indices: list[int] = []  # the index of the pair with that number
    previous_indices: list[int] = []
    for index, (_, second_number) in enumerate(pairs):
        ascent_length = bisect_left(ascent_ends, second_number)
        previous_indices.append(end_indices[ascent_length - 1] if ascent_length else -1)
        if ascent_length == len(ascent_ends):
            ascent_ends.append(second_number)
            end_indices.append(index)
        ascent_ends[ascent_length], end_indices[ascent_length] = second_number, index
    ascent, index = [], end_indices[-1] if end_indices else -1
    while index >= 0:
        ascent.append(pairs[index])
        index = previous_indices[index]
    return ascent[::-1]


def _merge_drawing(
    all_elements: Sequence[str], spans: Sequence[Spans], elements: Sequence[str], matches: Sequence[int], step: int
) -> tuple[list[str], list[Spans]]:
    """Merge the elements of the next drawing into those of earlier drawings; return the new (all_elements, spans).

    all_elements: the SVG elements of all earlier drawings.
    spans: for each of these elements, the intervals (first, last) of the steps that show it.
    elements: the SVG elements of the next drawing.
    matches: for each element of the next drawing, the index of the equal element in ``all_elements``, or -1.
    step: the step of the next drawing, which is its index.
    """
    merged_elements: list[str] = []
    merged_spans: list[Spans] = []
    copied = 0
    for element, match in zip(elements, matches, strict=True):
        if match < 0:
            merged_elements.append(element)
            merged_spans.append([(step, step)])
            continue
        *earlier_spans, (first_step, last_step) = spans[match]
        merged_elements += all_elements[copied : match + 1]
        merged_spans += [
            *spans[copied:match],
            [
                *earlier_spans,
                *([(first_step, step)] if last_step == step - 1 else [(first_step, last_step), (step, step)]),
            ],
        ]
        copied = match + 1
    return [*merged_elements, *all_elements[copied:]], [*merged_spans, *spans[copied:]]


def _group_svg(spans: Spans, elements: Sequence[str], last: int) -> str:
    """Return elements as an SVG group, whose attribute ``data-steps`` lists the steps that show it, such as "0-3 7".

    ``spans``: intervals (first, last) of the steps at which the elements are shown. ``last``: the number of the last
    step. Elements that are shown at all steps are returned without a group.
    """
    elements_svg = "\n".join(elements)
    if spans == [(0, last)]:
        return elements_svg
    steps_text = " ".join(
        f"{first_step}-{last_step}" if last_step > first_step else f"{first_step}" for first_step, last_step in spans
    )
    hidden_attribute = "" if spans[-1][1] == last else ' hidden=""'
    return f'<g data-steps="{steps_text}"{hidden_attribute}>\n{elements_svg}\n</g>'

"""Bits of a filter and the topics that may have set them.

    topic_bits(topic, ...)            the items of a topic, and the bit positions of each, as a table
    explained(vector, topics, ...)    which of some topics a vector may hold, and which positions they explain
    bits_drawing({name: vector})      vectors as rows of cells, one below the other: for short ones

A filter never names a topic. But who has a list of topics that may be in it can try them: one that lacks a bit is not
in it, and one that has them all probably is. That is how filters tell something even of encrypted publications.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from workbench.errors import ParameterError
from workbench.protocols.dps.bloom import HASHES, LENGTH, BitVector, item_positions
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.dps.views.looks import percent
from workbench.views import palette
from workbench.views.drawing import Drawing

if TYPE_CHECKING:
    import pandas as pd

MOST_CELLS = 1024
PER_ROW = 64
CELL = 10.5
_SIZE = 11.0


class Explained(NamedTuple):
    """A topic with its items and their positions; whether a vector has all of them, and how many."""

    topic: str
    items: tuple[tuple[str, tuple[int, ...]], ...]
    is_there: bool
    found: int
    wanted: int


def topic_items(topic: str, as_publication: bool, separators: str = "/", wildcards: bool = True) -> list[str]:
    """The items of a topic. AttributeFormatError if it is none."""
    if as_publication:
        return publication_items(topic, separators, wildcards)
    return subscription_items(topic, separators)


def topic_bits(
    topic: str,
    as_publication: bool = True,
    filter_bits: int = LENGTH,
    hashes: int = HASHES,
    separators: str = "/",
    wildcards: bool = True,
) -> pd.DataFrame:
    """The items of a topic and their bits: columns item and bits. AttributeFormatError if the topic is none."""
    import pandas as pd

    BitVector(filter_bits)  # It says what is wrong with a length.
    items = topic_items(topic, as_publication, separators, wildcards)
    rows = [{"item": item, "bits": item_positions(item, filter_bits, hashes)} for item in items]
    return pd.DataFrame(rows, columns=["item", "bits"])


def explained(
    vector: BitVector, topics: Sequence[str], as_publication: bool, hashes: int = HASHES, separators: str = "/"
) -> list[Explained]:
    """What each topic says of a vector.

    ``as_publication``: the vector is a publication's, so topics without wildcards are taken as published; those with
    wildcards are always taken as subscriptions, of which the vector may be what they match.
    """
    found = []
    for topic in topics:
        published = as_publication and "+" not in topic and "#" not in topic
        items = tuple(
            (item, tuple(item_positions(item, vector.length, hashes)))
            for item in topic_items(topic, published, separators)
        )
        places = {place for _, bits in items for place in bits}
        there = sum(vector.bits >> place & 1 for place in places)
        found.append(Explained(topic, items, bool(places) and there == len(places), there, len(places)))
    return found


def positions(vector: BitVector, told: Sequence[Explained]) -> dict[int, list[tuple[str, str]]]:
    """Each bit of a vector that is set, ascending -> the (topic, item) pairs that may have set it.

    Topics that lack a bit are left out: they are not in the vector.
    """
    explained_by: dict[int, list[tuple[str, str]]] = {place: [] for place in vector.positions()}
    for one in told:
        if one.is_there:
            for item, bits in one.items:
                for place in dict.fromkeys(bits):
                    explained_by[place].append((one.topic, item))
    return explained_by


def bits_drawing(vectors: Mapping[str, BitVector], marked: BitVector | None = None, title: str = "") -> Drawing:
    """Vectors of one length as rows of cells, 64 in a row, bit 0 on the upper left.

    ``marked``: bits of another color, say those that two vectors have in common. ParameterError for vectors of
    different lengths, or of more than 1024 bits.
    """
    lengths = {vector.length for vector in vectors.values()} | ({marked.length} if marked is not None else set())
    if len(lengths) != 1 or not vectors:
        raise ParameterError(f"bits_drawing: vectors of {sorted(lengths)} bits; all must have one length")
    length = lengths.pop()
    if length > MOST_CELLS:
        raise ParameterError(f"bits_drawing: vectors of {length} bits; {MOST_CELLS} can be drawn at most")
    rows = -(-length // PER_ROW)
    block = rows * CELL + 30
    top = 30.0 if title else 8.0
    drawing = Drawing(PER_ROW * CELL + 32, top + block * len(vectors) + 4, title=title or "bits")
    drawing.text(16, 22, title, size=14, bold=True)
    for number, (name, vector) in enumerate(vectors.items()):
        y = top + number * block
        said = f"{name}: {vector.popcount} of {length} bits, {percent(vector.fill)}"
        drawing.text(16, y + 14, said, size=_SIZE)
        _cells(drawing, 16, y + 20, vector, 0 if marked is None else marked.bits)
    return drawing


def _cells(drawing: Drawing, left: float, top: float, vector: BitVector, marked: int) -> None:
    wide, rows = min(PER_ROW, vector.length), -(-vector.length // PER_ROW)
    drawing.rectangle(left, top, wide * CELL, rows * CELL, fill="#F2F5F8")
    for place in vector.positions():
        x, y = left + place % PER_ROW * CELL, top + place // PER_ROW * CELL
        colour = palette.DATA if marked >> place & 1 else palette.SINK
        drawing.rectangle(x, y, CELL, CELL, fill=colour)
    for column in range(wide + 1):
        strong = column % 8 == 0
        x = left + column * CELL
        look = {"colour": palette.LINK_GOOD if strong else "#E1E6EB", "width": 1.0 if strong else 0.5}
        drawing.segment(x, top, x, top + rows * CELL, **look)
    for row in range(rows + 1):
        y = top + row * CELL
        drawing.segment(left, y, left + wide * CELL, y, colour="#D3DAE1", width=0.6)

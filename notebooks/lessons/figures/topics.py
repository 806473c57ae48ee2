"""From topics to a routing decision, step by step: filters, what they have in common, fuzzy hashes, needs.

    topic_bits(topic, ...)                 the items of a topic, and the bit positions of each, as a table
    bits_drawing({name: vector})           vectors as rows of cells, one below the other: for short ones
    routing_steps(topic, subscriptions)    a `Decision`: shown as a drawing, with a table of its steps
    topic_explorer(...)                    the same as a widget with fields for the topics, the length and the hashes

A node that has been told `interests` and `needs` over a link sends a publication there if the fuzzy hash of what its
filter has in common with the interests includes the needs. Whether topics really match is another question, which is
answered at the subscriber: both answers stand side by side.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import ParameterError, WorkbenchError
from workbench.protocols.dps import bloom
from workbench.protocols.dps.bloom import FUZZY_HASH_BITS, HASHES, BitVector, CountingVector, item_positions, routes
from workbench.protocols.dps.topics import matches, publication_items, subscription_items
from workbench.protocols.dps.views.looks import percent
from workbench.protocols.dps.views.page import topic_items
from workbench.views import palette
from workbench.views.drawing import Drawing
from workbench.views.rich import Explorer

if TYPE_CHECKING:
    import pandas as pd

LENGTHS = (64, 128, 192, 256, 512)
LENGTH = 128
MOST_CELLS = 1024
PER_ROW = 64
CELL = 10.5
_SIZE = 11.0


def topic_bits(
    topic: str,
    as_publication: bool = True,
    filter_bits: int = bloom.LENGTH,
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


@dataclass(frozen=True)
class Decision:
    """What a node computes when a publication comes and there is one link, with some subscriptions behind it."""

    topic: str
    subscriptions: tuple[str, ...]
    publication: BitVector
    interests: BitVector
    common: BitVector
    common_hash: BitVector
    needs: BitVector
    goes: bool
    wanted: tuple[str, ...]  # the subscriptions that match

    @property
    def is_false_positive(self) -> bool:
        """Whether it goes there though nobody wants it."""
        return self.goes and not self.wanted

    @property
    def missing(self) -> BitVector:
        """The bits of the needs that what is in common lacks."""
        return BitVector(FUZZY_HASH_BITS, self.needs.bits & ~self.common_hash.bits)

    def verdict(self) -> str:
        """The decision in a sentence."""
        lacking = self.missing.popcount
        why = "all needs are met" if self.goes else f"{lacking} bits of the needs are missing" if lacking else "no bit"
        if not self.common.bits:
            why = "filter and interests have no bit in common"
        end = f"wanted by {', '.join(self.wanted)}" if self.wanted else "and nobody there wants it"
        if self.is_false_positive:
            end += ": a false positive"
        return f"{'It goes over the link' if self.goes else 'It does not go over the link'}: {why}; {end}."

    def table(self) -> pd.DataFrame:
        """The steps: vector, bits set, of how many, fill."""
        import pandas as pd

        steps = {
            "filter of the publication": self.publication,
            "interests: union of the subscriptions' filters": self.interests,
            "in common": self.common,
            "fuzzy hash of what is in common": self.common_hash,
            "needs: common to all their fuzzy hashes": self.needs,
            "needs that are missing": self.missing,
        }
        rows = [
            {"step": name, "bits set": one.popcount, "of": one.length, "fill": one.fill} for name, one in steps.items()
        ]
        return pd.DataFrame(rows)

    def drawing(self) -> Drawing:
        """The vectors as rows of cells; orange: in common, or of the needs what is met."""
        filters = bits_drawing(
            {"filter of the publication": self.publication, "interests of the link": self.interests}, self.common
        )
        met = BitVector(FUZZY_HASH_BITS, self.needs.bits & self.common_hash.bits)
        hashes = bits_drawing(
            {"fuzzy hash of what is in common": self.common_hash, "needs of the link": self.needs}, met
        )
        drawing = Drawing(filters.width, filters.height + hashes.height + 62, title=self.topic)
        drawing.text(16, 22, f"{self.topic} → {' , '.join(self.subscriptions)}", size=14, bold=True)
        drawing.add(filters, 0, 30)
        drawing.add(hashes, 0, 30 + filters.height)
        colour = palette.LOST if self.is_false_positive else palette.TEXT
        drawing.text(16, drawing.height - 14, self.verdict(), size=12, colour=colour)
        return drawing

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.drawing()._repr_mimebundle_(include, exclude)


def routing_steps(
    topic: str,
    subscriptions: str | Sequence[str],
    filter_bits: int = LENGTH,
    hashes: int = HASHES,
    separators: str = "/",
) -> Decision:
    """Whether a publication on a topic goes over a link with these subscriptions behind it, and how that comes.

    AttributeFormatError for topics that are none, ParameterError for a length that DPS has not or no subscription.
    """
    asked = (subscriptions,) if isinstance(subscriptions, str) else tuple(subscriptions)
    if not asked:
        raise ParameterError("routing_steps: there are no subscriptions; one or more are wanted")
    publication = BitVector.of(publication_items(topic, separators), filter_bits, hashes)
    filters, needs = CountingVector(filter_bits), CountingVector(FUZZY_HASH_BITS)
    for one in asked:
        vector = BitVector.of(subscription_items(one, separators), filter_bits, hashes)
        filters.add(vector)
        needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
    interests = filters.union()
    common = publication & interests
    shared = needs.intersection()
    return Decision(
        topic,
        asked,
        publication,
        interests,
        common,
        BitVector.from_bytes(common.fuzzy_hash()),
        shared,
        # A link that nobody asks anything over is no way for anything.
        not interests.is_empty and routes(publication, interests, shared.to_bytes()),
        tuple(one for one in asked if matches([topic], [one], separators)),
    )


def topic_explorer(
    topic: str = "house/kitchen/temp",
    subscriptions: Sequence[str] = ("house/+/temp",),
    filter_bits: int = LENGTH,
    hashes: int = HASHES,
) -> Explorer:
    """A widget: a topic, subscriptions (with blanks between), length and hashes, and below them the decision."""
    import ipywidgets

    full = ipywidgets.Layout(width="700px")
    look = {"style": {"description_width": "110px"}}
    published = ipywidgets.Text(value=topic, description="publication", layout=full, **look)
    asked = ipywidgets.Text(value=" ".join(subscriptions), description="subscriptions", layout=full, **look)
    length = ipywidgets.SelectionSlider(
        options=sorted({*LENGTHS, filter_bits}), value=filter_bits, description="filter length", **look
    )
    count = ipywidgets.IntSlider(value=hashes, min=1, max=8, description="hashes", **look)
    picture = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        try:
            decision = routing_steps(published.value, asked.value.split(), length.value, count.value)
            picture.value = decision.drawing().to_svg()
        except WorkbenchError as error:
            picture.value = f'<p style="color:{palette.LOST}">{html.escape(str(error))}.</p>'

    for field in (published, asked, length, count):
        field.observe(show, "value")
    show()
    return Explorer(ipywidgets.VBox([published, asked, ipywidgets.HBox([length, count]), picture]), picture.value)

"""From topics to a routing decision, step by step: Bloom filters, their common bits, fuzzy hashes, needs.

    topic_bits(topic, ...)                 the items of a topic, and the bit positions of each, as a table
    bits_drawing({name: vector})           short bit vectors as rows of cells, one below the other
    routing_steps(topic, subscriptions)    a `Decision`: displayed as a drawing, with a table of its steps
    topic_explorer(...)                    a widget that shows a `Decision`, with fields for topics, length and hashes

A neighbor announces two bit vectors for a link: `interests`, the union of the filters of all subscriptions behind the
link, and `needs`, the bits that all their fuzzy hashes have in common. A node forwards a publication over the link in
two steps. It intersects the publication's filter with the interests and takes the fuzzy hash of the common bits. If
this hash includes the needs, the publication is sent. Only the subscriber compares the topics themselves; a `Decision`
has both results.
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
    """Tabulate the filter items of a topic and the positions of their bits (columns: item, bits).

    Raises AttributeFormatError for an invalid topic.
    """
    import pandas as pd

    BitVector(filter_bits)  # raises ParameterError for an invalid length
    items = topic_items(topic, as_publication, separators, wildcards)
    rows = [{"item": item, "bits": item_positions(item, filter_bits, hashes)} for item in items]
    return pd.DataFrame(rows, columns=["item", "bits"])


def bits_drawing(vectors: Mapping[str, BitVector], marked: BitVector | None = None, title: str = "") -> Drawing:
    """Draw vectors of one length as rows of 64 cells, with bit 0 at the upper left.

    ``marked``: bits to be drawn in another color, such as the common bits of two vectors. Raises ParameterError for
    vectors of different lengths, or of more than 1024 bits.
    """
    lengths = {vector.length for vector in vectors.values()} | ({marked.length} if marked is not None else set())
    if len(lengths) != 1 or not vectors:
        raise ParameterError(
            f"bits_drawing: the vectors have {sorted(lengths)} bits; one or more vectors of a single length are needed"
        )
    length = lengths.pop()
    if length > MOST_CELLS:
        raise ParameterError(f"bits_drawing: the vectors have {length} bits; at most {MOST_CELLS} can be drawn")
    rows = -(-length // PER_ROW)
    block = rows * CELL + 30
    top = 30.0 if title else 8.0
    drawing = Drawing(PER_ROW * CELL + 32, top + block * len(vectors) + 4, title=title or "bits")
    drawing.text(16, 22, title, size=14, bold=True)
    for number, (name, vector) in enumerate(vectors.items()):
        y = top + number * block
        label = f"{name}: {vector.popcount} of {length} bits, {percent(vector.fill)}"
        drawing.text(16, y + 14, label, size=_SIZE)
        _draw_cells(drawing, 16, y + 20, vector, 0 if marked is None else marked.bits)
    return drawing


def _draw_cells(drawing: Drawing, left: float, top: float, vector: BitVector, marked: int) -> None:
    wide, rows = min(PER_ROW, vector.length), -(-vector.length // PER_ROW)
    drawing.rectangle(left, top, wide * CELL, rows * CELL, fill="#F2F5F8")
    for position in vector.positions():
        x, y = left + position % PER_ROW * CELL, top + position // PER_ROW * CELL
        colour = palette.DATA if marked >> position & 1 else palette.SINK
        drawing.rectangle(x, y, CELL, CELL, fill=colour)
    for column in range(wide + 1):
        is_byte_boundary = column % 8 == 0
        x = left + column * CELL
        style = {
            "colour": palette.LINK_GOOD if is_byte_boundary else "#E1E6EB",
            "width": 1.0 if is_byte_boundary else 0.5,
        }
        drawing.segment(x, top, x, top + rows * CELL, **style)
    for row in range(rows + 1):
        y = top + row * CELL
        drawing.segment(left, y, left + wide * CELL, y, colour="#D3DAE1", width=0.6)


@dataclass(frozen=True)
class Decision:
    """The routing decision of a node about one publication and one link, with all intermediate vectors."""

    topic: str
    subscriptions: tuple[str, ...]
    publication: BitVector
    interests: BitVector
    common: BitVector
    common_hash: BitVector
    needs: BitVector
    is_forwarded: bool
    wanted: tuple[str, ...]  # the subscriptions that match

    @property
    def is_false_positive(self) -> bool:
        """Whether the publication is forwarded although no subscription behind the link matches it."""
        return self.is_forwarded and not self.wanted

    @property
    def missing(self) -> BitVector:
        """The bits of the needs that the fuzzy hash of the common bits lacks."""
        return BitVector(FUZZY_HASH_BITS, self.needs.bits & ~self.common_hash.bits)

    def verdict(self) -> str:
        """Return the decision as a sentence."""
        lacking = self.missing.popcount
        why = (
            "all needs are met"
            if self.is_forwarded
            else f"{lacking} bits of the needs are missing"
            if lacking
            else "no bit"
        )
        if not self.common.bits:
            why = "filter and interests have no bit in common"
        end = f"wanted by {', '.join(self.wanted)}" if self.wanted else "and no subscriber there wants it"
        if self.is_false_positive:
            end += ": a false positive"
        return f"{'It goes over the link' if self.is_forwarded else 'It does not go over the link'}: {why}; {end}."

    def table(self) -> pd.DataFrame:
        """Tabulate the vectors of the steps: their bits set, their length and their fill."""
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
            {"step": name, "bits set": vector.popcount, "of": vector.length, "fill": vector.fill}
            for name, vector in steps.items()
        ]
        return pd.DataFrame(rows)

    def drawing(self) -> Drawing:
        """Draw the vectors as rows of cells; common bits and needs that are met are orange."""
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
    """Return the decision whether a publication is forwarded over a link with these subscriptions behind it.

    Raises AttributeFormatError for an invalid topic, ParameterError for an invalid filter length or without
    subscriptions.
    """
    topics = (subscriptions,) if isinstance(subscriptions, str) else tuple(subscriptions)
    if not topics:
        raise ParameterError("routing_steps: subscriptions is empty; at least one is needed")
    publication = BitVector.of(publication_items(topic, separators), filter_bits, hashes)
    filters, needs = CountingVector(filter_bits), CountingVector(FUZZY_HASH_BITS)
    for subscription in topics:
        vector = BitVector.of(subscription_items(subscription, separators), filter_bits, hashes)
        filters.add(vector)
        needs.add(BitVector.from_bytes(vector.fuzzy_hash()))
    interests = filters.union()
    common = publication & interests
    shared = needs.intersection()
    return Decision(
        topic,
        topics,
        publication,
        interests,
        common,
        BitVector.from_bytes(common.fuzzy_hash()),
        shared,
        # A link without subscriptions behind it has no needs that could stop a publication.
        not interests.is_empty and routes(publication, interests, shared.to_bytes()),
        tuple(subscription for subscription in topics if matches([topic], [subscription], separators)),
    )


def topic_explorer(
    topic: str = "house/kitchen/temp",
    subscriptions: Sequence[str] = ("house/+/temp",),
    filter_bits: int = LENGTH,
    hashes: int = HASHES,
) -> Explorer:
    """Return a widget with fields for a topic, subscriptions, filter length and number of hashes.

    Subscriptions are separated by blanks. The widget shows the routing decision below the fields.
    """
    import ipywidgets

    full = ipywidgets.Layout(width="700px")
    style = {"style": {"description_width": "110px"}}
    published = ipywidgets.Text(value=topic, description="publication", layout=full, **style)
    subscribed = ipywidgets.Text(value=" ".join(subscriptions), description="subscriptions", layout=full, **style)
    length = ipywidgets.SelectionSlider(
        options=sorted({*LENGTHS, filter_bits}), value=filter_bits, description="filter length", **style
    )
    count = ipywidgets.IntSlider(value=hashes, min=1, max=8, description="hashes", **style)
    picture = ipywidgets.HTML()

    def content(is_image: bool = False) -> str:
        try:
            decision = routing_steps(published.value, subscribed.value.split(), length.value, count.value)
        except WorkbenchError as error:
            return f'<p style="color:{palette.LOST}">{html.escape(str(error))}.</p>'
        return decision.drawing().to_image_html() if is_image else decision.drawing().to_svg()

    def show(_: Any = None) -> None:
        picture.value = content()

    for field in (published, subscribed, length, count):
        field.observe(show, "value")
    show()
    controls = ipywidgets.VBox([published, subscribed, ipywidgets.HBox([length, count]), picture])
    return Explorer(controls, content(is_image=True))

"""An inspected message as HTML: its bytes, parts and CBOR, and the topics that may have set the bits of its filter.

A filter does not contain topics, but a list of topics can be tested against it. A topic with a missing bit is not in
the filter; a topic with all its bits set probably is in it. This works for encrypted publications too.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError
from workbench.protocols.dps.bloom import HASHES, BitVector, item_positions
from workbench.protocols.dps.topics import publication_items, subscription_items
from workbench.protocols.dps.views.message import ENVELOPE, KINDS, Inspection
from workbench.views import palette
from workbench.views.dissection import ByteRange, hex_lines

MOST_NOTATION = 4000
MOST_BITS = 200
_COLOURS = dict(
    zip(
        KINDS,
        (
            *("#E4E7EB", "#CDE6F7", "#FBE3B5", "#BFD3EE", "#D9CFEC"),
            *("#F3D3E3", "#C9EBDD", "#F6C9B4", "#EAD9C2", "#FFFFFF"),
        ),
        strict=True,
    )
)
_STYLE = f"""<style>
.dps-message {{ font: 13px system-ui, 'DejaVu Sans', sans-serif; color: {palette.TEXT}; max-width: 940px; }}
.dps-message code {{ background: none !important; padding: 0; }}
.dps-message h4 {{ margin: 12px 0 4px; font-size: 13px; }}
.dps-message pre, .dps-message code {{ font: 12px ui-monospace, 'DejaVu Sans Mono', monospace; }}
.dps-message pre {{ margin: 4px 0; line-height: 1.55; white-space: pre-wrap; overflow-wrap: anywhere; }}
.dps-message table {{ border-collapse: collapse; }}
.dps-message td, .dps-message th {{ text-align: left !important;
  vertical-align: top; padding: 2px 10px 2px 4px; font-size: 12px;
  border-top: 1px solid {palette.GRID}; overflow-wrap: anywhere; background: none; }}
.dps-message th {{ font-weight: 400; color: {palette.FAINT_TEXT}; border-top: none; }}
.dps-message .offset {{ color: {palette.FAINT_TEXT}; }}
.dps-message .error {{ color: {palette.LOST}; }}
.dps-message .short, .dps-message .short code {{ white-space: nowrap !important; overflow-wrap: normal; }}
.dps-message .key {{ padding: 0 6px; margin-right: 8px; }}
</style>"""


def page(inspection: Inspection) -> str:
    """Return an inspected message as one block of HTML: bytes, parts, notation and the bits of its filter."""
    size_text = f"{len(inspection.data):,} bytes"
    is_wrapped = any(part.kind == ENVELOPE for part in inspection.parts)
    offset_note = " (bytes counted from the end of the envelope)" if is_wrapped else ""
    verdict = (
        f'<span class="error">Not a message: {html.escape(inspection.error)}{offset_note}.</span>'
        if inspection.error
        else "A node accepts it."
    )
    message_name = inspection.name
    heading = (
        f"<b>{html.escape(message_name)}</b>, {size_text}. "
        if message_name != f"{len(inspection.data)} bytes"
        else f"<b>{size_text}</b>. "
    )
    blocks = [f"<p>{heading}{verdict}</p>", _bytes_html(inspection), _parts_table(inspection)]
    if inspection.notation:
        blocks.append(f"<h4>CBOR, in diagnostic notation</h4><pre>{_shorten(inspection.notation, MOST_NOTATION)}</pre>")
    blocks.append(_bits_html(inspection))
    return f'{_STYLE}<div class="dps-message">{"".join(blocks)}</div>'


def _bytes_html(inspection: Inspection) -> str:
    """Return the message's bytes as HTML: lines of hexadecimal digits, colored by the kind of part."""
    byte_ranges = [ByteRange(part.end, _COLOURS[part.kind], part.name) for part in inspection.parts]
    kinds = list(dict.fromkeys(part.kind for part in inspection.parts))
    legend = "".join(f'<span class="key" style="background:{_COLOURS[kind]}">{kind}</span>' for kind in kinds)
    return f"<pre>{hex_lines(inspection.data, byte_ranges)}</pre><p>{legend}</p>"


def _parts_table(inspection: Inspection) -> str:
    table_rows = "".join(
        f"<tr><td>{_range_text(part.start, part.end - 1)}</td>"
        f'<td><span class="key" style="background:{_COLOURS[part.kind]}">{html.escape(part.name)}</span></td>'
        f"<td><code>{_shorten(part.notation, 90)}</code></td><td>{_shorten(part.meaning, 300)}</td></tr>"
        for part in inspection.parts
    )
    return f"<table><tr><th>bytes</th><th>part</th><th>CBOR</th><th>meaning</th></tr>{table_rows}</table>"


def _range_text(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


def _shorten(text: str, most: int) -> str:
    return html.escape(text if len(text) <= most else f"{text[:most]} …")


def _bits_html(inspection: Inspection) -> str:
    vector = inspection.vector
    if vector is None:
        return ""
    tested_topics, error_lines = [], []
    for topic in inspection.topics:
        try:
            tested_topics += compare_topics(
                vector, [topic], inspection.is_publication, inspection.hashes, inspection.separators
            )
        except WorkbenchError as error:
            error_lines.append(f'<p class="error">{html.escape(str(error))}.</p>')
    owners_of_bits = positions(vector, tested_topics)
    explained_count = sum(bool(bit_owners) for bit_owners in owners_of_bits.values())
    topic_rows = "".join(
        f'<tr><td class="short"><code>{_shorten(topic.topic, 60)}</code></td>'
        f'<td class="short">{_verdict_text(topic)}</td>'
        f'<td class="short">{topic.bits_found} of {topic.bits}</td>'
        f"<td>{_items_html(topic)}</td></tr>"
        for topic in tested_topics
    )
    topics_html = "<h4>Bits and topics</h4>" + "".join(error_lines)
    if tested_topics:
        topics_html += (
            '<table><tr><th>topic</th><th class="short">in the filter?</th><th class="short">bits found</th>'
            f"<th>its items and their bits</th></tr>{topic_rows}</table>"
        )
    bit_rows = "".join(
        f"<tr><td>{bit_position}</td><td>{_owners_text(bit_owners)}</td></tr>"
        for bit_position, bit_owners in list(owners_of_bits.items())[:MOST_BITS]
    )
    omitted_note = (
        f"<p>and {len(owners_of_bits) - MOST_BITS:,} bits more</p>" if len(owners_of_bits) > MOST_BITS else ""
    )
    if not owners_of_bits:
        return f"{topics_html}<p>No bit is set: the filter is empty.</p>"
    sentence = f"<p>{len(owners_of_bits):,} bits are set; these topics explain {explained_count:,} of them.</p>"
    bit_table = f"<table><tr><th>bit</th><th>may be of</th></tr>{bit_rows}</table>" if bit_rows else ""
    return f"{topics_html}{sentence}<details><summary>bit by bit</summary>{bit_table}{omitted_note}</details>"


def _items_html(topic: Any) -> str:
    return "; ".join(f"<code>{html.escape(item)}</code> {_numbers_text(bits)}" for item, bits in topic.items)


def _verdict_text(topic: Any) -> str:
    if not topic.bits:
        return "it has no items, so it sets no bits"
    return "<b>may be</b>" if topic.is_included else "no"


def _numbers_text(bits: Sequence[int]) -> str:
    return ", ".join(map(str, bits))


def _owners_text(pairs: Sequence[tuple[str, str]]) -> str:
    owners = [f"<code>{html.escape(item)}</code> of {html.escape(topic)}" for topic, item in pairs]
    return "; ".join(owners) or "none of these topics"


# Bits and topics


class TestedTopic(NamedTuple):
    """A topic that was tested against a vector of bits.

    items        the strings that the topic puts into a filter: (string, positions of its bits)
    is_included  whether all bits of the topic are set in the vector; False for a topic without bits
    bits_found   number of the topic's bits that are set in the vector
    bits         number of the topic's bits
    """

    topic: str
    items: tuple[tuple[str, tuple[int, ...]], ...]
    is_included: bool
    bits_found: int
    bits: int


def topic_items(topic: str, as_publication: bool, separators: str = "/", wildcards: bool = True) -> list[str]:
    """Return the strings that a topic puts into a filter.

    ``as_publication``: True for a publication's topic, False for a subscription's. ``separators``: characters that
    divide the topic into segments. ``wildcards``: whether subscriptions with wildcards can match the publication.
    Raises AttributeFormatError for an invalid topic.
    """
    if as_publication:
        return publication_items(topic, separators, wildcards)
    return subscription_items(topic, separators)


def compare_topics(
    vector: BitVector, topics: Sequence[str], as_publication: bool, hashes: int = HASHES, separators: str = "/"
) -> list[TestedTopic]:
    """Test topics against a vector of bits, and return a TestedTopic for each.

    ``as_publication``: True if the vector is the filter of a publication, False if it is that of subscriptions. If
    True, topics without wildcards are tested as published topics, and topics with wildcards as subscriptions. If False,
    all topics are tested as subscriptions.

    ``hashes``: number of bits that each string of a topic sets. ``separators``: characters that divide topics into
    segments. Raises AttributeFormatError for an invalid topic.
    """
    tested_topics = []
    for topic in topics:
        is_published = as_publication and "+" not in topic and "#" not in topic
        items_with_bits = tuple(
            (item, tuple(item_positions(item, vector.length, hashes)))
            for item in topic_items(topic, is_published, separators)
        )
        topic_bits = {bit_position for _, item_bits in items_with_bits for bit_position in item_bits}
        bits_found = sum(vector.bits >> bit_position & 1 for bit_position in topic_bits)
        is_included = bool(topic_bits) and bits_found == len(topic_bits)
        tested_topics.append(TestedTopic(topic, items_with_bits, is_included, bits_found, len(topic_bits)))
    return tested_topics


def positions(vector: BitVector, tested: Sequence[TestedTopic]) -> dict[int, list[tuple[str, str]]]:
    """Return which strings of the tested topics may have set each bit: {position of the bit: [(topic, string), ...]}.

    The strings of a topic are those that it puts into a filter (`TestedTopic.items`). The result has all set bits of
    ``vector``, in ascending order. Topics with a bit that is not set in ``vector`` are ignored, so the list of a bit
    may be empty.
    """
    owners: dict[int, list[tuple[str, str]]] = {position: [] for position in vector.positions()}
    for topic in tested:
        if topic.is_included:
            for item, bits in topic.items:
                for position in dict.fromkeys(bits):
                    owners[position].append((topic.topic, item))
    return owners

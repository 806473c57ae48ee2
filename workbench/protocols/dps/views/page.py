"""An inspected message as HTML: its bytes, parts and CBOR, and which topics may have set the bits of its filter.

A filter never names a topic. But a list of topics that may be in it can be tried: a topic that lacks a bit is not in
the filter, and one that has all its bits there probably is. That holds for encrypted publications too.
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
MOST_PLACES = 200
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
    """What there is to see of a message, as one block of HTML."""
    said = f"{len(inspection.data):,} bytes"
    is_wrapped = any(part.kind == ENVELOPE for part in inspection.parts)
    counted = " (bytes counted from the end of the envelope)" if is_wrapped else ""
    verdict = (
        f'<span class="error">No message: {html.escape(inspection.error)}{counted}.</span>'
        if inspection.error
        else "A node takes it."
    )
    name = inspection.name
    head = f"<b>{html.escape(name)}</b>, {said}. " if name != f"{len(inspection.data)} bytes" else f"<b>{said}</b>. "
    blocks = [f"<p>{head}{verdict}</p>", _hex(inspection), _parts(inspection)]
    if inspection.notation:
        blocks.append(f"<h4>CBOR, in diagnostic notation</h4><pre>{_cut(inspection.notation, MOST_NOTATION)}</pre>")
    blocks.append(_bits(inspection))
    return f'{_STYLE}<div class="dps-message">{"".join(blocks)}</div>'


def _hex(inspection: Inspection) -> str:
    """Bytes in lines, each part on a ground of its kind's color."""
    stretches = [ByteRange(part.end, _COLOURS[part.kind], part.name) for part in inspection.parts]
    kinds = list(dict.fromkeys(part.kind for part in inspection.parts))
    keys = "".join(f'<span class="key" style="background:{_COLOURS[kind]}">{kind}</span>' for kind in kinds)
    return f"<pre>{hex_lines(inspection.data, stretches)}</pre><p>{keys}</p>"


def _parts(inspection: Inspection) -> str:
    rows = "".join(
        f"<tr><td>{_range(part.start, part.end - 1)}</td>"
        f'<td><span class="key" style="background:{_COLOURS[part.kind]}">{html.escape(part.name)}</span></td>'
        f"<td><code>{_cut(part.notation, 90)}</code></td><td>{_cut(part.meaning, 300)}</td></tr>"
        for part in inspection.parts
    )
    return f"<table><tr><th>bytes</th><th>part</th><th>CBOR</th><th>meaning</th></tr>{rows}</table>"


def _range(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}–{last}"


def _cut(text: str, most: int) -> str:
    return html.escape(text if len(text) <= most else f"{text[:most]} …")


def _bits(inspection: Inspection) -> str:
    vector = inspection.vector
    if vector is None:
        return ""
    told, problems = [], []
    for topic in inspection.topics:
        try:
            told += explained(vector, [topic], inspection.is_publication, inspection.hashes, inspection.separators)
        except WorkbenchError as error:
            problems.append(f'<p class="error">{html.escape(str(error))}.</p>')
    by_place = positions(vector, told)
    known = sum(bool(pairs) for pairs in by_place.values())
    topics = "".join(
        f'<tr><td class="short"><code>{_cut(one.topic, 60)}</code></td><td class="short">{_verdict(one)}</td>'
        f'<td class="short">{one.found} of {one.wanted}</td>'
        f"<td>{'; '.join(f'<code>{html.escape(item)}</code> {_numbers(bits)}' for item, bits in one.items)}</td></tr>"
        for one in told
    )
    head = "<h4>Bits and topics</h4>" + "".join(problems)
    if told:
        head += (
            '<table><tr><th>topic</th><th class="short">in the filter?</th><th class="short">bits found</th>'
            f"<th>its items and their bits</th></tr>{topics}</table>"
        )
    rows = "".join(
        f"<tr><td>{place}</td><td>{_owners(pairs)}</td></tr>" for place, pairs in list(by_place.items())[:MOST_PLACES]
    )
    more = f"<p>and {len(by_place) - MOST_PLACES:,} bits more</p>" if len(by_place) > MOST_PLACES else ""
    if not by_place:
        return f"{head}<p>No bit is set: nothing is asked for.</p>"
    sentence = f"<p>{len(by_place):,} bits are set; these topics explain {known:,} of them.</p>"
    table = f"<table><tr><th>bit</th><th>may be of</th></tr>{rows}</table>" if rows else ""
    return f"{head}{sentence}<details><summary>bit by bit</summary>{table}{more}</details>"


def _verdict(one: Any) -> str:
    if not one.wanted:
        return "it has no items: no filter can tell"
    return "<b>may be</b>" if one.is_there else "no"


def _numbers(bits: Sequence[int]) -> str:
    return ", ".join(map(str, bits))


def _owners(pairs: Sequence[tuple[str, str]]) -> str:
    said = [f"<code>{html.escape(item)}</code> of {html.escape(topic)}" for topic, item in pairs]
    return "; ".join(said) or "none of these topics"


# Bits and topics


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

"""An inspected message as HTML: static, or below fields in which another message and topics can be written.

page(inspection)                     the HTML of an `Inspection`
message_explorer(messages, topics)   the same as a widget: choose or paste a message, name topics
save_message(data, path, topics)     a page of its own
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.protocols.dps.bloom import HASHES
from workbench.protocols.dps.views.explorer import Explorer
from workbench.protocols.dps.views.message import ENVELOPE, KINDS, Inspection, inspect_message
from workbench.protocols.dps.views.topic_bits import explained, positions
from workbench.views import palette
from workbench.views.frame import Stretch, hex_lines

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
    stretches = [Stretch(part.end, _COLOURS[part.kind], part.name) for part in inspection.parts]
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


def message_explorer(
    messages: Mapping[str, bytes | str], topics: Sequence[str] = (), hashes: int = HASHES, separators: str = "/"
) -> Explorer:
    """A widget: messages to choose from, a field for the hex of another one, a field for topics (with blanks between).

    Without a kernel it shows the first message.
    """
    import ipywidgets

    named = {name: data if isinstance(data, str) else bytes(data).hex(" ") for name, data in messages.items()}
    full = ipywidgets.Layout(width="900px")
    choice = ipywidgets.Dropdown(options=list(named), description="message", layout=full)
    digits = ipywidgets.Textarea(
        value=next(iter(named.values()), ""), description="hex", rows=4, layout=full, continuous_update=False
    )
    given = ipywidgets.Text(value=" ".join(topics), description="topics", layout=full, continuous_update=False)
    picture = ipywidgets.HTML()

    def show(_: Any = None) -> None:
        try:
            inspection = inspect_message(digits.value, given.value.split(), hashes, separators)
            picture.value = inspection.to_html()
        except WorkbenchError as error:
            picture.value = f'<p style="color:{palette.LOST}">{html.escape(str(error))}.</p>'

    choice.observe(lambda change: setattr(digits, "value", named[change["new"]]), "value")
    for field in (digits, given):
        field.observe(show, "value")
    show()
    return Explorer(ipywidgets.VBox([choice, digits, given, picture]), picture.value)


def save_message(data: bytes | str, path: str | Path, topics: Sequence[str] = ()) -> Path:
    """A page of its own with an inspected message; returns the path."""
    inspection = inspect_message(data, topics)
    path = Path(path)
    title = html.escape(inspection.name)
    text = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><body>{page(inspection)}</body>'
    path.write_text(text + "</html>\n", encoding="utf-8")
    return path

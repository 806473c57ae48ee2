"""HTML of a dissected frame: its bytes in hex, coloured by field, and a table of the fields.

page(dissection)           HTML of a `workbench.protocols.dissection.Dissection`
hex_lines(data, ranges)    bytes in hex, each range of bytes on a background of its own colour
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import NamedTuple

from workbench.protocols.dissection import Dissection, byte_range
from workbench.views import palette

PER_LINE = 16
MOST_BYTES = 2048
MOST_TEXT = 300
_COLOURS = tuple(palette.blend(palette.BACKGROUND, colour, 0.28) for colour in palette.SERIES)
_STYLE = f"""<style>
.frame-fields {{ font: 13px system-ui, 'DejaVu Sans', sans-serif; color: {palette.TEXT}; max-width: 940px; }}
.frame-fields pre {{ font: 12px ui-monospace, 'DejaVu Sans Mono', monospace; margin: 4px 0; line-height: 1.55;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
.frame-fields table {{ border-collapse: collapse; }}
.frame-fields td, .frame-fields th {{ text-align: left !important; vertical-align: top; padding: 2px 10px 2px 4px;
  font-size: 12px; border-top: 1px solid {palette.GRID}; overflow-wrap: anywhere; background: none; }}
.frame-fields th {{ font-weight: 400; color: {palette.FAINT_TEXT}; border-top: none; }}
.frame-fields .offset {{ color: {palette.FAINT_TEXT}; }}
.frame-fields .key {{ padding: 0 6px; }}
</style>"""


class ByteRange(NamedTuple):
    """A range of bytes that begins at the end of the previous range; ``end`` is exclusive. ``title``: its tooltip."""

    end: int
    colour: str
    title: str


def page(dissection: Dissection) -> str:
    """Return a dissected frame (its bytes and fields) as HTML. A field and its inner fields have the same colour."""
    colours = [_COLOURS[index % len(_COLOURS)] for index in range(len(dissection.fields))]
    ranges = [
        ByteRange(leaf.end, colour, leaf.name)
        for field, colour in zip(dissection.fields, colours, strict=True)
        for leaf in field.leaves()
    ]
    table_rows = "".join(
        f"<tr><td>{byte_range(inner)}</td>"
        f'<td><span class="key" style="background:{colour};margin-left:{14 * depth}px">{html.escape(inner.name)}</span>'
        f"</td><td>{_shorten_text(inner.text)}</td></tr>"
        for field, colour in zip(dissection.fields, colours, strict=True)
        for depth, inner in field.tree()
    )
    return (
        f'{_STYLE}<div class="frame-fields"><p><b>{len(dissection.data):,} bytes</b></p>'
        f"<pre>{hex_lines(dissection.data, ranges)}</pre>"
        f"<table><tr><th>bytes</th><th>field</th><th>value</th></tr>{table_rows}</table></div>"
    )


def _shorten_text(text: str) -> str:
    return html.escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} …")


def hex_lines(data: bytes, ranges: Iterable[ByteRange]) -> str:
    """Return bytes in hex as HTML, 16 bytes a line; each line begins with the offset of its first byte.

    Only the first `MOST_BYTES` bytes are written; a last line states how many follow. ``ranges``: consecutive
    ranges that together cover all bytes, each shown in its own colour.
    """
    html_lines: list[list[str]] = [[] for _ in range(0, min(len(data), MOST_BYTES), PER_LINE)]
    offset = 0
    for field_range in ranges:
        style = f"background:{field_range.colour};box-shadow:inset 1px 0 {palette.BACKGROUND}"
        title = html.escape(field_range.title, quote=True)
        while offset < min(field_range.end, MOST_BYTES):
            line = offset // PER_LINE
            stop = min(field_range.end, (line + 1) * PER_LINE)
            html_lines[line].append(f'<span style="{style}" title="{title}">{data[offset:stop].hex(" ")}</span>')
            offset = stop
    line_texts = [
        f'<span class="offset">{PER_LINE * index:5d}</span>  ' + " ".join(line) for index, line in enumerate(html_lines)
    ]
    if len(data) > MOST_BYTES:
        line_texts.append(f'<span class="offset">and {len(data) - MOST_BYTES:,} bytes more</span>')
    return "\n".join(line_texts)

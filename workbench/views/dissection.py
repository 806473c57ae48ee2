"""A frame that was taken apart, as HTML: its bytes in hex with their fields colored, and the fields in a table.

page(dissection)            of a `workbench.protocols.dissection.Dissection`
hex_lines(data, stretches)  bytes in lines, each stretch of them on a ground of its own color
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


class Stretch(NamedTuple):
    """The bytes up to before ``end``, from the end of the stretch before: their color, and what they are called."""

    end: int
    colour: str
    title: str


def page(dissection: Dissection) -> str:
    """What there is to see of a frame, as one block of HTML. A field has one color, and what is in it the same."""
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(dissection.fields))]
    stretches = [
        Stretch(leaf.end, colour, leaf.name)
        for field, colour in zip(dissection.fields, colours, strict=True)
        for leaf in field.leaves()
    ]
    rows = "".join(
        f"<tr><td>{byte_range(inner)}</td>"
        f'<td><span class="key" style="background:{colour};margin-left:{14 * depth}px">{html.escape(inner.name)}</span>'
        f"</td><td>{_cut(inner.text)}</td></tr>"
        for field, colour in zip(dissection.fields, colours, strict=True)
        for depth, inner in field.tree()
    )
    return (
        f'{_STYLE}<div class="frame-fields"><p><b>{len(dissection.data):,} bytes</b></p>'
        f"<pre>{hex_lines(dissection.data, stretches)}</pre>"
        f"<table><tr><th>bytes</th><th>field</th><th>what it says</th></tr>{rows}</table></div>"
    )


def _cut(text: str) -> str:
    return html.escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]} …")


def hex_lines(data: bytes, stretches: Iterable[Stretch]) -> str:
    """The bytes in hex, 16 a line with its offset in front; those behind `MOST_BYTES` are counted only.

    ``stretches`` follow on each other, and are of all bytes.
    """
    lines: list[list[str]] = [[] for _ in range(0, min(len(data), MOST_BYTES), PER_LINE)]
    at = 0
    for stretch in stretches:
        look = f"background:{stretch.colour};box-shadow:inset 1px 0 {palette.BACKGROUND}"
        title = html.escape(stretch.title, quote=True)
        while at < min(stretch.end, MOST_BYTES):
            line = at // PER_LINE
            until = min(stretch.end, (line + 1) * PER_LINE)
            lines[line].append(f'<span style="{look}" title="{title}">{data[at:until].hex(" ")}</span>')
            at = until
    shown = [
        f'<span class="offset">{PER_LINE * place:5d}</span>  ' + " ".join(line) for place, line in enumerate(lines)
    ]
    if len(data) > MOST_BYTES:
        shown.append(f'<span class="offset">and {len(data) - MOST_BYTES:,} bytes more</span>')
    return "\n".join(shown)

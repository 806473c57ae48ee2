"""The legend of DPS's player, as HTML with small SVG swatches."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from workbench.views import palette
from workbench.views.legend import Entry


def legend_html(entries: Iterable[Entry], shades: Sequence[str], fullest: str) -> str:
    """Entries as HTML, with a bar of the colors of fills up to the ``fullest``."""
    parts = [
        f'<svg width="22" height="16">{_svg(how, colour)}</svg>{html.escape(said)}' for how, colour, said in entries
    ]
    bar = "".join(
        f'<rect x="{3 * place}" y="3" width="3.2" height="10" fill="{colour}"/>' for place, colour in enumerate(shades)
    )
    parts.append(f'fill of a filter: 0 <svg width="{3 * len(shades)}" height="16">{bar}</svg> {html.escape(fullest)}')
    entries_html = "".join(f'<span class="entry">{part}</span>' for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:1px 14px;font-size:11.5px">{entries_html}</div>'


def _svg(how: str, colour: str) -> str:
    stroke = f'stroke="{colour}" fill="none"'
    left, right = "M2 8 L11 8", "M11 8 L20 8"
    return {
        "ring": f'<circle cx="11" cy="8" r="6" stroke-width="2.6" {stroke}/>',
        "arrow": f'<path d="M2 8 L16 8" stroke-width="2.6" {stroke}/>'
        f'<path d="M13 3.5 L20.5 8 L13 12.5 Z" fill="{colour}"/>',
        "dash": f'<path d="M1 8 L21 8" stroke-width="1.8" stroke-dasharray="4 3" {stroke}/>',
        "down": f'<path d="M6.5 3.5 L15.5 12.5 M15.5 3.5 L6.5 12.5" stroke-width="2.6" {stroke}/>',
        "halves": f'<path d="M1 8 L21 8" stroke-width="7" stroke="{palette.LINK_GOOD}"/>'
        f'<path d="{left}" stroke-width="4.5" {stroke}/><path d="{right}" stroke-width="4.5" stroke="#FFFFFF"/>',
    }[how]

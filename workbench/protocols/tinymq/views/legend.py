"""The legend of the overlay's player: trees, marks and messages with small SVG swatches."""

import html

from workbench.protocols.tinymq.views.looks import MESSAGES, ORPHAN, REKEYED, load_colour, tree_colour
from workbench.protocols.tinymq.views.overlay import Overlay
from workbench.protocols.tinymq.views.packing import MARKS, Packed
from workbench.views import palette

_SAID = {
    "stored": ("query", "query stored"),
    "matched": ("event", "event matched"),
    "delivered": ("notification", "delivered"),
}


def legend_html(seen: Overlay, packed: Packed) -> str:
    """What is drawn over the player's map in this run, as HTML."""
    entries = [(_tree(tree_colour(tree)), f"tree of root {root}") for tree, root in enumerate(seen.roots)]
    entries.append((f'<rect x="5" y="2" width="12" height="12" fill="{palette.LINK_GOOD}"/>', "root"))
    if any(place.is_rekeyed for place in seen.places):
        entries.append((_ring(REKEYED, 6, 2), "other key than before the failure"))
    if any(orphan.had_place for orphan in seen.orphans):
        entries.append((_ring(ORPHAN, 6, 2, 'stroke-dasharray="3 2"'), "has lost its place"))
    kinds = set(packed.tables["hops"]["kind"].tolist())
    entries += [(_arrow(MESSAGES[name]), name) for index, name in enumerate(MESSAGES) if index in kinds]
    looks = {MARKS[look] for look in packed.tables["marks"]["look"].tolist()}
    entries += [(_ring(MESSAGES[of], 6, 2.6), said) for look, (of, said) in _SAID.items() if look in looks]
    if "dropped" in looks:
        entries.append((_ring(palette.LOST, 6.6, 2.6), "message ended here"))
    shades = "".join(
        f'<rect x="{1 + 2 * shade}" y="3" width="2.2" height="10" fill="{load_colour(shade / 9)}"/>'
        for shade in range(10)
    )
    entries.append((shades, f"frames sent: 0 to {packed.most_frames:,}, if colored so"))
    parts = "".join(
        f'<span class="entry"><svg width="22" height="16">{swatch}</svg>{html.escape(said)}</span>'
        for swatch, said in entries
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1px 14px;font-size:11.5px">{parts}</div>'


def _tree(colour: str) -> str:
    line = f'<path d="M1 8 L21 8" stroke="{colour}" stroke-width="2.4"/>'
    return f'{line}<circle cx="11" cy="8" r="5" fill="{colour}"/>'


def _ring(colour: str, radius: float, width: float, dash: str = "") -> str:
    return f'<circle cx="11" cy="8" r="{radius}" fill="none" stroke="{colour}" stroke-width="{width}" {dash}/>'


def _arrow(colour: str) -> str:
    line = f'<path d="M2 8 L16 8" stroke="{colour}" stroke-width="2.6" stroke-linecap="round"/>'
    return f'{line}<path d="M13 3.5 L20.5 8 L13 12.5 Z" fill="{colour}"/>'

"""Legends: which roles there are to explain, and the player's legend with small SVG swatches."""

import html
from collections.abc import Iterable, Mapping

from workbench.views import palette
from workbench.views.ground import Plan
from workbench.views.player.intervals import Intervals

_NODE = {
    "circle": '<circle cx="11" cy="8" r="5.2" {}/>',
    "square": '<rect x="5.5" y="2.5" width="11" height="11" {}/>',
    "triangle": '<path d="M11 1.5 L17.5 13.5 L4.5 13.5 Z" {}/>',
    "x": '<path d="M6.5 3.5 L15.5 12.5 M15.5 3.5 L6.5 12.5" {}/>',
}


# In which order roles are explained. Messages are "wave interest" (broadcast) and "packet data" (unicast).
_ORDER = (
    *("sink", "source", "failed", "node", "heard", "decoding", "holds", "link", "wall"),
    *("gradient", "other gradient", "reinforced", "wave", "packet", "lost", "picked"),
)


def ordered(keys: Iterable[str]) -> list[str]:
    """Legend entries in the order in which they are read."""
    return sorted(keys, key=lambda key: (_ORDER.index(key if key in _ORDER else key.partition(" ")[0]), key))


def name(key: str) -> str:
    """What an entry says."""
    kind, _, message = key.partition(" ")
    return message if kind in ("wave", "packet") else palette.ROLE_NAMES[key]


def keys_of(seen: Intervals, plan: Plan) -> list[str]:
    """The entries that explain all that happens in a run."""
    keys = {"node", "picked", *seen["node_state"]["look"]}
    if len(plan.links["a"]):
        keys.add("link")
    if len(plan.walls):
        keys.add("wall")
    keys |= {"gradient" if look == "head" else "other gradient" for look in set(seen["gradient"]["look"])}
    keys |= {what for what in ("failed", "reinforced", "lost") if len(seen[what]["node"])}
    keys |= {f"wave {message}" for message in set(seen["interest_wave"]["look"])}
    for what in ("data_packet", "reinforcement_packet"):
        keys |= {f"packet {message}" for message in set(seen[what]["look"])}
    return ordered(keys)


def legend_html(keys: Iterable[str], colours: Mapping[str, str]) -> str:
    """Entries as HTML, to be read column by column; ``colours``: those of messages."""
    entries = "".join(
        f'<span class="entry"><svg width="22" height="16">{_swatch(key, colours)}</svg>{html.escape(name(key))}</span>'
        for key in keys
    )
    return f'<div class="legend">{entries}</div>'


def _swatch(key: str, colours: Mapping[str, str]) -> str:
    kind, _, message = key.partition(" ")
    if key in palette.NODE_LOOKS:
        return _node(key)
    if kind == "wave":
        return _ring(palette.message_colour(message, colours))
    if kind == "packet":
        return _packet(palette.message_colour(message, colours))
    gradient = _line(palette.GRADIENT, 1.6) + _arrow(palette.GRADIENT)
    return {
        "link": _line(palette.LINK_GOOD, 1.6),
        "wall": _line(palette.WALL, 2.5, 0.75),
        "gradient": gradient,
        "other gradient": f'<g opacity="0.4">{gradient}</g>',
        "reinforced": _line(palette.REINFORCED, 6, 0.5),
        "lost": _cross(palette.LOST),
        "picked": _ring(palette.TEXT, 'stroke-dasharray="3 2"'),
    }[key]


def _node(role: str) -> str:
    fill, marker = palette.NODE_LOOKS[role]
    if role == "decoding":
        return _ranks()
    if marker == "x":
        return _cross(fill)
    return _NODE[marker].format(f'fill="{fill}" stroke="{palette.OUTLINE}"')


def _ranks() -> str:
    shades = ((0.15, "6"), (0.6, "11"), (1.0, "16"))
    look = f'cy="8" r="4.4" stroke="{palette.OUTLINE}" stroke-width="0.8"'
    return "".join(f'<circle cx="{x}" {look} fill="{palette.rank_colour(share)}"/>' for share, x in shades)


def _cross(colour: str) -> str:
    return _NODE["x"].format(f'stroke="{colour}" stroke-width="2.4" fill="none"')


def _line(colour: str, width: float, opacity: float = 1) -> str:
    return f'<path d="M2 8 L20 8" stroke="{colour}" stroke-width="{width}" opacity="{opacity}" stroke-linecap="round"/>'


def _arrow(colour: str) -> str:
    return f'<path d="M9 4.5 L15.5 8 L9 11.5 Z" fill="{colour}"/>'


def _ring(colour: str, dash: str = "") -> str:
    return f'<circle cx="11" cy="8" r="6" fill="none" stroke="{colour}" stroke-width="2" {dash}/>'


def _packet(colour: str) -> str:
    return (
        f'<path d="M2 8 L11 8" stroke="{colour}" stroke-width="3" opacity="0.7" stroke-linecap="round"/>'
        f'<circle cx="13" cy="8" r="4.8" fill="{colour}"/>'
    )

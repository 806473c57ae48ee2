"""The player's legend: small SVG swatches in the colours and shapes of the map."""

from workbench.views import palette

_NODE = {
    "circle": '<circle cx="11" cy="8" r="5.2" {}/>',
    "square": '<rect x="5.5" y="2.5" width="11" height="11" {}/>',
    "triangle": '<path d="M11 1.5 L17.5 13.5 L4.5 13.5 Z" {}/>',
    "x": '<path d="M6.5 3.5 L15.5 12.5 M15.5 3.5 L6.5 12.5" {}/>',
}


def legend_html(has_walls: bool) -> str:
    """All roles of the map with their names, to be read column by column."""
    gradient = _line(palette.GRADIENT, 1.6) + _arrow(palette.GRADIENT)
    swatches = [(role, _node(role)) for role in ("sink", "source", "failed", "node", "heard")]
    swatches += [
        ("link", _line(palette.LINK_GOOD, 1.6)),
        ("gradient", gradient),
        ("other gradient", f'<g opacity="0.4">{gradient}</g>'),
        ("reinforced", _line(palette.REINFORCED, 6, 0.5)),
        ("interest", _ring(palette.INTEREST)),
        ("data", _packet(palette.DATA)),
        ("reinforcement", _packet(palette.REINFORCED)),
        ("lost", _cross(palette.LOST)),
        ("picked", _ring(palette.TEXT, 'stroke-dasharray="3 2"')),
    ]
    if has_walls:
        swatches.append(("wall", _line(palette.WALL, 2.5, 0.75)))
    entries = "".join(
        f'<span class="entry"><svg width="22" height="16">{swatch}</svg>{palette.ROLE_NAMES[role]}</span>'
        for role, swatch in swatches
    )
    return f'<div class="legend">{entries}</div>'


def _node(role: str) -> str:
    fill, marker = palette.NODE_LOOKS[role]
    if marker == "x":
        return _cross(fill)
    return _NODE[marker].format(f'fill="{fill}" stroke="{palette.OUTLINE}"')


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

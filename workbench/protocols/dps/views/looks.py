"""What filters, links and publications look like in all views of DPS.

The fuller a filter, the darker its blue; what nobody asks for is white. Muted links are dashed. What leads to a
delivery is green, and what was in vain is vermilion and has a cross.
"""

from workbench.views import palette

EMPTIEST, FULLEST = "#CFE1F2", "#08306B"
MUTED = "#A0623A"
PENDING = palette.LINK_GOOD
USEFUL, IN_VAIN, REPEATED, ACKNOWLEDGED = palette.DELIVERED, palette.LOST, "#8A93A0", palette.REINFORCED
SHADES = 32


def fill_colour(share: float) -> str:
    """The color of a filter by its fill, as a share (0 to 1) of the fullest one."""
    if share <= 0:
        return palette.BACKGROUND
    return palette.blend(EMPTIEST, FULLEST, min(share, 1.0) ** 0.8)


def percent(fill: float) -> str:
    """A fill for a reader: "3.5 %", "0.1 %", "0"."""
    if not fill:
        return "0"
    return f"{100 * fill:.0f} %" if fill >= 0.0995 else f"{100 * fill:.1f} %" if fill >= 0.0005 else "< 0.1 %"

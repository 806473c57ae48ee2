"""What filters, links and publications look like in all views of DPS.

The more bits of a filter are set, the darker it is, from pale blue to purple: on a dark ground, where strong colors are
about equally light, hues tell shades apart. What nobody asks for has no color. Muted links are dashed. What leads to a
delivery is green, and what was in vain is vermilion and has a cross.

Shades
    Filters of large networks are all but empty: the fullest has some per mille of its bits set. And in the end most
    nodes know of everything that is asked for. So shades go by factors, from the filter of the run with the fewest bits
    to that with the most: one topic, three and all of them are told apart, however long the filter is.
"""

import numpy as np

from workbench.views import palette
from workbench.views.layers import Scale

MUTED = "#A0623A"
PENDING = palette.LINK_GOOD
USEFUL, IN_VAIN, REPEATED, ACKNOWLEDGED = palette.DELIVERED, palette.LOST, "#8A93A0", palette.REINFORCED
# Nobody asks for anything; then the fewest bits to the most.
COLOURS = (palette.BACKGROUND, "#CFE3F4", "#A3CDEE", "#6FB0E3", "#4690D6", "#3F6FC4", "#4C4FAE", "#5A3292", "#5C1A6E")
DARKEST = len(COLOURS) - 1


def shades(fewest_bits: int, most_bits: int) -> np.ndarray:
    """The number of a color in `COLOURS` for each number of bits from 0 to the most; int8, shape (most_bits + 1,)."""
    if most_bits <= fewest_bits:
        return np.where(np.arange(most_bits + 1) > 0, DARKEST, 0).astype(np.int8)
    bits = np.maximum(np.arange(most_bits + 1), fewest_bits)
    share = np.log(bits / fewest_bits) / np.log(most_bits / fewest_bits)
    found = 1 + np.rint(share * (DARKEST - 1)).astype(np.int8)
    found[0] = 0
    return found


def scale(said: str, fewest_bits: int, most_bits: int, filter_bits: int) -> Scale:
    """The scale of these colors, with what it is about."""
    fewest = f"none, then {fewest_bits:,}" if fewest_bits < most_bits else "none"
    return Scale(said, COLOURS, fewest, f"{most_bits:,} bits ({percent(most_bits / filter_bits)}), by factors")


def percent(fill: float) -> str:
    """A fill for a reader: "3.5 %", "0.1 %", "0"."""
    if not fill:
        return "0"
    return f"{100 * fill:.0f} %" if fill >= 0.0995 else f"{100 * fill:.1f} %" if fill >= 0.0005 else "< 0.1 %"

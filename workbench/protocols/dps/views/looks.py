"""The colors and styles of filters, links and publications in all views of DPS.

The more bits of a filter are set, the darker its color, from pale blue to purple; different hues keep the shades apart
on a dark background. An empty filter has no color. Muted links are dashed. Hops towards a delivery are green; useless
hops are vermilion and end in a cross.

Shades
    In large networks filters are almost empty: the fullest filter has a few per mille of its bits set. At the end of a
    run most nodes have the interests of the whole network. So the scale is logarithmic, from the fewest set bits of a
    filter in the run to the most. One topic, three topics and all topics have different shades at any filter length.
"""

import numpy as np

from workbench.views import palette
from workbench.views.layers import Scale

MUTED = "#A0623A"
PENDING = palette.LINK_GOOD
USEFUL, IN_VAIN, REPEATED, ACKNOWLEDGED = palette.DELIVERED, palette.LOST, "#8A93A0", palette.REINFORCED
# The first color is that of an empty filter; the others range from the fewest set bits to the most.
COLOURS = (palette.BACKGROUND, "#CFE3F4", "#A3CDEE", "#6FB0E3", "#4690D6", "#3F6FC4", "#4C4FAE", "#5A3292", "#5C1A6E")
DARKEST = len(COLOURS) - 1


def shades(fewest_bits: int, most_bits: int) -> np.ndarray:
    """Return the color of a filter for each number of set bits from 0 to ``most_bits``, as an index in `COLOURS`.

    An empty filter has the index 0. A filter with ``fewest_bits`` set bits gets the palest color, and a filter with
    ``most_bits`` the darkest. The result has type int8 and shape (most_bits + 1,).
    """
    if most_bits <= fewest_bits:
        return np.where(np.arange(most_bits + 1) > 0, DARKEST, 0).astype(np.int8)
    bits = np.maximum(np.arange(most_bits + 1), fewest_bits)
    scale_position = np.log(bits / fewest_bits) / np.log(most_bits / fewest_bits)
    indices = 1 + np.rint(scale_position * (DARKEST - 1)).astype(np.int8)
    indices[0] = 0
    return indices


def scale(title: str, fewest_bits: int, most_bits: int, filter_bits: int) -> Scale:
    """Return the scale for the legend: the colors of filters, from the emptiest to the fullest filter of a run.

    ``fewest_bits``, ``most_bits``: numbers of set bits of these two filters; ``filter_bits``: length of a filter.
    """
    fewest_text = f"none, then {fewest_bits:,}" if fewest_bits < most_bits else "none"
    return Scale(title, COLOURS, fewest_text, f"{most_bits:,} bits ({percent(most_bits / filter_bits)}), by factors")


def percent(fill: float) -> str:
    """Format the fill of a filter, a share in [0, 1], as a percentage: "3.5 %", "0.1 %", "0"."""
    if not fill:
        return "0"
    return f"{100 * fill:.0f} %" if fill >= 0.0995 else f"{100 * fill:.1f} %" if fill >= 0.0005 else "< 0.1 %"

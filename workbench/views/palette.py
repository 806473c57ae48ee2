"""The colours of all views: for each role of a node, link or message, one for a light and one for a dark background.

The hues are those of Okabe and Ito's colour-blind safe set (Color Universal Design, 2008), lightened for background
roles. No role is marked by colour alone: sinks are squares, sources triangles, failed nodes crosses, gradients have
arrow heads, and a lost frame is a cross on its link.

Dark background
    `in_dark` keeps the hue of a colour. Grays and very light tints are mirrored between black and white, so that
    inconspicuous marks stay inconspicuous. Strong colours become lighter, the dark ones most, so that marks stay
    readable and a scale of one hue keeps its order. Lightness, chroma and hue are those of OKLab (B. Ottosson: A
    perceptual color space for image processing, 2020).
"""

import math
from collections.abc import Mapping
from functools import lru_cache

SINK = "#0072B2"
SOURCE = "#009E73"
NODE = "#F2F4F7"
HEARD = "#A8D5F2"
HOLDS = "#F9DC9C"
RANK_LOW, RANK_HIGH = "#D9CFEC", "#563B92"  # of a node that decodes: no packets, all packets
FAILED = "#3A3F47"
CRASHED = "#9C3D00"
LEFT = "#9AA5B1"
SEPARATED = "#F0E442"

INTEREST = "#56B4E9"
GRADIENT = "#2F6396"
REINFORCED = "#C46FA2"
DATA = "#E69F00"
LOST = "#D55E00"
DELIVERED = "#009E73"
CODED = "#7B5EA7"
PLACE = "#A58BD0"  # the position of a node in an overlay
OTHER_MESSAGE = "#7A6A53"

LINK_GOOD = "#B3BCC7"
LINK_POOR = "#E9EDF1"
WALL = "#5B5048"
BACKGROUND = "#FFFFFF"
DARK_BACKGROUND = "#14181D"
TEXT = "#1F2933"
FAINT_TEXT = "#6B7785"
GRID = "#E6EAEE"
OUTLINE = "#5D6875"

# Series of a chart, in order; they differ in colour and in marker.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#C46FA2", "#E69F00", "#56B4E9", "#3A3F47", "#7A6A53")
SERIES_MARKERS = ("circle", "square", "triangle", "diamond", "circle", "square", "triangle", "diamond")


def message_colour(message: str, colours: Mapping[str, str]) -> str:
    """Return the colour of messages with the name ``message``.

    ``colours``: {name of a message: colour} of the protocol. A message that is missing there has a neutral colour.
    """
    return colours.get(message, OTHER_MESSAGE)


def blend(background: str, foreground: str, share: float) -> str:
    """Return a mixture of two ``#rrggbb`` colours. ``share``: 0 gives the background, 1 the foreground."""
    mixed = [round(b + (f - b) * share) for b, f in zip(rgb(background), rgb(foreground), strict=True)]
    return "#" + "".join(f"{channel:02X}" for channel in mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """Return ``#rrggbb`` as three integers in [0, 255]."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def ink_on(colour: str) -> str:
    """Return the colour for a text on a background of ``colour``: dark or white, whichever is easier to read."""
    return TEXT if contrast(colour, TEXT) > contrast(colour, BACKGROUND) else BACKGROUND


def rank_colour(share: float) -> str:
    """Return the colour of a node that decodes coded packets.

    ``share``: the rank of its decoding matrix divided by the generation size, 0 to 1.
    """
    return blend(RANK_LOW, RANK_HIGH, min(max(share, 0.0), 1.0))


def link_colour(pdr: float) -> str:
    """Return the colour of a link that delivers the share ``pdr`` of its frames (0 to 1)."""
    return blend(LINK_POOR, LINK_GOOD, min(max(pdr, 0.0), 1.0))


# The dark background

_DARK_GRAYS = {
    BACKGROUND: DARK_BACKGROUND,
    NODE: "#2B323B",
    TEXT: "#E4E8ED",
    FAINT_TEXT: "#9CA7B4",
    GRID: "#2A313A",
    OUTLINE: "#98A4B2",
}
_GRAY, _STRONG = 0.05, 0.10  # up to this chroma a colour counts as gray, from this chroma on as strong
_DARKEST, _LIGHTEST = 0.22, 0.93  # lightness of white and of black on a dark page
_READABLE = 0.66  # strong colours that are darker than this become lighter
_READABLE_GRAY = 0.54
READABLE = 3.0  # the least contrast of marks


@lru_cache(maxsize=4096)
def in_dark(colour: str) -> str:
    """Return the colour that replaces a ``#rrggbb`` colour of the light page on a dark page."""
    dark_gray = _DARK_GRAYS.get(colour.upper())
    if dark_gray is not None:
        return dark_gray
    lightness, a, b = _to_oklab(rgb(colour))
    chroma = math.hypot(a, b)
    strength = min(max((chroma - _GRAY) / (_STRONG - _GRAY), 0.0), 1.0)
    mirrored_lightness = _LIGHTEST - (_LIGHTEST - _DARKEST) * lightness
    lightened = max(lightness, _READABLE + 0.3 * (_READABLE - lightness))
    dark_lightness = strength * lightened + (1 - strength) * mirrored_lightness
    # A colour that is readable on white must be readable on black.
    least_lightness = _READABLE_GRAY if contrast(colour, BACKGROUND) >= READABLE else 0.0
    return _from_oklab(max(dark_lightness, least_lightness), a, b)


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21 (W3C: Web Content Accessibility Guidelines 2.1)."""
    lighter, darker = sorted((_luminance(colour), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_to_linear(channel) for channel in rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _to_linear(part: int) -> float:
    share = part / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def _to_oklab(parts: tuple[int, int, int]) -> tuple[float, float, float]:
    """Convert a colour (red, green, blue in [0, 255]) to OKLab: (lightness 0 to 1, a, b).

    The length of the vector (a, b) is the chroma, its angle the hue.
    """
    red, green, blue = (_to_linear(channel) for channel in parts)
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _from_oklab(lightness: float, a: float, b: float) -> str:
    """Return an OKLab colour as ``#RRGGBB``. If sRGB lacks the colour, its chroma is reduced until it fits."""
    for chroma_step in range(20, -1, -1):
        linear_channels = _oklab_to_linear(lightness, a * chroma_step / 20, b * chroma_step / 20)
        if all(-0.0005 <= channel <= 1.0005 for channel in linear_channels):
            break
    return "#" + "".join(f"{_to_8_bit(channel):02X}" for channel in linear_channels)


def _oklab_to_linear(lightness: float, a: float, b: float) -> tuple[float, float, float]:
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def _to_8_bit(part: float) -> int:
    part = min(max(part, 0.0), 1.0)
    return round(255 * (12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055))

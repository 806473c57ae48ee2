"""One colour per role, the same in every view.

The hues are those of Okabe and Ito's colour-blind safe set (Color Universal Design, 2008), lightened where a
role is background. No role is told by colour alone: sinks are squares, sources triangles, failed nodes crosses,
gradients have arrow heads, and what was lost is a cross on its link.
"""

from collections.abc import Mapping

SINK = "#0072B2"
SOURCE = "#009E73"
NODE = "#F2F4F7"
HEARD = "#A8D5F2"
HOLDS = "#F9DC9C"
RANK_LOW, RANK_HIGH = "#D9CFEC", "#563B92"  # of a node that decodes: its rank over m
FAILED = "#3A3F47"

INTEREST = "#56B4E9"
GRADIENT = "#2F6396"
REINFORCED = "#C46FA2"
DATA = "#E69F00"
LOST = "#D55E00"
DELIVERED = "#009E73"
CODED = "#7B5EA7"
PLACE = "#A58BD0"  # where a node stands in an overlay
OTHER_MESSAGE = "#7A6A53"

LINK_GOOD = "#B3BCC7"
LINK_POOR = "#E9EDF1"
WALL = "#5B5048"
BACKGROUND = "#FFFFFF"
TEXT = "#1F2933"
FAINT_TEXT = "#6B7785"
GRID = "#E6EAEE"
OUTLINE = "#5D6875"

# A node's role: colour and marker (a name both Bokeh and ``drawing`` know); the first that applies is drawn.
NODE_LOOKS = {
    "failed": (FAILED, "x"),
    "sink": (SINK, "square"),
    "source": (SOURCE, "triangle"),
    "holds": (HOLDS, "circle"),
    "decoding": (RANK_HIGH, "circle"),  # its fill is rank_colour
    "heard": (HEARD, "circle"),
    "node": (NODE, "circle"),
}

ROLE_NAMES = {
    "sink": "sink",
    "source": "source",
    "node": "node",
    "holds": "holds the newest event",
    "decoding": "has coded packets (darker: more)",
    "heard": "heard the interest",
    "failed": "failed node",
    "picked": "selected node",
    "link": "link (darker: better)",
    "wall": "wall",
    "gradient": "gradient (thicker: more data)",
    "other gradient": "gradient in reserve",
    "reinforced": "reinforced path",
    "lost": "lost",
}

# Series of a chart, in the order in which they are given out: told apart by colour and by marker.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#C46FA2", "#E69F00", "#56B4E9", "#3A3F47", "#7A6A53")
SERIES_MARKERS = ("circle", "square", "triangle", "diamond", "circle", "square", "triangle", "diamond")


def message_colour(message: str, colours: Mapping[str, str]) -> str:
    """A message's colour of those that its protocol gives (`protocols.message_colours`); a neutral one without."""
    return colours.get(message, OTHER_MESSAGE)


def blend(background: str, foreground: str, share: float) -> str:
    """``share`` (0..1) of the way from one ``#rrggbb`` colour to another."""
    mixed = [round(b + (f - b) * share) for b, f in zip(rgb(background), rgb(foreground), strict=True)]
    return "#" + "".join(f"{part:02X}" for part in mixed)


def rgb(colour: str) -> tuple[int, int, int]:
    """``#rrggbb`` as three integers 0..255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def rank_colour(share: float) -> str:
    """A decoding node's colour by its rank over the generation size (0..1)."""
    return blend(RANK_LOW, RANK_HIGH, min(max(share, 0.0), 1.0))


def link_colour(pdr: float) -> str:
    """A link's colour by the share of frames that arrive (0..1)."""
    return blend(LINK_POOR, LINK_GOOD, min(max(pdr, 0.0), 1.0))

"""Colors of trees, messages and loads in all views of the overlay.

A tree is marked by a color and by its root's name. There are ten colors; the eleventh tree has the first color again.
The farther a node is from its root, the lighter its color. Messages have the colors of their counterparts in other
protocols: a query is an interest, an event is data, a notification is a delivery.
"""

from workbench.views import palette

# Messages are drawn over trees, so no tree has the color of a message below.
TREES = (
    *("#0072B2", "#C46FA2", "#8C6D1F", "#5B3E99", "#6A9A1F"),
    *("#2BA6A6", "#B2506B", "#7A8794", "#3F6B4F", "#A58BD0"),
)
QUERIES = (palette.TEXT, "#B0126B", "#00757F", "#6D4C41", "#3E2A9E", "#B23A00")  # different from the colors of trees
MESSAGES = {"query": palette.INTEREST, "event": palette.DATA, "notification": palette.DELIVERED}
ORPHAN = palette.LOST
REKEYED = palette.TEXT
UNSTORED = "#E3E6EA"
LOAD_LOW, LOAD_HIGH = "#FFF6DC", "#7A1C12"
LIGHTEST, LIGHTER = 0.82, 0.13  # largest share of the background color; increase with each level of depth


def tree_colour(tree: int) -> str:
    """Return the color of the tree with index ``tree``; colors repeat after ten trees."""
    return TREES[tree % len(TREES)]


def depth_colour(tree: int, depth: int) -> str:
    """Return the color of nodes at ``depth`` hops from the root of a tree; deeper nodes are lighter."""
    return palette.blend(tree_colour(tree), palette.BACKGROUND, min(LIGHTEST, 0.15 + LIGHTER * depth))


def ink_on(colour: str) -> str:
    """Return the text color, dark or light, that is easier to read on the background ``colour``."""
    red, green, blue = palette.rgb(colour)
    return palette.TEXT if 0.3 * red + 0.59 * green + 0.11 * blue > 140 else palette.BACKGROUND


def load_colour(share: float) -> str:
    """Return the color of a load, given as a share (0 to 1) of the largest load."""
    return palette.blend(LOAD_LOW, LOAD_HIGH, min(max(share, 0.0), 1.0))

"""Views of TinyMQ: overlay trees and routes as tables, drawings and slides. `layers` contains the player's layers.

overlay_of(run)                       keys, zones and stored queries at any time of a run
overlay_slides(run, times_s)          the trees at several times, with a slider
route(run, message=None)              the hops of a query or an event over the trees
route_drawing(run, message=None)      the same as a drawing; route_slides(run, message) shows it hop by hop
paper_network()                       the network of 23 nodes in TinyMQ's paper, with PAPER_ROOTS and PAPER_SEED
"""

from workbench.keywords import hand_out
from workbench.protocols.tinymq.views import looks
from workbench.views import palette

# The colors of TinyMQ's messages, by their names in the trace.
MESSAGE_COLOURS = {
    **looks.MESSAGES,
    "info": palette.PLACE,
    "join": palette.REINFORCED,
    "grant": palette.REINFORCED,
    "ack": palette.LINK_GOOD,
    "probe": palette.LINK_GOOD,
    "refusal": palette.LOST,
}

QUIET_MESSAGES = ("ack",)

# Public view -> its module in this package.
hand_out(
    __name__,
    {
        "overlay_of": "overlay",
        "overlay_slides": "stills",
        "route": "routes",
        "route_drawing": "stills",
        "route_slides": "stills",
        "paper_network": "example",
        "PAPER_ROOTS": "example",
        "PAPER_SEED": "example",
    },
)

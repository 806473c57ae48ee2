"""Views of DPS: filters, muted links, publications and messages.

run.show()                            the player: filters, muted links and the paths of publications (`layers`)
mesh_of(run)                          links, filters and neighbors' interests at any time of a run
filters_slides(run, times_s)          drawings of the fill of the nodes' and links' filters at several times
filter_drawing(run, node, time_s)     the bits of a node's filter, coloured by the topics that set them
fill_chart(run)                       the fill of filters, and the number of muted links, over the run
publications(trace)                   the publications of a run
publication_path(run, which)          the hops of a publication: useful, in vain or repeated
inspect_message(data, topics)         any bytes dissected as a message: hex, CBOR, fields, bits, topics
"""

from workbench.keywords import hand_out
from workbench.views import palette

# Color of each kind of message, by its name in the trace.
MESSAGE_COLOURS = {
    "subscription": palette.INTEREST,
    "subscription ack": palette.LINK_GOOD,
    "publication": palette.DATA,
    "acknowledgement": palette.DELIVERED,
}
# Messages that the player hides at first: they accompany every subscription.
QUIET_MESSAGES = ("subscription ack",)
# (module, function) of the drawing that the lab shows for the selected node.
NODE_DRAWING = ("occupancy", "filter_drawing")

# Public view -> the module of this package that defines it.
hand_out(
    __name__,
    {
        "mesh_of": "mesh",
        "filters_slides": "filters",
        "filter_bits": "occupancy",
        "filter_drawing": "occupancy",
        "fill_chart": "filters",
        "publications": "paths",
        "publication_path": "paths",
        "inspect_message": "message",
    },
)

"""Views of DPS: filters, muted links, publications and messages.

run.show()                            the player: filters, muted links and the paths of publications (`layers`)
mesh_of(run)                          links, filters and neighbors' interests at any time of a run
filters_slides(run, times_s)          how full the filters of nodes and links are at several times
fill_chart(run)                       the fill of filters, and muted links, over the run
publications(trace)                   the publications of a run
publication_path(run, which)          the hops of a publication, and which of them were in vain
inspect_message(data, topics)         any bytes dissected as a message: hex, CBOR, fields, bits, topics
"""

from workbench.keywords import hand_out
from workbench.views import palette

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "subscription": palette.INTEREST,
    "subscription ack": palette.LINK_GOOD,
    "publication": palette.DATA,
    "acknowledgement": palette.DELIVERED,
}
# What is sent with every subscription, and asks for nothing by itself.
QUIET_MESSAGES = ("subscription ack",)

# Public view -> the module here that has it.
hand_out(
    __name__,
    {
        "mesh_of": "mesh",
        "filters_slides": "filters",
        "fill_chart": "filters",
        "publications": "paths",
        "publication_path": "paths",
        "inspect_message": "message",
    },
)

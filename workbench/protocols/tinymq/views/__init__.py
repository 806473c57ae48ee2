"""Views of TinyMQ: overlay trees, zones, routes, load and repair; `layers` has what the player shows of it.

Of a run, out of ``overlay_of(run)``, and of sweeps::

    overlay_drawing(run, time_s=None)     TinyMQ's trees over the network; overlay_of(run) is what it draws
    zones_drawing(run, time_s=None)       how they share out the key space; plane_drawing(...) in two dimensions
    route_drawing(run, what=None)         a query's or an event's way over the trees; route(run, what) is what it draws
    overlay_slides(run, times_s)          the trees at several times, with a slider; route_slides(run, what) hop by hop
    mapping_table(protocol, text)         how values become strings; mapping_strings(protocol, text), and
                                          mapping_drawing(protocol, query, event) in two dimensions
    paper_network()                       the network of 23 nodes that TinyMQ's paper explains itself with
    load_maps({name: run}, what)          load of each node as heat maps; node_load(run, what)
    repair_chart(run)                     nodes without a key and with another one, and what arrives, in time
    trees_chart(table, y)                 a sweep's metric against the number of overlay trees
    trend_table(table, metrics)           how metrics change with them, network by network; printed_losses(table)
"""

from workbench.protocols.tinymq.views import looks
from workbench.views import palette

# Public view, `workbench.views.NAME` -> the module here that has it.
VIEWS = {
    "overlay_of": "overlay",
    "overlay_drawing": "stills",
    "zones_drawing": "plane",
    "plane_drawing": "plane",
    "route": "routes",
    "route_drawing": "stills",
    "overlay_slides": "stills",
    "route_slides": "stills",
    "mapping_table": "mapping",
    "mapping_drawing": "mapping",
    "mapping_strings": "mapping",
    "paper_network": "example",
    "paper_facts": "example",
    "PAPER_ROOTS": "example",
    "PAPER_SEED": "example",
    "load_maps": "load",
    "node_load": "load",
    "repair_chart": "repair",
    "trees_chart": "trends",
    "trend_sentences": "trends",
    "trend_table": "trends",
    "printed_losses": "trends",
}

# How its messages look, by their names in the trace.
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

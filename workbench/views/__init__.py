"""Views: a player for notebooks and pages, figures for papers, tables.

Of a run over time. They draw the same table, ``intervals.intervals(trace, duration_us)``::

    show(run, event=None)                 the player, in a notebook or as a page
    show_live(run)                        a run on motes, while it goes on
    network_figure(run)                   the player's Bokeh layout
    save_html(run, path, extra=())        the player as one self-contained page
    network_drawing(run, time_s=None)     the network at a time, as a static drawing (SVG, PNG)
    inspect_node(run, node, time_s=None)  what a node knew and had counted
    bundle(run)                           a run's rich display

Of one event of a run, out of ``decoding.progress(trace, event)``::

    decoding_maps(run, ...)               how an event spread: small maps colored by rank, at several times
    decoding_matrices(run, nodes)         the decoding matrices of some nodes, packet by packet
    coverage_chart({name: runs})          share of nodes that hold an event, against its age

Of algebra, without a run::

    decoding_steps(m, field, packets)     what each packet does to a decoder; step_through(steps) is a slider over them
    completion_chart(m, fields, trials)   how many random packets a generation takes, by field
                                          completion_table(...) has its numbers; completion_probability(order, m,
                                          packets) and innovation_probability(order, m, rank) are exact

Of a sweep, out of its table::

    equal_parameter_savings(table, ...)   what a protocol saves beside another; equal_coverage_savings(table, ...)
    sweep_chart(table, y), cost_chart(table)    a sweep's metric against a parameter; its cost against coverage
    line_chart(series, ...)               a static chart with confidence bands, of whatever is computed

Of overlay trees: of a run, out of ``overlay_of(run)``, and of sweeps::

    show_overlay(run)                     the player with TinyMQ's trees, keys, routes and zones; overlay_figure(run),
                                          and overlay_sections(run) for save_html(path, extra=...)
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

Of DPS's meshes: of a run, out of ``mesh_of(run)``::

    show_dps(run)                         the player with filters, muted links and the ways of publications;
                                          dps_figure(run), and dps_sections(run) for save_html(path, extra=...)
    filters_drawing(run, time_s=None)     how full filters are, of nodes and links; filters_slides(run, times_s)
    fill_chart(run)                       the fill of filters, and muted links, over the run
    publication_drawing(run, which)       a publication's way, with what was in vain; publication_slides(...) hop by
                                          hop, publication_path(run, which) is what they draw
    inspect_message(data, topics)         a message taken apart, whatever bytes it is: hex, CBOR, fields, bits, topics;
                                          message_explorer({name: data}) is a widget, conversation() has messages
    topic_bits(topic, ...)                a topic's items and their bits; bits_drawing({name: vector}) draws them
    routing_steps(topic, subscriptions)   from topics to a routing decision; topic_explorer() is a widget
    false_positive_table(lengths, ...)    how often filters say yes in vain, measured and by theory;
                                          false_positive_chart(table). vain_table(scenario, lengths), vain_chart(table):
                                          what went out in vain in a network
    processes_drawing(mesh, outcome)      a mesh of processes as it stands; outcome_table({name: outcome})
    beside_table({name: run})             one workload on several protocols; beside_chart(table)

Bokeh is loaded by the first view that needs it.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "show": "workbench.views.notebook",
    "show_live": "workbench.views.player.live",
    "network_figure": "workbench.views.player.network",
    "save_html": "workbench.views.export",
    "network_drawing": "workbench.views.figure",
    "line_chart": "workbench.views.chart",
    "decoding_maps": "workbench.protocols.coded_diffusion.views.figures",
    "decoding_matrices": "workbench.protocols.coded_diffusion.views.figures",
    "coverage_chart": "workbench.protocols.coded_diffusion.views.figures",
    "decoding_steps": "workbench.protocols.coded_diffusion.views.stepper",
    "step_through": "workbench.protocols.coded_diffusion.views.stepper",
    "completion_chart": "workbench.protocols.coded_diffusion.views.chances",
    "completion_probability": "workbench.protocols.coded_diffusion.views.chances",
    "completion_table": "workbench.protocols.coded_diffusion.views.chances",
    "innovation_probability": "workbench.protocols.coded_diffusion.views.chances",
    "equal_parameter_savings": "workbench.views.sweep_savings",
    "equal_coverage_savings": "workbench.views.sweep_savings",
    "sweep_chart": "workbench.views.sweep_savings",
    "cost_chart": "workbench.views.sweep_savings",
    "show_overlay": "workbench.protocols.tinymq.views.player",
    "overlay_figure": "workbench.protocols.tinymq.views.player",
    "overlay_sections": "workbench.protocols.tinymq.views.player",
    "overlay_of": "workbench.protocols.tinymq.views.overlay",
    "overlay_drawing": "workbench.protocols.tinymq.views.trees",
    "zones_drawing": "workbench.protocols.tinymq.views.plane",
    "plane_drawing": "workbench.protocols.tinymq.views.plane",
    "route": "workbench.protocols.tinymq.views.routes",
    "route_drawing": "workbench.protocols.tinymq.views.routes",
    "overlay_slides": "workbench.protocols.tinymq.views.stepper",
    "route_slides": "workbench.protocols.tinymq.views.stepper",
    "mapping_table": "workbench.protocols.tinymq.views.mapping",
    "mapping_drawing": "workbench.protocols.tinymq.views.mapping",
    "mapping_strings": "workbench.protocols.tinymq.views.mapping",
    "paper_network": "workbench.protocols.tinymq.views.example",
    "paper_facts": "workbench.protocols.tinymq.views.example",
    "PAPER_ROOTS": "workbench.protocols.tinymq.views.example",
    "PAPER_SEED": "workbench.protocols.tinymq.views.example",
    "load_maps": "workbench.protocols.tinymq.views.load",
    "node_load": "workbench.protocols.tinymq.views.load",
    "repair_chart": "workbench.protocols.tinymq.views.repair",
    "trees_chart": "workbench.protocols.tinymq.views.trends",
    "trend_sentences": "workbench.protocols.tinymq.views.trends",
    "trend_table": "workbench.protocols.tinymq.views.trends",
    "printed_losses": "workbench.protocols.tinymq.views.trends",
    "show_dps": "workbench.protocols.dps.views.player",
    "dps_figure": "workbench.protocols.dps.views.player",
    "dps_sections": "workbench.protocols.dps.views.player",
    "mesh_of": "workbench.protocols.dps.views.mesh",
    "filters_drawing": "workbench.protocols.dps.views.filters",
    "filters_slides": "workbench.protocols.dps.views.filters",
    "fill_chart": "workbench.protocols.dps.views.filters",
    "publications": "workbench.protocols.dps.views.publications",
    "publication_path": "workbench.protocols.dps.views.publications",
    "publication_drawing": "workbench.protocols.dps.views.publications",
    "publication_slides": "workbench.protocols.dps.views.publications",
    "inspect_message": "workbench.protocols.dps.views.message",
    "conversation": "workbench.protocols.dps.views.message",
    "message_explorer": "workbench.protocols.dps.views.page",
    "save_message": "workbench.protocols.dps.views.page",
    "topic_bits": "workbench.protocols.dps.views.topic_bits",
    "bits_drawing": "workbench.protocols.dps.views.topic_bits",
    "routing_steps": "workbench.protocols.dps.views.steps",
    "topic_explorer": "workbench.protocols.dps.views.steps",
    "false_positive_table": "workbench.protocols.dps.views.false_positives",
    "false_positive_chart": "workbench.protocols.dps.views.false_positives",
    "vain_table": "workbench.protocols.dps.views.false_positives",
    "vain_chart": "workbench.protocols.dps.views.false_positives",
    "processes_drawing": "workbench.protocols.dps.views.processes",
    "outcome_table": "workbench.protocols.dps.views.processes",
    "beside_table": "workbench.protocols.dps.views.beside",
    "beside_chart": "workbench.protocols.dps.views.beside",
    "inspect_node": "workbench.views.player.inspector",
    "bundle": "workbench.views.rich",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'workbench.views' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})

"""Views of coded diffusion: how events spread as generations, and what a decoder does.

Of one event of a run, out of ``ranks.progress(trace, event)``::

    decoding_maps(run, ...)               how an event spread: small maps colored by rank, at several times
    decoding_matrices(run, nodes)         the decoding matrices of some nodes, packet by packet
    coverage_chart({name: runs})          share of nodes that hold an event, against its age
    pollution_chart({name: runs}, node)   share of nodes whose packets a hostile node spoiled, against their distance
                                          from it (`pollution.PollutedDiffusion` makes such runs)

Of algebra, without a run::

    decoding_steps(m, field, packets)     what each packet does to a decoder; step_through(steps) is a slider over them
    completion_chart(m, fields, trials)   how many random packets a generation takes, by field
                                          completion_table(...) has its numbers; completion_probability(order, m,
                                          packets) and innovation_probability(order, m, rank) are exact
"""

from workbench.views import palette

# Public view, `workbench.views.NAME` -> the module here that has it.
VIEWS = {
    "decoding_maps": "figures",
    "decoding_matrices": "figures",
    "coverage_chart": "figures",
    "pollution_chart": "pollution",
    "decoding_steps": "steps",
    "step_through": "steps",
    "completion_chart": "chances",
    "completion_probability": "chances",
    "completion_table": "chances",
    "innovation_probability": "chances",
}

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "event": palette.DATA,
    "coded": palette.CODED,
    "request": palette.INTEREST,
}

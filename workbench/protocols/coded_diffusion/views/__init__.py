"""Views of coded diffusion: how events spread as generations.

Of one event of a run, out of ``ranks.progress(trace, event)``::

    decoding_maps(run, ...)               how an event spread: small maps colored by rank, at several times
    coverage_chart({name: runs})          share of nodes that hold an event, against its age
"""

from workbench.keywords import hand_out
from workbench.views import palette

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "event": palette.DATA,
    "coded": palette.CODED,
    "request": palette.INTEREST,
}

# Public view -> the module here that has it.
hand_out(
    __name__,
    {
        "decoding_maps": "figures",
        "coverage_chart": "figures",
    },
)

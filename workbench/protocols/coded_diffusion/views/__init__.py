"""Views of coded diffusion: figures of how one event spreads during a run. Data: ``ranks.progress(trace, event)``.

decoding_maps(run, ...)               small maps of the network at several times, with nodes colored by rank
coverage_chart({name: runs})          share of nodes that hold an event, against its age
"""

from workbench.keywords import hand_out
from workbench.views import palette

# message's name in the trace -> colour
MESSAGE_COLOURS = {
    "event": palette.DATA,
    "coded": palette.CODED,
    "request": palette.INTEREST,
}

# public view -> module of this package
hand_out(
    __name__,
    {
        "decoding_maps": "figures",
        "coverage_chart": "figures",
    },
)

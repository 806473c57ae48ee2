"""What gossip looks like."""

from workbench.views import palette

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "flood": palette.DATA,  # a publication in one piece goes out as flooding's does
    "piece": palette.DATA,
}

"""The colours of gossip's messages."""

from workbench.views import palette

# message's name in the trace -> colour
MESSAGE_COLOURS = {
    "flood": palette.DATA,  # a whole publication, in flooding's frame
    "piece": palette.DATA,
}

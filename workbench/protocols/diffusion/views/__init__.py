"""The colours of diffusion's messages."""

from workbench.views import palette

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "interest": palette.INTEREST,
    "data": palette.DATA,
    "reinforcement": palette.REINFORCED,
}

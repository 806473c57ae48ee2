"""Views of TinyDiffusion's runs; this file defines the colours of the protocol's messages."""

from workbench.views import palette

# message's name in the trace -> colour
MESSAGE_COLOURS = {
    "interest": palette.INTEREST,
    "data": palette.DATA,
    "reinforcement": palette.REINFORCED,
}

"""The colours of flooding's messages."""

from workbench.views import palette

# message's name in the trace -> colour
MESSAGE_COLOURS = {
    "flood": palette.DATA,
}

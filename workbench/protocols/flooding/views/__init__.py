"""What flooding looks like."""

from workbench.views import palette

# How its messages look, by their names in the trace.
MESSAGE_COLOURS = {
    "flood": palette.DATA,
}

"""A stub of the module virtual, the JavaScript of a virtual mote."""

boots = 0


def send(text):
    """Do nothing."""


def now_us():
    """Return 0; the replay sets the clock."""
    return 0.0

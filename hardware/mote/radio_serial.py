"""A radio at the other end of a serial line: it sends frames as messages of the host link.

Frames that it hears come back as HEARD, and reports of unicast frames as OUTCOME; the program takes both by itself.
Virtual motes have this radio, with the host as the medium. A modem that speaks SEND, HEARD and OUTCOME of the host link
would do as well.
"""

from workbench.motes import messages as link
from workbench.protocols.contract import NOBODY


class SerialRadio:
    """A radio whose frames are messages, given to the function ``write``."""

    is_serial = True
    next_us = None

    def __init__(self, write):
        self._write = write

    def send(self, destination, frame, now):
        """Send a frame to a node, or as a broadcast (``destination`` None)."""
        self._write(link.encode(link.SEND, NOBODY if destination is None else destination, rest=frame))

    def poll(self, now):
        """Return nothing: received frames come over the host link."""
        return ()

    def close(self):
        """Do nothing: the line belongs to the host link."""

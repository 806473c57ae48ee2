"""A radio at the other end of a serial line: it sends frames as messages of the host link.

Received frames come as messages HEARD, and the outcomes of unicast frames as messages OUTCOME; the mote's program
(mote.py) handles both itself. Virtual motes have this radio, with the host as the medium. A modem that implements SEND,
HEARD and OUTCOME of the host link could be used instead of the host.
"""

from workbench.motes import messages as link
from workbench.protocols.contract import NOBODY


class SerialRadio:
    """A radio that sends each frame as a message, by calling the function ``write``."""

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

"""A radio at the other end of a serial line: what is to be sent goes there as a message of the host link.

Frames that it hears come back as HEARD, and reports of unicast frames as OUTCOME; the program takes both by itself.
Virtual motes have this radio, with the host as the medium. A modem that speaks SEND, HEARD and OUTCOME of the host link
would do as well.
"""

from workbench.motes import messages as link
from workbench.protocols.contract import NOBODY


class SerialRadio:
    """Frames as messages to ``write``."""

    is_serial = True
    next_us = None

    def __init__(self, write):
        self._write = write

    def send(self, destination, frame, now):
        """Hand a frame over; ``destination`` None: to everybody who hears it."""
        self._write(link.encode(link.SEND, NOBODY if destination is None else destination, rest=frame))

    def poll(self, now):
        """What was heard comes over the host link, so there is nothing here."""
        return ()

    def close(self):
        """There is nothing to give back: the line is the host link's."""

"""A node that sends each publication to the next address and logs the outcome that its radio reports.

This file also runs on a mote (MicroPython's subset of Python).
"""

import struct

from workbench.protocols.contract import NOBODY, Held, Node, Originated


class ReportingNode(Node):
    """A node that sends its publications as unicasts to the neighbor of the next address."""

    @staticmethod
    def describe(frame, broadcast=True):
        origin, number = struct.unpack_from("<HI", frame)
        return "unicast", origin, number

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.published = 0

    def publish(self, attributes, now, payload=b""):
        number = self.first_number + self.published
        self.published += 1
        self.events.append(Originated(NOBODY, "unicast", self.address, number, number, ""))
        self.outbox.append((self.address + 1, struct.pack("<HI", self.address, number)))
        return number

    def receive(self, frame, previous_hop, now, broadcast=True):
        origin, number = struct.unpack_from("<HI", frame)
        self.events.append(Held(previous_hop, "unicast", origin, number, 1, ""))

    def sent(self, destination, frame, ok, now):
        origin, number = struct.unpack_from("<HI", frame)
        self.events.append(Held(destination, "outcome", origin, number, int(ok), ""))

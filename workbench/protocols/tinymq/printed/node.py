"""The node that routes by algorithms 3.1 and 3.2 as printed; all else of it is TinyMQ's.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.protocols.recent import RecentIds
from workbench.protocols.tinymq import wire
from workbench.protocols.tinymq.node import TinyMQNode
from workbench.protocols.tinymq.overlay import Overlay
from workbench.protocols.tinymq.printed.algorithms import event_hop, query_hops
from workbench.protocols.tinymq.rendezvous import Rendezvous


class PrintedRendezvous(Rendezvous):
    """A rendezvous node that hands nothing over: the printed algorithms would take it for a duplicate."""

    def child_added(self, place, child, reach, now):
        """Keep what is stored."""

    def key_changed(self, place, now):
        """Keep what is stored."""


class PrintedOverlay(Overlay):
    """An overlay that takes each link to work both ways, and a child for one as long as it has yet to answer."""

    def is_two_way(self, known):
        """Nobody asks."""
        return True

    def has_no_key_yet(self, place, child):
        """As long as it has not acknowledged everything."""
        return self.unicast.is_waiting_for(child)

    def named(self, now):
        """Infos name nobody."""
        return ()

    def ask_silent(self, now):
        """Nobody is asked."""


class PrintedTinyMQNode(TinyMQNode):
    """A node that drops queries as "duplicate" and events as "loop" when they come back."""

    def __init__(self, address, settings, random):
        TinyMQNode.__init__(self, address, settings, random)
        self.overlay = PrintedOverlay(address, settings, random, self.unicast, self)
        self.rendezvous = PrintedRendezvous(self)
        self._passed = RecentIds(settings.max_known)  # (tree, publisher, sequence) of events that were routed here

    def route(self, message, previous_hop, now):
        """Route a query or event the first time that it is here; notifications go TinyMQ's way."""
        if not self.must_wait(message):
            if isinstance(message, wire.Query) and self.queries.has_seen(message):
                self.drop_message(message, previous_hop, "duplicate")
                return
            if isinstance(message, wire.Event) and self._has_passed(message):
                self.drop_message(message, previous_hop, "loop")
                return
        TinyMQNode.route(self, message, previous_hop, now)

    def route_again(self, message, previous_hop, now):
        """Route a message that was here before and did not come back."""
        TinyMQNode.route(self, message, previous_hop, now)

    def _has_passed(self, event):
        return self.overlay.place(event.tree) is not None and _id(event) in self._passed

    def way_to(self, place, neighbor):
        """No message says for what its sender takes the receiver."""
        return wire.OPEN

    def split(self, place, message):
        """[(neighbor, region)]: whoever gets a query or an event gets the whole of it."""
        box = self.box(message)
        if isinstance(message, wire.Query):
            hops = query_hops(self.overlay, place, box, self.mapping)
        else:
            self._passed.put(_id(message))
            hops = [event_hop(self.overlay, place, self.mapping.first_cell(box), self.mapping)]
        return [(hop, message.region) for hop in hops]


def _id(event):
    return event.tree, event.publisher, event.sequence

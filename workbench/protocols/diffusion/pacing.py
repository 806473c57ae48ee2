"""The pace of readings: how often a source sends readings to each sink, by the INTERVAL of the sink's interests.

A node loads this file with the first interest that has an INTERVAL.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import one_way_match
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.events import Withheld


def is_due(published_us, last_us, interval_us):
    """Return whether a source sends a reading to a sink whose interest has an INTERVAL (A16).

    ``published_us``, ``last_us``: when this reading and the last one sent to the sink were published, below 0 for none.
    A reading may come a sixteenth of the interval early, as timers are not exact. If the clock was set back, it is due.
    """
    return last_us < 0 or published_us < last_us or published_us - last_us >= interval_us - (interval_us >> 4)


class Pace:
    """How often readings that match an entry of the cache go to a sink.

    last_us  when the last reading sent to the sink for this entry was published (µs); below 0 for none
    """

    def __init__(self, entry, sink):
        self.entry = entry
        self.sink = sink
        self.interval_us = 0
        self.last_us = NOBODY


class Pacing:
    """The Pace of each pair of a cache's entry and a sink whose interest has an INTERVAL: a FIFO of the cache's size.

    A sink whose pace was pushed out gets all readings, until its next interest.
    """

    def __init__(self, cache):
        self.cache = cache
        self.paces = []

    def _pace(self, entry, sink):
        for pace in self.paces:
            if pace.entry is entry and pace.sink == sink:
                return pace
        return None

    def _forget_removed(self):
        """Remove the paces of entries that have left the cache."""
        self.paces = [pace for pace in self.paces if any([pace.entry is entry for entry in self.cache.entries])]

    def put(self, entry, sink, interval_us):
        """Store the INTERVAL (µs) of a sink's newest interest or reinforcement in an entry; 0 without INTERVAL."""
        self._forget_removed()
        pace = self._pace(entry, sink)
        if pace is None:
            if not interval_us:
                return
            if len(self.paces) >= self.cache.size:
                self.paces.pop(0)
            pace = Pace(entry, sink)
            self.paces.append(pace)
        pace.interval_us = interval_us

    def apply(self, node, number, attributes, published_us):
        """Decide which sinks do not get reading ``number`` of a source, the node, and report them as events.

        Return these sinks, in order, or None if the reading is dropped because no other sink and no subscription of
        the node needs it. A reading that is due for one interest of a sink goes to that sink.
        """
        self._forget_removed()
        due = []
        early = []
        for entry in self.cache.entries:
            if not one_way_match(entry.attributes, attributes, node.strict):
                continue
            for sink in entry.heads():
                pace = self._pace(entry, sink)
                if pace is None:
                    due.append(sink)
                elif is_due(published_us, pace.last_us, pace.interval_us):
                    pace.last_us = published_us
                    due.append(sink)
                elif sink not in early:
                    early.append(sink)
        early = sorted([sink for sink in early if sink not in due])
        for sink in early:
            node.events.append(Withheld(sink, "data", node.address, 0, number, ""))
        is_wanted = any([one_way_match(own.attributes, attributes, node.strict) for own in node.own_interests])
        if early and not due and not is_wanted:
            node.drop(NOBODY, "data", node.address, 0, "interval")
            return None
        return tuple(early)

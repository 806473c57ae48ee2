"""The pace of readings: how often a source sends readings to each sink, by the INTERVAL of the sink's interests.

A node loads this file with the first interest that has an INTERVAL.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.model import is_match
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.events import Withheld


def is_due(published_us, last_us, interval_us):
    """Return whether a source sends a reading to a sink whose interest has the INTERVAL ``interval_us`` (µs).

    ``published_us``, ``last_us``: when this reading and the last one sent to the sink were published (µs); ``last_us``
    is below 0 before the first reading. A reading may come a sixteenth of the interval early, as timers are not exact.
    If the clock was set back (``published_us`` is below ``last_us``), the reading is due.
    """
    return last_us < 0 or published_us < last_us or published_us - last_us >= interval_us - (interval_us >> 4)


class Pace:
    """The pace at which a node sends a sink the readings that match an entry of the node's interest cache.

    interval_us  the shortest time between two readings that are sent to the sink (µs)
    last_us      when the last reading sent to the sink for this entry was published (µs); below 0 before the first
    """

    def __init__(self, entry, sink):
        self.entry = entry
        self.sink = sink
        self.interval_us = 0
        self.last_us = NOBODY


class Pacing:
    """A source's FIFO of Pace objects, with as many elements as the interest cache may have entries.

    There is a Pace for each pair of a cache entry and a sink whose interest has an INTERVAL. A sink whose Pace was
    dropped from the full FIFO gets all readings, until the sink's next interest.
    """

    def __init__(self, cache):
        self.cache = cache
        self.paces = []

    def _find_pace(self, entry, sink):
        for pace in self.paces:
            if pace.entry is entry and pace.sink == sink:
                return pace
        return None

    def _remove_stale_paces(self):
        """Remove the `Pace` objects of entries that are no longer in the interest cache."""
        self.paces = [pace for pace in self.paces if any([pace.entry is entry for entry in self.cache.entries])]

    def put(self, entry, sink, interval_us):
        """Store the INTERVAL of a sink's newest interest or reinforcement for a cache entry.

        ``interval_us``: the INTERVAL (µs), or 0 if the message has no INTERVAL.
        """
        self._remove_stale_paces()
        pace = self._find_pace(entry, sink)
        if pace is None:
            if not interval_us:
                return
            if len(self.paces) >= self.cache.size:
                self.paces.pop(0)
            pace = Pace(entry, sink)
            self.paces.append(pace)
        pace.interval_us = interval_us

    def apply(self, node, number, attributes, published_us):
        """Return the sinks to which ``node`` must not send its new reading yet, because of their INTERVAL.

        The result is a sorted tuple; each sink in it is reported as an event. A reading that is due for one interest of
        a sink is due for the sink. If the reading is too early for all sinks and matches no subscription of the node,
        the reading is dropped, and the result is None. ``number``: the reading's number at the node; ``published_us``:
        when the reading was published (µs).
        """
        self._remove_stale_paces()
        due_sinks = []
        early_sinks = []
        for entry in self.cache.entries:
            if not is_match(entry.attributes, attributes, node.matching):
                continue
            for sink in entry.heads():
                pace = self._find_pace(entry, sink)
                if pace is None:
                    due_sinks.append(sink)
                elif is_due(published_us, pace.last_us, pace.interval_us):
                    pace.last_us = published_us
                    due_sinks.append(sink)
                elif sink not in early_sinks:
                    early_sinks.append(sink)
        early_sinks = sorted([sink for sink in early_sinks if sink not in due_sinks])
        for sink in early_sinks:
            node.events.append(Withheld(sink, "data", node.address, 0, number, ""))
        is_wanted = any(
            [is_match(own_interest.attributes, attributes, node.matching) for own_interest in node.own_interests]
        )
        if early_sinks and not due_sinks and not is_wanted:
            node.drop(NOBODY, "data", node.address, 0, "interval")
            return None
        return tuple(early_sinks)

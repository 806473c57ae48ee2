"""Which of its neighbors on a radio a DPS node links with: all of a few, the best of many.

Theory of operation
    The link layer reports neighbors and their delivery ratios. A node with at most ``best_links`` neighbors links with
    all of them; of two the one with the lower address asks first. In a *crowd*, with more neighbors, a node asks the
    best ``best_links`` of them, and others ask it. Both ends of a link rank it alike, by its worse direction, so the
    links that the nodes like best join them to a few large parts, as the first step of Boruvka's spanning tree does.

    The *scout* joins these parts: one more link, which goes round among all other neighbors. Where it is muted, its
    neighbor is joined elsewhere, and about every ``recheck_s`` it is ended and the next neighbor is asked. Where it is
    active, it joins two parts, and stays. So one round of scouts joins whatever can be joined.

    Requests are spread by the node's own draws, the best neighbor's first. In a crowd they take the longer the more
    neighbors there are, since these share the channel. Where a link ends that was asked for, a crowded node asks the
    next neighbor instead.

Limits
    Others may rank the same node best, and each of them is given a link. Their number has no bound but ``max_links``;
    a node that they all need must not refuse them.

Reference
    R. Wattenhofer, A. Zollinger: XTC: a practical topology control algorithm for ad-hoc networks, WMAN 2004, whose
    ranks both ends share, too. XTC compares them with those of the neighbors, which no message of DPS tells.

This file is written in MicroPython's subset of Python.
"""

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import MUTED


class Neighborhood:
    """The neighbors that the link layer has reported to one node; without reports a node asks nobody by itself."""

    def __init__(self, node):
        self._node = node
        self._settings = node.settings
        self._qualities = {}  # neighbor -> delivery ratio, of those that are good enough
        self._ranked = None  # these neighbors, the best first; None: to be sorted
        self._wanted = set()  # neighbors that are asked again when the link ends
        self._ask_at_us = {}  # neighbors without a link: when to ask them
        self._choose_us = None  # when to choose the best, once all neighbors are reported
        self._scout_us = None  # when to ask the next neighbor
        self._scout = None  # the one asked last
        self._place = 0  # of the next one among the ranked

    def is_crowded(self):
        """Whether there are more neighbors than the node asks for links."""
        return len(self._qualities) > self._settings.best_links

    def report(self, neighbor, quality, now):
        """The delivery ratio of the link to a neighbor, in its worse direction."""
        if quality < self._settings.worst_link:
            if neighbor in self._qualities or neighbor in self._node.links.remotes:
                self._node.unlink(neighbor, now)
            return
        is_new = neighbor not in self._qualities
        if is_new or self._qualities[neighbor] != quality:
            self._qualities[neighbor] = quality
            self._ranked = None
        if is_new:
            self._welcome(neighbor, now)

    def _welcome(self, neighbor, now):
        node = self._node
        if self.is_crowded():
            node.links.counts_muted = False
            if self._choose_us is None and self._scout_us is None:
                self._choose_us = now + 1
        if node.address < neighbor:
            self._wanted.add(neighbor)
            after_us = node.random.below(node.times.update_us)
        else:
            after_us = 2 * node.times.update_us  # by then the neighbor has asked, unless it has better ones
        if neighbor not in node.links.remotes:
            self._ask_at_us[neighbor] = now + 1 + after_us

    def forget(self, neighbor):
        """A neighbor is not to be asked by itself any more."""
        if self._qualities.pop(neighbor, None) is not None:
            self._ranked = None
        self._wanted.discard(neighbor)
        self._ask_at_us.pop(neighbor, None)

    def link_ended(self, neighbor, now):
        """A link has ended: the same neighbor is asked again later, in a crowd the next one."""
        if neighbor not in self._wanted:
            return
        if self.is_crowded():
            self._wanted.discard(neighbor)
            neighbor = self._next()
            if neighbor is None:
                return
            self._wanted.add(neighbor)
        self._ask_at_us[neighbor] = now + rules.relink_after_us(self._settings.relink_s, self._node.random.uniform())

    # Time

    def wake(self, now):
        """Choose, and ask whom it is time to ask."""
        if self._choose_us is not None and self._choose_us <= now:
            self._choose(now)
        if self._scout_us is not None and self._scout_us <= now:
            self._send_scout(now)
        for neighbor in [one for one, due_us in self._ask_at_us.items() if due_us <= now]:
            del self._ask_at_us[neighbor]
            self._ask(neighbor, now)

    def next_due_us(self):
        """When `wake` is next to be called, None for never."""
        due = [time_us for time_us in (self._choose_us, self._scout_us) if time_us is not None]
        due += self._ask_at_us.values()
        return min(due) if due else None

    def _ask(self, neighbor, now):
        links = self._node.links
        if neighbor in links.remotes:
            return
        if len(links.remotes) < self._settings.max_links:
            self._wanted.add(neighbor)
            links.link(neighbor, now)
        else:
            self._ask_at_us[neighbor] = now + int(self._settings.relink_s * rules.SECOND_US)

    def _choose(self, now):
        """Ask the best neighbors alone, and send a scout afterwards."""
        self._choose_us = None
        chosen = self._rank()[: self._settings.best_links]
        self._wanted = set(chosen)
        self._ask_at_us = {}
        for place in range(len(chosen)):
            self._ask_at_us[chosen[place]] = now + self._turn_us(place)
        self._place = len(chosen)
        self._scout_us = now + self._turn_us(len(chosen))

    def _turn_us(self, place):
        node = self._node
        return rules.turn_us(place, len(self._qualities), node.times.update_us, node.random.uniform())

    def _rank(self):
        if self._ranked is None:
            address, qualities = self._node.address, self._qualities
            self._ranked = sorted(qualities, key=lambda one: rules.rank(qualities[one], address, one))
        return self._ranked

    def _next(self):
        """The next neighbor without a link, going round; None if there is none."""
        ranked, remotes = self._rank(), self._node.links.remotes
        for _ in range(len(ranked)):
            neighbor = ranked[self._place % len(ranked)]
            self._place += 1
            if neighbor not in remotes and neighbor not in self._ask_at_us:
                return neighbor
        return None

    def _send_scout(self, now):
        """End the link to the last scout's neighbor if it joins nothing, and ask the next one."""
        links = self._node.links
        remote = None if self._scout is None else links.remotes.get(self._scout)
        if remote is not None and remote.state == MUTED and self._scout not in self._wanted:
            links.unlink(self._scout, now)
        self._scout = self._next()
        if self._scout is not None and len(links.remotes) < self._settings.max_links:
            links.link(self._scout, now)
        self._scout_us = None
        if self._settings.recheck_s > 0:
            self._scout_us = now + rules.recheck_after_us(self._settings.recheck_s, self._node.random.uniform())

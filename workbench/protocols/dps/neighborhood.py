"""Which of its neighbors on a radio a DPS node links with: all of a few, the best of many.

Theory of operation
    The link layer reports neighbors and their delivery ratios. A node with at most ``crowd`` neighbors links with all
    of them; of two the one with the lower address asks, the other one where that does not, at first and when a link has
    ended.

    In a *crowd*, with more neighbors, a node asks the best ``best_links`` of them. Tenths of delivery ratios count, and
    among equals *hubs*: about the root of the number of neighbors are hubs, by a hash of the address that everybody
    knows. All ask hubs, and hubs ask the best hub, so publications make few hops. Requests are spread by the node's own
    draws, the best neighbor's first. They take the longer the more neighbors there are, since these share the channel.
    Where a link ends that was asked for, the next neighbor is asked instead.

    The *scout* keeps the network in one part. It is one more link, which goes round among all other neighbors. Where it
    is muted, its neighbor is joined elsewhere: about every ``recheck_s`` it is ended, and the next neighbor is asked.
    Where it is active, it joins two parts, and stays.

    What links do otherwise in a crowd, they do by these rules, too (`Context.is_crowded`): signs of life, repetitions
    and rechecks are the rarer the more neighbors there are (`rules.times_of`), and one end of a link gives signs of
    life. What a muted neighbor has told does not count. And a publication waits for a short time, by a draw, before it
    is forwarded: several nodes have got it at once, and carrier sense gives a frame up when the channel is busy five
    times.

Limits
    A hub has a link with each node that asks it, as a node that many need must not refuse any. With ``best_links=3``
    these are about three times the root of its neighbors' number, and six for a node on average; at most ``max_links``.

Reference
    R. Wattenhofer, A. Zollinger: XTC: a practical topology control algorithm for ad-hoc networks, WMAN 2004: bounded
    degrees by local ranks. XTC compares these with the neighbors' ranks, which no message of DPS tells; here mesh ids
    and scouts keep the network connected.
"""

from __future__ import annotations

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.context import Context
from workbench.protocols.dps.links import Links


class Neighborhood:
    """The neighbors that the link layer has reported to one node; without reports a node asks nobody by itself."""

    def __init__(self, address: int, context: Context, links: Links) -> None:
        self._address = address
        self._context = context
        self._links = links
        self._settings = context.settings
        self._qualities: dict[int, float] = {}  # neighbor -> delivery ratio, of those that are good enough
        self._ranked: list[int] | None = None  # these neighbors, the best first; None: to be sorted
        self._wanted: set[int] = set()  # neighbors that are asked again when the link ends
        self._ask_at_us: dict[int, int] = {}  # neighbors without a link: when to ask them
        self._has_chosen = False
        self._choose_us: int | None = None  # when to choose the best, once all neighbors are reported
        self._scout_us: int | None = None  # when to send the scout on
        self._scout: int | None = None  # the neighbor that it is with
        self._place = 0  # of the next one among the ranked

    def report(self, neighbor: int, quality: float, now: int) -> None:
        """The link layer estimates the delivery ratio of the link to a neighbor, in its worse direction."""
        if quality < self._settings.worst_link:
            if neighbor in self._qualities or neighbor in self._links.remotes:
                self.forget(neighbor)
                self._links.unlink(neighbor, now)
            return
        is_new = neighbor not in self._qualities
        if is_new or self._qualities[neighbor] != quality:
            self._qualities[neighbor] = quality
            self._ranked = None
        if is_new:
            self._count()
            self._welcome(neighbor, now)

    def forget(self, neighbor: int) -> None:
        """A neighbor is not asked any more."""
        if self._qualities.pop(neighbor, None) is not None:
            self._ranked = None
            self._count()
        self._wanted.discard(neighbor)
        self._ask_at_us.pop(neighbor, None)

    def link_ended(self, neighbor: int, now: int) -> None:
        """A link has ended: the same neighbor is asked again later, in a crowd the next one.

        A neighbor that should ask by itself is asked, too, if it does not: it may be in a crowd, and have better ones.
        """
        is_wanted = neighbor in self._wanted
        after_us = 0 if is_wanted else rules.late_request_us(self._settings.relink_s)
        if self._context.is_crowded:
            if not is_wanted:
                return
            self._wanted.discard(neighbor)
            neighbor = self._next()
            if neighbor is None:
                return
            self._wanted.add(neighbor)
        elif neighbor not in self._qualities:
            return
        after_us += rules.relink_after_us(self._settings.relink_s, self._context.random.uniform())
        self._ask_at_us[neighbor] = now + after_us

    def _count(self) -> None:
        context, neighbors = self._context, len(self._qualities)
        context.is_crowded = neighbors > self._settings.crowd
        context.times = rules.times_of(self._settings, neighbors if context.is_crowded else 0, True)

    def _welcome(self, neighbor: int, now: int) -> None:
        """Plan to ask a new neighbor; a node that has chosen leaves it to the scout."""
        context = self._context
        if self._has_chosen:
            return
        if context.is_crowded and self._choose_us is None:
            self._choose_us = now + 1
        after_us = rules.late_request_us(self._settings.relink_s)
        if self._address < neighbor:
            self._wanted.add(neighbor)
            after_us = context.random.below(context.times.update_us)  # not all at once: the answers would meet
        if neighbor not in self._links.remotes:
            self._ask_at_us[neighbor] = now + 1 + after_us

    # Time

    def wake(self, now: int) -> None:
        """Choose the best neighbors, send the scout on, and ask whom it is time to ask."""
        if self._choose_us is not None and self._choose_us <= now:
            self._choose(now)
        if self._scout_us is not None and self._scout_us <= now:
            self._send_scout(now)
        for neighbor in [one for one, due_us in self._ask_at_us.items() if due_us <= now]:
            del self._ask_at_us[neighbor]
            if neighbor not in self._links.remotes:
                self._ask(neighbor, now)

    def next_due_us(self) -> int | None:
        """When `wake` is next to be called, None for never."""
        due = [time_us for time_us in (self._choose_us, self._scout_us) if time_us is not None]
        due += self._ask_at_us.values()
        return min(due) if due else None

    def _ask(self, neighbor: int, now: int) -> None:
        if len(self._links.remotes) < self._settings.max_links:
            self._links.link(neighbor, now)
        else:
            self._ask_at_us[neighbor] = now + int(self._settings.relink_s * rules.SECOND_US)

    def _choose(self, now: int) -> None:
        """Ask the best neighbors and no others; then comes the scout."""
        self._choose_us = None
        self._has_chosen = True
        self._place = self._settings.best_links
        chosen = self._rank()[: self._place]
        self._wanted = set(chosen)
        self._ask_at_us = {neighbor: now + self._turn_us(place) for place, neighbor in enumerate(chosen)}
        if self._settings.recheck_s > 0:
            self._scout_us = now + self._turn_us(self._place)

    def _turn_us(self, place: int) -> int:
        context = self._context
        return rules.request_delay_us(place, len(self._qualities), context.times.update_us, context.random.uniform())

    def _rank(self) -> list[int]:
        if self._ranked is None:
            address, qualities = self._address, self._qualities
            count = len(qualities)
            self._ranked = sorted(qualities, key=lambda one: rules.rank(qualities[one], address, one, count))
        return self._ranked

    def _next(self) -> int | None:
        """The next neighbor without a link, going round; None if there is none."""
        ranked, remotes = self._rank(), self._links.remotes
        for _ in range(len(ranked)):
            neighbor = ranked[self._place % len(ranked)]
            self._place += 1
            if neighbor not in remotes and neighbor not in self._ask_at_us:
                return neighbor
        return None

    def _send_scout(self, now: int) -> None:
        """End the scout's link if it joins nothing, and ask the next neighbor."""
        remote = None if self._scout is None else self._links.remotes.get(self._scout)
        if remote is not None and remote.state == MUTED and remote.pending is None and self._scout not in self._wanted:
            self._links.unlink(self._scout, now)
        self._scout = self._next()
        if self._scout is not None:
            self._ask(self._scout, now)
        self._scout_us = now + rules.scout_after_us(self._context.times.recheck_s, self._context.random.uniform())

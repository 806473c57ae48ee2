"""Choice of the radio neighbors with which a DPS node links: all of them if they are few, else the best.

Theory of operation
    The link layer reports neighbors and their delivery ratios. A node with at most ``crowd`` neighbors links with all
    of them. Of two neighbors, the node with the lower address requests the link, at first and again after a link has
    ended. If no request comes from this node, the other node requests the link later.

    In a *crowd*, a neighborhood of more nodes, a node requests links with the best ``best_links`` neighbors. They are
    ranked by delivery ratio in tenths; among equals, *hubs* come first. A hash of the address, which all nodes can
    compute, determines the hubs. Among n neighbors, about the square root of n are hubs. Nodes prefer links with hubs,
    and all hubs prefer the same hub, so publications make few hops. Requests are sent at random times within an
    interval, first to the best neighbor. The interval grows with the number of neighbors, as they share the channel.
    When a requested link ends, this node requests a link with the next neighbor in the ranking.

    The *scout* keeps the mesh connected. It is an additional link, which the node tries with all other neighbors in
    turn. If the *mesh ids* (mesh_ids.py) show that the scout closes a loop, its neighbor is connected already. Then the
    scout is *muted* and carries no publications. After about ``recheck_s`` it ends, and the node tries the next
    neighbor. Otherwise the link is *active*: it connects two parts of the mesh, and stays.

    In a crowd links also behave differently (`Context.is_crowded`). Keep-alives, repetitions and rechecks are rarer the
    more neighbors there are (`rules.times_of`), and only one end of a link sends keep-alives. Interests of muted
    neighbors are dropped. A publication waits for a short random time before it is forwarded, because several nodes
    received it at once. If all of them sent at once, they would lose frames: a radio discards a frame when it has
    sensed a busy channel five times.

Limits
    A hub accepts a link with each node that requests one, as many nodes depend on it. With ``best_links=3`` a hub with
    n neighbors has about three times the square root of n links, and an average node has six. No node has more than
    ``max_links``.

Reference
    R. Wattenhofer, A. Zollinger: XTC: a practical topology control algorithm for ad-hoc networks, WMAN 2004: bounded
    degrees by local ranks. XTC compares a node's ranks with those of its neighbors, which DPS messages do not carry;
    here mesh ids and scouts keep the mesh connected.
"""

from __future__ import annotations

from workbench.protocols.dps import rules
from workbench.protocols.dps.automaton import MUTED
from workbench.protocols.dps.context import Context
from workbench.protocols.dps.links import Links


class Neighborhood:
    """The radio neighbors of one node, as its link layer reports them, and the node's plans to request links with them.

    If the link layer reports no neighbors, the node requests only the links that the application requires.
    """

    def __init__(self, address: int, context: Context, links: Links) -> None:
        self._address = address
        self._context = context
        self._links = links
        self._settings = context.settings
        self._qualities: dict[int, float] = {}  # neighbor -> delivery ratio, if at least worst_link
        self._ranked_neighbors: list[int] | None = None  # these neighbors, best first; None: not sorted yet
        self._wanted_neighbors: set[int] = set()  # neighbors with which this node requests a link, again after its end
        self._request_at_us: dict[int, int] = {}  # neighbor without a link -> when to request one
        self._has_chosen_neighbors = False
        self._choose_at_us: int | None = None  # when to choose the best neighbors, after all reports
        self._move_scout_at_us: int | None = None  # when the scout tries the next neighbor
        self._scout_neighbor: int | None = None  # the scout's present neighbor
        self._next_index = 0  # index in ``_ranked_neighbors`` of the next one to try

    def report(self, neighbor: int, quality: float, now: int) -> None:
        """Store a neighbor's delivery ratio ``quality`` (0 to 1), measured in the worse direction.

        Plan a link request if the neighbor is new. If the ratio is below the setting ``worst_link``, remove the
        neighbor and end its link.
        """
        if quality < self._settings.worst_link:
            if neighbor in self._qualities or neighbor in self._links.remotes:
                self.forget(neighbor)
                self._links.unlink(neighbor, now)
            return
        is_new = neighbor not in self._qualities
        if is_new or self._qualities[neighbor] != quality:
            self._qualities[neighbor] = quality
            self._ranked_neighbors = None
        if is_new:
            self._update_density()
            self._plan_link_request(neighbor, now)

    def forget(self, neighbor: int) -> None:
        """Remove a neighbor, so that this node requests no link with it any more; an existing link stays."""
        if self._qualities.pop(neighbor, None) is not None:
            self._ranked_neighbors = None
            self._update_density()
        self._wanted_neighbors.discard(neighbor)
        self._request_at_us.pop(neighbor, None)

    def link_ended(self, neighbor: int, now: int) -> None:
        """Plan the next link request after the link with ``neighbor`` ended.

        Outside of a dense neighborhood, the request goes to the same neighbor if its delivery ratio still suffices; it
        is sent later if this neighbor is expected to request the link itself. In a dense neighborhood, the request goes
        to the next neighbor in the ranking. It is planned only if ``neighbor`` was one of the chosen best neighbors.
        """
        is_wanted = neighbor in self._wanted_neighbors
        delay_us = 0 if is_wanted else rules.late_request_us(self._settings.relink_s)
        if self._context.is_crowded:
            if not is_wanted:
                return
            self._wanted_neighbors.discard(neighbor)
            neighbor = self._next_neighbor()
            if neighbor is None:
                return
            self._wanted_neighbors.add(neighbor)
        elif neighbor not in self._qualities:
            return
        delay_us += rules.relink_after_us(self._settings.relink_s, self._context.random.uniform())
        self._request_at_us[neighbor] = now + delay_us

    def _update_density(self) -> None:
        context, neighbor_count = self._context, len(self._qualities)
        context.is_crowded = neighbor_count > self._settings.crowd
        context.times = rules.times_of(self._settings, neighbor_count if context.is_crowded else 0, True)

    def _plan_link_request(self, neighbor: int, now: int) -> None:
        """Plan to request a link with a new neighbor.

        Do nothing if this node has already chosen its best neighbors. After that choice, only the scout (a trial link)
        tries new neighbors.
        """
        context = self._context
        if self._has_chosen_neighbors:
            return
        if context.is_crowded and self._choose_at_us is None:
            self._choose_at_us = now + 1
        delay_us = rules.late_request_us(self._settings.relink_s)
        if self._address < neighbor:
            self._wanted_neighbors.add(neighbor)
            delay_us = context.random.below(context.times.update_us)  # at a random time, so that answers do not collide
        if neighbor not in self._links.remotes:
            self._request_at_us[neighbor] = now + 1 + delay_us

    # Time

    def wake(self, now: int) -> None:
        """Do the work that is due: choose the best neighbors, move the scout (a trial link), and request links."""
        if self._choose_at_us is not None and self._choose_at_us <= now:
            self._choose_neighbors(now)
        if self._move_scout_at_us is not None and self._move_scout_at_us <= now:
            self._move_scout(now)
        for neighbor in [due_neighbor for due_neighbor, due_us in self._request_at_us.items() if due_us <= now]:
            del self._request_at_us[neighbor]
            if neighbor not in self._links.remotes:
                self._request_link(neighbor, now)

    def next_due_us(self) -> int | None:
        """Return the time at which to call `wake` next, or None if nothing is planned."""
        due_times_us = [time_us for time_us in (self._choose_at_us, self._move_scout_at_us) if time_us is not None]
        due_times_us += self._request_at_us.values()
        return min(due_times_us) if due_times_us else None

    def _request_link(self, neighbor: int, now: int) -> None:
        if len(self._links.remotes) < self._settings.max_links:
            self._links.link(neighbor, now)
        else:
            self._request_at_us[neighbor] = now + int(self._settings.relink_s * rules.SECOND_US)

    def _choose_neighbors(self, now: int) -> None:
        """Choose the best neighbors; plan a link request to each, and the first request of the scout (a trial link)."""
        self._choose_at_us = None
        self._has_chosen_neighbors = True
        self._next_index = self._settings.best_links
        best_neighbors = self._rank_neighbors()[: self._next_index]
        self._wanted_neighbors = set(best_neighbors)
        self._request_at_us = {
            neighbor: now + self._draw_request_delay_us(position) for position, neighbor in enumerate(best_neighbors)
        }
        if self._settings.recheck_s > 0:
            self._move_scout_at_us = now + self._draw_request_delay_us(self._next_index)

    def _draw_request_delay_us(self, position: int) -> int:
        context = self._context
        return rules.request_delay_us(position, len(self._qualities), context.times.update_us, context.random.uniform())

    def _rank_neighbors(self) -> list[int]:
        if self._ranked_neighbors is None:
            address, qualities = self._address, self._qualities
            neighbor_count = len(qualities)
            self._ranked_neighbors = sorted(
                qualities, key=lambda neighbor: rules.rank(qualities[neighbor], address, neighbor, neighbor_count)
            )
        return self._ranked_neighbors

    def _next_neighbor(self) -> int | None:
        """Return the next neighbor with neither a link nor a planned link request, or None if no such neighbor exists.

        The search follows the ranking, and starts after the neighbor that the previous call returned. After the last
        neighbor, it continues with the first.
        """
        ranked_neighbors, remotes = self._rank_neighbors(), self._links.remotes
        for _ in range(len(ranked_neighbors)):
            neighbor = ranked_neighbors[self._next_index % len(ranked_neighbors)]
            self._next_index += 1
            if neighbor not in remotes and neighbor not in self._request_at_us:
                return neighbor
        return None

    def _move_scout(self, now: int) -> None:
        """End the scout (a trial link) if it is muted, and request a link with the next neighbor as the new scout."""
        scout_remote = None if self._scout_neighbor is None else self._links.remotes.get(self._scout_neighbor)
        if (
            scout_remote is not None
            and scout_remote.state == MUTED
            and scout_remote.pending is None
            and self._scout_neighbor not in self._wanted_neighbors
        ):
            self._links.unlink(self._scout_neighbor, now)
        self._scout_neighbor = self._next_neighbor()
        if self._scout_neighbor is not None:
            self._request_link(self._scout_neighbor, now)
        self._move_scout_at_us = now + rules.scout_after_us(
            self._context.times.recheck_s, self._context.random.uniform()
        )

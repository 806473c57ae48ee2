"""Reinforcement: how a sink chooses among the paths that its data came on, and what the nodes on them do about it.

Theory of operation
    A reinforcement is an interest message that a sink sends to one neighbor alone: the one that brought a source's new
    data first. That node puts its gradient towards the sender before all others and sends the message on to the
    neighbor that brought *it* the source's data first, and so on to the source. From then on data takes that path.

Differs from the original in
    A20  a reinforcement is taken if it lies within a cached interest (`attributes.is_within`): an equal one changes the
         order of that interest's gradients, a further constrained one gets an entry of its own. Any other is dropped.
    A21  it goes to the neighbors that brought new data first, to each source once per round. Of two reinforcements the
         newer wins, and a node keeps one gradient of the newest wave per sink, so gradients cannot form a loop. That
         gradient is also how a node knows a reinforcement again. One of an older round than the interest's is dropped.
    --   a sink starts at most ``max_reinforcements`` of them in a round of its interest. It remembers no more sources
         than that, so without this bound every reading of one it has forgotten would be reinforced again, and the
         paths of all would change with each (1500 nodes, 10 sinks, 100 sources: 1.5 million in 100 s).

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints, is_within
from workbench.attributes.model import one_way_match
from workbench.protocols.diffusion import wire
from workbench.protocols.diffusion.events import Reinforced


class Reinforcement:
    """The reinforcing part of a DiffusionNode."""

    def __init__(self, node):
        self.node = node

    def start(self, own, attributes, data_gradients, now):
        """Send a reinforcement of our own to the neighbors of these data gradients."""
        reinforcement = wire.Interest(
            self.node.take_sequence(),
            self.node.address,
            own.round,
            self.node.address,
            # One hop more than allowed to a message on its way: `next_frame` takes it off again.
            self.node.settings.ttl + 1,
            self.node.expiration_s(own, now),
            attributes,
        )
        paths = []
        self._add_paths(paths, reinforcement, own.attributes, data_gradients)
        return self._send(reinforcement, paths)

    def receive(self, reinforcement, now):
        """Take a neighbor's reinforcement: prefer that neighbor for its sink's data, and send it on to the sources."""
        self.node.clean(now)
        entry = self.node.cache.find(reinforcement.attributes)
        within = [entry] if entry is not None else self._interests_around(reinforcement)
        reason = self._why_not(reinforcement, entry, within)
        if reason is not None:
            self.node.drop_message(reinforcement, "reinforcement", reason)
            return
        paths = []
        # Before the new entry takes the place of one of these.
        for other in within:
            self._add_paths(paths, reinforcement, other.attributes, other.data_gradients.list)
        if entry is None:
            entry = self.node.new_entry(reinforcement)
        self.node.set_gradient(entry, reinforcement, now, wave=reinforcement.sequence)
        self._send(reinforcement, paths)
        self.node.plan_tick(now)

    def _why_not(self, reinforcement, entry, within):
        """Why a reinforcement is not taken, or None; ``entry``: of the same constraints; ``within``: what it is of."""
        sink = reinforcement.sink
        if sink == self.node.address:
            return "duplicate"
        if not within:
            return "no_interest"
        if entry is None:
            return None
        newest = entry.newest_wave(sink)
        if newest == reinforcement.sequence:
            return "duplicate"
        if newest > reinforcement.sequence or entry.is_past(sink, reinforcement.round):
            return "stale"
        return None

    def _interests_around(self, reinforcement):
        """The same sink's cached interests that a further constrained reinforcement lies within (A20)."""
        return [
            entry
            for entry in self.node.cache.entries
            if is_within(reinforcement.attributes, entry.attributes)
            and any([gradient.sink == reinforcement.sink for gradient in entry.gradients])
        ]

    def _add_paths(self, paths, reinforcement, interest, data_gradients):
        """Add those of an interest's data gradients that lead to sources a reinforcement means, one a neighbor."""
        # A source whose path is already reinforced is left out; one that asks for less of it is another matter.
        same = constraints(interest) == constraints(reinforcement.attributes)
        sink = reinforcement.sink
        settings = self.node.settings
        for data_gradient in data_gradients:
            if data_gradient.neighbor == reinforcement.previous_hop or (same and sink in data_gradient.reinforced_for):
                continue
            if not one_way_match(reinforcement.attributes, data_gradient.attributes):
                continue
            if data_gradient.neighbor in self.node.black_list:
                self.node.drop(data_gradient.neighbor, "reinforcement", sink, reinforcement.sequence, "blacklisted")
                continue
            is_new = data_gradient.neighbor not in [path.neighbor for path in paths]
            if (same and len(data_gradient.reinforced_for) >= settings.max_sinks) or (
                is_new and len(paths) >= settings.max_next_hops
            ):
                self.node.drop(data_gradient.neighbor, "reinforcement", sink, reinforcement.sequence, "full")
                continue
            if same:
                data_gradient.reinforced_for += (sink,)
            if is_new:
                paths.append(data_gradient)

    def _send(self, reinforcement, paths):
        """Send a reinforcement along these data gradients, each of another neighbor; returns how many they are."""
        if paths and reinforcement.ttl <= 1:
            self.node.drop_message(reinforcement, "reinforcement", "ttl")
            return 0
        for data_gradient in paths:
            neighbor = data_gradient.neighbor
            self.node.outbox.append((neighbor, self.node.next_frame(reinforcement)))
            self.node.events.append(
                Reinforced(
                    neighbor,
                    "reinforcement",
                    reinforcement.sink,
                    reinforcement.sequence,
                    data_gradient.source,
                    "",
                )
            )
        return len(paths)

"""The interest cache: other nodes' interests, with the next hops of data for them and the previous hops of that data.

Theory of operation
    An entry stands for all interests with the same constraints (A16). Its *interest gradients* list for each sink the
    neighbors that data may go to, best first: a reinforced one, then in the order in which the interest arrived. The
    first gradient of a sink, its head, carries data (A14). Its *data gradients* have for each source the neighbor that
    brought its newest data first: the next hop of a reinforcement (A21). All lists are FIFOs of fixed size; expired
    gradients are dropped at every update.

Differs from the original in
    A14  "based on first arriving interest", yet a list: the list is in arrival order and its head carries data.
    A17  a full gradient list drops the new gradient, which is the slowest; the original drops the first. The first
         carries data: without it the path to the sink is lost, as the remaining gradients lead away from the sink. A
         sink's only gradient is not dropped while another sink has two, or merging interests would cut off a sink.
    A18  the expiration is stored per gradient.
    A15  an interest's round is remembered for two refreshes; then any round is new. In the original, a node that was
         off for 128 rounds takes new rounds for old ones for the next 128 rounds.
    A16  of the interests seen, the one not heard for longest is forgotten first. Reinforcements are not among them:
         they would push out the interest that they belong to, and its echo would turn gradients backwards.
    --   a reinforcement may overtake the interest of its round. That interest does not clear the reinforced gradient,
         or the path would be cut where the interest arrives later, and might turn back on itself there.
    A21  a data gradient also remembers the source's last attributes, so that a further constrained reinforcement goes
         only to matching sources.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.rules import gradient_to_replace, is_path_of_round, is_stale


class Gradient:
    """A gradient: data for ``sink`` may go to ``neighbor`` until ``expires_us``.

    reinforced_by: the reinforcement's number, or None; sequence: the number of the sink's interest that set it, None if
    only reinforcements did; round: that of the message that set it last; ttl: that of the interest when it arrived, so
    it is the higher, the nearer the neighbor is to the sink.
    """

    __slots__ = ("expires_us", "neighbor", "reinforced_by", "round", "sequence", "sink", "ttl")

    def __init__(self, sink, neighbor, expires_us, reinforced_by=None):
        self.sink = sink
        self.neighbor = neighbor
        self.expires_us = expires_us
        self.reinforced_by = reinforced_by
        self.round = 0
        self.sequence = None
        self.ttl = 0

    def number(self):
        """Return the number of the gradient's interest, or 0 if only reinforcements have set it."""
        return self.sequence or 0


class DataGradient:
    """A data gradient: new data of ``source`` came first from ``neighbor``.

    reinforced_for: the sinks whose reinforcements were sent along it; attributes: of the source's last data; messages:
    how many new data messages came.
    """

    __slots__ = ("attributes", "messages", "neighbor", "reinforced_for", "source")

    def __init__(self, source, neighbor, attributes):
        self.source = source
        self.neighbor = neighbor
        self.attributes = attributes
        self.messages = 0
        self.reinforced_for = ()  # a tuple: most stay empty, and an empty tuple takes no memory


class DataGradients:
    """The data gradients of an interest, one per source: a FIFO of fixed size."""

    def __init__(self, size):
        self.size = size
        self.list = []

    def update(self, source, neighbor, attributes):
        """Record new data of a source; return (the source's DataGradient, whether the neighbor changed)."""
        for data_gradient in self.list:
            if data_gradient.source == source:
                changed = data_gradient.neighbor != neighbor
                data_gradient.neighbor = neighbor
                data_gradient.attributes = attributes
                data_gradient.messages += 1
                return data_gradient, changed
        if len(self.list) >= self.size:
            self.list.pop(0)
        data_gradient = DataGradient(source, neighbor, attributes)
        data_gradient.messages = 1
        self.list.append(data_gradient)
        return data_gradient, True

    def forget_reinforcements(self, sink):
        """Forget which data gradients a sink has reinforced, as a new round of its interest begins."""
        for data_gradient in self.list:
            if sink in data_gradient.reinforced_for:
                data_gradient.reinforced_for = tuple([other for other in data_gradient.reinforced_for if other != sink])


class InterestEntry:
    """A cache entry for all interests with the same constraints: attributes, gradients and data gradients.

    ``sink`` and ``sequence`` are those of the interest that was cached last.
    """

    def __init__(self, interest, max_gradients, max_reinforcements):
        attributes = interest.attributes
        self.sink = interest.sink
        self.sequence = interest.sequence
        self.attributes = attributes
        self.constraints = constraints(attributes)
        self.gradients = []
        self.max_gradients = max_gradients
        self.data_gradients = DataGradients(max_reinforcements)

    def gradient(self, sink, neighbor):
        """Return the gradient for a sink towards a neighbor, or None."""
        for gradient in self.gradients:
            if gradient.sink == sink and gradient.neighbor == neighbor:
                return gradient
        return None

    def head(self, sink):
        """Return (neighbor, number, 1 if reinforced else 0) of a sink's first gradient for HeadSet, or None."""
        for gradient in self.gradients:
            if gradient.sink == sink:
                return gradient.neighbor, gradient.number(), 0 if gradient.reinforced_by is None else 1
        return None

    def heads(self):
        """Return {sink: its first gradient}."""
        heads = {}
        for gradient in self.gradients:
            if gradient.sink not in heads:
                heads[gradient.sink] = gradient
        return heads

    def add(self, gradient):
        """Append a gradient and return (whether it was accepted, the gradient that it replaced or None)."""
        evicted = None
        if len(self.gradients) >= self.max_gradients:
            index = gradient_to_replace(
                self.gradients, len(self.gradients), gradient.sink, gradient.reinforced_by is not None
            )
            if index == NOBODY:
                return False, None
            evicted = self.gradients.pop(index)
        self.gradients.append(gradient)
        return True, evicted

    def move_to_front(self, gradient):
        """Move a reinforced gradient to the front of the list."""
        self.gradients.remove(gradient)
        self.gradients.insert(0, gradient)

    def remove(self, neighbor=None, expired_at=None):
        """Remove and return the gradients towards a neighbor, or those expired at a time."""
        removed = [
            gradient
            for gradient in self.gradients
            if (neighbor is not None and gradient.neighbor == neighbor)
            or (expired_at is not None and gradient.expires_us <= expired_at)
        ]
        for gradient in removed:
            self.gradients.remove(gradient)
        return removed

    def begin_round(self, sink, sequence, round_):
        """Remove and return a sink's gradients, except one set by a reinforcement of the round that begins."""
        removed = [
            gradient
            for gradient in self.gradients
            if gradient.sink == sink
            and (
                gradient.reinforced_by is None
                or not is_path_of_round(gradient.reinforced_by, gradient.round, sequence, round_)
            )
        ]
        for gradient in removed:
            self.gradients.remove(gradient)
        return removed

    def newest_reinforcement(self, sink):
        """Return the highest number of a sink's reinforcements among the gradients, or ``NOBODY``."""
        return max(
            [g.reinforced_by for g in self.gradients if g.sink == sink and g.reinforced_by is not None] or [NOBODY]
        )

    def has_newer_round(self, sink, round_):
        """Return whether an interest of a sink has arrived in a newer round than ``round_``."""
        return any([g.sink == sink and g.sequence is not None and is_stale(round_, g.round) for g in self.gradients])

    def cancel(self, sink, sequence):
        """Remove and return a sink's gradients set by interests up to ``sequence``, or by reinforcements only."""
        removed = [g for g in self.gradients if g.sink == sink and (g.sequence is None or g.sequence <= sequence)]
        for gradient in removed:
            self.gradients.remove(gradient)
        return removed

    def add_paths(self, paths, now, previous_hop, served, exploratory):
        """Append (sink, neighbors that may be its next hop, rank) to ``paths`` for each copy that a sink gets.

        ``served``: sinks that get no copy; ``previous_hop``: the neighbor that brought the data, never a next hop. A
        copy uses the sink's first gradient or, unless that is reinforced, any gradient as near to the sink. With
        ``exploratory`` above 1 there are that many copies, each along another gradient: the first has rank 0, the
        others rank 1.
        """
        heads = {}
        copies_left = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == previous_hop or sink in served:
                continue
            head = heads.get(sink)
            if head is None:
                heads[sink] = gradient
                copies_left[sink] = 1 if gradient.reinforced_by is not None else exploratory
                candidates = [gradient.neighbor]
                paths.append((sink, candidates, 0))
                if exploratory == 1 and gradient.reinforced_by is None:
                    for other in self.gradients:
                        if (
                            other.sink == sink
                            and other.expires_us > now
                            and other.ttl >= gradient.ttl
                            and other.neighbor not in (previous_hop, gradient.neighbor)
                        ):
                            candidates.append(other.neighbor)
            elif copies_left[sink] > 1:
                copies_left[sink] -= 1
                paths.append((sink, [gradient.neighbor], 1))

    def add_detours(self, paths, now, previous_hop, served, failed):
        """Append (sink, [next hop], 0) to ``paths`` for each sink, by its first gradient that avoids ``failed``.

        If all of a sink's gradients lead to ``failed``, that neighbor is the next hop. ``served`` and ``previous_hop``
        are as in `add_paths`.
        """
        detours = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == previous_hop or sink in served:
                continue
            candidates = detours.get(sink)
            if candidates is None:
                detours[sink] = candidates = [gradient.neighbor]
                paths.append((sink, candidates, 0))
            elif candidates[0] == failed:
                candidates[0] = gradient.neighbor


class InterestCache:
    """A FIFO of InterestEntry of fixed size; ``is_evicting``: whether adding the newest entry evicted another."""

    def __init__(self, size, max_gradients, max_reinforcements):
        self.size = size
        self.is_evicting = False
        self.max_gradients = max_gradients
        self.max_reinforcements = max_reinforcements
        self.entries = []

    def find(self, attributes):
        """Return the entry with the same constraints (order and INTERVAL ignored), or None."""
        wanted = constraints(attributes)
        for entry in self.entries:
            if entry.constraints == wanted:
                return entry
        return None

    def add(self, interest):
        """Add an entry for an interest and return (the entry, the oldest entry that it evicted or None)."""
        evicted = self.entries.pop(0) if len(self.entries) >= self.size else None
        self.is_evicting = evicted is not None
        entry = InterestEntry(interest, self.max_gradients, self.max_reinforcements)
        self.entries.append(entry)
        return entry, evicted


class ServedSinks:
    """The sinks that this node has sent data towards, each with a bit, so that an integer is a set of sinks.

    There are as many bits as the cache can hold gradients. A new sink gets the first free bit or, if all are in use,
    the first bit whose sink has no gradients.
    """

    def __init__(self, cache):
        self.cache = cache
        self.size = cache.size * cache.max_gradients
        self.sinks = []

    def bit(self, sink):
        """Return (the bit of a sink with a gradient, whether another sink had that bit before)."""
        if sink in self.sinks:
            return 1 << self.sinks.index(sink), False
        if len(self.sinks) < self.size:
            self.sinks.append(sink)
            return 1 << (len(self.sinks) - 1), False
        known = [gradient.sink for entry in self.cache.entries for gradient in entry.gradients]
        index = [other in known for other in self.sinks].index(False)
        self.sinks[index] = sink
        return 1 << index, True

    def of(self, bits):
        """Return the sinks in a set of bits."""
        return [self.sinks[index] for index in range(len(self.sinks)) if bits >> index & 1]


class SeenData:
    """The memory of a data message, stored under its id.

    received_us, previous_hop: time and sender of the first copy. served: the sinks towards which the message was sent,
    as bits of `ServedSinks`. is_settled: whether all further copies are duplicates, even copies for other sinks.
    retries: number of retransmissions. ttl: the ttl of the first copy, or of the last copy that came back in a loop.
    """

    __slots__ = ("is_settled", "previous_hop", "received_us", "retries", "served", "ttl")

    def __init__(self, previous_hop, ttl, now):
        self.received_us = now
        self.previous_hop = previous_hop
        self.ttl = ttl
        self.served = 0
        self.is_settled = False
        self.retries = 0


class SeenInterests:
    """The interests heard last, each with its round and time. The one not heard for longest is forgotten first."""

    def __init__(self, size, known_for_us):
        self.size = size
        self.known_for_us = known_for_us
        self._heard = {}  # (sink, sequence) -> (when, round)

    def round_of(self, id, now):
        """Return the round of an interest, or None if the interest is unknown or too old to compare its round."""
        heard = self._heard.get(id)
        return None if heard is None or now - heard[0] >= self.known_for_us else heard[1]

    def put(self, id, round_, now):
        """Note an interest's round."""
        if len(self._heard) >= self.size and id not in self._heard:
            # Of interests heard in the same microsecond the lower id goes: dictionaries have no order on a mote.
            del self._heard[min([(heard[0], other) for other, heard in self._heard.items()])[1]]
        self._heard[id] = (now, round_)

    def __len__(self):
        return len(self._heard)


class OwnInterest:
    """An interest of this node, shared by all its subscriptions with the same constraints."""

    def __init__(self, sequence, attributes, max_sources):
        self.sequence = sequence
        self.attributes = attributes
        self.round = 0
        self.reinforcements = 0  # started in this round
        self.refresh_us = None
        self.repeat_us = None  # when this round is sent again, unless a neighbor is heard to forward it
        self.repeats = 0  # of this round
        self.data_gradients = DataGradients(max_sources)

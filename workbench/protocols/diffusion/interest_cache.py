"""The interest cache: what a node knows of others' interests, where data for them goes, and where it came from.

Theory of operation
    An entry stands for all interests with the same constraints (A16). Its *interest gradients* say for each sink which
    neighbors data may go to, best first: a reinforced one, then in the order in which the interest arrived; the head
    carries data (A14). Its *data gradients* say for each source which neighbor brought its newest data first: where a
    reinforcement goes (A21). All lists are FIFOs of fixed size; expired gradients are dropped at every update.

Differs from the original in
    A14  "based on first arriving interest", yet a list: the list is in arrival order and its head carries data.
    A17  a full gradient list is no FIFO, as the original's is: it drops the newcomer, which is the slowest. The first
         is the head, which carries data; with it would go the way to the sink, and those that are left lead away from
         it. A sink's only gradient is not dropped while another sink has a spare one, or merging would starve a sink.
    A18  the expiration is kept per gradient.
    A15  an interest's round is known for two refreshes; then any round is new. A node that was off for 128 rounds took
         new ones for old, for as long again.
    A16  of the interests seen, the one not heard for longest is forgotten first. Reinforcements are not among them:
         they would push out the interest that they belong to, and its echo would turn gradients backwards.
    --   a reinforcement may overtake the interest of its round. The interest then leaves the reinforced gradient, or
         the path would be cut where the interest comes later, and might turn back on itself there.
    A21  a data gradient also remembers the source's last attributes, so that a reinforcement that is further
         constrained goes only to the sources it means.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.rules import is_path_of_round, is_stale, replaced


class Gradient:
    """Data for ``sink`` may go to ``neighbor`` until ``expires_us``; ``wave`` is the reinforcement's number, if any.

    ``sequence`` is the number of the sink's interest that set it, None if a reinforcement alone did; ``round`` that of
    the message which set it last; ``ttl`` that of the interest, so the nearer the neighbor is to the sink, the higher.
    """

    __slots__ = ("expires_us", "neighbor", "round", "sequence", "sink", "ttl", "wave")

    def __init__(self, sink, neighbor, expires_us, wave=None):
        self.sink = sink
        self.neighbor = neighbor
        self.expires_us = expires_us
        self.wave = wave
        self.round = 0
        self.sequence = None
        self.ttl = 0

    def number(self):
        """Return the number of its interest, or 0 if reinforcements alone have set it."""
        return self.sequence or 0


class DataGradient:
    """New data of ``source`` came first from ``neighbor``; ``reinforced_for``: sinks whose reinforcement went there."""

    __slots__ = ("attributes", "messages", "neighbor", "reinforced_for", "source")

    def __init__(self, source, neighbor, attributes):
        self.source = source
        self.neighbor = neighbor
        self.attributes = attributes
        self.messages = 0
        self.reinforced_for = ()  # A tuple: most stay empty, and an empty one takes no memory.


class DataGradients:
    """Per source, the neighbor that brought its newest data first: a FIFO of fixed size."""

    def __init__(self, size):
        self.size = size
        self.list = []

    def update(self, source, neighbor, attributes):
        """Note new data; returns (the source's DataGradient, whether its neighbor changed)."""
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
        """A new round of ``sink``'s interest begins: its paths are open again."""
        for data_gradient in self.list:
            if sink in data_gradient.reinforced_for:
                data_gradient.reinforced_for = tuple([one for one in data_gradient.reinforced_for if one != sink])


class InterestEntry:
    """All interests with the same constraints: their attributes, gradients and data gradients.

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
        """The gradient for a sink towards a neighbor, or None."""
        for gradient in self.gradients:
            if gradient.sink == sink and gradient.neighbor == neighbor:
                return gradient
        return None

    def head(self, sink):
        """Return what HeadSet reports of a sink's first gradient, or None.

        That is (neighbor, number, 1 if a reinforcement has put it there).
        """
        for gradient in self.gradients:
            if gradient.sink == sink:
                return gradient.neighbor, gradient.number(), 0 if gradient.wave is None else 1
        return None

    def heads(self):
        """Return {sink: its first gradient}."""
        heads = {}
        for gradient in self.gradients:
            if gradient.sink not in heads:
                heads[gradient.sink] = gradient
        return heads

    def add(self, gradient):
        """Append a gradient; returns (whether it was taken, the gradient that had to go or None)."""
        evicted = None
        if len(self.gradients) >= self.max_gradients:
            place = replaced(self.gradients, len(self.gradients), gradient.sink, gradient.wave is not None)
            if place == NOBODY:
                return False, None
            evicted = self.gradients.pop(place)
        self.gradients.append(gradient)
        return True, evicted

    def to_front(self, gradient):
        """Make a reinforced gradient the head of the list."""
        self.gradients.remove(gradient)
        self.gradients.insert(0, gradient)

    def remove(self, neighbor=None, expired_at=None):
        """Take out and return the gradients towards a neighbor, or expired at a time."""
        gone = [
            gradient
            for gradient in self.gradients
            if (neighbor is not None and gradient.neighbor == neighbor)
            or (expired_at is not None and gradient.expires_us <= expired_at)
        ]
        for gradient in gone:
            self.gradients.remove(gradient)
        return gone

    def begin_round(self, sink, sequence, round_):
        """Take out and return a sink's gradients, but for what a reinforcement of the round that begins has set."""
        gone = [
            gradient
            for gradient in self.gradients
            if gradient.sink == sink
            and (gradient.wave is None or not is_path_of_round(gradient.wave, gradient.round, sequence, round_))
        ]
        for gradient in gone:
            self.gradients.remove(gradient)
        return gone

    def newest_wave(self, sink):
        """The number of a sink's newest reinforcement among the gradients; NOBODY if there is none."""
        return max([g.wave for g in self.gradients if g.sink == sink and g.wave is not None] or [NOBODY])

    def is_past(self, sink, round_):
        """Whether a sink's interest has come here in a newer round than this one."""
        return any([g.sink == sink and g.sequence is not None and is_stale(round_, g.round) for g in self.gradients])

    def cancel(self, sink, sequence):
        """Take out and return a sink's gradients that interests up to ``sequence``, or reinforcements alone, set."""
        gone = [g for g in self.gradients if g.sink == sink and (g.sequence is None or g.sequence <= sequence)]
        for gradient in gone:
            self.gradients.remove(gradient)
        return gone

    def add_paths(self, paths, now, not_to, served, exploratory):
        """Append (sink, neighbors that may be its next hop, rank) to ``paths``: one for each copy that a sink gets.

        ``served``: sinks that get none. The neighbor ``not_to``, which has brought the data, is never a next hop.
        A copy goes to the sink's first gradient or, unless a reinforcement has put it there, to any that is as near to
        the sink. With ``exploratory`` above 1 there are so many copies, each to a gradient of its own: the first has
        the rank 0, the others 1.
        """
        heads = {}
        rooms = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == not_to or sink in served:
                continue
            head = heads.get(sink)
            if head is None:
                heads[sink] = gradient
                rooms[sink] = 1 if gradient.wave is not None else exploratory
                near = [gradient.neighbor]
                paths.append((sink, near, 0))
                if exploratory == 1 and gradient.wave is None:
                    for other in self.gradients:
                        if (
                            other.sink == sink
                            and other.expires_us > now
                            and other.ttl >= gradient.ttl
                            and other.neighbor not in (not_to, gradient.neighbor)
                        ):
                            near.append(other.neighbor)
            elif rooms[sink] > 1:
                rooms[sink] -= 1
                paths.append((sink, [gradient.neighbor], 1))

    def add_detours(self, paths, now, not_to, served, failed):
        """Append (sink, [next hop], 0) to ``paths``: the first gradient of each sink but to ``failed``, else that one.

        ``served`` and ``not_to`` as in `add_paths`.
        """
        detours = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == not_to or sink in served:
                continue
            near = detours.get(sink)
            if near is None:
                detours[sink] = near = [gradient.neighbor]
                paths.append((sink, near, 0))
            elif near[0] == failed:
                near[0] = gradient.neighbor


class InterestCache:
    """A FIFO of InterestEntry of fixed size; ``is_evicting``: whether its newest entry has pushed another out."""

    def __init__(self, size, max_gradients, max_reinforcements):
        self.size = size
        self.is_evicting = False
        self.max_gradients = max_gradients
        self.max_reinforcements = max_reinforcements
        self.entries = []

    def find(self, attributes):
        """The entry with the same constraints (order and INTERVAL ignored), or None."""
        wanted = constraints(attributes)
        for entry in self.entries:
            if entry.constraints == wanted:
                return entry
        return None

    def add(self, interest):
        """A new entry; returns (entry, the oldest entry that had to go or None)."""
        evicted = self.entries.pop(0) if len(self.entries) >= self.size else None
        self.is_evicting = evicted is not None
        entry = InterestEntry(interest, self.max_gradients, self.max_reinforcements)
        self.entries.append(entry)
        return entry, evicted


class ServedSinks:
    """The sinks that this node has sent data towards, each with a bit, so that a set of them is an integer.

    There are as many bits as the cache has room for gradients. A new sink gets the first bit that no sink has, or else
    the first one of a sink without gradients.
    """

    def __init__(self, cache):
        self.cache = cache
        self.size = cache.size * cache.max_gradients
        self.sinks = []

    def bit(self, sink):
        """Return (a sink's bit, whether another sink had it before); the sink has a gradient."""
        if sink in self.sinks:
            return 1 << self.sinks.index(sink), False
        if len(self.sinks) < self.size:
            self.sinks.append(sink)
            return 1 << (len(self.sinks) - 1), False
        known = [gradient.sink for entry in self.cache.entries for gradient in entry.gradients]
        place = [other in known for other in self.sinks].index(False)
        self.sinks[place] = sink
        return 1 << place, True

    def of(self, bits):
        """Return the sinks of a set."""
        return [self.sinks[place] for place in range(len(self.sinks)) if bits >> place & 1]


class SeenData:
    """What a node remembers of a data message beside its id.

    came_us, previous_hop: when and from where it came first; served: the sinks it was sent towards, as bits of
    `ServedSinks`; is_settled: further copies are duplicates, whatever they are for; retries: how often it was sent
    again; ttl: with which it came first, or last in a circle.
    """

    __slots__ = ("came_us", "is_settled", "previous_hop", "retries", "served", "ttl")

    def __init__(self, previous_hop, ttl, now):
        self.came_us = now
        self.previous_hop = previous_hop
        self.ttl = ttl
        self.served = 0
        self.is_settled = False
        self.retries = 0


class SeenInterests:
    """The interests heard last: the round of each, and when it came. The one not heard for longest is forgotten."""

    def __init__(self, size, known_for_us):
        self.size = size
        self.known_for_us = known_for_us
        self._heard = {}  # (sink, sequence) -> (when, round)

    def round_of(self, id, now):
        """The round of an interest, or None if it is unknown or was heard too long ago to compare rounds."""
        heard = self._heard.get(id)
        return None if heard is None or now - heard[0] >= self.known_for_us else heard[1]

    def put(self, id, round_, now):
        """Note an interest's round."""
        if len(self._heard) >= self.size and id not in self._heard:
            # Heard in the same microsecond, the lower number goes: dictionaries have no order on a mote.
            del self._heard[min([(heard[0], one) for one, heard in self._heard.items()])[1]]
        self._heard[id] = (now, round_)

    def __len__(self):
        return len(self._heard)


class OwnInterest:
    """An interest of this node's own: one per distinct constraints, shared by the subscriptions that ask for it."""

    def __init__(self, sequence, attributes, max_sources):
        self.sequence = sequence
        self.attributes = attributes
        self.round = 0
        self.reinforcements = 0  # started in this round
        self.refresh_us = None
        self.repeat_us = None  # when this round is sent again, unless a neighbor is heard to pass it on
        self.repeats = 0  # of this round
        self.data_gradients = DataGradients(max_sources)

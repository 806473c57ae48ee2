"""The memories of a TinyDiffusion node: its interest cache, messages already seen, and its own interests.

The interest cache contains other nodes' interests, with the next hops and the previous hops of data that matches them.

Theory of operation
    An entry stands for all interests with the same constraints (A16). Its *interest gradients* list for each sink the
    neighbors to which data may be sent, best first. A reinforced gradient is the first; the others are in the order in
    which the interest arrived. The first gradient of a sink, its head, carries data (A14). An entry's *data gradients*
    contain for each source the neighbor that brought the source's newest data first. This neighbor is the next hop of a
    reinforcement (A21). All lists have a fixed size; expired gradients are dropped at every update.

Differs from the original in
    A14  the original has a list of gradients, yet selects a gradient "based on first arriving interest". Here the list
         is in the order of arrival, and its head carries data.
    A17  if the list is full, the new gradient, which is the slowest, is dropped. The original drops the first gradient.
         But the first gradient carries data; without it the path to the sink is lost, as the other gradients may lead
         away from the sink. A sink's only gradient is not dropped while another sink has two gradients. Otherwise the
         interests of other sinks in the same entry could cut off a sink.
    A18  the expiration is stored per gradient.
    A15  an interest's round is remembered for two refreshes; then any round is new. In the original, a node that was
         off for 128 rounds takes new rounds for old ones for the next 128 rounds.
    A16  of the interests already seen, the node first forgets the one that it has not heard for longest. It does not
         store reinforcements among them. They would push out the interest that they belong to, and a late copy of that
         interest would then turn gradients backwards.
    --   a reinforcement may overtake the interest of its round. When that interest arrives, the node keeps the
         reinforced gradient. Otherwise the path would be cut at this node, and might turn back on itself.
    A21  a data gradient also remembers the attributes of the source's last message, so that a reinforcement with
         stricter constraints than the interest goes only to matching sources.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints
from workbench.protocols.contract import NOBODY
from workbench.protocols.diffusion.rules import gradient_to_replace, is_older_round, is_path_of_round


class Gradient:
    """A gradient: data for ``sink`` may be sent to ``neighbor`` until ``expires_us`` (µs).

    reinforced_by  sequence number of the reinforcement that put the gradient first, or None
    sequence       sequence number of the sink's interest that set the gradient; None if only reinforcements set it
    round          round of the message that set the gradient last
    ttl            ttl with which the interest arrived from the neighbor: higher if the neighbor is nearer to the sink
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

    def interest_sequence(self):
        """Return the sequence number of the gradient's interest, or 0 if only reinforcements have set the gradient."""
        return self.sequence or 0


class DataGradient:
    """A data gradient: the newest data of ``source`` came first from ``neighbor``.

    attributes      attributes of the source's last message
    messages        number of the source's messages so far, without duplicates
    reinforced_for  tuple of the sinks whose reinforcements this node has sent along the data gradient
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
        """Record the neighbor that sent new data of a source; return (DataGradient, whether the neighbor changed)."""
        for data_gradient in self.list:
            if data_gradient.source == source:
                is_changed = data_gradient.neighbor != neighbor
                data_gradient.neighbor = neighbor
                data_gradient.attributes = attributes
                data_gradient.messages += 1
                return data_gradient, is_changed
        if len(self.list) >= self.size:
            self.list.pop(0)
        data_gradient = DataGradient(source, neighbor, attributes)
        data_gradient.messages = 1
        self.list.append(data_gradient)
        return data_gradient, True

    def forget_reinforcements(self, sink):
        """Remove a sink from ``reinforced_for`` of all data gradients, so that its reinforcements may be sent again."""
        for data_gradient in self.list:
            if sink in data_gradient.reinforced_for:
                data_gradient.reinforced_for = tuple(
                    [other_sink for other_sink in data_gradient.reinforced_for if other_sink != sink]
                )


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
        """Return (neighbor, sequence, 1 if reinforced else 0) of a sink's first gradient, or None.

        ``sequence`` is the sequence number of the gradient's interest, as in the event HeadSet.
        """
        for gradient in self.gradients:
            if gradient.sink == sink:
                return gradient.neighbor, gradient.interest_sequence(), 0 if gradient.reinforced_by is None else 1
        return None

    def heads(self):
        """Return {sink: the first gradient of the sink in this entry}."""
        heads = {}
        for gradient in self.gradients:
            if gradient.sink not in heads:
                heads[gradient.sink] = gradient
        return heads

    def add(self, gradient):
        """Append a gradient; return (whether it was stored, the gradient that was removed to make room or None).

        If the list is full, `rules.gradient_to_replace` decides which gradient is removed, or that the new one is not
        stored.
        """
        evicted_gradient = None
        if len(self.gradients) >= self.max_gradients:
            index = gradient_to_replace(
                self.gradients, len(self.gradients), gradient.sink, gradient.reinforced_by is not None
            )
            if index == NOBODY:
                return False, None
            evicted_gradient = self.gradients.pop(index)
        self.gradients.append(gradient)
        return True, evicted_gradient

    def move_to_front(self, gradient):
        """Move a reinforced gradient to the front of this entry's list of gradients."""
        self.gradients.remove(gradient)
        self.gradients.insert(0, gradient)

    def remove(self, neighbor=None, expired_at=None):
        """Remove and return all gradients towards ``neighbor``, or all that have expired at ``expired_at`` (µs).

        An argument that is None selects no gradients.
        """
        removed_gradients = [
            gradient
            for gradient in self.gradients
            if (neighbor is not None and gradient.neighbor == neighbor)
            or (expired_at is not None and gradient.expires_us <= expired_at)
        ]
        for gradient in removed_gradients:
            self.gradients.remove(gradient)
        return removed_gradients

    def begin_round(self, sink, sequence, round_):
        """Remove and return a sink's gradients, because round ``round_`` of the sink's interest ``sequence`` begins.

        A gradient that a reinforcement of this round has already set is kept.
        """
        removed_gradients = [
            gradient
            for gradient in self.gradients
            if gradient.sink == sink
            and (
                gradient.reinforced_by is None
                or not is_path_of_round(gradient.reinforced_by, gradient.round, sequence, round_)
            )
        ]
        for gradient in removed_gradients:
            self.gradients.remove(gradient)
        return removed_gradients

    def newest_reinforcement(self, sink):
        """Return the sequence number of the newest reinforcement that set a sink's gradient, or ``NOBODY``."""
        return max(
            [
                gradient.reinforced_by
                for gradient in self.gradients
                if gradient.sink == sink and gradient.reinforced_by is not None
            ]
            or [NOBODY]
        )

    def has_newer_round(self, sink, round_):
        """Return whether the entry has a gradient set by an interest of ``sink`` in a newer round than ``round_``."""
        return any(
            [
                gradient.sink == sink and gradient.sequence is not None and is_older_round(round_, gradient.round)
                for gradient in self.gradients
            ]
        )

    def cancel(self, sink, sequence):
        """Remove and return a sink's gradients, because the sink has cancelled its interest ``sequence``.

        Gradients that later interests of the sink have set are kept.
        """
        removed_gradients = [
            g for g in self.gradients if g.sink == sink and (g.sequence is None or g.sequence <= sequence)
        ]
        for gradient in removed_gradients:
            self.gradients.remove(gradient)
        return removed_gradients

    def add_paths(self, paths, now, previous_hop, served, exploratory_gradients):
        """Append to ``paths`` a path (sink, candidate next hops, rank) for each copy of data to be sent to a sink.

        ``served``: sinks that get no copy; ``previous_hop``: the neighbor that sent the data and gets no copy;
        ``exploratory_gradients``: number of copies for each sink without a reinforced gradient.

        A sink's first path has rank 0 and leads along the sink's first gradient. If ``exploratory_gradients`` is 1 and
        no reinforcement has chosen this gradient, other neighbors that are at least as near to the sink as the neighbor
        of this gradient are candidates, too. Each further copy for the sink has a path of rank 1 along the sink's next
        gradient.
        """
        first_gradients = {}
        copies_left = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == previous_hop or sink in served:
                continue
            first_gradient = first_gradients.get(sink)
            if first_gradient is None:
                first_gradients[sink] = gradient
                copies_left[sink] = 1 if gradient.reinforced_by is not None else exploratory_gradients
                candidates = [gradient.neighbor]
                paths.append((sink, candidates, 0))
                if exploratory_gradients == 1 and gradient.reinforced_by is None:
                    for other_gradient in self.gradients:
                        if (
                            other_gradient.sink == sink
                            and other_gradient.expires_us > now
                            and other_gradient.ttl >= gradient.ttl
                            and other_gradient.neighbor not in (previous_hop, gradient.neighbor)
                        ):
                            candidates.append(other_gradient.neighbor)
            elif copies_left[sink] > 1:
                copies_left[sink] -= 1
                paths.append((sink, [gradient.neighbor], 1))

    def add_detours(self, paths, now, previous_hop, served, failed):
        """Append a path (sink, [next hop], 0) to the list ``paths`` for each sink to which data must be sent again.

        ``failed``: the neighbor that did not acknowledge the data. ``previous_hop``: the neighbor that sent the data
        and gets no copy. ``served``: sinks that get no copy. The next hop is that of the first among the sink's
        gradients that does not lead to ``failed``. If all of them lead to ``failed``, it is ``failed``. The rank is
        always 0.
        """
        candidates_by_sink = {}
        for gradient in self.gradients:
            sink = gradient.sink
            if gradient.expires_us <= now or gradient.neighbor == previous_hop or sink in served:
                continue
            candidates = candidates_by_sink.get(sink)
            if candidates is None:
                candidates_by_sink[sink] = candidates = [gradient.neighbor]
                paths.append((sink, candidates, 0))
            elif candidates[0] == failed:
                candidates[0] = gradient.neighbor


class InterestCache:
    """The interest cache: a FIFO of InterestEntry of fixed size.

    ``is_evicting``: whether the last call of `add` evicted an entry.
    """

    def __init__(self, size, max_gradients, max_reinforcements):
        self.size = size
        self.is_evicting = False
        self.max_gradients = max_gradients
        self.max_reinforcements = max_reinforcements
        self.entries = []

    def find(self, attributes):
        """Return the entry with the same constraints as ``attributes``, or None.

        The order of the attributes and an INTERVAL with IS do not matter.
        """
        wanted_constraints = constraints(attributes)
        for entry in self.entries:
            if entry.constraints == wanted_constraints:
                return entry
        return None

    def add(self, interest):
        """Add an entry for an interest; a full cache evicts its oldest entry.

        Return (the new entry, the evicted entry or None).
        """
        evicted_entry = self.entries.pop(0) if len(self.entries) >= self.size else None
        self.is_evicting = evicted_entry is not None
        entry = InterestEntry(interest, self.max_gradients, self.max_reinforcements)
        self.entries.append(entry)
        return entry, evicted_entry


class ServedSinks:
    """The sinks towards which this node has sent data. Each sink has a bit, so an integer represents a set of sinks.

    There are as many bits as the interest cache can hold gradients. A new sink gets the first free bit. If all bits are
    in use, the new sink replaces the first sink that has no gradients any more, and gets its bit.
    """

    def __init__(self, cache):
        self.cache = cache
        self.size = cache.size * cache.max_gradients
        self.sinks = []

    def bit(self, sink):
        """Return (an integer with only the sink's bit set, whether this bit represented another sink before).

        A sink without a bit gets a bit now. The sink must have a gradient in the interest cache.
        """
        if sink in self.sinks:
            return 1 << self.sinks.index(sink), False
        if len(self.sinks) < self.size:
            self.sinks.append(sink)
            return 1 << (len(self.sinks) - 1), False
        sinks_with_gradients = [gradient.sink for entry in self.cache.entries for gradient in entry.gradients]
        index = [other_sink in sinks_with_gradients for other_sink in self.sinks].index(False)
        self.sinks[index] = sink
        return 1 << index, True

    def sinks_of(self, bits):
        """Return the list of sinks whose bits are set in ``bits``."""
        return [self.sinks[index] for index in range(len(self.sinks)) if bits >> index & 1]


class SeenData:
    """A node's record of a data message that the node has received or sent.

    received_us   when the first copy arrived (µs)
    previous_hop  the neighbor that sent the first copy
    served        the sinks towards which this node has sent the message, as bits of an integer (see `ServedSinks`)
    is_settled    whether all further copies are dropped as duplicates, even copies for other sinks
    retries       how often the node has sent the message again, because a frame was lost or a copy came back in a loop
    ttl           ttl of the first copy, or of the last copy that came back in a loop
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
    """A memory of fixed size: for each interest heard recently, its last round and when the node heard that round.

    A full memory forgets the interest that has not been heard for the longest time. The id of an interest is (sink,
    sequence number).
    """

    def __init__(self, size, known_for_us):
        self.size = size
        self.known_for_us = known_for_us
        self._records = {}  # (sink, sequence) -> (when, round)

    def round_of(self, id, now):
        """Return the round in which the interest ``id`` was last heard, or None.

        The result is None if the interest is unknown, or was heard too long ago to compare its round with a new round.
        """
        record = self._records.get(id)
        return None if record is None or now - record[0] >= self.known_for_us else record[1]

    def put(self, id, round_, now):
        """Record that round ``round_`` of the interest ``id`` is heard at the time ``now`` (µs)."""
        if len(self._records) >= self.size and id not in self._records:
            # Of interests heard in the same microsecond the lower id goes: dictionaries have no order on a mote.
            del self._records[
                min([(oldest_record[0], other_id) for other_id, oldest_record in self._records.items()])[1]
            ]
        self._records[id] = (now, round_)

    def __len__(self):
        return len(self._records)


class OwnInterest:
    """An interest of this node, shared by all its subscriptions with the same constraints.

    ``is_flooded``: whether the node floods and refreshes the interest. If not, another own interest requests all its
    data.
    """

    def __init__(self, sequence, attributes, max_reinforcements):
        self.sequence = sequence
        self.attributes = attributes
        self.is_flooded = False
        self.round = 0
        self.reinforcements = 0  # started in this round
        self.refresh_us = None
        self.repeat_us = None  # when this round is sent again, unless a neighbor is heard to forward it
        self.repeats = None  # of this round; None before the first one
        self.data_gradients = DataGradients(max_reinforcements)

"""Publications at one DPS node: its own, and those that come; to its subscriptions, and on over its links.

Theory of operation
    A publication goes to every neighbor whose interests it may meet: the fuzzy hash of what its filter and the
    interests have in common must include the neighbor's needs. It does not go back to whom it came from, and only a
    higher sequence number of its series goes on at all. Filters may say yes in vain; a subscription is given what its
    topics match.

    One with a lifetime is kept by all that it comes to, and sent again to a neighbor whose interests change
    (`resending.py`).

This file is written in MicroPython's subset of Python.
"""

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.contract import NOBODY, Delivered, Forwarded, Held
from workbench.protocols.dps import mapping, rules, wire
from workbench.protocols.dps import topics as topic_strings
from workbench.protocols.dps.bloom import routes
from workbench.protocols.dps.history import History
from workbench.protocols.dps.repeats import Repeats
from workbench.protocols.dps.resending import Resending
from workbench.protocols.dps.retained import Retained
from workbench.protocols.dps.rules import MOST_HOPS, end_us, forget_us
from workbench.protocols.dps.series import Arrival
from workbench.protocols.dps.wire import coap

NAME = wire.NAMES[wire.PUBLICATION]
MOST_TOPICS = 256  # of one publication that is delivered; each is compared with each subscription


def label(publication_id, sequence):
    """(origin, sequence) of a publication in events: its node, and series and number in one."""
    origin, series = wire.origin_of(publication_id)
    return origin, series << 32 | sequence


def checked(frame, name, most_B=wire.LARGEST_DATAGRAM_B):
    """The frame; EncodeError if it does not fit a datagram."""
    if len(frame) > most_B:
        raise EncodeError(
            "the %s takes %d bytes and a datagram has room for %d; make its payload %d bytes shorter"
            % (name, len(frame), most_B, len(frame) - most_B)
        )
    return frame


def _as_bytes(topic):
    """A topic's bytes; those that came and are not UTF-8 are the same bytes again (`wire/fields.py`)."""
    return topic.encode("utf-8", "surrogateescape") if isinstance(topic, str) else topic


class Publications:
    """What one node knows and does of publications."""

    def __init__(self, node):
        settings = node.settings
        self.node = node
        self.settings = settings
        self.history = History(settings.max_history)
        self.retained = Retained(settings.max_retained)
        self.repeats = Repeats(node, self.history)
        self._waiting = {}  # publication id -> (when to forward it, message, neighbor, whether it was delivered here)
        wait_us, most = node.times.update_us, 2 * settings.max_links
        self._resending = Resending(node.links.remotes, self._send_retained, wait_us, most)

    # Its own

    def frame_of_own(self, message, is_multicast):
        """The frame of a publication of this node's own; EncodeError if it does not fit a datagram."""
        envelope_B = coap.ENVELOPE_B if is_multicast else 0
        return checked(wire.encode(message), NAME, wire.LARGEST_DATAGRAM_B - envelope_B)

    def send_own(self, message, frame, plain, is_multicast, now):
        """Send a publication of this node's own; ``plain`` is what its own subscriptions are given."""
        self._note(message, None, 0, now)
        if message.ttl_s >= 0:
            origin, number = label(message.publication_id, message.sequence)
            self.node.events.append(Held(NOBODY, NAME, origin, number, 0, ""))
        self._keep(message, None, now)
        self._deliver(plain, None, now)
        if is_multicast:
            self.node.outbox.append((None, frame))
        self._send(message, frame, None)

    def _note(self, message, neighbor, hops, now):
        expires_us = forget_us(now, message.lifetime_s, self.node.times.history_us)
        self.history.note(
            message.publication_id,
            message.sequence,
            message.acknowledge,
            neighbor,
            neighbor in self.node.links.remotes,
            hops,
            expires_us,
            now,
        )

    def _keep(self, message, neighbor, now):
        if message.ttl_s > 0:
            evicted = self.retained.put(message, neighbor, end_us(now, message.ttl_s))
            if evicted is not None:
                self._drop(evicted.message, evicted.neighbor, "full")
        else:
            self.retained.remove(message.publication_id)

    # Those that come

    def take(self, message, neighbor, now):
        """A publication from a neighbor, or from a stranger by multicast."""
        if message.ttl_s > message.lifetime_s:
            self._drop(message, neighbor, "ttl")
            return
        if message.hops >= MOST_HOPS:
            self._drop(message, neighbor, "hops")
            return
        kept = self.retained.get(message.publication_id)
        seen = self.history.get(message.publication_id)
        if kept is not None:
            newest = kept.message.sequence
        elif message.ttl_s < 0:
            self._drop(message, neighbor, "not_retained")
            return
        else:
            newest = 0 if seen is None else seen.sequence
        self._note(message, neighbor, message.hops, now)
        if message.sequence <= newest:
            self._drop(message, neighbor, "duplicate" if message.sequence == newest else "stale")
            return
        if message.ttl_s >= 0:
            origin, number = label(message.publication_id, message.sequence)
            self.node.events.append(Held(neighbor, NAME, origin, number, message.hops + 1, ""))
        self._keep(message, neighbor, now)
        is_told = self._deliver(message, neighbor, now)
        if rules.waits(self.node.is_crowded, len(self._waiting)):
            due_us = now + 1 + self.node.random.below(rules.FORWARD_US)
            self._waiting[message.publication_id] = due_us, message, neighbor, is_told
        else:
            self._forward(message, neighbor, is_told)

    def _forward(self, message, neighbor, is_told):
        count = self._send(message, None, neighbor)
        if not is_told and not count:
            self._drop(message, neighbor, "dead_end")

    def _onward(self, message, ttl_s):
        return wire.encode(wire.forwarded(message, self.node.port, ttl_s))

    # Out

    def _send(self, message, frame, neighbor):
        """Send a publication to everybody whose interests it may meet; returns to how many.

        ``frame``: None to make it from the message, if anybody gets it.
        """
        count = 0
        for remote in self.node.links.active():
            if self._is_for(remote, message, neighbor):
                if frame is None:
                    frame = self._onward(message, message.ttl_s)
                self.node.outbox.append((remote.address, frame))
                count += 1
        self._tell_forwarded(message, neighbor, count)
        return count

    def _is_for(self, remote, message, neighbor):
        """Whether a publication goes to a neighbor: it may ask for it, and it did not come from there."""
        if remote.address == neighbor:
            return False
        if self.history.came_from(message.publication_id, remote.address, message.sequence):
            return False
        interests, needs = remote.inbound
        return routes(message.filter, interests, needs)

    def _tell_forwarded(self, message, neighbor, count):
        if count and neighbor is not None and self.node.tells_all:
            origin, number = label(message.publication_id, message.sequence)
            self.node.events.append(Forwarded(neighbor, NAME, origin, number, count, ""))

    def interests_changed(self, remote, now):
        """A neighbor asks for something else, or for the first time: it is sent what is kept, when its turn comes."""
        if len(self.retained):
            self._resending.ask(remote, now)

    def _send_retained(self, remote, now):
        """Send a neighbor what is kept and may matter to it."""
        for kept in self.retained.values():
            left_s = kept.left_s(now)
            if left_s <= 0 or not self._is_for(remote, kept.message, kept.neighbor):
                continue
            if kept.neighbor is None:
                frame = wire.encode(kept.message._replace(ttl_s=left_s))
            else:
                frame = self._onward(kept.message, left_s)
            self.node.outbox.append((remote.address, frame))
            self._tell_forwarded(kept.message, kept.neighbor, 1)

    # To the application

    def give_retained(self, subscription, now):
        """A new subscription of this node's own: hand it what is kept here, which no neighbor would send again."""
        for kept in self.retained.values():
            left_s = kept.left_s(now)
            if left_s > 0:
                self._deliver(kept.message._replace(ttl_s=left_s), kept.neighbor, now, (subscription,))

    def _deliver(self, message, neighbor, now, subscriptions=None):
        """Hand a publication, or the end of one, to the subscriptions that it matches.

        Returns whether what became of it here has been told: that it was delivered, or why not. False: nobody asks.
        """
        is_expiry = message.ttl_s < 0
        wanted = [
            one
            for one in (self.node.subscriptions.open if subscriptions is None else subscriptions)
            if (one.request.expired or not is_expiry)
            and message.filter.includes(one.request.filter)
            and not one.is_over(now)
        ]
        if not wanted:
            return False
        opened = None
        if message.data is None:
            try:
                opened = self._opened(message)
            except DecodeError:
                self._drop(message, neighbor, "sealed")
                return True
            message = opened.message
        if neighbor is not None and self._is_refused(opened):
            self._drop(message, neighbor, "plain")
            return True
        if len(message.topics) > MOST_TOPICS:
            self._drop(message, neighbor, "topics")
            return True
        topics = [_as_bytes(topic) for topic in message.topics]
        wanted = [one for one in wanted if topic_strings.matches(topics, one.request.topics, self.settings.separators)]
        if not wanted:
            self._drop(message, neighbor, "no_match")
            return True
        count = 0
        arrival = None
        for one in wanted:
            if one.request.is_of_attributes:
                count += self._deliver_samples(message, neighbor, one)
                continue
            if arrival is None:
                arrival = self._arrival(message, neighbor, is_expiry, opened)
            one.put(arrival)
            count += 1
            self._tell_delivered(message, neighbor, one, " ".join(message.topics))
        if count and message.acknowledge and not is_expiry and any([one.request.is_of_attributes for one in wanted]):
            arrival = arrival or self._arrival(message, neighbor, is_expiry, opened)
            self.node.acknowledge(arrival, b"", now)
        return True

    def _is_refused(self, opened):
        """Whether anybody could have written it, and the application wants none of that."""
        security = self.node.security
        return security is not None and not security.plain and (opened is None or opened.is_plain)

    def _opened(self, message):
        if self.node.security is None:
            raise DecodeError("a secured publication, and no keys")
        return self.node.security.open(message)

    def _arrival(self, message, neighbor, is_expiry, opened):
        hops = 0 if neighbor is None else message.hops + 1
        return Arrival(
            message.publication_id,
            message.sequence,
            message.topics,
            message.data,
            is_expiry,
            message.acknowledge,
            max(0, message.ttl_s),
            hops,
            neighbor,
            None if opened is None else opened.sender,
            opened,
        )

    def _deliver_samples(self, message, neighbor, subscription):
        try:
            attributes = mapping.decode_data(message.data)
        except DecodeError:
            self._drop(message, neighbor, "no_attributes")
            return 0
        samples = self.settings.matching_samples(subscription.attributes, attributes)
        for sample in samples:
            subscription.put(sample)
            self._tell_delivered(message, neighbor, subscription, sample)
        if not samples:
            self._drop(message, neighbor, "out_of_range")
        return len(samples)

    def _tell_delivered(self, message, neighbor, subscription, detail):
        origin, number = label(message.publication_id, message.sequence)
        peer = NOBODY if neighbor is None else neighbor
        self.node.events.append(Delivered(peer, NAME, origin, number, subscription.number, detail))

    # Time

    def next_due_us(self):
        """When `wake` is next to be called for a publication, None for never."""
        end_us = self.retained.next_end_us()
        due = [] if end_us is None else [end_us]
        due += [waiting[0] for waiting in self._waiting.values()]
        repeat_us = self.repeats.next_due_us()
        if repeat_us is not None:
            due.append(repeat_us)
        return min(due) if due else None

    def wake(self, now):
        """Forward, end, and send again what is due."""
        for publication_id in [one for one, waiting in self._waiting.items() if waiting[0] <= now]:
            self._forward(*self._waiting.pop(publication_id)[1:])
        for kept in self.retained.pop_over(now):
            ended = kept.message._replace(ttl_s=-1)
            self._deliver(ended, kept.neighbor, now)
        self._resending.wake(now)
        self.repeats.wake(now)

    def _drop(self, message, neighbor, reason):
        origin, number = label(message.publication_id, message.sequence)
        self.node.drop(NOBODY if neighbor is None else neighbor, NAME, origin, number, reason)

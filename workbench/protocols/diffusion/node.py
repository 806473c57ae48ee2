"""A node that diffuses: what it does with interests, data and reinforcements.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints, is_within
from workbench.attributes.model import (
    check_publication,
    one_way_match,
    split_samples,
    text_of,
    with_payload,
)
from workbench.attributes.wire import attributes_size
from workbench.errors import AttributeFormatError, DecodeError, ParameterError
from workbench.protocols.contract import NOBODY, Forwarded, Held, Node, Originated
from workbench.protocols.diffusion import events, rules, wire
from workbench.protocols.diffusion.events import (
    Blacklisted,
    DataGradientSet,
    GradientRemoved,
    GradientSet,
    HeadSet,
    InterestCached,
    InterestRemoved,
    Reinforced,
)
from workbench.protocols.diffusion.interest_cache import (
    Gradient,
    InterestCache,
    OwnInterest,
    SeenData,
    SeenInterests,
    ServedSinks,
)
from workbench.protocols.diffusion.reinforcement import choose_paths, interests_around, reason_to_refuse
from workbench.protocols.diffusion.rules import FOREVER_US
from workbench.protocols.recent import RecentIds
from workbench.protocols.subscriptions import SECOND_US, Subscription


class DiffusionNode(Node):
    """One node that diffuses: sink, source and relay at once."""

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    @staticmethod
    def prepare(settings):
        """Filters come to a mote as plain values; it loads what makes filters of them only if there are any."""
        if settings.filters and isinstance(settings.filters[0], dict):
            from workbench.protocols.diffusion.filters.on_node import PlainFilter

            settings.filters = [PlainFilter(one) for one in settings.filters]

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.cache = InterestCache(settings.max_interests, settings.max_gradients, settings.max_reinforcements)
        self.seen_data = RecentIds(settings.max_data)  # (source, sequence) -> SeenData
        self.served_sinks = ServedSinks(self.cache)
        self.waiting = []  # frames to send again: (when, who did not acknowledge it, who brought it, frame)
        self.seen_interests = SeenInterests(
            settings.max_seen_interests, rules.known_for_us(settings.refresh_s, settings.gradient_lifetime_s)
        )
        self.samples = []  # that wait, oldest first: (number, attributes, when it has waited too long)
        self.own_interests = []
        self.black_list = []
        self.filters = None
        if settings.filters:
            from workbench.protocols.diffusion.filters.on_node import FiltersOnNode

            filters = FiltersOnNode(self, settings.filters)
            self.filters = filters if len(filters) else None
        self._messages = 0
        self._readings = 0
        self._tick_us = None
        # No gradient expires before this: most of the time there is nothing to clean.
        self._first_expiry_us = FOREVER_US

    # The application's side

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Ask the network for data that matches; ``expires_s`` None asks for ever. Returns a Subscription."""
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        if len(self.subscriptions.open) >= self.settings.max_subscriptions:
            raise ParameterError(
                "node %d already has %d subscriptions, which is max_subscriptions"
                % (self.address, len(self.subscriptions.open))
            )
        attributes = subscription.attributes
        self._check_count(attributes)
        own = self._own_interest(attributes)
        if own is None:
            if len(self.own_interests) >= self.settings.max_interests:
                raise ParameterError(
                    "node %d already has %d different subscriptions, which is max_interests"
                    % (self.address, len(self.own_interests))
                )
            own = OwnInterest(self._take_sequence(), attributes, self.settings.max_reinforcements)
            # Encoded before anything is kept: an interest that does not fit its frame leaves no trace behind.
            self._encode_interest(own, 0, own.sequence, self.settings.ttl)
            self.own_interests.append(own)
        else:
            # Under the round they know, neighbors would drop it as a duplicate and never hear that it lasts longer.
            self._begin_round(own)
        subscription.request = own
        self.subscriptions.add(subscription)
        self._send_interest(own, now)
        self._plan_tick(now)
        return subscription

    def unsubscribe(self, subscription, now):
        """End a subscription; with the last one of an interest the interest is cancelled in the whole network."""
        if self.subscriptions.end(subscription):
            own = subscription.request
            if not self.subscriptions.of(own):
                self.own_interests.remove(own)
                own.round = rules.next_round(own.round)
                self.outbox.append((None, self._encode_interest(own, 0, own.sequence, self.settings.ttl)))
        self._plan_wake()

    def publish(self, attributes, now, payload=b""):
        """Offer a sample; it is sent as soon as an interest matches, or dropped when it has waited too long.

        Returns its number at this node.
        """
        attributes = with_payload(attributes, payload)
        check_publication(attributes)
        self._check_count(attributes)
        wire.encode_data(wire.Data(0, self.address, self.address, 1, False, (), attributes), self.settings.profile)
        number = self.first_number + self._readings
        self._readings += 1
        self._drop_old_samples(now)
        if len(self.samples) >= self.settings.max_data:
            self.samples.pop(0)
            self.drop(NOBODY, "data", self.address, 0, "no_interest")
        self.samples.append((number, attributes, now + int(self.settings.sample_lifetime_s * SECOND_US)))
        self._send_samples(now)
        if self.samples:
            self._plan_wake()
        return number

    def reinforce(self, subscription, now, attributes=None):
        """Reinforce the paths of a subscription's sources, or of those that ``attributes`` constrain it to.

        Attributes that are less constrained than the subscription raise AttributeFormatError. Returns the number of
        neighbors a reinforcement was sent to.
        """
        if subscription not in self.subscriptions.open:
            return 0
        own = subscription.request
        wanted = own.attributes if attributes is None else tuple(attributes)
        if not is_within(wanted, own.attributes):
            raise AttributeFormatError(
                "the reinforcement %s is less constrained than the subscription %s"
                % (text_of(wanted), text_of(own.attributes))
            )
        self._check_count(wanted)
        # Before anything is noted: a reinforcement that does not fit its frame leaves no trace behind.
        wire.encode_interest(wire.Interest(0, self.address, 0, self.address, 1, 0, wanted), self.settings.profile)
        own.data_gradients.forget_reinforcements(self.address)
        return self._start_reinforcement(own, wanted, own.data_gradients.list, now)

    def link_quality(self, neighbor, inbound, outbound, now):
        """The link layer's estimate of the delivery ratios from and to a neighbor: keeps the black list (A27)."""
        was_black = neighbor in self.black_list
        is_black = rules.is_black(
            was_black, inbound, outbound, self.settings.blacklist_loss, self.settings.blacklist_hysteresis
        )
        if is_black == was_black:
            return
        if is_black and len(self.black_list) >= self.settings.max_black:
            self.drop(neighbor, "", NOBODY, 0, "full")
            return
        self.events.append(Blacklisted(neighbor, "", NOBODY, 0, int(is_black), ""))
        if was_black:
            self.black_list.remove(neighbor)
        else:
            self.black_list.append(neighbor)
            for entry in self.cache.entries:
                self._remove(entry, "blacklisted", neighbor=neighbor)

    def _check_count(self, attributes):
        if len(attributes) > self.settings.max_attributes:
            raise AttributeFormatError(
                "%d attributes are more than max_attributes=%d" % (len(attributes), self.settings.max_attributes)
            )

    def _take_sequence(self):
        """The next sequence number of this node's messages."""
        self._messages += 1
        return (self.first_number + self._messages - 1) & wire.U32

    # Time

    def wake(self, now):
        """Do what is due: refresh interests, end subscriptions, send frames again, match or drop samples that wait."""
        self.subscriptions.expire(now)
        for own in list(self.own_interests):
            if not self.subscriptions.of(own):
                self.own_interests.remove(own)
            elif own.refresh_us is not None and own.refresh_us <= now:
                self._begin_round(own)
                self._send_interest(own, now)
            elif own.repeat_us is not None and own.repeat_us <= now:
                own.repeats += 1
                self._flood(own, now)
        for due in [one for one in self.waiting if one[0] <= now]:
            self.waiting.remove(due)
            self._send_again(due[1], due[2], due[3], now)
        self._drop_old_samples(now)
        if self._tick_us is not None and self._tick_us <= now:
            self._tick_us = None
            self._send_samples(now)
        self._plan_wake()

    def _plan_wake(self):
        times = [self._tick_us]
        times += [ends_us for _, _, ends_us in self.samples]
        times += [frame[0] for frame in self.waiting]
        times += [one.expires_us for one in self.subscriptions.open]
        times += [own.refresh_us for own in self.own_interests]
        times += [own.repeat_us for own in self.own_interests]
        times = [time for time in times if time is not None]
        self.next_wake = min(times) if times else None

    # Interests

    def _own_interest(self, attributes):
        for own in self.own_interests:
            if constraints(own.attributes) == constraints(attributes):
                return own
        return None

    def _begin_round(self, own):
        own.round = rules.next_round(own.round)
        own.reinforcements = 0
        own.data_gradients.forget_reinforcements(self.address)

    def _send_interest(self, own, now):
        """Flood an interest of our own: a new one, a longer one, or the next round."""
        self.events.append(InterestCached(NOBODY, "interest", self.address, own.sequence, own.round, own.attributes))
        refresh_us = int(self.settings.refresh_s * SECOND_US)
        own.refresh_us = now + refresh_us if refresh_us else None
        own.repeats = 0
        self._flood(own, now)
        self._plan_wake()

    def _flood(self, own, now):
        """Send the present round of an interest of our own, and listen whether a neighbor passes it on."""
        expiration_s = self.expiration_s(own, now)
        self.outbox.append((None, self._encode_interest(own, expiration_s, own.sequence, self.settings.ttl)))
        own.repeat_us = None
        if own.repeats < self.settings.max_repeats:
            own.repeat_us = now + rules.REPEAT_AFTER_US + self.random.below(rules.REPEAT_WITHIN_US)

    def _hear_own(self, interest):
        """A neighbor passes on an interest of our own: the flood has left this node."""
        for own in self.own_interests:
            if own.sequence == interest.sequence and own.round == interest.round and own.repeat_us is not None:
                own.repeat_us = None
                self._plan_wake()

    def expiration_s(self, own, now):
        """What a gradient may live: to the end of the subscription, or as long as one that is refreshed should."""
        longest_s = rules.lifetime_s(self.settings.refresh_s, self.settings.gradient_lifetime_s)
        times = [one.expires_us for one in self.subscriptions.of(own)]
        if None in times:
            return longest_s
        return rules.expiration_s(now, max(times), longest_s)

    def _encode_interest(self, interest, expiration_s, sequence, ttl):
        return wire.encode_interest(
            wire.Interest(sequence, self.address, interest.round, self.address, ttl, expiration_s, interest.attributes),
            self.settings.profile,
        )

    # Frames

    def receive(self, frame, previous_hop, now, broadcast=True):
        """Take a neighbor's frame: an interest (broadcast), a reinforcement (unicast) or data."""
        try:
            message = wire.decode(frame)
        except DecodeError:
            self.drop(previous_hop, "", NOBODY, 0, "malformed")
            return
        if isinstance(message, wire.Data):
            name, origin = "data", message.source
        else:
            name, origin = ("interest" if broadcast else "reinforcement"), message.sink
        reason = None
        if message.previous_hop != previous_hop:
            reason = "previous_hop"
        elif previous_hop in self.black_list:
            reason = "blacklisted"
        elif message.ttl < 1:
            reason = "ttl"
        elif len(frame) - 1 > wire.PROFILES[self.settings.profile]:
            reason = "too_long"  # Neither could it go on, nor has a mote of this profile the room for it.
        if reason is not None:
            self.drop(previous_hop, name, origin, message.sequence, reason)
        elif name == "data":
            self._receive_data(message, now)
        elif broadcast:
            self._receive_interest(message, now)
        else:
            self._receive_reinforcement(message, now)

    def _drop_message(self, message, name, reason):
        """`drop` for a message that was decoded."""
        origin = message.source if name == "data" else message.sink
        self.drop(message.previous_hop, name, origin, message.sequence, reason)

    def _why_filtered(self, attributes, header_B):
        """Why a message with these attributes (None: none are left) ends at this node's filters, or None."""
        if attributes is None:
            return "filter"
        if attributes_size(attributes) > wire.PROFILES[self.settings.profile] - header_B:
            return "too_long"
        return None

    def _receive_interest(self, interest, now):
        self.clean(now)
        key = (interest.sink, interest.sequence)
        known_round = self.seen_interests.round_of(key, now)
        if interest.sink == self.address or known_round == interest.round:
            # A further neighbor brought an interest we know: a spare gradient, should the head fail (A14).
            entry = self.cache.find(interest.attributes)
            if interest.sink == self.address:
                self._hear_own(interest)
            elif entry is not None and interest.expiration_s:
                self.set_gradient(entry, interest, now)
            self._drop_message(interest, "interest", "duplicate")
            return
        if known_round is not None and rules.is_stale(interest.round, known_round):
            self._drop_message(interest, "interest", "stale")
            return
        attributes = interest.attributes
        if self.filters is not None:
            attributes = self.filters.answer("interest", [attributes], interest.sink, interest.sequence, now)
        self.seen_interests.put(key, interest.round, now)
        reason = self._why_filtered(attributes, wire.INTEREST_HEADER_B)
        if reason is not None:
            self._drop_message(interest, "interest", reason)
            return
        if attributes is not interest.attributes:
            interest = _with_attributes(interest, attributes)
        if interest.expiration_s == 0:
            self._cancel(interest)
        else:
            self._cache_interest(interest, now)
        self._pass_on_interest(interest)

    def _cache_interest(self, interest, now):
        """Keep a new interest, or a known one's new round."""
        entry = self.cache.find(interest.attributes)
        if entry is None:
            entry = self._new_entry(interest)
        entry.sink, entry.sequence = interest.sink, interest.sequence
        before = entry.head(interest.sink)
        self._tell_removed(entry.begin_round(interest.sink, interest.sequence, interest.round), "round")
        for other in self.cache.entries:
            if other is entry or is_within(other.attributes, interest.attributes):
                other.data_gradients.forget_reinforcements(interest.sink)
        self.events.append(
            InterestCached(
                interest.previous_hop, "interest", interest.sink, interest.sequence, interest.round, interest.attributes
            )
        )
        self._set_gradient(entry, interest, now)
        self._tell_head(entry, interest.sink, before)
        self._plan_tick(now)

    def _plan_tick(self, now):
        """The cache has changed: samples that wait are matched again at the next tick (A25)."""
        if self.samples and self._tick_us is None:
            self._tick_us = now + int(self.settings.tick_s * SECOND_US)
            self._plan_wake()

    def _new_entry(self, interest):
        """A new entry in the cache, in place of the oldest if it is full."""
        entry, evicted = self.cache.add(interest)
        if evicted is not None:
            self._tell_removed(evicted.gradients, "evicted")
            self._tell_interest_removed(evicted, "evicted")
        return entry

    def set_gradient(self, entry, interest, now, wave=None):
        """Set or renew the gradient towards the neighbor that sent an interest (or reinforcement, with its wave)."""
        before = entry.head(interest.sink)
        self._set_gradient(entry, interest, now, wave)
        self._tell_head(entry, interest.sink, before)

    def _set_gradient(self, entry, interest, now, wave=None):
        expires_us = now + interest.expiration_s * SECOND_US
        gradient = entry.gradient(interest.sink, interest.previous_hop)
        is_new = gradient is None
        if is_new:
            gradient = Gradient(interest.sink, interest.previous_hop, expires_us, wave)
            taken, evicted = entry.add(gradient)
            if evicted is not None:
                self._tell_removed([evicted], "evicted")
            if not taken:
                return
        gradient.round = interest.round
        if wave is None:
            gradient.ttl = interest.ttl
            if not is_new and gradient.sequence is None:
                # Reported under its new number from now on.
                self._tell_removed([gradient], "interest")
                is_new = True
        if wave is None and (gradient.sequence is None or gradient.sequence < interest.sequence):
            gradient.sequence = interest.sequence
        if wave is None and not is_new and gradient.expires_us >= expires_us:
            return
        gradient.expires_us = max(gradient.expires_us, expires_us)
        self._first_expiry_us = min(self._first_expiry_us, gradient.expires_us)
        if wave is not None:
            for other in entry.gradients:
                if other.sink == interest.sink:
                    other.wave = None
            gradient.wave = wave
            entry.to_front(gradient)
        self.events.append(
            GradientSet(
                interest.previous_hop,
                "interest" if wave is None else "reinforcement",
                interest.sink,
                interest.sequence,
                gradient.expires_us,
                "interest" if wave is None else "reinforcement",
            )
        )

    def _cancel(self, interest):
        """A sink has unsubscribed: its gradients go, and those by which it reinforced a part of the interest."""
        cancelled = self.cache.find(interest.attributes)
        for entry in list(self.cache.entries):
            if entry is cancelled:
                # Not those of a later interest: on another way it may have been faster than this message.
                newest = interest.sequence
            elif is_within(entry.attributes, interest.attributes):
                newest = NOBODY
            else:
                continue
            before = entry.head(interest.sink)
            gone = entry.cancel(interest.sink, newest)
            self._tell_removed(gone, "cancelled")
            self._tell_head(entry, interest.sink, before)
            if gone and not entry.gradients:
                self.cache.entries.remove(entry)
                self._tell_interest_removed(entry, "cancelled")

    def _pass_on_interest(self, interest):
        if interest.ttl <= 1:
            self._drop_message(interest, "interest", "ttl")
            return
        self.outbox.append((None, self._next_frame(interest)))
        self.events.append(Forwarded(interest.previous_hop, "interest", interest.sink, interest.sequence, 0, ""))

    def _next_frame(self, interest):
        """The frame of an interest or reinforcement as this node sends it on."""
        sequence, sink, round_, _, ttl, expiration_s, attributes = interest
        return wire.encode_interest(
            wire.Interest(sequence, sink, round_, self.address, ttl - 1, expiration_s, attributes),
            self.settings.profile,
        )

    def clean(self, now):
        """Drop what has expired."""
        if now < self._first_expiry_us:
            return
        self._first_expiry_us = FOREVER_US
        for entry in list(self.cache.entries):
            self._remove(entry, "expired", expired_at=now)
            if not entry.gradients:
                self.cache.entries.remove(entry)
                self._tell_interest_removed(entry, "expired")
            for gradient in entry.gradients:
                self._first_expiry_us = min(self._first_expiry_us, gradient.expires_us)

    def _remove(self, entry, reason, neighbor=None, expired_at=None):
        """Remove an entry's gradients towards a neighbor, or expired at a time."""
        before = entry.heads()
        gone = entry.remove(neighbor, expired_at)
        self._tell_removed(gone, reason)
        after = entry.heads() if gone else before
        for gradient in entry.gradients:
            if after.get(gradient.sink) is gradient and before[gradient.sink] is not gradient:
                self._tell_head(entry, gradient.sink, None)

    def _tell_removed(self, gradients, reason):
        for gradient in gradients:
            self.events.append(
                GradientRemoved(gradient.neighbor, "interest", gradient.sink, gradient.number(), 0, reason)
            )

    def _tell_interest_removed(self, entry, reason):
        self.events.append(InterestRemoved(NOBODY, "interest", entry.sink, entry.sequence, 0, reason))

    def _tell_head(self, entry, sink, before):
        """Report a sink's first gradient if it is not what it was ``before``."""
        head = entry.head(sink)
        if head is not None and head != before:
            neighbor, number, is_reinforced = head
            self.events.append(HeadSet(neighbor, "interest", sink, number, is_reinforced, ""))

    # Reinforcements

    def _start_reinforcement(self, own, attributes, data_gradients, now):
        """Send a reinforcement to the neighbors of these data gradients of an own interest; return how many."""
        reinforcement = wire.Interest(
            self._take_sequence(),
            self.address,
            own.round,
            self.address,
            # One hop more than allowed to a message on its way: `_next_frame` takes it off again.
            self.settings.ttl + 1,
            self.expiration_s(own, now),
            attributes,
        )
        interests = [(own.attributes, data_gradients)]
        paths = choose_paths(reinforcement, interests, self.settings, self.black_list, self.drop)
        return self._send_reinforcement(reinforcement, paths)

    def _receive_reinforcement(self, reinforcement, now):
        """Prefer the sender for its sink's data, and send the reinforcement on to the sources."""
        self.clean(now)
        entry = self.cache.find(reinforcement.attributes)
        entries = [entry] if entry is not None else interests_around(reinforcement, self.cache.entries)
        reason = reason_to_refuse(reinforcement, entry, entries, self.address)
        if reason is not None:
            self._drop_message(reinforcement, "reinforcement", reason)
            return
        # Before the new entry takes the place of one of these entries.
        interests = [(other.attributes, other.data_gradients.list) for other in entries]
        paths = choose_paths(reinforcement, interests, self.settings, self.black_list, self.drop)
        if entry is None:
            entry = self._new_entry(reinforcement)
        self.set_gradient(entry, reinforcement, now, wave=reinforcement.sequence)
        self._send_reinforcement(reinforcement, paths)
        self._plan_tick(now)

    def _send_reinforcement(self, reinforcement, paths):
        """Send a reinforcement along these data gradients, each of another neighbor; return how many there are."""
        if paths and reinforcement.ttl <= 1:
            self._drop_message(reinforcement, "reinforcement", "ttl")
            return 0
        for path in paths:
            self.outbox.append((path.neighbor, self._next_frame(reinforcement)))
            self.events.append(
                Reinforced(path.neighbor, "reinforcement", reinforcement.sink, reinforcement.sequence, path.source, "")
            )
        return len(paths)

    # Data

    def _send_samples(self, now):
        """Send the samples that some interest wants, as many as fit in one message; the rest keep waiting."""
        self.clean(now)
        self._drop_old_samples(now)
        wanted = []
        waiting = []
        for sample in self.samples:
            (wanted if self._is_wanted(sample[1]) else waiting).append(sample)
        self.samples = waiting
        while wanted:
            numbers, attributes, wanted = self._aggregate(wanted)
            sequence = self._take_sequence()
            for number in numbers:
                self.events.append(Originated(NOBODY, "data", self.address, sequence, number, ""))
            # One hop more than it may go: `_send_data` takes it off again.
            ttl = self.settings.ttl + 1
            data = wire.Data(sequence, self.address, NOBODY, ttl, len(numbers) > 1, (), attributes)
            self._route(data, self._note_data(data, now), now)

    def _drop_old_samples(self, now):
        """Samples that have waited for longer than ``sample_lifetime_s`` are too old for whoever asks now."""
        # All are looked at, not the first alone: where a clock was set back they are not in the order of their ends.
        for _ in [one for one in self.samples if one[2] <= now]:
            self.drop(NOBODY, "data", self.address, 0, "expired")
        self.samples = [one for one in self.samples if one[2] > now]

    def _is_wanted(self, attributes):
        for own in self.own_interests:
            if one_way_match(own.attributes, attributes):
                return True
        return any([one_way_match(entry.attributes, attributes) for entry in self.cache.entries])

    def _aggregate(self, samples):
        """(numbers, attributes, samples left): the first sample and those behind it that fit the same message (A26).

        Where the first key comes again, a sink takes a message of several apart; so each of them has it once.
        """
        number, attributes, _ = samples[0]
        numbers = [number]
        room = wire.PROFILES[self.settings.profile] - wire.DATA_HEADER_B - attributes_size(attributes)
        first_key = attributes[0].key
        begins_once = _begins_once(attributes)
        left = []
        for sample in samples[1:]:
            number, more, _ = sample
            size = attributes_size(more)
            if left or size > room or more[0].key != first_key or not (begins_once and _begins_once(more)):
                left.append(sample)
                continue
            room -= size
            numbers.append(number)
            attributes += more
        return numbers, attributes, left

    def _receive_data(self, data, now):
        self.clean(now)
        seen = self.seen_data.get((data.source, data.sequence))
        if seen is None:
            seen = self._note_data(data, now)
            if data.source != self.address:
                self._route(data, seen, now)
                return
            # It has come back to its source, which has forgotten it.
        if seen.is_settled or not self._send_on(data, self._matching(data.attributes), seen, now):
            self._drop_message(data, "data", "duplicate")

    def _note_data(self, data, now):
        seen = SeenData(data.previous_hop, data.ttl, now)
        self.seen_data.put((data.source, data.sequence), seen)
        return seen

    def _matching(self, attributes):
        """Return the cached interests that want data with these attributes."""
        return [entry for entry in self.cache.entries if one_way_match(entry.attributes, attributes)]

    def _route(self, data, seen, now):
        """Filters, own subscriptions, interest cache: where new data goes, be it ours or a neighbor's (A23)."""
        attributes = data.attributes
        if self.filters is not None:
            attributes = self.filters.answer("data", _samples_of(data), data.source, data.sequence, now)
            # A filter is asked once for a message, so its answer is for all sinks and for copies that come later.
            seen.is_settled = attributes != data.attributes
        reason = self._why_filtered(attributes, wire.DATA_HEADER_B)
        if reason is not None:
            seen.is_settled = True
            self._drop_message(data, "data", reason)
            return
        if seen.is_settled:
            data = _with_attributes(data, attributes, ())
        is_held = False
        for own in self.own_interests:
            if one_way_match(own.attributes, attributes):
                if not is_held:
                    hops = rules.hops_taken(self.settings.ttl, data.ttl)
                    self.events.append(Held(data.previous_hop, "data", data.source, data.sequence, hops, ""))
                is_held = True
                self._deliver(own, data, now)
        entries = self._matching(attributes)
        for entry in entries:
            self._update_data_gradient(entry.data_gradients, data)
        if not self._send_on(data, entries, seen, now) and not is_held:
            # An interest without a gradient: its neighbors are black, or it came from where the data comes from.
            reason = "no_gradient"
            if not entries:
                # Who sent it here knows an interest that this node does not.
                is_evicted = self.cache.is_evicting and data.previous_hop != NOBODY
                reason = "evicted" if is_evicted else "no_interest"
            self._drop_message(data, "data", reason)

    def _exploratory_gradients(self, now):
        """How many gradients of a sink carry new data: one alone if its copies might be back when it is forgotten."""
        most = self.settings.exploratory_gradients
        if most > 1:
            oldest = self.seen_data.oldest()
            if not rules.may_explore(oldest is not None, oldest.came_us if oldest else 0, now):
                return 1
        return most

    def _send_on(self, data, entries, seen, now):
        """Send data towards the sinks that neither other copies nor this node has served; False if there are none."""
        others = list(data.others)
        if any([one_way_match(own.attributes, data.attributes) for own in self.own_interests]):
            others.append(self.address)
        paths = []
        exploratory = self._exploratory_gradients(now)
        for entry in entries:
            entry.add_paths(paths, now, data.previous_hop, others + [self.address, data.source], exploratory)
        served = self.served_sinks.of(seen.served)
        is_repeated = any([path[0] in served for path in paths])
        if is_repeated and rules.has_circled(data.ttl, seen.ttl) and rules.may_retry(seen.retries):
            # A reinforcement has moved the path meanwhile, so the copy goes on as if it were new.
            seen.retries += 1
            seen.ttl = data.ttl
            seen.served = 0
        else:
            others += served
            paths = [path for path in paths if path[0] not in served]
        if not paths:
            return False
        if data.ttl <= 1:
            self._drop_message(data, "data", "ttl")
            return True
        ways, left = self._shared(paths)
        if left:
            # Once for all neighbors that are left out.
            self._drop_message(data, "data", "full")
        self._send_data(data, ways, others)
        self.events.append(Forwarded(data.previous_hop, "data", data.source, data.sequence, len(ways), ""))
        for _, sinks in ways:
            for sink in sinks:
                self._note_served(seen, sink)
        return True

    def _note_served(self, seen, sink):
        bit, is_reused = self.served_sinks.bit(sink)
        if is_reused:
            for other in self.seen_data.values.values():
                other.served &= ~bit
        seen.served |= bit

    def _shared(self, paths):
        """Return ([(neighbor, sinks), ...] that serve (sink, neighbors, rank) paths, the paths that nobody serves).

        Each neighbor serves as many as it can, so few get the data. They are ``max_next_hops`` at most, and found for
        the paths of rank 0 first.
        """
        ways = []
        while paths and len(ways) < self.settings.max_next_hops:
            counts = {}
            rank = min([path[2] for path in paths])
            for _, near, its_rank in paths:
                for neighbor in near if its_rank == rank else ():
                    count = counts.setdefault(neighbor, [0, 0])
                    count[0] += 1
                    count[1] += neighbor == near[0]
            best, most = NOBODY, (0, 0)
            for neighbor, count in counts.items():
                if rules.is_better_hop(count[0], count[1], neighbor, most[0], most[1], best):
                    best, most = neighbor, count
            sinks = []
            for sink, near, _ in paths:
                if best in near and sink not in sinks:
                    sinks.append(sink)
            ways.append((best, sinks))
            paths = [path for path in paths if best not in path[1]]
        return ways, paths

    def _send_data(self, data, ways, others):
        """Send each neighbor data for its sinks: the frame lists the sinks of all other ways, and ``others``."""
        room = wire.room_for_others(attributes_size(data.attributes), self.settings.profile)
        served = []
        for _, sinks in ways:
            served += [sink for sink in sinks if sink not in served]
        others = sorted([sink for sink in set(others) if sink not in served])
        for neighbor, sinks in ways:
            # What this node serves otherwise comes first, as a list that is too long loses its end.
            listed = sorted([sink for sink in served if sink not in sinks]) + others
            listed = [sink for sink in listed if sink != neighbor][:room]
            frame = wire.encode_data(
                wire.Data(
                    data.sequence,
                    data.source,
                    self.address,
                    data.ttl - 1,
                    data.is_aggregate,
                    tuple(listed),
                    data.attributes,
                ),
                self.settings.profile,
            )
            self.outbox.append((neighbor, frame))

    def sent(self, destination, frame, ok, now):
        """Plan to send data again that the radio has given up."""
        data = None if ok else self._own_data(frame)
        seen = None if data is None else self.seen_data.get((data.source, data.sequence))
        if seen is None or not rules.may_retry(seen.retries):
            return
        seen.retries += 1
        if len(self.waiting) >= rules.MAX_WAITING:
            self._send_again(destination, seen.previous_hop, frame, now)
            return
        # The message may be forgotten by then: its previous hop is remembered here.
        when = now + 1 + self.random.below(rules.RETRY_WITHIN_US)
        self.waiting.append((when, destination, seen.previous_hop, frame))
        self._plan_wake()

    def _own_data(self, frame):
        """Return the data message in a frame that this node has sent, or None."""
        if len(frame) - 1 > wire.PROFILES[self.settings.profile]:
            return None
        try:
            message = wire.decode(frame)
        except DecodeError:
            return None
        return message if isinstance(message, wire.Data) and message.previous_hop == self.address else None

    def _send_again(self, failed, not_to, frame, now):
        """Send data again that a neighbor did not acknowledge: by each sink's first gradient to another neighbor."""
        data = self._own_data(frame)
        self.clean(now)
        paths = []
        for entry in self._matching(data.attributes):
            entry.add_detours(paths, now, not_to, data.others + (self.address, data.source), failed)
        # One hop more: `_send_data` takes it off again, as it did with this frame before.
        data = wire.Data(
            data.sequence, data.source, not_to, data.ttl + 1, data.is_aggregate, data.others, data.attributes
        )
        self._send_data(data, self._shared(paths)[0], data.others)

    def _update_data_gradient(self, data_gradients, data):
        if data.previous_hop == NOBODY:
            return None
        data_gradient, changed = data_gradients.update(data.source, data.previous_hop, data.attributes)
        if changed:
            self.events.append(DataGradientSet(data.previous_hop, "data", data.source, data.sequence, 0, ""))
        return data_gradient

    def _deliver(self, own, data, now):
        """Hand each sample to the subscriptions it matches; reinforce the source's path when it is time."""
        samples = _samples_of(data)
        for one in self.subscriptions.of(own):
            for sample in samples:
                self.deliver_to([one], sample, data.previous_hop, "data", data.source, data.sequence, now)
        data_gradient = self._update_data_gradient(own.data_gradients, data)
        if data_gradient is None or self.address in data_gradient.reinforced_for:
            return
        settings = self.settings
        if rules.may_reinforce(
            data_gradient.messages, settings.reinforce_after, own.reinforcements, settings.max_reinforcements
        ):
            own.reinforcements += 1
            self._start_reinforcement(own, own.attributes, [data_gradient], now)


def _begins_once(attributes):
    """Whether the first key comes once."""
    return [attribute.key for attribute in attributes].count(attributes[0].key) == 1


def _samples_of(data):
    """The readings in a data message: one, or those that its source aggregated."""
    return split_samples(data.attributes) if data.is_aggregate else [data.attributes]


def _with_attributes(message, attributes, others=None):
    """The same message with other attributes, data with another list (MicroPython's named tuples have no _replace)."""
    if others is not None:
        return wire.Data(*(tuple(message)[:-2] + (others, attributes)))
    return type(message)(*(tuple(message)[:-1] + (attributes,)))

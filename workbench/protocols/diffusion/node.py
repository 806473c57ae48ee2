"""The node of TinyDiffusion: it sends, receives and forwards interests, data and reinforcements.

An *own interest* is an `OwnInterest`: the interest that this node, as a sink, floods for its subscriptions.

This file runs on a mote too (MicroPython's subset of Python).
"""

from workbench.attributes.interests import constraints, covers, interval_us, is_within
from workbench.attributes.model import (
    IS,
    check_publication,
    is_match,
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
from workbench.protocols.diffusion.reinforcement import choose_paths, containing_interests, reason_to_refuse
from workbench.protocols.diffusion.rules import FOREVER_US
from workbench.protocols.recent import RecentIds
from workbench.protocols.subscriptions import SECOND_US, Subscription


class DiffusionNode(Node):
    """A node of TinyDiffusion, which may be sink, source and relay at once."""

    EVENTS = events.EVENTS
    describe = staticmethod(wire.describe)

    @staticmethod
    def prepare(settings):
        """Convert the filters in a mote's settings from dictionaries of plain values to PlainFilter objects.

        The module of filters is loaded only if there are filters, to save the mote's memory.
        """
        if settings.filters and isinstance(settings.filters[0], dict):
            from workbench.protocols.diffusion.filters.on_node import PlainFilter

            settings.filters = [PlainFilter(values) for values in settings.filters]

    def __init__(self, address, settings, random):
        Node.__init__(self, address, settings, random)
        self.cache = InterestCache(settings.max_interests, settings.max_gradients, settings.max_reinforcements)
        self.seen_data = RecentIds(settings.max_data)  # (source, sequence) -> SeenData
        self.served_sinks = ServedSinks(self.cache)
        # Frames to send again: (time in µs, neighbor that did not acknowledge, previous hop, frame).
        self.waiting = []
        self.seen_interests = SeenInterests(
            settings.max_seen_interests, rules.known_for_us(settings.refresh_s, settings.gradient_lifetime_s)
        )
        self.samples = []  # waiting samples, oldest first: (number, attributes, when the sample is dropped in µs)
        self.own_interests = []
        self.black_list = []
        self.matching = settings.matching  # A11
        self.pacing = None  # the INTERVAL of sinks, once an interest has one
        self.filters = None
        if settings.filters:
            from workbench.protocols.diffusion.filters.on_node import FiltersOnNode

            filters = FiltersOnNode(self, settings.filters)
            self.filters = filters if len(filters) else None
        self._messages = 0
        self._readings = 0
        self._tick_us = None
        # No gradient expires before this time, so mostly there is nothing to remove.
        self._first_expiry_us = FOREVER_US

    # Called by the application

    def subscribe(self, attributes, now, expires_s=None, match_all=False):
        """Subscribe to data that matches ``attributes`` and return the Subscription.

        ``expires_s``: lifetime of the subscription (s); None for no end. ``match_all``: see `Subscription`. Raises
        ParameterError if the node has too many subscriptions, AttributeFormatError if the attributes are not valid, and
        EncodeError if they do not fit a frame.
        """
        subscription = Subscription(self, attributes, now, expires_s, match_all)
        if len(self.subscriptions.open) >= self.settings.max_subscriptions:
            raise ParameterError(
                "node %d already has %d subscriptions, the most that max_subscriptions allows"
                % (self.address, len(self.subscriptions.open))
            )
        attributes = subscription.attributes
        self._check_attribute_count(attributes)
        own_interest = None
        for other_interest in self.own_interests:
            if constraints(other_interest.attributes) == constraints(attributes):
                own_interest = other_interest
        if own_interest is None:
            if len(self.own_interests) >= self.settings.max_interests:
                raise ParameterError(
                    "node %d already has %d different subscriptions, the most that max_interests allows"
                    % (self.address, len(self.own_interests))
                )
            own_interest = OwnInterest(self._take_sequence(), attributes, self.settings.max_reinforcements)
            # Encode before changing any state: an interest that does not fit its frame has no effect.
            self._encode_interest(own_interest, 0, own_interest.sequence, self.settings.ttl)
            self.own_interests.append(own_interest)
        else:
            if interval_us(attributes) < interval_us(own_interest.attributes):
                # Subscriptions that share an interest get readings at the highest of their rates.
                wire.encode_interest(
                    wire.Interest(0, self.address, 0, self.address, 1, 0, attributes), self.settings.profile
                )
                own_interest.attributes = attributes
            own_interest.is_flooded = False
        subscription.request = own_interest
        self.subscriptions.add(subscription)
        self._flood_interests(now)
        self._plan_tick(now)
        return subscription

    def unsubscribe(self, subscription, now):
        """End a subscription. If no other subscription shares its interest, cancel the interest in the network.

        Before the cancellation, flood each own interest that was not flooded because the cancelled interest requested
        all its data.
        """
        if self.subscriptions.end(subscription):
            own_interest = subscription.request
            is_last = not self.subscriptions.of(own_interest)
            if is_last:
                self.own_interests.remove(own_interest)
            self._flood_interests(now)
            if is_last and own_interest.repeats is not None:
                own_interest.round = rules.next_round(own_interest.round)
                self.outbox.append(
                    (None, self._encode_interest(own_interest, 0, own_interest.sequence, self.settings.ttl))
                )
        self._plan_wake()

    def publish(self, attributes, now, payload=b""):
        """Publish a sample and return its number among the node's samples.

        ``payload``: bytes that are added to the attributes, see `with_payload`. The sample is sent as soon as an
        interest matches, and dropped if no interest matches within ``sample_lifetime_s``. Raises AttributeFormatError
        if the attributes are not valid, and EncodeError if they do not fit a frame.
        """
        attributes = with_payload(attributes, payload)
        check_publication(attributes, self.matching == "two-way")
        self._check_attribute_count(attributes)
        data = wire.Data(0, self.address, self.address, 1, False, (), attributes)
        wire.encode_data(data, self.settings.profile, self.matching)
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
        """Reinforce the paths to the sources of a subscription; return the number of reinforcements sent to neighbors.

        ``attributes``: constraints at least as strict as those of the subscription, to select only the sources that
        match them; None for all sources. The result is 0 if the subscription has ended. Raises AttributeFormatError if
        ``attributes`` are less strict, and EncodeError if they do not fit a frame.
        """
        if subscription not in self.subscriptions.open:
            return 0
        own_interest = subscription.request
        wanted_attributes = own_interest.attributes if attributes is None else tuple(attributes)
        if not is_within(wanted_attributes, own_interest.attributes):
            raise AttributeFormatError(
                "the reinforcement %s is less constrained than the subscription %s; add the subscription's constraints"
                % (text_of(wanted_attributes), text_of(own_interest.attributes))
            )
        self._check_attribute_count(wanted_attributes)
        # Encode before changing any state: a reinforcement that does not fit its frame has no effect.
        wire.encode_interest(
            wire.Interest(0, self.address, 0, self.address, 1, 0, wanted_attributes), self.settings.profile
        )
        own_interest.data_gradients.forget_reinforcements(self.address)
        return self._start_reinforcement(own_interest, wanted_attributes, own_interest.data_gradients.list, now)

    def link_quality(self, neighbor, inbound, outbound, now):
        """Put a neighbor on the black list or take it off, by the delivery ratios of the link (`rules.is_black`).

        ``inbound``, ``outbound``: the link layer's estimates of these ratios for frames from and to the neighbor.
        """
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
                self._remove_gradients(entry, "blacklisted", neighbor=neighbor)

    def _check_attribute_count(self, attributes):
        if len(attributes) > self.settings.max_attributes:
            raise AttributeFormatError(
                "a publication or subscription has %d attributes; it may have at most max_attributes=%d"
                % (len(attributes), self.settings.max_attributes)
            )

    def _take_sequence(self):
        self._messages += 1
        return (self.first_number + self._messages - 1) & wire.U32

    # Time

    def wake(self, now):
        """Perform the actions that are due at the time ``now``.

        These are: end subscriptions, refresh or repeat interests, send unacknowledged frames again, match or drop
        waiting samples, and send the samples that filters have made from dropped messages.
        """
        self.subscriptions.expire(now)
        for own_interest in list(self.own_interests):
            if not self.subscriptions.of(own_interest):
                self.own_interests.remove(own_interest)
            elif own_interest.refresh_us is not None and own_interest.refresh_us <= now:
                self._send_interest(own_interest, now)
            elif own_interest.repeat_us is not None and own_interest.repeat_us <= now:
                own_interest.repeats += 1
                self._flood_round(own_interest, now)
        for due_frame in [frame for frame in self.waiting if frame[0] <= now]:
            self.waiting.remove(due_frame)
            self._resend_data(due_frame[1], due_frame[2], due_frame[3], now)
        self._drop_old_samples(now)
        if self._tick_us is not None and self._tick_us <= now:
            self._tick_us = None
            self._send_samples(now)
        if self.filters is not None:
            self.filters.wake(now)
        self._plan_wake()

    def _plan_wake(self):
        times = [self._tick_us]
        times += [ends_us for _, _, ends_us in self.samples]
        times += [frame[0] for frame in self.waiting]
        times += [subscription.expires_us for subscription in self.subscriptions.open]
        times += [own_interest.refresh_us for own_interest in self.own_interests]
        times += [own_interest.repeat_us for own_interest in self.own_interests]
        if self.filters is not None:
            times.append(self.filters.next_wake)
        times = [time for time in times if time is not None]
        self.next_wake = min(times) if times else None

    # Interests

    def _flood_interests(self, now):
        """Flood this node's own interests that are not flooded yet; do not flood or refresh covered interests.

        With the parameter ``merge_interests``, an interest is covered if another interest of the node requests all its
        data.
        """
        for own in self.own_interests:
            if self.settings.merge_interests and self._is_covered(own):
                own.is_flooded = False
                own.refresh_us = own.repeat_us = None
            elif not own.is_flooded:
                own.is_flooded = True
                self._send_interest(own, now)
        self._plan_wake()

    def _is_covered(self, own):
        """Return whether another interest of this node requests all data that ``own`` requests, for at least as long.

        If two interests request the same data and end at the same time, the result is True only for the newer one.
        """
        is_strict = self.matching == "strict"
        ends_us = [
            max(
                [
                    FOREVER_US if subscription.expires_us is None else subscription.expires_us
                    for subscription in self.subscriptions.of(interest)
                ]
            )
            for interest in self.own_interests
        ]
        position = self.own_interests.index(own)
        for i, other in enumerate(self.own_interests):
            if (
                i != position
                and ends_us[i] >= ends_us[position]
                and covers(other.attributes, own.attributes, is_strict)
                and (
                    i < position
                    or ends_us[i] > ends_us[position]
                    or not covers(own.attributes, other.attributes, is_strict)
                )
            ):
                return True
        return False

    def _send_interest(self, own, now):
        """Flood this node's interest ``own`` and plan its next refresh; a refresh begins a new round."""
        if own.repeats is not None:
            # In the current round, neighbors would drop the interest as a duplicate and not learn the new expiration.
            own.round = rules.next_round(own.round)
            own.reinforcements = 0
            own.data_gradients.forget_reinforcements(self.address)
        self.events.append(InterestCached(NOBODY, "interest", self.address, own.sequence, own.round, own.attributes))
        refresh_us = int(self.settings.refresh_s * SECOND_US)
        own.refresh_us = now + refresh_us if refresh_us else None
        own.repeats = 0
        self._flood_round(own, now)

    def _flood_round(self, own, now):
        """Send this node's interest ``own`` in its current round; plan to repeat it in case no neighbor forwards it."""
        expiration_s = self.expiration_s(own, now)
        self.outbox.append((None, self._encode_interest(own, expiration_s, own.sequence, self.settings.ttl)))
        own.repeat_us = None
        if own.repeats < self.settings.max_repeats:
            own.repeat_us = now + rules.REPEAT_AFTER_US + self.random.below(rules.REPEAT_WITHIN_US)

    def expiration_s(self, own, now):
        """Return the lifetime (s) of the gradients that this node's interest ``own`` sets at other nodes.

        Gradients last until the last subscription that shares the interest ends, but at most as long as the settings
        allow.
        """
        longest_s = rules.lifetime_s(self.settings.refresh_s, self.settings.gradient_lifetime_s)
        times = [subscription.expires_us for subscription in self.subscriptions.of(own)]
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
        """Process a neighbor's frame: an interest (broadcast), a reinforcement (unicast) or data."""
        try:
            message = wire.decode(frame, self.matching)
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
            reason = "too_long"  # It could not be forwarded, and a mote of this profile has no buffer for it.
        if reason is not None:
            self.drop(previous_hop, name, origin, message.sequence, reason)
        elif name == "data":
            self._receive_data(message, now)
        elif broadcast:
            self._receive_interest(message, now)
        else:
            self._receive_reinforcement(message, now)

    def _drop_message(self, message, name, reason):
        """Drop a decoded message of the kind ``name``: call `Node.drop` with the message's fields and the reason."""
        origin = message.source if name == "data" else message.sink
        self.drop(message.previous_hop, name, origin, message.sequence, reason)

    def _reason_to_drop(self, attributes, size):
        """Return the reason to drop a message that filters have processed, or None to keep it.

        ``attributes``: the message's attributes after all filters, or None if a filter dropped the message;
        ``size``: size of the message's header (bytes).
        """
        if attributes is None:
            return "filter"
        if attributes_size(attributes) > wire.PROFILES[self.settings.profile] - size:
            return "too_long"
        return None

    def _receive_interest(self, interest, now):
        self.clean(now)
        key = (interest.sink, interest.sequence)
        known_round = self.seen_interests.round_of(key, now)
        if interest.sink == self.address or known_round == interest.round:
            # Another neighbor brought a known interest: a spare gradient, in case the first one fails (A14).
            entry = self.cache.find(interest.attributes)
            if interest.sink == self.address:
                for own_interest in self.own_interests:
                    # A neighbor has forwarded this round of the interest, so it needs no repetition.
                    if (
                        own_interest.sequence == interest.sequence
                        and own_interest.round == interest.round
                        and own_interest.repeat_us is not None
                    ):
                        own_interest.repeat_us = None
                        self._plan_wake()
            elif entry is not None and interest.expiration_s:
                self.set_gradient(entry, interest, now)
            self._drop_message(interest, "interest", "duplicate")
            return
        if known_round is not None and rules.is_older_round(interest.round, known_round):
            self._drop_message(interest, "interest", "stale")
            return
        attributes = interest.attributes
        if self.filters is not None:
            attributes = self.filters.apply("interest", [attributes], interest.sink, interest.sequence, now)
        self.seen_interests.put(key, interest.round, now)
        reason = self._reason_to_drop(attributes, wire.INTEREST_HEADER_B)
        if reason is not None:
            self._drop_message(interest, "interest", reason)
            return
        if attributes is not interest.attributes:
            interest = _with_attributes(interest, attributes)
        if interest.expiration_s == 0:
            self._cancel_gradients(interest)
        else:
            self._cache_interest(interest, now)
        if interest.ttl <= 1:
            self._drop_message(interest, "interest", "ttl")
            return
        self.outbox.append((None, self._encode_forwarded(interest)))
        self.events.append(Forwarded(interest.previous_hop, "interest", interest.sink, interest.sequence, 0, ""))

    def _cache_interest(self, interest, now):
        """Store a new interest, or a new round of a known interest, in the cache, with a gradient to its sender."""
        entry = self.cache.find(interest.attributes)
        if entry is None:
            entry = self._add_entry(interest)
        entry.sink, entry.sequence = interest.sink, interest.sequence
        old_head = entry.head(interest.sink)
        self._report_removed(entry.begin_round(interest.sink, interest.sequence, interest.round), "round")
        for other_entry in self.cache.entries:
            if other_entry is entry or is_within(other_entry.attributes, interest.attributes):
                other_entry.data_gradients.forget_reinforcements(interest.sink)
        self.events.append(
            InterestCached(
                interest.previous_hop, "interest", interest.sink, interest.sequence, interest.round, interest.attributes
            )
        )
        self._set_gradient(entry, interest, now)
        self._report_head(entry, interest.sink, old_head)
        self._store_pace(entry, interest)
        self._plan_tick(now)

    def _store_pace(self, entry, interest):
        """Store the shortest time between readings that an interest or a reinforcement requests by its INTERVAL.

        ``entry``: the interest's entry in the interest cache.
        """
        interval = interval_us(interest.attributes)
        if interval and self.pacing is None:
            # Loaded only now, to save the memory of motes whose sinks have no INTERVAL.
            from workbench.protocols.diffusion.pacing import Pacing

            self.pacing = Pacing(self.cache)
        if self.pacing is not None:
            self.pacing.put(entry, interest.sink, interval)

    def _plan_tick(self, now):
        """Set this node's timer, so that its waiting samples are matched with the interests again after ``tick_s``.

        Call this when the interests have changed. The timer is not set if it is set already, or if no samples wait.
        """
        if self.samples and self._tick_us is None:
            self._tick_us = now + int(self.settings.tick_s * SECOND_US)
            self._plan_wake()

    def _add_entry(self, interest):
        """Add an entry for an interest to the cache and return the entry; a full cache evicts its oldest entry."""
        entry, evicted_entry = self.cache.add(interest)
        if evicted_entry is not None:
            self._report_removed(evicted_entry.gradients, "evicted")
            self._report_interest_removed(evicted_entry, "evicted")
        return entry

    def set_gradient(self, entry, interest, now, reinforced_by=None):
        """Set or renew the gradient towards the neighbor that sent an interest or a reinforcement.

        ``entry``: the entry of the interest cache that has the gradient; ``interest``: the received message;
        ``reinforced_by``: the reinforcement's sequence number, or None for an interest.
        """
        old_head = entry.head(interest.sink)
        self._set_gradient(entry, interest, now, reinforced_by)
        self._report_head(entry, interest.sink, old_head)

    def _set_gradient(self, entry, interest, now, reinforced_by=None):
        expires_us = now + interest.expiration_s * SECOND_US
        gradient = entry.gradient(interest.sink, interest.previous_hop)
        is_new = gradient is None
        if is_new:
            gradient = Gradient(interest.sink, interest.previous_hop, expires_us, reinforced_by)
            is_added, evicted_gradient = entry.add(gradient)
            if evicted_gradient is not None:
                self._report_removed([evicted_gradient], "evicted")
            if not is_added:
                return
        gradient.round = interest.round
        if reinforced_by is None:
            gradient.ttl = interest.ttl
            if not is_new and gradient.sequence is None:
                # From now on the events of this gradient have the interest's sequence number.
                self._report_removed([gradient], "interest")
                is_new = True
        if reinforced_by is None and (gradient.sequence is None or gradient.sequence < interest.sequence):
            gradient.sequence = interest.sequence
        if reinforced_by is None and not is_new and gradient.expires_us >= expires_us:
            return
        gradient.expires_us = max(gradient.expires_us, expires_us)
        self._first_expiry_us = min(self._first_expiry_us, gradient.expires_us)
        if reinforced_by is not None:
            for other_gradient in entry.gradients:
                if other_gradient.sink == interest.sink:
                    other_gradient.reinforced_by = None
            gradient.reinforced_by = reinforced_by
            entry.move_to_front(gradient)
        self.events.append(
            GradientSet(
                interest.previous_hop,
                "interest" if reinforced_by is None else "reinforcement",
                interest.sink,
                interest.sequence,
                gradient.expires_us,
                "interest" if reinforced_by is None else "reinforcement",
            )
        )

    def _cancel_gradients(self, interest):
        """Remove the gradients of an interest that its sink has cancelled.

        In entries with narrower constraints, also remove the sink's gradients that only reinforcements have set.
        """
        cancelled_entry = self.cache.find(interest.attributes)
        for entry in list(self.cache.entries):
            if entry is cancelled_entry:
                # Keep gradients of a later interest, which may have overtaken this message on another path.
                last_sequence = interest.sequence
            elif is_within(entry.attributes, interest.attributes):
                last_sequence = NOBODY
            else:
                continue
            old_head = entry.head(interest.sink)
            removed_gradients = entry.cancel(interest.sink, last_sequence)
            self._report_removed(removed_gradients, "cancelled")
            self._report_head(entry, interest.sink, old_head)
            if removed_gradients and not entry.gradients:
                self.cache.entries.remove(entry)
                self._report_interest_removed(entry, "cancelled")

    def _encode_forwarded(self, interest):
        """Return the frame in which this node forwards an interest or a reinforcement, with a ttl lower by 1."""
        sequence, sink, round_, _, ttl, expiration_s, attributes = interest
        return wire.encode_interest(
            wire.Interest(sequence, sink, round_, self.address, ttl - 1, expiration_s, attributes),
            self.settings.profile,
        )

    def clean(self, now):
        """Remove expired gradients from the cache, then the entries without gradients."""
        if now < self._first_expiry_us:
            return
        self._first_expiry_us = FOREVER_US
        for entry in list(self.cache.entries):
            self._remove_gradients(entry, "expired", expired_at=now)
            if not entry.gradients:
                self.cache.entries.remove(entry)
                self._report_interest_removed(entry, "expired")
            for gradient in entry.gradients:
                self._first_expiry_us = min(self._first_expiry_us, gradient.expires_us)

    def _remove_gradients(self, entry, reason, neighbor=None, expired_at=None):
        """Remove all gradients of a cache entry towards ``neighbor``, or all that have expired at ``expired_at`` (µs).

        One of these two arguments is None. Report the removed gradients with ``reason``. If a sink has lost its first
        gradient, also report its new first gradient.
        """
        old_heads = entry.heads()
        removed_gradients = entry.remove(neighbor, expired_at)
        self._report_removed(removed_gradients, reason)
        new_heads = entry.heads() if removed_gradients else old_heads
        for gradient in entry.gradients:
            if new_heads.get(gradient.sink) is gradient and old_heads[gradient.sink] is not gradient:
                self._report_head(entry, gradient.sink, None)

    def _report_removed(self, gradients, reason):
        for gradient in gradients:
            self.events.append(
                GradientRemoved(gradient.neighbor, "interest", gradient.sink, gradient.interest_sequence(), 0, reason)
            )

    def _report_interest_removed(self, entry, reason):
        self.events.append(InterestRemoved(NOBODY, "interest", entry.sink, entry.sequence, 0, reason))

    def _report_head(self, entry, sink, head):
        """Report a sink's first gradient in a cache entry as an event, if it differs from ``head``.

        ``head``: the result of `InterestEntry.head` before the change. If the sink has no gradient, nothing is
        reported.
        """
        new_head = entry.head(sink)
        if new_head is not None and new_head != head:
            neighbor, number, is_reinforced = new_head
            self.events.append(HeadSet(neighbor, "interest", sink, number, is_reinforced, ""))

    # Reinforcements

    def _start_reinforcement(self, own, attributes, data_gradients, now):
        """Send a reinforcement for this node's interest ``own`` along the data gradients that match ``attributes``.

        Return the number of neighbors to which the reinforcement was sent.
        """
        reinforcement = wire.Interest(
            self._take_sequence(),
            self.address,
            own.round,
            self.address,
            # `_encode_forwarded` lowers the ttl by one hop.
            self.settings.ttl + 1,
            self.expiration_s(own, now),
            attributes,
        )
        interests = [(own.attributes, data_gradients)]
        paths = choose_paths(reinforcement, interests, self.settings, self.black_list, self.drop)
        return self._send_reinforcement(reinforcement, paths)

    def _receive_reinforcement(self, reinforcement, now):
        """Process a reinforcement: prefer its sender as the next hop for data, and forward it towards the sources.

        The gradient towards the sender becomes the first one of its entry in the interest cache.
        """
        self.clean(now)
        entry = self.cache.find(reinforcement.attributes)
        entries = [entry] if entry is not None else containing_interests(reinforcement, self.cache.entries)
        reason = reason_to_refuse(reinforcement, entry, entries, self.address)
        if reason is not None:
            self._drop_message(reinforcement, "reinforcement", reason)
            return
        # Choose paths first, as the new entry may evict one of these entries.
        interests = [
            (containing_entry.attributes, containing_entry.data_gradients.list) for containing_entry in entries
        ]
        paths = choose_paths(reinforcement, interests, self.settings, self.black_list, self.drop)
        if entry is None:
            entry = self._add_entry(reinforcement)
        self.set_gradient(entry, reinforcement, now, reinforced_by=reinforcement.sequence)
        self._store_pace(entry, reinforcement)
        self._send_reinforcement(reinforcement, paths)
        self._plan_tick(now)

    def _send_reinforcement(self, reinforcement, paths):
        """Send a reinforcement to the neighbor of each data gradient in ``paths``; return the number of frames sent."""
        if paths and reinforcement.ttl <= 1:
            self._drop_message(reinforcement, "reinforcement", "ttl")
            return 0
        for path in paths:
            self.outbox.append((path.neighbor, self._encode_forwarded(reinforcement)))
            self.events.append(
                Reinforced(path.neighbor, "reinforcement", reinforcement.sink, reinforcement.sequence, path.source, "")
            )
        return len(paths)

    # Data

    def _send_samples(self, now):
        """Send the waiting samples that match an interest, as many in each message as fit; keep the others.

        A sample is dropped if it matches no subscription of this node and comes too early for all its sinks. It comes
        too early for a sink if the sink's INTERVAL has not passed since the previous sample sent to this sink.
        """
        self.clean(now)
        self._drop_old_samples(now)
        matching_samples = []  # (number, attributes, sinks that do not get the sample)
        other_samples = []
        for sample in self.samples:
            if not self._matches_interest(sample[1]):
                other_samples.append(sample)
            elif self.pacing is None:
                matching_samples.append((sample[0], sample[1], ()))
            else:
                published_us = sample[2] - int(self.settings.sample_lifetime_s * SECOND_US)
                early_sinks = self.pacing.apply(self, sample[0], sample[1], published_us)
                if early_sinks is not None:
                    matching_samples.append((sample[0], sample[1], early_sinks))
        self.samples = other_samples
        while matching_samples:
            early_sinks = matching_samples[0][2]
            numbers, attributes, matching_samples = self._aggregate(matching_samples)
            sequence = self._take_sequence()
            for number in numbers:
                self.events.append(Originated(NOBODY, "data", self.address, sequence, number, ""))
            # `_send_data` lowers the ttl by one hop.
            ttl = self.settings.ttl + 1
            data = wire.Data(sequence, self.address, NOBODY, ttl, len(numbers) > 1, early_sinks, attributes)
            self._filter_and_route(data, self._record_seen_data(data, now), now)

    def _drop_old_samples(self, now):
        """Drop the samples that have waited for longer than ``sample_lifetime_s``."""
        # Check all samples, as after a clock was set back their lifetimes do not end in order.
        for _ in [sample for sample in self.samples if sample[2] <= now]:
            self.drop(NOBODY, "data", self.address, 0, "expired")
        self.samples = [sample for sample in self.samples if sample[2] > now]

    def _matches_interest(self, attributes):
        for own_interest in self.own_interests:
            if is_match(own_interest.attributes, attributes, self.matching):
                return True
        return any([is_match(entry.attributes, attributes, self.matching) for entry in self.cache.entries])

    def _aggregate(self, samples):
        """Combine the first sample with the samples after it, as many as may share its message.

        ``samples``: a list of (number, attributes, sinks for which the sample comes too early). Return (numbers of the
        combined samples, attributes of the message, remaining samples).

        The message ends before the first sample that does not fit, is too early for different sinks, or begins with a
        different key. A sample that contains its first key twice, or has constraints, is sent alone. See A26 in the
        docstring of `workbench.protocols.diffusion`.
        """
        number, attributes, early_sinks = samples[0]
        numbers = [number]
        room_B = wire.PROFILES[self.settings.profile] - wire.DATA_HEADER_B - attributes_size(attributes)
        first_key = attributes[0].key
        is_alone = not _may_be_aggregated(attributes)
        remaining_samples = []
        for sample in samples[1:]:
            number, next_attributes, next_early_sinks = sample
            size = attributes_size(next_attributes)
            if (
                remaining_samples
                or size > room_B
                or next_early_sinks != early_sinks
                or next_attributes[0].key != first_key
                or is_alone
                or not _may_be_aggregated(next_attributes)
            ):
                remaining_samples.append(sample)
                continue
            room_B -= size
            numbers.append(number)
            attributes += next_attributes
        return numbers, attributes, remaining_samples

    def _receive_data(self, data, now):
        self.clean(now)
        seen_record = self.seen_data.get((data.source, data.sequence))
        if seen_record is None:
            seen_record = self._record_seen_data(data, now)
            if data.source != self.address:
                self._filter_and_route(data, seen_record, now)
                return
            # The message has returned to its source, which has forgotten it.
        if seen_record.is_settled or not self._forward_data(
            data, self._matching_entries(data.attributes), seen_record, now
        ):
            self._drop_message(data, "data", "duplicate")

    def _record_seen_data(self, data, now):
        seen_record = SeenData(data.previous_hop, data.ttl, now)
        self.seen_data.put((data.source, data.sequence), seen_record)
        return seen_record

    def _matching_entries(self, attributes):
        """Return the entries of the cache whose interests match data with these attributes."""
        return [entry for entry in self.cache.entries if is_match(entry.attributes, attributes, self.matching)]

    def _filter_and_route(self, data, seen, now):
        """Process new data: filter it, then deliver, forward or drop it.

        ``seen``: the SeenData record of the message. A23 in the docstring of `workbench.protocols.diffusion` explains
        the order.
        """
        attributes = data.attributes
        if self.filters is not None:
            attributes = self.filters.apply("data", _samples_of(data), data.source, data.sequence, now)
            if self.filters.next_wake is not None:
                self._plan_wake()
            # A filter processes a message once, so its result is for all sinks, and later copies are dropped.
            seen.is_settled = attributes != data.attributes
        reason = self._reason_to_drop(attributes, wire.DATA_HEADER_B)
        if reason is not None:
            seen.is_settled = True
            self._drop_message(data, "data", reason)
            return
        if seen.is_settled:
            data = _with_attributes(data, attributes, ())
        self._deliver_and_forward(data, seen, now)

    def send_held(self, data, now):
        """Send data that a filter has made from dropped messages to all sinks whose interests match it.

        ``data``: a data message with the origin and sequence number of the last dropped message.
        """
        self.clean(now)
        seen_record = self.seen_data.get((data.source, data.sequence)) or self._record_seen_data(data, now)
        seen_record.is_settled = True
        if self._reason_to_drop(data.attributes, wire.DATA_HEADER_B) is None:
            self._deliver_and_forward(data, seen_record, now)
        else:
            self._drop_message(data, "data", "too_long")

    def _deliver_and_forward(self, data, seen, now):
        """Deliver data to this node's own subscriptions, and forward or drop it.

        ``seen``: the SeenData record of the message.
        """
        attributes = data.attributes
        is_held = False
        for own_interest in self.own_interests:
            if is_match(own_interest.attributes, attributes, self.matching):
                if not is_held:
                    hops = rules.hops_taken(self.settings.ttl, data.ttl)
                    self.events.append(Held(data.previous_hop, "data", data.source, data.sequence, hops, ""))
                is_held = True
                self._deliver(own_interest, data, now)
        entries = self._matching_entries(attributes)
        for entry in entries:
            self._update_data_gradient(entry.data_gradients, data)
        if not self._forward_data(data, entries, seen, now) and not is_held:
            # No gradient: its neighbors are on the black list, or data and interest came from the same neighbor.
            reason = "no_gradient"
            if not entries:
                # The sender knows an interest that this node does not.
                is_evicted = self.cache.is_evicting and data.previous_hop != NOBODY
                reason = "evicted" if is_evicted else "no_interest"
            self._drop_message(data, "data", reason)

    def _count_gradients_to_use(self, now):
        """Return the number of gradients per sink along which this node sends new data: 1 or ``exploratory_gradients``.

        The result is 1 if the node's list of seen data is full and reaches back only a short time
        (`rules.may_explore`). Then the node might not recognize copies that come back.
        """
        max_gradients = self.settings.exploratory_gradients
        if max_gradients > 1:
            oldest_record = self.seen_data.oldest()
            if not rules.may_explore(oldest_record is not None, oldest_record.received_us if oldest_record else 0, now):
                return 1
        return max_gradients

    def _forward_data(self, data, entries, seen, now):
        """Send data towards each sink to which no copy has been sent yet; return False if no sink remains.

        ``entries``: the cache entries whose interests match the data; ``seen``: the SeenData record of the
        message.
        """
        listed_sinks = list(data.listed_sinks)
        if any(
            [is_match(own_interest.attributes, data.attributes, self.matching) for own_interest in self.own_interests]
        ):
            listed_sinks.append(self.address)
        paths = []
        max_gradients = self._count_gradients_to_use(now)
        for entry in entries:
            entry.add_paths(paths, now, data.previous_hop, listed_sinks + [self.address, data.source], max_gradients)
        served_sinks = self.served_sinks.sinks_of(seen.served)
        is_repeated = any([path[0] in served_sinks for path in paths])
        if is_repeated and rules.has_circled(data.ttl, seen.ttl) and rules.may_retry(seen.retries):
            # A reinforcement has moved the path meanwhile, so forward the copy as if it were new.
            seen.retries += 1
            seen.ttl = data.ttl
            seen.served = 0
        else:
            listed_sinks += served_sinks
            paths = [path for path in paths if path[0] not in served_sinks]
        if not paths:
            return False
        if data.ttl <= 1:
            self._drop_message(data, "data", "ttl")
            return True
        copies, unserved_paths = self._assign_paths(paths)
        if unserved_paths:
            # One event for all neighbors that are left out.
            self._drop_message(data, "data", "full")
        self._send_data(data, copies, listed_sinks)
        self.events.append(Forwarded(data.previous_hop, "data", data.source, data.sequence, len(copies), ""))
        for _, sinks in copies:
            for sink in sinks:
                bit, is_reused = self.served_sinks.bit(sink)
                if is_reused:
                    for other_record in self.seen_data.values.values():
                        other_record.served &= ~bit
                seen.served |= bit
        return True

    def _assign_paths(self, paths):
        """Choose the neighbors that get a copy of data: at most ``max_next_hops``, and as few as possible.

        ``paths``: a list of (sink, candidate next hops, rank). Neighbors are chosen for the paths with rank 0 first
        (each sink's first path), then for those with rank 1. Return ([(neighbor, sinks that its copy is for), ...],
        list of the paths without a copy).
        """
        copies = []
        while paths and len(copies) < self.settings.max_next_hops:
            counts = {}
            rank = min([path[2] for path in paths])
            for _, candidates, path_rank in paths:
                for neighbor in candidates if path_rank == rank else ():
                    count = counts.setdefault(neighbor, [0, 0])
                    count[0] += 1
                    count[1] += neighbor == candidates[0]
            best_neighbor, best_count = NOBODY, (0, 0)
            for neighbor, count in counts.items():
                if rules.is_better_hop(count[0], count[1], neighbor, best_count[0], best_count[1], best_neighbor):
                    best_neighbor, best_count = neighbor, count
            sinks = []
            for sink, candidates, _ in paths:
                if best_neighbor in candidates and sink not in sinks:
                    sinks.append(sink)
            copies.append((best_neighbor, sinks))
            paths = [path for path in paths if best_neighbor not in path[1]]
        return copies, paths

    def _send_data(self, data, copies, listed_sinks):
        """Send a copy of a data message to each neighbor in ``copies``.

        ``copies``: [(neighbor, the sinks that its copy serves), ...]. ``listed_sinks``: sinks that need no copy from
        this node. Each copy contains a list of the sinks that its receiver need not serve: first the sinks that the
        other copies serve, then ``listed_sinks``.
        """
        max_listed = wire.max_listed_sinks(attributes_size(data.attributes), self.settings.profile)
        served_sinks = []
        for _, sinks in copies:
            served_sinks += [sink for sink in sinks if sink not in served_sinks]
        listed_sinks = sorted([sink for sink in set(listed_sinks) if sink not in served_sinks])
        for neighbor, sinks in copies:
            # Sinks that this node serves with other copies come first, as the end of a long list is cut.
            listed_in_copy = sorted([sink for sink in served_sinks if sink not in sinks]) + listed_sinks
            listed_in_copy = [sink for sink in listed_in_copy if sink != neighbor][:max_listed]
            frame = wire.encode_data(
                wire.Data(
                    data.sequence,
                    data.source,
                    self.address,
                    data.ttl - 1,
                    data.is_aggregate,
                    tuple(listed_in_copy),
                    data.attributes,
                ),
                self.settings.profile,
                self.matching,
            )
            self.outbox.append((neighbor, frame))

    def sent(self, destination, frame, ok, now):
        """Plan to send a data frame again if neighbor ``destination`` did not acknowledge it (``ok`` False)."""
        data = None if ok else self._decode_own_data(frame)
        seen_record = None if data is None else self.seen_data.get((data.source, data.sequence))
        if seen_record is None or not rules.may_retry(seen_record.retries):
            return
        seen_record.retries += 1
        if len(self.waiting) >= rules.MAX_WAITING:
            self._resend_data(destination, seen_record.previous_hop, frame, now)
            return
        # Store the previous hop, as the message may be forgotten by then.
        due_us = now + 1 + self.random.below(rules.RETRY_WITHIN_US)
        self.waiting.append((due_us, destination, seen_record.previous_hop, frame))
        self._plan_wake()

    def _decode_own_data(self, frame):
        """Return the data message in a frame that this node has sent, or None if the frame contains no such data."""
        if len(frame) - 1 > wire.PROFILES[self.settings.profile]:
            return None
        try:
            message = wire.decode(frame, self.matching)
        except DecodeError:
            return None
        return message if isinstance(message, wire.Data) and message.previous_hop == self.address else None

    def _resend_data(self, failed, previous_hop, frame, now):
        """Send data again, if possible to other neighbors than ``failed``, which did not acknowledge it.

        ``frame``: the unacknowledged frame; ``previous_hop``: the neighbor that sent the data, which gets no copy.
        """
        data = self._decode_own_data(frame)
        self.clean(now)
        paths = []
        for entry in self._matching_entries(data.attributes):
            entry.add_detours(paths, now, previous_hop, data.listed_sinks + (self.address, data.source), failed)
        # `_send_data` lowers the ttl by one hop, as it did with this frame before.
        data = wire.Data(
            data.sequence,
            data.source,
            previous_hop,
            data.ttl + 1,
            data.is_aggregate,
            data.listed_sinks,
            data.attributes,
        )
        self._send_data(data, self._assign_paths(paths)[0], data.listed_sinks)

    def _update_data_gradient(self, data_gradients, data):
        if data.previous_hop == NOBODY:
            return None
        data_gradient, is_changed = data_gradients.update(data.source, data.previous_hop, data.attributes)
        if is_changed:
            self.events.append(DataGradientSet(data.previous_hop, "data", data.source, data.sequence, 0, ""))
        return data_gradient

    def _deliver(self, own, data, now):
        """Deliver the samples of a data message to the matching subscriptions that share this node's interest ``own``.

        Reinforce the path to the source if the source has sent at least ``reinforce_after`` messages.
        """
        samples = _samples_of(data)
        for subscription in self.subscriptions.of(own):
            for sample in samples:
                if is_match(subscription.attributes, sample, self.matching):
                    self.deliver_to([subscription], sample, data.previous_hop, "data", data.source, data.sequence, now)
        data_gradient = self._update_data_gradient(own.data_gradients, data)
        # The interest that covers ``own`` has a data gradient to the same neighbor, and reinforces that path.
        if data_gradient is None or self.address in data_gradient.reinforced_for or not own.is_flooded:
            return
        settings = self.settings
        if rules.may_reinforce(
            data_gradient.messages, settings.reinforce_after, own.reinforcements, settings.max_reinforcements
        ):
            own.reinforcements += 1
            self._start_reinforcement(own, own.attributes, [data_gradient], now)


def _may_be_aggregated(attributes):
    """Return whether a sample may share a message with others: its first key is unique, all operators are IS."""
    return [attribute.key for attribute in attributes].count(attributes[0].key) == 1 and all(
        [attribute.operator == IS for attribute in attributes]
    )


def _samples_of(data):
    """Return the attributes of each reading in a data message; there are several if the source aggregated readings."""
    return split_samples(data.attributes) if data.is_aggregate else [data.attributes]


def _with_attributes(message, attributes, listed_sinks=None):
    """Return a copy of a message with other attributes.

    ``listed_sinks``: for data, a new list of sinks; None to keep all other fields. This function exists because
    MicroPython's named tuples have no _replace.
    """
    if listed_sinks is not None:
        return wire.Data(*(tuple(message)[:-2] + (listed_sinks, attributes)))
    return type(message)(*(tuple(message)[:-1] + (attributes,)))

"""Publications at one DPS node: publishing, forwarding over links, and delivery to the node's subscriptions.

Theory of operation
    A publication is sent to every neighbor whose subscriptions it may match. A neighbor announces two bit strings: its
    interests, which combine the Bloom filters of the subscriptions behind it, and its needs, the bits that the fuzzy
    hashes of these filters share. A publication may match if the fuzzy hash of (publication's filter AND interests)
    includes all bits of the needs. A publication is not sent back to a neighbor that sent it. A node forwards a
    publication only if its sequence number is the highest so far in its series. Filters give false positives; a
    subscription gets a publication only if its topics match.

    A publication with a lifetime is retained by all nodes that receive it, and sent again to a neighbor whose interests
    change (`retained.py`).

    A radio reports a frame as failed if no acknowledgement came or the channel was never free. The node then sends the
    same frame again after a random wait (`Retries`). The longest possible wait doubles with each retry, so that a
    disturbance may have passed by then. After `rules.MOST_REPEATS` retries the frame is lost. If a frame arrived all
    the same, the neighbor drops the second copy as a duplicate. On a network that does not report failures, such as
    UDP, nothing is sent again.

Bounds
    `Retries` holds the last `rules.MOST_RETRIED` failed frames; older ones are not sent again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from workbench.errors import DecodeError, EncodeError
from workbench.protocols.contract import NOBODY, Delivered, Forwarded, Held
from workbench.protocols.dps import mapping, rules, wire
from workbench.protocols.dps import topics as topic_strings
from workbench.protocols.dps.bloom import routes
from workbench.protocols.dps.context import Context, Neighbor
from workbench.protocols.dps.history import History
from workbench.protocols.dps.remotes import Remote
from workbench.protocols.dps.retained import Resending, Retained
from workbench.protocols.dps.rules import MOST_HOPS, end_us, forget_us
from workbench.protocols.dps.series import Arrival
from workbench.protocols.dps.wire import coap
from workbench.protocols.subscriptions import Subscriptions

NAME = wire.NAMES[wire.PUBLICATION]
MOST_TOPICS = 256  # in one delivered publication; each is compared with each subscription


@lru_cache(maxsize=1024)
def event_label(publication_id: bytes, sequence: int) -> tuple[int, int]:
    """Return the pair (origin, sequence) by which trace events identify a publication.

    The origin is the address of the publishing node. The sequence is ``series << 32 | sequence``, with the number of
    the series at this node and the publication's sequence number in the series."""
    origin, series = wire.origin_of(publication_id)
    return origin, series << 32 | sequence


def check_datagram_size(frame: bytes, name: str, most_B: int = wire.LARGEST_DATAGRAM_B) -> bytes:
    """Return ``frame`` unchanged; raise EncodeError if it has more than ``most_B`` bytes.

    ``name``: what the error message calls the frame, such as "publication".
    """
    excess_B = len(frame) - most_B
    if excess_B > 0:
        raise EncodeError(
            f"the {name} has {len(frame)} bytes, and a datagram has room for {most_B}; make its payload "
            f"{excess_B} bytes shorter"
        )
    return frame


@dataclass(slots=True)
class FailedFrame:
    """A publication that the radio failed to deliver to a neighbor: encoded (``frame``) and decoded (``message``)."""

    neighbor: Neighbor
    frame: bytes
    message: wire.Publication
    repeated: int = 0  # number of retries
    due_us: int | None = None  # time of the next retry


class Retries:
    """List of publication frames that a node's radio failed to deliver, with the time at which each is sent again."""

    def __init__(self, context: Context, remotes: Mapping[Neighbor, Remote], history: History) -> None:
        self._context = context
        self._remotes = remotes
        self._history = history
        self._entries: list[FailedFrame] = []
        self._oldest_index = 0  # index of the entry that is replaced next, once there are MOST_RETRIED

    def plan(self, neighbor: Neighbor, frame: bytes, message: wire.Publication, now: int) -> None:
        """Plan to repeat a frame that the radio failed to deliver to a neighbor; ``message`` is the decoded frame."""
        entry = self._find_or_add_entry(FailedFrame(neighbor, frame, message))
        if entry.repeated < rules.MOST_REPEATS:
            entry.due_us = now + 1 + self._context.random.below(rules.repeat_within_us(entry.repeated))
            entry.repeated += 1

    def _find_or_add_entry(self, new_entry: FailedFrame) -> FailedFrame:
        """Return the stored FailedFrame with the same neighbor and frame, or store and return ``new_entry``."""
        for stored_frame in self._entries:
            if stored_frame.neighbor == new_entry.neighbor and stored_frame.frame == new_entry.frame:
                return stored_frame
        if len(self._entries) < rules.MOST_RETRIED:
            self._entries.append(new_entry)
        else:
            self._entries[self._oldest_index] = new_entry
            self._oldest_index = (self._oldest_index + 1) % rules.MOST_RETRIED
        return new_entry

    def next_due_us(self) -> int | None:
        """Return the time at which to call `wake` next, or None if nothing is planned."""
        due_times_us = [entry.due_us for entry in self._entries if entry.due_us is not None] if self._entries else ()
        return min(due_times_us) if due_times_us else None

    def wake(self, now: int) -> None:
        """Send the frames whose retry is due.

        A frame is not sent if the link no longer carries publications, or if the neighbor sent the publication itself.
        """
        for failed_frame in self._entries:
            if failed_frame.due_us is None or failed_frame.due_us > now:
                continue
            failed_frame.due_us = None
            remote = self._remotes.get(failed_frame.neighbor)
            if remote is None or not remote.takes_publications():
                continue
            if not self._history.came_from(
                failed_frame.message.publication_id, failed_frame.neighbor, failed_frame.message.sequence
            ):
                self._context.send(failed_frame.neighbor, failed_frame.frame)


@dataclass(slots=True)
class DelayedPublication:
    """A publication that came from ``neighbor`` and that this node forwards at the time ``due_us``.

    ``is_reported``: this node has already logged that it delivered or dropped the publication."""

    due_us: int
    message: wire.Publication
    neighbor: Neighbor
    is_reported: bool


class Publications:
    """The publications of one node: it publishes, forwards, retains and delivers them at the time ``now`` (µs).

    remotes        the neighbors with a link
    subscriptions  the subscriptions of this node's application
    history        the publications that were seen, with the reverse path of each
    answer         callback (arrival, payload) that acknowledges a received publication, an `Arrival`
    """

    def __init__(
        self,
        context: Context,
        remotes: Mapping[Neighbor, Remote],
        subscriptions: Subscriptions,
        history: History,
        answer: Callable[[Arrival, bytes], None],
    ) -> None:
        settings = context.settings
        self.settings = settings
        self.history = history
        self.retained = Retained(settings.max_retained)
        self.retries = Retries(context, remotes, history)
        self._context = context
        self._remotes = remotes
        self._subscriptions = subscriptions
        self._answer = answer
        self._delayed: dict[bytes, DelayedPublication] = {}
        wait_us, limit = context.times.update_us, 2 * settings.max_links
        self._resending = Resending(remotes, self._send_retained, wait_us, limit)

    # Publications of this node

    def frame_of_own(self, message: wire.Publication, is_multicast: bool) -> bytes:
        """Return the frame with a publication of this node; raise EncodeError if it does not fit a datagram.

        ``is_multicast``: the frame is also multicast, in an envelope that takes some bytes of the datagram.
        """
        envelope_B = coap.ENVELOPE_B if is_multicast else 0
        return check_datagram_size(wire.encode(message), NAME, wire.LARGEST_DATAGRAM_B - envelope_B)

    def send_own(
        self, message: wire.Publication, frame: bytes, plain: wire.Publication, is_multicast: bool, now: int
    ) -> None:
        """Record, retain, deliver and send ``message``, a publication of this node.

        ``plain``: the message without encryption, for the node's own subscriptions. ``frame``: the encoded message.
        ``is_multicast``: whether to send the frame also as a multicast to all nodes in reach.
        """
        self._record_in_history(message, None, now)
        if message.ttl_s >= 0:
            self._report(Held, message, None, 0)
        self._retain(message, None, now)
        self._deliver(plain, None, now)
        if is_multicast:
            self._context.send(None, frame)
        self._send(message, frame, None)

    def _record_in_history(self, message: wire.Publication, neighbor: Neighbor | None, now: int) -> None:
        expires_us = forget_us(now, message.lifetime_s, self._context.times.history_us)
        self.history.record(message, neighbor, neighbor in self._remotes, expires_us, now)

    def _retain(self, message: wire.Publication, neighbor: Neighbor | None, now: int) -> None:
        if message.ttl_s > 0:
            evicted_publication = self.retained.put(message, neighbor, end_us(now, message.ttl_s))
            if evicted_publication is not None:
                self._drop(evicted_publication.message, evicted_publication.neighbor, "full")
        else:
            self.retained.remove(message.publication_id)

    # Publications from neighbors

    def receive(self, message: wire.Publication, neighbor: Neighbor, now: int) -> None:
        """Handle a publication from ``neighbor``: drop it if it is a duplicate or invalid, else deliver and forward it.

        A multicast may come from a node without a link to this node.
        """
        if message.ttl_s > message.lifetime_s:
            self._drop(message, neighbor, "ttl")
            return
        if message.hops >= MOST_HOPS:
            self._drop(message, neighbor, "hops")
            return
        retained_publication = self.retained.get(message.publication_id)
        history_entry = self.history.get(message.publication_id)
        if retained_publication is not None:
            newest_sequence = retained_publication.message.sequence
        elif message.ttl_s < 0:
            self._drop(message, neighbor, "not_retained")
            return
        else:
            newest_sequence = 0 if history_entry is None else history_entry.sequence
        self._record_in_history(message, neighbor, now)
        if message.sequence <= newest_sequence:
            self._drop(message, neighbor, "duplicate" if message.sequence == newest_sequence else "stale")
            return
        if message.ttl_s >= 0:
            self._report(Held, message, neighbor, message.hops + 1)
        self._retain(message, neighbor, now)
        is_reported = self._deliver(message, neighbor, now)
        if rules.delays_forwarding(self._context.is_crowded, len(self._delayed)):
            due_us = now + 1 + self._context.random.below(rules.FORWARD_US)
            self._delayed[message.publication_id] = DelayedPublication(due_us, message, neighbor, is_reported)
        else:
            self._forward(message, neighbor, is_reported)

    def _forward(self, message: wire.Publication, neighbor: Neighbor, is_reported: bool) -> None:
        receiver_count = self._send(message, None, neighbor)
        if not is_reported and not receiver_count:
            self._drop(message, neighbor, "dead_end")

    def _encode_forwarded(self, message: wire.Publication, ttl_s: int) -> bytes:
        return wire.encode(wire.with_next_hop(message, self._context.port, ttl_s))

    # Sending

    def _send(self, message: wire.Publication, frame: bytes | None, neighbor: Neighbor | None) -> int:
        """Send a publication to all neighbors whose interests it may match; return the number of these neighbors.

        ``neighbor``: the node from which the publication came; None: this node published it. ``frame``: the encoded
        message; None: encode the message with one more hop, as this node forwards it.
        """
        receiver_count = 0
        for remote in self._remotes.values():
            if remote.takes_publications() and self._should_send(remote, message, neighbor):
                if frame is None:
                    frame = self._encode_forwarded(message, message.ttl_s)
                self._context.send(remote.address, frame)
                receiver_count += 1
        self._report_forwarded(message, neighbor, receiver_count)
        return receiver_count

    def _should_send(self, remote: Remote, message: wire.Publication, neighbor: Neighbor | None) -> bool:
        """Return whether to send a publication to ``remote``.

        The result is True if the publication may match the interests of ``remote``, and ``remote`` has not sent this
        publication, or a later one of the series, itself. ``neighbor``: the node from which the publication came; None:
        this node published it.
        """
        if remote.address == neighbor:
            return False
        if self.history.came_from(message.publication_id, remote.address, message.sequence):
            return False
        if remote.inbound is None:
            return False
        interests, needs = remote.inbound
        return routes(message.filter, interests, needs)

    def _report_forwarded(self, message: wire.Publication, neighbor: Neighbor | None, count: int) -> None:
        if count and neighbor is not None and self._context.reports_details:
            self._report(Forwarded, message, neighbor, count)

    def interests_changed(self, remote: Remote, now: int) -> None:
        """Send retained publications to a neighbor whose interests changed: now, or when the rate limit allows."""
        if len(self.retained):
            self._resending.request(remote, now)

    def _send_retained(self, remote: Remote, now: int) -> None:
        """Send a neighbor the retained publications that may match its interests."""
        for publication in self.retained.values():
            left_s = publication.left_s(now)
            if left_s <= 0 or not self._should_send(remote, publication.message, publication.neighbor):
                continue
            if publication.neighbor is None:
                forwarded_frame = wire.encode(publication.message._replace(ttl_s=left_s))
            else:
                forwarded_frame = self._encode_forwarded(publication.message, left_s)
            self._context.send(remote.address, forwarded_frame)
            self._report_forwarded(publication.message, publication.neighbor, 1)

    # Delivery to the application

    def deliver_retained(self, subscription: Any, now: int) -> None:
        """Deliver the matching publications that this node retains to a new subscription of its application."""
        for publication in self.retained.values():
            left_s = publication.left_s(now)
            if left_s > 0:
                self._deliver(publication.message._replace(ttl_s=left_s), publication.neighbor, now, (subscription,))

    def _deliver(
        self, message: wire.Publication, neighbor: Neighbor | None, now: int, subscriptions: Iterable[Any] | None = None
    ) -> bool:
        """Deliver a publication, or the end of a retained publication, to all matching subscriptions of this node.

        ``subscriptions``: the subscriptions to compare; None: all. Return whether a delivery or a drop was logged. The
        result is False if no filter of a subscription matches the publication.
        """
        is_expiry = message.ttl_s < 0
        candidates = [
            subscription
            for subscription in (self._subscriptions.open if subscriptions is None else subscriptions)
            if (subscription.request.expired or not is_expiry)
            and message.filter.includes(subscription.request.filter)
            and not subscription.is_over(now)
        ]
        if not candidates:
            return False
        opened = None
        if message.data is None:
            try:
                opened = self._open_encrypted(message)
            except DecodeError:
                self._drop(message, neighbor, "sealed")
                return True
            message = opened.message
        if neighbor is not None and self._refuses_unprotected(opened):
            self._drop(message, neighbor, "plain")
            return True
        topic_texts = message.topics or ()
        if len(topic_texts) > MOST_TOPICS:
            self._drop(message, neighbor, "topics")
            return True
        topics_bytes = [topic_strings.as_bytes(topic) for topic in topic_texts]
        separators = self.settings.separators
        matching_subscriptions = [
            subscription
            for subscription in candidates
            if topic_strings.matches(topics_bytes, subscription.request.topics, separators)
        ]
        if not matching_subscriptions:
            self._drop(message, neighbor, "no_match")
            return True
        delivery_count = 0
        arrival = None
        for subscription in matching_subscriptions:
            if subscription.request.is_of_attributes:
                delivery_count += self._deliver_samples(message, neighbor, subscription)
                continue
            if arrival is None:
                arrival = self._make_arrival(message, neighbor, is_expiry, opened)
            subscription.put(arrival)
            delivery_count += 1
            self._report(Delivered, message, neighbor, subscription.number, " ".join(topic_texts))
        has_samples = any(subscription.request.is_of_attributes for subscription in matching_subscriptions)
        if delivery_count and message.acknowledge and not is_expiry and has_samples:
            arrival = arrival or self._make_arrival(message, neighbor, is_expiry, opened)
            self._answer(arrival, b"")
        return True

    def _refuses_unprotected(self, opened: Any) -> bool:
        """Return whether this node refuses a publication that is neither encrypted nor signed by a known key.

        A node without keys, or with ``security.plain`` True, refuses none. ``opened``: the publication decrypted and
        verified, a `cose.Opened`; None: it is neither encrypted nor signed.
        """
        security = self._context.security
        return security is not None and not security.plain and (opened is None or opened.is_plain)

    def _open_encrypted(self, message: wire.Publication) -> Any:
        if self._context.security is None:
            raise DecodeError("the publication is encrypted or signed, and this node has no keys")
        return self._context.security.open(message)

    def _make_arrival(
        self, message: wire.Publication, neighbor: Neighbor | None, is_expiry: bool, opened: Any
    ) -> Arrival:
        hops = 0 if neighbor is None else message.hops + 1
        return Arrival(
            message.publication_id,
            message.sequence,
            message.topics or (),
            message.data or b"",
            is_expiry,
            message.acknowledge,
            max(0, message.ttl_s),
            hops,
            neighbor,
            None if opened is None else opened.sender,
            opened,
        )

    def _deliver_samples(self, message: wire.Publication, neighbor: Neighbor | None, subscription: Any) -> int:
        try:
            attributes = mapping.decode_data(message.data or b"")
        except DecodeError:
            self._drop(message, neighbor, "no_attributes")
            return 0
        samples = self.settings.matching_samples(subscription.attributes, attributes)
        for sample in samples:
            subscription.put(sample)
            self._report(Delivered, message, neighbor, subscription.number, sample)
        if not samples:
            self._drop(message, neighbor, "out_of_range")
        return len(samples)

    def _report(
        self,
        event: Callable[..., Any],
        message: wire.Publication,
        neighbor: Neighbor | None,
        value: int,
        detail: Any = "",
    ) -> None:
        peer = NOBODY if neighbor is None else neighbor
        self._context.report(event, peer, NAME, *event_label(message.publication_id, message.sequence), value, detail)

    # Time

    def next_due_us(self) -> int | None:
        """Return the time at which to call `wake` next, or None if nothing is planned."""
        due_times_us = [delayed_publication.due_us for delayed_publication in self._delayed.values()]
        due_times_us += [
            time_us for time_us in (self.retained.next_expiry_us(), self.retries.next_due_us()) if time_us is not None
        ]
        return min(due_times_us) if due_times_us else None

    def wake(self, now: int) -> None:
        """Do what is due: forward delayed publications, send retries and retained publications, and report expiries.

        The expiry of a retained publication is reported to matching subscriptions that requested such reports.
        """
        for due_publication in [
            delayed_publication for delayed_publication in self._delayed.values() if delayed_publication.due_us <= now
        ]:
            del self._delayed[due_publication.message.publication_id]
            self._forward(due_publication.message, due_publication.neighbor, due_publication.is_reported)
        for expired_publication in self.retained.pop_expired(now):
            expiry_message = expired_publication.message._replace(ttl_s=-1)
            self._deliver(expiry_message, expired_publication.neighbor, now)
        self._resending.wake(now)
        self.retries.wake(now)

    def _drop(self, message: wire.Publication, neighbor: Neighbor | None, reason: str) -> None:
        self._context.drop(neighbor, NAME, event_label(message.publication_id, message.sequence), reason)

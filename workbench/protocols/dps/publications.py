"""Publications at one DPS node: its own, and those that come; to its subscriptions, and on over its links.

Theory of operation
    A publication goes to every neighbor whose interests it may meet: the fuzzy hash of what its filter and the
    interests have in common must include the neighbor's needs. It does not go back to whom it came from, and only a
    higher sequence number of its series goes on at all. Filters may say yes in vain; a subscription is given what its
    topics match.

    One with a lifetime is kept by all that it comes to, and sent again to a neighbor whose interests change
    (`retained.py`).

    Where a radio gives a frame up, because nobody acknowledged it or the channel was never free, the same frame is sent
    again after a random wait, which doubles each time (`Repeats`): the disturbance has passed by then. After
    `rules.MOST_REPEATS` times it is lost. If it had arrived all the same, the neighbor drops the second copy as a
    duplicate. A network without such reports, as UDP is, repeats nothing.

Bounds
    `Repeats` has the last `rules.REPEATS_KEPT` frames that were given up; of more, the oldest is sent no more.
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
MOST_TOPICS = 256  # of one publication that is delivered; each is compared with each subscription


@lru_cache(maxsize=1024)
def label(publication_id: bytes, sequence: int) -> tuple[int, int]:
    """(origin, sequence) of a publication in events: its node, and series and number in one."""
    origin, series = wire.origin_of(publication_id)
    return origin, series << 32 | sequence


def fit_for_datagram(frame: bytes, name: str, most_B: int = wire.LARGEST_DATAGRAM_B) -> bytes:
    """Return the frame; EncodeError if it does not fit a datagram."""
    more_B = len(frame) - most_B
    if more_B > 0:
        raise EncodeError(
            f"the {name} takes {len(frame)} bytes and a datagram has room for {most_B}; make its payload {more_B} "
            "bytes shorter"
        )
    return frame


@dataclass(slots=True)
class GivenUp:
    """A frame that the radio gave up, and the same decoded."""

    neighbor: Neighbor
    frame: bytes
    message: wire.Publication
    repeated: int = 0  # how often it was sent again
    due_us: int | None = None  # when it is sent next


class Repeats:
    """The frames of one node that its radio gave up."""

    def __init__(self, context: Context, remotes: Mapping[Neighbor, Remote], history: History) -> None:
        self._context = context
        self._remotes = remotes
        self._history = history
        self._entries: list[GivenUp] = []
        self._oldest = 0  # the entry that is replaced next, once there are REPEATS_KEPT

    def give_up(self, neighbor: Neighbor, frame: bytes, message: wire.Publication, now: int) -> None:
        """Plan to send a publication again that the radio gave up; ``message``: the same, decoded."""
        entry = self._entry(GivenUp(neighbor, frame, message))
        if entry.repeated < rules.MOST_REPEATS:
            entry.due_us = now + 1 + self._context.random.below(rules.repeat_within_us(entry.repeated))
            entry.repeated += 1

    def _entry(self, new: GivenUp) -> GivenUp:
        """Return the entry of the same frame, or the new one as an entry."""
        for entry in self._entries:
            if entry.neighbor == new.neighbor and entry.frame == new.frame:
                return entry
        if len(self._entries) < rules.REPEATS_KEPT:
            self._entries.append(new)
        else:
            self._entries[self._oldest] = new
            self._oldest = (self._oldest + 1) % rules.REPEATS_KEPT
        return new

    def next_due_us(self) -> int | None:
        """Return when `wake` is next to be called, None for never."""
        due = [entry.due_us for entry in self._entries if entry.due_us is not None] if self._entries else ()
        return min(due) if due else None

    def wake(self, now: int) -> None:
        """Send what is due, to neighbors that are still linked and have not sent the same publication meanwhile."""
        for entry in self._entries:
            if entry.due_us is None or entry.due_us > now:
                continue
            entry.due_us = None
            remote = self._remotes.get(entry.neighbor)
            if remote is None or not remote.takes_publications():
                continue
            if not self._history.came_from(entry.message.publication_id, entry.neighbor, entry.message.sequence):
                self._context.send(entry.neighbor, entry.frame)


@dataclass(slots=True)
class Waiting:
    """A publication that is forwarded later. ``is_reported``: whether an event says what became of it here."""

    due_us: int
    message: wire.Publication
    neighbor: Neighbor
    is_reported: bool


class Publications:
    """The publications at one node.

    remotes        the neighbors with a link
    subscriptions  those of this node's application
    history        the publications that were seen, with the path back of each
    answer         called with an Arrival and a payload: acknowledges it
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
        self.repeats = Repeats(context, remotes, history)
        self._context = context
        self._remotes = remotes
        self._subscriptions = subscriptions
        self._answer = answer
        self._waiting: dict[bytes, Waiting] = {}
        wait_us, most = context.times.update_us, 2 * settings.max_links
        self._resending = Resending(remotes, self._send_retained, wait_us, most)

    # Its own

    def frame_of_own(self, message: wire.Publication, is_multicast: bool) -> bytes:
        """The frame of a publication of this node's own; EncodeError if it does not fit a datagram."""
        envelope_B = coap.ENVELOPE_B if is_multicast else 0
        return fit_for_datagram(wire.encode(message), NAME, wire.LARGEST_DATAGRAM_B - envelope_B)

    def send_own(
        self, message: wire.Publication, frame: bytes, plain: wire.Publication, is_multicast: bool, now: int
    ) -> None:
        """Send a publication of this node's own; ``plain`` is what its own subscriptions are given."""
        self._note(message, None, now)
        if message.ttl_s >= 0:
            self._report(Held, message, None, 0)
        self._keep(message, None, now)
        self._deliver(plain, None, now)
        if is_multicast:
            self._context.send(None, frame)
        self._send(message, frame, None)

    def _note(self, message: wire.Publication, neighbor: Neighbor | None, now: int) -> None:
        expires_us = forget_us(now, message.lifetime_s, self._context.times.history_us)
        self.history.note(message, neighbor, neighbor in self._remotes, expires_us, now)

    def _keep(self, message: wire.Publication, neighbor: Neighbor | None, now: int) -> None:
        if message.ttl_s > 0:
            evicted = self.retained.put(message, neighbor, end_us(now, message.ttl_s))
            if evicted is not None:
                self._drop(evicted.message, evicted.neighbor, "full")
        else:
            self.retained.remove(message.publication_id)

    # Those that come

    def take(self, message: wire.Publication, neighbor: Neighbor, now: int) -> None:
        """A publication from a neighbor, or from a stranger by multicast."""
        if message.ttl_s > message.lifetime_s:
            self._drop(message, neighbor, "ttl")
            return
        if message.hops >= MOST_HOPS:
            self._drop(message, neighbor, "hops")
            return
        retained = self.retained.get(message.publication_id)
        seen = self.history.get(message.publication_id)
        if retained is not None:
            newest = retained.message.sequence
        elif message.ttl_s < 0:
            self._drop(message, neighbor, "not_retained")
            return
        else:
            newest = 0 if seen is None else seen.sequence
        self._note(message, neighbor, now)
        if message.sequence <= newest:
            self._drop(message, neighbor, "duplicate" if message.sequence == newest else "stale")
            return
        if message.ttl_s >= 0:
            self._report(Held, message, neighbor, message.hops + 1)
        self._keep(message, neighbor, now)
        is_reported = self._deliver(message, neighbor, now)
        if rules.delays_forwarding(self._context.is_crowded, len(self._waiting)):
            due_us = now + 1 + self._context.random.below(rules.FORWARD_US)
            self._waiting[message.publication_id] = Waiting(due_us, message, neighbor, is_reported)
        else:
            self._forward(message, neighbor, is_reported)

    def _forward(self, message: wire.Publication, neighbor: Neighbor, is_reported: bool) -> None:
        count = self._send(message, None, neighbor)
        if not is_reported and not count:
            self._drop(message, neighbor, "dead_end")

    def _onward(self, message: wire.Publication, ttl_s: int) -> bytes:
        return wire.encode(wire.forwarded(message, self._context.port, ttl_s))

    # Out

    def _send(self, message: wire.Publication, frame: bytes | None, neighbor: Neighbor | None) -> int:
        """Send a publication to everybody whose interests it may meet; returns to how many.

        ``frame``: None to make it from the message, if anybody gets it.
        """
        count = 0
        for remote in self._remotes.values():
            if remote.takes_publications() and self._is_for(remote, message, neighbor):
                if frame is None:
                    frame = self._onward(message, message.ttl_s)
                self._context.send(remote.address, frame)
                count += 1
        self._report_forwarded(message, neighbor, count)
        return count

    def _is_for(self, remote: Remote, message: wire.Publication, neighbor: Neighbor | None) -> bool:
        """Whether a publication goes to a neighbor: it may ask for it, and it did not come from there."""
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
        """A neighbor asks for something else, or for the first time: it is sent what is kept, when its turn comes."""
        if len(self.retained):
            self._resending.ask(remote, now)

    def _send_retained(self, remote: Remote, now: int) -> None:
        """Send a neighbor what is kept and may matter to it."""
        for retained in self.retained.values():
            left_s = retained.left_s(now)
            if left_s <= 0 or not self._is_for(remote, retained.message, retained.neighbor):
                continue
            if retained.neighbor is None:
                frame = wire.encode(retained.message._replace(ttl_s=left_s))
            else:
                frame = self._onward(retained.message, left_s)
            self._context.send(remote.address, frame)
            self._report_forwarded(retained.message, retained.neighbor, 1)

    # To the application

    def give_retained(self, subscription: Any, now: int) -> None:
        """A new subscription of this node's own: hand it what is kept here, which no neighbor would send again."""
        for retained in self.retained.values():
            left_s = retained.left_s(now)
            if left_s > 0:
                self._deliver(retained.message._replace(ttl_s=left_s), retained.neighbor, now, (subscription,))

    def _deliver(
        self, message: wire.Publication, neighbor: Neighbor | None, now: int, subscriptions: Iterable[Any] | None = None
    ) -> bool:
        """Hand a publication, or the end of one, to the subscriptions that it matches.

        Returns whether what became of it here has been told: that it was delivered, or why not. False: nobody asks.
        """
        is_expiry = message.ttl_s < 0
        wanted = [
            one
            for one in (self._subscriptions.open if subscriptions is None else subscriptions)
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
        texts = message.topics or ()
        if len(texts) > MOST_TOPICS:
            self._drop(message, neighbor, "topics")
            return True
        topics = [topic_strings.as_bytes(topic) for topic in texts]
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
            self._report(Delivered, message, neighbor, one.number, " ".join(texts))
        if count and message.acknowledge and not is_expiry and any(one.request.is_of_attributes for one in wanted):
            arrival = arrival or self._arrival(message, neighbor, is_expiry, opened)
            self._answer(arrival, b"")
        return True

    def _is_refused(self, opened: Any) -> bool:
        """Whether anybody could have written it, and the application wants none of that."""
        security = self._context.security
        return security is not None and not security.plain and (opened is None or opened.is_plain)

    def _opened(self, message: wire.Publication) -> Any:
        if self._context.security is None:
            raise DecodeError("a secured publication, and no keys")
        return self._context.security.open(message)

    def _arrival(self, message: wire.Publication, neighbor: Neighbor | None, is_expiry: bool, opened: Any) -> Arrival:
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
        self._context.report(event, peer, NAME, *label(message.publication_id, message.sequence), value, detail)

    # Time

    def next_due_us(self) -> int | None:
        """When `wake` is next to be called for a publication, None for never."""
        due = [waiting.due_us for waiting in self._waiting.values()]
        due += [time_us for time_us in (self.retained.next_end_us(), self.repeats.next_due_us()) if time_us is not None]
        return min(due) if due else None

    def wake(self, now: int) -> None:
        """Forward, end, and send again what is due."""
        for waiting in [one for one in self._waiting.values() if one.due_us <= now]:
            del self._waiting[waiting.message.publication_id]
            self._forward(waiting.message, waiting.neighbor, waiting.is_reported)
        for retained in self.retained.pop_over(now):
            ended = retained.message._replace(ttl_s=-1)
            self._deliver(ended, retained.neighbor, now)
        self._resending.wake(now)
        self.repeats.wake(now)

    def _drop(self, message: wire.Publication, neighbor: Neighbor | None, reason: str) -> None:
        self._context.drop(neighbor, NAME, label(message.publication_id, message.sequence), reason)

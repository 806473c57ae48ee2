"""One account per expected reading: whether it was delivered, or the last step that the trace proves and its cause.

    for account in accounts(run):
        print(account.cause, account.node, account.rows)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

# Each cause, and which rows prove it. X is the account's node, Y its neighbor, s the subscriber.
CAUSES: Mapping[str, str] = {
    "delivered": "the row delivered at s",
    "disconnected": "rows failed: until the end no path in time leads from the publisher to s",
    "not_asked": "the row published: at X nothing had asked for the reading on behalf of s",
    "evicted": "a row by which X had evicted what s asked for (interest_removed) or the reading (dropped)",
    "filtered": "a row dropped (filter) at X",
    "lost": "a row lost at Y with peer X; detail: link, collision or half_duplex",
    "down": "a row lost at Y with peer X, detail down; or a row given_up at X, detail down, without a neighbor",
    "saturated": "a row given_up (channel_busy) at X; or a row originated or forwarded at X and no frame until the end",
    "chance": "a row dropped (chance) at X",
    "ttl": "a row dropped (ttl) at X",
    "dropped": "a row dropped at X; detail: its reason",
    "incomplete": "the rows innovative or received at s: too few parts came to decode the reading",
    "not_matched": "the rows event_matched at X, and no row query_stored of s at X before",
    "no_place": "no row key_set with a place at X",
    "no_link": "no link of X was active; the row of its last change, if there is one",
    "not_forwarded": "a row received or originated at X, and no frame of X with the reading afterwards",
    "not_proven": "no rows",
}


class Reading(NamedTuple):
    """A reading, as rows "published" identify it: the publisher, and the number that it gave the reading."""

    publisher: int
    number: int


class Account(NamedTuple):
    """What became of a reading that a subscription expected.

    reading, published_us           the reading, and when it was published
    subscriber, subscription        the node that subscribed, and the subscription's number there
    delivered_us                    when it was first delivered, or None
    cause                           a key of CAUSES
    node, neighbor                  where the last proven step was, and to whom; None where there is no neighbor
    time_us                         when that was
    detail                          the reason in the row, or ""
    rows                            indices of the rows of the trace that prove it, ascending
    """

    reading: Reading
    published_us: int
    subscriber: int
    subscription: int
    delivered_us: int | None
    cause: str
    node: int
    neighbor: int | None
    time_us: int
    detail: str
    rows: tuple[int, ...]


def accounts(run: Any) -> list[Account]:
    """Return an account for each reading that a subscription expected, in order of subscription and time."""
    raise NotImplementedError

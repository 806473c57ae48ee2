"""Codes of the events that only TinyMQ has, and of its reasons for drops."""

from workbench.sim.fast.layout import FIRST_EVENT, FIRST_REASON

EVENTS = (
    "key_set",
    "query_stored",
    "zone_set",
    "event_matched",
)
(
    KEY_SET,
    QUERY_STORED,
    ZONE_SET,
    EVENT_MATCHED,
) = range(FIRST_EVENT, FIRST_EVENT + len(EVENTS))

REASONS = (
    "stale",
    "full",
    "repeated",
    "no_place",
    "unasked",
    "no_zone",
    "no_sink",
    "waited",
    "astray",
)
(
    STALE,
    FULL,
    REPEATED,
    NO_PLACE,
    UNASKED,
    NO_ZONE,
    NO_SINK,
    WAITED,
    ASTRAY,
) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

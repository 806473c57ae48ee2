"""Codes of the events that only DPS has, and of its reasons for drops."""

from workbench.sim.fast.layout import FIRST_EVENT, FIRST_REASON

EVENTS = (
    "link_set",
    "interests_set",
    "acknowledged",
    "mesh_id_set",
)
(
    LINK_SET,
    INTERESTS_SET,
    ACKNOWLEDGED,
    MESH_ID_SET,
) = range(FIRST_EVENT, FIRST_EVENT + len(EVENTS))

REASONS = (
    "stale",
    "full",
    "unasked",
    "unknown",
    "no_base",
    "no_match",
    "out_of_range",
    "dead_end",
    "hops",
    "no_way_back",
)
(
    STALE,
    FULL,
    UNASKED,
    UNKNOWN,
    NO_BASE,
    NO_MATCH,
    OUT_OF_RANGE,
    DEAD_END,
    HOPS,
    NO_WAY_BACK,
) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

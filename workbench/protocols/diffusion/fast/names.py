"""Codes of the events that only TinyDiffusion has, and of its reasons for drops."""

from workbench.sim.fast.layout import FIRST_EVENT, FIRST_REASON

EVENTS = (
    "filtered",
    "interest_cached",
    "interest_removed",
    "gradient_set",
    "gradient_removed",
    "data_gradient_set",
    "reinforced",
    "blacklisted",
    "head_set",
)
(
    FILTERED,
    INTEREST_CACHED,
    INTEREST_REMOVED,
    GRADIENT_SET,
    GRADIENT_REMOVED,
    DATA_GRADIENT_SET,
    REINFORCED,
    BLACKLISTED,
    HEAD_SET,
) = range(FIRST_EVENT, FIRST_EVENT + len(EVENTS))

REASONS = (
    "stale",
    "filter",
    "no_gradient",
    "no_interest",
    "blacklisted",
    "expired",
    "evicted",
    "cancelled",
    "round",
    "interest",
    "reinforcement",
    "replace",
    "drop",
    "full",
)
(
    STALE,
    FILTER,
    NO_GRADIENT,
    NO_INTEREST,
    BLACKLISTED_REASON,
    EXPIRED,
    EVICTED,
    CANCELLED,
    NEW_ROUND,
    SET_BY_INTEREST,
    SET_BY_REINFORCEMENT,
    FILTER_REPLACES,
    FILTER_DROPS,
    FULL,
) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

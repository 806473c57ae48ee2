"""Codes of the events that only coded diffusion has, and of its reasons for drops."""

from workbench.sim.fast.layout import FIRST_EVENT, FIRST_REASON

EVENTS = (
    "innovative",
    "decoded",
    "generation_begun",
)
(
    INNOVATIVE,
    DECODED,
    GENERATION_BEGUN,
) = range(FIRST_EVENT, FIRST_EVENT + len(EVENTS))

REASONS = (
    "expired",
    "full",
    "not_innovative",
    "decoded",
    "not_at_hand",
)
(
    EXPIRED,
    FULL,
    NOT_INNOVATIVE,
    DECODED_ALREADY,
    NOT_AT_HAND,
) = range(FIRST_REASON, FIRST_REASON + len(REASONS))

"""Explanations of undelivered readings that are specific to gossip: by chance a node did not forward a reading."""

from __future__ import annotations

from typing import Any

from workbench.protocols.flooding.explain import sentences

__all__ = ["clause", "sentences"]


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause, part of an explanation's sentence, about a node that by chance did not forward a reading.

    ``account``: the cause of a missing reading. Returns None if that cause is not "chance".
    """
    if account.cause != "chance":
        return None
    probability = scenario.protocol.forwarding_probability
    return (
        f"node {account.node} had it last and, by chance, did not forward it: a node does so with a probability of "
        f"{probability:g} (forwarding_probability)"
    )

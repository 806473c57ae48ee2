"""Explanations of undelivered readings that only gossip needs: a node did not forward a reading, by chance."""

from __future__ import annotations

from typing import Any

from workbench.protocols.flooding.explain import sentences

__all__ = ["clause", "sentences"]


def clause(scenario: Any, account: Any) -> str | None:
    """Return the clause that explains why a reading went no further: by chance, a node did not forward it.

    The clause is part of a sentence of `run.explain`. ``account``: the `Account` of a missing reading. Returns None if
    its ``cause`` is not "chance".
    """
    if account.cause != "chance":
        return None
    probability = scenario.protocol.forwarding_probability
    return (
        f"node {account.node} had it last and, by chance, did not forward it: a node forwards a publication with a "
        f"probability of {probability:g} (forwarding_probability)"
    )

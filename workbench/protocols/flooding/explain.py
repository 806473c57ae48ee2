"""Explanations of undelivered readings that only flooding needs; `workbench.analysis.explain` loads this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import beyond


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield one sentence if an undelivered reading had more hops to its subscriber than a flood's ttl allows.

    ``missing``: the undelivered readings, each with its publisher and its subscriber.
    """
    ttl = scenario.protocol.ttl
    yield from beyond(missing, missing.hops, ttl, f"A flood's ttl of {ttl} hops")

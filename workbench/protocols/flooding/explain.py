"""Explanations of undelivered readings that only flooding needs; `workbench.analysis.explain` loads this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import beyond


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield one sentence if readings in ``missing`` had a longer path to their sink than a flood's ttl allows."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing, missing.hops, ttl, f"A flood's ttl of {ttl} hops")

"""Explanations of undelivered readings that only flooding needs; `workbench.analysis.explain` loads this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.analysis.expected import Pairs
from workbench.analysis.sentences import beyond


def sentences(scenario: Any, missing: Pairs) -> Iterator[str]:
    """Yield one sentence if a reading in ``missing`` has a path to its sink with more hops than a flood's ttl."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing, missing.hops, ttl, f"A flood's ttl of {ttl} hops")

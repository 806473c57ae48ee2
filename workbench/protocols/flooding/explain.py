"""Why publications did not arrive, as only flooding can say; `workbench.sim.explain` finds it through the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.sim.explain import beyond
from workbench.sim.missing import Missing


def explain(scenario: Any, trace: Any, missing: Missing) -> Iterator[str]:
    """A flood goes as many hops as its ttl says, and needs no way back."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing._replace(hops_back=missing.hops), ttl, f"A flood's ttl of {ttl} hops")

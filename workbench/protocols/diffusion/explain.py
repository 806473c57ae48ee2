"""Why publications did not arrive, as only TinyDiffusion can say; `workbench.sim.explain` finds this by the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.sim.explain import beyond, unheard
from workbench.sim.missing import Missing


def explain(scenario: Any, trace: Any, missing: Missing) -> Iterator[str]:
    """Interests and data go as many hops as the ttl says, and data goes only where an interest has been."""
    ttl = scenario.protocol.ttl
    yield from beyond(missing, ttl, f"The ttl of {ttl} hops of interests and data")
    yield from unheard(missing, "an interest")

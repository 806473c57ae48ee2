"""The former name of the accounts of readings that were not delivered; it goes with the next version."""

from __future__ import annotations

import warnings
from typing import Any

from workbench.sim.accounts import missing
from workbench.sim.explain import sentence


def ends(run: Any, most: int = 200) -> list[str]:
    """Return a sentence for each reading that was not delivered, the last published first; at most ``most`` of them.

    Warns that `workbench.sim.accounts.missing` takes its place. Raises ScenarioError if the run kept no trace.
    """
    warnings.warn(
        "workbench.sim.why_not.ends goes with the next version; use workbench.sim.accounts.missing(run), and "
        "workbench.sim.explain.sentence(scenario, account) for the words",
        DeprecationWarning,
        stacklevel=2,
    )
    return [sentence(run.scenario, account) for account in reversed(missing(run, most=most))]

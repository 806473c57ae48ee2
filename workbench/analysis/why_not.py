"""The former name of the accounts of readings that were not delivered; it goes with the next version."""

from __future__ import annotations

import warnings
from typing import Any

from workbench.analysis.accounts import missing
from workbench.analysis.explain import sentence


def ends(run: Any, most: int = 200) -> list[str]:
    """Return a sentence for each reading that was not delivered, the last published first; at most ``most`` of them.

    Warns that `workbench.analysis.accounts.missing` takes its place. Raises ScenarioError if the run kept no trace.
    """
    warnings.warn(
        "workbench.analysis.why_not.ends goes with the next version; use workbench.analysis.accounts.missing(run), and "
        "workbench.analysis.explain.sentence(scenario, account) for the words",
        DeprecationWarning,
        stacklevel=2,
    )
    return [sentence(run.scenario, account) for account in reversed(missing(run, most=most))]

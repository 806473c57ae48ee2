"""The scenario in a file that the workbench has written: ``wb.open_scenario(path)``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import DataError, WorkbenchError
from workbench.keywords import checked
from workbench.locations import local_path
from workbench.records.contents import read_contents
from workbench.records.link import from_fragment
from workbench.records.reproduction import build_scenario
from workbench.sim.scenario import Scenario


@checked
def open_scenario(path: str | Path) -> Scenario:
    """Return the scenario in a file or a link. If the file compares several runs, return the first run's scenario.

    path    a scenario as JSON, a figure or page with the record of a run, the Parquet file of a run, the folder of
            `Run.save`, or a link from the lab, which contains ``#s=``

    Raises DataError if the file has no scenario or is damaged, and ScenarioError if the scenario needs a protocol or
    filter of the user that has not been imported.
    """
    if isinstance(path, str) and "#s=" in path:
        return from_fragment(path)
    try:
        return _open_scenario(local_path(path, "path"))
    except WorkbenchError as error:
        raise type(error)(f"{path}: {error}") from None


def _open_scenario(path: Path) -> Scenario:
    file = read_contents(path)
    if file.scenario is not None:
        return Scenario.from_json(json.dumps(file.scenario))
    for record in file.records:
        runs = record.get("runs") if record.get("of") == "runs" else [record] if record.get("of") == "run" else None
        if isinstance(runs, list) and runs and isinstance(runs[0], Mapping):
            return build_scenario(runs[0].get("scenario"), record)
    raise DataError(
        "the file has no record of a run; a file of a sweep has a scenario in each row: "
        "pass the text in the column document to Scenario.from_json"
    )

"""A lab's file: the lab saves its scenario when it changes, and restores it after a reload, a crash or in a new kernel.

The file is JSON. It contains the scenario, the second protocol, and the parts of the workload whose nodes are not in
the network. It also contains the hash of the scenario with which the lab was opened: a lab that is opened with a
different scenario does not restore the file.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import tempfile
import threading
from pathlib import Path
from typing import Any

from workbench.errors import ScenarioError, WorkbenchError
from workbench.sim import workload
from workbench.sim.file_format import protocol_from_dict, protocol_to_dict
from workbench.sim.scenario import Scenario
from workbench.widgets.history import State

FOLDER = Path(".workbench")
FORMAT = "workbench-lab"
NAME = r"[\w-]{1,60}"
_PATIENCE_S = 0.3  # quick changes, as by a slider, are written once


def stored_names(folder: Path = FOLDER) -> list[str]:
    """Return the names of the labs that are stored in a folder, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.json") if re.fullmatch(NAME, path.stem))


class Store:
    """The file in which a lab saves its scenario: ``<name>.json``, where ``name`` is the lab's name.

    ``folder``: the folder of the file, by default ``.workbench`` in the notebook's folder.
    """

    def __init__(self, name: str, folder: Path = FOLDER) -> None:
        if not isinstance(name, str) or not re.fullmatch(NAME, name):
            raise ScenarioError(f"the lab's name is {name!r:.80}; it must have 1 to 60 letters, digits, _ or -")
        self.path = folder / f"{name}.json"
        self.message = ""  # a sentence for the user about a file that could not be read
        self.opened_with = ""  # hash of the scenario with which the lab in the file was opened, once it is read
        self._timer: threading.Timer | None = None
        self._pending_state: tuple[State, str] | None = None
        self._lock = threading.Lock()

    def read(self, opened_with: Scenario | None) -> State | None:
        """Return the stored state, or None if the file is missing or belongs to another scenario.

        ``opened_with``: the scenario with which the lab is opened now. A file is accepted only if its lab was opened
        with an equal scenario; None accepts every file. A file that cannot be read, for example because its
        protocol's module is not imported, is renamed; the attribute ``message`` gets the reason and the new name.
        """
        try:
            stored_values = json.loads(self.path.read_text(encoding="utf-8"))
            if opened_with is not None and stored_values["opened_with"] != opened_with.hash:
                return None
            state, self.opened_with = _parse_state(stored_values), str(stored_values["opened_with"])
            return state
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:  # WorkbenchErrors and JSON's are ValueErrors
            self._rename_file(error)
            return None

    def _rename_file(self, error: Exception) -> None:
        suffixes = itertools.count(1)
        new_path = next(path for n in suffixes if not (path := self.path.with_suffix(f".kept-{n}.json")).exists())
        try:
            self.path.replace(new_path)
        except OSError:
            return
        reason = str(error) if isinstance(error, WorkbenchError) else "it cannot be read"
        self.message = (
            f"The scenario that was composed here before cannot be shown: {reason}. Its file is now {new_path}."
        )

    def write(self, state: State, opened_with: str) -> None:
        """Write a lab's state to the file after a short delay. A call during the delay replaces the state to write.

        ``opened_with``: the hash of the scenario with which the lab was opened. Errors of the disk are ignored.
        """
        with self._lock:
            self._pending_state = state, opened_with
            if self._timer is None:
                self._timer = threading.Timer(_PATIENCE_S, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def write_now(self, state: State, opened_with: str) -> None:
        """Write a lab's state to the file at once; arguments as for `write`. Raises OSError if that fails."""
        with self._lock:
            self._replace_file(state, opened_with)

    def flush(self) -> None:
        """Write the state that waits to be written, if one waits. Errors of the disk are ignored."""
        with self._lock:
            pending, self._pending_state, self._timer = self._pending_state, None, None
            if pending is not None:
                try:
                    self._replace_file(*pending)
                except OSError:
                    return

    def _replace_file(self, state: State, opened_with: str) -> None:
        beside = None if state.beside is None else protocol_to_dict(state.beside)
        stored_values = {"format": FORMAT, "version": 1, "opened_with": opened_with, "beside": beside}
        stored_values["composed"] = (
            None if state.composed is None else [workload.to_dict(item) for item in state.composed]
        )
        stored_values["scenario"] = json.loads(state.scenario.to_json(indent=None))
        self.path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(stored_values, file)
            os.replace(temporary, self.path)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise


def _parse_state(values: Any) -> State:
    if values["format"] != FORMAT or values["version"] != 1:
        stored_format = f"{values['format']!r:.40}, version {values['version']!r:.40}"
        raise ScenarioError(
            f"the lab's file has the format {stored_format}; this workbench can only read {FORMAT!r}, version 1"
        )
    scenario = Scenario.from_json(json.dumps(values["scenario"]))
    beside, items = values["beside"], values.get("composed")
    composed = None if items is None else tuple(workload.from_dict(item, "workload item") for item in items)
    try:
        return State(scenario, None if beside is None else protocol_from_dict(beside), composed)
    except WorkbenchError:
        return State(scenario, None, composed)

"""The file format of scenarios: functions that convert a scenario to JSON and back. Hashes are digests of this form.

A file contains no code: a protocol is stored as its name and parameters, and other code of the user's own as its name.
The program that reads a file must have installed or imported the protocol and this code.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from workbench import attributes, plugins, public_names, topology
from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.protocols.protocol import Protocol, plain
from workbench.sim import workload
from workbench.sim.radio import Radio
from workbench.suggestion import meant

FORMAT = "workbench-scenario"
VERSION = 1
FIELDS = ("topology", "protocol", "workload", "radio", "duration_s", "seed")
_EXTRA = ("format", "version", "keys")
# Fields that version 0.1 did not have, with their defaults. JSON and hash leave out such a field at its default, so old
# scenarios keep their hashes. `Protocol.added` and `radio.ADDED` do the same for parameters and for the radio.
_ADDED: dict[str, Any] = {"keys": []}
Made = TypeVar("Made")


def to_dict(scenario: Any, network: Any) -> dict[str, Any]:
    """Return a scenario as plain values, ready for JSON; ``network``: its topology, already as plain values."""
    plain_fields = {
        "format": FORMAT,
        "version": VERSION,
        "topology": network,
        "protocol": protocol_to_dict(scenario.protocol),
        "workload": [workload.to_dict(item) for item in scenario.workload],
        "radio": scenario.radio.to_dict(),
        "duration_s": scenario.duration_s,
        "seed": scenario.seed,
        "keys": scenario.user_keys(),
    }
    return {name: value for name, value in plain_fields.items() if name not in _ADDED or value != _ADDED[name]}


def from_json(text: str, make: Callable[..., Made]) -> Made:
    """Return the scenario that a JSON text describes. Raises ScenarioError for a wrong field.

    ``make``: the class or function that creates the scenario; it is called with the scenario's fields as keywords.
    """
    try:
        scenario_fields = json.loads(text)
    except (ValueError, TypeError) as error:
        is_path = isinstance(text, os.PathLike) or (isinstance(text, str) and text.strip().endswith(".json"))
        hint = "; from_json takes the text of a file, Path(...).read_text()" if is_path else ""
        raise ScenarioError(f"the scenario is not JSON: {error}{hint}") from None
    except RecursionError:
        raise ScenarioError("the scenario is not valid: its JSON is nested too deep") from None
    if not isinstance(scenario_fields, dict) or scenario_fields.get("format") != FORMAT:
        raise ScenarioError(f'the text is not a scenario; it must be an object with "format": "{FORMAT}"')
    if scenario_fields.get("version") != VERSION:
        raise ScenarioError(
            f"the scenario has version {scenario_fields.get('version')!r}; this workbench reads {VERSION}"
        )
    for field_name in scenario_fields:
        if field_name not in FIELDS + _EXTRA:
            raise ScenarioError(
                f"a scenario has no field {field_name!r}{meant(field_name, FIELDS)}; it has: {', '.join(FIELDS)}"
            )
    for field_name in ("topology", "protocol"):
        if field_name not in scenario_fields:
            raise ScenarioError(f"the scenario has no {field_name}; it must have topology and protocol")
    return _from_dict(scenario_fields, make)


def _from_dict(values: dict[str, Any], make: Callable[..., Made]) -> Made:
    workload_items = values.get("workload", [])
    if not isinstance(workload_items, list):
        raise ScenarioError(f"workload is {workload_items!r}; it must be a list")
    _register_keys(values.get("keys", []))
    try:
        return make(
            topology=topology.from_dict(values["topology"]),
            protocol=protocol_from_dict(values["protocol"]),
            workload=tuple(workload.from_dict(item, f"workload item {i}") for i, item in enumerate(workload_items)),
            radio=Radio.from_dict(values.get("radio", {})),
            duration_s=values.get("duration_s", 60.0),
            seed=values.get("seed", 1),
        )
    except ScenarioError:
        raise
    except WorkbenchError as error:
        raise ScenarioError(str(error)) from None


def _register_keys(keys: Any) -> None:
    try:
        for key_number, key_name, type_, unit, steps_per_unit, minimum, maximum in keys:
            attributes.register_key(key_number, key_name, unit, steps_per_unit, type_, minimum, maximum)
    except WorkbenchError as error:
        raise ScenarioError(f"keys: {error}") from None
    except (TypeError, ValueError):
        raise ScenarioError(
            f"keys is {keys!r}; it must be a list of [number, name, type, unit, steps, minimum, maximum]"
        ) from None


def protocol_to_dict(protocol: Protocol) -> dict[str, Any]:
    """Return a protocol as plain values: its name and its parameters.

    A parameter that was added after the first version is left out if it has its default.
    """
    cls = protocol.public_class()
    protocol_name = cls.__name__
    if protocol_name not in public_names.PROTOCOLS or _load_public_class(protocol_name) is not cls:
        protocol_name = f"{cls.__module__}:{protocol_name}"
    try:
        plain_values = {"name": protocol_name, **{key: plain(value) for key, value in protocol.settings.items()}}
    except ParameterError as error:
        raise ScenarioError(str(error)) from None
    for parameter in protocol.parameters:
        if parameter.name in protocol.added and protocol.settings[parameter.name] == parameter.default:
            del plain_values[parameter.name]
        elif isinstance(parameter.default, float):
            plain_values[parameter.name] = float(plain_values[parameter.name])  # 30 and 30.0 are the same scenario
    return plain_values


def protocol_from_dict(values: Any) -> Protocol:
    """Return the protocol that the plain values of `protocol_to_dict` describe.

    Raises ScenarioError if the protocol is not installed, or if it lacks a parameter that the values name.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("name"), str):
        raise ScenarioError(f'protocol is {values!r}; it must be an object with a "name" and parameters')
    cls = _protocol_class(values["name"])
    settings = cls.settings_from_plain({name: value for name, value in values.items() if name != "name"})
    try:
        return cls(**settings)
    except ParameterError as error:
        raise ScenarioError(f"protocol: {error}") from None


def _protocol_class(name: str) -> type[Protocol]:
    if name in public_names.PROTOCOLS:
        return _load_public_class(name)
    module, _, class_name = name.rpartition(":")
    # A file must not cause an import: a protocol from elsewhere must be a plug-in, or be loaded already.
    loaded_class = getattr(sys.modules.get(module), class_name, None)
    if isinstance(loaded_class, type) and issubclass(loaded_class, Protocol):
        return loaded_class
    plugin_class = plugins.load("protocols", class_name)
    if plugin_class is not None and module in ("", plugin_class.__module__):
        return plugin_class
    known_names = sorted([*public_names.PROTOCOLS, *plugins.names("protocols")])
    hint = f"import {module} first" if module else f"known protocols: {', '.join(known_names)}"
    raise ScenarioError(f"the scenario's protocol {name!r} is not known here{meant(name, known_names)}; {hint}")


def known_protocols() -> list[str]:
    """Return the names of all protocols: the workbench's, and those of plug-ins."""
    return sorted([*public_names.PROTOCOLS, *plugins.load_all("protocols", public_names.PROTOCOLS)])


def _load_public_class(name: str) -> type[Protocol]:
    return getattr(importlib.import_module(f"workbench.{public_names.PROTOCOLS[name]}"), name)

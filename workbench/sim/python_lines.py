"""A scenario as the few lines of Python that build it, for a notebook's cell or a paper's appendix.

    print(python_lines(scenario))

Only values that differ from a default are written. Executed where `workbench` is imported as `wb`, the lines create a
scenario with the same hash.

Limits
    A network without a generator is written node by node and link by link. A protocol or a filter of the user's own is
    written by its name: its module must be imported, and its keys registered, before the lines run.
"""

from __future__ import annotations

import json
import pprint
from dataclasses import MISSING, fields
from typing import Any

from workbench import plugins, public_names, topology
from workbench.mobility import MobilityModel
from workbench.protocols.protocol import Protocol
from workbench.sensor_field import SensorField
from workbench.sim import workload
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.readings import Readings

_WIDTH = 116
_MAKERS = {cls: name for name, cls in workload.KINDS.items()}


def python_lines(scenario: Any) -> str:
    """Return lines of Python that build the scenario, ``scenario = wb.Scenario(...)``, without the import."""
    item_lines = "".join(f"        {_write_item(item)},\n" for item in scenario.workload)
    radio = _write_call("wb.Radio", _find_changed_fields(scenario.radio))
    argument_lines = [
        f"topology={_write_topology(scenario.topology)}",
        f"protocol={_write_protocol(scenario.protocol)}",
        f"workload=[\n{item_lines}    ]" if item_lines else "workload=[]",
        *([f"radio={radio}"] if radio != "wb.Radio()" else []),
        f"duration_s={scenario.duration_s!r}",
        f"seed={scenario.seed!r}",
    ]
    return (
        _write_keys(scenario)
        + "scenario = wb.Scenario(\n"
        + "".join(f"    {part},\n" for part in argument_lines)
        + ")\n"
    )


def _write_keys(scenario: Any) -> str:
    lines = []
    for number, name, type_, unit, steps, minimum, maximum in scenario.user_keys():
        lines.append(
            f"wb.register_key({number!r}, {name!r}, {unit!r}, {steps!r}, {type_!r}, {minimum!r}, {maximum!r})\n"
        )
    return "".join(lines)


def _write_topology(graph: Any) -> str:
    plain_form = topology.to_dict(graph)
    if "recipe" in plain_form:
        recipe = dict(plain_form["recipe"])
        generator_name = recipe.pop("kind")
        arguments = {name: value for name, value in recipe.items() if value is not None}
        return _write_call(f"wb.topology.{generator_name}", arguments)
    literal_text = pprint.pformat(json.loads(json.dumps(plain_form)), width=_WIDTH, compact=True, sort_dicts=False)
    indented_text = literal_text.replace("\n", "\n    ")
    return f"wb.topology.from_dict(\n    {indented_text}\n    )"


def _write_protocol(protocol: Protocol) -> str:
    cls = type(protocol).public_class()
    changed_settings: dict[str, Any] = {
        parameter.name: protocol.settings[parameter.name]
        for parameter in protocol.parameters
        if protocol.settings[parameter.name] != parameter.default
    }
    class_name = cls.__name__
    is_public = class_name in public_names.PROTOCOLS or plugins.load("protocols", class_name) is cls
    return _write_call(f"wb.{class_name}" if is_public else class_name, changed_settings)


def _write_item(item: Any) -> str:
    verb = next(verb for kind, verb in _MAKERS.items() if isinstance(item, kind))
    changed_fields = _find_changed_fields(item)
    if fields(item)[0].name != "at":  # a jammer, for example, is at no node
        return _write_call(f"wb.{verb}", changed_fields)
    nodes = changed_fields.pop("at", item.at)
    nodes_text = (
        repr(nodes[0])
        if isinstance(nodes, tuple) and len(nodes) == 1
        else repr(nodes if isinstance(nodes, str) else list(nodes))
    )
    return _write_call(f"wb.{verb}", changed_fields, nodes_text)


def _find_changed_fields(value: Any) -> dict[str, Any]:
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.default is MISSING or getattr(value, field.name) != field.default
    }


def _write_call(name: str, values: dict[str, Any], *positional: str) -> str:
    call_arguments = [*positional, *(f"{key}={_write_value(value)}" for key, value in values.items())]
    return f"{name}({', '.join(call_arguments)})"


def _write_value(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_write_value(item) for item in value)}]"
    if isinstance(value, SensorField):
        return _write_call("wb.SensorField", _find_changed_fields(value))
    if isinstance(value, (Readings, LinkQualities)):
        return _write_call(f"wb.{type(value).__name__}", value.to_dict())
    if isinstance(value, MobilityModel):
        parameters = {name: entry for name, entry in value.to_dict().items() if name != "kind" and entry is not None}
        return _write_call(f"wb.mobility.{type(value).__name__}", parameters)
    return f"wb.{value!r}" if hasattr(value, "user_code") else repr(value)

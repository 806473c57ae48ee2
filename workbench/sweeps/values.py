"""Values of varied parameters (numbers, texts, booleans, objects): their labels, and texts that identify them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import networkx as nx

from workbench.errors import WorkbenchError
from workbench.protocols.protocol import Protocol, plain
from workbench.sim.file_format import protocol_to_dict
from workbench.sim.radio import Radio
from workbench.sim.scenario import digest_of_network, normal_form
from workbench.sim.workload import Item, to_dict

WRONG = (WorkbenchError, TypeError, ValueError, AttributeError, KeyError)
_LONGEST_LABEL = 60


def to_native(value: Any) -> Any:
    """Convert a NumPy scalar to a Python value, so that ``np.arange`` gives the same values as ``range``."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; Python allows lone surrogates, which UTF-8 does not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def normalize_topology(graph: Any) -> Any:
    """Return a topology in the normal form of scenarios, so that each point need not check it again.

    An invalid topology is returned unchanged.
    """
    try:
        return normal_form(graph)
    except WRONG:
        return graph  # The point that uses it raises the error.


def identity_text(value: Any) -> str:
    """Return a text that identifies a value: the same text in all processes, a different text for a different value."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    try:
        return json.dumps(_to_json_values(value), sort_keys=True)
    except WRONG:  # No scenario accepts it; its point raises the error.
        return f"{type(value).__name__} {value!r}"


def _to_json_values(value: Any) -> Any:
    """Convert an object to JSON values that contain its type, because objects of two types may have equal fields."""
    if isinstance(value, nx.Graph):
        return {"network": digest_of_network(value)}
    if isinstance(value, Protocol):
        return {"protocol": protocol_to_dict(value)}
    if isinstance(value, Item):
        return {"item": to_dict(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_to_json_values(item) for item in value]
    if hasattr(value, "to_dict"):
        return {type(value).__name__: plain(value)}
    return plain(value)


def make_unique(labels: Iterable[Any]) -> list[Any]:
    """Return the labels with a number after each repeated text, which makes them unique: "Radio()", "Radio() #2"."""
    counts: dict[Any, int] = {}
    unique_labels = []
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
        unique_labels.append(f"{label} #{counts[label]}" if counts[label] > 1 and isinstance(label, str) else label)
    return unique_labels


def label(value: Any) -> Any:
    """Return the label of a value in tables: the value itself if it is a number, text or boolean, else a short text."""
    if isinstance(value, (bool, int, float, str)):
        return value
    text = _describe_value(value)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."


def _describe_value(value: Any) -> str:
    if isinstance(value, nx.Graph):
        return _describe_topology(value)
    if isinstance(value, Radio):
        changed_names = [f.name for f in fields(Radio) if getattr(value, f.name) != f.default]
        return f"Radio({', '.join(f'{name}={getattr(value, name)}' for name in changed_names)})".removesuffix("()")
    if isinstance(value, Protocol):
        return repr(value).removesuffix("()")
    if isinstance(value, Item):
        ((type_name, item_fields),) = to_dict(value).items()
        return (
            f"{type_name}({', '.join(f'{name}={item_fields[name]}' for name in ('at', 'what') if name in item_fields)})"
        )
    if isinstance(value, (list, tuple)):
        return " + ".join(str(label(item)) for item in value) or "none"
    return "none" if value is None else repr(value)


def _describe_topology(graph: nx.Graph) -> str:
    recipe = graph.graph.get("recipe") or {}
    arguments = ", ".join(f"{name}={value}" for name, value in recipe.items() if name != "kind")
    text = f"{recipe.get('kind')}({arguments})"
    if not recipe or len(text) > _LONGEST_LABEL:
        return f"{graph.graph.get('name') or recipe.get('kind') or 'network'} of {len(graph)} nodes"
    return text

"""Values that a sweep varies: numbers, texts, booleans and whole objects; how a table shows them, what they are."""

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


def native(value: Any) -> Any:
    """numpy's numbers as Python's own: a range made by ``np.arange`` is as good as one made by ``range``."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0 else value


def is_unicode(text: str) -> bool:
    """Return whether a text can be stored: Python's may have halves of surrogate pairs, which UTF-8 has not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def frozen(graph: Any) -> Any:
    """Return a topology as scenarios hold it, so that no point checks it again; a wrong topology as it is."""
    try:
        return normal_form(graph)
    except WRONG:
        return graph  # The point that has it reports what is wrong.


def words(value: Any) -> str:
    """What a value is, as text: the same in every process for values that are the same, other for any other."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return json.dumps(value)
    try:
        return json.dumps(_plain(value), sort_keys=True)
    except WRONG:  # No scenario can have it: its point says why.
        return f"{type(value).__name__} {value!r}"


def _plain(value: Any) -> Any:
    """Objects with the name of their kind: a radio is never a protocol, nor a list of items a list of numbers."""
    if isinstance(value, nx.Graph):
        return {"network": digest_of_network(value)}
    if isinstance(value, Protocol):
        return {"protocol": protocol_to_dict(value)}
    if isinstance(value, Item):
        return {"item": to_dict(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if hasattr(value, "to_dict"):
        return {type(value).__name__: plain(value)}
    return plain(value)


def unique(labels: Iterable[Any]) -> list[Any]:
    """Labels with a number after each text that was there before."""
    seen: dict[Any, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(f"{label} #{seen[label]}" if seen[label] > 1 and isinstance(label, str) else label)
    return found


def label(value: Any) -> Any:
    """The value itself if a table can show it (a number, a text, a boolean), else a short text."""
    if isinstance(value, (bool, int, float, str)):
        return value
    text = _describe(value)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 3] + "..."


def _describe(value: Any) -> str:
    if isinstance(value, nx.Graph):
        return _describe_topology(value)
    if isinstance(value, Radio):
        changed = [f.name for f in fields(Radio) if getattr(value, f.name) != f.default]
        return f"Radio({', '.join(f'{name}={getattr(value, name)}' for name in changed)})".removesuffix("()")
    if isinstance(value, Protocol):
        return repr(value).removesuffix("()")
    if isinstance(value, Item):
        ((kind, content),) = to_dict(value).items()
        return f"{kind}({', '.join(f'{name}={content[name]}' for name in ('at', 'what') if name in content)})"
    if isinstance(value, (list, tuple)):
        return " + ".join(str(label(one)) for one in value) or "none"
    return "none" if value is None else repr(value)


def _describe_topology(graph: nx.Graph) -> str:
    recipe = graph.graph.get("recipe") or {}
    arguments = ", ".join(f"{name}={value}" for name, value in recipe.items() if name != "kind")
    text = f"{recipe.get('kind')}({arguments})"
    if not recipe or len(text) > _LONGEST_LABEL:
        return f"{graph.graph.get('name') or recipe.get('kind') or 'network'} of {len(graph)} nodes"
    return text

"""What the text of TinyMQ's paper says of its figure 1, and whether it holds in a run."""

from __future__ import annotations

from typing import Any

from workbench.protocols.tinymq.views.overlay import overlay_of

_KEYS = {(6, 6): "", (9, 9): "", (6, 7): "01", (9, 4): "01", (6, 10): "0101"}


def paper_facts(run: Any, time_s: float) -> dict[str, bool]:
    """What the text says of figure 1, and whether it holds in a run at a time."""
    seen = overlay_of(run)
    places = seen.places_at(round(time_s * 1e6))
    keys = {(seen.roots[place.tree], place.node): place.key for place in places}
    children = {key: [p.key for p in places if (seen.roots[p.tree], p.parent) == key] for key in keys}
    facts = {
        f"node {node} has the key {key or 'φ'}": keys.get((root, node)) == key for (root, node), key in _KEYS.items()
    }
    facts["root 6 has the children 1, 01, 001 and 0001"] = set(children.get((6, 6), ())) == {"1", "01", "001", "0001"}
    facts["node 10 has one child, 01011"] = children.get((6, 10)) == ["01011"]
    return facts

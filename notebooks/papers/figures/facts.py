"""The statements of TinyMQ's paper about its figure 1, checked in a run."""

from __future__ import annotations

from typing import Any

from workbench.protocols.tinymq.views.overlay import overlay_of

_KEYS = {(6, 6): "", (9, 9): "", (6, 7): "01", (9, 4): "01", (6, 10): "0101"}


def paper_facts(run: Any, time_s: float) -> dict[str, bool]:
    """Return for each statement of the paper about figure 1 whether it holds in a run at ``time_s``."""
    overlay = overlay_of(run)
    positions = overlay.places_at(round(time_s * 1e6))
    keys = {(overlay.roots[position.tree], position.node): position.key for position in positions}
    children = {
        key: [position.key for position in positions if (overlay.roots[position.tree], position.parent) == key]
        for key in keys
    }
    facts = {
        f"node {node} has the key {key or 'φ'}": keys.get((root, node)) == key for (root, node), key in _KEYS.items()
    }
    facts["root 6 has the children 1, 01, 001 and 0001"] = set(children.get((6, 6), ())) == {"1", "01", "001", "0001"}
    facts["node 10 has one child, 01011"] = children.get((6, 10)) == ["01011"]
    return facts

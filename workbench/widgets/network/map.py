"""The map of a network with which it is changed: a canvas in an anywidget.

Python sends a network as one parcel of columns; the browser sends single edits, and Python answers with the parcel of
the new network. Roles and picked nodes are small traits beside it. ``map.js`` stands on the player's map.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import networkx as nx
import traitlets

from workbench.views import nodes
from workbench.views.layout import LINKS_PER_NODE, lay_out
from workbench.views.player.embed import part
from workbench.views.player.once import LoadedOnce
from workbench.views.player.parcel import Buffer, ground_of, look_of, written

TOOLS = ("select", "node", "link", "erase")
ASKS = ("sink", "source", "fail", "subscribe", "publish")
ROLES = {"sink": nodes.SINK, "source": nodes.SOURCE, "down": nodes.FAILED}
MOST_LINKS = 8000  # that are drawn and can be clicked; of more than these the best of each node
_OF_THE_PLAYER = ("parcel", "paint", "theme", "map")


@cache
def _script() -> str:
    return "\n".join([*(part(f"{name}.js") for name in _OF_THE_PLAYER), _own("map.js")])


def _own(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


class NetworkMap(LoadedOnce):
    """A network to look at and to change.

    parcel: the network (`packed`). roles: [[node, role of `ROLES`], ...]. picked: nodes. tool: one of `TOOLS`.
    asks: which of `ASKS` have a button. history: {"undo": whether there is something to undo, "redo": ...}, or empty:
    no buttons. said: a sentence below the map; is_error: whether that is one of something wrong.

    Edits come as messages: {"kind": "move" | "add" | "join" | "quality" | "erase" | "ask" | "undo" | "redo", ...}.
    """

    script = traitlets.Unicode(_script()).tag(sync=True)
    _css = part("player.css") + _own("map.css")
    parcel = traitlets.Bytes().tag(sync=True)
    roles = traitlets.List().tag(sync=True)
    picked = traitlets.List(traitlets.Int()).tag(sync=True)
    tool = traitlets.Enum(TOOLS, "select").tag(sync=True)
    asks = traitlets.List(traitlets.Unicode()).tag(sync=True)
    history = traitlets.Dict().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    is_error = traitlets.Bool().tag(sync=True)


def packed(graph: nx.DiGraph, notes: Iterable[str] = ()) -> bytes:
    """A network as a parcel for the map. ``notes``: sentences that stand below it."""
    is_dense = graph.number_of_edges() > 2 * MOST_LINKS
    plan = lay_out(graph, LINKS_PER_NODE if is_dense else len(graph))
    buffer = Buffer()
    looks = {name: look_of(look) for name, look in ROLES.items()}
    header = {**ground_of(plan, buffer), "layers": [], "roles": looks, "notes": [*notes, *plan.notes]}
    return written(header, buffer)

"""What the browser is sent of a mesh, once: links, filters and publications as plain columns.

Nodes become places in the plan, times become seconds, and tables are in order of their beginning. Rows about nodes that
are not in the plan are left out. Of very many spans the first ones are sent, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.protocols.dps.views.looks import percent
from workbench.protocols.dps.views.mesh import EVERYTHING, MUTED, Mesh
from workbench.protocols.dps.views.publications import REASONS, Path, paths
from workbench.views.ground import Plan

HOPS = ("useful", "in vain", "repeated", "lost", "acknowledged")
MARKS = ("delivered", *REASONS)
STATES = ("linking", "active", MUTED, "unmuting", "unlinking")
MOST_SPANS = 60_000

Table = dict[str, Any]


@dataclass
class Packed:
    """tables: columns by kind; names: of the publications, and texts: their paths in a sentence; notes: what was left
    out."""

    tables: dict[str, Table]
    names: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pack(run: Any, seen: Mesh, plan: Plan) -> Packed:
    """Everything that the browser needs of a run's mesh."""
    packed = Packed({})
    packed.tables["links"] = _links(seen, plan, packed)
    packed.tables["told"] = _told(seen, plan, packed)
    packed.tables["sums"] = _sums(seen, plan, packed)
    ways = paths(run)
    packed.names = [way.what.name for way in ways]
    packed.texts = [way.in_words() for way in ways]
    packed.tables |= _paths(ways, plan, packed)
    return packed


def _times(spans: Any) -> Table:
    return {
        "from": np.array([span.from_us for span in spans]) / 1e6,
        "until": np.array([span.until_us for span in spans]) / 1e6,
    }


def _most(name: str, spans: list[Any], packed: Packed) -> list[Any]:
    if len(spans) > MOST_SPANS:
        packed.notes.append(f"Of {len(spans):,} {name} the first {MOST_SPANS:,} are drawn.")
    return spans[:MOST_SPANS]


def _places(plan: Plan, nodes: list[int]) -> np.ndarray:
    return plan.place(np.array(nodes, dtype=np.int64)).astype(np.int32)


def _links(seen: Mesh, plan: Plan, packed: Packed) -> Table:
    """Each end of each link: what state it sees."""
    spans = _most("changes of links", list(seen.links), packed)
    table = {"node": _places(plan, [s.node for s in spans]), "peer": _places(plan, [s.peer for s in spans])}
    table["state"] = np.array([STATES.index(span.state) for span in spans], dtype=np.int8)
    return _known(table | _times(spans))


def _told(seen: Mesh, plan: Plan, packed: Packed) -> Table:
    spans = _most("filters of links", [span for span in seen.filters if span.peer != EVERYTHING], packed)
    table = {"node": _places(plan, [s.node for s in spans]), "peer": _places(plan, [s.peer for s in spans])}
    table["bits"] = np.array([span.bits for span in spans], dtype=np.int32)
    return _known(table | _times(spans))


def _sums(seen: Mesh, plan: Plan, packed: Packed) -> Table:
    spans = _most("filters of nodes", [span for span in seen.filters if span.peer == EVERYTHING], packed)
    table: Table = {"node": _places(plan, [span.node for span in spans])}
    table["bits"] = np.array([span.bits for span in spans], dtype=np.int32)
    table["label"] = [percent(seen.fill(span.bits)) for span in spans]
    return _known(table | _times(spans))


def _paths(ways: list[Path], plan: Plan, packed: Packed) -> dict[str, Table]:
    hops = [(which, hop) for which, way in enumerate(ways) for hop in way.hops]
    hops = _most("hops of publications", hops, packed)
    marks = [(which, mark) for which, way in enumerate(ways) for mark in way.marks]
    table = {
        "node": _places(plan, [hop.sender for _, hop in hops]),
        "peer": _places(plan, [hop.receiver for _, hop in hops]),
        "path": np.array([which for which, _ in hops], dtype=np.int32),
        "look": np.array([HOPS.index(hop.look) for _, hop in hops], dtype=np.int8),
        "at": np.array([hop.arrived_us for _, hop in hops]) / 1e6,
    }
    told = {
        "node": _places(plan, [mark.node for _, mark in marks]),
        "path": np.array([which for which, _ in marks], dtype=np.int32),
        "look": np.array([MARKS.index(mark.look) for _, mark in marks], dtype=np.int8),
        "at": np.array([mark.at_us for _, mark in marks]) / 1e6,
    }
    published = {"at": np.array([way.what.at_us for way in ways]) / 1e6}
    return {"hops": _known(table), "marks": _known(told), "published": published}


def _known(table: Table) -> Table:
    """The rows whose nodes are in the plan."""
    kept = table["node"] >= 0
    if "peer" in table:
        kept &= table["peer"] >= 0
    places = np.flatnonzero(kept)
    return {
        name: [column[i] for i in places.tolist()] if isinstance(column, list) else column[places]
        for name, column in table.items()
    }

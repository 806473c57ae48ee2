"""What the browser is sent, once: intervals, film, counters and timeline as plain columns.

Nodes become places in the plan (a row of it), times become seconds, words become codes. Rows about nodes that are
not in the plan are left out.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.views import palette
from workbench.views.ground import Plan
from workbench.views.player.columns import Columns
from workbench.views.player.counters import Counted
from workbench.views.player.inspector import ROLES
from workbench.views.player.intervals import Intervals, Table

FRAMES = ("interest_wave", "data_packet", "reinforcement_packet")
MOST_GRADIENTS = 120_000
MOST_MARKS = 12_000

_TIMES = ("from", "until")
# The columns the browser needs of each kind.
NEEDED = {
    "node_state": ("node", "look", "weight", *_TIMES),
    "failed": ("node", *_TIMES),
    "gradient": ("node", "peer", "origin", "look", "weight", "value", *_TIMES),
    "reinforced": ("node", "peer", "origin", *_TIMES),
    "interest_wave": ("node", "look", *_TIMES),
    "data_packet": ("node", "peer", "look", "weight", *_TIMES),
    "reinforcement_packet": ("node", "peer", "look", "weight", *_TIMES),
    "lost": ("node", "peer", "weight", *_TIMES),
    "subscription": ("node", "sequence", "text", "value", *_TIMES),
    "interest": ("node", "origin", "text", "value", *_TIMES),
    "data_gradient": ("node", "origin", "peer", *_TIMES),
    "blacklisted": ("node", "peer", *_TIMES),
    "decoding": ("node", "peer", "origin", "sequence", "value", "weight", "text", *_TIMES),
}


class Words:
    """A list of words without repetition; a word's code is its place."""

    def __init__(self, words: tuple[str, ...] = ()) -> None:
        self.list = list(words)
        self._codes = {word: code for code, word in enumerate(words)}

    def codes(self, texts: np.ndarray) -> np.ndarray:
        """The codes of some texts, new ones added; int32, shape (len(texts),)."""
        unique, inverse = np.unique(texts.astype(str), return_inverse=True)
        codes = [self._code(str(text)) for text in unique]
        return np.array(codes, dtype=np.int32)[inverse] if codes else np.array([], dtype=np.int32)

    def _code(self, text: str) -> int:
        if text not in self._codes:
            self._codes[text] = len(self.list)
            self.list.append(text)
        return self._codes[text]


def pack(seen: Intervals, plan: Plan, words: Words) -> tuple[dict[str, dict[str, np.ndarray]], list[str]]:
    """The columns of every kind of interval, and sentences about what was left out."""
    packed = {}
    for what, needed in NEEDED.items():
        packed[what] = _packed(what, seen[what], plan, needed, words)
    notes = []
    gradients = packed["gradient"]
    if len(gradients["node"]) > MOST_GRADIENTS:
        head = gradients["look"] == words.codes(np.array(["head"]))[0]
        packed["gradient"] = {name: column[head] for name, column in gradients.items()}
        notes.append("Gradients in reserve are left out of this page: there are too many of them.")
    return packed, notes


def _packed(what: str, table: Table, plan: Plan, needed: tuple[str, ...], words: Words) -> dict[str, np.ndarray]:
    made: dict[str, np.ndarray] = {
        "node": plan.place(table["node"]).astype(np.int32),
        "peer": plan.place(table["peer"]).astype(np.int32),
        "origin": table["origin"],
        "sequence": table["sequence"].astype(np.int32),
        "from": table["from_us"] / 1e6,
        "until": table["until_us"] / 1e6,
        "value": table["value"].astype(np.float64),
        "weight": table["weight"].astype(np.float32),
    }
    if "look" in needed:
        made["look"] = _roles(table["look"]) if what == "node_state" else words.codes(table["look"])
    if "text" in needed:
        made["text"] = words.codes(table["text"])
    known = made["node"] >= 0
    if "peer" in needed:
        known &= made["peer"] >= 0
    return {name: np.ascontiguousarray(made[name][known]) for name in needed}


def _roles(looks: np.ndarray) -> np.ndarray:
    codes = {role: code for code, role in enumerate(ROLES)}
    return np.array([codes[look] for look in looks.tolist()], dtype=np.int32)


def pack_plan(plan: Plan, counted: Counted) -> dict[str, np.ndarray]:
    """The nodes: position, number, and the first row of theirs in the counters."""
    place = plan.place(counted.node)
    first = np.searchsorted(place[place >= 0], np.arange(len(plan.ids)))
    return {"x": plan.x_m, "y": plan.y_m, "id": plan.ids.astype(np.int32), "first": first.astype(np.int32)}


def pack_counted(counted: Counted, plan: Plan) -> dict[str, np.ndarray]:
    """The counters, in order of place and time."""
    known = plan.place(counted.node) >= 0
    return {"time": (counted.time_us / 1e6)[known], "kind": counted.kind[known].astype(np.int32)}


def poster_us(seen: Intervals, columns: Columns) -> int:
    """A telling moment to open with: a message on its last hop to the sink, the first one after the path of an
    earlier one was reinforced, else the very first; without deliveries, when half of those that came to hold the first
    event did, else the run's middle."""
    rows = columns.where(event="delivered")
    if not len(rows):
        held = columns.where(event="held")
        first = held[columns["sequence"][held] == columns["sequence"][held[0]]] if len(held) else held
        return int(np.median(columns["time_us"][first])) if len(first) > 1 else seen.duration_us // 2
    times = columns["time_us"][rows]
    reinforced = seen["reinforced"]["from_us"]
    later = np.flatnonzero(times > reinforced[0] + 1_000_000) if len(reinforced) else []
    row = rows[later[0]] if len(later) else rows[0]
    time_us = int(columns["time_us"][row])
    packets = seen["data_packet"]
    arriving = np.flatnonzero((packets["peer"] == columns["node"][row]) & (packets["from_us"] < time_us))
    if not len(arriving):
        return time_us
    return int((packets["from_us"][arriving[-1]] + packets["until_us"][arriving[-1]]) // 2)


def marks(columns: Columns, rows_of: dict[int, int], most: int = MOST_MARKS) -> tuple[dict[str, Table], list[str]]:
    """The timeline's marks by kind: time_s, y (the row of the node), node; and what was left out.

    rows_of: node -> its row on the timeline.
    """
    chosen: dict[str, np.ndarray] = {}
    sent = columns.where(event="sent")
    messages = columns.text("message", sent)
    for message in sorted(set(messages)):
        chosen[message or "other"] = sent[messages == message]
    chosen["lost"] = columns.where(event="lost")
    chosen["delivered"] = columns.where(event="delivered")
    found, notes = {}, []
    for name, rows in chosen.items():
        step = max(1, -(-len(rows) // most))
        if step > 1:
            notes.append(f"The timeline shows one in {step} of {len(rows):,} {mark_name(name)} marks.")
        kept = rows[::step]
        nodes = columns["node"][kept]
        y = np.array([rows_of.get(node, -1) for node in nodes.tolist()], dtype=np.int32)
        found[name] = {"x": columns["time_us"][kept] / 1e6, "y": y, "node": nodes}
    return {name: table for name, table in found.items() if len(table["x"])}, notes


def mark_name(name: str) -> str:
    """What a kind of mark is called in words."""
    return name if name in ("lost", "delivered") else f"{name} sent"


def mark_colour(name: str, colours: Mapping[str, str]) -> str:
    """The colour of a kind of mark; ``colours``: those of messages."""
    return {"lost": palette.LOST, "delivered": palette.DELIVERED}.get(name) or palette.message_colour(name, colours)


def timeline_rows(plan: Plan, hops: dict[int, int]) -> tuple[dict[int, int], list[tuple[float, str]]]:
    """Each node's row, nearest to the sink first, and ticks (where, hops) for the axis."""
    ordered: list[Any] = sorted(plan.ids.tolist(), key=lambda node: (hops.get(node, 1 << 30), node))
    groups: dict[int, list[int]] = {}
    for row, node in enumerate(ordered):
        groups.setdefault(hops.get(node, -1), []).append(row)
    ticks: list[tuple[float, str]] = []
    for distance, rows in groups.items():
        middle = sum(rows) / len(rows)
        if not ticks or middle - ticks[-1][0] > 0.08 * len(ordered):  # room for its label
            ticks.append((middle, "–" if distance < 0 else str(distance)))
    return {node: row for row, node in enumerate(ordered)}, ticks

"""What the player shows of coded diffusion: how far nodes are with decoding, by shades, and their matrices.

    layers(recorded)    decoding

Theory of operation
    Nodes are shaded by their ranks (`ranks`) of the newest event of its origin. What they have of older ones is in the
    inspector alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from workbench.columns import argsort, row_keys
from workbench.protocols.coded_diffusion.views.ranks import lasting, pivots
from workbench.sim.rows import Columns
from workbench.views import palette
from workbench.views.layers import Layer, Look, Recorded, Scale, Section, table
from workbench.views.spans import FOREVER_US, within

SHADES = 33

DECODING = Look("has coded packets (stronger: more)", palette.RANK_HIGH, rank=4, mark="node")
OLDER = Look("")
RANKS = Scale(
    "rank over generation size", tuple(palette.rank_colour(shade / (SHADES - 1)) for shade in range(SHADES)), "0", "1"
)
_COLUMNS = (("source", "origin", "node"), ("event", "sequence", "number"), ("rank", "value", "number"))
_PIVOTS = (("pivots", "text", "word"), ("matrix", "text", "echelon"))
_FROM = ("last from", "peer", "node")


def layers(recorded: Recorded) -> list[Layer]:
    """The ranks of nodes, as far as they do not hold an event yet."""
    columns = recorded.columns
    rows, until, follows, size = lasting(columns)
    if not len(rows):
        return []
    found = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence", "value")}
    weight, numbers = found["value"] / size, np.arange(len(rows))
    start, newest = columns["time_us"][rows], _next_event_us(columns, rows)
    # Shaded until its origin makes the next event; for the inspector from then on.
    both = {
        name: np.concatenate([column, column]) for name, column in {**found, "text": numbers, "weight": weight}.items()
    }
    both["from_us"] = np.concatenate([start, np.maximum(start, newest)])
    both["until_us"] = np.concatenate([np.minimum(until, newest), until])
    both["look"] = np.repeat([0, 1], len(rows))
    shown = table(**within(both, recorded.duration_us))
    number = shown.pop("text")

    def told() -> Layer:
        text, words = pivots(columns, rows, follows)
        notes = () if words else ("The pivots of decoding matrices are left out: there are too many of them.",)
        section = Section("Decoding", (*_COLUMNS, *(_PIVOTS if words else ()), _FROM))
        written = {**shown, "text": text[number].astype(np.int32)}
        return replace(drawn, table=written, section=section, words=words, notes=notes, add_texts=None)

    drawn = Layer("decoding", shown, (DECODING, OLDER), scale=RANKS, add_texts=told)
    return [drawn]


def _next_event_us(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """When the origin of each row's event made the next one, for ever if it made none."""
    made = columns.where(event="originated")
    both = np.concatenate([made, rows])
    origin = columns["origin"][both]
    event = row_keys(origin, columns["sequence"][both])
    order = argsort(event[: len(made)])
    after = np.searchsorted(event[order], event[len(made) :], "right")
    following = np.append(order, -1)[after]
    is_same = (following >= 0) & (origin[following] == origin[len(made) :])
    return np.where(is_same, columns["time_us"][both[following]], FOREVER_US)

"""Messages that can be followed, in protocols that bring no ways of their own: who got a publication from whom.

    followed(recorded, sent)    -> (Ways, [Layer])

Theory of operation
    A publication is told by its origin and number. It went from ``peer`` to ``node`` where a node came to hold it from
    a neighbor, and where a frame of it to one node was received. A frame of it is any frame with the name of a message
    that begins, is held or is delivered somewhere in the run; an interest of that number is not.
"""

from __future__ import annotations

import numpy as np

from workbench.views import palette
from workbench.views.frames import Sent
from workbench.views.layers import NO_WAYS, Layer, Look, Recorded, Way, Ways, table
from workbench.views.player.columns import Columns

MOST_WAYS = 1_000
MOST_ROWS = 60_000

HOP = Look("its way", palette.DATA, 0.22, 1.6, lane=0.25)
DELIVERED = Look("delivered", palette.DELIVERED, 2.0, 13, 2.2, mark="ring")
DROPPED = Look("dropped", palette.LOST, 0.9, 7, 1.8, mark="cross")


def followed(recorded: Recorded, sent: Sent) -> tuple[Ways, list[Layer]]:
    """The publications of a run, and the layer of their ways."""
    columns = recorded.columns
    made = columns.where(event="originated")
    made = made[_first_of_each(columns, made)]
    if not len(made):
        return NO_WAYS, []
    carriers = _carriers(columns)
    hops = _hops(columns, sent, carriers)
    ends = [(1, columns.where(event="delivered")), (2, columns.where(event="dropped"))]
    rows = np.concatenate([hops, *(one for _, one in ends)])
    look = np.concatenate([np.zeros(len(hops)), *(np.full(len(one), which) for which, one in ends)])
    way = _numbers(columns, made, rows)
    is_carrier = np.isin(columns.codes["message"][rows], carriers)
    known = (way >= 0) & is_carrier
    rows, look, way = rows[known], look[known], way[known]
    most = _most(way, len(made))
    rows, look, way = rows[way < most], look[way < most], way[way < most]
    notes: tuple[str, ...] = ()
    if most < len(made):
        notes = (f"Of {len(made):,} publications the first {most:,} can be followed.",)
    ways = Ways(_ways(columns, made[:most], carriers), is_newest=False, notes=notes)
    found = {name: columns[name][rows] for name in ("peer", "node", "origin", "sequence")}
    is_hop = look == 0
    # An arrow goes from its node to its peer.
    found["node"], found["peer"] = (
        np.where(is_hop, found["peer"], found["node"]),
        np.where(is_hop, found["node"], found["peer"]),
    )
    start = np.minimum(columns["time_us"][rows], recorded.duration_us - 1)
    found |= {"from_us": start, "until_us": np.full(len(rows), recorded.duration_us), "look": look, "way": way}
    found |= {"text": np.where(look == 2, columns.codes["detail"][rows], -1)}
    layer = Layer("way", table(**found), (HOP, DELIVERED, DROPPED), "arrow", words=columns.words["detail"], of_way=True)
    return ways, [layer]


def _first_of_each(columns: Columns, rows: np.ndarray) -> np.ndarray:
    """Of rows the first one of each publication, in order of time."""
    told = np.stack([columns["origin"][rows], columns["sequence"][rows]])
    return np.sort(np.unique(told, axis=1, return_index=True)[1])


def _carriers(columns: Columns) -> np.ndarray:
    """Codes of the names of messages that carry publications."""
    rows = columns.where(event=("originated", "held", "delivered"))
    return np.unique(columns.codes["message"][rows])


def _hops(columns: Columns, sent: Sent, carriers: np.ndarray) -> np.ndarray:
    """Rows at which a publication got from ``peer`` to ``node``."""
    held = columns.where(event="held")
    held = held[columns["peer"][held] >= 0]
    received = columns.where(event="received")
    of = np.searchsorted(sent.rows, received) - 1
    is_unicast = columns["peer"][sent.rows[of]] >= 0 if len(of) else np.zeros(0, bool)
    # A node holds what it receives for the first time right away: such a hop counts once.
    unicast = received[is_unicast & np.isin(columns.codes["message"][received], carriers)]
    both = np.concatenate([unicast, held])
    told = [columns[name][both] for name in ("node", "peer", "origin", "sequence", "time_us")]
    first = np.unique(np.stack(told), axis=1, return_index=True)[1] if len(both) else np.zeros(0, np.int64)
    return np.sort(both[first])


def _numbers(columns: Columns, made: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which publication (a row of ``made``) each row of the trace is about; -1 none."""
    both = np.concatenate([made, rows])
    told = np.stack([columns["origin"][both], columns["sequence"][both]])
    key = np.unique(told, axis=1, return_inverse=True)[1].reshape(-1)
    number = np.full(int(key.max()) + 1, -1)
    number[key[: len(made)]] = np.arange(len(made))
    return number[key[len(made) :]]


def _most(way: np.ndarray, ways: int) -> int:
    """How many publications, from the first on, have few enough rows; at least one."""
    rows = np.cumsum(np.bincount(way, minlength=ways))
    return int(np.clip(np.searchsorted(rows, MOST_ROWS, "right"), 1, min(ways, MOST_WAYS)))


def _ways(columns: Columns, made: np.ndarray, carriers: np.ndarray) -> tuple[Way, ...]:
    names = [columns.words["message"][code] for code in carriers.tolist()]
    told = [columns[name][made].tolist() for name in ("origin", "sequence", "time_us")]
    ways = []
    for origin, sequence, time_us in zip(*told, strict=True):
        frames = tuple((origin, sequence, name) for name in names)
        ways.append(Way(f"publication {sequence} of node {origin}", time_us, frames))
    return tuple(ways)

"""What there is to see in a run, as intervals of time: the one thing all views draw.

Theory of operation
    ``intervals(trace, duration_us)`` makes one table per kind, each sorted by ``from_us``; a view picks the rows that
    are alive at its time. States (roles, interests, gradients) are replayed from the few rows that change them;
    frames are computed with numpy over the many rows that tell of them, so the cost is linear in the trace.

    node_state            a node is a sink, a source, holds the newest event of its origin (in protocols that
                          disseminate), has coded packets of it (weight: its rank over m), or has heard the interest
                          (look: sink, source, holds, decoding, heard)
    failed                a node is down
    subscription, interest, gradient, reinforced, data_gradient, blacklisted
                          what a node knows; a gradient's look is head (it carries data) or reserve, and its weight
                          is its class of use: 0 if no data went over this link so far, then 1, 2, 3, ... from the
                          1st, 4th, 16th, ... data frame on. ``value`` is when it expires, in µs
    decoding              a node has ``value`` innovative packets of an event that it does not hold yet; weight: rank
                          over m; text: the columns of its pivots, "0 3"
    interest_wave         a broadcast in the air, of any message (look: the message's name)
    data_packet, reinforcement_packet
                          a unicast frame on its way from ``node`` to ``peer`` (look: the message's name); weight is
                          how far it gets, 1 or, if it is lost, ``LOST_AT``
    lost                  a frame that did not arrive at ``node`` from ``peer`` (look: the reason), weight 1 if it was
                          sent to this node alone and 0 if it was a broadcast

    A frame is shown for its airtime, and at least for a moment of film (``film.VISIBLE_S``); a loss begins where the
    picture of the frame ends. Of kinds with more than ``most`` intervals every n-th is kept, and ``notes`` says so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.views.player.columns import Columns, read
from workbench.views.player.decoding import decoding_spans, generation_sizes
from workbench.views.player.film import Film, shoot
from workbench.views.player.replay import Replay, Span

MOST_INTERVALS = 60_000
LOST_AT = 0.6
WEIGHT_BASE = 4
WEIGHT_CLASSES = 6

Table = dict[str, np.ndarray]

_TYPES = {
    "node": np.int32,
    "peer": np.int32,
    "origin": np.int32,
    "sequence": np.int64,
    "from_us": np.int64,
    "until_us": np.int64,
    "look": object,
    "value": np.int64,
    "text": object,
    "weight": np.float32,
}
FIELDS = tuple(_TYPES)


@dataclass(frozen=True)
class Intervals:
    """Tables by kind (columns ``FIELDS``, each shape (rows,)), the run's film, and what was left out."""

    tables: dict[str, Table]
    film: Film
    duration_us: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, what: str) -> Table:
        """The table of one kind; a kind that never happened is an empty table."""
        return self.tables.get(what) or _table({})

    def alive(self, what: str, time_us: int) -> Table:
        """The rows of one kind with from <= time < until (at the run's end: those that last to the end)."""
        table = self[what]
        time_us = min(time_us, self.duration_us - 1)
        rows = (table["from_us"] <= time_us) & (table["until_us"] > time_us)
        return {name: column[rows] for name, column in table.items()}

    def frame(self) -> Any:
        """All kinds in one pandas frame, with a column ``what``, in order of ``from_us``."""
        import pandas as pd

        frames = [pd.DataFrame({"what": what, **table}) for what, table in self.tables.items()]
        return pd.concat(frames, ignore_index=True).sort_values("from_us", kind="stable", ignore_index=True)


def intervals(trace: pa.Table, duration_us: int, most: int = MOST_INTERVALS) -> Intervals:
    """The intervals of a run from its trace; ``most`` bounds the frames and losses that are kept.

    Raises DataError if the table is no trace.
    """
    columns = read(trace)
    frames = _frames(columns)
    film = shoot(frames["from_us"], frames["until_us"], duration_us)
    frames["until_us"] = np.minimum(film.visible_until(frames["from_us"], frames["until_us"]), duration_us)
    tables = {what: _from_spans(spans) for what, spans in Replay(duration_us).run(columns).items()}
    holders, notes = _holders(columns, duration_us, most)
    tables["decoding"] = _decoding(columns, duration_us)
    newest = _until_next(tables["decoding"], columns, duration_us)
    for table in (_publishers(columns, duration_us), holders, newest):
        tables["node_state"] = _sorted(_join(tables["node_state"], table))
    tables["gradient"] = _weighed(tables["gradient"], columns)
    tables["lost"] = _losses(columns, frames, film, duration_us)
    tables.update(_by_kind(frames))
    for what in ("interest_wave", "data_packet", "reinforcement_packet", "lost"):
        tables[what], note = _thinned(what, tables[what], most)
        notes += note
    return Intervals(tables, film, duration_us, tuple(notes))


def _table(columns: dict[str, np.ndarray], rows: int = 0) -> Table:
    """A table from some of its columns; the others get a neutral value."""
    neutral = {"peer": -1, "origin": -1, "look": "", "text": ""}
    table = {}
    for name, kind in _TYPES.items():
        column = columns.get(name)
        if column is None:
            column = np.full(rows, neutral.get(name, 0), dtype=kind)
        table[name] = np.asarray(column, dtype=kind)
    return table


def _sorted(table: Table) -> Table:
    order = np.argsort(table["from_us"], kind="stable")
    return {name: column[order] for name, column in table.items()}


def _join(one: Table, other: Table) -> Table:
    return {name: np.concatenate([one[name], other[name]]) for name in FIELDS}


def _from_spans(spans: list[Span]) -> Table:
    if not spans:
        return _table({})
    columns = dict(zip(Span._fields, zip(*spans, strict=True), strict=True))
    made = {name: np.array(values, dtype=_TYPES[name]) for name, values in columns.items()}
    return _sorted(_table(made, len(spans)))


def _publishers(columns: Columns, duration_us: int) -> Table:
    """Nodes are sources from their first publication on."""
    rows = columns.where(event="published")
    nodes, first = np.unique(columns["node"][rows], return_index=True)
    start = columns["time_us"][rows][first]
    looks = np.full(len(nodes), "source", dtype=object)
    made = {"node": nodes, "from_us": start, "until_us": np.full(len(nodes), duration_us), "look": looks}
    table = _table(made, len(nodes))
    return {name: column[start < duration_us] for name, column in table.items()}


def _holders(columns: Columns, duration_us: int, most: int) -> tuple[Table, list[str]]:
    """Nodes hold an event from when they got it until its origin makes the next one. Sinks are shown as sinks."""
    held, made = columns.where(event="held"), columns.where(event="originated")
    sinks = np.unique(columns["node"][columns.where(event="subscribed")])
    held = held[~np.isin(columns["node"][held], sinks)]
    origins, sequences = columns["origin"][held], columns["sequence"][held]
    notes = []
    if len(held) > most:
        step = -(-len(held) // most)
        kept = sequences % step == 0
        held, origins = held[kept], origins[kept]
        notes.append(f"Who holds an event is shown for one in {step} events.")
    start = columns["time_us"][held]
    until = np.full(len(held), duration_us, dtype=np.int64)
    # Per origin, the first row after the held one that originates; rows are in order of time.
    key = np.int64(columns.rows + 1)
    makers = columns["origin"][made].astype(np.int64) * key + made
    order = np.argsort(makers)
    after = np.searchsorted(makers[order], origins.astype(np.int64) * key + held)
    is_followed = after < len(made)
    following = made[order[after[is_followed]]]
    until[is_followed] = columns["time_us"][following]
    until[is_followed] = np.where(columns["origin"][following] == origins[is_followed], until[is_followed], duration_us)
    looks = np.full(len(held), "holds", dtype=object)
    columns_made = {"node": columns["node"][held], "from_us": start, "until_us": until, "look": looks}
    columns_made |= {"origin": origins}
    table = _table(columns_made, len(held))
    lasting = table["from_us"] < table["until_us"]
    return {name: column[lasting] for name, column in table.items()}, notes


def _decoding(columns: Columns, duration_us: int) -> Table:
    """What nodes have of events that they do not hold yet."""
    table = _from_spans(decoding_spans(columns, duration_us))
    sizes = generation_sizes(columns)
    events = zip(table["origin"].tolist(), table["sequence"].tolist(), strict=True)
    of = np.array([sizes[event] for event in events], dtype=np.float32)
    return {**table, "weight": (table["value"] / of).astype(np.float32)}


def _until_next(table: Table, columns: Columns, duration_us: int) -> Table:
    """The intervals of a table, each at most until its origin makes its next event."""
    made = columns.where(event="originated")
    origins, sequences = columns["origin"][made], columns["sequence"][made]
    until = table["until_us"].copy()
    for origin in np.unique(table["origin"]).tolist():
        mine = np.flatnonzero(table["origin"] == origin)
        order = np.argsort(sequences[origins == origin], kind="stable")
        numbers = sequences[origins == origin][order]
        times = np.append(columns["time_us"][made[origins == origin]][order], duration_us)
        until[mine] = np.minimum(until[mine], times[np.searchsorted(numbers, table["sequence"][mine], "right")])
    kept = table["from_us"] < until
    return {name: column[kept] for name, column in {**table, "until_us": until}.items()}


# Frames


def _frames(columns: Columns) -> Table:
    """Every frame sent: from the start to the end of its airtime; weight 1 or, if a unicast was lost, LOST_AT."""
    rows = columns.where(event="sent")
    end, airtime = columns["time_us"][rows], np.maximum(columns["value"][rows], 1)
    made = {name: columns[name][rows] for name in ("node", "peer", "origin", "sequence")}
    made |= {"from_us": end - airtime, "until_us": end, "value": columns["size_B"][rows]}
    made["look"] = columns.text("message", rows)
    lost_by_addressee = _matches(columns, rows, columns.where(event="lost"))
    made["weight"] = np.where(lost_by_addressee >= 0, LOST_AT, 1.0)
    return _table(made, len(rows))


def _matches(columns: Columns, sent: np.ndarray, heard: np.ndarray) -> np.ndarray:
    """For each sent row the index into ``heard`` (received or lost rows) of its addressee's row, or -1.

    The rows of a frame's receivers follow its own, so the frame a heard row belongs to is the last one sent before
    it; and a unicast frame has one addressee.
    """
    of_frame = np.searchsorted(sent, heard) - 1
    found = np.full(len(sent), -1)
    ours = np.flatnonzero(of_frame >= 0)
    is_addressee = columns["node"][heard[ours]] == columns["peer"][sent[of_frame[ours]]]
    found[of_frame[ours[is_addressee]]] = ours[is_addressee]
    return found


def _by_kind(frames: Table) -> dict[str, Table]:
    is_broadcast = frames["peer"] < 0
    is_reinforcement = frames["look"] == "reinforcement"
    chosen = {
        "interest_wave": is_broadcast,
        "reinforcement_packet": ~is_broadcast & is_reinforcement,
        "data_packet": ~is_broadcast & ~is_reinforcement,
    }
    return {what: _sorted({name: column[rows] for name, column in frames.items()}) for what, rows in chosen.items()}


def _losses(columns: Columns, frames: Table, film: Film, duration_us: int) -> Table:
    """What was lost, from where the picture of its frame ends."""
    sent, lost = columns.where(event="sent"), columns.where(event="lost")
    of_frame = np.searchsorted(sent, lost) - 1
    node, peer = columns["node"][lost], columns["peer"][lost]
    start = columns["time_us"][lost]
    if len(sent):
        start = np.where(of_frame >= 0, frames["until_us"][np.maximum(of_frame, 0)], start)
        is_unicast = (of_frame >= 0) & (frames["peer"][np.maximum(of_frame, 0)] == node)
    else:
        is_unicast = np.zeros(len(lost), dtype=bool)
    start = np.minimum(start, duration_us - 1)
    made = {"node": node, "peer": peer, "from_us": start, "look": columns.text("detail", lost)}
    made["until_us"] = np.minimum(film.visible_until(start, start), duration_us)
    made |= {"weight": is_unicast, "text": columns.text("message", lost)}
    return _sorted(_table(made, len(lost)))


def _thinned(what: str, table: Table, most: int) -> tuple[Table, list[str]]:
    """At most ``most`` rows, every n-th of them, and the sentence that says so."""
    rows = len(table["node"])
    if rows <= most:
        return table, []
    step = -(-rows // most)
    name = {
        "interest_wave": "broadcasts",
        "data_packet": "data packets",
        "reinforcement_packet": "reinforcements",
        "lost": "losses",
    }
    note = f"Of {rows:,} {name[what]} one in {step} is drawn; all of them are counted."
    return {name: column[::step] for name, column in table.items()}, [note]


# Weight by use


def _weighed(gradients: Table, columns: Columns) -> Table:
    """Split gradients where the class of use of their link changes."""
    links, times = _uses(columns)
    if not len(links):
        return gradients
    key = _link(gradients["node"], gradients["peer"])
    first, last = np.searchsorted(links, key, "left"), np.searchsorted(links, key, "right")
    pieces = []
    for which in range(WEIGHT_CLASSES + 1):  # the which-th class begins at links' row first + which - 1
        begins = _time_of(times, first + which - 1, last) if which else gradients["from_us"]
        ends = _time_of(times, first + which, last)
        start = np.maximum(begins, gradients["from_us"])
        end = np.minimum(ends, gradients["until_us"])
        rows = start < end
        piece = {name: column[rows] for name, column in gradients.items()}
        piece |= {"from_us": start[rows], "until_us": end[rows]}
        piece["weight"] = np.full(int(rows.sum()), which, dtype=np.float32)
        pieces.append(piece)
    return _sorted({name: np.concatenate([piece[name] for piece in pieces]) for name in FIELDS})


def _uses(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """(link, time) at which a directed link's 1st, 4th, 16th, ... data frame was sent, sorted by link and time."""
    rows = columns.where(event="sent", message="data")
    rows = rows[columns["peer"][rows] >= 0]
    link = _link(columns["node"][rows], columns["peer"][rows])
    order = np.argsort(link, kind="stable")
    link, time = link[order], columns["time_us"][rows][order]
    is_first = np.r_[True, link[1:] != link[:-1]][: len(link)]
    rank = np.arange(len(link)) - np.maximum.accumulate(np.where(is_first, np.arange(len(link)), 0))
    thresholds = WEIGHT_BASE ** np.arange(WEIGHT_CLASSES) - 1
    hit = np.isin(rank, thresholds)
    return link[hit], time[hit]


def _link(node: np.ndarray, peer: np.ndarray) -> np.ndarray:
    return (node.astype(np.int64) << 32) | (peer.astype(np.int64) & 0xFFFFFFFF)


def _time_of(times: np.ndarray, index: np.ndarray, last: np.ndarray) -> np.ndarray:
    """``times[index]`` where index < last, else for ever."""
    forever = np.int64(1) << 62
    return np.where(index < last, times[np.minimum(index, len(times) - 1)], forever)

"""A query's or an event's way through the network: hops, rendezvous nodes, notifications, and where it ended.

    routed(trace)                          what there is to follow: [("query", sink, number), ("event", node, number)]
    route(run, what, from_s, until_s)      the way of one of them: a `Route`
    travelled(columns, rows, wanted)       those of many, as tables of hops and marks
    route_drawing(run, what, ...)          its hops as arrows over the trees, numbered in their order

Theory of operation
    A hop is a unicast frame of the message that arrived; a frame that is repeated, or sent to two trees over one
    link, is one hop, at its first arrival. So is each link that only ever lost it, with ``arrived`` False. An event's
    route is that of the event and of the notifications about it, which carry its number.

    A query's rendezvous nodes are those that tell that they have stored it, an event's are those that it came to and
    was not only passed on by: they tell that they hold it. The publisher holds its event from the start; it is a
    rendezvous node too if the event lies in its own zone.

Limits
    A query is sent again and again. Its route is all that was new since ``from_s``, be it a refresh or a repair.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.errors import ParameterError
from workbench.protocols.tinymq.mapping import Mapping
from workbench.protocols.tinymq.views.looks import MESSAGES, tree_colour
from workbench.protocols.tinymq.views.overlay import PlaceSpan, overlay_in, overlay_of, protocol_of
from workbench.protocols.tinymq.views.told import (
    EVENT,
    MESSAGE_NAMES,
    NOTIFICATION,
    QUERY,
    Told,
    among,
    as_spans,
    coded,
    told,
)
from workbench.protocols.tinymq.views.trees import MOST_KEYS, WIDTH, TreeScene, tree_entries
from workbench.protocols.tinymq.views.zones import in_zones, regions, zone_table
from workbench.views import caption, palette
from workbench.views.drawing import Drawing
from workbench.views.figure import time_us_of
from workbench.views.ground import lay_out
from workbench.views.layers import Table, select
from workbench.views.legend import Entry
from workbench.views.player.columns import Columns, read
from workbench.views.spans import groups

What = tuple[str, int, int]
KINDS = {QUERY: (QUERY,), EVENT: (EVENT, NOTIFICATION)}
_KIND_OF = {message: which for which, messages in enumerate(KINDS.values()) for message in messages}
_MESSAGES = {message: which for which, message in enumerate(MESSAGE_NAMES)}
MARKS = ("stored", "matched", "delivered", "dropped")
_TELLS = {event: which for which, event in enumerate(("query_stored", "held", "delivered", "dropped"))}
_QUIET = {"repeated": 0, "duplicate": 0}  # drops that only say that a node had it already


class Hop(NamedTuple):
    """A message went from sender to receiver; from_us: when the frame began, arrived_us: when it was there."""

    sender: int
    receiver: int
    message: str
    from_us: int
    arrived_us: int
    arrived: bool = True


class Mark(NamedTuple):
    """Something that happened at a node: look is stored, matched, delivered or dropped (text: the reason)."""

    node: int
    look: str
    at_us: int
    text: str = ""


@dataclass(frozen=True)
class Route:
    """The way of one message, hops and marks in order of time."""

    what: What
    hops: tuple[Hop, ...]
    marks: tuple[Mark, ...]

    def until(self, hops: int) -> Route:
        """The route as far as its first so many hops that arrived, with what had happened by then."""
        arrived = [hop for hop in self.hops if hop.arrived][:hops]
        last_us = arrived[-1].arrived_us if arrived else self.hops[0].from_us if self.hops else 0
        kept = tuple(hop for hop in self.hops if hop in arrived or (not hop.arrived and hop.arrived_us <= last_us))
        return Route(self.what, kept, tuple(mark for mark in self.marks if mark.at_us <= last_us))

    def nodes(self, look: str) -> list[int]:
        """The nodes with a kind of mark, in order of time."""
        return list(dict.fromkeys(mark.node for mark in self.marks if mark.look == look))

    def links(self, message: str) -> list[tuple[int, int]]:
        """(sender, receiver) of the hops of a message that arrived, in order of time."""
        return [(hop.sender, hop.receiver) for hop in self.hops if hop.message == message and hop.arrived]

    def in_words(self, message: str) -> str:
        """The hops of a message that arrived, in order of time: "13 → 6, 6 → 7"."""
        return ", ".join(f"{sender} → {receiver}" for sender, receiver in self.links(message))

    def path(self, message: str, start: int, end: int) -> list[int]:
        """The nodes from start to end along the first hops into each of them; [] if these do not lead there."""
        came_from: dict[int, int] = {}
        for sender, receiver in self.links(message):
            came_from.setdefault(receiver, sender)
        path = [end]
        while path[-1] != start and path[-1] in came_from and len(path) <= len(came_from):
            path.append(came_from[path[-1]])
        return path[::-1] if path[-1] == start else []


def routed(trace: pa.Table) -> list[What]:
    """The queries and events of a trace in the order in which they came up."""
    found = to_follow(told(read(trace)))
    kinds = [list(KINDS)[kind] for kind in found["kind"].tolist()]
    return list(zip(kinds, found["node"].tolist(), found["sequence"].tolist(), strict=True))


def to_follow(rows_of: Told) -> Table:
    """The same as a table: kind, node, sequence, from_us; kind: a place in ``KINDS``."""
    columns = rows_of.columns
    rows = among(columns, rows_of.logged, event=("subscribed", "originated"))
    found = {name: columns[name][rows].astype(np.int64) for name in ("node", "sequence")}
    found["kind"] = coded(columns, rows, "event", {"subscribed": 0, "originated": 1})
    first = np.sort(np.unique(groups(*found.values()), return_index=True)[1])
    return select(found | {"from_us": columns["time_us"][rows]}, first)


def route(run: Any, what: What | None = None, from_s: float = 0.0, until_s: float | None = None) -> Route:
    """The way of a query, ("query", sink, number), or of an event, ("event", publisher, number).

    None is the first event. Raises ParameterError if the run has no such thing, or no overlay.
    """
    protocol = protocol_of(run)
    known = routed(run.trace)
    if what is None:
        what = next((one for one in known if one[0] == EVENT), None)
    at = known.index((what[0], what[1], what[2])) if what is not None and tuple(what) in known else -1
    if at < 0:
        here = ", ".join(map(str, known[:4])) or "none"
        raise ParameterError(f"route: there is no {what!r} in this run; here: {here}")
    rows, until_us = told(read(run.trace)), time_us_of(run, until_s, "route")
    wanted = select(to_follow(rows), np.array([at]))
    seen = overlay_in(run, rows)
    zones = zone_table(seen, protocol.mapping.key_bits)
    hops, marks = travelled(rows.within(round(from_s * 1e6), until_us), wanted, zones, protocol.mapping)
    went = as_spans(Hop, hops | {"message": np.array(MESSAGE_NAMES, object)[hops["message"]]})
    happened = marks | {"look": np.array(MARKS, object)[marks["look"]]}
    return Route(known[at], tuple(went), tuple(as_spans(Mark, happened, [*seen.words, ""])))


def travelled(rows: Told, wanted: Table, zones: Table, mapping: Mapping) -> tuple[Table, Table]:
    """The hops and marks of some messages, in order of time.

    wanted: rows of `to_follow`. Hops: the fields of `Hop` and way, a row of ``wanted``, with messages as places in
    `told.MESSAGE_NAMES`; marks: those of `Mark` and way, with looks as places in ``MARKS`` and texts as codes of
    ``columns.words["detail"]``, -1 none.
    """
    hops, marks = _hops(rows, wanted), _marks(rows, wanted)
    own = _own_rendezvous(rows, wanted, zones, mapping)
    marks = {name: np.concatenate([column, own[name]]) for name, column in marks.items()}
    first = np.unique(_keys(marks["way"], marks["look"], marks["node"]), return_index=True)[1]
    marks = select(marks, np.sort(first))
    hops = select(hops, np.lexsort((hops["receiver"], hops["sender"], hops["arrived_us"])))
    return hops, select(marks, np.lexsort((marks["node"], marks["at_us"])))


def _wanted(columns: Columns, rows: np.ndarray, wanted: Table) -> tuple[np.ndarray, np.ndarray]:
    """Of some rows those about wanted messages, and which of these each is about."""
    kind = coded(columns, rows, "message", _KIND_OF)
    ids = columns["origin"][rows].astype(np.int64) << 32 | columns["sequence"][rows]
    way = np.full(len(rows), -1)
    for one in np.unique(wanted["kind"]).tolist():
        mine, of = np.flatnonzero(wanted["kind"] == one), np.flatnonzero(kind == one)
        known = wanted["node"][mine] << 32 | wanted["sequence"][mine]
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], ids[of]), len(mine) - 1)
        way[of] = np.where(known[order][at] == ids[of], mine[order][at], -1)
    return rows[way >= 0], way[way >= 0]


def _hops(of: Told, wanted: Table) -> Table:
    columns = of.columns
    rows, way = _wanted(columns, of.frames[columns["peer"][of.frames] >= 0], wanted)
    is_sent = coded(columns, rows, "event", {"sent": 1}) == 1
    message = coded(columns, rows, "message", _MESSAGES)
    node, peer, time_us = columns["node"][rows], columns["peer"][rows], columns["time_us"][rows]
    sender, receiver = np.where(is_sent, node, peer), np.where(is_sent, peer, node)
    key = _keys(way, message, sender, receiver)
    sent, received = np.flatnonzero(is_sent), np.flatnonzero(~is_sent)
    known, first = np.unique(key[sent], return_index=True)
    came, first_came = np.unique(key[received], return_index=True)
    hop, place = sent[first], np.searchsorted(came, known)
    arrived = np.append(came, -1)[place] == known
    arrival = np.append(received[first_came], 0)[place]
    hops = {"sender": sender[hop], "receiver": receiver[hop], "message": message[hop], "way": way[hop]}
    hops["from_us"] = time_us[hop] - columns["value"][rows[hop]]
    return hops | {"arrived_us": time_us[np.where(arrived, arrival, hop)], "arrived": arrived}


def _keys(*numbers: np.ndarray) -> np.ndarray:
    """A number of its own for each combination of numbers from 0 on."""
    sizes = [int(one.max(initial=0)) + 1 for one in numbers]
    if math.prod(sizes) >= 1 << 62:
        return groups(*numbers)
    key = np.zeros(len(numbers[0]), np.int64)
    for one, size in zip(numbers, sizes, strict=True):
        key = key * size + one
    return key


def _marks(of: Told, wanted: Table) -> Table:
    """What nodes logged of a message."""
    columns = of.columns
    rows, way = _wanted(columns, among(columns, of.logged, event=_TELLS), wanted)
    look = coded(columns, rows, "event", _TELLS)
    is_told = (look != _TELLS["query_stored"]) | (columns["value"][rows] == 1)
    # Sinks hold an event once its notification has come; that is told by its delivery.
    is_here = (coded(columns, rows, "message", {EVENT: 1}) == 1) & (columns["peer"][rows] >= 0)
    is_told &= (look != _TELLS["held"]) | is_here
    is_dropped = look == _TELLS["dropped"]
    is_told &= ~is_dropped | (coded(columns, rows, "detail", _QUIET) < 0)
    text = np.where(is_dropped, columns.codes["detail"][rows], -1)
    found = {"node": columns["node"][rows], "look": look, "at_us": columns["time_us"][rows], "text": text, "way": way}
    return select(found, is_told)


def _own_rendezvous(of: Told, wanted: Table, zones: Table, mapping: Mapping) -> Table:
    """The publishers of events that are in their own zones."""
    columns, said = of.columns, among(of.columns, of.logged, event="published")
    rows, way = _wanted(columns, among(columns, of.logged, event="originated", message=EVENT), wanted)
    node = np.concatenate([columns["node"][said], columns["node"][rows]])
    key = _keys(node, np.concatenate([columns["sequence"][said], columns["value"][rows]]))
    known, first = np.unique(key[: len(said)], return_index=True)
    place = np.searchsorted(known, key[len(said) :])
    is_said = np.append(known, -1)[place] == key[len(said) :]
    rows, way, text = rows[is_said], way[is_said], columns.codes["detail"][said[first[place[is_said]]]]
    at_us, node = columns["time_us"][rows], columns["node"][rows].astype(np.int64)
    here = {"node": node, "text": text, "from_us": at_us, "until_us": at_us + 1}
    row = in_zones(zones, here, regions(columns.words["detail"], text, mapping.event_box, mapping))["row"]
    look, none = np.full(len(row), MARKS.index("matched")), np.full(len(row), -1)
    return {"node": node[row], "look": look, "at_us": at_us[row], "text": none, "way": way[row]}


# Drawing


def route_drawing(
    run: Any,
    what: What | None = None,
    from_s: float = 0.0,
    until_s: float | None = None,
    width: int = WIDTH,
    keys: bool | None = None,
) -> Drawing:
    """The route as arrows over the trees at its beginning; small numbers give the order of its hops.

    ``keys`` as in `overlay_drawing`; the other arguments and errors are those of `route`.
    """
    return draw_route(run, route(run, what, from_s, until_s), None, width, keys)


def draw_route(run: Any, way: Route, hops: int | None = None, width: int = WIDTH, keys: bool | None = None) -> Drawing:
    """A route up to one of its hops (None: all of it), with the legend of the whole."""
    seen, plan = overlay_of(run), lay_out(run.scenario.topology)
    start_us = way.hops[0].from_us if way.hops else way.marks[0].at_us if way.marks else 0
    part = way if hops is None else way.until(hops)
    scene = RouteScene(plan, seen, start_us, width, part)
    if keys if keys is not None else len(plan.ids) <= MOST_KEYS:
        scene.names = scene.keys()
    title = f"{caption.title(run)}: {way.what[0]} {way.what[2]} of node {way.what[1]}"
    last_us = max([hop.arrived_us for hop in part.hops] + [mark.at_us for mark in part.marks], default=start_us)
    count = sum(hop.arrived for hop in part.hops)
    hops_said = "1 hop" if count == 1 else f"{count} hops"
    note = f"{hops_said} within {(last_us - start_us) / 1000:,.1f} ms; the numbers give their order"
    return scene.page(title, route_entries(scene, way), note)


class RouteScene(TreeScene):
    """A route over faint trees."""

    def __init__(self, plan: Any, seen: Any, time_us: int, width: int, way: Route) -> None:
        super().__init__(plan, seen, time_us, width, is_faint=True)
        self.way = way

    def over(self) -> None:
        """The hops as arrows, and rings around the nodes at which something happened."""
        arrived = [hop for hop in self.way.hops if hop.arrived]
        for number, hop in enumerate(arrived, 1):
            self._arrow(hop, str(number) if len(arrived) <= MOST_KEYS else "")
        for hop in self.way.hops:
            if not hop.arrived:
                x, y = self._between(self.place_of[hop.sender], self.place_of[hop.receiver], 0.6)
                self.drawing.cross(x, y, 4, colour=palette.LOST, width=1.8)
        for mark in self.way.marks:
            x, y = self.at(mark.node)
            if mark.look == "dropped":
                self.drawing.cross(x, y + 2.4 * self.node, 4, colour=palette.LOST, width=2.2)
            elif mark.look == "delivered":
                self.drawing.circle(x, y, 2.1 * self.node, stroke=MESSAGES["notification"], width=2.6)
            else:
                self.drawing.circle(x, y, 1.75 * self.node, stroke=MESSAGES[self.way.what[0]], width=2.6)

    def _place(self, place: PlaceSpan) -> None:
        super()._place(place)
        if place.node == self.way.what[1]:
            x, y = self.at(place.node)
            self.drawing.marker("diamond", x, y, 1.45 * self.node, tree_colour(place.tree), palette.TEXT, 1.4)

    def _arrow(self, hop: Hop, number: str) -> None:
        """An arrow; notifications have a lane of their own."""
        lane = KINDS[self.way.what[0]].index(hop.message)
        self.hop(
            (hop.sender, hop.receiver),
            MESSAGES[hop.message],
            max(0.4 * self.node, 1.6),
            lane_px=(0.45 + 0.65 * lane) * self.node,
            clear_px=1.7 * self.node,
            head_at=0.92,
            number=number,
            number_at=(0.36 + 0.28 * lane, 10 + 2 * lane),
        )


def route_entries(scene: TreeScene, way: Route) -> list[Entry]:
    """What a picture of a route has to explain."""
    is_query = way.what[0] == "query"
    entries: list[Entry] = [("diamond", palette.LINK_GOOD, "sink" if is_query else "publisher")]
    entries += [("arrow", MESSAGES[message], message) for message in KINDS[way.what[0]] if way.links(message)]
    if way.nodes("stored"):
        entries.append(("ring", MESSAGES["query"], "stored here"))
    if way.nodes("matched"):
        entries.append(("ring", MESSAGES["event"], "rendezvous node: matched here"))
    if way.nodes("delivered"):
        entries.append(("ring", MESSAGES["notification"], "delivered"))
    reasons = sorted({mark.text for mark in way.marks if mark.look == "dropped"})
    if reasons:
        entries.append(("lost", palette.LOST, "ended here: " + ", ".join(reasons)))
    if any(not hop.arrived for hop in way.hops):
        entries.append(("lost", palette.LOST, "lost on this link"))
    return entries + tree_entries(scene)

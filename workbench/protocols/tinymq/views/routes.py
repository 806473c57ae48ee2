"""A query's or an event's way through the network: hops, rendezvous nodes, notifications, and where it ended.

    routed(trace)                          what there is to follow: [("query", sink, number), ("event", node, number)]
    route(run, what, from_s, until_s)      the way of one of them: a `Route`; routes(run): those of many
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

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from workbench.attributes.text import parse
from workbench.errors import ParameterError
from workbench.protocols.tinymq.views.looks import MESSAGES, tree_colour
from workbench.protocols.tinymq.views.overlay import PlaceSpan, overlay_of, protocol_of
from workbench.protocols.tinymq.views.trees import MOST_KEYS, WIDTH, TreeScene, tree_entries
from workbench.protocols.tinymq.views.zones import ZoneSpan, strings_of, zone_spans
from workbench.protocols.tinymq.zones import intersect
from workbench.views import caption, palette
from workbench.views.drawing import Drawing
from workbench.views.figure import time_us_of
from workbench.views.ground import lay_out
from workbench.views.legend import Entry
from workbench.views.player.columns import Columns
from workbench.views.player.intervals import read

What = tuple[str, int, int]
KINDS = {"query": ("query",), "event": ("event", "notification")}
_KIND_OF = {message: kind for kind, messages in KINDS.items() for message in messages}
MOST_ROUTES = 300
_QUIET = ("repeated", "duplicate")  # drops that only say that a node had it already


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
    columns = read(trace)
    rows = columns.where(event=("subscribed", "originated"))
    found: list[What] = []
    words = columns.text("event", rows).tolist()
    numbers = [columns[name][rows].tolist() for name in ("node", "sequence")]
    for word, node, sequence in zip(words, *numbers, strict=True):
        found.append(("query" if word == "subscribed" else "event", node, sequence))
    return list(dict.fromkeys(found))


def route(run: Any, what: What | None = None, from_s: float = 0.0, until_s: float | None = None) -> Route:
    """The way of a query, ("query", sink, number), or of an event, ("event", publisher, number).

    None is the first event. Raises ParameterError if the run has no such thing, or no overlay.
    """
    protocol_of(run)
    known = routed(run.trace)
    if what is None:
        what = next((one for one in known if one[0] == "event"), None)
    if what is None or tuple(what) not in known:
        here = ", ".join(map(str, known[:4])) or "none"
        raise ParameterError(f"route: there is no {what!r} in this run; here: {here}")
    what = (str(what[0]), int(what[1]), int(what[2]))
    return _routes(run, [what], round(from_s * 1e6), time_us_of(run, until_s, "route"))[0]


def routes(run: Any, most: int = MOST_ROUTES) -> list[Route]:
    """The ways of queries and of events, ``most`` in all, of queries half of that at most; of more than that they are
    evenly spread over the run."""
    protocol_of(run)
    known = routed(run.trace)
    queries = _thinned([what for what in known if what[0] == "query"], most // 2)
    events = _thinned([what for what in known if what[0] == "event"], most - len(queries))
    return _routes(run, queries + events, 0, round(run.scenario.duration_s * 1e6))


def _thinned(known: list[What], most: int) -> list[What]:
    count = min(most, len(known))
    return [known[index * len(known) // count] for index in range(count)]


def _routes(run: Any, wanted: list[What], from_us: int, until_us: int) -> list[Route]:
    columns = read(run.trace)
    of_time = (columns["time_us"] >= from_us) & (columns["time_us"] <= until_us)
    # Most rows of a long run are about other messages, and need not be looked at one by one.
    ids = np.array([what[1] << 32 | what[2] for what in wanted], dtype=np.int64)
    of_time &= np.isin(columns["origin"].astype(np.int64) << 32 | columns["sequence"], ids)
    hops, marks = _hops(columns, of_time), _marks(columns, of_time)
    for what, mark in _own_rendezvous(run, columns, from_us, until_us):
        marks.setdefault(what, {}).setdefault((mark.node, mark.look), mark)
    found = []
    for what in wanted:
        of_it = sorted(hops.get(what, {}).values(), key=lambda hop: (hop.arrived_us, hop.sender, hop.receiver))
        told = sorted(marks.get(what, {}).values(), key=lambda mark: (mark.at_us, mark.node))
        found.append(Route(what, tuple(of_it), tuple(told)))
    return found


def _hops(columns: Columns, chosen: np.ndarray) -> dict[What, dict[tuple[int, int, str], Hop]]:
    rows = columns.where(event=("sent", "received"), message=tuple(_KIND_OF))
    rows = rows[chosen[rows]]
    names = ("time_us", "node", "peer", "value", "origin", "sequence")
    numbers = [columns[name][rows].tolist() for name in names]
    words = [columns.text(name, rows).tolist() for name in ("event", "message")]
    found: dict[What, dict[tuple[int, int, str], Hop]] = {}
    for time_us, node, peer, airtime_us, origin, sequence, event, message in zip(*numbers, *words, strict=True):
        hops = found.setdefault((_KIND_OF[message], origin, sequence), {})
        if event == "sent" and peer >= 0:
            hops.setdefault((node, peer, message), Hop(node, peer, message, time_us - airtime_us, time_us, False))
        elif event == "received" and (peer, node, message) in hops:
            hop = hops[peer, node, message]
            if not hop.arrived:
                hops[peer, node, message] = hop._replace(arrived_us=time_us, arrived=True)
    return found


_LOOKS = {"query_stored": "stored", "held": "matched", "delivered": "delivered", "dropped": "dropped"}


def _marks(columns: Columns, chosen: np.ndarray) -> dict[What, dict[tuple[int, str], Mark]]:
    rows = columns.where(event=tuple(_LOOKS), message=tuple(_KIND_OF))
    rows = rows[chosen[rows]]
    names = ("time_us", "node", "peer", "value", "origin", "sequence")
    numbers = [columns[name][rows].tolist() for name in names]
    words = [columns.text(name, rows).tolist() for name in ("event", "message", "detail")]
    found: dict[What, dict[tuple[int, str], Mark]] = {}
    for time_us, node, peer, value, origin, sequence, event, message, detail in zip(*numbers, *words, strict=True):
        is_told = (event != "query_stored" or value == 1) and (event != "dropped" or detail not in _QUIET)
        # Sinks hold an event once its notification has come; that is told by its delivery.
        if is_told and (event != "held" or (message == "event" and peer >= 0)):
            marks = found.setdefault((_KIND_OF[message], origin, sequence), {})
            text = detail if event == "dropped" else ""
            marks.setdefault((node, _LOOKS[event]), Mark(node, _LOOKS[event], time_us, text))
    return found


def _own_rendezvous(run: Any, columns: Columns, from_us: int, until_us: int) -> Iterator[tuple[What, Mark]]:
    """The publishers of events that are in their own zones."""
    mapping = protocol_of(run).mapping
    own: dict[int, list[ZoneSpan]] = {}
    for span in zone_spans(overlay_of(run), mapping.key_bits):
        own.setdefault(span.node, []).append(span)
    said = columns.where(event="published")
    places = [columns[name][said].tolist() for name in ("node", "sequence")]
    texts = dict(zip(zip(*places, strict=True), columns.text("detail", said).tolist(), strict=True))
    made = columns.where(event="originated", message="event")
    numbers = [columns[name][made].tolist() for name in ("time_us", "node", "sequence", "value")]
    for time_us, node, sequence, reading in zip(*numbers, strict=True):
        text = texts.get((node, reading), "")
        if not from_us <= time_us <= until_us or not text:
            continue
        region = strings_of(mapping, mapping.event_box(parse(text)))
        for span in own.get(node, ()):
            if span.from_us <= time_us < span.until_us and intersect(region, ((span.low, span.high),)):
                yield ("event", node, sequence), Mark(node, "matched", time_us)


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

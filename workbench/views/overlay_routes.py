"""A query's or an event's way through the network: hops, rendezvous nodes, notifications, and where it ended.

    routed(trace)                          what there is to follow: [("query", sink, number), ("event", node, number)]
    route(run, what, from_s, until_s)      the way of one of them: a `Route`
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

import pyarrow as pa

from workbench.attributes import parse
from workbench.errors import ParameterError
from workbench.protocols.tinymq.zones import intersect
from workbench.views import caption, palette
from workbench.views.columns import Columns
from workbench.views.drawing import Drawing
from workbench.views.figure import SMALL
from workbench.views.intervals import read
from workbench.views.overlay import PlaceSpan, overlay_of, protocol_of
from workbench.views.overlay_drawing import MOST_KEYS, WIDTH, Entry, TreeScene, key_label, time_us_of, tree_entries
from workbench.views.overlay_looks import MESSAGES, tree_colour
from workbench.views.overlay_zones import strings_of, zone_spans
from workbench.views.plan import lay_out

What = tuple[str, int, int]
KINDS = {"query": ("query",), "event": ("event", "notification")}
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
    window = round(from_s * 1e6), time_us_of(run, until_s, "route")
    columns = read(run.trace)
    marks = _marks(columns, what, window)
    if what[0] == "event":
        marks += _own_rendezvous(run, columns, what, window)
    ordered = tuple(sorted(marks, key=lambda mark: (mark.at_us, mark.node)))
    return Route(what, tuple(_hops(columns, what, window)), ordered)


def _chosen(columns: Columns, rows: Any, what: What, window: tuple[int, int]) -> Any:
    time_us = columns["time_us"][rows]
    of_it = (columns["origin"][rows] == what[1]) & (columns["sequence"][rows] == what[2])
    return rows[of_it & (time_us >= window[0]) & (time_us <= window[1])]


def _hops(columns: Columns, what: What, window: tuple[int, int]) -> list[Hop]:
    rows = columns.where(event=("sent", "received"), message=KINDS[what[0]])
    rows = _chosen(columns, rows, what, window)
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "value")]
    words = [columns.text(name, rows).tolist() for name in ("event", "message")]
    found: dict[tuple[int, int, str], Hop] = {}
    for time_us, node, peer, airtime_us, event, message in zip(*numbers, *words, strict=True):
        if event == "sent" and peer >= 0:
            found.setdefault((node, peer, message), Hop(node, peer, message, time_us - airtime_us, time_us, False))
        elif event == "received" and (peer, node, message) in found:
            hop = found[peer, node, message]
            if not hop.arrived:
                found[peer, node, message] = hop._replace(arrived_us=time_us, arrived=True)
    return sorted(found.values(), key=lambda hop: (hop.arrived_us, hop.sender, hop.receiver))


def _marks(columns: Columns, what: What, window: tuple[int, int]) -> list[Mark]:
    looks = {"query_stored": "stored", "held": "matched", "delivered": "delivered", "dropped": "dropped"}
    rows = _chosen(columns, columns.where(event=tuple(looks), message=KINDS[what[0]]), what, window)
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "value")]
    words = [columns.text(name, rows).tolist() for name in ("event", "message", "detail")]
    found: dict[tuple[int, str], Mark] = {}
    for time_us, node, peer, value, event, message, detail in zip(*numbers, *words, strict=True):
        is_told = (event != "query_stored" or value == 1) and (event != "dropped" or detail not in _QUIET)
        # Sinks hold an event once its notification has come; that is told by its delivery.
        if is_told and (event != "held" or (message == "event" and peer >= 0)):
            text = detail if event == "dropped" else ""
            found.setdefault((node, looks[event]), Mark(node, looks[event], time_us, text))
    return list(found.values())


def _own_rendezvous(run: Any, columns: Columns, what: What, window: tuple[int, int]) -> list[Mark]:
    """The publisher, if the event is in its own zone."""
    published = columns.where(event="published")
    published = published[columns["node"][published] == what[1]]
    made = _chosen(columns, columns.where(event="originated"), what, window)
    published = published[columns["time_us"][published] == columns["time_us"][made[0]]] if len(made) else published[:0]
    if not len(published):
        return []
    mapping = protocol_of(run).mapping
    text = columns.text("detail", published)[0]
    region = strings_of(mapping, mapping.event_box(parse(text))) if text else ()
    time_us = int(columns["time_us"][published[0]])
    for span in zone_spans(overlay_of(run), mapping.key_bits):
        is_here = span.node == what[1] and span.from_us <= time_us < span.until_us
        if is_here and intersect(region, ((span.low, span.high),)):
            return [Mark(what[1], "matched", time_us)]
    return []


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
    way = route(run, what, from_s, until_s)
    seen, plan = overlay_of(run), lay_out(run.scenario.topology)
    last_us = max([hop.arrived_us for hop in way.hops] + [mark.at_us for mark in way.marks], default=0)
    start_us = way.hops[0].from_us if way.hops else last_us
    scene = RouteScene(plan, seen, start_us, width, way)
    if keys if keys is not None else len(plan.ids) <= MOST_KEYS:
        scene.names = {place.node: key_label(place) for place in scene.places}
    title = f"{caption.title(run)}: {way.what[0]} {way.what[2]} of node {way.what[1]}"
    hops = sum(hop.arrived for hop in way.hops)
    took_ms = (last_us - start_us) / 1000
    note = f"{hops} hops within {took_ms:,.1f} ms; the numbers give their order"
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
        """An arrow on the right of its way, so that the way back has its own, and notifications have theirs."""
        (x0, y0), (x1, y1) = self.at(hop.sender), self.at(hop.receiver)
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        lane = KINDS[self.way.what[0]].index(hop.message)
        clear, aside = min(1.7 * self.node, 0.3 * length), (0.45 + 0.65 * lane) * self.node
        start_x, start_y = x0 + clear * ux - aside * uy, y0 + clear * uy + aside * ux
        end_x, end_y = x1 - clear * ux - aside * uy, y1 - clear * uy + aside * ux
        colour, head = MESSAGES[hop.message], max(1.2 * self.node, 6)
        width = max(0.4 * self.node, 1.6)
        self.drawing.arrow(start_x, start_y, end_x, end_y, head=head, at=0.92, colour=colour, width=width)
        self.band += [
            (start_x + share / 12 * (end_x - start_x), start_y + share / 12 * (end_y - start_y)) for share in range(13)
        ]
        if number and length > 5 * self.node:
            at, away = 0.36 + 0.28 * lane, 10 + 2 * lane
            x, y = start_x + at * (end_x - start_x) - away * uy, start_y + at * (end_y - start_y) + away * ux
            self.drawing.text(x, y + 4, number, size=SMALL - 1, anchor="middle", halo=palette.BACKGROUND, colour=colour)
            self.band.append((x, y))


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

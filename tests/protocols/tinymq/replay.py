"""TinyMQ's overlay, zones and routes, replayed row by row: an oracle for the arrays of the views.

replayed(...)               (places, orphans, stored queries, intervals of zones, outages), as tuples
zones_of(...)               the zones of all trees over time, with the keys of their nodes
boxes_of(...)               the parts of zones that belong to stored queries
find_hops_and_marks(...)    the hops and marks of queries and events
"""

from collections import defaultdict
from typing import NamedTuple

from workbench.attributes.text import parse
from workbench.protocols.tinymq.views.overlay import OrphanSpan, PlaceSpan, StoredSpan
from workbench.protocols.tinymq.views.routes import Hop, Mark
from workbench.protocols.tinymq.views.zones import strings_of
from workbench.protocols.tinymq.zones import intersect
from workbench.sim.rows import Columns

KINDS = {"query": ("query",), "event": ("event", "notification")}
KIND_OF = {message: kind for kind, messages in KINDS.items() for message in messages}
LOOKS = {"query_stored": "stored", "event_matched": "matched", "delivered": "delivered", "dropped": "dropped"}
QUIET = ("repeated", "duplicate")


def replayed(trace, roots, duration_us, nodes=(), every_tree=False):
    replay = Replay(duration_us)
    replay.run(Columns(trace))
    failures_us = sorted({from_us for _, from_us, _ in replay.failed})
    places = marked(replay.places, failures_us, every_tree)
    all_nodes = sorted({*nodes, *(place.node for place in places)})
    orphans = orphans_of(places, replay.failed, all_nodes, len(roots) if every_tree else 1, duration_us)
    return places, orphans, replay.stored, replay.zones, replay.failed


class Interval(NamedTuple):
    """The strings low ... high of a tree that a node stores during [from_us, until_us)."""

    node: int
    tree: int
    low: int
    high: int
    from_us: int
    until_us: int


class Replay:
    """A single pass over the rows that collects the intervals of places, zones, stored queries and failures."""

    EVENTS = ("key_set", "zone_set", "query_stored", "failed", "recovered")

    def __init__(self, duration_us):
        self.duration_us = duration_us
        self.places = []
        self.zones = []
        self._zones = {}
        self.stored = []
        self.failed = []
        self._places = {}
        self._stored = {}
        self._down = {}

    def run(self, columns):
        """Replay all rows, and then the end of the run."""
        rows = columns.where(event=self.EVENTS)
        numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "origin", "sequence", "value")]
        words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
        for time_us, node, peer, origin, sequence, value, event, detail in zip(*numbers, *words, strict=True):
            if event == "key_set":
                key = detail if value >= 0 else None
                self._key_set(PlaceSpan(node, origin, peer, key or "", time_us, self.duration_us), key is not None)
            elif event == "query_stored":
                tree = abs(value) - 1
                query = StoredSpan(node, origin, sequence, detail, time_us, self.duration_us, tree)
                self._query_stored(query, value > 0)
            elif event == "zone_set":
                self._zone_set(Interval(node, origin, sequence, value, time_us, self.duration_us))
            elif event == "failed":
                self._fail(node, time_us)
            else:
                self._recover(node, time_us)
        for place in self._places.values():
            self._close(self.places, place, self.duration_us)
        for query in self._stored.values():
            self._close(self.stored, query, self.duration_us)
        for interval in self._zones.values():
            self._close(self.zones, interval, self.duration_us)
        for node in list(self._down):
            self._end_failure(node, self.duration_us)

    def _key_set(self, place, has_key):
        if (place.node, place.tree) in self._places:
            self._close(self.places, self._places.pop((place.node, place.tree)), place.from_us)
        if has_key:
            self._places[place.node, place.tree] = place

    def _zone_set(self, interval):
        if interval.high >= 0:
            self._zones[interval[:4]] = interval
            return
        for key in [key for key in self._zones if key[:2] == interval[:2]]:
            self._close(self.zones, self._zones.pop(key), interval.from_us)

    def _query_stored(self, query, is_stored):
        key = query.node, query.tree, query.sink, query.number
        if is_stored:
            self._stored.setdefault(key, query)
        elif key in self._stored:
            self._close(self.stored, self._stored.pop(key), query.from_us)

    def _fail(self, node, time_us):
        if node in self._down:
            return
        for spans, open_spans in self._open_spans():
            for key in [key for key in open_spans if key[0] == node]:
                self._close(spans, open_spans[key], time_us)
        self._down[node] = time_us

    def _recover(self, node, time_us):
        self._end_failure(node, time_us)
        for _, open_spans in self._open_spans():
            for key in [key for key in open_spans if key[0] == node]:
                open_spans[key] = open_spans[key]._replace(from_us=time_us)

    def _open_spans(self):
        return (self.places, self._places), (self.zones, self._zones), (self.stored, self._stored)

    def _end_failure(self, node, time_us):
        since_us = self._down.pop(node, time_us)
        if since_us < time_us:
            self.failed.append((node, since_us, time_us))

    def _close(self, spans, span, time_us):
        # The state of a node that is down was closed when it failed.
        if span.node not in self._down and span.from_us < time_us:
            spans.append(span._replace(until_us=time_us))


def marked(places, failures_us, every_tree):
    """Return the places, split where nodes failed; `is_rekeyed` means that they differ from before the failure."""
    histories = defaultdict(list)
    for place in sorted(places, key=lambda span: span.from_us):
        histories[place.node, place.tree if every_tree else -1].append(place)
    marked = []
    for history in histories.values():
        for place in history:
            cuts = [time_us for time_us in failures_us if place.from_us < time_us < place.until_us]
            for from_us, until_us in zip([place.from_us, *cuts], [*cuts, place.until_us], strict=True):
                before = before_of(history, max((time for time in failures_us if time <= from_us), default=None))
                is_rekeyed = before is not None and (before.tree, before.key) != (place.tree, place.key)
                if from_us > place.from_us and marked[-1].is_rekeyed == is_rekeyed:
                    marked[-1] = marked[-1]._replace(until_us=until_us)
                else:
                    marked.append(place._replace(from_us=from_us, until_us=until_us, is_rekeyed=is_rekeyed))
    return marked


def before_of(history, time_us):
    """Return the last place of a node that began before a time, or None."""
    if time_us is None:
        return None
    earlier = [place for place in history if place.from_us < time_us]
    return earlier[-1] if earlier else None


def orphans_of(places, failed, nodes, needed, duration_us):
    """Return the intervals in which nodes were up and had fewer places than they need."""
    changes = {node: [(0, 0, 1)] for node in nodes}
    for place in places:  # (time, change of places, change of up)
        changes[place.node] += [(place.from_us, 1, 0), (place.until_us, -1, 0)]
    for node, from_us, until_us in failed:
        changes.setdefault(node, [(0, 0, 1)])
        changes[node] += [(from_us, 0, -1), (until_us, 0, 1)]
    spans = []
    for node, steps in changes.items():
        count = up = 0
        had_place = False
        steps.sort()
        for index, (time_us, more, more_up) in enumerate(steps):
            count, up, had_place = count + more, up + more_up, had_place or count + more >= needed
            until_us = steps[index + 1][0] if index + 1 < len(steps) else duration_us
            if up > 0 and count < needed and time_us < until_us:
                spans.append(OrphanSpan(node, time_us, until_us, had_place))
    return joined(spans)


def joined(spans):
    """Return the spans with adjacent equal spans of a node joined."""
    joined = []
    for span in spans:
        last = joined[-1] if joined else None
        if last is not None and (last.node, last.until_us, last.had_place) == (span.node, span.from_us, span.had_place):
            joined[-1] = last._replace(until_us=span.until_us)
        else:
            joined.append(span)
    return joined


def zones_of(places, intervals):
    """Return [(tree, node, key, low, high, from_us, until_us)], sorted."""
    zones = []
    for node, tree, low, high, begin, end in intervals:
        for key, placed_us, left_us in keys_of(places, node, tree):
            from_us, until_us = max(begin, placed_us), min(end, left_us)
            if from_us < until_us:
                zones.append((tree, node, key, low, high, from_us, until_us))
    return sorted(zones)


def keys_of(places, node, tree):
    """Return [[key, from_us, until_us], ...] of a node in a tree; adjacent intervals with equal keys are joined."""
    keys = []
    for place in sorted(place for place in places if (place.node, place.tree) == (node, tree)):
        keys.append([place.key, place.from_us, place.until_us])
    keys.sort(key=lambda interval: interval[1])
    joined = []
    for key, from_us, until_us in keys:
        if joined and joined[-1][0] == key and joined[-1][2] == from_us:
            joined[-1][2] = until_us
        else:
            joined.append([key, from_us, until_us])
    return joined


def boxes_of(stored, zones, mapping):
    """Return [(tree, node, sink, number, low, high, from_us, until_us)], sorted."""
    boxes = []
    for query in stored:
        region = strings_of(mapping, mapping.query_box(parse(query.text)))
        for tree, node, _, low, high, begin, end in zones:
            from_us, until_us = max(begin, query.from_us), min(end, query.until_us)
            if (node, tree) == (query.node, query.tree) and from_us < until_us:
                for strings in intersect(region, ((low, high),)):
                    boxes.append((tree, node, query.sink, query.number, *strings, from_us, until_us))
    return sorted(boxes)


def find_hops_and_marks(run):
    """Return {(kind, node, number): ([Hop, ...], [Mark, ...])}, with sorted lists."""
    rows = run.trace.to_pylist()
    hops, marks = defaultdict(dict), defaultdict(dict)
    for row in rows:
        if row["message"] in KIND_OF:
            message_id = KIND_OF[row["message"]], row["origin"], row["sequence"]
            follow(row, hops[message_id], marks[message_id])
    return {
        message_id: (sorted(hops[message_id].values()), sorted(marks[message_id].values()))
        for message_id in {*hops, *marks}
    }


def follow(row, hops, marks):
    event, message, node, peer, time_us = (row[name] for name in ("event", "message", "node", "peer", "time_us"))
    if event == "sent" and peer >= 0:
        hops.setdefault((node, peer, message), Hop(node, peer, message, time_us - row["value"], time_us, False))
    elif event == "received" and (peer, node, message) in hops:
        hop = hops[peer, node, message]
        if not hop.arrived:
            hops[peer, node, message] = hop._replace(arrived_us=time_us, arrived=True)
    elif event in LOOKS:
        is_marked = (event != "query_stored" or row["value"] > 0) and (event != "dropped" or row["detail"] not in QUIET)
        if is_marked:
            text = row["detail"] if event == "dropped" else ""
            marks.setdefault((node, LOOKS[event]), Mark(node, LOOKS[event], time_us, text))

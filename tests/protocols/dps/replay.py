"""A row-by-row replay of DPS's mesh and of publications' paths, with which the arrays of the views are compared.

Each row ends the interval that the previous row began. `steps` counts at each change, and `path` follows each frame.
The replay is slow and simple."""

from typing import NamedTuple

from workbench.protocols.dps.views.paths import ACKNOWLEDGEMENT, PUBLICATION, REASONS, Hop, Mark, Path

ACTIVE, MUTED, PENDING = "active", "muted", "pending"
EVERYTHING = -1


class LinkSpan(NamedTuple):
    """A node's state of a link during [from_us, until_us): a label of `automaton.State`, but not "gone"."""

    node: int
    peer: int
    state: str
    from_us: int
    until_us: int


class FilterSpan(NamedTuple):
    """The filter that a node got from a neighbor during [from_us, until_us); for peer EVERYTHING, the node's sum."""

    node: int
    peer: int
    bits: int
    needs: int
    from_us: int
    until_us: int


def both_ends(states: list[str]) -> str:
    """Return the state of a link, from the states at its two ends."""
    if MUTED in states:
        return MUTED
    return ACTIVE if states == [ACTIVE, ACTIVE] else PENDING


class Replay:
    """A single pass over the rows that collects spans and closes them as they end."""

    EVENTS = ("link_set", "interests_set")

    def __init__(self, duration_us):
        self.duration_us = duration_us
        self.links: list[LinkSpan] = []
        self.filters: list[FilterSpan] = []
        self._links: dict[tuple[int, int], LinkSpan] = {}
        self._filters: dict[tuple[int, int], FilterSpan] = {}

    def run(self, columns):
        """Replay all rows, and then the end of the run."""
        rows = columns.where(event=self.EVENTS)
        numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "peer", "value")]
        words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
        for time_us, node, peer, value, event, detail in zip(*numbers, *words, strict=True):
            if event == "link_set":
                self._link_set(LinkSpan(node, peer, detail, time_us, self.duration_us))
            else:
                received_filter = FilterSpan(node, peer, value, int(detail), time_us, self.duration_us)
                self._begin(self.filters, self._filters, received_filter)
        self.links += [span for span in self._links.values() if span.from_us < self.duration_us]
        self.filters += [span for span in self._filters.values() if span.from_us < self.duration_us]

    def _link_set(self, link: LinkSpan) -> None:
        ends = (link.node, link.peer)
        if link.state == "gone":
            self._end(self.filters, self._filters, ends, link.from_us)
            self._end(self.links, self._links, ends, link.from_us)
        elif link.state != self._state(link):  # each revision announces the state again
            self._begin(self.links, self._links, link)

    def _state(self, link: LinkSpan) -> str:
        known = self._links.get((link.node, link.peer))
        return "" if known is None else known.state

    def _begin(self, spans, open_spans, span):
        self._end(spans, open_spans, (span.node, span.peer), span.from_us)
        open_spans[span.node, span.peer] = span

    def _end(self, spans, open_spans, key, time_us):
        span = open_spans.pop(key, None)
        if span is not None and span.from_us < time_us:
            spans.append(span._replace(until_us=time_us))


def steps(replayed, fill, nodes):
    """Return [(time, mean and largest fill over `nodes` nodes, muted links)]; `fill` returns the share of set bits."""
    sums: dict[int, int] = {}
    states: dict[tuple[int, int], dict[int, str]] = {}
    spans = [*replayed.filters, *replayed.links]
    changes = [(interval.from_us, 1, interval) for interval in spans]
    changes += [(interval.until_us, 0, interval) for interval in spans if interval.until_us < replayed.duration_us]
    table = [(0, 0.0, 0.0, 0)]
    muted, total = 0, 0
    for time_us, begins, span in sorted(changes, key=lambda change: change[:2]):
        if isinstance(span, LinkSpan):
            ends = states.setdefault((min(span.node, span.peer), max(span.node, span.peer)), {})
            muted -= MUTED in ends.values()
            ends[span.node] = span.state if begins else "gone"
            muted += MUTED in ends.values()
        elif span.peer == EVERYTHING:
            bits = span.bits if begins else 0
            total += bits - sums.get(span.node, 0)
            sums[span.node] = bits
        else:
            continue
        row = (time_us, fill(total) / max(nodes, 1), fill(max(sums.values(), default=0)), muted)
        if table[-1][0] == time_us:
            table[-1] = row
        else:
            table.append(row)
    return table


def frames(columns, chosen):
    """Return the hops of each publication with their messages, in the order of sending; look is "" or "lost"."""
    rows = columns.where(event=("sent", "received"), message=(PUBLICATION, ACKNOWLEDGEMENT))
    rows = rows[chosen[rows]]
    names = ("time_us", "node", "peer", "value", "origin", "sequence")
    numbers = [columns[name][rows].tolist() for name in names]
    words = [columns.text(name, rows).tolist() for name in ("event", "message")]
    frames_by_publication, in_transit = {}, {}
    for time_us, node, peer, airtime_us, origin, sequence, event, message in zip(*numbers, *words, strict=True):
        publication_frames = frames_by_publication.setdefault((origin, sequence), [])
        if event == "sent" and peer >= 0:
            in_transit[node, peer, message, origin, sequence] = len(publication_frames)
            publication_frames.append((Hop(node, peer, time_us - airtime_us, time_us, "lost"), message))
        elif event == "received" and (peer, node, message, origin, sequence) in in_transit:
            index = in_transit.pop((peer, node, message, origin, sequence))
            publication_frames[index] = publication_frames[index][0]._replace(arrived_us=time_us, look=""), message
    return frames_by_publication


def marks(columns, chosen):
    """Return the deliveries and drops of each publication, as marks."""
    rows = columns.where(event=("delivered", "dropped"), message=PUBLICATION)
    rows = rows[chosen[rows]]
    numbers = [columns[name][rows].tolist() for name in ("time_us", "node", "origin", "sequence")]
    words = [columns.text(name, rows).tolist() for name in ("event", "detail")]
    marks_by_publication = {}
    for time_us, node, origin, sequence, event, detail in zip(*numbers, *words, strict=True):
        if event == "delivered" or detail in REASONS:
            look = detail if event == "dropped" else event
            marks_by_publication.setdefault((origin, sequence), []).append(Mark(node, look, time_us))
    return marks_by_publication


def path(publication, frames, marks):
    """Return the path of a publication, from its frames and marks."""
    forward = sorted((hop for hop, message in frames if message == PUBLICATION), key=lambda hop: hop.arrived_us)
    delivered = [mark.node for mark in marks if mark.look == "delivered"]
    came = {}
    for hop in forward:
        if hop.look != "lost" and hop.receiver != publication.node:
            came.setdefault(hop.receiver, hop)
    useful = set()
    for node in delivered:
        while node in came and came[node] not in useful:
            useful.add(came[node])
            node = came[node].sender
    hops = [_looking(hop, came, useful) for hop in forward]
    back = [hop for hop, message in frames if message == ACKNOWLEDGEMENT]
    hops += [hop._replace(look=hop.look or "acknowledged") for hop in back]
    # A node may deliver a publication and also forward it to a dead end, so the looks of a node are separate marks.
    first_marks = {(mark.node, mark.look): mark for mark in reversed(marks)}
    return Path(
        publication,
        tuple(sorted(hops, key=lambda hop: (hop.arrived_us, hop.sender, hop.receiver))),
        tuple(sorted(first_marks.values(), key=lambda mark: (mark.at_us, mark.node))),
        len(delivered),
    )


def _looking(hop, came, useful):
    if hop.look == "lost":
        return hop
    if came.get(hop.receiver) is not hop:
        return hop._replace(look="repeated")
    return hop._replace(look="useful" if hop in useful else "in vain")

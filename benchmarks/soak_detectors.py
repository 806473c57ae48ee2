"""Detectors of faults in a run of the soak.

Faults are messages that circle, frames that are sent long after the last reading, and missed deliveries that nothing
excuses. The rule of the delivery ratio defines the expected deliveries. A delivery that did not happen is

    apart       at the time of the publication no live nodes connected the publisher to the sink and back (flooding,
                gossip and coded diffusion on ideal links: only to the sink), or, for TinyMQ, to a root
    unsettled   shortly before (three periods in which the protocol refreshes its state) or while the publication was in
                transit, the network changed: nodes failed or recovered, a subscription began or ended, or on lossy
                links a key, a gradient or a link changed; or a node has no gradient for the sink
    excused     a frame of that message was given up after its last try, as the trace shows
    missed      any other: a fault
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from soak_cases import USABLE, Case, two_way_links

from workbench.analysis.expected import Expected, expected
from workbench.columns import find_last
from workbench.protocols.contract import NOBODY
from workbench.protocols.dps.automaton import ACTIVE
from workbench.sim.actions import CRASHED
from workbench.sim.rows import Columns
from workbench.sim.workload import Publish, Subscribe

# The time in which a change has spread: the period in which a protocol refreshes its state, in seconds.
PERIOD_S = {"Flooding": 0.5, "Gossip": 0.5, "CodedDiffusion": 1.0, "Diffusion": 30.0, "TinyMQ": 30.0, "Pub2Sub": 30.0}
PERIOD_S |= {"DPS": 30.0}
PERIODS = 3
LASTS_S = 2.0  # the time that a publication may be in transit, so that a change can affect it
# A node of coded diffusion collects for 50 ms, so 59 hops take 3.3 s; each dependent packet adds .2 s.
LASTS_S_OF = {"CodedDiffusion": 5.0}
# Events of changes that lost frames cause -> the details that count, or None for all.
CHANGES: dict[str, dict[str, Any]] = {
    "Diffusion": {"gradient_removed": ("expired", "evicted", "blacklisted"), "interest_removed": None},
    "TinyMQ": {"key_set": None},
    "Pub2Sub": {"key_set": None},
    "DPS": {"link_set": None},
}
WITH_ROOTS = frozenset(("TinyMQ", "Pub2Sub"))
ONE_WAY_SUFFICES = frozenset(("Flooding", "Gossip", "CodedDiffusion"))
# Reasons of drops that show a message circling: these networks are not deep enough for them.
TOO_LONG = frozenset(("ttl", "hops"))
# Frames that a node sends for one message at most, without the radio's retries.
TRIES = {"TinyMQ": 11, "Pub2Sub": 11, "Diffusion": 4, "DPS": 4}
GRACE_S = 120.0  # after the last publication: samples wait for an interest for 60 s, TinyMQ's messages for 50
REST_S = 60.0
WHOLE_S = 60.0  # two of DPS's ``link_loss_s``
# Maintenance comes in bursts: more than RESTLESS times the frames before count as noise at the end.
RESTLESS = 1.5
SECOND = 1_000_000


class Verdict(NamedTuple):
    """The verdict on a case: numbers of expected and missed deliveries by kind, of other faults, and two times in s."""

    expected: int
    apart: int
    unsettled: int
    excused: int
    missed: int
    wrong: int
    repeated: int
    circling: int
    late: int
    restless: int
    parts: int  # 1 if a DPS mesh was not whole WHOLE_S after the last change, unless nodes died
    whole_s: float  # after the last change, until the active links of a DPS mesh joined all nodes for good
    first_s: float  # the longest time from a recovery to an arriving publication, if some were missed before

    @property
    def is_fault(self) -> bool:
        """True if the case shows a fault."""
        return any((self.missed, self.wrong, self.repeated, self.circling, self.late, self.restless, self.parts))


def judge(case: Case, run: Any) -> Verdict:
    """Return the verdict on the run of a case; the run must have a trace."""
    rows = Columns(run.trace)
    readings = expected(case.scenario, rows)
    fate = _classify_missing(case, rows, readings)
    metrics = run.metrics
    return Verdict(
        len(readings.pairs.publication),
        *(int(np.count_nonzero(fate == kind)) for kind in ("apart", "unsettled", "excused", "missed")),
        int(metrics["wrong_deliveries"]),
        0 if _may_repeat(case) else int(metrics["duplicate_deliveries"]),
        _count_circling(case, rows),
        *_count_late_frames(case, rows),
        *_measure_parts(case, rows),
        _measure_recovery_s(rows, readings),
    )


def _may_repeat(case: Case) -> bool:
    """Return whether the case may have repeated deliveries by design.

    They occur in gossip, and in bursts of more readings than diffusion stores.
    """
    readings = Counter(item.start_s for item in case.scenario.workload if isinstance(item, Publish))
    is_burst = case.protocol == "Diffusion" and max(readings.values()) > case.scenario.protocol.settings["max_data"]
    return is_burst or case.protocol == "Gossip"


# Missed deliveries


def _classify_missing(case: Case, rows: Columns, readings: Expected) -> np.ndarray:
    """Return the kind of each of the m missing deliveries, as text (m,): "apart", "unsettled", "excused" or "missed".

    The module's docstring defines the kinds.
    """
    changed_us = np.sort(_find_changes_us(case, rows))
    given_up = _find_given_up(case.protocol, rows)
    is_linked = _Linked(case, rows)
    is_stored = _Stored(rows) if case.protocol == "Diffusion" and not case.is_ideal else _is_always_reached
    lasts_us = LASTS_S_OF.get(case.protocol, LASTS_S) * SECOND
    fates = []
    missing, subscribed, published = readings.missing, readings.subscriptions, readings.publications
    columns = (
        missing.subscriber,
        missing.publisher,
        published.number[missing.publication],
        subscribed.first_us[missing.subscription],
        published.time_us[missing.publication],
    )
    for sink, publisher, number, subscribed_us, published_us in zip(*columns, strict=True):
        since_us = published_us - PERIODS * PERIOD_S[case.protocol] * SECOND
        first, last = np.searchsorted(changed_us, (since_us, published_us + lasts_us))
        moment = int(sink), int(published_us)
        if not is_linked(int(publisher), *moment):
            fates.append("apart")
        elif first < last or subscribed_us > since_us or not is_stored(*moment, is_linked.reached(*moment)):
            fates.append("unsettled")
        elif not case.is_ideal and given_up.intersection(_find_messages(rows, publisher, number)):
            fates.append("excused")
        else:
            fates.append("missed")
    return np.array(fates, dtype=object)


def _find_changes_us(case: Case, rows: Columns) -> np.ndarray:
    times = [rows.columns(event, "time_us")[0] for event in ("failed", "recovered", "unsubscribed")]
    for event, details in CHANGES.get(case.protocol, {}).items() if not case.is_ideal else ():
        time_us, detail = rows.columns(event, "time_us", "detail")
        texts = rows.words["detail"]
        wanted = [code for code, text in enumerate(texts) if details is None or text in details]
        times.append(time_us[np.isin(detail, wanted)])
    return np.concatenate(times)


class _Linked:
    """A function (node, other, time_us): whether live nodes connect the two nodes, as the kind "apart" requires."""

    def __init__(self, case: Case, rows: Columns) -> None:
        least = 0.0 if case.is_ideal else USABLE
        self._links = case.scenario.topology if case.protocol in ONE_WAY_SUFFICES else None
        if self._links is None or not case.is_ideal:
            self._links = two_way_links(case.scenario.topology, least)
        self._roots = case.scenario.protocol.settings["roots"] if case.protocol in WITH_ROOTS else None
        self._events = sorted((row.time_us, row.event == "failed", row.node) for row in rows.of("failed", "recovered"))
        self._known: dict[frozenset[int], tuple[Any, dict[int, set[int]]]] = {}

    def __call__(self, node: int, other: int, time_us: int) -> bool:
        reached = self.reached(node, time_us)
        return other in reached and (self._roots is None or not reached.isdisjoint(self._roots))

    def reached(self, start: int, time_us: int) -> set[int]:
        """Return ``start`` and the nodes that it reaches over live nodes at ``time_us``; an empty set if it is down."""
        down: set[int] = set()
        for at_us, is_failure, node in self._events:
            if at_us <= time_us:
                (down.add if is_failure else down.discard)(node)
        key = frozenset(down)
        if key not in self._known:
            up = self._links.subgraph(node for node in self._links if node not in down)
            self._known[key] = up, {}
        up, reached = self._known[key]
        if start not in reached:
            reached[start] = nx.descendants(up, start) | {start} if start in up else set()
        return reached[start]


class _Stored:
    """A function (sink, time_us, nodes): whether at that time each of the nodes has a gradient for the sink."""

    def __init__(self, rows: Columns) -> None:
        names = "node", "origin", "time_us", "value"
        self._node, self._sink, self._from_us, self._to_us = rows.columns("gradient_set", *names)

    def __call__(self, sink: int, time_us: int, nodes: set[int]) -> bool:
        holds = (self._sink == sink) & (self._from_us <= time_us) & (time_us < self._to_us)
        return nodes - {sink} <= set(self._node[holds].tolist())


def _is_always_reached(sink: int, time_us: int, nodes: set[int]) -> bool:
    return True


def _find_messages(rows: Columns, publisher: int, number: int) -> Iterable[tuple[int, int]]:
    """Return [(origin, sequence), ...] of the messages that carry reading ``number`` of a publisher."""
    node, value, origin, sequence = rows.columns("originated", "node", "value", "origin", "sequence")
    carries = (node == publisher) & (value == number)
    return list(zip(origin[carries].tolist(), sequence[carries].tolist(), strict=True))


def _find_given_up(protocol: str, rows: Columns) -> set[tuple[int, int]]:
    """Return {(origin, sequence)} of messages of which a frame never reached its destination."""
    names = "message", "origin", "sequence", "node", "peer"
    lost = tuple(rows.columns("lost", *names))
    is_final = find_last(lost, tuple(rows.columns("received", *names))) < 0
    if protocol == "CodedDiffusion":
        is_final[:] = True  # each packet is different, so a received packet does not replace a lost one
    messages = set(zip(lost[1][is_final].tolist(), lost[2][is_final].tolist(), strict=True))
    return messages | set(
        zip(*(column.tolist() for column in rows.columns("given_up", "origin", "sequence")), strict=True)
    )


# Circling messages


def _count_circling(case: Case, rows: Columns) -> int:
    """Return the number of messages that circle.

    A message circles if it is sent over an arc more often than its copies and repetitions explain, or if a node drops
    it as too old.
    """
    names = _carriers(rows)
    texts = rows.words["message"]
    wanted = [code for code, text in enumerate(texts) if text in names]
    columns = rows.columns("sent", "message", "origin", "sequence", "node", "peer")
    is_wanted = np.isin(columns[0], wanted)
    table = np.stack([column[is_wanted] for column in columns], axis=1)
    often = set()
    if len(table):
        arcs, counts = np.unique(table, axis=0, return_counts=True)
        often = {tuple(arc[:3].tolist()) for arc in arcs[counts > _count_allowed_copies(case)]}
    message, origin, sequence, detail = rows.columns("dropped", "message", "origin", "sequence", "detail")
    old = [code for code, text in enumerate(rows.words["detail"]) if text in TOO_LONG]
    is_old = np.isin(detail, old)
    too_old = zip(message[is_old].tolist(), origin[is_old].tolist(), sequence[is_old].tolist(), strict=True)
    return len(often.union(too_old))


def _carriers(rows: Columns) -> set[str]:
    """Return the names of the message types that carry publications in this trace."""
    (message,) = rows.columns("originated", "message")
    return {rows.words["message"][code] for code in np.unique(message).tolist()} | {"notification", "coded"}


def _count_allowed_copies(case: Case) -> int:
    """Return how often a message may be sent over an arc without being judged as circling.

    Trees and sinks may need copies of their own. The result is the number of copies, times the tries of a frame if
    frames may be lost.
    """
    protocol, sinks = case.scenario.protocol, len({item.at for item in case.scenario.workload})
    copies = len(protocol.settings["roots"]) * (sinks + 1) if case.protocol in WITH_ROOTS else 1
    if case.protocol == "Diffusion":
        copies = sum(isinstance(item, Subscribe) for item in case.scenario.workload)  # each copy serves other sinks
    if case.protocol == "CodedDiffusion":
        copies = 4 * protocol.settings["generation_size"]
    may_fail = not case.is_ideal or case.outage != "none"
    tries = (1 + case.scenario.radio.retries) * TRIES.get(case.protocol, 1) if may_fail else 1
    return copies * tries


# After the last publication


def _count_late_frames(case: Case, rows: Columns) -> tuple[int, int]:
    """Return (number of frames that carry publications too late, 1 if the network does not come to rest, else 0).

    A network does not come to rest if in the last minute far more frames are sent than in any minute before.
    """
    (published_us,) = rows.columns("published", "time_us")
    time_us, message = rows.columns("sent", "time_us", "message")
    wanted = [code for code, text in enumerate(rows.words["message"]) if text in _carriers(rows)]
    is_late = time_us > int(published_us.max()) + GRACE_S * SECOND
    count = int(case.scenario.duration_s // REST_S)
    minutes = np.bincount((time_us // (REST_S * SECOND)).astype(np.int64), minlength=count)
    *before, last = minutes[:count].tolist()
    return int(np.count_nonzero(np.isin(message, wanted) & is_late)), int(last > RESTLESS * max(before))


# The mesh of DPS


def _measure_parts(case: Case, rows: Columns) -> tuple[int, float]:
    """Return (1 if a DPS mesh stays in parts for too long, else 0; time until it was whole for good).

    The time is in s from the last change, infinite if the mesh is in parts at the end. A mesh is whole when links that
    both ends use join the live nodes as far as the network's links do. Deaths are noticed later than other changes, so
    meshes with deaths are measured but not judged. Returns (0, 0.0) for other protocols and lossy links.
    """
    if case.protocol != "DPS" or not case.is_ideal:
        return 0, 0.0
    links = two_way_links(case.scenario.topology)
    changes = [(row.time_us, row.node, NOBODY, row.event == "failed") for row in rows.of("failed", "recovered")]
    events = changes + [(row.time_us, row.node, row.peer, row.value == ACTIVE) for row in rows.of("link_set")]
    crashed = {(row.time_us, row.node) for row in rows.of("failed") if row.detail == CRASHED}
    changed_us = max([time_us for time_us, *_ in changes], default=0)
    down: set[int] = set()
    active: set[tuple[int, int]] = set()
    was_whole, whole_us = False, changed_us
    events.sort(key=lambda event: event[0])
    for number, (time_us, node, peer, is_on) in enumerate(events):
        if peer == NOBODY:
            (down.add if is_on else down.discard)(node)
            if (time_us, node) in crashed:
                active -= {link for link in active if link[0] == node}
        else:
            (active.add if is_on else active.discard)((node, peer))
        is_last = number + 1 == len(events)
        if not is_last and (time_us < changed_us or events[number + 1][0] == time_us):
            continue
        is_whole = _is_whole(links, active, down)
        if is_whole and not was_whole:
            whole_us = max(time_us, changed_us)
        was_whole = is_whole
    seconds = (whole_us - changed_us) / SECOND if was_whole else math.inf
    return int(seconds > WHOLE_S and case.outage != "death"), seconds


def _is_whole(links: nx.Graph, active: set[tuple[int, int]], down: set[int]) -> bool:
    """Return whether DPS links that both ends use join the live nodes as far as the network's links do.

    ``links`` are the network's links, ``active`` the pairs (node, neighbor) of active DPS links, ``down`` the nodes
    that are off.
    """
    up = links.subgraph(node for node in links if node not in down)
    used = nx.Graph()
    used.add_nodes_from(up)
    used.add_edges_from((a, b) for a, b in active if (b, a) in active and up.has_edge(a, b))
    return nx.number_connected_components(used) == nx.number_connected_components(up)


# After an outage


def _measure_recovery_s(rows: Columns, readings: Expected) -> float:
    """Return the longest time in s from the last recovery to the first publication that arrives, over some pairs.

    The pairs are those of subscriber and publisher between which a publication was missed before the recovery.
    """
    recovered = [row.time_us for row in rows.of("recovered")]
    if not recovered:
        return 0.0
    back_us, longest_us = max(recovered), 0
    missed = readings.missing
    numbers, times_us = (
        column[missed.publication] for column in (readings.publications.number, readings.publications.time_us)
    )
    missing = set(zip(missed.subscriber, missed.publisher, numbers, strict=True))
    missed_before = {
        (sink, publisher)
        for sink, publisher, at_us in zip(missed.subscriber, missed.publisher, times_us, strict=True)
        if at_us < back_us
    }
    for sink, publisher in missed_before:
        published = readings.publications
        indices = np.flatnonzero((published.node == publisher) & (published.time_us >= back_us))
        arrived = (index for index in indices.tolist() if (sink, publisher, published.number[index]) not in missing)
        first = next(arrived, None)
        if len(indices):
            end_us = published.time_us[indices[-1] if first is None else first]
            longest_us = max(longest_us, int(end_us) - back_us)
    return longest_us / SECOND

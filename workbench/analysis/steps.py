"""Functions that search for the last step of a lost reading that the trace proves.

`workbench.analysis.accounts` uses them, and so do the modules ``explain`` of protocols. Most functions return a
`workbench.analysis.evidence.Step`, or None if the rows prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from workbench.analysis.evidence import Evidence, Pair, Step, Trail, dropped
from workbench.sim.rows import Row


def broadcast_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last `Step` of a lost reading, in a protocol whose nodes forward readings to all neighbors.

    ``pair``: the reading and its subscription. ``trail``: the trace rows of the reading. Returns None if the trace does
    not prove a loss.
    """
    holders = trail.holders
    if pair.subscriber in holders:
        return _find_step_at_subscriber(trail, pair.subscriber)
    crossing_steps = [
        step
        for node, neighbor, _ in evidence.crossings(holders, pair.subscriber)
        if (step := crossing(evidence, trail, node, neighbor)) is not None
    ]
    return min(crossing_steps, key=_rank_step) if crossing_steps else None


def _find_step_at_subscriber(trail: Trail, node: int) -> Step | None:
    """Return the `Step` at which the subscriber ``node`` lost parts of a reading that it had begun to receive, or None.

    ``trail``: the trace rows of the reading.
    """
    loss_step = trail.outcome(node, ())
    received_rows = trail.at("received", node)
    if (
        loss_step is not None
        and loss_step.cause == "evicted"
        and received_rows
        and received_rows[-1].position < loss_step.rows[-1].position
    ):
        loss_step = None  # It had too little with or without the evicted part.
    return loss_step or incomplete(trail, node)


def crossing(evidence: Evidence, trail: Trail, node: int, neighbor: int) -> Step | None:
    """Return the `Step` that kept a broadcast reading from getting from ``node`` to ``neighbor``, or None.

    ``trail``: the trace rows of the reading.
    """
    lost = trail.losses(node).get(neighbor)
    if lost is not None:
        return Step("down" if lost.detail == "down" else "lost", node, neighbor, lost.time_us, lost.detail, (lost,))
    sent_rows = trail.at("sent", node)
    if sent_rows:
        last_sent = sent_rows[-1]
        if evidence.is_in_range(node, neighbor, last_sent.time_us):
            return None
        return Step("out_of_range", node, neighbor, last_sent.time_us, "", (last_sent,))
    # A relay evicts only messages that it has forwarded or dropped before.
    drops = [step for row in trail.drops if row.node == node and (step := dropped(row)).cause != "evicted"]
    return drops[-1] if drops else trail.outcome(node, ()) or unsent(evidence, trail, node)


def routed_step(evidence: Evidence, pair: Pair, trail: Trail) -> Step | None:
    """Return the last step of a lost reading, in a protocol that routes readings hop by hop.

    A `Step` is an event on the reading's path, such as the loss of a frame. Returns None if the trace does not prove a
    loss. ``evidence``: the trace of the run. ``trail``: the trace rows of the reading. ``pair``, the reading and its
    subscription, is ignored.
    """
    return next(iter(outcomes(evidence, trail, trail.holders)), None)


def outcomes(evidence: Evidence, trail: Trail, nodes: Iterable[int]) -> list[Step]:
    """Return, for each of ``nodes``, the last `Step` there that may have lost the reading; the latest step first.

    Nodes without such a step are left out. Steps with the cause "not_forwarded" come after all others. ``trail``: the
    trace rows of the reading.
    """
    steps = [step for node in nodes if (step := trail.outcome(node) or unsent(evidence, trail, node)) is not None]
    return sorted(steps, key=lambda step: (step.cause != "not_forwarded", step.rows[-1].position), reverse=True)


def is_last(trail: Trail, end: int, copy: Callable[[Row], Hashable] = lambda row: None) -> bool:
    """Return whether no frame with a reading is received, lost, dropped or given up after the trace position ``end``.

    ``trail``: the trace rows of the reading. A reception or loss is ignored if the receiver has already received the
    same copy from the same sender. ``copy``: a function that returns the identity of the copy in a trace row; by
    default, all copies are the same.
    """
    if any(row.position > end for row in (*trail.drops, *trail.of("given_up"))):
        return False
    seen_hops: set[tuple[int, int, Hashable]] = set()
    for row in trail.rows:
        if row.event in ("received", "lost"):
            hop = row.peer, row.node, copy(row)
            is_known = hop in seen_hops or (row.node, row.peer, row.time_us) in trail.repeated
            if row.position > end and not is_known:
                return False
            if row.event == "received":
                seen_hops.add(hop)
    return True


def _rank_step(step: Step) -> tuple[int, int]:
    return (step.cause not in ("lost", "down", "out_of_range"), -step.rows[-1].position)


def incomplete(trail: Trail, node: int) -> Step | None:
    """Return the `Step` "incomplete" if ``node`` received only parts of a reading, else None.

    ``trail``: the trace rows of the reading.
    """
    part_rows = trail.at("innovative", node) or trail.at("received", node)
    if not part_rows or trail.at("held", node):
        return None
    last_part = part_rows[-1]
    detail = str(last_part.value) if last_part.event == "innovative" else str(len(part_rows))
    return Step("incomplete", node, None, last_part.time_us, detail, (last_part,))


def unsent(evidence: Evidence, trail: Trail, node: int) -> Step | None:
    """Return the `Step` that explains why ``node``, which has the reading, did not send it.

    ``trail``: the trace rows of the reading. Returns None if the node sent or gave up a frame with the reading, or
    never had the reading.
    """
    if trail.at("sent", node) or trail.at("given_up", node):
        return None
    ready_rows = trail.at("originated", node) + trail.at("forwarded", node)
    if not ready_rows:
        holder_row = trail.holders.get(node)
        return None if holder_row is None else Step("not_forwarded", node, None, holder_row.time_us, "", (holder_row,))
    first_ready = ready_rows[0]
    later_sent = evidence.sent_after(node, first_ready.position)
    if later_sent:
        return Step("saturated", node, None, first_ready.time_us, "unsent", (first_ready, later_sent[-1]))
    return Step("run_ended", node, None, first_ready.time_us, "", (first_ready,))

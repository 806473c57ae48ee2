"""Recording of events in the loop: rows of the trace, or counters of events that no metric reads row by row."""

from workbench.sim.fast.compiled import compiled
from workbench.sim.fast.layout import BYTES_HEARD, BYTES_SENT, FRAMES_HEARD, FRAMES_SENT, NO_REASON, NONE, Event, Number


@compiled
def add_row(core, time, i, event, peer, name, origin, sequence, size, value, detail):
    """Add a row to the trace at node ``i``; event, message name and detail are codes."""
    index = core.numbers[Number.ROWS]
    core.numbers[Number.ROWS] = index + 1
    row = core.rows[index]
    row.time_us = time
    row.node = core.addresses[i]
    row.event = event
    row.peer = peer
    row.message = name
    row.origin = origin
    row.sequence = sequence
    row.size_B = size
    row.value = value
    row.detail = detail


@compiled
def add_action(core, now, i, event, sequence, value, detail):
    """Add a row for an action of the application, or a failure or recovery; it is always stored."""
    add_row(core, now, i, event, NONE, 0, core.addresses[i], sequence, 0, value, detail)


@compiled
def add_frame_row(core, now, i, event, peer, message, value, reason):
    """Add a row for a frame of ``message`` at node ``i``."""
    entry = core.messages[message]
    add_row(core, now, i, event, peer, entry.name, entry.origin, entry.sequence, entry.size_B, value, reason)


@compiled
def count_sent(core, message, heard):
    """Count a sent frame, and the ``heard`` nodes that received it, in a run without a trace."""
    entry = core.messages[message]
    core.traffic[entry.name, FRAMES_SENT] += 1
    core.traffic[entry.name, BYTES_SENT] += entry.size_B
    core.traffic[entry.name, FRAMES_HEARD] += heard
    core.traffic[entry.name, BYTES_HEARD] += heard * entry.size_B


@compiled
def add_loss(core, now, i, event, table, peer, message, reason):
    """Add a trace row for a lost or given up frame; without a trace, count it in ``table[message name, reason]``."""
    if core.traces:
        add_frame_row(core, now, i, event, peer, message, 0, reason)
    else:
        name = core.messages[message].name
        table[name, reason, 0] += 1
        table[name, reason, 1] += core.messages[message].size_B


@compiled
def add_entry(core, start, end, i, receiver, kind, copy_us=0):
    """Add an interval of node ``i``'s radio to the ledger, if the run keeps one; see `workbench.sim.state_times`."""
    if core.keeps_ledger:
        entry = core.ledger[core.numbers[Number.ENTRIES]]
        core.numbers[Number.ENTRIES] += 1
        entry.start = start
        entry.end = end
        entry.node = i
        entry.receiver = receiver
        entry.kind = kind
        entry.copy_us = copy_us


# Events of protocols


@compiled
def report(core, now, i, event, peer, message, value, detail):
    """Report a protocol's event about a message; it is recorded if the trace, or a metric, needs its row."""
    if core.is_recorded[event]:
        entry = core.messages[message]
        add_row(core, now, i, event, peer, entry.name, entry.origin, entry.sequence, 0, value, detail)


@compiled
def report_originated(core, now, i, message, number):
    """Report that node ``i`` created a message; it carries the reading with this ``number``."""
    entry = core.messages[message]
    add_row(core, now, i, Event.ORIGINATED, NONE, entry.name, entry.origin, entry.sequence, 0, number, NO_REASON)


@compiled
def report_held(core, now, i, peer, message, hops, is_first):
    """Report that node ``i`` holds a publication, ``hops`` hops from its origin.

    ``peer``: the address of the node that sent it, or -1. ``is_first``: whether the node did not hold it before.
    """
    if is_first:
        core.numbers[Number.HELD] += 1
    if core.is_recorded[Event.HELD] or core.nodes[i].is_sink:
        entry = core.messages[message]
        add_row(core, now, i, Event.HELD, peer, entry.name, entry.origin, entry.sequence, 0, hops, NO_REASON)


@compiled
def report_delivered(core, now, i, peer, message, number, detail):
    """Report that node ``i``'s subscription ``number`` received a sample; ``detail``: the code of the sample's text."""
    entry = core.messages[message]
    add_row(core, now, i, Event.DELIVERED, peer, entry.name, entry.origin, entry.sequence, 0, number, detail)


@compiled
def report_forwarded(core, now, i, peer, message, neighbors):
    """Report that a message was forwarded; a run without a trace ignores this."""
    if core.traces:
        report(core, now, i, Event.FORWARDED, peer, message, neighbors, NO_REASON)


@compiled
def drop(core, now, i, peer, message, reason):
    """Report that a node dropped a message."""
    if core.traces:
        report(core, now, i, Event.DROPPED, peer, message, 0, reason)
    else:
        core.dropped[reason] += 1

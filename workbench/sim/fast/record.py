"""Functions of the fast engine that record events: as rows of the trace, or as counts if no metric needs the rows.

Parameters of the functions
    ``core``      the run's `layout.Core`, the arrays of the engine
    ``now``       the present time in µs
    ``i``         the index of the node at which the event happens
    ``message``   the index of a message in ``core.messages``
    ``event``     the code of an event, such as a member of `layout.Event`
"""

from workbench.sim.fast.compiled import compiled
from workbench.sim.fast.layout import BYTES_HEARD, BYTES_SENT, FRAMES_HEARD, FRAMES_SENT, NO_REASON, NONE, Event, Number


@compiled
def add_row(core, time, i, event, peer, name, origin, sequence, size, value, detail):
    """Add a row to the trace; the other parameters are the values of its columns.

    ``i``: the index of the node. ``event``, the message's ``name`` and ``detail`` are codes of texts.
    """
    row_index = core.numbers[Number.ROWS]
    core.numbers[Number.ROWS] = row_index + 1
    trace_row = core.rows[row_index]
    trace_row.time_us = time
    trace_row.node = core.addresses[i]
    trace_row.event = event
    trace_row.peer = peer
    trace_row.message = name
    trace_row.origin = origin
    trace_row.sequence = sequence
    trace_row.size_B = size
    trace_row.value = value
    trace_row.detail = detail


@compiled
def add_action(core, now, i, event, sequence, value, detail):
    """Add a trace row for an action of the application, or for a failure or recovery of node ``i``.

    Unlike other rows, this row is stored in every run. ``event`` and ``detail`` are codes of texts.
    """
    add_row(core, now, i, event, NONE, 0, core.addresses[i], sequence, 0, value, detail)


@compiled
def add_frame_row(core, now, i, event, peer, message, value, reason):
    """Add a trace row about a frame of ``message`` at node ``i``.

    ``event``: the code of the event. ``peer``: the address of the frame's other node, or -1 if none is recorded.
    ``value``: the number in the column "value". ``reason``: the code in the column "detail".
    """
    message_row = core.messages[message]
    add_row(
        core,
        now,
        i,
        event,
        peer,
        message_row.name,
        message_row.origin,
        message_row.sequence,
        message_row.size_B,
        value,
        reason,
    )


@compiled
def count_sent(core, message, heard):
    """Count a sent frame, and the ``heard`` nodes that received it, in a run without a trace."""
    message_row = core.messages[message]
    core.traffic[message_row.name, FRAMES_SENT] += 1
    core.traffic[message_row.name, BYTES_SENT] += message_row.size_B
    core.traffic[message_row.name, FRAMES_HEARD] += heard
    core.traffic[message_row.name, BYTES_HEARD] += heard * message_row.size_B


@compiled
def add_loss(core, now, i, event, table, peer, message, reason):
    """Record a lost or given up frame: add a trace row, or count the frame in ``table`` in a run without a trace.

    ``event``: LOST or GIVEN_UP. ``table``: frames and bytes by message name and reason, ``core.lost`` or
    ``core.given_up``.
    """
    if core.traces:
        add_frame_row(core, now, i, event, peer, message, 0, reason)
    else:
        message_code = core.messages[message].name
        table[message_code, reason, 0] += 1
        table[message_code, reason, 1] += core.messages[message].size_B


@compiled
def add_entry(core, start, end, i, receiver, kind, copy_us=0):
    """Record what the radio of node ``i`` does from ``start`` to ``end`` (µs), if the run measures radio states.

    ``kind``: the activity, such as FRAME or WAIT; `RadioLedger.add` lists all kinds. ``receiver``: the receiver of a
    frame. ``copy_us``: the airtime of one copy in a strobe (repeated copies of a frame).
    """
    if core.keeps_ledger:
        ledger_entry = core.ledger[core.numbers[Number.ENTRIES]]
        core.numbers[Number.ENTRIES] += 1
        ledger_entry.start = start
        ledger_entry.end = end
        ledger_entry.node = i
        ledger_entry.receiver = receiver
        ledger_entry.kind = kind
        ledger_entry.copy_us = copy_us


# Events of protocols


@compiled
def report(core, now, i, event, peer, message, value, detail):
    """Record a protocol's event about a message, if the trace or a metric needs the event's row.

    ``peer``, ``value`` and ``detail`` are stored in the columns of these names.
    """
    if core.is_recorded[event]:
        message_row = core.messages[message]
        add_row(core, now, i, event, peer, message_row.name, message_row.origin, message_row.sequence, 0, value, detail)


@compiled
def report_originated(core, now, i, message, number):
    """Record that node ``i`` created a message that carries the node's reading with this ``number``."""
    message_row = core.messages[message]
    add_row(
        core,
        now,
        i,
        Event.ORIGINATED,
        NONE,
        message_row.name,
        message_row.origin,
        message_row.sequence,
        0,
        number,
        NO_REASON,
    )


@compiled
def report_held(core, now, i, peer, message, hops, is_first):
    """Record that node ``i`` holds a publication, which has travelled ``hops`` hops from its origin.

    ``peer``: the address of the node that sent the publication, or -1 if no node did. ``is_first``: whether the
    publication is new to node ``i``.
    """
    if is_first:
        core.numbers[Number.HELD] += 1
    if core.is_recorded[Event.HELD] or core.nodes[i].is_sink:
        message_row = core.messages[message]
        add_row(
            core,
            now,
            i,
            Event.HELD,
            peer,
            message_row.name,
            message_row.origin,
            message_row.sequence,
            0,
            hops,
            NO_REASON,
        )


@compiled
def report_delivered(core, now, i, peer, message, number, detail):
    """Record that the subscription ``number`` of node ``i`` received a sample.

    ``peer``: the address of the previous hop, or -1. ``detail``: the code of the trace text with the sample's
    attributes.
    """
    message_row = core.messages[message]
    add_row(
        core,
        now,
        i,
        Event.DELIVERED,
        peer,
        message_row.name,
        message_row.origin,
        message_row.sequence,
        0,
        number,
        detail,
    )


@compiled
def report_forwarded(core, now, i, peer, message, neighbors):
    """Record that node ``i`` forwarded a message, unless the run has no trace.

    ``peer``: the address of the neighbor that sent the message to this node. ``neighbors``: the number of nodes to
    which it was forwarded, 0 for a broadcast.
    """
    if core.traces:
        report(core, now, i, Event.FORWARDED, peer, message, neighbors, NO_REASON)


@compiled
def drop(core, now, i, peer, message, reason):
    """Record that node ``i`` dropped a message.

    ``peer``: the address of the node that sent the message, or -1 if no node did. ``reason``: the code of the reason.
    """
    if core.traces:
        report(core, now, i, Event.DROPPED, peer, message, 0, reason)
    else:
        core.dropped[reason] += 1

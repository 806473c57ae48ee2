"""What happened, as a kernel writes it: rows of the trace, or counters of what nobody looks at row by row."""

from workbench.sim.fast.compiled import compiled
from workbench.sim.fast.layout import BYTES_HEARD, BYTES_SENT, FRAMES_HEARD, FRAMES_SENT, NO_REASON, NONE, Event, Number


@compiled
def add_row(core, time, i, event, peer, name, origin, sequence, size, value, detail):
    """A row of the trace at node ``i``; what happened, the message's name and the detail are codes."""
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
    """A row of what the application did, or what became of the node: always kept."""
    add_row(core, now, i, event, NONE, 0, core.addresses[i], sequence, 0, value, detail)


@compiled
def add_frame_row(core, now, i, event, peer, message, value, reason):
    """A row of what became of a frame of ``message`` at node ``i``."""
    it = core.messages[message]
    add_row(core, now, i, event, peer, it.name, it.origin, it.sequence, it.size_B, value, reason)


@compiled
def count_sent(core, message, heard):
    """A frame was sent, and ``heard`` nodes heard it: counted where no trace is kept."""
    it = core.messages[message]
    core.traffic[it.name, FRAMES_SENT] += 1
    core.traffic[it.name, BYTES_SENT] += it.size_B
    core.traffic[it.name, FRAMES_HEARD] += heard
    core.traffic[it.name, BYTES_HEARD] += heard * it.size_B


@compiled
def add_loss(core, now, i, event, table, peer, message, reason):
    """A frame was lost or given up: a row, or counted in ``table`` under its reason."""
    if core.traces:
        add_frame_row(core, now, i, event, peer, message, 0, reason)
    else:
        name = core.messages[message].name
        table[name, reason, 0] += 1
        table[name, reason, 1] += core.messages[message].size_B


# What protocols tell


@compiled
def tell(core, now, i, event, peer, message, value, detail):
    """A protocol's event about a message, if its rows are wanted: for a trace, or for metrics that look at them."""
    if core.kept[event]:
        it = core.messages[message]
        add_row(core, now, i, event, peer, it.name, it.origin, it.sequence, 0, value, detail)


@compiled
def tell_originated(core, now, i, message, number):
    """A message starts its travel here; it carries the reading with that number."""
    it = core.messages[message]
    add_row(core, now, i, Event.ORIGINATED, NONE, it.name, it.origin, it.sequence, 0, number, NO_REASON)


@compiled
def tell_held(core, now, i, peer, message, hops, is_first):
    """A node holds a publication; ``is_first``: it never held it before."""
    if is_first:
        core.numbers[Number.HELD] += 1
    if core.kept[Event.HELD] or core.nodes[i].is_sink:
        it = core.messages[message]
        add_row(core, now, i, Event.HELD, peer, it.name, it.origin, it.sequence, 0, hops, NO_REASON)


@compiled
def tell_delivered(core, now, i, peer, message, number, detail):
    """A subscription was handed a sample."""
    it = core.messages[message]
    add_row(core, now, i, Event.DELIVERED, peer, it.name, it.origin, it.sequence, 0, number, detail)


@compiled
def tell_forwarded(core, now, i, peer, message, neighbors):
    """A message was sent on: for a trace alone, as nodes do not tell it where only metrics are wanted."""
    if core.traces:
        tell(core, now, i, Event.FORWARDED, peer, message, neighbors, NO_REASON)


@compiled
def drop(core, now, i, peer, message, reason):
    """A message ended here."""
    if core.traces:
        tell(core, now, i, Event.DROPPED, peer, message, 0, reason)
    else:
        core.dropped[reason] += 1

"""The channel of the fast engine: frames from a node's radio to the end of their airtime.

`workbench.sim.channel` explains the model; this module repeats it draw by draw and event by event. Only the
storage of audible transmissions differs: each node has a list of copies, instead of one object in many lists.
"""

import numpy as np

from workbench.protocols.link_estimator import NUMBERS
from workbench.sim import low_power, radio
from workbench.sim.channel import (
    ACKNOWLEDGED,
    MAX_BACKOFF_EXPONENT,
    MAX_BACKOFFS,
    MIN_BACKOFF_EXPONENT,
    STROBING,
    UNACKNOWLEDGED,
    UNDECIDED,
)
from workbench.sim.fast.agenda import push
from workbench.sim.fast.compiled import compiled
from workbench.sim.fast.draws import below, key_of, uniform
from workbench.sim.fast.layout import (
    BROADCAST,
    CHANNEL_CHECK,
    FRAME_END,
    FRAME_READY,
    NO_REASON,
    NONE,
    STROBE_END,
    UNREACHABLE,
    Event,
    Number,
    Reason,
)
from workbench.sim.fast.record import add_entry, add_loss
from workbench.sim.low_power import TURNAROUND_US, UNIT_BACKOFF_US
from workbench.sim.state_times import ACKNOWLEDGEMENT, CHECK, CHECK_US, FRAME, STROBE, WAIT

FORGET_AT = 16  # number of a node's audible transmissions at which finished ones are removed

next_wake, copy_end, strobe_end, check_time = (
    compiled(function)
    for function in (low_power.next_wake, low_power.copy_end, low_power.strobe_end, low_power.check_time)
)
count_fragments, share_of_whole_frames = compiled(radio.count_fragments), compiled(radio.share_of_whole_frames)

# Frames and messages


@compiled
def take_frame(core):
    """Take a free entry of ``core.frames`` for a frame or a wake-up, and return its index."""
    frame = np.uint32(core.numbers[Number.FREE_FRAME])
    core.numbers[Number.FREE_FRAME] = core.frames[frame].next
    core.numbers[Number.FREE_FRAMES] -= 1
    return frame


@compiled
def free_frame(core, frame):
    """Free the entry ``core.frames[frame]`` of a wake-up or a frame; `end` also releases the frame's message."""
    core.frames[frame].next = core.numbers[Number.FREE_FRAME]
    core.numbers[Number.FREE_FRAME] = frame
    core.numbers[Number.FREE_FRAMES] += 1


@compiled
def make_message(core, name, origin, sequence, content):
    """Return the index, in ``core.messages``, of a new message with the attributes and size of a publication.

    ``name``: the code of the message's name. ``content``: the publication's row in ``core.contents``.
    The caller counts as a holder of the message until it calls `let_go`.
    """
    entry = core.contents[content]
    return take_message(core, name, origin, sequence, content, entry.size_B, entry.airtime_us)


@compiled
def take_message(core, name, origin, sequence, content, size_B, airtime_us):
    """Return the index, in ``core.messages``, of a new message of ``size_B`` bytes.

    ``name``: the code of the message's name. The protocol defines the meaning of ``content``.
    """
    message = core.numbers[Number.FREE_MESSAGE]
    entry = core.messages[message]
    core.numbers[Number.FREE_MESSAGE] = entry.next
    core.numbers[Number.FREE_MESSAGES] -= 1
    entry.name = name
    entry.origin = origin
    entry.sequence = sequence
    entry.content = content
    entry.size_B = size_B
    entry.airtime_us = airtime_us
    entry.holders = 1
    return message


@compiled
def hold_message(core, message):
    """Add one to the message's count of holders, so that its entry is not reused."""
    core.messages[message].holders += 1


@compiled
def let_go(core, message):
    """Subtract one from the message's count of holders; free a message without holders."""
    entry = core.messages[message]
    entry.holders -= 1
    if entry.holders == 0:
        entry.next = core.numbers[Number.FREE_MESSAGE]
        core.numbers[Number.FREE_MESSAGE] = message
        core.numbers[Number.FREE_MESSAGES] += 1


@compiled
def end(core, frame):
    """Free a finished frame's entry, and release the frame's message."""
    let_go(core, core.frames[frame].message)
    free_frame(core, frame)


# Sending


@compiled
def send(core, now, i, receiver, message, header):
    """Pass a frame with ``message`` to node ``i``'s radio.

    ``receiver``: a node's index, BROADCAST or UNREACHABLE. ``header``: the number that the frame adds to the message.
    """
    ready = now
    if receiver == BROADCAST and core.jitter_width_us:
        core.nodes[i].sent += 1
        ready += core.jitter_shortest_us + below(core.nodes[i].jitter_key, core.nodes[i].sent, core.jitter_width_us)
    send_at(core, ready, i, receiver, message, header, now)


@compiled
def send_at(core, ready, i, receiver, message, header, now):
    """Pass a frame to node ``i``'s radio, as `send` does; it is not sent before the time ``ready``."""
    frame = take_frame(core)
    entry = core.frames[frame]
    entry.sender = i
    entry.receiver = receiver
    entry.message = message
    entry.header = header
    entry.outage = core.nodes[i].outages
    entry.backoffs = 0
    entry.attempt = 0
    core.messages[message].holders += 1
    if core.messages[message].size_B > core.longest_frame_B:
        core.numbers[Number.TOO_LONG] = message + 1
        core.numbers[Number.TOO_LONG_AT] = i
    if core.csma:
        push(core, frame, ready, FRAME_READY)
    else:
        begin(core, frame, max(ready, core.nodes[i].free_at), now)


@compiled
def begin(core, frame, start, now):
    """Schedule a frame to go on the air at ``start``, now or later."""
    entry = core.frames[frame]
    airtime_us = core.messages[entry.message].airtime_us
    finish = start + airtime_us
    entry.start = start
    if core.wake_interval_us:
        finish = _find_first_end(core, frame)
    core.nodes[entry.sender].free_at = finish
    if core.collisions or core.csma:
        _add_to_hearers(core, entry.sender, start, finish, now)
    add_entry(core, start, finish, entry.sender, entry.receiver, STROBE if core.wake_interval_us else FRAME, airtime_us)
    push(core, frame, finish, FRAME_END)


# Audible transmissions


@compiled
def _add_to_hearers(core, sender, start, finish, now):
    for arc in range(core.first[sender], core.first[sender + 1]):
        _add_audible(core, core.receivers[arc], sender, start, finish, now)
    _add_audible(core, sender, sender, start, finish, now)


@compiled
def _add_audible(core, i, sender, start, finish, now):
    if core.audible_count[i] >= core.forget_at[i]:
        # A frame that ends from now on began at most the longest airtime ago.
        _remove_finished(core, i, now - core.longest_airtime_us)
        core.forget_at[i] = max(FORGET_AT, 2 * core.audible_count[i])
    index = core.numbers[Number.FREE_AUDIBLE]
    entry = core.audibles[index]
    core.numbers[Number.FREE_AUDIBLE] = entry.next
    core.numbers[Number.FREE_AUDIBLES] -= 1
    entry.sender = sender
    entry.start = start
    entry.end = finish
    entry.next = core.first_audible[i]
    core.first_audible[i] = index
    core.audible_count[i] += 1


@compiled
def _unlink(core, i, previous, index):
    """Remove entry ``index`` from the list of transmissions that node ``i`` can hear; return the next entry.

    ``previous``: the entry in front of the removed one, or NONE. Entries are rows of ``core.audibles``.
    """
    next_index = core.audibles[index].next
    if previous == NONE:
        core.first_audible[i] = next_index
    else:
        core.audibles[previous].next = next_index
    core.audibles[index].next = core.numbers[Number.FREE_AUDIBLE]
    core.numbers[Number.FREE_AUDIBLE] = index
    core.numbers[Number.FREE_AUDIBLES] += 1
    core.audible_count[i] -= 1
    return next_index


@compiled
def _remove_finished(core, i, horizon):
    previous, index = NONE, core.first_audible[i]
    while index != NONE:
        if core.audibles[index].end <= horizon:
            index = _unlink(core, i, previous, index)
        else:
            previous, index = index, core.audibles[index].next


@compiled
def _remove_sender(core, i, sender, now):
    """Cancel a failed sender's transmissions in the list of those that node ``i`` can hear.

    Transmissions that have not begun are removed; the others end now.
    """
    previous, index = NONE, core.first_audible[i]
    while index != NONE:
        entry = core.audibles[index]
        if entry.sender == sender and entry.start >= now:
            index = _unlink(core, i, previous, index)
            continue
        if entry.sender == sender:
            entry.end = min(entry.end, now)
        previous, index = index, entry.next


@compiled
def is_busy(core, i, now):
    """Return whether node ``i`` hears a transmission now."""
    index = core.first_audible[i]
    while index != NONE:
        entry = core.audibles[index]
        if entry.start <= now < entry.end:
            return True
        index = entry.next
    return False


@compiled
def interference(core, arc, i, sender, sent, start, finish):
    """Return the `Reason` why another transmission in [start, finish) makes node ``i`` miss a frame, or NO_REASON.

    ``arc``: from the sender to the node. ``sent``: when the sender's transmission began; with low-power listening, it
    begins before ``start``, when the copy begins that the node receives.
    """
    reason = NO_REASON
    index = core.first_audible[i]
    while index != NONE:
        audible = core.audibles[index]
        index = audible.next
        if audible.start >= finish or audible.end <= start:
            continue
        if audible.sender == i:
            return Reason.HALF_DUPLEX
        is_other = audible.sender != sender or audible.start != sent
        if is_other and not (core.capture_ddB and (reason or _is_captured(core, arc, i, audible.sender))):
            reason = Reason.COLLISION
    return reason


@compiled
def _is_captured(core, arc, i, other_sender):
    """Return whether a frame over ``arc`` is strong enough at node ``i`` to survive a frame of ``other_sender``."""
    return core.strengths_ddB[arc] - core.strengths_ddB[arc_between(core, other_sender, i)] >= core.capture_ddB


@compiled
def loss_reason(core, arc, frame, finish):
    """Return the `Reason` why a frame is lost on an arc, or NO_REASON."""
    i = core.receivers[arc]
    if core.down[i]:
        return Reason.DOWN
    entry = core.frames[frame]
    if core.loses and core.ratios[arc] < 1.0:
        fragments = count_fragments(core.messages[entry.message].size_B, core.max_frame_B)
        if uniform(core.arc_keys[arc], entry.start) >= share_of_whole_frames(core.ratios[arc], fragments):
            return Reason.LINK
    if core.collisions:
        start = entry.start
        if core.wake_interval_us:
            finish = _find_copy_end(core, frame, i)
            start = finish - core.messages[entry.message].airtime_us
        return interference(core, arc, i, entry.sender, entry.start, start, finish)
    return NO_REASON


@compiled
def arc_between(core, sender, receiver):
    """Return the index of the arc between two nodes, given by their indices, or NONE."""
    low, high = core.first[sender], core.first[sender + 1]
    last = high
    while low < high:
        middle = (low + high) >> 1
        if core.receivers[middle] < receiver:
            low = middle + 1
        else:
            high = middle
    return low if low < last and core.receivers[low] == receiver else NONE


# CSMA/CA and acknowledgements


@compiled
def contend(core, frame, now):
    """Append a ready frame to its node's queue; if it is the first, it begins to contend for the channel."""
    entry = core.frames[frame]
    i = entry.sender
    if entry.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
        return
    entry.behind = NONE
    if core.queue_head[i] == NONE:
        core.queue_head[i] = frame
        core.queue_tail[i] = frame
        _back_off(core, frame, now)
    else:
        core.frames[core.queue_tail[i]].behind = frame
        core.queue_tail[i] = frame


@compiled
def _back_off(core, frame, now):
    entry = core.frames[frame]
    i = entry.sender
    exponent = min(MIN_BACKOFF_EXPONENT + entry.backoffs, MAX_BACKOFF_EXPONENT)
    core.nodes[i].sent += 1
    slots = below(core.backoff_keys[i], core.nodes[i].sent, 1 << exponent)
    start = max(now, core.nodes[i].free_at)
    if core.wake_interval_us:
        phase = core.phases_us[entry.receiver] if _is_phase_known(core, frame) else np.int64(NONE)
        time = check_time(start, slots, entry.backoffs, core.wake_interval_us, phase)
    else:
        time = start + slots * UNIT_BACKOFF_US
    push(core, frame, time, CHANNEL_CHECK)


@compiled
def check_channel(core, frame, now):
    """Send the frame whose back-off has ended, back off again, or give it up.

    Return True if the frame is given up, as the channel was never free; the caller then reports the outcome and frees
    the frame.
    """
    entry = core.frames[frame]
    i = entry.sender
    if entry.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
        return False
    add_entry(core, now, now + CHECK_US, i, UNREACHABLE, CHECK)
    if not is_busy(core, i, now):
        begin(core, frame, now + TURNAROUND_US, now)
    elif entry.backoffs < MAX_BACKOFFS:
        entry.backoffs += 1
        _back_off(core, frame, now)
    else:
        cancel_beacon(core, frame)
        next_in_queue(core, i, now)
        add_loss(core, now, entry.sender, Event.GIVEN_UP, core.given_up, NONE, entry.message, Reason.CHANNEL_BUSY)
        return True
    return False


@compiled
def give_up(core, frame, now, reason):
    """Record that a frame was not sent, or was cut off, and free it."""
    entry = core.frames[frame]
    cancel_beacon(core, frame)
    add_loss(core, now, entry.sender, Event.GIVEN_UP, core.given_up, NONE, entry.message, reason)
    end(core, frame)


@compiled
def cancel_beacon(core, frame):
    """Reuse the number of an unsent beacon for the node's next beacon; do nothing if ``frame`` is not a beacon."""
    entry = core.frames[frame]
    if core.messages[entry.message].name == core.beacon_name:
        beacons = core.beacons[entry.sender]
        beacons.number = (beacons.number - 1) % NUMBERS
        beacons.is_waiting = 0


@compiled
def next_in_queue(core, i, now):
    """Remove the first frame of a node's queue; the next frame begins to contend for the channel."""
    head = core.queue_head[i]
    if head != NONE:
        head = core.frames[head].behind
        core.queue_head[i] = head
    if head != NONE:
        _back_off(core, head, now)


@compiled
def acknowledge(core, frame, arrived, now):
    """Simulate the acknowledgement of a unicast frame; send the frame again if the acknowledgement is missing.

    ``arrived``: whether the receiver got the frame. Returns ACKNOWLEDGED, UNACKNOWLEDGED (no retry is left),
    UNDECIDED (the frame is sent again) or STROBING (the strobe goes on).
    """
    entry = core.frames[frame]
    i = entry.sender
    acknowledged_at = now + core.acknowledgement_us
    if arrived:
        add_entry(core, now + TURNAROUND_US, acknowledged_at, entry.receiver, UNREACHABLE, ACKNOWLEDGEMENT)
    is_acknowledged = arrived and not _is_acknowledgement_lost(core, entry.sender, entry.receiver, entry.start)
    if core.wake_interval_us and not is_acknowledged and _continue_strobe(core, frame, now):
        return STROBING
    core.nodes[i].free_at = max(core.nodes[i].free_at, acknowledged_at)
    add_entry(core, now, acknowledged_at, i, UNREACHABLE, WAIT)
    if is_acknowledged:
        if core.wake_interval_us:
            core.known_phases[arc_between(core, i, entry.receiver)] = core.nodes[i].outages + 1
        return ACKNOWLEDGED
    return repeat(core, frame, now)


@compiled
def repeat(core, frame, now):
    """Send a unicast frame again and return UNDECIDED, or return UNACKNOWLEDGED if it has no retry left."""
    entry = core.frames[frame]
    i = entry.sender
    if entry.attempt >= core.retries:
        if core.wake_interval_us and entry.receiver >= 0:
            arc = arc_between(core, i, entry.receiver)
            if arc != NONE:
                core.known_phases[arc] = 0
        return UNACKNOWLEDGED
    retry = take_frame(core)
    core.frames[retry] = entry
    entry = core.frames[retry]
    entry.attempt += 1
    entry.backoffs = 0
    hold_message(core, entry.message)
    if core.csma:
        first_queued = core.queue_head[i]
        if first_queued == NONE:
            core.queue_head[i] = retry
            entry.behind = NONE
        else:
            entry.behind = core.frames[first_queued].behind
            core.frames[first_queued].behind = retry
        if entry.behind == NONE:
            core.queue_tail[i] = retry
    else:
        begin(core, retry, core.nodes[i].free_at, now)
    return UNDECIDED


@compiled
def _is_acknowledgement_lost(core, sender, receiver, start):
    arc = arc_between(core, receiver, sender)
    if arc == NONE:
        return True
    if not core.loses or core.ratios[arc] >= 1.0:
        return False
    key = key_of(key_of(core.acknowledgement_key, core.addresses[receiver]), core.addresses[sender])
    return uniform(key, start) >= core.ratios[arc]


# Low-power listening: see `workbench.sim.low_power`


@compiled
def _find_copy_end(core, frame, i):
    """Return the end, in µs, of the copy that node ``i`` receives of a strobe (repeated copies of a frame)."""
    entry = core.frames[frame]
    wake = next_wake(core.phases_us[i], core.wake_interval_us, entry.start)
    return copy_end(entry.start, wake, core.messages[entry.message].airtime_us)


@compiled
def _find_first_end(core, frame):
    """Return the time, in µs, when a strobe ends, or when the receiver of a unicast can acknowledge a copy."""
    entry = core.frames[frame]
    if entry.receiver < 0 or arc_between(core, entry.sender, entry.receiver) == NONE:
        return strobe_end(entry.start, core.messages[entry.message].airtime_us, core.wake_interval_us)
    return _find_copy_end(core, frame, entry.receiver)


@compiled
def _is_phase_known(core, frame):
    """Return whether a frame's sender knows when the receiver wakes up."""
    entry = core.frames[frame]
    if entry.receiver < 0:
        return False
    arc = arc_between(core, entry.sender, entry.receiver)
    return arc != NONE and core.known_phases[arc] == core.nodes[entry.sender].outages + 1


@compiled
def _continue_strobe(core, frame, now):
    """Continue a strobe that was not acknowledged; return False if it ends now instead."""
    entry = core.frames[frame]
    airtime_us = core.messages[entry.message].airtime_us
    finish = strobe_end(entry.start, airtime_us, core.wake_interval_us)
    if finish <= now or _is_phase_known(core, frame):
        return False
    core.nodes[entry.sender].free_at = finish
    _add_to_hearers(core, entry.sender, now, finish, now)
    add_entry(core, now, finish, entry.sender, entry.receiver, STROBE, airtime_us)
    push(core, frame, finish, STROBE_END)
    return True


# Outages


@compiled
def stop_radio(core, i, now):
    """Stop the radio of node ``i``, which has failed: give up its queue and end its transmissions."""
    if core.csma:
        # The head of the queue, and frames that are not yet in it, are given up when their time comes.
        first_queued = core.queue_head[i]
        frame = NONE if first_queued == NONE else core.frames[first_queued].behind
        while frame != NONE:
            next_frame = core.frames[frame].behind
            give_up(core, frame, now, Reason.DOWN)
            frame = next_frame
        core.queue_head[i] = NONE
    if core.collisions or core.csma:
        for arc in range(core.first[i], core.first[i + 1]):
            _remove_sender(core, core.receivers[arc], i, now)
        _remove_sender(core, i, i, now)

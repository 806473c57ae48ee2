"""The channel of the fast engine: frames from a node's radio to the end of their airtime.

`workbench.sim.channel` explains the model; this module makes the same draws and the same events. Only
the storage of audible transmissions differs: here, each node that hears a transmission has its own record of it, and in
the reference engine all these nodes share one object.

Parameters of the functions
    ``core``              the run's `layout.Core`, the arrays of the engine
    ``now``               the present time in µs
    ``i``, ``sender``     the index of a node, in ascending order of addresses
    ``frame``             the index of a frame, or a wake-up, in ``core.frames``
    ``message``           the index of a message in ``core.messages``
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
    """Reserve a free entry of ``core.frames`` for a frame or a wake-up; return the entry's index."""
    frame = np.uint32(core.numbers[Number.FREE_FRAME])
    core.numbers[Number.FREE_FRAME] = core.frames[frame].next
    core.numbers[Number.FREE_FRAMES] -= 1
    return frame


@compiled
def free_frame(core, frame):
    """Free the entry of a frame or wake-up in ``core.frames``, without releasing a message (see `end`)."""
    core.frames[frame].next = core.numbers[Number.FREE_FRAME]
    core.numbers[Number.FREE_FRAME] = frame
    core.numbers[Number.FREE_FRAMES] += 1


@compiled
def make_message(core, name, origin, sequence, content):
    """Return the index, in ``core.messages``, of a new message with the attributes and size of a publication.

    ``name``: the code of the message's name. ``content``: the publication's row in ``core.contents``.
    The caller counts as a holder of the message until it calls `let_go`.
    """
    content_row = core.contents[content]
    return take_message(core, name, origin, sequence, content, content_row.size_B, content_row.airtime_us)


@compiled
def take_message(core, name, origin, sequence, content, size_B, airtime_us):
    """Return the index, in ``core.messages``, of a new message of ``size_B`` bytes.

    ``name``: the code of the message's name. ``origin``: the address of the node that creates the message.
    ``sequence``: the message's sequence number at that node. ``content``: an integer whose meaning the protocol
    defines. ``airtime_us``: the airtime of a frame that carries the message.
    """
    message = core.numbers[Number.FREE_MESSAGE]
    message_row = core.messages[message]
    core.numbers[Number.FREE_MESSAGE] = message_row.next
    core.numbers[Number.FREE_MESSAGES] -= 1
    message_row.name = name
    message_row.origin = origin
    message_row.sequence = sequence
    message_row.content = content
    message_row.size_B = size_B
    message_row.airtime_us = airtime_us
    message_row.holders = 1
    return message


@compiled
def hold_message(core, message):
    """Add one holder to a message; a message's row is not reused while it has holders."""
    core.messages[message].holders += 1


@compiled
def let_go(core, message):
    """Remove one holder from a message; the row of a message without holders is free for another message."""
    message_row = core.messages[message]
    message_row.holders -= 1
    if message_row.holders == 0:
        message_row.next = core.numbers[Number.FREE_MESSAGE]
        core.numbers[Number.FREE_MESSAGE] = message
        core.numbers[Number.FREE_MESSAGES] += 1


@compiled
def end(core, frame):
    """Free the entry of a finished frame in ``core.frames``, and release the frame's message."""
    let_go(core, core.frames[frame].message)
    free_frame(core, frame)


# Sending


@compiled
def send(core, now, i, receiver, message, header):
    """Pass a frame with ``message`` to node ``i``'s radio; a broadcast is sent after a random delay (jitter).

    ``receiver``: a node's index, BROADCAST or UNREACHABLE. ``header``: a number in the frame besides the message, such
    as a TTL.
    """
    ready_us = now
    if receiver == BROADCAST and core.jitter_width_us:
        core.nodes[i].sent += 1
        ready_us += core.jitter_shortest_us + below(core.nodes[i].jitter_key, core.nodes[i].sent, core.jitter_width_us)
    send_at(core, ready_us, i, receiver, message, header, now)


@compiled
def send_at(core, ready, i, receiver, message, header, now):
    """Pass a frame to node ``i``'s radio, to be sent at ``ready`` (µs) or later.

    ``receiver``: a node's index, BROADCAST or UNREACHABLE. ``message``: the index of the frame's message. ``header``: a
    number that the frame carries besides the message.
    """
    frame = take_frame(core)
    frame_entry = core.frames[frame]
    frame_entry.sender = i
    frame_entry.receiver = receiver
    frame_entry.message = message
    frame_entry.header = header
    frame_entry.outage = core.nodes[i].outages
    frame_entry.backoffs = 0
    frame_entry.attempt = 0
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
    """Begin to transmit a frame at ``start``, which is ``now`` or later, and schedule the end of its airtime."""
    frame_entry = core.frames[frame]
    airtime_us = core.messages[frame_entry.message].airtime_us
    finish_us = start + airtime_us
    frame_entry.start = start
    if core.wake_interval_us:
        finish_us = _find_earliest_strobe_end(core, frame)
    core.nodes[frame_entry.sender].free_at = finish_us
    if core.collisions or core.csma:
        _add_to_hearers(core, frame_entry.sender, start, finish_us, now)
    add_entry(
        core,
        start,
        finish_us,
        frame_entry.sender,
        frame_entry.receiver,
        STROBE if core.wake_interval_us else FRAME,
        airtime_us,
    )
    push(core, frame, finish_us, FRAME_END)


# Audible transmissions


@compiled
def _add_to_hearers(core, sender, start, finish, now):
    for arc in range(core.first[sender], core.first[sender + 1]):
        if core.varies and core.ratios[arc] < 0.0:
            continue
        _add_audible(core, core.receivers[arc], sender, start, finish, now)
    _add_audible(core, sender, sender, start, finish, now)


@compiled
def _add_audible(core, i, sender, start, finish, now):
    if core.audible_count[i] >= core.forget_at[i]:
        # A frame that ends from now on began at most the longest airtime ago.
        _remove_finished(core, i, now - core.longest_airtime_us)
        core.forget_at[i] = max(FORGET_AT, 2 * core.audible_count[i])
    audible_index = core.numbers[Number.FREE_AUDIBLE]
    audible = core.audibles[audible_index]
    core.numbers[Number.FREE_AUDIBLE] = audible.next
    core.numbers[Number.FREE_AUDIBLES] -= 1
    audible.sender = sender
    audible.start = start
    audible.end = finish
    audible.next = core.first_audible[i]
    core.first_audible[i] = audible_index
    core.audible_count[i] += 1


@compiled
def _unlink_audible(core, i, previous, index):
    """Remove an entry from the list of transmissions that node ``i`` can hear; return the next entry's row, or NONE.

    ``index``: the entry's row in ``core.audibles``. ``previous``: the row of the entry in front of it, or NONE.
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
            index = _unlink_audible(core, i, previous, index)
        else:
            previous, index = index, core.audibles[index].next


@compiled
def _remove_sender(core, i, sender, now):
    """End a failed node's transmissions at node ``i``, which hears them; ``sender``: the index of the failed node.

    A transmission of the failed node that has begun ends ``now``. A transmission that has not begun is removed from the
    list of transmissions that node ``i`` hears.
    """
    previous, audible_index = NONE, core.first_audible[i]
    while audible_index != NONE:
        audible = core.audibles[audible_index]
        if audible.sender == sender and audible.start >= now:
            audible_index = _unlink_audible(core, i, previous, audible_index)
            continue
        if audible.sender == sender:
            audible.end = min(audible.end, now)
        previous, audible_index = audible_index, audible.next


@compiled
def is_busy(core, i, now):
    """Return whether node ``i`` hears a transmission, or a jammer, now."""
    audible_index = core.first_audible[i]
    while audible_index != NONE:
        audible = core.audibles[audible_index]
        if audible.start <= now < audible.end:
            return True
        audible_index = audible.next
    return core.varies and core.jammers[i] > 0


@compiled
def interference(core, arc, i, sender, sent, start, finish):
    """Return the `Reason` why another transmission makes node ``i`` miss a frame in [start, finish), or NO_REASON.

    ``arc``: the index of the arc from the sender to the node. ``sent``: when the sender's transmission began. With
    low-power listening, a transmission consists of many copies of a frame; then ``start`` and ``finish`` are those of
    the copy that the node receives, and ``sent`` may be earlier.
    """
    reason = NO_REASON
    audible_index = core.first_audible[i]
    while audible_index != NONE:
        audible = core.audibles[audible_index]
        audible_index = audible.next
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
    return core.strengths_ddB[arc] - core.strengths_ddB[find_arc(core, other_sender, i)] >= core.capture_ddB


@compiled
def loss_reason(core, arc, frame, finish):
    """Return the `Reason` why a frame is lost on an arc, or NO_REASON.

    ``finish``: the end of the frame's airtime in µs.
    """
    i = core.receivers[arc]
    if core.down[i]:
        return Reason.DOWN
    frame_entry = core.frames[frame]
    if core.varies and _is_jammed(core, frame, i, finish):
        return Reason.JAMMED
    if core.loses and core.ratios[arc] < 1.0:
        fragments = count_fragments(core.messages[frame_entry.message].size_B, core.max_frame_B)
        if uniform(core.arc_keys[arc], frame_entry.start) >= share_of_whole_frames(core.ratios[arc], fragments):
            return Reason.LINK
    if core.collisions:
        start_us = frame_entry.start
        if core.wake_interval_us:
            finish = _find_copy_end(core, frame, i)
            start_us = finish - core.messages[frame_entry.message].airtime_us
        return interference(core, arc, i, frame_entry.sender, frame_entry.start, start_us, finish)
    return NO_REASON


@compiled
def _is_jammed(core, frame, i, finish):
    """Return whether a jammer disturbed node ``i`` while the frame was in the air.

    With low-power listening, only the copy of the frame that the node gets counts. ``finish``: the end of the frame's
    airtime in µs.
    """
    first, high = core.first_noise[i], core.first_noise[i + 1]
    low = first
    if low == high:
        return False
    start_us = core.frames[frame].start
    if core.wake_interval_us:
        finish = _find_copy_end(core, frame, i)
        start_us = finish - core.messages[core.frames[frame].message].airtime_us
    while low < high:
        middle = (low + high) >> 1
        if core.noise_us[middle, 0] < finish:
            low = middle + 1
        else:
            high = middle
    return low > first and core.noise_us[low - 1, 1] > start_us


@compiled
def arc_between(core, sender, receiver):
    """Return the index of the arc from node ``sender`` to node ``receiver``, or NONE if it does not exist now."""
    arc = find_arc(core, sender, receiver)
    return NONE if arc != NONE and core.varies and core.ratios[arc] < 0.0 else arc


@compiled
def find_arc(core, sender, receiver):
    """Return the index of the arc from node ``sender`` to node ``receiver``, or NONE if it never exists."""
    low_arc, high_arc = core.first[sender], core.first[sender + 1]
    end_arc = high_arc
    while low_arc < high_arc:
        middle_arc = (low_arc + high_arc) >> 1
        if core.receivers[middle_arc] < receiver:
            low_arc = middle_arc + 1
        else:
            high_arc = middle_arc
    return low_arc if low_arc < end_arc and core.receivers[low_arc] == receiver else NONE


# CSMA/CA and acknowledgements


@compiled
def contend(core, frame, now):
    """Append a ready frame to the sender's queue; if the queue was empty, begin the frame's back-off.

    A frame whose sender has failed since the frame was created is given up instead.
    """
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    if frame_entry.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
        return
    frame_entry.behind = NONE
    if core.queue_head[i] == NONE:
        core.queue_head[i] = frame
        core.queue_tail[i] = frame
        _back_off(core, frame, now)
    else:
        core.frames[core.queue_tail[i]].behind = frame
        core.queue_tail[i] = frame


@compiled
def _back_off(core, frame, now):
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    exponent = min(MIN_BACKOFF_EXPONENT + frame_entry.backoffs, MAX_BACKOFF_EXPONENT)
    core.nodes[i].sent += 1
    slots = below(core.backoff_keys[i], core.nodes[i].sent, 1 << exponent)
    start_us = max(now, core.nodes[i].free_at)
    if core.wake_interval_us:
        phase = core.phases_us[frame_entry.receiver] if _is_phase_known(core, frame) else np.int64(NONE)
        time = check_time(start_us, slots, frame_entry.backoffs, core.wake_interval_us, phase)
    else:
        time = start_us + slots * UNIT_BACKOFF_US
    push(core, frame, time, CHANNEL_CHECK)


@compiled
def check_channel(core, frame, now):
    """Check the channel for a frame whose back-off has ended: send the frame, back off again, or give it up.

    Returns True if the frame is given up because the channel was busy at every check. The caller must then report the
    outcome and free the frame.
    """
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    if frame_entry.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
        return False
    add_entry(core, now, now + CHECK_US, i, UNREACHABLE, CHECK)
    if not is_busy(core, i, now):
        begin(core, frame, now + TURNAROUND_US, now)
    elif frame_entry.backoffs < MAX_BACKOFFS:
        frame_entry.backoffs += 1
        _back_off(core, frame, now)
    else:
        cancel_beacon(core, frame)
        next_in_queue(core, i, now)
        add_loss(
            core, now, frame_entry.sender, Event.GIVEN_UP, core.given_up, NONE, frame_entry.message, Reason.CHANNEL_BUSY
        )
        return True
    return False


@compiled
def give_up(core, frame, now, reason):
    """Record that a frame was given up, and free its entry in ``core.frames``.

    ``reason``: a member of `Reason`, why the frame was not sent, or not sent to its end.
    """
    frame_entry = core.frames[frame]
    cancel_beacon(core, frame)
    add_loss(core, now, frame_entry.sender, Event.GIVEN_UP, core.given_up, NONE, frame_entry.message, reason)
    end(core, frame)


@compiled
def cancel_beacon(core, frame):
    """Let the sender's next beacon reuse the sequence number of ``frame``, if this is a beacon that was given up.

    Do nothing for other frames.
    """
    frame_entry = core.frames[frame]
    if core.messages[frame_entry.message].name == core.beacon_name:
        beacons = core.beacons[frame_entry.sender]
        beacons.number = (beacons.number - 1) % NUMBERS
        beacons.is_waiting = 0


@compiled
def next_in_queue(core, i, now):
    """Remove the first frame from the queue of node ``i``; begin the back-off of the next frame in the queue."""
    first_frame = core.queue_head[i]
    if first_frame != NONE:
        first_frame = core.frames[first_frame].behind
        core.queue_head[i] = first_frame
    if first_frame != NONE:
        _back_off(core, first_frame, now)


@compiled
def acknowledge(core, frame, arrived, now):
    """Simulate the acknowledgement of a unicast frame; send the frame again if the acknowledgement is missing.

    ``arrived``: whether the receiver got the frame. Returns ACKNOWLEDGED, UNACKNOWLEDGED (no retry is left),
    UNDECIDED (the frame is sent again) or STROBING (copies of the frame are still being sent).
    """
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    acknowledged_at = now + core.acknowledgement_us
    if arrived:
        add_entry(core, now + TURNAROUND_US, acknowledged_at, frame_entry.receiver, UNREACHABLE, ACKNOWLEDGEMENT)
    is_acknowledged = arrived and not _is_acknowledgement_lost(
        core, frame_entry.sender, frame_entry.receiver, frame_entry.start
    )
    if core.wake_interval_us and not is_acknowledged and _continue_strobe(core, frame, now):
        return STROBING
    core.nodes[i].free_at = max(core.nodes[i].free_at, acknowledged_at)
    add_entry(core, now, acknowledged_at, i, UNREACHABLE, WAIT)
    if is_acknowledged:
        if core.wake_interval_us:
            core.known_phases[find_arc(core, i, frame_entry.receiver)] = core.nodes[i].outages + 1
        return ACKNOWLEDGED
    return repeat(core, frame, now)


@compiled
def repeat(core, frame, now):
    """Send a unicast frame again and return UNDECIDED, or return UNACKNOWLEDGED if no retry is left."""
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    if frame_entry.attempt >= core.retries:
        if core.wake_interval_us and frame_entry.receiver >= 0:
            arc = find_arc(core, i, frame_entry.receiver)
            if arc != NONE:
                core.known_phases[arc] = 0
        return UNACKNOWLEDGED
    retry = take_frame(core)
    core.frames[retry] = frame_entry
    frame_entry = core.frames[retry]
    frame_entry.attempt += 1
    frame_entry.backoffs = 0
    hold_message(core, frame_entry.message)
    if core.csma:
        first_queued = core.queue_head[i]
        if first_queued == NONE:
            core.queue_head[i] = retry
            frame_entry.behind = NONE
        else:
            frame_entry.behind = core.frames[first_queued].behind
            core.frames[first_queued].behind = retry
        if frame_entry.behind == NONE:
            core.queue_tail[i] = retry
    else:
        begin(core, retry, core.nodes[i].free_at, now)
    return UNDECIDED


@compiled
def _is_acknowledgement_lost(core, sender, receiver, start):
    arc = arc_between(core, receiver, sender)
    if arc == NONE or (core.varies and core.jammers[sender] > 0):
        return True
    if not core.loses or core.ratios[arc] >= 1.0:
        return False
    key = key_of(key_of(core.acknowledgement_key, core.addresses[receiver]), core.addresses[sender])
    return uniform(key, start) >= core.ratios[arc]


# Low-power listening: see `workbench.sim.low_power`


@compiled
def _find_copy_end(core, frame, i):
    """Return the end, in µs, of the copy that node ``i`` receives of a strobe (repeated copies of a frame)."""
    frame_entry = core.frames[frame]
    wake_us = next_wake(core.phases_us[i], core.wake_interval_us, frame_entry.start)
    return copy_end(frame_entry.start, wake_us, core.messages[frame_entry.message].airtime_us)


@compiled
def _find_earliest_strobe_end(core, frame):
    """Return the earliest time in µs at which a strobe (repeated copies of a frame) can end.

    For a unicast, this is the end of the first copy that the receiver gets. Any other strobe takes a whole wake-up
    interval.
    """
    frame_entry = core.frames[frame]
    if frame_entry.receiver < 0 or arc_between(core, frame_entry.sender, frame_entry.receiver) == NONE:
        return strobe_end(frame_entry.start, core.messages[frame_entry.message].airtime_us, core.wake_interval_us)
    return _find_copy_end(core, frame, frame_entry.receiver)


@compiled
def _is_phase_known(core, frame):
    """Return whether the frame's sender knows, from an earlier acknowledgement, when the receiver wakes up."""
    frame_entry = core.frames[frame]
    if frame_entry.receiver < 0:
        return False
    arc = find_arc(core, frame_entry.sender, frame_entry.receiver)
    return arc != NONE and core.known_phases[arc] == core.nodes[frame_entry.sender].outages + 1


@compiled
def _continue_strobe(core, frame, now):
    """Continue a strobe (repeated copies of a frame) after an unacknowledged copy; return False if it ends now.

    The strobe ends now if it has lasted a whole wake-up interval, or if the sender knew when the receiver would wake
    up.
    """
    frame_entry = core.frames[frame]
    airtime_us = core.messages[frame_entry.message].airtime_us
    finish_us = strobe_end(frame_entry.start, airtime_us, core.wake_interval_us)
    if finish_us <= now or _is_phase_known(core, frame):
        return False
    core.nodes[frame_entry.sender].free_at = finish_us
    _add_to_hearers(core, frame_entry.sender, now, finish_us, now)
    add_entry(core, now, finish_us, frame_entry.sender, frame_entry.receiver, STROBE, airtime_us)
    push(core, frame, finish_us, STROBE_END)
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

"""The channel of the fast engine: frames from a node's radio to the end of their airtime.

`workbench.sim.channel` explains the model; this module repeats it draw by draw and event by event. It stores the
transmissions that a node can hear differently: a list of copies per node instead of one object in many lists.
"""

import numpy as np

from workbench.sim.channel import (
    MAX_BACKOFF_EXPONENT,
    MAX_BACKOFFS,
    MIN_BACKOFF_EXPONENT,
    TURNAROUND_US,
    UNIT_BACKOFF_US,
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
    Event,
    Number,
    Reason,
)
from workbench.sim.fast.record import add_loss

FORGET_AT = 16  # a node's audible transmissions, before those that are over are looked for

# Outcomes of a unicast transmission. UNDECIDED: the frame is sent again, or its radio asks for no acknowledgement.
UNACKNOWLEDGED, ACKNOWLEDGED, UNDECIDED = range(3)

# Frames and messages


@compiled
def take_frame(core):
    """A free entry for a frame or a wake-up."""
    frame = np.uint32(core.numbers[Number.FREE_FRAME])
    core.numbers[Number.FREE_FRAME] = core.frames[frame].next
    core.numbers[Number.FREE_FRAMES] -= 1
    return frame


@compiled
def free_frame(core, frame):
    """The entry of a frame that is over, or of a wake-up that has been."""
    core.frames[frame].next = core.numbers[Number.FREE_FRAME]
    core.numbers[Number.FREE_FRAME] = frame
    core.numbers[Number.FREE_FRAMES] += 1


@compiled
def make_message(core, name, origin, sequence, content):
    """A message with the attributes and the size of a content; whoever makes it holds it until `let_go`."""
    it = core.contents[content]
    return take_message(core, name, origin, sequence, content, it.size_B, it.airtime_us)


@compiled
def take_message(core, name, origin, sequence, content, size_B, airtime_us):
    """A message of any size; what its content is, is the protocol's own affair."""
    message = core.numbers[Number.FREE_MESSAGE]
    it = core.messages[message]
    core.numbers[Number.FREE_MESSAGE] = it.next
    core.numbers[Number.FREE_MESSAGES] -= 1
    it.name = name
    it.origin = origin
    it.sequence = sequence
    it.content = content
    it.size_B = size_B
    it.airtime_us = airtime_us
    it.holders = 1
    return message


@compiled
def hold_message(core, message):
    """One more who needs the message."""
    core.messages[message].holders += 1


@compiled
def let_go(core, message):
    """One less; without any its row is free."""
    it = core.messages[message]
    it.holders -= 1
    if it.holders == 0:
        it.next = core.numbers[Number.FREE_MESSAGE]
        core.numbers[Number.FREE_MESSAGE] = message
        core.numbers[Number.FREE_MESSAGES] += 1


@compiled
def end(core, frame):
    """Nothing more comes of a frame."""
    let_go(core, core.frames[frame].message)
    free_frame(core, frame)


# Sending


@compiled
def send(core, now, i, receiver, message, word):
    """Give node ``i``'s radio a frame: to the node of index ``receiver``, BROADCAST or UNREACHABLE."""
    frame = take_frame(core)
    it = core.frames[frame]
    it.sender = i
    it.receiver = receiver
    it.message = message
    it.word = word
    it.outage = core.nodes[i].outages
    it.backoffs = 0
    it.attempt = 0
    core.messages[message].holders += 1
    ready = now
    if receiver == BROADCAST and core.jitter_width_us:
        core.nodes[i].sent += 1
        ready += core.jitter_shortest_us + below(core.nodes[i].jitter_key, core.nodes[i].sent, core.jitter_width_us)
    if core.csma:
        push(core, frame, ready, FRAME_READY)
    else:
        begin(core, frame, max(ready, core.nodes[i].free_at), now)


@compiled
def begin(core, frame, start, now):
    """A frame goes on the air at ``start``, now or later."""
    it = core.frames[frame]
    finish = start + core.messages[it.message].airtime_us
    it.start = start
    core.nodes[it.sender].free_at = finish
    if core.collisions or core.csma:
        _be_heard(core, it.sender, start, finish, now)
    push(core, frame, finish, FRAME_END)


# What a node can hear


@compiled
def _be_heard(core, sender, start, finish, now):
    for arc in range(core.first[sender], core.first[sender + 1]):
        _hear(core, core.receivers[arc], sender, start, finish, now)
    _hear(core, sender, sender, start, finish, now)


@compiled
def _hear(core, i, sender, start, finish, now):
    if core.audible[i] >= core.forget_at[i]:
        # Whatever ends from now on began at most the longest airtime ago.
        _forget(core, i, now - core.longest_airtime_us)
        core.forget_at[i] = max(FORGET_AT, 2 * core.audible[i])
    index = core.numbers[Number.FREE_AUDIBLE]
    it = core.audibles[index]
    core.numbers[Number.FREE_AUDIBLE] = it.next
    core.numbers[Number.FREE_AUDIBLES] -= 1
    it.sender = sender
    it.start = start
    it.end = finish
    it.next = core.on_air[i]
    core.on_air[i] = index
    core.audible[i] += 1


@compiled
def _unlink(core, i, before, index):
    """Take an entry out of node ``i``'s list; returns the one behind it."""
    behind = core.audibles[index].next
    if before == NONE:
        core.on_air[i] = behind
    else:
        core.audibles[before].next = behind
    core.audibles[index].next = core.numbers[Number.FREE_AUDIBLE]
    core.numbers[Number.FREE_AUDIBLE] = index
    core.numbers[Number.FREE_AUDIBLES] += 1
    core.audible[i] -= 1
    return behind


@compiled
def _forget(core, i, horizon):
    before, index = NONE, core.on_air[i]
    while index != NONE:
        if core.audibles[index].end <= horizon:
            index = _unlink(core, i, before, index)
        else:
            before, index = index, core.audibles[index].next


@compiled
def _forget_sender(core, i, sender, now):
    """At node ``i``, what ``sender`` has not begun is not heard, and what it has begun ends now."""
    before, index = NONE, core.on_air[i]
    while index != NONE:
        it = core.audibles[index]
        if it.sender == sender and it.start >= now:
            index = _unlink(core, i, before, index)
            continue
        if it.sender == sender:
            it.end = min(it.end, now)
        before, index = index, it.next


@compiled
def is_busy(core, i, now):
    """Whether node ``i`` hears anything now."""
    index = core.on_air[i]
    while index != NONE:
        it = core.audibles[index]
        if it.start <= now < it.end:
            return True
        index = it.next
    return False


@compiled
def disturbance(core, i, sender, start, finish):
    """Why node ``i`` cannot make out a frame on the air from start to finish, or NO_REASON."""
    reason = NO_REASON
    index = core.on_air[i]
    while index != NONE:
        other = core.audibles[index]
        index = other.next
        if other.start >= finish or other.end <= start:
            continue
        if other.sender == i:
            return Reason.HALF_DUPLEX
        if other.sender != sender or other.start != start:
            reason = Reason.COLLISION
    return reason


@compiled
def why_lost(core, arc, frame, finish):
    """Why a frame is lost on an arc, or NO_REASON."""
    i = core.receivers[arc]
    if core.down[i]:
        return Reason.DOWN
    it = core.frames[frame]
    if core.loses and core.ratios[arc] < 1.0 and uniform(core.arc_keys[arc], it.start) >= core.ratios[arc]:
        return Reason.LINK
    if core.collisions:
        return disturbance(core, i, it.sender, it.start, finish)
    return NO_REASON


@compiled
def arc_between(core, sender, receiver):
    """The arc from one node to another, by their indices, or NONE."""
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
    """A frame is ready: it joins its node's queue, and at its head begins to contend for the channel."""
    it = core.frames[frame]
    i = it.sender
    if it.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
        return
    it.behind = NONE
    if core.queue_head[i] == NONE:
        core.queue_head[i] = frame
        core.queue_tail[i] = frame
        _back_off(core, frame, now)
    else:
        core.frames[core.queue_tail[i]].behind = frame
        core.queue_tail[i] = frame


@compiled
def _back_off(core, frame, now):
    it = core.frames[frame]
    i = it.sender
    exponent = min(MIN_BACKOFF_EXPONENT + it.backoffs, MAX_BACKOFF_EXPONENT)
    core.nodes[i].sent += 1
    slots = below(core.backoff_keys[i], core.nodes[i].sent, 1 << exponent)
    push(core, frame, max(now, core.nodes[i].free_at) + slots * UNIT_BACKOFF_US, CHANNEL_CHECK)


@compiled
def check_channel(core, frame, now):
    """Send the frame whose back-off is over, have it wait again, or give it up.

    Return whether the channel was never free: then the caller reports that, and ends the frame.
    """
    it = core.frames[frame]
    i = it.sender
    if it.outage != core.nodes[i].outages:
        give_up(core, frame, now, Reason.DOWN)
    elif not is_busy(core, i, now):
        begin(core, frame, now + TURNAROUND_US, now)
    elif it.backoffs < MAX_BACKOFFS:
        it.backoffs += 1
        _back_off(core, frame, now)
    else:
        next_in_queue(core, i, now)
        add_loss(core, now, it.sender, Event.GIVEN_UP, core.given_up, NONE, it.message, Reason.CHANNEL_BUSY)
        return True
    return False


@compiled
def give_up(core, frame, now, reason):
    """A frame is not sent, or not to its end."""
    it = core.frames[frame]
    add_loss(core, now, it.sender, Event.GIVEN_UP, core.given_up, NONE, it.message, reason)
    end(core, frame)


@compiled
def next_in_queue(core, i, now):
    """The first frame leaves a node's queue, and the next one begins to contend."""
    head = core.queue_head[i]
    if head != NONE:
        head = core.frames[head].behind
        core.queue_head[i] = head
    if head != NONE:
        _back_off(core, head, now)


@compiled
def acknowledge(core, frame, arrived, now):
    """Send a unicast frame again, up to ``retries`` times, unless it was acknowledged; return which of these."""
    it = core.frames[frame]
    i = it.sender
    core.nodes[i].free_at = max(core.nodes[i].free_at, now + core.acknowledgement_us)
    if arrived and not _acknowledgement_lost(core, it.sender, it.receiver, it.start):
        return ACKNOWLEDGED
    if it.attempt >= core.retries:
        return UNACKNOWLEDGED
    again = take_frame(core)
    core.frames[again] = it
    it = core.frames[again]
    it.attempt += 1
    it.backoffs = 0
    hold_message(core, it.message)
    if core.csma:
        head = core.queue_head[i]
        if head == NONE:
            core.queue_head[i] = again
            it.behind = NONE
        else:
            it.behind = core.frames[head].behind
            core.frames[head].behind = again
        if it.behind == NONE:
            core.queue_tail[i] = again
    else:
        begin(core, again, core.nodes[i].free_at, now)
    return UNDECIDED


@compiled
def _acknowledgement_lost(core, sender, receiver, start):
    arc = arc_between(core, receiver, sender)
    if arc == NONE:
        return True
    if not core.loses or core.ratios[arc] >= 1.0:
        return False
    key = key_of(key_of(core.acknowledgement_key, core.addresses[receiver]), core.addresses[sender])
    return uniform(key, start) >= core.ratios[arc]


# Outages


@compiled
def fall_silent(core, i, now):
    """Node ``i`` has failed: its queue is given up, and nothing of its transmissions disturbs anybody."""
    if core.csma:
        # The first in the queue, and what has not joined it yet, is given up when its time comes.
        head = core.queue_head[i]
        waiting = NONE if head == NONE else core.frames[head].behind
        while waiting != NONE:
            behind = core.frames[waiting].behind
            give_up(core, waiting, now, Reason.DOWN)
            waiting = behind
        core.queue_head[i] = NONE
    if core.collisions or core.csma:
        for arc in range(core.first[i], core.first[i + 1]):
            _forget_sender(core, core.receivers[arc], i, now)
        _forget_sender(core, i, i, now)

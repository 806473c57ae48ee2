"""The queue of future events by (time, counter), in the order of the reference engine's heap.

Theory of operation
    Nearly all events are a few milliseconds ahead: a jitter, a back-off, an airtime. They go into a ring with a bucket
    for each microsecond. A bucket is filled at its tail and emptied at its head, and counters only grow. So its events
    are in the order of their counters, which are not stored. Two levels of bits mark the buckets that are not empty.
    Events further ahead than the length of the ring go into a binary heap, with a counter. They stay there when their
    time comes near: the next event is the earlier of the heap's first and the ring's first. Of two events at the same
    microsecond, the heap's is older: when later events were pushed, that microsecond was within the ring.

Cost
    Constant for an event in the ring; for an event in the heap, logarithmic in the size of the heap.
"""

import numpy as np

from workbench.sim.fast.compiled import compiled, trailing_zeros
from workbench.sim.fast.layout import NONE, Number

NEVER = np.int64(2**63 - 1)


@compiled
def push(core, frame, time, kind):
    """Schedule the next event of ``core.frames[frame]``, a frame or a wake-up, at ``time`` (µs).

    ``kind`` is the event's kind, such as FRAME_END.
    """
    entry = core.frames[frame]
    entry.time = time
    entry.kind = kind
    if time - core.numbers[Number.NOW] < len(core.tails):
        _push_near(core, frame, time)
    else:
        _push_far(core, frame, time)


@compiled
def _push_near(core, frame, time):
    bucket = time & (len(core.tails) - 1)
    tail = core.tails[bucket]
    if tail == NONE:
        core.frames[frame].next = frame  # The tail is linked to the head.
        word = bucket >> 6
        core.bits[word] |= np.uint64(1) << np.uint64(bucket & 63)
        core.summary[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
    else:
        core.frames[frame].next = core.frames[tail].next
        core.frames[tail].next = frame
    core.tails[bucket] = frame
    core.numbers[Number.NEAR] += 1


@compiled
def next_bucket(core, now):
    """Return the bucket of the ring's earliest event.

    The ring must not be empty, nor hold an event before ``now``.
    """
    start = now & (len(core.tails) - 1)
    word = start >> 6
    ahead = core.bits[word] >> np.uint64(start & 63)
    if ahead:
        return start + trailing_zeros(ahead)
    # Search after this word, then from the ring's beginning up to and including this word.
    block = (word + 1) >> 6
    if block < len(core.summary):
        ahead = core.summary[block] >> np.uint64((word + 1) & 63)
        if ahead:
            word = word + 1 + trailing_zeros(ahead)
            return (word << 6) + trailing_zeros(core.bits[word])
        block += 1
    while block < len(core.summary):
        if core.summary[block]:
            break
        block += 1
    if block == len(core.summary):
        block = 0
        while not core.summary[block]:
            block += 1
    word = (block << 6) + trailing_zeros(core.summary[block])
    return (word << 6) + trailing_zeros(core.bits[word])


@compiled
def pop_near(core, bucket):
    """Remove the first event from a bucket of the ring, and return its row in ``core.frames``."""
    tail = core.tails[bucket]
    frame = core.frames[tail].next
    if frame == tail:
        core.tails[bucket] = NONE
        word = bucket >> 6
        remaining = core.bits[word] & ~(np.uint64(1) << np.uint64(bucket & 63))
        core.bits[word] = remaining
        if not remaining:
            core.summary[word >> 6] &= ~(np.uint64(1) << np.uint64(word & 63))
    else:
        core.frames[tail].next = core.frames[frame].next
    core.numbers[Number.NEAR] -= 1
    return frame


@compiled
def _push_far(core, frame, time):
    counter = core.numbers[Number.COUNTER]
    core.numbers[Number.COUNTER] = counter + 1
    index = core.numbers[Number.FAR]
    core.numbers[Number.FAR] += 1
    while index > 0:
        parent = (index - 1) >> 1
        if core.far_time[parent] < time or (core.far_time[parent] == time and core.far_counter[parent] < counter):
            break
        _move(core, parent, index)
        index = parent
    core.far_time[index], core.far_counter[index], core.far_frame[index] = time, counter, frame


@compiled
def _move(core, source, target):
    core.far_time[target] = core.far_time[source]
    core.far_counter[target] = core.far_counter[source]
    core.far_frame[target] = core.far_frame[source]


@compiled
def _is_far_before(core, left, right):
    if core.far_time[left] != core.far_time[right]:
        return core.far_time[left] < core.far_time[right]
    return core.far_counter[left] < core.far_counter[right]


@compiled
def pop_far(core):
    """Remove the first event from the heap, and return its row in ``core.frames``."""
    frame = core.far_frame[0]
    core.numbers[Number.FAR] -= 1
    last = core.numbers[Number.FAR]
    # The last entry moves down from the top to its position.
    index = 0
    while True:
        child = 2 * index + 1
        if child >= last:
            break
        if child + 1 < last and _is_far_before(core, child + 1, child):
            child += 1
        if not _is_far_before(core, child, last):
            break
        _move(core, child, index)
        index = child
    _move(core, last, index)
    return frame

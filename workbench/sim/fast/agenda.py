"""What happens next: events by (time, counter), as the reference engine's heap orders them.

Theory of operation
    Nearly all events lie a few milliseconds ahead: a jitter, a back-off, an airtime. They go into a ring with a bucket
    for each microsecond. Counters only grow, so a bucket that is filled at its tail and emptied at its head is in
    the order of the counters, and no event of the ring needs to have one. Two levels of bits say which buckets have
    something.
    What lies further ahead than the ring is long goes into a binary heap, with a counter. It is not moved when its time
    comes near: the earlier of both heads is next. Of two at the same microsecond the heap's is the older one, as
    whatever came later found that microsecond within the ring's length.

Cost
    Constant per event in the ring, the logarithm of their number for those in the heap.
"""

import numpy as np

from workbench.sim.fast.compiled import compiled, trailing_zeros
from workbench.sim.fast.layout import NONE, Number

NEVER = np.int64(2**63 - 1)


@compiled
def push(core, frame, time, kind):
    """The next event of a frame is ``kind``, at ``time``."""
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
    """The bucket of the ring's earliest event; the ring is not empty and holds nothing before ``now``."""
    start = now & (len(core.tails) - 1)
    word = start >> 6
    ahead = core.bits[word] >> np.uint64(start & 63)
    if ahead:
        return start + trailing_zeros(ahead)
    # Behind this word, then from the ring's beginning; the word itself may be left for last.
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
    """Take the first event out of a bucket."""
    tail = core.tails[bucket]
    frame = core.frames[tail].next
    if frame == tail:
        core.tails[bucket] = NONE
        word = bucket >> 6
        left = core.bits[word] & ~(np.uint64(1) << np.uint64(bucket & 63))
        core.bits[word] = left
        if not left:
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
def _far_before(core, one, other):
    if core.far_time[one] != core.far_time[other]:
        return core.far_time[one] < core.far_time[other]
    return core.far_counter[one] < core.far_counter[other]


@compiled
def pop_far(core):
    """Take the first event out of the heap."""
    frame = core.far_frame[0]
    core.numbers[Number.FAR] -= 1
    last = core.numbers[Number.FAR]
    # The last entry sinks from the top to where it belongs.
    index = 0
    while True:
        child = 2 * index + 1
        if child >= last:
            break
        if child + 1 < last and _far_before(core, child + 1, child):
            child += 1
        if not _far_before(core, child, last):
            break
        _move(core, child, index)
        index = child
    _move(core, last, index)
    return frame

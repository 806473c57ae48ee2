"""The queue of future events by (time, counter), in the order of the reference engine's heap.

Theory of operation
    Nearly all events are a few milliseconds ahead: a jitter, a back-off, an airtime. They go into a ring with a bucket
    for each microsecond. A bucket is filled at its tail and emptied at its head. A new event has a higher counter than
    all earlier events, so a bucket's events are in the order of their counters, and counters need not be stored. Two
    levels of bits mark the buckets that are not empty.

    Events further ahead than the length of the ring go into a binary heap, with a counter. They stay in the heap when
    their time comes near. The next event is the earlier of the heap's first event and the ring's first event.
    If both are at the same microsecond, the heap's event is first, because it was pushed earlier: once a microsecond is
    near enough for the ring, its new events go into the ring.

Cost
    Constant for an event in the ring; for an event in the heap, logarithmic in the size of the heap.

``core``, a parameter of all functions, is the run's `layout.Core`: the arrays of the engine.
"""

import numpy as np

from workbench.sim.fast.compiled import compiled, trailing_zeros
from workbench.sim.fast.layout import NONE, Number

NEVER = np.int64(2**63 - 1)


@compiled
def push(core, frame, time, kind):
    """Schedule an event at ``time`` (µs) for the frame or wake-up with the index ``frame`` in ``core.frames``.

    ``kind``: the kind of the event, such as FRAME_END. The frame or wake-up must have no other event.
    """
    frame_entry = core.frames[frame]
    frame_entry.time = time
    frame_entry.kind = kind
    if time - core.numbers[Number.NOW] < len(core.tails):
        _push_near(core, frame, time)
    else:
        _push_far(core, frame, time)


@compiled
def _push_near(core, frame, time):
    bucket = time & (len(core.tails) - 1)
    last_frame = core.tails[bucket]
    if last_frame == NONE:
        core.frames[frame].next = frame  # The tail is linked to the head.
        word = bucket >> 6
        core.bits[word] |= np.uint64(1) << np.uint64(bucket & 63)
        core.summary[word >> 6] |= np.uint64(1) << np.uint64(word & 63)
    else:
        core.frames[frame].next = core.frames[last_frame].next
        core.frames[last_frame].next = frame
    core.tails[bucket] = frame
    core.numbers[Number.NEAR] += 1


@compiled
def next_bucket(core, now):
    """Return the index of the bucket with the earliest event of the ring, which has a bucket for each microsecond.

    The ring must not be empty, nor hold an event before ``now``.
    """
    first_bucket = now & (len(core.tails) - 1)
    word = first_bucket >> 6
    bits_ahead = core.bits[word] >> np.uint64(first_bucket & 63)
    if bits_ahead:
        return first_bucket + trailing_zeros(bits_ahead)
    # Search after this word, then from the ring's beginning up to and including this word.
    word_block = (word + 1) >> 6
    if word_block < len(core.summary):
        bits_ahead = core.summary[word_block] >> np.uint64((word + 1) & 63)
        if bits_ahead:
            word = word + 1 + trailing_zeros(bits_ahead)
            return (word << 6) + trailing_zeros(core.bits[word])
        word_block += 1
    while word_block < len(core.summary):
        if core.summary[word_block]:
            break
        word_block += 1
    if word_block == len(core.summary):
        word_block = 0
        while not core.summary[word_block]:
            word_block += 1
    word = (word_block << 6) + trailing_zeros(core.summary[word_block])
    return (word << 6) + trailing_zeros(core.bits[word])


@compiled
def pop_near(core, bucket):
    """Remove the first event from a bucket of the ring; return the index of its entry in ``core.frames``."""
    last_frame = core.tails[bucket]
    first_frame = core.frames[last_frame].next
    if first_frame == last_frame:
        core.tails[bucket] = NONE
        word = bucket >> 6
        other_bits = core.bits[word] & ~(np.uint64(1) << np.uint64(bucket & 63))
        core.bits[word] = other_bits
        if not other_bits:
            core.summary[word >> 6] &= ~(np.uint64(1) << np.uint64(word & 63))
    else:
        core.frames[last_frame].next = core.frames[first_frame].next
    core.numbers[Number.NEAR] -= 1
    return first_frame


@compiled
def _push_far(core, frame, time):
    counter = core.numbers[Number.COUNTER]
    core.numbers[Number.COUNTER] = counter + 1
    heap_index = core.numbers[Number.FAR]
    core.numbers[Number.FAR] += 1
    while heap_index > 0:
        parent = (heap_index - 1) >> 1
        if core.far_time[parent] < time or (core.far_time[parent] == time and core.far_counter[parent] < counter):
            break
        _move_far_entry(core, parent, heap_index)
        heap_index = parent
    core.far_time[heap_index], core.far_counter[heap_index], core.far_frame[heap_index] = time, counter, frame


@compiled
def _move_far_entry(core, source, target):
    core.far_time[target] = core.far_time[source]
    core.far_counter[target] = core.far_counter[source]
    core.far_frame[target] = core.far_frame[source]


@compiled
def _is_earlier_entry(core, left, right):
    """Return whether the heap's entry ``left`` is before its entry ``right``: by time, then by counter."""
    if core.far_time[left] != core.far_time[right]:
        return core.far_time[left] < core.far_time[right]
    return core.far_counter[left] < core.far_counter[right]


@compiled
def pop_far(core):
    """Remove the first event from the heap of distant events; return the index of its entry in ``core.frames``."""
    first_frame = core.far_frame[0]
    core.numbers[Number.FAR] -= 1
    last_index = core.numbers[Number.FAR]
    # The last entry moves down from the top to its position.
    heap_index = 0
    while True:
        child = 2 * heap_index + 1
        if child >= last_index:
            break
        if child + 1 < last_index and _is_earlier_entry(core, child + 1, child):
            child += 1
        if not _is_earlier_entry(core, child, last_index):
            break
        _move_far_entry(core, child, heap_index)
        heap_index = child
    _move_far_entry(core, last_index, heap_index)
    return first_frame

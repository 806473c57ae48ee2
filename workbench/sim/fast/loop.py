"""The main loop: it plays actions, frames and wake-ups in order, and calls a protocol's functions for what they mean.

`make_loop` makes it for one protocol. The functions it is given are numba's (``reference.inlined``), so all of it
becomes one piece of machine code, kept on disk under the digest of all its sources (`sources_digest`):
numba itself would look at the file of the loop alone, and go on with what has changed since.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from workbench.sim import workload
from workbench.sim.fast.agenda import NEVER, next_bucket, pop_far, pop_near, push
from workbench.sim.fast.air import (
    acknowledge,
    arc_between,
    check_channel,
    contend,
    end,
    fall_silent,
    free_frame,
    give_up,
    next_in_queue,
    take_frame,
    why_lost,
)
from workbench.sim.fast.layout import (
    AUDIBLES_FULL,
    BROADCAST,
    CHANNEL_CHECK,
    DONE,
    DOWN,
    DOWN_NODES,
    FAILED,
    FAR,
    FRAME_END,
    FRAME_READY,
    FRAMES_FULL,
    FREE_AUDIBLES,
    FREE_FRAMES,
    FREE_MESSAGES,
    LINK,
    LOST,
    MESSAGES_FULL,
    MORE,
    NEAR,
    NEXT_ACTION,
    NEXT_START,
    NO_REASON,
    NONE,
    NOW,
    PAUSED,
    PUBLISHED,
    RECEIVED,
    RECOVERED,
    ROWS,
    ROWS_FULL,
    SENT,
    STATE_FULL,
    STUCK,
    STUCK_NODE,
    SUBSCRIBED,
    UNSUBSCRIBED,
    WAKE,
)
from workbench.sim.fast.record import add_action, add_frame_row, add_loss, count_sent
from workbench.sim.fast.reference import by_reference, inlined, kept_on_disk

RECOVER, FAIL, SUBSCRIBE, UNSUBSCRIBE = workload.RECOVER, workload.FAIL, workload.SUBSCRIBE, workload.UNSUBSCRIBE


def _is_compiled(module: str) -> bool:
    """Whether a loop may have functions of a module in it: the engine's, a twin's, the rules that a twin shares."""
    return not {"fast", "rules"}.isdisjoint(module.split("."))


def sources_digest(twin: ModuleType) -> int:
    """A number of 63 bits that changes with any source, and any number taken from elsewhere, that a loop is made of."""
    found: dict[str, ModuleType] = {}
    waiting = [sys.modules[__name__], twin]
    while waiting:
        module = waiting.pop()
        if module.__name__ not in found:
            found[module.__name__] = module
            origins = {getattr(value, "__module__", None) or "" for value in vars(module).values()}
            waiting += [sys.modules[name] for name in origins if name in sys.modules and _is_compiled(name)]
    digest = hashlib.sha256()
    for name, module in sorted(found.items()):
        numbers = sorted((key, value) for key, value in vars(module).items() if isinstance(value, int))
        digest.update(f"{name} {numbers} {inspect.getsource(module)}".encode())
    return int.from_bytes(digest.digest()[:8], "big") >> 1


@inlined
def plan_wake(core, i, now):
    """Note when node ``i`` wants to be woken; what lies in the past is due now."""
    wake = core.next_wake[i]
    if wake != core.wake_at[i]:
        core.wake_at[i] = wake
        if wake != NONE:
            core.wake_at[i] = max(wake, now)
            # A timer that is put off for a moment and back again has its entry still, and the first one counts.
            if core.furthest_wake[i] == wake and wake > now:
                return
            if wake > core.furthest_wake[i] or core.furthest_wake[i] <= now:
                core.furthest_wake[i] = wake
            entry = take_frame(core)
            core.frames[entry].sender = i
            push(core, entry, max(wake, now), WAKE)


@inlined
def _fail(core, i, now):
    core.down[i] += 1
    if core.down[i] == 1:
        add_action(core, now, i, FAILED, 0, 0, NO_REASON)
        core.nodes[i].outages += 1
        core.numbers[DOWN_NODES] += 1
        fall_silent(core, i, now)


@inlined
def _recover(core, i, now):
    core.down[i] -= 1
    if core.down[i] == 0:
        core.numbers[DOWN_NODES] -= 1
        core.nodes[i].free_at = now
        add_action(core, now, i, RECOVERED, 0, 0, NO_REASON)


@inlined
def _subscribe(core, i, now, what):
    it = core.subscriptions[what]
    it.is_open = 1
    it.number = core.subscribed[i]
    core.subscribed[i] += 1
    it.expires_us = NONE if it.expires_after_us < 0 else now + it.expires_after_us
    add_action(core, now, i, SUBSCRIBED, it.number, it.expires_us, it.detail)


@inlined
def _take_reading_number(core, i, now, content):
    number = core.readings[i]
    core.readings[i] += 1
    add_action(core, now, i, PUBLISHED, number, 0, core.contents[content].detail)
    return number


@inlined
def _tell_sent(core, frame, now):
    it = core.frames[frame]
    peer = NONE if it.receiver < 0 else core.addresses[it.receiver]
    add_frame_row(core, now, it.sender, SENT, peer, it.message, now - it.start, NO_REASON)


def make_loop(
    start: Callable,
    receive: Callable,
    publish: Callable,
    subscribe: Callable,
    unsubscribe: Callable,
    wake: Callable,
    has_room: Callable,
    wakes: bool,
    digest: int,
) -> Any:
    """The compiled main loop of a protocol; the package's page says what its functions are.

    ``loop(core, state, receive_needs, act_needs, events)`` plays ``events`` events at most, and returns why it stopped.
    """

    def loop(arrays, memory, receive_needs, act_needs, events):
        core, state = by_reference(arrays), by_reference(memory)
        numbers = core.numbers
        # Of the sources' digest nothing but its presence is wanted: it is a part of the name under which this is kept.
        if digest == 0:
            return DONE
        quiet = not core.collisions and not core.loses
        count = len(core.addresses)
        while events > 0:
            events -= 1
            # What is next?
            bucket = 0
            from_far = False
            now = NEVER
            if numbers[NEAR]:
                bucket = next_bucket(core, numbers[NOW])
                now = core.frames[core.tails[bucket]].time
            # At the same microsecond what is in the heap was there first.
            if numbers[FAR] and core.far_time[0] <= now:
                from_far = True
                now = core.far_time[0]
            starts = numbers[NEXT_START] < count
            action = numbers[NEXT_ACTION]
            acts = starts or (action < len(core.actions) and core.actions[action].time_us <= now)
            if not acts and now == NEVER:
                return DONE if has_room(core, state) else STATE_FULL
            # Is there room for all that may come of it?
            if acts:
                rows, frames, messages = act_needs
                if not starts and core.actions[action].kind == FAIL:
                    rows += len(core.frames) - numbers[FREE_FRAMES]
                audibles = core.audible_needs[0]
            else:
                rows, frames, messages = receive_needs
                audibles = core.audible_needs[1]
            more = numbers[MORE]
            if more:
                rows, frames, messages = rows + 3 * more, frames + more, messages + more
                audibles += more * core.audible_needs[2]
            if numbers[ROWS] + rows > len(core.rows):
                return ROWS_FULL
            if numbers[FREE_FRAMES] < frames:
                return FRAMES_FULL
            if numbers[FREE_MESSAGES] < messages:
                return MESSAGES_FULL
            if numbers[FREE_AUDIBLES] < audibles:
                return AUDIBLES_FULL
            if not has_room(core, state):
                return STATE_FULL

            if starts:
                i = numbers[NEXT_START]
                numbers[NEXT_START] = i + 1
                start(core, state, i, 0)
                if wakes:
                    plan_wake(core, i, 0)
                continue
            if acts:
                it = core.actions[action]
                now = it.time_us
                i = it.place
                numbers[NEXT_ACTION] = action + 1
                numbers[NOW] = now
                if it.kind == FAIL:
                    _fail(core, i, now)
                elif it.kind == RECOVER:
                    _recover(core, i, now)
                    if core.down[i] == 0 and wakes:
                        core.wake_at[i] = NONE
                        plan_wake(core, i, now)
                elif not core.down[i]:
                    if it.kind == SUBSCRIBE:
                        _subscribe(core, i, now, it.what)
                        subscribe(core, state, i, it.what, now)
                    elif it.kind == UNSUBSCRIBE:
                        subscription = core.subscriptions[it.what]
                        if subscription.is_open:
                            subscription.is_open = 0
                            add_action(core, now, i, UNSUBSCRIBED, subscription.number, 0, NO_REASON)
                            unsubscribe(core, state, i, it.what, now)
                    else:
                        number = _take_reading_number(core, i, now, it.what)
                        publish(core, state, i, it.what, number, now)
                    if wakes:
                        plan_wake(core, i, now)
                continue

            frame = np.uint32(pop_far(core) if from_far else pop_near(core, bucket))
            numbers[NOW] = now
            it = core.frames[frame]
            i = it.sender
            if it.kind == FRAME_END:
                if it.outage != core.nodes[i].outages:
                    give_up(core, frame, now, DOWN)
                    continue
                if core.traces:
                    _tell_sent(core, frame, now)
                receiver = it.receiver
                if receiver == BROADCAST:
                    first, last = core.first[i], core.first[i + 1]
                else:
                    arc = NONE if receiver < 0 else arc_between(core, i, receiver)
                    first, last = arc, arc + 1
                    if arc == NONE:
                        first = last
                        if receiver >= 0:
                            add_loss(core, now, receiver, LOST, core.lost, core.addresses[i], it.message, LINK)
                heard = last - first
                perfect = quiet and not numbers[DOWN_NODES]
                for arc in range(first, last):
                    r = core.receivers[arc]
                    if not perfect:
                        reason = why_lost(core, arc, frame, now)
                        if reason:
                            heard -= 1
                            add_loss(core, now, r, LOST, core.lost, core.addresses[i], it.message, reason)
                            continue
                    if core.traces:
                        add_frame_row(core, now, r, RECEIVED, core.addresses[i], it.message, 0, NO_REASON)
                    receive(core, state, r, i, it.message, it.word, receiver == BROADCAST, now)
                    if wakes:
                        plan_wake(core, r, now)
                if receiver != BROADCAST and core.retries:
                    acknowledge(core, frame, heard == 1, now)
                if not core.traces:
                    count_sent(core, it.message, heard)
                if core.csma:
                    next_in_queue(core, i, now)
                end(core, frame)
            elif it.kind == CHANNEL_CHECK:
                check_channel(core, frame, now)
            elif it.kind == FRAME_READY:
                contend(core, frame, now)
            else:
                free_frame(core, frame)
                if now < core.duration_us and core.wake_at[i] == now and not core.down[i]:
                    core.wake_at[i] = NONE
                    if core.next_wake[i] != NONE and core.next_wake[i] <= now:
                        wake(core, state, i, now)
                        if core.next_wake[i] != NONE and core.next_wake[i] <= now:
                            numbers[STUCK] = i
                            return STUCK_NODE
                    plan_wake(core, i, now)
        return PAUSED

    # numba's index of what is on disk is a file for each name. One file for all twins could not be read where the
    # package of one of them, a user's, is not at hand.
    loop.__qualname__ = f"loop-{digest:016x}"
    return kept_on_disk(loop)

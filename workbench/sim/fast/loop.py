"""The main loop: it plays actions, frames and wake-ups in order, and calls a protocol's functions for what they mean.

`make_loop` makes it for one protocol. The functions it is given are numba's (``compiled.compiled``), so all of it
becomes one piece of machine code, kept on disk under the digest of all its sources (`name_of`): numba itself would look
at the file of the loop alone, and go on with what has changed since.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from workbench.sim import workload
from workbench.sim.fast import twin as interface
from workbench.sim.fast.agenda import NEVER, next_bucket, pop_far, pop_near, push
from workbench.sim.fast.channel import (
    ACKNOWLEDGED,
    UNDECIDED,
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
from workbench.sim.fast.compiled import COMPILED_MODULES, by_reference, compiled, compiled_loop, hot
from workbench.sim.fast.layout import (
    BROADCAST,
    CHANNEL_CHECK,
    FRAME_END,
    FRAME_READY,
    NO_REASON,
    NONE,
    WAKE,
    Event,
    Number,
    Reason,
    Status,
)
from workbench.sim.fast.record import add_action, add_frame_row, add_loss, count_sent

_NUMBERS = (int, float, np.number)
ENOUGH = NONE  # no array is too small

RECOVER, FAIL, SUBSCRIBE, UNSUBSCRIBE = workload.RECOVER, workload.FAIL, workload.SUBSCRIBE, workload.UNSUBSCRIBE


def name_of(twin: ModuleType) -> str:
    """The name of a twin's loop: another one for each change of a source, or of an imported number, in its parts."""
    digest = hashlib.sha256()
    for name, module in sorted(_parts(twin).items()):
        digest.update(f"{name} {_numbers(module)} {inspect.getsource(module)}".encode())
        for nickname, other in sorted(_modules(module, twin).items()):
            digest.update(f"{nickname} {_numbers(other)}".encode())
    return f"{twin.__name__}-{digest.hexdigest()[:16]}"


def _numbers(module: ModuleType) -> list[tuple[str, str]]:
    return sorted((key, repr(value)) for key, value in vars(module).items() if isinstance(value, _NUMBERS))


def _parts(twin: ModuleType) -> dict[str, ModuleType]:
    """The modules that a twin's loop may have functions of, and those that say how its arrays are laid out."""
    found: dict[str, ModuleType] = {}
    waiting = [sys.modules[__name__], interface, twin]
    while waiting:
        module = waiting.pop()
        if module.__name__ in found:
            continue
        found[module.__name__] = module
        names = {getattr(value, "__module__", None) or "" for value in vars(module).values()}
        names |= {other.__name__ for other in _modules(module, twin).values()}
        waiting += [sys.modules[name] for name in names if name in sys.modules and _is_part(name, twin)]
    return found


def _modules(module: ModuleType, twin: ModuleType) -> dict[str, ModuleType]:
    """The modules that a module knows by a name, of the workbench's and of the twin's package."""
    packages = _package(__name__), _package(twin.__name__)
    values = {key: value for key, value in vars(module).items() if isinstance(value, ModuleType)}
    return {key: value for key, value in values.items() if _package(value.__name__) in packages}


def _is_part(module: str, twin: ModuleType) -> bool:
    """Whether a module that a part names is one too: a twin's, one with a function for numba, one of its package.

    A protocol of the workbench's has nodes in its package, with which its machine code has nothing to do. The door of
    the fast engine has no function for numba, and knows what a process happens to have loaded.
    """
    if module == __package__:
        return False
    package = _package(twin.__name__)
    is_at_home = package != _package(__name__) and _package(module) == package
    return is_at_home or "fast" in module.split(".") or module in COMPILED_MODULES


def _package(module: str) -> str:
    return module.partition(".")[0]


@compiled
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


@compiled
def _fail(core, i, now):
    core.down[i] += 1
    if core.down[i] == 1:
        add_action(core, now, i, Event.FAILED, 0, 0, NO_REASON)
        core.nodes[i].outages += 1
        core.numbers[Number.DOWN_NODES] += 1
        fall_silent(core, i, now)


@compiled
def _recover(core, i, now):
    core.down[i] -= 1
    if core.down[i] == 0:
        core.numbers[Number.DOWN_NODES] -= 1
        core.nodes[i].free_at = now
        add_action(core, now, i, Event.RECOVERED, 0, 0, NO_REASON)


@compiled
def _subscribe(core, i, now, what):
    it = core.subscriptions[what]
    it.is_open = 1
    it.number = core.subscribed[i]
    core.subscribed[i] += 1
    it.expires_us = NONE if it.expires_after_us < 0 else now + it.expires_after_us
    add_action(core, now, i, Event.SUBSCRIBED, it.number, it.expires_us, it.detail)


@compiled
def _take_reading_number(core, i, now, content):
    number = core.readings[i]
    core.readings[i] += 1
    add_action(core, now, i, Event.PUBLISHED, number, 0, core.contents[content].detail)
    return number


@compiled
def _tell_sent(core, frame, now):
    it = core.frames[frame]
    peer = NONE if it.receiver < 0 else core.addresses[it.receiver]
    add_frame_row(core, now, it.sender, Event.SENT, peer, it.message, now - it.start, NO_REASON)


# What is next, and is there room for it?


@hot
def _next_frame(core):
    """When the next frame or wake-up is due (NEVER if there is none), its bucket, and whether it is in the heap."""
    bucket, now, is_far = 0, NEVER, False
    if core.numbers[Number.NEAR]:
        bucket = next_bucket(core, core.numbers[Number.NOW])
        now = core.frames[core.tails[bucket]].time
    # At the same microsecond what is in the heap was there first.
    if core.numbers[Number.FAR] and core.far_time[0] <= now:
        now, is_far = core.far_time[0], True
    return now, bucket, is_far


@hot
def _starts(core):
    """Whether there are nodes that have not begun."""
    return core.numbers[Number.NEXT_START] < len(core.addresses)


@hot
def _acts(core, now):
    """Whether an action comes before what is due now."""
    action = core.numbers[Number.NEXT_ACTION]
    return action < len(core.actions) and core.actions[action].time_us <= now


@hot
def _what_is_short(core, begins, acts, receive_needs, act_needs):
    """Which array is too small for all that may come of the next event; ENOUGH if none is."""
    numbers = core.numbers
    if begins or acts:
        rows, frames, messages = act_needs
        if not begins and core.actions[numbers[Number.NEXT_ACTION]].kind == FAIL:
            rows += len(core.frames) - numbers[Number.FREE_FRAMES]
        audibles = core.audible_needs[0]
    else:
        rows, frames, messages = receive_needs
        audibles = core.audible_needs[1]
    more = numbers[Number.MORE]
    if more:
        rows, frames, messages = rows + 3 * more, frames + more, messages + more
        audibles += more * core.audible_needs[2]
    if numbers[Number.ROWS] + rows > len(core.rows):
        return Status.ROWS_FULL
    if numbers[Number.FREE_FRAMES] < frames:
        return Status.FRAMES_FULL
    if numbers[Number.FREE_MESSAGES] < messages:
        return Status.MESSAGES_FULL
    return Status.AUDIBLES_FULL if numbers[Number.FREE_AUDIBLES] < audibles else ENOUGH


# A frame's end


@hot
def _arcs_of(core, frame, now):
    """The arcs (first, behind the last) that a frame goes over; a unicast frame without one is lost."""
    it = core.frames[frame]
    i = it.sender
    if it.receiver == BROADCAST:
        return core.first[i], core.first[i + 1]
    arc = NONE if it.receiver < 0 else arc_between(core, i, it.receiver)
    if arc != NONE:
        return arc, arc + 1
    if it.receiver >= 0:
        add_loss(core, now, it.receiver, Event.LOST, core.lost, core.addresses[i], it.message, Reason.LINK)
    return arc, arc


@hot
def _arrives(core, arc, frame, now):
    """Whether a frame is heard over an arc; a row says why it is not."""
    reason = why_lost(core, arc, frame, now)
    if reason:
        it = core.frames[frame]
        add_loss(core, now, core.receivers[arc], Event.LOST, core.lost, core.addresses[it.sender], it.message, reason)
    return reason == NO_REASON


@hot
def _after_frame(core, frame, heard, now):
    """Do what the radio does when a frame has been heard over so many arcs; return the outcome of a unicast."""
    it = core.frames[frame]
    outcome = UNDECIDED
    if it.receiver != BROADCAST and core.retries:
        outcome = acknowledge(core, frame, heard == 1, now)
    if not core.traces:
        count_sent(core, it.message, heard)
    if core.csma:
        next_in_queue(core, it.sender, now)
    return outcome


# The protocol's part: numba compiles its functions once for each type of their arguments, so a node's index is an int64
# wherever they are called, but for the receiver of a frame.


def _make_begin(start: Callable, wakes: bool) -> Any:
    """A function for the next node that is to begin."""

    @hot
    def begin(core, state):
        i = core.numbers[Number.NEXT_START]
        core.numbers[Number.NEXT_START] = i + 1
        start(core, state, i, 0)
        if wakes:
            plan_wake(core, i, 0)

    return begin


def _make_act(publish: Callable, subscribe: Callable, unsubscribe: Callable, wakes: bool) -> Any:
    """A function for the next action of the workload."""

    @hot
    def ask(core, state, i, now, it):
        if it.kind == SUBSCRIBE:
            _subscribe(core, i, now, it.what)
            subscribe(core, state, i, it.what, now)
        elif it.kind == UNSUBSCRIBE:
            subscription = core.subscriptions[it.what]
            if subscription.is_open:
                subscription.is_open = 0
                add_action(core, now, i, Event.UNSUBSCRIBED, subscription.number, 0, NO_REASON)
                unsubscribe(core, state, i, it.what, now)
        else:
            number = _take_reading_number(core, i, now, it.what)
            publish(core, state, i, it.what, number, now)
        if wakes:
            plan_wake(core, i, now)

    @hot
    def act(core, state):
        it = core.actions[core.numbers[Number.NEXT_ACTION]]
        now, i = it.time_us, np.int64(it.index)
        core.numbers[Number.NEXT_ACTION] += 1
        core.numbers[Number.NOW] = now
        if it.kind == FAIL:
            _fail(core, i, now)
        elif it.kind == RECOVER:
            _recover(core, i, now)
            if core.down[i] == 0 and wakes:
                core.wake_at[i] = NONE
                plan_wake(core, i, now)
        elif not core.down[i]:
            ask(core, state, i, now, it)

    return act


def _make_report(sent: Callable | None, wakes: bool) -> Any:
    """Return a function that reports the outcome of a unicast frame to its sender, if the twin wants to know."""
    if sent is None:

        @hot
        def no_report(core, state, frame, ok, now):
            """The twin ignores outcomes."""

        return no_report

    @hot
    def report(core, state, frame, ok, now):
        it = core.frames[frame]
        i = np.int64(it.sender)
        sent(core, state, i, it.receiver, it.message, it.word, ok, now)
        if wakes:
            plan_wake(core, i, now)

    return report


def _make_end_frame(receive: Callable, report: Callable, wakes: bool) -> Any:
    """A function for the end of a frame: it is heard, or lost, by all that it goes to."""

    @hot
    def end_frame(core, state, frame, now):
        it = core.frames[frame]
        i = it.sender
        if it.outage != core.nodes[i].outages:
            give_up(core, frame, now, Reason.DOWN)
            return
        if core.traces:
            _tell_sent(core, frame, now)
        first, last = _arcs_of(core, frame, now)
        heard = last - first
        message, is_broadcast = it.message, it.receiver == BROADCAST
        is_perfect = not core.collisions and not core.loses and not core.numbers[Number.DOWN_NODES]
        for arc in range(first, last):
            if not is_perfect and not _arrives(core, arc, frame, now):
                heard -= 1
                continue
            r = core.receivers[arc]
            if core.traces:
                add_frame_row(core, now, r, Event.RECEIVED, core.addresses[i], message, 0, NO_REASON)
            receive(core, state, r, i, message, it.word, is_broadcast, now)
            if wakes:
                plan_wake(core, r, now)
        outcome = _after_frame(core, frame, heard, now)
        if outcome != UNDECIDED:
            report(core, state, frame, outcome == ACKNOWLEDGED, now)
        end(core, frame)

    return end_frame


def _make_check(report: Callable) -> Any:
    """Return a function for the end of a back-off."""

    @hot
    def check(core, state, frame, now):
        if check_channel(core, frame, now):
            if core.frames[frame].receiver != BROADCAST:
                report(core, state, frame, False, now)
            end(core, frame)

    return check


def _make_wake_up(wake: Callable) -> Any:
    """A function for a wake-up: the node's timers, if it is still to be woken now."""

    @hot
    def wake_up(core, state, entry, now):
        """False if the node asks to be woken in the past, which would never end."""
        i = np.int64(core.frames[entry].sender)
        free_frame(core, entry)
        if now < core.duration_us and core.wake_at[i] == now and not core.down[i]:
            core.wake_at[i] = NONE
            if core.next_wake[i] != NONE and core.next_wake[i] <= now:
                wake(core, state, i, now)
                if core.next_wake[i] != NONE and core.next_wake[i] <= now:
                    core.numbers[Number.STUCK] = i
                    return False
            plan_wake(core, i, now)
        return True

    return wake_up


# What the loop calls of a twin: None here, and its own in the globals of each twin's loop.
begin = act = end_frame = check = wake_up = has_room = None


def loop(arrays, memory, receive_needs, act_needs, events):
    """Play ``events`` events at most; returns why it stopped."""
    core, state = by_reference(arrays), by_reference(memory)
    while events > 0:
        events -= 1
        now, bucket, is_far = _next_frame(core)
        begins, acts = _starts(core), _acts(core, now)
        if not begins and not acts and now == NEVER:
            return Status.DONE if has_room(core, state) else Status.STATE_FULL
        short = _what_is_short(core, begins, acts, receive_needs, act_needs)
        if short != ENOUGH:
            return short
        if not has_room(core, state):
            return Status.STATE_FULL
        if begins:
            begin(core, state)
            continue
        if acts:
            act(core, state)
            continue
        frame = np.uint32(pop_far(core) if is_far else pop_near(core, bucket))
        core.numbers[Number.NOW] = now
        kind = core.frames[frame].kind
        if kind == FRAME_END:
            end_frame(core, state, frame, now)
        elif kind == CHANNEL_CHECK:
            check(core, state, frame, now)
        elif kind == FRAME_READY:
            contend(core, frame, now)
        elif not wake_up(core, state, frame, now):
            return Status.STUCK_NODE
    return Status.PAUSED


def make_loop(
    start: Callable,
    receive: Callable,
    publish: Callable,
    subscribe: Callable,
    unsubscribe: Callable,
    wake: Callable,
    sent: Callable | None,
    has_room: Callable,
    wakes: bool,
    name: str,
) -> Any:
    """The compiled main loop of a protocol; the package's page says what its functions are.

    The machine code is kept on disk under the name, for other processes.
    """
    report = _make_report(sent, wakes)
    pieces = {
        "begin": _make_begin(start, wakes),
        "act": _make_act(publish, subscribe, unsubscribe, wakes),
        "end_frame": _make_end_frame(receive, report, wakes),
        "check": _make_check(report),
        "wake_up": _make_wake_up(wake),
        "has_room": has_room,
    }
    # Not a closure: numba would look for it on disk by the pieces, and takes those of each process for others.
    made = FunctionType(loop.__code__, globals() | pieces)
    # numba's index of what is on disk is a file for each name. One file for all twins could not be read where a twin's
    # own package is not at hand, nor after a twin's state has moved to another module.
    made.__qualname__ = name
    return compiled_loop(made)

"""The main loop: it plays actions, frames and wake-ups in order, and calls the protocol's functions for each.

`make_loop` creates the loop of one protocol. numba compiles all its functions (``compiled.compiled``), so the loop
becomes one piece of machine code. The code is stored on disk under a digest of all its sources (`name_of`). numba
itself would check only the file of the loop, and reuse machine code after a change of another source.

Parameters of the functions
    ``core``    the run's `layout.Core`, the arrays of the engine
    ``state``   the state of the protocol's nodes
    ``i``       the index of a node, in ascending order of addresses
    ``frame``   the index of a frame, or a wake-up, in ``core.frames``
    ``now``     the present time in µs
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from workbench.sim import actions
from workbench.sim.changes.arcs import JAM, RATIO, REPORT
from workbench.sim.channel import ACKNOWLEDGED, STROBING, UNDECIDED
from workbench.sim.fast import twin as interface
from workbench.sim.fast.agenda import NEVER, next_bucket, pop_far, pop_near, push
from workbench.sim.fast.beacons import plan_beacon, receive_beacon, send_beacon
from workbench.sim.fast.channel import (
    acknowledge,
    arc_between,
    check_channel,
    contend,
    end,
    free_frame,
    give_up,
    loss_reason,
    next_in_queue,
    repeat,
    stop_radio,
    take_frame,
)
from workbench.sim.fast.compiled import COMPILED_MODULES, by_reference, compiled, compiled_loop, hot
from workbench.sim.fast.layout import (
    BEACON,
    BROADCAST,
    CHANNEL_CHECK,
    FRAME_END,
    FRAME_READY,
    NO_REASON,
    NONE,
    STROBE_END,
    UNREACHABLE,
    WAKE,
    Event,
    Number,
    Reason,
    Status,
)
from workbench.sim.fast.record import add_action, add_entry, add_frame_row, add_loss, count_sent
from workbench.sim.state_times import FAILURE, RECOVERY

_NUMBERS = (int, float, np.number)
ENOUGH = NONE  # all arrays are large enough

RECOVER, FAIL, CRASH, REINFORCE = actions.RECOVER, actions.FAIL, actions.CRASH, actions.REINFORCE
SUBSCRIBE, UNSUBSCRIBE = actions.SUBSCRIBE, actions.UNSUBSCRIBE
# Whether a node's state must be erased before it comes up (`Core.is_erased`).
INTACT, MUST_ERASE, IS_ERASED = range(3)


def name_of(twin: ModuleType) -> str:
    """Return the name under which the compiled event loop of a protocol's fast twin is cached.

    The name contains a digest of the loop's source files and of the numbers that they import from other modules.
    """
    digest = hashlib.sha256()
    for module_name, module in sorted(_collect_parts(twin).items()):
        digest.update(f"{module_name} {_list_numbers(module)} {inspect.getsource(module)}".encode())
        for nickname, imported_module in sorted(_find_modules(module, twin).items()):
            digest.update(f"{nickname} {_list_numbers(imported_module)}".encode())
    return f"{twin.__name__}-{digest.hexdigest()[:16]}"


def _list_numbers(module: ModuleType) -> list[tuple[str, str]]:
    return sorted((key, repr(value)) for key, value in vars(module).items() if isinstance(value, _NUMBERS))


def _collect_parts(twin: ModuleType) -> dict[str, ModuleType]:
    """Return {name: module} of the modules whose source goes into the compiled event loop of a protocol's fast twin.

    These modules contain functions of the loop, or define the layout of its arrays. ``twin``: the protocol's module for
    the fast engine.
    """
    modules: dict[str, ModuleType] = {}
    modules_to_visit = [sys.modules[__name__], interface, twin]
    while modules_to_visit:
        module = modules_to_visit.pop()
        if module.__name__ in modules:
            continue
        modules[module.__name__] = module
        module_names = {getattr(value, "__module__", None) or "" for value in vars(module).values()}
        module_names |= {imported.__name__ for imported in _find_modules(module, twin).values()}
        modules_to_visit += [sys.modules[name] for name in module_names if name in sys.modules and _is_part(name, twin)]
    return modules


def _find_modules(module: ModuleType, twin: ModuleType) -> dict[str, ModuleType]:
    """Return {name: module} of the imports of ``module`` that belong to the workbench or to the package of ``twin``.

    ``twin``: a protocol's module for the fast engine.
    """
    packages = _package(__name__), _package(twin.__name__)
    imported_modules = {key: value for key, value in vars(module).items() if isinstance(value, ModuleType)}
    return {key: value for key, value in imported_modules.items() if _package(value.__name__) in packages}


def _is_part(module: str, twin: ModuleType) -> bool:
    """Return whether the module named ``module`` may contain functions of a twin's compiled loop.

    The result is True for modules of twins, for all modules of a twin's package outside the workbench, and for modules
    with numba functions. It is False for other modules of a workbench protocol, such as its node, and for
    `workbench.sim.fast`, which has no numba functions and whose variables differ between processes.
    """
    if module == __package__:
        return False
    package = _package(twin.__name__)
    is_in_own_package = package != _package(__name__) and _package(module) == package
    return is_in_own_package or "fast" in module.split(".") or module in COMPILED_MODULES


def _package(module: str) -> str:
    return module.partition(".")[0]


@compiled
def plan_wake(core, i, now):
    """Schedule the wake-up that node ``i`` requests: at ``core.next_wake[i]`` or, if that time has passed, at ``now``.

    Do nothing if the node requests no wake-up, or if this wake-up is scheduled already.
    """
    wake_us = core.next_wake[i]
    if wake_us != core.wake_at[i]:
        core.wake_at[i] = wake_us
        if wake_us != NONE:
            core.wake_at[i] = max(wake_us, now)
            # If a timer is postponed and set back again, its entry is still scheduled; the first entry counts.
            if core.furthest_wake[i] == wake_us and wake_us > now:
                return
            if wake_us > core.furthest_wake[i] or core.furthest_wake[i] <= now:
                core.furthest_wake[i] = wake_us
            wake_up = take_frame(core)
            core.frames[wake_up].sender = i
            push(core, wake_up, max(wake_us, now), WAKE)


@compiled
def _fail(core, i, now, detail):
    core.down[i] += 1
    if core.down[i] == 1 or detail == Reason.CRASHED:
        add_action(core, now, i, Event.FAILED, 0, 0, detail)
    if detail == Reason.CRASHED:
        core.is_erased[i] = MUST_ERASE
        _close_subscriptions(core, i)
    if core.down[i] == 1:
        core.nodes[i].outages += 1
        core.numbers[Number.DOWN_NODES] += 1
        add_entry(core, now, now, i, UNREACHABLE, FAILURE)
        stop_radio(core, i, now)


@compiled
def _close_subscriptions(core, i):
    row = core.nodes[i].first_subscription
    while row != NONE:
        core.subscriptions[row].is_open = 0
        row = core.subscriptions[row].next


@compiled
def _recover(core, i, now):
    core.down[i] -= 1
    if core.down[i] == 0:
        core.numbers[Number.DOWN_NODES] -= 1
        core.nodes[i].free_at = now
        add_entry(core, now, now, i, UNREACHABLE, RECOVERY)
        if core.is_erased[i] == INTACT:
            add_action(core, now, i, Event.RECOVERED, 0, 0, NO_REASON)
        else:
            core.boots[i] += 1
            boot = core.boots[i]
            add_action(core, now, i, Event.RECOVERED, 0, boot, Reason.RESTARTED if boot else Reason.JOINED)


@compiled
def _subscribe(core, i, now, index):
    subscription = core.subscriptions[index]
    subscription.is_open = 1
    subscription.number = core.subscribed[i]
    core.subscribed[i] += 1
    subscription.expires_us = NONE if subscription.expires_after_us < 0 else now + subscription.expires_after_us
    add_action(core, now, i, Event.SUBSCRIBED, subscription.number, subscription.expires_us, subscription.detail)


@compiled
def _record_publication(core, i, now, content):
    reading_number = core.readings[i]
    core.readings[i] += 1
    add_action(core, now, i, Event.PUBLISHED, reading_number, 0, core.contents[content].detail)
    return reading_number


@compiled
def _record_sent(core, frame, now):
    frame_entry = core.frames[frame]
    peer = NONE if frame_entry.receiver < 0 else core.addresses[frame_entry.receiver]
    add_frame_row(
        core, now, frame_entry.sender, Event.SENT, peer, frame_entry.message, now - frame_entry.start, NO_REASON
    )


# The next event, and the room for it


@hot
def _find_next_event(core):
    """Return (time, bucket, is_far) of the next frame or wake-up; the time is NEVER if no event is left.

    ``is_far``: whether the event is in the heap of distant events. Otherwise it is the first event in ``bucket``, an
    element of the ring of near events.
    """
    bucket, now, is_far = 0, NEVER, False
    if core.numbers[Number.NEAR]:
        bucket = next_bucket(core, core.numbers[Number.NOW])
        now = core.frames[core.tails[bucket]].time
    # At the same microsecond the heap's event is older.
    if core.numbers[Number.FAR] and core.far_time[0] <= now:
        now, is_far = core.far_time[0], True
    return now, bucket, is_far


@hot
def _has_nodes_to_start(core):
    return core.numbers[Number.NEXT_START] < len(core.addresses)


@hot
def _is_action_due(core, now):
    action = core.numbers[Number.NEXT_ACTION]
    return action < len(core.actions) and core.actions[action].time_us <= now


@hot
def _is_change_due(core, now):
    """Return whether the next event is a change of the links.

    ``now``: the time of the next frame or wake-up. At the same time, changes of links come before actions of the
    workload, and both before frames and wake-ups.
    """
    change = core.numbers[Number.NEXT_CHANGE]
    if not core.varies or change >= len(core.changes):
        return False
    time_us = core.changes[change].time_us
    action = core.numbers[Number.NEXT_ACTION]
    return time_us <= now and (action >= len(core.actions) or time_us <= core.actions[action].time_us)


@compiled
def _must_erase(core, now):
    """Return whether the next action restarts a node whose state must be erased first.

    If so, store the node's index in ``core.numbers[Number.ERASED]``, and the action's time as the present time.
    """
    action = core.actions[core.numbers[Number.NEXT_ACTION]]
    if action.kind != RECOVER or core.down[action.index] != 1 or core.is_erased[action.index] != MUST_ERASE:
        return False
    core.numbers[Number.ERASED] = action.index
    core.numbers[Number.NOW] = action.time_us
    return True


@hot
def _find_short_array(core, is_start, is_action, receive_needs, act_needs):
    """Return the `Status` that names an array without enough room for the next event, or ENOUGH.

    ``is_start``: whether the event starts a node. ``is_action``: whether the event is an action of the workload.
    ``act_needs``: the most (rows, frames, messages) that a start or an action adds. ``receive_needs``: the most that
    any other event adds.
    """
    core_numbers = core.numbers
    if is_start or is_action:
        row_need, frames, messages = act_needs
        audibles = core.audible_needs[0]
        if not is_start:
            kind = core.actions[core_numbers[Number.NEXT_ACTION]].kind
            if kind in (FAIL, CRASH):
                row_need += len(core.frames) - core_numbers[Number.FREE_FRAMES]
            elif kind == RECOVER:
                # The node may start anew, and it gets reports of its links.
                row_need, frames = row_need + receive_needs[0], frames + receive_needs[1]
                messages, audibles = messages + receive_needs[2], audibles + core.audible_needs[1]
    else:
        row_need, frames, messages = receive_needs
        audibles = core.audible_needs[1]
    excess = core_numbers[Number.MORE]
    if excess:
        row_need, frames, messages = row_need + 3 * excess, frames + excess, messages + excess
        audibles += excess * core.audible_needs[2]
    if core_numbers[Number.ROWS] + row_need > len(core.rows):
        return Status.ROWS_FULL
    # Besides the frames that it begins, an event adds a check, or an acknowledgement and the wait for it.
    if core.keeps_ledger and core_numbers[Number.ENTRIES] + frames + 2 > len(core.ledger):
        return Status.LEDGER_FULL
    if core_numbers[Number.FREE_FRAMES] < frames:
        return Status.FRAMES_FULL
    if core_numbers[Number.FREE_MESSAGES] < messages:
        return Status.MESSAGES_FULL
    return Status.AUDIBLES_FULL if core_numbers[Number.FREE_AUDIBLES] < audibles else ENOUGH


# A frame's end


@hot
def _find_arcs(core, frame, now):
    """Return the range [first, end) of the arcs over which a frame is sent; empty for a unicast without an arc.

    The loss of such a unicast is recorded, unless the destination is UNREACHABLE.
    """
    frame_entry = core.frames[frame]
    i = frame_entry.sender
    if frame_entry.receiver == BROADCAST:
        return core.first[i], core.first[i + 1]
    arc = NONE if frame_entry.receiver < 0 else arc_between(core, i, frame_entry.receiver)
    if arc != NONE:
        return arc, arc + 1
    if frame_entry.receiver >= 0:
        add_loss(
            core, now, frame_entry.receiver, Event.LOST, core.lost, core.addresses[i], frame_entry.message, Reason.LINK
        )
    return arc, arc


@hot
def _is_received(core, arc, frame, now):
    """Return whether the frame is received over ``arc``, an index; if not, record the loss and its reason."""
    reason = loss_reason(core, arc, frame, now)
    if reason:
        frame_entry = core.frames[frame]
        add_loss(
            core,
            now,
            core.receivers[arc],
            Event.LOST,
            core.lost,
            core.addresses[frame_entry.sender],
            frame_entry.message,
            reason,
        )
    return reason == NO_REASON


@hot
def _update_radio(core, frame, heard, now):
    """Update the sender's radio at the end of a frame: its acknowledgement, its counters and its queue.

    ``heard``: the number of nodes that received the frame. Returns the result of `acknowledge` for a unicast frame that
    must be acknowledged, otherwise UNDECIDED.
    """
    frame_entry = core.frames[frame]
    outcome = UNDECIDED
    if frame_entry.receiver != BROADCAST and core.acknowledges:
        outcome = acknowledge(core, frame, heard == 1, now)
    if not core.traces:
        count_sent(core, frame_entry.message, heard)
    if core.csma and outcome != STROBING:
        next_in_queue(core, frame_entry.sender, now)
    return outcome


# Calls of the protocol. numba compiles its functions once for each type of their arguments, so a node's index is an
# int64 in all calls, except for the receiver of a frame.


def _make_report_links(link_quality: Callable | None, report_link: Callable) -> Any:
    """Return a compiled function that reports to a node the delivery ratios of its links.

    The returned function's argument ``is_start`` is true if the node has just started without memory. If nodes learn
    the ratios from beacons, the function reports no ratios, and plans the node's first beacon if ``is_start`` is true.
    ``link_quality``: the protocol's function that takes the ratios; without it (None), the returned function does
    nothing. ``report_link``: a function that reports the ratios of one link.
    """
    if link_quality is None:

        @hot
        def no_links(core, state, i, now, is_start):
            """Do nothing: this protocol does not use link qualities."""

        return no_links

    @compiled
    def report_links(core, state, i, now, is_start):
        if core.learns:
            if is_start:
                plan_beacon(core, i, 0, now)
            return
        for inbound_index in range(core.inbound_first[i], core.inbound_first[i + 1]):
            arc = core.inbound[inbound_index]
            if core.ratios[arc] >= 0.0 or not is_start:
                report_link(core, state, arc, i, now)

    return report_links


def _make_report_link(link_quality: Callable | None) -> Any:
    """Return a compiled function that reports the delivery ratios of a link to the receiver ``i`` of an arc.

    The ratio of an arc that does not exist is 0. ``link_quality``: the protocol's function that takes the ratios. If it
    is None, the returned function does nothing.
    """
    if link_quality is None:

        @compiled
        def no_report(core, state, arc, i, now):
            """Do nothing: this protocol does not use link qualities."""

        return no_report

    @compiled
    def report_link(core, state, arc, i, now):
        sender = np.int64(core.senders[arc])
        reverse_arc = arc_between(core, i, sender)
        outbound = 0.0 if reverse_arc == NONE else core.ratios[reverse_arc]
        link_quality(core, state, i, sender, max(0.0, core.ratios[arc]), outbound, now)

    return report_link


def _make_beacon(link_quality: Callable | None) -> Any:
    """Return a compiled function that sends a node's beacon, and plans the next beacon.

    ``link_quality``: the protocol's function that takes delivery ratios. If it is None, nodes send no beacons, and the
    returned function does nothing.
    """
    if link_quality is None:

        @hot
        def no_beacon(core, entry, now):
            """Do nothing: nodes of this protocol send no beacons."""

        return no_beacon

    @hot
    def beacon(core, entry, now):
        i, earlier_beacons = np.int64(core.frames[entry].sender), core.frames[entry].header
        is_of_this_start = core.frames[entry].outage == core.boots[i]
        free_frame(core, entry)
        if now < core.duration_us and is_of_this_start:
            send_beacon(core, i, earlier_beacons, now)
            plan_beacon(core, i, earlier_beacons + 1, now)

    return beacon


def _make_begin(start: Callable, report_links: Callable, wakes: bool) -> Any:
    """Return a compiled function that starts one node at the beginning of a run.

    Each call starts the next node by address, and reports to the node the delivery ratios of its links. A node that
    joins the network later is taken down instead. ``start``: the protocol's function that starts a node.
    ``report_links``: the function that reports the ratios to a node. ``wakes``: whether the protocol has timers.
    """

    @hot
    def begin(core, state):
        i = core.numbers[Number.NEXT_START]
        core.numbers[Number.NEXT_START] = i + 1
        if core.absences[i]:
            for _ in range(core.absences[i]):
                _fail(core, i, 0, Reason.ABSENT)
            core.boots[i] = -1
            core.is_erased[i] = IS_ERASED
            return
        start(core, state, i, 0)
        report_links(core, state, i, 0, True)
        if wakes:
            plan_wake(core, i, 0)

    return begin


def _compile_apply_change(report_link: Callable, wakes: bool) -> Any:
    """Return a compiled function that applies the next change of the links.

    A change sets an arc's delivery ratio, reports a ratio to a node, or begins or ends jamming at a node.
    ``report_link``: the function that reports a link's delivery ratios to a node. ``wakes``: whether the protocol has
    timers.
    """

    @hot
    def change(core, state):
        row = core.changes[core.numbers[Number.NEXT_CHANGE]]
        now, subject = row.time_us, row.subject
        core.numbers[Number.NEXT_CHANGE] += 1
        core.numbers[Number.NOW] = now
        if row.kind == RATIO:
            core.ratios[subject] = row.ratio
            if core.capture_ddB:
                core.strengths_ddB[subject] = row.strength_ddB
        elif row.kind == REPORT:
            i = np.int64(core.receivers[subject])
            if not core.down[i]:
                report_link(core, state, subject, i, now)
                if wakes:
                    plan_wake(core, i, now)
        elif row.kind == JAM:
            core.jammers[subject] += 1
        else:
            core.jammers[subject] -= 1

    return change


def _make_act(
    start: Callable,
    report_links: Callable,
    publish: Callable,
    subscribe: Callable,
    unsubscribe: Callable,
    reinforce: Callable,
    wakes: bool,
) -> Any:
    """Return a compiled function that performs the next action of the workload.

    ``start``: the protocol's function that starts a node. ``report_links``: the function that reports delivery ratios
    to a node. ``publish`` to ``reinforce``: the protocol's functions for these actions. ``wakes``: whether the protocol
    has timers.
    """

    @hot
    def perform(core, state, i, now, action):
        if action.kind == SUBSCRIBE:
            _subscribe(core, i, now, action.subject)
            subscribe(core, state, i, action.subject, now)
        elif action.kind == UNSUBSCRIBE:
            subscription = core.subscriptions[action.subject]
            if subscription.is_open:
                subscription.is_open = 0
                add_action(core, now, i, Event.UNSUBSCRIBED, subscription.number, 0, NO_REASON)
                unsubscribe(core, state, i, action.subject, now)
        elif action.kind == REINFORCE:
            reinforce(core, state, i, action.subject, now)
        else:
            reading_number = _record_publication(core, i, now, action.subject)
            publish(core, state, i, action.subject, reading_number, now)
        if wakes:
            plan_wake(core, i, now)

    @hot
    def act(core, state):
        action = core.actions[core.numbers[Number.NEXT_ACTION]]
        now, i = action.time_us, np.int64(action.index)
        core.numbers[Number.NEXT_ACTION] += 1
        core.numbers[Number.NOW] = now
        if action.kind == FAIL:
            _fail(core, i, now, NO_REASON)
        elif action.kind == CRASH:
            _fail(core, i, now, Reason.CRASHED)
        elif action.kind == RECOVER:
            _recover(core, i, now)
            if core.down[i] == 0:
                core.wake_at[i] = NONE
                if core.is_erased[i] != INTACT:
                    core.is_erased[i] = INTACT
                    start(core, state, i, now)
                    report_links(core, state, i, now, True)
                elif core.varies:
                    report_links(core, state, i, now, False)
                if wakes:
                    plan_wake(core, i, now)
        elif not core.down[i]:
            perform(core, state, i, now, action)

    return act


def _make_report(sent: Callable | None, wakes: bool) -> Any:
    """Return a compiled function that reports the outcome of a unicast to the node that sent it.

    ``sent``: the protocol's function that handles the outcome. If it is None, the returned function does nothing.
    ``wakes``: whether the protocol has timers; if so, the node's next wake-up is scheduled after the report.
    """
    if sent is None:

        @hot
        def no_report(core, state, frame, ok, now):
            """Do nothing: this protocol does not need the outcomes of unicasts."""

        return no_report

    @hot
    def report(core, state, frame, ok, now):
        frame_entry = core.frames[frame]
        i = np.int64(frame_entry.sender)
        sent(core, state, i, frame_entry.receiver, frame_entry.message, frame_entry.header, ok, now)
        if wakes:
            plan_wake(core, i, now)

    return report


def _make_frame_handler(receive: Callable, link_quality: Callable | None) -> Any:
    """Return a compiled function that passes a received frame to the protocol's function ``receive``.

    If the frame is a beacon that changes delivery ratios, these are passed to ``link_quality`` instead.
    ``link_quality`` is None for protocols without beacons.
    """
    if link_quality is None:

        @hot
        def handle_protocol_frame(core, state, arc, r, i, message, header, is_broadcast, now):
            receive(core, state, r, i, message, header, is_broadcast, now)

        return handle_protocol_frame

    @hot
    def handle_frame(core, state, arc, r, i, message, header, is_broadcast, now):
        if core.messages[message].name != core.beacon_name:
            receive(core, state, r, i, message, header, is_broadcast, now)
        elif receive_beacon(core, arc, r, i):
            link = core.links[arc]
            link_quality(core, state, np.int64(r), np.int64(i), link.reported_inbound, link.reported_outbound, now)

    return handle_frame


def _make_end_frame(handle_frame: Callable, report: Callable, wakes: bool) -> Any:
    """Return a compiled function that ends a frame's airtime, at the receivers and at the sender.

    ``handle_frame``: a compiled function that is called for each receiver. ``report``: a compiled function that is
    called for the sender of a unicast frame. ``wakes``: whether the protocol has timers.
    """

    @hot
    def end_frame(core, state, frame, now):
        frame_entry = core.frames[frame]
        i = frame_entry.sender
        if frame_entry.outage != core.nodes[i].outages:
            give_up(core, frame, now, Reason.DOWN)
            return
        if core.traces:
            _record_sent(core, frame, now)
        first_arc, last_arc = _find_arcs(core, frame, now)
        heard_count = last_arc - first_arc
        message, is_broadcast = frame_entry.message, frame_entry.receiver == BROADCAST
        is_perfect = not core.collisions and not core.loses and not core.numbers[Number.DOWN_NODES] and not core.varies
        for arc in range(first_arc, last_arc):
            if core.varies and core.ratios[arc] < 0.0:
                heard_count -= 1
                continue
            if not is_perfect and not _is_received(core, arc, frame, now):
                heard_count -= 1
                continue
            r = core.receivers[arc]
            if core.traces:
                add_frame_row(core, now, r, Event.RECEIVED, core.addresses[i], message, 0, NO_REASON)
            handle_frame(core, state, arc, r, i, message, frame_entry.header, is_broadcast, now)
            if wakes:
                plan_wake(core, r, now)
        if core.messages[message].name == core.beacon_name:
            core.beacons[i].is_waiting = 0
        outcome = _update_radio(core, frame, heard_count, now)
        if outcome == STROBING:
            return
        if outcome != UNDECIDED:
            report(core, state, frame, outcome == ACKNOWLEDGED, now)
        end(core, frame)

    return end_frame


def _make_end_strobe(report: Callable) -> Any:
    """Return a compiled function that ends a strobe (repeated copies of a frame) without an acknowledgement.

    ``report``: a compiled function that reports the outcome of a unicast frame to its sender.
    """

    @hot
    def end_strobe(core, state, frame, now):
        frame_entry = core.frames[frame]
        if frame_entry.outage == core.nodes[frame_entry.sender].outages:
            outcome = repeat(core, frame, now)
            next_in_queue(core, frame_entry.sender, now)
            if outcome != UNDECIDED:
                report(core, state, frame, False, now)
        end(core, frame)

    return end_strobe


def _make_check(report: Callable) -> Any:
    """Return a compiled function that sends, delays or gives up a frame at the end of the frame's back-off.

    ``report``: a compiled function that reports the outcome of a unicast frame to its sender.
    """

    @hot
    def check(core, state, frame, now):
        if check_channel(core, frame, now):
            if core.frames[frame].receiver != BROADCAST:
                report(core, state, frame, False, now)
            end(core, frame)

    return check


def _make_wake_up(wake: Callable) -> Any:
    """Return a compiled function that wakes a node if its wake-up is still due.

    The function returns False if the node then requests a wake-up that is not in the future. ``wake``: the protocol's
    function that a wake-up calls.
    """

    @hot
    def wake_up(core, state, entry, now):
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


# The loop's calls of a twin: None in this module, and set in the globals of each twin's loop.
begin = change = act = end_frame = end_strobe = check = wake_up = beacon = has_room = None


def loop(arrays, memory, receive_needs, act_needs, events):
    """Play up to ``events`` events; return a `Status`, the reason why the loop returns.

    ``arrays``: the run's `Core`. ``memory``: the state of the protocol's nodes. ``act_needs``: the most (rows, frames,
    messages) that a node's start or an action of the workload adds. ``receive_needs``: the most that any other event
    adds.
    """
    core, state = by_reference(arrays), by_reference(memory)
    while events > 0:
        events -= 1
        if core.numbers[Number.TOO_LONG]:
            return Status.LONG_FRAME
        now, bucket, is_far = _find_next_event(core)
        is_start, is_action = _has_nodes_to_start(core), _is_action_due(core, now)
        is_change = not is_start and _is_change_due(core, now)
        if not is_start and not is_change and not is_action and now == NEVER:
            return Status.DONE if has_room(core, state) else Status.STATE_FULL
        is_action = is_action and not is_change
        if is_action and not is_start and core.numbers[Number.DOWN_NODES] and _must_erase(core, now):
            return Status.ERASE_NODE
        full_array = _find_short_array(core, is_start, is_action, receive_needs, act_needs)
        if full_array != ENOUGH:
            return full_array
        if not has_room(core, state):
            return Status.STATE_FULL
        if is_start:
            begin(core, state)
            continue
        if is_change:
            change(core, state)
            continue
        if is_action:
            act(core, state)
            continue
        frame = np.uint32(pop_far(core) if is_far else pop_near(core, bucket))
        core.numbers[Number.NOW] = now
        event_kind = core.frames[frame].kind
        if event_kind == FRAME_END:
            end_frame(core, state, frame, now)
        elif event_kind == CHANNEL_CHECK:
            check(core, state, frame, now)
        elif event_kind == FRAME_READY:
            contend(core, frame, now)
        elif event_kind == STROBE_END:
            end_strobe(core, state, frame, now)
        elif event_kind == BEACON:
            beacon(core, frame, now)
        elif not wake_up(core, state, frame, now):
            return Status.STUCK_NODE
    return Status.PAUSED


def make_loop(
    start: Callable,
    receive: Callable,
    publish: Callable,
    subscribe: Callable,
    unsubscribe: Callable,
    reinforce: Callable,
    wake: Callable,
    sent: Callable | None,
    link_quality: Callable | None,
    has_room: Callable,
    wakes: bool,
    name: str,
) -> Any:
    """Return the compiled event loop of a protocol; it calls the given functions of the protocol.

    The docstring of `workbench.sim.fast` defines these functions. ``sent``, ``link_quality``: None for a protocol
    without this function. ``wakes``: whether the protocol has timers. ``name``: the name of the machine code on disk,
    where other processes find it.
    """
    report, report_link = _make_report(sent, wakes), _make_report_link(link_quality)
    report_links = _make_report_links(link_quality, report_link)
    functions = {
        "begin": _make_begin(start, report_links, wakes),
        "change": _compile_apply_change(report_link, wakes),
        "act": _make_act(start, report_links, publish, subscribe, unsubscribe, reinforce, wakes),
        "end_frame": _make_end_frame(_make_frame_handler(receive, link_quality), report, wakes),
        "end_strobe": _make_end_strobe(report),
        "check": _make_check(report),
        "wake_up": _make_wake_up(wake),
        "beacon": _make_beacon(link_quality),
        "has_room": has_room,
    }
    # Not a closure: numba would look it up on disk by the functions in it, which differ between processes.
    own_loop = FunctionType(loop.__code__, globals() | functions)
    # numba keeps an index file for each name. A single file for all twins would be unreadable where one twin's package
    # is missing, or after its state has moved to another module.
    own_loop.__qualname__ = name
    return compiled_loop(own_loop)

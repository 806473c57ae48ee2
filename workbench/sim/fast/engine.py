"""Functions that play a run on the fast engine: they create its arrays, call the loop, and enlarge full arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from workbench import array_draws, draws, purposes
from workbench.errors import ScenarioError
from workbench.notice import Notice
from workbench.protocols.contract import NUMBERS_PER_BOOT
from workbench.protocols.link_estimator import ENTRY_B, HEADER_B, MAX_LISTED
from workbench.protocols.protocol import Protocol
from workbench.sim import engine as reference
from workbench.sim import trace, workload
from workbench.sim.capture import strengths_ddB, threshold_ddB
from workbench.sim.changes.arcs import CHANGE, LinkChanges, noise_intervals
from workbench.sim.changes.items import Join, count_absent
from workbench.sim.channel import ACKNOWLEDGEMENT_B
from workbench.sim.fast import NoFastTwinError, code_cache
from workbench.sim.fast import loop as loop_module
from workbench.sim.fast.channel import FORGET_AT
from workbench.sim.fast.layout import (
    AUDIBLE,
    BEACONS,
    FRAME,
    LINK,
    MESSAGE,
    NODE,
    NONE,
    ROW,
    Core,
    Needs,
    Number,
    Status,
    free_list,
    lengthen,
)
from workbench.sim.fast.network import Network
from workbench.sim.fast.outcome import Outcome
from workbench.sim.fast.prepare import Preparation, Setup, Work
from workbench.sim.fast.twin import erase_state, grow_free_list, grown, lookup, names_of, state_of
from workbench.sim.low_power import TURNAROUND_US, strobe_end
from workbench.sim.radio import Radio, describe_long_frame, uses_quality
from workbench.sim.state_times import ENTRY, RadioLedger

# Events between two returns to Python, for an interrupt or a progress bar.
_EVENTS = 1_000_000
_COMPILING = "compiling the engine for this protocol, which takes up to a minute; later processes load it from disk ..."
_WAITING = "another process compiles the engine for this protocol; waiting for it ..."
_ROWS = 8_000  # rows of the trace that are passed to Python at once: they fit in the processor's cache
_ENTRIES = 1 << 16  # of the ledger of radio states, which are added up together
_SHORTEST_RING_US, _LONGEST_RING_US = 1 << 12, 1 << 16
_RING_WITH_TIMERS_US = 1 << 17  # twins with timers mostly schedule retries after some ten milliseconds


@lru_cache
def loop_of(twin: Any) -> Any:
    """Return the compiled main loop of a protocol, given its twin, a module of compiled functions."""
    function_names = (
        "start",
        "receive",
        "publish",
        "subscribe",
        "unsubscribe",
        "reinforce",
        "wake",
        "sent",
        "link_quality",
        "has_room",
    )
    functions = {name: lookup(twin, name) for name in function_names}
    return loop_module.make_loop(**functions, wakes=lookup(twin, "WAKES"), name=loop_module.name_of(twin))


def play(
    twin: Any,
    network: Network,
    protocol: Protocol,
    items: Sequence[workload.Item],
    radio: Radio,
    duration_s: float,
    seed: int,
    record: str = "trace",
    progress: Callable[[float], Any] | None = None,
    changes: LinkChanges | None = None,
    position: Callable[[int, int], tuple[float, float]] | None = None,
) -> Outcome:
    """Play a workload on a network with the fast engine, and return the outcome.

    ``twin``: the protocol's module for this engine. ``record``: "trace" (all events) or "metrics" (only the metrics).
    ``progress`` is called regularly with the fraction of the run that is done. ``changes``: changes of the links, for a
    network of `workbench.sim.fast.network.of_changes`. ``position``: a function (address, time in µs) that returns a
    node's position (x, y) in m, or None if no node moves.
    """
    duration_us = round(duration_s * 1_000_000)
    if radio.link_quality == "learned" and uses_quality(protocol) and lookup(twin, "link_quality") is None:
        raise NoFastTwinError(
            f"the protocol's version for the fast engine, module {twin.__name__}, has no function link_quality, which "
            'takes learned link qualities; add the function, or use link_quality="true"'
        )
    code_names = names_of(twin, _has_beacons(twin, radio))
    preparation = Preparation(
        network.addresses,
        network.positions_m,
        radio,
        partial(lookup(twin, "size_B"), protocol),
        code_names.reasons,
        position,
    )
    workload_arrays = preparation.work(items, duration_us, seed)
    setup = Setup(protocol, network, workload_arrays, radio)
    needs = _compute_needs(twin, setup)
    core = _make_core(twin, setup, items, duration_us, seed, record == "trace", needs, changes)
    node_states = state_of(twin, setup, len(core.messages))
    outcome = Outcome(record == "metrics", code_names, workload_arrays.texts, lookup(twin, "COUNTS_HOLDERS"))
    ledger = RadioLedger(network.first, network.receivers, radio, core.phases_us, changes) if radio.tx_mA else None
    erase = partial(_erase_node, twin, setup, seed)
    node_states = _play(twin, setup, core, node_states, needs, outcome, ledger, progress, erase)
    outcome.name_details(lambda number: lookup(twin, "text")(setup, node_states, number))
    return outcome


def _play(
    twin: Any,
    setup: Setup,
    core: Core,
    state: Any,
    needs: tuple[Needs, Needs],
    outcome: Outcome,
    ledger: RadioLedger | None,
    progress: Callable[[float], Any] | None,
    erase: Callable[[Core, Any, int], None],
) -> Any:
    """Call the compiled event loop until the run has ended; return the nodes' final state.

    The loop returns early if an array is full; it is then called again with a larger array. ``twin``: the protocol's
    module for the fast engine. ``needs``: the result of `_compute_needs`. ``ledger``: the times of radio states, or
    None if they are not measured. ``erase``: a function that erases the state of a node.
    """
    loop = loop_of(twin)
    if not loop.overloads:
        _load_machine_code(twin.__name__, loop, core, state, needs)
    while (status := loop(core, state, *needs, _EVENTS)) != Status.DONE:
        if status == Status.ROWS_FULL:
            if core.numbers[Number.ROWS]:
                outcome.take_rows(core.rows[: core.numbers[Number.ROWS]])
                core.numbers[Number.ROWS] = 0
            else:
                core = core._replace(rows=np.zeros(2 * len(core.rows), ROW))
        elif status == Status.FRAMES_FULL:
            frames = _double_pool(core, core.frames, Number.FREE_FRAME)
            longer_arrays = {
                field_name: lengthen(getattr(core, field_name), len(frames))
                for field_name in ("far_time", "far_counter", "far_frame")
            }
            core = core._replace(frames=frames, **longer_arrays)
        elif status == Status.MESSAGES_FULL:
            core = core._replace(messages=_double_pool(core, core.messages, Number.FREE_MESSAGE))
            state = grown(lookup(twin, "FIELDS"), state, "messages", len(core.messages))
        elif status == Status.AUDIBLES_FULL:
            core = core._replace(audibles=_double_pool(core, core.audibles, Number.FREE_AUDIBLE))
        elif status == Status.LEDGER_FULL and ledger is not None:
            core = _move_finished_intervals(core, ledger)
        elif status == Status.LONG_FRAME:
            message = core.messages[core.numbers[Number.TOO_LONG] - 1]
            node = int(core.addresses[core.numbers[Number.TOO_LONG_AT]])
            message_name = outcome.names.messages[message["name"]]
            raise ScenarioError(
                describe_long_frame(setup.radio, setup.protocol, node, message_name, int(message["size_B"]))
            )
        elif status == Status.STATE_FULL:
            state = lookup(twin, "with_more_room")(state)
        elif status == Status.ERASE_NODE:
            erase(core, state, int(core.numbers[Number.ERASED]))
        elif status == Status.STUCK_NODE:
            node, now = int(core.numbers[Number.STUCK]), int(core.numbers[Number.NOW])
            # A bug of the twin: the run must not fall back to the other engine.
            raise RuntimeError(
                f"node {core.addresses[node]} was woken at {now} µs but its next_wake is {core.next_wake[node]} µs; "
                f"{twin.__name__}.wake() must set a later next_wake, or NONE"
            )
        if progress is not None:
            now = int(core.numbers[Number.NOW])
            if progress(min(1.0, now / core.duration_us)) is True and now < core.duration_us:
                core, outcome.ended_us = _shorten_run(core, now + 1), now + 1
    outcome.take_rows(core.rows[: core.numbers[Number.ROWS]])
    if outcome.metrics_only:
        outcome.take_numbers(core)
    if ledger is not None:
        ended_us = core.duration_us if outcome.ended_us is None else outcome.ended_us
        outcome.radio_states_us = ledger.finish(ended_us, core.ledger[: core.numbers[Number.ENTRIES]])
    if progress is not None:
        progress(1.0)
    return state


def _erase_node(twin: Any, setup: Setup, seed: int, core: Core, state: Any, i: int) -> None:
    """Give node ``i``, which has lost its memory, the state that a node has before its first start.

    The node gets a new random stream, and a new range of numbers for its readings and subscriptions; both depend on the
    number of its earlier starts. ``twin``: the protocol's module for the fast engine.
    """
    boot = int(core.boots[i]) + 1
    address = int(core.addresses[i])
    core.protocol_keys[i] = reference.boot_key(seed, address, boot)
    core.drawn[i] = 0
    core.next_wake[i] = NONE
    core.readings[i] = core.subscribed[i] = (boot & 0xFF) * NUMBERS_PER_BOOT
    if core.learns:
        arcs = core.inbound[core.inbound_first[i] : core.inbound_first[i + 1]]
        core.links[arcs] = _make_empty_links(1)[0]
        core.beacons[i] = _make_empty_beacons(core.beacons["key"][i : i + 1])[0]
    subscription_rows, row = [], int(core.nodes[i]["first_subscription"])
    while row != NONE:
        subscription_rows.append(row)
        row = int(core.subscriptions[row]["next"])
    rows = {"nodes": [i], "subscriptions": subscription_rows, **lookup(twin, "rows_of_node")(state, i)}
    erase_state(lookup(twin, "FIELDS"), state, rows)
    lookup(twin, "erase")(setup, state, i, int(core.readings[i]))
    core.is_erased[i] = loop_module.IS_ERASED


def _has_beacons(twin: Any, radio: Radio) -> bool:
    return radio.link_quality == "learned" and lookup(twin, "link_quality") is not None


def _move_finished_intervals(core: Core, ledger: RadioLedger) -> Core:
    """Move the finished intervals of ``core.ledger`` to the totals in ``ledger``, to make room.

    Returns ``core``, with a longer array ``core.ledger`` if too few intervals are finished.
    """
    entry_count = int(core.numbers[Number.ENTRIES])
    open_entries = ledger.settle(core.ledger[:entry_count], int(core.numbers[Number.NOW]))
    core.numbers[Number.ENTRIES] = len(open_entries)
    has_room = len(open_entries) < entry_count and 2 * len(open_entries) <= len(core.ledger)
    entries = core.ledger if has_room else np.zeros(2 * max(len(core.ledger), len(open_entries)), ENTRY)
    entries[: len(open_entries)] = open_entries
    return core._replace(ledger=entries)


def _shorten_run(core: Core, end_us: int) -> Core:
    """Return the run's arrays with an earlier end, ``end_us``, and without the actions at or after this time."""
    action_count = int(np.searchsorted(core.actions["time_us"], end_us))
    return core._replace(duration_us=end_us, actions=core.actions[:action_count])


def _load_machine_code(twin: str, loop: Any, core: Core, state: Any, needs: tuple[Needs, Needs]) -> None:
    """Load the machine code of a twin's event loop from disk, or compile the loop and show a notice.

    Compilation takes up to a minute. ``twin``: the name of the protocol's module for the fast engine. numba compiles
    for the types of arguments, so the loop is called once with ``core``, ``state`` and ``needs``, the result of
    `_compute_needs`. This call plays no event.
    """
    # If another process compiles this twin, wait for it and load its machine code.
    with Notice() as notice, code_cache.loading(), code_cache.lock(twin, partial(notice.show, _WAITING)):
        if not code_cache.files(loop.stats.cache_path, loop.__qualname__):
            notice.show(_COMPILING)
        loop(core, state, *needs, 0)
    code_cache.record_loaded(twin, loop.stats.cache_path, loop.__qualname__)


def _double_pool(core: Core, rows: np.ndarray, free: int) -> np.ndarray:
    """Return a copy of ``rows`` that is twice as long; its new records join the list of free records.

    ``rows``: an array whose unused records form a linked list. ``core.numbers[free]`` is the index of the first unused
    record.
    """
    return grow_free_list(rows, core.numbers, free, 2 * len(rows))


def _compute_needs(twin: Any, setup: Setup) -> tuple[Needs, Needs]:
    """Return upper limits of the trace rows, frames and messages that a single event adds.

    The result is a pair: the limits for a frame's end or a wake-up, and those for an action of the workload. ``twin``:
    the protocol's module for the fast engine.
    """
    degree = max(1, int(np.diff(setup.network.first).max()))
    broadcast, unicast, act = lookup(twin, "needs")(setup)
    wakes = 1 if lookup(twin, "WAKES") else 0
    # A wake-up counts among the other calls.
    largest = (
        max(degree * per_receiver, single, other_call * wakes)
        for per_receiver, single, other_call in zip(broadcast, unicast, act, strict=True)
    )
    row_need, frames, messages = largest
    beacon = 1 if _has_beacons(twin, setup.radio) else 0
    return (
        # Besides the receivers, the sender of a unicast may set a wake-up when it learns the outcome. A beacon takes
        # an entry for its frame and one for the next beacon.
        Needs(2 + degree + row_need, 1 + max(frames, 2 * beacon) + (degree + 1) * wakes, max(messages, beacon)),
        Needs(2 + act.rows, 1 + act.frames + wakes + beacon, act.messages),
    )


def _make_core(
    twin: Any,
    setup: Setup,
    items: Sequence[workload.Item],
    duration_us: int,
    seed: int,
    traces: bool,
    needs: tuple[Needs, Needs],
    changes: LinkChanges | None,
) -> Core:
    _, network, workload_arrays, radio = setup
    has_beacons = _has_beacons(twin, radio)
    code_names, recorded_events = names_of(twin, has_beacons), trace.metric_events(setup.protocol)
    longest_B = lookup(twin, "longest_frame_B")(setup)
    airtime_us = radio.airtime_us(max(longest_B, _beacon_B(MAX_LISTED)) if has_beacons else longest_B)
    if radio.wake_interval_us:
        airtime_us = strobe_end(0, airtime_us, radio.wake_interval_us)
    return Core(
        addresses=network.addresses,
        first=network.first,
        receivers=network.receivers.view(np.uint32),
        duration_us=duration_us,
        traces=traces,
        is_recorded=np.array([traces or name in recorded_events for name in code_names.events]),
        nodes=_make_nodes(network, workload_arrays, items, seed),
        actions=workload_arrays.actions,
        contents=workload_arrays.contents,
        samples=workload_arrays.samples,
        attributes=workload_arrays.attributes,
        subscriptions=workload_arrays.subscriptions,
        **_make_radio_fields(setup, seed, airtime_us, changes),
        **_make_link_fields(
            setup, seed, lookup(twin, "link_quality") is not None, has_beacons, len(code_names.messages)
        ),
        **_make_node_fields(setup, seed, items),
        **_make_event_fields(setup, airtime_us, lookup(twin, "WAKES"), needs),
        **_make_row_fields(len(code_names.messages), len(code_names.reasons), needs),
        ledger=np.zeros(_choose_pool_size(_ENTRIES, needs[0].frames, needs[1].frames) if radio.tx_mA else 1, ENTRY),
    )


# The core's fields by topic, with their values at the start of a run


def _make_radio_fields(setup: Setup, seed: int, airtime_us: int, changes: LinkChanges | None) -> dict[str, Any]:
    network, radio = setup.network, setup.radio
    ratios = _delivery_ratios(radio, network.pdr) if changes is None else changes.ratios.copy()
    loses = bool(len(ratios) and ratios.min() < 1.0) or changes is not None
    strengths_ddB = np.zeros(1, np.int32)
    if radio.capture_dB:
        strengths_ddB = _compute_strengths(network) if changes is None else changes.strengths_ddB.copy()
    shortest_us, longest_us = _jitter_us(radio)
    first_noise, noise_us = np.zeros(1, np.int64), np.zeros((0, 2), np.int64)
    if changes is not None:
        first_noise, noise_us = noise_intervals(changes, len(network.addresses))
    return {
        "ratios": ratios,
        "arc_keys": _make_arc_keys(network, seed) if loses else np.zeros(1, np.uint64),
        "varies": changes is not None,
        "changes": np.zeros(0, CHANGE) if changes is None else changes.rows,
        "jammers": np.zeros(1 if changes is None else len(network.addresses), np.int32),
        "first_noise": first_noise,
        "noise_us": noise_us,
        "collisions": radio.collisions,
        "csma": radio.senses_carrier,
        "loses": loses,
        "retries": radio.retries,
        "acknowledges": radio.acknowledges,
        "wake_interval_us": radio.wake_interval_us,
        "phases_us": _draw_phases(network, radio.wake_interval_us, seed),
        "longest_frame_B": radio.longest_frame_B(setup.protocol.max_fragments),
        "max_frame_B": radio.max_frame_B,
        "capture_ddB": threshold_ddB(radio.capture_dB),
        "strengths_ddB": strengths_ddB,
        "known_phases": np.zeros(len(network.receivers) if radio.wake_interval_us else 1, np.int32),
        "jitter_shortest_us": shortest_us,
        "jitter_width_us": longest_us - shortest_us + 1 if longest_us else 0,
        "acknowledgement_us": TURNAROUND_US + radio.airtime_us(ACKNOWLEDGEMENT_B),
        "acknowledgement_key": np.uint64(draws.make_key(seed, purposes.ACKNOWLEDGEMENT_LOSS)),
        "longest_airtime_us": airtime_us,
        "keeps_ledger": bool(radio.tx_mA),
    }


def _beacon_B(entries: int) -> int:
    return HEADER_B + ENTRY_B * entries


def _make_link_fields(setup: Setup, seed: int, uses_quality: bool, learns: bool, messages: int) -> dict[str, Any]:
    """Return the fields of `Core` for the link qualities of a run.

    ``uses_quality``: whether nodes use the delivery ratios of links. ``learns``: whether nodes learn the ratios from
    beacons. ``messages``: the number of message names; if nodes send beacons, the last name is
    that of beacons.
    """
    network, radio = setup.network, setup.radio
    node_count, arc_count = len(network.addresses), len(network.receivers)
    senders = np.repeat(np.arange(node_count, dtype=np.int32), np.diff(network.first)) if uses_quality else np.zeros(1)
    links = _make_empty_links(arc_count if learns else 1)
    beacons = _make_empty_beacons(_make_keys(seed, purposes.BEACON, network) if learns else np.zeros(1, np.uint64))
    return {
        "learns": learns,
        "inbound_first": np.append(0, np.cumsum(np.bincount(network.receivers, minlength=node_count))),
        "inbound": np.argsort(network.receivers, kind="stable") if uses_quality else np.zeros(1, np.int64),
        "senders": senders.astype(np.int32),
        "links": links,
        "beacons": beacons,
        "beacon_airtimes_us": np.array([radio.airtime_us(_beacon_B(entries)) for entries in range(MAX_LISTED + 1)]),
        "longest_beacon_us": radio.longest_beacon_interval_us,
        "beacon_name": messages - 1 if learns else NONE,
    }


def _make_empty_links(count: int) -> np.ndarray:
    """Return ``count`` records `LINK` of links over which no beacon has been received."""
    links = np.zeros(count, LINK)
    for name in ("inbound", "outbound", "reported_inbound", "reported_outbound", "listed", "next"):
        links[name] = NONE
    return links


def _make_empty_beacons(keys: np.ndarray) -> np.ndarray:
    """Return a record `BEACONS` for each of ``keys``, for nodes that have sent and received no beacons.

    ``keys``: the keys that determine the nodes' random draws.
    """
    beacons = np.zeros(len(keys), BEACONS)
    beacons["first"] = beacons["last"] = NONE
    beacons["key"] = keys
    return beacons


def _make_node_fields(setup: Setup, seed: int, items: Sequence[workload.Item]) -> dict[str, Any]:
    network, radio = setup.network, setup.radio
    absences = np.zeros(len(network.addresses), np.int32)
    if any(isinstance(item, Join) for item in items):
        for node, count in count_absent(items, tuple(network.addresses.tolist())).items():
            absences[np.searchsorted(network.addresses, node)] = count
    node_count = len(network.addresses)
    contending_nodes = node_count if radio.senses_carrier else 1
    hearing_nodes = node_count if _shares_medium(radio) else 1
    return {
        "down": np.zeros(node_count, np.int32),
        "absences": absences,
        "is_erased": np.zeros(node_count, np.int32),
        "boots": np.zeros(node_count, np.int32),
        "next_wake": np.full(node_count, NONE, np.int64),
        "wake_at": np.full(node_count, NONE, np.int64),
        "furthest_wake": np.full(node_count, NONE, np.int64),
        "backoff_keys": _make_keys(seed, purposes.BACKOFF, network),
        "protocol_keys": _make_keys(seed, draws.PROTOCOL, network),
        "drawn": np.zeros(node_count, np.int32),
        "queue_head": np.full(contending_nodes, NONE, np.int32),
        "queue_tail": np.full(contending_nodes, NONE, np.int32),
        "first_audible": np.full(hearing_nodes, NONE, np.int32),
        "audible_count": np.zeros(hearing_nodes, np.int32),
        "forget_at": np.full(hearing_nodes, FORGET_AT, np.int32),
        "readings": np.zeros(node_count, np.int32),
        "subscribed": np.zeros(node_count, np.int32),
    }


def _make_event_fields(setup: Setup, airtime_us: int, wakes: bool, needs: tuple[Needs, Needs]) -> dict[str, Any]:
    """Return the fields of `Core` for future events: the event queue, and pools of frames and messages.

    ``airtime_us``: the longest airtime of a frame, which determines how far ahead the queue's ring reaches. ``wakes``:
    whether the protocol has timers. ``needs``: the result of `_compute_needs`.
    """
    radio = setup.radio
    ring_length = _choose_ring_length(_jitter_us(radio)[1] + airtime_us + (32 * 320 if radio.senses_carrier else 0))
    ring_length = max(ring_length, _RING_WITH_TIMERS_US) if wakes else ring_length
    audible_needs = _compute_audible_needs(setup, needs)
    frames = _choose_pool_size(64, needs[0].frames, needs[1].frames)
    messages = _choose_pool_size(8, needs[0].messages, needs[1].messages)
    audibles = _choose_pool_size(256, *audible_needs) if _shares_medium(radio) else 1
    core_numbers = np.zeros(len(Number), np.int64)
    core_numbers[[Number.FREE_FRAMES, Number.FREE_MESSAGES, Number.FREE_AUDIBLES]] = frames, messages, audibles
    return {
        "audible_needs": audible_needs,
        "tails": np.full(ring_length, NONE, np.int32),
        "bits": np.zeros(ring_length >> 6, np.uint64),
        "summary": np.zeros(ring_length >> 12, np.uint64),
        "far_time": np.zeros(frames, np.int64),
        "far_counter": np.zeros(frames, np.int64),
        "far_frame": np.zeros(frames, np.int32),
        "frames": free_list(FRAME, frames),
        "messages": free_list(MESSAGE, messages),
        "audibles": free_list(AUDIBLE, audibles),
        "numbers": core_numbers,
    }


def _make_row_fields(messages: int, reasons: int, needs: tuple[Needs, Needs]) -> dict[str, np.ndarray]:
    """Return the fields of `Core` that record events: trace rows, and counters for runs without a trace.

    ``messages``: the number of message names. ``reasons``: the number of reasons of losses and drops. ``needs``: the
    result of `_compute_needs`.
    """
    return {
        "rows": np.zeros(max(needs[0].rows, needs[1].rows) + _ROWS, ROW),
        "traffic": np.zeros((messages, 4), np.int64),
        "lost": np.zeros((messages, reasons, 2), np.int64),
        "given_up": np.zeros((messages, reasons, 2), np.int64),
        "dropped": np.zeros(reasons, np.int64),
    }


def _shares_medium(radio: Radio) -> bool:
    return radio.collisions or radio.senses_carrier


def _jitter_us(radio: Radio) -> tuple[int, int]:
    shortest_ms, longest_ms = radio.jitter_ms
    return round(1000 * shortest_ms), round(1000 * longest_ms)


def _compute_audible_needs(setup: Setup, needs: tuple[Needs, Needs]) -> tuple[int, int, int]:
    """Return (action, frame, more): upper limits of the number of entries that an event adds to ``core.audibles``.

    ``core.audibles`` has an entry for each transmission at each node that hears it. ``action``: the limit for a node's
    start or an action of the workload. ``frame``: the limit for any other event, such as a frame's end or a wake-up.
    ``more``: the number to add to these limits for each frame that an event sends in excess of the protocol's declared
    number. ``needs``: the declared numbers of trace rows, frames and messages, (for other events, for an action).
    """
    radio, first_arc = setup.radio, setup.network.first
    if not _shares_medium(radio):
        return 0, 0, 0
    most_hearers = 1 + int(np.diff(first_arc).max(initial=0))
    # With csma an event puts only its own frame on the air.
    action_need, frame_need, more = (1, 1, 0) if radio.senses_carrier else (needs[1].frames, needs[0].frames, 1)
    return most_hearers * action_need, most_hearers * frame_need, most_hearers * more


def _choose_pool_size(least: int, *needs: int) -> int:
    return max(least, *(2 * need for need in needs))


def _choose_ring_length(horizon_us: int) -> int:
    length = _SHORTEST_RING_US
    while length < min(horizon_us + 2, _LONGEST_RING_US):
        length *= 2
    return length


def _compute_strengths(network: Network) -> np.ndarray:
    senders = np.repeat(np.arange(len(network.addresses)), np.diff(network.first))
    return strengths_ddB(network.positions_m, senders, network.receivers)


def _draw_phases(network: Network, interval_us: int, seed: int) -> np.ndarray:
    """Return the random time in µs, in [0, interval_us), at which each node first wakes up for low-power listening.

    If ``interval_us`` is 0, radios never sleep, and the result is an array with a single 0.
    """
    if not interval_us:
        return np.zeros(1, np.int64)
    phase_keys = _make_keys(seed, purposes.WAKE_PHASE, network).tolist()
    return np.array([draws.below(key, 0, interval_us) for key in phase_keys], np.int64)


def _delivery_ratios(radio: Radio, pdr: np.ndarray) -> np.ndarray:
    return pdr if radio.loss == "links" else np.full(len(pdr), radio.delivery_ratio(1.0))


def _make_keys(seed: int, purpose: int, network: Network) -> np.ndarray:
    address_words = network.addresses.astype(np.uint64) + np.uint64(draws.GOLDEN)
    return array_draws.mix64(np.uint64(draws.make_key(seed, purpose)) ^ array_draws.mix64(address_words))


def _make_arc_keys(network: Network, seed: int) -> np.ndarray:
    """Return for each arc the 64-bit key of the random draws that decide whether the arc loses a frame."""
    senders = np.repeat(_make_keys(seed, purposes.LINK_LOSS, network), np.diff(network.first))
    receivers = network.addresses[network.receivers].astype(np.uint64) + np.uint64(draws.GOLDEN)
    return array_draws.mix64(senders ^ array_draws.mix64(receivers))


def _make_nodes(network: Network, work: Work, items: Sequence[workload.Item], seed: int) -> np.ndarray:
    node_records = np.zeros(len(network.addresses), NODE)
    node_records["jitter_key"] = _make_keys(seed, purposes.JITTER, network)
    node_records["first_subscription"] = work.first_subscription
    node_records["is_sink"] = _mark_sinks(network, items)
    return node_records


def _mark_sinks(network: Network, items: Sequence[workload.Item]) -> np.ndarray:
    is_sink = np.zeros(len(network.addresses), np.bool_)
    for item in items:
        if isinstance(item, workload.Subscribe):
            is_sink[np.searchsorted(network.addresses, item.at) if not isinstance(item.at, str) else slice(None)] = True
    return is_sink

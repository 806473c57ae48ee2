"""One run on the fast engine: its arrays, the loop, and larger arrays where the first were too small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from workbench import array_draws, draws, purposes
from workbench.notice import Notice
from workbench.protocols.protocol import Protocol
from workbench.sim import trace, workload
from workbench.sim.channel import ACKNOWLEDGEMENT_B, TURNAROUND_US
from workbench.sim.fast import code_cache
from workbench.sim.fast import loop as loop_module
from workbench.sim.fast.channel import FORGET_AT
from workbench.sim.fast.layout import (
    AUDIBLE,
    FRAME,
    MESSAGE,
    NODE,
    NONE,
    ROW,
    Core,
    Needs,
    Number,
    Status,
    free_list,
    longer,
)
from workbench.sim.fast.network import Network
from workbench.sim.fast.outcome import Outcome
from workbench.sim.fast.prepare import Preparation, Setup, Work
from workbench.sim.fast.twin import grow_free_list, grown, names_of, of, state_of
from workbench.sim.radio import Radio

# Events between two looks at what Python wants: an interrupt, a bar that shows progress.
_EVENTS = 1_000_000
_COMPILING = "compiling the engine for this protocol, which takes up to a minute; the next process finds it on disk ..."
_WAITING = "another process compiles the engine for this protocol; waiting for it ..."
_ROWS = 8_000  # of the trace, before they are handed over: so many stay in the processor's cache
_SHORTEST_RING_US, _LONGEST_RING_US = 1 << 12, 1 << 16
_RING_WITH_TIMERS_US = 1 << 17  # retries of some ten milliseconds are most of what a twin with timers plans


@lru_cache
def loop_of(twin: Any) -> Any:
    """The main loop for a twin (a module)."""
    names = ("start", "receive", "publish", "subscribe", "unsubscribe", "wake", "sent", "has_room")
    functions = {name: of(twin, name) for name in names}
    return loop_module.make_loop(**functions, wakes=of(twin, "WAKES"), name=loop_module.name_of(twin))


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
) -> Outcome:
    """Play a workload on a network; ``record`` is "trace" or "metrics"."""
    duration_us = round(duration_s * 1_000_000)
    names = names_of(twin)
    preparation = Preparation(
        network.addresses, network.positions_m, radio, partial(of(twin, "size_B"), protocol), names.reasons
    )
    work = preparation.work(items, duration_us, seed)
    setup = Setup(protocol, network, work, radio)
    needs = _needs(twin, setup)
    core = _core(twin, setup, items, duration_us, seed, record == "trace", needs)
    state = state_of(twin, setup, len(core.messages))
    outcome = Outcome(record == "metrics", names, work.texts, of(twin, "COUNTS_HOLDERS"))
    state = _play(twin, core, state, needs, outcome, progress)
    outcome.name_details(lambda number: of(twin, "text")(setup, state, number))
    return outcome


def _play(
    twin: Any,
    core: Core,
    state: Any,
    needs: tuple[Needs, Needs],
    outcome: Outcome,
    progress: Callable[[float], Any] | None,
) -> Any:
    """Play to the end; returns the protocol's state then."""
    loop = loop_of(twin)
    if not loop.overloads:
        _load(twin.__name__, loop, core, state, needs)
    while (status := loop(core, state, *needs, _EVENTS)) != Status.DONE:
        if status == Status.ROWS_FULL:
            if core.numbers[Number.ROWS]:
                outcome.take_rows(core.rows[: core.numbers[Number.ROWS]])
                core.numbers[Number.ROWS] = 0
            else:
                core = core._replace(rows=np.zeros(2 * len(core.rows), ROW))
        elif status == Status.FRAMES_FULL:
            frames = _doubled(core, core.frames, Number.FREE_FRAME)
            far = {name: longer(getattr(core, name), len(frames)) for name in ("far_time", "far_counter", "far_frame")}
            core = core._replace(frames=frames, **far)
        elif status == Status.MESSAGES_FULL:
            core = core._replace(messages=_doubled(core, core.messages, Number.FREE_MESSAGE))
            state = grown(of(twin, "FIELDS"), state, "messages", len(core.messages))
        elif status == Status.AUDIBLES_FULL:
            core = core._replace(audibles=_doubled(core, core.audibles, Number.FREE_AUDIBLE))
        elif status == Status.STATE_FULL:
            state = of(twin, "with_more_room")(state)
        elif status == Status.STUCK_NODE:
            node, now = int(core.numbers[Number.STUCK]), int(core.numbers[Number.NOW])
            # Not the user's mistake: it must not end as a run on the other engine.
            raise RuntimeError(
                f"node {core.addresses[node]} was woken at {now} µs and asks to be woken at {core.next_wake[node]} µs; "
                f"the twin's wake() has to move next_wake on, or clear it"
            )
        if progress is not None:
            now = int(core.numbers[Number.NOW])
            if progress(min(1.0, now / core.duration_us)) is True and now < core.duration_us:
                core, outcome.ended_us = _ended(core, now + 1), now + 1
    outcome.take_rows(core.rows[: core.numbers[Number.ROWS]])
    if outcome.metrics_only:
        outcome.take_numbers(core)
    if progress is not None:
        progress(1.0)
    return state


def _ended(core: Core, end_us: int) -> Core:
    """The same run with an earlier end: what would have been done later is not done."""
    ahead = int(np.searchsorted(core.actions["time_us"], end_us))
    return core._replace(duration_us=end_us, actions=core.actions[:ahead])


def _load(twin: str, loop: Any, core: Core, state: Any, needs: tuple[Needs, Needs]) -> None:
    """Load the machine code from disk, or compile it, which is announced: it takes a minute or so."""
    # Another process that compiles this twin is waited for, and what it leaves on disk is taken.
    with Notice() as notice, code_cache.loading(), code_cache.alone(twin, partial(notice.show, _WAITING)):
        if not code_cache.files(loop.stats.cache_path, loop.__qualname__):
            notice.show(_COMPILING)
        loop(core, state, *needs, 0)
    code_cache.note(twin, loop.stats.cache_path, loop.__qualname__)


def _doubled(core: Core, rows: np.ndarray, free: int) -> np.ndarray:
    """Twice as many rows of a pool."""
    return grow_free_list(rows, core.numbers, free, 2 * len(rows))


def _needs(twin: Any, setup: Setup) -> tuple[Needs, Needs]:
    """What the end of a frame (all its receptions) or a wake-up takes at most, and what an action does."""
    degree = max(1, int(np.diff(setup.network.first).max()))
    broadcast, unicast, act = of(twin, "needs")(setup)
    wake = 1 if of(twin, "WAKES") else 0
    # A wake-up is such another call.
    most = (max(degree * heard, one, called * wake) for heard, one, called in zip(broadcast, unicast, act, strict=True))
    rows, frames, messages = most
    return (
        # Beside the receivers, the sender of a unicast may want to be woken when it learns the outcome.
        Needs(2 + degree + rows, 1 + frames + (degree + 1) * wake, messages),
        Needs(2 + act.rows, 1 + act.frames + wake, act.messages),
    )


def _core(
    twin: Any,
    setup: Setup,
    items: Sequence[workload.Item],
    duration_us: int,
    seed: int,
    traces: bool,
    needs: tuple[Needs, Needs],
) -> Core:
    _, network, work, radio = setup
    names, kept = names_of(twin), trace.kept_events(setup.protocol)
    airtime_us = radio.airtime_us(of(twin, "longest_frame_B")(setup))
    return Core(
        addresses=network.addresses,
        first=network.first,
        receivers=network.receivers.view(np.uint32),
        duration_us=duration_us,
        traces=traces,
        kept=np.array([traces or name in kept for name in names.events]),
        nodes=_nodes(network, work, items, seed),
        actions=work.actions,
        contents=work.contents,
        samples=work.samples,
        attributes=work.attributes,
        subscriptions=work.subscriptions,
        **_of_radio(setup, seed, airtime_us),
        **_of_each_node(setup, seed),
        **_of_events(setup, airtime_us, of(twin, "WAKES"), needs),
        **_of_rows(len(names.messages), len(names.reasons), needs),
    )


# The fields of the core that begin alike in all runs, by what they are about


def _of_radio(setup: Setup, seed: int, airtime_us: int) -> dict[str, Any]:
    network, radio = setup.network, setup.radio
    ratios = _delivery_ratios(radio, network.pdr)
    loses = bool(len(ratios) and ratios.min() < 1.0)
    shortest_us, longest_us = _jitter_us(radio)
    return {
        "ratios": ratios,
        "arc_keys": _arc_keys(network, seed) if loses else np.zeros(1, np.uint64),
        "collisions": radio.collisions,
        "csma": radio.csma,
        "loses": loses,
        "retries": radio.retries,
        "jitter_shortest_us": shortest_us,
        "jitter_width_us": longest_us - shortest_us + 1 if longest_us else 0,
        "acknowledgement_us": TURNAROUND_US + radio.airtime_us(ACKNOWLEDGEMENT_B),
        "acknowledgement_key": np.uint64(draws.make_key(seed, purposes.ACKNOWLEDGEMENT_LOSS)),
        "longest_airtime_us": airtime_us,
    }


def _of_each_node(setup: Setup, seed: int) -> dict[str, Any]:
    network, radio = setup.network, setup.radio
    count = len(network.addresses)
    contend = count if radio.csma else 1
    hear = count if _shares_air(radio) else 1
    return {
        "down": np.zeros(count, np.int32),
        "next_wake": np.full(count, NONE, np.int64),
        "wake_at": np.full(count, NONE, np.int64),
        "furthest_wake": np.full(count, NONE, np.int64),
        "backoff_keys": _keys(seed, purposes.BACKOFF, network),
        "protocol_keys": _keys(seed, draws.PROTOCOL, network),
        "drawn": np.zeros(count, np.int32),
        "queue_head": np.full(contend, NONE, np.int32),
        "queue_tail": np.full(contend, NONE, np.int32),
        "on_air": np.full(hear, NONE, np.int32),
        "audible": np.zeros(hear, np.int32),
        "forget_at": np.full(hear, FORGET_AT, np.int32),
        "readings": np.zeros(count, np.int32),
        "subscribed": np.zeros(count, np.int32),
    }


def _of_events(setup: Setup, airtime_us: int, wakes: bool, needs: tuple[Needs, Needs]) -> dict[str, Any]:
    """What is to come: the agenda, and the pools, each with room for twice what an event needs."""
    radio = setup.radio
    ring = _ring_length(_jitter_us(radio)[1] + airtime_us + (32 * 320 if radio.csma else 0))
    ring = max(ring, _RING_WITH_TIMERS_US) if wakes else ring
    audible_needs = _audible_needs(setup, needs)
    frames = _room(64, needs[0].frames, needs[1].frames)
    messages = _room(8, needs[0].messages, needs[1].messages)
    audibles = _room(256, *audible_needs) if _shares_air(radio) else 1
    numbers = np.zeros(len(Number), np.int64)
    numbers[[Number.FREE_FRAMES, Number.FREE_MESSAGES, Number.FREE_AUDIBLES]] = frames, messages, audibles
    return {
        "audible_needs": audible_needs,
        "tails": np.full(ring, NONE, np.int32),
        "bits": np.zeros(ring >> 6, np.uint64),
        "summary": np.zeros(ring >> 12, np.uint64),
        "far_time": np.zeros(frames, np.int64),
        "far_counter": np.zeros(frames, np.int64),
        "far_frame": np.zeros(frames, np.int32),
        "frames": free_list(FRAME, frames),
        "messages": free_list(MESSAGE, messages),
        "audibles": free_list(AUDIBLE, audibles),
        "numbers": numbers,
    }


def _of_rows(messages: int, reasons: int, needs: tuple[Needs, Needs]) -> dict[str, np.ndarray]:
    """Rows of the trace, and the counters, for so many names of messages and so many reasons."""
    return {
        "rows": np.zeros(max(needs[0].rows, needs[1].rows) + _ROWS, ROW),
        "traffic": np.zeros((messages, 4), np.int64),
        "lost": np.zeros((messages, reasons, 2), np.int64),
        "given_up": np.zeros((messages, reasons, 2), np.int64),
        "dropped": np.zeros(reasons, np.int64),
    }


def _shares_air(radio: Radio) -> bool:
    return radio.collisions or radio.csma


def _jitter_us(radio: Radio) -> tuple[int, int]:
    shortest_ms, longest_ms = radio.jitter_ms
    return round(1000 * shortest_ms), round(1000 * longest_ms)


def _audible_needs(setup: Setup, needs: tuple[Needs, Needs]) -> tuple[int, int, int]:
    """What an action, a frame, and each frame beyond what the twin needs take of the audible transmissions."""
    radio, first = setup.radio, setup.network.first
    if not _shares_air(radio):
        return 0, 0, 0
    heard = 1 + int(np.diff(first).max(initial=0))
    # With csma the only frames that an event puts on the air are those that it is about.
    action, frame, more = (1, 1, 0) if radio.csma else (needs[1].frames, needs[0].frames, 1)
    return heard * action, heard * frame, heard * more


def _room(least: int, *needs: int) -> int:
    return max(least, *(2 * need for need in needs))


def _ring_length(horizon_us: int) -> int:
    length = _SHORTEST_RING_US
    while length < min(horizon_us + 2, _LONGEST_RING_US):
        length *= 2
    return length


def _delivery_ratios(radio: Radio, pdr: np.ndarray) -> np.ndarray:
    return pdr if radio.loss == "links" else np.full(len(pdr), radio.delivery_ratio(1.0))


def _keys(seed: int, purpose: int, network: Network) -> np.ndarray:
    words = network.addresses.astype(np.uint64) + np.uint64(draws.GOLDEN)
    return array_draws.mix64(np.uint64(draws.make_key(seed, purpose)) ^ array_draws.mix64(words))


def _arc_keys(network: Network, seed: int) -> np.ndarray:
    """The key of each arc's losses."""
    senders = np.repeat(_keys(seed, purposes.LINK_LOSS, network), np.diff(network.first))
    receivers = network.addresses[network.receivers].astype(np.uint64) + np.uint64(draws.GOLDEN)
    return array_draws.mix64(senders ^ array_draws.mix64(receivers))


def _nodes(network: Network, work: Work, items: Sequence[workload.Item], seed: int) -> np.ndarray:
    nodes = np.zeros(len(network.addresses), NODE)
    nodes["jitter_key"] = _keys(seed, purposes.JITTER, network)
    nodes["first_subscription"] = work.first_subscription
    nodes["is_sink"] = _sinks(network, items)
    return nodes


def _sinks(network: Network, items: Sequence[workload.Item]) -> np.ndarray:
    is_sink = np.zeros(len(network.addresses), np.bool_)
    for item in items:
        if isinstance(item, workload.Subscribe):
            is_sink[np.searchsorted(network.addresses, item.at) if not isinstance(item.at, str) else slice(None)] = True
    return is_sink

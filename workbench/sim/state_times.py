"""The time that each node's radio spends in each state: sending, receiving, overhearing, idle listening, off.

Both engines record intervals in a ledger if the scenario's radio states its currents (`Radio.tx_mA`): each
transmission, acknowledgement, wait for an acknowledgement, check of the channel, failure and recovery. The ledger adds
them up, so the engines agree to the microsecond. `workbench.analysis.energy` turns the times into charge.

States, in order of precedence: if two apply at the same time, the first counts
    transmit               sending frames
    acknowledge            sending an acknowledgement
    receive                a frame for this node, or a broadcast, is in the air; the frame may be lost all the same
    await_acknowledgement  after a unicast frame, until its acknowledgement would have arrived
    carrier_sense          checking the channel before a transmission: 8 symbols (IEEE 802.15.4-2011, 8.2.7)
    overhear               a frame for another node is in the air: the whole frame, or up to its destination address
    idle                   listening, nothing in the air; with low-power listening, the checks of a wake-up
    sleep                  with low-power listening, the rest of the time
    off                    the node has failed

Acknowledgements are heard by the node that awaits them; other nodes do not overhear them, as in the channel's model.
A node that recovers during a frame does not receive the rest of it. Each node's states add up to the run's duration.

With low-power listening (`workbench.sim.low_power`), a sender's whole strobe is ``transmit``, the gaps between copies
included. A neighbor that wakes up during a strobe is in ``receive`` or ``overhear`` until the end of the next copy.

Theory of operation
    For each node, the ledger computes how long the first state applies, how long any of the first two states applies,
    any of the first three, and so forth: the lengths of unions of intervals. A state's own time is the difference of
    two successive lengths. Intervals are added in order of their start, so a union needs only the latest end so far.

Cost
    With N frames and d neighbors, N * d steps: some ten nanoseconds each in machine code, a microsecond in Python.
    Small ledgers are counted in Python, as loading numba takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.columns import shared_keys
from workbench.sim.changes.arcs import RATIO, LinkChanges
from workbench.sim.low_power import checks_between_us, checks_us, copy_end, next_wake

__all__ = ["STATES", "RadioLedger"]
_BUSY_STATES = ("transmit", "acknowledge", "receive", "await_acknowledgement", "carrier_sense", "overhear")
STATES = (*_BUSY_STATES, "idle", "sleep", "off")

# Kinds of entries. The first six are also the states of the entry's own node, by index in STATES.
FRAME, ACKNOWLEDGEMENT, _RECEPTION, WAIT, CHECK, _OVERHEARING, FAILURE, RECOVERY, STROBE = range(9)
_IDLE, _SLEEP, _OFF = (STATES.index(name) for name in ("idle", "sleep", "off"))
_BUSY = len(_BUSY_STATES)

BROADCAST, UNREACHABLE = -1, -2  # receivers that are not the index of a node
CHECK_US = 128  # 8 symbols of 16 µs
ADDRESS_B = 7  # frame control, sequence number, PAN and 16-bit destination address of an IEEE 802.15.4 header

# An interval of a node's radio; ``node`` and ``receiver`` are indices of nodes in ascending order of their addresses.
# ``copy_us``: airtime of a copy of a STROBE.
ENTRY = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("node", np.int32),
        ("receiver", np.int32),
        ("kind", np.int32),
        ("copy_us", np.int32),
    ],
    align=True,
)
_COLUMNS = "start", "end", "node", "receiver", "kind"
_ENTRIES_AT_ONCE = 100_000  # in the reference engine; older ones are counted, so that a long run needs little memory
_MANY_STEPS = 200_000  # from here on machine code is faster, although it has to be loaded


class _Presence(NamedTuple):
    """A record of which arcs exist at each time of a run; an arc is an index into ``hearers`` of `RadioLedger`.

    ``first``: whether each arc exists at the start. ``changes``: columns (times_us, arcs, whether the arc exists from
    this time on), in order of time. ``state``: (whether each arc exists at the present time, the index of the next
    change as an array (1,)); both arrays are changed in place. All arrays are empty if links do not change.
    """

    state: tuple[np.ndarray, np.ndarray]
    changes: tuple[np.ndarray, np.ndarray, np.ndarray]
    first: np.ndarray

    @staticmethod
    def of(changes: LinkChanges | None) -> _Presence | None:
        if changes is None:
            return None
        is_present = changes.ratios >= 0
        rows = changes.rows[changes.rows["kind"] == RATIO]
        columns = rows["time_us"].copy(), rows["subject"].astype(np.int64), rows["ratio"] >= 0
        return _Presence((is_present.copy(), np.zeros(1, np.int64)), columns, is_present)

    def at(self, arcs: np.ndarray, times_us: np.ndarray) -> np.ndarray:
        """Return for each i whether the arc ``arcs[i]`` exists at the time ``times_us[i]``; bool (n,)."""
        change_times_us, change_arcs, presence = self.changes
        if not len(change_arcs):
            return self.first[arcs]
        order = np.lexsort((change_times_us, change_arcs))
        keys, queries = shared_keys((change_arcs[order], change_times_us[order]), (arcs, times_us))
        latest = np.searchsorted(keys, queries, side="right") - 1
        has_changed = (latest >= 0) & (change_arcs[order][latest] == arcs)
        return np.where(has_changed, presence[order][latest], self.first[arcs])


_NO_CHANGES = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_)
_ALWAYS = _Presence((np.zeros(0, np.bool_), np.zeros(1, np.int64)), _NO_CHANGES, np.zeros(0, np.bool_))


class RadioLedger:
    """A ledger that adds up the time that each radio of a run spends in each state.

    ``first`` (nodes + 1,) and ``hearers`` (arcs,) describe the network: the nodes that hear node i are
    ``hearers[first[i] : first[i + 1]]``. ``phases_us`` (nodes,): with low-power listening, when each node first wakes
    up. ``changes``: the changes of the links during the run, or None; the links at the start of a frame decide which
    nodes hear the frame.
    """

    def __init__(
        self,
        first: Sequence[int] | np.ndarray,
        hearers: Sequence[int] | np.ndarray,
        radio: Any,
        phases_us: Sequence[int] | np.ndarray = (),
        changes: LinkChanges | None = None,
    ) -> None:
        node_count = len(first) - 1
        self._presence = _Presence.of(changes)
        self._first, self._hearers = np.asarray(first, np.int64), np.asarray(hearers, np.int64)
        self._interval_us = radio.wake_interval_us
        self._phases_us = np.asarray(phases_us, np.int64) if self._interval_us else np.zeros(node_count, np.int64)
        # Of wake-ups during intervals that the unions or failures cover.
        self._checks_us = np.zeros(node_count, np.int64)
        self._longest_overheard_us = radio.airtime_us(ADDRESS_B) if radio.overhearing == "address" else 1 << 60
        self._unions_us = np.zeros(_BUSY * node_count, np.int64)
        self._covered_us = np.zeros(_BUSY * node_count, np.int64)  # the latest end of the intervals in each union
        self._off_us = np.zeros(node_count, np.int64)
        self._failed_us = np.full(node_count, -1, np.int64)  # when a node failed; -1 for nodes that are up
        self._entries: list[tuple[int, int, int, int, int, int]] = []
        self._settle_at = _ENTRIES_AT_ONCE  # entries

    def add(self, start: int, end: int, node: int, receiver: int, kind: int, now: int, copy_us: int = 0) -> None:
        """Add the interval [``start``, ``end``), in µs, of the radio of ``node``.

        ``receiver``: the receiver of a frame, BROADCAST or UNREACHABLE. ``kind``: FRAME, ACKNOWLEDGEMENT, WAIT, CHECK,
        FAILURE, RECOVERY or STROBE. ``copy_us``: the airtime of one copy in a strobe (repeated copies of a frame).
        ``now``: the present time, at most ``start``.
        """
        self._entries.append((start, end, node, receiver, kind, copy_us))
        if len(self._entries) >= self._settle_at:
            self._entries = self.settle(np.array(self._entries, ENTRY), now).tolist()
            self._settle_at = max(_ENTRIES_AT_ONCE, 2 * len(self._entries))

    def settle(self, entries: np.ndarray, now: int) -> np.ndarray:
        """Add all final entries to the totals, and return the entries that are not final.

        ``entries`` are intervals of radios. An entry is final if no event at ``now`` or later can change it.
        """
        _cut_transmissions(entries)
        entries = self._add_receptions(entries, now)
        is_open = _is_transmission(entries) & (entries["end"] > now)
        first_open_us = min(now, int(entries["start"][is_open].min(initial=now)))
        is_final = entries["start"] < first_open_us
        self._add_to_totals(entries[is_final])
        return entries[~is_final]

    def finish(self, end_us: int, entries: np.ndarray | None = None) -> np.ndarray:
        """Return the time in each state, int64 (nodes, len(STATES)) in µs, of a run that ended at ``end_us``.

        ``entries``: the intervals of radios that are not added up yet, or None if this object stores them.
        """
        final_entries = np.array(self._entries, ENTRY) if entries is None else entries
        self._entries = []
        _cut_transmissions(final_entries)
        final_entries = self._add_receptions(final_entries, 1 << 62)
        self._add_to_totals(final_entries[final_entries["start"] < end_us])
        node_count = len(self._off_us)
        unions_us, covered_us = self._unions_us.reshape(_BUSY, node_count), self._covered_us.reshape(_BUSY, node_count)
        unions_us -= np.maximum(covered_us - end_us, 0)
        is_failed = self._failed_us >= 0
        off_us = self._off_us + np.where(is_failed, end_us - self._failed_us, 0)
        states_us = np.zeros((node_count, len(STATES)), np.int64)
        states_us[:, :_BUSY] = np.diff(unions_us, axis=0, prepend=0).T
        states_us[:, _OFF] = off_us
        states_us[:, _IDLE] = end_us - off_us - unions_us[-1]
        if self._interval_us:
            awake_us = self._find_idle_checks(end_us, covered_us[-1])
            states_us[:, _SLEEP] = states_us[:, _IDLE] - awake_us
            states_us[:, _IDLE] = awake_us
        return states_us

    def _find_idle_checks(self, end_us: int, covered_us: np.ndarray) -> np.ndarray:
        """Return for each node how long, in µs, it checked the channel without hearing a frame.

        With low-power listening, a sleeping node checks the channel at each wake-up. ``end_us``: the end of the run.
        ``covered_us``: the end of each node's last busy interval.
        """
        idle_us = np.zeros(len(covered_us), np.int64)
        node_columns = self._phases_us, self._checks_us, covered_us, self._failed_us
        for i, (phase, checked_us, covered_end_us, failed_us) in enumerate(
            zip(*(c.tolist() for c in node_columns), strict=True)
        ):
            total_us = checks_us(phase, self._interval_us, end_us if failed_us < 0 else failed_us)
            idle_us[i] = total_us - checked_us
            if covered_end_us > end_us:
                idle_us[i] += checks_between_us(phase, self._interval_us, end_us, covered_end_us)
        return idle_us

    def _add_receptions(self, entries: np.ndarray, now: int) -> np.ndarray:
        """Return ``entries`` and, for each strobe, an entry for each node that received or overheard a copy.

        A strobe is a sequence of copies of a frame. ``entries``: intervals of the nodes' radios; the entries of strobes
        that ended by ``now`` are changed from the kind STROBE to FRAME. Other strobes are left for a later call.
        """
        strobe_indices = np.flatnonzero((entries["kind"] == STROBE) & (entries["end"] <= now))
        if not len(strobe_indices):
            return entries
        strobes = entries[strobe_indices]
        entries["kind"][strobe_indices] = FRAME
        first_hearer = self._first[strobes["node"]]
        hearer_counts = self._first[strobes["node"] + 1] - first_hearer
        strobe = np.repeat(strobes, hearer_counts)
        position_in_group = np.arange(len(strobe)) - np.repeat(np.cumsum(hearer_counts) - hearer_counts, hearer_counts)
        hearers = self._hearers[np.repeat(first_hearer, hearer_counts) + position_in_group]
        if self._presence is not None:
            is_present = self._presence.at(np.repeat(first_hearer, hearer_counts) + position_in_group, strobe["start"])
            strobe, hearers = strobe[is_present], hearers[is_present]
        wakes_us = next_wake(self._phases_us[hearers], self._interval_us, strobe["start"])
        copies_us = strobe["copy_us"].astype(np.int64)
        ends_us = copy_end(strobe["start"], wakes_us, copies_us)
        is_receiver = (strobe["receiver"] == BROADCAST) | (strobe["receiver"] == hearers)
        ends_us -= np.where(is_receiver, 0, np.maximum(copies_us - self._longest_overheard_us, 0))
        receptions = np.zeros(len(strobe), ENTRY)
        receptions["start"], receptions["end"] = wakes_us, np.minimum(ends_us, strobe["end"])
        receptions["node"], receptions["receiver"] = hearers, UNREACHABLE
        receptions["kind"] = np.where(is_receiver, _RECEPTION, _OVERHEARING)
        return np.concatenate([entries, receptions[wakes_us < strobe["end"]]])

    def _add_to_totals(self, entries: np.ndarray) -> None:
        entries = entries[np.argsort(entries["start"], kind="stable")]
        presence = self._presence or _ALWAYS
        sums = self._unions_us, self._covered_us, self._off_us, self._failed_us, self._checks_us, *presence.state
        # With low-power listening, each reception is an entry of its own.
        first_hearer = np.zeros_like(self._first) if self._interval_us else self._first
        arrays: list[Any] = [*sums, first_hearer, self._hearers, self._phases_us, *presence.changes]
        degree = int(first_hearer[-1]) / max(1, len(self._off_us))
        if len(entries) * (1 + degree) >= _MANY_STEPS:
            from workbench.sim.fast.ledger import add_up_compiled  # Not before: it loads numba.

            entry_columns: list[Any] = [entries[name] for name in _COLUMNS]
            add_up_compiled(*entry_columns, self._longest_overheard_us, self._interval_us, *arrays)
            return
        entry_columns, lists = [entries[name].tolist() for name in _COLUMNS], [array.tolist() for array in arrays]
        arguments: list[Any] = [*entry_columns, self._longest_overheard_us, self._interval_us, *lists]
        add_up(*arguments)
        for array, new_values in zip(sums, lists, strict=False):
            array[:] = new_values


def _is_transmission(entries: np.ndarray) -> np.ndarray:
    return (entries["kind"] == FRAME) | (entries["kind"] == STROBE)


def _cut_transmissions(entries: np.ndarray) -> None:
    """Shorten each transmission during which the sender failed, so that it ends at the failure.

    ``entries``: intervals of the nodes' radios, changed in place.
    """
    for failure_index in np.flatnonzero(entries["kind"] == FAILURE).tolist():
        earlier_entries, failed_us = entries[:failure_index], entries["start"][failure_index]
        is_cut = _is_transmission(earlier_entries) & (earlier_entries["node"] == entries["node"][failure_index])
        is_cut &= earlier_entries["end"] > failed_us
        earlier_entries["end"][is_cut] = np.maximum(earlier_entries["start"][is_cut], failed_us)


def add_up(
    starts: Any,
    ends: Any,
    nodes: Any,
    receivers: Any,
    kinds: Any,
    longest_overheard_us: int,
    interval_us: int,
    unions_us: Any,
    covered_us: Any,
    off_us: Any,
    failed_us: Any,
    covered_checks_us: Any,
    is_present: Any,
    next_change: Any,
    first: Any,
    hearers: Any,
    phases_us: Any,
    change_times_us: Any,
    change_arcs: Any,
    change_presence: Any,
) -> None:
    """Add intervals of the nodes' radios, in order of their start, to the totals of each node.

    The arguments without a type are lists, which are faster in Python, or arrays, which numba needs. ``starts`` to
    ``kinds``: the columns of the intervals. ``longest_overheard_us``: the longest time that a node overhears one frame.
    ``interval_us``: the interval of wake-ups, or 0. The nodes that hear node i are
    ``hearers[first[i] : first[i + 1]]``. ``phases_us``: when each node first wakes up. ``change_times_us`` to
    ``change_presence``: the columns of the times at which links appear or vanish.

    ``is_present``: whether each arc, an element of ``hearers``, exists at the moment; ``next_change[0]``: the index of
    the next change. ``unions_us`` to ``covered_checks_us`` have the totals so far, and are changed in place. With n
    nodes, ``unions_us[j * n + i]`` is the length of union j of node i, and ``covered_us[j * n + i]`` the end of the
    last interval in this union. The docstring of the module explains the unions.
    """
    node_count = len(off_us)
    last_union = len(unions_us) - node_count
    for entry_index in range(len(starts)):
        start, kind, sender = starts[entry_index], kinds[entry_index], nodes[entry_index]
        if kind == RECOVERY:
            off_us[sender] += start - failed_us[sender]
            covered_checks_us[sender] += checks_between_us(phases_us[sender], interval_us, failed_us[sender], start)
            failed_us[sender] = -1
            continue
        if kind == FAILURE:
            failed_us[sender] = start
            for union in range(sender, len(unions_us), node_count):
                if covered_us[union] > start:
                    unions_us[union] -= covered_us[union] - start
                    if union >= last_union:
                        cut_us = checks_between_us(phases_us[sender], interval_us, start, covered_us[union])
                        covered_checks_us[sender] -= cut_us
                    covered_us[union] = start
            continue
        while next_change[0] < len(change_times_us) and change_times_us[next_change[0]] <= start:
            is_present[change_arcs[next_change[0]]] = change_presence[next_change[0]]
            next_change[0] += 1
        first_hearer = first[sender]
        # The sender itself, then the nodes that hear it.
        for arc in range(first_hearer - 1, first[sender + 1] if kind == FRAME else first_hearer):
            i, state, end = sender, kind, ends[entry_index]
            if arc >= first_hearer:
                if len(is_present) and not is_present[arc]:
                    continue
                i, state = hearers[arc], _RECEPTION
                if receivers[entry_index] != BROADCAST and receivers[entry_index] != i:
                    state, end = _OVERHEARING, min(end, start + longest_overheard_us)
            if failed_us[i] >= 0:
                continue
            for union in range(state * node_count + i, len(unions_us), node_count):
                counted_start = max(start, covered_us[union])
                if end > counted_start:
                    unions_us[union] += end - counted_start
                    if union >= last_union:
                        covered_checks_us[i] += checks_between_us(phases_us[i], interval_us, counted_start, end)
                    covered_us[union] = end

"""Links that change during a run: the delivery ratio of each arc as a function of time, piecewise constant.

Theory of operation
    A network that changes has all arcs that exist at some time. In order of time, changes give an arc a new delivery
    ratio, or ABSENT while the two nodes cannot hear each other. Both engines read the same changes, so a run does not
    depend on the engine.

    Each cause of changes is a *layer*, a table of (arc, time, value):

        base         the topology's ratio. For an arc of a node that moves: the ratio by the topology's rule at the
                     positions of both nodes, at each step of the movement. For an arc of a link trace: the ratios
                     of the trace, which take precedence from the arc's first row on
        bursts       for each Gilbert-Elliott process a factor, 1 in the good state, ``bad_pdr`` in the bad state
        partitions   1, or 0 while a partition separates the two nodes

    With capture, a further layer has the strength of the sender's frames at the receiver.

    The ratio of an arc is the base times all factors. An arc is ABSENT while its base is, or while a partition
    separates its nodes. A ratio that differs by less than `RESOLUTION` from that of the step before stays the same.

Cost
    The links of moving nodes are computed anew at each step, and each change takes 32 B. `benchmarks/mobility.py`
    measures both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from workbench import draws, purposes
from workbench.array_draws import mix64
from workbench.mobility import Track, positions
from workbench.sim.actions import select_nodes
from workbench.sim.capture import strengths_ddB
from workbench.sim.changes import items as items_module
from workbench.sim.changes.measured import LinkQualities
from workbench.sim.radio import uses_quality
from workbench.topology.edits import link_rule
from workbench.topology.generators import arcs_by_rule, as_propagation
from workbench.topology.propagation import Propagation, uniforms

ABSENT = -1.0  # the delivery ratio of an arc that does not exist at the moment
RESOLUTION = 0.01  # a smaller change of a moving node's delivery ratio is ignored

# Kinds of changes: an arc's delivery ratio; the begin and the end of jamming at a node; the report of an arc's ratio to
# its receiver. At the same instant the earlier kind comes first.
RATIO, JAM, JAM_END, REPORT = range(4)
CHANGE = np.dtype(
    [
        ("time_us", np.int64),
        ("ratio", np.float64),
        ("subject", np.int32),  # the index of an arc, or of a node for JAM and JAM_END
        ("kind", np.int32),
        ("strength_ddB", np.int32),
    ],
    align=True,
)
_NEVER_US = int(np.iinfo(np.int64).max)


class LinkChanges(NamedTuple):
    """All arcs that exist at some time in a run, their state at the start, and the changes in order of time.

    ``senders``, ``receivers`` (m,): indices of nodes in ascending order of their addresses; arcs are sorted by both.
    ``ratios`` (m,): delivery ratios at the start, or ABSENT. ``strengths_ddB`` (m,): see `workbench.sim.capture`; empty
    for radios without capture. ``rows``: changes, a `CHANGE` array.
    """

    senders: np.ndarray
    receivers: np.ndarray
    ratios: np.ndarray
    strengths_ddB: np.ndarray
    rows: np.ndarray


class Layer(NamedTuple):
    """Values of arcs over time: from ``time_us[k]`` on, arc ``arc[k]`` has the value ``value[k]``.

    With n nodes, the arc from index s to index r is the number s * n + r. ``default``: the value before the first row.
    """

    arc: np.ndarray
    time_us: np.ndarray
    value: np.ndarray
    default: float


def link_changes(scenario: Any) -> LinkChanges | None:
    """Return the changes of a scenario's links, or None if no item of its workload changes links."""
    if not any(isinstance(item, items_module.LINK_ITEMS) for item in scenario.workload):
        return None
    return _link_changes(scenario)


@lru_cache(maxsize=4)  # a run, its metrics and its views need the same changes
def _link_changes(scenario: Any) -> LinkChanges:
    return _Builder(scenario).build()


@lru_cache(maxsize=4)
def _tracks(scenario: Any) -> dict[int, Track]:
    places_m = dict(scenario.topology.nodes(data="pos"))
    tracks_of_nodes: dict[int, Track] = {}
    for item in scenario.workload:
        if isinstance(item, items_module.Move):
            nodes = select_nodes(item.at, tuple(sorted(places_m)))
            movement = scenario.extent_m, scenario.duration_s, scenario.seed
            places = [places_m[node] for node in nodes]
            tracks_of_nodes |= zip(nodes, item.along.tracks(nodes, places, *movement), strict=True)
    return tracks_of_nodes


def tracks(scenario: Any) -> Mapping[int, Track]:
    """Return {address: `Track`} with the paths of the nodes that move in a scenario; {} if no node moves."""
    if not any(isinstance(item, items_module.Move) for item in scenario.workload):
        return {}
    return _tracks(scenario)


def position_at(scenario: Any, node: int, time_us: int) -> tuple[float, float]:
    """Return the position (x, y) of a node in metres at ``time_us``."""
    track = tracks(scenario).get(node)
    if track is None:
        x_m, y_m = scenario.topology.nodes[node]["pos"]
        return x_m, y_m
    x_m, y_m = positions(track, np.array([time_us]))[0].tolist()
    return x_m, y_m


@lru_cache(maxsize=4)
def _graph_of_all_arcs(scenario: Any) -> nx.DiGraph:
    changes = _link_changes(scenario)
    nodes = sorted(scenario.topology.nodes)
    exists = changes.ratios >= 0
    exists[changes.rows["subject"][(changes.rows["kind"] == RATIO) & (changes.rows["ratio"] >= 0)]] = True
    graph = nx.DiGraph()
    graph.add_nodes_from(scenario.topology.nodes(data=True))
    ends = changes.senders[exists].tolist(), changes.receivers[exists].tolist()
    graph.add_edges_from((nodes[sender], nodes[receiver]) for sender, receiver in zip(*ends, strict=True))
    return nx.freeze(graph)


def graph_of_all_arcs(scenario: Any) -> nx.DiGraph:
    """Return the graph of all arcs that exist at some time in a run; if no links change, this is the topology.

    A sink counts as reachable if a path in this graph leads to it, although the path's arcs may never exist at the
    same time.
    """
    if not any(isinstance(item, items_module.LINK_ITEMS) for item in scenario.workload):
        return scenario.topology
    return _graph_of_all_arcs(scenario)


def noise_intervals(changes: LinkChanges, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (first, intervals_us): for each node, the intervals in which at least one jammer disturbs it.

    ``nodes``: the number of nodes. ``intervals_us`` (k, 2), int64: [begin, end) of each interval in µs. The intervals
    of node i are the rows ``first[i]`` to ``first[i + 1] - 1`` of ``intervals_us``, in order of time and disjoint.
    """
    rows = changes.rows[(changes.rows["kind"] == JAM) | (changes.rows["kind"] == JAM_END)]
    rows = rows[np.argsort(rows["subject"], kind="stable")]
    is_begin = rows["kind"] == JAM
    is_first = np.diff(rows["subject"], prepend=-1) != 0
    steps = np.where(is_begin, 1, -1)
    totals = np.cumsum(steps)
    earlier_nodes = (totals - steps)[is_first]
    jammers = totals - np.repeat(earlier_nodes, np.diff(np.append(np.flatnonzero(is_first), len(rows))))
    is_opening = is_begin & (jammers == 1)
    is_closing = ~is_begin & (jammers == 0)
    begins = rows[is_opening]
    ends_us = np.full(len(begins), _NEVER_US)
    interval = np.cumsum(is_opening) - 1
    ends_us[interval[is_closing]] = rows["time_us"][is_closing]
    first = np.searchsorted(begins["subject"], np.arange(nodes + 1))
    return first, np.ascontiguousarray(np.column_stack((begins["time_us"], ends_us)))


def presence_of_arcs(scenario: Any) -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
    """Return {(sender, receiver): (times, presence)} of the arcs that appear or vanish during a run.

    Sender and receiver are addresses. ``times`` (k,): times in µs, ascending from 0. ``presence`` (k,): whether the arc
    exists in the interval that begins at each time.
    """
    changes = link_changes(scenario)
    if changes is None:
        return {}
    nodes = sorted(scenario.topology.nodes)
    rows = changes.rows[changes.rows["kind"] == RATIO]
    rows = rows[np.argsort(rows["subject"], kind="stable")]
    arcs, first = np.unique(rows["subject"], return_index=True)
    presence = {}
    for arc, arc_rows in zip(arcs.tolist(), np.split(rows, first[1:]), strict=True):
        exists = np.append(changes.ratios[arc] >= 0, arc_rows["ratio"] >= 0)
        if not exists.all():
            ends = nodes[changes.senders[arc]], nodes[changes.receivers[arc]]
            presence[ends] = np.append(0, arc_rows["time_us"]), exists
    return presence


class _Builder:
    """A builder of the link changes of one scenario."""

    def __init__(self, scenario: Any) -> None:
        self.scenario = scenario
        self.radio, self.items = scenario.radio, list(scenario.workload)
        self.duration_us = round(scenario.duration_s * 1_000_000)
        self.addresses = np.array(sorted(scenario.topology.nodes), np.int64)
        self.count = len(self.addresses)
        self.places_m = np.array([scenario.topology.nodes[node]["pos"] for node in self.addresses.tolist()], float)
        self.tracks = {self.index([node])[0]: track for node, track in tracks(scenario).items()}
        self.moving = np.zeros(self.count, np.bool_)
        self.moving[list(self.tracks)] = True
        self.steps_us: dict[int, int] = {}  # of nodes that move, by index
        self.step_times_us = self._list_step_times()

    def index(self, nodes: Iterable[int]) -> list[int]:
        """Return the indices of nodes, given by their addresses."""
        return np.searchsorted(self.addresses, np.fromiter(nodes, np.int64)).tolist()

    def build(self) -> LinkChanges:
        """Return the changes of the scenario's links."""
        base = self._make_base()
        arcs = np.unique(base.arc[base.value >= 0])
        factors = [layer for index in range(len(self.items)) for layer in self._make_factors(index, arcs)]
        cuts = [self._make_cut(item, arcs) for item in self.items if isinstance(item, items_module.Partition)]
        layers = [_restrict(base, arcs), *factors, *cuts]
        if self.radio.capture_dB:
            layers.append(self._make_strengths(arcs))
        arc, time_us, values = combine(layers, arcs)
        ratio = np.where(values[0] >= 0, self._delivery_ratios(values[0]), ABSENT)
        for values_of_layer in values[1 : 1 + len(factors)]:
            ratio = np.where(ratio >= 0, ratio * values_of_layer, ratio)
        for values_of_layer in values[1 + len(factors) : 1 + len(factors) + len(cuts)]:
            ratio = np.where(values_of_layer > 0, ratio, ABSENT)
        strength = values[-1].astype(np.int32) if self.radio.capture_dB else np.zeros(len(ratio), np.int32)
        is_first = np.diff(arc, prepend=-1) != 0
        is_new = is_first.copy()
        is_new[1:] |= (ratio[1:] != ratio[:-1]) | (strength[1:] != strength[:-1])
        changes = np.zeros(int(np.count_nonzero(is_new & ~is_first)), CHANGE)
        for name, column in (("time_us", time_us), ("ratio", ratio), ("subject", arc), ("strength_ddB", strength)):
            changes[name] = column[is_new & ~is_first]
        rows = np.concatenate([changes, self._list_reports(changes, arcs), *self._list_jams()])
        rows = rows[np.lexsort((rows["subject"], rows["kind"], rows["time_us"]))]
        return LinkChanges(
            (arcs // self.count).astype(np.int32),
            (arcs % self.count).astype(np.int32),
            ratio[is_first],
            strength[is_first] if self.radio.capture_dB else np.zeros(0, np.int32),
            rows[rows["time_us"] < self.duration_us],
        )

    def _delivery_ratios(self, pdr: np.ndarray) -> np.ndarray:
        return pdr if self.radio.loss == "links" else np.full(len(pdr), self.radio.delivery_ratio(1.0))

    # The base layer

    def _make_base(self) -> Layer:
        static_layer = self._read_topology()
        traced_layers = [
            self._make_measured_layer(item.trace) for item in self.items if isinstance(item, items_module.LinkTrace)
        ]
        moved_layers = [self._make_moving_layer()] if self.tracks else []
        if moved_layers:
            has_moving_end = self.moving[static_layer.arc // self.count] | self.moving[static_layer.arc % self.count]
            static_layer = _select(static_layer, ~has_moving_end)
        if not traced_layers:
            return _join([static_layer, *moved_layers])
        trace = _join(traced_layers)
        by_time = np.argsort(trace.time_us, kind="stable")
        traced_arcs, first_rows = np.unique(trace.arc[by_time], return_index=True)
        first_times_us = trace.time_us[by_time][first_rows]
        # From its first row of an arc, a trace takes precedence.
        return _join(
            [*(_keep_rows_before(layer, traced_arcs, first_times_us) for layer in (static_layer, *moved_layers)), trace]
        )

    def _read_topology(self) -> Layer:
        arcs = np.array(list(self.scenario.topology.edges), np.int64).reshape(-1, 2)
        pdr = np.fromiter((pdr for _, _, pdr in self.scenario.topology.edges(data="pdr")), np.float64, len(arcs))
        senders, receivers = np.searchsorted(self.addresses, arcs).T
        return Layer(senders * self.count + receivers, np.zeros(len(arcs), np.int64), pdr, ABSENT)

    def _make_measured_layer(self, trace: LinkQualities) -> Layer:
        senders, receivers = (np.searchsorted(self.addresses, ends) for ends in (trace.transmitters, trace.receivers))
        ratios = np.array(trace.pdr)
        times_us = np.array(trace.times_us, np.int64)
        return Layer(senders * self.count + receivers, times_us, np.where(ratios > 0, ratios, ABSENT), ABSENT)

    # Movement

    def _list_step_times(self) -> np.ndarray:
        """Return the times in µs, ascending from 0, at which the links of moving nodes are computed anew."""
        times = [np.zeros(1, np.int64)]
        for item in self.items:
            if not isinstance(item, items_module.Move):
                continue
            step_us = round(item.step_s * 1_000_000)
            nodes = select_nodes(item.at, tuple(self.addresses.tolist()))
            self.steps_us |= dict.fromkeys(self.index(nodes), step_us)
            last_us = max(int(self.tracks[index].times_us[-1]) for index in self.index(nodes))
            times.append(np.arange(0, min(last_us + step_us, self.duration_us), step_us))
        return np.unique(np.concatenate(times))

    def _list_positions(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (time in µs, positions of all nodes (n, 2)) for each step of the movement."""
        moving = sorted(self.tracks)
        paths_m = []
        for index in moving:
            # Between its own steps a node stays where its links are.
            last_step_us = self.step_times_us // self.steps_us[index] * self.steps_us[index]
            paths_m.append(positions(self.tracks[index], last_step_us))
        positions_m = self.places_m.copy()
        for step, time_us in enumerate(self.step_times_us.tolist()):
            if moving:
                positions_m[moving] = [path_m[step] for path_m in paths_m]
            yield time_us, positions_m

    def _make_moving_layer(self) -> Layer:
        """Return the delivery ratios over time of all arcs whose sender or receiver moves."""
        rule = self._link_rule()
        layers, arcs, ratios = [], np.zeros(0, np.int64), np.zeros(0)
        last_positions_m = None
        for time_us, positions_m in self._list_positions():
            if last_positions_m is not None and np.array_equal(positions_m, last_positions_m):
                continue
            last_positions_m = positions_m.copy()
            new_arcs, new_ratios = self._link_moving_nodes(positions_m, rule)
            row = np.minimum(np.searchsorted(arcs, new_arcs), max(0, len(arcs) - 1))
            is_known = arcs[row] == new_arcs if len(arcs) else np.zeros(len(new_arcs), np.bool_)
            last_ratios = ratios[row] if len(arcs) else np.zeros(len(new_arcs))
            is_changed = ~is_known | (np.abs(new_ratios - last_ratios) >= RESOLUTION)
            new_ratios = np.where(is_changed, new_ratios, last_ratios)
            vanished_arcs = arcs[~np.isin(arcs, new_arcs, assume_unique=True)]
            for arc, value in (
                (new_arcs[is_changed], new_ratios[is_changed]),
                (vanished_arcs, np.full(len(vanished_arcs), ABSENT)),
            ):
                layers.append(Layer(arc, np.full(len(arc), time_us), value, ABSENT))
            arcs, ratios = new_arcs, new_ratios
        return _join(layers)

    def _link_rule(self) -> Mapping[str, Any]:
        """Return the rule by which moving nodes are linked: the first movement's radius, else the topology's rule."""
        radius_m = next((item.radius_m for item in self.items if isinstance(item, items_module.Move)), None)
        if radius_m is not None:
            return {"radius_m": radius_m}
        rule = link_rule(self.scenario.topology)
        assert rule is not None  # the scenario has checked it
        return rule | {name: as_propagation(rule[name], Propagation()) for name in ("propagation",) if name in rule}

    def _link_moving_nodes(self, positions_m: np.ndarray, rule: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return (arcs, delivery ratios): all arcs of which at least one end moves; arcs as in `Layer`, ascending.

        ``positions_m`` (n, 2): the positions of all nodes. ``rule``: arguments of `arcs_by_rule`.
        """
        arcs, pdr = arcs_by_rule(self.addresses, positions_m, **rule)
        are_indices = self.addresses[-1] == self.count - 1
        senders, receivers = (arcs if are_indices else np.searchsorted(self.addresses, arcs)).reshape(-1, 2).T
        codes = senders * self.count + receivers
        if not self.moving.all():
            has_moving_end = self.moving[senders] | self.moving[receivers]
            codes, pdr = codes[has_moving_end], pdr[has_moving_end]
        if "propagation" not in rule:
            return np.sort(codes), pdr  # All ratios are 1.
        order = np.argsort(codes)
        return codes[order], pdr[order]

    def _make_strengths(self, arcs: np.ndarray) -> Layer:
        """Return for ``arcs`` the strength of the sender's frames at the receiver over time, in tenths of a dB."""
        senders, receivers = arcs // self.count, arcs % self.count
        layers, last_strengths = [], np.full(len(arcs), np.iinfo(np.int32).max)
        for time_us, positions_m in self._list_positions():
            strengths = strengths_ddB(positions_m, senders, receivers)
            is_changed = strengths != last_strengths
            layers.append(
                Layer(arcs[is_changed], np.full(np.count_nonzero(is_changed), time_us), strengths[is_changed], 0.0)
            )
            last_strengths = strengths
        return _join(layers)

    # Factors and partitions

    def _make_factors(self, item_index: int, arcs: np.ndarray) -> list[Layer]:
        """Return [layer], the factors by which a `BurstLoss` reduces delivery ratios; [] for other workload items.

        ``item_index``: the position of the item in the workload. ``arcs``: the arcs of the network, as in `Layer`.
        """
        item = self.items[item_index]
        if not isinstance(item, items_module.BurstLoss):
            return []
        is_member = self._mark_nodes(item.at)
        member_arcs = arcs[is_member[arcs // self.count] & is_member[arcs % self.count]]
        senders, receivers = member_arcs // self.count, member_arcs % self.count
        links, link_of_arc = np.unique(
            np.minimum(senders, receivers) * self.count + np.maximum(senders, receivers), return_inverse=True
        )
        link, times_us, is_bad = _draw_states(
            item, _make_link_keys(self, item_index, links), self._interval_us(item), self.duration_us
        )
        # Both directions of a link share its state.
        first = np.searchsorted(link, np.arange(len(links) + 1))
        counts = np.diff(first)[link_of_arc]
        rows = np.repeat(first[link_of_arc] - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(counts.sum())
        values = np.where(is_bad[rows], item.bad_pdr, 1.0)
        return [Layer(np.repeat(member_arcs, counts), times_us[rows], values, 1.0)]

    def _make_cut(self, item: Any, arcs: np.ndarray) -> Layer:
        is_member = self._mark_nodes(item.at)
        cut_arcs = arcs[is_member[arcs // self.count] != is_member[arcs % self.count]]
        start_us, stop_us = self._interval_us(item)
        times_us = np.repeat([start_us, stop_us], len(cut_arcs))
        return Layer(np.tile(cut_arcs, 2), times_us, np.repeat([0.0, 1.0], len(cut_arcs)), 1.0)

    def _mark_nodes(self, at: Any) -> np.ndarray:
        is_member = np.zeros(self.count, np.bool_)
        is_member[self.index(select_nodes(at, tuple(self.addresses.tolist())))] = True
        return is_member

    def _interval_us(self, item: Any) -> tuple[int, int]:
        stop_us = _NEVER_US if item.stop_s is None else round(item.stop_s * 1_000_000)
        return round(item.start_s * 1_000_000), stop_us

    # Jamming and reports

    def _list_jams(self) -> list[np.ndarray]:
        """Return for each jammer a `CHANGE` array: when nodes begin (JAM) and cease (JAM_END) to be jammed."""
        nodes = np.arange(self.count)
        jams = []
        for item in self.items:
            if not isinstance(item, items_module.Jam):
                continue
            layers, was_near = [], np.zeros(self.count, np.bool_)
            for time_us, positions_m in self._list_positions():
                is_near = np.hypot(*(positions_m - (item.x_m, item.y_m)).T) <= item.radius_m
                changed_nodes = nodes[is_near != was_near]
                layers.append(
                    Layer(
                        changed_nodes, np.full(len(changed_nodes), time_us), is_near[changed_nodes].astype(float), 0.0
                    )
                )
                was_near = is_near
            near_nodes = np.unique(np.concatenate([layer.arc for layer in layers]))
            pulses_us = np.array(list(item.pulses_us(self.duration_us)), np.int64).reshape(-1, 2)
            switched_us, is_on = (
                np.tile(pulses_us.ravel(), len(near_nodes)),
                np.tile([1.0, 0.0], len(near_nodes) * len(pulses_us)),
            )
            pulses = Layer(np.repeat(near_nodes, pulses_us.size), switched_us, is_on, 0.0)
            node, changed_us, values = combine((_join(layers), pulses), near_nodes)
            is_jammed = (values[0] > 0) & (values[1] > 0)
            was_jammed = np.append(False, is_jammed[:-1]) & (np.diff(node, prepend=-1) == 0)
            is_change = is_jammed != was_jammed
            changes = np.zeros(int(np.count_nonzero(is_change)), CHANGE)
            changes["time_us"], changes["subject"] = changed_us[is_change], near_nodes[node[is_change]]
            changes["kind"] = np.where(is_jammed[is_change], JAM, JAM_END)
            jams.append(changes)
        return jams

    def _list_reports(self, changes: np.ndarray, arcs: np.ndarray) -> np.ndarray:
        """Return rows of the kind REPORT: each informs the receiver of an arc that a ratio of the link has changed.

        A change of one arc is reported at both ends of the link. ``changes``: the changes of delivery ratios. ``arcs``:
        the arcs of the network, as in `Layer`. Returns no rows if nodes do not use the ratios, or only estimate them.
        """
        if not uses_quality(self.scenario.protocol) or self.radio.link_quality != "true":
            return np.zeros(0, CHANGE)
        changed_arcs = arcs[changes["subject"]]
        reverse_arcs = changed_arcs % self.count * self.count + changed_arcs // self.count
        reverse_index = np.minimum(np.searchsorted(arcs, reverse_arcs), len(arcs) - 1)
        has_reverse = arcs[reverse_index] == reverse_arcs
        subjects = np.concatenate((changes["subject"], reverse_index[has_reverse]))
        times_us = np.concatenate((changes["time_us"], changes["time_us"][has_reverse]))
        distinct_rows = np.unique(np.column_stack((times_us, subjects)), axis=0)
        reports = np.zeros(len(distinct_rows), CHANGE)
        reports["time_us"], reports["subject"], reports["kind"] = distinct_rows[:, 0], distinct_rows[:, 1], REPORT
        return reports


# Layers


def _select(layer: Layer, is_selected: np.ndarray) -> Layer:
    return Layer(layer.arc[is_selected], layer.time_us[is_selected], layer.value[is_selected], layer.default)


def _keep_rows_before(layer: Layer, arcs: np.ndarray, times_us: np.ndarray) -> Layer:
    """Return a copy of ``layer`` in which arc ``arcs[i]`` has only its rows before ``times_us[i]``.

    All rows of other arcs stay. ``arcs`` must ascend.
    """
    if not len(arcs):
        return layer
    row = np.minimum(np.searchsorted(arcs, layer.arc), len(arcs) - 1)
    return _select(layer, (arcs[row] != layer.arc) | (layer.time_us < times_us[row]))


def _restrict(layer: Layer, arcs: np.ndarray) -> Layer:
    return _select(layer, np.isin(layer.arc, arcs))


def _join(layers: Sequence[Layer]) -> Layer:
    arcs, times_us, values = (np.concatenate([layer[column] for layer in layers]) for column in range(3))
    return Layer(arcs, times_us, values, layers[0].default)


def combine(layers: Sequence[Layer], arcs: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Merge layers into one table; return its columns (arc, time_us, values), in order of arc and time.

    Each arc has a row for time 0, and a row for each later time at which any layer gives the arc a new value. A row has
    the values of the arc in all layers from this time on: ``values[k]`` is the column of layer k. ``arc``: indices into
    ``arcs``.
    """
    starts = Layer(arcs, np.full(len(arcs), -1), np.zeros(len(arcs)), 0.0)
    layer_of_row = np.repeat(np.arange(len(layers) + 1), [len(layer.arc) for layer in (*layers, starts)])
    joined_layer = _join([*layers, starts])
    arc = np.searchsorted(arcs, joined_layer.arc)
    time_us = np.maximum(joined_layer.time_us, 0)
    order = np.lexsort((layer_of_row != len(layers), time_us, arc)) if len(arc) else np.zeros(0, np.int64)
    # The row that starts an arc comes before its values of time 0.
    arc, time_us, value, layer_of_row = arc[order], time_us[order], joined_layer.value[order], layer_of_row[order]
    row = np.arange(len(arc))
    first_of_arc = np.maximum.accumulate(np.where(layer_of_row == len(layers), row, 0))
    is_last = np.append((arc[1:] != arc[:-1]) | (time_us[1:] != time_us[:-1]), True)[: len(arc)]
    values = []
    for number, layer in enumerate(layers):
        latest = np.maximum.accumulate(np.where(layer_of_row == number, row, -1))
        values.append(np.where(latest >= first_of_arc, value[latest], layer.default)[is_last])
    return arc[is_last], time_us[is_last], values


# Gilbert-Elliott processes


def _make_link_keys(builder: _Builder, item_index: int, links: np.ndarray) -> np.ndarray:
    """Return for each link the key of its random draws, a hash of the seed, the item and both nodes' addresses."""
    keys = np.full(len(links), draws.make_key(builder.scenario.seed, purposes.LINK_BURST, item_index), np.uint64)
    for ends in (links // builder.count, links % builder.count):
        keys = mix64(keys ^ mix64(builder.addresses[ends].astype(np.uint64) + np.uint64(draws.GOLDEN)))
    return keys


_DRAWS_AT_ONCE = 16


def _draw_states(
    item: Any, keys: np.ndarray, interval_us: tuple[int, int], duration_us: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random changes of state of Gilbert-Elliott links, as arrays (link, time_us, is_bad).

    ``link`` is an index into ``keys``, the keys of the links' random draws. Rows are in order of (link, time). The
    process of ``item`` starts in its stationary distribution at ``interval_us[0]``. From ``interval_us[1]`` on, links
    are in the good state.
    """
    start_us, stop_us = interval_us
    stop_us = min(stop_us, duration_us)
    means_us = 1e6 * np.array([item.good_s, item.bad_s])
    open_links = np.arange(len(keys))
    is_bad = uniforms(keys, np.zeros(len(keys))) < means_us[1] / means_us.sum()
    times_us = np.full(len(keys), start_us, np.int64)
    rows = [(open_links, times_us, is_bad)]
    counter = 1
    while len(open_links):
        counters = counter + np.arange(_DRAWS_AT_ONCE)
        draws_ = uniforms(keys[open_links, None], counters[None, :])
        states = is_bad[:, None] ^ (np.arange(_DRAWS_AT_ONCE) % 2 == 1)
        stays_us = np.maximum(1, np.rint(-means_us[states.astype(int)] * np.log(1.0 - draws_))).astype(np.int64)
        ends_us = times_us[:, None] + np.cumsum(stays_us, axis=1)
        is_within = ends_us < stop_us
        rows.append((np.repeat(open_links, _DRAWS_AT_ONCE)[is_within.ravel()], ends_us[is_within], ~states[is_within]))
        is_open = is_within[:, -1]
        open_links, times_us, is_bad = open_links[is_open], ends_us[is_open, -1], ~states[is_open, -1]
        counter += _DRAWS_AT_ONCE
    if stop_us < duration_us:
        rows.append((np.arange(len(keys)), np.full(len(keys), stop_us, np.int64), np.zeros(len(keys), np.bool_)))
    link, times_us, is_bad = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((times_us, link))
    return link[order], times_us[order], is_bad[order]

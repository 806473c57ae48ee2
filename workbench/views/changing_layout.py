"""Layouts of networks that change during a run: positions and links as functions of time.

    lay_out_scenario(scenario)     the layout of a scenario's network: a `Layout`, or a `ChangingLayout` if it changes
    ChangingLayout.at(time_us)     the layout of one moment

A picture of one moment is drawn from `ChangingLayout.at`. The player gets all vertices of the tracks and all intervals
of the links once (`player.payload`), and computes each moment itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.columns import mark_first
from workbench.mobility import Track
from workbench.sim.changes.arcs import RATIO, Layer, LinkChanges, combine, link_changes, tracks
from workbench.sim.changes.items import LINK_ITEMS, Jam
from workbench.views.layers import Table, alive, select
from workbench.views.layout import LINKS_PER_NODE, Layout, lay_out, select_best_links
from workbench.views.spans import joined, overlaps

MOST_VERTICES = 150_000
MOST_ROWS = 60_000  # intervals of links; delivery ratios are rounded until the intervals are at most so many
ROUNDINGS = (5, 10, 20)  # in percent
USEFUL = 0.9  # the largest share of the intervals that may remain after rounding
MOST_SAMPLES = 300  # times at which the best links of each node are selected
SHORT = 40  # vertices of all tracks; up to this number, tracks are drawn whole
WINDOW_US = 30_000_000  # of longer tracks, the part from so long before the present to so long after it is drawn

Positions = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TrackVertices:
    """The vertices of all tracks, in order of node, then of time. Between two vertices a node moves on a straight line.

    nodes: indices of the moving nodes in the layout, int64, ascending, shape (moving,).
    first: for each moving node the index of its first vertex, int64, shape (moving,).
    time_us: int64, shape (vertices,). x_m, y_m: float64, shape (vertices,).
    """

    nodes: np.ndarray
    first: np.ndarray
    time_us: np.ndarray
    x_m: np.ndarray
    y_m: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """The number of vertices of each moving node, shape (moving,)."""
        return np.diff(np.append(self.first, len(self.time_us)))

    @property
    def window_us(self) -> int | None:
        """How much of a track is drawn before, and after, the displayed time, in µs. None: the whole track."""
        return None if len(self.time_us) <= SHORT else WINDOW_US

    def at(self, time_us: int) -> Positions:
        """Return the coordinates (x, y) in m of the moving nodes at a time, each of shape (moving,)."""
        counts = self.counts
        passed = np.add.reduceat(self.time_us <= time_us, self.first)
        start = self.first + np.clip(passed - 1, 0, np.maximum(counts - 2, 0))
        end = start + (counts > 1)
        elapsed_us, interval_us = time_us - self.time_us[start], self.time_us[end] - self.time_us[start]
        share = np.clip(elapsed_us / np.maximum(interval_us, 1), 0.0, 1.0)
        x_m, y_m = (axis[start] + share * (axis[end] - axis[start]) for axis in (self.x_m, self.y_m))
        return x_m, y_m

    def piece(self, number: int, low_us: int, high_us: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a node's positions in [low_us, high_us] as (times in µs, x in m, y in m).

        The arrays have an entry for each end of the interval and for each vertex of the track in between. ``number``:
        index of the node in ``nodes``.
        """
        rows = slice(int(self.first[number]), int(self.first[number] + self.counts[number]))
        times_us, x_m, y_m = self.time_us[rows], self.x_m[rows], self.y_m[rows]
        is_inside = (times_us > low_us) & (times_us < high_us)
        at_us = np.concatenate([[low_us], times_us[is_inside], [high_us]])
        return at_us, np.interp(at_us, times_us, x_m), np.interp(at_us, times_us, y_m)


@dataclass(frozen=True)
class ChangingLayout(Layout):
    """The layout of a network whose nodes move or whose links change. The fields of `Layout` describe time 0.

    tracks: the tracks of the moving nodes; None if no node moves.
    link_intervals: a table with a row for each interval in which the delivery ratios of a link are constant, sorted by
        from_us. Its columns are from_us, until_us, and a, b, pdr_ab and pdr_ba as in `Layout.links`. None if links do
        not change.
    marked_m: further points that the map must contain, such as jammers: x and y in m, float64, shape (points, 2).
    """

    tracks: TrackVertices | None = None
    link_intervals: Table | None = None
    marked_m: np.ndarray | None = None

    def outer_points_m(self) -> Positions:
        """Return the coordinates (x, y) in m of all points that the map must contain, each of shape (points,)."""
        xs, ys = ([axis] for axis in super().outer_points_m())
        if self.tracks is not None:
            xs.append(self.tracks.x_m)
            ys.append(self.tracks.y_m)
        if self.marked_m is not None:
            xs.append(self.marked_m[:, 0])
            ys.append(self.marked_m[:, 1])
        return np.concatenate(xs), np.concatenate(ys)

    def at(self, time_us: int) -> Layout:
        """Return the layout at a time in µs, with the positions and links of that moment.

        Its ``box_m`` and ``spacing_m`` are the same at all times, so that maps of different moments have the same
        scale.
        """
        x_m, y_m, links = self.x_m, self.y_m, self.links
        if self.tracks is not None:
            x_m, y_m = x_m.copy(), y_m.copy()
            x_m[self.tracks.nodes], y_m[self.tracks.nodes] = self.tracks.at(time_us)
        if self.link_intervals is not None:
            links = links_at(self.link_intervals, time_us)
        moment = Layout(self.ids, x_m, y_m, links, self.walls, self.notes)
        # All moments of a run are drawn in the same box, with nodes of the same size.
        vars(moment).update(box_m=self.box_m, spacing_m=self.spacing_m)
        return moment


def links_at(link_intervals: Table, time_us: int) -> Table:
    """Return the links that exist at ``time_us``, with the columns of `Layout.links`, sorted by their nodes.

    ``link_intervals``: a table as in `ChangingLayout.link_intervals`.
    """
    links = select(link_intervals, alive(link_intervals, time_us))
    return select({name: links[name] for name in ("a", "b", "pdr_ab", "pdr_ba")}, np.lexsort((links["b"], links["a"])))


def lay_out_scenario(scenario: Any) -> Layout:
    """Return the layout of a scenario's network: a `ChangingLayout` if nodes move, links change or jammers send.

    Otherwise the result is a `Layout`, which is the same at all times.
    """
    changes = link_changes(scenario)
    return lay_out(scenario.topology) if changes is None else _lay_out_changing(scenario)


@lru_cache(maxsize=4)
def _lay_out_changing(scenario: Any) -> ChangingLayout:
    changes, plan = link_changes(scenario), lay_out(scenario.topology)
    assert changes is not None
    duration_us, notes = round(scenario.duration_s * 1e6), list(plan.notes)
    vertices = list_vertices(tracks(scenario), plan, duration_us, notes)
    jammers_m = np.array([(item.x_m, item.y_m) for item in scenario.workload if isinstance(item, Jam)], float)
    marked_m = jammers_m if len(jammers_m) else None
    layout = ChangingLayout(plan.ids, plan.x_m, plan.y_m, plan.links, plan.walls, tracks=vertices, marked_m=marked_m)
    if all(isinstance(item, Jam) for item in scenario.workload if isinstance(item, LINK_ITEMS)):
        return replace(layout, notes=tuple(notes))
    notes = [note for note in notes if not note.startswith("Of ")]  # the topology's own links are not drawn
    intervals = _select_drawn_links(_round_ratios(changes, len(plan.ids), duration_us, notes), layout, notes)
    start = replace(layout, link_intervals=intervals, notes=tuple(notes)).at(0)
    return replace(
        layout, x_m=start.x_m, y_m=start.y_m, links=start.links, link_intervals=intervals, notes=tuple(notes)
    )


def list_vertices(
    tracks_of_nodes: Mapping[int, Track], plan: Layout, duration_us: int, notes: list[str]
) -> TrackVertices | None:
    """Return the vertices of tracks in [0, duration_us], or None if no node moves.

    tracks_of_nodes: {number of a node: its track} for all moving nodes.
    plan: the layout of the network.
    notes: a list, to which a sentence is appended if the tracks have too many vertices and some are left out.
    """
    if not tracks_of_nodes:
        return None
    times_us, positions_m = [], []
    for _, track in sorted(tracks_of_nodes.items()):
        inside = track.times_us[(track.times_us > 0) & (track.times_us < duration_us)]
        at_us = np.concatenate([[0], inside, [duration_us]]).astype(np.int64)
        times_us.append(at_us)
        positions_m.append(np.stack([np.interp(at_us, track.times_us, axis) for axis in track.positions_m.T], axis=1))
    total = sum(map(len, times_us))
    step = -(-total // MOST_VERTICES)
    if step > 1:
        vertex_rows = [np.unique(np.append(np.arange(0, len(at_us), step), len(at_us) - 1)) for at_us in times_us]
        times_us = [at_us[rows] for at_us, rows in zip(times_us, vertex_rows, strict=True)]
        positions_m = [path_m[rows] for path_m, rows in zip(positions_m, vertex_rows, strict=True)]
        notes.append(f"Of {total:,} waypoints one in {step} is drawn; between them nodes are drawn on straight lines.")
    counts = np.array(list(map(len, times_us)))
    x_m, y_m = np.concatenate(positions_m).T
    nodes = plan.indices(np.array(sorted(tracks_of_nodes)))
    return TrackVertices(nodes, np.cumsum(counts) - counts, np.concatenate(times_us), x_m, y_m)


# Links


def _round_ratios(changes: LinkChanges, nodes: int, duration_us: int, notes: list[str]) -> Table:
    """Return the table `ChangingLayout.link_intervals`, with delivery ratios rounded to multiples of 1, 5, 10 or 20 %.

    The ratios are multiples of 1 % if the table then has at most `MOST_ROWS` rows, or if even multiples of 20 % do not
    make it clearly shorter. Otherwise they are multiples of the first of 5, 10 and 20 % (`ROUNDINGS`) with which the
    table has at most `MOST_ROWS` rows, or of 20 % if all three tables are longer.

    changes: the changes of the links during the run.
    nodes: number of nodes.
    notes: a list, to which a sentence is appended after coarser rounding.
    """
    fine_intervals = _list_intervals(changes, nodes, duration_us, 1)
    most = USEFUL * len(fine_intervals["a"])
    if (
        len(fine_intervals["a"]) <= MOST_ROWS
        or len(_list_intervals(changes, nodes, duration_us, ROUNDINGS[-1])["a"]) > most
    ):
        return fine_intervals  # The intervals are few, or links appear and vanish too often for rounding to help.
    for rounding in ROUNDINGS:
        intervals = _list_intervals(changes, nodes, duration_us, rounding)
        if len(intervals["a"]) <= MOST_ROWS:
            break
    notes.append(f"The delivery ratios of links are rounded to {rounding} %.")
    return intervals


def _list_intervals(changes: LinkChanges, nodes: int, duration_us: int, rounding: int) -> Table:
    """Return the table `ChangingLayout.link_intervals`, with delivery ratios rounded.

    changes: the changes of the links during the run.
    nodes: number of nodes.
    rounding: ratios are rounded to multiples of this many percent. A ratio above 0 becomes at least 1 %.
    """
    rows = changes.rows[changes.rows["kind"] == RATIO]
    arcs = np.concatenate([np.arange(len(changes.senders)), rows["subject"]])
    ratios = np.concatenate([changes.ratios, rows["ratio"]])
    times_us = np.concatenate([np.zeros(len(changes.senders), np.int64), rows["time_us"]])
    percents = rounding * np.rint(100 * ratios / rounding)
    # No ratio becomes 0 by rounding, because a link that loses all frames is drawn in another style.
    percents = np.where(ratios > 0, np.maximum(percents, 1), np.minimum(ratios, 0)).astype(np.int64)
    ends = np.stack([changes.senders[arcs], changes.receivers[arcs]]).astype(np.int64)
    pairs, is_forward = ends.min(axis=0) * nodes + ends.max(axis=0), ends[0] < ends[1]
    directions = [Layer(pairs[rows], times_us[rows], percents[rows], -1) for rows in (is_forward, ~is_forward)]
    distinct = np.unique(pairs)
    pair_indices, times_us, percents_of_directions = combine(directions, distinct)
    pairs = distinct[pair_indices]
    forward, backward = (percents.astype(np.int64) for percents in percents_of_directions)
    is_new = mark_first(pairs, forward, backward)
    pairs, times_us, forward, backward = (column[is_new] for column in (pairs, times_us, forward, backward))
    until_us = np.full(len(pairs), duration_us)
    until_us[:-1][pairs[1:] == pairs[:-1]] = times_us[1:][pairs[1:] == pairs[:-1]]
    exists = np.maximum(forward, backward) >= 0
    intervals = {
        "a": pairs // nodes,
        "b": pairs % nodes,
        "from_us": times_us,
        "until_us": until_us,
        "pdr_ab": np.maximum(forward, 0) / 100,
        "pdr_ba": np.maximum(backward, 0) / 100,
    }
    intervals = select(intervals, exists)
    return select(intervals, np.lexsort((intervals["b"], intervals["a"], intervals["from_us"])))


def _select_drawn_links(intervals: Table, plan: ChangingLayout, notes: list[str]) -> Table:
    """Return the part of ``intervals`` that is drawn: only the best links of each node at each time.

    At up to `MOST_SAMPLES` times at which links change, `layout.select_best_links` selects links. They are drawn
    until the next selection.

    intervals: a table as in `ChangingLayout.link_intervals`.
    plan: the layout, which gives the positions of nodes.
    notes: a list, to which a sentence is appended if links are left out.
    """
    times_us = np.unique(np.append(intervals["from_us"], 0))
    if len(times_us) > MOST_SAMPLES:
        times_us = times_us[np.unique(np.linspace(0, len(times_us) - 1, MOST_SAMPLES).astype(np.int64))]
    nodes = len(plan.ids)
    pairs = intervals["a"] * nodes + intervals["b"]
    best_pairs, most = [], 0
    for time_us in times_us.tolist():
        rows = alive(intervals, time_us)
        degrees = np.bincount(np.concatenate([intervals["a"][rows], intervals["b"][rows]]), minlength=nodes)
        if degrees.max(initial=0) <= LINKS_PER_NODE:
            best_pairs.append(pairs[rows])
            continue
        links, most = select(intervals, rows), max(most, len(rows))
        best = select_best_links(links, plan.at(time_us), LINKS_PER_NODE)
        best_pairs.append(best["a"] * nodes + best["b"])
    if not most:
        return intervals
    ends_us = np.append(times_us[1:], intervals["until_us"].max())
    counts = list(map(len, best_pairs))
    windows = {
        "pair": np.concatenate(best_pairs),
        "from_us": np.repeat(times_us, counts),
        "until_us": np.repeat(ends_us, counts),
    }
    windows = joined(windows, "pair")
    parts = overlaps(
        pairs, intervals["from_us"], intervals["until_us"], windows["pair"], windows["from_us"], windows["until_us"]
    )
    notes.append(f"Of up to {most:,} links at a time, the {LINKS_PER_NODE} best of each node are drawn.")
    chosen = select(intervals, parts.row) | {"from_us": parts.from_us, "until_us": parts.until_us}
    return select(chosen, np.argsort(chosen["from_us"], kind="stable"))

"""Mobility models: values that give each node a `Track`.

    Waypoints        positions with times, as a file or a floor plan states them
    RandomWaypoint   straight trips between random points, with pauses
    GaussMarkov      a speed and a direction that change gradually

Theory of operation
    Every random number is a hash of (seed, MOBILITY, node, stream, counter). A node's track depends only on the model,
    the node's number and the arguments of `MobilityModel.track`; it does not depend on other nodes or on their order. A
    longer duration continues the same track.

    Both random models start in their stationary distribution. Positions and speeds at time 0 are distributed as at any
    later time, so a run needs no warm-up, and its results have no bias from one.

Reproducibility
    Additions, multiplications, divisions and square roots of IEEE 754 are the same on every machine; logarithms, sines
    and cosines may differ in their last bit. Values computed from logarithms, sines or cosines are therefore rounded
    before they enter a track: speeds to 1 µm/s, the shift in a step to 0.1 mm. After rounding, differences in last bits
    hardly ever have an effect, and never add up.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from workbench import draws, purposes
from workbench.array_draws import mix64
from workbench.errors import ParameterError, ScenarioError
from workbench.keywords import checked
from workbench.mobility.tracks import LONGEST_S, Track, to_us
from workbench.suggestion import meant
from workbench.topology.graphs import (
    LARGEST_COORDINATE_M,
    LARGEST_NODE,
    coordinates,
    is_number,
    is_whole,
    number,
    round_positions,
    whole,
)
from workbench.topology.propagation import uniforms

MOST_WAYPOINTS = 1_000_000  # of a `Waypoints`, and of a node's random track

_SMALLEST_AREA_M = 0.1  # its longer side
_SLOWEST_M_S, _FASTEST_M_S = 0.001, 1000.0
_MOST_STEPS_AT_ONCE = 1 << 18  # a larger group of nodes is drawn in several parts, which bounds the memory
_POSITION_STEPS = 10_000  # per m, as `round_positions` rounds

_START, _TRIPS, _STEPS = 1, 2, 3  # streams of the purpose MOBILITY

# Counters of the stream _START of a random waypoint. The attempts to draw a trip use _ATTEMPT_DRAWS counters each.
_IS_PAUSED, _SHARE, _SPEED, _PAUSED_AT, _FIRST_ATTEMPT = 0, 1, 2, (3, 4), 8
_ATTEMPT_DRAWS = 5

Model = TypeVar("Model", bound="MobilityModel")


@checked
class MobilityModel:
    """A rule by which nodes move: the base class of `Waypoints`, `RandomWaypoint` and `GaussMarkov`."""

    kind: ClassVar[str]  # the name of the model in JSON

    def track(
        self, node: int, place_m: tuple[float, float], extent_m: tuple[float, float], duration_s: float, seed: int
    ) -> Track:
        """Return the track of ``node`` from time 0 to ``duration_s`` or later.

        place_m      position (x, y) of the node in the topology, in m
        extent_m     (width, height) of the topology in m: the area of random models without an area of their own
        duration_s   duration of the run in s
        seed         seed of the run: a whole number, 0 or more; a random model with its own seed ignores it

        Raises ParameterError for an invalid argument.
        """
        return self.tracks([node], [place_m], extent_m, duration_s, seed)[0]

    def tracks(
        self,
        nodes: Sequence[int],
        places_m: Sequence[tuple[float, float]],
        extent_m: tuple[float, float],
        duration_s: float,
        seed: int,
    ) -> list[Track]:
        """Return the tracks of several nodes, in the order of ``nodes``; faster than a call of `track` for each node.

        ``places_m`` has the position (x, y) of each node in m. The other arguments are those of `track`, and each track
        equals the result of `track` for this node. Raises ParameterError for an invalid argument.
        """
        node_numbers = [whole("node", node, 0, LARGEST_NODE) for node in nodes]
        places = [coordinates(place) for place in places_m]
        if len(places) != len(node_numbers):
            raise ParameterError(
                f"places_m has {len(places)} positions for {len(node_numbers)} nodes; give one for each."
            )
        if None in places:
            raise ParameterError(
                f"place_m is {places_m[places.index(None)]!r:.60}; it must be (x_m, y_m), two finite numbers."
            )
        extent = coordinates(extent_m)
        if extent is None or min(extent) < 0:
            raise ParameterError(f"extent_m is {extent_m!r:.60}; it must be (width_m, height_m), numbers of 0 or more.")
        duration_us = int(to_us(number("duration_s", duration_s, 0, LONGEST_S, "s")))
        if not is_whole(seed) or seed < 0:
            raise ParameterError(f"seed is {seed!r:.60}; it must be a whole number, 0 or more.")
        places_array = round_positions(np.array(places, dtype=float).reshape(-1, 2))
        return self._draw_tracks(np.array(node_numbers, dtype=np.int64), places_array, extent, duration_us, int(seed))

    def _draw_tracks(
        self, nodes: np.ndarray, places_m: np.ndarray, extent_m: tuple[float, float], duration_us: int, seed: int
    ) -> list[Track]:
        """Return the tracks of ``nodes`` (n,), which are at ``places_m`` (n, 2); all arguments are valid."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values, ready for JSON: its ``kind`` and its parameters."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in _parameter_names(type(self))}}

    @classmethod
    def from_dict(cls: type[Model], form: object) -> Model:
        """Return the model with the parameters in ``form``, a mapping that `to_dict` returned.

        A missing parameter gets its default. Raises ScenarioError for an unknown parameter or an invalid value.
        """
        names = _parameter_names(cls)
        if not isinstance(form, Mapping) or form.get("kind", cls.kind) != cls.kind:
            raise ScenarioError(
                f"The mobility model is {form!r:.60}; it must be a mapping with kind {cls.kind!r} and some of the keys "
                f"{', '.join(names)}."
            )
        parameters = {str(name): value for name, value in form.items() if name != "kind"}
        for name in parameters:
            if name not in names:
                raise ScenarioError(
                    f"The mobility model {cls.kind} has no parameter {name!r:.60}{meant(name, names)}; "
                    f"it has {', '.join(names)}."
                )
        try:
            return cls(**parameters)
        except ParameterError as error:
            raise ScenarioError(str(error)) from error


def _parameter_names(model: Any) -> list[str]:
    return [field.name for field in fields(model)]


@checked
@dataclass(frozen=True, repr=False)
class Waypoints(MobilityModel):
    """A path through given points: a node is at each point at a given time, and moves straight from point to point.

    ``points`` is a sequence of (time_s, x_m, y_m) with ascending times from 0 to 1e9 s. The speed between two points is
    constant; two successive points at the same position are a pause. If the first time is not 0, the node starts at its
    place in the topology at time 0. After the last point the node stands still. Times are rounded to 1 µs, positions to
    0.1 mm. Raises ParameterError for points without three finite numbers, and for times that do not ascend by at least
    a microsecond.

    >>> Waypoints([(0, 0, 0), (10, 5, 0), (20, 5, 0)]).track(3, (1, 1), (9, 9), 30, seed=1).times_us.tolist()
    [0, 10000000, 20000000]
    """

    kind: ClassVar[str] = "waypoints"

    points: tuple[tuple[float, float, float], ...]

    def __post_init__(self) -> None:
        points = _check_points(self.points)
        times_us = to_us(points[:, 0])
        descents = np.flatnonzero(np.diff(times_us) < 1)
        if len(descents):
            earlier_s, later_s = points[descents[0] : descents[0] + 2, 0].tolist()
            raise ParameterError(
                f"Waypoints: point {descents[0] + 1} is at {later_s} s, and the point before at {earlier_s} s; "
                "times must ascend, by a microsecond at least."
            )
        rounded_points = np.column_stack((times_us / 1e6, round_positions(points[:, 1:])))
        object.__setattr__(self, "points", tuple(map(tuple, rounded_points.tolist())))

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain values, ready for JSON: ``points`` is a list of [time_s, x_m, y_m]."""
        return {"kind": self.kind, "points": [list(point) for point in self.points]}

    def __repr__(self) -> str:
        if len(self.points) <= 4:
            return f"Waypoints({list(self.points)})"
        return f"Waypoints({len(self.points):,} points, {self.points[0][0]:g} to {self.points[-1][0]:g} s)"

    def _draw_tracks(
        self, nodes: np.ndarray, places_m: np.ndarray, extent_m: tuple[float, float], duration_us: int, seed: int
    ) -> list[Track]:
        points = np.array(self.points)
        times_us, path_m = to_us(points[:, 0]), points[:, 1:]
        if times_us[0] == 0:
            return [Track(_freeze(times_us), _freeze(path_m))] * len(nodes)
        times_us = _freeze(np.concatenate(([0], times_us)))
        return [Track(times_us, _freeze(np.concatenate((place_m[None], path_m)))) for place_m in places_m]


def _check_points(points: Any) -> np.ndarray:
    """Return ``points`` as an array (k, 3) of floats: time in s, x and y in m.

    Raises ParameterError unless each point has three finite numbers in range.
    """
    try:
        rows = [tuple(point) for point in points]
    except TypeError:
        rows = []
    if not 1 <= len(rows) <= MOST_WAYPOINTS:
        fault = f"has {len(rows):,} points" if len(rows) else f"is {points!r:.60}"
        raise ParameterError(
            f"Waypoints: points {fault}; it must be a list of 1 to {MOST_WAYPOINTS:,} points (time_s, x_m, y_m)."
        )
    are_plain = {type(value) for row in rows for value in row} <= {float, int}
    for index, row in enumerate(rows):
        if len(row) != 3 or not (are_plain or all(map(is_number, row))):
            raise ParameterError(
                f"Waypoints: point {index} is {row!r:.60}; it must be (time_s, x_m, y_m), three finite numbers."
            )
    try:
        numbers = np.array(rows, dtype=float)
    except OverflowError:  # an integer above the largest float
        numbers = np.array([[_to_float(value) for value in row] for row in rows])
    largest_values = np.array((LONGEST_S, LARGEST_COORDINATE_M, LARGEST_COORDINATE_M))
    is_valid = (np.abs(numbers) <= largest_values).all(axis=1) & (numbers[:, 0] >= 0)
    if not is_valid.all():
        index = int(np.argmin(is_valid))
        raise ParameterError(
            f"Waypoints: point {index} is {rows[index]!r:.60}; its time must be from 0 to {LONGEST_S:g} s, and its "
            f"coordinates from {-LARGEST_COORDINATE_M:g} to {LARGEST_COORDINATE_M:g} m."
        )
    return numbers


def _to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


@checked
@dataclass(frozen=True)
class RandomWaypoint(MobilityModel):
    """Random trips: a node chooses a point and a speed, goes there in a straight line, pauses, and chooses again.

    =========== ======= ==== ================================================================================
    parameter   default unit meaning
    =========== ======= ==== ================================================================================
    width_m     None    m    width of the area, from x = 0; None: the extent of the topology
    height_m    None    m    height of the area, from y = 0; None: the extent of the topology
    slowest_m_s 0.5     m/s  lowest speed, at least 0.001
    fastest_m_s 1.5     m/s  highest speed
    pause_s     0       s    pause at each point
    seed        None         seed of the movement; None: the seed of the run
    =========== ======= ==== ================================================================================

    Points are uniform in the area, speeds uniform between the lowest and the highest. The node's place in the topology
    has no effect: its position at time 0 is drawn. Raises ParameterError for a value outside its range.

    Stationary start
        A moving node is seldom at the edge, and more often slow than fast, as slow trips take longer. A simulation that
        starts with uniform positions and speeds therefore changes for a long time. With a lowest speed of 0, the mean
        speed would fall towards 0 for ever (Yoon et al.), because ever longer trips dominate; so 0 is not allowed.

        The state at time 0 is drawn from the stationary distribution of Navidi and Camp, by the perfect simulation of
        Le Boudec and Vojnović. With E[trip] = E[length] E[1/speed]:

            pausing     with the probability pause / (pause + E[trip]); the position is uniform, and so is the rest of
                        the pause in [0, pause]
            moving      the trip's two ends are drawn with a density in proportion to their distance, by rejection; the
                        position on the trip is uniform; the speed has a density in proportion to 1 / speed

        E[length] is the mean distance of two uniform points in a rectangle (Ghosh), 0.5214 in the unit square.
        E[1/speed] is ln(fastest / slowest) / (fastest - slowest).

    Limits
        Positions are rounded to 0.1 mm, and arrivals up to the next microsecond, so no trip is faster than
        ``fastest_m_s``. The longer side of the area must be 0.1 m at least; the shorter may be 0, as in a line.

    Reference
        W. Navidi, T. Camp: Stationary distributions for the random waypoint mobility model, IEEE TMC 3(1), 2004;
        J.-Y. Le Boudec, M. Vojnović: The random trip model: stability, stationary regime, and perfect simulation,
        IEEE/ACM Transactions on Networking 14(6), 2006;
        J. Yoon, M. Liu, B. Noble: Random waypoint considered harmful, INFOCOM 2003;
        B. Ghosh: Random distances within a rectangle and between two rectangles, Bull. Calcutta Math. Soc. 43, 1951.
    """

    kind: ClassVar[str] = "random_waypoint"

    width_m: float | None = None
    height_m: float | None = None
    slowest_m_s: float = 0.5
    fastest_m_s: float = 1.5
    pause_s: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _check_area_and_seed(self)
        for name in ("slowest_m_s", "fastest_m_s"):
            speed_m_s = getattr(self, name)
            if not is_number(speed_m_s) or not _SLOWEST_M_S <= speed_m_s <= _FASTEST_M_S:
                raise ParameterError(
                    f"RandomWaypoint: {name} is {speed_m_s!r:.60}; it must be a number from {_SLOWEST_M_S:g} to "
                    f"{_FASTEST_M_S:g} m/s (with a lowest speed of 0, nodes become slower for ever)."
                )
            object.__setattr__(self, name, float(speed_m_s))
        if self.fastest_m_s < self.slowest_m_s:
            raise ParameterError(
                f"RandomWaypoint: fastest_m_s is {self.fastest_m_s:g}; it must be at least slowest_m_s, "
                f"{self.slowest_m_s:g} m/s."
            )
        object.__setattr__(self, "pause_s", number("RandomWaypoint: pause_s", self.pause_s, 0, LONGEST_S, "s"))

    def _draw_tracks(
        self, nodes: np.ndarray, places_m: np.ndarray, extent_m: tuple[float, float], duration_us: int, seed: int
    ) -> list[Track]:
        area_m = _choose_area(self, extent_m)
        mean_trip_s = _mean_distance_m(*area_m) * self._mean_slowness()
        trip_count = duration_us / 1e6 / (mean_trip_s + self.pause_s)
        if trip_count > MOST_WAYPOINTS:
            raise ParameterError(
                f"RandomWaypoint: a node makes about {trip_count:.3g} trips in {duration_us / 1e6:g} s; at most "
                f"{MOST_WAYPOINTS:,} are possible, so give a larger area, a lower speed or a shorter run."
            )
        # Most nodes need fewer trips than this; if a node needs more, twice as many are drawn.
        trip_count = math.ceil(trip_count + 3 * math.sqrt(trip_count) + 3)
        group_size = max(1, _MOST_STEPS_AT_ONCE // trip_count)
        seed = seed if self.seed is None else self.seed
        return [
            track
            for first in range(0, len(nodes), group_size)
            for track in self._draw_group(
                nodes[first : first + group_size], np.array(area_m), mean_trip_s, duration_us, trip_count, seed
            )
        ]

    def _mean_slowness(self) -> float:
        """Return the mean of 1 / speed, in s/m."""
        range_m_s = self.fastest_m_s - self.slowest_m_s
        return math.log1p(range_m_s / self.slowest_m_s) / range_m_s if range_m_s > 0 else 1 / self.slowest_m_s

    def _draw_group(
        self,
        nodes: np.ndarray,
        area_m: np.ndarray,
        mean_trip_s: float,
        duration_us: int,
        trip_count: int,
        seed: int,
    ) -> Iterable[Track]:
        """Return the tracks of the nodes with the numbers ``nodes`` (n,), at least up to ``duration_us``.

        area_m        width and height of the area in m
        mean_trip_s   mean duration of a trip in s
        trip_count    number of trips that are drawn for each node; doubled until all tracks are long enough
        """
        pause_us = int(to_us(self.pause_s))
        start_m, first_m, arrival_us, departure_us = self._draw_start(
            _make_keys(seed, _START, nodes), area_m, mean_trip_s, pause_us
        )
        keys = _make_keys(seed, _TRIPS, nodes)
        while True:
            numbers = uniforms(keys[:, None], np.arange(3 * trip_count)).reshape(len(nodes), trip_count, 3)
            ends_m = np.concatenate((first_m[:, None], round_positions(numbers[:, :, :2] * area_m)), axis=1)
            speeds_m_s = self.slowest_m_s + numbers[:, :, 2] * (self.fastest_m_s - self.slowest_m_s)
            legs_us = _travel_us(ends_m[:, :-1], ends_m[:, 1:], speeds_m_s)
            departures_us = departure_us[:, None] + np.cumsum(legs_us + pause_us, axis=1)
            if departures_us[:, -1].min() >= duration_us:
                break
            trip_count *= 2
        # A node is at each point twice, at its arrival and its departure.
        stops_us = np.stack((departures_us - pause_us, departures_us), axis=2).reshape(len(nodes), -1)
        times_us = np.column_stack((np.zeros(len(nodes), np.int64), arrival_us, departure_us, stops_us))
        points_m = np.concatenate((start_m[:, None], np.repeat(ends_m, 2, axis=1)), axis=1)
        return _split_tracks(times_us, points_m, duration_us)

    def _draw_start(
        self, keys: np.ndarray, area_m: np.ndarray, mean_trip_s: float, pause_us: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return random states of nodes at time 0, distributed as in the stationary distribution.

        The result is four arrays: the nodes' positions (n, 2) in m, the points (n, 2) in m to which they go first, and
        their arrival times and departure times (n,) at these points in µs. A node that starts with a pause is already
        at its first point.
        """
        ends_m = _draw_long_trips(keys, area_m)
        shares = uniforms(keys, _SHARE)
        moving_m = round_positions(ends_m[:, 0] + shares[:, None] * (ends_m[:, 1] - ends_m[:, 0]))
        ratio = math.log(self.fastest_m_s / self.slowest_m_s)
        speeds_m_s = np.rint(self.slowest_m_s * np.exp(uniforms(keys, _SPEED) * ratio) * 1e6) / 1e6
        speeds_m_s = np.clip(speeds_m_s, self.slowest_m_s, self.fastest_m_s)
        arrivals_us = _travel_us(moving_m, ends_m[:, 1], speeds_m_s)

        is_paused = uniforms(keys, _IS_PAUSED) < self.pause_s / (self.pause_s + mean_trip_s)
        paused_m = round_positions(uniforms(keys[:, None], _PAUSED_AT) * area_m)
        rests_us = np.rint(shares * pause_us).astype(np.int64)
        return (
            np.where(is_paused[:, None], paused_m, moving_m),
            np.where(is_paused[:, None], paused_m, ends_m[:, 1]),
            np.where(is_paused, 0, arrivals_us),
            np.where(is_paused, rests_us, arrivals_us + pause_us),
        )


def _draw_long_trips(keys: np.ndarray, area_m: np.ndarray) -> np.ndarray:
    """Return a random trip for each key; the probability density of a trip is in proportion to its length.

    The result is the trips' ends (n, 2, 2): for each key, the two points (x, y) in m.
    """
    ends_m = np.zeros((len(keys), 2, 2))
    diagonal_m = math.sqrt(float(area_m[0] * area_m[0] + area_m[1] * area_m[1]))
    undecided = np.arange(len(keys))
    counters = _FIRST_ATTEMPT + np.arange(_ATTEMPT_DRAWS)
    while len(undecided):
        numbers = uniforms(keys[undecided, None], counters)
        candidates_m = round_positions(numbers[:, :4].reshape(-1, 2, 2) * area_m)
        is_accepted = numbers[:, 4] * diagonal_m < _distances_m(candidates_m[:, 0], candidates_m[:, 1])
        ends_m[undecided[is_accepted]] = candidates_m[is_accepted]
        undecided = undecided[~is_accepted]
        counters = counters + _ATTEMPT_DRAWS
    return ends_m


def _mean_distance_m(width_m: float, height_m: float) -> float:
    """Return the mean distance of two uniform points in a rectangle, in m (Ghosh 1951)."""
    b, a = sorted((width_m, height_m))
    if b < 1e-4 * a:  # The closed form loses its digits here, and differs from a line by less than 1e-7.
        return a / 3
    d = math.sqrt(a * a + b * b)
    edges = a**3 / b**2 + b**3 / a**2 + d * (3 - (a / b) ** 2 - (b / a) ** 2)
    corners = b * b / a * math.log((a + d) / b) + a * a / b * math.log((b + d) / a)
    return (edges + 2.5 * corners) / 15


def _distances_m(start_m: np.ndarray, end_m: np.ndarray) -> np.ndarray:
    """Return the distances (...) between points (..., 2); they have the same bits on every machine."""
    difference_m = end_m - start_m
    return np.sqrt(difference_m[..., 0] * difference_m[..., 0] + difference_m[..., 1] * difference_m[..., 1])


def _travel_us(start_m: np.ndarray, end_m: np.ndarray, speeds_m_s: np.ndarray) -> np.ndarray:
    """Return the duration (...) in µs of straight trips between points (..., 2), rounded up."""
    return np.ceil(_distances_m(start_m, end_m) / speeds_m_s * 1e6).astype(np.int64)


@checked
@dataclass(frozen=True)
class GaussMarkov(MobilityModel):
    """Gradual movement: speed and direction of a node are Gauss-Markov processes around their means.

    =================== ======= ==== ========================================================================
    parameter           default unit meaning
    =================== ======= ==== ========================================================================
    width_m             None    m    width of the area, from x = 0; None: the extent of the topology
    height_m            None    m    height of the area, from y = 0; None: the extent of the topology
    mean_m_s            1.0     m/s  mean speed
    speed_sigma_m_s     0.2     m/s  standard deviation of the speed
    direction_sigma_rad 0.5     rad  standard deviation of the direction around the node's mean direction
    memory              0.75         correlation of two successive steps, from 0 (none) to 1 (no change)
    step_s              1.0     s    duration of a step
    seed                None         seed of the movement; None: the seed of the run
    =================== ======= ==== ========================================================================

    The node's place in the topology has no effect: its position at time 0 is drawn. Raises ParameterError for a value
    outside its range.

    Theory of operation
        With memory a, and w a standard normal random number that is drawn independently for each node and step:

            speed[n]     = a speed[n-1]     + (1 - a) mean speed     + sqrt(1 - a^2) speed sigma w
            direction[n] = a direction[n-1] + (1 - a) mean direction + sqrt(1 - a^2) direction sigma w

        During step n a node moves with the speed and the direction of step n. The mean direction of each node is drawn
        once. A negative speed moves a node backwards; it is rare if speed_sigma_m_s is at most a third of mean_m_s.

    Edges
        The edges of the area act as mirrors. Where a path would leave the area, it is reflected, and so are the node's
        direction and its mean direction. Camp, Boleng and Davies steer nodes away from the edges instead. Reflection
        was chosen because it has a stationary distribution in closed form: the position is uniform in the area, the
        mean direction is uniform, and the deviations of speed and direction from their means are normal. All four are
        independent. The state at time 0 is drawn from this distribution, so a run needs no warm-up.

    Limits
        A track has a vertex for each step. A node that is reflected during a step moves straight from its position
        before the step to its position after it, and so is slower during this step. Positions are rounded to 0.1 mm.

    Reference
        B. Liang, Z. Haas: Predictive distance-based mobility management for PCS networks, INFOCOM 1999;
        T. Camp, J. Boleng, V. Davies: A survey of mobility models for ad hoc network research, WCMC 2(5), 2002.
    """

    kind: ClassVar[str] = "gauss_markov"

    width_m: float | None = None
    height_m: float | None = None
    mean_m_s: float = 1.0
    speed_sigma_m_s: float = 0.2
    direction_sigma_rad: float = 0.5
    memory: float = 0.75
    step_s: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        _check_area_and_seed(self)
        ranges = {
            "mean_m_s": (0, _FASTEST_M_S, "m/s"),
            "speed_sigma_m_s": (0, _FASTEST_M_S, "m/s"),
            "direction_sigma_rad": (0, 100, "rad"),
            "memory": (0, 1, ""),
            "step_s": (0.01, 3600, "s"),
        }
        for name, (minimum, maximum, unit) in ranges.items():
            checked_value = number(f"GaussMarkov: {name}", getattr(self, name), minimum, maximum, unit)
            object.__setattr__(self, name, checked_value)

    def _draw_tracks(
        self, nodes: np.ndarray, places_m: np.ndarray, extent_m: tuple[float, float], duration_us: int, seed: int
    ) -> list[Track]:
        area = tuple(round(side_m * _POSITION_STEPS) for side_m in _choose_area(self, extent_m))
        step_us = int(to_us(self.step_s))
        step_count = -(-duration_us // step_us)
        if step_count > MOST_WAYPOINTS:
            raise ParameterError(
                f"GaussMarkov: {duration_us / 1e6:g} s have {step_count:,} steps of {self.step_s:g} s; at most "
                f"{MOST_WAYPOINTS:,} are possible, so give a longer step_s or a shorter run."
            )
        times_us = _freeze(np.arange(step_count + 1, dtype=np.int64) * step_us)
        group_size = max(1, _MOST_STEPS_AT_ONCE // (step_count + 1))
        seed = seed if self.seed is None else self.seed
        return [
            Track(times_us, path_m)
            for first in range(0, len(nodes), group_size)
            for path_m in _freeze(self._draw_paths(nodes[first : first + group_size], area, step_count, seed))
        ]

    def _draw_paths(self, nodes: np.ndarray, area: tuple[int, ...], step_count: int, seed: int) -> np.ndarray:
        """Return the positions (n, step_count + 1, 2) of ``nodes`` (n,) in m, before each step and after the last step.

        ``area`` is (width, height) in units of 0.1 mm.
        """
        starts = uniforms(_make_keys(seed, _START, nodes)[:, None], np.arange(3))
        deviations = self._draw_deviations(_make_keys(seed, _STEPS, nodes), step_count)
        speeds_m_s = self.mean_m_s + self.speed_sigma_m_s * deviations[:, 0]
        directions = 2 * math.pi * starts[:, 2] + self.direction_sigma_rad * deviations[:, 1]
        paths_m = np.empty((len(nodes), step_count + 1, 2))
        for axis, component in enumerate((np.cos, np.sin)):
            # Sums of whole numbers are exact, so a cosine's last bit, which machines differ in, is lost here.
            shifts = np.rint(speeds_m_s * component(directions) * (self.step_s * _POSITION_STEPS))
            start = np.rint(starts[:, axis] * area[axis])
            path = np.cumsum(np.concatenate((start[None], shifts)).astype(np.int64), axis=0)
            paths_m[:, :, axis] = (_reflect(path, area[axis]) / _POSITION_STEPS).T
        return paths_m

    def _draw_deviations(self, keys: np.ndarray, step_count: int) -> np.ndarray:
        """Return the deviations of speed and direction from their means, in standard deviations, (step_count, 2, n).

        Index 0 of the second axis is the speed, index 1 the direction. For each key, both are independent Gauss-Markov
        processes with mean 0 and standard deviation 1.
        """
        counters = np.arange(2 * step_count, dtype=np.uint64)
        numbers = uniforms(keys[None], counters[:, None]).reshape(step_count, 2, len(keys))
        # Box and Muller make two normal random numbers of two uniform ones.
        radius, angle = np.sqrt(-2.0 * np.log(1.0 - numbers[:, 0])), 2.0 * np.pi * numbers[:, 1]
        deviations = np.stack((radius * np.cos(angle), radius * np.sin(angle)), axis=1)
        innovation = math.sqrt(1.0 - self.memory * self.memory)
        for step in range(1, step_count):
            deviations[step] = self.memory * deviations[step - 1] + innovation * deviations[step]
        return deviations


def _reflect(path: np.ndarray, size: int) -> np.ndarray:
    """Return the coordinates of ``path`` after reflection at mirrors at 0 and ``size``: they are in [0, size]."""
    if size == 0:
        return np.zeros_like(path)
    folded = path % (2 * size)
    return np.minimum(folded, 2 * size - folded)


# Parts of several models


def _check_area_and_seed(model: Any) -> None:
    """Check ``width_m``, ``height_m`` and ``seed`` of a random model; round width and height to 0.1 mm."""
    for name in ("width_m", "height_m"):
        side_m = getattr(model, name)
        if side_m is not None:
            checked_m = number(f"{type(model).__name__}: {name}", side_m, 0, LARGEST_COORDINATE_M, "m")
            object.__setattr__(model, name, float(round_positions(checked_m)))
    if model.width_m is not None and model.height_m is not None:
        _choose_area(model, (0.0, 0.0))
    if model.seed is not None:
        object.__setattr__(model, "seed", whole(f"{type(model).__name__}: seed", model.seed, 0, 2**63 - 1))


def _choose_area(model: Any, extent_m: tuple[float, float]) -> tuple[float, float]:
    """Return (width, height) in m of a random model's area; ``extent_m`` replaces a width or height that is None.

    Raises ParameterError if width and height are both below 0.1 m.
    """
    own_sides_m = (model.width_m, model.height_m)
    width_m, height_m = (
        float(round_positions(side_m)) if own_m is None else own_m
        for own_m, side_m in zip(own_sides_m, extent_m, strict=True)
    )
    if max(width_m, height_m) < _SMALLEST_AREA_M:
        raise ParameterError(
            f"{type(model).__name__}: the area is {width_m:g} m x {height_m:g} m; width_m or height_m must be at least "
            f"{_SMALLEST_AREA_M:g} m."
        )
    return width_m, height_m


def _make_keys(seed: int, stream: int, nodes: np.ndarray) -> np.ndarray:
    """Return the key of each node's draws, ``draws.make_key(seed, MOBILITY, stream, node)``, as an array (n,)."""
    key = np.uint64(draws.make_key(seed, purposes.MOBILITY, stream))
    return mix64(key ^ mix64(nodes.astype(np.uint64) + np.uint64(draws.GOLDEN)))


def _split_tracks(times_us: np.ndarray, points_m: np.ndarray, duration_us: int) -> list[Track]:
    """Return n tracks, each with up to k vertices from its row of ``times_us`` (n, k) and ``points_m`` (n, k, 2).

    A vertex is left out if the vertex before it has the same time. A track ends with its first vertex at
    ``duration_us`` or later.
    """
    is_vertex = np.ones(times_us.shape, dtype=bool)
    is_vertex[:, 1:] = (times_us[:, 1:] > times_us[:, :-1]) & (times_us[:, :-1] < duration_us)
    ends = np.cumsum(is_vertex.sum(axis=1)).tolist()
    vertices_us, vertices_m = _freeze(times_us[is_vertex]), _freeze(points_m[is_vertex])
    return [Track(vertices_us[start:end], vertices_m[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def _freeze(array: np.ndarray) -> np.ndarray:
    """Make ``array`` read-only, because several tracks may share it, and return it."""
    array.flags.writeable = False
    return array


MODELS: dict[str, type[MobilityModel]] = {model.kind: model for model in (Waypoints, RandomWaypoint, GaussMarkov)}


def from_dict(form: object) -> MobilityModel:
    """Return the model that ``form`` describes, a mapping that `MobilityModel.to_dict` returned.

    Raises ScenarioError for an unknown ``kind``, an unknown parameter or an invalid value.
    """
    kind = form.get("kind") if isinstance(form, Mapping) else None
    if not isinstance(kind, str) or kind not in MODELS:
        hint = meant(kind, MODELS) if isinstance(kind, str) else ""
        raise ScenarioError(
            f"The mobility model is {form!r:.60}; it must be a mapping whose kind is {', '.join(MODELS)}{hint}."
        )
    return MODELS[kind].from_dict(form)

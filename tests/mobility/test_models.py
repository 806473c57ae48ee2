"""Mobility models as values: their arguments, JSON, and properties that every track has."""

import copy
import hashlib
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import draws, purposes
from workbench.errors import ParameterError, ScenarioError
from workbench.mobility import MODELS, GaussMarkov, RandomWaypoint, Waypoints, from_dict, models, positions

EXTENT = (60.0, 20.0)
sides = st.one_of(st.none(), st.sampled_from([0.5, 7.3, 250.0]))
seeds = st.one_of(st.none(), st.integers(0, 2**63 - 1))
speeds = st.tuples(st.floats(0.001, 40), st.floats(0.001, 40)).map(sorted)
random_waypoints = st.builds(
    lambda width, height, speeds, pause, seed: RandomWaypoint(width, height, *speeds, pause, seed),
    *(sides, sides, speeds, st.sampled_from([0.0, 0.3, 20.0]), seeds),
)
gauss_markovs = st.builds(
    GaussMarkov,
    *(sides, sides, st.floats(0, 30), st.floats(0, 10), st.floats(0, 3), st.floats(0, 1), st.floats(0.5, 20), seeds),
)
waypoints = st.lists(
    st.tuples(st.floats(0, 1e5), st.floats(-1e5, 1e5), st.floats(-1e5, 1e5)),
    min_size=1,
    max_size=5,
    unique_by=lambda point: round(point[0] * 1e6),
).map(lambda points: Waypoints(sorted(points)))
any_model = st.one_of(random_waypoints, gauss_markovs, waypoints)


def same(track, other):
    return np.array_equal(track.times_us, other.times_us) and np.array_equal(track.positions_m, other.positions_m)


# --- properties of all models ---


@given(model=any_model, node=st.integers(0, 2**31 - 1), duration_s=st.floats(0, 40), seed=st.integers(0, 2**64))
def test_a_track_has_ascending_times_and_rounded_positions(model, node, duration_s, seed):
    track = model.track(node, (3.25, 4.5), EXTENT, duration_s, seed)
    assert track.times_us.dtype == np.int64 and track.positions_m.dtype == np.float64
    assert track.positions_m.shape == (len(track.times_us), 2)
    assert track.times_us[0] == 0 and (np.diff(track.times_us) > 0).all()
    assert np.array_equal(track.positions_m, np.rint(track.positions_m * 1e4) / 1e4)
    if not isinstance(model, Waypoints):
        assert (track.times_us[:-1] < round(duration_s * 1e6)).all() and track.times_us[-1] >= round(duration_s * 1e6)


@given(model=st.one_of(random_waypoints, gauss_markovs), seed=st.integers(0, 99))
def test_nodes_stay_in_the_area(model, seed):
    tracks = model.tracks(range(4), [(0, 0)] * 4, EXTENT, 60, seed)
    area_m = [EXTENT[axis] if side is None else side for axis, side in enumerate((model.width_m, model.height_m))]
    for track in tracks:
        for sample in (track.positions_m, positions(track, np.arange(0, 61_000_000, 700_000))):
            assert (sample >= 0).all() and (sample <= area_m).all()


@given(model=random_waypoints, seed=st.integers(0, 99))
def test_random_trips_keep_the_limits_of_speed(model, seed):
    for track in model.tracks(range(4), [(0, 0)] * 4, EXTENT, 60, seed):
        lengths_m = np.hypot(*np.diff(track.positions_m, axis=0).T)
        moves = lengths_m > 0
        durations_s = np.diff(track.times_us)[moves] / 1e6
        assert (lengths_m[moves] <= model.fastest_m_s * durations_s * (1 + 1e-12)).all()
        # Arrivals are rounded up to the next microsecond.
        assert (lengths_m[moves] >= model.slowest_m_s * (durations_s - 1e-6) * (1 - 1e-12)).all()


@given(model=any_model, nodes=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_a_track_does_not_depend_on_other_nodes_or_their_order(model, nodes, seed):
    places = [(float(node % 7), 1.0) for node in nodes]
    together = model.tracks(nodes, places, EXTENT, 30, seed)
    backwards = model.tracks(nodes[::-1], places[::-1], EXTENT, 30, seed)
    alone = [model.track(node, place, EXTENT, 30, seed) for node, place in zip(nodes, places, strict=True)]
    assert all(map(same, together, alone)) and all(map(same, together, backwards[::-1]))


@given(model=any_model, duration_s=st.floats(1, 200), seed=st.integers(0, 99))
def test_a_longer_duration_continues_the_same_track(model, duration_s, seed):
    short, long = (model.track(5, (1, 1), EXTENT, duration, seed) for duration in (duration_s, 3 * duration_s + 50))
    count = len(short.times_us)
    assert np.array_equal(short.times_us, long.times_us[:count])
    assert np.array_equal(short.positions_m, long.positions_m[:count])


@pytest.mark.parametrize("model", [RandomWaypoint(pause_s=2), GaussMarkov()], ids=lambda model: model.kind)
def test_groups_of_nodes_do_not_change_their_tracks(model, monkeypatch):
    whole = model.tracks(range(20), [(0, 0)] * 20, EXTENT, 50, 1)
    monkeypatch.setattr(models, "_MOST_STEPS_AT_ONCE", 100)
    assert all(map(same, whole, model.tracks(range(20), [(0, 0)] * 20, EXTENT, 50, 1)))


@pytest.mark.parametrize("model", [RandomWaypoint(), GaussMarkov()], ids=lambda model: model.kind)
def test_tracks_differ_by_node_and_seed_and_the_models_own_seed_comes_first(model):
    track = model.track(1, (0, 0), EXTENT, 30, 1)
    assert not same(track, model.track(2, (0, 0), EXTENT, 30, 1))
    assert not same(track, model.track(1, (0, 0), EXTENT, 30, 2))
    seeded = type(model)(seed=1)
    assert same(track, seeded.track(1, (0, 0), EXTENT, 30, 99))


def test_the_key_of_a_node_is_that_of_the_scalar_draws():
    keys = models._make_keys(7, 2, np.array([0, 5, 2**31 - 1]))
    assert keys.tolist() == [draws.make_key(7, purposes.MOBILITY, 2, node) for node in (0, 5, 2**31 - 1)]


def digest(model):
    sha = hashlib.sha256()
    for track in model.tracks(range(10), [(1.5, 2.5)] * 10, EXTENT, 100, 1):
        sha.update(track.times_us.astype("<i8").tobytes())
        sha.update(np.rint(track.positions_m * 1e4).astype("<i8").tobytes())
    return sha.hexdigest()[:16]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (RandomWaypoint(), "a9e20939172804bc"),
        (RandomWaypoint(width_m=30, pause_s=5, slowest_m_s=0.1), "0ce103de7fb2b8d7"),
        (GaussMarkov(), "8084689302be9683"),
    ],
    ids=["random waypoint", "with pauses", "Gauss-Markov"],
)
def test_tracks_are_the_same_on_every_machine(model, expected):
    assert digest(model) == expected


class Imprecise:
    """A numpy whose transcendental functions differ from this machine's in the last bit, as another machine's may."""

    def __getattr__(self, name):
        function = getattr(np, name)
        if name in {"cos", "sin", "log", "exp"}:
            return lambda values: np.nextafter(function(values), np.where(values.ravel()[0] > 0.5, 9.0, -9.0))
        return function


@pytest.mark.parametrize("model", [RandomWaypoint(), GaussMarkov()], ids=lambda model: model.kind)
def test_the_last_bit_of_a_logarithm_or_a_cosine_does_not_reach_a_track(model, monkeypatch):
    exact = model.tracks(range(300), [(0, 0)] * 300, EXTENT, 100, 1)
    monkeypatch.setattr(models, "np", Imprecise())
    assert all(map(same, exact, model.tracks(range(300), [(0, 0)] * 300, EXTENT, 100, 1)))


def test_tracks_are_the_same_in_another_process():
    code = (
        "import workbench as wb; track = wb.mobility.GaussMarkov().track(7, (0, 0), (60, 20), 9, 3); "
        "print(track.positions_m[-1].tolist())"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(process.stdout) == GaussMarkov().track(7, (0, 0), EXTENT, 9, 3).positions_m[-1].tolist()


def test_shared_arrays_are_read_only():
    for model in (RandomWaypoint(), GaussMarkov(), Waypoints([(0, 1, 2), (3, 4, 5)]), Waypoints([(1, 1, 2)])):
        for array in model.track(0, (0, 0), EXTENT, 10, 1):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


# --- values ---


@given(model=any_model)
def test_a_model_survives_json_pickle_and_repr(model):
    form = json.loads(json.dumps(model.to_dict(), allow_nan=False))
    for twin in (from_dict(form), type(model).from_dict(form), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin == model and hash(twin) == hash(model) and type(twin) is type(model)
        assert same(twin.track(1, (2, 3), EXTENT, 20, 1), model.track(1, (2, 3), EXTENT, 20, 1))
    if not isinstance(model, Waypoints) or len(model.points) <= 4:
        assert eval(repr(model)) == model


def test_models_have_their_names_in_json():
    assert {"waypoints": Waypoints, "random_waypoint": RandomWaypoint, "gauss_markov": GaussMarkov} == MODELS
    assert from_dict({"kind": "random_waypoint", "pause_s": 3}) == RandomWaypoint(pause_s=3)
    assert wb.mobility.RandomWaypoint is RandomWaypoint
    assert RandomWaypoint() != RandomWaypoint(pause_s=1) and RandomWaypoint() != GaussMarkov()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "mapping whose kind is waypoints, random_waypoint, gauss_markov"),
        ({"kind": "random_waypoints"}, "did you mean random_waypoint?"),
        ({"kind": ["waypoints"]}, "mapping whose kind is"),
        ({"kind": "waypoints"}, "Waypoints lacks the argument points"),
        ({"kind": "waypoints", "points": 3}, "points is 3"),
        ({"kind": "waypoints", "points": [[0, "a", 1]]}, "three finite numbers"),
        ({"kind": "gauss_markov", "memorry": 1}, "did you mean memory?"),
        ({"kind": "gauss_markov", 5: 1}, "no parameter '5'"),
        ({"kind": "gauss_markov", "memory": 2}, "memory is 2; it must be a number from 0 to 1."),
    ],
)
def test_a_wrong_form_is_an_error_that_names_the_fault(form, message):
    with pytest.raises(ScenarioError, match=message.replace("?", r"\?").replace("(", r"\(")):
        from_dict(form)


@pytest.mark.parametrize("kind", list(MODELS))
def test_a_form_of_another_kind_is_refused(kind):
    other = next(name for name in MODELS if name != kind)
    with pytest.raises(ScenarioError, match=f"kind '{kind}'"):
        MODELS[kind].from_dict({"kind": other})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomWaypoint(slowest_m_s=0), "slowest_m_s is 0; it must be .* become slower for ever"),
        (lambda: RandomWaypoint(fastest_m_s=float("nan")), "fastest_m_s is nan"),
        (lambda: RandomWaypoint(slowest_m_s=3, fastest_m_s=2), "fastest_m_s is 2; it must be at least slowest_m_s, 3"),
        (lambda: RandomWaypoint(slowest_m_s=True), "slowest_m_s is True"),
        (lambda: RandomWaypoint(width_m=-1), "RandomWaypoint: width_m is -1"),
        (lambda: RandomWaypoint(width_m=0, height_m=0.04), "the area is 0 m x 0.04 m"),
        (lambda: RandomWaypoint(pause_s="1"), "pause_s is '1'"),
        (lambda: RandomWaypoint(seed=-1), "seed is -1"),
        (lambda: RandomWaypoint(widht_m=5), "did you mean width_m?"),
        (lambda: GaussMarkov(memory=1.5), "GaussMarkov: memory is 1.5; it must be a number from 0 to 1."),
        (lambda: GaussMarkov(step_s=0), "step_s is 0; it must be a number from 0.01 to 3600 s"),
        (lambda: GaussMarkov(seed=1.5), "seed is 1.5"),
        (lambda: Waypoints([]), r"points is \[\]; it must be a list of 1 to 1,000,000 points"),
        (lambda: Waypoints("abc"), "point 0 is"),
        (lambda: Waypoints([(0, 0)]), r"point 0 is \(0, 0\)"),
        (lambda: Waypoints([(0, 0, 0), (1, "2", 3)]), "point 1 is .* three finite numbers"),
        (lambda: Waypoints([(0, 0, True)]), "point 0 is"),
        (lambda: Waypoints([(0, 0, float("inf"))]), "point 0 is .* its time must be from 0 to 1e"),
        (lambda: Waypoints([(0, 0, 10**400)]), "point 0 is"),
        (lambda: Waypoints([(-1, 0, 0)]), "point 0 is .* from 0"),
        (
            lambda: Waypoints([(5, 0, 0), (5, 1, 1)]),
            "point 1 is at 5.0 s, .* at 5.0 s; times must ascend",
        ),
    ],
)
def test_a_wrong_parameter_is_an_error_that_names_it(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": [-1]}, "node is -1"),
        ({"nodes": [1.5]}, "node is 1.5"),
        ({"nodes": [1, 2]}, "places_m has 1 positions for 2 nodes"),
        ({"places_m": [(1, float("nan"))]}, r"place_m is \(1, nan\)"),
        ({"extent_m": (-1, 5)}, "extent_m is"),
        ({"extent_m": 5}, "extent_m is 5"),
        ({"extent_m": (0, 0)}, "the area is 0 m x 0 m"),
        ({"duration_s": -1}, "duration_s is -1"),
        ({"duration_s": float("inf")}, "duration_s is inf"),
        ({"seed": "1"}, "seed is '1'"),
        ({"sead": 1}, "did you mean seed?"),
    ],
)
@pytest.mark.parametrize("model", [RandomWaypoint(), GaussMarkov()], ids=lambda model: model.kind)
def test_a_wrong_argument_is_an_error_that_names_it(model, changes, message):
    arguments = {"nodes": [1], "places_m": [(0, 0)], "extent_m": EXTENT, "duration_s": 10, "seed": 1} | changes
    with pytest.raises(ParameterError, match=message):
        model.tracks(**arguments)


def test_a_track_with_too_many_vertices_is_refused():
    with pytest.raises(ParameterError, match=r"a node makes about .* trips in 1e\+09 s"):
        RandomWaypoint(width_m=1, height_m=1).track(0, (0, 0), EXTENT, 1e9, 1)
    with pytest.raises(ParameterError, match="have 1,000,001 steps of 1 s"):
        GaussMarkov().track(0, (0, 0), EXTENT, 1_000_001, 1)


# --- waypoints ---


def test_the_place_of_a_node_is_its_position_at_the_start_unless_a_waypoint_has_time_0():
    later, first = Waypoints([(10, 5, 5)]), Waypoints([(0, 5, 5)])
    assert positions(later.track(0, (1, 1), EXTENT, 20, 1), [0, 5_000_000, 10**7]).tolist() == [[1, 1], [3, 3], [5, 5]]
    assert positions(first.track(0, (1, 1), EXTENT, 20, 1), [0]).tolist() == [[5, 5]]


def test_two_waypoints_at_the_same_position_are_a_pause():
    track = Waypoints([(0, 0, 0), (2, 4, 0), (6, 4, 0), (8, 0, 0)]).track(0, (9, 9), EXTENT, 20, 1)
    assert positions(track, np.arange(0, 9) * 10**6)[:, 0].tolist() == [0, 2, 4, 4, 4, 4, 4, 2, 0]


def test_waypoints_are_rounded_so_that_equal_tracks_are_equal_values():
    assert Waypoints([(1.0000004, 2.00004, 3)]) == Waypoints(((1, 2, 3),)) == Waypoints(np.array([[1, 2, 3]]))
    assert repr(Waypoints([(second, 0, 0) for second in range(9)])) == "Waypoints(9 points, 0 to 8 s)"

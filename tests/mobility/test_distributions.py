"""The distributions of random tracks, against published formulas and against simulations written here.

Samples are fixed by their seeds, so a test gives the same result each time. With forty other seeds the p-values of the
tests of densities, speeds and pauses were uniform, as those of true hypotheses are.

The simulations are independent of the package: they use numpy's generator, begin in any state, and run until the start
no longer matters. (The project "pymobility" on PyPI is not the simulator of that name: it analyses traces of GPS.)
"""

import math

import numpy as np
import pytest
from scipy import stats

from workbench.mobility import GaussMarkov, RandomWaypoint, models, positions

LEVEL = 0.001
WIDTH_M, HEIGHT_M = 100.0, 50.0
COUNT = 6000
COLUMNS, ROWS = 8, 5


def draw(model, duration_s, count=COUNT, extent_m=(WIDTH_M, HEIGHT_M), seed=1):
    return model.tracks(range(count), [(0, 0)] * count, extent_m, duration_s, seed)


def at(tracks, time_s):
    return np.concatenate([positions(track, round(time_s * 1e6)) for track in tracks])


def count_cells(positions_m):
    edges = np.linspace(0, WIDTH_M, COLUMNS + 1), np.linspace(0, HEIGHT_M, ROWS + 1)
    return np.histogram2d(*positions_m.T, edges)[0].ravel()


def moving_density(x_m, y_m):
    """Return the stationary density, up to a factor, of a node that moves by the random waypoint model.

    It is the integral of a b (a + b) over all directions; a and b are the distances to the edge ahead and behind
    (E. Hyytiä, P. Lassila, J. Virtamo, IEEE TMC 5(6), 2006).
    """
    angles = (np.arange(180) + 0.5) * math.pi / 180
    ahead, behind = (
        np.minimum(
            np.where(np.cos(angle) > 0, WIDTH_M - x_m[..., None], x_m[..., None]) / np.abs(np.cos(angle)),
            np.where(np.sin(angle) > 0, HEIGHT_M - y_m[..., None], y_m[..., None]) / np.abs(np.sin(angle)),
        )
        for angle in (angles, angles + math.pi)
    )
    return (ahead * behind * (ahead + behind)).sum(axis=-1)


@pytest.fixture(scope="module")
def moving_shares():
    """Return the share of a moving node's time in each cell."""
    finer = 6
    x_m = (np.arange(COLUMNS * finer) + 0.5) * WIDTH_M / (COLUMNS * finer)
    y_m = (np.arange(ROWS * finer) + 0.5) * HEIGHT_M / (ROWS * finer)
    density = moving_density(*np.meshgrid(x_m, y_m, indexing="ij"))
    shares = density.reshape(COLUMNS, finer, ROWS, finer).sum(axis=(1, 3)).ravel()
    return shares / shares.sum()


def p_of_cells(positions_m, shares):
    return stats.chisquare(count_cells(positions_m), shares * len(positions_m)).pvalue


# --- random waypoint ---


def test_the_mean_distance_is_that_of_two_uniform_points():
    assert models._mean_distance_m(1, 1) == pytest.approx(0.5214054331, abs=1e-9)  # known, for example from Ghosh
    assert models._mean_distance_m(3, 0) == 1
    assert models._mean_distance_m(100, 0.02) == pytest.approx(100 / 3, rel=1e-6)
    uniform = np.random.default_rng(1).uniform(size=(200_000, 2, 2)) * (WIDTH_M, HEIGHT_M)
    distances_m = np.hypot(*(uniform[:, 0] - uniform[:, 1]).T)
    error_m = distances_m.std() / math.sqrt(len(distances_m))
    for mean_m in (models._mean_distance_m(WIDTH_M, HEIGHT_M), models._mean_distance_m(HEIGHT_M, WIDTH_M)):
        assert mean_m == pytest.approx(distances_m.mean(), abs=4 * error_m)


@pytest.mark.parametrize("time_s", [0, 37.5, 400])
def test_moving_nodes_have_the_stationary_density_from_time_0_on(moving_shares, time_s):
    positions_m = at(draw(RandomWaypoint(), time_s), time_s)
    assert p_of_cells(positions_m, moving_shares) > LEVEL
    assert p_of_cells(positions_m, np.full(COLUMNS * ROWS, 1 / COLUMNS / ROWS)) < 1e-60


def test_on_a_line_the_density_is_a_parabola():
    x_m = at(draw(RandomWaypoint(), 90, extent_m=(WIDTH_M, 0)), 90)[:, 0]
    # Its integral is that of 6 x (1 - x) (C. Bettstetter, G. Resta, P. Santi, IEEE TMC 2(3), 2003).
    assert stats.kstest(x_m / WIDTH_M, lambda x: 3 * x**2 - 2 * x**3).pvalue > LEVEL


def speeds_at(tracks, time_s):
    """Return each node's speed in m/s at a time, 0 if it pauses."""
    speeds = []
    for track in tracks:
        end = int(np.searchsorted(track.times_us, round(time_s * 1e6), side="right"))
        length_m = math.dist(*track.positions_m[end - 1 : end + 1])
        speeds.append(length_m / (track.times_us[end] - track.times_us[end - 1]) * 1e6)
    return np.array(speeds)


@pytest.mark.parametrize("time_s", [0, 250])
def test_speeds_are_stationary_from_time_0_on(time_s):
    model = RandomWaypoint(slowest_m_s=0.2, fastest_m_s=4)
    speeds = speeds_at(draw(model, 300), time_s)
    ratio = math.log(4 / 0.2)
    assert stats.kstest(speeds, lambda speed: np.log(np.clip(speed, 0.2, 4) / 0.2) / ratio).pvalue > LEVEL
    assert speeds.mean() == pytest.approx(3.8 / ratio, abs=4 * speeds.std() / math.sqrt(COUNT))  # 1.27 and not 2.1


@pytest.mark.parametrize("time_s", [0, 250])
def test_pauses_are_stationary_and_their_nodes_uniform(moving_shares, time_s):
    model = RandomWaypoint(pause_s=30)
    tracks = draw(model, 300)
    is_paused = speeds_at(tracks, time_s) == 0
    mean_trip_s = models._mean_distance_m(WIDTH_M, HEIGHT_M) * math.log(3)
    assert stats.binomtest(int(is_paused.sum()), COUNT, 30 / (30 + mean_trip_s)).pvalue > LEVEL
    positions_m = at(tracks, time_s)
    assert p_of_cells(positions_m[is_paused], np.full(COLUMNS * ROWS, 1 / COLUMNS / ROWS)) > LEVEL
    assert p_of_cells(positions_m[~is_paused], moving_shares) > LEVEL
    if time_s == 0:
        rests_s = [track.times_us[1] / 1e6 for track, pauses in zip(tracks, is_paused, strict=True) if pauses]
        assert stats.kstest(rests_s, "uniform", (0, 30)).pvalue > LEVEL


def test_the_points_and_speeds_of_later_trips_are_uniform():
    trips = [
        (
            *track.positions_m[vertex + 1],
            math.dist(*track.positions_m[vertex : vertex + 2]),
            track.times_us[vertex + 1] - track.times_us[vertex],
        )
        for track in draw(RandomWaypoint(), 1500, count=1500)
        for vertex in (2, 3)  # the first trip is longer, as it is under way at time 0, and ends where long trips end
    ]
    x_m, y_m, lengths_m, durations_us = np.array(trips).T
    assert p_of_cells(np.column_stack((x_m, y_m)), np.full(COLUMNS * ROWS, 1 / COLUMNS / ROWS)) > LEVEL
    assert stats.kstest(lengths_m / durations_us * 1e6, "uniform", (0.5, 1)).pvalue > LEVEL
    mean_m = models._mean_distance_m(WIDTH_M, HEIGHT_M)
    assert lengths_m.mean() == pytest.approx(mean_m, abs=4 * lengths_m.std() / math.sqrt(len(lengths_m)))


def simulate_waypoints(count, pause_s, until_s):
    """Return positions and speeds of nodes that start at uniform points, after ``until_s`` seconds; plain numpy."""
    random = np.random.default_rng(1)
    here_m, now_s = random.uniform(size=(count, 2)) * (WIDTH_M, HEIGHT_M), np.zeros(count)
    result_m, speeds = here_m.copy(), np.zeros(count)
    while now_s.min() <= until_s:
        there_m, speed = random.uniform(size=(count, 2)) * (WIDTH_M, HEIGHT_M), random.uniform(0.5, 1.5, count)
        duration_s = np.hypot(*(there_m - here_m).T) / speed
        is_moving = (now_s <= until_s) & (until_s < now_s + duration_s)
        is_paused = (now_s + duration_s <= until_s) & (until_s < now_s + duration_s + pause_s)
        share = ((until_s - now_s) / duration_s)[:, None]
        result_m = np.where(is_moving[:, None], here_m + share * (there_m - here_m), result_m)
        result_m = np.where(is_paused[:, None], there_m, result_m)
        speeds = np.where(is_moving, speed, np.where(is_paused, 0, speeds))
        here_m, now_s = there_m, now_s + duration_s + pause_s
    return result_m, speeds


def test_random_waypoints_are_distributed_as_in_a_long_simulation():
    simulated_m, simulated_speeds = simulate_waypoints(COUNT, 20, 2000)
    tracks = draw(RandomWaypoint(pause_s=20), 60)
    drawn_m = at(tracks, 0)
    assert stats.ks_2samp(speeds_at(tracks, 0), simulated_speeds).pvalue > LEVEL
    for function in (
        lambda positions_m: positions_m[:, 0],
        lambda positions_m: positions_m[:, 1],
        lambda positions_m: np.hypot(*(positions_m - (WIDTH_M / 2, HEIGHT_M / 2)).T),
    ):
        assert stats.ks_2samp(function(drawn_m), function(simulated_m)).pvalue > LEVEL


# --- Gauss-Markov ---

WIDE_M = (1e6, 1e6)  # hardly any node is reflected


def steps_of(model, count=4000, steps=40, extent_m=WIDE_M):
    """Return the shifts (count, steps, 2) in m of nodes during each step."""
    tracks = draw(model, steps * model.step_s, count, extent_m)
    return np.stack([np.diff(track.positions_m, axis=0) for track in tracks])


@pytest.mark.parametrize(("memory", "step_s"), [(0.0, 1.0), (0.75, 0.5), (0.98, 2.0)])
def test_speeds_have_their_mean_their_sigma_and_their_memory(memory, step_s):
    model = GaussMarkov(mean_m_s=2, speed_sigma_m_s=0.3, memory=memory, step_s=step_s)
    speeds = np.linalg.norm(steps_of(model), axis=2) / step_s
    for step in (0, 1, 39):
        assert stats.kstest(speeds[:, step], "norm", (2, 0.3)).pvalue > LEVEL
    for lag in (1, 2, 5, 20):
        correlation = np.corrcoef(speeds[:, 3], speeds[:, 3 + lag])[0, 1]
        assert math.atanh(correlation) == pytest.approx(math.atanh(memory**lag), abs=4 / math.sqrt(len(speeds)))


@pytest.mark.parametrize("memory", [0.0, 0.75])
def test_directions_keep_to_a_mean_that_is_uniform(memory):
    shifts_m = steps_of(GaussMarkov(direction_sigma_rad=0.4, memory=memory))
    directions = np.arctan2(shifts_m[..., 1], shifts_m[..., 0])
    assert stats.kstest(directions[:, 0] % (2 * math.pi), "uniform", (0, 2 * math.pi)).pvalue > LEVEL
    for lag in (1, 30):
        turns = (directions[:, 5 + lag] - directions[:, 5] + math.pi) % (2 * math.pi) - math.pi
        sigma = 0.4 * math.sqrt(2 * (1 - memory**lag))
        assert stats.kstest(turns, "norm", (0, sigma)).pvalue > LEVEL


def test_full_memory_is_a_straight_path_with_constant_speed():
    shifts_m = steps_of(GaussMarkov(memory=1, step_s=100), count=50)
    assert np.abs(shifts_m - shifts_m[:, :1]).max() <= 1.5e-4


@pytest.mark.parametrize("time_s", [0, 5, 100])
def test_reflected_nodes_are_uniform_from_time_0_on(time_s):
    positions_m = at(draw(GaussMarkov(), time_s), time_s)
    assert p_of_cells(positions_m, np.full(COLUMNS * ROWS, 1 / COLUMNS / ROWS)) > LEVEL


def test_a_path_outside_the_area_is_mirrored_at_its_edges():
    path = np.array([-25, -10, -1, 0, 3, 10, 11, 19, 20, 21, 47])
    assert models._reflect(path, 10).tolist() == [5, 10, 1, 0, 3, 10, 9, 1, 0, 1, 7]
    assert models._reflect(path, 0).tolist() == [0] * len(path)


def simulate_gauss_markov(count, steps):
    """Return the positions (steps + 1, count, 2) of nodes that are reflected step by step; plain numpy."""
    random = np.random.default_rng(1)
    here_m = random.uniform(size=(count, 2)) * (WIDTH_M, HEIGHT_M)
    speed, mean_direction = np.full(count, 1.0), random.uniform(0, 2 * math.pi, count)
    direction, innovation = mean_direction.copy(), math.sqrt(1 - 0.9**2)
    path = []
    for step in range(steps + 101):
        if step >= 100:  # the first 100 steps bring speeds and directions into their stationary state
            path.append(here_m.copy())
        here_m = here_m + speed[:, None] * np.column_stack((np.cos(direction), np.sin(direction)))
        for axis, size in enumerate((WIDTH_M, HEIGHT_M)):
            is_outside = (here_m[:, axis] < 0) | (here_m[:, axis] > size)
            here_m[:, axis] = np.where(here_m[:, axis] < 0, -here_m[:, axis], here_m[:, axis])
            here_m[:, axis] = np.where(here_m[:, axis] > size, 2 * size - here_m[:, axis], here_m[:, axis])
            for angle in (direction, mean_direction):
                angle[is_outside] = (math.pi if axis == 0 else 0) - angle[is_outside]
        speed = 0.9 * speed + 0.1 * 1.0 + innovation * 0.2 * random.normal(size=count)
        direction = 0.9 * direction + 0.1 * mean_direction + innovation * 0.5 * random.normal(size=count)
    return np.array(path)


def test_gauss_markov_paths_are_distributed_as_in_a_simulation_step_by_step():
    count, steps = 5000, 90
    level = LEVEL / 12  # of each of twelve comparisons, so that all together keep the level (Bonferroni)
    simulated_m = simulate_gauss_markov(count, steps)
    tracks = draw(GaussMarkov(memory=0.9), steps, count)
    drawn_m = np.stack([track.positions_m for track in tracks], axis=1)
    for step in (1, 10, 45, 90):
        for axis in (0, 1):
            assert stats.ks_2samp(drawn_m[step, :, axis], simulated_m[step, :, axis]).pvalue > level
        distances_m = (np.linalg.norm(path[step] - path[0], axis=1) for path in (drawn_m, simulated_m))
        assert stats.ks_2samp(*distances_m).pvalue > level

"""Plans that depend on results: adaptive, sensitivity, search. Their measures have known answers."""

import sys

import numpy as np
import pytest

import workbench as wb
from tests.sweeps.test_plans import LOSS, SILENT, TTL, scenario
from workbench import plans
from workbench.errors import ParameterError, ScenarioError, WorkbenchError
from workbench.sweeps import LocalRunner

BOTH = {LOSS: plans.between(0.0, 0.5), TTL: plans.whole(1, 100)}


class Recording:
    """A runner in this process that counts the points it ran, and is interrupted after some points."""

    def __init__(self, points=10**9):
        self.points, self.ran = points, 0

    def run(self, plan, numbers, report_progress):
        for rows in LocalRunner().run(plan, numbers, report_progress):
            if self.ran >= self.points:
                raise KeyboardInterrupt
            self.ran += len(rows)
            yield rows


def first_run(driver, folder):
    return driver.run(out=folder, runner=Recording(), progress=False)


def runs_again(driver, folder):
    """Return the result and the points that a new, equal driver runs in a folder that has all results."""
    recording = Recording()
    return driver.run(out=folder, runner=recording, progress=False), recording.ran


# Adaptive sweeps


def noise(run):
    """Return a value around 10 that varies as much as the loss is large."""
    hashed = wb.draws.uniform(wb.draws.make_key(run.scenario.seed, 1), 0)
    return {"noise": 10 + run.scenario.radio.loss * (hashed - 0.5)}


def until_narrow(**keywords):
    over = {LOSS: [0.0, 0.1, 0.8]}
    return plans.adaptive(scenario(), over, "noise", **{"narrower_than": 0.15, "measure": noise, **keywords})


def test_each_combination_is_run_just_until_its_band_is_narrow():
    narrow = until_narrow()
    table = narrow.run(**SILENT)
    bands = narrow.bands
    assert bands[LOSS].tolist() == [0.0, 0.1, 0.8]
    assert bands["is_narrow"].all()
    assert (bands["high"] - bands["low"] <= 0.15).all()
    # The standard deviation of a uniform draw is its width / sqrt(12), so that 0.8 needs 4 t² 0.053 / 0.15² runs.
    assert bands["runs"].tolist()[:2] == [10, 10]
    assert 25 <= bands["runs"].tolist()[2] <= 60
    assert len(table) == bands["runs"].sum()
    means = table.to_pandas().groupby(LOSS)["noise"].mean().tolist()
    assert bands["mean"].tolist() == pytest.approx(means)
    assert table.summary(LOSS, "noise")["runs"].tolist() == bands["runs"].tolist()


def test_no_combination_exceeds_the_maximum_number_of_runs():
    narrow = until_narrow(narrower_than=1e-6, at_most=17)
    assert len(narrow.run(**SILENT)) == 10 + 2 * 17
    assert narrow.bands["is_narrow"].tolist() == [True, False, False]


def test_seeds_may_be_a_plan():
    seeds = plans.paired_seeds(12, topology=wb.topology.disc(9, 40, 40))
    table = until_narrow(narrower_than=1e-6, seeds=seeds).run(**SILENT)
    frame = table.to_pandas()
    assert frame.groupby(LOSS)["topology"].nunique().tolist() == [10, 12, 12]


def test_an_adaptive_sweep_continues_where_it_was_stopped(tmp_path):
    undisturbed = until_narrow().run(**SILENT)
    stopped = Recording(points=33)
    with pytest.raises(KeyboardInterrupt, match="run it again"):
        until_narrow().run(out=tmp_path, runner=stopped, progress=False)
    table, ran = runs_again(until_narrow(), tmp_path)
    assert ran == len(undisturbed) - 33
    assert table.to_pandas()["noise"].tolist() == undisturbed.to_pandas()["noise"].tolist()
    assert runs_again(until_narrow(), tmp_path)[1] == 0


def test_a_combination_without_the_metric_is_not_run_for_ever():
    narrow = plans.adaptive(scenario(), {TTL: [1, 9]}, "latency_ms_p50", narrower_than=1000.0, at_least=3, at_most=50)
    narrow.run(**SILENT)
    assert narrow.bands["is_narrow"].tolist() == [False, True]
    assert narrow.bands["runs"].tolist() == [0, 3]


# Sensitivity


def linear(run):
    """Return a linear metric: 7 over the whole range of the loss, 1 over that of the ttl, nothing random."""
    return {"answer": 14 * run.scenario.radio.loss + (run.scenario.protocol.ttl - 1) / 99}


def product(run):
    """Return a metric in which neither parameter has an effect without the other."""
    return {"answer": (2 * run.scenario.radio.loss - 0.5) * (run.scenario.protocol.ttl - 50.5)}


def estimate_effects(measure=linear, **keywords):
    settings = {"samples": 8, "seeds": 2, "measure": measure, **keywords}
    return plans.sensitivity(scenario(), {TTL: BOTH[TTL], LOSS: BOTH[LOSS]}, "answer", **settings)


def test_morris_finds_the_effects_of_a_linear_metric():
    indices = estimate_effects().run(**SILENT).indices
    assert indices["parameter"].tolist() == [LOSS, TTL]
    assert indices["mu_star"].tolist() == pytest.approx([7, 1], rel=0.03)
    assert indices["mu"].tolist() == pytest.approx([7, 1], rel=0.03)
    assert indices["sigma"].tolist() == pytest.approx([0, 0], abs=0.03)


def test_sobol_finds_shares_of_the_variance():
    indices = estimate_effects(method="sobol", samples=64, seeds=1).run(**SILENT).indices
    assert indices["parameter"].tolist() == [LOSS, TTL]
    assert indices["S1"].tolist() == pytest.approx([49 / 50, 1 / 50], abs=0.1)
    assert indices["ST"].tolist() == pytest.approx([49 / 50, 1 / 50], abs=0.1)


def test_sobol_detects_an_interaction():
    indices = estimate_effects(product, method="sobol", samples=64, seeds=1).run(**SILENT).indices
    assert (indices["S1"].abs() < 0.3).all()
    assert (indices["ST"] > 0.7).all()


def test_a_point_of_several_samples_is_run_once(tmp_path):
    over = {LOSS: [0.0, 0.5], TTL: [1, 2]}
    driver = plans.sensitivity(scenario(), over, "answer", samples=20, seeds=3, measure=linear)
    assert len(driver) == 4 * 3
    first_run(driver, tmp_path)
    again = plans.sensitivity(scenario(), over, "answer", samples=20, seeds=3, measure=linear)
    assert runs_again(again, tmp_path)[1] == 0


def sometimes(run):
    if run.scenario.radio.loss > 0.49 and run.scenario.protocol.ttl == 1:
        raise ValueError("no answer here")
    return linear(run)


def test_a_sample_with_a_failed_point_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match=r"\d of 30 samples are left out"):
        indices = estimate_effects(sometimes, samples=30).run(**SILENT).indices
    assert indices["mu_star"].tolist() == pytest.approx([7, 1], rel=0.03)


def test_a_constant_metric_is_reported():
    with pytest.raises(WorkbenchError, match="answer is 3 at all points"):
        estimate_effects(lambda run: {"answer": 3.0}).run(**SILENT)


@pytest.mark.parametrize(("method", "words"), [("morris", "trajectories"), ("sobol", "base points")])
def test_the_chart_has_each_parameter_and_how_it_was_estimated(method, words, tmp_path):
    result = estimate_effects(method=method).run(**SILENT)
    path = tmp_path / "chart.svg"
    result.plot().save(path)
    text = path.read_text()
    for text_ in ("loss (share of frames)", "ttl (hops)", "answer", f"8 {words}"):
        assert text_ in text
    assert f"{result.indices.iloc[0, 1]:.4g}" in text
    assert "<table" in result._repr_html_()


# Search


def bowl(run):
    """Return a metric whose minimum is at a loss of 0.2, and a cost that grows with the loss."""
    loss = run.scenario.radio.loss
    return {"answer": (loss - 0.2) ** 2 + 1e-4 * run.scenario.protocol.ttl, "cost": 10 * loss}


def lowest(**keywords):
    settings = {"minimize": "answer", "trials": 40, "seeds": 1, "measure": bowl, **keywords}
    return plans.search(scenario(), {LOSS: BOTH[LOSS], TTL: plans.whole(1, 9)}, **settings)


def test_a_search_finds_the_minimum():
    result = lowest().run(**SILENT)
    assert result.best[LOSS] == pytest.approx(0.2, abs=0.03)
    assert result.scenario == scenario(**result.best)
    best = result.trials.loc[result.trials["answer"].idxmin()]
    assert best[LOSS] == result.best[LOSS]
    assert len(result.trials) == 40


def test_the_best_trial_fulfils_the_constraints():
    result = lowest(subject_to=["cost <= 1", "answer >= 0"]).run(**SILENT)
    assert result.best[LOSS] == pytest.approx(0.1, abs=0.02)
    assert (result.trials["cost"] <= 1).tolist() == result.trials["is_feasible"].tolist()
    assert not result.trials["is_feasible"].all()


def test_a_search_finds_the_maximum():
    result = lowest(minimize=None, maximize="cost", subject_to="answer <= 0.01").run(**SILENT)
    assert result.best[LOSS] == pytest.approx(0.3, abs=0.02)


def test_a_search_continues_where_it_was_stopped(tmp_path):
    undisturbed = lowest(trials=24).run(**SILENT)
    with pytest.raises(KeyboardInterrupt, match="run it again"):
        lowest(trials=24).run(out=tmp_path, runner=Recording(points=13), progress=False)
    result, ran = runs_again(lowest(trials=24), tmp_path)
    assert result.best == undisturbed.best
    assert ran == len(undisturbed.table) - 13
    longer, ran = runs_again(lowest(trials=32), tmp_path)
    assert ran <= 8
    assert longer.trials[LOSS].tolist()[:24] == undisturbed.trials[LOSS].tolist()


def test_a_search_chooses_among_objects():
    over = {"protocol": {"few": wb.Flooding(ttl=1), "many": wb.Flooding(ttl=9)}}
    result = plans.search(scenario(), over, maximize="delivery_ratio", trials=8, seeds=1).run(**SILENT)
    assert result.best["protocol"] == wb.Flooding(ttl=9)
    assert set(result.trials["protocol"]) == {"few", "many"}


def test_a_search_without_a_feasible_trial_reports_the_nearest_one():
    with pytest.raises(
        WorkbenchError,
        match=r"none of 6 trials satisfies cost >= 7; the trial .* least has answer .*, cost [2-4]",
    ):
        lowest(trials=6, subject_to="cost >= 7").run(**SILENT)


def test_failed_trials_are_ignored():
    with pytest.warns(UserWarning, match="points failed"):
        result = lowest(measure=half_of_it, trials=24).run(**SILENT)
    assert result.best[LOSS] < 0.1
    assert np.isnan(result.trials["answer"]).any()


def half_of_it(run):
    if run.scenario.radio.loss > 0.1:
        raise ValueError("too lossy")
    return bowl(run)


# Errors


WRONG = [
    (lambda: until_narrow(narrower_than=0), "argument `narrower_than` is 0"),
    (lambda: until_narrow(at_least=1), "argument `at_least` is 1"),
    (lambda: until_narrow(at_least=20, at_most=10), "`at_least` is 20; it must be a whole number from 2 to 10"),
    (lambda: until_narrow(seeds=plans.points([{TTL: 3}])), "must vary the seed"),
    (lambda: plans.adaptive(scenario(), {"seed": [3]}, narrower_than=1), "both plans vary seed"),
    (lambda: plans.adaptive(scenario(), {"protocol.tt": [3]}, narrower_than=1), "ttl"),
    (lambda: estimate_effects(method="moris"), "one of morris, sobol"),
    (lambda: estimate_effects(samples=3), "argument `samples` is 3"),
    (lambda: estimate_effects(method="sobol", samples=100), "must be a power of two"),
    (lambda: plans.sensitivity(scenario(), {LOSS: plans.between(0, 0.5)}), "needs at least two"),
    (lambda: plans.sensitivity(scenario(), {LOSS: plans.between(0, 3), TTL: [1, 2]}), "loss"),
    (lambda: lowest(minimize=None), "exactly one goal"),
    (lambda: lowest(maximize="cost"), "exactly one goal"),
    (lambda: lowest(minimize=3), "metric of the search is 3"),
    (lambda: lowest(subject_to="cost = 3"), "a constraint is 'cost = 3'"),
    (lambda: lowest(subject_to="cost <= 1e"), "a constraint is"),
    (lambda: lowest(subject_to=[7]), "a constraint is 7"),
    (lambda: lowest(trials=0), "argument `trials` is 0"),
    (lambda: plans.search(scenario(), {LOSS: plans.between(0, 3)}, minimize="cost"), "loss"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG, ids=[message for _, message in WRONG])
def test_invalid_plans_are_refused_before_anything_runs(make, message):
    with pytest.raises(ScenarioError, match=message):
        make()


@pytest.mark.parametrize("driver", [until_narrow, estimate_effects, lowest])
def test_an_unknown_metric_is_refused_with_a_suggestion(driver):
    wrong = driver()
    wrong._metric = "answr" if driver is not until_narrow else "nois"
    with pytest.raises(ParameterError, match="did you mean (answer|noise)"):
        wrong.run(**SILENT)


@pytest.mark.parametrize(("library", "use"), [("SALib", estimate_effects), ("optuna", lambda: lowest().run(**SILENT))])
def test_a_missing_library_is_named_with_the_command_that_installs_it(library, use, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(WorkbenchError, match=f"needs {library} .*: pip install '{library}>=[\\d.]+'$"):
        use()

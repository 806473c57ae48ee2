"""Plans that go by the results: adaptive, sensitivity, search. A measure computes what they should find."""

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
    """Runs in this process, counts what it ran, and is interrupted after some points."""

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
    """What the same driver, made anew, runs in a folder that has all results."""
    recording = Recording()
    return driver.run(out=folder, runner=recording, progress=False), recording.ran


# Until the band is narrow


def noise(run):
    """As wide as the loss, around 10."""
    hashed = wb.draws.uniform(wb.draws.make_key(run.scenario.seed, 1), 0)
    return {"noise": 10 + run.scenario.radio.loss * (hashed - 0.5)}


def until_narrow(**keywords):
    over = {LOSS: [0.0, 0.1, 0.8]}
    return plans.adaptive(scenario(), over, "noise", **{"narrower_than": 0.15, "measure": noise, **keywords})


def test_each_combination_is_run_until_its_band_is_narrow_and_not_much_longer():
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


def test_no_combination_is_run_more_often_than_it_may():
    narrow = until_narrow(narrower_than=1e-6, at_most=17)
    assert len(narrow.run(**SILENT)) == 10 + 2 * 17
    assert narrow.bands["is_narrow"].tolist() == [True, False, False]


def test_seeds_may_be_a_plan():
    seeds = plans.paired_seeds(12, topology=wb.topology.disc(9, 40, 40))
    table = until_narrow(narrower_than=1e-6, seeds=seeds).run(**SILENT)
    frame = table.to_pandas()
    assert frame.groupby(LOSS)["topology"].nunique().tolist() == [10, 12, 12]


def test_an_adaptive_sweep_goes_on_where_it_was_stopped(tmp_path):
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


# Which parameters matter


def linear(run):
    """7 for the whole range of the loss, 1 for that of the ttl; nothing by chance."""
    return {"answer": 14 * run.scenario.radio.loss + (run.scenario.protocol.ttl - 1) / 99}


def product(run):
    """Neither does anything without the other."""
    return {"answer": (2 * run.scenario.radio.loss - 0.5) * (run.scenario.protocol.ttl - 50.5)}


def what_matters(measure=linear, **keywords):
    given = {"samples": 8, "seeds": 2, "measure": measure, **keywords}
    return plans.sensitivity(scenario(), {TTL: BOTH[TTL], LOSS: BOTH[LOSS]}, "answer", **given)


def test_morris_finds_the_effects_of_a_linear_metric():
    indices = what_matters().run(**SILENT).indices
    assert indices["parameter"].tolist() == [LOSS, TTL]
    assert indices["mu_star"].tolist() == pytest.approx([7, 1], rel=0.03)
    assert indices["mu"].tolist() == pytest.approx([7, 1], rel=0.03)
    assert indices["sigma"].tolist() == pytest.approx([0, 0], abs=0.03)


def test_sobol_finds_shares_of_the_variance():
    indices = what_matters(method="sobol", samples=64, seeds=1).run(**SILENT).indices
    assert indices["parameter"].tolist() == [LOSS, TTL]
    assert indices["S1"].tolist() == pytest.approx([49 / 50, 1 / 50], abs=0.1)
    assert indices["ST"].tolist() == pytest.approx([49 / 50, 1 / 50], abs=0.1)


def test_sobol_tells_an_interaction():
    indices = what_matters(product, method="sobol", samples=64, seeds=1).run(**SILENT).indices
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


def test_a_sample_with_a_point_that_failed_is_left_out_with_a_warning():
    with pytest.warns(UserWarning, match=r"\d of 30 samples are left out"):
        indices = what_matters(sometimes, samples=30).run(**SILENT).indices
    assert indices["mu_star"].tolist() == pytest.approx([7, 1], rel=0.03)


def test_a_metric_that_is_everywhere_the_same_is_told():
    with pytest.raises(WorkbenchError, match="answer is 3 at all points"):
        what_matters(lambda run: {"answer": 3.0}).run(**SILENT)


@pytest.mark.parametrize(("method", "words"), [("morris", "trajectories"), ("sobol", "base points")])
def test_the_chart_has_each_parameter_and_how_it_was_estimated(method, words, tmp_path):
    found = what_matters(method=method).run(**SILENT)
    path = tmp_path / "chart.svg"
    found.plot().save(path)
    text = path.read_text()
    for said in ("loss (share of frames)", "ttl (hops)", "answer", f"8 {words}"):
        assert said in text
    assert f"{found.indices.iloc[0, 1]:.4g}" in text
    assert "<table" in found._repr_html_()


# The best value


def bowl(run):
    """Least at a loss of 0.2; what it costs grows with the loss."""
    loss = run.scenario.radio.loss
    return {"answer": (loss - 0.2) ** 2 + 1e-4 * run.scenario.protocol.ttl, "cost": 10 * loss}


def lowest(**keywords):
    given = {"minimize": "answer", "trials": 40, "seeds": 1, "measure": bowl, **keywords}
    return plans.search(scenario(), {LOSS: BOTH[LOSS], TTL: plans.whole(1, 9)}, **given)


def test_a_search_finds_the_least():
    found = lowest().run(**SILENT)
    assert found.best[LOSS] == pytest.approx(0.2, abs=0.03)
    assert found.scenario == scenario(**found.best)
    best = found.trials.loc[found.trials["answer"].idxmin()]
    assert best[LOSS] == found.best[LOSS]
    assert len(found.trials) == 40


def test_a_constraint_keeps_the_best_where_it_holds():
    found = lowest(subject_to=["cost <= 1", "answer >= 0"]).run(**SILENT)
    assert found.best[LOSS] == pytest.approx(0.1, abs=0.02)
    assert (found.trials["cost"] <= 1).tolist() == found.trials["is_feasible"].tolist()
    assert not found.trials["is_feasible"].all()


def test_a_search_for_the_greatest():
    found = lowest(minimize=None, maximize="cost", subject_to="answer <= 0.01").run(**SILENT)
    assert found.best[LOSS] == pytest.approx(0.3, abs=0.02)


def test_a_search_goes_on_where_it_was_stopped(tmp_path):
    undisturbed = lowest(trials=24).run(**SILENT)
    with pytest.raises(KeyboardInterrupt, match="run it again"):
        lowest(trials=24).run(out=tmp_path, runner=Recording(points=13), progress=False)
    found, ran = runs_again(lowest(trials=24), tmp_path)
    assert found.best == undisturbed.best
    assert ran == len(undisturbed.table) - 13
    longer, ran = runs_again(lowest(trials=32), tmp_path)
    assert ran <= 8
    assert longer.trials[LOSS].tolist()[:24] == undisturbed.trials[LOSS].tolist()


def test_a_search_chooses_among_objects():
    over = {"protocol": {"few": wb.Flooding(ttl=1), "many": wb.Flooding(ttl=9)}}
    found = plans.search(scenario(), over, maximize="delivery_ratio", trials=8, seeds=1).run(**SILENT)
    assert found.best["protocol"] == wb.Flooding(ttl=9)
    assert set(found.trials["protocol"]) == {"few", "many"}


def test_a_search_that_finds_nothing_says_what_came_nearest():
    with pytest.raises(
        WorkbenchError, match=r"none of 6 trials satisfies cost >= 7; the nearest has answer .*, cost [2-4]"
    ):
        lowest(trials=6, subject_to="cost >= 7").run(**SILENT)


def test_trials_that_fail_are_passed_over():
    with pytest.warns(UserWarning, match="points failed"):
        found = lowest(measure=half_of_it, trials=24).run(**SILENT)
    assert found.best[LOSS] < 0.1
    assert np.isnan(found.trials["answer"]).any()


def half_of_it(run):
    if run.scenario.radio.loss > 0.1:
        raise ValueError("too lossy")
    return bowl(run)


# What cannot be


WRONG = [
    (lambda: until_narrow(narrower_than=0), "narrower_than is 0"),
    (lambda: until_narrow(at_least=1), "at_least is 1"),
    (lambda: until_narrow(at_least=20, at_most=10), "at_least is 20; it must be a whole number from 2 to 10"),
    (lambda: until_narrow(seeds=plans.points([{TTL: 3}])), "must vary the seed"),
    (lambda: plans.adaptive(scenario(), {"seed": [3]}, narrower_than=1), "both plans vary seed"),
    (lambda: plans.adaptive(scenario(), {"protocol.tt": [3]}, narrower_than=1), "ttl"),
    (lambda: what_matters(method="moris"), "one of morris, sobol"),
    (lambda: what_matters(samples=3), "samples is 3"),
    (lambda: what_matters(method="sobol", samples=100), "must be a power of two"),
    (lambda: plans.sensitivity(scenario(), {LOSS: plans.between(0, 0.5)}), "needs at least two"),
    (lambda: plans.sensitivity(scenario(), {LOSS: plans.between(0, 3), TTL: [1, 2]}), "loss"),
    (lambda: lowest(minimize=None), "exactly one goal"),
    (lambda: lowest(maximize="cost"), "exactly one goal"),
    (lambda: lowest(minimize=3), "metric of the search is 3"),
    (lambda: lowest(subject_to="cost = 3"), "a constraint is 'cost = 3'"),
    (lambda: lowest(subject_to="cost <= 1e"), "a constraint is"),
    (lambda: lowest(subject_to=[7]), "a constraint is 7"),
    (lambda: lowest(trials=0), "trials is 0"),
    (lambda: plans.search(scenario(), {LOSS: plans.between(0, 3)}, minimize="cost"), "loss"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_cannot_be_is_said_before_anything_runs(make, said):
    with pytest.raises(ScenarioError, match=said):
        make()


@pytest.mark.parametrize("driver", [until_narrow, what_matters, lowest])
def test_a_metric_that_no_run_has_is_told_with_the_one_that_was_meant(driver):
    wrong = driver()
    wrong._metric = "answr" if driver is not until_narrow else "nois"
    with pytest.raises(ParameterError, match="did you mean (answer|noise)"):
        wrong.run(**SILENT)


@pytest.mark.parametrize(("library", "use"), [("SALib", what_matters), ("optuna", lambda: lowest().run(**SILENT))])
def test_a_library_that_is_missing_is_asked_for_in_a_line(library, use, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(WorkbenchError, match=f"needs {library} .*: pip install '{library}>=[\\d.]+'$"):
        use()

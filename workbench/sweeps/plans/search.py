"""Search for the best values of parameters: optuna proposes trials, and sweeps evaluate them.

Theory of operation
    A *trial* is a combination of parameter values. The sampler (a tree-structured Parzen estimator) proposes a round of
    ``at_once`` trials. All of them run with the same seeds, and the sampler receives the mean of each metric. A trial
    that satisfies the constraints is better than a trial that does not. Of two trials that satisfy them, the metric
    decides; of two trials that do not, the smaller violation. The sampler's random numbers have a fixed seed, and the
    size of a round does not depend on the number of cores. So the sampler proposes the same trials if the results are
    the same, and a stopped search can continue in its folder.

Limits
    The best of many noisy means looks better than it is. A constraint that the best trial barely satisfies may fail
    with other seeds. So run the best trial again with new seeds (`SearchResult.scenario`). Another release of optuna
    may propose other trials; the stored results of trials that both releases propose are reused.

References
    T. Akiba et al.: Optuna: A next-generation hyperparameter optimization framework, KDD 2019; S. Watanabe: Tree-
    structured Parzen estimator, arXiv 2304.11127, 2023.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.errors import ScenarioError, WorkbenchError
from workbench.extensions import extensible
from workbench.sim.scenario import Scenario
from workbench.sweeps.design import Design
from workbench.sweeps.plan import Measure
from workbench.sweeps.plans.combined import Crossed
from workbench.sweeps.plans.domains import Between, Domain, Listed, Whole, domains_of
from workbench.sweeps.plans.rounds import Rounds, checked_number, repeats_of, values_of
from workbench.sweeps.plans.sampled import Sampled, distinct
from workbench.sweeps.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

_MOST_TRIALS = 100_000
_CONSTRAINT = re.compile(r"\s*(\w+)\s*(<=|>=)\s*([-+\d.eE]+)\s*")


class Constraint(NamedTuple):
    """A constraint: a metric must be at least, or at most, a limit.

    ``text`` is the constraint as the user wrote it. ``keeps`` compares the metric with ``limit``: `operator.ge` or
    `operator.le`.
    """

    text: str
    metric: str
    keeps: Callable[[Any, Any], Any]
    limit: float

    def excess(self, value: float) -> float:
        """Return the amount by which a value violates the constraint; 0 or less if the value satisfies it."""
        return self.limit - value if self.keeps is operator.ge else value - self.limit


@extensible
class SearchResult:
    """The result of `Search.run`: the best trial, all trials, and ``plot()``.

    ``best`` is {path: value}, and ``scenario`` the scenario with these values. ``trials`` has a row for each trial: its
    values, the means of its metrics, and is_feasible (all constraints are satisfied). ``table`` has all runs. The
    search minimizes (``is_least``) or maximizes ``metric``.
    """

    def __init__(
        self,
        best: dict[str, Any],
        scenario: Scenario,
        trials: pd.DataFrame,
        table: SweepTable,
        metric: str,
        is_least: bool,
    ) -> None:
        self.best, self.scenario, self.trials, self.table = best, scenario, trials, table
        self.metric, self.is_least = metric, is_least

    def __repr__(self) -> str:
        values = ", ".join(f"{path}={value}" for path, value in self.best.items())
        return f"SearchResult({values}; {len(self.trials)} trials)"


class Search:
    """A search for the best values of parameters, made by `search`; ``run(out)`` runs it."""

    def __init__(
        self, rounds: Rounds, scenario: Scenario, domains: dict[str, Domain], repeats: Design, **settings: Any
    ) -> None:
        self._rounds, self._scenario, self._domains, self._repeats = rounds, scenario, domains, repeats
        self._metric, self._is_least, self._constraints = (
            settings["metric"],
            settings["is_least"],
            settings["constraints"],
        )
        self._trials, self._at_once, self._seed = settings["trials"], settings["at_once"], settings["seed"]

    def __repr__(self) -> str:
        goal = f"{'least' if self._is_least else 'greatest'} {self._metric}"
        constraints = (
            f" with {', '.join(constraint.text for constraint in self._constraints)}" if self._constraints else ""
        )
        return f"Search({goal}{constraints} over {', '.join(self._domains)}; {self._trials} trials)"

    def run(self, out: str | Path | None = None, runner: Any = None, progress: bool | None = None) -> SearchResult:
        """Run the trials and return the result with the best trial; arguments as for `Sweep.run`.

        Raises WorkbenchError if optuna is missing, if no trial has a result, or if no trial satisfies the constraints.
        In the last case, the message has the metrics of the trial that violates them least.
        """
        optuna = _import_optuna()
        points = np.empty((0, len(self._domains)))
        with _silence_log(optuna):
            sampler = optuna.samplers.TPESampler(seed=self._seed)
            study = optuna.create_study(sampler=sampler, direction="minimize" if self._is_least else "maximize")
            while len(points) < self._trials:
                new_trials = [study.ask() for _ in range(min(self._at_once, self._trials - len(points)))]
                suggested_points = [
                    [_suggest_value(trial, *item) for item in self._domains.items()] for trial in new_trials
                ]
                points = np.vstack([points, suggested_points])
                table, means = self._run_trials(points, out, runner, progress)
                for trial, trial_means in zip(new_trials, means[-len(new_trials) :], strict=True):
                    self._report_trial(study, optuna, trial, trial_means)
        return self._make_result(points, means, table)

    @property
    def _metrics(self) -> list[str]:
        return list(dict.fromkeys((self._metric, *(constraint.metric for constraint in self._constraints))))

    def _run_trials(
        self, points: np.ndarray, out: str | Path | None, runner: Any, progress: bool | None
    ) -> tuple[SweepTable, list[dict[str, float]]]:
        """Run the trials ``points`` that have no stored result yet, and return the results of all trials.

        ``points`` is an array (trials × varied parameters) of drawn values as numbers, as the method `at` of a domain,
        such as `Between.at`, returns them. The other arguments are those of `Sweep.run`. The result is (table of all
        runs, [{metric: mean over the seeds} for each trial]).
        """
        design, row_to_point = distinct(Sampled(self._domains, points, "search", self._seed))
        table = self._rounds.run(Crossed(design, self._repeats), out, runner, progress)
        means = {}
        for metric in self._metrics:
            runs = values_of(table, metric).reshape(len(design), len(self._repeats))
            means[metric] = runs.mean(axis=1)[row_to_point].tolist()
        return table, [dict(zip(means, row, strict=True)) for row in zip(*means.values(), strict=True)]

    def _report_trial(self, study: Any, optuna: Any, trial: Any, trial_means: dict[str, float]) -> None:
        """Report a trial's means to optuna's study; a trial with a failed run or a missing metric counts as failed."""
        if not all(map(np.isfinite, trial_means.values())):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        for constraint in self._constraints:
            trial.set_constraint(constraint.text, constraint.excess(trial_means[constraint.metric]))
        study.tell(trial, trial_means[self._metric])

    def _make_result(self, points: np.ndarray, means: list[dict[str, float]], table: SweepTable) -> SearchResult:
        import pandas as pd

        design = Sampled(self._domains, points, "search", self._seed)
        is_complete = [all(map(np.isfinite, trial_means.values())) for trial_means in means]
        excesses = [
            max((limit.excess(trial_means[limit.metric]) for limit in self._constraints), default=0.0)
            for trial_means in means
        ]
        is_feasible = [complete and violation <= 0 for complete, violation in zip(is_complete, excesses, strict=True)]
        trial_rows = [
            {**design.labels(number), **trial_means, "is_feasible": feasible}
            for number, (trial_means, feasible) in enumerate(zip(means, is_feasible, strict=True))
        ]
        feasible_numbers = [number for number, feasible in enumerate(is_feasible) if feasible]
        if not feasible_numbers:
            self._raise_infeasible(means, is_complete, excesses)
        best_number = (min if self._is_least else max)(feasible_numbers, key=lambda number: means[number][self._metric])
        overrides = design.overrides(best_number)
        ordered_overrides = dict(sorted(overrides.items(), key=lambda override: override[0].count(".")))
        best_scenario = self._scenario.replace(**ordered_overrides)
        return SearchResult(overrides, best_scenario, pd.DataFrame(trial_rows), table, self._metric, self._is_least)

    def _raise_infeasible(self, means: list[dict[str, float]], is_complete: list[bool], excess: list[float]) -> None:
        complete_trials = [number for number, complete in enumerate(is_complete) if complete]
        if not complete_trials:
            raise WorkbenchError(
                f"no trial has a result: in every trial a run failed or has no {' or '.join(self._metrics)}; "
                "to see the errors, run a sweep over the same values and look at its table.failed"
            )
        nearest_means = means[min(complete_trials, key=lambda number: excess[number])]
        metrics = ", ".join(f"{name} {value:.6g}" for name, value in nearest_means.items())
        constraints = " and ".join(constraint.text for constraint in self._constraints)
        raise WorkbenchError(
            f"none of {len(means)} trials satisfies {constraints}; the trial that violates this least has {metrics}; "
            "relax a constraint, or run more trials"
        )


def search(
    scenario: Scenario,
    over: Mapping[str, Any],
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: str | list[str] | tuple[str, ...] = (),
    trials: int = 40,
    seeds: int | Design = 10,
    at_once: int = 8,
    seed: int = 1,
    engine: str = "auto",
    measure: Measure | None = None,
) -> Search:
    """Return a search for the values of the parameters ``over`` that minimize or maximize a metric under constraints.

    ``over`` maps paths to `between`, `whole`, or a list. Give either ``minimize`` or ``maximize``, a metric's name.
    Metrics are means over ``seeds``: a number of seeds, or a plan such as `paired_seeds`. ``subject_to`` has
    constraints such as "delivery_ratio >= 0.95". ``trials`` combinations of values are tried, of which ``at_once`` are
    proposed and run together. ``seed`` makes the proposals reproducible. ``engine`` and ``measure`` are those of
    `Sweep`. Needs optuna. Raises ScenarioError for an invalid scenario or parameter.

    >>> import workbench as wb
    >>> workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=4, what="TEMP IS 30", every_s=1)]
    >>> scenario = wb.Scenario(wb.topology.line(5), wb.Flooding(), workload, duration_s=5)
    >>> least = wb.plans.search(scenario, {"protocol.ttl": wb.plans.whole(1, 9)}, minimize="bytes_sent",
    ...                         subject_to="delivery_ratio >= 0.9", trials=16, seeds=1)
    >>> least.run(runner=wb.LocalRunner()).best
    {'protocol.ttl': 4}
    """
    domains = domains_of(over)
    if (minimize is None) == (maximize is None):
        raise ScenarioError('search: give exactly one goal, minimize="bytes_sent" or maximize="delivery_ratio"')
    for metric in (minimize, maximize):
        if metric is not None and not isinstance(metric, str):
            raise ScenarioError(f"the metric of the search is {metric!r:.60}; it must be a name such as bytes_sent")
    trials = checked_number("trials", trials, 1, _MOST_TRIALS)
    settings = {
        "metric": minimize if maximize is None else maximize,
        "is_least": maximize is None,
        "constraints": [
            _parse_constraint(text) for text in ([subject_to] if isinstance(subject_to, str) else subject_to)
        ],
        "trials": trials,
        "at_once": checked_number("at_once", at_once, 1, _MOST_TRIALS),
        "seed": checked_number("seed", seed, 0, 2**31),
    }
    rounds, repeats = Rounds(scenario, engine, measure), repeats_of(seeds)
    search_plan = Search(rounds, scenario, domains, repeats, **settings)
    corner_points = np.array(
        [[float(domain.at(np.array([corner]))[0]) for domain in domains.values()] for corner in (0.0, 1.0)]
    )
    rounds.sweep(
        Crossed(distinct(Sampled(domains, corner_points, "search", seed))[0], repeats)
    )  # Raises now if invalid.
    return search_plan


def _parse_constraint(text: Any) -> Constraint:
    match = _CONSTRAINT.fullmatch(text) if isinstance(text, str) else None
    try:
        if match:
            metric, sign, limit = match.groups()
            return Constraint(text.strip(), metric, operator.ge if sign == ">=" else operator.le, float(limit))
    except ValueError:
        pass
    raise ScenarioError(
        f'a constraint is {text!r:.60}; it must be like "delivery_ratio >= 0.95" or "bytes_sent <= 2e4"'
    )


def _suggest_value(trial: Any, path: str, domain: Domain) -> float:
    """Return optuna's suggestion for the parameter ``path`` as a float: a number of its range, or an index of its list.

    Its domain's method ``value`` converts this float to the parameter's value.
    """
    if isinstance(domain, Between):
        return domain.value(trial.suggest_float(path, domain.low, domain.high, log=domain.log))
    if isinstance(domain, Whole):
        return float(trial.suggest_int(path, domain.low, domain.high))
    assert isinstance(domain, Listed)
    return float(trial.suggest_categorical(path, list(range(len(domain.axis.values)))))


def _import_optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise WorkbenchError(f"a search needs optuna ({error}): pip install 'optuna>=5'") from None
    return optuna


@contextmanager
def _silence_log(optuna: Any) -> Iterator[None]:
    """Suppress optuna's log lines inside the context, because the sweep displays its own progress."""
    previous_level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(previous_level)

"""A parameter's best value: optuna asks, a sweep answers, until so many trials are done.

Theory of operation
    Trials come in rounds of ``at_once``. The sampler (a tree-structured Parzen estimator) asks for the values of a
    round, all of them are run with the same seeds, and the means of the metrics are told. Points that keep the
    constraints are better than all others; among them goes the metric. The sampler has a seed: with the same results
    it asks for the same trials, so a search that was stopped goes on in its folder. The size of a round is fixed for
    that, whatever the number of cores.

Limits
    The best of many noisy means looks better than it is, and a constraint that it just keeps may be broken with other
    seeds: run the best again with seeds of its own (`SearchResult.scenario`). Another release of optuna may ask for
    other trials; it finds what the two have in common.

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
    """A metric that must be at least, or at most, a number."""

    text: str
    metric: str
    keeps: Callable[[Any, Any], Any]
    limit: float

    def excess(self, value: float) -> float:
        """By how much a value breaks it: above 0 if it does."""
        return self.limit - value if self.keeps is operator.ge else value - self.limit


class SearchResult:
    """What `Search.run` gives: ``best`` (path -> value), ``scenario`` with it, ``trials`` and ``table`` (all runs)."""

    def __init__(self, best: dict[str, Any], scenario: Scenario, trials: pd.DataFrame, table: SweepTable) -> None:
        self.best, self.scenario, self.trials, self.table = best, scenario, trials, table

    def __repr__(self) -> str:
        told = ", ".join(f"{path}={value}" for path, value in self.best.items())
        return f"SearchResult({told}; {len(self.trials)} trials)"


class Search:
    """What `search` makes: ``run(out)`` runs it."""

    def __init__(
        self, rounds: Rounds, scenario: Scenario, domains: dict[str, Domain], repeats: Design, **how: Any
    ) -> None:
        self._rounds, self._scenario, self._domains, self._repeats = rounds, scenario, domains, repeats
        self._metric, self._is_least, self._constraints = how["metric"], how["is_least"], how["constraints"]
        self._trials, self._at_once, self._seed = how["trials"], how["at_once"], how["seed"]

    def __repr__(self) -> str:
        goal = f"{'least' if self._is_least else 'greatest'} {self._metric}"
        kept = f" with {', '.join(one.text for one in self._constraints)}" if self._constraints else ""
        return f"Search({goal}{kept} over {', '.join(self._domains)}; {self._trials} trials)"

    def run(self, out: str | Path | None = None, runner: Any = None, progress: bool | None = None) -> SearchResult:
        """Run the trials and return the best; arguments as those of `Sweep.run`.

        WorkbenchError if no trial keeps the constraints; it says which came nearest.
        """
        optuna = _optuna()
        told = np.empty((0, len(self._domains)))
        with _quiet(optuna):
            sampler = optuna.samplers.TPESampler(seed=self._seed)
            study = optuna.create_study(sampler=sampler, direction="minimize" if self._is_least else "maximize")
            while len(told) < self._trials:
                asked = [study.ask() for _ in range(min(self._at_once, self._trials - len(told)))]
                new = [[_suggested(trial, *one) for one in self._domains.items()] for trial in asked]
                told = np.vstack([told, new])
                table, means = self._found(told, out, runner, progress)
                for trial, found in zip(asked, means[-len(asked) :], strict=True):
                    self._tell(study, optuna, trial, found)
        return self._result(told, means, table)

    @property
    def _metrics(self) -> list[str]:
        return list(dict.fromkeys((self._metric, *(one.metric for one in self._constraints))))

    def _found(
        self, told: np.ndarray, out: str | Path | None, runner: Any, progress: bool | None
    ) -> tuple[SweepTable, list[dict[str, float]]]:
        """The table of all trials so far, and for each of them the means of its metrics over the seeds."""
        design, row_to_point = distinct(Sampled(self._domains, told, "search", self._seed))
        table = self._rounds.run(Crossed(design, self._repeats), out, runner, progress)
        means = {}
        for metric in self._metrics:
            runs = values_of(table, metric).reshape(len(design), len(self._repeats))
            means[metric] = runs.mean(axis=1)[row_to_point].tolist()
        return table, [dict(zip(means, row, strict=True)) for row in zip(*means.values(), strict=True)]

    def _tell(self, study: Any, optuna: Any, trial: Any, found: dict[str, float]) -> None:
        """A trial with a run that failed, or without one of the metrics, has failed as a whole."""
        if not all(map(np.isfinite, found.values())):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        for one in self._constraints:
            trial.set_constraint(one.text, one.excess(found[one.metric]))
        study.tell(trial, found[self._metric])

    def _result(self, told: np.ndarray, means: list[dict[str, float]], table: SweepTable) -> SearchResult:
        import pandas as pd

        design = Sampled(self._domains, told, "search", self._seed)
        is_there = [all(map(np.isfinite, found.values())) for found in means]
        excess = [max((one.excess(found[one.metric]) for one in self._constraints), default=0.0) for found in means]
        is_kept = [there and over <= 0 for there, over in zip(is_there, excess, strict=True)]
        rows = [
            {**design.labels(number), **found, "is_feasible": kept}
            for number, (found, kept) in enumerate(zip(means, is_kept, strict=True))
        ]
        numbers = [number for number, kept in enumerate(is_kept) if kept]
        if not numbers:
            self._raise_none(means, is_there, excess)
        best = (min if self._is_least else max)(numbers, key=lambda number: means[number][self._metric])
        chosen = design.overrides(best)
        in_order = dict(sorted(chosen.items(), key=lambda one: one[0].count(".")))
        return SearchResult(chosen, self._scenario.replace(**in_order), pd.DataFrame(rows), table)

    def _raise_none(self, means: list[dict[str, float]], is_there: list[bool], excess: list[float]) -> None:
        near = [number for number, there in enumerate(is_there) if there]
        if not near:
            raise WorkbenchError("no trial has a result: each had a run that failed or that lacks one of the metrics")
        nearest = means[min(near, key=lambda number: excess[number])]
        told = ", ".join(f"{name} {value:.6g}" for name, value in nearest.items())
        kept = " and ".join(one.text for one in self._constraints)
        raise WorkbenchError(f"none of {len(means)} trials keeps {kept}; the nearest has {told}")


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
    """The values of the parameters ``over`` for which a metric is least, or greatest, under constraints.

    ``over`` maps paths to what is chosen from: `between`, `whole`, or a list. Metrics are means over ``seeds``: how
    many, or a plan such as `paired_seeds`. ``subject_to``: constraints such as "delivery_ratio >= 0.95". ``at_once``
    trials are asked for and run together; ``seed`` is the search's own. Needs optuna. Raises ScenarioError for what
    cannot be run.

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
        raise ScenarioError('a search has one goal: minimize="bytes_sent", or maximize="delivery_ratio"')
    for metric in (minimize, maximize):
        if metric is not None and not isinstance(metric, str):
            raise ScenarioError(f"a search is for a metric such as bytes_sent, not for {metric!r:.60}")
    trials = checked_number("trials", trials, 1, _MOST_TRIALS)
    how = {
        "metric": minimize if maximize is None else maximize,
        "is_least": maximize is None,
        "constraints": [_constraint(text) for text in ([subject_to] if isinstance(subject_to, str) else subject_to)],
        "trials": trials,
        "at_once": checked_number("at_once", at_once, 1, _MOST_TRIALS),
        "seed": checked_number("seed", seed, 0, 2**31),
    }
    rounds, repeats = Rounds(scenario, engine, measure), repeats_of(seeds)
    made = Search(rounds, scenario, domains, repeats, **how)
    ends = np.array([[float(domain.of(np.array([end]))[0]) for domain in domains.values()] for end in (0.0, 1.0)])
    rounds.sweep(Crossed(distinct(Sampled(domains, ends, "search", seed))[0], repeats))  # Told at once if impossible.
    return made


def _constraint(text: Any) -> Constraint:
    match = _CONSTRAINT.fullmatch(text) if isinstance(text, str) else None
    try:
        if match:
            metric, sign, limit = match.groups()
            return Constraint(text.strip(), metric, operator.ge if sign == ">=" else operator.le, float(limit))
    except ValueError:
        pass
    raise ScenarioError(f'a constraint is {text!r:.60}; it must be as "delivery_ratio >= 0.95" or "bytes_sent <= 2e4"')


def _suggested(trial: Any, path: str, domain: Domain) -> float:
    """What the sampler asks for, as `Domain.of` has it."""
    if isinstance(domain, Between):
        return domain.value(trial.suggest_float(path, domain.low, domain.high, log=domain.log))
    if isinstance(domain, Whole):
        return float(trial.suggest_int(path, domain.low, domain.high))
    assert isinstance(domain, Listed)
    return float(trial.suggest_categorical(path, list(range(len(domain.axis.values)))))


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise WorkbenchError(f"a search needs optuna ({error}): pip install 'optuna>=5'") from None
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Without the lines that optuna logs about each trial: the sweep shows how far it is."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)

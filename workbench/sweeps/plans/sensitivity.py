"""Sensitivity analysis: Morris's elementary effects and Sobol's indices of parameters, by SALib.

Theory of operation
    morris    The points form trajectories through a grid of four levels. Each step changes one parameter by two thirds
              of its range. The effect of a step is the metric's change, scaled to the whole range. mu_star is the mean
              of the effects' sizes; it shows the importance of a parameter. sigma is the effects' standard deviation;
              it shows how much the effect depends on other parameters, or on the parameter's own value. The method runs
              samples × (parameters + 1) points. Use it to find parameters without effect.
    sobol     The indices are shares of the metric's variance. S1 is the share that a parameter explains by itself. ST
              also includes the parameter's interactions with other parameters. The method runs
              samples × (parameters + 2) points. Use it to quantify effects.

    The metric of a point is its mean over ``seeds``, which are the same for all points, so that all points use the same
    networks.

Limits
    Randomness that remains in the means over the seeds looks like an effect: it raises sigma, and the sum of S1 differs
    from 1. With few seeds a parameter without effect has a mu_star above 0, with a wide interval. For a parameter with
    few values, two levels of the grid may stand for the same value, so that a step changes nothing. Sobol's estimates
    can be slightly below 0.

References
    M. Morris: Factorial sampling plans for preliminary computational experiments, Technometrics 33(2), 1991;
    F. Campolongo, J. Cariboni, A. Saltelli: An effective screening design for sensitivity analysis of large models,
    Environmental Modelling & Software 22(10), 2007; A. Saltelli et al.: Variance based sensitivity analysis of model
    output, Computer Physics Communications 181(2), 2010; J. Herman, W. Usher: SALib, Journal of Open Source Software
    2(9), 2017.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import ScenarioError, WorkbenchError
from workbench.extensions import extensible
from workbench.sim.scenario import Scenario
from workbench.sweeps.design import Design
from workbench.sweeps.plan import Measure
from workbench.sweeps.plans.combined import Crossed
from workbench.sweeps.plans.domains import domains_of
from workbench.sweeps.plans.rounds import Rounds, checked_number, repeats_of, values_of
from workbench.sweeps.plans.sampled import Sampled, distinct, values_at
from workbench.sweeps.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

LEVELS = 4
_DEFAULT_SAMPLES = {"morris": 10, "sobol": 64}
_LEAST_SAMPLES = 4  # samples that an estimate needs
_MOST_SAMPLES = 1_000_000
_RESAMPLES = 100


@extensible
class SensitivityResult:
    """The result of `Sensitivity.run`, with ``plot()``.

    ``indices`` has a row per parameter, the most important first. Columns: parameter, and mu_star, mu_star_half, sigma,
    mu (Morris) or S1, S1_half, ST, ST_half (Sobol), where "half" is half the width of a 95 % interval. ``table`` has
    all runs. ``samples`` is the number of samples from which the indices for ``metric`` are estimated by ``method``.
    """

    def __init__(self, method: str, metric: str, indices: pd.DataFrame, table: SweepTable, samples: int) -> None:
        self.method, self.metric, self.samples = method, metric, samples
        # One row per parameter, the most important first: parameter, and mu_star, mu_star_half, sigma, mu (Morris) or
        # S1, S1_half, ST, ST_half (Sobol). Each half is that of a 95 % interval. Effects are in the metric's unit.
        self.indices = indices
        self.table = table

    def __repr__(self) -> str:
        return f"SensitivityResult({self.method}, {self.metric}, {self.samples} samples)\n{self.indices.to_string()}"

    def _repr_html_(self) -> str:
        return self.indices.to_html(index=False, border=0)


class Sensitivity:
    """A sensitivity analysis, made by `sensitivity`; ``run(out)`` runs it."""

    def __init__(self, rounds: Rounds, domains: dict[str, Any], repeats: Design, metric: str, **settings: Any) -> None:
        self._rounds, self._domains, self._repeats, self._metric = rounds, domains, repeats, metric
        self._method, self._samples, self._seed = settings["method"], settings["samples"], settings["seed"]
        self._shares = _draw_samples(self._salib_problem, self._method, self._samples, self._seed)
        sampled_points = Sampled(domains, values_at(domains, self._shares), self._method, self._seed)
        design, self._row_to_point = distinct(sampled_points)
        self.design = Crossed(design, repeats)

    @property
    def _salib_problem(self) -> dict[str, Any]:
        count = len(self._domains)
        return {"num_vars": count, "names": list(self._domains), "bounds": [[0.0, 1.0]] * count}

    def __len__(self) -> int:
        return len(self.design)

    def __repr__(self) -> str:
        return f"Sensitivity({self._method}, {self._metric}, {len(self)} points: {self.design.text()})"

    def run(self, out: str | Path | None = None, runner: Any = None, progress: bool | None = None) -> SensitivityResult:
        """Run all points and estimate the sensitivity indices; arguments as for `Sweep.run`.

        If no run of a point has the metric, the sample (group of points) with this point is left out, with a warning.
        Raises WorkbenchError if too few samples remain, or if the metric is the same at all points.
        """
        table = self._rounds.run(self.design, out, runner, progress)
        runs = values_of(table, self._metric).reshape(-1, len(self._repeats))
        is_finite = np.isfinite(runs)
        finite_runs = is_finite.sum(axis=1)
        means = np.where(
            finite_runs > 0, np.where(is_finite, runs, 0.0).sum(axis=1) / np.maximum(finite_runs, 1), np.nan
        )
        shares, point_means = self._complete_samples(means[self._row_to_point])
        if np.ptp(point_means) == 0:
            raise WorkbenchError(
                f"{self._metric} is {point_means[0]:g} at all points, so no parameter affects it; choose wider ranges"
            )
        indices = _estimate_indices(self._salib_problem, self._method, shares, point_means, self._seed)
        samples = len(point_means) // self._sample_size
        return SensitivityResult(self._method, self._metric, indices, table, samples)

    @property
    def _sample_size(self) -> int:
        """The number of points in a sample: in a trajectory (Morris), or in a base point and its variations (Sobol)."""
        return len(self._domains) + (1 if self._method == "morris" else 2)

    def _complete_samples(self, point_means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sample_means = point_means.reshape(-1, self._sample_size)
        is_complete = np.isfinite(sample_means).all(axis=1)
        incomplete_samples = int((~is_complete).sum())
        if len(sample_means) - incomplete_samples < _LEAST_SAMPLES:
            raise WorkbenchError(
                f"{incomplete_samples} of {len(sample_means)} samples have points without {self._metric}, but at least "
                f"{_LEAST_SAMPLES} complete samples are needed; run the points as a sweep and look at its table.failed "
                "to see the errors, or choose other ranges"
            )
        if incomplete_samples:
            warnings.warn(
                f"{incomplete_samples} of {len(sample_means)} samples are left out: some points do not have "
                f"{self._metric}",
                stacklevel=3,
            )
        return self._shares[np.repeat(is_complete, self._sample_size)], sample_means[is_complete].ravel()


def sensitivity(
    scenario: Scenario,
    over: Mapping[str, Any],
    metric: str = "delivery_ratio",
    *,
    method: str = "morris",
    samples: int | None = None,
    seeds: int | Design = 5,
    seed: int = 1,
    engine: str = "auto",
    measure: Measure | None = None,
) -> Sensitivity:
    """Return an analysis of the effects of the parameters ``over`` on a metric, by ``method`` "morris" or "sobol".

    ``over`` maps paths to `between`, `whole`, or a list. ``samples`` is the number of Morris's trajectories (default
    10), or of Sobol's base points (default 64; a power of two). ``seeds`` is the number of runs of each point, or a
    plan of seeds. ``seed`` makes the samples reproducible. ``engine`` and ``measure`` are those of `Sweep`. Needs
    SALib. Raises ScenarioError for an invalid scenario or parameter.

    >>> import workbench as wb
    >>> workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 30", every_s=1)]
    >>> scenario = wb.Scenario(wb.topology.line(3), wb.Flooding(), workload, duration_s=10)
    >>> over = {"radio.loss": wb.plans.between(0.0, 0.5), "protocol.ttl": wb.plans.whole(2, 9)}
    >>> found = wb.plans.sensitivity(scenario, over, samples=6, seeds=3).run(runner=wb.LocalRunner())
    >>> found.indices["parameter"][0]
    'radio.loss'
    """
    domains = domains_of(over)
    if method not in _DEFAULT_SAMPLES:
        raise ScenarioError(f"the argument `method` is {method!r:.60}; it must be one of {', '.join(_DEFAULT_SAMPLES)}")
    if method == "morris" and len(domains) < 2:
        raise ScenarioError(
            "the argument `over` has one parameter; Morris's method needs at least two; for one, plot a sweep's metric"
        )
    samples = checked_number(
        "samples", _DEFAULT_SAMPLES[method] if samples is None else samples, _LEAST_SAMPLES, _MOST_SAMPLES
    )
    if method == "sobol" and samples & (samples - 1):
        raise ScenarioError(
            f"the argument `samples` is {samples}; with method sobol it must be a power of two, such as 64 or 128"
        )
    settings = {"method": method, "samples": samples, "seed": checked_number("seed", seed, 1, 2**31)}
    rounds = Rounds(scenario, engine, measure)
    analysis = Sensitivity(rounds, domains, repeats_of(seeds), metric, **settings)
    rounds.sweep(analysis.design)  # Raises now for an invalid point.
    return analysis


def _import_salib(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"SALib.{module}")
    except ImportError as error:
        raise WorkbenchError(f"a sensitivity analysis needs SALib ({error}): pip install 'SALib>=1.5'") from None


def _draw_samples(problem: dict[str, Any], method: str, samples: int, seed: int) -> np.ndarray:
    """Return the points to run as an array (points × parameters) of numbers from 0 to 1.

    ``problem`` is SALib's description of the parameters, ``method`` is "morris" or "sobol". ``samples`` is the number
    of samples; the points of one sample are adjacent rows. ``seed`` determines the draws.
    """
    if method == "morris":
        return _import_salib("sample.morris").sample(problem, samples, num_levels=LEVELS, seed=seed)
    return _import_salib("sample.sobol").sample(problem, samples, calc_second_order=False, seed=seed)


def _estimate_indices(
    problem: dict[str, Any], method: str, shares: np.ndarray, point_means: np.ndarray, seed: int
) -> pd.DataFrame:
    """Return a table with a row per parameter and its sensitivity indices, the most important parameter first.

    ``problem`` is SALib's description of the parameters. ``shares`` are the points in the unit cube, ``point_means`` is
    the metric at each point. ``seed`` is for the resampling that gives the intervals.
    """
    import pandas as pd

    resampling: dict[str, Any] = {"num_resamples": _RESAMPLES, "seed": seed}
    if method == "morris":
        estimates = _import_salib("analyze.morris").analyze(
            problem, shares, point_means, num_levels=LEVELS, **resampling
        )
        salib_names = {"mu_star": "mu_star", "mu_star_half": "mu_star_conf", "sigma": "sigma", "mu": "mu"}
    else:
        estimates = _import_salib("analyze.sobol").analyze(problem, point_means, calc_second_order=False, **resampling)
        salib_names = {"S1": "S1", "S1_half": "S1_conf", "ST": "ST", "ST_half": "ST_conf"}
    columns = {our_name: np.asarray(estimates[salib_name], float) for our_name, salib_name in salib_names.items()}
    index_table = pd.DataFrame({"parameter": problem["names"], **columns})
    sort_column = "mu_star" if method == "morris" else "ST"
    return index_table.sort_values(sort_column, ascending=False, kind="stable").reset_index(drop=True)

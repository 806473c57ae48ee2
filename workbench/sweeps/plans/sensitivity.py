"""Which parameters matter: Morris's elementary effects and Sobol's indices, by SALib.

Theory of operation
    morris    Trajectories through a grid of four levels; each step moves one parameter across two thirds of its range.
              The effect of a step is the metric's change for the whole range. mu_star, the mean of the effects' sizes,
              says how much a parameter matters; sigma, their standard deviation, how much that depends on the others
              (or on the parameter itself). samples × (parameters + 1) points: for finding what does not matter.
    sobol     Shares of the metric's variance: S1, what a parameter explains by itself; ST, what it has a part in. The
              difference is its part in interactions. samples × (parameters + 2) points: for what matters, how much.

    The metric of a point is its mean over ``seeds``, which are the same for all points: what one network has of good
    luck, all points have.

Limits
    What the seeds leave of chance counts as an effect: sigma is not below it, and the S1 do not add up to 1. Without
    seeds enough a parameter that does nothing has a mu_star above 0, as the wideness of its interval tells. A parameter
    of few values has steps in which nothing changes. Sobol's estimates can come out slightly below 0.

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
from workbench.sweeps.plans.sampled import Sampled, distinct, found_at
from workbench.sweeps.table import SweepTable

if TYPE_CHECKING:
    import pandas as pd

LEVELS = 4
_USUAL = {"morris": 10, "sobol": 64}
_FEWEST = 4  # samples without which there is nothing to estimate
_MOST = 1_000_000
_RESAMPLES = 100


@extensible
class SensitivityResult:
    """What `Sensitivity.run` gives: ``indices``, ``table`` (all runs) and ``plot()``."""

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
    """What `sensitivity` makes: ``run(out)`` runs it."""

    def __init__(self, rounds: Rounds, domains: dict[str, Any], repeats: Design, metric: str, **how: Any) -> None:
        self._rounds, self._domains, self._repeats, self._metric = rounds, domains, repeats, metric
        self._method, self._samples, self._seed = how["method"], how["samples"], how["seed"]
        self._shares = _sample(self._problem, self._method, self._samples, self._seed)
        drawn = Sampled(domains, found_at(domains, self._shares), self._method, self._seed)
        design, self._row_to_point = distinct(drawn)
        self.design = Crossed(design, repeats)

    @property
    def _problem(self) -> dict[str, Any]:
        count = len(self._domains)
        return {"num_vars": count, "names": list(self._domains), "bounds": [[0.0, 1.0]] * count}

    def __len__(self) -> int:
        return len(self.design)

    def __repr__(self) -> str:
        return f"Sensitivity({self._method}, {self._metric}, {len(self)} points: {self.design.text()})"

    def run(self, out: str | Path | None = None, runner: Any = None, progress: bool | None = None) -> SensitivityResult:
        """Run all points and estimate the indices; arguments as those of `Sweep.run`.

        A sample of which a point has no such metric (all of its runs failed, or had nothing to measure) is left out,
        with a warning. WorkbenchError if too few are left, or if the metric is everywhere the same.
        """
        table = self._rounds.run(self.design, out, runner, progress)
        runs = values_of(table, self._metric).reshape(-1, len(self._repeats))
        is_there = np.isfinite(runs)
        counts = is_there.sum(axis=1)
        means = np.where(counts > 0, np.where(is_there, runs, 0.0).sum(axis=1) / np.maximum(counts, 1), np.nan)
        shares, found = self._whole_samples(means[self._row_to_point])
        if np.ptp(found) == 0:
            raise WorkbenchError(f"{self._metric} is {found[0]:g} at all points: no parameter has an effect on it")
        indices = _estimate(self._problem, self._method, shares, found, self._seed)
        samples = len(found) // self._block
        return SensitivityResult(self._method, self._metric, indices, table, samples)

    @property
    def _block(self) -> int:
        """The points of a sample."""
        return len(self._domains) + (1 if self._method == "morris" else 2)

    def _whole_samples(self, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        blocks = found.reshape(-1, self._block)
        is_whole = np.isfinite(blocks).all(axis=1)
        lost = int((~is_whole).sum())
        if len(blocks) - lost < _FEWEST:
            raise WorkbenchError(
                f"{lost} of {len(blocks)} samples have points without {self._metric}; see table.failed of a sweep over "
                "the same, or draw from other ranges"
            )
        if lost:
            warnings.warn(
                f"{lost} of {len(blocks)} samples are left out: they have points without {self._metric}", stacklevel=3
            )
        return self._shares[np.repeat(is_whole, self._block)], blocks[is_whole].ravel()


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
    """Which of the parameters ``over`` matter for a metric, by ``method`` "morris" (the default) or "sobol".

    ``over`` maps paths to what is drawn from: `between`, `whole`, or a list. ``samples``: Morris's trajectories (10 if
    not given), or Sobol's base points (64; a power of two). ``seeds``: with how many, or which, each point is run.
    ``seed`` is that of the samples. Needs SALib. Raises ScenarioError for what cannot be run.

    >>> import workbench as wb
    >>> workload = [wb.subscribe(at=0, what="TEMP GE 25"), wb.publish(at=2, what="TEMP IS 30", every_s=1)]
    >>> scenario = wb.Scenario(wb.topology.line(3), wb.Flooding(), workload, duration_s=10)
    >>> over = {"radio.loss": wb.plans.between(0.0, 0.5), "protocol.ttl": wb.plans.whole(2, 9)}
    >>> found = wb.plans.sensitivity(scenario, over, samples=6, seeds=3).run(runner=wb.LocalRunner())
    >>> found.indices["parameter"][0]
    'radio.loss'
    """
    domains = domains_of(over)
    if method not in _USUAL:
        raise ScenarioError(f"method is {method!r:.60}; it must be one of {', '.join(_USUAL)}")
    if method == "morris" and len(domains) < 2:
        raise ScenarioError("Morris's trajectories need two parameters or more; plot the metric against a single one")
    samples = checked_number("samples", _USUAL[method] if samples is None else samples, _FEWEST, _MOST)
    if method == "sobol" and samples & (samples - 1):
        raise ScenarioError(f"samples is {samples}; Sobol's points are even only in powers of two: 64, 128, ...")
    how = {"method": method, "samples": samples, "seed": checked_number("seed", seed, 1, 2**31)}
    rounds = Rounds(scenario, engine, measure)
    made = Sensitivity(rounds, domains, repeats_of(seeds), metric, **how)
    rounds.sweep(made.design)  # What cannot be run is told at once.
    return made


def _salib(module: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"SALib.{module}")
    except ImportError as error:
        raise WorkbenchError(f"a sensitivity analysis needs SALib ({error}): pip install 'SALib>=1.5'") from None


def _sample(problem: dict[str, Any], method: str, samples: int, seed: int) -> np.ndarray:
    """Points in the unit cube (points × parameters), sample by sample."""
    if method == "morris":
        return _salib("sample.morris").sample(problem, samples, num_levels=LEVELS, seed=seed)
    return _salib("sample.sobol").sample(problem, samples, calc_second_order=False, seed=seed)


def _estimate(problem: dict[str, Any], method: str, shares: np.ndarray, found: np.ndarray, seed: int) -> pd.DataFrame:
    """The indices, the most important parameter first."""
    import pandas as pd

    look: dict[str, Any] = {"num_resamples": _RESAMPLES, "seed": seed}
    if method == "morris":
        got = _salib("analyze.morris").analyze(problem, shares, found, num_levels=LEVELS, **look)
        names = {"mu_star": "mu_star", "mu_star_half": "mu_star_conf", "sigma": "sigma", "mu": "mu"}
    else:
        got = _salib("analyze.sobol").analyze(problem, found, calc_second_order=False, **look)
        names = {"S1": "S1", "S1_half": "S1_conf", "ST": "ST", "ST_half": "ST_conf"}
    columns = {ours: np.asarray(got[theirs], float) for ours, theirs in names.items()}
    frame = pd.DataFrame({"parameter": problem["names"], **columns})
    by = "mu_star" if method == "morris" else "ST"
    return frame.sort_values(by, ascending=False, kind="stable").reset_index(drop=True)

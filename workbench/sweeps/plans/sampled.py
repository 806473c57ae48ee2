"""Sampled plans: random points, Latin hypercubes, and Sobol's sequence.

    random            independent draws; points may be close together and leave gaps
    latin_hypercube   each parameter's range is divided into as many intervals as there are points; each interval
                      contains one point
    sobol             a sequence whose points fill the whole space evenly. The number of points is 1, 2, 4, 8, ... The
                      first half of a plan equals the plan with half as many points, so a doubled plan keeps its results

Limits
    If all parameters are whole numbers or lists, repeated points are removed, so a plan may have fewer points. Other
    releases of scipy may give other points for a seed, so a sweep must be continued with the release that began it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench import array_draws, draws
from workbench.errors import ScenarioError
from workbench.sweeps.design import PROBES, Design, evenly
from workbench.sweeps.plans.domains import Between, Domain, Listed, domains_of
from workbench.topology.graphs import is_whole

MOST_POINTS = 100_000_000
_PURPOSE = 0x504C414E  # "PLAN": separates these draws from those of scenarios


class Sampled(Design):
    """A plan of drawn points.

    ``domains`` is {path of a parameter: its range or list of values}. ``drawn`` is an array (float64, points ×
    parameters) with the drawn values as numbers; column i has numbers that the method `at` of domain i returned.
    Descriptions show ``method`` (such as "sobol") and ``seed``.
    """

    def __init__(self, domains: Mapping[str, Domain], drawn: np.ndarray, method: str, seed: int) -> None:
        self.paths = tuple(domains)
        self._domains = tuple(domains.values())
        self.drawn = drawn
        self._method, self._seed = method, seed

    def select(self, numbers: np.ndarray) -> Sampled:
        """Return a plan that has only the points ``numbers`` of this plan, in this order."""
        return Sampled(dict(zip(self.paths, self._domains, strict=True)), self.drawn[numbers], self._method, self._seed)

    def __len__(self) -> int:
        return len(self.drawn)

    def overrides(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: its value} for point ``number``."""
        row = zip(self.paths, self._domains, self.drawn[number].tolist(), strict=True)
        return {path: domain.value(drawn_number) for path, domain, drawn_number in row}

    def labels(self, number: int) -> dict[str, Any]:
        """Return {path of a varied parameter: label of its value in tables} for point ``number``."""
        row = zip(self.paths, self._domains, self.drawn[number].tolist(), strict=True)
        return {path: domain.label(drawn_number) for path, domain, drawn_number in row}

    def probes(self) -> Sequence[int]:
        """Return the numbers of the points to check before a sweep runs.

        These points contain each value that was drawn from a list at least once. Points that are evenly spaced over
        the whole plan are added.
        """
        probe_numbers = set(evenly(len(self), PROBES))
        for domain, column in zip(self._domains, self.drawn.T, strict=True):
            if isinstance(domain, Listed):
                probe_numbers |= set(np.unique(column, return_index=True)[1].tolist())
        return sorted(probe_numbers)

    def describe(self) -> dict[str, Any]:
        """Return {"design": name of the method, "points": their number, "seed": seed, "over": {path: domain}}."""
        domains = {path: domain.describe() for path, domain in zip(self.paths, self._domains, strict=True)}
        return {"design": self._method, "points": len(self), "seed": self._seed, "over": domains}

    def labels_of(self, path: str) -> Sequence[Any]:
        """Return the labels of the values of ``path`` if they are drawn from a list; empty for a range."""
        domain = self._domains[self.paths.index(path)]
        return domain.axis.labels if isinstance(domain, Listed) else ()

    def text(self) -> str:
        """Return a short description of the design: "50 points of protocol.ttl, radio.loss (latin_hypercube)"."""
        return f"{len(self)} points of {', '.join(self.paths)} ({self._method})"


def distinct(design: Sampled) -> tuple[Sampled, np.ndarray]:
    """Return (the design without duplicate points, numbers).

    ``numbers`` has, for each point of ``design``, the number of the equal point in the returned design.
    """
    _, first_rows, distinct_index = np.unique(design.drawn, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first_rows))
    return design.select(np.sort(first_rows)), rank[distinct_index.ravel()]


def values_at(domains: Mapping[str, Domain], shares: np.ndarray) -> np.ndarray:
    """Map ``shares``, an array (points × parameters) of numbers in [0, 1], to the drawn values as numbers.

    The result has the same shape. ``domains`` is {path of a parameter: its range or list}; column i is mapped by the
    method `at` of the i-th domain, such as `Between.at`.
    """
    return np.column_stack([domain.at(column) for domain, column in zip(domains.values(), shares.T, strict=True)])


def random(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """Return a plan of ``count`` points. Each parameter is chosen at random, independently.

    ``over`` is {path of a parameter: range (`between`, `whole`) or list of values}. Another ``seed`` gives other
    points. Raises ScenarioError for an invalid range or list.

    >>> len(random(100, {"radio.loss": between(0.0, 0.3), "protocol.ttl": whole(3, 12)}))
    100
    """
    domains = _check_arguments(count, over, seed)
    draw_key = np.uint64(draws.make_key(seed, _PURPOSE))
    counters = np.arange(1, count * len(domains) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        random_bits = array_draws.mix64(draw_key + counters * np.uint64(draws.GOLDEN))
    shares = (random_bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    return _make_design(domains, shares.reshape(count, len(domains)), "random", seed)


def latin_hypercube(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """Return ``count`` points that are spread evenly over the range of each single parameter.

    ``over`` is {path of a parameter: range or list of values}. Another ``seed`` gives other points. Raises
    ScenarioError for an invalid range or list.

    >>> len(latin_hypercube(100, {"radio.loss": between(0.0, 0.3), "protocol.ttl": whole(3, 12)}) * seeds(10))
    1000
    """
    from scipy.stats import qmc

    domains = _check_arguments(count, over, seed)
    return _make_design(domains, qmc.LatinHypercube(d=len(domains), rng=seed).random(count), "latin_hypercube", seed)


def sobol(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """Return ``count`` points of Sobol's sequence, which are spread evenly over all parameters together.

    ``over`` is {path of a parameter: range or list of values}. Another ``seed`` gives other points. The first half of
    the points equals the plan with half as many points. Raises ScenarioError if ``count`` is not a power of two, and
    for an invalid range or list.

    >>> len(sobol(128, {"radio.loss": between(0.001, 0.3, log=True), "protocol.ttl": whole(3, 12)}))
    128
    """
    from scipy.stats import qmc

    domains = _check_arguments(count, over, seed)
    if count & (count - 1):
        lower_power = 1 << (count.bit_length() - 1)
        raise ScenarioError(
            f"sobol: the argument `count` is {count}; "
            f"it must be a power of two, such as {lower_power} or {2 * lower_power}"
        )
    return _make_design(domains, qmc.Sobol(d=len(domains), rng=seed).random(count), "sobol", seed)


def _check_arguments(count: Any, over: Any, seed: Any) -> dict[str, Domain]:
    if not is_whole(count) or not 1 <= count <= MOST_POINTS:
        raise ScenarioError(f"the number of points is {count!r:.60}; it must be a whole number from 1 to {MOST_POINTS}")
    if not is_whole(seed) or seed < 0:
        raise ScenarioError(f"the argument `seed` is {seed!r:.60}; it must be a whole number, 0 or more")
    return domains_of(over)


def _make_design(domains: dict[str, Domain], shares: np.ndarray, method: str, seed: int) -> Sampled:
    design = Sampled(domains, values_at(domains, shares), method, seed)
    # Numbers with nine digits are practically never drawn twice, so sorting is not needed.
    has_range = any(isinstance(domain, Between) for domain in domains.values())
    return design if has_range else distinct(design)[0]

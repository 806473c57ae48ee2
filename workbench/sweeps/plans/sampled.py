"""Plans that are drawn: at random, as a Latin hypercube, as Sobol's sequence.

    random            independent draws: points are anywhere, also close together and far from any
    latin_hypercube   each parameter's range is cut into as many parts as there are points, and each part is used once
    sobol             a sequence whose points fill the whole space evenly; 2, 4, 8, ... points, of which the first half
                      is the plan of half as many points: a plan that is doubled keeps the results that are there

Limits
    Where all parameters are whole numbers or lists, points that are drawn again are there once: there are fewer then.
    Other releases of scipy may draw other points for a seed; a sweep that goes on in a folder needs the release that it
    began with to find its points there.
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
_PURPOSE = 0x504C414E  # "PLAN": these draws are no scenario's


class Sampled(Design):
    """Points that were drawn: what `Domain.of` found for each point (row) and path (column), float64."""

    def __init__(self, domains: Mapping[str, Domain], found: np.ndarray, how: str, seed: int) -> None:
        self.paths = tuple(domains)
        self._domains = tuple(domains.values())
        self.found = found
        self._how, self._seed = how, seed

    def at(self, numbers: np.ndarray) -> Sampled:
        """The design of these points alone."""
        return Sampled(dict(zip(self.paths, self._domains, strict=True)), self.found[numbers], self._how, self._seed)

    def __len__(self) -> int:
        return len(self.found)

    def overrides(self, number: int) -> dict[str, Any]:
        """path -> value of a point."""
        row = zip(self.paths, self._domains, self.found[number].tolist(), strict=True)
        return {path: domain.value(found) for path, domain, found in row}

    def labels(self, number: int) -> dict[str, Any]:
        """path -> label of a point."""
        row = zip(self.paths, self._domains, self.found[number].tolist(), strict=True)
        return {path: domain.label(found) for path, domain, found in row}

    def probes(self) -> Sequence[int]:
        """Each value of a list once, and some points from all over the plan."""
        found = set(evenly(len(self), PROBES))
        for domain, column in zip(self._domains, self.found.T, strict=True):
            if isinstance(domain, Listed):
                found |= set(np.unique(column, return_index=True)[1].tolist())
        return sorted(found)

    def describe(self) -> dict[str, Any]:
        """How the points were drawn, and from what."""
        drawn_from = {path: domain.describe() for path, domain in zip(self.paths, self._domains, strict=True)}
        return {"design": self._how, "points": len(self), "seed": self._seed, "over": drawn_from}

    def labels_of(self, path: str) -> Sequence[Any]:
        """The labels of a list that is drawn from; empty for a range."""
        domain = self._domains[self.paths.index(path)]
        return domain.axis.labels if isinstance(domain, Listed) else ()

    def text(self) -> str:
        """How many points of what: "50 points of protocol.ttl, radio.loss (latin_hypercube)"."""
        return f"{len(self)} points of {', '.join(self.paths)} ({self._how})"


def distinct(design: Sampled) -> tuple[Sampled, np.ndarray]:
    """The design without doubles, in the order in which points were drawn, and for each point its number there."""
    _, first, back = np.unique(design.found, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return design.at(np.sort(first)), rank[back.ravel()]


def found_at(domains: Mapping[str, Domain], shares: np.ndarray) -> np.ndarray:
    """What the domains have at ``shares`` (points × paths, 0 to 1), as `Sampled` takes it."""
    return np.column_stack([domain.of(share) for domain, share in zip(domains.values(), shares.T, strict=True)])


def random(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """So many points, each parameter drawn on its own from a range (`between`, `whole`) or a list of values.

    Another ``seed`` draws other points. Raises ScenarioError for what cannot be drawn from.

    >>> len(random(100, {"radio.loss": between(0.0, 0.3), "protocol.ttl": whole(3, 12)}))
    100
    """
    domains = _checked(count, over, seed)
    key = np.uint64(draws.make_key(seed, _PURPOSE))
    counters = np.arange(1, count * len(domains) + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bits = array_draws.mix64(key + counters * np.uint64(draws.GOLDEN))
    shares = (bits >> np.uint64(11)).astype(np.float64) / 2.0**53
    return _drawn(domains, shares.reshape(count, len(domains)), "random", seed)


def latin_hypercube(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """So many points that are spread evenly over the range of each parameter by itself, as those of `random` are not.

    >>> len(latin_hypercube(100, {"radio.loss": between(0.0, 0.3), "protocol.ttl": whole(3, 12)}) * seeds(10))
    1000
    """
    from scipy.stats import qmc

    domains = _checked(count, over, seed)
    return _drawn(domains, qmc.LatinHypercube(d=len(domains), rng=seed).random(count), "latin_hypercube", seed)


def sobol(count: int, over: Mapping[str, Any], seed: int = 1) -> Design:
    """So many points, a power of two, of Sobol's sequence: spread evenly over all parameters together.

    Its first half is the plan of half as many points. Raises ScenarioError if ``count`` is no power of two.

    >>> len(sobol(128, {"radio.loss": between(0.001, 0.3, log=True), "protocol.ttl": whole(3, 12)}))
    128
    """
    from scipy.stats import qmc

    domains = _checked(count, over, seed)
    if count & (count - 1):
        below = 1 << (count.bit_length() - 1)
        raise ScenarioError(
            f"Sobol's points are even only in powers of two: {count} is none; take {below} or {2 * below}"
        )
    return _drawn(domains, qmc.Sobol(d=len(domains), rng=seed).random(count), "sobol", seed)


def _checked(count: Any, over: Any, seed: Any) -> dict[str, Domain]:
    if not is_whole(count) or not 1 <= count <= MOST_POINTS:
        raise ScenarioError(f"the number of points is {count!r:.60}; it must be a whole number from 1 to {MOST_POINTS}")
    if not is_whole(seed) or seed < 0:
        raise ScenarioError(f"seed is {seed!r:.60}; it must be a whole number from 0")
    return domains_of(over)


def _drawn(domains: dict[str, Domain], shares: np.ndarray, how: str, seed: int) -> Sampled:
    design = Sampled(domains, found_at(domains, shares), how, seed)
    # Numbers with nine digits are not drawn twice; a million rows need not be sorted to find out.
    has_range = any(isinstance(domain, Between) for domain in domains.values())
    return design if has_range else distinct(design)[0]
